//! Functions, and the names of variables.

use crate::script::Script;
use crate::syntax::Node;
use crate::text::{self, KEYWORDS};

/// Names that the Lua script uses itself, and functions of Lua that it calls.
const TAKEN: [&str; 30] = [
    "brunt",
    "vu",
    "http",
    "begin",
    "truthy",
    "absent",
    "either",
    "merged",
    "map",
    "filter",
    "not_moved",
    "taken",
    "each",
    "value",
    "assert",
    "bit",
    "error",
    "ipairs",
    "math",
    "next",
    "pairs",
    "pcall",
    "print",
    "select",
    "string",
    "table",
    "tonumber",
    "tostring",
    "type",
    "unpack",
];

impl<'t> Script<'t> {
    /// The name of a variable in Lua, by its name in JavaScript.
    pub(crate) fn variable(&self, name: &str) -> String {
        if self.names.own.contains(name) {
            // These two are `begin`'s.
            let mark = if matches!(name, "begun" | "vu") { "_" } else { "" };
            return format!("brunt.user{}", text::part(&format!("{name}{mark}")));
        }
        let name = name.replace('$', "_");
        if KEYWORDS.contains(&name.as_str()) || TAKEN.contains(&name.as_str()) { format!("{name}_") } else { name }
    }

    /// A function that begins with `head` (`function`, `local function name`). `first` are the lines before its own,
    /// for a scenario's function.
    pub(crate) fn function(&mut self, function: Node<'t>, head: &str, first: Option<Vec<String>>) -> String {
        let is_scenario = first.is_some();
        let outer = (self.in_scenario, self.gives_condition);
        (self.in_scenario, self.gives_condition) = (is_scenario || outer.0, false);
        let written = self.function_with(function, head, is_scenario, first.unwrap_or_default());
        (self.in_scenario, self.gives_condition) = outer;
        written
    }

    /// A function that is not a scenario's, with lines before its own.
    pub(crate) fn function_after(&mut self, function: Node<'t>, first: Vec<String>) -> String {
        self.function_with(function, "function", false, first)
    }

    /// A function whose result is used as a condition: Lua's true and false have to be JavaScript's.
    pub(crate) fn asked(&mut self, function: Node<'t>) -> String {
        let outer = std::mem::replace(&mut self.gives_condition, true);
        let written = self.function_with(function, "function", false, Vec::new());
        self.gives_condition = outer;
        written
    }

    fn function_with(&mut self, function: Node<'t>, head: &str, is_scenario: bool, first: Vec<String>) -> String {
        let mut lines = first;
        let mut parameters: Vec<String> = if is_scenario { vec!["vu".to_owned()] } else { Vec::new() };
        let given = match (function.field("parameters"), function.field("parameter")) {
            (Some(all), _) => all.children(),
            (None, Some(one)) => vec![one],
            (None, None) => Vec::new(),
        };
        for (place, parameter) in given.into_iter().enumerate() {
            match parameter.kind() {
                "identifier" => parameters.push(self.variable(parameter.text())),
                "assignment_pattern" => {
                    let name = parameter.field("left").map_or_else(String::new, |name| self.variable(name.text()));
                    if let Some(value) = parameter.field("right") {
                        let value = self.expression(value);
                        lines.push(format!("if {name} == nil then {name} = {value} end"));
                    }
                    parameters.push(name);
                }
                "rest_pattern" => {
                    let name = parameter.children().first().map_or_else(String::new, |name| self.variable(name.text()));
                    lines.push(format!("local {name} = {{ ... }}"));
                    parameters.push("...".to_owned());
                }
                _ => {
                    let name = format!("given{}", place + 1);
                    lines.extend(self.taken_apart(parameter, &name));
                    parameters.push(name);
                }
            }
        }
        let head = format!("{head}({})", parameters.join(", "));
        let Some(body) = function.field("body") else { return format!("{head} end") };
        if body.kind() == "statement_block" {
            lines.extend(self.block(body));
        } else {
            let value = self.returned(body);
            if lines.is_empty() && !value.contains('\n') {
                return format!("{head} {value} end");
            }
            lines.push(value);
        }
        if lines.is_empty() {
            return format!("{head} end");
        }
        format!("{head}\n{}\nend", indented(&lines))
    }

    /// The statement for the body of an arrow function that is an expression.
    fn returned(&mut self, body: Node<'t>) -> String {
        let body = body.bare();
        // Some expressions are statements in Lua, without a value.
        if matches!(body.kind(), "assignment_expression" | "augmented_assignment_expression" | "update_expression") {
            return self.statement_of(body).join("\n");
        }
        format!("return {}", self.given_back(body))
    }

    /// The value that a function returns; as a condition, if that is asked for.
    pub(crate) fn given_back(&mut self, value: Node<'t>) -> String {
        if self.gives_condition { self.condition(value) } else { self.expression(value) }
    }
}

/// Lines, a level deeper.
pub(crate) fn indented(lines: &[String]) -> String {
    let lines = lines.iter().flat_map(|line| line.split('\n'));
    lines.map(|line| if line.is_empty() { String::new() } else { format!("  {line}") }).collect::<Vec<_>>().join("\n")
}
