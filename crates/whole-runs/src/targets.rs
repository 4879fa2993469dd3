//! Floods over several targets.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use brunt_http1::options::{Lines, Options};
use brunt_plan::arrivals::Spread;
use brunt_plan::connections::Connections;
use brunt_plan::content::Content;
use brunt_plan::plan::{Load, Plan, StopRule};
use brunt_record::catalogue::Counter;
use brunt_record::outcome::Failure;

use super::{MS, SECOND_NS, StopHandle, carry_out_on, plan};
use brunt_engine::simulated::{Act, Peer, Reaction, VirtualNet};
use brunt_record::time::Tick;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// The hosts of the requests on each connection, and the number of requests for each host.
#[derive(Debug, Default)]
struct Seen {
    hosts: BTreeMap<u64, BTreeSet<String>>,
    requests: BTreeMap<String, u64>,
}

/// A peer that answers after a millisecond, and closes its connection after each answer for a host called `closing`.
struct Hosts(Arc<Mutex<Seen>>);

impl Peer for Hosts {
    fn received(&mut self, connection: u64, bytes: &[u8], _now: Tick) -> Reaction {
        let text = String::from_utf8_lossy(bytes);
        let mut reaction = Vec::new();
        for request in text.split("\r\n\r\n").filter(|request| !request.is_empty()) {
            let host = request.split("Host: ").nth(1).and_then(|rest| rest.lines().next()).unwrap_or("").to_owned();
            let mut seen = self.0.lock().unwrap();
            seen.hosts.entry(connection).or_default().insert(host.clone());
            *seen.requests.entry(host.clone()).or_default() += 1;
            reaction.push((MS, Act::Send(ANSWER.to_vec())));
            if host.ends_with(":81") {
                reaction.push((MS + 1000, Act::Close));
            }
        }
        reaction
    }
}

fn over(lines: &str, plan: Plan) -> Plan {
    let lines = Lines { file: "urls".to_owned(), content: Content(lines.as_bytes().to_vec()) };
    let options = Options { url_lines: Some(lines), ..Options::default() };
    Plan { protocol: options.to_protocol(), timeout_ns: SECOND_NS, drain_ns: 2 * SECOND_NS, ..plan }
}

const THREE: &str = "/\nhttp://127.0.0.2/a\nhttp://127.0.0.3:81/b\nhttp://127.0.0.2/c\n";

#[test]
fn every_call_goes_where_its_line_says() {
    let base = plan("http://127.0.0.1/");
    let rate = |connections| Plan {
        load: Load::Open { profile: "1000".parse().unwrap(), arrivals: Spread::Uniform },
        stop: StopRule { duration_ns: Some(2 * SECOND_NS), requests: None },
        connections,
        ..base.clone()
    };
    for (name, plan) in [
        ("closed", Plan { connections: 3.into(), ..base.clone() }),
        ("closed, two workers", Plan { connections: 4.into(), workers: 2, ..base.clone() }),
        (
            "closed, a count",
            Plan { connections: 2.into(), stop: StopRule { duration_ns: None, requests: Some(400) }, ..base.clone() },
        ),
        ("reconnecting", Plan { connections: 3.into(), reconnect: true, ..base.clone() }),
        ("a rate", rate(8.into())),
        ("a rate that grows", rate(Connections::UpTo(100))),
        ("a rate after a warm-up", Plan { warmup_ns: SECOND_NS, ..rate(8.into()) }),
    ] {
        let seen = Arc::default();
        let net = VirtualNet::new(Hosts(Arc::clone(&seen)));
        let summary = carry_out_on(&over(THREE, plan.clone()), &net, &StopHandle::default()).summary;
        let seen = seen.lock().unwrap();
        assert_eq!((summary.not_ok, summary.total.ended()), (0, summary.total.numbers.get(Counter::Due)), "{name}");
        assert!(seen.hosts.values().all(|hosts| hosts.len() == 1), "{name}: a connection goes to one host: {seen:?}");
        let count = |host: &str| seen.requests.get(host).copied().unwrap_or(0);
        let (first, twice, closing) = (count("127.0.0.1"), count("127.0.0.2"), count("127.0.0.3:81"));
        // Lines are taken in turn, so that numbers differ by what is under way at the end of a phase.
        assert!(first >= 100 && twice.abs_diff(2 * first) <= 8 && closing.abs_diff(first) <= 8, "{name}: {seen:?}");
        if !plan.reconnect {
            let kept = seen.hosts.values().filter(|hosts| hosts.contains("127.0.0.2")).count();
            assert!(kept <= 20, "{name}: connections are kept, and not made for each call: {kept}");
        }
    }
}

#[test]
fn a_host_that_refuses_stops_no_other() {
    /// A peer that refuses every third connection.
    struct Refusing(Hosts, u64);

    impl Peer for Refusing {
        fn connecting(&mut self, now: Tick) -> Reaction {
            self.1 += 1;
            if self.1.is_multiple_of(3) { vec![(MS, Act::Refuse)] } else { self.0.connecting(now) }
        }

        fn received(&mut self, connection: u64, bytes: &[u8], now: Tick) -> Reaction {
            self.0.received(connection, bytes, now)
        }
    }

    let seen = Arc::default();
    let net = VirtualNet::new(Refusing(Hosts(Arc::clone(&seen)), 0));
    let plan = over(THREE, Plan { connections: 3.into(), ..plan("http://127.0.0.1/") });
    let summary = carry_out_on(&plan, &net, &StopHandle::default()).summary;
    assert_eq!(summary.total.ended(), summary.total.numbers.get(Counter::Due));
    let refused = summary.total.failures.count(Failure::Connect);
    assert!(refused > 0 && summary.total.statuses.total() > refused, "{:?}", summary.total);
    // How long a target that refuses is left alone is in no call's time.
    assert!(summary.times.response.unwrap().max.value < 10 * MS);
}
