//! Requests of `k6/http`, and their parameters.

use crate::constant::{self, Constant};
use crate::expressions::braced;
use crate::helpers::Helper;
use crate::names::Kind;
use crate::script::{Script, without_user};
use crate::syntax::Node;
use crate::text::{self, key, quoted};

/// Parts of a request's options, in Lua.
type Parts = Vec<String>;

/// A request's options: a table that the script already has, and further parts.
#[derive(Default)]
struct Options {
    base: Option<String>,
    parts: Parts,
}

impl Options {
    fn is_empty(&self) -> bool {
        self.base.is_none() && self.parts.is_empty()
    }
}

impl<'t> Script<'t> {
    /// A call of `k6/http`.
    pub(crate) fn request(&mut self, node: Node<'t>, function: &str) -> String {
        let arguments = node.arguments();
        let at = |place: usize| arguments.get(place).copied();
        match function {
            "get" | "head" => self.send(function, at(0), None, at(1)),
            "post" | "put" | "patch" | "options" => self.send(function, at(0), at(1), at(2)),
            "del" => self.send("delete", at(0), at(1), at(2)),
            "request" => {
                let method = at(0).map_or_else(|| "\"GET\"".to_owned(), |method| self.expression(method));
                let options = self.options(at(1), at(2), at(3));
                let url = at(1).map_or_else(String::new, |url| self.url(url));
                format!("http:request({method}, {url}{})", self.behind(options))
            }
            "batch" => self.batch(node, at(0)),
            "file" => {
                let content = at(0).map_or_else(String::new, |content| self.expression(content));
                let mut parts = vec![format!("content = {content}")];
                for (place, name) in [(1, "filename"), (2, "type")] {
                    if let Some(value) = at(place) {
                        parts.push(format!("{name} = {}", self.expression(value)));
                    }
                }
                braced(&parts)
            }
            "url" => self.not_moved(node, "name a request by { name = … }"),
            "expectedStatuses" | "setResponseCallback" => {
                self.not_moved(node, "give --ok-status, or ok = { 200, 404 } in a request")
            }
            _ => self.not_moved(node, ""),
        }
    }

    fn send(
        &mut self,
        method: &str,
        url: Option<Node<'t>>,
        body: Option<Node<'t>>,
        parameters: Option<Node<'t>>,
    ) -> String {
        let options = self.options(url, body, parameters);
        // Digest has the user of the URL, which would send Basic.
        let has_digest = options.parts.iter().any(|part| part.starts_with("digest"));
        let url = match url.and_then(text::literal).filter(|_| has_digest) {
            Some(text) => self.path(quoted(&without_user(&text))),
            None => url.map_or_else(String::new, |url| self.url(url)),
        };
        format!("http:{method}({url}{})", self.behind(options))
    }

    /// A URL; a path if it begins with the client's base.
    fn url(&mut self, node: Node<'t>) -> String {
        let written = self.expression(node);
        self.path(written)
    }

    /// A literal URL; a path if it begins with the client's base.
    fn path(&self, written: String) -> String {
        let Some(base) = &self.base else { return written };
        let Some(rest) = written.strip_prefix(&format!("\"{base}")) else { return written };
        match rest.chars().next() {
            Some('/') => format!("\"{rest}"),
            // The whole text is the base.
            Some('"') if rest.len() == 1 => "\"/\"".to_owned(),
            _ => written,
        }
    }

    /// The options of a request: its body and its parameters.
    fn options(&mut self, url: Option<Node<'t>>, body: Option<Node<'t>>, parameters: Option<Node<'t>>) -> Options {
        let parts = body.map_or_else(Vec::new, |body| self.body_of(body).into_iter().collect());
        let mut options = Options { base: None, parts };
        let Some(given) = parameters.map(Node::bare) else { return options };
        match given.kind() {
            "object" => {
                let parts = self.parameter_parts(given, url);
                options.parts.extend(parts);
            }
            "null" | "undefined" => {}
            _ => {
                // The script's own objects are moved as options. An object from elsewhere may have other fields.
                if !self.names.is_parameters(given) {
                    self.leave(given, format!("{}: taken for options of a request as brunt has them", given.shown()));
                }
                options.base = Some(self.expression(given));
            }
        }
        options
    }

    /// A body: an object is a form, and any other value a text.
    fn body_of(&mut self, body: Node<'t>) -> Option<String> {
        let bare = body.bare();
        if matches!(bare.kind(), "null" | "undefined") {
            return None;
        }
        let has_files = |node: Node<'t>| {
            node.all().into_iter().any(|inner| {
                inner.kind() == "call_expression"
                    && inner.field("function").and_then(Node::member).is_some_and(|(_, name)| name == "file")
            })
        };
        let fields = self.names.fields_of(bare);
        let value = match bare.kind() {
            "identifier" => self.names.values.get(bare.text()).copied().unwrap_or(bare),
            _ => bare,
        };
        if fields.is_some() || self.names.kind_of(bare) == Kind::Object {
            let kind = if has_files(value) { "multipart" } else { "form" };
            return Some(format!("{kind} = {}", self.expression(bare)));
        }
        if self.names.kind_of(bare) == Kind::Unknown {
            self.leave(bare, format!("{}: taken for a text; an object is form = {}", bare.shown(), bare.shown()));
        }
        Some(format!("body = {}", self.expression(bare)))
    }

    /// The parameters of a request in a variable of their own, as options.
    pub(crate) fn parameters(&mut self, object: Node<'t>) -> String {
        let parts = self.parameter_parts(object, None);
        braced(&parts)
    }

    fn parameter_parts(&mut self, object: Node<'t>, url: Option<Node<'t>>) -> Parts {
        let mut parts = Vec::new();
        let (fields, others) = constant::fields(object, &self.names.values);
        for other in others {
            self.leave(other, format!("not moved: {} in a request's parameters", other.shown()));
        }
        for (name, value) in fields {
            match name.as_str() {
                "headers" => parts.push(format!("headers = {}", self.expression(value))),
                "tags" => self.tags(value, &mut parts),
                "timeout" => parts.push(match constant::evaluate(value, &self.names.values) {
                    Constant::Number(ms) => format!("timeout = {}", ms / 1e3),
                    _ => format!("timeout = {}", self.expression(value)),
                }),
                "redirects" => match constant::evaluate(value, &self.names.values) {
                    Constant::Number(most) if most <= 0.0 => parts.push("redirects = false".to_owned()),
                    _ => parts.push(format!("redirects = {}", self.expression(value))),
                },
                "responseType" if text::literal(value).as_deref() == Some("none") => {
                    parts.push("discard = true".to_owned());
                }
                "responseType" => {}
                "cookies" => self.cookies(value, &mut parts),
                "auth" => self.authorization(value, url, &mut parts),
                "responseCallback" => match self.expected(value) {
                    Some(ok) => parts.push(format!("ok = {ok}")),
                    None => self.leave(value, "not moved: responseCallback; write ok = { 200, 404 }"),
                },
                _ => self.leave(value, format!("not moved: {name} of a request's parameters")),
            }
        }
        parts
    }

    /// Tags; the one called `name` is the request's name.
    fn tags(&mut self, value: Node<'t>, parts: &mut Parts) {
        let (fields, others) = if value.kind() == "object" {
            constant::fields(value, &self.names.values)
        } else {
            let named = self.names.fields_of(value).unwrap_or_default();
            let written = self.expression(value);
            if named.iter().any(|(name, _)| name == "name") {
                parts.push(format!("name = {written}.name"));
            }
            parts.push(format!("tags = {written}"));
            return;
        };
        for other in others {
            self.leave(other, format!("not moved: the tags {}", other.shown()));
        }
        let mut tags = Vec::new();
        for (name, value) in fields {
            let written = self.expression(value);
            if name == "name" {
                parts.push(format!("name = {written}"));
            } else {
                tags.push(format!("{} = {written}", key(&name)));
            }
        }
        if !tags.is_empty() {
            parts.push(format!("tags = {}", braced(&tags)));
        }
    }

    /// A request's cookies, as its header.
    fn cookies(&mut self, value: Node<'t>, parts: &mut Parts) {
        let fields = self.names.fields_of(value).unwrap_or_default();
        let text = |(name, value): &(String, Node<'t>)| match constant::evaluate(*value, &self.names.values) {
            Constant::Text(text) => Some(format!("{name}={text}")),
            _ => None,
        };
        // Either all of them are literals, or none counts as one.
        let texts = fields.iter().map(text).collect::<Option<Vec<_>>>().unwrap_or_default();
        if texts.is_empty() || parts.iter().any(|part| part.starts_with("headers")) {
            self.leave(value, "not moved: cookies of a request; write headers = { Cookie = … }");
        } else {
            parts.push(format!("headers = {{ Cookie = {} }}", quoted(&texts.join("; "))));
        }
    }

    /// A request's authorization; the user is in its URL.
    fn authorization(&mut self, value: Node<'t>, url: Option<Node<'t>>, parts: &mut Parts) {
        let kind = text::literal(value).unwrap_or_default();
        if kind == "basic" {
            // brunt sends Basic by itself for a user in the URL.
            return;
        }
        let user = url.and_then(text::literal).and_then(|url| {
            let (_, rest) = url.split_once("://")?;
            let (user, _) = rest.split_once('@')?;
            let (name, password) = user.split_once(':')?;
            Some((name.to_owned(), password.to_owned()))
        });
        match (kind.as_str(), user) {
            ("digest", Some((name, password))) => {
                parts.push(format!("digest = {{ {}, {} }}", quoted(&name), quoted(&password)));
            }
            ("digest", None) => self.leave(value, "not moved: auth; write digest = { user, password }"),
            _ => self.leave(value, format!("not moved: auth {}", value.shown())),
        }
    }

    /// `http.expectedStatuses(200, { min: 400, max: 404 })` as a list of statuses.
    fn expected(&self, call: Node<'t>) -> Option<String> {
        let (_, function) = self.names.called(call)?;
        if function != "expectedStatuses" {
            return None;
        }
        let mut all = Vec::new();
        for argument in call.arguments() {
            match constant::evaluate(argument, &self.names.values) {
                Constant::Number(status) => all.push(status.to_string()),
                Constant::Object(fields) => {
                    let get =
                        |name: &str| fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.text());
                    all.push(format!("{}-{}", get("min")?, get("max")?));
                }
                _ => return None,
            }
        }
        Some(quoted(&all.join(",")))
    }

    /// Several requests at once.
    fn batch(&mut self, node: Node<'t>, list: Option<Node<'t>>) -> String {
        let Some(list) = list.map(Node::bare).filter(|list| list.kind() == "array") else {
            return self.not_moved(node, "http:batch takes a list of requests, each { method, path, options }");
        };
        let mut all = Vec::new();
        for one in list.children() {
            let bare = self.names.values.get(one.bare().text()).map_or(one, |known| *known).bare();
            let (method, url, body, parameters) = match bare.kind() {
                "array" => {
                    let parts = bare.children();
                    let at = |place: usize| parts.get(place).copied();
                    (at(0), at(1), at(2), at(3))
                }
                "object" => {
                    let (fields, others) = constant::fields(bare, &self.names.values);
                    for other in others {
                        self.leave(other, format!("not moved: {} of a request", other.shown()));
                    }
                    let get = |name: &str| fields.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
                    (get("method"), get("url"), get("body"), get("params"))
                }
                _ => {
                    if self.names.kind_of(bare) != Kind::Text {
                        self.leave(
                            bare,
                            format!("{}: taken for a URL; a request is {{ method, path, options }}", bare.shown()),
                        );
                    }
                    (None, Some(bare), None, None)
                }
            };
            let options = self.options(url, body, parameters);
            let url = url.map_or_else(String::new, |url| self.url(url));
            let method = method.map_or_else(|| "\"GET\"".to_owned(), |method| self.expression(method));
            let is_plain = options.is_empty() && method == "\"GET\"";
            all.push(if is_plain { url } else { format!("{{ {method}, {url}{} }}", self.behind(options)) });
        }
        format!("http:batch {}", braced(&all))
    }

    /// Options as the last argument of a request, if there are any.
    fn behind(&mut self, options: Options) -> String {
        match (options.base, options.parts.as_slice()) {
            (None, []) => String::new(),
            (None, parts) => format!(", {}", braced(parts)),
            (Some(base), []) => format!(", {base}"),
            (Some(base), parts) => {
                self.helper(Helper::Merged);
                format!(", merged({base}, {})", braced(parts))
            }
        }
    }
}
