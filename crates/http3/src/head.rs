//! The meaning of a request's head (RFC 9114, section 4.3.1). That of an answer's is HTTP/2's: `brunt_http2::head`.

use brunt_http2::Fields;
use brunt_http2::head::Meaning;

/// The meaning of `fields` from a client: those of a request, or of its trailers.
pub(crate) fn of_request(fields: &Fields, is_trailers: bool) -> Meaning {
    let mut meaning = Meaning::default();
    let mut pseudo = Pseudo::default();
    let outcome = fields.iter().try_for_each(|(name, value)| {
        if name.first() != Some(&b':') {
            pseudo.is_over = true;
            return meaning.regular(name, value);
        }
        if is_trailers {
            return Err("a pseudo-header field in trailers");
        }
        Meaning::check_value(value)?;
        pseudo.take(name, value)
    });
    let complete = if is_trailers { Ok(()) } else { pseudo.check(fields) };
    meaning.malformed = outcome.and(complete).err();
    meaning
}

/// The pseudo-header fields of requests.
const PSEUDO: [&[u8]; 4] = [b":method", b":scheme", b":path", b":authority"];

/// The pseudo-header fields that have come.
#[derive(Debug, Default)]
struct Pseudo {
    /// Which of [`PSEUDO`].
    seen: [bool; PSEUDO.len()],
    is_connect: bool,
    is_over: bool,
}

impl Pseudo {
    fn take(&mut self, name: &[u8], value: &[u8]) -> Result<(), &'static str> {
        let place = PSEUDO.iter().position(|known| *known == name);
        let seen = place.and_then(|place| self.seen.get_mut(place));
        let seen = seen.ok_or("a pseudo-header field that requests have not")?;
        if std::mem::replace(seen, true) || self.is_over {
            return Err("a pseudo-header field twice, or behind other fields");
        }
        if value.is_empty() {
            return Err("an empty pseudo-header field");
        }
        self.is_connect |= name == b":method" && value == b"CONNECT";
        Ok(())
    }

    fn check(&self, fields: &Fields) -> Result<(), &'static str> {
        let [method, scheme, path, authority] = self.seen;
        let is_whole = if self.is_connect {
            authority && !scheme && !path
        } else {
            method && scheme && path && (authority || fields.get("host").is_some())
        };
        if is_whole { Ok(()) } else { Err("a request without its method, scheme, path and authority") }
    }
}
