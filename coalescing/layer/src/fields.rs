//! What each header field of a request means for coalescing.
//!
//! The rule is safe by construction: a field that is not known to be harmless is part of the key. So a name that a list here
//! lacks costs a call, and never gives one client another's answer. The lists only say which fields *cost nothing* (they
//! differ from request to request without a meaning for the answer) and which requests are not worth a flight (they carry
//! credentials, or ask for an answer of their own).

use std::net::{IpAddr, Ipv4Addr};

use http::header::{
    ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, COOKIE, DNT,
    EXPECT, FORWARDED, HOST, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, MAX_FORWARDS, ORIGIN, PRAGMA,
    PROXY_AUTHORIZATION, RANGE, REFERER, TE, TRANSFER_ENCODING, UPGRADE, UPGRADE_INSECURE_REQUESTS, USER_AGENT, VIA,
};
use http::{HeaderMap, HeaderName, HeaderValue};

/// The effect of a field on its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Its value is part of the key.
    Key,
    /// [`CONNECTION`], whose value is part of the key unless it bars.
    Connection,
    /// It has no effect, unless the answer varies by it.
    Harmless,
    /// It excludes the request from coalescing: it says who asks.
    Identity,
    /// It excludes the request from coalescing: it asks for an answer of its own, or for something other than an answer.
    Bars,
    /// It asks for another method than the request's, perhaps an unsafe one.
    OverridesMethod,
    Host,
    /// Asks whether the request led or followed.
    Mark,
    /// Addresses of the client and of proxies: their classes are part of the key.
    Addresses,
    /// The same, within `Forwarded`.
    Forwarded,
    /// It says when an earlier answer is fresh enough.
    Freshness,
}

/// A request with this header asks whether it led or followed.
pub(crate) const MARK: HeaderName = HeaderName::from_static("x-coalesced");

/// What is known of a field that most requests have, by its name alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Common {
    /// Stands for the name in a key.
    pub(crate) number: u8,
    /// That of most values; [`role_of`] knows the exceptions.
    pub(crate) usual: Role,
}

/// Lists the common fields: standard ones, and those that browsers and proxies send, by what their names begin with. Each has a
/// number of its own.
macro_rules! common_fields {
    ({ $($standard:ident => $role:ident,)+ } $($prefix:literal { $($own:ident $rest:literal => $own_role:ident,)+ })+) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms, reason = "the names are those of the constants")]
        enum Number { $($standard,)+ $($($own,)+)+ }

        impl Common {
            /// What is known of a field; `None` for rarer ones, whose role takes longer to find.
            #[inline(always)]
            pub(crate) fn of(name: &HeaderName) -> Option<Self> {
                match *name {
                    $($standard => Some(Self { number: Number::$standard as u8, usual: Role::$role }),)+
                    _ => Self::of_browsers(name.as_str()),
                }
            }

            #[inline(always)]
            fn of_browsers(name: &str) -> Option<Self> {
                $(if let Some(rest) = name.strip_prefix($prefix) {
                    return match rest.len() {
                        $(length if length == $rest.len() && rest == $rest => {
                            Some(Self { number: Number::$own as u8, usual: Role::$own_role })
                        })+
                        _ => None,
                    };
                })+
                None
            }
        }
    };
}

common_fields! {
    {
        HOST => Host,
        CONNECTION => Connection,
        USER_AGENT => Harmless,
        REFERER => Harmless,
        ACCEPT => Key,
        ACCEPT_ENCODING => Key,
        ACCEPT_LANGUAGE => Key,
        UPGRADE_INSECURE_REQUESTS => Key,
        ORIGIN => Key,
        DNT => Key,
        IF_NONE_MATCH => Key,
        IF_MODIFIED_SINCE => Key,
        FORWARDED => Forwarded,
    }
    "sec-fetch-" {
        SEC_FETCH_SITE "site" => Key,
        SEC_FETCH_MODE "mode" => Key,
        SEC_FETCH_USER "user" => Key,
        SEC_FETCH_DEST "dest" => Key,
    }
    "sec-ch-ua" {
        SEC_CH_UA "" => Harmless,
        SEC_CH_UA_PLATFORM "-platform" => Harmless,
        SEC_CH_UA_MOBILE "-mobile" => Key,
    }
    "x-" {
        X_FORWARDED_FOR "forwarded-for" => Addresses,
        X_FORWARDED_HOST "forwarded-host" => Key,
        X_FORWARDED_PROTO "forwarded-proto" => Key,
        X_REAL_IP "real-ip" => Addresses,
        X_REQUEST_ID "request-id" => Harmless,
    }
    "traceparent" {
        TRACEPARENT "" => Harmless,
    }
    "priority" {
        PRIORITY "" => Harmless,
    }
}

/// The role of a field.
pub(crate) fn role(name: &HeaderName, value: &HeaderValue) -> Role {
    role_of(Common::of(name), name, value)
}

/// The role of a field, where its number among the common ones was looked up already; `None` if it has none.
#[inline]
pub(crate) fn role_of(common: Option<Common>, name: &HeaderName, value: &HeaderValue) -> Role {
    match common {
        // A nominated field may be removed on its way to the handler, after it was checked here.
        Some(Common { usual: Role::Connection, .. }) if nominates_a_field(value) => Role::Bars,
        Some(Common { usual: Role::Connection, .. }) => Role::Key,
        Some(common) => common.usual,
        None => role_of_others(name, value),
    }
}

#[allow(clippy::match_same_arms, reason = "arms stand together by their reasons, and follow exceptions")]
fn role_of_others(name: &HeaderName, value: &HeaderValue) -> Role {
    match *name {
        TE | VIA | MAX_FORWARDS => Role::Harmless,
        AUTHORIZATION | PROXY_AUTHORIZATION | COOKIE => Role::Identity,
        // A range is not the answer; and an upgrade, an expectation and a body are more than a question.
        RANGE | IF_RANGE | UPGRADE | EXPECT | TRANSFER_ENCODING => Role::Bars,
        CONTENT_LENGTH if value.as_bytes() == b"0" => Role::Key,
        CONTENT_LENGTH => Role::Bars,
        CACHE_CONTROL => cache_control(value),
        PRAGMA if directives(value).any(|directive| directive.eq_ignore_ascii_case(b"no-cache")) => Role::Bars,
        _ => role_by_text(name.as_str(), value),
    }
}

/// Whether all requests that may share an answer have the same values of a header, whatever these are.
pub(crate) fn is_always_in_the_key(name: &HeaderName) -> bool {
    matches!(role(name, &HeaderValue::from_static("")), Role::Key | Role::Host)
}

/// The role of a field by its name's text. Names are compared by length first, as most names have none of these lengths.
fn role_by_text(name: &str, value: &HeaderValue) -> Role {
    // No field that only browsers may set is a credential.
    if let Some(rest) = name.strip_prefix("sec-") {
        return if rest == "websocket-key" { Role::Bars } else { Role::Key };
    }
    if is_harmless(name) {
        return Role::Harmless;
    }
    match name {
        "x-requested-with" => Role::Key,
        "x-coalesced" => Role::Mark,
        "baggage" if directives(value).all(|member| member.starts_with(b"sentry-")) => Role::Harmless,
        name if name.contains('_') => role_of_lookalike(name, value),
        name if overrides_method(name) => Role::OverridesMethod,
        name if looks_like_an_identity(name) => Role::Identity,
        _ => Role::Key,
    }
}

/// Fields that name the call, or the program or link that it came by, and say nothing about the wanted answer.
fn is_harmless(name: &str) -> bool {
    let is_listed = match name.len() {
        2 => name == "b3",
        6 => name == "cf-ray",
        8 => name == "newrelic",
        10 => name == "keep-alive" || name == "tracestate" || name == "request-id",
        12 => name == "sentry-trace",
        13 => name == "uber-trace-id" || name == "x-b3-traceid",
        15 => name == "x-amzn-trace-id" || name == "x-request-start",
        16 => name == "x-correlation-id",
        21 => name == "x-cloud-trace-context",
        _ => false,
    };
    is_listed || name.starts_with("x-b3-") || name.starts_with("x-datadog-")
}

/// CGI and the like make one variable of `X_Own` and `X-Own`. A spelling with underscores bars where the other does, and is
/// part of the key otherwise, even if the other is harmless.
fn role_of_lookalike(name: &str, value: &HeaderValue) -> Role {
    let dashed = HeaderName::try_from(name.replace('_', "-"));
    match dashed.map_or(Role::Key, |dashed| role(&dashed, value)) {
        barring @ (Role::Identity | Role::Bars | Role::OverridesMethod) => barring,
        _ => Role::Key,
    }
}

/// Whether frameworks take a request with this field for one with another method. To some of them, `_` in a name is `-`.
fn overrides_method(name: &str) -> bool {
    let is = |other: &str| {
        let same = |(one, other): (u8, u8)| one == other || (one == b'_' && other == b'-');
        name.len() == other.len() && name.bytes().zip(other.bytes()).all(same)
    };
    name.contains("method") && (name.contains("override") || is("x-http-method") || is("x-method"))
}

/// Whether a request has a field that overrides its method.
pub(crate) fn has_overridden_method(headers: &HeaderMap) -> bool {
    headers.keys().any(names_a_method)
}

/// Whether a field overrides the method. All requests with cookies come here with all their fields, so the name is searched for
/// words only if nothing else is known of it.
#[inline]
fn names_a_method(name: &HeaderName) -> bool {
    Common::of(name).is_none() && name.as_str().len() >= "x-method".len() && overrides_method(name.as_str())
}

/// Whether a request has one of the standard credentials, and if so, whether it has a field that overrides its method. Takes less than
/// to read each field's value up to the one that bars.
pub(crate) fn has_credentials(headers: &HeaderMap) -> Option<bool> {
    let (mut has_credentials, mut is_overridden) = (false, false);
    for name in headers.keys() {
        match *name {
            COOKIE | AUTHORIZATION | PROXY_AUTHORIZATION => has_credentials = true,
            _ => is_overridden |= names_a_method(name),
        }
    }
    has_credentials.then_some(is_overridden)
}

/// Whether a field looks like a credential or a user's name. Requests with one seldom share an answer, so they are spared
/// the wait. Safety does not rest on this: any other field is in the key.
fn looks_like_an_identity(name: &str) -> bool {
    const WITHIN: [&str; 9] =
        ["token", "auth", "apikey", "secret", "session", "passw", "credential", "ssl-client", "cookie"];
    const WORDS: [&str; 21] = [
        "key",
        "jwt",
        "csrf",
        "xsrf",
        "user",
        "userid",
        "username",
        "email",
        "login",
        "cert",
        "certificate",
        "signature",
        "dpop",
        "identity",
        "account",
        "principal",
        "bearer",
        "assertion",
        "sid",
        "saml",
        "oidc",
    ];
    WITHIN.iter().any(|part| name.contains(part)) || name.split('-').any(|word| WORDS.contains(&word))
}

/// The elements of a list.
fn directives(value: &HeaderValue) -> impl Iterator<Item = &[u8]> {
    value.as_bytes().split(|&byte| byte == b',').map(<[u8]>::trim_ascii).filter(|directive| !directive.is_empty())
}

/// `Cache-Control` of a request (RFC 9111, section 5.2.1). Whether an earlier answer is young enough has no meaning for one
/// in flight: `max-age` is looked at where answers are held.
fn cache_control(value: &HeaderValue) -> Role {
    let mut role = Role::Freshness;
    for directive in directives(value) {
        let name = directive.split(|&byte| byte == b'=').next().unwrap_or_default().trim_ascii();
        if [&b"no-cache"[..], b"no-store", b"only-if-cached"].iter().any(|own| name.eq_ignore_ascii_case(own)) {
            return Role::Bars;
        }
        if !name.eq_ignore_ascii_case(b"max-age") {
            role = Role::Key;
        }
    }
    role
}

/// The seconds of the least `max-age` in a request's `Cache-Control`; 0 if they are unreadable.
pub(crate) fn max_age(cache_control: &HeaderValue) -> Option<u64> {
    let ages = directives(cache_control).filter_map(|directive| {
        let (name, age) = directive.split_at_checked(directive.iter().position(|&byte| byte == b'=')?)?;
        let age = age.get(1..)?;
        let seconds = || std::str::from_utf8(age).ok()?.trim().trim_matches('"').parse().ok();
        name.trim_ascii().eq_ignore_ascii_case(b"max-age").then(|| seconds().unwrap_or(0))
    });
    ages.min()
}

/// Whether `Connection` names more than how the connection goes on (RFC 9110, section 7.6.1).
fn nominates_a_field(connection: &HeaderValue) -> bool {
    // As browsers and libraries write it.
    if matches!(connection.as_bytes(), b"keep-alive" | b"close") {
        return false;
    }
    directives(connection).any(|option| {
        let usual = [&b"close"[..], b"keep-alive", b"te", b"upgrade"];
        !usual.iter().any(|usual| option.eq_ignore_ascii_case(usual))
    })
}

/// The kind of network that an address belongs to. Services that trust their neighbours more than strangers go by it.
fn class(address: IpAddr) -> &'static [u8] {
    let is_private = match address.to_canonical() {
        address if address.is_loopback() => return b"loopback",
        IpAddr::V4(address) => address.is_private() || address.is_link_local() || address.is_unspecified(),
        // Unique local and link-local addresses.
        IpAddr::V6(address) => {
            let first = address.segments()[0];
            first & 0xfe00 == 0xfc00 || first & 0xffc0 == 0xfe80 || address.is_unspecified()
        }
    };
    if is_private { b"private" } else { b"public" }
}

/// An address with or without a port, as proxies write it.
fn address(text: &[u8]) -> Option<IpAddr> {
    if let Some(address) = plain_ipv4(text) {
        return Some(address.into());
    }
    let text = std::str::from_utf8(text).ok()?;
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    let text = text.trim().trim_matches('"');
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    if let Ok(socket) = text.parse::<std::net::SocketAddr>() {
        return Some(socket.ip());
    }
    text.strip_prefix('[')?.strip_suffix(']')?.parse().ok()
}

/// An IPv4 address as the standard library reads it, without the detour by text: most requests that come by a proxy have one.
fn plain_ipv4(text: &[u8]) -> Option<Ipv4Addr> {
    let mut octets = [0; 4];
    let (mut at, mut digits, mut octet) = (0, 0, 0_u32);
    for &byte in text {
        match byte {
            b'0'..=b'9' if digits == 0 || octet > 0 => {
                octet = octet * 10 + u32::from(byte - b'0');
                digits += 1;
                if octet > 255 {
                    return None;
                }
            }
            b'.' if digits > 0 && at < 3 => {
                *octets.get_mut(at)? = octet as u8;
                (at, digits, octet) = (at + 1, 0, 0);
            }
            _ => return None,
        }
    }
    *octets.get_mut(at)? = octet as u8;
    (at == 3 && digits > 0).then(|| octets.into())
}

/// Stands before a class in the key. No field has it, so a client that says `loopback` is not taken for one at 127.0.0.1.
const CLASS: u8 = 0;

/// Writes the class of an address, or the text itself if it is none.
fn write_class(text: &[u8], key: &mut Vec<u8>) {
    match address(text) {
        Some(address) => {
            key.push(CLASS);
            key.extend_from_slice(class(address));
        }
        None => key.extend_from_slice(text),
    }
}

/// What a list of addresses adds to the key: the class of each.
pub(crate) fn write_classes(addresses: &HeaderValue, key: &mut Vec<u8>) {
    for element in addresses.as_bytes().split(|&byte| byte == b',') {
        write_class(element.trim_ascii(), key);
        key.push(b',');
    }
}

/// What `Forwarded` (RFC 7239, section 4) adds to the key: all of it, with the classes of addresses in their place. A value
/// whose quotes are not closed is added as it is.
pub(crate) fn write_forwarded(forwarded: &HeaderValue, key: &mut Vec<u8>) {
    let (value, began) = (forwarded.as_bytes(), key.len());
    let (mut is_quoted, mut is_escaped, mut from) = (false, false, 0);
    for (at, &byte) in value.iter().enumerate() {
        if !is_quoted && matches!(byte, b',' | b';') {
            write_pair(value.get(from..at).unwrap_or_default(), key);
            key.push(byte);
            from = at + 1;
        }
        if !is_escaped && byte == b'"' {
            is_quoted = !is_quoted;
        }
        is_escaped = is_quoted && !is_escaped && byte == b'\\';
    }
    if is_quoted {
        key.truncate(began);
        key.extend_from_slice(value);
    } else {
        write_pair(value.get(from..).unwrap_or_default(), key);
    }
}

fn write_pair(pair: &[u8], key: &mut Vec<u8>) {
    let pair = pair.trim_ascii();
    let Some(equals) = pair.iter().position(|&byte| byte == b'=') else { return key.extend_from_slice(pair) };
    let (name, node) = pair.split_at(equals);
    if name.eq_ignore_ascii_case(b"for") || name.eq_ignore_ascii_case(b"by") {
        key.extend_from_slice(name);
        key.push(b'=');
        write_class(node.get(1..).unwrap_or_default(), key);
    } else {
        key.extend_from_slice(pair);
    }
}

/// Cookies that say nothing about the answer, by name; a name that ends in `*` stands for all that begin so.
#[derive(Debug, Clone, Default)]
pub(crate) struct IgnoredCookies(pub(crate) Vec<String>);

impl IgnoredCookies {
    /// Whether all cookies of a `Cookie` field are among them. Some servers end a cookie at a comma or a blank as well, so what
    /// follows one must be a cookie that is ignored, too.
    pub(crate) fn has_all_of(&self, cookie: &HeaderValue) -> bool {
        let ends = |byte: &u8| matches!(byte, b';' | b',' | b'"') || byte.is_ascii_whitespace();
        !self.0.is_empty()
            && cookie.as_bytes().split(ends).all(|pair| {
                let name = pair.split(|&byte| byte == b'=').next().unwrap_or_default();
                pair.is_empty() || self.0.iter().any(|ignored| is_named(ignored, name))
            })
    }
}

fn is_named(ignored: &str, name: &[u8]) -> bool {
    match ignored.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix.as_bytes()),
        None => name == ignored.as_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role_of(name: &str, value: &str) -> Role {
        role(&name.parse().unwrap(), &value.parse().unwrap())
    }

    #[test]
    fn what_nobody_has_heard_of_is_in_the_key() {
        for name in [
            "x-zqw",
            "accept-profile",
            "hx-request",
            "turbo-frame",
            "rsc",
            "next-router-prefetch",
            "x-inertia",
            "x-pjax",
            "x-requested-with",
            "save-data",
            "dnt",
            "sec-gpc",
            "sec-fetch-mode",
            "sec-ch-ua-mobile",
            "sec-ch-dpr",
            "dpr",
            "device-memory",
            "if-none-match",
            "available-dictionary",
            "cf-ipcountry",
            "origin",
            "x-script-name",
        ] {
            assert_eq!(role_of(name, "1"), Role::Key, "{name}");
        }
        assert_eq!(role_of("baggage", "sentry-a=1,user=2"), Role::Key);
        assert_eq!(role_of("traceparent_", "1"), Role::Key);
    }

    #[test]
    fn what_only_names_the_call_is_harmless() {
        for name in [
            "user-agent",
            "referer",
            "sec-ch-ua",
            "priority",
            "traceparent",
            "x-b3-spanid",
            "x-datadog-trace-id",
            "x-request-id",
            "request-id",
            "cf-ray",
            "x-request-start",
            "newrelic",
            "keep-alive",
            "te",
        ] {
            assert_eq!(role_of(name, "1"), Role::Harmless, "{name}");
        }
        assert_eq!(role_of("baggage", "sentry-a=1, sentry-b=2"), Role::Harmless);
    }

    #[test]
    fn who_looks_like_somebody_goes_alone() {
        for name in [
            "x-vault-token",
            "private-token",
            "dpop",
            "x-auth-request-user",
            "cf-access-jwt-assertion",
            "apikey",
            "x-api-key",
            "x_api_key",
            "remote-user",
            "x-forwarded-user",
            "x-forwarded-email",
            "client-cert",
            "x-csrf-token",
        ] {
            assert_eq!(role_of(name, "1"), Role::Identity, "{name}");
        }
    }

    #[test]
    fn what_the_client_says_of_freshness_is_read() {
        assert_eq!(role_of("cache-control", "max-age=0"), Role::Freshness);
        assert_eq!(role_of("cache-control", "min-fresh=5"), Role::Key);
        assert_eq!(role_of("cache-control", "max-age=0, No-Cache"), Role::Bars);
        for (text, age) in
            [("max-age=0", Some(0)), ("Max-Age=\"7\", max-age=9", Some(7)), ("max-age=x", Some(0)), ("a", None)]
        {
            assert_eq!(max_age(&text.parse().unwrap()), age, "{text}");
        }
    }

    fn written(write: fn(&HeaderValue, &mut Vec<u8>), value: &str) -> String {
        let mut key = Vec::new();
        write(&value.parse().unwrap(), &mut key);
        String::from_utf8(key).unwrap()
    }

    #[test]
    fn addresses_count_by_their_class() {
        for (value, classes) in [
            ("127.0.0.1", "\0loopback,"),
            ("10.1.2.3, 192.168.0.1:80", "\0private,\0private,"),
            ("8.8.8.8, fd00::1, [2001:db8::1]:443", "\0public,\0private,\0public,"),
            ("::ffff:127.0.0.2", "\0loopback,"),
            ("loopback", "loopback,"),
        ] {
            assert_eq!(written(write_classes, value), classes);
        }
        for (value, key) in [
            ("for=10.0.0.1;host=\"a;b\", For=\"[2001:db8::1]\"", "for=\0private;host=\"a;b\",For=\0public"),
            ("for=_hidden;proto=http", "for=_hidden;proto=http"),
            ("forprivate; for=private", "forprivate;for=private"),
            ("for=\"10.0.0.1;host=a", "for=\"10.0.0.1;host=a"),
        ] {
            assert_eq!(written(write_forwarded, value), key);
        }
    }

    #[test]
    fn addresses_are_read_as_the_standard_library_reads_them() {
        let pieces = ["", "0", "00", "1", "01", "9", "25", "255", "256", "300", "1000", "-1", "a", ".", " 1"];
        let pairs = pieces.iter().flat_map(|one| pieces.iter().map(move |two| (one, two)));
        let all = pairs.flat_map(|(one, two)| pieces.iter().map(move |three| (one, two, three)));
        for (one, two, three) in all {
            for text in [
                format!("{one}.{two}.{three}.7"),
                format!("7.{one}.{two}.{three}"),
                format!("{one}.{two}.{three}"),
                format!("{one}.{two}.{three}.7.7"),
                format!("{one}{two}{three}"),
            ] {
                assert_eq!(plain_ipv4(text.as_bytes()), text.parse().ok(), "{text}");
            }
        }
    }

    #[test]
    fn a_cookie_that_is_not_ignored_bars() {
        let ignored = IgnoredCookies(vec!["_ga".to_owned(), "_ga_*".to_owned()]);
        let all = |text: &str| ignored.has_all_of(&text.parse().unwrap());
        assert!(all("_ga=1; _ga_X1=2") && all("_ga=1;") && !all("_ga=1; sid=2") && !all("_gat=1"));
        for smuggled in
            ["_ga=1, sid=2", "_ga=1,sid=2", "_ga=1 sid=2", "_ga=1\tsid=2", "_ga=\"1; sid=2\"", "_ga=\"1\"sid=2"]
        {
            assert!(!all(smuggled), "{smuggled}");
        }
        assert!(!IgnoredCookies::default().has_all_of(&"".parse().unwrap()));
    }
}
