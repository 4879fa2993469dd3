//! Members of a JSON text, found without parsing it into values.

/// The text of the last member with this name, in a text that is one object; empty where the object has no such member. `None`: the text is no
/// object, or a name has escapes; the caller parses the whole text then.
pub(crate) fn member<'a>(text: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let mut reader = Reader { text, at: 0, depth: 0 };
    let mut found: &[u8] = &[];
    reader.space();
    reader.take(b'{')?;
    reader.space();
    if reader.peek() == Some(b'}') {
        reader.at += 1;
    } else {
        loop {
            let key = reader.string()?;
            reader.space();
            reader.take(b':')?;
            reader.space();
            let from = reader.at;
            reader.value()?;
            let value = text.get(from..reader.at)?;
            if key.contains(&b'\\') {
                return None;
            }
            if key == name {
                found = value;
            }
            reader.space();
            match reader.next()? {
                b',' => reader.space(),
                b'}' => break,
                _ => return None,
            }
        }
    }
    reader.space();
    (reader.at == text.len()).then_some(found)
}

/// The deepest nesting that is followed.
const DEEPEST: u32 = 64;

/// Reader of JSON (ECMA-404). It may refuse valid JSON, such as deep nesting, and accepts nothing invalid.
struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    depth: u32,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        (self.next()? == byte).then_some(())
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// What is between the quotes.
    fn string(&mut self) -> Option<&'a [u8]> {
        self.take(b'"')?;
        let from = self.at;
        loop {
            match self.next()? {
                b'"' => return self.text.get(from..self.at - 1),
                b'\\' => match self.next()? {
                    b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {}
                    b'u' => (0..4).try_for_each(|_| self.next()?.is_ascii_hexdigit().then_some(()))?,
                    _ => return None,
                },
                0..=0x1f => return None,
                _ => {}
            }
        }
    }

    fn digits(&mut self) -> Option<()> {
        let from = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        (self.at > from).then_some(())
    }

    fn number(&mut self) -> Option<()> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek()? == b'0' {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Some(())
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        self.text.get(self.at..)?.starts_with(word).then(|| self.at += word.len())
    }

    fn value(&mut self) -> Option<()> {
        match self.peek()? {
            b'"' => self.string().map(drop),
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'n' => self.word(b"null"),
            b'[' => self.list(b']', Self::value),
            b'{' => self.list(b'}', |reader| {
                reader.string()?;
                reader.space();
                reader.take(b':')?;
                reader.space();
                reader.value()
            }),
            _ => self.number(),
        }
    }

    /// A list of what `one` reads, with what is around it.
    fn list(&mut self, end: u8, one: impl Fn(&mut Self) -> Option<()>) -> Option<()> {
        self.at += 1;
        self.depth += 1;
        if self.depth > DEEPEST {
            return None;
        }
        self.space();
        if self.peek()? == end {
            self.at += 1;
        } else {
            loop {
                one(self)?;
                self.space();
                match self.next()? {
                    b',' => self.space(),
                    last if last == end => break,
                    _ => return None,
                }
            }
        }
        self.depth -= 1;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn members_are_as_they_are_written() {
        fn member<'a>(text: &'a str, name: &str) -> Option<&'a str> {
            super::member(text.as_bytes(), name.as_bytes()).map(|value| std::str::from_utf8(value).unwrap_or("?"))
        }
        let text = r#" { "a" : 1, "b":{"a":[1,{"c":"}"}],"d":-0.5e+3} , "e":"x\"\u00e9","a":true} "#;
        assert_eq!(member(text, "a"), Some("true"));
        assert_eq!(member(text, "b"), Some(r#"{"a":[1,{"c":"}"}],"d":-0.5e+3}"#));
        assert_eq!(member(text, "e"), Some(r#""x\"\u00e9""#));
        assert_eq!(member(text, "c"), Some(""));
        assert_eq!(member("{}", "c"), Some(""));
        for bad in [
            "",
            "{",
            "[]",
            "1",
            "{}}",
            "{\"a\":01}",
            "{\"a\":1,}",
            "{a:1}",
            "{\"a\":1.}",
            "{\"a\":\"\n\"}",
            "{\"a\":tru}",
            "{\"\\u0061\":1}",
            "{\"a\":\"\\x\"}",
            "{\"a\":[1,]}",
            "{\"a\":-}",
        ] {
            assert_eq!(member(bad, "a"), None, "{bad}");
        }
        assert_eq!(member(&format!("{{\"a\":{}{}}}", "[".repeat(65), "]".repeat(65)), "a"), None);
    }
}
