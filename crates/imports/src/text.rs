//! Texts with parts that are known only at run time.

use crate::lua::quoted;

/// The most parts that one expression joins by `..`. Lua's compiler nests a level deeper for each, and has a limit.
const MOST_JOINED: usize = 12;

/// A text made of parts from the document and of parts that Lua computes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Text(pub(crate) Vec<Piece>);

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Text from the document.
    Plain(String),
    /// A Lua expression that returns a text or a number.
    Lua(String),
}

impl Text {
    pub(crate) fn plain(text: impl Into<String>) -> Self {
        let text = text.into();
        Self(if text.is_empty() { Vec::new() } else { vec![Piece::Plain(text)] })
    }

    pub(crate) fn lua(expression: impl Into<String>) -> Self {
        Self(vec![Piece::Lua(expression.into())])
    }

    /// Appends a part; adjacent plain parts are joined.
    pub(crate) fn push(&mut self, piece: Piece) {
        match (self.0.last_mut(), piece) {
            (_, Piece::Plain(text)) if text.is_empty() => {}
            (Some(Piece::Plain(last)), Piece::Plain(text)) => last.push_str(&text),
            (_, piece) => self.0.push(piece),
        }
    }

    pub(crate) fn extend(&mut self, other: Self) {
        for piece in other.0 {
            self.push(piece);
        }
    }

    /// The text, if all of it is known.
    pub(crate) fn known(&self) -> Option<&str> {
        match self.0.as_slice() {
            [] => Some(""),
            [Piece::Plain(text)] => Some(text),
            _ => None,
        }
    }

    /// Whether all of it is known.
    pub(crate) fn is_known(&self) -> bool {
        self.known().is_some()
    }

    /// The text with its plain parts changed.
    pub(crate) fn map_plain(&self, change: impl Fn(&str) -> String) -> Self {
        let mut mapped = Self::default();
        for piece in &self.0 {
            mapped.push(match piece {
                Piece::Plain(text) => Piece::Plain(change(text)),
                lua @ Piece::Lua(_) => lua.clone(),
            });
        }
        mapped
    }

    /// The text with its Lua parts changed.
    pub(crate) fn map_lua(&self, change: impl Fn(&str) -> String) -> Self {
        let changed = self.0.iter().map(|piece| match piece {
            Piece::Lua(code) => Piece::Lua(change(code)),
            plain @ Piece::Plain(_) => plain.clone(),
        });
        Self(changed.collect())
    }

    /// The text as Lua code.
    pub(crate) fn written(&self) -> String {
        let parts = || {
            self.0.iter().map(|piece| match piece {
                Piece::Plain(text) => quoted(text),
                Piece::Lua(code) => code.clone(),
            })
        };
        match self.0.len() {
            0 => "\"\"".to_owned(),
            1 => parts().collect(),
            // A list can hold numbers and many parts, too.
            many if many > MOST_JOINED => format!("table.concat {{ {} }}", parts().collect::<Vec<_>>().join(", ")),
            _ => parts().collect::<Vec<_>>().join(" .. "),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_joined() {
        let mut text = Text::plain("a");
        text.push(Piece::Plain("\"b".into()));
        assert_eq!((text.written().as_str(), text.known()), ("\"a\\\"b\"", Some("a\"b")));
        text.push(Piece::Lua("found.id".into()));
        assert_eq!((text.written().as_str(), text.known()), ("\"a\\\"b\" .. found.id", None));
        assert_eq!(Text::default().written(), "\"\"");
        let many = Text((0..40).map(|_| Piece::Lua("x".into())).collect());
        assert!(many.written().starts_with("table.concat { x, x"));
    }
}
