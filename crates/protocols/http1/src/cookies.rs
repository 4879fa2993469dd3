//! Cookies from Set-Cookie fields (RFC 6265, section 5.2), for the jar that a user's library keeps.

use std::borrow::Cow;

use brunt_protocol::scenario::Value;
use cookie::time::OffsetDateTime;

/// The longest cookie that browsers keep, in bytes (RFC 6265, section 6.1).
const MOST_COOKIE_BYTES: usize = 4096;

/// The cookie that a field sets, as a table: `name`, `value`, and where the field has them `domain`, `path`, `secure`,
/// and `lasts`, in seconds from `now`; 0 or less for a cookie that has to be forgotten. `None` if it sets no cookie.
pub(super) fn said(field: &[u8], now: OffsetDateTime) -> Option<Value<'_>> {
    if field.len() > MOST_COOKIE_BYTES {
        return None;
    }
    let end = field.iter().position(|byte| *byte == b';').unwrap_or(field.len());
    let (pair, attributes) = field.split_at(end);
    let equals = pair.iter().position(|byte| *byte == b'=')?;
    let (name, value) = (pair.get(..equals)?.trim_ascii(), pair.get(equals + 1..)?.trim_ascii());
    if name.is_empty() || name.iter().any(u8::is_ascii_whitespace) {
        return None;
    }
    // Name and value are any bytes, and stay as they are; only the attributes behind them are text.
    let attributes = format!("n=v{}", String::from_utf8_lossy(attributes));
    let said = cookie::Cookie::parse(attributes).ok()?;
    let mut entries = vec![
        (Value::text("name"), Value::Text(Cow::Borrowed(name))),
        (Value::text("value"), Value::Text(Cow::Borrowed(value))),
    ];
    let mut say = |name: &'static str, value: Value<'static>| entries.push((Value::text(name), value));
    let owned = |text: &str| Value::Text(Cow::Owned(text.as_bytes().to_vec()));
    if let Some(domain) = said.domain().filter(|domain| !domain.is_empty()) {
        say("domain", owned(&domain.to_ascii_lowercase()));
    }
    if let Some(path) = said.path().filter(|path| path.starts_with('/')) {
        say("path", owned(path));
    }
    if said.secure() == Some(true) {
        say("secure", Value::Boolean(true));
    }
    // Max-Age comes before Expires (section 4.1.2.2).
    let lasts = said.max_age().or_else(|| said.expires_datetime().map(|expires| expires - now));
    if let Some(lasts) = lasts {
        say("lasts", Value::Number(lasts.as_seconds_f64()));
    }
    Some(Value::Table(entries))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 2026-01-01 00:00:00 UTC.
    fn now() -> OffsetDateTime {
        OffsetDateTime::from_unix_timestamp(1_767_225_600).unwrap()
    }

    fn cookie(field: &str) -> Option<Value<'_>> {
        said(field.as_bytes(), now())
    }

    fn lasts(attributes: &str) -> Option<f64> {
        cookie(&format!("a=1; {attributes}")).unwrap().get("lasts").as_number()
    }

    #[test]
    fn a_cookie_lasts_as_long_as_it_says() {
        assert_eq!(lasts("Max-Age=60"), Some(60.0));
        assert_eq!(lasts("max-age=0"), Some(0.0));
        assert!(lasts("Max-Age=-1").unwrap() <= 0.0);
        assert_eq!(lasts("Expires=Thu, 01 Jan 2026 00:00:10 GMT"), Some(10.0), "to the second");
        assert_eq!(lasts("Expires=Wed, 31 Dec 2025 23:59:59 GMT"), Some(-1.0));
        assert_eq!(lasts("Expires=Thursday, 01-Jan-26 00:01:00 GMT"), Some(60.0), "RFC 850");
        assert_eq!(lasts("Expires=Wed, 31 Dec 2025 23:59:59 GMT; Max-Age=5"), Some(5.0), "Max-Age comes first");
        assert_eq!(lasts("Path=/"), None, "as long as its user");
        assert_eq!(lasts("Expires=whenever"), None);
    }

    #[test]
    fn names_values_and_attributes_are_read() {
        let said = cookie(" id = a=b \"c\" ; Domain=.Example.org; Path=/shop; Secure; HttpOnly").unwrap();
        let text = |name: &str| said.get(name).as_str().map(str::to_owned);
        assert_eq!(text("name").as_deref(), Some("id"));
        assert_eq!(text("value").as_deref(), Some("a=b \"c\""));
        assert_eq!(text("domain").as_deref(), Some("example.org"));
        assert_eq!(text("path").as_deref(), Some("/shop"));
        assert_eq!(said.get("secure"), &Value::Boolean(true));
        assert!(cookie("a=1; Path=shop").unwrap().get("path").is_nil());
        for nothing in ["", "a", "=1", "a b=1", "; Path=/"] {
            assert_eq!(cookie(nothing), None, "{nothing}");
        }
        let long = format!("a={}", "x".repeat(MOST_COOKIE_BYTES));
        assert_eq!(cookie(&long), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_left_alone(field in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = said(&field, now());
            let _ = said(&[b"a=1; ", field.as_slice()].concat(), now());
        }
    }
}
