//! Runs of several workers, over TLS too: one made-up clock for all of them.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::sync::Arc;

use brunt_plan::arrivals::Spread;
use brunt_plan::plan::{Load, Plan, StopRule, Tls, Transport};
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::outcome::Failure;
use rustls::ServerConnection;
use rustls::pki_types::PrivateKeyDer;

use super::{MS, SECOND_NS, carry_out, plan};
use brunt_engine::simulated::{Act, Peer, Reaction};
use brunt_record::time::Tick;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

struct Server;

impl Peer for Server {
    fn received(&mut self, _connection: u64, bytes: &[u8], _now: Tick) -> Reaction {
        let requests = bytes.windows(4).filter(|four| *four == b"\r\n\r\n").count();
        (0..requests).map(|_| (MS, Act::Send(ANSWER.to_vec()))).collect()
    }
}

#[test]
fn workers_share_what_is_to_be_done_and_nothing_is_done_twice() {
    let open = |profile: &str, arrivals| Load::Open { profile: profile.parse().unwrap(), arrivals };
    for workers in [1, 2, 3, 7] {
        let several = |load, requests: Option<u64>| Plan {
            workers,
            connections: 16.into(),
            load,
            stop: StopRule { duration_ns: requests.is_none().then_some(2 * SECOND_NS), requests },
            ..plan("http://127.0.0.1/")
        };
        let counted = carry_out(&several(Load::Closed {}, Some(1000)), Server).summary.total;
        assert_eq!((counted.due(), counted.statuses.total()), (1000, 1000), "{workers} workers");
        let paced = carry_out(&several(open("700..900/2s", Spread::Uniform), None), Server).summary;
        assert_eq!(
            (paced.total.numbers.get(Counter::Due), paced.total.statuses.total()),
            (1600, 1600),
            "{workers} workers"
        );
        assert_eq!(paced.times.lag.unwrap().max.value, 0);
    }
}

#[test]
fn a_worker_that_has_nothing_to_do_ends_at_once() {
    for warmup_ns in [0, 100 * MS] {
        let plan = Plan {
            workers: 4,
            connections: 64.into(),
            stop: StopRule { duration_ns: None, requests: Some(10) },
            warmup_ns,
            ..plan("http://127.0.0.1/")
        };
        let summary = carry_out(&plan, Server).summary;
        assert_eq!(summary.total.statuses.total(), 10);
        let measured_ns = summary.run.measured_ns;
        assert!((MS..2 * MS).contains(&measured_ns), "{measured_ns} ns for calls of a millisecond, all at once");
    }
}

#[test]
fn a_run_of_several_workers_goes_the_same_way_each_time() {
    let plan = Plan {
        workers: 3,
        connections: 7.into(),
        load: Load::Open { profile: "500".parse().unwrap(), arrivals: Spread::Poisson },
        ..plan("http://127.0.0.1/")
    };
    let [first, again] = [(); 2].map(|()| carry_out(&plan, Server).summary);
    assert_eq!(first.total.times.get(Timing::Response), again.total.times.get(Timing::Response));
    assert_eq!(
        first.total.numbers.get(Counter::WaitedForConnection),
        again.total.numbers.get(Counter::WaitedForConnection)
    );
}

/// The same server behind TLS, for one host name.
struct Secured {
    config: Arc<rustls::ServerConfig>,
    connections: BTreeMap<u64, ServerConnection>,
}

impl Secured {
    /// The server, and the certificate to trust, in PEM.
    fn new(alpn: &[&[u8]]) -> (Self, String) {
        let certified = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certified.cert.der().clone()], key)
            .unwrap();
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        (Self { config: Arc::new(config), connections: BTreeMap::new() }, certified.cert.pem())
    }
}

impl Peer for Secured {
    fn received(&mut self, connection: u64, mut bytes: &[u8], _now: Tick) -> Reaction {
        let config = Arc::clone(&self.config);
        let tls = self.connections.entry(connection).or_insert_with(|| ServerConnection::new(config).unwrap());
        let mut plain = Vec::new();
        let mut failed = false;
        while !bytes.is_empty() && !failed {
            tls.read_tls(&mut bytes).unwrap();
            failed = tls.process_new_packets().is_err();
            // The connection has not ended yet.
            let _ = tls.reader().read_to_end(&mut plain);
        }
        for _ in plain.windows(4).filter(|four| *four == b"\r\n\r\n") {
            tls.writer().write_all(ANSWER).unwrap();
        }
        let mut out = Vec::new();
        while tls.wants_write() {
            tls.write_tls(&mut out).unwrap();
        }
        let mut reaction = Vec::new();
        if !out.is_empty() {
            reaction.push((MS, Act::Send(out)));
        }
        if failed {
            reaction.push((MS, Act::Close));
        }
        reaction
    }
}

fn over_tls(trusted_pem: String) -> Plan {
    let tls = Tls { trusted_pem: Some(trusted_pem), ..Tls::default() };
    Plan {
        workers: 2,
        connections: 4.into(),
        transport: Transport { tls, ..Transport::default() },
        ..plan("https://127.0.0.1/")
    }
}

#[test]
fn a_run_over_tls_goes_on_made_up_time_too() {
    for alpn in [&[b"http/1.1".as_slice()][..], &[]] {
        let (server, pem) = Secured::new(alpn);
        let summary = carry_out(&over_tls(pem), server).summary;
        assert_eq!((summary.total.statuses.total(), summary.total.failures.total()), (4000, 0), "{alpn:?}");
        let tls = summary.times.tls.unwrap();
        assert_eq!((tls.count, tls.min), (4, MS), "one flight of the server's (TLS 1.3)");
        assert!(summary.total.numbers.get(Counter::WireOut) > summary.total.numbers.get(Counter::ClearOut));
    }
}

#[test]
fn a_server_that_speaks_something_else_is_named() {
    let (server, pem) = Secured::new(&[b"h2"]);
    let summary = carry_out(&over_tls(pem), server).summary;
    assert_eq!(summary.total.statuses.total(), 0);
    assert!(summary.failures(Failure::Tls) > 0, "{:?}", summary.total.failures);
}
