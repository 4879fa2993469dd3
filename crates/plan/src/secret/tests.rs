//! References to the environment, and what is shown of texts with secrets.

use super::*;

fn env(name: &str) -> Option<String> {
    (name == "TOKEN").then(|| "t0p".to_owned())
}

#[test]
fn where_a_token_stands_is_shown_and_what_it_is_is_not() {
    let shown = |text: &str| shown_json(&serde_json::from_str(text).unwrap(), &|_| None).to_string();
    assert_eq!(shown(r#"{"auth":{"token":"t0p","ttl":60}}"#), r#"{"auth":{"token":"[redacted]","ttl":"[redacted]"}}"#);
    assert_eq!(
        shown(r#"{"tokens":{"t0p5ecret":{"user":"me"}}}"#),
        r#"{"tokens":{"[redacted]":{"user":"[redacted]"}}}"#
    );
}

#[test]
fn a_number_of_tokens_in_json_is_no_secret_and_a_token_is() {
    let given = serde_json::json!({
        "max_tokens": 256, "stop": { "Max_Completion_Tokens": 9, "tokens": ["t0p"] }, "token": 1234, "max_tokens_of": "t0p",
        "api_tokens": "t0p",
    });
    let shown = serde_json::json!({
        "max_tokens": 256, "stop": { "Max_Completion_Tokens": 9, "tokens": [REDACTED] }, "token": REDACTED,
        "max_tokens_of": REDACTED, "api_tokens": REDACTED,
    });
    assert_eq!(shown_json(&given, &|_| None), shown);
}

#[test]
fn urls_are_shown_without_passwords_and_tokens() {
    for (url, expected) in [
        ("http://a/b?c=d", "http://a/b?c=d"),
        ("http://me:pw@a:1/b@c", "http://[redacted]@a:1/b@c"),
        ("GET https://me@a?token=t#@", "GET https://[redacted]@a?token=[redacted]"),
        ("POST /a?key=x&b=@", "POST /a?key=[redacted]&b=@"),
        ("/a://b@c", "/a://b@c"),
        ("", ""),
    ] {
        assert_eq!(shown_url(url), expected, "{url}");
    }
}

#[test]
fn references_stand_at_the_beginning_of_words() {
    for (text, expected) in [
        ("Bearer @TOKEN", "Bearer t0p"),
        ("@TOKEN", "t0p"),
        ("user:@TOKEN", "user:t0p"),
        ("@TOKEN.x @TOKEN", "t0p.x t0p"),
        ("me@TOKEN", "me@TOKEN"),
        ("@@TOKEN and @TOKEN", "@TOKEN and t0p"),
        ("@ 5", "@ 5"),
        ("@", "@"),
        ("@@", "@"),
        ("@1", "@1"),
        ("", ""),
    ] {
        assert_eq!(Template::open(text).reveal(env).as_deref(), Ok(expected), "{text}");
    }
    assert_eq!(Template::open("Bearer @NOPE").reveal(env), Err(SecretError::Unset { name: "NOPE".to_owned() }));
}

#[test]
fn a_secret_is_neither_printed_nor_stored() {
    let literal = Template::secret("hunter2");
    assert_eq!(format!("{literal:?}"), "\"[redacted]\"");
    assert_eq!(serde_json::to_string(&literal).unwrap(), "\"[redacted]\"");
    let reference = Template::secret("Bearer @TOKEN");
    assert_eq!(serde_json::to_string(&reference).unwrap(), "\"Bearer @TOKEN\"");
    let stored: Template = serde_json::from_str("\"[redacted]\"").unwrap();
    assert_eq!(stored.reveal(env), Err(SecretError::Redacted));
}

#[test]
fn secrets_in_queries_are_not_shown() {
    for (path, shown) in [
        ("/a?b=c&d", "/a?b=c&d"),
        ("/a", "/a"),
        ("/?token=t0p", "/?token=[redacted]"),
        ("/x?a=1&access_token=t0p&b=2", "/x?a=1&access_token=[redacted]&b=2"),
        ("/x?X-Amz-Signature=t0p;api_key=t1p", "/x?X-Amz-Signature=[redacted];api_key=[redacted]"),
        ("/x?Password=a=b&&key=", "/x?Password=[redacted]&&key="),
        ("/x?keyword=shoe&sig=t0p", "/x?keyword=shoe&sig=[redacted]"),
    ] {
        assert_eq!(shown_path(path), shown);
    }
}

#[test]
fn secret_headers_are_known_by_name() {
    for name in [
        "Authorization",
        "cookie",
        "X-Api-Key",
        "X-Auth-Token",
        "X-Auth",
        "API_KEY",
        "DB_PASS",
        "X-Amz-Credential",
        "CSRF-Token",
        "X-Hub-Signature-256",
        "Session-Id",
    ] {
        assert!(is_secret_header(name), "{name}");
    }
    for name in ["Accept", "Idempotency-Key", "Author", "WWW-Authenticate", "Content-Encoding", "Host", "Passenger"] {
        assert!(!is_secret_header(name), "{name}");
    }
}

#[test]
fn a_reference_shows_nothing_of_what_stands_beside_it() {
    for (text, shown) in [
        ("sid=hunter2; x @TOKEN", "[redacted] @TOKEN"),
        ("@TOKEN hunter2", "@TOKEN[redacted]"),
        ("Bearer @TOKEN", "Bearer @TOKEN"),
        ("hunter2 @TOKEN Bearer", "[redacted] @TOKEN[redacted]"),
        ("me:@TOKEN", "[redacted]:@TOKEN"),
        ("@TOKEN:@OTHER", "@TOKEN:@OTHER"),
        ("@@TOKEN", "[redacted]"),
    ] {
        let template = Template::secret(text);
        assert_eq!(template.shown(), shown, "{text}");
        let stored: Template = serde_json::from_str(&serde_json::to_string(&template).unwrap()).unwrap();
        assert_eq!(stored.is_redacted(), shown.contains(REDACTED), "{text}");
        assert_eq!(stored.reveal(|_| Some(String::new())).is_err(), shown.contains(REDACTED), "{text}");
        assert_eq!(stored.shown(), shown, "stored again: {text}");
    }
    for (text, shown) in [("me:@PW", "me:@PW"), ("me:hunter2", "[redacted]"), ("a:b:@PW", "[redacted]:@PW")] {
        assert_eq!(Template::credentials(text).shown(), shown);
    }
}

#[test]
fn what_is_hidden_is_known_by_its_parts() {
    let hidden = |template: Template| template.hidden(|_| Some("t0p".to_owned())).unwrap();
    assert_eq!(hidden(Template::secret("Bearer hunter2")), ["hunter2", "Bearer hunter2"]);
    assert_eq!(hidden(Template::open("plain @TOKEN")), ["t0p"]);
    assert_eq!(hidden(Template::secret("sid=hunter2")), ["hunter2", "sid=hunter2"]);
}

#[test]
fn literals_stand_for_themselves() {
    for text in ["@HOME", "a @HOME", "a:@HOME", "@@", "me@here", ""] {
        assert_eq!(Template::literal(text).reveal(|_| None).as_deref(), Ok(text));
    }
}

#[test]
fn arguments_of_scripts_are_shown_where_they_can_be_no_secrets() {
    for (argument, shown) in
        [("100", "100"), ("2.5", "2.5"), ("-y", "-y"), ("hunter2", REDACTED), ("@TOKEN", "@TOKEN"), ("", "")]
    {
        assert_eq!(shown_argument(&Template::secret(argument)), shown);
    }
}
