//! Changes of a run while it went on, in words.

use brunt_plan::units::{Clock, ExactDuration, Number};
use brunt_record::change::{Action, Author, Change};

use crate::numbers::{clean, counted};

/// When it took effect: `0:05`, or `1s before 0:00` in the warm-up.
pub fn when(change: &Change) -> String {
    if let Ok(at_ns) = u64::try_from(change.at_ns) {
        return Clock(at_ns).to_string();
    }
    let tenths = change.at_ns.unsigned_abs() / 100_000_000 * 100_000_000;
    format!("{} before 0:00", ExactDuration(tenths))
}

/// What changed: `rate 500/s`, or the text of a mark.
pub fn what(action: &Action) -> String {
    match action {
        Action::Rate(rate) => format!("rate {}/s", Number(*rate)),
        Action::Users(users) => counted(*users, "user"),
        Action::Pause => "paused".to_owned(),
        Action::Resume => "resumed".to_owned(),
        Action::Mark(text) => clean(text).into_owned(),
    }
}

/// Both, with the author: `0:05  rate 500/s, by brunt ctl`. A mark always comes from a person.
pub fn sentence(change: &Change) -> String {
    let by = match (&change.action, &change.by) {
        (Action::Mark(_), Author::Ctl | Author::Page) => String::new(),
        (_, by) => format!(", by {}", clean(&by.to_string())),
    };
    format!("{}  {}{by}", when(change), what(&change.action))
}
