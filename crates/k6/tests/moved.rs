//! Parts of scripts, as Lua writes them.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use brunt_k6::{Imported, import};

/// A script whose users do this.
fn moved(body: &str) -> Imported {
    let script = format!(
        "import http from 'k6/http';\nimport {{ check, group, sleep }} from 'k6';\nimport {{ Trend, Gauge }} from 'k6/metrics';\n\
         const BASE = 'http://a.test';\nexport default function (data) {{\n{body}\n}}\n"
    );
    import(&script, "s.js").unwrap_or_else(|error| panic!("{error}: {script}"))
}

#[track_caller]
fn is_moved(body: &str, expected: &str) {
    let moved = moved(body);
    assert!(moved.lua.contains(expected), "{body}\nlacks {expected:?}:\n{}", moved.lua);
    assert!(moved.left.is_empty(), "{body}: {:?}", moved.left);
}

#[test]
fn what_differs_between_the_languages_is_written_out() {
    for (body, expected) in [
        ("let n = 1; if (n) { sleep(1); }", "if truthy(n) then\n    brunt.pause(1)\n  end"),
        ("let n = 1; if (n > 0 && !data.a) { sleep(1); }", "if n > 0 and not truthy(data.a) then"),
        ("const a = [1, 2]; const b = a[0] + a.length;", "local b = a[1] + #a"),
        ("let i = 3; const a = [1]; const b = a[i] - 1;", "local b = a[i + 1] - 1"),
        ("const s = 'a' + 1 + `b${2}`;", "local s = \"a\" .. 1 .. (\"b\" .. 2)"),
        ("let end = 1; end += 2;", "local end_ = 1\n  end_ = end_ + 2"),
        ("const t = data.x === null ? 'a' : 'b';", "local t = data.x == nil and \"a\" or \"b\""),
        ("const { a, b: c } = data;", "local taken = data\n  local a = taken.a\n  local c = taken.b"),
        ("for (const one of [1]) { if (one > 2) continue; sleep(one); }", "goto continue"),
        ("for (let i = 0; i < 3; i++) { sleep(i); }", "for i = 0, 2 do"),
        ("for (let i = 9; i > 3; i -= 2) { sleep(i); }", "while i > 3 do"),
        ("const f = (x) => x * 2; sleep(f(1));", "local function f(x) return x * 2 end"),
        ("const has = 'abc'.indexOf('b') !== -1;", "local has = (\"abc\"):find(\"b\", 1, true) ~= nil"),
        ("const o = { 'a-b': 1, c: null, d: [] };", "{ [\"a-b\"] = 1, c = brunt.null, d = brunt.array {} }"),
        ("sleep(Math.random() * 3 + 2);", "brunt.pause(2, 5)"),
    ] {
        is_moved(body, expected);
    }
}

#[test]
fn requests_have_their_options() {
    for (body, expected) in [
        ("http.get('http://a.test/b?c=1');", "http:get(\"/b?c=1\")"),
        ("http.get('http://a.test');", "http:get(\"/\")"),
        (
            "http.post('http://a.test/b', JSON.stringify({ a: 1 }), { headers: { A: 'b' }, timeout: 1500 });",
            "http:post(\"/b\", { body = brunt.json.encode({ a = 1 }), headers = { A = \"b\" }, timeout = 1.5 })",
        ),
        (
            "http.post('http://a.test/b', { f: http.file('x', 'a.txt') });",
            "http:post(\"/b\", { multipart = { f = { content = \"x\", filename = \"a.txt\" } } })",
        ),
        (
            "const params = { headers: { A: 'b' }, tags: { name: 'n', t: 'u' } }; http.get('http://a.test/', params);",
            "local params = { headers = { A = \"b\" }, name = \"n\", tags = { t = \"u\" } }\n  http:get(\"/\", params)",
        ),
        ("http.del('http://a.test/x', null, { redirects: 0 });", "http:delete(\"/x\", { redirects = false })"),
        (
            "const r = http.get('http://a.test/'); sleep(1); check(r, { a: (r) => r.json('a.0.b') === 1 });",
            "http:get(\"/\"):keep()",
        ),
        (
            "const r = http.get('http://a.test/'); check(r, { a: (r) => r.html('p').text() === 'x' }); sleep(1);",
            "local r = http:get(\"/\")\n  brunt.check(r, { a = function(r) return r:css(\"p\").text == \"x\" end })",
        ),
    ] {
        is_moved(body, expected);
    }
}

#[test]
fn options_say_who_comes() {
    let load = |options: &str| {
        let script = format!(
            "import http from 'k6/http';\nexport const options = {options};\nexport default function () {{ http.get('http://a.test/'); }}"
        );
        import(&script, "s.js").unwrap()
    };
    for (options, expected) in [
        ("{ vus: 3, iterations: 9 }", "brunt.iterations_shared(3, 9)"),
        (
            "{ stages: [{ duration: '0s', target: 5 }, { duration: '1m30s', target: 5 }] }",
            "{ brunt.users(5, \"1m30s\") }",
        ),
        (
            "{ scenarios: { a: { executor: 'constant-arrival-rate', rate: 30, timeUnit: '1m', duration: '2m', preAllocatedVUs: 4 } } }",
            "brunt.rate(0.5, \"2m\"), most_alive = 4",
        ),
        (
            "{ scenarios: { a: { executor: 'ramping-arrival-rate', startRate: 10, stages: [{ target: 20, duration: '1m' }], preAllocatedVUs: 4, startTime: '5s' } } }",
            "brunt.nothing_for(\"5s\"), brunt.ramp_rate(10, 20, \"1m\"), most_alive = 4",
        ),
        (
            "{ thresholds: { 'http_req_duration{status:200}': ['med<200'] } }",
            "[\"{status=200}:service.p50\"] = \"< 200ms\"",
        ),
        (
            "{ thresholds: { 'group_duration{group:::a::b}': [{ threshold: 'avg<200', abortOnFail: true }] } }",
            "[\"group a/b:with_pauses.mean\"] = { \"< 200ms\", abort = true }",
        ),
        ("{ maxRedirects: 0 }", "redirects = false"),
    ] {
        let imported = load(options);
        assert!(imported.lua.contains(expected), "{options}\nlacks {expected:?}:\n{}", imported.lua);
        assert!(imported.left.is_empty(), "{options}: {:?}", imported.left);
    }
    for (options, expected) in [
        (
            "{ scenarios: { a: { executor: 'externally-controlled' } } }",
            "not moved: the executor externally-controlled",
        ),
        ("{ thresholds: { 'http_reqs': ['rate>5'] } }", "not moved: the threshold http_reqs: 'rate>5'"),
        ("{ insecureSkipTLSVerify: true }", "not moved: options.insecureSkipTLSVerify; give --insecure"),
        ("{ tlsVersion: 'x' }", "not moved: options.tlsVersion"),
        ("make()", "not moved: options that are put together while the script runs"),
    ] {
        let left = load(options).left;
        assert!(left.iter().any(|left| left.what == expected), "{options}: {left:?}");
    }
}

#[test]
fn nothing_is_left_out_in_silence() {
    for body in [
        "new WebSocket('ws://a.test');",
        "class A {}",
        "switch (data) { default: sleep(1); }",
        "try { sleep(1); } catch (e) {}",
        "const x = data.match(/a/);",
        "const x = data instanceof A;",
        "const x = http.get('http://a.test/').timings.blocked;",
        "http.get('http://a.test/', { jar: data });",
        "delete data.a;",
        "const x = [...data];",
        "label: for (;;) { break label; }",
        "const x = { ...data };",
        "data.reduce((a, b) => a + b);",
        "const x = http.url`http://a.test/${data}`;",
    ] {
        let imported = moved(body);
        assert!(!imported.left.is_empty(), "{body}:\n{}", imported.lua);
        assert!(imported.lua.contains(&format!("-- line {}", imported.left.first().unwrap().line)), "{}", imported.lua);
    }
}

#[test]
fn any_text_is_moved_or_refused() {
    let script =
        "import http from 'k6/http';\nexport default function () { const a = http.get(`http://a.test/${__VU}`); }";
    for end in 0..script.len() {
        let _ = import(&script[..end], "s.js");
        let mut changed = script.as_bytes().to_vec();
        changed[end] = b'{';
        let _ = import(&String::from_utf8_lossy(&changed), "s.js");
    }
    let deep = format!("export default function () {{ {}1{}; }}", "(".repeat(20_000), ")".repeat(20_000));
    assert!(import(&deep, "deep.js").unwrap_err().to_string().contains("in each other"));
}
