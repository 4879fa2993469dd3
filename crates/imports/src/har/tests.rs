use super::*;

/// A recording with these entries: method, path, further fields of the request, status, further fields of the answer.
pub(crate) fn recording(entries: &[(&str, &str, &str, u16, &str)]) -> String {
    let all: Vec<String> = entries
        .iter()
        .enumerate()
        .map(|(place, (method, path, request, status, response))| {
            let url = if path.contains("://") || path.starts_with("data:") {
                (*path).to_owned()
            } else {
                format!("http://shop.test{path}")
            };
            format!(
                r#"{{"pageref":"p1","startedDateTime":"2026-11-26T15:00:{place:02}.000Z","time":20,
                "request":{{"method":"{method}","url":"{url}"{request}}},
                "response":{{"status":{status}{response}}}}}"#
            )
        })
        .collect();
    format!(r#"{{"log":{{"pages":[{{"id":"p1","title":"The shop"}}],"entries":[{}]}}}}"#, all.join(","))
}

pub(crate) fn imported(entries: &[(&str, &str, &str, u16, &str)]) -> Imported {
    import(recording(entries).as_bytes(), "a.har", &Options::default()).unwrap()
}

#[track_caller]
fn has(lua: &str, expected: &[&str]) {
    for expected in expected {
        assert!(lua.contains(expected), "lacks {expected}:\n{lua}");
    }
}

#[test]
fn what_earlier_answers_said_is_carried_on() {
    let page = r#","content":{"mimeType":"text/html","text":"<input type=hidden name=token value=form1.9a8b7c6d>"}"#;
    let login = r#","postData":{"mimeType":"application/x-www-form-urlencoded","text":"user=ann&password=pw-ann&token=form1.9a8b7c6d"}"#;
    let answer = r#","headers":[{"name":"Set-Cookie","value":"session=ann.0a1b2c3d; Path=/"}],"content":{"mimeType":"application/json","text":"{\"access\":{\"token\":\"eyJ0.abc123\"},\"id\":90071992}"}"#;
    let cart = r#","headers":[{"name":"Authorization","value":"Bearer eyJ0.abc123"},{"name":"X-Session","value":"ann.0a1b2c3d"}],
        "postData":{"mimeType":"application/json","text":"{\"user_id\":90071992,\"count\":1,\"note\":\"n\"}"}"#;
    let made = r#","headers":[{"name":"Location","value":"/cart/3-1-ann.77aa88bb?x=1"}],"content":{"mimeType":"application/json","text":"{}"}"#;
    let imported = imported(&[
        ("GET", "/login", "", 200, page),
        ("POST", "/login", login, 200, answer),
        ("POST", "/cart", cart, 201, made),
        ("GET", "/cart/3-1-ann.77aa88bb", "", 404, ""),
    ]);
    has(
        &imported.lua,
        &[
            "-- the field token of a form goes on to POST /login.\n    found.token = answer:css(\"input[name=\\\"token\\\"]\"):attr(\"value\")\n",
            "{ \"user\", \"ann\" }",
            "-- $.access.token goes on to POST /cart.\n    found.token_2 = answer:jsonpath(\"$.access.token\")\n",
            "bearer = found.token_2",
            "-- X-Session is the cookie session",
            "[\"X-Session\"] = (http:cookie(\"session\") or \"\")",
            "json = { user_id = found.id, count = 1, note = \"n\" }",
            "found.cart_id = (answer.headers[\"location\"] or \"\"):match(\"/cart/([^/?#]+)\")",
            "http:get(\"/cart/\" .. brunt.url_encode(found.cart_id), { name = \"GET /cart/:cart_id\", ok = { 404 } })",
            "brunt.check(answer, { [\"is 404\"] = answer.status == 404 })",
            "brunt.group(\"The shop\", function()",
            "brunt.pause(1)",
            "brunt run --env PASSWORD FILE",
        ],
    );
    assert!(!imported.lua.contains("pw-ann"), "{}", imported.lua);
    assert_eq!(imported.secrets, ["PASSWORD"]);
    assert!(imported.left.is_empty(), "{:?}", imported.left);
}

#[test]
fn what_is_not_a_users_own_stays_apart() {
    let entries = [
        ("GET", "/", "", 200, r#","content":{"mimeType":"text/html","text":""}"#),
        ("GET", "/a.css", "", 200, r#","content":{"mimeType":"text/css"}"#),
        ("GET", "/logo?v=1", "", 200, r#","content":{"mimeType":"image/png"}"#),
        ("GET", "http://api.shop.test/x", "", 200, ""),
        ("GET", "http://counter.example/hit", "", 200, ""),
        ("GET", "data:text/plain,a", "", 200, ""),
        ("GET", "/gone", "", 0, ""),
        ("OPTIONS", "/x", r#","headers":[{"name":"Access-Control-Request-Method","value":"PUT"}]"#, 204, ""),
    ];
    let imported = imported(&entries);
    has(&imported.lua, &["2 files that pages load are left out", "http:get(\"http://api.shop.test/x\")"]);
    let left: Vec<String> = imported.left.iter().map(ToString::to_string).collect();
    assert_eq!(left.len(), 4, "{left:?}");
    assert!(
        left.contains(
            &"counter.example: not moved: 1 request is for another site; --host counter.example keeps them".to_owned()
        ),
        "{left:?}"
    );
    let options = Options { assets: true, hosts: vec!["counter.example".to_owned()] };
    let kept = import(recording(&entries).as_bytes(), "a.har", &options).unwrap();
    has(
        &kept.lua,
        &[
            "http:batch { { \"GET\", \"/a.css\", { name = \"assets\" } }, { \"GET\", \"/logo?v=1\", { name = \"assets\" } } }",
            "http:get(\"http://counter.example/hit\")",
        ],
    );
}

#[test]
fn redirects_are_one_call() {
    let to = |url: &str| format!(r#","redirectURL":"{url}""#);
    let (one, two, away) = (to("/b"), to("http://shop.test/c?code=abc12345"), to("http://elsewhere.example/"));
    let imported = imported(&[
        ("POST", "/a", "", 302, &one),
        ("GET", "/b", "", 303, &two),
        ("GET", "/c?code=abc12345", "", 200, ""),
        ("GET", "/token?code=abc12345", "", 200, ""),
        ("GET", "/out", "", 302, &away),
    ]);
    has(
        &imported.lua,
        &[
            "-- It redirects, and brunt follows.\n    local answer = http:post(\"/a\")\n    brunt.check(answer, { [\"is 200\"] = answer.status == 200 })",
            "found.code = answer.url:match(\"[?&]code=([^&#]+)\")",
            "http:get(\"/token?code=\" .. brunt.url_encode(found.code))",
            "http:get(\"/out\", { redirects = false })",
        ],
    );
    assert!(!imported.lua.contains("http:get(\"/b\")"), "{}", imported.lua);
}

#[test]
fn cookies_from_before_the_recording_are_asked_for() {
    let cookie = r#","headers":[{"name":"Cookie","value":"sid=abc; _ga=1"},{"name":"User-Agent","value":"B/1"}]"#;
    let imported = imported(&[("GET", "/", cookie, 200, "")]);
    has(&imported.lua, &["sid = brunt.env(\"COOKIE_SID\", \"\")", "headers = { [\"User-Agent\"] = \"B/1\" }"]);
    assert!(!imported.lua.contains("abc") && !imported.lua.contains("_ga"), "{}", imported.lua);
    assert!(imported.left.iter().any(|left| left.what.contains("--env COOKIE_SID")), "{:?}", imported.left);
}

#[test]
fn the_type_of_an_empty_body_is_kept() {
    let typed =
        r#","headers":[{"name":"content-type","value":"application/json"},{"name":"Content-Length","value":"0"}]"#;
    let imported = imported(&[("POST", "/start", typed, 200, "")]);
    has(&imported.lua, &["http:post(\"/start\", { headers = { [\"Content-Type\"] = \"application/json\" } })"]);
}

#[test]
fn what_is_no_recording_is_refused() {
    for (text, said) in [
        ("", "not JSON"),
        ("{}", "not an HTTP archive"),
        (r#"{"log":{"entries":[]}}"#, "no request in it"),
        (r#"{"log":{"entries":[{"request":{"method":"GET","url":"ws://a/"}}]}}"#, "no request in it"),
        (r#"{"log":{"entries":[1,null,{"request":5}]}}"#, "no request in it"),
    ] {
        let error = import(text.as_bytes(), "a.har", &Options::default()).unwrap_err().to_string();
        assert!(error.contains(said), "{text}: {error}");
    }
}

#[test]
fn what_was_not_looked_through_is_told() {
    let filler = "x".repeat(2 << 20);
    let page = format!(r#","content":{{"mimeType":"text/html","text":"{filler}"}}"#);
    let entries: Vec<_> = (0..9).map(|_| ("GET", "/", "", 200, page.as_str())).collect();
    let left = imported(&entries).left;
    assert!(left.iter().any(|left| left.what.contains("too large to look for every value")), "{left:?}");
}

#[test]
fn numbers_are_carried_where_a_double_holds_them() {
    let answer = r#","content":{"mimeType":"application/json","text":"{\"id\":12345678,\"wide\":9007199254740993123,\"part\":1234.5678}"}"#;
    let sent = r#","headers":[{"name":"X-Id","value":"12345678"}],"postData":{"mimeType":"application/json","text":"{\"a\":12345678,\"b\":\"12345678\",\"c\":1234.5678}"}"#;
    let wide = r#","postData":{"mimeType":"application/json","text":"{\"a\":9007199254740993123}"}"#;
    let imported =
        imported(&[("GET", "/", "", 200, answer), ("PUT", "/x", sent, 200, ""), ("PUT", "/y", wide, 200, "")]);
    has(
        &imported.lua,
        &[
            "headers = { [\"X-Id\"] = (\"%d\"):format(found.id) }",
            "json = { a = found.id, b = (\"%d\"):format(found.id), c = 1234.5678 }",
            "body = \"{\\\"a\\\":9007199254740993123}\"",
        ],
    );
    assert_eq!(imported.left.len(), 1, "{:?}", imported.left);
}

#[test]
fn the_version_that_was_used_is_asked_for() {
    let over = |version: &str| format!(r#","httpVersion":"{version}""#);
    for (url, version, expected) in [
        ("https://a.test/", "h2", Some("auto")),
        ("https://a.test/", "h3", Some("3")),
        ("https://a.test/", "HTTP/1.1", None),
        ("http://a.test/", "h2", None),
    ] {
        let lua = imported(&[("GET", url, "", 200, &over(version))]).lua;
        let asked = lua.split_once("http = \"").and_then(|(_, rest)| rest.split('"').next());
        assert_eq!(asked, expected, "{url} {version}\n{lua}");
    }
}

#[test]
fn what_a_client_sent_is_kept() {
    let listed = r#","queryString":[{"name":"a b","value":"1&2"}],"headers":[{"name":"X-A","value":"1"},{"name":"x-a","value":"2"}]"#;
    let typed = r#","headers":[{"name":"Content-Type","value":"application/json;charset=UTF-8"}],"postData":{"mimeType":"?","text":"{\"a\":1}"}"#;
    let lua = imported(&[("GET", "/q", listed, 200, ""), ("POST", "/j", typed, 200, "")]).lua;
    has(&lua, &["http:get(\"/q?a%20b=1%262\"", "{ \"1\", \"2\" }", "\"application/json;charset=UTF-8\""]);
}
