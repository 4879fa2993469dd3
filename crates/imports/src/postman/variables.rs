//! Variables of a collection, `{{name}}`, and Postman's generated values, `{{$guid}}`.

use crate::lua::{key, part, quoted, table};
use crate::script::Script;
use crate::secret;
use crate::text::{Piece, Text};
use crate::value::Value;

/// The most variables of a collection.
const MOST: usize = 2_000;

/// The known variables of a collection.
#[derive(Default)]
pub(crate) struct Variables<'c> {
    /// The variables of the collection, with their values.
    known: Vec<(&'c str, String)>,
    /// The variables that scripts set.
    set: Vec<String>,
    /// Those that requests so far have set.
    done: Vec<String>,
    /// Those that a request uses before another has set them.
    early: Vec<String>,
    /// The used variables that come from an environment of Postman's.
    pub(crate) elsewhere: Vec<String>,
}

impl<'c> Variables<'c> {
    pub(crate) fn from_collection(root: &'c Value) -> Self {
        let one = |variable: &'c Value| {
            let name = variable.text_at("key").or_else(|| variable.text_at("id"))?;
            Some((name, variable.get("value").and_then(Value::shown).unwrap_or_default()))
        };
        let known = root
            .list_at("variable")
            .iter()
            .take(MOST)
            .filter(|variable| !variable.is_true("disabled"))
            .filter_map(one)
            .collect();
        let mut set = Vec::new();
        collect_set(root, &mut set, 0);
        Self { known, set, ..Self::default() }
    }

    /// Counts the variables that an item's scripts of this kind set as set from here on.
    pub(crate) fn set_by(&mut self, item: &Value, listen: &str) {
        for event in item.list_at("event").iter().filter(|event| event.text_at("listen") == Some(listen)) {
            for name in super::javascript::assigned(&super::javascript::lines(event)) {
                if !self.done.contains(&name) {
                    self.done.push(name);
                }
            }
        }
    }

    /// The value of a variable of the collection that no script sets.
    pub(crate) fn constant(&self, name: &str) -> Option<&str> {
        if self.set.iter().any(|known| known == name) {
            return None;
        }
        self.known.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// A text in which variables that no script sets stand by their values, where these hold one of the letters.
    pub(crate) fn inlined(&self, text: &str, letters: &[char]) -> String {
        let mut made = text.to_owned();
        for (name, value) in &self.known {
            let mark = format!("{{{{{name}}}}}");
            if secret::is_field(name) || made.len() >= 10_000 || !made.contains(&mark) || self.constant(name).is_none()
            {
                continue;
            }
            let value = self.whole(value);
            // A name may itself be made of variables: `{{a{{b}}}}`.
            let is_in_name = made.split(&mark).any(|before| before.rfind("{{") > before.rfind("}}"));
            if is_in_name || value.contains(letters) && !value.contains("{{") {
                made = made.replace(&mark, &value);
            }
        }
        made
    }

    /// A text in which each variable that no script sets stands by its value; `None` where another is left.
    pub(crate) fn resolved(&self, text: &str) -> Option<String> {
        let mut made = text.to_owned();
        for (name, value) in self.known.iter().filter(|(name, _)| self.constant(name).is_some()) {
            if made.len() < 10_000 {
                made = made.replace(&format!("{{{{{name}}}}}"), &self.whole(value));
            }
        }
        (!made.contains("{{")).then_some(made)
    }

    /// A text with its `{{name}}` replaced by variables.
    pub(crate) fn text(&mut self, text: &str, place: &str, script: &mut Script) -> Text {
        let mut made = Text::default();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let Some((name, after)) = after.split_once("}}").filter(|(name, _)| is_variable(name)) else {
                made.push(Piece::Plain(format!("{before}{{{{")));
                rest = after;
                continue;
            };
            made.push(Piece::Plain(before.to_owned()));
            made.push(Piece::Lua(self.expression(name, place, script)));
            rest = after;
        }
        made.push(Piece::Plain(rest.to_owned()));
        made
    }

    /// The expression for a variable.
    pub(crate) fn expression(&mut self, name: &str, place: &str, script: &mut Script) -> String {
        if let Some(made_up) = name.strip_prefix('$') {
            return match made_up {
                "guid" | "randomUUID" => "brunt.uuid()".to_owned(),
                "timestamp" => "math.floor(brunt.now())".to_owned(),
                "isoTimestamp" => "brunt.date()".to_owned(),
                "randomInt" => "brunt.random(0, 1000)".to_owned(),
                "randomBoolean" => "tostring(brunt.random(0, 1) == 1)".to_owned(),
                "randomAlphaNumeric" => "brunt.random_string(1)".to_owned(),
                "randomPassword" => "brunt.random_string(15)".to_owned(),
                _ => script.not_moved(place, &format!("{{{{${made_up}}}}}")),
            };
        }
        let is_known = self.known.iter().any(|(known, _)| *known == name);
        let is_early =
            !is_known && self.set.iter().any(|known| known == name) && !self.done.iter().any(|done| done == name);
        if is_early && !self.early.iter().any(|known| known == name) {
            self.early.push(name.to_owned());
        }
        if is_known || self.set.iter().any(|known| known == name) {
            return format!("vars{}", part(name));
        }
        if !self.elsewhere.iter().any(|known| known == name) {
            self.elsewhere.push(name.to_owned());
        }
        script.secrets.ask(name, None)
    }

    /// Code that makes the table of variables at the beginning of an iteration; empty if the collection has no
    /// variables.
    pub(crate) fn written(&self, script: &mut Script) -> String {
        for name in &self.elsewhere {
            let variable = script.secrets.name(name, None);
            script.leave(
                format!("{{{{{name}}}}}"),
                format!("it comes from an environment of Postman's: --env {variable}=VALUE gives it"),
            );
        }
        let mut entries = Vec::new();
        for (name, value) in &self.known {
            let value = if secret::is_field(name) && !value.is_empty() {
                script.secrets.ask(name, Some(value))
            } else {
                let mut others = Self::default();
                // A variable in another's value would have to be written before that one.
                let text = others.text(value, "a variable of the collection", &mut Script::default());
                if text.is_known() { quoted(value) } else { quoted(&self.whole(value)) }
            };
            entries.push(format!("{} = {value}", key(name)));
        }
        for name in &self.early {
            let variable = script.secrets.name(name, None);
            script.leave(
                format!("{{{{{name}}}}}"),
                format!("it is used before a request sets it: --env {variable}=VALUE gives it; without, it is sent as written"),
            );
            let otherwise = quoted(&format!("{{{{{name}}}}}"));
            entries.push(format!("{} = brunt.env({}, {otherwise})", key(name), quoted(&variable)));
        }
        if entries.is_empty() && self.set.is_empty() {
            return String::new();
        }
        format!("local vars = {} -- variables of the collection\n\n", table(&entries))
    }

    /// A value with the values of the variables in it.
    fn whole(&self, value: &str) -> String {
        let mut made = value.to_owned();
        for _ in 0..5 {
            let before = made.clone();
            for (name, value) in &self.known {
                if !secret::is_field(name) && made.len() < 10_000 {
                    made = made.replace(&format!("{{{{{name}}}}}"), value);
                }
            }
            if made == before {
                break;
            }
        }
        made
    }
}

/// Whether a text is the name of a variable, and not any other text in braces. Postman takes blanks at its ends for a part
/// of the name, and sends `{{ x }}` as it is.
fn is_variable(name: &str) -> bool {
    !name.is_empty() && name == name.trim() && name.len() <= 200 && !name.contains(['{', '}', '"', '\n'])
}

/// Collects the names that scripts set anywhere in a collection.
fn collect_set(holder: &Value, set: &mut Vec<String>, depth: usize) {
    for event in holder.list_at("event") {
        for name in super::javascript::assigned(&super::javascript::lines(event)) {
            if !set.contains(&name) && set.len() < 1_000 {
                set.push(name);
            }
        }
    }
    if depth < super::MOST_DEPTH + 1 {
        holder.list_at("item").iter().for_each(|item| collect_set(item, set, depth + 1));
    }
}
