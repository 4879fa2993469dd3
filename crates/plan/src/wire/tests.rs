use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use brunt_record::outcome::OkStatus;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::arrivals::Spread;
use crate::connections::Connections;
use crate::content::Content;
use crate::environment::Environment;
use crate::hosts::Hosts;
use crate::plan::{
    ArrivalTimes, Family, Load, MAX_ERROR_RATE, PLAN_VERSION, Pace, Proxy, Sandbox, Script, StopRule, Tls, Transport,
};
use crate::profile::{Profile, Segment};
use crate::scenario::{DeclaredFigure, File, Population, Scenarios, Step, Weighted};
use crate::target::Target;

/// Stands in every place of a plan that must not be shown.
const SECRET: &str = "hunter2";

fn templates() -> impl Strategy<Value = Template> {
    let text = prop_oneof!["\\PC{0,12}", Just("@NAME".to_owned()), Just("[redacted]".to_owned())];
    (text, any::<bool>()).prop_map(|(text, secret)| if secret { Template::secret(text) } else { Template::open(text) })
}

fn contents() -> impl Strategy<Value = Content> {
    prop_oneof![prop::collection::vec(any::<u8>(), 0..40), "\\PC{0,20}".prop_map(String::into_bytes)].prop_map(Content)
}

fn options() -> impl Strategy<Value = ProtocolOptions> {
    let leaf = prop_oneof![
        any::<f64>().prop_filter("finite", |n| n.is_finite()).prop_map(|n| json!(n)),
        any::<u64>().prop_map(|n| json!(n)),
        any::<i64>().prop_map(|n| json!(n)),
        "\\PC{0,10}".prop_map(|text| json!(text)),
        Just(json!(null)),
    ];
    (prop::collection::btree_map("[a-z]{1,6}", leaf, 0..5), any::<bool>()).prop_map(|(whole, hidden)| {
        let mut whole = json!(whole);
        let shown = whole.clone();
        if hidden {
            whole["token"] = json!("t0p");
        }
        ProtocolOptions::new(whole, shown)
    })
}

fn profiles() -> impl Strategy<Value = Profile> {
    let segment = (0.0..1e6_f64, 0.0..1e6_f64, any::<bool>(), 1_u64..1 << 50)
        .prop_map(|(from, to, hold, ns)| Segment { from, to: if hold { from } else { to }, seconds: ns as f64 / 1e9 });
    let ramps =
        prop::collection::vec(segment, 1..4).prop_filter_map("never due", |segments| Profile::new(segments).ok());
    prop_oneof![ramps, (1e-3..1e7_f64).prop_map(|rate| Profile::constant(rate).unwrap())]
}

fn steps() -> impl Strategy<Value = Step> {
    (0_u8..7, 0.0..1e6_f64, 0.0..1e6_f64, 0.1..1e5_f64).prop_map(|(kind, a, b, seconds)| match kind {
        0 => Step::NothingFor { seconds },
        1 => Step::AtOnce { users: a },
        2 => Step::Rate { from: a, to: b, seconds },
        3 => Step::Peak { users: a, seconds },
        4 => Step::Users { from: a, to: b, seconds },
        5 => Step::IterationsEach { users: a, iterations: b },
        _ => Step::IterationsShared { users: a, iterations: b },
    })
}

fn populations() -> impl Strategy<Value = Population> {
    let weighted = ("\\PC{1,8}", 0.1..9.0_f64).prop_map(|(scenario, weight)| Weighted { scenario, weight });
    (
        prop::collection::vec(weighted, 0..3),
        prop::collection::vec(steps(), 0..4),
        spreads(),
        any::<Option<u64>>(),
        any::<Option<usize>>(),
        (any::<bool>(), 0.0..9.0_f64, prop::option::of(0.1..9.0_f64)),
    )
        .prop_map(|(scenarios, steps, arrivals, most_alive, after, (reuse_users, start_seconds, length))| {
            Population {
                scenarios,
                steps,
                arrivals,
                most_alive,
                after,
                reuse_users,
                start_seconds,
                longest_seconds: length,
                grace_seconds: length,
                ramp_down_grace_seconds: length,
            }
        })
}

fn spreads() -> impl Strategy<Value = Spread> {
    prop_oneof![Just(Spread::Uniform), Just(Spread::Poisson)]
}

fn scenarios() -> impl Strategy<Value = Scenarios> {
    let file = ("\\PC{1,8}", contents()).prop_map(|(name, content)| File { name, content });
    (
        prop::collection::vec(file, 0..3),
        prop::collection::btree_map("[A-Z]{1,5}", templates(), 0..3),
        prop::option::of("http://(me:pw@)?a/b(\\?token=x)?"),
        prop::collection::vec(populations(), 0..3),
        prop::option::of(profiles()),
    )
        .prop_map(|(files, env, base_url, populations, throttle)| Scenarios {
            streamed: Vec::new(),
            files,
            env,
            base_url,
            populations,
            throttle,
            smallest_pool: Some(3),
            hosts: Hosts { mapped: [("a".into(), "b".into())].into(), blocked: vec!["c".into()] },
            trace_ratio: None,
            setup_timeout_ns: None,
            teardown_timeout_ns: None,
            own: vec![DeclaredFigure {
                leads: true,
                ..DeclaredFigure::new("coins", brunt_record::figures::OwnKind::Counter, "eur")
            }],
        })
}

/// As resolving a name gives them: IPv6 ones may have a scope, and no flow.
fn addresses() -> impl Strategy<Value = SocketAddr> {
    any::<SocketAddr>().prop_map(|mut address| {
        if let SocketAddr::V6(address) = &mut address {
            address.set_flowinfo(0);
        }
        address
    })
}

fn transports() -> impl Strategy<Value = Transport> {
    let text = || prop::option::of("\\PC{0,12}");
    let tls = (any::<[bool; 3]>(), text(), text(), prop::option::of(templates()), text()).prop_map(
        |([insecure, no_resumption, early_data], trusted_pem, certificate_pem, key_pem, server_name)| Tls {
            insecure,
            trusted_pem,
            certificate_pem,
            key_pem,
            server_name,
            no_resumption,
            early_data,
        },
    );
    let family = prop_oneof![Just(Family::Any), Just(Family::V4), Just(Family::V6)];
    (
        prop::option::of(("[a-z]{1,5}", any::<u16>())),
        text(),
        prop::collection::vec(any::<IpAddr>(), 0..3),
        family,
        tls,
        prop::collection::vec(addresses(), 0..3),
        (
            prop_oneof![Just(ArrivalTimes::Kernel), Just(ArrivalTimes::Read)],
            prop_oneof![Just(Pace::Auto), Just(Pace::Timer), Just(Pace::Spin)],
        ),
        (any::<[u64; 2]>(), any::<u32>()),
        prop::option::of(("[a-z]{1,5}", any::<u16>(), prop::option::of("[a-z:]{1,8}".prop_map(Template::secret)))),
    )
        .prop_map(
            |(connect_to, unix_socket, source_ips, family, tls, addresses, (arrival_times, pace), times, proxy)| {
                let ([wait_ns, resolve_every_ns], udp_sockets) = times;
                Transport {
                    proxy: proxy.map(|(host, port, credentials)| Proxy { host, port, credentials }),
                    resolve_every_ns,
                    connect_to,
                    unix_socket: unix_socket.map(PathBuf::from),
                    source_ips,
                    family,
                    tls,
                    addresses,
                    arrival_times,
                    pace,
                    wait_ns,
                    udp_sockets,
                }
            },
        )
}

fn loads() -> impl Strategy<Value = Load> {
    prop_oneof![
        Just(Load::Closed {}),
        (profiles(), spreads()).prop_map(|(profile, arrivals)| Load::Open { profile, arrivals })
    ]
}

/// Any plan, valid or not: what is added to a plan has to be added here, and is then known to arrive.
fn plans() -> impl Strategy<Value = Plan> {
    let target = ("[a-z]{1,6}", "[a-z.]{1,9}", any::<Option<u16>>(), "/[a-z]{0,5}(\\?(token|a)=[a-z]{0,5})?")
        .prop_map(|(scheme, host, port, path)| Target { scheme, host, port, path });
    let script = ("\\PC{1,8}", contents(), prop::collection::vec(templates(), 0..3))
        .prop_map(|(file, content, args)| Script { file, content, args });
    let calls = (target, options(), prop::option::of(script), prop::option::of(scenarios()));
    let numbers = (any::<[u32; 4]>(), any::<[u64; 5]>(), any::<bool>());
    let stop = any::<(Option<u64>, Option<u64>)>();
    let judged = prop::collection::vec(
        prop_oneof![Just("p99<50ms"), Just("error_rate<0.01"), Just("checkout.p95<1s"), Just("rps>10")],
        0..3,
    );
    (calls, numbers, loads(), stop, transports(), judged).prop_map(|(calls, numbers, load, stop, transport, judged)| {
        let (target, protocol, script, scenarios) = calls;
        let ([version, connections, workers, pipeline], [warmup, timeout, connect, drain, seed], reconnect) = numbers;
        Plan {
            version: if version % 2 == 0 { PLAN_VERSION } else { version },
            target,
            protocol,
            script,
            scenarios,
            connections: if reconnect { Connections::UpTo(connections) } else { Connections::Fixed(connections) },
            workers,
            load,
            stop: StopRule { duration_ns: stop.0, requests: stop.1 },
            warmup_ns: warmup,
            timeout_ns: timeout,
            connect_timeout_ns: connect,
            drain_ns: drain,
            seed,
            reconnect,
            pipeline,
            transport,
            ok_status: if reconnect { OkStatus::of_scenarios() } else { OkStatus::default() },
            own_times: reconnect,
            own: Vec::new(),
            thresholds: judged.into_iter().filter_map(|text| text.parse().ok()).collect(),
            guards: Vec::new(),
            guard_action: crate::threshold::GuardAction::Stop,
            watches: Vec::new(),
            max_error_rate: MAX_ERROR_RATE,
            max_less_ratio: crate::plan::MAX_LESS_RATIO,
            origin: crate::plan::Origin { name: reconnect.then(|| "nightly".to_owned()), ..Default::default() },
            sandbox: if reconnect { Sandbox::Open } else { Sandbox::Closed },
            environment: Environment::arrived([("TOKEN".to_owned(), SECRET.to_owned())].into()),
        }
    })
}

fn plan_with_secrets() -> Plan {
    let mut plan = crate::plan::tests::plan();
    plan.target.path = format!("/?token={SECRET}");
    plan.protocol = ProtocolOptions::new(json!({"password": SECRET}), json!({"password": "[redacted]"}));
    plan.transport.tls.key_pem = Some(Template::secret(SECRET));
    plan.scenarios = Some(Scenarios {
        streamed: Vec::new(),
        files: vec![File { name: "a.lua".into(), content: Content(vec![0, 159]) }],
        env: [("TOKEN".to_owned(), Template::secret(SECRET))].into(),
        base_url: Some(format!("http://me:{SECRET}@a/")),
        populations: Vec::new(),
        throttle: None,
        hosts: Hosts::default(),
        smallest_pool: None,
        trace_ratio: None,
        setup_timeout_ns: None,
        teardown_timeout_ns: None,
        own: Vec::new(),
    });
    plan
}

#[test]
fn secrets_travel_and_are_not_shown() {
    let plan = plan_with_secrets();
    let wire = plan.to_wire().unwrap();
    let sent = String::from_utf8_lossy(wire.bytes()).matches(SECRET).count();
    assert_eq!(sent, 5);
    assert_eq!(Plan::from_wire(wire.bytes()).unwrap(), plan);
    for shown in [format!("{plan:?}"), format!("{wire:?}"), serde_json::to_string(&plan).unwrap()] {
        assert!(!shown.contains(SECRET), "{shown}");
    }
}

#[test]
fn another_version_is_told_from_a_damaged_plan() {
    let wire = plan_with_secrets().to_wire().unwrap();
    let changed = |at: usize, byte: u8| {
        let mut bytes = wire.bytes().to_vec();
        bytes[at] = byte;
        Plan::from_wire(&bytes).unwrap_err()
    };
    assert_eq!(changed(11, 9), WireError::Version { got: 9 });
    assert_eq!(changed(0, b'B'), WireError::NotAPlan { length: wire.bytes().len() });
    assert!(matches!(changed(50, 0), WireError::Damaged { expected, .. } if expected == wire.hash()));
    assert!(matches!(changed(20, 0), WireError::Damaged { .. }));
}

/// A newer brunt of the same wire version may say more than this one knows: what it says is not quoted.
#[test]
fn a_plan_that_cannot_be_read_is_not_quoted() {
    let payload = format!(r#"{{"plan":"{SECRET}","hidden":{{}}}}"#);
    let hash = Hash::digest(payload.as_bytes());
    let bytes = [&MAGIC[..], &WIRE_VERSION.to_be_bytes(), &hash.0, payload.as_bytes()].concat();
    let error = Plan::from_wire(&bytes).unwrap_err();
    assert!(matches!(error, WireError::Unreadable { column: 1.., .. }), "{error}");
    assert!(!format!("{error} {error:?}").contains(SECRET));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_plan_arrives_as_it_was_sent(plan in plans()) {
        let wire = plan.to_wire().unwrap();
        let arrived = Plan::from_wire(wire.bytes()).unwrap();
        prop_assert_eq!(arrived.to_wire().unwrap().hash(), wire.hash());
        prop_assert_eq!(arrived, plan);
    }

    #[test]
    fn no_cut_and_no_flipped_bit_goes_unnoticed(plan in plans(), at: prop::sample::Index, bit in 0_u8..8) {
        let wire = plan.to_wire().unwrap();
        let at = at.index(wire.bytes().len());
        prop_assert!(Plan::from_wire(&wire.bytes()[..at]).is_err());
        let mut bytes = wire.bytes().to_vec();
        bytes[at] ^= 1 << bit;
        prop_assert!(Plan::from_wire(&bytes).is_err());
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        prop_assert!(Plan::from_wire(&bytes).is_err());
    }
}

#[test]
fn a_plan_brings_the_variables_that_it_refers_to() {
    let mut plan = crate::plan::tests::plan();
    // PATH is set wherever tests run.
    let options = serde_json::json!({"headers": [["x", "Bearer @PATH"]], "basic": "me:@BRUNT_HAS_NO_SUCH_VARIABLE"});
    plan.protocol = ProtocolOptions::new(options.clone(), options);
    plan.environment = plan.referenced_environment();
    assert_eq!(plan.environment.reveal().keys().collect::<Vec<_>>(), ["PATH"]);
    assert_eq!(format!("{:?}", plan.environment), "{\"PATH\"}");
    let arrived = Plan::from_wire(plan.to_wire().unwrap().bytes()).unwrap();
    assert_eq!(arrived.environment, plan.environment);
    assert!(!serde_json::to_string(&plan).unwrap().contains(&std::env::var("PATH").unwrap()));
}
