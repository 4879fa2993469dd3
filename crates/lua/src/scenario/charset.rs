//! Charsets of answers: a body in another one than UTF-8 is read as the text that it is.

use std::borrow::Cow;

use encoding_rs::Encoding;

/// The beginning of a body that is searched for a charset, as browsers search it.
const SEARCHED: usize = 1024;

/// Why a body's text cannot be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum CharsetError {
    /// The answer names a charset that is not known.
    #[error("is in the charset '{0}', which brunt does not know: read its bytes by body")]
    Unknown(String),
}

/// A body as text in UTF-8; `None` where its bytes are that already.
///
/// # Errors
/// When it states a charset that is not known.
pub(super) fn decoded(body: &[u8], content_type: Option<&str>) -> Result<Option<String>, CharsetError> {
    let Some(encoding) = encoding_of(body, content_type)? else { return Ok(None) };
    // Removes a byte order mark, too.
    let (text, _, _) = encoding.decode(body);
    Ok(match text {
        Cow::Borrowed(text) if text.len() == body.len() => None,
        text => Some(text.into_owned()),
    })
}

/// The encoding that a body states: by its byte order mark, its Content-Type, its XML declaration or an element `meta`.
fn encoding_of(body: &[u8], content_type: Option<&str>) -> Result<Option<&'static Encoding>, CharsetError> {
    if let Some((encoding, _)) = Encoding::for_bom(body) {
        return Ok(Some(encoding));
    }
    let known = |label: &str| {
        Encoding::for_label(label.as_bytes()).map(Some).ok_or_else(|| CharsetError::Unknown(label.to_owned()))
    };
    if let Some(label) = content_type.and_then(parameter) {
        return known(&label);
    }
    let start: String = body.iter().take(SEARCHED).map(|byte| char::from(*byte).to_ascii_lowercase()).collect();
    if start.trim_start().starts_with("<?xml") {
        let declaration = start.split("?>").next().unwrap_or("");
        return match value_after(declaration, "encoding") {
            // A body that can be read so far is not in UTF-16 without a mark, whatever it says.
            Some(label) if label.starts_with("utf-16") => Ok(None),
            Some(label) => known(&label),
            None => Ok(None),
        };
    }
    let metas = start.split("<meta").skip(1).filter_map(|meta| meta.split('>').next());
    for meta in metas {
        if let Some(label) = value_after(meta, "charset") {
            return if label.starts_with("utf-16") { Ok(None) } else { known(&label) };
        }
    }
    Ok(None)
}

/// The parameter `charset` of a Content-Type.
fn parameter(content_type: &str) -> Option<String> {
    content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        let value = value.trim().trim_matches(['"', '\'']);
        (name.trim().eq_ignore_ascii_case("charset") && !value.is_empty()).then(|| value.to_owned())
    })
}

/// The value of `name=value` or `name="value"` in a text.
fn value_after(text: &str, name: &str) -> Option<String> {
    text.match_indices(name).find_map(|(at, _)| {
        let rest = text.get(at + name.len()..)?.trim_start().strip_prefix('=')?.trim_start();
        let rest = rest.trim_start_matches(['"', '\'']);
        let end = rest.find(|c: char| c.is_whitespace() || "\"';/>?".contains(c)).unwrap_or(rest.len());
        rest.get(..end).filter(|value| !value.is_empty()).map(str::to_owned)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(body: &[u8], content_type: Option<&str>) -> String {
        match decoded(body, content_type) {
            Ok(Some(text)) => text,
            Ok(None) => "the same".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_body_is_read_in_the_charset_that_it_states() {
        let polish = b"<p>\xb3\xf3d\xbc</p>";
        assert_eq!(read(polish, Some("text/html; Charset=\"ISO-8859-2\"")), "<p>łódź</p>");
        assert_eq!(
            read(b"<?xml version='1.0' encoding='windows-1251'?><a>\xef</a>", None),
            "<?xml version='1.0' encoding='windows-1251'?><a>п</a>"
        );
        let meta = b"<html><meta http-equiv=Content-Type content='text/html; charset=euc-kr'>\xb0\xa1";
        assert!(read(meta, Some("text/html")).ends_with('가'));
        assert_eq!(read(b"\xff\xfeh\0i\0", Some("text/plain; charset=utf-8")), "hi", "a mark comes first");
        assert_eq!(read(b"\xef\xbb\xbf{}", Some("application/json")), "{}");
        assert_eq!(read("é".as_bytes(), Some("text/html; charset=utf-8")), "the same");
        assert_eq!(read("é".as_bytes(), None), "the same");
        assert_eq!(
            read(b"\xe9", Some("text/plain; charset=klingon")),
            CharsetError::Unknown("klingon".to_owned()).to_string()
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(body in prop::collection::vec(any::<u8>(), 0..200), label in "[ -~]{0,20}") {
            let _ = decoded(&body, Some(&format!("text/html; charset={label}")));
            let _ = decoded(&[b"<meta charset=", body.as_slice()].concat(), None);
            let _ = decoded(&[b"<?xml encoding=", body.as_slice()].concat(), None);
        }
    }
}
