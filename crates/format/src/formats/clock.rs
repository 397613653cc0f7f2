//! The time a file is made, which can be pinned.

use crate::{Advice, Error, Options};

/// The option `created-at`, else `SOURCE_DATE_EPOCH`, else now; as ISO 8601 in UTC. Where there is
/// no system, only the option says it.
pub(super) fn created_at(options: &Options) -> Result<Option<String>, Error> {
    if let Some(text) = options.get("created-at") {
        return if is_timestamp(text) {
            Ok(Some(text.to_owned()))
        } else {
            Err(Error::refused(
                format!("the option created-at takes a time, not {text:?}"),
                Advice::set_to("created-at", "2025-01-16T12:00:00Z", "is how it is written"),
            ))
        };
    }
    Ok(now()?.map(iso8601))
}

/// Seconds since 1970.
#[cfg(feature = "fs")]
fn now() -> Result<Option<u64>, Error> {
    if let Some(pinned) = std::env::var_os(PINNED) {
        return seconds(&pinned.to_string_lossy()).map(Some);
    }
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Ok(Some(now.map_or(0, |d| d.as_secs())))
}

/// There is no clock.
#[cfg(not(feature = "fs"))]
fn now() -> Result<Option<u64>, Error> {
    Ok(None)
}

/// The variable that pins the time of everything that is built.
#[cfg(feature = "fs")]
const PINNED: &str = "SOURCE_DATE_EPOCH";

/// What the variable says. A time that can't be written with four digits for the year is no time.
#[cfg(feature = "fs")]
fn seconds(text: &str) -> Result<u64, Error> {
    const LAST: u64 = 253_402_300_799;
    let digits = Some(text).filter(|text| text.bytes().all(|b| b.is_ascii_digit()));
    let seconds = digits.and_then(|text| text.parse().ok()).filter(|seconds| *seconds <= LAST);
    seconds.ok_or_else(|| {
        Error::refused(
            format!("the environment variable {PINNED} is not a number of seconds: {text:?}"),
            "set it to seconds since 1970, or unset it",
        )
    })
}

/// A time as it is written: to the second, in UTC.
fn is_timestamp(text: &str) -> bool {
    text.len() == "2025-01-16T12:00:00Z".len() && text.ends_with('Z') && is_iso8601(text)
}

/// A date of ISO 8601 that there is, with or without a time of day: `2025-01-16`,
/// `2025-01-16T12:00:00.5+01:00`, `20250116T120000Z`.
pub(super) fn is_iso8601(text: &str) -> bool {
    let (date, time) = match text.split_once('T') {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let extended = date.contains('-');
    let date = numbers(date, if extended { "-" } else { "" }, &[4, 2, 2]);
    let is_date = date.is_some_and(|date| match date[..] {
        [year, month, day] => (1..=days_in(year, month)).contains(&day),
        _ => false,
    });
    is_date && time.is_none_or(|time| is_time(time, extended))
}

/// A time of day, to the minute or the second or parts of it, and where the clock stands.
fn is_time(text: &str, extended: bool) -> bool {
    let separator = if extended { ":" } else { "" };
    let zone_at = text.find(['Z', '+', '-']).unwrap_or(text.len());
    let (time, zone) = text.split_at(zone_at);
    let is_zone = match zone.strip_prefix(['+', '-']) {
        Some(offset) => [&[2, 2][..], &[2]].iter().any(|parts| {
            numbers(offset, separator, parts).is_some_and(|n| n[0] <= 23 && n.get(1) <= Some(&59))
        }),
        None => zone.is_empty() || zone == "Z",
    };
    let (time, fraction) = match time.split_once(['.', ',']) {
        Some((time, fraction)) => (time, Some(fraction)),
        None => (time, None),
    };
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let is_time = [&[2, 2, 2][..], &[2, 2]].iter().any(|parts| {
        let Some(n) = numbers(time, separator, parts) else { return false };
        let (minute, second) = (n[1], n.get(2).copied().unwrap_or(0));
        // A day may end with 24:00, and a minute with a leap second.
        let ends_day = n[0] == 24 && minute == 0 && second == 0;
        (n[0] <= 23 || ends_day) && minute <= 59 && second <= 60
    });
    is_zone && is_time && fraction.is_none_or(is_digits)
}

/// Numbers of so many digits each, with something between them.
fn numbers(text: &str, separator: &str, digits: &[usize]) -> Option<Vec<u64>> {
    let mut rest = text;
    let mut numbers = Vec::new();
    for (i, count) in digits.iter().enumerate() {
        if i > 0 {
            rest = rest.strip_prefix(separator)?;
        }
        let (number, behind) = rest.split_at_checked(*count)?;
        numbers.push(number.bytes().all(|b| b.is_ascii_digit()).then(|| number.parse().ok())??);
        rest = behind;
    }
    rest.is_empty().then_some(numbers)
}

/// Days in a month of a year; none in a month that there is not.
fn days_in(year: u64, month: u64) -> u64 {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    }
}

/// Seconds since 1970 as a UTC time.
fn iso8601(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Days to date with years beginning in March, so that the leap day is the last of its year.
    let z = days + 719_468;
    let era = z / 146_097;
    let day_of_era = z % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_times() {
        assert_eq!(iso8601(0), "1970-01-01T00:00:00Z");
        assert_eq!(iso8601(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(iso8601(1_737_028_800), "2025-01-16T12:00:00Z");
        assert_eq!(iso8601(4_107_542_399), "2100-02-28T23:59:59Z");
        let pinned = Options::default().with("created-at", "2025-01-16T12:00:00Z");
        assert_eq!(created_at(&pinned).unwrap().as_deref(), Some("2025-01-16T12:00:00Z"));
        assert_eq!(created_at(&Options::default()).unwrap().is_some(), cfg!(feature = "fs"));
        for no_time in [
            "yesterday",
            "2024-02-30T12:00:00Z",
            "2023-02-29T12:00:00Z",
            "2024-13-01T12:00:00Z",
            "2024-00-01T12:00:00Z",
            "2024-01-00T12:00:00Z",
            "2024-01-01T25:00:00Z",
            "2024-01-01T12:60:00Z",
            "2024-01-01 12:00:00Z",
            "2024-01-01T12:00:000",
            "2024-01-01",
        ] {
            let refused = created_at(&Options::default().with("created-at", no_time));
            assert!(matches!(refused, Err(Error::Refused(_))), "{no_time}");
        }
    }

    #[test]
    fn dates_of_iso_8601() {
        for date in [
            "2025-01-16T12:00:00Z",
            "2024-02-29",
            "2000-02-29T00:00Z",
            "2025-01-16T12:00:00.123456",
            "2025-01-16T12:00:00,5+05:30",
            "2025-01-16T12:00:00-08",
            "2025-01-16T24:00:00Z",
            "2016-12-31T23:59:60Z",
            "20250116T120000Z",
            "20250116T120000+0100",
        ] {
            assert!(is_iso8601(date), "{date}");
        }
        for no_date in [
            "",
            "yesterday",
            "2024-02-30T00:00:00Z",
            "1900-02-29",
            "2025-1-16",
            "2025-01-16T",
            "2025-01-16T12",
            "2025-01-16T12:00:00Zulu",
            "2025-01-16T12:00:00.Z",
            "2025-01-16T12:00:00+25:00",
            "2025-01-16T120000Z",
            "2025-01-16 12:00:00",
            "2025-01-16T24:00:01Z",
            "２０２５-01-16",
        ] {
            assert!(!is_iso8601(no_date), "{no_date}");
        }
    }

    #[test]
    #[cfg(feature = "fs")]
    fn a_pinned_time_is_a_number_of_seconds() {
        assert_eq!(seconds("0").unwrap(), 0);
        assert_eq!(iso8601(seconds("253402300799").unwrap()), "9999-12-31T23:59:59Z");
        for wrong in ["abc", "", "-1", "+1", "1.5", " 1", "253402300800", "99999999999999999999"] {
            assert!(matches!(seconds(wrong), Err(Error::Refused(_))), "{wrong:?}");
        }
    }
}
