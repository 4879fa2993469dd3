//! The schema from the server itself: of grpcio, which has `v1alpha` alone, and of the built-in echo, which has both.

use crate::calls::EVERYTHING;
use crate::echo::serve;
use crate::peers::{HEALTH, Peer};
use crate::program::{Directory, brunt, done, nobody, run};
use crate::report::{Report, report};

fn told(args: &[&str]) -> String {
    run(args).with_status(0).stdout
}

#[test]
fn services_and_methods_are_listed() {
    let peer = Peer::start();
    let services = told(&["grpc", "list", &peer.url]);
    assert_eq!(services, "grpc.health.v1.Health\ngrpc.reflection.v1alpha.ServerReflection\nshop.Cart\n");
    let methods = told(&["grpc", "list", &peer.url, "Cart"]);
    let expected =
        "shop.Cart/Add(shop.Item) returns (shop.Item)\nshop.Cart/Watch(shop.Item) returns (stream shop.Item)\n";
    assert!(methods.starts_with(expected), "{methods}");
    let cacert = peer.dir.path("cert.pem");
    assert_eq!(told(&["grpc", "list", "--cacert", &cacert, &peer.secure_url]), services);
    assert_eq!(told(&["grpc", "list", "-k", &peer.secure_url]), services);
    assert_eq!(
        told(&["grpc", "list", "grpc://elsewhere.invalid", "--connect-to", &peer.url.replace("grpc://", "")]),
        services
    );
    let (_server, url) = serve(&[]);
    assert_eq!(told(&["grpc", "list", url.strip_prefix("grpc://").unwrap()]), "brunt.Echo\ngrpc.health.v1.Health\n");
}

#[test]
fn definitions_are_printed() {
    let peer = Peer::start();
    let item = told(&["grpc", "describe", &peer.url, "shop.Item"]);
    for line in ["message Item {", "  google.protobuf.Timestamp at = ", "  map<string, ", "  optional "] {
        assert!(item.contains(line), "{item}");
    }
    let method = told(&["grpc", "describe", &peer.url, "Fill"]);
    assert!(method.starts_with("// of shop.Cart\nrpc Fill(stream shop.Item) returns (shop.Item);\n"), "{method}");
    assert!(
        method.contains("\nmessage Item {\n") && method.contains("\n// --call shop.Cart/Fill --args '[{"),
        "{method}"
    );
    // What it proposes can be called with.
    let proposed = method.lines().last().unwrap().split_once("--args '").unwrap().1;
    let proposed = proposed.strip_suffix('\'').unwrap();
    report(0, ["--reflection", "--call", "Fill", "--args", proposed, "-n", "5", &peer.url]).assert_all(5, 0);
    let health = told(&["grpc", "describe", &peer.url, "grpc.health.v1.Health"]);
    for line in std::fs::read_to_string(HEALTH).unwrap().lines().filter(|line| line.contains("rpc ")) {
        let name = line.trim().split('(').next().unwrap();
        assert!(health.contains(name), "{health}");
    }
}

#[test]
fn floods_need_no_files() {
    let peer = Peer::start();
    let many = format!("[{EVERYTHING}, {{}}]");
    for (call, args) in
        [("Add", EVERYTHING), ("shop.Cart/Watch", r#"{"count": 3}"#), ("Cart/Fill", &many), ("Chat", &many)]
    {
        report(0, ["--reflection", "--call", call, "--args", args, "-n", "20", &peer.url]).assert_all(20, 0);
    }
    let cacert = peer.dir.path("cert.pem");
    report(0, ["--reflection", "--call", "Add", "-n", "5", "--cacert", &cacert, &peer.secure_url]).assert_all(5, 0);
    let done = run(["--reflection", "--call", "Add", "--args", r#"{"skuu": 1}"#, &peer.url]).with_status(2);
    assert!(done.stderr.contains("--args: ") && done.stderr.contains("skuu"), "{}", done.stderr);
    for (call, expected) in [
        ("shop.Till/Add", "--reflection: the server has no service 'shop.Till'; it has grpc.health.v1.Health, "),
        ("Sub", "--call Sub: there is no method 'Sub'; there are "),
    ] {
        let done = run(["--reflection", "--call", call, &peer.url]).with_status(2);
        assert!(done.stderr.contains(expected), "{}", done.stderr);
    }
}

/// What the server told travels in the plan: another server without reflection is called by it.
#[test]
fn a_plan_asks_nobody_again() {
    let dir = Directory::new();
    let plan = dir.path("plan.json");
    let (server, url) = serve(&[]);
    run([
        "--reflection",
        "--call",
        "Say",
        "--args",
        r#"{"text": "a"}"#,
        "-n",
        "10",
        "--dry-run",
        "--write-plan",
        &plan,
        &url,
    ])
    .with_status(0);
    let script = dir.file(
        "calls.lua",
        format!(
            "local brunt = require \"brunt\"\nlocal echo = brunt.grpc {{ base = \"{url}\", reflection = true }}\n\
             brunt.scenario(\"a\", function()\n  local said = echo:call(\"Say\", {{ text = \"b\" }})\n  \
             brunt.check(said, {{ same = said.value.text == \"b\" }})\nend):inject {{ brunt.iterations_each(2, 3) }}\n"
        ),
    );
    let scenario = dir.path("scenario.json");
    report(0, ["run", &script]).assert_all(6, 0);
    run(["run", "--dry-run", "--write-plan", &scenario, &script]).with_status(0);
    drop(server);
    for (plan, calls) in [(&plan, 10), (&scenario, 6)] {
        // Reading it asks nobody; carrying it out finds nobody.
        run(["--plan", plan, "--dry-run"]).with_status(0);
        let failed =
            Report::parse(&done(brunt(["--plan", plan.as_str(), "--format", "json"]).env("BRUNT_NO_SAVE", "1")));
        assert!(failed.failures().contains_key("connect"), "{failed:?}");
        let text = std::fs::read_to_string(plan).unwrap();
        let (_server, other) = serve(&[]);
        let port = |url: &str| url.trim_end_matches('/').rsplit(':').next().unwrap().to_owned();
        let moved = dir.file("moved.json", text.replace(&port(&url), &port(&other)));
        report(0, ["--plan", &moved]).assert_all(calls, 0);
    }
}

#[test]
fn servers_that_do_not_tell_are_named() {
    let (_reserved, nobody) = nobody();
    let url = nobody.replace("http://", "grpc://");
    let done = run(["grpc", "list", &url]).with_status(3);
    assert!(done.stderr.contains("server reflection got no answer: connect: connection refused"), "{}", done.stderr);
    let done = run(["--reflection", "--call", "Say", &url]).with_status(3);
    assert!(done.stderr.contains("--reflection: server reflection got no answer: connect"), "{}", done.stderr);
    let dir = Directory::new();
    let script = dir.file("a.lua", format!("require(\"brunt\").grpc {{ base = \"{url}\", reflection = true }}\n"));
    let done = run(["run", &script]).with_status(3);
    assert!(
        done.stderr.contains("brunt.grpc: reflection: server reflection got no answer: connect"),
        "{}",
        done.stderr
    );
    // One that speaks HTTP/1.1, and one that wants TLS.
    let mut http = crate::program::Running::start(["serve", "http", "0"]);
    let url = http.line().trim().replace("listening on http://", "grpc://");
    run(["grpc", "list", "--timeout", "2s", "--connect-timeout", "2s", &url]).with_status(3);
    let peer = Peer::start();
    let done = run(["grpc", "list", &peer.secure_url]).with_status(3);
    assert!(done.stderr.contains("tls: "), "{}", done.stderr);
    for (args, expected) in [
        (&["grpc", "list", "http://127.0.0.1:1"][..], "expected a URL with grpc:// or grpcs://, got http://"),
        (
            &["grpc", "describe", &peer.url, "shop.Nothing"],
            "the server has no service, method, message or enum 'shop.Nothing'",
        ),
        (&["grpc", "list", &peer.url, "Nothing"], "the server has no service 'Nothing'; it has "),
        (&["grpc", "list", "-H", "grpc-timeout: 1S", &peer.url], "metadata grpc-timeout is gRPC's own"),
        (&["--reflection", "--proto", "a.proto", "--call", "A", &peer.url], "cannot be used with"),
    ] {
        let done = run(args).with_status(2);
        assert!(done.stderr.contains(expected), "{args:?}: {}", done.stderr);
    }
}
