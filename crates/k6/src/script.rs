//! A script that is being moved.

use std::collections::{BTreeSet, HashMap};

use crate::Left;
use crate::helpers::Helper;
use crate::names::{Metric, Names};
use crate::syntax::Node;
use crate::text::quoted;

/// A script that is being moved.
#[expect(clippy::struct_excessive_bools, reason = "each says something else about it")]
pub(crate) struct Script<'t> {
    pub(crate) names: Names<'t>,
    /// Top-level functions by name, and the one that users run unless the options name another.
    pub(crate) functions: HashMap<&'t str, Node<'t>>,
    pub(crate) default: Option<Node<'t>>,
    /// Whether the options name scenarios, so that users may run different functions.
    pub(crate) has_scenarios: bool,
    /// The scheme, host and port of the first URL in the script.
    pub(crate) base: Option<String>,
    /// The parts that were not moved.
    pub(crate) left: Vec<Left>,
    /// Functions of the prelude that the moved parts need.
    pub(crate) helpers: BTreeSet<Helper>,
    /// Whether a function that is no scenario's asks for the user.
    pub(crate) asks_user: bool,
    /// Whether the function that is being moved has the user as its first parameter.
    pub(crate) in_scenario: bool,
    /// Whether it is asked of that function if what it gives is true.
    pub(crate) gives_condition: bool,
}

impl<'t> Script<'t> {
    /// Notes what was not moved, or means something else.
    pub(crate) fn leave(&mut self, node: Node<'_>, what: impl Into<String>) {
        let left = Left { line: node.line(), what: what.into() };
        if !self.left.contains(&left) {
            self.left.push(left);
        }
    }

    /// Stands for something that was not moved: an error where a user comes to it.
    pub(crate) fn not_moved(&mut self, node: Node<'_>, why: &str) -> String {
        let shown = node.shown();
        let why = if why.is_empty() { String::new() } else { format!(" ({why})") };
        self.leave(node, format!("not moved: {shown}{why}"));
        self.helpers.insert(Helper::NotMoved);
        format!("not_moved({}, {})", node.line(), quoted(&shown))
    }

    pub(crate) fn helper(&mut self, helper: Helper) {
        self.helpers.insert(helper);
        self.helpers.extend(helper.needs());
    }

    /// The function that users of a scenario do, by what options call it.
    pub(crate) fn performed(&self, exec: &str) -> Option<Node<'t>> {
        if exec == "default" { self.default } else { self.functions.get(exec).copied() }
    }

    /// The user, in whatever function it is asked for.
    pub(crate) fn user(&mut self) -> &'static str {
        if self.in_scenario {
            return "vu";
        }
        self.asks_user = true;
        "brunt.user.vu"
    }

    /// What a `new Counter("name")` makes, and its arguments.
    pub(crate) fn metric(&self, value: Node<'t>) -> Option<(Metric, Vec<Node<'t>>)> {
        if value.kind() != "new_expression" {
            return None;
        }
        let made = value.field("constructor")?;
        let name = if let Some(("k6/metrics", member)) = self.names.imported(made) {
            member.to_owned()
        } else {
            let (object, property) = made.member()?;
            let (module, _) = self.names.imported(object)?;
            (module == "k6/metrics").then(|| property.to_owned())?
        };
        Some((Metric::named(&name)?, value.arguments()))
    }
}

/// The scheme, host and port of a whole URL.
pub(crate) fn origin(url: &str) -> Option<&str> {
    let (scheme, rest) = url.split_once("://")?;
    if !matches!(scheme, "http" | "https") {
        return None;
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let host = rest.get(..end)?;
    // One whose host is put together is none; one with a user in it is not for others.
    (!host.is_empty() && !host.contains(['$', '@', ' '])).then(|| url.get(..scheme.len() + 3 + end)).flatten()
}

/// A URL without the user in it.
pub(crate) fn without_user(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    match rest.get(..end).and_then(|host| host.rfind('@')) {
        Some(at) => format!("{scheme}://{}", rest.get(at + 1..).unwrap_or_default()),
        None => url.to_owned(),
    }
}

/// Whether it is a function, as a value.
pub(crate) fn is_function(node: Node<'_>) -> bool {
    matches!(node.kind(), "arrow_function" | "function_expression" | "function_declaration")
}
