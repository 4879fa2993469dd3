//! Statements.

use std::fmt::Write as _;

use crate::functions::indented;
use crate::helpers::Helper;
use crate::names::Kind;
use crate::script::{Script, is_function};
use crate::syntax::Node;
use crate::text;

impl<'t> Script<'t> {
    /// The statements of a block, and the comments between them, as lines without an indent.
    pub(crate) fn block(&mut self, block: Node<'t>) -> Vec<String> {
        if block.kind() != "statement_block" {
            return self.statement(block);
        }
        let mut lines = Vec::new();
        let parts = block.parts();
        // Functions are known before they stand in the text.
        let functions: Vec<_> = parts.iter().filter(|part| part.kind() == "function_declaration").copied().collect();
        for function in functions {
            lines.extend(self.statement(function));
        }
        let mut last = None;
        for part in parts {
            if part.kind() == "function_declaration" {
                continue;
            }
            let is_apart = last.is_some_and(|line| part.line() > line + 1);
            if is_apart && !lines.is_empty() {
                lines.push(String::new());
            }
            let stands_behind = part.kind() == "comment" && last == Some(part.line());
            last = Some(part.last_line());
            let mut statement = self.statement(part);
            if let (true, [comment], Some(line)) = (stands_behind, statement.as_mut_slice(), lines.last_mut()) {
                line.push(' ');
                line.push_str(comment);
            } else {
                lines.extend(statement);
            }
        }
        lines
    }

    /// One statement.
    pub(crate) fn statement(&mut self, node: Node<'t>) -> Vec<String> {
        match node.kind() {
            "comment" => comment(node.text()),
            "empty_statement" | "export_statement" => Vec::new(),
            "expression_statement" => match node.children().first() {
                Some(expression) => self.statement_of(*expression),
                None => Vec::new(),
            },
            "lexical_declaration" | "variable_declaration" => {
                if node.kind() == "variable_declaration" {
                    self.note_hoisted(node);
                }
                node.children().into_iter().flat_map(|declarator| self.declaration(declarator)).collect()
            }
            "function_declaration" => {
                let name = node.field("name").map_or_else(String::new, |name| self.variable(name.text()));
                vec![self.function(node, &format!("local function {name}"), None)]
            }
            "statement_block" => {
                let lines = self.block(node);
                vec![format!("do\n{}\nend", indented(&lines))]
            }
            "if_statement" => vec![self.choice(node, "if")],
            "for_statement" => self.counted(node),
            "for_in_statement" => self.each(node),
            "while_statement" => {
                let condition = self.part(node, "condition", Self::condition);
                let body = self.looped(node);
                vec![format!("while {condition} do\n{body}\nend")]
            }
            "do_statement" => {
                let condition = self.part(node, "condition", Self::condition);
                let body = self.looped(node);
                vec![format!("repeat\n{body}\nuntil not ({condition})")]
            }
            "return_statement" => vec![match node.children().first() {
                // Whatever stands behind it is for nobody, and Lua wants it to be last.
                Some(value) => format!("do return {} end", self.given_back(*value)),
                None => "do return end".to_owned(),
            }],
            "break_statement" => vec!["break".to_owned()],
            "continue_statement" => vec!["goto continue".to_owned()],
            "throw_statement" => {
                let value = node.children().first().map_or_else(String::new, |value| self.thrown(*value));
                vec![format!("error({value}, 0)")]
            }
            _ => vec![self.not_moved(node, "")],
        }
    }

    /// A part of a node, by a function of this; nothing where it lacks it.
    fn part(&mut self, node: Node<'t>, name: &str, by: fn(&mut Self, Node<'t>) -> String) -> String {
        node.field(name).map_or_else(String::new, |part| by(self, part))
    }

    /// What is thrown: an error's text.
    fn thrown(&mut self, value: Node<'t>) -> String {
        let is_error = value.kind() == "new_expression";
        match value.arguments().first().filter(|_| is_error) {
            Some(text) => self.expression(*text),
            None => self.expression(value),
        }
    }

    /// A variable with its value.
    pub(crate) fn declaration(&mut self, declarator: Node<'t>) -> Vec<String> {
        let Some(name) = declarator.field("name") else { return comment_of(declarator) };
        let value = declarator.field("value");
        if matches!(name.kind(), "object_pattern" | "array_pattern") {
            let Some(value) = value else { return Vec::new() };
            let value = self.expression(value);
            let mut lines = vec![format!("local taken = {value}")];
            lines.extend(self.taken_apart(name, "taken"));
            return lines;
        }
        let Some(value) = value else {
            return vec![format!("local {}", self.variable(name.text()))];
        };
        // A `let` of a function's own shadows what each user has.
        if is_function(value.bare()) {
            let head = format!("local function {}", self.variable(name.text()));
            return vec![self.function(value.bare(), &head, None)];
        }
        let is_parameters = self.names.parameters.contains(name.text()) && value.bare().kind() == "object";
        let mut written = if is_parameters { self.parameters(value.bare()) } else { self.expression(value) };
        if self.names.kind_of(value) == Kind::Answer && self.is_read_late(declarator, name.text()) {
            written.push_str(":keep()");
        }
        vec![format!("local {} = {written}", self.variable(name.text()))]
    }

    /// Notes a `var` that is used outside the block that declares it: Lua's locals end with their block.
    fn note_hoisted(&mut self, declaration: Node<'t>) {
        let Some(block) = declaration.parent() else { return };
        let Some(function) = Self::function_around(declaration).filter(|body| body.id() != block.id()) else { return };
        for name in declaration.children().into_iter().filter_map(|one| one.field("name")) {
            let count = |around: Node<'t>| {
                around.all().iter().filter(|one| one.kind() == "identifier" && one.text() == name.text()).count()
            };
            if count(function) > count(block) {
                self.leave(declaration, format!("var {}: is known in its block alone", name.text()));
            }
        }
    }

    /// Whether an answer is read after its user has done something else: its body would be gone.
    fn is_read_late(&self, declarator: Node<'t>, name: &str) -> bool {
        let Some(function) = Self::function_around(declarator) else { return false };
        let behind: Vec<_> = function.all().into_iter().filter(|node| node.is_behind(declarator)).collect();
        let waits = behind.iter().position(|node| self.waits(*node));
        let Some(waits) = waits else { return false };
        let mut rest = behind.iter().skip(waits + 1);
        rest.any(|node| node.kind() == "identifier" && node.text() == name)
    }

    /// The body of the function that a node stands in.
    fn function_around(node: Node<'t>) -> Option<Node<'t>> {
        let mut around = node.parent();
        while let Some(outer) = around {
            if is_function(outer) {
                return outer.field("body");
            }
            around = outer.parent();
        }
        None
    }

    /// Whether a call lets its user wait.
    fn waits(&self, node: Node<'t>) -> bool {
        if let Some((module, name)) = self.names.called(node) {
            return module == "k6/http" && !matches!(name.as_str(), "file" | "cookieJar") || name == "sleep";
        }
        // What the script's own functions do is not looked at.
        let called = (node.kind() == "call_expression").then(|| node.field("function")).flatten();
        called.is_some_and(|function| self.functions.contains_key(function.text()))
    }

    /// Variables for the parts of an object or a list, which is in the variable `from`.
    pub(crate) fn taken_apart(&mut self, pattern: Node<'t>, from: &str) -> Vec<String> {
        let mut lines = Vec::new();
        for (place, part) in pattern.children().into_iter().enumerate() {
            let line = match (pattern.kind(), part.kind()) {
                ("object_pattern", "shorthand_property_identifier_pattern") => {
                    Some(format!("local {} = {from}{}", self.variable(part.text()), text::part(part.text())))
                }
                ("object_pattern", "pair_pattern") => match (part.field("key"), part.field("value")) {
                    (Some(key), Some(value)) if value.kind() == "identifier" => {
                        Some(format!("local {} = {from}{}", self.variable(value.text()), text::part(key.text())))
                    }
                    _ => None,
                },
                ("array_pattern", "identifier") => {
                    Some(format!("local {} = {from}[{}]", self.variable(part.text()), place + 1))
                }
                _ => None,
            };
            lines.push(line.unwrap_or_else(|| self.not_moved(part, "")));
        }
        lines
    }

    /// An expression that stands for itself: what it does, and not what it gives.
    pub(crate) fn statement_of(&mut self, node: Node<'t>) -> Vec<String> {
        let node = node.bare();
        match node.kind() {
            "assignment_expression" => {
                let (Some(left), Some(right)) = (node.field("left"), node.field("right")) else { return Vec::new() };
                if !self.is_assignable(left) {
                    return vec![self.not_moved(node, "")];
                }
                let mut value = self.expression(right);
                if left.kind() == "identifier"
                    && self.names.kind_of(right) == Kind::Answer
                    && self.is_read_late(node, left.text())
                {
                    value.push_str(":keep()");
                }
                vec![format!("{} = {value}", self.expression(left))]
            }
            "augmented_assignment_expression" => {
                let (Some(left), Some(right)) = (node.field("left"), node.field("right")) else { return Vec::new() };
                let sign = node.operator().trim_end_matches('=');
                if !self.is_assignable(left) {
                    return vec![self.not_moved(node, "")];
                }
                let kinds = (self.names.kind_of(left), self.names.kind_of(right));
                let target = self.expression(left);
                vec![match (sign, kinds) {
                    ("+", (Kind::Text, _) | (_, Kind::Text)) => {
                        format!("{target} = {target} .. {}", self.as_text(right))
                    }
                    ("||" | "??", _) => {
                        let (test, value) =
                            (if sign == "||" { Helper::Truthy } else { Helper::Absent }, self.expression(right));
                        self.helper(test);
                        let test = if sign == "||" { "not truthy" } else { "absent" };
                        format!("if {test}({target}) then {target} = {value} end")
                    }
                    ("&&", _) => {
                        self.helper(Helper::Truthy);
                        format!("if truthy({target}) then {target} = {} end", self.expression(right))
                    }
                    ("%", _) => format!("{target} = math.fmod({target}, {})", self.expression(right)),
                    ("+" | "-" | "*" | "/", _) => {
                        if sign == "+" && kinds != (Kind::Number, Kind::Number) {
                            self.leave(node, format!("{}: taken for a sum; texts are joined by ..", node.shown()));
                        }
                        format!("{target} = {target} {sign} {}", self.operand(right))
                    }
                    _ => self.not_moved(node, ""),
                }]
            }
            "update_expression" => {
                let Some(argument) = node.field("argument") else { return Vec::new() };
                if !self.is_assignable(argument) {
                    return vec![self.not_moved(node, "")];
                }
                let sign = if node.operator() == "++" { "+" } else { "-" };
                let target = self.expression(argument);
                vec![format!("{target} = {target} {sign} 1")]
            }
            "sequence_expression" => node.children().into_iter().flat_map(|part| self.statement_of(part)).collect(),
            "call_expression" => self.statement_of_call(node),
            "ternary_expression" | "binary_expression" => {
                let value = self.expression(node);
                vec![format!("local _ = {value}")]
            }
            "string" => Vec::new(),
            _ => {
                let value = self.expression(node);
                vec![if value.ends_with(')') { value } else { format!("local _ = {value}") }]
            }
        }
    }

    /// Whether Lua can assign to it as it is written.
    fn is_assignable(&self, target: Node<'t>) -> bool {
        match target.kind() {
            "identifier" => self.names.declared.contains(target.text()),
            "member_expression" | "subscript_expression" => !target.is_optional(),
            _ => false,
        }
    }

    /// A call that stands for itself.
    fn statement_of_call(&mut self, node: Node<'t>) -> Vec<String> {
        let method = node.field("function").map(Node::bare).and_then(Node::member);
        if let Some((list, "forEach")) = method
            && let Some(function) = node.arguments().first().copied().filter(|function| is_function(*function))
        {
            return self.for_each(list, function);
        }
        if let Some((list, "push")) = method {
            let list = self.expression(list);
            return node
                .arguments()
                .into_iter()
                .map(|value| format!("table.insert({list}, {})", self.expression(value)))
                .collect();
        }
        let call = self.expression(node);
        // What begins with a parenthesis would be taken for arguments of the line before.
        vec![if call.starts_with('(') || !call.ends_with(')') { format!("local _ = {call}") } else { call }]
    }

    fn for_each(&mut self, list: Node<'t>, function: Node<'t>) -> Vec<String> {
        let list = self.expression(list);
        let names: Vec<Node<'t>> = match (function.field("parameters"), function.field("parameter")) {
            (Some(all), _) => all.children(),
            (None, one) => one.into_iter().collect(),
        };
        let all_plain = names.iter().all(|name| name.kind() == "identifier");
        let returns =
            function.field("body").is_some_and(|body| body.all().iter().any(|node| node.kind() == "return_statement"));
        if !all_plain || returns {
            let function = self.function(function, "function", None);
            return vec![format!(
                "for place, value in ipairs({list}) do\n  local each = {}\n  each(value, place - 1)\nend",
                deeper(&function)
            )];
        }
        let value = names.first().map_or("_".to_owned(), |name| self.variable(name.text()));
        let place = names.get(1).map_or("_".to_owned(), |name| self.variable(name.text()));
        let mut lines = Vec::new();
        if place != "_" {
            lines.push(format!("{place} = {place} - 1"));
        }
        if let Some(body) = function.field("body") {
            lines.extend(if body.kind() == "statement_block" { self.block(body) } else { self.statement_of(body) });
        }
        vec![format!("for {place}, {value} in ipairs({list}) do\n{}\nend", indented(&lines))]
    }

    fn choice(&mut self, node: Node<'t>, word: &str) -> String {
        let condition = self.part(node, "condition", Self::condition);
        let lines = node.field("consequence").map_or_else(Vec::new, |body| self.block(body));
        let mut text = format!("{word} {condition} then\n{}", indented(&lines));
        let other = node.field("alternative").and_then(|clause| clause.children().into_iter().next());
        match other {
            Some(next) if next.kind() == "if_statement" => {
                text.push('\n');
                text.push_str(&self.choice(next, "elseif"));
                return text;
            }
            Some(next) => {
                let lines = self.block(next);
                let _ = write!(text, "\nelse\n{}", indented(&lines));
            }
            None => {}
        }
        text.push_str("\nend");
        text
    }

    /// The body of a loop, with the place where `continue` goes on.
    fn looped(&mut self, node: Node<'t>) -> String {
        let Some(body) = node.field("body") else { return String::new() };
        let lines = self.block(body);
        with_continue(lines, body)
    }

    /// `for (let i = 0; i < n; i++)`, or a loop of another shape.
    fn counted(&mut self, node: Node<'t>) -> Vec<String> {
        if let Some(simple) = self.simple_for(node) {
            let body = self.looped(node);
            return vec![format!("{simple} do\n{body}\nend")];
        }
        let mut lines = Vec::new();
        if let Some(first) = node.field("initializer").filter(|first| first.kind() != "empty_statement") {
            lines.extend(if first.kind().ends_with("declaration") {
                self.statement(first)
            } else {
                self.statement_of(first)
            });
        }
        let condition = match node.field("condition").filter(|condition| condition.kind() != "empty_statement") {
            Some(condition) => {
                let inner = if condition.kind() == "expression_statement" {
                    condition.children().first().copied()
                } else {
                    Some(condition)
                };
                inner.map_or_else(|| "true".to_owned(), |inner| self.condition(inner))
            }
            None => "true".to_owned(),
        };
        let body = self.looped(node);
        let step = node.field("increment").map_or_else(Vec::new, |step| self.statement_of(step));
        lines.push(format!("while {condition} do\n{body}\n{}\nend", indented(&step)));
        vec![format!("do\n{}\nend", indented(&lines))]
    }

    /// The head of a loop that counts up by one to a limit, and whose number its body does not change.
    fn simple_for(&mut self, node: Node<'t>) -> Option<String> {
        let declaration = node.field("initializer").filter(|first| first.kind().ends_with("declaration"))?;
        let declarator = declaration.children().into_iter().next()?;
        let name = declarator.field("name").filter(|name| name.kind() == "identifier")?.text();
        let condition = node.field("condition")?;
        let condition = if condition.kind() == "expression_statement" {
            condition.children().into_iter().next()?
        } else {
            condition
        };
        let is_limit = condition.kind() == "binary_expression" && condition.field("left")?.text() == name;
        let step = node.field("increment")?.bare();
        let counts =
            step.kind() == "update_expression" && step.operator() == "++" && step.field("argument")?.text() == name;
        let changes = node.field("body")?.all().iter().any(|inner| {
            let target = inner.field("left").or_else(|| inner.field("argument"));
            let assigns = matches!(
                inner.kind(),
                "assignment_expression" | "augmented_assignment_expression" | "update_expression"
            );
            assigns && target.is_some_and(|target| target.text() == name)
        });
        if !is_limit || !counts || changes {
            return None;
        }
        let (sign, right) = (condition.operator(), condition.field("right")?);
        let first = declarator.field("value")?;
        let first = self.expression(first);
        let limit = match (sign, crate::options::number(self, right)) {
            ("<", Some(number)) if right.kind() == "number" => format!("{}", number - 1.0),
            ("<", _) => format!("{} - 1", self.operand(right)),
            ("<=", _) => self.expression(right),
            _ => return None,
        };
        Some(format!("for {} = {first}, {limit}", self.variable(name)))
    }

    /// `for (const value of list)` and `for (const key in object)`.
    fn each(&mut self, node: Node<'t>) -> Vec<String> {
        let (Some(left), Some(right)) = (node.field("left"), node.field("right")) else {
            return vec![self.not_moved(node, "")];
        };
        let list = self.expression(right);
        let (name, first) = match (left.kind(), node.field("kind")) {
            ("identifier", Some(_)) => (self.variable(left.text()), Vec::new()),
            ("identifier", None) if self.names.loops.contains(left.text()) => (self.variable(left.text()), Vec::new()),
            // A variable that is there already stays what it was last.
            ("identifier", None) => ("each".to_owned(), vec![format!("{} = each", self.variable(left.text()))]),
            _ => ("taken".to_owned(), self.taken_apart(left, "taken")),
        };
        let head = if node.operator() == "of" {
            format!("for _, {name} in ipairs({list})")
        } else {
            if self.names.kind_of(right) != Kind::Object {
                self.leave(node, format!("for … in {}: a list's keys are numbers from 1 here", right.shown()));
            }
            format!("for {name} in pairs({list})")
        };
        let Some(body) = node.field("body") else { return Vec::new() };
        let mut lines = first;
        lines.extend(self.block(body));
        vec![format!("{head} do\n{}\nend", with_continue(lines, body))]
    }
}

fn with_continue(mut lines: Vec<String>, body: Node<'_>) -> String {
    if body.all().iter().any(|node| node.kind() == "continue_statement") {
        // A local behind a `goto` ends before its label.
        lines = vec![format!("do\n{}\nend", indented(&lines)), "::continue::".to_owned()];
    }
    indented(&lines)
}

/// A text, a level deeper but for its first line.
pub(crate) fn deeper(text: &str) -> String {
    text.replace('\n', "\n  ")
}

fn comment_of(node: Node<'_>) -> Vec<String> {
    if node.kind() == "comment" { comment(node.text()) } else { Vec::new() }
}

/// A comment of JavaScript as one of Lua.
pub(crate) fn comment(text: &str) -> Vec<String> {
    let inner = text.strip_prefix("//").or_else(|| text.strip_prefix("/*").map(|rest| rest.trim_end_matches("*/")));
    let lines = inner.unwrap_or(text).lines().map(|line| line.trim().trim_start_matches('*').trim());
    lines.filter(|line| !line.is_empty()).map(|line| format!("-- {line}")).collect()
}
