//! Operators and truth values.

use crate::helpers::Helper;
use crate::names::Kind;
use crate::script::Script;
use crate::syntax::Node;
use crate::text::{self, quoted};

/// The name of `__ENV.NAME` or `__ENV["NAME"]`.
pub(crate) fn env_name(node: Node<'_>) -> Option<String> {
    let node = node.bare();
    if let Some((object, name)) = node.member() {
        return (object.text() == "__ENV").then(|| name.to_owned());
    }
    let object = (node.kind() == "subscript_expression").then(|| node.field("object")).flatten()?;
    (object.text() == "__ENV").then(|| node.field("index").and_then(text::literal)).flatten()
}

/// Whether evaluating it has no effects.
fn is_plain(node: Node<'_>) -> bool {
    const DOING: [&str; 6] = [
        "call_expression",
        "new_expression",
        "assignment_expression",
        "augmented_assignment_expression",
        "update_expression",
        "await_expression",
    ];

    !node.all().iter().any(|inner| DOING.contains(&inner.kind()))
}

fn is_nothing(node: Node<'_>) -> bool {
    matches!(node.bare().kind(), "null" | "undefined")
}

/// Whether a number is 0 or above, whatever the script does.
fn is_never_negative(node: Node<'_>) -> bool {
    let node = node.bare();
    match node.kind() {
        "number" => true,
        "identifier" => matches!(node.text(), "__VU" | "__ITER"),
        "member_expression" => {
            node.member().is_some_and(|(_, name)| matches!(name, "length" | "status") || name.starts_with("iteration"))
        }
        "binary_expression" => {
            matches!(node.operator(), "+" | "*" | "/" | "%")
                && ["left", "right"].into_iter().all(|side| node.field(side).is_some_and(is_never_negative))
        }
        _ => false,
    }
}

/// An operand of `and`, which binds closer than `or`.
fn before_and(condition: String) -> String {
    if condition.contains(" or ") { format!("({condition})") } else { condition }
}

impl<'t> Script<'t> {
    /// An expression as a condition.
    pub(crate) fn condition(&mut self, node: Node<'t>) -> String {
        let node = node.bare();
        if let Some(name) = env_name(node) {
            return format!("brunt.env({}, \"\") ~= \"\"", quoted(&name));
        }
        match (node.kind(), node.operator()) {
            ("binary_expression", sign @ ("&&" | "||")) => {
                let word = if sign == "&&" { "and" } else { "or" };
                let mut side = |name: &str| {
                    let Some(part) = node.field(name).map(Node::bare) else { return String::new() };
                    let is_mixed = part.kind() == "binary_expression"
                        && matches!(part.operator(), "&&" | "||")
                        && part.operator() != sign;
                    let condition = self.condition(part);
                    if is_mixed { format!("({condition})") } else { condition }
                };
                let (left, right) = (side("left"), side("right"));
                format!("{left} {word} {right}")
            }
            ("unary_expression", "!") => {
                let Some(argument) = node.field("argument").map(Node::bare) else { return String::new() };
                let is_whole = !matches!(argument.kind(), "binary_expression" | "ternary_expression")
                    && env_name(argument).is_none();
                let condition = self.condition(argument);
                if is_whole { format!("not {condition}") } else { format!("not ({condition})") }
            }
            _ if matches!(self.names.kind_of(node), Kind::Flag | Kind::Object | Kind::List | Kind::Answer) => {
                self.expression(node)
            }
            _ => {
                self.helper(Helper::Truthy);
                format!("truthy({})", self.expression(node))
            }
        }
    }

    pub(crate) fn binary(&mut self, node: Node<'t>) -> String {
        let (Some(left), Some(right)) = (node.field("left"), node.field("right")) else {
            return self.not_moved(node, "");
        };
        if let Some(found) = self.is_found(node, left, right) {
            return found;
        }
        match node.operator() {
            "&&" => format!("{} and {}", before_and(self.condition(left)), self.operand(right)),
            "||" => self.or_else(left, right),
            "??" => self.unless_absent(left, right),
            "===" | "==" | "!==" | "!=" => self.equality(node, left, right),
            sign @ ("<" | "<=" | ">" | ">=" | "-" | "*" | "/") => {
                format!("{} {sign} {}", self.operand(left), self.operand(right))
            }
            // The remainder of a negative number is negative in JavaScript, and positive in Lua.
            "%" if is_never_negative(left) => format!("{} % {}", self.operand(left), self.operand(right)),
            "%" => format!("math.fmod({}, {})", self.expression(left), self.expression(right)),
            "**" => format!("{} ^ {}", self.operand(left), self.operand(right)),
            "+" => match (self.names.kind_of(left), self.names.kind_of(right)) {
                (Kind::Text, _) | (_, Kind::Text) => format!("{} .. {}", self.joined(left), self.joined(right)),
                (one, other) => {
                    if (one, other) != (Kind::Number, Kind::Number) {
                        self.leave(node, format!("{}: taken for a sum; texts are joined by ..", node.shown()));
                    }
                    format!("{} + {}", self.operand(left), self.operand(right))
                }
            },
            sign @ ("|" | "&" | "^" | "<<" | ">>" | ">>>") => {
                let name = match sign {
                    "|" => "bor",
                    "&" => "band",
                    "^" => "bxor",
                    "<<" => "lshift",
                    ">>" => "arshift",
                    _ => "rshift",
                };
                format!("bit.{name}({}, {})", self.expression(left), self.expression(right))
            }
            "in" => format!("{}[{}] ~= nil", self.receiver(right), self.expression(left)),
            _ => self.not_moved(node, ""),
        }
    }

    /// A part of a concatenated text.
    fn joined(&mut self, node: Node<'t>) -> String {
        let inner = node.bare();
        let is_joined =
            inner.kind() == "binary_expression" && inner.operator() == "+" && self.names.kind_of(inner) == Kind::Text;
        if is_joined { self.expression(inner) } else { self.as_text(inner) }
    }

    /// `===`, `==` and their opposites.
    fn equality(&mut self, node: Node<'t>, left: Node<'t>, right: Node<'t>) -> String {
        let sign = if node.operator().starts_with('!') { "~=" } else { "==" };
        let (value, other) =
            if is_nothing(left) || text::literal(left).is_some() { (right, left) } else { (left, right) };
        let is_typeof = value.bare().kind() == "unary_expression" && value.bare().operator() == "typeof";
        if is_typeof {
            return self.type_is(node, value.bare(), other, sign);
        }
        if is_nothing(other) {
            return self.nothing(value, sign, node.operator().len() == 3 && other.bare().kind() == "undefined");
        }
        if let Some(name) = env_name(value) {
            return format!("brunt.env({}, \"\") {sign} {}", quoted(&name), self.operand(other));
        }
        let converts = |one: Kind, other: Kind| match one {
            Kind::Number => matches!(other, Kind::Text | Kind::Unknown),
            Kind::Flag => other != Kind::Flag,
            _ => false,
        };
        let (one, two) = (self.names.kind_of(left), self.names.kind_of(right));
        if node.operator().len() == 2 && (converts(one, two) || converts(two, one)) {
            self.leave(node, format!("{}: == of JavaScript converts, that of Lua does not", node.shown()));
        }
        format!("{} {sign} {}", self.operand(left), self.operand(right))
    }

    /// Whether a value is `null` or `undefined`; only the latter, which Lua has as nil, if `is_strict`.
    fn nothing(&mut self, value: Node<'t>, sign: &str, is_strict: bool) -> String {
        if let Some(name) = env_name(value) {
            return format!("brunt.env({}, \"\") {sign} \"\"", quoted(&name));
        }
        if is_strict {
            return format!("{} {sign} nil", self.operand(value));
        }
        self.helper(Helper::Absent);
        let absent = format!("absent({})", self.expression(value));
        if sign == "==" { absent } else { format!("not {absent}") }
    }

    /// `typeof value === "string"`.
    fn type_is(&mut self, node: Node<'t>, asked: Node<'t>, name: Node<'t>, sign: &str) -> String {
        let Some(value) = asked.field("argument") else { return self.not_moved(node, "") };
        let name = match text::literal(name.bare()).as_deref() {
            Some("undefined") => return self.nothing(value, sign, true),
            Some("object") => "table",
            Some("string") => "string",
            Some("number") => "number",
            Some("boolean") => "boolean",
            Some("function") => "function",
            _ => return self.not_moved(node, ""),
        };
        format!("type({}) {sign} \"{name}\"", self.expression(value))
    }

    /// `a || b`: `__ENV.NAME || "default"` is a value with a default.
    fn or_else(&mut self, left: Node<'t>, right: Node<'t>) -> String {
        if let Some(name) = env_name(left) {
            return format!("brunt.env({}, {})", quoted(&name), self.expression(right));
        }
        if matches!(self.names.kind_of(left), Kind::Flag | Kind::Object | Kind::List | Kind::Answer) {
            return format!("{} or {}", self.operand(left), self.operand(right));
        }
        self.helper(Helper::Truthy);
        let (value, other) = (self.expression(left), self.expression(right));
        if is_plain(right) {
            self.helper(Helper::Either);
            return format!("either({value}, {other})");
        }
        let body = format!("local value = {value}\n  if truthy(value) then return value end\n  return {other}");
        format!("(function()\n  {body}\nend)()")
    }

    /// `a ?? b`.
    fn unless_absent(&mut self, left: Node<'t>, right: Node<'t>) -> String {
        if env_name(left).is_some() {
            return self.or_else(left, right);
        }
        self.helper(Helper::Absent);
        let (value, other) = (self.expression(left), self.expression(right));
        let body = format!("local value = {value}\n  if absent(value) then return {other} end\n  return value");
        format!("(function()\n  {body}\nend)()")
    }

    pub(crate) fn unary(&mut self, node: Node<'t>) -> String {
        let Some(argument) = node.field("argument") else { return self.not_moved(node, "") };
        match node.operator() {
            "!" => self.condition(node),
            "-" => format!("-{}", self.operand(argument)),
            "+" => format!("tonumber({})", self.expression(argument)),
            "void" => "nil".to_owned(),
            "typeof" => self.not_moved(node, "type(value) has other names for some types"),
            _ => self.not_moved(node, ""),
        }
    }

    /// `a ? b : c`: `a and b or c`, where `b` is not false.
    pub(crate) fn ternary(&mut self, node: Node<'t>) -> String {
        let (Some(condition), Some(one), Some(other)) =
            (node.field("condition"), node.field("consequence"), node.field("alternative"))
        else {
            return self.not_moved(node, "");
        };
        let condition = before_and(self.condition(condition));
        let is_value =
            matches!(self.names.kind_of(one), Kind::Number | Kind::Text | Kind::Object | Kind::List | Kind::Answer);
        if is_value || one.bare().kind() == "true" {
            return format!("{condition} and {} or {}", self.operand(one), self.operand(other));
        }
        let (one, other) = (self.expression(one), self.expression(other));
        format!("(function() if {condition} then return {one} else return {other} end end)()")
    }
}
