//! Names and values of a URL's query, or of a form that was sent (WHATWG URL, application/x-www-form-urlencoded).

use brunt_decide::kept::{Filter, KeptKind};

/// The most pairs that are read; none of our pages has so many.
const MOST_PAIRS: usize = 64;

/// Names with their values, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    pub fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).take(MOST_PAIRS);
        Self(
            pairs
                .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
                .map(|(a, b)| (decoded(a), decoded(b)))
                .collect(),
        )
    }

    /// The first value with this name, or an empty text.
    pub fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The number of a run.
    pub fn number(&self) -> Option<i64> {
        self.get("number").parse().ok()
    }

    /// The filter in it.
    pub fn filter(&self) -> Filter {
        let tags = self.get("tag").split_whitespace().filter_map(|tag| tag.split_once('='));
        let text = |name| self.get(name).trim().to_owned();
        Filter {
            tags: tags.map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
            name: text("name"),
            target: text("target"),
            script: text("script"),
            kind: KeptKind::named(self.get("kind").trim()),
            with_parts: self.get("parts") == "1",
        }
    }
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        let mut ahead = rest.clone();
        bytes.push(match (byte, digit(ahead.next()), digit(ahead.next())) {
            (b'%', Some(high), Some(low)) => {
                rest = ahead;
                (high * 16 + low) as u8
            }
            (b'+', ..) => b' ',
            _ => byte,
        });
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_decoded_and_nothing_is_lost_on_what_is_none() {
        let query = Query::parse("a=x+y%26z&b&&c=%zz%4&a=2&=&d=%C3%BC%ff");
        assert_eq!(query.all("a").collect::<Vec<_>>(), ["x y&z", "2"]);
        assert_eq!([query.get("b"), query.get("c"), query.get("d"), query.get("e")], ["", "%zz%4", "ü\u{fffd}", ""]);
        assert_eq!(Query::parse(&"a=1&".repeat(1000)).0.len(), MOST_PAIRS);
        assert_eq!(Query::parse("number=-7").number(), Some(-7));
        assert_eq!(Query::parse("number=../7").number(), None);
    }

    #[test]
    fn a_filter_is_read() {
        let filter = Query::parse("name=+n+&tag=a%3Db%3Dc+d+e%3D&parts=1").filter();
        let tags = vec![("a".to_owned(), "b=c".to_owned()), ("e".to_owned(), String::new())];
        assert_eq!(filter, Filter { name: "n".to_owned(), tags, with_parts: true, ..Filter::default() });
    }
}
