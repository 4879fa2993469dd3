//! Calls of functions: k6's own, JavaScript's, and the script's.

use crate::helpers::Helper;
use crate::names::{Kind, Metric};
use crate::options::shown;
use crate::script::{Script, is_function};
use crate::syntax::Node;
use crate::text::{self, quoted};

/// The time in milliseconds, as `Date.now()` gives it.
pub(crate) const NOW: &str = "math.floor(brunt.now() * 1000)";

impl<'t> Script<'t> {
    /// A call.
    pub(crate) fn call(&mut self, node: Node<'t>) -> String {
        if let Some((module, function)) = self.names.called(node) {
            return self.call_of_module(node, &module, &function);
        }
        let Some(function) = node.field("function").map(Node::bare) else { return self.not_moved(node, "") };
        let has_spread = node.arguments().iter().any(|argument| argument.kind() == "spread_element");
        let is_tagged = node.field("arguments").is_none_or(|arguments| arguments.kind() == "template_string");
        if is_tagged || has_spread || node.is_optional() || function.is_optional() {
            return self.not_moved(node, "");
        }
        match function.member() {
            Some((object, name)) => match object.text() {
                "Math" => self.math(node, name),
                "JSON" => self.json(node, name),
                "console" => self.console(node, name),
                "Date" if name == "now" => NOW.to_owned(),
                "Object" if name == "keys" => self.not_moved(node, "for key in pairs(object) goes through its keys"),
                "String" | "Number" | "Array" | "Object" | "Date" | "Promise" => self.not_moved(node, ""),
                _ => self.method(node, object, name),
            },
            None => self.plain_call(node, function),
        }
    }

    /// The argument at this place.
    pub(crate) fn argument(&mut self, node: Node<'t>, place: usize) -> String {
        node.arguments().get(place).copied().map_or_else(|| "nil".to_owned(), |argument| self.expression(argument))
    }

    /// All arguments.
    pub(crate) fn all_arguments(&mut self, node: Node<'t>) -> String {
        let all: Vec<String> = node.arguments().into_iter().map(|argument| self.expression(argument)).collect();
        all.join(", ")
    }

    fn plain_call(&mut self, node: Node<'t>, function: Node<'t>) -> String {
        match function.text() {
            "open" => match node.arguments().first().copied().and_then(text::literal) {
                // Both look beside the script.
                Some(name) => format!("brunt.file({})", quoted(name.strip_prefix("./").unwrap_or(&name))),
                None => format!("brunt.file({})", self.argument(node, 0)),
            },
            "parseInt" => {
                let all = self.all_arguments(node);
                format!("(math.modf(tonumber({all})))")
            }
            "parseFloat" | "Number" => format!("tonumber({})", self.argument(node, 0)),
            "String" => format!("tostring({})", self.argument(node, 0)),
            "encodeURIComponent" => format!("brunt.url_encode({})", self.argument(node, 0)),
            "decodeURIComponent" => format!("brunt.url_decode({})", self.argument(node, 0)),
            name if function.kind() == "identifier" && self.names.own.contains(name) => {
                format!("{}({})", self.variable(name), self.all_arguments(node))
            }
            "require" | "setTimeout" | "setInterval" | "clearTimeout" | "clearInterval" | "fetch" => {
                self.not_moved(node, "")
            }
            name if function.kind() == "identifier" && self.names.declared.contains(name) => {
                format!("{}({})", self.variable(name), self.all_arguments(node))
            }
            _ if is_function(function) => format!("({})({})", self.expression(function), self.all_arguments(node)),
            _ => self.not_moved(node, ""),
        }
    }

    fn call_of_module(&mut self, node: Node<'t>, module: &str, function: &str) -> String {
        match (module, function) {
            ("k6/http", function) => self.request(node, function),
            ("k6", "check") => self.check(node),
            ("k6", "group") => {
                let (name, run) = (self.argument(node, 0), node.arguments().get(1).copied());
                match run {
                    Some(run) if is_function(run.bare()) => {
                        let run = self.function(run.bare(), "function", None);
                        format!("brunt.group({name}, {run})")
                    }
                    Some(run) => format!("brunt.group({name}, {})", self.expression(run)),
                    None => self.not_moved(node, ""),
                }
            }
            ("k6", "sleep") => self.sleep(node),
            ("k6", "fail") => {
                let reason = if node.arguments().is_empty() { "\"fail\"".to_owned() } else { self.argument(node, 0) };
                format!("brunt.fail({reason})")
            }
            ("k6", "randomSeed") => self.not_moved(node, "give --seed"),
            ("k6/crypto", "hmac") => format!("brunt.hmac({})", self.digest_arguments(node, 3)),
            ("k6/crypto", "md5" | "sha1" | "sha256" | "sha384" | "sha512") => {
                format!("brunt.{function}({})", self.digest_arguments(node, 1))
            }
            ("k6/encoding", "b64encode") => self.base64(node),
            ("k6/encoding", "b64decode") => format!("brunt.base64_decode({})", self.argument(node, 0)),
            (_, "randomIntBetween") => format!("brunt.random({})", self.all_arguments(node)),
            (_, "randomItem") => format!("brunt.sample({})", self.all_arguments(node)),
            (_, "randomString") => format!("brunt.random_string({})", self.all_arguments(node)),
            (_, "uuidv4") => "brunt.uuid()".to_owned(),
            ("k6/html", "parseHTML") => self.not_moved(node, "an answer reads itself: answer:css(selector)"),
            _ => self.not_moved(node, ""),
        }
    }

    /// `encoding.b64encode(text, form)`.
    fn base64(&mut self, node: Node<'t>) -> String {
        let text = self.argument(node, 0);
        let form = node.arguments().get(1).copied();
        match form.map(text::literal) {
            None => format!("brunt.base64({text})"),
            Some(Some(form)) if form == "std" => format!("brunt.base64({text})"),
            Some(Some(form)) if form == "rawurl" => format!("brunt.base64url({text})"),
            Some(Some(form)) if form == "rawstd" => format!("(brunt.base64({text}):gsub(\"=\", \"\"))"),
            Some(Some(form)) if form == "url" => {
                format!("(brunt.base64({text}):gsub(\"[+/]\", {{ [\"+\"] = \"-\", [\"/\"] = \"_\" }}))")
            }
            Some(_) => self.not_moved(node, ""),
        }
    }

    /// Arguments of a digest, whose encoding, at this place, has other names.
    fn digest_arguments(&mut self, node: Node<'t>, at: usize) -> String {
        let arguments = node.arguments();
        let mut all = Vec::new();
        for (place, argument) in arguments.into_iter().enumerate() {
            let encoding = (place == at).then(|| text::literal(argument)).flatten();
            all.push(match encoding.as_deref() {
                // brunt's has no padding.
                Some("base64rawurl") => "\"base64url\"".to_owned(),
                Some("base64url") => self.not_moved(argument, "base64url of brunt has no padding"),
                Some(other) => quoted(other),
                None => self.expression(argument),
            });
        }
        all.join(", ")
    }

    /// `sleep(…)`, also with a random range.
    fn sleep(&mut self, node: Node<'t>) -> String {
        let Some(length) = node.arguments().first().copied().map(Node::bare) else { return self.not_moved(node, "") };
        if let Some((least, most)) = Self::range(length) {
            return format!("brunt.pause({least}, {most})");
        }
        format!("brunt.pause({})", self.expression(length))
    }

    /// `Math.random() * 3 + 2` is between 2 and 5.
    fn range(node: Node<'t>) -> Option<(String, String)> {
        let text: String = node.text().split_whitespace().filter(|part| *part != "(" && *part != ")").collect();
        let text = text.trim_matches(['(', ')']);
        let text =
            if text.matches('(').count() > text.matches(')').count() { format!("{text})") } else { text.to_owned() };
        let (factor, rest) = match text.strip_prefix("Math.random()") {
            Some("") => return Some(("0".to_owned(), "1".to_owned())),
            Some(rest) => {
                let rest = rest.strip_prefix('*')?;
                rest.split_once('+').unwrap_or((rest, "0"))
            }
            None => {
                let (factor, rest) = text.split_once("*Math.random()")?;
                (factor, if rest.is_empty() { "0" } else { rest.strip_prefix('+')? })
            }
        };
        let (factor, least): (f64, f64) = (factor.parse().ok()?, rest.parse().ok()?);
        Some((shown(least), shown(least + factor)))
    }

    /// `check(answer, { name: (r) => … })`.
    fn check(&mut self, node: Node<'t>) -> String {
        let arguments = node.arguments();
        let subject = self.argument(node, 0);
        if let Some(tags) = arguments.get(2) {
            self.leave(*tags, "not moved: tags of a check");
        }
        let Some(checks) = arguments.get(1).copied().map(Node::bare) else { return self.not_moved(node, "") };
        if checks.kind() != "object" {
            return format!("brunt.check({subject}, {})", self.expression(checks));
        }
        let parts = checks.children().into_iter().map(|part| self.one_check(part)).collect::<Vec<_>>();
        // A table in Lua has no order, which does not matter here: brunt counts each check by its name.
        let lines: Vec<String> = parts.iter().map(|part| format!("{part},")).collect();
        match parts.as_slice() {
            [only] if !only.contains('\n') && only.len() < 80 => format!("brunt.check({subject}, {{ {only} }})"),
            _ => format!("brunt.check({subject}, {{\n{}\n}})", crate::functions::indented(&lines)),
        }
    }

    fn one_check(&mut self, part: Node<'t>) -> String {
        if part.kind() == "method_definition" {
            let name = part.field("name").and_then(crate::constant::name_of).unwrap_or_default();
            return format!("{} = {}", text::key(&name), self.function(part, "function", None));
        }
        let (Some(name), Some(value)) = (part.field("key"), part.field("value")) else {
            return self.not_moved(part, "");
        };
        let key = match crate::constant::name_of(name) {
            Some(name) => text::key(&name),
            None => match name.children().first() {
                Some(inner) => format!("[{}]", self.expression(*inner)),
                None => return self.not_moved(part, ""),
            },
        };
        let value = value.bare();
        let written = match value.kind() {
            _ if is_function(value) => self.checked(value),
            // A function that is given by name: its result is converted to a truth value as in JavaScript.
            "identifier" if self.functions.contains_key(value.text()) => {
                self.helper(Helper::Truthy);
                format!("function(r) return truthy({}(r)) end", self.variable(value.text()))
            }
            _ => self.condition(value),
        };
        format!("{key} = {written}")
    }

    /// A check's function. Its result is converted to a truth value as in JavaScript.
    fn checked(&mut self, function: Node<'t>) -> String {
        let adds = |body: Node<'t>| {
            body.bare().field("function").and_then(Node::member).is_some_and(|(_, name)| name == "add")
        };
        match function.field("body") {
            // In k6, `add` returns true.
            Some(body) if adds(body) => {
                let value = self.expression(body.bare());
                let names = self.parameter_names(function);
                format!("function({}) {value} return true end", names.join(", "))
            }
            _ => self.asked(function),
        }
    }

    fn parameter_names(&self, function: Node<'t>) -> Vec<String> {
        match (function.field("parameters"), function.field("parameter")) {
            (Some(all), _) => all.children().into_iter().map(|name| self.variable(name.text())).collect(),
            (None, one) => one.into_iter().map(|name| self.variable(name.text())).collect(),
        }
    }

    fn math(&mut self, node: Node<'t>, name: &str) -> String {
        match name {
            "floor" | "ceil" | "max" | "min" | "abs" | "sqrt" | "exp" | "log" | "sin" | "cos" | "tan" => {
                format!("math.{name}({})", self.all_arguments(node))
            }
            "random" => "math.random()".to_owned(),
            "round" => format!("math.floor({} + 0.5)", self.argument(node, 0)),
            "trunc" => format!("(math.modf({}))", self.argument(node, 0)),
            "pow" => format!("({}) ^ ({})", self.argument(node, 0), self.argument(node, 1)),
            _ => self.not_moved(node, ""),
        }
    }

    fn json(&mut self, node: Node<'t>, name: &str) -> String {
        match name {
            "stringify" => {
                if let Some(more) = node.arguments().get(1) {
                    self.leave(*more, "not moved: further arguments of JSON.stringify; the text has no spaces");
                }
                format!("brunt.json.encode({})", self.argument(node, 0))
            }
            "parse" => format!("assert(brunt.json.decode({}))", self.argument(node, 0)),
            _ => self.not_moved(node, ""),
        }
    }

    fn console(&mut self, node: Node<'t>, name: &str) -> String {
        let level = match name {
            "error" => "error",
            "warn" => "warn",
            "debug" => "debug",
            "log" | "info" => "info",
            _ => return self.not_moved(node, ""),
        };
        let all = self.all_arguments(node);
        let all = if all.is_empty() { "\"\"".to_owned() } else { all };
        format!("brunt.log(\"{level}\", {all})")
    }

    /// A value of k6's modules or of JavaScript that is not a call, by its object and property.
    pub(crate) fn known_value(&mut self, node: Node<'t>, object: Node<'t>, property: &str) -> Option<String> {
        if property == "name"
            && let Some((name, ..)) = self.names.metrics.get(object.text())
        {
            return Some(quoted(name));
        }
        if object.text() == "Math" {
            return Some(match property {
                "PI" => "math.pi".to_owned(),
                _ => self.not_moved(node, ""),
            });
        }
        // `exec.vu.idInTest` and the like.
        if let Some((outer, part)) = object.member()
            && self.names.imported(outer).is_some_and(|(module, _)| module == "k6/execution")
        {
            return Some(match (part, property) {
                ("vu", "idInTest" | "idInInstance") => format!("{}.id", self.user()),
                ("vu", "iterationInScenario" | "iterationInInstance") => format!("({}.iteration - 1)", self.user()),
                ("scenario", "name") => format!("{}.scenario", self.user()),
                _ => self.not_moved(node, ""),
            });
        }
        // `answer.timings.duration`: milliseconds.
        if let Some((answer, "timings")) = object.member() {
            let answer = self.receiver(answer);
            return Some(match property {
                "duration" => format!("({answer}.timings.service * 1000)"),
                "waiting" => format!("({answer}.timings.first_byte * 1000)"),
                _ => self.not_moved(node, ""),
            });
        }
        let kind = self.names.kind_of(object);
        let is_answer = kind == Kind::Answer
            || kind == Kind::Unknown && matches!(object.text(), "r" | "res" | "resp" | "response" | "answer");
        match property {
            // These names are k6's alone.
            "error_code" | "remote_ip" | "remote_port" | "tls_version" | "tls_cipher_suite" | "ocsp"
            | "status_text"
                if kind != Kind::Object =>
            {
                return Some(self.not_moved(node, ""));
            }
            "proto" | "request" | "cookies" | "url" if is_answer => return Some(self.not_moved(node, "")),
            // In k6 an answer without an error has an empty text here.
            "error" if is_answer => return Some(format!("({}.error or \"\")", self.receiver(object))),
            _ => {}
        }
        if self.names.imported(object).is_some() {
            return Some(self.not_moved(node, ""));
        }
        None
    }

    /// A value that a figure of the script's own takes.
    pub(crate) fn added(&mut self, node: Node<'t>, object: Node<'t>) -> Option<String> {
        let (_, metric, _) = self.names.metrics.get(object.text()).cloned()?;
        let verb = if metric == Metric::Gauge { "set" } else { "add" };
        let figure = self.variable(object.text());
        let arguments = node.arguments();
        let first = arguments.first().copied()?;
        let value = if metric == Metric::Rate { self.condition(first) } else { self.expression(first) };
        let tags = arguments.get(1).map_or_else(String::new, |tags| format!(", {}", self.expression(*tags)));
        Some(format!("{figure}:{verb}({value}{tags})"))
    }
}
