//! What somebody changed about the run while it went on.

use brunt_judge::summary::Summary;

use super::{WIDTH, title, wrapped};
use crate::changes::sentence;
use crate::style::Paint;

/// The most changes that have a line; JSON has them all.
const MOST: usize = 20;

pub(super) fn section(summary: &Summary, paint: Paint) -> Vec<String> {
    let changes = &summary.run.changes;
    let mut lines = Vec::new();
    for (nth, change) in changes.iter().take(MOST).enumerate() {
        let first = if nth == 0 { title("Changes", paint) } else { " ".repeat(15) };
        let mut broken =
            wrapped("", "                     ", &sentence(change).replace("  ", "\u{a0}\u{a0}"), WIDTH - 15);
        if let Some(line) = broken.first_mut() {
            line.insert_str(0, &first);
        }
        lines.extend(broken);
    }
    if changes.len() > MOST {
        lines.push(format!("{}and {} more", " ".repeat(15), changes.len() - MOST));
    }
    lines
}
