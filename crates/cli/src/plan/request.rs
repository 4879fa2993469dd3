//! The request flags into what HTTP calls are made from.

use std::path::Path;

use anyhow::{Result, anyhow, bail};
use brunt_engine::protocol::http1::options::{self, Content, Header, Lines, Options};
use brunt_model::secret::Template;

use crate::args::bench::{Order, Request};
use crate::args::values::is_token;
use crate::files;

/// The options that the flags ask for; `user` is what stood before the `@` of the URL.
pub fn options(args: &Request, user: Option<String>) -> Result<Options> {
    let headers: Result<Vec<_>> = args.headers.iter().zip(1..).map(|(text, number)| header(text, number)).collect();
    if args.order.is_some() && args.url_lines.is_none() && args.body_lines.is_none() {
        bail!("--order says in which order lines are taken, and there are none: give --url-lines or --body-lines");
    }
    let body = match (&args.body, &args.body_file) {
        (Some(text), _) => Some(text.clone().into_bytes()),
        (None, Some(path)) => Some(files::read(path)?),
        (None, None) => None,
    };
    let has_body = body.is_some() || args.body_lines.is_some();
    Ok(Options {
        method: args.method.clone().unwrap_or_else(|| if has_body { "POST" } else { "GET" }.to_owned()),
        headers: headers?,
        basic: basic(args.basic.as_deref(), user)?,
        body: body.map(Content),
        url_lines: args.url_lines.as_deref().map(lines).transpose()?,
        body_lines: args.body_lines.as_deref().map(lines).transpose()?,
        order: match args.order {
            Some(Order::Random) => options::Order::Random,
            Some(Order::Sequential) | None => options::Order::Sequential,
        },
    })
}

fn lines(path: &Path) -> Result<Lines> {
    Ok(Lines { file: path.display().to_string(), content: Content(files::read(path)?) })
}

/// `Name: value` (RFC 9112, section 5). Errors never show the value, which may be a secret.
fn header(text: &str, number: usize) -> Result<Header> {
    let Some((name, value)) = text.split_once(':') else {
        bail!("-H number {number}: expected 'Name: value', found no ':' in it");
    };
    if name.is_empty() {
        bail!("-H number {number}, column 1: expected 'Name: value', found no name before the ':'");
    }
    if let Some((at, c)) = name.chars().enumerate().find(|(_, c)| !is_token(*c)) {
        bail!("-H number {number}, column {}: {c:?} cannot stand in the name of a header field", at + 1);
    }
    if let Some((at, c)) = text.chars().enumerate().find(|(_, c)| c.is_ascii_control() && *c != '\t') {
        bail!("-H '{name}', column {}: {c:?} cannot stand in the value of a header field", at + 1);
    }
    Ok(Header::new(name, value.trim()))
}

/// `user:password` from the flag or from the URL.
fn basic(flag: Option<&str>, user: Option<String>) -> Result<Option<Template>> {
    match (flag, user) {
        (Some(_), Some(_)) => Err(anyhow!("--basic and the URL both name a user: leave one of them out")),
        (Some(text), None) if !text.contains(':') && !text.starts_with('@') => {
            Err(anyhow!("--basic: expected USER:PASSWORD (an empty password is USER:), found no ':' in it"))
        }
        (Some(text), None) => Ok(Some(Template::secret(text))),
        (None, Some(user)) => {
            let pair = if user.contains(':') { user } else { user + ":" };
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
    use super::*;

    fn revealed(template: &Template) -> String {
        template.reveal(|_| Some("from the environment".to_owned())).unwrap()
    }

    #[test]
    fn the_user_of_a_url_is_taken_as_it_is() {
        for user in ["me:@HOME", "@HOME:x", "a:@@b @C", "@@@", "me:s@crt"] {
            let basic = basic(None, Some(user.to_owned())).unwrap().unwrap();
            let expected = if user.contains(':') { user.to_owned() } else { format!("{user}:") };
            assert_eq!(revealed(&basic), expected);
        }
        assert_eq!(revealed(&basic(Some("me:@HOME"), None).unwrap().unwrap()), "me:from the environment");
    }

    #[test]
    fn a_body_is_posted_unless_told_otherwise() {
        let method = |args: &Request| options(args, None).unwrap().method;
        assert_eq!(method(&Request::default()), "GET");
        let mut args = Request { body: Some(String::new()), ..Request::default() };
        assert_eq!(method(&args), "POST");
        args.method = Some("PUT".to_owned());
        assert_eq!(method(&args), "PUT");
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
