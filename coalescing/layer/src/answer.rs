//! Whether an answer may be shared with other requests (RFC 9111, sections 3 and 4.1; RFC 9110, section 15).

use std::time::{Duration, SystemTime};

use http::header::{
    AGE, CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, DATE, EXPIRES, PRAGMA, SET_COOKIE, TRANSFER_ENCODING,
    UPGRADE, VARY,
};
use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Response, StatusCode};

/// With whom an answer may be shared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// With all that wait for it.
    Freely,
    /// With all that wait for it and have the leader's values of these headers.
    With(Vec<HeaderName>),
    /// With nobody: its headers forbid it, or it is too long. So will those of the next answers, most likely.
    No,
    /// With nobody, as its status may be due to the leader's request alone. Another request may get an answer that can
    /// be shared. It is likely that the same request would get this one again.
    NotThis,
    /// With nobody, as it is a failure, which the next request may be spared.
    Failure,
    /// With all that wait for it, and with none that come later: see [`SharedFailure`].
    All,
}

/// An extension of a response: a failure that all waiting requests share, whatever its status. For a service that knows
/// that another call would fail likewise, as a proxy whose upstream has not answered in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedFailure;

/// An extension of a response: the extensions of its followers' responses. A follower gets none otherwise, as extensions may be
/// about the leader's connection.
///
/// ```
/// use brunt_coalesce::FollowerExtensions;
/// use http::{Extensions, Response};
///
/// #[derive(Clone)]
/// struct Shard(u32);
///
/// let mut shared = Extensions::new();
/// shared.insert(Shard(7));
/// let answer = Response::builder().extension(Shard(7)).extension(FollowerExtensions(shared)).body(());
/// # assert!(answer.is_ok());
/// ```
#[derive(Debug, Clone, Default)]
pub struct FollowerExtensions(pub Extensions);

/// The configured rules for answers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Judge {
    /// Bytes that a flight may hold: longer answers are not shared.
    pub(crate) longest: u64,
    /// Whether the key tells ranges apart, so that partial answers may be shared.
    pub(crate) ranges: bool,
    /// Whether to share answers with `Cache-Control: no-cache`.
    pub(crate) no_cache: bool,
}

impl Judge {
    /// With whom an answer with this head, and a body of at least this many bytes, may be shared.
    #[inline]
    pub(crate) fn sharing<B>(&self, head: &Response<B>, least_bytes: u64) -> Sharing {
        let status = head.status();
        if !self.status_is_shared(status) {
            return match status {
                _ if head.extensions().get::<SharedFailure>().is_some() => Sharing::All,
                StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => Sharing::Failure,
                _ if status.is_redirection() || status.is_client_error() => Sharing::NotThis,
                _ => Sharing::Failure,
            };
        }
        if least_bytes > self.longest {
            return Sharing::No;
        }
        if head.headers().is_empty() {
            return Sharing::Freely;
        }
        self.headers_are_shared(head.headers())
    }

    /// One pass over the few fields takes less time than looking up each relevant name.
    fn headers_are_shared(&self, headers: &HeaderMap) -> Sharing {
        let mut varies = false;
        for (name, value) in headers {
            let is_shared = match *name {
                SET_COOKIE => false,
                CONTENT_TYPE => !is_endless(value),
                CACHE_CONTROL | PRAGMA => !self.is_kept_private(value),
                CONTENT_LENGTH | DATE => true,
                VARY => {
                    varies = true;
                    true
                }
                _ => match name.as_str() {
                    "set-cookie2" => false,
                    // Directives for some caches (RFC 9213) are obeyed by all who might share an answer.
                    name if name.ends_with("cache-control") || name == "surrogate-control" => {
                        !self.is_kept_private(value)
                    }
                    _ => true,
                },
            };
            if !is_shared {
                return Sharing::No;
            }
        }
        if varies { nominated(headers) } else { Sharing::Freely }
    }

    /// Statuses that are cacheable by default (RFC 9110, section 15.1), without those that a client can cause by a part
    /// of its request that is not in the key: 405 by asking for another method in a header, 414 and 501 by other
    /// headers. 304 is included, as its condition is in the key.
    #[inline]
    fn status_is_shared(&self, status: StatusCode) -> bool {
        match status {
            StatusCode::PARTIAL_CONTENT => self.ranges,
            StatusCode::OK
            | StatusCode::NON_AUTHORITATIVE_INFORMATION
            | StatusCode::NO_CONTENT
            | StatusCode::MULTIPLE_CHOICES
            | StatusCode::MOVED_PERMANENTLY
            | StatusCode::NOT_MODIFIED
            | StatusCode::PERMANENT_REDIRECT
            | StatusCode::NOT_FOUND
            | StatusCode::GONE => true,
            _ => false,
        }
    }

    /// Whether `Cache-Control` forbids sharing an answer (RFC 9111, section 5.2.2). An unreadable value does.
    fn is_kept_private(&self, cache_control: &HeaderValue) -> bool {
        let Ok(value) = cache_control.to_str() else { return true };
        // A comma in a quoted string splits it, which can only prevent sharing.
        value.split(',').any(|directive| {
            let name = directive.split_once('=').map_or(directive, |(name, _)| name).trim();
            name.eq_ignore_ascii_case("private")
                || name.eq_ignore_ascii_case("no-store")
                || (!self.no_cache && name.eq_ignore_ascii_case("no-cache"))
        })
    }
}

/// How long an answer is fresh (RFC 9111, section 4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Freshness {
    /// `None` if the answer does not say.
    pub(crate) lifetime: Option<Duration>,
    /// How old it was when it came, in seconds.
    pub(crate) age: u64,
}

impl Freshness {
    /// Of an answer with this head that has just come.
    pub(crate) fn of(headers: &HeaderMap, now: SystemTime) -> Self {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        // The first of several counts (RFC 9111, section 5.1).
        let said: u64 = text(AGE).and_then(|age| age.split(',').next()?.trim().parse().ok()).unwrap_or(0);
        let date = text(DATE).and_then(|date| httpdate::parse_http_date(date).ok()).unwrap_or(now);
        let lifetime = directive(headers, "s-maxage").or_else(|| directive(headers, "max-age"));
        let lifetime = lifetime.map(Duration::from_secs).or_else(|| {
            let expires = httpdate::parse_http_date(text(EXPIRES)?).unwrap_or(SystemTime::UNIX_EPOCH);
            Some(expires.duration_since(date).unwrap_or_default())
        });
        // RFC 9111, section 4.2.3: the apparent age counts where nobody said an age, or a lesser one.
        let apparent = now.duration_since(date).unwrap_or_default().as_secs();
        Self { lifetime, age: said.max(apparent) }
    }

    /// How long the answer may be held, at most this long.
    pub(crate) fn hold(self, most: Duration) -> Duration {
        self.lifetime.map_or(most, |lifetime| most.min(lifetime.saturating_sub(Duration::from_secs(self.age))))
    }
}

/// The seconds of a directive of `Cache-Control`; 0 if they are unreadable, so that such an answer is stale.
fn directive(headers: &HeaderMap, wanted: &str) -> Option<u64> {
    let values = headers.get_all(CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = values.flat_map(|value| value.split(',')).filter_map(|directive| directive.split_once('='));
    let (_, seconds) = pairs.find(|(name, _)| name.trim().eq_ignore_ascii_case(wanted))?;
    Some(seconds.trim().trim_matches('"').parse().unwrap_or(0))
}

/// Whether a body of this type goes on for as long as somebody reads it. A type that only begins as one of these is taken
/// for it, which costs a call.
fn is_endless(content_type: &HeaderValue) -> bool {
    let kind = content_type.as_bytes().trim_ascii_start();
    let is = |(one, other): (&u8, &u8)| one.eq_ignore_ascii_case(other);
    // From their ends, where types differ most often.
    let begins = |endless: &[u8]| {
        kind.get(..endless.len()).is_some_and(|kind| kind.iter().rev().zip(endless.iter().rev()).all(is))
    };
    begins(b"text/event-stream") || begins(b"multipart/x-mixed-replace")
}

/// With whom an answer is shared by its `Vary`: with nobody if that is `*` or unreadable.
#[cold]
fn nominated(headers: &HeaderMap) -> Sharing {
    let mut names = Vec::new();
    for name in headers.get_all(VARY).iter().flat_map(|vary| vary.as_bytes().split(|&byte| byte == b',')) {
        match (name.trim_ascii(), HeaderName::from_bytes(name.trim_ascii())) {
            (b"", _) => {}
            (b"*", _) | (_, Err(_)) => return Sharing::No,
            (_, Ok(name)) => names.push(name),
        }
    }
    if names.is_empty() { Sharing::Freely } else { Sharing::With(names) }
}

/// A follower's headers: those of the answer, without the fields about the leader's connection (RFC 9110, section
/// 7.6.1).
pub(crate) fn shared_headers(headers: &HeaderMap) -> HeaderMap {
    let mut shared = headers.clone();
    for value in headers.get_all(CONNECTION) {
        for name in value.as_bytes().split(|&byte| byte == b',') {
            if let Ok(name) = HeaderName::from_bytes(name.trim_ascii()) {
                shared.remove(name);
            }
        }
    }
    for name in [CONNECTION, TRANSFER_ENCODING, UPGRADE] {
        shared.remove(name);
    }
    for name in ["keep-alive", "proxy-connection", "te"] {
        shared.remove(name);
    }
    shared
}

#[cfg(test)]
mod tests {
    use super::*;

    const JUDGE: Judge = Judge { longest: 100, ranges: false, no_cache: false };

    fn head(status: u16, headers: &[(&str, &str)]) -> Response<()> {
        let mut response = Response::builder().status(status);
        for (name, value) in headers {
            response = response.header(*name, *value);
        }
        response.body(()).unwrap()
    }

    fn is_shared(headers: &[(&str, &str)]) -> bool {
        JUDGE.sharing(&head(200, headers), 0) != Sharing::No
    }

    #[test]
    fn what_is_private_is_not_shared_however_it_is_written() {
        for value in
            ["private", "Private", "max-age=1, PRIVATE", "private=\"x-a, x-b\"", "no-store", "a=\"x\",no-store"]
        {
            assert!(!is_shared(&[("cache-control", value)]), "{value}");
        }
        assert!(!is_shared(&[("cache-control", "max-age=1"), ("cache-control", "no-store")]));
        assert!(!is_shared(&[("cache-control", "no-cache")]));
        for name in ["cdn-cache-control", "cloudflare-cdn-cache-control", "surrogate-control", "x-cache-control"] {
            assert!(!is_shared(&[("cache-control", "max-age=1"), (name, "no-store")]), "{name}");
            assert!(is_shared(&[(name, "max-age=1")]), "{name}");
        }
        assert!(!is_shared(&[("pragma", "no-cache")]) && is_shared(&[("pragma", "x")]));
        assert!(!is_shared(&[("set-cookie2", "a=1")]));
        for value in ["public", "max-age=0", "must-revalidate", "", "x-private", "no-storeroom"] {
            assert!(is_shared(&[("cache-control", value)]), "{value}");
        }
    }

    #[test]
    fn no_cache_is_shared_if_asked_for() {
        let judge = Judge { no_cache: true, ..JUDGE };
        assert_ne!(judge.sharing(&head(200, &[("cache-control", "no-cache")]), 0), Sharing::No);
        assert_eq!(judge.sharing(&head(200, &[("cache-control", "no-cache, private")]), 0), Sharing::No);
    }

    #[test]
    fn vary_is_read_over_all_its_fields() {
        let vary = head(200, &[("vary", "Accept-Language,  X-One"), ("vary", "x-two,")]);
        let names = ["accept-language", "x-one", "x-two"].map(|name| name.parse().unwrap());
        assert_eq!(JUDGE.sharing(&vary, 0), Sharing::With(names.to_vec()));
        assert!(!is_shared(&[("vary", "x-one, *")]));
        assert!(!is_shared(&[("vary", "not a name")]));
    }

    #[test]
    fn only_statuses_that_are_cacheable_by_default_are_shared() {
        let shared: Vec<_> =
            (100..600).filter(|status| JUDGE.sharing(&head(*status, &[]), 0) == Sharing::Freely).collect();
        assert_eq!(shared, [200, 203, 204, 300, 301, 304, 308, 404, 410]);
        let ranges = Judge { ranges: true, ..JUDGE };
        assert_eq!(ranges.sharing(&head(206, &[]), 0), Sharing::Freely);
    }

    #[test]
    fn freshness_is_what_the_answer_says() {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        let now = httpdate::parse_http_date(date).unwrap();
        let fresh = |headers: &[(&str, &str)]| Freshness::of(head(200, headers).headers(), now);
        let of = |lifetime: Option<u64>, age| Freshness { lifetime: lifetime.map(Duration::from_secs), age };
        assert_eq!(fresh(&[]), of(None, 0));
        assert_eq!(fresh(&[("cache-control", "public, Max-Age=\"60\""), ("age", "7")]), of(Some(60), 7));
        assert_eq!(fresh(&[("cache-control", "max-age=60, s-maxage=5")]), of(Some(5), 0));
        assert_eq!(fresh(&[("cache-control", "max-age=soon")]), of(Some(0), 0));
        assert_eq!(fresh(&[("expires", "Sun, 06 Nov 1994 08:50:37 GMT"), ("date", date)]), of(Some(60), 0));
        assert_eq!(fresh(&[("expires", date), ("date", "Sun, 06 Nov 1994 08:50:37 GMT")]), of(Some(0), 0));
        assert_eq!(fresh(&[("expires", "0"), ("date", date)]), of(Some(0), 0));
        assert_eq!(fresh(&[("expires", "0"), ("cache-control", "max-age=1")]), of(Some(1), 0));
        assert_eq!(fresh(&[("expires", "Sun, 06 Nov 1994 08:50:07 GMT")]), of(Some(30), 0));
        let early = ("date", "Sun, 06 Nov 1994 08:49:07 GMT");
        assert_eq!(fresh(&[early, ("cache-control", "max-age=60")]), of(Some(60), 30));
        assert_eq!(fresh(&[early, ("age", "7")]), of(None, 30));
        assert_eq!(fresh(&[early, ("age", "70, 7")]), of(None, 70));
        assert_eq!(of(Some(60), 7).hold(Duration::from_secs(100)), Duration::from_secs(53));
        assert_eq!(of(None, 7).hold(Duration::from_secs(100)), Duration::from_secs(100));
        assert_eq!(of(Some(5), 7).hold(Duration::from_secs(100)), Duration::ZERO);
    }

    #[test]
    fn endless_and_long_bodies_are_not_shared() {
        for kind in ["text/event-stream", "Text/Event-Stream; charset=utf-8", "multipart/x-mixed-replace;boundary=x"] {
            assert!(!is_shared(&[("content-type", kind)]), "{kind}");
        }
        assert_ne!(JUDGE.sharing(&head(200, &[]), 100), Sharing::No);
        assert_eq!(JUDGE.sharing(&head(200, &[]), 101), Sharing::No);
    }

    #[test]
    fn headers_of_the_connection_stay_with_the_leader() {
        let parts = head(
            200,
            &[
                ("connection", "close, X-Hop"),
                ("keep-alive", "timeout=5"),
                ("x-hop", "1"),
                ("x-end", "1"),
                ("trailer", "x-sum"),
                ("transfer-encoding", "chunked"),
            ],
        );
        let mut shared: Vec<_> = shared_headers(parts.headers()).keys().map(ToString::to_string).collect();
        shared.sort();
        assert_eq!(shared, ["trailer", "x-end"]);
    }
}
