//! How far a replay is in its log, in words.

use brunt_plan::units::ExactDuration;
use brunt_record::SECOND_NS;
use brunt_record::live::Live;

/// `10:12:03 in the log, about 18m 20s left`; `None` for other runs, and where nothing is known.
pub(crate) fn words(live: &Live) -> Option<String> {
    let log = live.in_log?;
    let clock = log.clock_s.map(|seconds| {
        let of_day = seconds.rem_euclid(86_400);
        format!("{:02}:{:02}:{:02} in the log", of_day / 3600, of_day / 60 % 60, of_day % 60)
    });
    let left = live.end().map(|(end_ns, is_estimate)| {
        let about = if is_estimate { "about " } else { "" };
        format!("{about}{} left", left(end_ns.saturating_sub(live.elapsed_ns)))
    });
    let parts: Vec<_> = clock.into_iter().chain(left).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// A remaining time, in at most two units: `1h 12m`, `18m 20s`, `5s`.
fn left(ns: u64) -> String {
    let seconds = ns.div_ceil(SECOND_NS);
    let two = |first: u64, unit: &str, second: u64, of: &str| match second {
        0 => format!("{first}{unit}"),
        _ => format!("{first}{unit} {second}{of}"),
    };
    match seconds {
        0..60 => ExactDuration(seconds * SECOND_NS).to_string(),
        60..3600 => two(seconds / 60, "m", seconds % 60, "s"),
        3600..86_400 => two(seconds / 3600, "h", seconds / 60 % 60, "m"),
        _ => two(seconds / 86_400, "d", seconds / 3600 % 24, "h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_has_two_units_at_the_most() {
        let lefts = [0, 1, 5_000_000_000, 60_000_000_000, 1_100_000_000_000, 3_600_000_000_000, 4_321_000_000_000];
        assert_eq!(lefts.map(left), ["0s", "1s", "5s", "1m", "18m 20s", "1h", "1h 12m"]);
        assert_eq!(left(93_600 * SECOND_NS), "1d 2h");
    }
}
