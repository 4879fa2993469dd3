//! wrk's scripts over whole runs.

use brunt_judge::summary::Summary;
use brunt_plan::arrivals::Spread;
use brunt_plan::connections::Connections;
use brunt_plan::content::Content;
use brunt_plan::plan::{Load, Plan, Script, StopRule};
use brunt_record::catalogue::Counter;
use brunt_record::recording::Ending;

use super::{MS, SECOND_NS, carry_out, plan};
use brunt_engine::simulated::{Act, Peer, Reaction};
use brunt_record::time::Tick;

struct Server;

impl Peer for Server {
    fn received(&mut self, _connection: u64, bytes: &[u8], _now: Tick) -> Reaction {
        let requests = bytes.windows(4).filter(|four| *four == b"\r\n\r\n").count();
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        (0..requests).map(|_| (MS, Act::Send(answer.to_vec()))).collect()
    }
}

fn scripted(script: &str) -> Plan {
    let content = Content(script.as_bytes().to_vec());
    let script = Script { file: "s.lua".to_owned(), content, args: Vec::new() };
    Plan { script: Some(script), ..plan("http://127.0.0.1/") }
}

fn at_rate(profile: &str, script: &str) -> Plan {
    let load = Load::Open { profile: profile.parse().unwrap(), arrivals: Spread::Uniform };
    Plan {
        load,
        stop: StopRule { duration_ns: Some(3 * SECOND_NS), requests: None },
        connections: 2.into(),
        pipeline: 8,
        ..scripted(script)
    }
}

const BATCHES: &str = "function request() return table.concat({ wrk.format(), wrk.format(), wrk.format() }) end";

#[test]
fn a_batch_is_due_with_its_first_request_whatever_the_rate() {
    let summary = carry_out(&at_rate("10", BATCHES), Server).summary;
    assert_eq!((summary.total.numbers.get(Counter::Due), summary.total.statuses.total()), (30, 30));
    assert_eq!(summary.times.response.unwrap().max.value, MS, "no time is before another");
}

#[test]
fn a_batch_at_the_end_of_a_schedule_is_no_longer_than_that() {
    let plan = Plan { stop: StopRule { duration_ns: None, requests: Some(7) }, ..at_rate("10", BATCHES) };
    let summary = carry_out(&plan, Server).summary;
    assert_eq!((summary.total.numbers.get(Counter::Due), summary.total.statuses.total()), (7, 7));
}

fn stopped(plan: &Plan) -> Summary {
    // That due is the sum of outcomes is checked for every run.
    let summary = carry_out(plan, Server).summary;
    assert_eq!(
        summary.total.statuses.total() + summary.total.numbers.get(Counter::Unsent),
        summary.total.numbers.get(Counter::Due)
    );
    assert_eq!(summary.run.ending, Ending::Completed);
    summary
}

#[test]
fn a_script_that_stops_its_thread_leaves_no_call_behind() {
    let stops = "local n = 0
        function request() n = n + 1; if n > 20 then wrk.thread:stop() end; return wrk.format() end";
    for (connections, reconnect) in [(1, false), (3, false), (2, true)] {
        let closed = Plan { connections: Connections::Fixed(connections), reconnect, ..scripted(stops) };
        assert!(stopped(&closed).total.statuses.total() <= 21);
        let pipeline = if reconnect { 1 } else { 8 };
        let open = Plan { connections: Connections::Fixed(connections), reconnect, pipeline, ..at_rate("50", stops) };
        assert!(stopped(&open).total.statuses.total() <= 21);
        // Overdue calls are there, too.
        let late = Plan { connections: Connections::Fixed(connections), reconnect, pipeline, ..at_rate("5000", stops) };
        assert!(stopped(&late).total.numbers.get(Counter::Unsent) > 0);
    }
}
