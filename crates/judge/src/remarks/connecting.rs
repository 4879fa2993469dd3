//! A connection for nearly each call, where making it takes as long as the rest of the call, or longer.

use brunt_plan::units::{Duration, count, counted};
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::snapshot::Snapshot;

use super::{About, Remark};

/// The fewest connections, and their least ratio to the calls that ended.
const FOR_EACH: (u64, f64) = (50, 0.9);
/// The least mean time to make one, in nanoseconds, and as a share of the mean time of a call.
const WORTH_TELLING: (f64, f64) = (1e6, 0.5);

/// What making connections took, beside what calls took. Both are means of what was recorded: a connection may be made before
/// its call is due, so neither is said to be a part of the other.
pub(super) fn find(total: &Snapshot) -> Option<Remark> {
    let (made, calls) = (total.numbers.get(Counter::ConnectionsMade), total.ended());
    if made < FOR_EACH.0 || (made as f64) < FOR_EACH.1 * calls as f64 {
        return None;
    }
    let call_ns = total.response_times().mean()?.value;
    let sum_ns = |timing| {
        let times = total.times.known(timing);
        times.mean().unwrap_or_default() * times.count() as f64
    };
    let [connect, tls, handshake] =
        [Timing::Connect, Timing::Tls, Timing::Handshake].map(|timing| sum_ns(timing) / made as f64);
    let making_ns = connect + tls + handshake;
    if making_ns < WORTH_TELLING.0.max(WORTH_TELLING.1 * call_ns) {
        return None;
    }
    let resumed = match total.numbers.get(Counter::TlsResumed) {
        _ if tls <= 0.0 => String::new(),
        0 => format!(", {} of it TLS without resumption", Duration(tls as u64)),
        resumed => format!(", {} of it TLS ({} resumed a session)", Duration(tls as u64), count(resumed)),
    };
    let message = format!(
        "{} were made for {}: making one took {} on average{resumed}; a call took {}",
        counted(made, "connection"),
        counted(calls, "call"),
        Duration(making_ns as u64),
        Duration(call_ns as u64)
    );
    Some(Remark { calls: Some(calls), ..Remark::new(About::Connecting, message) })
}

#[cfg(test)]
mod tests {
    use super::super::episodes::tests::{End, MS, carried_out, evenly, remarks};
    use super::*;

    #[test]
    fn a_connection_for_each_call_is_told_with_what_it_took() {
        let with = |made: u64, connect_ns: u64, tls_ns: u64, resumed: u64| {
            let (plan, mut run) = carried_out(10, evenly(50, 10), |_| End::Ok(6 * MS));
            run.measured.numbers.set(Counter::ConnectionsMade, made);
            run.measured.numbers.set(Counter::TlsResumed, resumed);
            run.measured.times.record_n(Timing::Connect, connect_ns, made);
            if tls_ns > 0 {
                run.measured.times.record_n(Timing::Tls, tls_ns, made);
            }
            let all = remarks((plan, run));
            all.into_iter().find(|remark| remark.about == About::Connecting).map(|remark| remark.message.to_string())
        };
        let found = with(500, MS, 3 * MS, 0).unwrap();
        assert_eq!(
            found,
            "500 connections were made for 500 calls: making one took 4.00ms on average, 3.00ms of it TLS without resumption; a \
             call took 6.00ms"
        );
        assert!(with(500, MS, 3 * MS, 480).unwrap().contains("3.00ms of it TLS (480 resumed a session)"));
        assert!(with(500, 4 * MS, 0, 0).unwrap().contains("took 4.00ms on average; a call"));
        assert_eq!(with(400, MS, 3 * MS, 0), None, "not for each call");
        assert_eq!(with(500, MS, MS, 0), None, "less than half of a call");
        assert_eq!(with(500, MS / 10, 0, 0), None);
    }
}
