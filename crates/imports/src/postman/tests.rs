use super::*;

const SHOP: &str = r#"{
  "info": {"name": "The shop", "schema": "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"},
  "variable": [{"key": "baseUrl", "value": "http://127.0.0.1:8080/shop"}, {"key": "password", "value": "pw-ann"}, {"key": "end", "value": "3"}],
  "auth": {"type": "bearer", "bearer": [{"key": "token", "value": "{{token}}"}]},
  "item": [
    {"name": "Log / in", "item": [
      {"name": "login", "request": {"method": "POST", "auth": {"type": "noauth"}, "url": {"raw": "{{baseUrl}}/login?x=a b"},
        "header": [{"key": "X-Trace", "value": "{{$guid}}"}, {"key": "X-Off", "value": "1", "disabled": true}],
        "body": {"mode": "urlencoded", "urlencoded": [{"key": "user", "value": "ann"}, {"key": "password", "value": "{{password}}"}]}},
        "event": [{"listen": "test", "script": {"exec": [
          "pm.test(\"Status is 200\", function () {", "  pm.response.to.have.status(200);", "});",
          "const json = pm.response.json();",
          "pm.environment.set(\"token\", json.access.token);",
          "pm.test('has plan', () => { pm.expect(json.plan).to.eql('free') });",
          "pm.test('odd', () => { pm.expect(_.size(json)).to.eql(2) });"]}}]},
      {"name": "json", "request": {"method": "PUT", "url": "{{baseUrl}}/items/{{end}}",
        "header": [{"key": "Content-Type", "value": "application/json"}],
        "body": {"mode": "raw", "raw": "{\"a\": {{end}}, \"b\": \"x{{end}}\", \"secret\": \"hunter2\", \"t\": \"{{token}}\"}"}},
        "event": [{"listen": "prerequest", "script": {"exec": ["pm.variables.set('now', '{{$timestamp}}');", "doIt();"]}}]}
    ]},
    {"name": "item", "request": {"url": {"raw": "{{baseUrl}}/items/:id?page={{page}}", "variable": [{"key": "id", "value": "{{end}}"}],
      "query": [{"key": "page", "value": "{{page}}"}, {"key": "off", "value": "1", "disabled": true}]}}},
    {"name": "elsewhere", "request": "https://api.test/x"},
    {"name": "upload", "request": {"method": "POST", "auth": {"type": "apikey", "apikey": {"key": "X-Key", "value": "abc", "in": "header"}},
      "url": {"protocol": "http", "host": ["127", "0", "0", "1"], "port": "8080", "path": ["shop", "upload"]},
      "body": {"mode": "formdata", "formdata": [{"key": "f", "type": "file", "src": "/tmp/a.txt"}, {"key": "n", "value": "1"}]}}}
  ]}"#;

#[test]
fn a_collection_is_a_scenario() {
    let imported = import(SHOP.as_bytes(), "shop.json").unwrap();
    for expected in [
        "base = \"http://127.0.0.1:8080\"",
        "local vars = { baseUrl = \"http://127.0.0.1:8080/shop\", password = brunt.env(\"PASSWORD\"), [\"end\"] = \"3\" } -- variables of the collection",
        "brunt.group(\"Log   in\", function()",
        "http:post(\"/shop/login?x=a%20b\", {",
        "headers = { [\"X-Trace\"] = brunt.uuid() }",
        "form = { { \"user\", \"ann\" }, { \"password\", vars.password } }",
        "[\"Status is 200\"] = answer.status == 200",
        "[\"has plan\"] = answer:jsonpath(\"$.plan\") == \"free\"",
        "[\"odd\"] = false",
        "vars.token = answer:jsonpath(\"$.access.token\")",
        "vars.now = math.floor(brunt.now())",
        "not_moved(\"the collection / Log / in / json: before the request: doIt()\")",
        "json = {",
        "a = (tonumber(vars[\"end\"]) or vars[\"end\"])",
        "b = \"x\" .. vars[\"end\"]",
        "secret = brunt.env(\"SECRET\")",
        "bearer = vars.token",
        "http:get(\"/shop/items/\" .. brunt.url_encode(vars[\"end\"]) .. \"?page=\" .. brunt.url_encode(brunt.env(\"PAGE\")), {",
        "http:get(\"https://api.test/x\", {",
        "headers = { [\"X-Key\"] = brunt.env(\"X_KEY\") }",
        "local files = { brunt.file(\"a.txt\") }",
        "multipart = { f = { filename = \"a.txt\", type = \"text/plain\", content = files[1] }, n = \"1\" }",
        "[\"is a success\"] = answer.ok",
    ] {
        assert!(imported.lua.contains(expected), "lacks {expected}:\n{}", imported.lua);
    }
    for secret in ["hunter2", "pw-ann", "abc", "X-Off", "off="] {
        assert!(!imported.lua.contains(secret), "{secret}:\n{}", imported.lua);
    }
    let left: Vec<String> = imported.left.iter().map(ToString::to_string).collect();
    for expected in ["odd", "doIt()", "{{page}}", "the file /tmp/a.txt"] {
        assert!(left.iter().any(|left| left.contains(expected)) || expected == "odd", "{expected}: {left:?}");
    }
    assert!(left.iter().any(|left| left.contains("not moved, and does not hold: pm.expect(_.size(json))")), "{left:?}");
}

#[test]
fn assertions_are_conditions() {
    for (test, expected) in [
        ("pm.response.to.be.ok", "= answer.ok"),
        ("pm.expect(pm.response.code).to.be.oneOf([200, 201])", "(answer.status == 200 or answer.status == 201)"),
        ("pm.expect(pm.response.code).to.equal(204)", "answer.status == 204"),
        ("pm.expect(pm.response.responseTime).to.be.below(500)", "answer.timings.response < 0.5"),
        ("pm.response.to.have.header('X-A')", "answer.headers[\\\"x-a\\\"] ~= nil"),
        ("pm.expect(pm.response.text()).to.include('x')", "answer.body:find(\\\"x\\\", 1, true) ~= nil"),
        ("pm.expect(pm.response.json().a[0].b).to.eql(1)", "answer:jsonpath(\\\"$.a[0].b\\\") == 1"),
        (
            "pm.expect(pm.response.json()).to.have.property('a-b')",
            "answer:has_jsonpath(\\\"$[\\\\\\\"a-b\\\\\\\"]\\\")",
        ),
    ] {
        let code = serde_json::Value::from(format!("pm.test('t', function () {{ {test}; }});"));
        let text = format!(
            r#"{{"item":[{{"name":"a","request":"http://a.test/","event":[{{"listen":"test","script":{{"exec":[{code}]}}}}]}}]}}"#
        );
        let lua = import(text.as_bytes(), "a").unwrap().lua;
        let expected = expected.replace("\\\\\\\"", "\u{1}").replace("\\\"", "\"").replace('\u{1}', "\\\"");
        assert!(lua.contains(&expected), "{test}: lacks {expected}\n{lua}");
    }
}

#[test]
fn a_parameter_without_a_value_has_no_equals_sign() {
    for (url, expected) in [
        ("\"http://a.test/x?flag&b=&c=1\"", "http:get(\"/x?flag&b=&c=1\""),
        (
            "{\"raw\": \"http://a.test/x?flag&b=1\", \"query\": [{\"key\": \"flag\", \"value\": null}, {\"key\": \"b\", \"value\": \"1\"}]}",
            "http:get(\"/x?flag&b=1\"",
        ),
    ] {
        let text = format!(
            "{{\"info\": {{\"name\": \"s\", \"schema\": \"https://schema.getpostman.com/json/collection/v2.1.0/collection.json\"}}, \"item\": [{{\"name\": \"r\", \"request\": {{\"method\": \"GET\", \"url\": {url}}}}}]}}"
        );
        let lua = import(text.as_bytes(), "s.json").unwrap().lua;
        assert!(lua.contains(expected), "{lua}");
    }
}

#[test]
fn what_is_no_collection_is_refused() {
    for (text, said) in [
        ("", "not JSON"),
        ("{}", "not a Postman collection"),
        (r#"{"requests":[]}"#, "version 1"),
        (r#"{"item":[]}"#, "no request"),
        (r#"{"item":[1,{"item":{}},{"name":"a"}]}"#, "no request"),
    ] {
        let error = import(text.as_bytes(), "a").unwrap_err().to_string();
        assert!(error.contains(said), "{text}: {error}");
    }
}

#[test]
fn what_postman_sends_is_what_is_written() {
    for (item, expected) in [
        (r#""request":{"url":"{{b}}/{{path}}?s={{sum}}"}"#, "http:get(\"/api/v1?s=1+1\""),
        (r#""request":{"url":"http://{{h}}:{{port}}/x"}"#, "http:get(\"http://c.test:81/x\""),
        (
            r##""request":{"url":{"raw":"{{b}}/q","query":[{"key":"a","value":"x&y"},{"key":"b","value":"#h"}]}}"##,
            "http:get(\"/q?a=x%26y&b=%23h\"",
        ),
        (
            r#""request":{"url":{"raw":"{{b}}/query=a:b","host":["{{b}}"],"path":["", "get"],"query":[{"key":"query","value":"a:b"}]}}"#,
            "http:get(\"//get?query=a:b\"",
        ),
        (
            r#""request":{"url":"{{b}}/x","method":"POST","body":{"mode":"urlencoded","urlencoded":""}}"#,
            "http:post(\"/x\", { name = ",
        ),
        (
            r#""request":{"url":"{{b}}/h","header":"X-A: 1\nX-B: two\n"}"#,
            r#"headers = { ["X-A"] = "1", ["X-B"] = "two" }"#,
        ),
        (
            r#""request":{"url":"{{b}}/x","auth":{"type":"oauth2","oauth2":{"accessToken":"t","addTokenTo":"queryParams"}}}"#,
            "query = { access_token = brunt.env(\"ACCESS_TOKEN\") }",
        ),
        (
            r#""request":{"url":"{{b}}/x","auth":{"type":"oauth2","oauth2":{"accessToken":"t","headerPrefix":"Token "}}}"#,
            "headers = { Authorization = \"Token \" .. brunt.env(\"ACCESS_TOKEN\") }",
        ),
        (
            r#""request":{"url":"{{b}}/x","auth":{"type":"ntlm"}}"#,
            "bearer = not_moved(\"the collection / f / r: authorization",
        ),
        (r#""request":{"url":"{{b}}/x"},"protocolProfileBehavior":{"followRedirects":false}"#, "redirects = false"),
        (
            r#""request":{"method":"POST","url":"{{b}}/x","body":{"mode":"raw","raw":"{ // x\n\"u\": \"http://y\" }","options":{"raw":{"language":"json"}}}}"#,
            "json = { u = \"http://y\" }",
        ),
        (
            r#""request":{"method":"POST","url":"{{b}}/x","body":{"mode":"formdata","formdata":[{"key":"f","type":"file","src":["a.csv","b"]}]}}"#,
            "multipart = { f = { { filename = \"a.csv\", type = \"text/csv\", content = files[1] }, { filename = \"b\", content = files[2] } } }",
        ),
        (r#""request":{"url":"{{b}}/{{t}}"}"#, "vars.t = \"of the folder\"\n"),
    ] {
        let text = format!(
            r#"{{"variable":[{{"key":"b","value":"http://a.test"}},{{"key":"path","value":"api/v1"}},{{"key":"sum","value":"1+1"}},{{"key":"h","value":"c.test"}},{{"key":"port","value":"81"}}],
            "item":[{{"name":"a","request":"{{{{b}}}}/"}},{{"name":"f","event":[{{"listen":"prerequest","script":{{"exec":["pm.variables.set('t', 'of the folder');"]}}}}],"item":[{{"name":"r",{item}}}]}}]}}"#
        );
        let lua = import(text.as_bytes(), "s.json").unwrap().lua;
        let flat = lua.split_whitespace().collect::<Vec<_>>().join(" ");
        let expected = expected.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            flat.replace("{ {", "{{").replace(", }", " }").contains(&expected.replace("{ {", "{{")),
            "{item}: lacks {expected}\n{lua}"
        );
    }
}

#[test]
fn names_have_their_variables_and_values_that_tests_set_are_theirs() {
    let text = r#"{"variable": [{"key": "base", "value": "http://a.test"}, {"key": "k", "value": "{{part}}-key"}, {"key": "part", "value": "a/b"},
        {"key": "id", "value": "old"}, {"key": "in", "value": "ner"}, {"key": "to_ner", "value": "found"}],
      "item": [
        {"name": "one", "request": {"method": "POST", "url": "{{base}}/{{part}}/{{to_{{in}}}}", "header": [{"key": "X-{{in}}", "value": "1"}, {"key": "Host", "value": "b.test"},
            {"key": "Connection", "value": "close"}],
          "auth": {"type": "bearer", "bearer": [{"key": "token", "value": ""}]},
          "body": {"mode": "urlencoded", "urlencoded": [{"key": "{{k}}", "value": "v"}]}},
          "event": [{"listen": "test", "script": {"exec": ["pm.test('ok', () => { pm.collectionVariables.set('id', pm.response.json().id); pm.globals.set('n', 7) })"]}}]},
        {"name": "two", "request": {"method": "POST", "url": {"raw": "{{base}}/{{id}}/{{n}}/:none", "variable": [{"key": "none", "value": ""}]},
          "body": {"mode": "formdata", "formdata": [{"key": "{{late}}", "value": "1"}, {"key": "f", "type": "file", "src": "/x/a.bin", "fileName": "b.bin"}]}}},
        {"name": "three", "request": {"method": "POST", "url": "{{base}}/c", "body": {"mode": "urlencoded", "urlencoded": "a=1&b={{in}}"}}},
        {"name": "four", "request": {"method": "POST", "url": "{{base}}/d", "body": {"mode": "smoke", "smoke": "x"}}}
      ]}"#;
    let imported = import(text.as_bytes(), "a.json").unwrap();
    for expected in [
        "http:post(\"/a/b/\" .. brunt.url_encode(vars.to_ner), {",
        "headers = { [\"X-ner\"] = \"1\", Host = \"b.test\" }",
        "form = { [\"a/b-key\"] = \"v\" }",
        "vars.id = answer:jsonpath(\"$.id\")\n",
        "vars.n = \"7\"",
        "http:post(\"/\" .. brunt.url_encode(vars.id) .. \"/\" .. brunt.url_encode(vars.n) .. \"/:none\", {",
        "filename = \"b.bin\", type = \"application/octet-stream\"",
        "body = \"a=1&b=\" .. vars[\"in\"]",
        "body = not_moved(",
    ] {
        assert!(imported.lua.contains(expected), "lacks {expected}:\n{}", imported.lua);
    }
    assert!(!imported.lua.contains("bearer"), "{}", imported.lua);
    let left: Vec<String> = imported.left.iter().map(ToString::to_string).collect();
    for expected in
        ["the header Connection is of the connection", "a variable in the name {{late}}", "a body of the mode smoke"]
    {
        assert!(left.iter().any(|left| left.contains(expected)), "{expected}: {left:?}");
    }
}

#[test]
fn variables_that_hold_json_stand_in_a_body_as_they_are() {
    let collection = r#"{
      "info": {"name": "c", "schema": "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"},
      "variable": [{"key": "said", "value": "x \\\"y\\\""}, {"key": "list", "value": "[1, \"a\"]"}, {"key": "plain", "value": "z"}],
      "item": [{"name": "a", "request": {"method": "POST", "url": "http://127.0.0.1/x",
        "header": [{"key": "Content-Type", "value": "application/json"}],
        "body": {"mode": "raw", "raw": "{\"v\": \"{{said}}\", \"l\": {{list}}, \"p\": \"{{plain}}\"}"}}}]}"#;
    let lua = import(collection.as_bytes(), "c.json").unwrap().lua;
    for expected in [r#"v = "x \"y\"""#, "p = vars.plain"] {
        assert!(lua.contains(expected), "{expected}: {lua}");
    }
    assert!(!lua.contains("vars.list"), "{lua}");
}
