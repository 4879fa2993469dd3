//! Decides which values identify their source by themselves: they are long enough, and no common words.

use crate::secret::is_field;

/// Whether a value may be carried on at all.
pub(crate) fn least(value: &str) -> bool {
    (3..=4096).contains(&value.len()) && !value.chars().any(|letter| letter.is_whitespace() || letter.is_control())
}

/// Whether a value in the field `carrier` comes from the field `key`, and is not equal by chance.
///
/// A token or an id mixes digits with letters, or has many digits. Where both fields have the same name, or names
/// typical of ids and tokens, less is enough.
pub(crate) fn is_telling(value: &str, carrier: &str, key: &str) -> bool {
    if !least(value) || is_common(value) {
        return false;
    }
    let is_alike = !key.is_empty() && plain(carrier) == plain(key);
    let is_named = is_alike || is_id(key) || is_id(carrier) || is_field(key);
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let letters = value.chars().filter(|letter| letter.is_alphabetic()).count();
    if letters == 0 {
        // A number. Years and round numbers are often equal by chance.
        let is_year = value.len() == 4 && (value.starts_with("19") || value.starts_with("20"));
        return digits >= 6 || is_named && digits >= 3 && !is_year;
    }
    if digits == 0 {
        let is_mixed = value.chars().any(char::is_uppercase) && value.chars().any(char::is_lowercase);
        return value.len() >= 20 && is_mixed && !value.contains('/') || is_named && value.len() >= 12;
    }
    value.len() >= if is_named { 6 } else { 8 }
}

/// Whether a name is typical of ids.
fn is_id(name: &str) -> bool {
    let plain = plain(name);
    plain == "id"
        || plain.ends_with("id")
            && (name.ends_with("_id") || name.ends_with("Id") || name.ends_with("-id") || name.ends_with("ID"))
        || ["uuid", "guid", "nonce", "csrf", "xsrf", "cursor"].iter().any(|word| plain.contains(word))
}

fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
}

/// Whether a value is common: names of types, dates, versions, languages.
fn is_common(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let is_date = lower.len() >= 8
        && lower.bytes().take(10).all(|byte| byte.is_ascii_digit() || byte == b'-')
        && lower.bytes().filter(|byte| *byte == b'-').count() == 2;
    let is_version =
        lower.trim_start_matches('v').bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') && lower.contains('.');
    let beginnings = [
        "application/",
        "text/",
        "image/",
        "multipart/",
        "mozilla/",
        "utf-8",
        "iso-8859",
        "http/1",
        "localhost",
        "127.0.0.1",
    ];
    is_date
        || is_version
        || beginnings.iter().any(|beginning| lower.starts_with(beginning))
        || matches!(
            lower.as_str(),
            "xmlhttprequest" | "undefined" | "anonymous" | "password" | "base64" | "sha256" | "same-origin"
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_and_ids_are_telling_and_words_are_not() {
        for (value, carrier, key) in [
            ("form1.9a8b7c6d", "token", "token"),
            ("8f3a77c1", "", ""),
            ("550e8400-e29b-41d4-a716-446655440000", "", ""),
            ("102", "item", "id"),
            ("1234567", "", ""),
            ("AbCdEfGhIjKlMnOpQrSt", "", ""),
            ("abcdefghijkl", "nonce", "nonce"),
        ] {
            assert!(is_telling(value, carrier, key), "{value} {carrier} {key}");
        }
        for (value, carrier, key) in [
            ("electronics", "category", "category"),
            ("2026-11-26", "date", "date"),
            ("1.10.2", "version", "version"),
            ("2026", "year", "id"),
            ("100", "limit", "total"),
            ("a b c d e f g 1 2 3", "q", "q"),
            ("application/json", "accept", "type"),
            ("en", "lang", "lang"),
        ] {
            assert!(!is_telling(value, carrier, key), "{value} {carrier} {key}");
        }
    }
}
