//! `traceparent` on a share of calls (W3C Trace Context, <https://www.w3.org/TR/trace-context/>): the flag `--trace`, which calls have one, and its
//! value.
//!
//! Which calls are traced, and by which ids, follows from their numbers and a random key that each process makes: so nothing is kept for a call, and
//! the same call sent again has the same ids. A run without the flag asks for none of it.

use std::fmt;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::Write as _;

use brunt_plan::units::parse_ratio;

use crate::OptionsError;
use crate::flags::{Flag, FlagValues, ValueKind};

/// The name of the header field.
pub const TRACEPARENT: &str = "traceparent";

/// The flag `--trace`.
pub const TRACE: Flag = Flag::new(
    "trace",
    ValueKind::Text("SHARE"),
    "Send a traceparent (W3C Trace Context), sampled, on this share of calls: 1% or 0.01. Its id stands with failed and slow calls in the report",
)
.checked(checked);

fn checked(text: &str) -> Result<(), String> {
    share(text).map(|_| ())
}

/// Reads the flag's value: a share of calls above 0 and up to 1.
///
/// # Errors
/// When it is no such share.
pub fn share(text: &str) -> Result<f64, String> {
    let expected = || format!("expected a share of calls above 0 and up to 1, such as 1% or 0.01, got '{text}'");
    parse_ratio(text).ok().filter(|share| *share > 0.0 && *share <= 1.0).ok_or_else(expected)
}

/// The share of calls that flags ask for, if they do.
///
/// # Errors
/// When it is no share.
pub fn given(values: &FlagValues) -> Result<Option<f64>, OptionsError> {
    let given =
        values.text(TRACE.name).map(|text| share(text).map_err(|error| OptionsError(format!("--trace: {error}"))));
    given.transpose()
}

/// The ids of a traced call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceIds {
    trace: u128,
    span: u64,
}

impl TraceIds {
    /// The id of the trace: 32 hexadecimal digits.
    pub fn trace_id(&self) -> String {
        format!("{:032x}", self.trace)
    }

    /// Writes an HTTP/1.1 request into `with`, with a `traceparent` in front of its other header fields. Its head may still lack its
    /// end. False, with nothing written, where the request has a `traceparent` already.
    ///
    /// ```
    /// use brunt_protocol::traced::Tracing;
    ///
    /// let ids = Tracing::of_share(1.0).ids(0).unwrap();
    /// let mut with = Vec::new();
    /// assert!(ids.add_to_request(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", &mut with));
    /// assert_eq!(with, format!("GET / HTTP/1.1\r\ntraceparent: {ids}\r\nHost: a\r\n\r\n").as_bytes());
    /// assert!(!ids.add_to_request(&with.clone(), &mut with));
    /// ```
    pub fn add_to_request(&self, request: &[u8], with: &mut Vec<u8>) -> bool {
        // A request may begin with empty lines (RFC 9112, section 2.2), and a line may end without its CR.
        let start = request.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or(request.len());
        let (before, text) = request.split_at(start);
        let line_end = text.iter().position(|byte| *byte == b'\n').map_or(text.len(), |at| at + 1);
        let (line, rest) = text.split_at(line_end);
        let mut fields = rest.split(|byte| *byte == b'\n').take_while(|field| !matches!(field, [] | [b'\r']));
        let is_own = |field: &[u8]| {
            let name = field.get(..TRACEPARENT.len()).unwrap_or_default();
            name.eq_ignore_ascii_case(TRACEPARENT.as_bytes()) && field.get(TRACEPARENT.len()) == Some(&b':')
        };
        if fields.any(is_own) {
            return false;
        }
        with.clear();
        with.extend_from_slice(before);
        with.extend_from_slice(line);
        // Writing to a Vec cannot fail.
        let _ = write!(with, "{TRACEPARENT}: {self}\r\n");
        with.extend_from_slice(rest);
        true
    }
}

/// The value of the header field: version 00, the ids, and that the call is sampled.
impl fmt::Display for TraceIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-01", self.trace, self.span)
    }
}

/// Which calls of a run are traced.
#[derive(Debug, Clone, Copy)]
pub struct Tracing {
    /// A call is traced whose hash is less.
    below: u64,
    key: [u64; 4],
}

impl Tracing {
    /// This share of calls, 0 to 1, by a random key.
    pub fn of_share(share: f64) -> Self {
        // The standard library's hashers have random keys.
        Self::with_key(share, std::array::from_fn(|_| RandomState::new().build_hasher().finish()))
    }

    fn with_key(share: f64, key: [u64; 4]) -> Self {
        // At most the greatest number, which is all but one of 2⁶⁴.
        Self { below: (share.clamp(0.0, 1.0) * 2_f64.powi(64)) as u64, key }
    }

    /// The ids of the call with this number, if it is traced.
    #[inline]
    pub fn ids(&self, call: u64) -> Option<TraceIds> {
        let [which, high, low, span] = self.key;
        let hash = |key: u64| mixed(key ^ mixed(call));
        (hash(which) <= self.below).then(|| TraceIds {
            trace: u128::from(hash(high)) << 64 | u128::from(hash(low).max(1)),
            span: hash(span).max(1),
        })
    }
}

/// A number whose bits depend on all bits of `n` (the finalizer of `SplitMix64`).
const fn mixed(n: u64) -> u64 {
    let n = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_share_of_calls_is_traced_and_each_by_ids_of_its_own() {
        let tracing = Tracing::with_key(0.01, [1, 2, 3, 4]);
        let ids: Vec<_> = (0..100_000).filter_map(|call| tracing.ids(call)).collect();
        // Three standard deviations of a binomial distribution are 94.
        assert!((900..1100).contains(&ids.len()), "{}", ids.len());
        let different: BTreeSet<_> = ids.iter().map(TraceIds::trace_id).collect();
        assert_eq!(different.len(), ids.len());
        assert_eq!(tracing.ids(77), tracing.ids(77));
        assert_eq!((0..1000).filter(|call| Tracing::with_key(1.0, [9; 4]).ids(*call).is_some()).count(), 1000);
    }

    #[test]
    fn the_value_is_that_of_the_specification() {
        let ids = TraceIds { trace: 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736, span: 0x00f0_67aa_0ba9_02b7 };
        assert_eq!(ids.to_string(), "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
        assert_eq!(ids.trace_id(), "4bf92f3577b34da6a3ce929d0e0e4736");
        let (one, other) = (Tracing::of_share(1.0), Tracing::of_share(1.0));
        assert_ne!(one.ids(0), other.ids(0), "each process has a key of its own");
    }

    #[test]
    fn requests_get_the_field_behind_their_first_line() {
        let ids = TraceIds { trace: 1, span: 2 };
        let field = format!("traceparent: {ids}\r\n");
        let mut with = Vec::new();
        for (request, expected) in [
            ("GET / HTTP/1.1\r\n\r\n", format!("GET / HTTP/1.1\r\n{field}\r\n")),
            ("\r\n\r\nGET / HTTP/1.1\r\nA: b\r\n\r\n", format!("\r\n\r\nGET / HTTP/1.1\r\n{field}A: b\r\n\r\n")),
            ("HEAD / HTTP/1.1\nA: b\n\n", format!("HEAD / HTTP/1.1\n{field}A: b\n\n")),
            ("GET / HTTP/1.1\r\nKey: ", format!("GET / HTTP/1.1\r\n{field}Key: ")),
            // A field of another name, and a body that reads like one.
            (
                "POST / HTTP/1.1\r\nTraceparent2: x\r\n\r\ntraceparent: x",
                format!("POST / HTTP/1.1\r\n{field}Traceparent2: x\r\n\r\ntraceparent: x"),
            ),
        ] {
            assert!(ids.add_to_request(request.as_bytes(), &mut with), "{request:?}");
            assert_eq!(with, expected.as_bytes(), "{request:?}");
        }
        for own in ["GET / HTTP/1.1\r\nHost: a\r\nTraceParent: 00-mine\r\n\r\n", "GET / HTTP/1.1\ntraceparent:x\n\n"] {
            assert!(!ids.add_to_request(own.as_bytes(), &mut with), "{own:?}");
        }
    }

    #[test]
    fn what_is_no_share_is_refused() {
        for text in ["0", "0%", "101%", "1.5", "-1%", "all", ""] {
            assert!(share(text).is_err(), "{text}");
        }
        assert_eq!(share("1%"), Ok(0.01));
    }
}
