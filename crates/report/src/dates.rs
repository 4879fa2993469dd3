//! Dates as reports write them.

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Seconds since 1970 as `2026-01-01T00:00:00Z`; for years after 9999, which have no such form, the number of seconds.
pub(crate) fn iso_8601(unix_s: u64) -> String {
    let moment = i64::try_from(unix_s).ok().and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds).ok());
    moment.and_then(|moment| moment.format(&Rfc3339).ok()).unwrap_or_else(|| unix_s.to_string())
}

/// Milliseconds since 1970 as `2026-01-31 09:30`.
pub(crate) fn to_the_minute(unix_ms: u64) -> String {
    iso_8601(unix_ms / 1000).replace('T', " ").chars().take(16).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (unix_s, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_767_225_599, "2025-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(iso_8601(unix_s), text);
        }
    }
}
