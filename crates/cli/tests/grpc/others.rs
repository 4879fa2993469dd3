//! The same against grpc-go and @grpc/grpc-js: every type both ways, all kinds of calls, reflection and health checking.

use crate::calls::{EVERYTHING, once};
use crate::peers::{HEALTH, Other, PROTO};
use crate::program::{Directory, run};
use crate::report::report;
use crate::streams::{KINDS, played};

/// Calls of every kind, by files and by the server's own schema.
#[track_caller]
fn check(peer: &Other) {
    let many = r#"[{"sku": "a"}, {"sku": "b"}]"#;
    for schema in [&["--proto", PROTO][..], &["--reflection"]] {
        for (call, args) in
            [("Add", EVERYTHING), ("Cart/Watch", r#"{"count": 5}"#), ("Fill", many), ("shop.Cart/Chat", many)]
        {
            let load = ["--call", call, "--args", args, "-n", "40", "-c", "2", "--streams", "3", &peer.url];
            report(0, [schema, &load].concat()).assert_all(40, 0);
        }
        let told = once(0, &[schema, &["--call", "Add", "--args", EVERYTHING, &peer.url]].concat());
        let messages: Vec<serde_json::Value> =
            told.iter().filter(|line| line.starts_with('{')).map(|line| serde_json::from_str(line).unwrap()).collect();
        let [sent, received] = &messages[..] else { panic!("{told:#?}") };
        assert_eq!(sent, received);
        assert_eq!(sent.as_object().unwrap().len(), 24, "{sent}");
    }
    let told = once(0, &["--proto", HEALTH, "--call", "grpc.health.v1.Health/Check", &peer.url]);
    assert!(told.iter().any(|line| line == r#"{"status":"SERVING"}"#), "{told:#?}");
    assert_eq!(played(&peer.url, KINDS, 2).outcome("answered"), 6);
    let item = run(["grpc", "describe", &peer.url, "shop.Item"]).with_status(0).stdout;
    assert!(item.contains("  google.protobuf.Timestamp at = 24;\n"), "{item}");
}

#[test]
#[ignore = "needs go: make test installs it"]
fn grpc_go() {
    let dir = Directory::new();
    for version in ["v1", "v1alpha"] {
        let peer = Other::go(version, &dir);
        let services = run(["grpc", "list", &peer.url]).with_status(0).stdout;
        let own = format!("grpc.reflection.{version}.ServerReflection");
        assert_eq!(services, format!("grpc.health.v1.Health\n{own}\nshop.Cart\n"));
        check(&peer);
    }
}

#[test]
#[ignore = "needs go: make test installs it"]
fn a_server_that_forbids_pings_is_quoted() {
    let peer = Other::go("v1", &Directory::new());
    // Between its two calls a connection is silent long enough for more pings than grpc-go forgives.
    let load = ["-r", "0.2", "-d", "10s", "-c", "1", "-t", "1", "--ping-every", "1s"];
    let told = report(0, [&load[..], &["--proto", PROTO, "--call", "Add", "--args", EVERYTHING, &peer.url]].concat());
    told.assert_all(2, 0);
    let goodbye = "GOAWAY with ENHANCE_YOUR_CALM: too_many_pings, so a longer --ping-every is wanted";
    assert!(told.number(&format!("/outcomes/events/{goodbye}")) > 0, "{}", told.at("/outcomes"));
}

#[test]
#[ignore = "needs node and npm: make test installs them"]
fn grpc_js() {
    let peer = Other::node();
    assert_eq!(run(["grpc", "list", &peer.url]).with_status(0).stdout, "shop.Cart\n");
    check(&peer);
}
