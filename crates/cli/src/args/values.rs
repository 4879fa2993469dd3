//! Parsers of single values. Each error says what was expected; clap puts the flag before it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use brunt_decide::capacity::LOWEST_RATE;
use brunt_decide::compare::LEAST_ROUNDS;
use brunt_engine::trace::Level;
use brunt_plan::arrivals::{SHAPES_MILLI, Spread};
use brunt_plan::plan::{MOST_CONNECTIONS, MOST_PIPELINED, Proxy};
use brunt_plan::profile::HIGHEST_RATE;
use brunt_plan::secret::Template;
use brunt_plan::steps::{Steps, StepsError};
use brunt_plan::target::{Url, UrlError};
use brunt_plan::threshold::GuardAction;
use brunt_plan::units;
use brunt_report::{Format, decision};
use brunt_testbed::server::{Delay, Stall};
use brunt_testbed::timetable::{Entry, TimedFault};
use clap::builder::{PossibleValuesParser, TypedValueParser};

type Read<T> = Result<T, String>;

/// The most local addresses of `--source-ip`.
pub const MOST_SOURCE_IPS: usize = 65_536;
/// The port of a proxy whose URL names none.
const HTTP_PORT: u16 = 80;
/// The most worker threads.
pub const MOST_THREADS: u32 = 1024;

/// How many connections a run may have.
pub const CONNECTIONS: RangeInclusive<u32> = 1..=MOST_CONNECTIONS;
/// How many worker threads.
pub const THREADS: RangeInclusive<u32> = 1..=MOST_THREADS;
/// How many calls in flight on a connection.
pub const PIPELINE: RangeInclusive<u32> = 1..=MOST_PIPELINED;

/// A count that lies in `range`.
pub fn within(count: u64, range: &RangeInclusive<u32>) -> Read<u32> {
    u32::try_from(count)
        .ok()
        .filter(|count| range.contains(count))
        .ok_or_else(|| format!("expected a number from {} to {}", range.start(), range.end()))
}

fn count_in(text: &str, range: &RangeInclusive<u32>) -> Read<u32> {
    within(units::parse_count(text).map_err(|e| e.to_string())?, range)
}

/// How due times are spread: `uniform`, `poisson`, `bursty:0.5`.
pub fn arrivals(text: &str) -> Read<Spread> {
    let expected = || format!("expected uniform, poisson or bursty:0.5 (a shape from 0.01 to 1000), not '{text}'");
    match text {
        "uniform" => Ok(Spread::Uniform),
        "poisson" => Ok(Spread::Poisson),
        _ => {
            let shape: f64 = text.strip_prefix("bursty:").and_then(|shape| shape.parse().ok()).ok_or_else(expected)?;
            let shape_milli = (shape * 1000.0).round() as u32;
            if SHAPES_MILLI.contains(&shape_milli) { Ok(Spread::Bursty { shape_milli }) } else { Err(expected()) }
        }
    }
}

pub fn connections(text: &str) -> Read<u32> {
    count_in(text, &CONNECTIONS)
}

pub fn threads(text: &str) -> Read<u32> {
    count_in(text, &THREADS)
}

pub fn pipeline(text: &str) -> Read<u32> {
    count_in(text, &PIPELINE)
}

/// A flag's value, or several for runs one after the other.
#[derive(Debug, Clone, PartialEq)]
pub enum Levels<T> {
    /// One value, as the flag has it elsewhere.
    One(T),
    /// The values of several runs.
    Several(Steps),
}

/// The parser of a flag that may have several values, where `one` is its parser for a single one.
pub fn levels<T>(one: fn(&str) -> Read<T>) -> impl Fn(&str) -> Read<Levels<T>> + Clone + Send + Sync + 'static
where
    T: 'static,
{
    move |text: &str| {
        if Steps::is_meant_by(text) {
            text.parse().map(Levels::Several).map_err(|e: StepsError| e.to_string())
        } else {
            one(text).map(Levels::One)
        }
    }
}

/// How often something is tried.
pub fn repeats(text: &str) -> Read<u32> {
    count_in(text, &(1..=100))
}

/// Rounds of a comparison.
pub fn rounds(text: &str) -> Read<u32> {
    count_in(text, &(LEAST_ROUNDS..=10_000))
}

/// Servers that requests wait in line for.
pub fn servers(text: &str) -> Read<u32> {
    count_in(text, &(1..=65_536))
}

/// Tokens of an answer.
pub fn tokens(text: &str) -> Read<u64> {
    count_in(text, &(1..=1_000_000)).map(u64::from)
}

/// How many times as much: `2x`, `0.5`.
pub fn factor(text: &str) -> Read<f64> {
    units::parse_factor(text).map_err(|e| e.to_string())
}

/// A name and a value for scripts; a bare name is a variable, whose value is taken. Any other text may be a secret, and
/// is not shown.
pub fn variable(text: &str) -> Read<(String, String)> {
    let is_name = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if is_name && std::env::var_os(text).is_some() {
        Ok((text.to_owned(), format!("@{text}")))
    } else {
        assignment(text)
    }
}

/// A name and a value.
pub fn assignment(text: &str) -> Read<(String, String)> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected a name and a value such as PLAN=pro".to_owned()),
    }
}

/// A count above 0.
pub fn requests(text: &str) -> Read<u64> {
    match units::parse_count(text).map_err(|e| e.to_string())? {
        0 => Err("expected a number above 0".to_owned()),
        count => Ok(count),
    }
}

/// Virtual users, at least 1.
pub fn users(text: &str) -> Read<u32> {
    count_in(text, &USERS)
}

/// How many virtual users there may be.
pub const USERS: RangeInclusive<u32> = 1..=brunt_plan::scenario::MOST_USERS as u32;

/// A rate in calls a second.
pub fn rate(text: &str) -> Read<f64> {
    let rate = units::parse_number(text).map_err(|e| e.to_string())?;
    if (LOWEST_RATE..=HIGHEST_RATE).contains(&rate) {
        return Ok(rate);
    }
    Err("expected a rate from 1 to 10M calls a second".to_owned())
}

/// A duration in nanoseconds.
pub fn duration(text: &str) -> Read<u64> {
    units::parse_duration(text).map_err(|e| e.to_string())
}

/// A duration above 0, in nanoseconds.
pub fn positive_duration(text: &str) -> Read<u64> {
    match duration(text)? {
        0 => Err("expected a duration above 0".to_owned()),
        ns => Ok(ns),
    }
}

/// A name for a run, by which `brunt show` finds it.
pub fn run_name(text: &str) -> Result<String, String> {
    let is_taken = text == "last" || text.parse::<i64>().is_ok();
    if is_taken || text.trim().is_empty() || text.chars().count() > 200 || text.chars().any(char::is_control) {
        return Err("expected a name of up to 200 characters that is not a number, and not 'last'".to_owned());
    }
    Ok(text.to_owned())
}

/// `key=value`.
pub fn tag(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() && text.chars().count() <= 1000 => {
            Ok((key.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("expected a key and a value such as branch=main, of up to 1000 characters".to_owned()),
    }
}

/// The name of a format of results, or of decisions.
pub fn any_format() -> PossibleValuesParser {
    let mut names = Format::ALL.map(Format::name).to_vec();
    let of_decisions = decision::DecisionFormat::ALL.map(decision::DecisionFormat::name);
    names.extend(of_decisions.into_iter().filter(|name| !Format::ALL.map(Format::name).contains(name)));
    PossibleValuesParser::new(names)
}

/// A format of results, by its name.
pub fn format() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::ALL.map(Format::name)).try_map(|name| name.parse::<Format>())
}

/// The run of `from-run:RUN`.
pub fn from_run(text: &str) -> Read<String> {
    let run = text.strip_prefix("from-run").and_then(|run| run.strip_prefix([':', ' '])).map(str::trim);
    let run = run.filter(|run| !run.is_empty());
    run.map(str::to_owned).ok_or_else(|| "expected from-run:RUN, such as from-run:last or from-run:12".to_owned())
}

/// The action of a guard whose condition holds.
pub fn guard_action() -> impl TypedValueParser<Value = GuardAction> {
    PossibleValuesParser::new(["stop", "back-off"]).map(|name| match name.as_str() {
        "back-off" => GuardAction::BackOff,
        _ => GuardAction::Stop,
    })
}

/// The file of rows of calls.
pub fn rows(text: &str) -> Read<PathBuf> {
    let path = PathBuf::from(text);
    let known = path.extension().is_some_and(|kind| kind == "csv" || kind == "ndjson");
    if known { Ok(path) } else { Err("the name of the file says its format: FILE.csv or FILE.ndjson".to_owned()) }
}

/// A size in bytes.
pub fn size(text: &str) -> Read<u64> {
    units::parse_size(text).map_err(|e| e.to_string())
}

/// The least severe lines that are logged.
pub fn level(text: &str) -> Read<Level> {
    Level::from_name(text).ok_or_else(|| "expected debug, info, warn or error".to_owned())
}

/// A share above 0, and at most all.
pub fn share(text: &str) -> Read<f64> {
    let share = units::parse_ratio(text).map_err(|e| e.to_string())?;
    if share > 0.0 && share <= 1.0 { Ok(share) } else { Err("expected a share such as 1%, of at most 100%".to_owned()) }
}

/// A share, 0 to 1.
pub fn ratio(text: &str) -> Read<f64> {
    let ratio = units::parse_ratio(text).map_err(|e| e.to_string())?;
    if ratio <= 1.0 { Ok(ratio) } else { Err("expected a share from 0 to 1, or from 0% to 100%".to_owned()) }
}

/// A host and a port.
pub fn host_and_port(text: &str) -> Read<(String, u16)> {
    const EXPECTED: &str = "expected a host and a port such as 10.0.0.7:8080 or [::1]:8080";
    if text.contains(['/', '?', '#', '@']) {
        return Err(EXPECTED.to_owned());
    }
    let target = Url::parse(text).map_err(|e| in_column(&e))?.target;
    Ok((target.host, target.port.ok_or(EXPECTED)?))
}

/// A proxy that connects to targets: `http://[USER:PASSWORD@]HOST[:PORT]`. Errors never show the password.
pub fn proxy(text: &str) -> Read<Proxy> {
    const EXPECTED: &str = "expected http://HOST:PORT";
    let Url { target, user } = Url::parse(text).map_err(|e| in_column(&e))?;
    match target.scheme.as_str() {
        "http" => {}
        "https" => return Err(format!("{EXPECTED}: brunt does not speak TLS to the proxy itself, only through it")),
        scheme if scheme.starts_with("socks") => {
            return Err(format!("{EXPECTED}: brunt asks proxies by HTTP's CONNECT, and does not speak SOCKS"));
        }
        scheme => return Err(format!("{EXPECTED}, not {scheme}://")),
    }
    if target.path != "/" {
        return Err(format!("{EXPECTED}, without a path"));
    }
    let pair = |user: String| if user.contains(':') { user } else { format!("{user}:") };
    let credentials = user.map(|user| Template::secret(pair(user)));
    Ok(Proxy { host: target.host, port: target.port.unwrap_or(HTTP_PORT), credentials })
}

/// What people who want the result in JSON are told.
pub const RESULT_IN_JSON: &str = "the result in JSON is --format json, or -o run.json";

/// A body in JSON: as text, or the file that has it.
pub fn json(text: &str) -> Read<String> {
    if text.starts_with('@') {
        return Ok(text.to_owned());
    }
    let checked = is_json(text.as_bytes());
    checked.map_err(|why| format!("the body is not JSON ({why}); --body sends any text, and {RESULT_IN_JSON}"))?;
    Ok(text.to_owned())
}

/// Whether this is one value in JSON; if not, why not.
pub fn is_json(text: &[u8]) -> Read<()> {
    serde_json::from_slice::<serde::de::IgnoredAny>(text).map(drop).map_err(|e| e.to_string())
}

/// Where to listen: an address with its port, or a port on the loopback.
pub fn listen(text: &str) -> Read<SocketAddr> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let port = text.strip_prefix(':').unwrap_or(text).parse::<u16>();
    port.map(|port| (Ipv4Addr::LOCALHOST, port).into())
        .map_err(|_| format!("expected ADDRESS:PORT, or PORT on 127.0.0.1, such as 127.0.0.1:8090, got '{text}'"))
}

/// A host name or address.
pub fn host(text: &str) -> Read<String> {
    const EXPECTED: &str = "expected a host name such as example.org";
    if text.contains(['/', '?', '#', '@', ':']) {
        return Err(EXPECTED.to_owned());
    }
    Ok(Url::parse(text).map_err(|e| in_column(&e))?.target.host)
}

fn in_column(error: &UrlError) -> String {
    format!("column {}: {}", error.column, error.problem)
}

/// Local addresses: single ones and ranges, separated by commas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceIps(pub Vec<IpAddr>);

pub fn source_ips(text: &str) -> Read<SourceIps> {
    let mut all = Vec::new();
    for part in text.split(',') {
        let part = part.trim();
        match part.split_once('-') {
            None => all.push(address(part)?),
            Some((first, last)) => extend(&mut all, part, address(first.trim())?, address(last.trim())?)?,
        }
        if all.len() > MOST_SOURCE_IPS {
            return Err(too_many());
        }
    }
    Ok(SourceIps(all))
}

fn too_many() -> String {
    format!("expected at most {MOST_SOURCE_IPS} addresses in all")
}

fn address(text: &str) -> Read<IpAddr> {
    text.parse().map_err(|_| format!("expected addresses such as 10.0.0.1 or 10.0.0.1-10.0.0.9, got '{text}'"))
}

fn extend(all: &mut Vec<IpAddr>, part: &str, first: IpAddr, last: IpAddr) -> Read<()> {
    let (from, to) = match (first, last) {
        (IpAddr::V4(first), IpAddr::V4(last)) => (u128::from(first.to_bits()), u128::from(last.to_bits())),
        (IpAddr::V6(first), IpAddr::V6(last)) => (first.to_bits(), last.to_bits()),
        _ => return Err(format!("a range has both ends in IPv4 or both in IPv6, '{part}' has one of each")),
    };
    if from > to {
        return Err(format!("'{part}' ends before it begins: write {last}-{first}"));
    }
    if to - from >= MOST_SOURCE_IPS as u128 {
        return Err(too_many());
    }
    all.extend((from..=to).map(|bits| match first {
        IpAddr::V4(_) => IpAddr::V4((bits as u32).into()),
        IpAddr::V6(_) => IpAddr::V6(bits.into()),
    }));
    Ok(())
}

/// `5ms`, `1ms..5ms`, `exp:5ms`.
pub fn delay(text: &str) -> Read<Delay> {
    if let Some(mean) = text.strip_prefix("exp:") {
        return Ok(Delay::Exponential { mean: std_duration(mean)? });
    }
    let Some((min, max)) = text.split_once("..") else {
        let fixed = std_duration(text)?;
        return Ok(if fixed.is_zero() { Delay::None } else { Delay::Fixed(fixed) });
    };
    let (min, max) = (std_duration(min)?, std_duration(max)?);
    if min > max {
        return Err(format!("expected the shorter delay first, such as {}", text_of_range(text)));
    }
    Ok(Delay::Uniform { min, max })
}

fn text_of_range(text: &str) -> String {
    text.split_once("..").map_or_else(String::new, |(first, second)| format!("{second}..{first}"))
}

/// `1s/5s`: one second in every five.
pub fn stall(text: &str) -> Read<Stall> {
    let (length, period) =
        text.split_once('/').ok_or("expected a length and a period such as 1s/5s, one second in every five")?;
    let (length, period) = (std_duration(length)?, std_duration(period)?);
    if length.is_zero() || length >= period {
        return Err("expected a length above 0 and below its period, such as 1s/5s".to_owned());
    }
    Ok(Stall { length, period })
}

/// `refuse 5s-10s; freeze 12s-14s; delay 100ms 20s-30s; cut 40s`: faults with their times.
pub fn faults(text: &str) -> Read<Vec<Entry>> {
    text.split(';').map(str::trim).filter(|entry| !entry.is_empty()).map(fault).collect()
}

fn fault(text: &str) -> Read<Entry> {
    let expected = || {
        format!("expected faults such as 'refuse 5s-10s; freeze 12s-14s; delay 100ms 20s-30s; cut 40s', got '{text}'")
    };
    let words: Vec<_> = text.split_whitespace().collect();
    let (fault, when) = match words.as_slice() {
        ["refuse", when] => (TimedFault::Refuse, *when),
        ["freeze", when] => (TimedFault::Freeze, *when),
        ["delay", by, when] => (TimedFault::Delay(std_duration(by)?), *when),
        ["cut", at] => {
            let at = std_duration(at)?;
            return Ok(Entry { fault: TimedFault::Cut, from: at, to: at });
        }
        _ => return Err(expected()),
    };
    let (from, to) = when.split_once('-').ok_or_else(expected)?;
    let (from, to) = (std_duration(from)?, std_duration(to)?);
    if from >= to {
        return Err(format!("expected a beginning before the end, got '{when}'"));
    }
    Ok(Entry { fault, from, to })
}

fn std_duration(text: &str) -> Read<Duration> {
    duration(text).map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_have_their_times() {
        let secs = Duration::from_secs;
        let read = faults("refuse 5s-10s; delay 100ms 20s-30s;cut 40s;").unwrap();
        let delay = TimedFault::Delay(Duration::from_millis(100));
        assert_eq!(
            read,
            [
                Entry { fault: TimedFault::Refuse, from: secs(5), to: secs(10) },
                Entry { fault: delay, from: secs(20), to: secs(30) },
                Entry { fault: TimedFault::Cut, from: secs(40), to: secs(40) },
            ]
        );
        for wrong in ["refuse", "refuse 5s", "freeze 10s-5s", "burn 1s-2s", "delay 1s-2s", "cut 1s-2s", "refuse 5-x"] {
            assert!(faults(wrong).is_err(), "{wrong}");
        }
    }

    fn expanded(text: &str) -> Vec<String> {
        source_ips(text).unwrap().0.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn source_addresses_are_single_ones_and_ranges() {
        assert_eq!(
            expanded("127.0.0.1, 127.0.0.254-127.0.1.1"),
            ["127.0.0.1", "127.0.0.254", "127.0.0.255", "127.0.1.0", "127.0.1.1"]
        );
        assert_eq!(expanded("::1,fe80::1-fe80::2"), ["::1", "fe80::1", "fe80::2"]);
        assert_eq!(expanded("255.255.255.255-255.255.255.255"), ["255.255.255.255"]);
        assert_eq!(expanded("10.0.0.0-10.0.255.255").len(), MOST_SOURCE_IPS);
    }

    #[test]
    fn source_addresses_are_bounded_and_in_order() {
        for (text, expected) in [
            ("", "expected addresses such as"),
            ("10.0.0.1,", "expected addresses such as"),
            ("10.0.0.9-10.0.0.1", "write 10.0.0.1-10.0.0.9"),
            ("10.0.0.1-::1", "one of each"),
            ("::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "at most 65536"),
            ("10.0.0.0-10.0.255.255,10.1.0.0", "at most 65536"),
            ("10.0.0.0/8", "got '10.0.0.0/8'"),
        ] {
            let error = source_ips(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn a_host_and_its_port() {
        assert_eq!(host_and_port("[::1]:80"), Ok(("::1".to_owned(), 80)));
        assert_eq!(host_and_port("example.org:8080"), Ok(("example.org".to_owned(), 8080)));
        for text in ["example.org", "http://example.org:80", "a:80/", "me@a:80", ":80", "a:0"] {
            assert!(host_and_port(text).is_err(), "{text}");
        }
        assert_eq!(host_and_port("a b:80").unwrap_err(), "column 2: ' ' cannot stand in a host name");
        assert!(host("a:80").is_err());
        assert_eq!(host("Example.org"), Ok("example.org".to_owned()));
    }

    #[test]
    fn delays_and_stalls() {
        let ms = Duration::from_millis;
        assert_eq!(delay("0"), Ok(Delay::None));
        assert_eq!(delay("5ms"), Ok(Delay::Fixed(ms(5))));
        assert_eq!(delay("1ms..5ms"), Ok(Delay::Uniform { min: ms(1), max: ms(5) }));
        assert_eq!(delay("exp:5ms"), Ok(Delay::Exponential { mean: ms(5) }));
        assert_eq!(delay("5ms..1ms").unwrap_err(), "expected the shorter delay first, such as 1ms..5ms");
        assert_eq!(stall("1s/5s"), Ok(Stall { length: ms(1000), period: ms(5000) }));
        assert!(stall("5s/1s").is_err() && stall("0/1s").is_err() && stall("1s").is_err());
    }

    #[test]
    fn numbers_have_their_range() {
        assert_eq!(connections("10k"), Ok(10_000));
        assert_eq!(connections("0").unwrap_err(), "expected a number from 1 to 1000000");
        assert_eq!(pipeline("5G").unwrap_err(), "expected a number from 1 to 1024");
        assert!(requests("0").is_err() && positive_duration("0ms").is_err() && ratio("101%").is_err());
    }
}
