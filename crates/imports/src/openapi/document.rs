//! An OpenAPI description as a whole, with its references.

use crate::encoded::decoded;
use crate::value::Value;

/// The most references that are followed in a row.
const MOST_HOPS: usize = 20;

/// A description.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Document<'d> {
    pub(crate) root: &'d Value,
}

impl<'d> Document<'d> {
    /// The value, or the one to which it refers; `None` for a reference that leads nowhere, out of the document, or in
    /// a circle.
    pub(crate) fn resolved(self, value: &'d Value) -> Option<&'d Value> {
        let mut value = value;
        for _ in 0..MOST_HOPS {
            match value.text_at("$ref") {
                Some(reference) => value = self.find(reference)?,
                None => return Some(value),
            }
        }
        None
    }

    /// The value, or the one to which it refers; the value itself where a reference leads nowhere.
    pub(crate) fn find_resolved(self, value: &'d Value) -> &'d Value {
        self.resolved(value).unwrap_or(value)
    }

    /// The value that a reference such as `#/components/schemas/Pet` names (RFC 6901).
    fn find(self, reference: &str) -> Option<&'d Value> {
        let pointer = reference.strip_prefix('#')?;
        if pointer.is_empty() {
            return Some(self.root);
        }
        pointer.strip_prefix('/')?.split('/').try_fold(self.root, |value, token| {
            let name = decoded(token).replace("~1", "/").replace("~0", "~");
            match value {
                Value::List(all) => all.get(name.parse::<usize>().ok()?),
                _ => value.get(&name),
            }
        })
    }

    /// The field of a value, with references resolved.
    pub(crate) fn get(self, value: &'d Value, name: &str) -> Option<&'d Value> {
        self.resolved(value.get(name)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_lead_somewhere_or_nowhere() {
        let root = Value::from_json(
            br##"{"a":{"$ref":"#/b~1c/0"},"b/c":[{"x":1}],"d":{"$ref":"#/d"},"e":{"$ref":"other.json#/a"}}"##,
        );
        let root = root.unwrap();
        let document = Document { root: &root };
        assert_eq!(document.get(&root, "a").unwrap().to_json(), r#"{"x":1}"#);
        assert_eq!(document.get(&root, "d"), None);
        assert_eq!(document.get(&root, "e"), None);
    }
}
