//! Expressions.

use crate::helpers::Helper;
use crate::names::Kind;
use crate::script::{Script, is_function};
use crate::syntax::Node;
use crate::text::{self, quoted};

impl<'t> Script<'t> {
    /// An expression in Lua.
    pub(crate) fn expression(&mut self, node: Node<'t>) -> String {
        match node.kind() {
            "parenthesized_expression" => match node.children().first() {
                Some(inner) => format!("({})", self.expression(*inner)),
                None => String::new(),
            },
            // Users wait by themselves.
            "await_expression" => node.children().first().map_or_else(String::new, |inner| self.expression(*inner)),
            "number" => text::number(node.text()).unwrap_or_else(|| node.text().to_owned()),
            "string" => text::literal(node).map_or_else(String::new, |text| quoted(&text)),
            "template_string" => self.template(node),
            "true" | "false" => node.text().to_owned(),
            "null" | "undefined" => "nil".to_owned(),
            "identifier" => self.identifier(node),
            "object" => self.table(node),
            "array" => {
                let parts: Vec<String> = node.children().into_iter().map(|part| self.expression(part)).collect();
                if parts.is_empty() { "brunt.array {}".to_owned() } else { braced(&parts) }
            }
            "member_expression" => self.member(node),
            "subscript_expression" => self.subscript(node),
            "binary_expression" => self.binary(node),
            "unary_expression" => self.unary(node),
            "ternary_expression" => self.ternary(node),
            "call_expression" => self.call(node),
            "new_expression" => self.made(node),
            _ if is_function(node) => self.function(node, "function", None),
            _ => self.not_moved(node, ""),
        }
    }

    /// An expression as an operand: in parentheses where it needs them.
    pub(crate) fn operand(&mut self, node: Node<'t>) -> String {
        let inner = node.bare();
        let expression = self.expression(inner);
        let holds = matches!(
            inner.kind(),
            "number"
                | "string"
                | "identifier"
                | "member_expression"
                | "subscript_expression"
                | "call_expression"
                | "true"
                | "false"
                | "null"
                | "undefined"
        );
        if holds && !expression.contains(" or ") && !expression.contains(" ~= ") || is_wrapped(&expression) {
            expression
        } else {
            format!("({expression})")
        }
    }

    /// An expression before `:` or `.`.
    pub(crate) fn receiver(&mut self, node: Node<'t>) -> String {
        let inner = node.bare();
        let expression = self.expression(inner);
        let holds =
            matches!(inner.kind(), "identifier" | "member_expression" | "subscript_expression" | "call_expression");
        if holds { expression } else { format!("({expression})") }
    }

    fn identifier(&mut self, node: Node<'t>) -> String {
        match node.text() {
            "__VU" => format!("{}.id", self.user()),
            "__ITER" => format!("({}.iteration - 1)", self.user()),
            "NaN" => "(0 / 0)".to_owned(),
            "Infinity" => "math.huge".to_owned(),
            name if self.names.imports.contains_key(name) => self.not_moved(node, "a module as a value"),
            // A name that the script does not declare is JavaScript's own.
            name if !self.names.declared.contains(name) => self.not_moved(node, ""),
            name => self.variable(name),
        }
    }

    /// `` `a ${b}` ``.
    fn template(&mut self, node: Node<'t>) -> String {
        let mut parts: Vec<String> = Vec::new();
        let mut words = String::new();
        for part in node.parts() {
            match part.kind() {
                "string_fragment" => words.push_str(part.text()),
                "escape_sequence" => words.push_str(&text::escaped(part.text())),
                _ => {
                    if !words.is_empty() {
                        parts.push(quoted(&std::mem::take(&mut words)));
                    }
                    if let Some(inner) = part.children().first() {
                        parts.push(self.as_text(*inner));
                    }
                }
            }
        }
        if !words.is_empty() || parts.is_empty() {
            parts.push(quoted(&words));
        }
        if let [only] = parts.as_slice()
            && !only.starts_with('"')
        {
            return format!("tostring({only})");
        }
        parts.join(" .. ")
    }

    /// A value as a part of a text.
    pub(crate) fn as_text(&mut self, node: Node<'t>) -> String {
        match self.names.kind_of(node) {
            Kind::Number | Kind::Text => self.operand(node),
            _ => format!("tostring({})", self.expression(node)),
        }
    }

    /// An object, as a table.
    pub(crate) fn table(&mut self, node: Node<'t>) -> String {
        // `{ ...a, b: 1 }` is several tables, in their order.
        let (mut tables, mut parts) = (Vec::new(), Vec::new());
        for part in node.children() {
            if part.kind() == "spread_element"
                && let Some(inner) = part.children().first()
            {
                if !parts.is_empty() {
                    tables.push(braced(&std::mem::take(&mut parts)));
                }
                tables.push(self.expression(*inner));
            } else {
                let field = self.field(part);
                parts.push(field);
            }
        }
        if tables.is_empty() {
            return braced(&parts);
        }
        if !parts.is_empty() {
            tables.push(braced(&parts));
        }
        self.helper(Helper::Merged);
        format!("merged({})", tables.join(", "))
    }

    /// A field of a table: `name = value`.
    fn field(&mut self, part: Node<'t>) -> String {
        let value = match part.kind() {
            "pair" => part.field("value"),
            "shorthand_property_identifier" | "method_definition" => Some(part),
            _ => None,
        };
        let key = match part.kind() {
            "shorthand_property_identifier" => Some(text::key(part.text())),
            _ => part.field("key").or_else(|| part.field("name")).and_then(|key| self.key(key)),
        };
        match (key, value) {
            (Some(key), Some(value)) if value.kind() == "shorthand_property_identifier" => {
                format!("{key} = {}", self.variable(value.text()))
            }
            (Some(key), Some(value)) if value.kind() == "method_definition" => {
                format!("{key} = {}", self.function(value, "function", None))
            }
            (Some(key), Some(value)) if value.bare().kind() == "null" => format!("{key} = brunt.null"),
            (Some(key), Some(value)) => format!("{key} = {}", self.expression(value)),
            _ => self.not_moved(part, ""),
        }
    }

    /// A key of a table.
    fn key(&mut self, key: Node<'t>) -> Option<String> {
        match key.kind() {
            "computed_property_name" => {
                let inner = key.children().into_iter().next()?;
                Some(format!("[{}]", self.expression(inner)))
            }
            "number" => Some(format!("[{}]", key.text())),
            _ => Some(text::key(&crate::constant::name_of(key)?)),
        }
    }

    fn member(&mut self, node: Node<'t>) -> String {
        let Some((object, property)) = node.member() else { return self.not_moved(node, "") };
        if object.text() == "__ENV" {
            return format!("brunt.env({})", quoted(property));
        }
        if let Some(known) = self.known_value(node, object, property) {
            return known;
        }
        let mut receiver = self.receiver(object);
        if node.is_optional() {
            receiver = format!("({receiver} or {{}})");
        }
        match property {
            "length" => format!("#{receiver}"),
            _ => format!("{receiver}{}", text::part(property)),
        }
    }

    /// `list[0]`, `table["key"]`.
    fn subscript(&mut self, node: Node<'t>) -> String {
        let (Some(object), Some(index)) = (node.field("object").map(Node::bare), node.field("index").map(Node::bare))
        else {
            return self.not_moved(node, "");
        };
        if let Some(name) = text::literal(index) {
            if object.text() == "__ENV" {
                return format!("brunt.env({})", quoted(&name));
            }
            if node.is_optional() {
                return format!("({} or {{}}){}", self.receiver(object), text::part(&name));
            }
            return format!("{}{}", self.receiver(object), text::part(&name));
        }
        if node.is_optional() {
            return self.not_moved(node, "");
        }
        // A list begins with 1 in Lua.
        if let Some(chosen) = self.chosen(object, index) {
            return chosen;
        }
        let receiver = self.receiver(object);
        match self.names.kind_of(index) {
            Kind::Number => match index.text().parse::<u64>() {
                Ok(place) => format!("{receiver}[{}]", place + 1),
                Err(_) => format!("{receiver}[{} + 1]", self.operand(index)),
            },
            Kind::Text => format!("{receiver}[{}]", self.expression(index)),
            _ => {
                if self.names.kind_of(object) != Kind::Object {
                    self.leave(node, format!("{}: taken for a key; lists begin at 1", node.shown()));
                }
                format!("{receiver}[{}]", self.expression(index))
            }
        }
    }

    /// `list[Math.floor(Math.random() * list.length)]`: a random item of a list.
    fn chosen(&mut self, list: Node<'t>, index: Node<'t>) -> Option<String> {
        let text: String = index.text().split_whitespace().collect();
        let is_chosen = text == format!("Math.floor(Math.random()*{}.length)", list.text());
        is_chosen.then(|| format!("brunt.sample({})", self.expression(list)))
    }

    /// `new Counter("name")` and the like.
    fn made(&mut self, node: Node<'t>) -> String {
        if let Some((metric, arguments)) = self.metric(node) {
            let name = arguments.first().map_or_else(String::new, |name| self.expression(*name));
            let kind = format!("{metric:?}").to_lowercase();
            let is_time = arguments.get(1).is_some_and(|flag| flag.kind() == "true");
            let unit = if is_time { ", { unit = \"ms\" }" } else { "" };
            return format!("brunt.{kind}({name}{unit})");
        }
        let made = node.field("constructor");
        let imported = made
            .and_then(|made| self.names.imported(made))
            .map(|(module, member)| (module.to_owned(), member.to_owned()));
        match (imported, made.map(Node::text)) {
            (Some((module, member)), _) if module == "k6/data" && member == "SharedArray" => self.shared_array(node),
            (_, Some("Error")) => {
                node.arguments().first().map_or_else(|| "\"error\"".to_owned(), |text| self.expression(*text))
            }
            (_, Some("Date")) if node.arguments().is_empty() => {
                self.leave(node, "new Date(): taken for its milliseconds");
                crate::calls::NOW.to_owned()
            }
            _ => self.not_moved(node, ""),
        }
    }

    /// A `SharedArray`, which is a list of each thread here.
    fn shared_array(&mut self, node: Node<'t>) -> String {
        let Some(function) = node.arguments().get(1).copied().filter(|function| is_function(*function)) else {
            return self.not_moved(node, "");
        };
        let Some(body) = function.field("body") else { return self.not_moved(node, "") };
        let only = if body.kind() == "statement_block" {
            let children = body.children();
            match children.as_slice() {
                [one] if one.kind() == "return_statement" => one.children().into_iter().next(),
                _ => None,
            }
        } else {
            Some(body)
        };
        match only {
            Some(value) => self.expression(value),
            None => format!("({})()", self.function(function, "function", None)),
        }
    }
}

/// Whether an expression stands in parentheses as a whole.
fn is_wrapped(expression: &str) -> bool {
    let mut depth = 0;
    let closes = |letter: char| {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        depth == 0
    };
    expression.find(closes).is_some_and(|end| expression.starts_with('(') && end + 1 == expression.len())
}

/// A table of these fields, on one line if they are short.
pub(crate) fn braced(parts: &[String]) -> String {
    const MOST: usize = 100;

    if parts.is_empty() {
        return "{}".to_owned();
    }
    let short =
        parts.iter().map(|part| part.len() + 2).sum::<usize>() < MOST && !parts.iter().any(|part| part.contains('\n'));
    if short {
        return format!("{{ {} }}", parts.join(", "));
    }
    let lines: Vec<String> = parts.iter().map(|part| format!("{part},")).collect();
    format!("{{\n{}\n}}", crate::functions::indented(&lines))
}
