//! The catalogue of figures: every number and every distribution of times that a run records, declared once.
//!
//! A declaration has the figure's name, its meaning in one sentence, its unit, how two values merge, and where it is
//! shown. Merging, the wire, the store, JSON, CSV, thresholds and the reference in `docs/reference.md` derive from it.
//! Statuses, failures with their reasons, and names have types of their own.
//!
//! Recording is a line at the place where something happens, and costs an addition:
//!
//! ```
//! use brunt_record::catalogue::{Counter, Numbers};
//!
//! let mut numbers = Numbers::default();
//! numbers.add(Counter::WireIn, 1460);
//! assert_eq!(numbers.get(Counter::WireIn), 1460);
//! ```

mod counter;
mod numbers;
mod place;
#[cfg(test)]
mod tests;
mod timing;
mod timings;

pub use counter::{Counter, Merge, Unit};
pub use numbers::Numbers;
pub use place::{JsonGroup, JsonGroupNumbers, places};
pub use timing::Timing;
pub use timings::Timings;

/// A reference of every figure, as the table in `docs/reference.md`.
pub fn reference() -> String {
    let row = |key: &str, unit: &str, path: &str, threshold: bool, csv: bool, sentence: &str| {
        let tick = |is_shown| if is_shown { "yes" } else { "" };
        format!("| `{key}` | {unit} | {path} | {} | {} | {sentence} |\n", tick(threshold), tick(csv))
    };
    let mut text = "| figure | unit | in JSON | threshold | CSV | |\n|---|---|---|---|---|---|\n".to_owned();
    for counter in Counter::ALL {
        let path = counter.json_path().map_or_else(String::new, |path| format!("`{path}`"));
        let (threshold, csv) = (counter.has_threshold(), counter.has_column());
        text += &row(counter.key(), counter.unit().name(), &path, threshold, csv, counter.sentence());
    }
    for timing in Timing::ALL {
        text += &row(timing.key(), "times", "", timing.has_threshold(), false, timing.sentence());
    }
    text
}
