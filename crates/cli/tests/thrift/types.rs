//! Every type there and back, in each protocol over each transport.

use crate::peers::{Implementation, Peer};
use crate::report::report;

const POINT: &str = r#"{"x": -3, "y": 7, "name": "ä"}"#;
const WHOLE: &str = r#"{"yes": true, "no": false, "small": 1, "short": -2, "middle": 70000, "large": 1099511627776,
    "real": 0.1, "text": "", "raw": {"base64": "//4="}, "colour": "GREEN", "path": [{"x": -3, "name": "ä"}],
    "either": {"text": "t"}, "numbers": [1, 2, 3], "nested": {"k": [{"1": true}, {"2": false}]}, "far": 9}"#;

/// Echoing methods and what they are called with; the servers know these values by themselves.
const ECHOES: &[(&str, &str)] = &[
    ("true", "true"),
    ("false", "false"),
    ("byte", "-128"),
    ("i16", "-300"),
    ("i32", "2147483647"),
    ("i64", "-9007199254740993"),
    ("double", "-1.5e300"),
    ("string", r#""größer 🦀""#),
    ("binary", r#"{"base64": "AP+ACg=="}"#),
    ("enum", r#""BLUE""#),
    ("enum", "16"),
    ("typedef", "1250"),
    ("struct", POINT),
    ("struct", r#"{"x": -3, "name": "ä"}"#),
    ("tree", r#"{"name": "a", "children": [{"name": "b", "children": []}]}"#),
    ("union", r#"{"point": {"x": 1, "y": 2}}"#),
    ("list", "[-10, -9, -8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"),
    ("bools", "[true, false, true]"),
    ("path", r#"[{"x": -3, "name": "ä"}, {"x": 0}]"#),
    ("set", r#"["c", "a", "b"]"#),
    ("map", r#"{"one": 1, "minus": -1}"#),
    ("nested", r#"{"RED": [{"t": true, "f": false}, {}], "BLUE": []}"#),
    ("empty", "{}"),
    ("whole", WHOLE),
];

/// Whether a listener can echo what this method is called with.
fn can_echo(implementation: Implementation, protocol: &str, name: &str) -> bool {
    match (implementation, protocol) {
        // Each truth value in a container is read as false.
        (Implementation::Node, "compact") => !matches!(name, "bools" | "nested" | "whole"),
        // Keys of maps that are numbers are read as texts.
        (Implementation::Thriftpy, "json") => name != "nested",
        _ => true,
    }
}

#[track_caller]
fn call(peer: &Peer, kind: &str, method: &str, args: &str, result: &str) {
    let name = method.rsplit('_').next().unwrap();
    for listener in peer.of_kind(kind).filter(|listener| can_echo(peer.implementation, &listener.protocol, name)) {
        let calls = ["-n", "4", "-c", "2", "--call", method, "--args", args, "--result", result];
        let args = peer.args(listener);
        report(0, calls.into_iter().chain(args.iter().map(String::as_str))).assert_all(4, 0);
    }
}

fn every_type_is_echoed(implementation: Implementation) -> Peer {
    let peer = Peer::start(implementation);
    for (name, value) in ECHOES {
        for kind in ["plain", "other"] {
            call(&peer, kind, &format!("Everything.echo_{name}"), &format!(r#"{{"v": {value}}}"#), value);
        }
    }
    peer
}

fn everything_is_called(implementation: Implementation) {
    let peer = every_type_is_echoed(implementation);
    call(&peer, "plain", "echo_default", "{}", "42");
    call(&peer, "plain", "nothing", "{}", "null");
    call(&peer, "plain", "healthy", "{}", "true");
    call(&peer, "plain", "add", r#"{"a": 1, "b": -2, "c": -1000000000}"#, "-1000000001");
    call(&peer, "multiplexed", "add", r#"{"a": 1, "b": 2, "c": 3}"#, "6");
    call(&peer, "multiplexed", "echo_whole", &format!(r#"{{"v": {WHOLE}}}"#), WHOLE);
    call(&peer, "tls", "echo_whole", &format!(r#"{{"v": {WHOLE}}}"#), WHOLE);
}

#[test]
#[ignore = "needs thrift-compiler, python3-venv: make test installs them"]
fn every_type_is_echoed_by_apache_thrift() {
    everything_is_called(Implementation::Apache);
}

#[test]
#[ignore = "needs thrift-compiler, python3-venv: make test installs them"]
fn every_type_is_echoed_by_thriftpy2() {
    everything_is_called(Implementation::Thriftpy);
}

#[test]
#[ignore = "needs thrift-compiler, nodejs, npm: make test installs them"]
fn every_type_is_echoed_by_node() {
    every_type_is_echoed(Implementation::Node);
}
