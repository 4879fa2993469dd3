//! Literal values in a script: options, thresholds, parameters.

use std::collections::HashMap;

use crate::syntax::Node;
use crate::text;

/// A value, if the script's text determines it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Constant<'t> {
    Number(f64),
    Text(String),
    Flag(bool),
    List(Vec<Node<'t>>),
    Object(Vec<(String, Node<'t>)>),
    /// A value that is known only when the script runs.
    Unknown,
}

impl PartialEq for Node<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id()
    }
}

/// The value of an expression. `known` are the values of the script's top-level names.
pub(crate) fn evaluate<'t>(node: Node<'t>, known: &HashMap<&'t str, Node<'t>>) -> Constant<'t> {
    let node = node.bare();
    match node.kind() {
        "number" => {
            text::number(node.text()).and_then(|text| text.parse().ok()).map_or(Constant::Unknown, Constant::Number)
        }
        "string" | "template_string" => text::literal(node).map_or(Constant::Unknown, Constant::Text),
        "true" => Constant::Flag(true),
        "false" => Constant::Flag(false),
        "array" => Constant::List(node.children()),
        "object" => {
            let (fields, others) = fields(node, known);
            if others.is_empty() { Constant::Object(fields) } else { Constant::Unknown }
        }
        "identifier" => match known.get(node.text()) {
            // A name that stands for itself is no value.
            Some(value) if value.bare().kind() != "identifier" => evaluate(*value, known),
            _ => Constant::Unknown,
        },
        _ => Constant::Unknown,
    }
}

/// The fields of an object, with those of objects that it spreads, and the parts whose names the text does not
/// determine. Of two fields with one name the later one counts.
pub(crate) fn fields<'t>(
    object: Node<'t>,
    known: &HashMap<&'t str, Node<'t>>,
) -> (Vec<(String, Node<'t>)>, Vec<Node<'t>>) {
    let (mut fields, mut others) = (Vec::<(String, Node<'t>)>::new(), Vec::new());
    let mut add = |name: String, value: Node<'t>| {
        fields.retain(|(earlier, _)| *earlier != name);
        fields.push((name, value));
    };
    for part in object.children() {
        let name = match part.kind() {
            "shorthand_property_identifier" => Some(part.text().to_owned()),
            "pair" => part.field("key").and_then(name_of),
            "method_definition" => part.field("name").and_then(name_of),
            "spread_element" => {
                let spread = part.children().first().map_or(Constant::Unknown, |inner| evaluate(*inner, known));
                match spread {
                    Constant::Object(fields) => fields.into_iter().for_each(|(name, value)| add(name, value)),
                    _ => others.push(part),
                }
                continue;
            }
            _ => None,
        };
        match name {
            Some(name) => add(name, part.field("value").unwrap_or(part)),
            None => others.push(part),
        }
    }
    (fields, others)
}

/// The name of a field.
pub(crate) fn name_of(key: Node<'_>) -> Option<String> {
    match key.kind() {
        "property_identifier" | "shorthand_property_identifier" | "identifier" | "number" => {
            Some(key.text().to_owned())
        }
        "string" => text::literal(key),
        _ => None,
    }
}
