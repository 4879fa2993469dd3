//! Scripts of k6: what is hostile in one ends its user by name and harms no other; flags and exit statuses. What a script sends is tried by the
//! corpus (`crates/javascript/tests/corpus`).

use std::time::Duration;

use brunt_testbed::server::{Delay, Server, ServerConfig};
use serde_json::Value;

use crate::program::{Directory, brunt, done, run};

/// A script of k6 with this text behind its imports, in a directory of its own.
fn script(text: &str) -> (Directory, String) {
    let directory = Directory::new();
    let imports = "import http from 'k6/http'; import { check, sleep } from 'k6'; import exec from 'k6/execution';\n";
    let path = directory.file("s.js", imports.to_owned() + text);
    (directory, path)
}

/// Runs a script under brunt's own rules, to this exit status; its result.
#[track_caller]
fn play(path: &str, args: &[&str], status: i32) -> Value {
    let mut command = brunt(["run", path]);
    command.args(args).args(["--format", "json"]).env_remove("BRUNT_MAX_ERROR_RATE");
    let done = done(&mut command);
    assert_eq!(done.status, Some(status), "{args:?}: {:.2000} {}", done.stdout, done.stderr);
    serde_json::from_str(&done.stdout).unwrap()
}

/// What ended iterations of the one scenario, with how often.
fn tracebacks(result: &Value) -> Vec<(String, u64)> {
    let scenarios = result["names"]["scenarios"].as_array().unwrap();
    let all = scenarios.iter().filter_map(|one| one["tracebacks"].as_array()).flatten();
    all.map(|one| (one["traceback"].as_str().unwrap().to_owned(), one["count"].as_u64().unwrap())).collect()
}

#[test]
fn what_is_hostile_in_a_script_ends_its_user_and_no_other() {
    let server = Server::start(ServerConfig::default()).unwrap();
    let url = server.url();
    for (hostile, said) in [
        ("while (true);", "5 s of CPU time"),
        ("const all = []; while (true) all.push(new ArrayBuffer(1e7));", "out of memory"),
        ("(function f(n) { return f(n + 1) + 1; })(0);", "Maximum call stack size exceeded"),
        ("throw { code: 7 };", r#"{"code":7}"#),
        ("null.x;", "cannot read property 'x' of null"),
        ("throw undefined;", "undefined"),
        ("JSON.parse('['.repeat(1e6));", "Maximum call stack size exceeded"),
        ("JSON.parse('{');", "s.js:4"),
        ("try { for (;;) {} } catch (e) {} finally { for (;;) {} }", "5 s of CPU time"),
        ("Promise.reject(new Error('nobody caught it'));", "nobody caught it"),
    ] {
        let text = format!(
            "export const options = {{ scenarios: {{\n\
             bad: {{ executor: 'per-vu-iterations', exec: 'bad', iterations: 1 }}, good: {{ executor: 'per-vu-iterations', vus: 3, iterations: 20 }} }} }};\n\
             export function bad() {{ {hostile} }}\n\
             export default function () {{ http.get('{url}'); }}"
        );
        let (_directory, path) = script(&text);
        let result = play(&path, &["-t", "1"], 1);
        assert_eq!(result["outcomes"]["answered"], 60, "{hostile}");
        let ended = tracebacks(&result);
        let [(traceback, 1)] = ended.as_slice() else { panic!("{hostile}: {ended:?}") };
        assert!(traceback.contains(said), "{hostile}: {traceback}");
    }
}

#[test]
fn whatever_a_script_calls_its_process_goes_on() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../javascript/tests/hostile.js");
    let mut number = 88_172_645_463_325_252_u64;
    for seed in 0..12 {
        // Marsaglia's xorshift.
        let mut next = || {
            number ^= number << 13;
            number ^= number >> 7;
            number ^= number << 17;
            (number % 256).to_string()
        };
        let bytes: Vec<String> = (0..400).map(|_| next()).collect();
        let done = done(brunt(["check", script, "--env"]).arg(format!("BYTES={}", bytes.join(","))));
        assert!(matches!(done.status, Some(0..=2)), "{seed}: {:?} {}", done.status, done.stderr);
        assert!(!done.stderr.contains("panicked"), "{seed}: {}", done.stderr);
    }
}

#[test]
fn users_who_end_in_the_midst_of_calls_leave_nothing_behind() {
    let server =
        Server::start(ServerConfig { delay: Delay::Fixed(Duration::from_secs(30)), ..ServerConfig::default() })
            .unwrap();
    let text = format!(
        "export const options = {{ scenarios: {{ a: {{ executor: 'constant-vus', vus: 200, duration: '1s', gracefulStop: '0s' }} }} }};\n\
         export default function () {{ try {{ http.get('{}'); }} finally {{ http.get('{0}'); while (true) sleep(1); }} }}",
        server.url()
    );
    let (_directory, path) = script(&text);
    let result = play(&path, &["-t", "2", "--drain", "0s"], 3);
    assert_eq!(result["outcomes"]["answered"], 0);
    assert!(result["outcomes"]["due"].as_u64().unwrap() > 0, "{result:#}");
}

#[test]
fn flags_and_variables_of_k6_say_who_comes() {
    let server = Server::start(ServerConfig::default()).unwrap();
    let text = format!(
        "export const options = {{ vus: 1, iterations: 3 }};\nexport default () => http.get('{}');",
        server.url()
    );
    let (_directory, path) = script(&text);
    assert_eq!(play(&path, &[], 0)["outcomes"]["answered"], 3);
    assert_eq!(play(&path, &["-i", "7", "-u", "2"], 0)["outcomes"]["answered"], 7);
    let ramped = play(&path, &["-s", "1s:2", "--k6-exit"], 0);
    assert!(ramped["outcomes"]["answered"].as_u64().unwrap() > 3, "{ramped:#}");
    let wrong = run(["run", &path, "-s", "1s"]).with_status(2);
    assert!(wrong.stderr.contains("stages such as 5s:10"), "{wrong:#?}");
}

#[test]
fn brunts_rules_hold_unless_the_script_has_its_own() {
    let server = Server::start(ServerConfig { error_rate: 1.0, ..ServerConfig::default() }).unwrap();
    let url = server.url();
    let load = "vus: 1, iterations: 5";
    for (options, flags, status) in [
        (load.to_owned(), &[][..], 1),
        (format!("{load}, thresholds: {{ http_req_failed: ['rate<=1'] }}"), &[][..], 0),
        (load.to_owned(), &["--k6-exit"][..], 0),
        (format!("{load}, thresholds: {{ http_req_failed: ['rate<0.5'] }}"), &["--k6-exit"][..], 1),
    ] {
        let (_directory, path) =
            script(&format!("export const options = {{ {options} }};\nexport default () => http.get('{url}');"));
        play(&path, flags, status);
    }
}

#[test]
fn a_script_is_checked_and_tried_without_its_load() {
    let server = Server::start(ServerConfig::default()).unwrap();
    let text = format!(
        "export const options = {{ vus: 5, duration: '1h' }};\n\
         export default function () {{ check(http.get('{}items', {{ tags: {{ name: 'items' }} }}), {{ fine: (r) => r.status === 200 }}); }}",
        server.url()
    );
    let (_directory, path) = script(&text);
    let checked = run(["check", &path]).with_status(0);
    assert!(checked.stdout.contains("items") && checked.stdout.contains("fine"), "{checked:#?}");
    assert_eq!(server.requests(), 0);
    let once = run(["run", "--once", &path]).with_status(0);
    assert!(once.stdout.contains("GET /items") && server.requests() == 1, "{once:#?}");
}

/// As in k6, the environment is in `__ENV`, whatever else it holds; a script in the sandbox finds what it is given.
#[test]
fn the_environment_is_for_scripts_that_may_have_it() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    let server = Server::start(ServerConfig::default()).unwrap();
    let text = format!(
        "export default () => {{ http.get('{}'); console.log(`it is ${{__ENV.OF_THE_SHELL}} ${{__ENV.GIVEN}}`); }}",
        server.url()
    );
    let (_directory, path) = script(&text);
    for (flags, said) in [(&[][..], "it is there here"), (&["--sandbox"][..], "it is undefined here")] {
        let mut command = brunt(["run", &path, "--env", "GIVEN=here"]);
        command.args(flags).env("OF_THE_SHELL", "there").env("NO_TEXT", OsStr::from_bytes(b"\xff"));
        let done = done(&mut command).with_status(0);
        assert!(done.stderr.contains(said), "{done:#?}");
    }
}
