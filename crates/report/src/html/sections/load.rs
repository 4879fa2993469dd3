//! The load and brunt's health over time; and the run as a table.

use brunt_record::change::Change;

use super::super::over_time::{self, Moment};
use super::super::shown::Shown;
use super::super::stretches::Stretch;
use crate::markup::Html;
use crate::page::Section;

pub(super) fn load(stretches: &[Stretch], moments: &[Moment], changes: &[Change]) -> Section {
    let mut section = Section::new("load", "Load and generator");
    over_time::load(stretches, moments).with_changes(changes).write(&mut section.body);
    section.is_drawn = true;
    section
}

/// The run over time as a table, folded away.
pub(in crate::html) fn each(shown: Shown<'_>, stretches: &[Stretch], moments: &[Moment]) -> Html {
    let mut html = Html::default();
    if !stretches.is_empty() {
        html.raw("<details id=\"each\"><summary>The run over time as a table</summary>");
        over_time::table(shown, stretches, moments).write(&mut html);
        html.raw("</details>");
    }
    html
}
