//! The flags of HTTP, and the options that they make.

use brunt_plan::bodies::shown_body;
use brunt_protocol::OptionsError;
use brunt_protocol::flags::{Flag, FlagValues, ValueKind};
use brunt_protocol::headers::{BASIC, HEADER, Header, basic, headers, is_token};
use brunt_protocol::messages::{Framing, LAST_MESSAGE, MESSAGES, MessageOptions, STALL_TIMEOUT};
use brunt_protocol::traced::{self, TRACE};

use super::line;
use super::options::{Content, Lines, Options, RequestOrder, Version};
use super::request::check_method;

/// The flag `--http`: the version.
pub const HTTP: Flag = Flag::new(
    "http",
    ValueKind::OneOf("VERSION", Version::NAMES),
    "The version of HTTP: 2 is agreed on in the TLS handshake, and assumed of http:// targets; 3 is spoken over QUIC; \
     auto takes what the TLS handshake chooses, 1.1 or 2 [default: 1.1]",
);

/// The flags of HTTP.
pub(super) const FLAGS: [Flag; 14] = [
    Flag::new("method", ValueKind::Text("M"), "The method [default: GET, or POST with a body]").short('m').checked(method),
    HEADER,
    Flag::new("body", ValueKind::Text("TEXT"), "The body of every request, as it is")
        .conflicts_with(&["body-file", "body-lines"])
        .shown_by(shown_text),
    Flag::new("body-file", ValueKind::File("F"), "The body of every request, from a file").conflicts_with(&["body-lines"]),
    Flag::new("body-lines", ValueKind::File("F"), "A body for each request: the lines of a file, in turn over all workers"),
    Flag::new(
        "url-lines",
        ValueKind::File("F"),
        "A URL for each request: the lines of a file, or of standard input for - (a path, a method and a path, or a request in JSON), in turn over \
         all workers",
    ),
    Flag::new(
        "order",
        ValueKind::OneOf("HOW", &["sequential", "random"]),
        "The order of lines: from first to last and again, or at random by the seed [default: sequential]",
    ),
    BASIC,
    Flag::new(
        "expect-body",
        ValueKind::Text("TEXT"),
        "A text that the body of each answer with a status under 400 must contain, as it is sent; a call without it fails",
    )
    .conflicts_with(&["messages"])
    .checked(expected),
    MESSAGES,
    LAST_MESSAGE,
    STALL_TIMEOUT,
    TRACE,
    HTTP,
];

/// The options that the flags ask for.
pub(super) fn options(given: &FlagValues) -> Result<Options, OptionsError> {
    let mut headers = headers(given)?;
    let messages = MessageOptions::given(given)?;
    let asks_for_events = messages.as_ref().is_some_and(|messages| messages.framing == Framing::Sse);
    if asks_for_events && !headers.iter().any(|header| header.name().eq_ignore_ascii_case("accept")) {
        headers.push(Header::new("Accept", "text/event-stream"));
    }
    if given.has("order") && !given.has("url-lines") && !given.has("body-lines") {
        return Err(wrong(
            "--order says in which order lines are taken, and there are none: give --url-lines or --body-lines",
        ));
    }
    let body = given.bytes("body").or_else(|| given.bytes("body-file"));
    let has_body = body.is_some() || given.has("body-lines");
    let default_method = if has_body { "POST" } else { "GET" };
    Ok(Options {
        method: given.text("method").unwrap_or(default_method).to_owned(),
        headers,
        basic: basic(given)?.filter(|_| given.user().is_none()),
        user: basic(given)?.filter(|_| given.user().is_some()),
        body: body.map(Content),
        url_lines: url_lines(given)?,
        body_lines: Lines::given(given, "body-lines"),
        order: if given.text("order") == Some("random") { RequestOrder::Random } else { RequestOrder::Sequential },
        messages,
        expect_body: given.text("expect-body").map(str::to_owned),
        http: given.text("http").and_then(Version::named).unwrap_or_default(),
        trace_ratio: traced::given(given)?,
    })
}

/// A body's text as it may be shown.
fn shown_text(text: &str) -> String {
    String::from_utf8_lossy(&shown_body(text.as_bytes())).into_owned()
}

fn wrong(problem: impl Into<String>) -> OptionsError {
    OptionsError(problem.into())
}

/// The requests of a file, one a line; or with header fields in lines below each, as vegeta has them.
fn url_lines(given: &FlagValues) -> Result<Option<Lines>, OptionsError> {
    let Some(mut lines) = Lines::given(given, "url-lines") else { return Ok(None) };
    match line::with_fields(&lines.content.0) {
        Ok(None) => {}
        Ok(Some(content)) => lines.content = Content(content),
        Err(problem) => return Err(wrong(format!("{}, {problem}", lines.file))),
    }
    Ok(Some(lines))
}

/// The token of a method (RFC 9110, section 9.1).
fn method(text: &str) -> Result<(), String> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(
            "expected a method such as GET; requests in flight on a connection are --streams or --pipeline".to_owned()
        );
    }
    match text.chars().position(|c| !is_token(c)) {
        None if !text.is_empty() => check_method(text).map_err(|error| error.0),
        None => Err("expected a method such as GET".to_owned()),
        Some(at) => Err(format!("column {}: expected a method such as GET, without spaces or signs", at + 1)),
    }
}

/// Every body has an empty text.
fn expected(text: &str) -> Result<(), String> {
    if text.is_empty() { Err("expected a text that is not empty".to_owned()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brunt_protocol::flags::FlagValue;

    fn given(name: &str, text: &str) -> FlagValues {
        let mut given = FlagValues::default();
        given.push(name, FlagValue::Text(text.to_owned()));
        given
    }

    #[test]
    fn a_method_is_a_token() {
        assert_eq!(method("PATCH"), Ok(()));
        assert!(method("GE T").unwrap_err().starts_with("column 3"));
        assert!(method("").is_err());
    }

    #[test]
    fn a_body_is_posted_unless_told_otherwise() {
        let method = |given: &FlagValues| options(given).unwrap().method;
        assert_eq!(method(&FlagValues::default()), "GET");
        let mut given = given("body", "");
        assert_eq!(method(&given), "POST");
        given.push("method", FlagValue::Text("PUT".to_owned()));
        assert_eq!(method(&given), "PUT");
    }
}
