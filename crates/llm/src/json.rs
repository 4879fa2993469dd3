//! A reader of JSON that walks over the bytes of an event once: no tree, and no copy of a text that nobody asked for.
//!
//! Servers differ in what they put where: a text may be `null`, a list of parts or an object, a count a decimal number, a field may come twice.
//! So a value of another kind than expected is passed over, and the last of several fields counts. What is no JSON at all is `None`.

use memchr::memchr2;

/// The deepest nesting that is read.
const MOST_DEPTH: u8 = 128;
/// Texts of fewer bytes are short.
const SHORT: usize = 32;

/// A place in a text of JSON.
///
/// ```
/// use brunt_llm::json::Json;
///
/// let mut tokens = None;
/// let mut json = Json::new(br#"{"id": 7, "usage": {"completion_tokens": 3}}"#);
/// json.fields(|name, json| match name {
///     b"usage" => json.fields(|name, json| match name {
///         b"completion_tokens" => json.count().map(|count| tokens = count),
///         _ => json.skip(),
///     }),
///     _ => json.skip(),
/// });
/// assert_eq!((tokens, json.has_ended()), (Some(3), true));
/// ```
#[derive(Debug)]
pub struct Json<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: u8,
}

/// A text as it stands between its quotes.
#[derive(Debug, Clone, Copy)]
struct Quoted<'a> {
    bytes: &'a [u8],
    has_escapes: bool,
}

impl<'a> Json<'a> {
    /// The beginning of a text.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, depth: 0 }
    }

    /// Whether only white space is left.
    pub fn has_ended(&mut self) -> bool {
        self.peek().is_none()
    }

    /// The next byte that is no white space; it stays the next.
    fn peek(&mut self) -> Option<u8> {
        loop {
            let byte = *self.bytes.get(self.at)?;
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    /// The same, and goes past it.
    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    /// Goes through the fields of an object; `field` gets each name as it is written, and reads or skips the value. A value that is no object
    /// is skipped.
    pub fn fields(&mut self, mut field: impl FnMut(&'a [u8], &mut Self) -> Option<()>) -> Option<()> {
        if self.peek()? != b'{' {
            return self.skip();
        }
        self.inside(b'}', |json| {
            let name = json.quoted()?;
            (json.next()? == b':').then_some(())?;
            field(name.bytes, json)
        })
    }

    /// Goes through the elements of a list; `element` reads or skips each. A value that is no list is skipped.
    pub fn elements(&mut self, element: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        if self.peek()? == b'[' { self.inside(b']', element) } else { self.skip() }
    }

    /// Goes through what an object or a list has, from its first byte to behind its last.
    fn inside(&mut self, end: u8, mut part: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.at += 1;
        self.depth = self.depth.checked_add(1).filter(|depth| *depth <= MOST_DEPTH)?;
        if self.peek()? == end {
            self.at += 1;
        } else {
            loop {
                part(self)?;
                match self.next()? {
                    b',' => {}
                    byte if byte == end => break,
                    _ => return None,
                }
            }
        }
        self.depth -= 1;
        Some(())
    }

    /// Skips a value.
    pub fn skip(&mut self) -> Option<()> {
        match self.peek()? {
            b'{' => self.fields(|_, json| json.skip()),
            b'[' => self.inside(b']', Self::skip),
            b'"' => self.quoted().map(drop),
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'n' => self.word(b"null"),
            _ => self.number().map(drop),
        }
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        self.bytes.get(self.at..)?.starts_with(word).then(|| self.at += word.len())
    }

    /// Whether a value is there: neither `null` nor `false`. It is skipped.
    pub fn is_there(&mut self) -> Option<bool> {
        let is_there = !matches!(self.peek()?, b'n' | b'f');
        self.skip().map(|()| is_there)
    }

    /// A number that counts something: whole or decimal, at most `u32::MAX`. `Some(None)` for anything else, which is skipped.
    pub fn count(&mut self) -> Option<Option<u32>> {
        if !matches!(self.peek()?, b'0'..=b'9' | b'-') {
            return self.skip().map(|()| None);
        }
        let number = self.number()?;
        let digits = number.iter().try_fold(0_u32, |sum, byte| {
            let digit = byte.is_ascii_digit().then(|| u32::from(byte - b'0'))?;
            sum.checked_mul(10)?.checked_add(digit)
        });
        // A cast of a double ends at the largest number.
        let rounded = || float(number).filter(|number| *number >= 0.0).map(|number| number as u32);
        Some(digits.or_else(rounded))
    }

    fn number(&mut self) -> Option<&'a [u8]> {
        let rest = self.bytes.get(self.at..)?;
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let is_of_number = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        let length = if digits > 0 && !rest.get(digits).is_some_and(is_of_number) {
            digits
        } else {
            let length = rest.iter().take_while(|byte| is_of_number(byte)).count();
            let number = rest.get(..length)?;
            let unsigned = number.strip_prefix(b"-").unwrap_or(number);
            (unsigned.first()?.is_ascii_digit() && float(number).is_some()).then_some(length)?
        };
        self.at += length;
        rest.get(..length)
    }

    /// The text that comes next, between its quotes.
    fn quoted(&mut self) -> Option<Quoted<'a>> {
        (self.next()? == b'"').then_some(())?;
        let began = self.at;
        let mut has_escapes = false;
        loop {
            let found = self.at + end_of_plain(self.bytes.get(self.at..)?)?;
            if self.bytes.get(found) == Some(&b'"') {
                self.at = found + 1;
                return Some(Quoted { bytes: self.bytes.get(began..found)?, has_escapes });
            }
            has_escapes = true;
            self.at = found + 2;
        }
    }

    /// The raw bytes of a text, to be compared; a value of another kind is skipped, and as one that is empty.
    pub fn word_of_text(&mut self) -> Option<&'a [u8]> {
        if self.peek()? == b'"' { self.quoted().map(|text| text.bytes) } else { self.skip().map(|()| &[][..]) }
    }

    /// The bytes of a text. It is appended to `out`, if there is one. A list of parts has the texts of its parts, and a part the one in its field
    /// `text` or `thinking`.
    pub fn text(&mut self, mut out: Option<&mut String>) -> Option<u32> {
        match self.peek()? {
            b'"' => self.quoted()?.unescape(out),
            b'[' => {
                let mut sum = 0_u32;
                self.inside(b']', |json| json.text(out.as_deref_mut()).map(|bytes| sum = sum.saturating_add(bytes)))?;
                Some(sum)
            }
            b'{' => {
                let mut sum = 0_u32;
                self.fields(|name, json| match name {
                    b"text" | b"thinking" => json.text(out.as_deref_mut()).map(|bytes| sum = sum.saturating_add(bytes)),
                    _ => json.skip(),
                })?;
                Some(sum)
            }
            _ => self.skip().map(|()| 0),
        }
    }

    /// The bytes of a text, or of a value of another kind as it is written; none of `null`.
    pub fn size(&mut self) -> Option<u32> {
        match self.peek()? {
            b'"' => self.quoted()?.unescape(None),
            b'n' => self.skip().map(|()| 0),
            _ => {
                let began = self.at;
                self.skip()?;
                Some(u32::try_from(self.at - began).unwrap_or(u32::MAX))
            }
        }
    }
}

fn float(number: &[u8]) -> Option<f64> {
    std::str::from_utf8(number).ok()?.parse().ok()
}

/// The place of the first quote or backslash. Most texts of an event have a few bytes, for which a search for long ones would take longer.
fn end_of_plain(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    // The lowest set bit is in the first byte that is zero.
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word & (ONES << 7);
    let (eights, _) = bytes.as_chunks::<8>();
    for (at, eight) in eights.iter().take(SHORT / 8).enumerate() {
        let word = u64::from_le_bytes(*eight);
        let found = zeros(word ^ (ONES * u64::from(b'"'))) | zeros(word ^ (ONES * u64::from(b'\\')));
        if found != 0 {
            return Some(8 * at + found.trailing_zeros() as usize / 8);
        }
    }
    let behind = SHORT.min(8 * eights.len());
    Some(behind + memchr2(b'"', b'\\', bytes.get(behind..)?)?)
}

impl Quoted<'_> {
    /// How many bytes of UTF-8 the text has without its escapes; it is appended to `out`, if there is one.
    fn unescape(self, mut out: Option<&mut String>) -> Option<u32> {
        let mut bytes = 0_usize;
        let mut rest = self.bytes;
        let mut high = None;
        while !rest.is_empty() {
            let plain = if self.has_escapes { memchr::memchr(b'\\', rest).unwrap_or(rest.len()) } else { rest.len() };
            let (text, behind) = rest.split_at(plain);
            rest = behind;
            if !text.is_empty() {
                bytes += text.len();
                high = None;
                if let Some(out) = &mut out {
                    out.push_str(&String::from_utf8_lossy(text));
                }
            }
            let Some(escape) = rest.get(1) else { break };
            let unit = match escape {
                b'u' => u16::from_str_radix(std::str::from_utf8(rest.get(2..6)?).ok()?, 16).ok()?,
                b'b' => 8,
                b'f' => 12,
                b'n' => u16::from(b'\n'),
                b'r' => u16::from(b'\r'),
                b't' => u16::from(b'\t'),
                b'"' | b'\\' | b'/' => u16::from(*escape),
                _ => return None,
            };
            rest = rest.get(if *escape == b'u' { 6 } else { 2 }..)?;
            // Both halves of a pair make one character of four bytes; a half by itself, which is no character, counts as three.
            let pair = high.take().and_then(|high| char::decode_utf16([high, unit]).next()?.ok());
            let read = pair.or_else(|| char::from_u32(u32::from(unit)));
            bytes += if pair.is_some() { 1 } else { read.map_or(3, char::len_utf8) };
            match (read, &mut out) {
                (Some(c), Some(out)) => {
                    if pair.is_some() {
                        // The first half's place.
                        out.pop();
                    }
                    out.push(c);
                }
                (None, Some(out)) => out.push(char::REPLACEMENT_CHARACTER),
                (_, None) => {}
            }
            high = Some(unit).filter(|unit| read.is_none() && *unit < 0xdc00);
        }
        Some(u32::try_from(bytes).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn text(json: &str) -> Option<(u32, String)> {
        let mut said = String::new();
        let mut json = Json::new(json.as_bytes());
        let bytes = json.text(Some(&mut said))?;
        json.has_ended().then_some((bytes, said))
    }

    #[test]
    fn texts_are_read_without_their_escapes() {
        let plain =
            |json: &str| text(json).map(|(bytes, said)| (bytes as usize == said.len()).then_some(said).unwrap());
        assert_eq!(plain(r#""a\n\"\\\/\t\u00e9é""#).unwrap(), "a\n\"\\/\té\u{e9}");
        assert_eq!(plain(r#""\ud83e\udd80!""#).unwrap(), "\u{1f980}!");
        assert_eq!(plain(r#"[{"type":"text","text":"a"},{"thinking":[{"text":"b"}]},"c",null,7]"#).unwrap(), "abc");
        // Halves of a character that a server cut in two are texts, and no characters.
        assert_eq!(plain(r#""\ud83e""#).unwrap(), "\u{fffd}");
        assert_eq!(plain(r#""\udd80x\ud83e\ud83e\udd80""#).unwrap(), "\u{fffd}x\u{fffd}\u{1f980}");
        for broken in
            ["\"a", r#""\x""#, r#""\u12""#, "[\"a\"", "\"a\\\"", "{\"text\":}", "{\"text\" \"a\"}", "[\"a\" \"b\"]", ""]
        {
            assert_eq!(text(broken), None, "{broken}");
        }
    }

    #[test]
    fn counts_are_numbers_of_any_form() {
        let count = |json: &str| Json::new(json.as_bytes()).count();
        for (json, wanted) in [
            ("12", Some(12)),
            ("12.0", Some(12)),
            ("1.2e1", Some(12)),
            ("99999999999999999999", Some(u32::MAX)),
            ("-3", None),
            ("null", None),
            ("\"12\"", None),
            ("{\"a\":[1]}", None),
        ] {
            assert_eq!(count(json), Some(wanted), "{json}");
        }
        assert_eq!(["-", "1-2", "nul", ".5", "+1"].map(count), [None; 5]);
    }

    #[test]
    fn nesting_has_an_end() {
        let nested = |depth: usize| Json::new(&[vec![b'['; depth], vec![b']'; depth]].concat()).skip();
        assert_eq!((nested(128), nested(129), nested(1_000_000)), (Some(()), None, None));
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map("[a-z\\\\\"é]{0,5}", inner, 0..6)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn whatever_is_json_is_read_to_its_end(value in any_json(), pretty in any::<bool>(), cut in any::<prop::sample::Index>()) {
            let json = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
            let mut reader = Json::new(json.as_bytes());
            prop_assert!(reader.skip().is_some() && reader.has_ended(), "{}", json);
            if let Value::String(wanted) = &value {
                prop_assert_eq!(text(&json), Some((wanted.len() as u32, wanted.clone())));
            }
            // Text that is cut off is not JSON; a number that is cut off may be one.
            let cut = cut.index(json.len());
            if !value.is_number() && json.is_char_boundary(cut) {
                prop_assert_eq!(Json::new(&json.as_bytes()[..cut]).skip(), None, "{}", &json[..cut]);
            }
        }
    }
}
