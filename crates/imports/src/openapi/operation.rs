//! An operation as a function: its parameters, its body, and the check of its answer.

use std::fmt::Write as _;

use super::document::Document;
use super::sample::{Sampler, kind};
use super::security;
use crate::call::{Body, Call, Part};
use crate::encoded::{component, is_field_value, is_token, url_safe};
use crate::lua::{comment, indented, name_of, part, plain_value, quoted};
use crate::script::Script;
use crate::text::{Piece, Text};
use crate::value::Value;

/// The most fields of an answer that are checked.
const MOST_FIELDS: usize = 6;
/// The style of a text in which the characters that URLs reserve stand for themselves.
const RESERVED: &str = "reserved";
/// Names that a parameter of a function would hide.
const TAKEN: [&str; 5] = ["api", "answer", "brunt", "http", "files"];

/// An operation of a description.
pub(crate) struct Operation<'d> {
    pub(crate) document: Document<'d>,
    pub(crate) path: &'d str,
    /// The method, in lower case.
    pub(crate) method: &'d str,
    /// The item of the path, with the properties that all of its operations share.
    pub(crate) item: &'d Value,
    pub(crate) value: &'d Value,
    /// The prefix of the path, from the server's URL.
    pub(crate) prefix: &'d str,
}

/// An operation, written as Lua.
pub(crate) struct Written {
    /// The function.
    pub(crate) code: String,
    /// Values for its parameters, as Lua code.
    pub(crate) arguments: Vec<String>,
}

/// A parameter.
struct Parameter<'d> {
    name: &'d str,
    place: &'d str,
    is_required: bool,
    /// Whether the value is an example or a default.
    is_given: bool,
    value: Value,
    style: &'d str,
    explode: bool,
}

impl<'d> Operation<'d> {
    /// The name of the operation in lists and comments.
    pub(crate) fn place(&self) -> String {
        format!("{} {}", self.method.to_ascii_uppercase(), comment(self.path, 100))
    }

    /// The name of its scenario.
    pub(crate) fn name(&self) -> String {
        let id = self.value.text_at("operationId").map(str::trim).filter(|id| !id.is_empty());
        id.map_or_else(|| self.place(), |id| comment(id, 100))
    }

    pub(crate) fn written(&self, function: &str, script: &mut Script) -> Written {
        let mut sampler = Sampler::new(self.document);
        let parameters = self.parameters(&mut sampler, script);
        let mut call = Call { method: self.method.to_ascii_uppercase(), ..Call::default() };
        let (names, arguments) = self.url(&parameters, &mut call, script);
        let optional = self.more(&parameters, &mut call, script);
        self.body(&mut sampler, &mut call, script);
        security::apply(self.document, self.value, &self.place(), &mut call, script);
        for unclear in sampler.unclear {
            script.leave(self.place(), unclear);
        }
        let mut head = format!("-- {}", self.place());
        if let Some(summary) = self.value.text_at("summary").or_else(|| self.value.text_at("description")) {
            let _ = write!(head, ": {}", comment(summary.lines().next().unwrap_or_default(), 100));
        }
        head.push('\n');
        if !optional.is_empty() {
            let _ = writeln!(head, "-- It also takes {}.", comment(&optional.join(", "), 200));
        }
        let expected = self.expected(&mut call);
        if let Some(others) = expected.others {
            let _ = writeln!(head, "-- Also documented: {}.", comment(&others, 200));
        }
        let request = script.bounded(format!("answer = {}\n{}", call.written(), expected.check), &self.place());
        let body = format!("local {}\nreturn answer", request.trim_end());
        let code = format!("{head}function api{}({})\n{}\nend\n", part(function), names.join(", "), indented(&body));
        Written { code, arguments }
    }

    fn parameters(&self, sampler: &mut Sampler<'d>, script: &mut Script) -> Vec<Parameter<'d>> {
        let mut all: Vec<Parameter<'d>> = Vec::new();
        for value in self.item.list_at("parameters").iter().chain(self.value.list_at("parameters")).take(500) {
            let Some(parameter) = self.document.resolved(value) else {
                script.leave(
                    self.place(),
                    format!("not moved: a parameter by {}", value.text_at("$ref").unwrap_or("a reference")),
                );
                continue;
            };
            let (Some(name), Some(place)) = (parameter.text_at("name"), parameter.text_at("in")) else { continue };
            let media = parameter.fields_at("content").first().map(|(_, media)| media);
            let schema = parameter.get("schema").or_else(|| media?.get("schema"));
            let example = self.example(parameter).or_else(|| self.example(media?));
            let schema = schema.and_then(|schema| self.document.resolved(schema));
            let is_named = |schema: &&Value| {
                let given = ["example", "examples", "default", "const"].iter().filter_map(|name| schema.get(name));
                given.into_iter().any(|given| *given != Value::Null)
            };
            let is_given = example.is_some() || schema.as_ref().is_some_and(is_named);
            let value = example.unwrap_or_else(|| {
                schema.map_or_else(|| Value::Text("text".to_owned()), |schema| sampler.value(schema, name))
            });
            let style = match (media, parameter.text_at("style"), place) {
                (Some(_), ..) => "content",
                (_, Some(style), _) => style,
                (.., "query" | "cookie") => "form",
                _ => "simple",
            };
            let explode = parameter.get("explode").map_or(style == "form", |explode| *explode == Value::Bool(true));
            let is_required = parameter.is_true("required") || place == "path";
            // The operation's own parameter replaces the path's.
            all.retain(|known| (known.name, known.place) != (name, place));
            let is_reserved = style == "form" && parameter.is_true("allowReserved") && value.text().is_some();
            let style = if is_reserved { RESERVED } else { style };
            all.push(Parameter { name, place, is_required, is_given, value, style, explode });
        }
        all
    }

    /// An example beside a schema.
    fn example(&self, holder: &'d Value) -> Option<Value> {
        let first = || {
            let (_, example) = holder.fields_at("examples").first()?;
            self.document.resolved(example)?.get("value")
        };
        holder.get("example").or_else(first).filter(|value| **value != Value::Null).cloned()
    }

    /// Sets the path, whose parameters become those of the function. Returns their names and values.
    fn url(&self, parameters: &[Parameter<'d>], call: &mut Call, script: &mut Script) -> (Vec<String>, Vec<String>) {
        let (mut names, mut arguments, mut known): (Vec<String>, Vec<String>, Vec<&str>) =
            (Vec::new(), Vec::new(), Vec::new());
        let mut url = Text::plain(url_safe(self.prefix));
        let mut escaped: Vec<bool> = Vec::new();
        let mut rest = self.path;
        while let Some((before, after)) = rest.split_once('{') {
            let Some((name, after)) = after.split_once('}') else { break };
            url.push(Piece::Plain(url_safe(before)));
            rest = after;
            let place = known.iter().position(|other| *other == name).unwrap_or_else(|| {
                known.push(name);
                let wanted = name_of(name, "value");
                let wanted = if TAKEN.contains(&wanted.as_str()) { format!("{wanted}_") } else { wanted };
                let numbered = (2..).map(|number| format!("{wanted}_{number}"));
                let free = |one: &String| !names.contains(one);
                names.push(std::iter::once(wanted.clone()).chain(numbered).take(1_000).find(free).unwrap_or(wanted));
                let parameter = parameters.iter().find(|one| one.place == "path" && one.name == name);
                if parameter.is_none() {
                    script.leave(self.place(), format!("the path's {{{name}}} is not described"));
                }
                let styled = parameter.and_then(in_path);
                escaped.push(styled.is_some());
                let value = parameter.map_or_else(|| Value::Text("1".to_owned()), |one| one.value.clone());
                arguments.push(match (&value, styled) {
                    (_, Some(styled)) => quoted(&styled),
                    (Value::Number(_) | Value::Text(_), None) => plain_value(&value),
                    _ => quoted(&joined(&value)),
                });
                names.len() - 1
            });
            let name = names.get(place).cloned().unwrap_or_default();
            let is_escaped = escaped.get(place) == Some(&true);
            url.push(Piece::Lua(if is_escaped { name } else { format!("brunt.url_encode(tostring({name}))") }));
        }
        url.push(Piece::Plain(url_safe(rest)));
        if !names.is_empty() {
            call.name = Some(format!("{} {}", call.method, comment(&format!("{}{}", self.prefix, self.path), 150)));
        }
        // Lua allows 200 locals.
        if names.len() > 50 {
            script.leave(self.place(), "it has more than 50 parameters in its path");
            return (Vec::new(), Vec::new());
        }
        call.url = url;
        (names, arguments)
    }

    /// Sets the query, header fields and cookies. Returns the names of those that are left out.
    fn more(&self, parameters: &[Parameter<'d>], call: &mut Call, script: &mut Script) -> Vec<String> {
        let mut optional = Vec::new();
        let (mut cookies, mut literal) = (Vec::new(), String::new());
        for one in parameters.iter().filter(|one| one.place != "path") {
            if !one.is_required && !one.is_given {
                optional.push(format!("{} ({})", one.name, one.place));
                continue;
            }
            if let Some(text) = as_written(one) {
                let mark = if literal.is_empty() { "" } else { "&" };
                let _ = write!(literal, "{mark}{}={text}", component(one.name));
                continue;
            }
            match one.place {
                "query" => call.query.extend(self.query(one, script)),
                "header" => {
                    let value = joined(&one.value);
                    // Content types and authorization are described elsewhere (OpenAPI 3.0.3, Parameter Object).
                    if matches!(one.name.to_ascii_lowercase().as_str(), "accept" | "content-type" | "authorization") {
                        continue;
                    }
                    if is_token(one.name) && is_field_value(&value) {
                        call.headers.push((one.name.to_owned(), Text::plain(value)));
                    } else {
                        script.leave(self.place(), format!("not moved: the header {}", one.name));
                    }
                }
                "cookie" => cookies.push(format!("{}={}", one.name, joined(&one.value))),
                other => script.leave(self.place(), format!("not moved: the parameter {} in {other}", one.name)),
            }
        }
        if !literal.is_empty() {
            let has_query = call.url.0.iter().any(|piece| matches!(piece, Piece::Plain(text) if text.contains('?')));
            call.url.push(Piece::Plain(format!("{}{literal}", if has_query { '&' } else { '?' })));
        }
        let cookies = cookies.join("; ");
        if !cookies.is_empty() && is_field_value(&cookies) {
            call.headers.push(("Cookie".to_owned(), Text::plain(cookies)));
        }
        optional
    }

    fn query(&self, one: &Parameter<'d>, script: &mut Script) -> Vec<(String, Text)> {
        let name = one.name.to_owned();
        match &one.value {
            value if one.style == "content" => {
                let text = if let Value::Text(text) = value { text.clone() } else { value.to_json() };
                vec![(name, Text::plain(text))]
            }
            Value::List(all) if one.style == "form" && one.explode => {
                all.iter().map(|value| (name.clone(), Text::plain(joined(value)))).collect()
            }
            Value::List(all) => {
                let mark = match one.style {
                    "spaceDelimited" => " ",
                    "pipeDelimited" => "|",
                    "tabDelimited" => "\t",
                    _ => ",", // of a style that the description does not know
                };
                let all: Vec<_> = all.iter().map(joined).collect();
                vec![(name, Text::plain(all.join(mark)))]
            }
            Value::Object(fields) if one.style == "deepObject" => {
                fields.iter().map(|(field, value)| (format!("{name}[{field}]"), Text::plain(joined(value)))).collect()
            }
            Value::Object(fields) if one.style == "form" && one.explode => {
                fields.iter().map(|(field, value)| (field.clone(), Text::plain(joined(value)))).collect()
            }
            Value::Object(_) => {
                script.leave(self.place(), format!("the query's {name} is an object: look how it is written"));
                vec![(name, Text::plain(one.value.to_json()))]
            }
            value => vec![(name, Text::plain(joined(value)))],
        }
    }

    fn body(&self, sampler: &mut Sampler<'d>, call: &mut Call, script: &mut Script) {
        let Some(body) = self.value.get("requestBody") else { return };
        let Some(body) = self.document.resolved(body) else {
            script.leave(self.place(), "not moved: a body by a reference out of the document");
            return;
        };
        let content = body.fields_at("content");
        let is = |test: fn(&str) -> bool| content.iter().find(move |(kind, _)| test(&bare(kind)));
        let chosen = is(|kind| kind == "application/json")
            .or_else(|| is(|kind| kind.ends_with("json")))
            .or_else(|| is(|kind| kind == "application/x-www-form-urlencoded"))
            .or_else(|| is(|kind| kind == "multipart/form-data"))
            .or_else(|| content.first());
        let Some((kind, media)) = chosen else { return };
        let schema = media.get("schema");
        let example = self.example(media);
        let has_example = example.is_some();
        let value = example.unwrap_or_else(|| schema.map_or(Value::Null, |schema| sampler.value(schema, "body")));
        let bare = bare(kind);
        match bare.as_str() {
            "application/x-www-form-urlencoded" => call.body = Body::Form(form_fields(&value, media)),
            "multipart/form-data" => call.body = Body::Multipart(self.parts(&value, media)),
            json if json.ends_with("json") || json == "*/*" => {
                let fits = value.fits_a_table();
                call.body =
                    if fits { Body::Json(plain_value(&value)) } else { Body::Text(Text::plain(value.to_json())) };
                let kind = if json == "*/*" { "application/json" } else { kind.trim() };
                if (!fits || kind != "application/json") && is_field_value(kind) {
                    call.headers.push(("Content-Type".to_owned(), Text::plain(kind)));
                }
            }
            other => {
                let text = if let Value::Text(text) = &value { text.clone() } else { value.to_json() };
                if !has_example && !other.starts_with("text/plain") {
                    script.leave(
                        self.place(),
                        format!("a body of the type {}: write it, or body = brunt.file(\"NAME\")", comment(other, 60)),
                    );
                }
                call.body = Body::Text(Text::plain(text));
                if is_field_value(kind) && kind.contains('/') && !kind.contains('*') {
                    call.headers.push(("Content-Type".to_owned(), Text::plain(kind.as_str())));
                }
            }
        }
    }

    fn parts(&self, value: &Value, media: &'d Value) -> Vec<Part> {
        let schema = media.get("schema").and_then(|schema| self.document.resolved(schema));
        let is_file = |name: &str| {
            let property = schema.and_then(|schema| self.document.get(schema.get("properties")?, name));
            let property = property.map(|one| self.document.get(one, "items").unwrap_or(one));
            property.is_some_and(|one| one.text_at("format") == Some("binary") || one.get("contentMediaType").is_some())
        };
        let kind_of = |name: &str, value: &Value| {
            let given = media.at(&["encoding", name, "contentType"]).and_then(Value::text);
            let given = given.map(|kinds| kinds.split(',').next().unwrap_or_default().trim().to_owned());
            let is_object = matches!(value, Value::Object(_));
            given.filter(|kind| !kind.contains('*')).or_else(|| is_object.then(|| "application/json".to_owned()))
        };
        let part = |(name, value): (&String, &Value)| Part {
            name: name.clone(),
            value: Text::plain(joined(value)),
            filename: is_file(name).then(|| "file.bin".to_owned()),
            content_type: kind_of(name, value),
            ..Part::default()
        };
        value.fields().iter().flat_map(|(name, value)| each(value).map(move |value| (name, value))).map(part).collect()
    }

    /// The expected answer, and other documented ones.
    fn expected(&self, call: &mut Call) -> Expected {
        let all: Vec<(&str, &Value)> =
            self.value.fields_at("responses").iter().map(|(status, value)| (status.as_str(), value)).collect();
        let is_success = |status: &str| status.starts_with(['2', '3']);
        let (good, bad): (Vec<_>, Vec<_>) = all.into_iter().partition(|(status, _)| is_success(status));
        let only_bad = good.is_empty() && !bad.is_empty() && bad.iter().all(|(status, _)| *status != "default");
        let wanted = if only_bad { &bad } else { &good };
        let statuses: Vec<&str> =
            wanted.iter().map(|(status, _)| *status).filter(|status| condition(status).is_some()).take(8).collect();
        let mut checks = Vec::new();
        if statuses.is_empty() {
            checks.push("[\"is a success\"] = answer.ok".to_owned());
        } else {
            let conditions: Vec<_> = statuses.iter().filter_map(|status| condition(status)).collect();
            checks.push(format!("[\"is {}\"] = {}", statuses.join(" or "), conditions.join(" or ")));
        }
        if only_bad && !statuses.is_empty() {
            call.options.push(format!("ok = {}", quoted(&statuses.join(",").to_ascii_lowercase())));
        }
        if let (false, Some((_, response))) = (only_bad, good.first()) {
            checks.extend(self.fields_of(response));
        }
        let others: Vec<String> = if only_bad {
            Vec::new()
        } else {
            bad.iter().map(|(status, value)| self.described(status, value)).collect()
        };
        let check = format!("brunt.check(answer, {})", crate::lua::table(&checks));
        Expected { check, others: (!others.is_empty()).then(|| others.join(", ")) }
    }

    fn described(&self, status: &str, response: &'d Value) -> String {
        let said = self.document.resolved(response).and_then(|one| one.text_at("description")).unwrap_or_default();
        let said = comment(said.lines().next().unwrap_or_default(), 40);
        let status = comment(status, 10);
        if said.is_empty() { status } else { format!("{status} ({said})") }
    }

    /// A check of the fields that the answer must have.
    fn fields_of(&self, response: &'d Value) -> Option<String> {
        let response = self.document.resolved(response)?;
        let (_, media) = response.fields_at("content").iter().find(|(kind, _)| bare(kind).ends_with("json"))?;
        let schema = self.document.get(media, "schema")?;
        if kind(schema) == "array" {
            return None;
        }
        let required = self.required(schema, 0);
        if required.is_empty() {
            return None;
        }
        let conditions: Vec<_> =
            required.iter().map(|name| format!("answer:has_jsonpath({})", quoted(&path_of(name)))).collect();
        let names: Vec<_> = required.iter().map(|name| comment(name, 40)).collect();
        Some(format!("[{}] = answer.ok and {}", quoted(&format!("has {}", names.join(", "))), conditions.join(" and ")))
    }

    fn required(&self, schema: &'d Value, depth: usize) -> Vec<&'d str> {
        let mut names: Vec<&str> = Vec::new();
        if depth < 5 {
            for part in schema.list_at("allOf") {
                names.extend(
                    self.document.resolved(part).map(|part| self.required(part, depth + 1)).unwrap_or_default(),
                );
            }
        }
        let is_answered = |name: &&str| {
            let property = schema.get("properties").and_then(|all| self.document.get(all, name));
            !property.is_some_and(|one| one.is_true("writeOnly"))
        };
        names.extend(schema.list_at("required").iter().filter_map(Value::text).filter(is_answered));
        names.truncate(MOST_FIELDS);
        names
    }
}

/// The values that a field of a form sends: a list sends each of its own.
fn each(value: &Value) -> impl Iterator<Item = &Value> {
    let whole = if let Value::List(_) = value { None } else { Some(value) };
    whole.into_iter().chain(value.list())
}

/// The fields of a form; `encoding` says whether a list is one field or several.
fn form_fields(value: &Value, media: &Value) -> Vec<(String, Text)> {
    let is_one = |name: &str| media.at(&["encoding", name, "explode"]) == Some(&Value::Bool(false));
    let field = |(name, value): &(String, Value)| -> Vec<(String, Text)> {
        if is_one(name) {
            return vec![(name.clone(), Text::plain(joined(value)))];
        }
        each(value).map(|one| (name.clone(), Text::plain(joined(one)))).collect()
    };
    value.fields().iter().flat_map(field).collect()
}

/// A value in a path as its style writes it (OpenAPI 3.1.1, style examples), with its escapes; `None` for a plain value.
fn in_path(one: &Parameter<'_>) -> Option<String> {
    let text = |value: &Value| component(&joined(value));
    let name = component(one.name);
    let (begin, mark) = match one.style {
        "matrix" => (";", ";"),
        "label" => (".", "."),
        _ => ("", ","),
    };
    let (values, is_named): (Vec<String>, bool) = match &one.value {
        Value::List(all) if one.explode && begin == ";" => {
            (all.iter().map(|value| format!("{name}={}", text(value))).collect(), true)
        }
        Value::List(all) => (all.iter().map(text).collect(), false),
        Value::Object(fields) if one.explode => {
            (fields.iter().map(|(field, value)| format!("{}={}", component(field), text(value))).collect(), true)
        }
        Value::Object(fields) => {
            (fields.iter().flat_map(|(field, value)| [component(field), text(value)]).collect(), false)
        }
        _ if begin.is_empty() => return None,
        value => (vec![text(value)], false),
    };
    let name = if begin == ";" && !is_named { format!("{name}=") } else { String::new() };
    Some(format!("{begin}{name}{}", values.join(if one.explode { mark } else { "," })))
}

/// The value of a query's parameter whose marks are not escaped: the commas between the parts of one value, or whatever
/// URLs reserve (OpenAPI 3.0.3, Parameter Object).
fn as_written(one: &Parameter<'_>) -> Option<String> {
    if one.place != "query" || !matches!(one.style, "form" | RESERVED) {
        return None;
    }
    let part = |value: &Value| component(&joined(value));
    match &one.value {
        Value::List(all) if !one.explode => Some(all.iter().map(part).collect::<Vec<_>>().join(",")),
        Value::Object(fields) if !one.explode => {
            let parts = fields.iter().flat_map(|(field, value)| [component(field), part(value)]);
            Some(parts.collect::<Vec<_>>().join(","))
        }
        Value::Text(text) if one.style == RESERVED => Some(url_safe(text).replace('#', "%23").replace('&', "%26")),
        _ => None,
    }
}

struct Expected {
    check: String,
    others: Option<String>,
}

/// The condition of a status as a description has it: `200`, `2XX`.
fn condition(status: &str) -> Option<String> {
    if let Ok(status) = status.parse::<u16>() {
        return Some(format!("answer.status == {status}"));
    }
    let class = status
        .get(..1)?
        .parse::<u16>()
        .ok()
        .filter(|_| status.to_ascii_uppercase().ends_with("XX") && status.len() == 3)?;
    Some(format!("math.floor(answer.status / 100) == {class}"))
}

/// A media type without its parameters.
fn bare(kind: &str) -> String {
    kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// A value as a text: the elements of a list joined by commas.
fn joined(value: &Value) -> String {
    match value {
        Value::List(all) => all.iter().map(joined).collect::<Vec<_>>().join(","),
        Value::Object(_) => value.to_json(),
        value => value.shown().unwrap_or_default(),
    }
}

/// The JSONPath of a field.
fn path_of(name: &str) -> String {
    if crate::lua::is_name(name) { format!("$.{name}") } else { format!("$[{}]", serde_json::Value::from(name)) }
}
