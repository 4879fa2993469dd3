//! Scripts of k6: what is hostile in one ends its user by name and harms no other; flags and exit statuses. What a script sends is tried by the
//! corpus (`crates/javascript/tests/corpus`).

use std::time::Duration;

use brunt_testbed::server::{Delay, Server, ServerConfig};
use serde_json::Value;

use crate::program::{Directory, brunt, done, run};

/// A script of k6 with this text behind its imports, in a directory of its own.
fn script(text: &str) -> (Directory, String) {
    let directory = Directory::new();
    let imports =
        "import http from 'k6/http'; import { check, group, sleep } from 'k6'; import exec from 'k6/execution';\n";
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

/// Runs each of these as the one iteration of a scenario, beside one of 60 calls. Each ends by an error that says this, and the calls are made.
#[track_caller]
fn end_alone(all: &[(&str, &str)]) {
    let server = Server::start(ServerConfig::default()).unwrap();
    let url = server.url();
    let once = "executor: 'per-vu-iterations', iterations: 1";
    let scenarios: Vec<String> = (0..all.len()).map(|at| format!("bad{at}: {{ {once}, exec: 'bad{at}' }}")).collect();
    let function = |(at, (hostile, _)): (usize, &(&str, &str))| {
        let is_async = if hostile.contains("await ") { "async " } else { "" };
        format!("export {is_async}function bad{at}() {{ {hostile} }}\n")
    };
    let text = format!(
        "const URL = '{url}'; export const options = {{ scenarios: {{ {}, good: {{ executor: 'per-vu-iterations', vus: 3, iterations: 20 }} }} }};\n\
         {}export default function () {{ http.get('{url}'); }}",
        scenarios.join(", "),
        all.iter().enumerate().map(function).collect::<String>(),
    );
    let (_directory, path) = script(&text);
    let result = play(&path, &["-t", "1"], 1);
    let listed = result["names"]["scenarios"].as_array().unwrap();
    let scenario =
        |name: &str| listed.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("{name}: {result:#}"));
    assert_eq!(scenario("good")["iterations"], 60);
    for (at, (hostile, said)) in all.iter().enumerate() {
        let own = scenario(&format!("bad{at}"));
        let ended = own["tracebacks"].as_array().map_or(&[][..], Vec::as_slice);
        let [one] = ended else { panic!("{hostile}: {own:#}") };
        let traceback = one["traceback"].as_str().unwrap();
        assert!(one["count"] == 1 && traceback.contains(said), "{hostile}: {traceback}");
    }
}

const TOO_LONG: &str = "5 s of CPU time";
const TOO_DEEP: &str = "Maximum call stack size exceeded";

#[test]
fn whatever_is_thrown_ends_its_user_by_name() {
    end_alone(&[
        ("throw null;", "null"),
        ("throw undefined;", "undefined"),
        ("throw { code: 7 };", r#"{"code":7}"#),
        ("throw Symbol('s');", "Symbol(s)"),
        ("throw 10n;", "10"),
        ("throw '\\ud800x';", "\u{fffd}x"),
        ("throw new Error('\\ud800x');", "Error: \u{fffd}x"),
        ("throw 'x'.repeat(1e7);", "xxx…"),
        ("throw new Error('y'.repeat(1e7));", "yyy…"),
        ("const a = {}; a.a = a; throw a;", "[object Object]"),
        ("throw new Proxy({}, { get() { throw new Error('no'); }, ownKeys() { throw 1; } });", "proxy without a text"),
        (
            "throw new Proxy(new Error('x'), { get() { throw new Error('no'); }, getPrototypeOf() { throw 1; } });",
            "without a text",
        ),
        ("const { proxy, revoke } = Proxy.revocable({}, {}); revoke(); throw proxy;", "without a text"),
        (
            "const e = new Error('x'); Object.defineProperty(e, 'stack', { get() { throw new Error('none'); } }); throw e;",
            "Error: x",
        ),
        (
            "const e = new Error('x'); Object.defineProperty(e, 'name', { get() { sleep(0.01); return 'Slow'; } }); throw e;",
            "Slow: x",
        ),
        (
            "const e = new Error('x'); Object.defineProperty(e, 'message', { get() { return this.message; } }); throw e;",
            "Error",
        ),
        ("throw { toJSON() { throw 1; }, toString() { return 'told'; } };", "told"),
        ("Error.prepareStackTrace = (error, places) => places; throw new Error('y');", "Error: y"),
        ("null.x;", "cannot read property 'x' of null"),
        ("JSON.parse('{');", "s.js:"),
        ("Promise.reject(new Error('nobody caught it'));", "nobody caught it"),
        ("check(1, new Proxy({}, { ownKeys() { throw new Error('keys'); } }));", "Error: keys"),
    ]);
}

#[test]
fn recursion_without_end_ends_its_user() {
    let all = [
        "(function f(n) { return f(n + 1) + 1; })(0);",
        "const f = () => [3, 2, 1].sort(f); f();",
        "const f = () => [3, 2, 1].toSorted(f); f();",
        "const f = () => JSON.parse('[1,2]', f); f();",
        "const o = { toJSON() { return JSON.stringify(o); } }; JSON.stringify(o);",
        "const f = () => JSON.stringify({ a: 1 }, f); f();",
        "const o = { toString() { return String(o); } }; String(o);",
        "const o = { valueOf() { return +o; } }; +o;",
        "const o = { [Symbol.toPrimitive]() { return `${o}`; } }; `${o}`;",
        "const f = () => 'aaa'.replace(/a/g, f); f();",
        "const f = () => 'aaa'.replaceAll('a', f); f();",
        "const o = { get a() { return this.a; } }; o.a;",
        "const o = { set a(x) { this.a = x; } }; o.a = 1;",
        "const p = new Proxy({}, { get(t, k, r) { return r[k]; } }); p.a;",
        "const p = new Proxy({}, { has(t, k) { return k in p; } }); 'a' in p;",
        "const p = new Proxy({}, { ownKeys() { return Object.keys(p); } }); Object.keys(p);",
        "const p = new Proxy({}, { getPrototypeOf() { return Object.getPrototypeOf(p); } }); p instanceof Object;",
        "const p = new Proxy(() => {}, { apply() { return p(); } }); p();",
        "const p = new Proxy(class {}, { construct() { return new p(); } }); new p();",
        "let p = {}; for (let i = 0; i < 1e5; i++) p = new Proxy(p, {}); p.a;",
        "const p = new Proxy({}, {}); Object.setPrototypeOf(p, Object.create(p)); p.none;",
        "function* g() { yield* g(); } g().next();",
        "function* g() { yield [...g()]; } [...g()];",
        "const f = async () => { await f(); }; await f();",
        "async function* g() { yield* g(); } await g().next();",
        "const o = { [Symbol.iterator]() { return [...o]; } }; [...o];",
        "const o = { [Symbol.iterator]() { const [a] = o; } }; const [a] = o;",
        "const f = () => [1].map(f); f();",
        "const f = () => [1, 2].reduce(f); f();",
        "const m = new Map([[1, 1]]); const f = () => m.forEach(f); f();",
        "const f = () => eval('f()'); f();",
        "const t = { get then() { return Promise.resolve(t).then; } }; await t;",
        "class A extends Array { static get [Symbol.species]() { return A.from([1]).map((x) => x).constructor; } } new A(1, 2).map((x) => x);",
        "const f = () => group('a', f); f();",
        "const f = () => check(1, { a: f }); f();",
        "const u = { toString() { return http.get(u).body; } }; http.get(u);",
        "const p = { get headers() { return http.get(URL, p); } }; http.get(URL, p);",
        "const b = { get x() { return http.post(URL, b); } }; http.post(URL, b);",
        "const o = { toJSON() { console.log(o); return 1; } }; console.log(o);",
        "let a = []; for (let i = 0; i < 1e4; i++) a = [a]; JSON.stringify(a);",
        "let a = []; for (let i = 0; i < 1e5; i++) a = [a]; a.flat(Infinity);",
        "JSON.parse('['.repeat(1e6));",
        "eval('('.repeat(1e6));",
        "eval('`${'.repeat(1e5));",
        "Error.stackTraceLimit = Infinity; const f = () => f(); f();",
    ];
    end_alone(&all.map(|hostile| (hostile, TOO_DEEP)));
}

#[test]
fn loops_without_end_end_their_user() {
    end_alone(&[
        ("while (true);", TOO_LONG),
        ("try { for (;;) {} } catch (e) {} finally { for (;;) {} }", TOO_LONG),
        ("/^(a+)+$/.test('a'.repeat(40) + 'b');", TOO_LONG),
        ("'x'.repeat(60).replace(/(x+x+)+y/g, 'a');", TOO_LONG),
        ("const e = new Error('x'); Object.defineProperty(e, 'stack', { get() { for (;;); } }); throw e;", TOO_LONG),
        ("throw { toJSON() { for (;;); } };", TOO_LONG),
    ]);
}

#[test]
fn promises_without_end_end_their_user() {
    end_alone(&[
        ("const f = () => { Promise.resolve().then(f); }; f();", TOO_LONG),
        (
            "let n = 1000; const f = () => { if (n-- > 0) Promise.resolve().then(f).catch(f); Promise.resolve().then(f).catch(f); }; f();",
            TOO_LONG,
        ),
        ("for (;;) await null;", TOO_LONG),
        (
            "const f = async () => { for (;;) { try { await null; } catch {} } }; f(); f(); await new Promise(() => {});",
            TOO_LONG,
        ),
        ("const t = { then(go) { go(t); } }; await t;", TOO_LONG),
        (
            "const all = new FinalizationRegistry(() => { for (;;); }); for (let i = 0; i < 1e4; i++) all.register({}, 1);",
            TOO_LONG,
        ),
    ]);
}

#[test]
fn arrays_and_texts_beyond_measure_end_their_user() {
    end_alone(&[
        ("const all = []; while (true) all.push(new ArrayBuffer(1e7));", "out of memory"),
        ("const all = []; for (let i = 0; ; i++) all.push('x'.repeat(1e6) + i);", "out of memory"),
        ("let s = 'x'; for (;;) s += s;", "string too long"),
        ("new ArrayBuffer(2 ** 53 - 1);", "RangeError"),
        ("Array.from({ length: 2 ** 53 - 1 });", "RangeError"),
        ("const all = []; for (;;) all.push([{}, {}, {}, {}]);", "out of memory"),
        ("[[new Array(4294967295)]].flat(2);", TOO_LONG),
        ("JSON.stringify({}, new Proxy(new Array(4294967295), {}));", TOO_LONG),
    ]);
}

/// What a script puts in place of functions of the language is called by its own code, and by nobody else.
#[test]
fn prototypes_that_a_script_changes_are_its_own() {
    let all = [
        "Object.prototype.toJSON = () => { throw new Error('own'); }; http.get(URL); JSON.stringify({});",
        "Object.prototype.headers = { a: 'b' }; Object.prototype.status = 1; Object.prototype.get = () => 1; if (http.get(URL).status === 200) throw new Error('own');",
        "Array.prototype.push = Array.prototype.map = Array.prototype[Symbol.iterator] = () => { throw new Error('own'); }; [].map();",
        "Promise.prototype.then = () => { throw new Error('own'); }; http.get(URL); Promise.resolve().then();",
        "JSON.parse = JSON.stringify = () => { throw new Error('own'); }; http.get(URL); JSON.parse();",
        "Function.prototype.call = Function.prototype.apply = () => { throw new Error('own'); }; http.get(URL); http.get.call();",
        "Map.prototype.get = Map.prototype.set = Set.prototype.has = () => { throw new Error('own'); }; new Map().get();",
        "RegExp.prototype.exec = RegExp.prototype.test = () => { throw new Error('own'); }; /a/.test('a');",
        "String.prototype.replace = String.prototype.split = String.prototype.slice = () => { throw new Error('own'); }; 'a'.slice();",
        "Object.defineProperty(Object.prototype, 'name', { get() { throw new Error('own'); }, set() { throw new Error('own'); } }); ({}).name;",
        "globalThis.Promise = globalThis.Date = undefined; http.get(URL); throw 'own';",
        "Error.prototype.toString = () => { throw 1; }; Object.setPrototypeOf(Error.prototype, null); throw new Error('own');",
        "Object.setPrototypeOf(Object.getPrototypeOf(http.get(URL)), new Proxy({}, { get() { throw new Error('own'); } })); http.get(URL).none;",
        "Object.freeze(Object.prototype); Object.freeze(Array.prototype); http.get(URL); throw new Error('own');",
    ];
    end_alone(&all.map(|hostile| (hostile, "own")));
}

/// The runtime of a user that was cut off is not used again: what its script was in the midst of would go on.
#[test]
fn a_user_that_was_cut_off_begins_anew() {
    let server = Server::start(ServerConfig::default()).unwrap();
    let text = format!(
        "export const options = {{ vus: 1, iterations: 3 }};\nlet count = 0;\n\
         export default async function () {{ count += 1; if (__ITER === 0) {{ const f = async () => {{ for (;;) await null; }}; f(); await f(); }}\n\
         http.get('{}' + count); }}",
        server.url()
    );
    let (_directory, path) = script(&text);
    let result = play(&path, &["-t", "1"], 1);
    assert_eq!(result["outcomes"]["answered"], 2, "{result:#}");
    let ended = tracebacks(&result);
    assert!(matches!(ended.as_slice(), [(traceback, 1)] if traceback.contains(TOO_LONG)), "{ended:?}");
}

/// Timers that are due again at once let others go on, and end with their iteration.
#[test]
fn timers_without_end_wait_for_others() {
    let server = Server::start(ServerConfig::default()).unwrap();
    let text = format!(
        "export const options = {{ scenarios: {{\n\
         timers: {{ executor: 'constant-vus', vus: 1, duration: '1s', gracefulStop: '0s', exec: 'timers' }},\n\
         good: {{ executor: 'per-vu-iterations', vus: 3, iterations: 20 }} }} }};\n\
         export function timers() {{ const again = () => setTimeout(again, 0); again(); }}\n\
         export default function () {{ http.get('{}'); }}",
        server.url()
    );
    let (_directory, path) = script(&text);
    let result = play(&path, &["-t", "1"], 0);
    assert_eq!(result["outcomes"]["answered"], 60, "{result:#}");
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
        "export const options = {{ scenarios: {{ a: {{ executor: 'constant-vus', vus: 1000, duration: '3s', gracefulStop: '0s' }} }} }};\n\
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
