//! Secrets of a run, and texts without them. Text is redacted once, where a worker reports its second; every view shows
//! the result.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::fmt;
use std::ops::Range;

/// Stands in place of a secret.
pub const REDACTED: &str = "[redacted]";

/// The shortest secret that is hidden wherever it stands, in characters. A shorter one is hidden only as a word of its
/// own: a PIN of `1` would otherwise leave no number in any text.
const SHORTEST: usize = 4;
/// The end of a text that was cut.
const CUT: char = '…';

/// Texts that must not be shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets {
    /// The longest first, each once.
    texts: Vec<String>,
}

impl Secrets {
    /// These texts; empty ones are ignored.
    pub fn new(texts: impl IntoIterator<Item = String>) -> Self {
        let mut texts: Vec<_> = texts.into_iter().filter(|text| !text.trim().is_empty()).collect();
        texts.sort_by(|a, b| (Reverse(a.len()), a).cmp(&(Reverse(b.len()), b)));
        texts.dedup();
        Self { texts }
    }

    /// Whether there is nothing to hide.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// The texts themselves, the longest first: for hiding them elsewhere, never for showing.
    pub fn reveal(&self) -> &[String] {
        &self.texts
    }

    /// A text with [`REDACTED`] in place of each secret. A secret of up to three characters is hidden only as a word of
    /// its own; one that was cut short by `…` is hidden if four characters or more are left of it.
    pub fn hide<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut next = self.first(text, 0);
        if next.is_none() {
            return Cow::Borrowed(text);
        }
        let (mut shown, mut done) = (String::with_capacity(text.len()), 0);
        while let Some(found) = next {
            shown.push_str(text.get(done..found.start).unwrap_or_default());
            shown.push_str(REDACTED);
            done = found.end;
            next = self.first(text, done);
        }
        shown.push_str(text.get(done..).unwrap_or_default());
        Cow::Owned(shown)
    }

    /// Bytes, which need not be text, with [`REDACTED`] in place of each secret.
    pub fn hide_bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        if let Ok(text) = std::str::from_utf8(bytes) {
            return match self.hide(text) {
                Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
                Cow::Owned(text) => Cow::Owned(text.into_bytes()),
            };
        }
        // Each byte becomes a character, so that secrets are found even among bytes that are not text.
        let latin = |bytes: &[u8]| bytes.iter().map(|byte| char::from(*byte)).collect::<String>();
        let secrets = Self::new(self.texts.iter().map(|text| latin(text.as_bytes())));
        match secrets.hide(&latin(bytes)) {
            Cow::Borrowed(_) => Cow::Borrowed(bytes),
            Cow::Owned(text) => Cow::Owned(text.chars().filter_map(|c| u8::try_from(c).ok()).collect()),
        }
    }

    /// Hides secrets in a text.
    pub fn hide_in(&self, text: &mut String) {
        if let Cow::Owned(shown) = self.hide(text) {
            *text = shown;
        }
    }

    /// The first secret in `text` at or after `from`; of several at one place the longest.
    fn first(&self, text: &str, from: usize) -> Option<Range<usize>> {
        let places =
            self.texts.iter().flat_map(|secret| [whole(text, from, secret), cut(text, from, secret)]).flatten();
        places.min_by_key(|place| (place.start, Reverse(place.end)))
    }
}

/// Where a secret stands in full.
fn whole(text: &str, from: usize, secret: &str) -> Option<Range<usize>> {
    let is_short = secret.chars().nth(SHORTEST - 1).is_none();
    let mut places = text.get(from..)?.match_indices(secret).map(|(at, _)| from + at..from + at + secret.len());
    places.find(|place| !is_short || is_word(text, place))
}

/// Whether neither letters nor digits surround this part of a text.
fn is_word(text: &str, place: &Range<usize>) -> bool {
    let before = text.get(..place.start).and_then(|before| before.chars().next_back());
    let after = text.get(place.end..).and_then(|after| after.chars().next());
    ![before, after].into_iter().flatten().any(char::is_alphanumeric)
}

/// Where a text was cut within a secret.
fn cut(text: &str, from: usize, secret: &str) -> Option<Range<usize>> {
    let rest = text.get(from..)?;
    let shortest = secret.char_indices().nth(SHORTEST).map(|(at, _)| at)?;
    rest.match_indices(CUT).find_map(|(at, _)| {
        let before = rest.get(..at)?;
        let lengths = secret.char_indices().map(|(length, _)| length).filter(|length| *length >= shortest).rev();
        let mut left = lengths.filter(|length| secret.get(..*length).is_some_and(|left| before.ends_with(left)));
        left.next().map(|length| from + at - length..from + at)
    })
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Secrets").field(&self.texts.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hidden(secrets: &[&str], text: &str) -> String {
        Secrets::new(secrets.iter().map(|&text| text.to_owned())).hide(text).into_owned()
    }

    #[test]
    fn secrets_are_hidden_among_bytes_that_are_no_text() {
        let secrets = Secrets::new(["hünter2".to_owned(), "12".to_owned()]);
        let bytes = [b"\xff\x00h\xc3\xbcnter2\xfe12\xfe123".as_slice()].concat();
        let shown = secrets.hide_bytes(&bytes);
        assert_eq!(shown.as_ref(), [b"\xff\x00".as_slice(), REDACTED.as_bytes(), b"\xfe12\xfe123"].concat());
        assert_eq!(secrets.hide_bytes("ü 12".as_bytes()).as_ref(), format!("ü {REDACTED}").as_bytes());
        assert!(matches!(secrets.hide_bytes(b"\xff open"), Cow::Borrowed(_)));
    }

    #[test]
    fn secrets_are_hidden_wherever_they_stand() {
        for (secrets, text, shown) in [
            (&["hunter2"][..], "a hunter2, xhunter2x", "a [redacted], x[redacted]x"),
            (&["hunter2", "hunter2longer"], "hunter2longer hunter2", "[redacted] [redacted]"),
            (&["redacted", "hunter2"], "hunter2 redacted", "[redacted] [redacted]"),
            (&["", " "], "a  b", "a  b"),
            (&[], "hunter2", "hunter2"),
            (&["grün"], "grüngrün", "[redacted][redacted]"),
        ] {
            assert_eq!(hidden(secrets, text), shown);
        }
    }

    #[test]
    fn a_very_short_secret_is_hidden_as_a_word() {
        for (text, shown) in [
            ("PIN=1", "PIN=[redacted]"),
            ("login redirect 12", "login redirect 12"),
            ("s.lua:1: the pin 1", "s.lua:[redacted]: the pin [redacted]"),
            ("a1", "a1"),
        ] {
            assert_eq!(hidden(&["1"], text), shown);
        }
        assert_eq!(hidden(&["abcd"], "xabcdx"), "x[redacted]x");
    }

    #[test]
    fn a_secret_that_was_cut_is_hidden() {
        for (text, shown) in [
            ("name hunt…", "name [redacted]…"),
            ("name hun…", "name hun…"),
            ("name hunter… and hunter", "name [redacted]… and hunter"),
            ("hunter2… hunte…", "[redacted]… [redacted]…"),
            ("hunt… hunter2", "[redacted]… [redacted]"),
        ] {
            assert_eq!(hidden(&["hunter2"], text), shown);
        }
    }

    #[test]
    fn nobody_sees_them_by_debugging() {
        assert_eq!(format!("{:?}", Secrets::new(["hunter2".to_owned()])), "Secrets(1)");
    }

    proptest! {
        #[test]
        fn what_is_hidden_is_gone(secrets in prop::collection::vec("[a-d]{4,8}", 0..4), text in "[a-d …]{0,60}") {
            let secrets = Secrets::new(secrets);
            let shown = secrets.hide(&text).replace(REDACTED, "|");
            for secret in secrets.reveal() {
                prop_assert!(!shown.contains(secret.as_str()), "{} in {}", secret, shown);
            }
        }
    }
}
