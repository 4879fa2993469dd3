//! Folding of URLs into templates, which leave out the parts that differ between requests of one kind.

use std::collections::HashMap;
use std::sync::Arc;

/// The most templates that are told apart; further ones count as [`OTHERS`].
pub const MOST: usize = 200;
/// The common name of all further templates.
pub const OTHERS: &str = "(others)";

/// The template of a request: its method, and its path without the query. A number becomes `{n}`, a UUID `{uuid}`,
/// eight or more hexadecimal digits `{hex}`, and a segment that is long or holds an `@` or an escape `{id}`: a token in
/// a path is not shown.
pub fn fold(method: &str, url: &str) -> String {
    let mut folded = String::new();
    fold_into(method, url, &mut folded);
    folded
}

/// Appends the [template](fold) of a request.
pub fn fold_into(method: &str, url: &str, folded: &mut String) {
    let whole = if url.starts_with('/') { None } else { url.find("://") };
    let path = match whole {
        Some(place) => {
            url.get(place + 3..).and_then(|rest| rest.find('/').and_then(|at| rest.get(at..))).unwrap_or("/")
        }
        None => url,
    };
    let path = path.split(['?', '#', ';']).next().unwrap_or("/");
    let segments = path.split('/').map(|segment| kind(segment).unwrap_or(segment));
    folded.push_str(method);
    folded.push(' ');
    for (place, segment) in segments.enumerate() {
        if place > 0 {
            folded.push('/');
        }
        folded.push_str(segment);
    }
}

/// The placeholder for a segment, or `None` for a segment that stands for itself.
fn kind(segment: &str) -> Option<&'static str> {
    let bytes = segment.as_bytes();
    // Most segments are short words, which stand for themselves.
    if bytes.is_empty() || bytes.len() < 8 && bytes.iter().all(u8::is_ascii_alphabetic) {
        return None;
    }
    let is_hex = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_hexdigit);
    let has_digit = bytes.iter().any(u8::is_ascii_digit);
    if bytes.iter().all(u8::is_ascii_digit) {
        return Some("{n}");
    }
    let is_uuid = bytes.len() == 36
        && bytes
            .iter()
            .enumerate()
            .all(|(at, byte)| if matches!(at, 8 | 13 | 18 | 23) { *byte == b'-' } else { byte.is_ascii_hexdigit() });
    if is_uuid {
        return Some("{uuid}");
    }
    if bytes.len() >= 8 && has_digit && is_hex(bytes) {
        return Some("{hex}");
    }
    let is_plain = bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.~".contains(byte));
    (!is_plain || bytes.len() > 32 || bytes.len() > 16 && has_digit).then_some("{id}")
}

/// Templates of paths, each with a number: [`MOST`] of them, and one more for all others.
#[derive(Debug, Default)]
pub struct Templates {
    numbers: HashMap<Arc<str>, u32>,
}

impl Templates {
    /// The number and the name of a template; beyond the most, those of the others.
    pub fn numbered(&mut self, name: &str) -> (u32, Arc<str>) {
        if let Some((name, number)) = self.numbers.get_key_value(name) {
            return (*number, Arc::clone(name));
        }
        let name = if self.numbers.len() >= MOST { OTHERS } else { name };
        if let Some((name, number)) = self.numbers.get_key_value(name) {
            return (*number, Arc::clone(name));
        }
        let (number, name): (_, Arc<str>) = (self.numbers.len() as u32, Arc::from(name));
        self.numbers.insert(Arc::clone(&name), number);
        (number, name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_folded_and_words_are_not() {
        for (url, template) in [
            ("/users/17/orders?x=secret", "GET /users/{n}/orders"),
            ("https://shop.test/a/b.css", "GET /a/b.css"),
            ("https://shop.test", "GET /"),
            ("/x/550e8400-e29b-41d4-a716-446655440000", "GET /x/{uuid}"),
            ("/o/deadbeef01", "GET /o/{hex}"),
            ("/facade", "GET /facade"),
            ("/reset/eyJhbGciOiJIUzI1NiJ9.e30", "GET /reset/{id}"),
            ("/u/me@shop.test", "GET /u/{id}"),
            ("/api/v1/items/", "GET /api/v1/items/"),
        ] {
            assert_eq!(fold("GET", url), template, "{url}");
        }
    }

    #[test]
    fn beyond_the_most_they_are_others() {
        let mut templates = Templates::default();
        for nth in 0..MOST + 10 {
            templates.numbered(&format!("GET /a{nth}"));
        }
        assert_eq!(templates.numbered("GET /another"), (MOST as u32, Arc::from(OTHERS)));
        assert_eq!(templates.numbered("GET /a3"), (3, Arc::from("GET /a3")));
    }
}
