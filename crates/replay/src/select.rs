//! Selection of the part of a log that is replayed, and changes of its requests.

use brunt_protocol::plan::target::Target;

use crate::entry::{Entry, Skip, Stamp};
use crate::stamp;

const SECOND_NS: i64 = 1_000_000_000;
const DAY_S: i64 = 86_400;

/// A part of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// From one time of the day to another, in the log's own zone, on the first day that has such times.
    OfDay {
        /// Seconds after midnight.
        from: i64,
        /// Seconds after midnight; not included.
        to: i64,
    },
    /// From one moment to another, in nanoseconds since 1970.
    Between {
        /// The beginning.
        from: i64,
        /// The end; not included.
        to: i64,
    },
}

impl Window {
    /// Reads `10:00-10:30` (also with seconds), or two times of RFC 3339 with `..` between them.
    ///
    /// # Errors
    /// The expected form.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("expected FROM-TO such as 10:00-10:30, or FROM..TO in RFC 3339, got '{text}'");
        if let Some((from, to)) = text.split_once("..") {
            let at = |text: &str| stamp::read(text, 0).map(|stamp| stamp.ns).ok_or_else(wrong);
            let (from, to) = (at(from)?, at(to)?);
            return if from < to { Ok(Self::Between { from, to }) } else { Err(wrong()) };
        }
        let (from, to) = text.split_once('-').ok_or_else(wrong)?;
        let clock = |text: &str| {
            let parts: Option<Vec<i64>> = text.trim().split(':').map(|part| part.parse().ok()).collect();
            match parts.as_deref() {
                Some([hour @ 0..=24, minute @ 0..=59]) => Some(hour * 3600 + minute * 60),
                Some([hour @ 0..=24, minute @ 0..=59, second @ 0..=59]) => Some(hour * 3600 + minute * 60 + second),
                _ => None,
            }
        };
        let (from, to) = (clock(from).ok_or_else(wrong)?, clock(to).ok_or_else(wrong)?);
        if from == to || from > DAY_S || to > DAY_S {
            return Err(wrong());
        }
        Ok(Self::OfDay { from, to })
    }

    /// The moments of the window in a log that begins at `first`; a window by the time of day may go beyond midnight.
    fn moments(self, first: Stamp) -> (i64, i64) {
        match self {
            Self::Between { from, to } => (from, to),
            Self::OfDay { from, to } => {
                let local = first.ns.div_euclid(SECOND_NS) + i64::from(first.offset_s);
                let midnight = local - local.rem_euclid(DAY_S);
                let length = (to - from).rem_euclid(DAY_S);
                let mut begins = midnight + from;
                // The window of the day before may still be open, and the one of today may be over.
                if begins - DAY_S + length > local {
                    begins -= DAY_S;
                } else if begins + length <= local {
                    begins += DAY_S;
                }
                let utc = |local: i64| (local - i64::from(first.offset_s)) * SECOND_NS;
                (utc(begins), utc(begins + length))
            }
        }
    }
}

/// A condition on a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    what: What,
    how: How,
    value: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Path,
    Method,
    Status,
    Host,
    Session,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Is,
    IsNot,
    Begins,
    Ends,
    Holds,
    HoldsNot,
}

impl Filter {
    /// Reads `path^=/api`. Subjects are `path`, `method`, `status`, `host` and `session`. Operators are `=` is, `!=` is
    /// not, `^=` begins with, `$=` ends with, `*=` contains and `!*=` does not contain. A path is without its query.
    ///
    /// # Errors
    /// The expected form.
    pub fn parse(text: &str) -> Result<Self, String> {
        let operators = [
            ("!*=", How::HoldsNot),
            ("!=", How::IsNot),
            ("^=", How::Begins),
            ("$=", How::Ends),
            ("*=", How::Holds),
            ("=", How::Is),
        ];
        let found = operators.iter().filter_map(|(sign, how)| Some((text.find(sign)?, *sign, *how)));
        let first = found.min_by_key(|(at, sign, _)| (*at, std::cmp::Reverse(sign.len())));
        let wrong = || format!("expected FIELD OPERATOR VALUE such as path^=/api or method!=HEAD, got '{text}'");
        let (at, sign, how) = first.ok_or_else(wrong)?;
        let what = match text.get(..at).unwrap_or_default().trim() {
            "path" => What::Path,
            "method" => What::Method,
            "status" => What::Status,
            "host" => What::Host,
            "session" => What::Session,
            other => {
                return Err(format!(
                    "expected path, method, status, host or session before the operator, got '{other}'"
                ));
            }
        };
        let value = text.get(at + sign.len()..).unwrap_or_default().trim().to_owned();
        Ok(Self { what, how, value })
    }

    fn holds(&self, entry: &Entry, path: &str) -> bool {
        let status;
        let text = match self.what {
            What::Path => path,
            What::Method => &entry.method,
            What::Status => {
                status = entry.status.map(|status| status.to_string()).unwrap_or_default();
                &status
            }
            What::Host => entry.host.as_deref().unwrap_or_default(),
            What::Session => entry.session.as_deref().unwrap_or_default(),
        };
        let value = self.value.as_str();
        match self.how {
            How::Is => text == value,
            How::IsNot => text != value,
            How::Begins => text.starts_with(value),
            How::Ends => text.ends_with(value),
            How::Holds => text.contains(value),
            How::HoldsNot => !text.contains(value),
        }
    }
}

/// A change of paths: a prefix is replaced by another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rewrite {
    from: String,
    to: String,
}

impl Rewrite {
    /// Reads `/v1=/v2`.
    ///
    /// # Errors
    /// The expected form.
    pub fn parse(text: &str) -> Result<Self, String> {
        let is_path = |text: &str| text.starts_with('/') && !text.bytes().any(|byte| byte <= b' ' || byte == 0x7f);
        match text.split_once('=') {
            Some((from, to)) if is_path(from) && is_path(to) => Ok(Self { from: from.to_owned(), to: to.to_owned() }),
            _ => Err(format!("expected /FROM=/TO, two beginnings of paths, got '{text}'")),
        }
    }
}

/// The hosts of a log that stand for the target.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum FromHosts {
    /// The target's own, and requests that name no host.
    #[default]
    Target,
    /// The target's own, and these.
    Named(Vec<String>),
    /// Any host.
    Any,
}

/// The part of a log that is replayed, and the changes of its requests.
#[derive(Debug, Clone)]
pub struct Selection {
    /// The part of the log.
    pub window: Option<Window>,
    /// Conditions, all of which must hold.
    pub filters: Vec<Filter>,
    /// Changes of paths, of which the first that fits is made.
    pub rewrites: Vec<Rewrite>,
    /// Whether methods that write are sent.
    pub writes: bool,
    /// The target.
    pub target: Target,
    /// The hosts that stand for the target.
    pub hosts: FromHosts,
    /// The moments of the window, once the log has begun.
    moments: Option<(i64, i64)>,
}

impl Selection {
    /// Selects every request to this target that does not write.
    pub fn new(target: Target) -> Self {
        Self {
            window: None,
            filters: Vec::new(),
            rewrites: Vec::new(),
            writes: false,
            target,
            hosts: FromHosts::Target,
            moments: None,
        }
    }

    /// Makes an entry ready to be sent: its URL becomes a path of the target.
    ///
    /// # Errors
    /// The reason for leaving it out.
    pub fn take(&mut self, mut entry: Entry) -> Result<Entry, Skip> {
        if let (Some(window), Some(at)) = (self.window, entry.at) {
            let (from, to) = *self.moments.get_or_insert_with(|| window.moments(at));
            if !(from..to).contains(&at.ns) {
                return Err(Skip::Outside);
            }
        }
        // A host beside a path is that of a server that may have many names; a host in a URL is where the request went.
        let in_url = split(&entry.url).map(|(host, path)| (host.to_owned(), path));
        if let Some((host, path)) = in_url {
            if !self.stands_for_target(&host) {
                return Err(Skip::OtherHost);
            }
            (entry.host, entry.url) = (Some(host), path);
        } else if let FromHosts::Named(names) = &self.hosts
            && let Some(host) = &entry.host
            && !names.iter().any(|name| is_host(name, host))
            && !self.is_target(host)
        {
            return Err(Skip::OtherHost);
        }
        if !self.filters.is_empty() {
            let path = entry.url.split('?').next().unwrap_or_default();
            if !self.filters.iter().all(|filter| filter.holds(&entry, path)) {
                return Err(Skip::Filtered);
            }
        }
        if !self.writes && !is_safe(&entry.method) {
            return Err(Skip::Writes);
        }
        if let Some((rewrite, rest)) =
            self.rewrites.iter().find_map(|rewrite| Some((rewrite, entry.url.strip_prefix(&rewrite.from)?)))
        {
            entry.url = format!("{}{rest}", rewrite.to);
        }
        Ok(entry)
    }

    /// The end of the window, in nanoseconds since 1970, once the log has begun.
    pub fn window_end(&self) -> Option<i64> {
        self.moments.map(|(_, to)| to)
    }

    /// Whether the log is beyond the window by more than this many nanoseconds.
    pub fn is_beyond(&self, at: Stamp, by_ns: i64) -> bool {
        self.moments.is_some_and(|(_, to)| at.ns.saturating_sub(by_ns) > to)
    }

    fn stands_for_target(&self, host: &str) -> bool {
        match &self.hosts {
            FromHosts::Any => true,
            FromHosts::Target => self.is_target(host),
            FromHosts::Named(names) => names.iter().any(|name| is_host(name, host)) || self.is_target(host),
        }
    }

    fn is_target(&self, host: &str) -> bool {
        host.eq_ignore_ascii_case(&self.target.authority()) || host.eq_ignore_ascii_case(&self.target.host)
    }
}

/// Whether a given name means this host, whatever its port.
fn is_host(name: &str, host: &str) -> bool {
    let without_port = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()));
    name.eq_ignore_ascii_case(host) || without_port.is_some_and(|(bare, _)| name.eq_ignore_ascii_case(bare))
}

/// Whether a method is safe, so that it only reads (RFC 9110 §9.2.1).
pub fn is_safe(method: &str) -> bool {
    matches!(method, "GET" | "HEAD" | "OPTIONS" | "TRACE")
}

/// The host and the path of a whole URL; `None` for a path.
fn split(url: &str) -> Option<(&str, String)> {
    if url.starts_with('/') {
        return None;
    }
    let (_, rest) = url.split_once("://")?;
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    Some((host, path))
}

#[cfg(test)]
mod tests {
    use brunt_protocol::plan::target::Url;

    use super::*;

    fn selection() -> Selection {
        Selection::new(Url::parse("http://127.0.0.1:8080/").unwrap().target)
    }

    fn entry(method: &str, url: &str) -> Entry {
        Entry { method: method.to_owned(), url: url.to_owned(), status: Some(200), ..Entry::default() }
    }

    #[test]
    fn other_hosts_are_never_called() {
        let mut ours = selection();
        assert_eq!(ours.take(entry("GET", "http://127.0.0.1:8080/a?b")).unwrap().url, "/a?b");
        assert_eq!(ours.take(entry("GET", "https://me:pw@shop.test?b")), Err(Skip::OtherHost));
        ours.hosts = FromHosts::Named(vec!["shop.test".to_owned()]);
        assert_eq!(ours.take(entry("GET", "https://me:pw@shop.test:444?b")).unwrap().url, "/?b");
        assert_eq!(ours.take(entry("GET", "https://shop.test.evil/")), Err(Skip::OtherHost));
        let beside = Entry { host: Some("other.test".to_owned()), ..entry("GET", "/") };
        assert_eq!(ours.take(beside), Err(Skip::OtherHost));
        ours.hosts = FromHosts::Any;
        assert!(ours.take(entry("GET", "https://anything/")).is_ok());
    }

    #[test]
    fn writing_needs_to_be_asked_for() {
        let mut ours = selection();
        assert_eq!(ours.take(entry("POST", "/a")), Err(Skip::Writes));
        assert_eq!(ours.take(entry("get", "/a")), Err(Skip::Writes), "methods are case-sensitive");
        ours.writes = true;
        assert!(ours.take(entry("DELETE", "/a")).is_ok());
    }

    #[test]
    fn filters_and_rewrites() {
        let mut ours = selection();
        for (filter, holds) in [
            ("path^=/api", true),
            ("path=/api/v1/a", true),
            ("path$=/a", true),
            ("path*=v1", true),
            ("path!*=v1", false),
            ("method!=GET", false),
            ("status=200", true),
            ("path*=x=1", false),
        ] {
            ours.filters = vec![Filter::parse(filter).unwrap()];
            assert_eq!(ours.take(entry("GET", "/api/v1/a?x=1")).is_ok(), holds, "{filter}");
        }
        for wrong in ["path", "", "where=1", "^=/a"] {
            assert!(Filter::parse(wrong).is_err(), "{wrong}");
        }
        ours.filters.clear();
        ours.rewrites = vec![Rewrite::parse("/api/v1=/v2").unwrap()];
        assert_eq!(ours.take(entry("GET", "/api/v1/a?x=1")).unwrap().url, "/v2/a?x=1");
        assert!(Rewrite::parse("a=b").is_err() && Rewrite::parse("/a").is_err() && Rewrite::parse("/a=/b c").is_err());
    }

    #[test]
    fn windows_are_of_the_logs_own_clock() {
        let at = |text: &str| stamp::read(text, 0).unwrap();
        let taken = |window: &str, lines: &[&str]| {
            let mut ours = selection();
            ours.window = Some(Window::parse(window).unwrap());
            let taken = |line: &&str| ours.take(Entry { at: Some(at(line)), ..entry("GET", "/") }).is_ok();
            lines.iter().map(taken).collect::<Vec<_>>()
        };
        let day = [
            "2026-01-01T08:59:00+09:00",
            "2026-01-01T10:00:00+09:00",
            "2026-01-01T10:30:00+09:00",
            "2026-01-02T10:00:00+09:00",
        ];
        assert_eq!(taken("10:00-10:30", &day), [false, true, false, false]);
        // The window is over on the day on which the log begins.
        let late = ["2026-01-01T11:00:00Z", "2026-01-02T10:15:00Z"];
        assert_eq!(taken("10:00-10:30", &late), [false, true]);
        let night = ["2026-01-01T00:10:00Z", "2026-01-01T00:40:00Z", "2026-01-01T23:50:00Z"];
        assert_eq!(taken("23:30-00:30", &night), [true, false, false]);
        let moments = ["2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"];
        assert_eq!(taken("2026-01-01T00:00:00Z..2026-01-01T00:00:01Z", &moments), [true, false]);
        for wrong in
            ["10:00", "10-11", "10:00-10:00", "25:00-26:00", "a..b", "2026-01-02T00:00:00Z..2026-01-01T00:00:00Z"]
        {
            assert!(Window::parse(wrong).is_err(), "{wrong}");
        }
    }
}
