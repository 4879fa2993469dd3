//! Lines for several runs that follow each other.

use std::time::Duration;

use brunt_plan::units::{ExactDuration, Number};
use brunt_record::live::Live;
use brunt_record::outcome::OkStatus;

use super::second::{Second, name};
use crate::chart;
use crate::{columns, numbers};

/// The widest progress bar.
const WIDEST_BAR: usize = 40;

/// How far all of them are, in a line no longer than `width`: what is `past`, and about what is `left`.
pub fn overall(title: &str, past: Duration, left: Duration, width: usize) -> String {
    let whole = |time: Duration| ExactDuration((time.as_secs_f64().round() as u64) * brunt_record::SECOND_NS);
    let clock = |time: Duration| match time.as_secs() {
        0..100 => whole(time).to_string(),
        seconds => format!("{}m{:02}s", seconds / 60, seconds % 60),
    };
    let share = past.as_secs_f64() / (past + left).as_secs_f64().max(1e-9);
    let text = format!("  {}, about {} left", clock(past), clock(left));
    let title = format!("brunt {title}  ");
    let room = width.saturating_sub(columns::width(&title) + columns::width(&text));
    format!("{title}{}{text}", chart::bar(share, room.min(WIDEST_BAR)))
}

/// A run's last second, in a few words.
pub fn brief(live: &Live) -> String {
    let second = Second::from_live(live, &OkStatus::default());
    let p99 = second.p99.map_or(String::new(), |p99| format!(", p99 {}", numbers::duration(p99)));
    format!("{} {}/s{p99}", name(live.phase), Number(second.rate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_how_much_is_left() {
        let line = overall("find", Duration::from_secs(30), Duration::from_secs(90), 60);
        assert!(line.starts_with("brunt find  █████▌") || line.starts_with("brunt find  █"), "{line}");
        assert!(line.ends_with("░  30s, about 90s left") && line.chars().count() <= 60, "{line}");
        assert!(overall("find", Duration::ZERO, Duration::from_secs(150), 60).ends_with("0s, about 2m30s left"));
    }
}
