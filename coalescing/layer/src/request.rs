//! Which requests may be coalesced, and how they are told apart.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::MAX_FORWARDS;
use http::request::Parts;
use http::uri::{Authority, PathAndQuery};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};

use crate::fields::{self, Common, IgnoredCookies, Role, has_credentials, has_overridden_method};
use crate::key::{Key, KeyWriter, Target};

pub(crate) use crate::fields::MARK;

/// Says whether a request may be coalesced, and gives a part of its key, or all of it.
pub(crate) type KeyFunction = Arc<dyn Fn(&Parts) -> Option<Bytes> + Send + Sync>;

/// An extension of a request: the longest wait for another request's headers, in place of the layer's setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitAtMost(pub Duration);

thread_local! {
    /// Whether the last request that could not be coalesced had credentials, as most then have. Their names are looked for first.
    static EXPECTS_CREDENTIALS: Cell<bool> = const { Cell::new(false) };
}

/// What was read of a request's head so far.
struct HeadReader<'a> {
    writer: KeyWriter,
    host: Option<&'a HeaderValue>,
    asks: bool,
    max_age: Option<u64>,
}

/// Which requests may be coalesced.
#[derive(Clone, Default)]
pub(crate) struct Eligible {
    /// Headers in the key. A header that would exclude a request from coalescing does not if it is here.
    pub(crate) key_headers: Vec<HeaderName>,
    /// Headers that are taken for harmless.
    pub(crate) ignored_headers: Vec<HeaderName>,
    pub(crate) ignored_cookies: IgnoredCookies,
    pub(crate) key_function: Option<KeyFunction>,
    /// Whether the key function decides alone, and no header is part of the key.
    pub(crate) only_key_function: bool,
    pub(crate) all_safe_methods: bool,
}

/// What the head of a request decides.
pub(crate) enum RequestClass {
    /// It may be coalesced.
    May(Coalescible),
    /// It goes to the service by itself.
    Passes,
    /// It may change its resource, and goes to the service by itself.
    Writes,
}

impl RequestClass {
    /// The class of a request with a safe method that may not be coalesced.
    fn without_key(is_overridden: bool) -> Self {
        if is_overridden { Self::Writes } else { Self::Passes }
    }
}

/// A request that may be coalesced.
pub(crate) struct Coalescible {
    pub(crate) key: Key,
    /// Whether the client asked for [`MARK`].
    pub(crate) asks: bool,
}

impl Eligible {
    /// Whether a request may be coalesced, and its key; `epoch` is that of its URI, whose hash is `place`.
    #[inline]
    pub(crate) fn look_at<B>(
        &self,
        request: &mut Request<B>,
        has_body: bool,
        (epoch, place): (u64, u64),
    ) -> RequestClass {
        if !is_safe(request.method()) {
            return RequestClass::Writes;
        }
        if EXPECTS_CREDENTIALS.get() && self.is_usual() {
            if let Some(is_overridden) = has_credentials(request.headers()) {
                return RequestClass::without_key(is_overridden);
            }
            EXPECTS_CREDENTIALS.set(false);
        }
        self.find_safe(request, has_body, (epoch, place))
            .map_or_else(|| RequestClass::without_key(has_overridden_method(request.headers())), RequestClass::May)
    }

    fn find_safe<B>(&self, request: &mut Request<B>, has_body: bool, at: (u64, u64)) -> Option<Coalescible> {
        let number = self.number_of(request.method()).filter(|_| !has_body)?;
        let own = match &self.key_function {
            None => None,
            Some(function) => Some(own_key(function, request)?),
        };
        self.find((request.method(), number), request.uri(), request.headers(), own.as_deref(), at)
    }

    fn find(
        &self,
        (method, number): (&Method, u32),
        uri: &Uri,
        headers: &HeaderMap,
        own: Option<&[u8]>,
        (epoch, place): (u64, u64),
    ) -> Option<Coalescible> {
        let mut head = HeadReader { writer: KeyWriter::new(), host: None, asks: false, max_age: None };
        let read = if self.is_usual() {
            self.read_usual(&mut head, method, headers)
        } else {
            headers.iter().try_for_each(|(name, value)| self.read(&mut head, method, Common::of(name), name, value))
        };
        if read.is_none() {
            head.writer.discard();
            EXPECTS_CREDENTIALS.set(has_credentials(headers).is_some());
            return None;
        }
        let HeadReader { writer, host, asks, max_age } = head;
        let target = Target {
            method: number,
            scheme: uri.scheme_str(),
            authority: uri.authority().map(Authority::as_str),
            host,
            path_and_query: uri.path_and_query().map(PathAndQuery::as_str),
            own,
            epoch,
            place,
        };
        let key = writer.finish(target, max_age)?;
        Some(Coalescible { key, asks })
    }

    /// Reads all fields where no setting changes what they mean. The short way is for what browsers send.
    #[inline]
    fn read_usual<'a>(&self, head: &mut HeadReader<'a>, method: &Method, headers: &'a HeaderMap) -> Option<()> {
        for (name, value) in headers {
            let common = Common::of(name);
            match common {
                Some(common) if common.usual == Role::Key => head.writer.common(common, value),
                Some(common) if common.usual == Role::Harmless => head.writer.other_common(common, value),
                Some(Common { usual: Role::Host, .. }) if head.host.is_none() => head.host = Some(value),
                // As browsers and libraries write it.
                Some(common) if common.usual == Role::Connection && value.as_bytes() == b"keep-alive" => {
                    head.writer.common(common, value);
                }
                _ => self.read(head, method, common, name, value)?,
            }
        }
        Some(())
    }

    /// Reads a field; `None` if it excludes the request.
    #[inline(never)]
    fn read<'a>(
        &self,
        head: &mut HeadReader<'a>,
        method: &Method,
        common: Option<Common>,
        name: &HeaderName,
        value: &'a HeaderValue,
    ) -> Option<()> {
        let HeadReader { writer, host, asks, max_age } = head;
        match self.role(name, fields::role_of(common, name, value), value) {
            Role::Key | Role::Connection => writer.header(common, name, value),
            // For the other safe methods it says who answers (RFC 9110, section 7.6.2).
            Role::Harmless if *name == MAX_FORWARDS && !matches!(*method, Method::GET | Method::HEAD) => {
                writer.header(common, name, value);
            }
            Role::Harmless => writer.other(common, name, value),
            Role::Identity | Role::Bars | Role::OverridesMethod => return None,
            // Different servers choose a different one of two hosts.
            Role::Host if host.is_some() => return None,
            Role::Host => *host = Some(value),
            Role::Mark => *asks = true,
            Role::Addresses => {
                writer.derived(common, name, |key| fields::write_classes(value, key));
                writer.other(common, name, value);
            }
            Role::Forwarded => {
                writer.derived(common, name, |key| fields::write_forwarded(value, key));
                writer.other(common, name, value);
            }
            Role::Freshness => {
                *max_age = (*max_age).into_iter().chain(fields::max_age(value)).min();
                writer.other(common, name, value);
            }
        }
        Some(())
    }

    /// What stands for a method in a key. Unsafe methods (RFC 9110, section 9.2.1) change something, so each of them must
    /// reach the service: they have no number, and no setting coalesces them.
    fn number_of(&self, method: &Method) -> Option<u32> {
        match *method {
            Method::GET => Some(0),
            Method::HEAD => Some(1),
            Method::OPTIONS if self.all_safe_methods => Some(2),
            Method::TRACE if self.all_safe_methods => Some(3),
            _ => None,
        }
    }

    /// Whether no setting changes what a field means.
    fn is_usual(&self) -> bool {
        self.key_headers.is_empty()
            && self.ignored_headers.is_empty()
            && self.key_function.is_none()
            && self.ignored_cookies.0.is_empty()
    }

    /// A field's role under the settings.
    #[inline]
    fn role(&self, name: &HeaderName, usual: Role, value: &HeaderValue) -> Role {
        if !self.key_headers.is_empty() && self.key_headers.contains(name) {
            return Role::Key;
        }
        if !self.ignored_headers.is_empty() && self.ignored_headers.contains(name) {
            return Role::Harmless;
        }
        match usual {
            // A key function identifies the client.
            Role::Identity if self.key_function.is_some() => Role::Harmless,
            Role::Identity if *name == http::header::COOKIE && self.ignored_cookies.has_all_of(value) => Role::Harmless,
            Role::Key | Role::Addresses | Role::Forwarded if self.only_key_function => Role::Harmless,
            usual => usual,
        }
    }
}

/// The result of the key function for a request, which is lent its head.
fn own_key<B>(function: &KeyFunction, request: &mut Request<B>) -> Option<Bytes> {
    let (mut parts, ()) = Request::new(()).into_parts();
    let swap = |request: &mut Request<B>, parts: &mut Parts| {
        std::mem::swap(request.method_mut(), &mut parts.method);
        std::mem::swap(request.uri_mut(), &mut parts.uri);
        std::mem::swap(request.headers_mut(), &mut parts.headers);
        std::mem::swap(request.extensions_mut(), &mut parts.extensions);
    };
    parts.version = request.version();
    swap(request, &mut parts);
    let own = function(&parts);
    swap(request, &mut parts);
    own
}

/// Whether a method is safe (RFC 9110, section 9.2.1). Unknown methods are not.
fn is_safe(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS | Method::TRACE)
}

#[cfg(test)]
mod tests {
    use http::header::COOKIE;

    use super::*;

    fn find(eligible: &Eligible, method: &str, uri: &str, headers: &[(&str, &str)]) -> Option<Key> {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        match eligible.look_at(&mut request.body(()).unwrap(), false, (0, 0)) {
            RequestClass::May(found) => Some(found.key),
            RequestClass::Passes | RequestClass::Writes => None,
        }
    }

    fn get(headers: &[(&str, &str)]) -> Option<Key> {
        find(&Eligible::default(), "GET", "/", headers)
    }

    #[test]
    fn everything_that_makes_a_request_another_is_in_its_key() {
        let eligible = Eligible::default();
        let variants = [
            find(&eligible, "GET", "/", &[("host", "a")]),
            find(&eligible, "HEAD", "/", &[("host", "a")]),
            find(&eligible, "GET", "/", &[("host", "b")]),
            find(&eligible, "GET", "/", &[]),
            find(&eligible, "GET", "/x", &[("host", "a")]),
            find(&eligible, "GET", "/?", &[("host", "a")]),
            find(&eligible, "GET", "/?a=1", &[("host", "a")]),
            find(&eligible, "GET", "/?a=2", &[("host", "a")]),
            find(&eligible, "GET", "http://a/", &[("host", "a")]),
            find(&eligible, "GET", "https://a/", &[("host", "a")]),
            find(&eligible, "GET", "http://a:81/", &[("host", "a")]),
            find(&eligible, "GET", "/", &[("host", "a"), ("accept", "text/html")]),
            find(&eligible, "GET", "/", &[("host", "a"), ("accept-encoding", "gzip")]),
            find(&eligible, "GET", "/", &[("host", "a"), ("accept-language", "de")]),
            find(&eligible, "GET", "/", &[("host", "a"), ("origin", "https://b")]),
            find(&eligible, "GET", "/", &[("host", "a"), ("if-none-match", "\"1\"")]),
            find(&eligible, "GET", "/", &[("host", "a"), ("if-none-match", "\"2\"")]),
            find(&eligible, "GET", "/", &[("host", "a"), ("x-zqw", "")]),
            find(&eligible, "GET", "/", &[("host", "a"), ("x-zqw", "1"), ("x-zqw", "2")]),
            find(&eligible, "GET", "/", &[("host", "a"), ("x-zqw", "2"), ("x-zqw", "1")]),
            find(&eligible, "GET", "/", &[("host", "a"), ("x-zqw", "1, 2")]),
            find(&eligible, "GET", "/", &[("host", "a"), ("x-zqw1", "2")]),
            find(&eligible, "GET", "/", &[("host", "a"), ("x-forwarded-for", "10.0.0.1")]),
            find(&eligible, "GET", "/", &[("host", "a"), ("x-forwarded-for", "192.0.2.1")]),
        ];
        for (at, one) in variants.iter().enumerate() {
            assert!(one.is_some(), "{at}");
            assert_eq!(variants.iter().position(|other| other == one), Some(at));
        }
    }

    #[test]
    fn headers_that_say_who_asks_bar() {
        for name in ["authorization", "proxy-authorization", "cookie", "x-api-key", "X-Auth-Token"] {
            assert_eq!(get(&[(name, "x")]), None, "{name}");
        }
        assert_eq!(get(&[("range", "bytes=0-1")]), None);
        assert_eq!(get(&[("content-length", "1")]), None);
        assert_eq!(get(&[("cache-control", "max-age=0, No-Cache")]), None);
        assert_eq!(get(&[("host", "a"), ("host", "b")]), None);
        assert!(get(&[("content-length", "0"), ("cache-control", "max-age=0"), ("user-agent", "x")]).is_some());
    }

    #[test]
    fn a_body_bars_though_no_header_tells_of_it() {
        let mut request = Request::builder().uri("/").body(()).unwrap();
        let class = Eligible::default().look_at(&mut request, true, (0, 0));
        assert!(matches!(class, RequestClass::Passes));
    }

    #[test]
    fn a_header_in_the_key_no_longer_bars() {
        let eligible = Eligible { key_headers: vec![COOKIE], ..Eligible::default() };
        let with = |cookie| find(&eligible, "GET", "/", &[("cookie", cookie)]);
        assert!(with("a").is_some());
        assert_ne!(with("a"), with("b"));
        assert_eq!(find(&eligible, "GET", "/", &[("authorization", "a")]), None);
    }

    #[test]
    fn what_is_known_here_to_be_harmless_may_be_named() {
        let eligible = Eligible {
            ignored_headers: vec![HeaderName::from_static("x-device")],
            ignored_cookies: IgnoredCookies(vec!["_ga".to_owned()]),
            ..Eligible::default()
        };
        let with = |name, value| find(&eligible, "GET", "/", &[(name, value)]);
        assert_eq!(with("x-device", "1"), with("x-device", "2"));
        assert_eq!(with("cookie", "_ga=1"), with("cookie", "_ga=2"));
        assert_eq!(with("cookie", "_ga=1; id=7"), None);
    }

    #[test]
    fn a_key_function_may_be_all_of_the_key() {
        let function: KeyFunction = Arc::new(|_| Some(Bytes::from_static(b"all")));
        let eligible = Eligible { key_function: Some(function), only_key_function: true, ..Eligible::default() };
        let with = |path, name, value| find(&eligible, "GET", path, &[(name, value)]);
        assert_eq!(with("/", "x-zqw", "1"), with("/", "accept", "2"));
        assert_ne!(with("/", "x-zqw", "1"), with("/other", "x-zqw", "1"));
        assert_eq!(with("/", "range", "bytes=0-1"), None);
    }

    #[test]
    fn a_key_split_by_names_tells_their_values_apart() {
        let names = ["user-agent", "via", "accept"].map(|name| name.parse().unwrap());
        let split = |headers: &[_]| get(headers).unwrap().split_by(&names).unwrap();
        assert_eq!(split(&[("user-agent", "a"), ("referer", "1")]), split(&[("user-agent", "a"), ("referer", "2")]));
        for other in [&[("user-agent", "b")][..], &[], &[("via", "a")], &[("user-agent", "a"), ("user-agent", "a")]] {
            assert_ne!(split(&[("user-agent", "a")]), split(other));
        }
        let plain = get(&[("user-agent", "a")]).unwrap();
        assert_ne!(plain, plain.clone().split_by(&names).unwrap());
        assert!(
            split(&[("via", "1")])
                .has_in_common(&names[1..2], &HeaderMap::from_iter([(names[1].clone(), "1".parse().unwrap())]))
        );
    }

    #[test]
    fn a_key_function_decides() {
        let function: KeyFunction =
            Arc::new(|parts| Some(Bytes::copy_from_slice(parts.headers.get("cookie")?.as_bytes())));
        let eligible = Eligible { key_function: Some(function), ..Eligible::default() };
        let with = |cookie| find(&eligible, "GET", "/", &[("cookie", cookie)]);
        assert!(with("a").is_some());
        assert_ne!(with("a"), with("b"));
        assert_eq!(find(&eligible, "GET", "/", &[]), None);
        assert_eq!(find(&eligible, "POST", "/", &[("cookie", "a")]), None);
    }

    #[test]
    fn values_are_compared_in_number_and_order() {
        let headers = |list: &[(&str, &str)]| -> HeaderMap {
            let mut map = HeaderMap::new();
            for (name, value) in list {
                map.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
            }
            map
        };
        let names = ["via", "accept", "host"].map(|name| name.parse().unwrap());
        let same = |one: &[_], other: &[_]| {
            let one = get(&[&[("host", "a"), ("accept", "a")], one].concat()).unwrap();
            one.has_in_common(&names, &headers(&[&[("accept", "a")], other].concat()))
        };
        assert!(same(&[], &[]));
        assert!(same(&[("via", "1"), ("referer", "1")], &[("via", "1"), ("referer", "2")]));
        assert!(!same(&[("via", "1")], &[]));
        assert!(!same(&[], &[("via", "1")]));
        assert!(!same(&[("via", "1")], &[("via", "2")]));
        assert!(!same(&[("via", "1"), ("via", "2")], &[("via", "2"), ("via", "1")]));
    }

    #[test]
    fn a_harmless_line_beside_one_in_the_key_counts_where_an_answer_varies_by_it() {
        for (name, harmless, keyed) in
            [("cache-control", "max-age=1", "min-fresh=2"), ("baggage", "sentry-a=1", "user=2")]
        {
            let names = [name.parse().unwrap()];
            let lines = |list: &[&'static str]| list.iter().map(|value| (name, *value)).collect::<Vec<_>>();
            let map = |list: &[&'static str]| -> HeaderMap {
                let mut map = HeaderMap::new();
                for value in list {
                    map.append(&names[0], value.parse().unwrap());
                }
                map
            };
            let [one, both] = [&[keyed][..], &[harmless, keyed]];
            assert_eq!(get(&lines(one)), get(&lines(both)));
            assert!(get(&lines(one)).unwrap().has_in_common(&names, &map(one)), "{name}");
            for (leads, follows) in [(one, both), (both, one)] {
                assert!(!get(&lines(leads)).unwrap().has_in_common(&names, &map(follows)), "{name}");
            }
        }
    }
}
