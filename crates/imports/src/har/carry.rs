//! Turns recorded requests into calls of a scenario: values from earlier answers are carried on, and secrets come from
//! the environment.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::archive::{Entry, Sent};
use super::choice::Chosen;
use super::source::Sources;
use crate::call::{Authorization, Body, Call, Part, form_body, is_own_form};
use crate::encoded::{decoded, form_decoded, is_field_value, is_token, kept_but};
use crate::lua::{Step, comment, value, weight};
use crate::script::Script;
use crate::secret;
use crate::text::{Piece, Text};
use crate::value::Value;

/// Header fields that a request has all the same, or that its connection decides.
const WRITTEN_ELSEWHERE: [&str; 14] = [
    "host",
    "content-length",
    "connection",
    "cookie",
    "accept-encoding",
    "user-agent",
    "accept-language",
    "content-type",
    "authorization",
    "transfer-encoding",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
];
/// Others that belong to the browser, and not to its user's actions.
const OF_BROWSERS: [&str; 15] = [
    "referer",
    "upgrade-insecure-requests",
    "pragma",
    "cache-control",
    "if-none-match",
    "if-modified-since",
    "priority",
    "dnt",
    "upgrade",
    "expect",
    "origin",
    "x-client-data",
    "save-data",
    "purpose",
    "http2-settings",
];
/// The longest body that is moved, in bytes.
const MOST_BODY: usize = 256 << 10;

/// Turns requests into calls.
pub(crate) struct Carrier<'s> {
    pub(crate) sources: Sources,
    pub(crate) script: &'s mut Script,
    pub(crate) base: &'s str,
    /// The number of the request whose call is being made.
    user: usize,
    /// Descriptions of values that are carried on without being kept under a name.
    told: Vec<String>,
}

/// A call, and the comment on it.
#[derive(Debug)]
pub(crate) struct Carried {
    pub(crate) call: Call,
    pub(crate) told: Vec<String>,
    /// An upper bound of the number of its constants.
    pub(crate) weight: usize,
}

impl<'s> Carrier<'s> {
    pub(crate) fn new(script: &'s mut Script, base: &'s str) -> Self {
        Self { sources: Sources::default(), script, base, user: 0, told: Vec::new() }
    }

    /// The call of request `place`. Values of its answer are learned afterwards.
    pub(crate) fn call(&mut self, place: usize, one: &Chosen) -> Carried {
        let entry = &one.entry;
        self.user = place;
        self.told.clear();
        let mut call = Call { method: entry.method.clone(), ..Call::default() };
        call.url = self.url(entry, &mut call.name);
        self.headers(entry, &mut call);
        match &entry.sent {
            Some(sent) => self.body(entry, sent, &mut call),
            None if entry.header("content-length").is_some_and(|length| length != "0") => {
                self.script.leave(entry.place(), "the recording has not got its body");
            }
            // Some servers refuse a POST without it, even where it has no body.
            None => {
                let given = entry.header("content-type").filter(|given| is_field_value(given));
                call.headers.extend(given.map(|given| ("Content-Type".to_owned(), Text::plain(given))));
            }
        }
        if one.stays {
            call.options.push("redirects = false".to_owned());
        }
        if one.last().status >= 400 {
            call.options.push(format!("ok = {{ {} }}", one.last().status));
        }
        self.sources.learn(place, one);
        let weight = weight(&call.written()) + 20;
        Carried { call, told: std::mem::take(&mut self.told), weight }
    }

    /// The expression for a value from an earlier answer, and whether it is a number there.
    fn carried(&mut self, value: &str, carrier: &str) -> Option<(String, bool)> {
        let found = self.sources.find(value, carrier)?;
        let code = self.sources.carried(found, self.user);
        let source = self.sources.all.get(found)?;
        if source.is_kept {
            self.told.push(format!("{carrier} is {}", source.what));
        }
        Some((code, source.is_number))
    }

    /// The value of a field: carried on, a secret, or unchanged.
    fn field(&mut self, name: &str, value: &str) -> Text {
        if let Some((code, is_number)) = self.carried(value, name) {
            return Text::lua(if is_number { format!("(\"%d\"):format({code})") } else { code });
        }
        if secret::is_field(name) && !value.is_empty() {
            return Text::lua(self.script.secrets.ask(name, Some(value)));
        }
        Text::plain(value)
    }

    fn url(&mut self, entry: &Entry, name: &mut Option<String>) -> Text {
        let (path, query) =
            entry.path.split_once('?').map_or((entry.path.as_str(), None), |(path, query)| (path, Some(query)));
        let mut url = Text::default();
        let mut folded = String::new();
        if entry.origin != self.base {
            url.push(Piece::Plain(entry.origin.clone()));
        }
        let mut before = String::new();
        for (number, segment) in path.split('/').enumerate() {
            if number > 0 {
                url.push(Piece::Plain("/".to_owned()));
                folded.push('/');
            }
            let plain = decoded(segment);
            if let Some((code, is_number)) = self.carried(&plain, &format!("{before}_id")) {
                let code =
                    if is_number { format!("(\"%d\"):format({code})") } else { format!("brunt.url_encode({code})") };
                folded.push(':');
                folded.push_str(&crate::lua::name_of(&format!("{before}_id"), "id"));
                url.push(Piece::Lua(code));
            } else {
                folded.push_str(&as_recorded(segment));
                url.push(Piece::Plain(as_recorded(segment)));
                before = plain;
            }
        }
        if folded != as_recorded(path) {
            *name = Some(format!("{} {folded}", entry.method));
        }
        if let Some(query) = query {
            for (number, field) in query.split('&').enumerate() {
                url.push(Piece::Plain(if number == 0 { "?" } else { "&" }.to_owned()));
                let Some((name, value)) = field.split_once('=') else {
                    url.push(Piece::Plain(as_recorded(field)));
                    continue;
                };
                url.push(Piece::Plain(format!("{}=", as_recorded(name))));
                let text = self.field(&form_decoded(name), &form_decoded(value));
                if text.is_known() {
                    url.push(Piece::Plain(as_recorded(value)));
                } else {
                    url.extend(text.map_lua(|code| format!("brunt.url_encode({code})")));
                }
            }
        }
        url
    }

    fn headers(&mut self, entry: &Entry, call: &mut Call) {
        for (name, value) in &entry.headers {
            let lower = name.to_ascii_lowercase();
            if WRITTEN_ELSEWHERE.contains(&lower.as_str()) {
                continue;
            }
            // What browsers accept for pages, styles and images.
            let is_negotiation = lower == "accept"
                && (value == "*/*" || ["text/html", "text/css", "image/"].iter().any(|kind| value.starts_with(kind)));
            if OF_BROWSERS.contains(&lower.as_str())
                || lower.starts_with("sec-")
                || lower.starts_with("proxy-")
                || is_negotiation
            {
                self.script.of_browsers.insert(lower);
                continue;
            }
            if !is_token(name) || !is_field_value(value) {
                self.script.leave(entry.place(), format!("not moved: the header {name}"));
                continue;
            }
            let text = match self.carried(value, name) {
                Some((code, is_number)) => Text::lua(if is_number { format!("(\"%d\"):format({code})") } else { code }),
                None if secret::is_header(name) && !value.is_empty() => {
                    Text::lua(self.script.secrets.ask(name, Some(value)))
                }
                None => Text::plain(value.as_str()),
            };
            call.headers.push((name.clone(), text));
        }
        if let Some(field) = entry.header("authorization").filter(|field| !field.is_empty()) {
            self.authorization(field, call);
        }
    }

    fn authorization(&mut self, field: &str, call: &mut Call) {
        let (scheme, rest) = field.split_once(' ').unwrap_or(("", field));
        let basic = || String::from_utf8(STANDARD.decode(rest.trim()).ok()?).ok();
        match scheme.to_ascii_lowercase().as_str() {
            "basic" => {
                if let Some((user, password)) = basic().as_deref().and_then(|both| both.split_once(':')) {
                    let password = self.script.secrets.ask("password", Some(password));
                    call.authorization = Some(Authorization::Basic(Text::plain(user), Text::lua(password)));
                    return;
                }
            }
            "bearer" => {
                let token = match self.carried(rest, "Authorization") {
                    Some((code, _)) => code,
                    None => self.script.secrets.ask("token", Some(rest)),
                };
                call.authorization = Some(Authorization::Bearer(Text::lua(token)));
                return;
            }
            _ => {}
        }
        let whole = match self.carried(rest, "Authorization") {
            Some((code, _)) => format!("{} .. {code}", crate::lua::quoted(&format!("{scheme} "))),
            None => self.script.secrets.ask("authorization", Some(field)),
        };
        call.headers.push(("Authorization".to_owned(), Text::lua(whole)));
    }

    fn body(&mut self, entry: &Entry, sent: &Sent, call: &mut Call) {
        if sent.bytes.len() > MOST_BODY {
            let what =
                format!("not moved: a body of {} bytes; send a file by body = brunt.file(\"NAME\")", sent.bytes.len());
            self.script.leave(entry.place(), what);
            return;
        }
        let given = entry.header("content-type").unwrap_or(&sent.content_type).to_owned();
        let kind = given.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let text = std::str::from_utf8(&sent.bytes).ok();
        let charset =
            given.to_ascii_lowercase().split_once("charset=").map(|(_, name)| name.trim_matches('"').to_owned());
        if let Some(charset) = charset.filter(|name| !name.starts_with("utf-8") && !sent.bytes.is_ascii())
            && text.is_some()
        {
            let charset = comment(&charset, 30);
            self.script.leave(
                entry.place(),
                format!("its body was {charset} and is sent as UTF-8: body = brunt.file(\"NAME\")"),
            );
        }
        if kind == "application/x-www-form-urlencoded" {
            let is_typed = !given.eq_ignore_ascii_case("application/x-www-form-urlencoded");
            if is_typed && is_field_value(&given) {
                call.headers.push(("Content-Type".to_owned(), Text::plain(given.as_str())));
            }
            if let Some(text) = text.filter(|text| !text.is_empty() && !is_own_form(text)) {
                let body = form_body(text, |name, value| {
                    let field = self.field(name, value);
                    (!field.is_known()).then(|| field.written())
                });
                call.body = Body::Text(body);
                if !is_typed {
                    call.headers.push(("Content-Type".to_owned(), Text::plain(given)));
                }
                return;
            }
            let fields = match text.filter(|text| !text.is_empty()) {
                Some(text) => crate::encoded::form(text),
                None => sent.fields.iter().map(|(name, value, ..)| (form_decoded(name), form_decoded(value))).collect(),
            };
            let fields = fields.into_iter().map(|(name, value)| (self.field(&name, &value), name));
            call.body = Body::Form(fields.map(|(text, name)| (name, text)).collect());
            return;
        }
        if kind == "multipart/form-data" {
            let named = |(name, content, filename, kind): &(String, String, Option<String>, Option<String>)| Field {
                name: name.clone(),
                content: content.clone(),
                filename: filename.clone(),
                // Of a field without a file, browsers name a type that they do not send.
                content_type: kind.clone().filter(|_| filename.is_some()),
                headers: Vec::new(),
            };
            let fields = if sent.fields.is_empty() {
                parts(&given, &sent.bytes)
            } else {
                sent.fields.iter().map(named).collect()
            };
            if !fields.is_empty() {
                call.body = Body::Multipart(fields.into_iter().map(|field| self.part(entry, field)).collect());
                return;
            }
        }
        if kind.ends_with("json") {
            let parsed = Value::from_json(&sent.bytes).ok();
            if parsed.as_ref().is_some_and(|parsed| !parsed.fits_a_table()) {
                self.script
                    .leave(entry.place(), "a body of JSON that no table holds stands as it is: look for secrets in it");
            }
            if let Some(parsed) = parsed.filter(Value::fits_a_table) {
                call.body = Body::Json(self.json(&parsed));
                if given != "application/json" && is_field_value(&given) {
                    call.headers.push(("Content-Type".to_owned(), Text::plain(given)));
                }
                return;
            }
        }
        if kind == "application/octet-stream" && !sent.bytes.is_ascii() && text.is_some() {
            self.script.leave(
                entry.place(),
                "a body of bytes, which the recording has as text, is sent as UTF-8: body = brunt.file(\"NAME\")",
            );
        }
        call.body = match text {
            Some(text) => Body::Text(Text::plain(text)),
            None => Body::Bytes(sent.bytes.clone()),
        };
        if given.contains('/') && is_field_value(&given) {
            call.headers.push(("Content-Type".to_owned(), Text::plain(given)));
        }
    }

    fn part(&mut self, entry: &Entry, field: Field) -> Part {
        let Field { name, content: text, filename, content_type, headers } = field;
        if filename.is_some() && text.is_empty() {
            let what =
                format!("the recording has not got the file of the field {name}: content = brunt.file(\"NAME\")");
            self.script.leave(entry.place(), what);
        }
        let value = if filename.is_some() { Text::plain(text) } else { self.field(&name, &text) };
        Part { name, value, filename, content_type, headers, content: None }
    }

    /// A JSON body as a table.
    fn json(&mut self, body: &Value) -> String {
        value(body, &mut |path: &[Step<'_>], leaf: &Value| {
            let name = path.iter().rev().find_map(|step| if let Step::Field(name) = step { Some(*name) } else { None });
            let name = name.unwrap_or_default();
            match leaf {
                Value::Text(text) => {
                    if let Some((code, is_number)) = self.carried(text, name) {
                        return Some(if is_number { format!("(\"%d\"):format({code})") } else { code });
                    }
                    let is_secret = name != "key" && secret::is_field(name) && !text.is_empty();
                    is_secret.then(|| self.script.secrets.ask(name, Some(text)))
                }
                Value::Number(number) => {
                    let (code, is_number) = self.carried(&number.to_string(), name)?;
                    Some(if is_number { code } else { format!("tonumber({code})") })
                }
                _ => None,
            }
        })
    }
}

/// A part of a form with files, as the recording has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Field {
    name: String,
    content: String,
    filename: Option<String>,
    content_type: Option<String>,
    headers: Vec<(String, String)>,
}

/// A part of a URL as the browser sent it.
fn as_recorded(text: &str) -> String {
    kept_but(text, &[])
}

/// The parts of a multipart form (RFC 7578), if they are text.
fn parts(content_type: &str, body: &[u8]) -> Vec<Field> {
    let Some(boundary) = parameter(content_type, "boundary") else { return Vec::new() };
    let Ok(text) = std::str::from_utf8(body) else { return Vec::new() };
    let delimiter = format!("--{boundary}");
    let read = |part: &str| {
        let (head, content) = part.strip_prefix("\r\n")?.split_once("\r\n\r\n")?;
        let line = |name: &str| {
            head.lines().find_map(|line| {
                let (known, value) = line.split_once(':')?;
                known.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
            })
        };
        let disposition = line("content-disposition")?;
        let content = content.strip_suffix("\r\n").unwrap_or(content).to_owned();
        let is_other = |(name, _): &(&str, &str)| {
            !["content-disposition", "content-type", "content-length"]
                .iter()
                .any(|known| name.eq_ignore_ascii_case(known))
                && is_token(name)
        };
        let others = head.lines().filter_map(|line| line.split_once(':')).filter(is_other);
        Some(Field {
            name: parameter(&disposition, "name")?,
            content,
            filename: parameter(&disposition, "filename"),
            content_type: line("content-type"),
            headers: others.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect(),
        })
    };
    text.split(delimiter.as_str()).skip(1).filter_map(read).collect()
}

/// A parameter of a header field, such as `name="a"`.
fn parameter(field: &str, name: &str) -> Option<String> {
    field.split(';').skip(1).find_map(|parameter| {
        let (known, value) = parameter.split_once('=')?;
        known.trim().eq_ignore_ascii_case(name).then(|| value.trim().trim_matches('"').to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_forms_are_read() {
        let body = b"--x\r\nContent-Disposition: form-data; name=\"a\"\r\nX-A: b\r\n\r\n1\r\n--x\r\nContent-Disposition: form-data; name=\"f\"; filename=\"b.txt\"\r\nContent-Type: text/plain\r\n\r\nc\r\n--x--\r\n";
        let read = parts("multipart/form-data; boundary=x", body);
        assert_eq!(read.len(), 2);
        let field =
            |name: &str, content: &str| Field { name: name.into(), content: content.into(), ..Field::default() };
        let kind = Some("text/plain".to_owned());
        assert_eq!(read[0], Field { headers: vec![("X-A".into(), "b".into())], ..field("a", "1") });
        assert_eq!(read[1], Field { filename: Some("b.txt".into()), content_type: kind, ..field("f", "c") });
        assert!(parts("multipart/form-data", body).is_empty());
    }
}
