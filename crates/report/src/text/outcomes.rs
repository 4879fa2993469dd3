//! The outcomes of all calls, shown to add up; and the connections that carried them.

use brunt_judge::summary::Summary;
use brunt_plan::scenario::Population;
use brunt_plan::units::Duration;
use brunt_record::catalogue::Counter;
use brunt_record::counts::Failures;
use brunt_record::samples::Sampled;

use super::fitting::{Rank, Section};
use super::{WIDTH, label, title, wrapped};
use crate::columns;
use crate::failed::in_words;
use crate::numbers::{brief, clean, count, counted, percent};
use crate::style::Paint;
use crate::sure;

/// The columns that the name of a line takes.
const WIDTH_OF_LABEL: usize = 15;
/// The most statuses for which an answer is shown.
const MOST_EXAMPLES: usize = 3;

pub(super) fn section(summary: &Summary, paint: Paint, verbose: bool) -> Section {
    let sum = wrapped(&title("Outcomes", paint), &" ".repeat(15), &sum(summary, paint, false), WIDTH);
    let mut section = Section::of("Outcomes", Rank::Always, sum).with_rows("reason");
    // A protocol without statuses has answers with status 0.
    let statuses: Vec<_> = summary.total.statuses.sorted().into_iter().filter(|(status, _)| *status != 0).collect();
    if !statuses.is_empty() {
        let ok = summary.ok_status();
        let shown = statuses.iter().map(|&(status, n)| {
            let name = summary.run.status_names.get(&status).map_or_else(String::new, |name| format!(" {name}"));
            let text = format!("{status}{name} × {}", count(n));
            if ok.holds(status) { text } else { paint.bad(text) }
        });
        let rank = if statuses.iter().all(|(status, _)| ok.holds(*status)) { Rank::Minor } else { Rank::Always };
        section.add_whole(rank, &in_columns(&label("status", paint), shown));
    }
    for failure in listed("failed", &summary.total.failures, |line| paint.bad(line), paint) {
        section.add_row(Rank::Cause, failure);
    }
    section.add(Rank::Cause, such_as(summary, paint));
    if summary.total.numbers.get(Counter::Due) > 0 {
        let rate = percent(summary.error_rate);
        // Green is for thresholds that held.
        let rate = if summary.not_ok > 0 { paint.bad(rate) } else { rate };
        let rank = if summary.not_ok > 0 { Rank::Figure } else { Rank::Repeated };
        let of = format!("({} not ok; {})", count(summary.not_ok), sure::errors(summary));
        section.add(rank, [format!("{}{rate} {of}", label("error rate", paint))]);
    } else {
        let text = format!("{}none: no call was due in the measured part", label("error rate", paint));
        section.add(Rank::Always, [text]);
    }
    if summary.total.numbers.get(Counter::WaitedForConnection) > 0 {
        let calls = format!(
            "{} of {}",
            count(summary.total.numbers.get(Counter::WaitedForConnection)),
            counted(summary.total.numbers.get(Counter::Due), "call")
        );
        section.add(Rank::Minor, [format!("{}{}", paint.warning("  waited for a free connection: "), calls)]);
    }
    if let Some(sampled) = summary.run.sampled.as_deref() {
        let rank = if sampled.problem.is_some() { Rank::Always } else { Rank::Minor };
        section.add(rank, [format!("{}{}", label("samples", paint), rows_of(sampled))]);
    }
    if summary.total.numbers.get(Counter::Unasked) > 0 {
        let unasked = counted(summary.total.numbers.get(Counter::Unasked), "message");
        section.add(Rank::Minor, [format!("{}{unasked}", label("unasked", paint))]);
    }
    let events = events(summary);
    if !events.is_empty() {
        section.add(Rank::Minor, [format!("{}{}", label("events", paint), events.join(", "))]);
    }
    let numbers = &summary.total.numbers;
    let holds = [
        (numbers.get(Counter::HeldBackByStreamLimit), "by the limit of streams"),
        (numbers.get(Counter::HeldBackByFlowControl), "by flow control"),
    ];
    let holds: Vec<_> =
        holds.iter().filter(|(ns, _)| *ns > 0).map(|(ns, what)| format!("{} {what}", Duration(*ns))).collect();
    if !holds.is_empty() {
        section.add(Rank::Minor, [format!("{}{}", label("held back", paint), holds.join(", "))]);
    }
    // Each user who arrives brings connections of its own, which may be most of what a target has to do.
    let arrives = summary.plan.scenarios.as_ref().is_some_and(|all| all.populations.iter().any(Population::is_open));
    if verbose
        || arrives
        || summary.total.numbers.get(Counter::ConnectionsFailed) > 0
        || summary.total.numbers.get(Counter::Reconnects) > 0
        || summary.total.numbers.get(Counter::TurnedAway) > 0
        || summary.total.numbers.get(Counter::PacketsLost) > 0
        || summary.total.numbers.get(Counter::DatagramsDropped) > 0
    {
        let made = wrapped("", "", &connections(summary), WIDTH - 15);
        let names = ["connections"].into_iter().chain(std::iter::repeat(""));
        let made: Vec<_> = made.iter().zip(names).map(|(line, name)| format!("{}{line}", label(name, paint))).collect();
        section.add_whole(Rank::Minor, &made);
    }
    section.add(Rank::Minor, listed("troubles", &summary.total.troubles, str::to_owned, paint));
    section
}

/// Words in lines of the usual width, none of them cut; the first line stands behind `label`.
fn in_columns(label: &str, words: impl Iterator<Item = String>) -> Vec<String> {
    const GAP: &str = "   ";
    let mut lines = vec![label.to_owned()];
    for word in words {
        let Some(line) = lines.last_mut() else { break };
        let is_first = columns::width(line) <= WIDTH_OF_LABEL;
        if !is_first && columns::width(line) + GAP.len() + columns::width(&word) > WIDTH {
            lines.push(format!("{}{word}", " ".repeat(WIDTH_OF_LABEL)));
        } else {
            line.push_str(if is_first { "" } else { GAP });
            line.push_str(&word);
        }
    }
    lines
}

/// An excerpt of the first answer with each status that is not ok, in a line each; failures have their reasons.
fn such_as(summary: &Summary, paint: Paint) -> Vec<String> {
    let statuses =
        summary.total.statuses.sorted().into_iter().filter(|(status, _)| !summary.ok_status().holds(*status));
    let said = statuses.filter_map(|(status, _)| {
        let examples = summary.total.examples.get(&status.to_string());
        let call = examples.iter().find(|call| !call.said.is_empty())?;
        let words = call.said.split_whitespace().collect::<Vec<_>>().join(" ");
        let request = if call.request.is_empty() { String::new() } else { format!(" of {}", brief(&call.request)) };
        let trace = if call.trace_id.is_empty() { String::new() } else { format!(", trace {}", clean(&call.trace_id)) };
        let text = format!("{status}{request} after {}{trace}: {}", Duration(call.took_ns), clean(&words));
        let cut = columns::cut(&text, WIDTH - 16).trim_end();
        let more = if cut.len() < text.len() { "…" } else { "" };
        Some(format!("{}{cut}{more}", label("such as", paint)))
    });
    said.take(MOST_EXAMPLES).collect()
}

/// Each failure on a line of its own, wrapped; the first with a name.
fn listed(name: &str, failures: &Failures, dress: impl Fn(&str) -> String, paint: Paint) -> Vec<String> {
    let mut names = [name].into_iter().chain(std::iter::repeat(""));
    let mut in_lines = |(failure, n)| {
        let said = wrapped("", "  ", &in_words(failures, failure, n), WIDTH - 15);
        let lines = said.iter().zip(&mut names).map(|(line, name)| format!("{}{}", label(name, paint), dress(line)));
        lines.collect::<Vec<_>>().join("\n")
    };
    failures.counted().map(&mut in_lines).collect()
}

/// The outcomes as a sum that adds up; for a run that goes on, with the calls that have yet to end.
pub(crate) fn sum(summary: &Summary, paint: Paint, is_live: bool) -> String {
    let total = &summary.total;
    let mut parts = vec![format!("{} answered", count(total.statuses.total()))];
    let of = |counter| total.numbers.get(counter);
    let (lost, held) = (of(Counter::UnsentLost), of(Counter::UnsentHeld));
    let unsent = of(Counter::Unsent).saturating_sub(lost + held);
    let open = if is_live { of(Counter::Due).saturating_sub(total.ended()) } else { 0 };
    for (n, what) in [
        (total.failures.total(), "failed"),
        (of(Counter::Unfinished), "unfinished"),
        (unsent, "unsent"),
        (held, "unsent (held back)"),
        (lost, "unsent (agent lost)"),
        (of(Counter::Unknown), "unknown (agent lost)"),
    ] {
        if n > 0 {
            parts.push(paint.bad(format!("{} {what}", count(n))));
        }
    }
    if open > 0 {
        parts.push(format!("{} not ended yet", count(open)));
    }
    let sign = if total.ended() + open == of(Counter::Due) { "=" } else { "≠ (a fault in brunt: please report it)" };
    format!("{} due {sign} {}", count(of(Counter::Due)), parts.join(" + "))
}

/// What protocols count besides calls, and the connections that each of several addresses took.
pub(crate) fn events(summary: &Summary) -> Vec<String> {
    let total = &summary.total;
    let events = total.events.iter().map(|(name, number)| format!("{} × {}", clean(name), count(number)));
    let taken = total.addresses.taken().map(|(address, made)| format!("connections to {address} × {}", count(made)));
    events.chain(taken).collect()
}

/// The number of connections, and their events.
pub(crate) fn connections(summary: &Summary) -> String {
    let connections = &summary.total.numbers;
    let mut parts = vec![format!("{} made", count(connections.get(Counter::ConnectionsMade)))];
    for (n, what) in [
        (connections.get(Counter::ConnectionsFailed), "failed"),
        (connections.get(Counter::TlsResumed), "resumed a TLS session"),
    ] {
        if n > 0 {
            parts.push(format!("{} {what}", count(n)));
        }
    }
    let early = connections.get(Counter::EarlyCalls);
    if early > 0 {
        parts.push(format!("{} as early data", counted(early, "call")));
    }
    for (n, why) in [
        (connections.get(Counter::Reconnects), "after an idle one was closed"),
        (connections.get(Counter::TurnedAway), "that the server had not processed"),
    ] {
        if n > 0 {
            parts.push(format!("{} sent again {why}", counted(n, "call")));
        }
    }
    for (n, noun, what) in [
        (connections.get(Counter::PacketsLost), "packet", "sent and lost"),
        (connections.get(Counter::DatagramsDropped), "datagram", "dropped here"),
    ] {
        if n > 0 {
            parts.push(format!("{} {what}", counted(n, noun)));
        }
    }
    let without = summary.standing().availability().map(|share| 1.0 - share).filter(|share| *share > 0.0);
    parts.extend(without.map(|share| format!("without a server for {} of the time", percent(share))));
    parts.join(", ")
}

/// Such as `run.csv has 1,000 rows; 20 calls have none, as the file is full`.
pub fn rows_of(sampled: &Sampled) -> String {
    let Sampled {
        file, rows, share_ratio, left_out_by_share, left_out_by_limit, left_out_by_delay, never_begun, ..
    } = sampled;
    if let Some(problem) = &sampled.problem {
        return format!("{} is not whole: {}", clean(file), clean(problem));
    }
    let mut text = format!("{} has {}", clean(file), counted(*rows, "row"));
    for (calls, why) in [
        (*left_out_by_share, format!("as {} of calls have one", percent(*share_ratio))),
        (*left_out_by_limit, "as the file is full (--samples-limit)".to_owned()),
        (*left_out_by_delay, "as it was not written fast enough".to_owned()),
        (*never_begun, "as they never began".to_owned()),
    ] {
        if calls > 0 {
            let have = if calls == 1 { "has" } else { "have" };
            text = format!("{text}; {} {have} none, {why}", counted(calls, "call"));
        }
    }
    text
}
