//! The expected content of an answer's body.

use std::sync::Arc;

use memchr::memmem::Finder;

/// The longest part of an expected text that a reason shows, in characters.
const SHOWN: usize = 60;
/// From this status on an answer is no success anyway, unless the plan says so.
const NO_SUCCESS: u16 = 400;

/// A text that bodies must have.
#[derive(Debug, Clone)]
pub(super) struct Expected {
    finder: Arc<Finder<'static>>,
    reason: Arc<str>,
}

impl Expected {
    pub(super) fn new(text: &str) -> Self {
        let mut shown: String = text.chars().take(SHOWN).collect();
        if shown.len() < text.len() {
            shown.push('…');
        }
        Self {
            finder: Arc::new(Finder::new(text.as_bytes()).into_owned()),
            reason: format!("the body has no '{shown}'").into(),
        }
    }

    /// The missing text, if an answer is not the expected one.
    pub(super) fn missing(&self, status: u16, body: &[u8]) -> Option<&str> {
        (status < NO_SUCCESS && self.finder.find(body).is_none()).then_some(&*self.reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_without_the_text_is_another_answer() {
        let expected = Expected::new("\"ok\":true");
        assert_eq!(expected.missing(200, b"{\"ok\":true}"), None);
        assert_eq!(expected.missing(200, b"<html>"), Some("the body has no '\"ok\":true'"));
        assert!(expected.missing(302, b"").is_some());
        assert_eq!(expected.missing(503, b""), None, "its status says it");
        assert!(Expected::new(&"é".repeat(100)).missing(200, b"").unwrap().ends_with("é…'"));
    }
}
