//! What two requests must have in common to share an answer, as the documentation says it: without a line of the layer.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::requests::Settings;
use crate::world::Answer;

/// A request as the upstream saw it, with the names of fields in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub start: String,
    pub fields: Vec<(String, String)>,
    pub body: Vec<u8>,
}

const HARMLESS: [&str; 23] = [
    "user-agent",
    "sec-ch-ua",
    "sec-ch-ua-platform",
    "referer",
    "priority",
    "te",
    "via",
    "keep-alive",
    "traceparent",
    "tracestate",
    "b3",
    "uber-trace-id",
    "x-amzn-trace-id",
    "x-cloud-trace-context",
    "sentry-trace",
    "newrelic",
    "request-id",
    "x-request-id",
    "x-correlation-id",
    "cf-ray",
    "x-request-start",
    "max-forwards",
    "x-coalesced",
];

fn is_harmless(name: &str, value: &str, settings: &Settings) -> bool {
    if settings.key_headers.contains(&name) {
        return false;
    }
    HARMLESS.contains(&name)
        || name.starts_with("x-b3-")
        || name.starts_with("x-datadog-")
        || settings.ignored_headers.contains(&name)
        || match name {
            "baggage" => list(value).all(|member| member.starts_with("sentry-")),
            // What a proxy says beside the harmless TE (RFC 9110, section 10.1.4).
            "connection" => value == "te",
            "cache-control" => list(value).all(|directive| directive.starts_with("max-age=")),
            // Servers end a cookie at a semicolon, and some at a comma, a blank or a quotation mark.
            "cookie" => {
                let is_ignored = |cookie: &str| {
                    let name = cookie.split('=').next().unwrap();
                    settings.ignored_cookies.iter().any(|ignored| match ignored.strip_suffix('*') {
                        Some(prefix) => name.starts_with(prefix),
                        None => name == *ignored,
                    })
                };
                value.split([';', ',', ' ', '"']).filter(|cookie| !cookie.is_empty()).all(is_ignored)
            }
            _ => false,
        }
}

fn list(value: &str) -> impl Iterator<Item = &str> {
    value.split(',').map(str::trim).filter(|element| !element.is_empty())
}

/// A text with each address replaced by its class, which is no text that a client can write.
fn classes(text: &str) -> String {
    let class = |word: &str| match word.trim_matches('"').parse::<IpAddr>() {
        Ok(address) if address.is_loopback() => "<loopback>".to_owned(),
        Ok(IpAddr::V4(address)) if address.is_private() => "<private>".to_owned(),
        Ok(_) => "<public>".to_owned(),
        Err(_) => word.to_owned(),
    };
    let words = text.split([',', ';', '=', ' ']).map(class);
    words.collect::<Vec<_>>().join("|")
}

/// The fields that count, by name.
fn counted(seen: &Seen, settings: &Settings, answer: &Answer) -> BTreeMap<String, Vec<String>> {
    let varies: Vec<_> = answer.vary().map(str::to_ascii_lowercase).collect();
    let mut fields: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (name, value) in &seen.fields {
        let value = if varies.contains(name) || settings.key_headers.contains(&name.as_str()) {
            value.clone()
        } else if is_harmless(name, value, settings) {
            continue;
        } else if ["forwarded", "x-forwarded-for", "x-real-ip"].contains(&name.as_str()) {
            classes(value)
        } else {
            value.clone()
        };
        fields.entry(name.clone()).or_default().push(value);
    }
    fields
}

/// In what an answer to the request `got` must not be given to the client of `own`.
pub fn difference(got: &Seen, own: &Seen, settings: &Settings, answer: &Answer) -> Option<String> {
    if (&got.start, &got.body) != (&own.start, &own.body) {
        return Some(format!("an answer to {:?} was given to {:?}", got.start, own.start));
    }
    let (got, own) = (counted(got, settings, answer), counted(own, settings, answer));
    let names = got.keys().chain(own.keys());
    names
        .into_iter()
        .find(|name| got.get(*name) != own.get(*name))
        .map(|name| format!("{name}: the answer is to {:?}, and the request said {:?}", got.get(name), own.get(name)))
}

/// Why a request never shares an answer, if so.
pub fn must_be_alone(own: &Seen, settings: &Settings, answer: &Answer) -> Option<&'static str> {
    let method = own.start.split(' ').next().unwrap();
    let is_safe = settings.all_safe_methods && ["OPTIONS", "TRACE"].contains(&method);
    if !is_safe && !["GET", "HEAD"].contains(&method) {
        return Some("a method that is not coalesced");
    }
    for (name, value) in &own.fields {
        if settings.key_headers.contains(&name.as_str()) || is_harmless(name, value, settings) {
            continue;
        }
        match name.as_str() {
            "authorization" => return Some("a request with Authorization"),
            "cookie" => return Some("a request with Cookie"),
            "range" => return Some("a request with Range"),
            "x-api-key"
            | "x-vault-token"
            | "private-token"
            | "dpop"
            | "remote-user"
            | "x-auth-request-user"
            | "cf-access-jwt-assertion" => return Some("a request with a credential or a user's name"),
            "x-http-method-override" => return Some("a request that overrides its method"),
            _ => {}
        }
    }
    for (name, value) in &answer.fields {
        let value = value.to_ascii_lowercase();
        let has = |directive| list(&value).any(|one| one.split('=').next() == Some(directive));
        match *name {
            "Set-Cookie" => return Some("an answer with Set-Cookie"),
            "Vary" if value == "*" => return Some("an answer that varies by everything"),
            "Cache-Control" if has("private") || has("no-store") || (has("no-cache") && !settings.share_no_cache) => {
                return Some("an answer for its client alone");
            }
            _ => {}
        }
    }
    let is_shared = [200, 203, 204, 300, 301, 304, 308, 404, 410].contains(&answer.status);
    (!is_shared).then_some("an answer with a status for its client alone")
}
