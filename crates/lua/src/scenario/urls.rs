//! URLs as browsers read them (the WHATWG's URL standard): for redirects, cookies and the links of pages.

use mlua::{Lua, LuaString, Table};
use url::{Position, Url};

use super::digests::url_decode;

/// A whole URL without its fragment and user, and its parts.
#[derive(Debug, PartialEq, Eq)]
struct Parts {
    whole: String,
    /// Scheme, host and port; the scheme's default port is left out.
    origin: String,
    scheme: String,
    host: String,
    /// The path with its query.
    path: String,
    /// User and password, if the URL has them.
    user: Option<(Vec<u8>, Vec<u8>)>,
}

/// The parts of a URL, or of a reference resolved against the whole URL `base`; `None` if the text is not a URL or has
/// no host.
fn parts(text: &[u8], base: Option<&[u8]>) -> Option<Parts> {
    let base = base.map(|base| Url::parse(&text_of(base))).transpose().ok()?;
    let mut url = Url::options().base_url(base.as_ref()).parse(&text_of(text)).ok()?;
    let host = url.host_str().filter(|host| !host.is_empty())?.to_owned();
    let decoded = |text: &str| url_decode(text.as_bytes()).unwrap_or_else(|_| text.as_bytes().to_vec());
    let named = !url.username().is_empty() || url.password().is_some();
    let user = named.then(|| (decoded(url.username()), decoded(url.password().unwrap_or_default())));
    url.set_fragment(None);
    url.set_username("").ok()?;
    url.set_password(None).ok()?;
    Some(Parts {
        origin: url[..Position::AfterPort].to_owned(),
        scheme: url.scheme().to_owned(),
        host,
        path: url[Position::BeforePath..Position::AfterQuery].to_owned(),
        whole: url.into(),
        user,
    })
}

/// Bytes as text. Bytes of servers that do not write UTF-8 are escaped one by one.
fn text_of(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes
            .iter()
            .map(|byte| if byte.is_ascii() { char::from(*byte).to_string() } else { format!("%{byte:02X}") })
            .collect(),
    }
}

/// Adds `url(text, base)`. It returns the whole URL, its origin, scheme, host, path with query, user and password;
/// nothing if the text is not a URL.
pub(super) fn add(lua: &Lua, table: &Table) -> mlua::Result<()> {
    let url = lua.create_function(|lua, (text, base): (LuaString, Option<LuaString>)| {
        let base = base.as_ref().map(LuaString::as_bytes);
        let Some(parts) = parts(&text.as_bytes(), base.as_deref()) else { return Ok(mlua::MultiValue::new()) };
        let mut all = mlua::MultiValue::new();
        for text in [&parts.whole, &parts.origin, &parts.scheme, &parts.host, &parts.path] {
            all.push_back(mlua::Value::String(lua.create_string(text)?));
        }
        if let Some((user, password)) = &parts.user {
            all.push_back(mlua::Value::String(lua.create_string(user)?));
            all.push_back(mlua::Value::String(lua.create_string(password)?));
        }
        Ok(all)
    })?;
    table.raw_set("url", url)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn resolved(base: &str, reference: &str) -> String {
        parts(reference.as_bytes(), Some(base.as_bytes())).map_or_else(|| "nothing".to_owned(), |parts| parts.whole)
    }

    #[test]
    fn references_are_resolved_as_browsers_do() {
        let base = "http://a.test:8080/b/c/d?q#f";
        for (reference, expected) in [
            ("g", "http://a.test:8080/b/c/g"),
            ("./g?y", "http://a.test:8080/b/c/g?y"),
            ("../../../g", "http://a.test:8080/g"),
            ("?y", "http://a.test:8080/b/c/d?y"),
            ("", "http://a.test:8080/b/c/d?q"),
            ("#s", "http://a.test:8080/b/c/d?q"),
            ("//other.test/x", "http://other.test/x"),
            // Empty segments of a path count.
            ("/x//y", "http://a.test:8080/x//y"),
            ("http://a.test:80//x", "http://a.test//x"),
            // The part before `@` is not the host.
            ("http://a.test@other.test/", "http://other.test/"),
            ("http://user:p%40@a.test:8080/x", "http://a.test:8080/x"),
            ("/a b", "http://a.test:8080/a%20b"),
            ("\\\\other.test\\x", "http://other.test/x"),
            ("HTTPS://A.test/", "https://a.test/"),
            ("http://[::1/", "nothing"),
            ("mailto:x", "nothing"),
        ] {
            assert_eq!(resolved(base, reference), expected, "{reference}");
        }
    }

    #[test]
    fn a_url_has_its_parts() {
        let url = parts(b"http://ann:p%40ss@Example.test:80/x?y#z", None).unwrap();
        let expected = Parts {
            whole: "http://example.test/x?y".to_owned(),
            origin: "http://example.test".to_owned(),
            scheme: "http".to_owned(),
            host: "example.test".to_owned(),
            path: "/x?y".to_owned(),
            user: Some((b"ann".to_vec(), b"p@ss".to_vec())),
        };
        assert_eq!(url, expected);
        assert_eq!(parts(b"http://a.test/\xe9", None).unwrap().path, "/%E9", "Latin-1");
        assert_eq!(parts("http://a.test/é".as_bytes(), None).unwrap().path, "/%C3%A9");
        assert_eq!(parts(b"/x", None), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(text in prop::collection::vec(any::<u8>(), 0..80)) {
            for base in [None, Some(b"http://a.test/b?c".as_slice())] {
                if let Some(found) = parts(&text, base) {
                    prop_assert!(found.whole.starts_with(&found.origin));
                    prop_assert!(found.whole.is_ascii() && !found.whole.contains([' ', '#', '\n']));
                }
            }
        }
    }
}
