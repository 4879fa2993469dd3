//! The last second of a run that goes on, and the run's progress.

use brunt_plan::units::{Duration, Number};
use brunt_record::snapshot::Phase;

use super::super::LONG_WAIT_NS;
use super::super::last_second::LastSecond;
use crate::markup::Html;
use crate::numbers::{count, counted, duration};

/// A time in whole seconds.
fn whole(ns: u64) -> String {
    let seconds = Duration(ns / brunt_record::SECOND_NS * brunt_record::SECOND_NS).to_string();
    seconds.replace(".00s", "s").replace("0ns", "0s")
}

fn how_far(live: &LastSecond) -> String {
    let about = |is_estimate| if is_estimate { "about " } else { "" };
    let planned =
        live.end.map(|(ns, is_estimate)| format!(" of {}{}", about(is_estimate), whole(ns))).unwrap_or_default();
    let in_log = live.in_log.as_ref().map(|words| format!("; {words}")).unwrap_or_default();
    let is_measured = live.phase == crate::live::name(Phase::Measured);
    let requests = live.planned_requests.filter(|_| is_measured);
    let requests = requests.map(|n| format!(", until {} are done", counted(n, "request"))).unwrap_or_default();
    format!("{}, {}{planned}{requests}{in_log}", live.phase, whole(live.elapsed_ns))
}

pub(in crate::html) fn state(live: &LastSecond) -> Html {
    let mut html = Html::default();
    html.raw("<div id=\"live\" role=\"group\" aria-label=\"live\"><p><strong>● running</strong> ")
        .text(&how_far(live))
        .raw("</p>");
    if let Some((end, _)) = live.end.filter(|(ns, _)| *ns > 0) {
        let share = (live.elapsed_ns as f64 / end as f64).min(1.0);
        html.raw("<progress max=\"1\" value=\"")
            .text(&format!("{share:.4}"))
            .raw("\" aria-label=\"how far the run is\"></progress>");
    }
    if live.elapsed_ns > 0 {
        html.raw("<p class=\"faint\">in the last second: ").text(&last_second(live)).raw("</p>");
    }
    // In a stall no call ends, and percentiles are of ended calls.
    let oldest = live.oldest_ns.filter(|ns| *ns >= LONG_WAIT_NS);
    if live.backlog > 0 || oldest.is_some() {
        let backlog = (live.backlog > 0).then(|| format!("{} due and not sent", counted(live.backlog, "call")));
        let waits = oldest.map(|ns| format!("the oldest call has waited {} and is in no percentile yet", whole(ns)));
        html.raw("<p id=\"backlog\" class=\"").raw(if oldest.is_some() { "warning" } else { "" }).raw("\">");
        html.text(&[backlog, waits].into_iter().flatten().collect::<Vec<_>>().join("; ")).raw("</p>");
    }
    if live.missed > 0 {
        html.raw("<p class=\"warning\">").text(&counted(live.missed, "second"));
        html.raw(" came too fast for this page and are in none of its figures; the finished report has them</p>");
    }
    html.raw("<p id=\"problem\" class=\"warning\" role=\"status\"></p></div>");
    html
}

fn last_second(live: &LastSecond) -> String {
    let times = live.p50.zip(live.p99).map(|(p50, p99)| format!("p50 {}, p99 {}", duration(p50), duration(p99)));
    let parts = [
        Some(format!("{}/s", Number(live.answered_per_s))),
        times,
        (live.not_ok > 0).then(|| format!("{} not ok", count(live.not_ok))),
        live.users.map(|users| counted(users, "user")),
        Some(format!("{} open", counted(live.open_connections, "connection"))),
        Some(format!("{} in flight", counted(live.in_flight, "call"))),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
