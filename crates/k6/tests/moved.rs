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
        ("const a = [1, 2]; const b = a[0] - a.length;", "local b = a[1] - #a"),
        ("let i = 3; const a = [1]; const b = a[i] - 1;", "local b = a[i + 1] - 1"),
        ("const s = 'a' + 1 + `b${2}`;", "local s = \"a\" .. 1 .. (\"b\" .. 2)"),
        ("let end = 1; end += 2;", "local end_ = 1\n  end_ = end_ + 2"),
        ("const t = data.x === null ? 'a' : 'b';", "local t = absent(data.x) and \"a\" or \"b\""),
        ("const t = data.x === undefined ? 'a' : 'b';", "local t = data.x == nil and \"a\" or \"b\""),
        ("const t = typeof data.x === 'undefined' || typeof data.x !== 'object';", "type(data.x) ~= \"table\""),
        ("const t = data.x || 'none';", "local t = either(data.x, \"none\")"),
        ("const t = data.x ?? 'none';", "if absent(value) then return \"none\" end"),
        ("const t = data.x && data.x.y;", "local t = truthy(data.x) and data.x.y"),
        ("let t = 'a'; t += data.x; t ||= 'b';", "t = t .. tostring(data.x)\n  if not truthy(t) then t = \"b\" end"),
        ("const t = __ITER % 2, u = Math.trunc(1.5) % 2;", "local u = math.fmod((math.modf(1.5)), 2)"),
        ("const t = parseInt('ff', 16);", "(math.modf(tonumber(\"ff\", 16)))"),
        ("const t = data?.x;", "local t = (data or {}).x"),
        ("const t = { ...data, a: 1 };", "local t = merged(data, { a = 1 })"),
        ("const t = data.list.map((x, i) => i);", "made[place] = f(value, place - 1)"),
        ("let t; for (t of [1, 2]) { sleep(t); }", "for _, each in ipairs({ 1, 2 }) do\n    t = each"),
        ("if (__ENV.A) { sleep(1); }", "if brunt.env(\"A\", \"\") ~= \"\" then"),
        (
            "const t = __ENV.A === 'b' || __ENV.A === undefined;",
            "(brunt.env(\"A\", \"\") == \"b\") or (brunt.env(\"A\", \"\") == \"\")",
        ),
        ("sleep(parseFloat(__ENV.A));", "tonumber(brunt.env(\"A\"))"),
        ("const map = 1, type = 2; sleep(map + type);", "brunt.pause(map_ + type_)"),
        ("const t = JSON.parse(data);", "assert(brunt.json.decode(data))"),
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
            "const r = http.get('http://a.test/'); check(r, { a: (r) => r.html('a').attr('href') === 'x' }); sleep(1);",
            "local r = http:get(\"/\")\n  brunt.check(r, { a = function(r) return r:css(\"a\"):attr(\"href\") == \"x\" end })",
        ),
        (
            "const r = http.get('http://a.test/'); check(r, { a: (r) => { return r.body.length; } });",
            "a = function(r)\n      do return truthy(#r.body) end",
        ),
        (
            "const q = http.get('http://a.test/'); check(q, { a: (answer) => answer.error === '' });",
            "function(answer) return (answer.error or \"\") == \"\" end",
        ),
        (
            "const params = { headers: { A: 'b' }, tags: { name: 'n' }, responseCallback: http.expectedStatuses(404) }; http.post('http://a.test/', 'x', params);",
            "http:post(\"/\", merged(params, { body = \"x\" }))",
        ),
        (
            "const base = { headers: { A: 'b' } }; http.get('http://a.test' + data.path);",
            "http:get(\"http://a.test\" .. tostring(data.path))",
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
fn what_users_change_at_the_top_is_each_users_own() {
    let script = "import http from 'k6/http';\nconst BASE = 'http://a.test';\nlet token = '';\nconst session = { seen: [] };\n\
        const params = { headers: {}, tags: { name: 'n' } };\nconst list = [1];\nfunction add(x) { session.seen.push(x); }\n\
        export function setup() { token = 'x'; return { token }; }\n\
        export default function () { params.headers.A = token; add(list[0]); http.get(`${BASE}/`, params); }";
    let moved = import(script, "s.js").unwrap();
    for expected in [
        "  brunt.user.token = \"\"\n  brunt.user.session = { seen = brunt.array {} }\n  brunt.user.params = { headers = {}, name = \"n\" }\nend",
        "table.insert(brunt.user.session.seen, x)",
        "brunt.user.params.headers.A = brunt.user.token",
        "brunt.setup(function()\n  begin({ id = 0, iteration = 1 })\n  brunt.user.token = \"x\"",
        "function(vu)\n  begin(vu)",
        "local list = { 1 }",
    ] {
        assert!(moved.lua.contains(expected), "lacks {expected:?}:\n{}", moved.lua);
    }
    assert!(moved.left.is_empty(), "{:?}", moved.left);
    let unclear = "import http from 'k6/http';\nlet token;\nfunction login(token) { return token; }\n\
        export default function () { token = login(1); http.get('http://a.test/'); }";
    let left = import(unclear, "s.js").unwrap().left;
    assert!(left.iter().any(|left| left.what.contains("users of a thread share it")), "{left:?}");
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
        "const x = isNaN(data);",
        "const x = window.a;",
        "const x = data + 1;",
        "const x = data == 1;",
        "const x = typeof data;",
        "x = 1;",
        "[data.a, data.b] = data.c;",
        "for (const x in data.list) { sleep(x); }",
        "if (data) { var x = 1; } sleep(x);",
        "data?.f();",
        "Math.max(...data);",
        "http.get('http://a.test/', { ...data });",
        "http.get('http://a.test/', data.params);",
        "http.get('http://a.test/', { tags: { [data]: 'x' } });",
        "http.get('http://a.test/', { cookies: { a: 'b', c: data.d } });",
        "http.batch([data.one]);",
        "const r = http.get('http://a.test/'); check(r, { a: (q) => q.status_text === 'OK' });",
        "const r = http.get('http://a.test/'); const u = r.url;",
        "const t = http.get('http://a.test/').html().find('p').text();",
        "const x = new Date() - 1;",
        "const x = data.toFixed(data.n);",
        "const x = JSON.stringify(data, null, 2);",
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
