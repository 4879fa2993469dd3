//! A target with several addresses, some of them dead.

use std::net::SocketAddr;

use brunt_plan::plan::{Plan, StopRule, Transport};
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::outcome::Failure;

use super::{MS, SECOND_NS, carry_out, plan};
use brunt_engine::simulated::Address;
use brunt_engine::simulated::{Act, Peer, Reaction};
use brunt_record::time::Tick;

/// Peers whose behaviour depends on the last part of their address.
struct Addressed;

impl Peer for Addressed {
    fn connecting_to(&mut self, address: &Address, _now: Tick) -> Reaction {
        let Address::Tcp(SocketAddr::V4(address)) = address else { return vec![] };
        match address.ip().octets()[3] {
            1 => vec![(MS, Act::Accept)],
            2 => vec![(MS, Act::Refuse)],
            // A distant peer: connecting takes 400 ms.
            3 => vec![(400 * MS, Act::Accept)],
            _ => vec![],
        }
    }

    fn received(&mut self, _connection: u64, _bytes: &[u8], _now: Tick) -> Reaction {
        vec![(MS, Act::Send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec()))]
    }
}

/// Ten calls to a target with these addresses.
fn plan_to(addresses: &[&str]) -> Plan {
    let addresses = addresses.iter().map(|address| format!("{address}:80").parse().unwrap()).collect();
    let stop = StopRule { duration_ns: None, requests: Some(10) };
    let transport = Transport { addresses, ..Transport::default() };
    Plan { transport, stop, connect_timeout_ns: 4 * SECOND_NS, ..plan("http://a.example/") }
}

#[test]
fn the_next_address_is_tried_at_once_after_a_refusal_and_soon_after_silence() {
    for (addresses, took_ms, failure, reason) in [
        (["10.0.0.2", "10.0.0.1"], 2, Failure::Connect, "10.0.0.2:80: connection refused"),
        (
            ["10.0.0.9", "10.0.0.1"],
            251,
            Failure::ConnectTimeout,
            "10.0.0.9:80: no answer to connecting, and the next address was tried",
        ),
    ] {
        let total = carry_out(&plan_to(&addresses), Addressed).summary.total;
        assert_eq!((total.statuses.total(), total.failures.total()), (10, 0), "{:?}", total.failures);
        let connect = total.times.known(Timing::Connect);
        assert_eq!((connect.count(), connect.max().map(|ns| ns / MS)), (1, Some(took_ms)));
        assert_eq!(total.troubles.reasons(failure), [(reason, 1)]);
        assert_eq!(total.addresses.taken().collect::<Vec<_>>(), [("10.0.0.1:80".parse().unwrap(), 1)]);
    }
}

#[test]
fn an_address_that_is_far_away_gets_its_time_beside_a_dead_one() {
    for addresses in [["10.0.0.3", "10.0.0.9"], ["10.0.0.9", "10.0.0.3"]] {
        let total = carry_out(&plan_to(&addresses), Addressed).summary.total;
        assert_eq!((total.statuses.total(), total.failures.total()), (10, 0), "{:?}", total.failures);
    }
}

#[test]
fn where_no_address_takes_a_connection_each_is_named() {
    let plan = plan_to(&["10.0.0.2", "10.0.0.9"]);
    let stop = StopRule { duration_ns: Some(9 * SECOND_NS), requests: None };
    let total = carry_out(&Plan { stop, ..plan }, Addressed).summary.total;
    assert!(total.numbers.get(Counter::Due) > 0);
    let late = total.failures.reasons(Failure::ConnectTimeout);
    assert_eq!(late.first().map(|(reason, _)| *reason), Some("10.0.0.9:80: no connection within the connect timeout"));
    let refused = total.troubles.reasons(Failure::Connect);
    assert_eq!(refused.first().map(|(reason, _)| *reason), Some("10.0.0.2:80: connection refused"));
}
