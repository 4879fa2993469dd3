//! A run as one HTML file that works offline and without a script.

use std::io::{self, Write};

use brunt_judge::summary::Summary;

use crate::headline;
use crate::live::going_on;
use crate::markup::Html;
use crate::page::{self, Page};
use drilldown::Drilldown;
use last_second::LastSecond;
use shown::Shown;
use stretches::Stretch;

/// From so long on a waiting call is worth a word, in nanoseconds.
const LONG_WAIT_NS: u64 = brunt_record::SECOND_NS;

mod drilldown;
mod first_screen;
mod last_second;
mod live;
mod over_time;
mod sections;
mod shown;
mod stretches;

pub(crate) use first_screen::within;
pub use live::Running;

/// Writes the page of `summary`.
///
/// # Errors
/// When `out` cannot be written to.
pub fn write(out: &mut impl Write, summary: &Summary) -> io::Result<()> {
    finished(summary).write(out)
}

/// The page of a finished run.
pub(crate) fn finished(summary: &Summary) -> Page {
    page(summary, None)
}

/// The page that follows a run. It gets its content from `events` beside it: server-sent events called `data`, and a
/// last one called `finished`, each with the result of [`Running::data`] or [`data`].
pub fn following() -> String {
    page::following()
}

/// The content of a finished run for a page that follows it, in a line.
///
/// # Errors
/// None: writing JSON is fallible in type.
pub fn data(summary: &Summary) -> io::Result<String> {
    finished(summary).event()
}

/// The page of a run; `live` if it goes on.
fn page(summary: &Summary, live: Option<&LastSecond>) -> Page {
    let drilldown = Drilldown::new(summary.run.series.drilldown());
    let shown = Shown { summary, drilldown: &drilldown };
    // While a run goes on nothing is judged, and nothing is green.
    let mut remarks = if live.is_some() { going_on(summary) } else { headline::remarks(summary) };
    let stretches = Stretch::all(&summary.total.timeline, summary.run.series.points());
    // The findings on calls of a stall are known when it is over: until then it looks like an overload.
    if let Some(oldest_ns) = live.and_then(|live| live.oldest_ns).filter(|ns| *ns >= LONG_WAIT_NS) {
        let now_ns = stretches.last().map_or(0, |stretch| stretch.to_ns);
        remarks.retain(|said| said.stretch().is_none_or(|(_, to_ns)| to_ns.saturating_add(oldest_ns) <= now_ns));
    }
    let moments = over_time::moments(shown, &stretches);
    let mut main = Html::default();
    if let Some(live) = live {
        main.html(&sections::state(live));
    }
    main.raw("<div id=\"first-screen\">");
    let over_time = over_time::section(shown, &remarks, &stretches, &moments);
    main.html(&first_screen::first_screen(shown, &remarks, &over_time, live)).raw("</div>");
    page::write_all(&mut main, &sections::sections(shown, &stretches, &moments, live));
    // A table that changes under its reader is useless.
    if live.is_none() {
        main.html(&sections::each(shown, &stretches, &moments));
    }
    Page::new(first_screen::title(&summary.plan), main)
}

#[cfg(test)]
mod tests;
