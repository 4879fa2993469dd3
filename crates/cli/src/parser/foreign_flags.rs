//! Flags of other tools, from habit: an error leads to brunt's own flag.

use std::ffi::OsString;

use brunt_plan::secret::shown_url;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::args::values::RESULT_IN_JSON;
use crate::commands::WITH_RUNS;
use crate::foreign;

/// A flag of other tools: how it is written, whose it is, and how brunt says it.
struct Habit {
    flags: Vec<&'static str>,
    whose: &'static str,
    here: &'static str,
}

/// The habits of a table's part: a line has the flags, whose they are, and brunt's words.
fn listed(part: &'static str) -> impl Iterator<Item = Habit> {
    part.lines().filter(|line| line.starts_with('-')).filter_map(|line| {
        let mut cells = line.splitn(3, " | ");
        Some(Habit { flags: cells.next()?.split(' ').collect(), whose: cells.next()?, here: cells.next()? })
    })
}

/// The habits of who makes load; of who runs a proxy, which `brunt proxy` leaves to others; and of who starts a server.
fn tables() -> [&'static str; 3] {
    let all = include_str!("habits.txt");
    let (of_load, rest) = all.split_once("[proxy]").unwrap_or((all, ""));
    let (of_proxy, of_serve) = rest.split_once("[serve]").unwrap_or((rest, ""));
    [of_load, of_proxy, of_serve]
}

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
fn habits(command: Option<&str>) -> impl Iterator<Item = Habit> {
    let makes_runs =
        command.is_none_or(|name| WITH_RUNS.contains(&name) || matches!(name, "run" | "replay" | "check" | "demo"));
    let [of_load, of_proxy, of_serve] = tables();
    let own = match command {
        Some("proxy") => of_proxy,
        Some("serve") => of_serve,
        _ => "",
    };
    listed(own).chain(listed(if makes_runs { of_load } else { "" }))
}

/// What is wrong before flags are read: a command of another tool, or a flag of one with a single dash (`-duration=5s`),
/// which would be read as flags of one letter. `flags` are the long flags of `command`.
pub(super) fn refused(words: &[OsString], command: Option<&str>, flags: &[String]) -> Option<String> {
    let words: Vec<_> =
        words.iter().skip(1).take_while(|word| *word != "--").filter_map(|word| word.to_str()).collect();
    if let Some(said) = words.first().and_then(|word| foreign::command(word)) {
        // The line to type stands there twice, the second time for targets on standard input.
        let own = ["-rate", "-duration", "-rate", "-duration"].map(|flag| given(&words, flag));
        return Some(own.into_iter().fold(said, |said, own| with_own(&said, own)));
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
        return Some(format!("-{name} is a flag of {whose}; {here}{}", line_to_type(words, command)));
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
            let line = line_to_type(words.get(1..).unwrap_or_default(), command);
            clap::Error::raw(ErrorKind::UnknownArgument, format!("{flag} is a flag of {whose}; {here}{line}\n"))
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

/// The whole line with each flag of another tool in brunt's words, on a line of its own. Empty where nothing stands beside that flag.
fn line_to_type(words: &[&str], command: Option<&str>) -> String {
    retyped(words, command).map_or_else(String::new, |line| format!("\n\n  brunt {line}"))
}

/// `None` where a flag has no such words, or a value may be secret, too.
fn retyped(words: &[&str], command: Option<&str>) -> Option<String> {
    let quoted = |text: &str| shlex::try_quote(text).map(std::borrow::Cow::into_owned).ok();
    let mut typed = Vec::new();
    let mut flags = 0;
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let flag = word.split('=').next().unwrap_or(word);
        let is_it = |of_other: &&str| *of_other == flag || of_other.strip_prefix('-') == Some(flag);
        if let Some(habit) = habits(command).find(|habit| flag.starts_with('-') && habit.flags.iter().any(is_it)) {
            // `brunt -r {2000} URL`: what stands before the example is the flag.
            let (_, told) = habit.here.split_once("brunt ")?;
            let (own, _) = told.split_once('{').filter(|(own, _)| !own.contains(['\'', '@']))?;
            typed.push(format!("{own}{}", quoted(&given(words, flag)?)?));
            flags += 1;
            if !word.contains('=') {
                rest.next();
            }
        } else if word.contains("://") {
            typed.push(quoted(&shown_url(word))?);
        } else if is_plain(word) {
            flags += 1;
            typed.push((*word).to_owned());
        } else {
            return None;
        }
    }
    (flags > 1).then(|| typed.join(" "))
}

/// Whether a word is a flag without a value, a quantity or a method, and so no secret.
fn is_plain(word: &str) -> bool {
    // A value may stand behind a short flag: `-uroot`.
    let is_long = word.starts_with("--") && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
    let is_flag = is_long || (word.starts_with('-') && word.len() == 2);
    let is_quantity = word.len() <= 12
        && word.starts_with(|first: char| first.is_ascii_digit())
        && word
            .trim_end_matches(|last: char| last.is_ascii_alphabetic())
            .bytes()
            .all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'/'));
    let is_method = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"].contains(&word);
    is_flag || is_quantity || is_method
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
            ("attack -rate=100 -duration=30s", "brunt -r 100 -d 30s URL"),
            ("attack -rate 100/s", "brunt -r 100 -d 5s URL"),
            ("attack", "brunt -r 50 -d 5s URL"),
            ("--requests-per-second 5 http://a/", "-r 5 "),
            ("-T \"it's\" http://a/", "Content-Type: application/json"),
        ] {
            let said = said(line);
            assert!(said.contains(expected) && said.contains(" of "), "{line}: {said}");
            assert!(!said.contains("me:pw"), "{said}");
        }
    }

    #[test]
    fn the_whole_line_is_told_with_what_was_typed_beside() {
        for (line, expected) in [
            ("-n 2000 -c 50 -q 20 http://a/", "\n\n  brunt -n 2000 -c 50 -r 20 http://a/\n"),
            ("-z 2s -c 10 http://a/", "\n\n  brunt -d 2s -c 10 http://a/\n"),
            ("--vus 10 -z 3s http://me:pw@a/", "\n\n  brunt -c 10 -d 3s 'http://[redacted]@a/'\n"),
            ("-X POST --rps=5 http://a/", "\n\n  brunt -X POST -r 5 http://a/\n"),
        ] {
            let said = said(line);
            assert!(said.ends_with(expected), "{line}: {said}");
        }
        // What may be a secret is not repeated, and a lone flag is told by its example.
        for line in [
            "-H token:hunter2 -z 2s http://a/",
            "-bhunter -z 2s http://a/",
            "-z 2s http://a/",
            "-A me:hunter2 -c 2 http://a/",
        ] {
            let said = said(line);
            assert!(!said.contains("\n\n") && !said.contains("hunter"), "{line}: {said}");
        }
    }

    #[test]
    fn each_long_flag_of_the_tools_that_people_come_from_is_answered() {
        // As their help has them: README.md of oha, vegeta, plow, bombardier and autocannon, `--help` of wrk, wrk2, h2load, siege, k6 and Locust.
        let tools = [
            "--connections --duration --threads --script --header --latency --timeout --version --rate --u_latency --batch_latency",
            "--burst-delay --burst-rate --rand-regex-url --max-repeat --latency-correction --no-tui --json --fps --method --http-version --http2 --host \
             --disable-compression --redirect --disable-keepalive --no-pre-lookup --ipv6 --ipv4 --insecure --connect-to --disable-color --unix-socket \
             --vsock-addr --stats-success-breakdown --urls-from-file --dump-urls --db-url --output-format --output --proxy --proxy-header \
             --proxy-http-version --proxy-http2 --aws-session --aws-sigv4 --cacert --cert --key --no-color --debug --time-unit \
             --wait-ongoing-requests-after-deadline --connect-timeout --form",
            "--cpus --profile --body --cert --chunked --connections --dns-ttl --duration --format --h2c --header --http2 --insecure --keepalive --key \
             --laddr --lazy --max-body --max-connections --max-workers --name --output --prometheus-addr --proxy-header --rate --redirects \
             --resolvers --root-certs --session-tickets --targets --timeout --unix-socket --workers",
            "--concurrency --requests --duration --interval --seconds --json --body --stream --method --header --host --content --cert --key --insecure \
             --listen --timeout --dial-timeout --req-timeout --resp-timeout --socks5 --auto-open-browser --clean --no-clean --summary --rate",
            "--connections --pipelining --duration --amount --socketPath --workers --warmup --on-port --method --timeout --title --body --form --input \
             --headers --har --bailout --maxConnectionRequests --maxOverallRequests --connectionRate --overallRate --ignoreCoordinatedOmission \
             --reconnectRate --no-progress --latency --idReplacement --json --forever --servername --excludeErrorStats --expectBody \
             --renderStatusCodes --debug",
            "--connections --timeout --latencies --method --body --body-file --stream --cert --key --insecure --disableKeepAlives --header --requests \
             --duration --rate --fasthttp --http1 --http2 --print --no-print --format",
            "--vus --duration --iterations --stage --paused --no-setup --no-teardown --max-redirects --batch --batch-per-host --rps --user-agent \
             --http-debug --insecure-skip-tls-verify --no-connection-reuse --no-vu-connection-reuse --min-iteration-duration --throw --blacklist-ip \
             --block-hostnames --summary-trend-stats --summary-time-unit --system-tags --tag --console-output --discard-response-bodies --local-ips \
             --dns --include-system-env-vars --compatibility-mode --type --no-thresholds --no-summary --summary-export --traces-output --out --linger \
             --no-usage-report --execution-segment --execution-segment-sequence --config --address --log-output --log-format --profiling-enabled \
             --verbose --quiet --no-color",
            "--requests --clients --threads --input-file --max-concurrent-streams --max-frame-size --window-bits --connection-window-bits --header \
             --ciphers --no-tls-proto --data --rate --rate-period --duration --warm-up-time --connection-active-timeout \
             --connection-inactivity-timeout --timing-script-file --base-uri --alpn-list --npn-list --h1 --header-table-size \
             --encoder-header-table-size --log-file --qlog-file-base --connect-to --rps --groups --no-udp-gso --max-udp-payload-size --ktls --sni \
             --verbose",
            "--config --verbose --quiet --get --print --concurrent --internet --benchmark --time --log --file --rc --mark --delay --header --user-agent \
             --content-type --json-output --no-parser --no-follow --reps",
            "--locustfile --host --users --spawn-rate --run-time --headless --web-port --web-host --autostart --autoquit --csv --csv-full-history --html \
             --json --only-summary --print-stats --loglevel --logfile --exit-code-on-error --stop-timeout --tags --exclude-tags --expect-workers \
             --master --worker --master-host --master-port",
        ];
        let definitions = crate::parser::definitions(&crate::built_in()).unwrap();
        let names =
            definitions.get_arguments().flat_map(|arg| arg.get_long_and_visible_aliases().into_iter().flatten());
        let hidden = definitions.get_arguments().filter_map(clap::Arg::get_all_aliases).flatten();
        let known: Vec<String> = names.chain(hidden).map(|name| format!("--{name}")).collect();
        let answered = |flag: &str| {
            known.iter().any(|known| known == flag)
                || flag == "--version"
                || said(&format!("{flag} http://a/")).contains(" is a flag of ")
        };
        let flags = tools.iter().flat_map(|flags| flags.split_whitespace());
        assert_eq!(flags.filter(|flag| !answered(flag)).collect::<Vec<_>>(), [""; 0]);
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
        let habits = || listed(tables()[0]).flat_map(|habit| habit.flags);
        let taken = habits().filter(|flag| known.iter().any(|known| known == flag));
        assert_eq!(taken.collect::<Vec<_>>(), [""; 0]);
        let twice = habits().enumerate().filter(|(place, flag)| habits().skip(place + 1).any(|other| other == *flag));
        assert_eq!(twice.map(|(_, flag)| flag).collect::<Vec<_>>(), [""; 0]);
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
