//! Which scripts run in the sandbox, by the flags and by where they come from.

use brunt_testbed::server::ServerConfig;

use crate::program::{Directory, run};
use crate::runs::target;

/// Fails unless the script has the environment, which it has outside of the sandbox alone.
const OPEN: &str = "assert(os.getenv and io and require('ffi'), 'closed')\n";

const SCENARIO: &str = "local brunt = require('brunt')
    local shop = brunt.http{ base = 'BASE' }
    brunt.scenario('s', function() INSIDE shop:get('/') end):inject{ brunt.iterations_each(1, 1) }";

#[test]
fn wrks_scripts_of_plans_are_confined_and_those_that_are_named_are_not() {
    let (_server, url) = target(ServerConfig::default());
    let dir = Directory::new();
    let script = dir.file("s.lua", OPEN);
    let plan = dir.path("plan.json");
    let args = ["-s", &script, "-n1", "-c1"];
    run([&args[..], &["--write-plan", &plan, &url]].concat()).with_status(0);
    for more in [[].as_slice(), &["--once"], &["--sandbox"]] {
        let confined = run([&["--plan", plan.as_str()], more].concat()).with_status(2);
        assert!(confined.stderr.contains("closed"), "{confined:#?}");
        let named = run([&args[..], more, &["--sandbox", &url]].concat());
        assert!(more.contains(&"--sandbox") || named.stderr.contains("closed"), "{named:#?}");
    }
    run(["--plan", &plan, "--no-sandbox"]).with_status(0);
    run(["--plan", &plan, "--no-sandbox", "--sandbox"]).with_status(2);
    // Many runs are confined alike.
    let compared = run([&["compare", "--rounds", "10", "-w0", "--sandbox"], &args[..], &[&url, &url]].concat());
    assert!(compared.stderr.contains("closed"), "{compared:#?}");
}

#[test]
fn scenarios_of_plans_are_confined_wherever_they_run() {
    let (_server, url) = target(ServerConfig::default());
    let dir = Directory::new();
    let scenario = |inside: &str| SCENARIO.replace("BASE", &url).replace("INSIDE", inside);
    let at_the_top = dir.file("top.lua", [OPEN, &scenario("")].concat());
    let plan = dir.path("plan.json");
    run(["run", &at_the_top, "--write-plan", &plan]).with_status(0);
    for args in [
        ["--plan", &plan].as_slice(),
        &["--plan", &plan, "--dry-run"],
        &["--plan", &plan, "--once"],
        &["run", &at_the_top, "--sandbox"],
        &["run", &at_the_top, "--sandbox", "--dry-run"],
        &["run", &at_the_top, "--sandbox", "--once"],
    ] {
        let confined = run(args).with_status(2);
        assert!(confined.stderr.contains("closed"), "{args:?}: {confined:#?}");
    }
    run(["--plan", &plan, "--no-sandbox"]).with_status(0);
    // What a user does: its iteration fails, and does nothing outside.
    let made = dir.path("made");
    let inside = dir.file("inside.lua", scenario(&format!("io.open('{made}', 'w'):close()")));
    let confined = run(["run", &inside, "--sandbox", "-t1", "--format", "json"]);
    assert!(
        confined.stdout.contains("attempt to index global 'io'") || confined.stderr.contains("'io'"),
        "{confined:#?}"
    );
    assert!(!std::path::Path::new(&made).exists());
    run(["run", &inside, "-t1"]).with_status(0);
    assert!(std::path::Path::new(&made).exists());
}
