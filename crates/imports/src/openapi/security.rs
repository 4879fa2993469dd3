//! Security schemes as authorization of requests, with secrets from the environment.

use super::document::Document;
use crate::call::{Authorization, Call};
use crate::lua::quoted;
use crate::script::Script;
use crate::text::Text;
use crate::value::Value;

/// Adds the authorization that an operation requires: the first of its alternatives.
pub(crate) fn apply<'d>(
    document: Document<'d>,
    operation: &'d Value,
    place: &str,
    call: &mut Call,
    script: &mut Script,
) {
    let asked = operation.get("security").or_else(|| document.root.get("security"));
    let choices = asked.map_or(&[][..], Value::list);
    // An empty alternative makes authorization optional.
    if choices.iter().any(|choice| choice.fields().is_empty()) {
        return;
    }
    let Some(first) = choices.first() else { return };
    for (name, scopes) in first.fields() {
        let scheme = document.root.at(&["components", "securitySchemes", name]);
        match scheme.and_then(|scheme| document.resolved(scheme)) {
            Some(scheme) => add(name, scheme, scopes, place, call, script),
            None => script.leave(place, format!("not moved: the security scheme {name}, which is not described")),
        }
    }
}

fn add(name: &str, scheme: &Value, scopes: &Value, place: &str, call: &mut Call, script: &mut Script) {
    let field = scheme.text_at("name").unwrap_or_default().to_owned();
    match (scheme.text_at("type").unwrap_or_default(), scheme.text_at("in").unwrap_or_default()) {
        ("http", _) => {
            let kind = scheme.text_at("scheme").unwrap_or_default().to_ascii_lowercase();
            if kind == "basic" || kind == "digest" {
                let user = Text::lua(script.secrets.ask(&format!("{name}_user"), None));
                let password = Text::lua(script.secrets.ask(&format!("{name}_password"), None));
                let both = if kind == "basic" { Authorization::Basic } else { Authorization::Digest };
                call.authorization = Some(both(user, password));
            } else if kind == "bearer" {
                call.authorization = Some(Authorization::Bearer(Text::lua(script.secrets.ask(name, None))));
            } else {
                script.leave(place, format!("not moved: the security scheme {name}, of the kind {kind}"));
            }
        }
        ("apiKey", "query") => call.query.push((field, Text::lua(script.secrets.ask(name, None)))),
        ("apiKey", "header") if crate::encoded::is_token(&field) => {
            call.headers.push((field, Text::lua(script.secrets.ask(name, None))));
        }
        ("apiKey", "cookie") if crate::encoded::is_token(&field) => {
            let cookie = format!("{} .. {}", quoted(&format!("{field}=")), script.secrets.ask(name, None));
            call.headers.push(("Cookie".to_owned(), Text::lua(format!("({cookie})"))));
        }
        ("oauth2", _) => oauth(name, scheme, scopes, place, call, script),
        ("openIdConnect", _) => {
            call.authorization = Some(Authorization::Bearer(Text::lua(script.secrets.ask(name, None))));
        }
        ("mutualTLS", _) => script.leave(place, "a client certificate: give --cert and --key to brunt run"),
        (kind, _) => script.leave(place, format!("not moved: the security scheme {name}, of the type {kind}")),
    }
}

/// Adds a token by client credentials, where the scheme allows them; otherwise one from the environment.
fn oauth(name: &str, scheme: &Value, scopes: &Value, place: &str, call: &mut Call, script: &mut Script) {
    let url = scheme.at(&["flows", "clientCredentials", "tokenUrl"]).and_then(Value::text);
    if let Some(url) = url.filter(|url| crate::encoded::origin_and_path(url).is_some()) {
        let scopes: Vec<&str> = scopes.list().iter().filter_map(Value::text).collect();
        let mut entries = vec![
            format!("token_url = {}", quoted(url)),
            format!("client = {}", script.secrets.ask(&format!("{name}_client"), None)),
            format!("secret = {}", script.secrets.ask(&format!("{name}_secret"), None)),
        ];
        if !scopes.is_empty() {
            entries.push(format!("scope = {}", quoted(&scopes.join(" "))));
        }
        call.authorization = Some(Authorization::Other(format!("oauth = {}", crate::lua::table(&entries))));
        return;
    }
    if url.is_some() {
        script.leave(place, format!("the token URL of {name} is not a whole URL: a token comes from the environment"));
    }
    call.authorization = Some(Authorization::Bearer(Text::lua(script.secrets.ask(name, None))));
}
