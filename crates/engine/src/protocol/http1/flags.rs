//! The flags of HTTP, and what calls are made from when they are given.

use brunt_model::secret::Template;

use super::super::OptionsError;
use super::super::flags::{Flag, Given, Takes};
use super::options::{Content, Header, Lines, Options, Order};

/// A header field; protocols that begin as HTTP have it, too.
pub(crate) const HEADER: Flag = Flag::new(
    "header",
    Takes::Texts("K: V"),
    "A header field, repeatable; @NAME at the beginning of a word of V is taken from the environment, never shown \
     (@@ for a plain @)",
)
.short('H');

/// User and password in a header field; protocols that begin as HTTP have it, too.
pub(crate) const BASIC: Flag = Flag::new(
    "basic",
    Takes::Text("U:P"),
    "User and password; @NAME is taken from the environment (U:@NAME, or @NAME for both)",
);

/// The flags of HTTP.
pub(super) const FLAGS: [Flag; 8] = [
    Flag::new("method", Takes::Text("M"), "The method [default: GET, or POST with a body]").short('m').checked(method),
    HEADER,
    Flag::new("body", Takes::Text("TEXT"), "The body of every request, as it is")
        .conflicts_with(&["body-file", "body-lines"]),
    Flag::new("body-file", Takes::File("F"), "The body of every request, from a file").conflicts_with(&["body-lines"]),
    Flag::new("body-lines", Takes::File("F"), "A body for each request: the lines of a file, in turn over all workers"),
    Flag::new(
        "url-lines",
        Takes::File("F"),
        "A URL for each request: the lines of a file (a path, or a method and a path), in turn over all workers",
    ),
    Flag::new(
        "order",
        Takes::OneOf("HOW", &["sequential", "random"]),
        "The order in which lines are taken: from the top, and from the top again after the last; or any line each \
         time, by the seed [default: sequential]",
    ),
    BASIC,
];

/// The options that the flags ask for.
pub(super) fn options(given: &Given) -> Result<Options, OptionsError> {
    let headers = headers(given)?;
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
        basic: basic(given)?,
        body: body.map(Content),
        url_lines: lines(given, "url-lines"),
        body_lines: lines(given, "body-lines"),
        order: if given.text("order") == Some("random") { Order::Random } else { Order::Sequential },
    })
}

fn wrong(problem: impl Into<String>) -> OptionsError {
    OptionsError(problem.into())
}

fn lines(given: &Given, name: &str) -> Option<Lines> {
    let (file, content) = given.file(name)?;
    Some(Lines { file: file.to_owned(), content: content.clone() })
}

/// The token of a method (RFC 9110, section 9.1).
fn method(text: &str) -> Result<(), String> {
    match text.chars().position(|c| !is_token(c)) {
        None if !text.is_empty() => Ok(()),
        None => Err("expected a method such as GET".to_owned()),
        Some(at) => Err(format!("column {}: expected a method such as GET, without spaces or signs", at + 1)),
    }
}

/// Whether `c` may stand in a token (RFC 9110, section 5.6.2): a method, or the name of a header field.
pub(crate) fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c)
}

/// The header fields that [`HEADER`] gave.
pub(crate) fn headers(given: &Given) -> Result<Vec<Header>, OptionsError> {
    given.texts("header").zip(1..).map(|(text, number)| header(text, number)).collect()
}

/// `Name: value` (RFC 9112, section 5). Errors never show the value, which may be a secret.
fn header(text: &str, number: usize) -> Result<Header, OptionsError> {
    let Some((name, value)) = text.split_once(':') else {
        return Err(wrong(format!("-H number {number}: expected 'Name: value', found no ':' in it")));
    };
    if name.is_empty() {
        return Err(wrong(format!(
            "-H number {number}, column 1: expected 'Name: value', found no name before the ':'"
        )));
    }
    if let Some((at, c)) = name.chars().enumerate().find(|(_, c)| !is_token(*c)) {
        return Err(wrong(format!(
            "-H number {number}, column {}: {c:?} cannot stand in the name of a header field",
            at + 1
        )));
    }
    if let Some((at, c)) = text.chars().enumerate().find(|(_, c)| c.is_ascii_control() && *c != '\t') {
        return Err(wrong(format!(
            "-H '{name}', column {}: {c:?} cannot stand in the value of a header field",
            at + 1
        )));
    }
    Ok(Header::new(name, value.trim()))
}

/// `user:password` from [`BASIC`] or from the URL.
pub(crate) fn basic(given: &Given) -> Result<Option<Template>, OptionsError> {
    match (given.text("basic"), given.user()) {
        (Some(_), Some(_)) => Err(wrong("--basic and the URL both name a user: leave one of them out")),
        (Some(text), None) if !text.contains(':') && !text.starts_with('@') => {
            Err(wrong("--basic: expected USER:PASSWORD (an empty password is USER:), found no ':' in it"))
        }
        (Some(text), None) => Ok(Some(Template::secret(text))),
        (None, Some(user)) => {
            let pair = if user.contains(':') { user.to_owned() } else { format!("{user}:") };
            Ok(Some(Template::secret(as_it_is(&pair))))
        }
        (None, None) => Ok(None),
    }
}

/// Written as a template in which nothing stands for the environment.
fn as_it_is(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    let mut before = None;
    for c in text.chars() {
        if c == '@' && matches!(before, None | Some(' ' | ':')) {
            written.push('@');
        }
        written.push(c);
        before = Some(c);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::super::super::flags::Value;
    use super::*;

    fn given(name: &str, text: &str) -> Given {
        let mut given = Given::default();
        given.push(name, Value::Text(text.to_owned()));
        given
    }

    fn revealed(template: &Template) -> String {
        template.reveal(|_| Some("from the environment".to_owned())).unwrap()
    }

    #[test]
    fn the_user_of_a_url_is_taken_as_it_is() {
        for user in ["me:@HOME", "@HOME:x", "a:@@b @C", "@@@", "me:s@crt"] {
            let basic = basic(&Given::default().with_user(Some(user.to_owned()))).unwrap().unwrap();
            let expected = if user.contains(':') { user.to_owned() } else { format!("{user}:") };
            assert_eq!(revealed(&basic), expected);
        }
        assert_eq!(revealed(&basic(&given("basic", "me:@HOME")).unwrap().unwrap()), "me:from the environment");
    }

    #[test]
    fn a_method_is_a_token() {
        assert_eq!(method("PATCH"), Ok(()));
        assert!(method("GE T").unwrap_err().starts_with("column 3"));
        assert!(method("").is_err());
    }

    #[test]
    fn a_body_is_posted_unless_told_otherwise() {
        let method = |given: &Given| options(given).unwrap().method;
        assert_eq!(method(&Given::default()), "GET");
        let mut given = given("body", "");
        assert_eq!(method(&given), "POST");
        given.push("method", Value::Text("PUT".to_owned()));
        assert_eq!(method(&given), "PUT");
    }

    #[test]
    fn a_header_that_is_wrong_keeps_its_value_to_itself() {
        for (text, expected) in [
            ("Authorization hunter2", "found no ':'"),
            ("X Y: hunter2", "column 2: ' '"),
            (": hunter2", "column 1"),
            ("X: hunter2\r\nY: z", "'X', column 11: '\\r'"),
            ("Ü: hunter2", "column 1: 'Ü'"),
        ] {
            let error = header(text, 1).unwrap_err().to_string();
            assert!(error.contains(expected) && !error.contains("hunter2"), "{text}: {error}");
        }
        let header = header("X-Ok:\t  v: w  ", 1).unwrap();
        assert_eq!((header.name(), revealed(header.value()).as_str()), ("X-Ok", "v: w"));
    }
}
