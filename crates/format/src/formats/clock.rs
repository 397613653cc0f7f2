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
    Ok(now().map(iso8601))
}

/// Seconds since 1970.
#[cfg(feature = "fs")]
fn now() -> Option<u64> {
    let pinned = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|s| s.parse().ok());
    Some(pinned.unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.map_or(0, |d| d.as_secs())
    }))
}

/// There is no clock.
#[cfg(not(feature = "fs"))]
fn now() -> Option<u64> {
    None
}

fn is_timestamp(text: &str) -> bool {
    let pattern = b"dddd-dd-ddTdd:dd:ddZ";
    text.len() == pattern.len()
        && text
            .bytes()
            .zip(pattern)
            .all(|(b, &p)| if p == b'd' { b.is_ascii_digit() } else { b == p })
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
        assert!(created_at(&Options::default().with("created-at", "yesterday")).is_err());
    }
}
