//! A request as a scenario writes it.

use std::collections::HashMap;

use crate::encoded::{form_component, form_decoded};
use crate::lua::{key, quoted, quoted_bytes, table, table_behind};
use crate::text::{Piece, Text};

/// A request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Call {
    pub(crate) method: String,
    /// A path with its query, or a whole URL; its plain parts are escaped as URLs need.
    pub(crate) url: Text,
    /// Further fields of the query, without escapes.
    pub(crate) query: Vec<(String, Text)>,
    pub(crate) headers: Vec<(String, Text)>,
    pub(crate) body: Body,
    pub(crate) authorization: Option<Authorization>,
    /// The name by which it is counted, if not its method and path.
    pub(crate) name: Option<String>,
    /// Further options, as Lua code: `ok = 404`.
    pub(crate) options: Vec<String>,
}

/// The methods that a client of a scenario has functions for.
pub(crate) const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// The body of a request.
#[derive(Debug, Clone, Default)]
pub(crate) enum Body {
    #[default]
    None,
    Text(Text),
    Bytes(Vec<u8>),
    Form(Vec<(String, Text)>),
    /// A value, as Lua code.
    Json(String),
    Multipart(Vec<Part>),
    /// A Lua expression for the body.
    Lua(String),
}

/// A part of a form with files.
#[derive(Debug, Clone, Default)]
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) value: Text,
    pub(crate) filename: Option<String>,
    pub(crate) content_type: Option<String>,
    /// Further header fields.
    pub(crate) headers: Vec<(String, String)>,
    /// A Lua expression for the content, in place of `value`.
    pub(crate) content: Option<String>,
}

/// The authorization of a request.
#[derive(Debug, Clone)]
pub(crate) enum Authorization {
    Basic(Text, Text),
    Bearer(Text),
    Digest(Text, Text),
    /// Another kind, as Lua code: `aws = { … }`.
    Other(String),
}

impl Call {
    /// The call as a Lua expression, of the client `http`.
    pub(crate) fn written(&self) -> String {
        let mut arguments = vec![self.url.written()];
        let options = self.options();
        if !options.is_empty() {
            let before = arguments.iter().map(String::len).sum::<usize>().saturating_sub(20);
            arguments.push(table_behind(before, &options));
        }
        let method = match self.method.as_str() {
            known if METHODS.contains(&known) => self.method.to_ascii_lowercase(),
            other => {
                arguments.insert(0, quoted(other));
                "request".to_owned()
            }
        };
        format!("http:{method}({})", arguments.join(", "))
    }

    fn options(&self) -> Vec<String> {
        let mut options = Vec::new();
        if let Some(name) = &self.name {
            options.push(format!("name = {}", quoted(name)));
        }
        if !self.query.is_empty() {
            options.push(format!("query = {}", fields(&self.query)));
        }
        match &self.authorization {
            Some(Authorization::Basic(user, password)) => {
                options.push(format!("basic = {{ {}, {} }}", user.written(), password.written()));
            }
            Some(Authorization::Digest(user, password)) => {
                options.push(format!("digest = {{ {}, {} }}", user.written(), password.written()));
            }
            Some(Authorization::Bearer(token)) => options.push(format!("bearer = {}", token.written())),
            Some(Authorization::Other(code)) => options.push(code.clone()),
            None => {}
        }
        if !self.headers.is_empty() {
            options.push(format!("headers = {}", headers(&self.headers)));
        }
        match &self.body {
            Body::None => {}
            Body::Text(text) => options.push(format!("body = {}", text.written())),
            Body::Bytes(bytes) => options.push(format!("body = {}", quoted_bytes(bytes))),
            Body::Form(all) => options.push(format!("form = {}", fields(all))),
            Body::Json(code) => options.push(format!("json = {code}")),
            Body::Lua(code) => options.push(format!("body = {code}")),
            Body::Multipart(parts) => options.push(format!("multipart = {}", multipart(parts))),
        }
        options.extend(self.options.iter().cloned());
        options
    }
}

/// Header fields as a table; several of one name, in whatever case, are a list under the first one's name.
pub(crate) fn headers(all: &[(String, Text)]) -> String {
    let mut names: HashMap<String, &str> = HashMap::new();
    let named: Vec<_> = all
        .iter()
        .map(|(name, value)| (*names.entry(name.to_ascii_lowercase()).or_insert(name), one_text(value)))
        .collect();
    table(&grouped(named.into_iter()))
}

/// The value of a header field, as a text even where a variable may hold a number.
fn one_text(value: &Text) -> String {
    match value.0.as_slice() {
        [Piece::Lua(code)] if ["vars", "math.", "brunt.random("].iter().any(|one| code.starts_with(one)) => {
            format!("tostring({code})")
        }
        _ => value.written(),
    }
}

/// Fields of a form or a query as a table, in which several of one name become a list; or as a list of pairs, where a
/// table would send them in another order than the document has.
pub(crate) fn fields(all: &[(String, Text)]) -> String {
    in_order(all.iter().map(|(name, value)| (name.as_str(), value.written())).collect())
}

/// Names and values as Lua. A scenario sends a table's fields sorted by name.
fn in_order(all: Vec<(&str, String)>) -> String {
    let is_sorted = all.windows(2).all(|two| matches!(two, [one, other] if one.0 <= other.0));
    if is_sorted {
        return table(&grouped(all.into_iter()));
    }
    let pairs: Vec<_> = all.into_iter().map(|(name, value)| format!("{{ {}, {value} }}", quoted(name))).collect();
    table(&pairs)
}

fn multipart(parts: &[Part]) -> String {
    let written = |part: &Part| {
        let content = part.content.clone().unwrap_or_else(|| part.value.written());
        if part.filename.is_none() && part.content_type.is_none() && part.headers.is_empty() {
            return content;
        }
        let mut entries = Vec::new();
        entries.push(part.filename.as_ref().map_or_else(
            // A type alone makes no file of a field.
            || "filename = false".to_owned(),
            |name| format!("filename = {}", quoted(name)),
        ));
        entries.extend(part.content_type.iter().map(|name| format!("type = {}", quoted(name))));
        if !part.headers.is_empty() {
            let fields: Vec<_> = part.headers.iter().map(|(name, value)| (name.clone(), Text::plain(value))).collect();
            entries.push(format!("headers = {}", headers(&fields)));
        }
        entries.push(format!("content = {content}"));
        table(&entries)
    };
    in_order(parts.iter().map(|part| (part.name.as_str(), written(part))).collect())
}

fn grouped<'n>(all: impl Iterator<Item = (&'n str, String)>) -> Vec<String> {
    let mut groups: Vec<(&str, Vec<String>)> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (name, value) in all {
        let place = *places.entry(name).or_insert(groups.len());
        match groups.get_mut(place) {
            Some((_, values)) => values.push(value),
            None => groups.push((name, vec![value])),
        }
    }
    let entry = |(name, mut values): (&str, Vec<String>)| match values.pop() {
        Some(last) if values.is_empty() => format!("{} = {last}", key(name)),
        Some(last) => {
            values.push(last);
            format!("{} = {}", key(name), table(&values))
        }
        None => String::new(),
    };
    groups.into_iter().map(entry).collect()
}

/// A form as its tool sends it, byte for byte: the text of `form` alone reads back as `text` where the escapes are those
/// that a scenario writes. Fields for which `secret` has an expression are encoded when they are sent.
pub(crate) fn form_body(text: &str, mut secret: impl FnMut(&str, &str) -> Option<String>) -> Text {
    let mut made = Text::default();
    for (number, field) in text.split('&').enumerate() {
        if number > 0 {
            made.push(Piece::Plain("&".to_owned()));
        }
        let hidden = field.split_once('=').and_then(|(name, value)| {
            let code = secret(&form_decoded(name), &form_decoded(value))?;
            Some((name, code))
        });
        match hidden {
            Some((name, code)) => {
                made.push(Piece::Plain(format!("{name}=")));
                made.push(Piece::Lua(format!("brunt.url_encode({code})")));
            }
            None => made.push(Piece::Plain(field.to_owned())),
        }
    }
    made
}

/// Whether a scenario that is given the fields of a form sends this text again, byte for byte.
pub(crate) fn is_own_form(text: &str) -> bool {
    let again: Vec<_> = crate::encoded::form(text)
        .iter()
        .map(|(name, value)| format!("{}={}", form_component(name), form_component(value)))
        .collect();
    again.join("&") == text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_written_with_what_it_has() {
        let mut call = Call { method: "GET".into(), url: Text::plain("/a?b=1"), ..Call::default() };
        assert_eq!(call.written(), "http:get(\"/a?b=1\")");
        call.method = "PURGE".into();
        call.headers = vec![("X-A".into(), Text::plain("b")), ("x-a".into(), Text::lua("vars.id"))];
        assert_eq!(
            call.written(),
            "http:request(\"PURGE\", \"/a?b=1\", { headers = { [\"X-A\"] = { \"b\", tostring(vars.id) } } })"
        );
        call.headers.clear();
        call.method = "POST".into();
        let field = |name: &str, value: &str| (name.to_owned(), Text::plain(value));
        call.body = Body::Form(vec![field("a", "1"), field("b c", "2"), field("a", "3")]);
        call.authorization = Some(Authorization::Basic(Text::plain("me"), Text::lua("brunt.env(\"PASSWORD\")")));
        assert_eq!(
            call.written(),
            "http:post(\"/a?b=1\", {\n  basic = { \"me\", brunt.env(\"PASSWORD\") },\n  form = { { \"a\", \"1\" }, { \"b c\", \"2\" }, { \"a\", \"3\" } },\n})"
        );
    }
}
