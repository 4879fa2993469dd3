//! Patterns over the whole run: a request that fails or is slow where others do not, two modes of answers, failures
//! that are faster or slower than answers, and connections that the target closes, accepts slowly, or accepts at one
//! address only.

use crate::advice::Advice;
use std::ops::Range;

use brunt_plan::plan::{Load, Plan};
use brunt_plan::units::{Duration, count, counted, percent};
use brunt_record::SECOND_NS;
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::figures::CallFigures;
use brunt_record::histogram::Histogram;
use brunt_record::outcome::Failure;
use brunt_record::recording::Recording;
use brunt_record::snapshot::Snapshot;
use brunt_record::timeline::{DuePoint, Timeline};

use super::{About, Remark};
use crate::statistics::binomial_tail;

#[cfg(test)]
mod tests;

/// The fewest failures of a request that is named as the one that fails.
const FEWEST_FAILURES: u64 = 10;
/// How many times as often as the others it has to fail, and by how much more, as a share of calls.
const WORSE: (f64, f64) = (5.0, 0.01);
/// Standard deviations by which the two shares differ: by chance once in a million runs.
const SURELY: f64 = 4.75;
/// The share of calls that are the slowest.
const SLOWEST: f64 = 0.01;
/// A slow request has at least this share of the slowest calls, and at most this share of all calls.
const CULPRIT: (f64, f64) = (0.5, 0.25);
/// The highest probability of such a share by chance.
const BY_CHANCE: f64 = 1e-4;
/// The least factor by which p99 falls without it.
const LOWER_WITHOUT: f64 = 1.5;
/// Width of a bin of the distribution in which modes are looked for, as a factor.
const BIN: f64 = 1.2;
/// Bins on either side of a peak that belong to it.
const AROUND: usize = 2;
/// How long Linux waits for bytes that carry an acknowledgement along (`TCP_DELACK_MIN`), with ticks of 4 ms and some work, in nanoseconds.
const DELAYED_ACK_NS: Range<u64> = 39_500_000..47_000_000;
/// The share of answers that is nearly all of them.
const NEARLY_ALL: f64 = 0.8;
/// The least share of calls around a mode, and the fewest calls.
const MODE: (f64, u64) = (0.05, 30);
/// How many times larger the second mode is, and by how much, in nanoseconds.
const APART: (f64, u64) = (3.0, 1_000_000);
/// The most calls between two modes, as a share of the lower one.
const VALLEY: f64 = 0.2;
/// The share of the run's stretches that have both modes, and the fewest calls of a stretch.
const THROUGHOUT: (f64, u64) = (0.8, 20);
/// The fewest failed calls, and their least share of all calls, for their times to mean something.
const FAILED: (u64, f64) = (20, 0.01);
/// When the kernel repeats a connection request, in seconds after the first, and the latest delay of the connection
/// after that. Linux repeats after 1, 3 and 7 s, and since 6.5 each second at first
/// (`net.ipv4.tcp_syn_linear_timeouts`).
const ASKED_AGAIN: [u64; 6] = [1, 2, 3, 4, 5, 7];
const TAKEN_WITHIN: u64 = 300_000_000;
/// The fewest connections that were requested again.
const FEWEST_CONNECTS: u64 = 5;
/// The fewest connections that an address did not take, and the least share of all.
const NOT_TAKEN: (u64, f64) = (5, 0.25);
/// The fewest connections that the target closed, and their least ratio to the calls.
const CLOSED: (u64, f64) = (20, 0.01);

/// All patterns of a run. `is_disturbed` says that the run had an episode, which explains times and failures.
pub(super) fn all(plan: &Plan, run: &Recording, total: &Snapshot, is_disturbed: bool) -> Vec<Remark> {
    let mut found: Vec<_> = failing_request(plan, total).into_iter().collect();
    if !is_disturbed {
        found.extend(slow_request(total));
        found.extend(modes(plan, total));
        found.extend(failure_times(total));
    }
    found.extend(listen_queue(total));
    found.extend(address(plan, total));
    found.extend(moved(total));
    found.extend(closes(plan, run, total));
    found
}

/// A request that fails where the others do not.
fn failing_request(plan: &Plan, total: &Snapshot) -> Option<Remark> {
    let due = |calls: &CallFigures| calls.numbers.get(Counter::Due);
    let requests: Vec<_> =
        total.figures.requests.iter().map(|(name, calls)| (name, due(calls), calls.not_ok(&plan.ok_status))).collect();
    let (all, all_failed) =
        requests.iter().fold((0, 0), |(all, failed), (_, calls, not_ok)| (all + calls, failed + not_ok));
    let share = |failed: u64, of: u64| failed as f64 / of.max(1) as f64;
    let enough = requests.iter().filter(|(_, _, failed)| *failed >= FEWEST_FAILURES);
    let (name, calls, failed) = *enough.max_by(|one, other| share(one.2, one.1).total_cmp(&share(other.2, other.1)))?;
    let (others, others_failed) = (all - calls, all_failed - failed);
    if others == 0 {
        return None;
    }
    let (its, theirs, of_all) = (share(failed, calls), share(others_failed, others), share(all_failed, all));
    let deviation = (of_all * (1.0 - of_all) * (1.0 / calls as f64 + 1.0 / others as f64)).sqrt();
    if its < WORSE.0 * theirs || its < theirs + WORSE.1 || its - theirs < SURELY * deviation {
        return None;
    }
    let of_others = match others_failed {
        0 => format!("none of {} did", counted(others, "other call")),
        n => format!("{} of {} did", count(n), counted(others, "other call")),
    };
    Some(Remark {
        request: Some(name.to_owned()),
        calls: Some(failed),
        share_ratio: Some(its),
        ..Remark::new(
            About::FailingRequest,
            format!("{name} failed in {} of {} ({}); {of_others}", count(failed), counted(calls, "call"), percent(its)),
        )
    })
}

/// A request that makes up most of the slowest calls.
fn slow_request(total: &Snapshot) -> Option<Remark> {
    let requests: Vec<_> = total
        .figures
        .requests
        .iter()
        .map(|(name, calls)| (name, calls.response_times().lower().into_owned()))
        .collect();
    let mut all = Histogram::new();
    for (_, times) in &requests {
        all.merge(times);
    }
    let p99 = all.quantile(1.0 - SLOWEST)?;
    // Calls as slow as p99 are among the slowest: the last bucket below it may hold many calls.
    let slowest = |times: &Histogram| times.values().filter(|(value, _)| *value >= p99).map(|(_, n)| n).sum::<u64>();
    let (name, times) = requests.iter().max_by_key(|(_, times)| slowest(times))?;
    let of_slowest = slowest(times) as f64 / slowest(&all).max(1) as f64;
    let of_all = times.count() as f64 / all.count().max(1) as f64;
    let is_culprit = of_slowest > CULPRIT.0 && of_all < CULPRIT.1;
    if !is_culprit || binomial_tail(slowest(times), slowest(&all), of_all) > BY_CHANCE {
        return None;
    }
    let without = all.without(times).quantile(1.0 - SLOWEST)?;
    if (p99 as f64) < LOWER_WITHOUT * without as f64 {
        return None;
    }
    Some(Remark {
        request: Some((*name).to_owned()),
        calls: Some(slowest(times)),
        share_ratio: Some(of_slowest),
        worst_ns: times.max(),
        ..Remark::new(
            About::SlowRequest,
            format!(
                "{name} is {} of all calls and {} of the slowest 1%: without it p99 is {}, not {}",
                percent(of_all),
                percent(of_slowest),
                Duration(without),
                Duration(p99)
            ),
        )
    })
}

/// Two modes of a distribution, with the value between them that separates them, in nanoseconds.
struct Modes {
    low: u64,
    split: u64,
    high: u64,
}

/// Calls that take one of two times, all through the run. Requests of several names differ in their times anyway, and a
/// new connection for each call is a part of some of them.
fn modes(plan: &Plan, total: &Snapshot) -> Option<Remark> {
    if total.figures.requests.iter().count() > 1 || plan.reconnect {
        return None;
    }
    let times = total.response_times().known;
    let Some(modes) = two_modes(&times) else { return delayed(total, &times) };
    let slow = times.count_above(modes.split) as f64 / times.count() as f64;
    has_throughout(&total.timeline, &modes, slow).then(|| Remark {
        advice: Some(if DELAYED_ACK_NS.contains(&modes.high) { Advice::SetNoDelay } else { Advice::CompareModes }),
        calls: Some(times.count_above(modes.split)),
        share_ratio: Some(slow),
        ..Remark::new(
            About::Modes,
            format!(
                "answers come in two kinds all through the run: {} took about {}, {} about {}",
                percent(1.0 - slow),
                Duration(modes.low),
                percent(slow),
                Duration(modes.high)
            ),
        )
    })
}

/// Nearly all answers take as long as an acknowledgement that waits, and either begin far earlier, or some are far faster: the first on a
/// connection, which Linux may acknowledge at once.
fn delayed(total: &Snapshot, times: &Histogram) -> Option<Remark> {
    let waited: u64 = times.values().filter(|(value, _)| DELAYED_ACK_NS.contains(value)).map(|(_, n)| n).sum();
    let all = times.count();
    let share = waited as f64 / all.max(1) as f64;
    let far_less = |ns: u64| ns < DELAYED_ACK_NS.start / 4;
    let begin_early = total.first_byte_times().quantile(0.5).is_some_and(far_less);
    let is_found = waited >= MODE.1 && share >= NEARLY_ALL && (begin_early || far_less(times.min()?));
    let contrast = if begin_early { "and began far earlier" } else { "and others far less" };
    is_found.then(|| Remark {
        advice: Some(Advice::SetNoDelay),
        calls: Some(waited),
        share_ratio: Some(share),
        ..Remark::new(
            About::Modes,
            format!("{} of the answers took 40ms, as long as an acknowledgement waits, {contrast}", percent(share)),
        )
    })
}

/// The two highest peaks of a distribution over logarithmic bins, if little lies between them.
fn two_modes(times: &Histogram) -> Option<Modes> {
    let place = |ns: u64| (ns.max(1) as f64).ln() / BIN.ln();
    let start = |bin: usize| BIN.powi(bin as i32) as u64;
    let mut bins = vec![0; place(times.max()?) as usize + 1];
    for (value, n) in times.values() {
        if let Some(bin) = bins.get_mut(place(value) as usize) {
            *bin += n;
        }
    }
    let around = |bin: usize| {
        let last = (bin + AROUND).min(bins.len() - 1);
        bins.get(bin.saturating_sub(AROUND)..=last).map_or(0, |bins| bins.iter().sum::<u64>())
    };
    let is_mode = |bin: &usize| {
        let mass = around(*bin);
        mass >= MODE.1 && mass as f64 >= MODE.0 * times.count() as f64
    };
    let first = (0..bins.len()).max_by_key(|bin| around(*bin)).filter(is_mode)?;
    let is_apart = |bin: &usize| {
        let (low, high) = (start(first.min(*bin)), start(first.max(*bin)));
        high as f64 >= APART.0 * low as f64 && high - low >= APART.1
    };
    let second = (0..bins.len()).filter(is_apart).max_by_key(|bin| around(*bin)).filter(is_mode)?;
    let (low, high) = (first.min(second), first.max(second));
    let valley = (low..=high).min_by_key(|bin| around(*bin))?;
    if around(valley) as f64 > VALLEY * around(low).min(around(high)) as f64 {
        return None;
    }
    let middle = |bins: Range<usize>| {
        let mut part = Histogram::new();
        let within = times.values().filter(|(value, _)| bins.contains(&(place(*value) as usize)));
        within.for_each(|(value, n)| part.record_n(value, n));
        part.quantile(0.5)
    };
    Some(Modes { low: middle(0..valley)?, split: start(valley), high: middle(valley..bins.len())? })
}

/// Whether nearly every stretch has calls of both modes: as many as chance would give it, or half of that.
fn has_throughout(timeline: &Timeline, modes: &Modes, slow: f64) -> bool {
    let (mut stretches, mut with_both) = (0, 0);
    let mut stretch = DuePoint::default();
    for (_, point) in timeline.points() {
        stretch.merge(point);
        let calls = stretch.response.count();
        // As many calls as it takes for some to be of the rarer kind.
        if (calls as f64) < THROUGHOUT.1 as f64 / slow.min(1.0 - slow) {
            continue;
        }
        let above = stretch.response.values().filter(|(value, _)| *value > modes.split).map(|(_, n)| n).sum::<u64>();
        let share = above as f64 / calls as f64;
        stretches += 1;
        with_both += u64::from(share >= slow / 2.0 && 1.0 - share >= (1.0 - slow) / 2.0);
        stretch = DuePoint::default();
    }
    stretches >= 3 && with_both as f64 >= THROUGHOUT.0 * f64::from(stretches)
}

/// Failures that are much faster than answers, or slower than nearly all of them.
fn failure_times(total: &Snapshot) -> Option<Remark> {
    let times = total.response_times();
    let (failed, ok) = (times.failed.count(), times.known.count());
    // The target did nothing to calls that were not to reach it: for want of a port or a descriptor, as their host has no
    // address or is blocked, or since their connection had ended for another call.
    let never_there = [Failure::Ports, Failure::Descriptors, Failure::Resolve, Failure::Blocked];
    let followed = |(failure, n): (Failure, u64)| {
        if never_there.contains(&failure) { n } else { n - total.failures.own(failure) }
    };
    let own: u64 = total.failures.counted().map(followed).sum();
    if own * 2 > failed {
        return None;
    }
    let share = failed as f64 / (failed + ok).max(1) as f64;
    if failed < FAILED.0 || ok < FAILED.0 || share < FAILED.1 {
        return None;
    }
    let (failed_p50, ok_p50, ok_p99) =
        (times.failed.quantile(0.5)?, times.known.quantile(0.5)?, times.known.quantile(0.99)?);
    let (message, advice) = if failed_p50 < ok_p50 / 2 {
        (
            format!("failures are fast: half took {} or less, ok calls {}", Duration(failed_p50), Duration(ok_p50)),
            // Of an answer that began, the target did a part of the work at least.
            (total.failures.other_answers() * 2 < failed).then_some(Advice::TurnedAway),
        )
    } else if failed_p50 > ok_p99 {
        (
            format!(
                "failures are slow: half took {} or more, and 99% of ok calls less than {}",
                Duration(failed_p50),
                Duration(ok_p99)
            ),
            Some(Advice::LookAtWait),
        )
    } else {
        return None;
    };
    Some(Remark {
        advice,
        calls: Some(failed),
        share_ratio: Some(share),
        worst_ns: times.failed.max(),
        ..Remark::new(About::FailureTimes, message)
    })
}

/// Connections that were made only when the kernel asked again.
fn listen_queue(total: &Snapshot) -> Option<Remark> {
    let connects = total.times.known(Timing::Connect);
    let is_late =
        |ns: u64| ASKED_AGAIN.iter().any(|again| (again * SECOND_NS..again * SECOND_NS + TAKEN_WITHIN).contains(&ns));
    let late: u64 = connects.values().filter(|(ns, _)| is_late(*ns)).map(|(_, n)| n).sum();
    // A connection that brunt was late to see looks the same.
    let own_delays = [Timing::Lag, Timing::Receiving].map(|timing| total.times.known(timing).max());
    let is_own = own_delays.into_iter().flatten().any(|longest| longest >= SECOND_NS / 2);
    if late < FEWEST_CONNECTS || connects.quantile(0.5)? >= SECOND_NS / 10 || is_own {
        return None;
    }
    Some(Remark {
        advice: Some(Advice::RaiseBacklog),
        calls: Some(late),
        worst_ns: connects.max(),
        ..Remark::new(
            About::ListenQueue,
            format!(
                "{} of {} took whole seconds to make: the kernel had to ask again",
                count(late),
                counted(connects.count(), "connection")
            ),
        )
    })
}

/// An address that took no connections while another one did. `localhost` often is an address on which nothing listens.
fn address(plan: &Plan, total: &Snapshot) -> Option<Remark> {
    let numbers = &total.numbers;
    let tried = numbers.get(Counter::ConnectionsMade) + numbers.get(Counter::ConnectionsFailed);
    if plan.target.host == "localhost" || numbers.get(Counter::ConnectionsMade) == 0 {
        return None;
    }
    let failed = total.addresses.iter().filter(|(_, attempts)| attempts.failed.total() > 0);
    let (address, attempts) = failed.max_by_key(|(_, attempts)| attempts.failed.total())?;
    let n = attempts.failed.total();
    if n < NOT_TAKEN.0 || (n as f64) < NOT_TAKEN.1 * tried as f64 {
        return None;
    }
    let reason = match attempts.failed.counted().max_by_key(|(_, n)| *n)? {
        (Failure::ConnectTimeout, _) => "no answer",
        (failure, _) => attempts.failed.reasons(failure).first().map_or(failure.name(), |(reason, _)| reason),
    };
    let message = match total.addresses.taken().collect::<Vec<_>>().as_slice() {
        [(other, _)] if attempts.made == 0 => {
            format!("{address} took no connection in {} ({reason}): all load went to {other}", counted(n, "attempt"))
        }
        several if attempts.made == 0 && !several.is_empty() => {
            format!(
                "{address} took no connection in {} ({reason}): {} others did",
                counted(n, "attempt"),
                several.len()
            )
        }
        _ => format!(
            "{address} did not take {} of {} ({reason}): another address did",
            count(n),
            counted(tried, "connection")
        ),
    };
    Some(Remark {
        advice: Some(Advice::CheckAddresses),
        calls: Some(n),
        share_ratio: Some(n as f64 / tried.max(1) as f64),
        ..Remark::new(About::Address, message)
    })
}

/// The target's name had other addresses than at the beginning.
fn moved(total: &Snapshot) -> Option<Remark> {
    let places: Vec<_> = total.addresses.iter().filter(|(_, attempts)| attempts.moved > 0).collect();
    let places: Vec<_> = places.iter().map(|(address, _)| address.to_string()).collect();
    if places.is_empty() {
        return None;
    }
    let message = format!("the target's name moved to {}: connections made since then went there", places.join(", "));
    Some(Remark::new(About::Moved, message))
}

/// Whether a header of the user makes each request close its connection.
fn asks_to_close(plan: &Plan) -> bool {
    let headers = plan.protocol.shown().get("headers").and_then(serde_json::Value::as_array);
    let is = |header: &serde_json::Value, place: usize, text: &str| {
        header.get(place).and_then(serde_json::Value::as_str).is_some_and(|value| value.eq_ignore_ascii_case(text))
    };
    headers.into_iter().flatten().any(|header| is(header, 0, "connection") && is(header, 1, "close"))
}

/// Connections that the target closes after a few calls each.
fn closes(plan: &Plan, run: &Recording, total: &Snapshot) -> Option<Remark> {
    let made = total.numbers.get(Counter::ConnectionsMade);
    let most_open = run.series.points().iter().filter_map(|point| point.open_connections).max()?;
    let answered = total.statuses.total();
    let closed = made.saturating_sub(most_open);
    // Users, and sessions of a log, have connections of their own, which they close themselves.
    let are_of_users = plan.scenarios.is_some() || matches!(plan.load, Load::Replay(_));
    if plan.reconnect || are_of_users || asks_to_close(plan) || closed < CLOSED.0.max(most_open) {
        return None;
    }
    // A failing call may end its connection, and brunt may be the one that ends it, as after a timeout.
    if (closed as f64) < CLOSED.1 * answered as f64 || total.failures.total() > closed / 10 {
        return None;
    }
    // Bytes that break the protocol with no call in flight, such as some behind an answer: brunt ends the connection then.
    let own: Vec<_> = [Failure::Protocol, Failure::Oversize, Failure::Mismatch]
        .into_iter()
        .map(|failure| (total.troubles.count(failure), failure))
        .collect();
    let closed_here: u64 = own.iter().map(|(n, _)| n).sum();
    if let Some((_, failure)) = own.iter().max_by_key(|(n, _)| *n).filter(|_| closed_here > closed / 2) {
        let reason = total.troubles.reasons(*failure).into_iter().max_by_key(|(_, n)| *n);
        let why = reason.map_or(String::new(), |(reason, _)| format!(": {reason}"));
        return Some(Remark {
            advice: Some(Advice::LookBehindAnswers),
            calls: Some(answered),
            ..Remark::new(About::Closes, format!("brunt closed {}{why}", counted(closed_here, "connection")))
        });
    }
    // Those that are open have not had all of theirs.
    let each = answered as f64 / closed as f64;
    let after = if each < 1.5 { "every call".to_owned() } else { format!("about {} calls", each.floor()) };
    Some(Remark {
        advice: Some(Advice::KeepAlive),
        calls: Some(answered),
        ..Remark::new(
            About::Closes,
            format!(
                "the target closed connections after {after}: {} for {}",
                counted(made, "connection"),
                counted(answered, "call")
            ),
        )
    })
}
