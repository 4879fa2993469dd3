//! URLs as templates: what tells requests of one kind apart is left out.

use std::collections::HashMap;

/// The most templates that are told apart; the rest is [`OTHERS`].
pub const MOST: usize = 200;
/// What requests beyond that are called.
pub const OTHERS: &str = "(others)";

/// The template of a request: its method, and its path without the query. A number becomes `{n}`, a UUID `{uuid}`, eight or
/// more hexadecimal digits `{hex}`, and what is long or holds an `@` or an escape `{id}`: a token in a path is not shown.
pub fn fold(method: &str, url: &str) -> String {
    let path = match url.find("://") {
        Some(place) => {
            url.get(place + 3..).and_then(|rest| rest.find('/').and_then(|at| rest.get(at..))).unwrap_or("/")
        }
        None => url,
    };
    let path = path.split(['?', '#', ';']).next().unwrap_or("/");
    let segments = path.split('/').map(|segment| kind(segment).unwrap_or(segment));
    let mut folded = format!("{method} ");
    for (place, segment) in segments.enumerate() {
        if place > 0 {
            folded.push('/');
        }
        folded.push_str(segment);
    }
    folded
}

/// What a segment stands for, if not for itself.
fn kind(segment: &str) -> Option<&'static str> {
    let bytes = segment.as_bytes();
    let is_hex = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_hexdigit);
    let has_digit = bytes.iter().any(u8::is_ascii_digit);
    if bytes.is_empty() {
        return None;
    }
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

/// Templates by their numbers, of which there are few.
#[derive(Debug, Default)]
pub struct Templates {
    names: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl Templates {
    /// The number of a template; of too many, that of the others.
    pub fn number(&mut self, name: String) -> u32 {
        if let Some(number) = self.numbers.get(&name) {
            return *number;
        }
        let name = if self.names.len() >= MOST { OTHERS.to_owned() } else { name };
        if let Some(number) = self.numbers.get(&name) {
            return *number;
        }
        let number = self.names.len() as u32;
        self.names.push(name.clone());
        self.numbers.insert(name, number);
        number
    }

    /// The template of this number.
    pub fn name(&self, number: u32) -> &str {
        self.names.get(number as usize).map_or(OTHERS, String::as_str)
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
            templates.number(format!("GET /a{nth}"));
        }
        let others = templates.number("GET /another".to_owned());
        assert_eq!((others as usize, templates.name(others)), (MOST, OTHERS));
        let known = templates.number("GET /a3".to_owned());
        assert_eq!(templates.name(known), "GET /a3");
    }
}
