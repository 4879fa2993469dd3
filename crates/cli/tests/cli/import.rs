//! `brunt import k6`: a script of k6, turned into Lua that runs.

use brunt_testbed::server::{Config, Server};
use serde_json::Value;

use crate::program::{Directory, run};

/// What a script of k6 says, as Lua in a file; and what was said on stderr.
fn imported(directory: &Directory, script: &str) -> (String, String) {
    let file = directory.file("script.js", script);
    let lua = directory.path("script.lua");
    let done = run(["import", "k6", &file, "-o", &lua]).with_status(0);
    (lua, done.stderr)
}

#[test]
fn a_moved_script_does_what_it_did() {
    let server = Server::start(Config::default()).unwrap();
    let base = server.url().trim_end_matches('/').to_owned();
    let directory = Directory::new();
    directory.file("users.json", r#"{"users": [{"name": "ann"}, {"name": "bob"}]}"#);
    let script = format!(
        r#"import http from "k6/http";
import {{ check, group, sleep, fail }} from "k6";
import {{ SharedArray }} from "k6/data";
import {{ Counter, Rate, Trend }} from "k6/metrics";
import exec from "k6/execution";
import encoding from "k6/encoding";

const BASE = __ENV.BASE || "{base}";
const users = new SharedArray("users", function () {{ return JSON.parse(open("./users.json")).users; }});
const odd = new Counter("odd"), held = new Rate("held"), size = new Trend("size");
let visits = 0;

export const options = {{
  scenarios: {{
    browse: {{ executor: "per-vu-iterations", vus: 2, iterations: 3, exec: "browse" }},
    buy: {{ executor: "shared-iterations", vus: 2, iterations: 4, exec: "buy" }},
  }},
  thresholds: {{
    "http_req_duration{{name:item}}": ["p(95)<5000", "max<9000"],
    checks: ["rate==1"],
    odd: ["count==12"],
    held: ["rate>0.4"],
    "iterations{{scenario:buy}}": ["count==4"],
  }},
}};

function name(of) {{
  return of.name.toUpperCase() + `-${{__VU}}`;
}}

export function setup() {{
  return {{ token: encoding.b64encode("t") }};
}}

export function browse(data) {{
  visits++;
  for (let i = 0; i < 2; i++) {{
    const res = http.get(`${{BASE}}/shop/items/${{i + 1}}`, {{ tags: {{ name: "item", kind: "read" }} }});
    sleep(0.01);
    check(res, {{
      "is 200": (r) => r.status === 200 && r.body.length > 0,
      "has a number": (r) => r.json("id") === i + 1,
      "is json": (r) => r.headers["Content-Type"].includes("json"),
    }});
    if (i % 2 === 1) {{ continue; }}
    size.add(res.body.length);
  }}
  held.add(visits > 1);
  check(visits, {{ "visits are one's own": (v) => v === exec.vu.iterationInScenario + 1 }});
}}

export function buy(data) {{
  let found = 0;
  group("cart", () => {{
    const answers = http.batch([["GET", BASE + "/shop/items"], {{ method: "GET", url: BASE + "/shop/" }}]);
    found = answers[0].json("items.#");
    const login = http.post(`${{BASE}}/shop/login`, {{ user: "ann", password: "wrong" }}, {{
      responseCallback: http.expectedStatuses(403, {{ min: 400, max: 422 }}),
    }});
    check(login, {{ "is refused": (r) => r.status >= 400 }});
  }});
  check(found, {{ "some": found > 0, "data is there": data.token === "dA==" }});
  check(name(users[0]), {{ "name": (n) => n.startsWith("ANN-") && n !== "ANN-0" }});
  if (__ITER < 0) {{ fail("never"); }}
  [1, 2, 3].forEach((n) => {{ odd.add(1, {{ n: "a" }}); }});
}}
"#
    );
    let (lua, said) = imported(&directory, &script);
    let text = std::fs::read_to_string(&lua).unwrap();
    assert!(said.contains("script.lua: "), "{said}");
    assert!(!text.contains("not_moved"), "{text}\n{said}");
    let done = run(["run", &lua, "-t", "1", "--format", "json"]);
    let json: Value = serde_json::from_str(&done.stdout).unwrap_or_else(|error| panic!("{error}: {done:#?}\n{text}"));
    let failed: Vec<_> = json["thresholds"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["held"] != true)
        .map(ToString::to_string)
        .collect();
    let checks = json["names"]["checks"].as_array().unwrap();
    let not_held: Vec<_> = checks.iter().filter(|one| one["fails"] != 0).map(ToString::to_string).collect();
    let errors = &json["names"]["scenarios"];
    assert!(
        done.status == Some(0) && failed.is_empty() && not_held.is_empty(),
        "{failed:?} {not_held:?}\n{errors:#}\n{text}"
    );
    let due = |name: &str| {
        let all = json["names"]["requests"].as_array().unwrap();
        all.iter()
            .find(|one| one["name"].as_str().unwrap().ends_with(name))
            .map_or(0, |one| one["due"].as_u64().unwrap())
    };
    assert_eq!((due("item"), due("/shop/login")), (2 * 3 * 2, 4), "{text}");
    assert_eq!(json["outcomes"]["due"], 12 + 4 * 3);
}

#[test]
fn what_is_not_moved_is_said_and_raises_an_error() {
    let server = Server::start(Config::default()).unwrap();
    let directory = Directory::new();
    let script = format!(
        "import http from 'k6/http';\nimport ws from 'k6/ws';\nexport default function () {{\n  http.get('{}');\n  ws.connect('ws://127.0.0.1:1/', null, function (socket) {{}});\n}}\n",
        server.url()
    );
    let (lua, said) = imported(&directory, &script);
    assert!(said.contains("script.js:5: not moved: ws.connect(") && said.contains("1 line needs a look"), "{said}");
    let text = std::fs::read_to_string(&lua).unwrap();
    assert!(
        text.contains("not_moved(5, \"ws.connect(") && text.contains("\n-- line 5: not moved: ws.connect("),
        "{text}"
    );
    let failed = run(["run", &lua, "--max-error-rate", "1%"]).with_status(1);
    assert!(failed.stdout.contains("line 5 of the script for k6"), "{failed:#?}");
}

#[test]
fn what_is_no_script_is_refused() {
    let directory = Directory::new();
    for (name, text, said) in [
        ("a.js", "export default function () {\n  let = ;\n}\n", "line 2 is not JavaScript: let = ;"),
        ("a.ts", "const a: number = 1;\n", "take the types out of TypeScript first"),
        ("b.js", "const a = 1;\n", "no function is exported"),
        ("c.js", "", "no function is exported"),
    ] {
        let file = directory.file(name, text);
        let refused = run(["import", "k6", &file]).with_status(2);
        assert!(refused.stderr.contains("cannot import") && refused.stderr.contains(said), "{name}: {refused:#?}");
    }
    run(["import", "k6", "/no/such.js"]).with_status(2);
}
