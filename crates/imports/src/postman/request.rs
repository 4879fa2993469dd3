//! A request of a collection, as Lua.

use std::borrow::Cow;

use brunt_plan::secret::shown_url;

use super::javascript::without_comments;
use super::{Inherited, Writer, auth, is_there, tests_moved};
use crate::call::{Body, Call, Part};
use crate::encoded::{is_field_value, is_token, kept_but, media_type, origin_and_path};
use crate::lua::{MOST_OF_REQUEST, Step, comment, quoted, value, weight};
use crate::secret;
use crate::text::{Piece, Text};
use crate::value::Value;

/// The letters that Postman escapes in a path, and in a query.
const PATH_ESCAPES: &[u8] = b"\"<>`{}";
const QUERY_ESCAPES: &[u8] = b"\"'<>";

/// A text as Postman sends it in a query.
fn in_query(text: &str) -> String {
    kept_but(text, QUERY_ESCAPES)
}

impl<'c> Writer<'c> {
    /// The code of a request: statements before it, and an assignment to `answer`, without `local`, with its checks.
    pub(super) fn request(&mut self, item: &'c Value, name: &str, inherited: &Inherited<'c>) -> (String, String) {
        let place = inherited.place();
        let auth = item.at(&["request", "auth"]).filter(|auth| is_there(auth)).or(inherited.auth);
        // A request may consist of its URL alone.
        let request = item.get("request").unwrap_or(&Value::Null);
        let method = request.text_at("method").unwrap_or("GET").trim().to_ascii_uppercase();
        let mut call = Call { method, ..Call::default() };
        if !is_token(&call.method) {
            self.script.leave(place, format!("{} is not a method: GET is taken", comment(&call.method, 30)));
            "GET".clone_into(&mut call.method);
        }
        call.url = self.url(request, place);
        call.name = Some(comment(name, 100)).filter(|name| !name.is_empty());
        for header in headers_of(request).iter().filter(|header| !header.is_true("disabled")) {
            self.header(&mut call, header, place);
        }
        self.behavior(&mut call, inherited);
        // Postman sends no body with these, unless it is told not to prune them.
        let is_pruned = matches!(call.method.as_str(), "GET" | "HEAD" | "COPY" | "PURGE" | "UNLOCK")
            && item.at(&["protocolProfileBehavior", "disableBodyPruning"]) != Some(&Value::Bool(true));
        if let Some(body) = request.get("body").filter(|body| !is_pruned && !body.is_true("disabled")) {
            self.body(&mut call, body, place);
        }
        auth::apply(auth, place, &mut call, &mut self.variables, &mut self.script);
        let moved = tests_moved::moved(&inherited.holders, &mut self.variables, &mut self.script);
        let before = if weight(&moved.before) > MOST_OF_REQUEST {
            format!(
                "{}\n",
                self.script.not_moved(place, "a script before the request of more values than a script takes")
            )
        } else {
            moved.before
        };
        let code = format!("answer = {}\n{}", call.written(), moved.after);
        (before, self.script.bounded(code, place))
    }

    /// Applies `protocolProfileBehavior`, and lists what of it is not moved.
    fn behavior(&mut self, call: &mut Call, inherited: &Inherited<'c>) {
        let mut known: Vec<&str> = Vec::new();
        for (holder, place) in inherited.holders.iter().rev() {
            for (name, value) in holder.fields_at("protocolProfileBehavior") {
                let is_off = matches!(value, Value::Bool(false) | Value::Null) || *value == Value::Object(Vec::new());
                if known.contains(&name.as_str()) {
                    continue;
                }
                known.push(name);
                match (name.as_str(), value) {
                    ("followRedirects", Value::Bool(false)) => call.options.push("redirects = false".to_owned()),
                    ("maxRedirects", Value::Number(most)) => call.options.push(format!("redirects = {most}")),
                    ("followRedirects" | "disableBodyPruning" | "strictSSL", _) => {}
                    _ if is_off => {}
                    _ => {
                        self.script
                            .leave(place, format!("not moved: {} of protocolProfileBehavior", comment(name, 60)));
                    }
                }
            }
        }
    }

    fn text(&mut self, text: &str, place: &str) -> Text {
        self.variables.text(text, place, &mut self.script)
    }

    /// The name of a field, in which variables stand by their values.
    fn name(&mut self, name: &str, place: &str) -> String {
        self.variables.resolved(name).unwrap_or_else(|| {
            self.script.leave(place, format!("a variable in the name {} is not known here", comment(name, 60)));
            name.to_owned()
        })
    }

    /// The value of the field `name`: a secret if its name suggests one and no variable is in it.
    fn field(&mut self, name: &str, value: &str, place: &str) -> Text {
        let text = self.text(value, place);
        match text.known() {
            Some(known) if secret::is_field(name) && !known.is_empty() => {
                Text::lua(self.script.secrets.ask(name, Some(known)))
            }
            _ => text,
        }
    }

    /// The path with its query; a whole URL, if its origin is not the first one.
    fn url(&mut self, request: &'c Value, place: &str) -> Text {
        let url = request.get("url").unwrap_or(request);
        let raw = url.text().or_else(|| url.text_at("raw")).unwrap_or_default().trim().to_owned();
        // Postman reads the parts, and not the text that they came from.
        let has_parts = url.get("host").is_some() && url.get("auth").is_none() || raw.is_empty();
        let whole = put_together(url).filter(|_| has_parts).unwrap_or_else(|| raw.clone());
        let (path, has_query) = (whole.split(['?', '#']).next().unwrap_or_default().to_owned(), raw.contains('?'));
        let (prefix, rest) = self.origin(&path, place);
        let mut made = Text::plain(prefix);
        for (number, segment) in rest.split('/').enumerate() {
            if number > 0 {
                made.push(Piece::Plain("/".to_owned()));
            }
            let variable = segment.strip_prefix(':').and_then(|name| {
                let is = |one: &&Value| one.text_at("key").or_else(|| one.text_at("id")) == Some(name);
                url.list_at("variable").iter().find(is)
            });
            // Postman leaves the name where the value is empty.
            let value = variable.and_then(|one| one.get("value")?.shown()).filter(|value| !value.is_empty());
            let segment = value.unwrap_or_else(|| segment.to_owned());
            // Postman escapes neither `/` in a path nor `+` and `&` in a query where they come from a variable.
            let segment = self.variables.inlined(&segment, &['/', '?', '%']);
            let text = self.text(&segment, place);
            made.extend(text.map_plain(|text| kept_but(text, PATH_ESCAPES)).map_lua(|code| {
                if code.starts_with("brunt.env(") {
                    format!("(brunt.url_encode({code}):gsub(\"%%2F\", \"/\"))")
                } else {
                    format!("brunt.url_encode({code})")
                }
            }));
        }
        if made.known() == Some("") {
            made = Text::plain("/");
        }
        // A parameter without a value has no `=`.
        let listed: Vec<(String, Option<String>)> = match url.get("query") {
            Some(query) => {
                let kept = query.list().iter().filter(|one| !one.is_true("disabled"));
                let pair = |one: &Value| {
                    let value = one.get("value").and_then(Value::shown);
                    let name = one.text_at("key").or(value.as_ref().map(|_| ""))?;
                    Some((name.to_owned(), value))
                };
                kept.filter_map(pair).collect()
            }
            None if has_query => {
                let query = raw.split_once('?').map_or("", |(_, query)| query).split('#').next().unwrap_or_default();
                query
                    .split('&')
                    .map(|field| match field.split_once('=') {
                        Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                        None => (field.to_owned(), None),
                    })
                    .collect()
            }
            None => Vec::new(),
        };
        let is_listed = url.get("query").is_some();
        for (number, (name, text)) in listed.iter().enumerate() {
            made.push(Piece::Plain(if number == 0 { "?" } else { "&" }.to_owned()));
            let key = self.text(name, place);
            made.extend(key.map_plain(in_query).map_lua(|code| format!("brunt.url_encode({code})")));
            let Some(text) = text else { continue };
            made.push(Piece::Plain("=".to_owned()));
            let text = if is_listed {
                self.variables.inlined(text, &['+', '%']).replace('&', "%26")
            } else {
                self.variables.inlined(text, &['+', '%', '&'])
            };
            let text = self.field(name, &text.replace('#', "%23"), place);
            made.extend(text.map_plain(in_query).map_lua(|code| format!("brunt.url_encode({code})")));
        }
        made
    }

    /// The prefix of the path, empty for the script's base; and the path.
    fn origin(&mut self, url: &str, place: &str) -> (String, String) {
        let mut whole = url.to_owned();
        // Variables in a scheme, host and port have to be resolved at import.
        for _ in 0..10 {
            let host_at = whole.find("://").map_or(0, |at| at + 3);
            let end = whole.get(host_at..).and_then(|rest| rest.find('/')).map_or(whole.len(), |at| host_at + at);
            let Some((before, rest)) = whole.split_once("{{").filter(|(before, _)| before.len() < end) else { break };
            let Some((name, after)) = rest.split_once("}}") else { break };
            match self.variables.constant(name.trim()) {
                Some(value) if !value.is_empty() => whole = format!("{before}{value}{after}"),
                _ => break,
            }
        }
        if !whole.contains("://") && !whole.starts_with("{{") && !whole.starts_with('/') && !whole.is_empty() {
            whole = format!("http://{whole}");
        }
        let (authority, path) = match whole.split_once("://") {
            Some((scheme, rest)) => {
                let end = rest.find('/').unwrap_or(rest.len());
                let (host, path) = rest.split_at(end);
                (format!("{scheme}://{host}"), path.to_owned())
            }
            None if whole.starts_with("{{") => {
                let end = whole.find("}}").map_or(whole.len(), |at| at + 2);
                (String::new(), whole.get(end..).unwrap_or_default().to_owned())
            }
            None => (String::new(), whole),
        };
        let path = if path.starts_with('/') { path } else { format!("/{path}") };
        if authority.contains('@') {
            self.script.leave(place, "not moved: the user in its URL; write basic = { USER, PASSWORD }");
        }
        let Some((origin, _)) = origin_and_path(&authority) else {
            self.script.leave(
                place,
                format!(
                    "{} names no host that is known: calls go to the base; give --base-url",
                    comment(&shown_url(url), 60)
                ),
            );
            return (String::new(), path);
        };
        if self.script.base.is_empty() {
            self.script.base.clone_from(&origin);
        }
        if self.script.base == origin { (String::new(), path) } else { (origin, path) }
    }

    fn header(&mut self, call: &mut Call, header: &Value, place: &str) {
        let name = self.name(header.text_at("key").unwrap_or_default().trim(), place);
        let given = header.get("value").and_then(Value::shown).unwrap_or_default();
        if name.is_empty() || name.eq_ignore_ascii_case("content-length") {
            return;
        }
        if ["connection", "transfer-encoding"].iter().any(|known| name.eq_ignore_ascii_case(known)) {
            self.script.leave(place, format!("the header {name} is of the connection, and brunt's own"));
            return;
        }
        if !is_token(&name) || !is_field_value(&given) {
            self.script.leave(place, format!("not moved: the header {}", comment(&name, 60)));
            return;
        }
        let text = self.text(&given, place);
        let text = match text.known() {
            Some(known) if secret::is_header(&name) && !known.is_empty() => {
                Text::lua(self.script.secrets.ask(&name, Some(known)))
            }
            _ => text,
        };
        call.headers.push((name, text));
    }

    fn body(&mut self, call: &mut Call, body: &'c Value, place: &str) {
        let kept = |name: &str| body.list_at(name).iter().filter(|one| !one.is_true("disabled"));
        let pair = |one: &Value| {
            (
                one.text_at("key").unwrap_or_default().to_owned(),
                one.get("value").and_then(Value::shown).unwrap_or_default(),
            )
        };
        match body.text_at("mode").unwrap_or_default() {
            "raw" => self.raw(call, body, place),
            "urlencoded" => {
                let mut fields = Vec::new();
                if let Some(text) = body.text_at("urlencoded").filter(|text| !text.is_empty()) {
                    call.body = Body::Text(self.text(text, place));
                    if !call.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
                        let kind = Text::plain("application/x-www-form-urlencoded");
                        call.headers.push(("Content-Type".to_owned(), kind));
                    }
                }
                for (name, value) in kept("urlencoded").map(pair) {
                    let name = self.name(&name, place);
                    let text = self.field(&name, &value, place);
                    // Postman sends the values of one name together.
                    let last = fields.iter().rposition(|(known, _)| *known == name);
                    fields.insert(last.map_or(fields.len(), |last| last + 1), (name, text));
                }
                if !fields.is_empty() {
                    call.headers.retain(|(name, value)| {
                        let is_plain = value.known().is_none_or(|value| !value.contains(';'));
                        !(name.eq_ignore_ascii_case("content-type") && is_plain)
                    });
                    call.body = Body::Form(fields);
                }
            }
            "formdata" => {
                let mut parts = Vec::new();
                for one in kept("formdata") {
                    parts.extend(self.parts(one, place));
                }
                if parts.iter().any(|part| part.name.contains('"')) {
                    self.script.leave(
                        place,
                        "a quotation mark in the name of a part is sent as %22; Postman sends it as it is",
                    );
                }
                if !parts.is_empty() {
                    call.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("content-type"));
                    call.body = Body::Multipart(parts);
                }
            }
            "graphql" => {
                let query = body.at(&["graphql", "query"]).and_then(Value::text).unwrap_or_default().to_owned();
                let query = self.text(&query, place).written();
                let mut entries = vec![format!("query = {query}")];
                if let Some(operation) = body.at(&["graphql", "operationName"]).filter(|value| **value != Value::Null) {
                    let operation = self.text(operation.text().unwrap_or_default(), place).written();
                    entries.push(format!("operationName = {operation}"));
                }
                let variables = match body.at(&["graphql", "variables"]) {
                    None | Some(Value::Null) => String::new(),
                    Some(Value::Text(text)) => text.clone(),
                    // Some exporters write an object in place of its text.
                    Some(other) => other.to_json(),
                };
                if !variables.trim().is_empty() {
                    let code = match self.json(&variables, place) {
                        Some(code) => code,
                        None => self.script.not_moved(place, "variables of GraphQL that are no JSON"),
                    };
                    entries.push(format!("variables = {code}"));
                }
                call.body = Body::Json(crate::lua::table(&entries));
            }
            "file" => {
                let src = body.at(&["file", "src"]).and_then(Value::text).unwrap_or("FILE").to_owned();
                call.body = Body::Lua(self.file(&src, place));
                let kind = call.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
                if let (None, Some(kind)) = (kind, media_type(&src, false)) {
                    call.headers.push(("Content-Type".to_owned(), Text::plain(kind)));
                }
            }
            "" | "none" => {}
            other => {
                let code = self.script.not_moved(place, &format!("a body of the mode {}", comment(other, 30)));
                call.body = Body::Lua(code);
            }
        }
    }

    fn raw(&mut self, call: &mut Call, body: &Value, place: &str) {
        let raw = body.text_at("raw").unwrap_or_default().to_owned();
        if raw.is_empty() {
            return;
        }
        let language = body.at(&["options", "raw", "language"]).and_then(Value::text).unwrap_or("text");
        // Postman takes comments out of JSON.
        let has_comments = language == "json" && (raw.contains("//") || raw.contains("/*"));
        let raw = if has_comments { without_comments(&raw) } else { raw };
        let kind = call.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        let kind = kind.and_then(|(_, value)| value.known()).map(str::to_ascii_lowercase);
        let is_json = kind.as_deref().map_or(language == "json", |kind| kind.contains("json"));
        if is_json && let Some(code) = self.json(&raw, place) {
            call.body = Body::Json(code);
            call.headers.retain(|(name, value)| {
                !name.eq_ignore_ascii_case("content-type") || value.known() != Some("application/json")
            });
            return;
        }
        call.body = Body::Text(self.text(&raw, place));
        if kind.is_none() {
            let kind = match language {
                "json" => "application/json",
                "xml" => "application/xml",
                "html" => "text/html",
                "javascript" => "application/javascript",
                _ => "text/plain",
            };
            call.headers.push(("Content-Type".to_owned(), Text::plain(kind)));
        }
    }

    /// JSON with variables in it, as a table; `None` if it is not JSON, or too large for a table.
    fn json(&mut self, text: &str, place: &str) -> Option<String> {
        // A variable that holds JSON, or escapes of it, stands in the text as it is.
        let inlined = self.variables.inlined(text, &['"', '\\']);
        let whole = Value::from_json(bare_as_text(&inlined).as_bytes());
        let parsed = whole.or_else(|_| Value::from_json(bare_as_text(text).as_bytes())).ok()?;
        if !parsed.fits_a_table() {
            self.script.leave(place, "a body of JSON that no table holds stands as it is: look for secrets in it");
            return None;
        }
        Some(value(&parsed, &mut |path, leaf| {
            let Value::Text(text) = leaf else { return None };
            if let Some(name) = text.strip_prefix("{{=").and_then(|rest| rest.strip_suffix("}}")) {
                // A variable without quotes is a number, or whatever it holds.
                let code = self.variables.expression(name.trim(), place, &mut self.script);
                return Some(format!("(tonumber({code}) or {code})"));
            }
            let name = if let Some(Step::Field(name)) = path.last() { *name } else { "" };
            if name == "key" {
                return Some(self.text(text, place).written());
            }
            Some(self.field(name, text, place).written())
        }))
    }

    /// The parts of one field: several where it sends several files.
    fn parts(&mut self, one: &Value, place: &str) -> Vec<Part> {
        let name = self.name(one.text_at("key").unwrap_or_default(), place);
        let content_type = one.text_at("contentType").filter(|kind| is_field_value(kind)).map(str::to_owned);
        if one.text_at("type") == Some("file") {
            let mut files: Vec<_> = one.list_at("src").iter().filter_map(Value::text).collect();
            if files.is_empty() {
                files.push(one.text_at("src").unwrap_or("FILE"));
            }
            let part = |src: &str| Part {
                name: name.clone(),
                filename: Some(one.text_at("fileName").unwrap_or_else(|| own_name(src)).to_owned()),
                content_type: content_type.clone().or_else(|| media_type(src, false).map(str::to_owned)),
                content: Some(self.file(src, place)),
                ..Part::default()
            };
            return files.into_iter().map(part).collect();
        }
        let value = one.get("value").and_then(Value::shown).unwrap_or_default();
        let value = self.field(&name, &value, place);
        vec![Part { name, value, content_type, ..Part::default() }]
    }

    /// The expression for a file beside the script, which is read once.
    fn file(&mut self, src: &str, place: &str) -> String {
        self.script.leave(
            place,
            format!("the file {}: a script reads files of its own directory: copy it there", comment(src, 80)),
        );
        let content = format!("brunt.file({})", quoted(own_name(src)));
        self.script.file(&content)
    }
}

fn own_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().filter(|name| !name.is_empty()).unwrap_or("FILE")
}

/// The header fields of a request; version 2.0 may have them as text, one in a line.
fn headers_of(request: &Value) -> Cow<'_, [Value]> {
    let Some(Value::Text(text)) = request.get("header") else { return Cow::Borrowed(request.list_at("header")) };
    let field = |line: &str| {
        let (name, value) = line.split_once(':')?;
        let text = |name: &str, value: &str| (name.to_owned(), Value::Text(value.trim().to_owned()));
        Some(Value::Object(vec![text("key", name), text("value", value)]))
    };
    text.lines().filter_map(field).collect()
}

/// The URL made of its parts.
fn put_together(url: &Value) -> Option<String> {
    let parts = |name: &str, mark: &str| match url.get(name) {
        Some(Value::List(all)) => all.iter().map(Value::shown).collect::<Option<Vec<_>>>().map(|all| all.join(mark)),
        Some(value) => value.shown().map(|value| value.trim_start_matches('/').to_owned()),
        None => Some(String::new()),
    };
    let (host, path) = (parts("host", ".")?, parts("path", "/")?);
    let scheme = url.text_at("protocol").map_or_else(String::new, |scheme| format!("{scheme}://"));
    let port = url
        .get("port")
        .and_then(Value::shown)
        .filter(|port| !port.is_empty())
        .map_or_else(String::new, |port| format!(":{port}"));
    Some(format!("{scheme}{host}{port}/{path}"))
}

/// JSON in which variables without quotes are replaced by marked texts.
fn bare_as_text(text: &str) -> String {
    let mut made = String::with_capacity(text.len());
    let (mut in_text, mut escaped) = (false, false);
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        if !in_text
            && let Some((name, after)) = rest.strip_prefix("{{").and_then(|inner| inner.split_once("}}"))
            && !name.is_empty()
            && !name.contains(['{', '"', '\\', '\n'])
        {
            made.push_str("\"{{=");
            made.push_str(name);
            made.push_str("}}\"");
            rest = after;
            continue;
        }
        match letter {
            _ if escaped => escaped = false,
            '\\' if in_text => escaped = true,
            '"' => in_text = !in_text,
            _ => {}
        }
        made.push(letter);
        rest = rest.get(letter.len_utf8()..).unwrap_or_default();
    }
    made
}
