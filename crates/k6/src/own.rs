//! Top-level variables that functions change: in k6 each user has its own.

use std::collections::HashSet;

use crate::names::bound;
use crate::script::is_function;
use crate::syntax::Node;

/// Methods that change their list.
const CHANGING: [&str; 8] = ["push", "pop", "shift", "unshift", "splice", "sort", "reverse", "fill"];

/// Top-level variables that each user has for itself, and changed ones that cannot be told from others of the same
/// name.
#[derive(Debug, Default)]
pub(crate) struct Own<'t> {
    pub(crate) names: HashSet<&'t str>,
    pub(crate) unclear: Vec<Node<'t>>,
}

/// The variable that an assignment or a method call changes, itself or in its content.
fn changed(node: Node<'_>) -> Option<Node<'_>> {
    let target = match node.kind() {
        "assignment_expression" | "augmented_assignment_expression" => node.field("left"),
        "update_expression" => node.field("argument"),
        "unary_expression" if node.operator() == "delete" => node.field("argument"),
        "call_expression" => {
            let (object, method) = node.field("function")?.bare().member()?;
            CHANGING.contains(&method).then_some(object)
        }
        "for_in_statement" if node.field("kind").is_none() => node.field("left"),
        _ => None,
    };
    let mut target = target?.bare();
    while matches!(target.kind(), "member_expression" | "subscript_expression") {
        target = target.field("object")?.bare();
    }
    (target.kind() == "identifier").then_some(target)
}

/// Which of the top's `variables` are each user's own.
pub(crate) fn own<'t>(root: Node<'t>, variables: &[Node<'t>]) -> Own<'t> {
    let plain = |one: &&Node<'t>| one.field("name").is_some_and(|name| name.kind() == "identifier");
    let named: Vec<(&str, Option<Node<'t>>)> = variables
        .iter()
        .filter(plain)
        .filter_map(|one| Some((one.field("name")?.text(), one.field("value"))))
        // Objects made by `new` are shared: data, figures.
        .filter(|(_, value)| value.is_none_or(|value| value.kind() != "new_expression"))
        .collect();
    let inner: Vec<Node<'t>> = root.all().into_iter().filter(|node| is_function(*node)).flat_map(Node::all).collect();
    let local: HashSet<&str> = inner.iter().flat_map(|node| bound(*node)).collect();
    let mut own = Own::default();
    for target in inner.iter().filter_map(|node| changed(*node)) {
        let name = target.text();
        if !named.iter().any(|(known, _)| *known == name) {
            continue;
        }
        if !local.contains(name) {
            own.names.insert(name);
        } else if own.unclear.iter().all(|known| known.text() != name) {
            own.unclear.push(target);
        }
    }
    // A value made from a user's own variable is the user's own, too.
    loop {
        let before = own.names.len();
        for (name, value) in &named {
            let uses = |node: Node<'t>| node.kind() == "identifier" && own.names.contains(node.text());
            let is_made_of = value.is_some_and(|value| value.all().into_iter().any(uses));
            if is_made_of && !local.contains(name) {
                own.names.insert(name);
            }
        }
        if own.names.len() == before {
            return own;
        }
    }
}
