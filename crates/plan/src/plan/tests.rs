//! Plans that are right, read back as they were written, and each way to be wrong.

use super::*;
use crate::units::LONGEST_NS;

/// A plan that is right.
pub(crate) fn plan() -> Plan {
    Plan {
        version: PLAN_VERSION,
        target: Target { scheme: "http".into(), host: "127.0.0.1".into(), port: Some(8080), path: "/".into() },
        protocol: ProtocolOptions::default(),
        script: None,
        scenarios: None,
        connections: Connections::Fixed(64),
        workers: 2,
        load: Load::Closed {},
        stop: StopRule { duration_ns: Some(10 * SECOND_NS), requests: None },
        warmup_ns: 0,
        timeout_ns: 10 * SECOND_NS,
        connect_timeout_ns: 10 * SECOND_NS,
        drain_ns: 10 * SECOND_NS,
        seed: 1,
        reconnect: false,
        pipeline: 1,
        transport: Transport::default(),
        ok_status: OkStatus::default(),
        own_times: false,
        own: Vec::new(),
        thresholds: vec!["p99<50ms".parse().unwrap()],
        guards: Vec::new(),
        guard_action: GuardAction::Stop,
        watches: Vec::new(),
        max_error_rate: MAX_ERROR_RATE,
        max_less_ratio: MAX_LESS_RATIO,
        origin: Origin::default(),
        sandbox: Sandbox::default(),
        environment: Environment::default(),
    }
}

#[test]
fn a_plan_is_read_back_as_it_was_written() {
    let mut plan = plan();
    plan.load = Load::Open { profile: "1000..2000/60s".parse().unwrap(), arrivals: Spread::Poisson };
    let json = serde_json::to_string_pretty(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan);
}

#[test]
fn a_private_key_is_not_stored() {
    let mut plan = plan();
    plan.transport.tls.key_pem = Some(Template::secret("-----BEGIN PRIVATE KEY-----"));
    assert!(!serde_json::to_string(&plan).unwrap().contains("BEGIN"));
    assert!(!format!("{plan:?}").contains("BEGIN"));
}

#[test]
fn protocol_options_are_stored_without_their_secrets() {
    let mut plan = plan();
    let (whole, shown) = (serde_json::json!({"token": "t0p"}), serde_json::json!({"token": "[redacted]"}));
    plan.protocol = ProtocolOptions::new(whole.clone(), shown);
    assert!(!serde_json::to_string(&plan).unwrap().contains("t0p"));
    assert!(!format!("{plan:?}").contains("t0p"));
    assert_eq!(plan.protocol.reveal(), &whole);
}

#[test]
fn arguments_of_scripts_are_stored_without_secrets() {
    let mut plan = plan();
    let args = ["http://me:hunter2@a/?token=hunter2&b=c", "100", "hunter2", "@TOKEN"].map(Template::secret);
    plan.script = Some(Script { file: "a.lua".into(), content: Content(Vec::new()), args: args.to_vec() });
    let json = serde_json::to_string(&plan).unwrap();
    assert!(!json.contains("hunter2") && !format!("{plan:?}").contains("hunter2"), "{json}");
    let expected = r#"["http://[redacted]@a/?token=[redacted]&b=c","100","[redacted]","@TOKEN"]"#;
    assert!(json.contains(expected), "{json}");
    let stored: Plan = serde_json::from_str(&json).unwrap();
    assert_eq!(stored.validate(), Err(PlanError::Argument { place: 0 }));
    let revealed = plan.script.map(|script| script.reveal_args(|_| Some("t0p".into())));
    let expected = ["http://me:hunter2@a/?token=hunter2&b=c", "100", "hunter2", "t0p"].map(str::to_owned);
    assert_eq!(revealed, Some(Ok(expected.to_vec())));
}

#[test]
fn a_file_cannot_open_the_sandbox() {
    let mut plan = plan();
    plan.sandbox = Sandbox::Open;
    let json = serde_json::to_value(&plan).unwrap();
    assert_eq!(serde_json::from_value::<Plan>(json.clone()).unwrap().sandbox, Sandbox::Closed);
    let mut claims = json;
    claims["sandbox"] = "open".into();
    assert!(serde_json::from_value::<Plan>(claims).is_err());
}

#[test]
fn what_cannot_be_done_is_refused() {
    let broken = |change: fn(&mut Plan)| {
        let mut plan = plan();
        change(&mut plan);
        plan.validate().unwrap_err().to_string()
    };
    assert_eq!(broken(|p| p.connections = Connections::Fixed(0)), "connections must be between 1 and 1000000, not 0");
    assert_eq!(broken(|p| p.workers = 65), "workers must be between 1 and 64, not 65");
    assert!(broken(|p| p.version = 9).starts_with("the plan has format version 9"));
    assert!(broken(|p| p.stop = StopRule::default()).starts_with("nothing ends this run"));
    let both = broken(|p| {
        p.reconnect = true;
        p.pipeline = 2;
    });
    assert!(both.starts_with("a new connection for each call and pipelining cannot go together"), "{both}");
    assert_eq!(broken(|p| p.connect_timeout_ns = 0), "the connect timeout must be above 0, not 0");
    assert_eq!(broken(|p| p.stop.requests = Some(0)), "the number of requests must be above 0, not 0");
    assert_eq!(broken(|p| p.drain_ns = u64::MAX), "the drain must be at most 720h, not 18446744073709551615ns");
    assert_eq!(broken(|p| p.warmup_ns = LONGEST_NS + 1), "the warm-up must be at most 720h, not 2592000000000001ns");
    assert_eq!(plan().validate(), Ok(()));
}

#[test]
fn a_target_that_no_url_could_name_is_refused() {
    for change in [
        (|t| t.host.clear()) as fn(&mut Target),
        |t| t.host = "a b".to_owned(),
        |t| t.host = "a\r\nX-Evil: 1".to_owned(),
        |t| t.host = "Example.org".to_owned(),
        |t| t.host = "a/b".to_owned(),
        |t| t.host = "me@a".to_owned(),
        |t| t.port = Some(0),
        |t| t.path.clear(),
        |t| t.path = "a".to_owned(),
        |t| t.path = "/a b".to_owned(),
        |t| t.path = "/a#b".to_owned(),
        |t| t.scheme = "HTTP".to_owned(),
    ] {
        let mut plan = plan();
        change(&mut plan.target);
        let error = plan.validate().unwrap_err().to_string();
        assert!(error.starts_with("the plan's target: '"), "{:?}: {error}", plan.target);
    }
}

#[test]
fn the_shortest_end_wins() {
    let mut plan = plan();
    plan.load = Load::Open { profile: "10/4s".parse().unwrap(), arrivals: Spread::Uniform };
    assert_eq!(plan.duration_ns(), Some(4 * SECOND_NS));
    plan.stop.duration_ns = Some(SECOND_NS);
    assert_eq!(plan.duration_ns(), Some(SECOND_NS));
}
