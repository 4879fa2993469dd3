//! The look at a sampled answer.

use brunt_record::kinds::AnswerSample;

/// The longest location that is kept, in characters.
const LONGEST_LOCATION: usize = 1000;
/// How much is kept of the beginning of a body, in bytes.
const BEGINNING_BYTES: usize = 256;

/// The properties seen of one answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    content_type: String,
    length: Option<u64>,
    location: String,
    /// The beginning of its body, where it comes in pieces.
    beginning: Vec<u8>,
}

impl Seen {
    /// The properties in an answer's head. `field` finds the value of a field by its name in lower case.
    pub(crate) fn new<'a>(status: u16, field: impl Fn(&str) -> Option<&'a [u8]>) -> Self {
        let text = |name: &str| field(name).and_then(|value| std::str::from_utf8(value).ok()).unwrap_or_default();
        let is_redirect = (300..400).contains(&status);
        Self {
            content_type: text("content-type").to_owned(),
            length: text("content-length").parse().ok(),
            location: if is_redirect { shown_location(text("location")) } else { String::new() },
            beginning: Vec::new(),
        }
    }

    /// Takes a piece of the body, as far as its beginning goes.
    pub(crate) fn body(&mut self, piece: &[u8]) {
        let room = BEGINNING_BYTES.saturating_sub(self.beginning.len());
        self.beginning.extend_from_slice(piece.get(..room).unwrap_or(piece));
    }

    /// The look in the contract's type.
    pub(crate) fn look(&self) -> AnswerSample<'_> {
        let Self { content_type, length, location, beginning } = self;
        AnswerSample { content_type, length: *length, location, beginning }
    }
}

/// A location for display.
pub(crate) fn shown_location(location: &str) -> String {
    location.chars().filter(|c| !c.is_control()).take(LONGEST_LOCATION).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_says_type_length_and_where_it_leads() {
        let field = |name: &str| match name {
            "content-type" => Some(&b"text/html; charset=utf-8"[..]),
            "content-length" => Some(&b"12"[..]),
            "location" => Some(&b"/log\x1b[2Jin"[..]),
            _ => None,
        };
        let mut redirect = Seen::new(302, field);
        for piece in [&b"half"[..], &[b'x'; 300]] {
            redirect.body(piece);
        }
        let look = redirect.look();
        assert_eq!(
            (look.content_type, look.length, look.location),
            ("text/html; charset=utf-8", Some(12), "/log[2Jin")
        );
        assert_eq!((look.beginning.len(), &look.beginning[..5]), (BEGINNING_BYTES, &b"halfx"[..]));
        assert_eq!(Seen::new(200, field).look().location, "");
        assert_eq!(Seen::new(200, |_| None).look(), AnswerSample::default());
    }
}
