//! The built-in echo, by the service in the examples, which also has what the other servers do not know: `uuid`.

use std::collections::BTreeMap;

use crate::program::{Running, run};
use crate::report::report;

const IDL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/thrift/echo.thrift");

/// The echo, and the URL that it prints.
pub fn serve(flags: &[&str]) -> (Running, String) {
    let mut server = Running::start(["serve", "thrift", "0"].iter().chain(flags));
    let line = server.line();
    let url = line.strip_prefix("listening on ").unwrap_or_else(|| panic!("{line}")).trim().to_owned();
    (server, url)
}

#[test]
fn its_idl_is_that_of_the_examples() {
    assert_eq!(std::fs::read_to_string(IDL).unwrap(), brunt_testbed::thrift::IDL);
}

const ITEM: &str = r#"{"sku": "a1", "colour": "BLUE"}"#;

#[test]
fn what_is_said_comes_back_in_each_protocol_over_each_transport() {
    let (_server, url) = serve(&[]);
    for flags in ["binary framed", "binary unframed", "compact framed", "compact unframed"] {
        let (protocol, transport) = flags.split_once(' ').unwrap();
        for multiplexed in [&[][..], &["--multiplexed"]] {
            for (call, args, result, status) in [
                ("echo", r#"{"value": -70000}"#, "-70000", 0),
                ("item", &format!(r#"{{"item": {ITEM}}}"#), ITEM, 0),
                (
                    "items",
                    &format!(r#"{{"items": {{"x": [{ITEM}], "y": []}}}}"#),
                    &format!(r#"{{"x": [{ITEM}], "y": []}}"#),
                    0,
                ),
                (
                    "id",
                    r#"{"id": "00112233-4455-6677-8899-AABBCCDDEEFF"}"#,
                    r#""00112233-4455-6677-8899-aabbccddeeff""#,
                    0,
                ),
                ("nothing", "{}", "null", 0),
                ("refuse", "{}", "1", 1),
            ] {
                let calls = ["-n", "20", "-c", "2", "--pipeline", "3", "--idl", IDL, "--call", call, "--args", args];
                let how = ["--result", result, "--protocol", protocol, "--transport", transport, &url];
                report(0, [&calls, multiplexed, &how].concat()).assert_all(20, status);
            }
            let calls = ["-n", "20", "-c", "2", "--idl", IDL, "--call", "fail", "--protocol", protocol];
            let failed = report(1, [&calls, multiplexed, &["--transport", transport, &url]].concat());
            let reason = "exception: internal error: asked to fail".to_owned();
            assert_eq!(failed.reasons(), BTreeMap::from([(reason, 20)]));
            let tell = ["-n", "20", "--idl", IDL, "--call", "tell", "--args", r#"{"what": "x"}"#, &url];
            report(0, tell).assert_all(20, 0);
        }
    }
}

#[test]
fn its_faults_are_those_that_were_asked_for() {
    let echo = ["-c", "2", "--idl", IDL, "--call", "echo", "--args", r#"{"value": 1}"#];
    let (_server, url) = serve(&["--error-rate", "50%", "--delay", "1ms"]);
    let run = report(0, [&["-n", "200"], &echo[..], &[url.as_str()]].concat());
    let failures = run.failures()["exception"];
    assert!((50..150).contains(&failures), "{failures}");
    assert!(run.number("/times/service/min_ns") >= 1_000_000);
    let (_server, url) = serve(&["--close-after", "5"]);
    let run = report(0, [&["-n", "100"], &echo[..], &[url.as_str()]].concat());
    // The sixth call on a connection is the one that finds it closed.
    assert!(run.connections("made") >= 16);
    // What is no Thrift ends the connection without a word.
    let http = url.replace("thrift://", "http://");
    assert_eq!(report(3, ["-n", "3", &http]).failures(), BTreeMap::from([("closed", 3)]));
}

#[test]
fn it_speaks_tls() {
    let dir = crate::program::Directory::new();
    let cert = dir.path("cert.pem");
    let (_server, url) = serve(&["--tls", "--write-cert", &cert]);
    assert!(url.starts_with("thrifts://"), "{url}");
    let echo = ["-n", "20", "--idl", IDL, "--call", "echo", "--args", r#"{"value": 1}"#, "--result", "1"];
    report(0, [&echo[..], &["--cacert", &cert, &url]].concat()).assert_all(20, 0);
}

#[test]
fn a_single_call_is_shown_by_its_names_and_bytes() {
    let (_server, url) = serve(&[]);
    let call = ["--once", "--idl", IDL, "--call", "item", "--args", r#"{"item": {"sku": "a1", "colour": "BLUE"}}"#];
    for how in [["--transport", "framed"], ["--transport", "unframed"], ["--protocol", "compact"]] {
        let done = run([&call[..], &how, &[&url]].concat()).with_status(0);
        for expected in [
            "→ call, ",
            r#"  item({"item": {"sku": "a1", "#,
            r#""colour": "BLUE""#,
            "\n  00000000  ",
            "← answer, ",
            r#"  returned {"sku": "a1", "#,
            "\n✓ answered in ",
        ] {
            assert!(done.stdout.contains(expected), "{how:?} {expected}: {}", done.stdout);
        }
    }
    let refused = run(["--once", "--idl", IDL, "--call", "refuse", &url]).with_status(0);
    assert!(refused.stdout.contains("  threw Refused {"), "{}", refused.stdout);
    assert!(refused.stdout.contains("\n✗ answered with 1 (Refused) in "), "{}", refused.stdout);
    let failed = run(["--once", "--idl", IDL, "--call", "fail", &url]).with_status(1);
    assert!(failed.stdout.contains("asked to fail") && failed.stdout.contains("\n✗ exception after "), "{failed:?}");
}
