//! Flags of other tools, from habit: an error leads to brunt's own flag.

use std::ffi::OsString;

use brunt_plan::secret::shown_url;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::args::values::RESULT_IN_JSON;
use crate::commands::WITH_RUNS;
use crate::foreign;

/// A flag of other tools: how it is written, whose it is, and how brunt says it.
struct Habit {
    flags: &'static [&'static str],
    whose: &'static str,
    /// An example in braces gives way to the value that the flag was given. What may be a secret has none.
    here: &'static str,
}

const HABITS: &[Habit] = &[
    Habit { flags: &["-z"], whose: "hey and oha", here: "how long a run takes is -d: brunt -d {10s} URL" },
    Habit {
        flags: &["-q", "--rps", "--qps", "--query-per-second", "--arrival-rate", "-R", "--rate-limit"],
        whose: "hey, oha and wrk2",
        here: "the rate is -r, in requests a second over all connections: brunt -r {2000} URL",
    },
    Habit {
        flags: &["-rate"],
        whose: "vegeta",
        here: "a rate is -r, and counts by the second: brunt -r {50} -d 10s URL",
    },
    Habit {
        flags: &["--vus", "--users"],
        whose: "k6 and Locust",
        here: "connections that ask one after the other are -c: brunt -c {50} URL; users who do more than one request are in a script: \
               brunt run SCRIPT (brunt help scenarios)",
    },
    Habit {
        flags: &["--iterations"],
        whose: "k6",
        here: "requests are counted by -n: brunt -n {10k} URL; iterations of users in a script by brunt.iterations (brunt help scenarios)",
    },
    Habit {
        flags: &["--rampup", "--ramp-up", "--stage", "--stages", "--spawn-rate"],
        whose: "k6, Locust and JMeter",
        here: "a rate may ramp and hold: brunt -r 0..2000/1m,2000/5m URL",
    },
    Habit { flags: &["--run-time"], whose: "Locust", here: "how long a run takes is -d: brunt -d {1m} URL" },
    Habit {
        flags: &["-f", "--locustfile"],
        whose: "Locust",
        here: "scenarios stand alone: brunt run SCRIPT.lua; brunt help locust-jmeter has Locust's words beside brunt's",
    },
    Habit {
        flags: &["--master", "--worker"],
        whose: "Locust",
        here: "many machines carry out one run as agents: brunt agent --nats URL on each (brunt help machines)",
    },
    Habit {
        flags: &["-T", "--content-type"],
        whose: "ab, hey and oha",
        here: "a header field is -H: brunt -H 'Content-Type: {application/json}' URL; --json sets it, too",
    },
    Habit {
        flags: &["-U"],
        whose: "hey",
        here: "a header field is -H: brunt -H 'User-Agent: {me}' URL; wrk2's -U is service time in the report",
    },
    Habit {
        flags: &["-D", "--postfile", "-body"],
        whose: "hey, oha and vegeta",
        here: "a body from a file is --body @FILE: brunt -X POST --body @{order.json} URL",
    },
    Habit {
        flags: &["-p"],
        whose: "ab, oha and autocannon",
        here: "a body from a file is --body @FILE: brunt -X POST --body @{order.json} URL; requests in flight on a connection are \
               --streams, and over HTTP/1.1 --pipeline",
    },
    Habit {
        flags: &["-a", "--auth"],
        whose: "hey and oha",
        here: "a name and a password are --basic: brunt --basic me:@PASSWORD URL takes it from the environment",
    },
    Habit {
        flags: &["-A"],
        whose: "ab, hey and oha",
        here: "a name and a password are --basic: brunt --basic me:@PASSWORD URL takes it from the environment; a header field \
               is -H: brunt -H 'Accept: text/html' URL",
    },
    Habit { flags: &["-C"], whose: "ab", here: "a cookie is -b: brunt -b name=value URL" },
    Habit { flags: &["-i", "--head"], whose: "ab", here: "the method is -X: brunt -X HEAD URL" },
    Habit {
        flags: &["-l"],
        whose: "ab and bombardier",
        here: "answers may differ in length, and percentiles are always shown",
    },
    Habit {
        flags: &["-e", "-g", "--csv"],
        whose: "ab and Locust",
        here: "results are -o, and the name's end tells the format: brunt -o {run.csv} -o run.html URL",
    },
    Habit {
        flags: &["-j", "--output-format"],
        whose: "oha",
        here: "the result on standard output is --format: brunt --format {json} URL; -o run.json writes it into a file",
    },
    Habit { flags: &["--url"], whose: "curl", here: "the URL stands alone: brunt {http://localhost:8080/}" },
    Habit {
        flags: &["--http2", "--h2", "--h2c"],
        whose: "hey, oha and curl",
        here: "the version of HTTP is --http: brunt --http 2 URL",
    },
    Habit { flags: &["--http-version"], whose: "oha", here: "the version of HTTP is --http: brunt --http {2} URL" },
    Habit {
        flags: &["--disable-keepalive", "--no-keepalive", "--keepalive"],
        whose: "hey, oha and vegeta",
        here: "a connection for each request is --reconnect",
    },
    Habit {
        flags: &["--keepalive-time", "--keepalive-timeout"],
        whose: "grpcurl",
        here: "brunt sends no keepalive pings over HTTP/2: a call without an answer ends by --timeout, a stream that stalls by --stall-timeout",
    },
    Habit {
        flags: &["--proxy-user", "--preproxy", "--socks5", "--socks5-hostname", "--noproxy"],
        whose: "curl",
        here: "a proxy is -x http://USER:PASSWORD@HOST:PORT, by CONNECT alone, for the whole run",
    },
    Habit {
        flags: &["--disable-compression"],
        whose: "hey and oha",
        here: "brunt asks for no compression unless told --compressed",
    },
    Habit {
        flags: &["--redirect", "--redirects", "--disable-redirects"],
        whose: "hey, oha and vegeta",
        here: "a redirect is an answer, and never followed: aim at where it leads (brunt --once URL shows it)",
    },
    Habit {
        flags: &["--burst-delay", "--burst-rate"],
        whose: "oha",
        here: "a rate may change in steps: brunt -r 0/1s,500/1s,0/1s URL",
    },
    Habit { flags: &["--no-tui"], whose: "oha", here: "the live view goes with --quiet" },
    Habit {
        flags: &["--latency-correction"],
        whose: "oha",
        here: "with -r, latency is counted from when a request was due, always",
    },
    Habit {
        flags: &["--summary-export", "--out", "--report"],
        whose: "k6",
        here: "results are -o, in as many files as you like: brunt -o {run.json} -o run.html URL",
    },
    Habit { flags: &["--http-debug"], whose: "k6", here: "--once shows one request or iteration with its answers" },
    Habit {
        flags: &["--host"],
        whose: "Locust and hey",
        here: "the target is the URL; another name for it is a header field: brunt -H 'Host: {shop.test}' URL",
    },
    Habit {
        flags: &["--targets", "--urls-from-file", "--urls", "--url-file", "--urls-file"],
        whose: "vegeta, oha, siege and others",
        here: "paths from a file are --url-lines: brunt --url-lines {FILE} URL",
    },
    Habit {
        flags: &["--workers", "--max-workers", "--max-connections", "--cpus"],
        whose: "vegeta and hey",
        here: "connections are -c, and threads -t",
    },
    Habit {
        flags: &["--laddr"],
        whose: "vegeta",
        here: "the address to connect from is --source-ip: brunt --source-ip {10.0.0.5} URL",
    },
    Habit {
        flags: &["--root-certs"],
        whose: "vegeta",
        here: "authorities' certificates are --cacert: brunt --cacert {FILE} URL",
    },
    Habit {
        flags: &["--headless"],
        whose: "Locust",
        here: "there is nothing to leave out: brunt shows a page only with --live",
    },
];

/// Flags of proxies that do what `brunt proxy` leaves to them.
const OF_PROXY: &[Habit] = &[
    Habit {
        flags: &["--proxy-protocol", "--accept-proxy", "--send-proxy"],
        whose: "HAProxy and others",
        here: "brunt proxy does not speak the PROXY protocol: put HAProxy or Envoy before it, and name that by --trust-proxy {ADDRESS}",
    },
    Habit {
        flags: &["--balance", "--lb-policy", "--backend", "--backends", "--upstream", "--upstreams"],
        whose: "HAProxy, Envoy and others",
        here: "brunt proxy has one upstream: put HAProxy or Envoy behind it, which choose among many",
    },
    Habit {
        flags: &["--health-check", "--health-checks", "--health-uri", "--check"],
        whose: "HAProxy, Envoy and others",
        here: "brunt proxy does not ask whether its upstream is well (--metrics counts how it fails): put HAProxy or Envoy behind it",
    },
    Habit {
        flags: &["--http2-upstream", "--upstream-http2", "--upstream-protocol", "--h2c"],
        whose: "Envoy and others",
        here: "brunt proxy asks its upstream over HTTP/1.1: put Envoy or HAProxy behind it, which ask over HTTP/2",
    },
    Habit {
        flags: &["--client-ca", "--client-cacert", "--verify-client", "--tls-client-ca", "--mtls"],
        whose: "nginx, HAProxy and others",
        here: "brunt proxy does not ask for clients' certificates: put nginx, HAProxy or Envoy before it, and name that by --trust-proxy",
    },
    Habit {
        flags: &["--connect-protocol", "--enable-connect-protocol", "--websocket-h2", "--h2-websocket"],
        whose: "Envoy and others",
        here: "brunt proxy passes WebSocket on over HTTP/1.1: put Envoy or HAProxy before it, which take it over HTTP/2",
    },
];

/// What stands in the place of a value: a flag, what its value holds, and how brunt has it.
struct Value {
    flag: &'static str,
    holds: fn(&str) -> bool,
    here: &'static str,
}

/// Values that other tools give to a flag of the same name. Only one that is a rate is repeated: others may be secrets.
const VALUES: &[Value] = &[
    Value {
        flag: "--duration",
        holds: |value| !value.starts_with(|c: char| c.is_ascii_digit()),
        here: "-d is how long a run takes, such as 10s; a body is --body: brunt -X POST --body TEXT URL",
    },
    Value {
        flag: "--rate",
        holds: |value| value.contains("://"),
        here: "-r is a rate, such as -r 2000; that failed requests end nothing, as with ab's -r, is always so",
    },
    Value {
        flag: "--rate",
        holds: |value| matches!(value.rsplit_once('/'), Some((_, "s" | "sec" | "second"))),
        here: "a rate counts by the second, without a unit: brunt -r {50} -d 10s URL",
    },
    Value {
        flag: "--warmup",
        holds: |value| value.contains("://"),
        here: "-w is how long a warm-up takes, such as -w 5s; requests in flight at the end are waited for, as with oha's -w (--drain)",
    },
    Value {
        flag: "--method",
        holds: |value| value.contains(':'),
        here: "-X is the method, such as -X POST; through a proxy, as with ab's -X, is -x http://HOST:PORT",
    },
];

/// The habits that are answered behind this command, or without one: `brunt runs -l` has nothing to do with ab.
fn habits(command: Option<&str>) -> impl Iterator<Item = &'static Habit> {
    let makes_runs =
        command.is_none_or(|name| WITH_RUNS.contains(&name) || matches!(name, "run" | "replay" | "check" | "demo"));
    let of_proxy = if command == Some("proxy") { OF_PROXY } else { &[] };
    of_proxy.iter().chain(if makes_runs { HABITS } else { &[] })
}

/// What is wrong before flags are read: a command of another tool, or a flag of one with a single dash (`-duration=5s`),
/// which would be read as flags of one letter. `flags` are the long flags of `command`.
pub(super) fn refused(words: &[OsString], command: Option<&str>, flags: &[String]) -> Option<String> {
    let words: Vec<_> =
        words.iter().skip(1).take_while(|word| *word != "--").filter_map(|word| word.to_str()).collect();
    if let Some(said) = words.first().and_then(|word| foreign::command(word)) {
        return Some(said);
    }
    words.iter().find_map(|word| single_dashed(word, &words, command, flags))
}

/// What to type instead of a long flag with a single dash.
fn single_dashed(word: &str, words: &[&str], command: Option<&str>, flags: &[String]) -> Option<String> {
    let name = word.strip_prefix('-')?.split('=').next()?;
    if name.starts_with('-') || name.chars().count() < 2 {
        return None;
    }
    let habit = |flag: &str| habits(command).find(|habit| habit.flags.contains(&flag));
    if let Some(Habit { whose, here, .. }) = habit(&format!("-{name}")).or_else(|| habit(&format!("--{name}"))) {
        let here = with_own(here, given(words, &format!("-{name}")));
        return Some(format!("-{name} is a flag of {whose}; {here}"));
    }
    let is_known = flags.iter().any(|flag| flag == name);
    is_known.then(|| format!("long flags have two dashes: --{name}"))
}

/// A habit's answer in the place of "unexpected argument" or of an invalid value; any other error as it is. `command` is
/// the one behind `brunt`, if there is one, and `words` are the whole command line.
pub(super) fn with_way(error: clap::Error, words: &[OsString], command: Option<&str>) -> clap::Error {
    if let (ErrorKind::ValueValidation, Some(ContextValue::String(arg)), Some(ContextValue::String(value))) =
        (error.kind(), error.get(ContextKind::InvalidArg), error.get(ContextKind::InvalidValue))
    {
        let flag = arg.split(' ').next().unwrap_or(arg);
        let way = VALUES.iter().find(|known| known.flag == flag && (known.holds)(value));
        let told = way.map(|way| with_own(way.here, own_value(flag, value)));
        return told.map_or(error, |told| clap::Error::raw(ErrorKind::ValueValidation, told + "\n"));
    }
    if error.kind() == ErrorKind::InvalidValue
        && matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(arg)) if arg.starts_with("--json "))
    {
        let told = format!("--json takes a body: --json '{{\"id\": 1}}'; {RESULT_IN_JSON}\n");
        return clap::Error::raw(ErrorKind::InvalidValue, told);
    }
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else { return error };
    if command == Some("proxy") && unknown.contains("://") {
        let told = "brunt proxy has one upstream: put HAProxy or Envoy behind it, which choose among many\n";
        return clap::Error::raw(ErrorKind::UnknownArgument, told);
    }
    let flag = unknown.split('=').next().unwrap_or(unknown);
    match habits(command).find(|habit| habit.flags.contains(&flag)) {
        Some(Habit { whose, here, .. }) => {
            let words: Vec<_> = words.iter().filter_map(|word| word.to_str()).collect();
            let here = with_own(here, given(&words, flag));
            clap::Error::raw(ErrorKind::UnknownArgument, format!("{flag} is a flag of {whose}; {here}\n"))
        }
        None => error,
    }
}

/// The value that `flag` was given: behind it, or as a word of its own.
fn given(words: &[&str], flag: &str) -> Option<String> {
    let at = words.iter().position(|word| word.starts_with(flag))?;
    let behind = words.get(at)?.strip_prefix(flag)?;
    let value = match behind.strip_prefix('=') {
        Some(value) => value,
        None if behind.is_empty() => words.get(at + 1).filter(|value| !value.starts_with('-'))?,
        // `-R2000`, and not `--rpsx`.
        None if !flag.starts_with("--") => behind,
        None => return None,
    };
    own_value(flag, value)
}

/// A value as brunt takes it, without what may be secret; `None` if it has to be another one.
fn own_value(flag: &str, value: &str) -> Option<String> {
    const MOST: usize = 200;
    let is_shown = !value.is_empty() && value.chars().count() <= MOST && !value.contains(char::is_control);
    match (flag, value.split_once('/')) {
        (flag, Some((number, "s" | "1s" | "sec" | "second"))) if flag.ends_with("rate") => Some(number.to_owned()),
        // Another unit: its number is not one for a second.
        (flag, Some(_)) if flag.ends_with("rate") => None,
        // A lone URL is the target, and no value of the flag before it.
        (flag, _) if value.contains("://") && flag != "--url" => None,
        _ => is_shown.then(|| shown_url(value).into_owned()),
    }
}

/// `here` with `own` in the place of its example. Outside of quotes it is quoted for a shell.
fn with_own(here: &str, own: Option<String>) -> String {
    let parts = here.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)));
    let Some((before, (example, after))) = parts else { return here.to_owned() };
    let is_quoted = before.matches('\'').count() % 2 == 1;
    let own = match own {
        Some(own) if !is_quoted => shlex::try_quote(&own).map(std::borrow::Cow::into_owned).ok(),
        own => own.filter(|own| !own.contains('\'')),
    };
    format!("{before}{}{after}", own.as_deref().unwrap_or(example))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the command line says to these words.
    fn said(line: &str) -> String {
        let definitions = crate::parser::definitions(&crate::built_in()).unwrap();
        let words = shlex::split(line).unwrap();
        let command = words.first().filter(|word| definitions.find_subcommand(word).is_some()).cloned();
        let all: Vec<OsString> = ["brunt".to_owned()].into_iter().chain(words).map(OsString::from).collect();
        let flags: Vec<_> = definitions.get_arguments().filter_map(clap::Arg::get_long).map(str::to_owned).collect();
        if let Some(said) = refused(&all, command.as_deref(), &flags) {
            return said;
        }
        let given = definitions.try_get_matches_from(&all).map_err(|error| with_way(error, &all, command.as_deref()));
        given.err().map_or_else(String::new, |error| error.to_string())
    }

    #[test]
    fn habits_of_other_tools_lead_to_the_line_to_type() {
        for (line, expected) in [
            ("-z 7s http://a/", "-d 7s"),
            ("-n 1000 -q 50 http://a/", "-r 50 "),
            ("--rps 10 http://a/", "-r 10 "),
            ("--vus 5 -d 1s http://a/", "-c 5 "),
            ("-R300 http://a/", "-r 300 "),
            ("-h2 http://a/", "--http 2"),
            ("-host b http://a/", "-H 'Host: b'"),
            ("-body=order.json http://a/", "--body @FILE"),
            ("-disable-keepalive http://a/", "--reconnect"),
            ("--iterations=10 http://a/", "-n 10 "),
            ("--stage 1m:10 http://a/", "-r 0..2000/1m"),
            ("-T application/json http://a/", "-H 'Content-Type"),
            ("-D 'my order.json' http://a/", "--body @'my order.json'"),
            ("-A me:pw http://a/", "--basic"),
            ("-a me:pw http://a/", "--basic"),
            ("-C a=b http://a/", "-b name=value"),
            ("-i http://a/", "-X HEAD"),
            ("--url http://me:pw@a/", "brunt 'http://[redacted]@a/'"),
            ("--http2 http://a/", "--http 2"),
            ("--disable-keepalive http://a/", "--reconnect"),
            ("--no-tui http://a/", "--quiet"),
            ("--latency-correction http://a/", "was due"),
            ("--summary-export=a.json http://a/", "-o a.json"),
            ("--targets=a.txt http://a/", "--url-lines a.txt "),
            ("--headless http://a/", "--live"),
            ("--urls a.txt http://a/", "--url-lines a.txt "),
            ("--url-file http://a/", "--url-lines FILE "),
            ("-rate=70/1s http://a/", "-r 70 "),
            ("-rate=70/1m http://a/", "-r 50 "),
            ("-T \"it's\" http://a/", "Content-Type: application/json"),
        ] {
            let said = said(line);
            assert!(said.contains(expected) && said.contains(" is a flag of "), "{line}: {said}");
            assert!(!said.contains("me:pw"), "{said}");
        }
    }

    #[test]
    fn what_a_proxy_leaves_to_others_is_refused_by_name() {
        for (line, expected) in [
            ("proxy http://a --accept-proxy", "the PROXY protocol: put HAProxy or Envoy before it"),
            ("proxy http://a --balance roundrobin", "one upstream"),
            ("proxy http://a http://me:pw@b", "one upstream: put HAProxy or Envoy behind it"),
            ("proxy http://a --health-uri=/up", "whether its upstream is well"),
            ("proxy http://a --h2c", "over HTTP/1.1"),
            ("proxy http://a --mtls", "clients' certificates"),
            ("proxy http://a --enable-connect-protocol", "WebSocket on over HTTP/1.1"),
        ] {
            let said = said(line);
            assert!(said.contains(expected) && !said.contains("me:pw"), "{line}: {said}");
        }
        // It is another's word behind another command.
        assert!(!said("http://a/ --balance x").contains("upstream"));
    }

    #[test]
    fn data_in_the_place_of_a_duration_leads_to_the_body() {
        let data = said("-X POST -d hunter2 http://a/");
        assert!(data.contains("--body TEXT") && !data.contains("hunter2"), "{data}");
        assert!(said("-d 10x http://a/").contains("expected a duration"));
    }

    #[test]
    fn a_long_flag_with_one_dash_leads_to_two() {
        for line in ["-duration=5s http://a/", "-c 2 -duration 5s http://a/", "attack -duration=5s"] {
            let said = said(line);
            let way = if line.starts_with("attack") { "--url-lines -" } else { "two dashes: --duration" };
            assert!(said.contains(way), "{line}: {said}");
        }
        assert!(said("runs -l").contains("unexpected argument"));
        for line in [
            "-c2 -t1 -d5s http://a/",
            "-kv -n10 http://a/",
            "-n 1 http://a/ -s a.lua -- -duration",
            "--body=-rate http://a/",
        ] {
            assert_eq!(said(line), "", "{line}");
        }
    }

    #[test]
    fn values_of_other_tools_lead_to_the_flag() {
        for (line, way) in [
            ("-r 70/s http://a/", "-r 70 "),
            ("-n 100 -r http://me:hunter2@a/", "-r 2000"),
            ("-n 100 -w http://a/", "-w 5s"),
            ("-n 100 -X proxy:3128 http://a/", "through a proxy"),
            ("-n 100 -m 10 http://a/", "--streams"),
        ] {
            let said = said(line);
            assert!(said.contains(way) && !said.contains("hunter2"), "{line}: {said}");
        }
        assert_eq!(said("-r 50/1s http://a/"), "");
    }

    #[test]
    fn what_works_already_is_no_habit_to_refuse() {
        let definitions = crate::parser::definitions(&crate::built_in()).unwrap();
        let known: Vec<String> = definitions
            .get_arguments()
            .flat_map(|arg| {
                let short =
                    arg.get_short_and_visible_aliases().unwrap_or_default().into_iter().map(|c| format!("-{c}"));
                let long =
                    arg.get_long_and_visible_aliases().unwrap_or_default().into_iter().map(|name| format!("--{name}"));
                short.chain(long).collect::<Vec<_>>()
            })
            .collect();
        let taken = HABITS.iter().flat_map(|habit| habit.flags).filter(|flag| known.iter().any(|known| known == *flag));
        assert_eq!(taken.collect::<Vec<_>>(), [&""; 0]);
        for line in [
            "-t2 -c64 -d10s --latency http://a/",
            "-n 10 -k http://a/",
            "-X POST -H 'a: b' --data x http://a/",
            "--insecure http://a/",
        ] {
            assert_eq!(said(line), "", "{line}");
        }
    }
}
