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
    pub(super) fn missing(&self, status: u16, search: &Search) -> Option<&str> {
        (status < NO_SUCCESS && !search.found).then_some(&*self.reason)
    }

    /// A search of one body after the other.
    pub(super) fn search(&self) -> Search {
        Search { finder: Arc::clone(&self.finder), found: false, tail: Vec::new() }
    }
}

/// Looks for the expected text in a body that comes in pieces, of which it keeps no more than the text is long.
#[derive(Debug)]
pub(super) struct Search {
    finder: Arc<Finder<'static>>,
    found: bool,
    /// The end of what came, where the text may have begun.
    tail: Vec<u8>,
}

impl Search {
    /// The next body begins.
    pub(super) fn begin(&mut self) {
        self.found = false;
        self.tail.clear();
    }

    /// Takes a piece of the body.
    pub(super) fn take(&mut self, piece: &[u8]) {
        if self.found {
            return;
        }
        let overlap = self.finder.needle().len().saturating_sub(1);
        if !self.tail.is_empty() {
            self.tail.extend_from_slice(piece.get(..overlap).unwrap_or(piece));
            self.found = self.finder.find(&self.tail).is_some();
        }
        self.found = self.found || self.finder.find(piece).is_some();
        if piece.len() >= overlap {
            self.tail.clear();
            self.tail.extend_from_slice(piece.get(piece.len() - overlap..).unwrap_or(piece));
        } else {
            // A short piece behind a tail is in it as a whole.
            if self.tail.is_empty() {
                self.tail.extend_from_slice(piece);
            }
            self.tail.drain(..self.tail.len().saturating_sub(overlap));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The search of a body in these pieces.
    fn searched(expected: &Expected, pieces: &[&[u8]]) -> Search {
        let mut search = expected.search();
        search.take(expected.finder.needle());
        search.begin();
        for piece in pieces {
            search.take(piece);
        }
        search
    }

    #[test]
    fn a_body_without_the_text_is_another_answer() {
        let expected = Expected::new("\"ok\":true");
        let missing = |status, body: &[u8]| expected.missing(status, &searched(&expected, &[body])).map(str::to_owned);
        assert_eq!(missing(200, b"{\"ok\":true}"), None);
        assert_eq!(missing(200, b"<html>").as_deref(), Some("the body has no '\"ok\":true'"));
        assert!(missing(302, b"").is_some());
        assert_eq!(missing(503, b""), None, "its status says it");
        let long = Expected::new(&"é".repeat(100));
        assert!(long.missing(200, &long.search()).unwrap().ends_with("é…'"));
    }

    proptest! {
        #[test]
        fn how_a_body_is_cut_changes_nothing(text in "[ab]{1,4}", body in "[ab]{0,30}", size in 1_usize..8) {
            let expected = Expected::new(&text);
            let pieces: Vec<_> = body.as_bytes().chunks(size).collect();
            let search = searched(&expected, &pieces);
            prop_assert_eq!(search.found, body.contains(&text));
            prop_assert!(search.tail.len() < text.len());
        }
    }
}
