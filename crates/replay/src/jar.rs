//! The cookies of a session (RFC 6265) for one host.

use cookie::Cookie;
use cookie::time::OffsetDateTime;

/// The most cookies of a session; browsers keep about as many for a host.
const MOST_COOKIES: usize = 50;
/// The most bytes of one cookie (RFC 6265 §6.1).
const MOST_COOKIE_BYTES: usize = 4096;

/// A session's cookies.
#[derive(Debug, Default)]
pub struct Jar(Vec<Kept>);

#[derive(Debug)]
struct Kept {
    name: String,
    value: String,
    path: String,
}

impl Jar {
    /// Takes the cookies that the head of an answer sets.
    pub fn take(&mut self, head: &[u8], now: impl Fn() -> OffsetDateTime) {
        for line in head.split(|byte| *byte == b'\n') {
            let Some(place) = line.iter().position(|byte| *byte == b':') else { continue };
            let (name, value) = line.split_at(place);
            if name.len() == 10 && name.eq_ignore_ascii_case(b"set-cookie") && value.len() <= MOST_COOKIE_BYTES {
                self.set(&String::from_utf8_lossy(value.get(1..).unwrap_or_default()), &now);
            }
        }
    }

    fn set(&mut self, field: &str, now: &impl Fn() -> OffsetDateTime) {
        let Ok(said) = Cookie::parse(field.trim()) else { return };
        // Max-Age takes precedence over Expires (§4.1.2.2).
        let is_over = match said.max_age() {
            Some(age) => age.whole_nanoseconds() <= 0,
            None => said.expires_datetime().is_some_and(|expires| expires <= now()),
        };
        self.0.retain(|kept| kept.name != said.name());
        if !is_over && !said.name().is_empty() && self.0.len() < MOST_COOKIES {
            let path = said.path().filter(|path| path.starts_with('/')).unwrap_or("/").to_owned();
            self.0.push(Kept { name: said.name().to_owned(), value: said.value().to_owned(), path });
        }
    }

    /// Writes the Cookie field of a request to `path` that has these cookies in the log, if there are any to send.
    /// Cookies received by the session replace those of the log.
    pub fn write(&self, logged: &[(String, String)], path: &str, out: &mut Vec<u8>) {
        let own = self.0.iter().filter(|kept| is_within(path, &kept.path));
        let is_kept = |name: &str| self.0.iter().any(|kept| kept.name == name);
        let logged = logged.iter().filter(|(name, _)| !is_kept(name)).map(|(name, value)| (name, value));
        let mut is_first = true;
        for (name, value) in own.map(|kept| (&kept.name, &kept.value)).chain(logged) {
            out.extend_from_slice(if is_first { b"Cookie: " } else { b"; " });
            is_first = false;
            for part in [name.as_str(), "=", value] {
                out.extend_from_slice(part.as_bytes());
            }
        }
        if !is_first {
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// Whether a path is within the path of a cookie (RFC 6265 §5.1.4).
fn is_within(path: &str, of_cookie: &str) -> bool {
    path.strip_prefix(of_cookie)
        .is_some_and(|rest| rest.is_empty() || of_cookie.ends_with('/') || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_are_kept_forgotten_and_sent_where_they_belong() {
        let now = || OffsetDateTime::from_unix_timestamp(1_767_225_600).unwrap();
        let mut jar = Jar::default();
        let head = b"HTTP/1.1 200 OK\r\nset-cookie: a=1; Path=/shop\r\nSet-Cookie: sid=new\r\nX: y\r\n\r\n";
        jar.take(head, now);
        let written = |jar: &Jar, path: &str| {
            let mut out = Vec::new();
            jar.write(&[("sid".to_owned(), "old".to_owned()), ("b".to_owned(), "2".to_owned())], path, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(written(&jar, "/shop/x"), "Cookie: a=1; sid=new; b=2\r\n");
        assert_eq!(written(&jar, "/shopping"), "Cookie: sid=new; b=2\r\n");
        jar.take(b"Set-Cookie: sid=; Max-Age=0\r\nSet-Cookie: a=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT\r\n", now);
        assert_eq!(written(&jar, "/"), "Cookie: sid=old; b=2\r\n");
        let mut out = Vec::new();
        Jar::default().write(&[], "/", &mut out);
        assert!(out.is_empty());
    }
}
