//! Methods: of answers, texts and lists.

use std::fmt::Write as _;

use crate::helpers::Helper;
use crate::names::Kind;
use crate::script::Script;
use crate::syntax::Node;
use crate::text::{self, quoted};

impl<'t> Script<'t> {
    /// `object.name(…)`, where the object is not a module.
    pub(crate) fn method(&mut self, node: Node<'t>, object: Node<'t>, name: &str) -> String {
        if name == "add"
            && let Some(added) = self.added(node, object)
        {
            return added;
        }
        if let Some(answered) = self.of_answer(node, object, name) {
            return answered;
        }
        let first = |script: &mut Self| script.argument(node, 0);
        match name {
            "includes" | "contains" => self.found(object, node),
            "startsWith" => {
                let (receiver, start) = (self.receiver(object), first(self));
                format!("({receiver}:sub(1, #{start}) == {start})", start = parenthesized(&start))
            }
            "endsWith" => {
                let (receiver, end) = (self.receiver(object), first(self));
                format!("({receiver}:sub(-#{end}) == {end})", end = parenthesized(&end))
            }
            "toUpperCase" => format!("{}:upper()", self.text_receiver(object)),
            "toLowerCase" => format!("{}:lower()", self.text_receiver(object)),
            "trim" => format!("{}:match(\"^%s*(.-)%s*$\")", self.text_receiver(object)),
            "repeat" => format!("{}:rep({})", self.text_receiver(object), first(self)),
            "toString" => format!("tostring({})", self.expression(object)),
            "toFixed" => match node.arguments().first().map_or(Ok(0), |digits| digits.text().parse::<u8>()) {
                Ok(digits) => format!("(\"%.{digits}f\"):format({})", self.expression(object)),
                Err(_) => self.not_moved(node, "(\"%.2f\"):format(number) has two digits"),
            },
            "getTime" | "valueOf" if is_new_date(object) => crate::calls::NOW.to_owned(),
            "substring" | "slice" | "substr" => self.cut(node, object, name),
            "indexOf" => format!("(({}:find({}, 1, true) or 0) - 1)", self.text_receiver(object), first(self)),
            "join" => format!(
                "table.concat({}, {})",
                self.expression(object),
                if node.arguments().is_empty() { "\",\"".to_owned() } else { first(self) }
            ),
            "push" => {
                let (list, value) = (self.expression(object), first(self));
                format!("table.insert({list}, {value})")
            }
            "map" | "filter" => {
                self.helper(if name == "map" { Helper::Map } else { Helper::Filter });
                let (list, function) = (self.expression(object), first(self));
                format!("{name}({list}, {function})")
            }
            "forEach" => {
                let (list, function) = (self.expression(object), first(self));
                format!("for place, value in ipairs({list}) do ({function})(value, place - 1) end")
            }
            "hasOwnProperty" => format!("({}[{}] ~= nil)", self.receiver(object), first(self)),
            "text" => {
                self.leave(node, format!("{}: the text of the first element, without spaces around it", node.shown()));
                format!("{}.text", self.receiver(object))
            }
            "abort" if self.is_test(object) => {
                let reason = if node.arguments().is_empty() { String::new() } else { first(self) };
                format!("brunt.stop_run({reason})")
            }
            _ if self.names.kind_of(object) == Kind::Object && object.kind() == "identifier" => {
                format!("{}{}({})", self.receiver(object), text::part(name), self.all_arguments(node))
            }
            _ => self.not_moved(node, ""),
        }
    }

    /// `exec.test`.
    fn is_test(&self, object: Node<'t>) -> bool {
        let outer = object.member().filter(|(_, name)| *name == "test").map(|(outer, _)| outer);
        outer.and_then(|outer| self.names.imported(outer)).is_some_and(|(module, _)| module == "k6/execution")
    }

    /// A method of an answer.
    fn of_answer(&mut self, node: Node<'t>, object: Node<'t>, name: &str) -> Option<String> {
        let argument = node.arguments().first().copied();
        match name {
            "json" => {
                let receiver = self.receiver(object);
                Some(match argument {
                    None => format!("{receiver}:json()"),
                    Some(path) => match text::literal(path).and_then(|path| jsonpath(&path)) {
                        Some((path, Asked::One)) => format!("{receiver}:jsonpath({})", quoted(&path)),
                        Some((path, Asked::All)) => format!("{receiver}:jsonpath_all({})", quoted(&path)),
                        Some((path, Asked::Number)) => format!("#{receiver}:jsonpath({})", quoted(&path)),
                        None => self.not_moved(node, "answer:jsonpath(path) takes a path of RFC 9535"),
                    },
                })
            }
            "html" => {
                let receiver = self.receiver(object);
                // `html()` without a selector is followed by `find`, which has one.
                Some(match argument {
                    None => receiver,
                    Some(_) => format!("{receiver}:css({})", self.argument(node, 0)),
                })
            }
            "find" if asks_html(object) => Some(format!("{}:css({})", self.receiver(object), self.argument(node, 0))),
            "attr" => Some(format!("{}:attr({})", self.receiver(object), self.argument(node, 0))),
            "submitForm" | "clickLink" => Some(self.not_moved(node, "read the form by answer:css, and send it")),
            _ => None,
        }
    }

    fn text_receiver(&mut self, object: Node<'t>) -> String {
        let receiver = self.receiver(object);
        // A number has no methods.
        match self.names.kind_of(object) {
            Kind::Number => format!("tostring({receiver})"),
            _ => receiver,
        }
    }

    /// `text.includes(part)`, as a condition.
    fn found(&mut self, object: Node<'t>, node: Node<'t>) -> String {
        if self.names.kind_of(object) == Kind::List {
            return self.not_moved(node, "look through the list by a loop");
        }
        format!("({}:find({}, 1, true) ~= nil)", self.text_receiver(object), self.argument(node, 0))
    }

    /// `text.indexOf(part) !== -1` and the like.
    pub(crate) fn is_found(&mut self, node: Node<'t>, left: Node<'t>, right: Node<'t>) -> Option<String> {
        let call = left.bare();
        let (object, "indexOf") = call.field("function").map(Node::bare)?.member()? else { return None };
        let is_there = match (node.operator(), right.text()) {
            ("!==" | "!=" | ">", "-1") | (">=", "0") => true,
            ("===" | "==", "-1") | ("<", "0") => false,
            _ => return None,
        };
        let sign = if is_there { "~=" } else { "==" };
        Some(format!("{}:find({}, 1, true) {sign} nil", self.text_receiver(object), self.argument(call, 0)))
    }

    /// `text.substring(from, to)`: Lua counts from 1, and has the last letter.
    fn cut(&mut self, node: Node<'t>, object: Node<'t>, name: &str) -> String {
        let receiver = self.text_receiver(object);
        let numbers: Vec<Option<i64>> = node.arguments().iter().map(|argument| argument.text().parse().ok()).collect();
        match (name, numbers.as_slice()) {
            ("slice" | "substring", [Some(from @ 0..)]) => format!("{receiver}:sub({})", from + 1),
            ("slice", [Some(from)]) => format!("{receiver}:sub({from})"),
            ("slice" | "substring", [Some(from @ 0..), Some(to @ 0..)]) => {
                format!("{receiver}:sub({}, {to})", from + 1)
            }
            _ => self.not_moved(node, "text:sub(first, last) counts from 1"),
        }
    }
}

/// What a path selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    One,
    All,
    Number,
}

/// A path of k6 (`items.0.id`, `items.#.id`, `items.#`) as one of RFC 9535. `None` if it has more than names and
/// indexes.
fn jsonpath(path: &str) -> Option<(String, Asked)> {
    let mut written = "$".to_owned();
    let mut asked = Asked::One;
    let parts: Vec<&str> = path.split('.').collect();
    for (place, part) in parts.iter().enumerate() {
        if *part == "#" {
            if place + 1 == parts.len() {
                return (asked == Asked::One).then_some((written, Asked::Number));
            }
            asked = Asked::All;
            written.push_str("[*]");
        } else if part.parse::<u64>().is_ok() {
            let _ = write!(written, "[{part}]");
        } else if text::is_name(part) || text::KEYWORDS.contains(part) {
            written.push('.');
            written.push_str(part);
        } else if part.contains(['*', '?', '#', '(', '@', '|', '\\', '"', '\'']) || part.is_empty() {
            return None;
        } else {
            let _ = write!(written, "['{part}']");
        }
    }
    Some((written, asked))
}

/// Whether it is `new Date()`.
fn is_new_date(object: Node<'_>) -> bool {
    object.kind() == "new_expression"
        && object.field("constructor").is_some_and(|made| made.text() == "Date")
        && object.arguments().is_empty()
}

/// Whether it is `answer.html()`.
fn asks_html(object: Node<'_>) -> bool {
    let function = object.field("function").map(Node::bare);
    function.and_then(Node::member).is_some_and(|(_, name)| name == "html" || name == "find")
}

/// An expression before a method or an index, in parentheses where it needs them.
fn parenthesized(text: &str) -> String {
    if text.starts_with('"') && !text.contains(" .. ") || text::is_name(text) {
        text.to_owned()
    } else {
        format!("({text})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_rfc_9535s() {
        assert_eq!(jsonpath("a.b"), Some(("$.a.b".to_owned(), Asked::One)));
        assert_eq!(jsonpath("items.0.id"), Some(("$.items[0].id".to_owned(), Asked::One)));
        assert_eq!(jsonpath("items.#.id"), Some(("$.items[*].id".to_owned(), Asked::All)));
        assert_eq!(jsonpath("items.#"), Some(("$.items".to_owned(), Asked::Number)));
        assert_eq!(jsonpath("my-key"), Some(("$['my-key']".to_owned(), Asked::One)));
        assert_eq!(jsonpath("a.#(b==1)"), None);
    }
}
