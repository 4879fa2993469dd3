//! `brunt import har|openapi|postman|curl`, run against the built-in shop to green checks; `brunt curl`.

use std::process::{Command, Stdio};

use brunt_testbed::server::{Server, ServerConfig};
use serde_json::{Value, json};

use crate::program::{Directory, run};

/// Runs what was imported from a file, with a password where it wants one; the result, which is green.
fn green(directory: &Directory, kind: &str, document: &str, more: &[&str]) -> (Value, String) {
    let file = directory.file("document", document);
    let lua = directory.path("made.lua");
    let import = [&["import", kind, &file, "-o", &lua][..], more].concat();
    let said = run(import).with_status(0).stderr;
    let text = std::fs::read_to_string(&lua).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_brunt"));
    command
        .env("BRUNT_NO_SAVE", "1")
        .env("PASSWORD", "pw-ann")
        .env("LOGIN_USER", "ann")
        .env("LOGIN_PASSWORD", "pw-ann");
    command.args(["run", &lua, "-t", "1", "--format", "json"]);
    for secret in ["PASSWORD", "LOGIN_USER", "LOGIN_PASSWORD"] {
        if text.contains(&format!("brunt.env(\"{secret}\")")) {
            command.args(["--env", secret]);
        }
    }
    let done = command.output().unwrap();
    let shown = String::from_utf8_lossy(&done.stdout).into_owned();
    let result: Value = serde_json::from_str(&shown)
        .unwrap_or_else(|error| panic!("{error}: {}\n{text}", String::from_utf8_lossy(&done.stderr)));
    let checks = result["names"]["checks"].as_array().unwrap();
    let failed: Vec<_> = checks.iter().filter(|check| check["fails"] != 0).map(ToString::to_string).collect();
    assert!(!checks.is_empty() && failed.is_empty(), "{failed:?}\n{text}");
    assert_eq!(done.status.code(), Some(0), "{:#}\n{text}", result["names"]["scenarios"]);
    assert!(!text.contains("pw-ann"), "{text}");
    (result, format!("{text}\n{said}"))
}

fn due(result: &Value, name: &str) -> u64 {
    let all = result["names"]["requests"].as_array().unwrap();
    all.iter().filter(|one| one["name"] == name).map(|one| one["due"].as_u64().unwrap()).sum()
}

#[test]
fn a_recording_is_gone_through_again() {
    let server = Server::start(ServerConfig::default()).unwrap();
    let base = server.url().trim_end_matches('/').to_owned();
    let mut at = 0;
    let mut entry = |kind: &str, method: &str, path: &str, sent: Value, status: u16, headers: Value, answer: &str| {
        at += 40;
        let mime = if answer.starts_with('<') { "text/html" } else { "application/json" };
        json!({"_resourceType": kind, "pageref": "p", "startedDateTime": format!("2026-11-26T10:00:00.{at:03}Z"), "time": 1,
            "request": {"method": method, "url": format!("{base}{path}"), "postData": sent,
                "headers": [{"name": "User-Agent", "value": "B/1"}, {"name": "Sec-Fetch-Mode", "value": "cors"}]},
            "response": {"status": status, "headers": headers, "content": {"mimeType": mime, "text": answer}}})
    };
    let form = |text: &str| json!({"mimeType": "application/x-www-form-urlencoded", "text": text});
    // The token and the cart are those of another time: they are taken only if they are carried on.
    let entries = [
        entry(
            "document",
            "GET",
            "/shop/login",
            Value::Null,
            200,
            json!([]),
            "<title>Log in</title><input name=token value=form9.00000000>",
        ),
        entry("stylesheet", "GET", "/shop/style.css", Value::Null, 200, json!([]), ""),
        entry(
            "document",
            "POST",
            "/shop/login",
            form("user=ann&password=pw-ann&token=form9.00000000"),
            303,
            json!([{"name": "Location", "value": "/shop/account"}, {"name": "Set-Cookie", "value": "session=ann.00000000"}]),
            "",
        ),
        entry("document", "GET", "/shop/account", Value::Null, 200, json!([]), "{}"),
        entry(
            "fetch",
            "POST",
            "/shop/cart",
            json!({"mimeType": "application/json", "text": "{\"item\":3,\"count\":2}"}),
            201,
            json!([]),
            "{\"id\":\"1-1-ann.00000000\"}",
        ),
        entry("fetch", "GET", "/shop/cart/1-1-ann.00000000", Value::Null, 200, json!([]), "{}"),
        entry("fetch", "POST", "/shop/checkout", form("cart=1-1-ann.00000000"), 200, json!([]), "{}"),
        entry("fetch", "GET", "/shop/items/999", Value::Null, 404, json!([]), "{}"),
    ];
    let archive = json!({"log": {"entries": entries}}).to_string();
    let directory = Directory::new();
    let (result, text) = green(&directory, "har", &archive, &[]);
    assert_eq!(result["outcomes"]["due"], 7, "{text}");
    assert_eq!((due(&result, "GET /shop/cart/:cart_id"), due(&result, "POST /shop/login")), (1, 1), "{text}");
    assert!(text.contains("brunt.group(\"Log in\"") && text.contains("--env PASSWORD"), "{text}");
    let (result, text) = green(&directory, "har", &archive, &["--assets"]);
    assert_eq!(due(&result, "assets"), 1, "{text}");
}

#[test]
fn an_openapi_description_is_called() {
    let server = Server::start(ServerConfig::default()).unwrap();
    let base = server.url().trim_end_matches('/').to_owned();
    let description = format!(
        r"
openapi: 3.0.0
info: {{title: The shop, version: '1'}}
servers: [{{url: '{base}/shop'}}]
components:
  securitySchemes: {{login: {{type: http, scheme: basic}}}}
  schemas:
    Item: {{type: object, required: [id, name, price_cents], properties: {{id: {{type: integer}}}}}}
paths:
  /items:
    get:
      operationId: items
      parameters: [{{name: page, in: query, required: true, schema: {{type: integer, minimum: 2}}}}]
      responses: {{'200': {{description: ok, content: {{application/json: {{schema: {{required: [page, items]}}}}}}}}}}
  /items/{{id}}:
    get:
      operationId: item
      parameters: [{{name: id, in: path, required: true, schema: {{type: integer}}}}]
      responses: {{2XX: {{description: ok, content: {{application/json: {{schema: {{$ref: '#/components/schemas/Item'}}}}}}}}}}
  /login:
    post:
      operationId: login
      requestBody:
        content:
          application/x-www-form-urlencoded:
            schema: {{type: object, properties: {{user: {{type: string, example: ann}}, password: {{type: string, example: wrong}}}}}}
      responses: {{'401': {{description: wrong}}}}
  /private:
    get: {{operationId: private, security: [{{login: []}}], responses: {{'200': {{description: ok}}}}}}
  /upload:
    post:
      operationId: upload
      requestBody:
        content:
          multipart/form-data:
            schema: {{type: object, properties: {{file: {{type: string, format: binary}}, note: {{type: string}}}}}}
      responses: {{'200': {{description: ok}}}}
"
    );
    let directory = Directory::new();
    let (result, text) = green(&directory, "openapi", &description, &[]);
    assert_eq!(result["outcomes"]["due"], 5, "{text}");
    assert!(text.contains("everything was moved"), "{text}");
}

#[test]
fn a_postman_collection_is_gone_through() {
    let server = Server::start(ServerConfig::default()).unwrap();
    let base = server.url().trim_end_matches('/').to_owned();
    let test = |lines: &[&str]| json!([{"listen": "test", "script": {"exec": lines}}]);
    let collection = json!({"info": {"name": "The shop"}, "variable": [{"key": "base", "value": format!("{base}/shop")}, {"key": "password", "value": "pw-ann"}],
        "item": [{"name": "Shop", "item": [
            {"name": "login", "request": {"method": "POST", "url": "{{base}}/login", "body": {"mode": "urlencoded", "urlencoded": [
                {"key": "user", "value": "ann"}, {"key": "password", "value": "{{password}}"}]}},
             "event": test(&["pm.test('in', () => pm.expect(pm.response.json().user).to.eql('ann'));"])},
            {"name": "add", "request": {"method": "POST", "url": "{{base}}/cart", "body": {"mode": "raw", "raw": "{\"item\": 3}", "options": {"raw": {"language": "json"}}}},
             "event": test(&["pm.test('made', function () {", "pm.response.to.have.status(201);", "});", "pm.environment.set('cart', pm.response.json().id);"])},
            {"name": "cart", "request": {"url": "{{base}}/cart/:id", "auth": {"type": "noauth"}}},
            {"name": "see", "request": {"url": {"raw": "{{base}}/cart/:id", "variable": [{"key": "id", "value": "{{cart}}"}]}},
             "event": test(&["pm.expect(pm.response.responseTime).to.be.below(60000)", "pm.response.to.have.jsonBody('total_cents')"])}]}]});
    let directory = Directory::new();
    let mut known = collection.clone();
    // One whose id is not given is not found: that is no green run.
    known["item"][0]["item"].as_array_mut().unwrap().remove(2);
    let (result, text) = green(&directory, "postman", &known.to_string(), &[]);
    assert_eq!((due(&result, "see"), result["outcomes"]["due"].as_u64()), (1, Some(4)), "{text}");
    let file = directory.file("all.json", collection.to_string());
    let lua = directory.path("all.lua");
    run(["import", "postman", &file, "-o", &lua]).with_status(0);
    run(["run", &lua, "-t", "1", "--env", "PASSWORD=pw-ann", "--max-error-rate", "1%"]).with_status(1);
}

#[test]
fn commands_of_curl_are_a_scenario() {
    let server = Server::start(ServerConfig::default()).unwrap();
    let base = server.url().trim_end_matches('/').to_owned();
    let directory = Directory::new();
    directory.file("item.json", "{\"item\": 4}");
    let commands = format!(
        "# what users do\ncurl -sL -c jar {base}/shop/login \\\n  -d user=ann --data-urlencode 'password=pw-ann'\n\
         curl -b jar '{base}/shop/cart' -H 'Content-Type: application/json' -d @item.json\n\
         curl {base}/shop/upload -F f=@item.json -F 'n=a;b'\ncurl -u ann:pw-ann {base}/shop/private | cat\n\
         curl -X PUT $'{base}/_/echo' --data-raw $'a\\'b' && curl -I --compressed {base}/shop/\n"
    );
    let (result, text) = green(&directory, "curl", &commands, &[]);
    assert_eq!(result["outcomes"]["due"], 7, "{text}");
    for left in ["line 6: not moved: cat, which is not curl", "@item.json: a script reads files"] {
        assert!(text.contains(left), "lacks {left}: {text}");
    }
    let given = run(["import", "curl", &format!("curl {base}/x -H \"A: b\"")]).with_status(0);
    assert!(given.stdout.contains("http:get(\"/x\", { headers = { A = \"b\" }"), "{given:#?}");
}

#[test]
fn a_command_of_curl_is_a_load() {
    let server = Server::start(ServerConfig::default()).unwrap();
    let base = server.url().trim_end_matches('/').to_owned();
    let line = format!("curl -sX PUT {base}/_/echo -H 'X: y' -d 'a=1'");
    let json = |words: &[&str]| -> Value {
        let done = run(words).with_status(0);
        serde_json::from_str(&done.stdout).unwrap()
    };
    let pasted = json(&["curl", &line, "-n", "20", "-c", "2", "--format", "json"]);
    assert_eq!((&pasted["outcomes"]["due"], &pasted["outcomes"]["answered"]), (&json!(20), &json!(20)));
    let url = format!("{base}/_/echo");
    let words = json(&["curl", "-n", "10", "--format", "json", "--", "--json", "{}", &url]);
    assert_eq!(words["outcomes"]["answered"], 10);
    let once = run(["curl", &line, "--once"]).with_status(0);
    for sent in ["PUT /_/echo HTTP/1.1", "X: y", "a=1", "application/x-www-form-urlencoded"] {
        assert!(once.stdout.contains(sent), "lacks {sent}: {once:#?}");
    }
    assert!(once.stderr.contains("what curl shows and keeps is left out: --silent"), "{once:#?}");

    let mut fed = Command::new(env!("CARGO_BIN_EXE_brunt"));
    fed.args(["curl", "-", "-n", "3", "--quiet"]).env("BRUNT_NO_SAVE", "1").stdin(Stdio::piped());
    let mut fed = fed.spawn().unwrap();
    std::io::Write::write_all(&mut fed.stdin.take().unwrap(), line.as_bytes()).unwrap();
    assert!(fed.wait().unwrap().success());

    for (words, said) in [
        (vec!["curl", &base], "takes a command line in quotes"),
        (vec!["curl", "curl -L http://127.0.0.1:1/"], "follows no redirects"),
        (vec!["curl", "curl --frobnicate http://127.0.0.1:1/"], "--frobnicate is not an option of curl"),
        (vec!["curl", "curl http://127.0.0.1:1/", "--frobnicate"], "--frobnicate"),
    ] {
        let refused = run(&words).with_status(2);
        assert!(refused.stderr.contains(said), "{words:?}: {refused:#?}");
    }
    assert!(run(["curl", "--help"]).with_status(0).stdout.contains("brunt curl 'curl …' [OPTIONS]"));
}

#[test]
fn what_cannot_be_imported_is_refused() {
    let directory = Directory::new();
    for (kind, text, said) in [
        ("har", "{", "line 1, column 1: not JSON"),
        ("har", "{}", "not an HTTP archive"),
        ("openapi", "a: 1", "not an OpenAPI description"),
        ("openapi", "swagger: '1.2'", "it is Swagger 1"),
        ("postman", "{}", "not a Postman collection"),
        ("curl", "wget x", "begins with curl"),
        ("curl", "curl $(x)", "line 1: $(…) runs another program"),
    ] {
        let file = directory.file("wrong", text);
        let refused = run(["import", kind, &file]).with_status(2);
        assert!(
            refused.stderr.contains("cannot import") && refused.stderr.contains(said),
            "{kind} {text}: {refused:#?}"
        );
        run(["import", kind, "/no/such"]).with_status(2);
    }
}
