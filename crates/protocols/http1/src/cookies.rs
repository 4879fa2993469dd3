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
    let said = cookie::Cookie::parse(attributes.as_str()).ok()?;
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
    let lasts = said.max_age().or_else(|| expires(&attributes).map(|expires| expires - now));
    if let Some(lasts) = lasts {
        say("lasts", Value::Number(lasts.as_seconds_f64()));
    }
    Some(Value::Table(entries))
}

/// The last Expires among attributes that is a date.
fn expires(attributes: &str) -> Option<OffsetDateTime> {
    let values = attributes.split(';').filter_map(|attribute| {
        let (name, value) = attribute.split_once('=')?;
        name.trim().eq_ignore_ascii_case("expires").then_some(value)
    });
    values.rev().find_map(date)
}

/// A date by its tokens, in whatever order and way they are written (RFC 6265, section 5.1.1): time, day, month, year.
fn date(text: &str) -> Option<OffsetDateTime> {
    let is_delimiter = |c: char| !(c.is_ascii_alphanumeric() || c == ':' || c > '\u{7e}' || c < ' ' && c != '\t');
    let (mut clock, mut day, mut month, mut year) = (None, None, None, None);
    for token in text.split(is_delimiter).filter(|token| !token.is_empty()) {
        if clock.is_none()
            && let Some(found) = clock_of(token)
        {
            clock = Some(found);
        } else if day.is_none()
            && let Some(found) = number_of(token, 1..=2)
        {
            day = Some(found);
        } else if month.is_none()
            && let Some(found) = month_of(token)
        {
            month = Some(found);
        } else if year.is_none()
            && let Some(found) = number_of(token, 2..=4)
        {
            year = Some(found);
        }
    }
    let year = match year? {
        year @ 70..=99 => year + 1900,
        year @ 0..=69 => year + 2000,
        year => year,
    };
    let (hour, minute, second) = clock?;
    let date = cookie::time::Date::from_calendar_date(i32::from(year), month?, u8::try_from(day?).ok()?).ok()?;
    let time = cookie::time::Time::from_hms(hour, minute, second).ok()?;
    (year >= 1601).then(|| cookie::time::PrimitiveDateTime::new(date, time).assume_utc())
}

/// The number that a token begins with, of so many digits; what is behind them is passed over.
fn number_of(token: &str, digits: std::ops::RangeInclusive<usize>) -> Option<u16> {
    let end = token.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(token.len());
    digits.contains(&end).then(|| token.get(..end)?.parse().ok()).flatten()
}

/// `hour:minute:second`, of one or two digits each.
fn clock_of(token: &str) -> Option<(u8, u8, u8)> {
    let mut parts =
        token.splitn(3, ':').map(|part| number_of(part, 1..=2).and_then(|number| u8::try_from(number).ok()));
    Some((parts.next()??, parts.next()??, parts.next()??))
}

fn month_of(token: &str) -> Option<cookie::time::Month> {
    const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let start = token.get(..3)?.to_ascii_lowercase();
    let place = MONTHS.iter().position(|month| *month == start)?;
    cookie::time::Month::try_from(u8::try_from(place + 1).ok()?).ok()
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
        for written in
            ["1 Jan 2026 0:00:10", "thu,01-january-2026 00:00:10 gmt", "2026 Jan 1 00:00:10 EST", "00:00:10 1 Jan 26"]
        {
            assert_eq!(lasts(&format!("Expires={written}")), Some(10.0), "{written}");
        }
        for none in
            ["2026-01-01T00:00:10Z", "1 Jan 2026", "32 Jan 2026 00:00:00", "1 Jan 2026 25:00:00", "1 Jan 1600 00:00:00"]
        {
            assert_eq!(lasts(&format!("Expires={none}")), None, "{none}");
        }
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
