//! Whatever a document says, what is made of it is Lua that parses; and no document makes a panic.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use brunt_imports::{Files, HarOptions, ImportError, Imported, curl, curl_command, har, openapi, postman};
use proptest::prelude::*;
use serde_json::{Value, json};

const NO_FILES: Files = &|_| Err(std::io::ErrorKind::NotFound.into());

/// Texts that would end a text, a comment or a table of Lua, or stand for something else in a document.
const NASTY: [&str; 24] = [
    "end",
    "]]",
    "--[[",
    "\"",
    "\\",
    "\n",
    "a\nb()",
    "\r",
    "\0",
    "'",
    "{{$guid}}",
    "{{end}}",
    "{{a\"b}}",
    "$.a",
    "%s%",
    "/",
    "?a=b&c",
    "http://b.test/\"x",
    ":id",
    "\u{202e}",
    "é",
    "{end}",
    "#/a",
    "local x = \"",
];

/// Holds what was made to be a script that Lua can read.
fn parses(imported: Result<Imported, ImportError>, of: &str) {
    let Ok(imported) = imported else { return };
    let lua = mlua::Lua::new();
    if let Err(error) = lua.load(imported.lua.as_str()).into_function() {
        panic!("{error}\nof {of}\n{}", imported.lua);
    }
    assert!(!imported.lua.contains('\r') && !imported.lua.contains('\0'));
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => proptest::sample::select(&NASTY[..]).prop_map(str::to_owned),
        1 => (proptest::sample::select(&NASTY[..]), proptest::sample::select(&NASTY[..])).prop_map(|(a, b)| format!("{a}{b}")),
        1 => ".{0,20}",
        1 => "[a-zA-Z0-9]{8,20}",
    ]
}

/// Puts a text in the place of the `at`-th key or text of a document.
fn put(value: &mut Value, at: &mut usize, text: &str) {
    match value {
        Value::String(known) => {
            if *at == 0 {
                text.clone_into(known);
            }
            *at = at.wrapping_sub(1);
        }
        Value::Array(all) => all.iter_mut().for_each(|one| put(one, at, text)),
        Value::Object(fields) => {
            let names: Vec<String> = fields.keys().cloned().collect();
            for name in names {
                let Some(mut one) = fields.remove(&name) else { continue };
                put(&mut one, at, text);
                let name = if *at == 0 { text.to_owned() } else { name };
                *at = at.wrapping_sub(1);
                fields.insert(name, one);
            }
        }
        _ => {}
    }
}

fn changed(mut document: Value, changes: &[(usize, String)]) -> String {
    for (at, text) in changes {
        put(&mut document, &mut at.clone(), text);
    }
    document.to_string()
}

fn recording() -> Value {
    let entry = |method: &str, url: &str, sent: Value, answer: &str| {
        json!({"pageref": "p", "startedDateTime": "2026-11-26T15:00:00Z", "time": 1, "_resourceType": "fetch",
            "request": {"method": method, "url": url, "postData": sent, "cookies": [{"name": "c", "value": "d"}],
                "headers": [{"name": "Authorization", "value": "Bearer tok12345"}, {"name": "X-A", "value": "tok12345"}]},
            "response": {"status": 200, "redirectURL": "",
                "headers": [{"name": "Set-Cookie", "value": "s=tok12346"}, {"name": "Location", "value": "/x/tok12347?c=tok12348"}],
                "content": {"mimeType": "application/json", "text": answer}}})
    };
    json!({"log": {"pages": [{"id": "p", "title": "The page"}], "entries": [
        entry("GET", "http://a.test/", Value::Null, "{\"a\":[{\"b\":\"tok12345\",\"id\":12345678}]}"),
        entry("GET", "http://a.test/", Value::Null, "<title>x</title><input name=t value=tok12349><a href='/z/tok12350'>"),
        entry("PUT", "http://a.test/x/tok12347?c=tok12348&token=y", json!({"mimeType": "application/json", "text": "{\"a\":\"tok12345\",\"b\":12345678,\"password\":\"p\"}"}), ""),
        entry("POST", "http://b.a.test/y", json!({"mimeType": "application/x-www-form-urlencoded", "text": "t=tok12349&z=tok12350&password=p"}), ""),
        entry("POST", "http://a.test/y", json!({"mimeType": "multipart/form-data; boundary=b", "params": [{"name": "f", "fileName": "g", "contentType": "text/plain", "value": "v"}]}), ""),
        entry("POST", "http://a.test/y", json!({"mimeType": "text/plain", "text": "raw"}), ""),
    ]}})
}

fn description() -> Value {
    json!({"openapi": "3.0.3", "info": {"title": "t", "version": "1"}, "servers": [{"url": "http://a.test/v1"}],
        "components": {"securitySchemes": {"k": {"type": "apiKey", "in": "cookie", "name": "kk"}, "b": {"type": "http", "scheme": "basic"},
            "o": {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "http://a.test/t"}}}}},
        "security": [{"k": [], "o": ["s"]}],
        "paths": {"/a/{id}/{end}": {"get": {"operationId": "op", "summary": "s",
            "parameters": [{"name": "id", "in": "path", "schema": {"type": "string", "example": "e"}}, {"name": "q", "in": "query", "example": "x"},
                {"name": "H", "in": "header", "example": "x"}, {"name": "c", "in": "cookie", "example": "x"}],
            "responses": {"200": {"description": "d", "content": {"application/json": {"schema": {"required": ["f"], "properties": {"f": {}}}}}}, "404": {"description": "n"}}},
          "post": {"security": [{"b": []}], "requestBody": {"content": {"application/json": {"schema": {"properties": {"p": {"type": "string", "default": "v"}, "l": {"type": "array", "items": {"enum": ["m"]}}}}}}},
            "responses": {"2XX": {"description": "d"}, "default": {"description": "d"}}},
          "put": {"requestBody": {"content": {"multipart/form-data": {"schema": {"properties": {"p": {"format": "binary"}}}}}}, "responses": {"422": {"description": "d"}}}}}})
}

fn collection() -> Value {
    json!({"info": {"name": "c"}, "variable": [{"key": "base", "value": "http://a.test"}, {"key": "token", "value": "v"}, {"key": "n", "value": "{{base}}/x"}],
        "auth": {"type": "basic", "basic": [{"key": "username", "value": "u"}, {"key": "password", "value": "p"}]},
        "item": [{"name": "folder", "item": [
            {"name": "r", "request": {"method": "POST", "url": {"raw": "{{base}}/a/:id?q={{n}}", "variable": [{"key": "id", "value": "i"}], "query": [{"key": "q", "value": "{{n}}"}]},
                "header": [{"key": "X", "value": "{{token}}"}], "body": {"mode": "raw", "raw": "{\"a\": {{n}}, \"b\": \"{{$randomInt}}\"}", "options": {"raw": {"language": "json"}}}},
             "event": [{"listen": "prerequest", "script": {"exec": ["pm.variables.set('x', 'y'); f();"]}},
                {"listen": "test", "script": {"exec": ["pm.test('t', () => { pm.response.to.have.status(200) })", "var j = pm.response.json()", "pm.globals.set('z', j.a['b'])", "pm.expect(j.c).to.eql('d')", "g()"]}}]},
            {"name": "s", "request": {"method": "PUT", "url": "http://b.test/{{z}}", "body": {"mode": "formdata", "formdata": [{"key": "f", "type": "file", "src": "/a/b"}, {"key": "g", "value": "h"}]}}},
            {"name": "g", "request": {"method": "POST", "url": "{{other}}/x", "body": {"mode": "graphql", "graphql": {"query": "q", "variables": "{\"a\": \"{{z}}\"}"}}}}]}]})
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn recordings(changes in proptest::collection::vec((0_usize..180, text()), 0..6), assets: bool) {
        let document = changed(recording(), &changes);
        let options = HarOptions { assets, hosts: Vec::new() };
        parses(har(document.as_bytes(), "a\n]]b", &options), &document);
    }

    #[test]
    fn descriptions(changes in proptest::collection::vec((0_usize..140, text()), 0..6)) {
        let document = changed(description(), &changes);
        parses(openapi(document.as_bytes(), "a\n]]b"), &document);
    }

    #[test]
    fn collections(changes in proptest::collection::vec((0_usize..140, text()), 0..6)) {
        let document = changed(collection(), &changes);
        parses(postman(document.as_bytes(), "a\n]]b"), &document);
    }

    #[test]
    fn commands(words in proptest::collection::vec(prop_oneof![
        proptest::sample::select(&["-d", "-H", "-F", "--json", "-u", "-b", "-X", "-G", "-L", "--data-urlencode", "http://a.test/", "-H 'A: b'", "\\\n", "$A", "--next", "|", ";", "curl", "[1-3]", "{a,b}", "-T a", "-K a", "-H @a", "<<E\n$A\nE\n", "< a", "A=b", "--url-query @a"][..]).prop_map(str::to_owned),
        text().prop_map(|text| format!("'{}'", text.replace('\'', "'\\''"))),
        text(),
    ], 0..12)) {
        let line = format!("curl http://a.test/x {}", words.join(" "));
        parses(curl(&line, "a\n]]b", NO_FILES), &line);
        let _ = curl_command(&line, NO_FILES);
    }

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200), text in ".{0,200}") {
        let name = "a";
        for bytes in [bytes.as_slice(), text.as_bytes()] {
            parses(har(bytes, name, &HarOptions::default()), name);
            parses(openapi(bytes, name), name);
            parses(postman(bytes, name), name);
        }
        parses(curl(&text, name, NO_FILES), &text);
    }

    #[test]
    fn any_yaml(lines in proptest::collection::vec(prop_oneof![
        proptest::sample::select(&["openapi: 3.0.0", "paths:", "  /a:", "    get:", "      responses: {}", "- ", "&a [*a]", "? x", "!!str 1", "|", ">-", "\t", "'", "<<: *a", "---", "...", "{", "]"][..]).prop_map(str::to_owned),
        text(),
    ], 0..12)) {
        let document = lines.join("\n");
        parses(openapi(document.as_bytes(), "a"), &document);
    }
}

#[test]
fn every_beginning_of_a_document_is_moved_or_refused() {
    for document in [recording().to_string(), description().to_string(), collection().to_string()] {
        for end in (0..document.len()).step_by(7) {
            let part = document.get(..end).unwrap_or_default();
            parses(har(part.as_bytes(), "a", &HarOptions::default()), part);
            parses(openapi(part.as_bytes(), "a"), part);
            parses(postman(part.as_bytes(), "a"), part);
            parses(curl(part, "a", NO_FILES), part);
        }
    }
}

/// A table of Lua has its levels, a function its constants, an expression its parts: what is large is moved all the same.
#[test]
fn what_is_large_is_lua_all_the_same() {
    let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    let wide: Vec<String> = (0..1_900).map(|number| format!("\"k{number}\": \"v{number}\"")).collect();
    let entries: Vec<Value> = (0..300)
        .map(|number| {
            json!({"request": {"method": "POST", "url": format!("http://a.test/{number}"),
                "postData": {"mimeType": "application/json", "text": if number % 2 == 0 { deep.clone() } else { format!("{{{}}}", wide.join(",")) }}},
                "response": {"status": 200}})
        })
        .collect();
    let archive = json!({"log": {"entries": entries}}).to_string();
    let made = har(archive.as_bytes(), "a", &HarOptions::default());
    assert!(made.is_ok());
    parses(made, "a large recording");
    let variables = "{{a}}".repeat(500);
    let items: Vec<Value> = (0..500).map(|number| json!({"name": number.to_string(), "request": {"url": "http://a.test/", "method": "POST", "body": {"mode": "raw", "raw": variables}}})).collect();
    parses(postman(json!({"item": items}).to_string().as_bytes(), "a"), "a large collection");
    let mut folder = json!({"name": "f", "item": [{"name": "r", "request": "http://a.test/"}]});
    for _ in 0..60 {
        folder = json!({"name": "f", "item": [folder]});
    }
    parses(postman(json!({"item": [folder]}).to_string().as_bytes(), "a"), "deep folders");
    let paths: serde_json::Map<String, Value> = (0..1_500)
        .map(|number| {
            (format!("/p{number}/{{id}}"), json!({"get": {"responses": {"200": {}}}, "post": {"responses": {}}}))
        })
        .collect();
    parses(openapi(json!({"openapi": "3.1.0", "paths": paths}).to_string().as_bytes(), "a"), "a large description");
    let commands = "curl http://a.test/ -d a=1\n".repeat(900);
    parses(curl(&commands, "a", NO_FILES), "many commands");
    // As many constants as there are texts.
    let many = |from: usize, count: usize| {
        (from..from + count).map(|number| format!("{{\"k{number}\": \"v{number}\"}}")).collect::<Vec<_>>().join(",")
    };
    let unlike: Vec<Value> = (0..200)
        .map(|number| {
            json!({"request": {"method": "POST", "url": format!("http://a.test/{number}"),
                "postData": {"mimeType": "application/json", "text": format!("[{}]", many(number * 900, 900))}}, "response": {"status": 200}})
        })
        .collect();
    let archive = json!({"log": {"entries": unlike}}).to_string();
    parses(har(archive.as_bytes(), "a", &HarOptions::default()), "a recording of many texts");
    let headers: Vec<Value> =
        (0..12_000).map(|number| json!({"name": format!("H{number}"), "value": format!("v{number}")})).collect();
    let archive = json!({"log": {"entries": [{"request": {"method": "GET", "url": "http://a.test/", "headers": headers}, "response": {"status": 200}}]}});
    let made = har(archive.to_string().as_bytes(), "a", &HarOptions::default());
    assert!(made.as_ref().is_ok_and(|made| made.left.len() == 1 && made.lua.contains("local answer = not_moved(")));
    parses(made, "many header fields");
    let headers: Vec<String> = (0..12_000).map(|number| format!("-H 'H{number}: v{number}'")).collect();
    let headers = headers.join(" ");
    parses(curl(&format!("curl http://a.test/ {headers}"), "a", NO_FILES), "many header fields");
    parses(curl(&format!("curl http://a.test/ -d \"{}\"", "$A".repeat(100_000)), "a", NO_FILES), "many variables");
    let each = |number: usize| format!("curl http://a.test/ --json '[{}]'", many(number * 900, 900));
    let each = (0..200).map(each).collect::<Vec<_>>().join("\n");
    parses(curl(&each, "a", NO_FILES), "commands of many texts");
    let items: Vec<Value> = (0..200)
        .flat_map(|number| {
            let raw = format!("[{}]", many(number * 900, 900));
            let request = json!({"name": "r", "request": {"url": "http://a.test/", "method": "POST",
                "body": {"mode": "raw", "raw": raw, "options": {"raw": {"language": "json"}}}}});
            [request, json!({"name": "f", "item": [{"name": "s", "request": "http://a.test/"}]})]
        })
        .collect();
    let variables: Vec<Value> =
        (0..12_000).map(|number| json!({"key": format!("k{number}"), "value": format!("v{number}")})).collect();
    parses(
        postman(json!({"item": items, "variable": variables}).to_string().as_bytes(), "a"),
        "a collection of many texts",
    );
    let tests: Vec<String> = (0..12_000).map(|number| format!("pm.test('t{number}', () => f{number}());")).collect();
    let item = json!({"name": "r", "request": "http://a.test/", "event": [{"listen": "test", "script": {"exec": tests}}, {"listen": "prerequest", "script": {"exec": tests}}]});
    parses(postman(json!({"item": [item]}).to_string().as_bytes(), "a"), "many tests");
    let parameters: Vec<Value> = (0..12_000)
        .map(|number| json!({"name": format!("p{number}"), "in": "query", "example": format!("v{number}")}))
        .collect();
    let paths = json!({"/a": {"get": {"parameters": parameters, "responses": {}}}});
    parses(openapi(json!({"openapi": "3.1.0", "paths": paths}).to_string().as_bytes(), "a"), "many parameters");
    let example: serde_json::Map<String, Value> =
        (0..12_000).map(|number| (format!("k{number}"), json!(format!("v{number}")))).collect();
    let paths = json!({"/a": {"post": {"requestBody": {"content": {"application/json": {"example": example}}}, "responses": {}}}});
    parses(openapi(json!({"openapi": "3.1.0", "paths": paths}).to_string().as_bytes(), "a"), "a large example");
}

/// A secret that stands where its name says so is neither in the file nor in the list.
#[test]
fn secrets_are_not_written() {
    const SECRET: &str = "hunter2-9f8e7d6c";
    let entry = |method: &str, url: &str, headers: Value, sent: Value| {
        json!({"request": {"method": method, "url": url, "headers": headers, "postData": sent},
            "response": {"status": 200, "headers": [{"name": "Set-Cookie", "value": "late=hunter2-9f8e7d6c"}], "content": {"text": ""}}})
    };
    let header = |name: &str, value: &str| json!([{"name": name, "value": value}]);
    let form = json!({"mimeType": "application/x-www-form-urlencoded", "text": format!("password={SECRET}")});
    let body = json!({"mimeType": "application/json", "text": format!("{{\"a\":{{\"client_secret\":\"{SECRET}\"}}}}")});
    // A `Basic` field of me:hunter2-9f8e7d6c.
    let basic = "Basic bWU6aHVudGVyMi05ZjhlN2Q2Yw==";
    for one in [
        entry("GET", "http://a.test/", header("Authorization", &format!("Bearer {SECRET}")), Value::Null),
        entry("GET", "http://a.test/", header("Authorization", &format!("Custom {SECRET}")), Value::Null),
        entry("GET", "http://a.test/", header("Authorization", basic), Value::Null),
        entry("GET", "http://a.test/", header("Cookie", &format!("sid={SECRET}")), Value::Null),
        entry("GET", "http://a.test/", header("X-Api-Key", SECRET), Value::Null),
        entry("GET", &format!("http://a.test/?access_token={SECRET}"), json!([]), Value::Null),
        entry("GET", &format!("http://me:{SECRET}@a.test/"), json!([]), Value::Null),
        entry("POST", "http://a.test/", json!([]), form),
        entry("POST", "http://a.test/", json!([]), body),
    ] {
        let document = json!({"log": {"entries": [one]}}).to_string();
        hides(har(document.as_bytes(), "a", &HarOptions::default()), SECRET, &document);
    }
    for command in [
        format!("-u me:{SECRET}"),
        format!("-H 'Authorization: Bearer {SECRET}'"),
        format!("-H 'Authorization: {SECRET}'"),
        format!("-H '{}: {basic}'", "Authorization"),
        format!("-H 'X-Auth-Token: {SECRET}'"),
        format!("--oauth2-bearer {SECRET}"),
        format!("-b 'a={SECRET}'"),
        format!("-d 'user=a&password={SECRET}'"),
        format!("--json '{{\"password\":\"{SECRET}\"}}'"),
        format!("-F token={SECRET}"),
        format!("--cert a.pem:{SECRET}"),
        format!("-x http://me:{SECRET}@proxy/"),
        format!("'http://a.test/?key={SECRET}'"),
        format!("http://me:{SECRET}@a.test/"),
        format!("; TOKEN={SECRET}"),
    ] {
        let line = format!("curl http://a.test/ {command}");
        hides(curl(&line, "a", NO_FILES), SECRET, &line);
    }
    let item = |request: Value, script: &str| {
        json!({"item": [{"name": "r", "request": request, "event": [{"listen": "test", "script": {"exec": [script]}}]}],
            "variable": [{"key": "apiToken", "value": SECRET}]})
    };
    let auth = |kind: &str, fields: Value| json!({"url": "http://a.test/", "auth": {"type": kind, kind: fields}});
    for collection in [
        item(auth("bearer", json!([{"key": "token", "value": SECRET}])), ""),
        item(auth("basic", json!({"username": "me", "password": SECRET})), ""),
        item(auth("apikey", json!([{"key": "key", "value": "X-K"}, {"key": "value", "value": SECRET}])), ""),
        item(auth("oauth2", json!([{"key": "accessToken", "value": SECRET}])), ""),
        item(json!({"url": format!("http://a.test/?token={SECRET}")}), ""),
        item(
            json!({"url": "http://a.test/", "header": [{"key": "Authorization", "value": format!("Bearer {SECRET}")}]}),
            "",
        ),
        item(
            json!({"url": "http://a.test/", "body": {"mode": "urlencoded", "urlencoded": [{"key": "password", "value": SECRET}]}}),
            "",
        ),
        item(json!("http://a.test/"), &format!("pm.environment.set('token', '{SECRET}')")),
    ] {
        hides(postman(collection.to_string().as_bytes(), "a"), SECRET, &collection.to_string());
    }
}

fn hides(imported: Result<Imported, ImportError>, secret: &str, of: &str) {
    let imported = imported.unwrap_or_else(|error| panic!("{error}: {of}"));
    let said = format!("{}{:?}", imported.lua, imported.left);
    assert!(!said.contains(secret) && !said.contains("bWU6aHVudGVy"), "{of}\n{said}");
}
