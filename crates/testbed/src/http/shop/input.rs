//! The content of requests, in the forms that browsers and programs use.

/// The most fields of a form.
const MOST_FIELDS: usize = 100;
/// The most parts of an upload.
const MOST_PARTS: usize = 100;

/// Names and values; if a name is repeated, its first value counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Form(Vec<(String, String)>);

impl Form {
    /// `a=1&b=2` (WHATWG URL, section 5.1).
    pub(super) fn urlencoded(text: &[u8]) -> Self {
        let pairs = text.split(|&b| b == b'&').filter(|pair| !pair.is_empty()).take(MOST_FIELDS);
        let pairs = pairs.map(|pair| {
            let at = memchr::memchr(b'=', pair).unwrap_or(pair.len());
            (decoded(pair.get(..at).unwrap_or(pair)), decoded(pair.get(at + 1..).unwrap_or_default()))
        });
        Self(pairs.collect())
    }

    /// A `Cookie` header (RFC 6265, section 4.2.1).
    pub(super) fn cookies(text: &str) -> Self {
        let pairs = text.split(';').filter_map(|pair| pair.trim().split_once('=')).take(MOST_FIELDS);
        Self(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    /// An object of strings and numbers.
    pub(super) fn json(body: &[u8]) -> Option<Self> {
        let object: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(body).ok()?;
        let pairs = object.into_iter().take(MOST_FIELDS).map(|(name, value)| match value {
            serde_json::Value::String(text) => Some((name, text)),
            // Lua has only one type of number.
            serde_json::Value::Number(n) => match n.as_f64().filter(|n| n.fract() == 0.0 && n.abs() < 1e15) {
                Some(whole) => Some((name, (whole as i64).to_string())),
                None => Some((name, n.to_string())),
            },
            _ => None,
        });
        pairs.collect::<Option<_>>().map(Self)
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.get(name)?.parse().ok()
    }
}

/// Without percent-encoding, and with `+` as a space.
fn decoded(text: &[u8]) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.iter();
    while let Some(&byte) = rest.next() {
        let digits = rest.as_slice().get(..2).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match (byte, digits.and_then(|digits| u8::from_str_radix(digits, 16).ok())) {
            (b'%', Some(escaped)) => {
                bytes.push(escaped);
                rest.nth(1);
            }
            (b'+', _) => bytes.push(b' '),
            _ => bytes.push(byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// User and password of Basic credentials (RFC 7617): base64 (RFC 4648, section 4) of `user:password`.
pub(super) fn basic(credentials: &str) -> Option<(String, String)> {
    let mut bits = 0_u32;
    let mut held = 0;
    let mut bytes = Vec::new();
    for c in credentials.trim_end_matches('=').bytes() {
        let value = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
            bits &= (1 << held) - 1;
        }
    }
    let text = String::from_utf8(bytes).ok()?;
    let (user, password) = text.split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
}

/// A part of an upload.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) name: String,
    pub(super) filename: Option<String>,
    pub(super) bytes: usize,
}

/// The parts of `multipart/form-data` (RFC 7578); `None` for anything else.
pub(super) fn parts(content_type: &str, body: &[u8]) -> Option<Vec<Part>> {
    let rest = content_type.strip_prefix("multipart/form-data")?;
    let boundary = parameter(rest, "boundary").filter(|boundary| !boundary.is_empty())?;
    let delimiter = format!("\r\n--{boundary}");
    // No line end stands before the first delimiter.
    let mut rest = body.strip_prefix(delimiter.trim_start().as_bytes())?;
    let mut parts = Vec::new();
    while let Some(after) = rest.strip_prefix(b"\r\n").filter(|_| parts.len() < MOST_PARTS) {
        let end = memchr::memmem::find(after, delimiter.as_bytes())?;
        parts.push(part(after.get(..end)?)?);
        rest = after.get(end + delimiter.len()..)?;
    }
    rest.starts_with(b"--").then_some(parts)
}

fn part(bytes: &[u8]) -> Option<Part> {
    let end = memchr::memmem::find(bytes, b"\r\n\r\n")?;
    let head = std::str::from_utf8(bytes.get(..end)?).ok()?;
    let disposition = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-disposition").then_some(value)
    })?;
    Some(Part {
        name: parameter(disposition, "name")?,
        filename: parameter(disposition, "filename"),
        bytes: bytes.len() - end - 4,
    })
}

/// A parameter of a header's value: `; name="value"` or `; name=value`.
fn parameter(text: &str, name: &str) -> Option<String> {
    text.split(';').find_map(|parameter| {
        let (found, value) = parameter.trim().split_once('=')?;
        found.eq_ignore_ascii_case(name).then(|| value.trim_matches('"').to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_read() {
        let form = Form::urlencoded(b"a=1&b=x+y%20z%21&c&=d&e=%zz%4");
        assert_eq!(form.get("a"), Some("1"));
        assert_eq!(form.get("b"), Some("x y z!"));
        assert_eq!(form.get("c"), Some(""));
        assert_eq!(form.get("e"), Some("%zz%4"));
        assert_eq!(Form::json(b"{\"n\": 7.0, \"s\": \"t\"}").unwrap().number("n"), Some(7));
        assert_eq!(Form::json(b"{\"n\": []}"), None);
        assert_eq!(Form::cookies("a=b; session=x.y; c").get("session"), Some("x.y"));
    }

    #[test]
    fn basic_credentials_are_those_of_the_rfc() {
        assert_eq!(basic("QWxhZGRpbjpvcGVuIHNlc2FtZQ=="), Some(("Aladdin".into(), "open sesame".into())));
        assert_eq!(basic("dGVzdDoxMjPCow=="), Some(("test".into(), "123£".into())));
        assert_eq!(basic("*"), None);
        assert_eq!(basic(""), None);
    }

    #[test]
    fn the_parts_of_an_upload_are_told() {
        let body = b"--AaB\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nhello\r\n\
            --AaB\r\ncontent-disposition: form-data; name=\"f\"; filename=\"x.txt\"\r\nContent-Type: text/plain\r\n\r\n\r\n\r\n--AaB--\r\n";
        let parts = parts("multipart/form-data; boundary=AaB", body).unwrap();
        assert_eq!(parts[0], Part { name: "a".into(), filename: None, bytes: 5 });
        assert_eq!(parts[1], Part { name: "f".into(), filename: Some("x.txt".into()), bytes: 2 });
        assert_eq!(super::parts("multipart/form-data; boundary=AaB", b"--AaB\r\n"), None);
        assert_eq!(super::parts("text/plain", body), None);
    }

    proptest::proptest! {
        #[test]
        fn nothing_panics(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200), cut in 0_usize..200) {
            let text = String::from_utf8_lossy(&bytes);
            let _ = (Form::urlencoded(&bytes), Form::json(&bytes), Form::cookies(&text), basic(&text));
            let body = [b"--x\r\n", bytes.get(cut..).unwrap_or_default(), b"\r\n--x--"].concat();
            let _ = (parts(&text, &bytes), parts("multipart/form-data; boundary=x", &body));
        }
    }
}
