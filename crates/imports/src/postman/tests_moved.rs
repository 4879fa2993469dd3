//! Tests of a request as checks of statuses, header fields and bodies. Any other test becomes a check that does not
//! hold.

use std::fmt::Write as _;

use super::javascript::{arguments, assignment, body_of, lines, literal, squeezed, statements};
use super::variables::Variables;
use crate::lua::{comment, part, quoted, table};
use crate::script::Script;
use crate::secret;
use crate::value::Value;

/// The scripts of a request, written as Lua.
#[derive(Default)]
pub(crate) struct Moved {
    /// Statements before the request.
    pub(crate) before: String,
    /// Statements after the request: checks, then variables.
    pub(crate) after: String,
}

/// Moves the scripts that run with a request: those of its `holders`, from the collection to the request itself.
pub(crate) fn moved(holders: &[(&Value, String)], variables: &mut Variables<'_>, script: &mut Script) -> Moved {
    let mut moved = Moved::default();
    let mut mover = Mover {
        place: "",
        variables,
        script,
        json: vec!["pm.response.json()".to_owned()],
        checks: Vec::new(),
        set: String::new(),
    };
    let events = holders.iter().flat_map(|(holder, place)| holder.list_at("event").iter().map(move |one| (one, place)));
    for (event, place) in events {
        mover.place = place;
        let code = lines(event);
        if event.text_at("listen") == Some("prerequest") {
            moved.before.push_str(&mover.before(&code));
        } else {
            mover.after(&code);
        }
    }
    if mover.checks.is_empty() {
        mover.checks.push("[\"is a success\"] = answer.ok".to_owned());
    }
    moved.after = format!("brunt.check(answer, {})\n{}", table(&mover.checks), mover.set);
    moved
}

struct Mover<'m, 'c> {
    place: &'m str,
    variables: &'m mut Variables<'c>,
    script: &'m mut Script,
    /// The names that scripts use for the answer's JSON.
    json: Vec<String>,
    checks: Vec<String>,
    set: String,
}

impl Mover<'_, '_> {
    fn before(&mut self, code: &str) -> String {
        let mut made = String::new();
        for statement in statements(code) {
            let plain = squeezed(&statement);
            if is_log(&plain) {
                continue;
            }
            if let Some((name, value)) =
                assignment(&statement).and_then(|(name, value)| Some((name, constant(&value)?)))
            {
                let value = self.given(&name, &value);
                let _ = writeln!(made, "vars{} = {value}", part(&name));
            } else {
                let code =
                    self.script.not_moved(self.place, &format!("before the request: {}", comment(&statement, 100)));
                let _ = writeln!(made, "{code}");
            }
        }
        made
    }

    fn after(&mut self, code: &str) {
        for statement in statements(code) {
            let plain = squeezed(&statement);
            if is_log(&plain) || self.declares_json(&plain) {
                continue;
            }
            if let Some((name, value)) = assignment(&statement) {
                self.assign(&name, &value);
            } else if let Some(parts) = arguments(&plain, "pm.test") {
                self.test(&parts);
            } else if let Some((name, condition)) = old_test(&plain) {
                self.check(&name, condition, &statement);
            } else if let Some(condition) = self.condition(&plain) {
                let name = comment(&statement, 60);
                self.check(&name, Some(condition), &statement);
            } else {
                self.check(&comment(&statement, 60), None, &statement);
            }
        }
    }

    /// Recognises `const json = pm.response.json()`.
    fn declares_json(&mut self, plain: &str) -> bool {
        let declared = ["const ", "let ", "var "].iter().find_map(|word| plain.strip_prefix(word));
        let Some((name, value)) = declared.and_then(|rest| rest.split_once('=')) else { return false };
        if matches!(value, "pm.response.json()" | "JSON.parse(responseBody)" | "JSON.parse(pm.response.text())") {
            self.json.push(name.to_owned());
            return true;
        }
        false
    }

    /// A text that a script assigns to a variable: a secret, if its name suggests one.
    fn given(&mut self, name: &str, value: &str) -> String {
        let text = self.variables.text(value, self.place, self.script);
        match text.known() {
            Some(known) if secret::is_field(name) && !known.is_empty() => self.script.secrets.ask(name, Some(known)),
            _ => text.written(),
        }
    }

    fn assign(&mut self, name: &str, value: &str) {
        let code = match (constant(value), self.path(value)) {
            (Some(text), _) => self.given(name, &text),
            (None, Some(path)) => format!("answer:jsonpath({})", quoted(&path)),
            (None, None) if value == "pm.response.text()" => "answer.body".to_owned(),
            (None, None) => match header_of(value) {
                Some(header) => format!("answer.headers[{}]", quoted(&header.to_ascii_lowercase())),
                None => self.script.not_moved(self.place, &format!("{name} = {}", comment(value, 80))),
            },
        };
        let _ = writeln!(self.set, "vars{} = {code}", part(name));
    }

    /// Moves `pm.test("name", function () { … })`.
    fn test(&mut self, parts: &[String]) {
        let [name, function] = parts else { return };
        let shown = literal(name).unwrap_or_else(|| comment(name, 60));
        let Some(body) = body_of(function) else { return self.check(&shown, None, function) };
        let mut conditions = Vec::new();
        for statement in statements(&body) {
            let plain = squeezed(&statement);
            if is_log(&plain) || self.declares_json(&plain) {
                continue;
            }
            if let Some((name, value)) = assignment(&statement) {
                self.assign(&name, &value);
                continue;
            }
            match self.condition(&plain) {
                Some(condition) => conditions.push(condition),
                None => return self.check(&shown, None, &statement),
            }
        }
        if !conditions.is_empty() {
            self.check(&shown, Some(conditions.join(" and ")), &body);
        }
    }

    /// Adds a check; it does not hold where its condition was not moved.
    fn check(&mut self, name: &str, condition: Option<String>, code: &str) {
        let name = quoted(&comment(name, 150));
        if let Some(condition) = condition {
            self.checks.push(format!("[{name}] = {condition}"));
        } else {
            self.script.leave(self.place, format!("not moved, and does not hold: {}", comment(code, 120)));
            self.checks.push(format!("[{name}] = false"));
        }
    }

    /// The condition on `answer` that an assertion makes.
    fn condition(&self, plain: &str) -> Option<String> {
        let rest = |prefix: &str| plain.strip_prefix(prefix);
        if let Some(parts) = arguments(plain, "pm.response.to.have.status") {
            return number(parts.first()?).map(|status| format!("answer.status == {status}"));
        }
        if let Some(parts) = arguments(plain, "pm.response.to.have.header") {
            let [name] = parts.as_slice() else { return None };
            return Some(format!("answer.headers[{}] ~= nil", quoted(&literal(name)?.to_ascii_lowercase())));
        }
        if let Some(parts) = arguments(plain, "pm.response.to.have.jsonBody") {
            let [path] = parts.as_slice() else { return None };
            return Some(format!("answer:has_jsonpath({})", quoted(&dotted(&literal(path)?)?)));
        }
        match rest("pm.response.to.be.") {
            Some("ok" | "success") => return Some("answer.ok".to_owned()),
            Some("json") => return Some("answer:has_jsonpath(\"$\")".to_owned()),
            _ => {}
        }
        let (subject, demand) = expectation(plain)?;
        self.expected(&subject, &demand)
    }

    fn expected(&self, subject: &str, demand: &str) -> Option<String> {
        let equal = ["to.equal", "to.eql", "to.eq", "to.be.equal", "to.equals", "to.deep.equal", "eql", "equal"];
        let equals = equal
            .iter()
            .find_map(|word| arguments(demand, word))
            .and_then(|mut parts| parts.pop().filter(|_| parts.is_empty()));
        match subject {
            "pm.response.code" => {
                if let Some(value) = equals {
                    return number(&value).map(|status| format!("answer.status == {status}"));
                }
                let list = ["to.be.oneOf", "to.oneOf"].iter().find_map(|word| arguments(demand, word))?.pop()?;
                let statuses =
                    list.strip_prefix('[')?.strip_suffix(']')?.split(',').map(number).collect::<Option<Vec<_>>>()?;
                let conditions: Vec<_> = statuses.iter().map(|status| format!("answer.status == {status}")).collect();
                return (!conditions.is_empty()).then(|| format!("({})", conditions.join(" or ")));
            }
            "pm.response.responseTime" => {
                let most = ["to.be.below", "to.be.lessThan", "to.be.at.most"]
                    .iter()
                    .find_map(|word| arguments(demand, word))?
                    .pop()?;
                let ms: f64 = most.parse().ok()?;
                return Some(format!("answer.timings.response < {}", ms / 1e3));
            }
            "pm.response.text()" | "responseBody" => {
                let text = ["to.include", "to.contain"].iter().find_map(|word| arguments(demand, word))?.pop()?;
                return Some(format!("answer.body:find({}, 1, true) ~= nil", quoted(&literal(&text)?)));
            }
            _ => {}
        }
        let path = self.path(subject)?;
        if let Some(parts) = arguments(demand, "to.have.property") {
            let [name] = parts.as_slice() else { return None };
            let path = format!("{path}[{}]", serde_json::Value::from(literal(name)?));
            return Some(format!("answer:has_jsonpath({})", quoted(&path)));
        }
        if matches!(demand, "to.exist" | "to.not.be.undefined" | "to.be.an('array')" | "to.be.an(\"array\")") {
            return (demand != "to.be.an('array')" && demand != "to.be.an(\"array\")")
                .then(|| format!("answer:has_jsonpath({})", quoted(&path)));
        }
        let value = equals?;
        let value = match value.as_str() {
            "true" | "false" => value,
            "null" => "brunt.null".to_owned(),
            other => number(other).or_else(|| Some(quoted(&literal(other)?)))?,
        };
        Some(format!("answer:jsonpath({}) == {value}", quoted(&path)))
    }

    /// The JSONPath of an expression such as `json.items[0].id`.
    fn path(&self, expression: &str) -> Option<String> {
        let rest = self.json.iter().rev().find_map(|name| {
            let rest = expression.strip_prefix(name.as_str())?;
            (rest.is_empty() || rest.starts_with(['.', '['])).then_some(rest)
        })?;
        if rest.is_empty() {
            return Some("$".to_owned());
        }
        dotted(rest.strip_prefix('.').unwrap_or(rest))
    }
}

/// The text of a literal: a text, a number, `true` or `false`.
fn constant(value: &str) -> Option<String> {
    literal(value).or_else(|| number(value)).or_else(|| matches!(value, "true" | "false").then(|| value.to_owned()))
}

/// Splits `pm.expect(SUBJECT).DEMAND`.
fn expectation(plain: &str) -> Option<(String, String)> {
    let rest = plain.strip_prefix("pm.expect(")?;
    let mut depth = 1;
    for (at, letter) in rest.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            let demand = rest.get(at + 1..)?.strip_prefix('.')?;
            return Some((rest.get(..at)?.to_owned(), demand.to_owned()));
        }
    }
    None
}

/// Splits `tests["name"] = responseCode.code === 200`, Postman's old form of a test.
fn old_test(plain: &str) -> Option<(String, Option<String>)> {
    let (name, value) = plain.strip_prefix("tests[")?.split_once("]=")?;
    let name = literal(name)?;
    let status = value.strip_prefix("responseCode.code===").and_then(number);
    Some((name, status.map(|status| format!("answer.status == {status}"))))
}

/// Recognises `pm.response.headers.get("name")`.
fn header_of(value: &str) -> Option<String> {
    let parts =
        arguments(value, "pm.response.headers.get").or_else(|| arguments(value, "postman.getResponseHeader"))?;
    literal(parts.first()?)
}

/// A path of names and indices, as JSONPath.
fn dotted(path: &str) -> Option<String> {
    let mut made = String::from("$");
    for name in path.replace('[', ".[").split('.').filter(|name| !name.is_empty()) {
        if let Some(place) = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            if place.parse::<u32>().is_ok() {
                let _ = write!(made, "[{place}]");
            } else {
                let _ = write!(made, "[{}]", serde_json::Value::from(literal(place)?));
            }
        } else if crate::lua::is_name(name) {
            let _ = write!(made, ".{name}");
        } else if name.chars().all(|letter| letter.is_alphanumeric() || letter == '_' || letter == '$' || letter == '-')
        {
            let _ = write!(made, "[{}]", serde_json::Value::from(name));
        } else {
            return None;
        }
    }
    Some(made)
}

/// A numeric literal as written, if the text is one.
fn number(text: &str) -> Option<String> {
    let text = text.trim();
    text.parse::<f64>()
        .ok()
        .filter(|number| number.is_finite())
        .map(|_| text.to_owned())
        .filter(|text| text.starts_with(|first: char| first.is_ascii_digit() || first == '-'))
}

fn is_log(plain: &str) -> bool {
    plain.starts_with("console.") || plain == "\"use strict\"" || plain == "'use strict'"
}
