//! Numbers as text.

/// Like C's `%.6g`: six significant digits, an exponent only when it is shorter.
pub(crate) fn general(v: f64) -> String {
    if v.is_nan() {
        return "nan".to_owned();
    }
    if v.is_infinite() {
        return if v > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    if v == 0.0 {
        return if v.is_sign_negative() { "-0" } else { "0" }.to_owned();
    }
    let scientific = format!("{v:.5e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trim = |s: &str| match s.contains('.') {
        true => s.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => s.to_owned(),
    };
    if (-4..6).contains(&exponent) {
        let places = usize::try_from(5 - exponent).unwrap_or(0);
        trim(&format!("{v:.places$}"))
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}e{sign}{:02}", trim(digits), exponent.abs())
    }
}

/// With a comma between groups of three digits.
pub(crate) fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let first = digits.len() % 3;
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && i % 3 == first {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// A size people can read: `90.9 MB`.
#[allow(clippy::cast_precision_loss)]
pub(crate) fn size(bytes: u64) -> String {
    let units = [("GB", 1e9), ("MB", 1e6), ("kB", 1e3)];
    match units.iter().find(|(_, u)| bytes as f64 >= *u) {
        Some((name, unit)) => format!("{:.1} {name}", bytes as f64 / unit),
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Python prints for `f"{v:.6g}"`.
    #[test]
    fn general_is_like_c() {
        for (v, expected) in [
            (0.122, "0.122"),
            (-0.0163582, "-0.0163582"),
            (6.15077e-5, "6.15077e-05"),
            (1234567.0, "1.23457e+06"),
            (123456.7, "123457"),
            (999999.9, "1e+06"),
            (100.0, "100"),
            (0.0001, "0.0001"),
            (-2.5, "-2.5"),
            (f64::NAN, "nan"),
        ] {
            assert_eq!(general(v), expected);
        }
    }

    #[test]
    fn groups_of_three() {
        assert_eq!(
            ["0", "999", "1,000", "90,868,376"],
            [0, 999, 1000, 90_868_376].map(grouped).each_ref().map(String::as_str)
        );
        assert_eq!(size(90_868_376), "90.9 MB");
    }
}
