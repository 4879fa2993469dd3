//! Functions, and the names of variables.

use crate::script::Script;
use crate::syntax::Node;
use crate::text::{self, KEYWORDS};

/// Names that the script in Lua has for itself.
const TAKEN: [&str; 5] = ["brunt", "vu", "truthy", "not_moved", "http"];

impl<'t> Script<'t> {
    /// A variable, by its name in JavaScript.
    pub(crate) fn variable(&self, name: &str) -> String {
        if self.names.own.contains(name) {
            return format!("brunt.user{}", text::part(name));
        }
        let name = name.replace('$', "_");
        if KEYWORDS.contains(&name.as_str()) || TAKEN.contains(&name.as_str()) { format!("{name}_") } else { name }
    }

    /// A function that begins so (`function`, `local function name`). `first` are lines before its own, of one that is a scenario's.
    pub(crate) fn function(&mut self, function: Node<'t>, head: &str, first: Option<Vec<String>>) -> String {
        let is_scenario = first.is_some();
        let mut lines = first.unwrap_or_default();
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
        let outer = self.in_scenario;
        self.in_scenario = is_scenario || outer;
        let Some(body) = function.field("body") else {
            self.in_scenario = outer;
            return format!("{head} end");
        };
        if body.kind() == "statement_block" {
            lines.extend(self.block(body));
        } else {
            let value = self.returned(body);
            if lines.is_empty() && !value.contains('\n') {
                self.in_scenario = outer;
                return format!("{head} {value} end");
            }
            lines.push(value);
        }
        self.in_scenario = outer;
        if lines.is_empty() {
            return format!("{head} end");
        }
        format!("{head}\n{}\nend", indented(&lines))
    }

    /// What a function whose body is an expression does.
    fn returned(&mut self, body: Node<'t>) -> String {
        let body = body.bare();
        // Some expressions are statements in Lua, and give nothing.
        if matches!(body.kind(), "assignment_expression" | "augmented_assignment_expression" | "update_expression") {
            return self.statement_of(body).join("\n");
        }
        format!("return {}", self.expression(body))
    }
}

/// Lines, a level deeper.
pub(crate) fn indented(lines: &[String]) -> String {
    let lines = lines.iter().flat_map(|line| line.split('\n'));
    lines.map(|line| if line.is_empty() { String::new() } else { format!("  {line}") }).collect::<Vec<_>>().join("\n")
}
