//! What hands that know other tools type, and how brunt has it: a flag that brunt has not got leads to the line to type.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// A flag of other tools: how it is written, whose it is, and how brunt says it.
struct Habit {
    flags: &'static [&'static str],
    whose: &'static str,
    here: &'static str,
}

const HABITS: &[Habit] = &[
    Habit { flags: &["-z"], whose: "hey and oha", here: "how long a run takes is -d: brunt -d 10s URL" },
    Habit {
        flags: &["-q", "--rps", "--qps", "--query-per-second", "--arrival-rate"],
        whose: "hey and oha",
        here: "requests a second, over all connections, are -r: brunt -r 2000 URL",
    },
    Habit {
        flags: &["--vus", "--users"],
        whose: "k6 and Locust",
        here: "connections that ask one after the other are -c: brunt -c 50 URL; users who do more than one request are in a script: \
               brunt run SCRIPT (brunt help scenarios)",
    },
    Habit {
        flags: &["--iterations"],
        whose: "k6",
        here: "requests are counted by -n: brunt -n 10k URL; iterations of users in a script by brunt.iterations (brunt help scenarios)",
    },
    Habit {
        flags: &["--rampup", "--ramp-up", "--stage", "--stages"],
        whose: "k6 and JMeter",
        here: "a rate may ramp and hold: brunt -r 0..2000/1m,2000/5m URL",
    },
    Habit {
        flags: &["-T", "--content-type"],
        whose: "ab, hey and oha",
        here: "a header field is -H: brunt -H 'Content-Type: application/json' URL; --json sets it, too",
    },
    Habit {
        flags: &["-D", "-p", "--postfile"],
        whose: "hey and ab",
        here: "a body from a file is --body @FILE: brunt -X POST --body @order.json URL",
    },
    Habit {
        flags: &["-a", "-A", "--auth"],
        whose: "ab, hey and oha",
        here: "a name and a password are --basic: brunt --basic me:@PASSWORD URL takes it from the environment",
    },
    Habit { flags: &["-C"], whose: "ab", here: "a cookie is -b: brunt -b name=value URL" },
    Habit { flags: &["-i", "--head"], whose: "ab", here: "the method is -X: brunt -X HEAD URL" },
    Habit { flags: &["--url"], whose: "curl", here: "the URL stands alone: brunt http://localhost:8080/" },
    Habit {
        flags: &["--http2", "--h2"],
        whose: "oha and curl",
        here: "the version of HTTP is --http: brunt --http 2 URL",
    },
    Habit {
        flags: &["--disable-keepalive", "--no-keepalive"],
        whose: "hey and oha",
        here: "a connection for each request is --reconnect",
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
        here: "results are -o, in as many files as you like: brunt -o run.json -o run.html URL",
    },
    Habit {
        flags: &["--host"],
        whose: "Locust and hey",
        here: "the target is the URL; another name for it is a header field: brunt -H 'Host: shop.test' URL",
    },
    Habit {
        flags: &["--targets"],
        whose: "vegeta",
        here: "paths from a file are --url-lines: brunt --url-lines FILE URL",
    },
    Habit { flags: &["--workers", "--max-workers"], whose: "vegeta", here: "connections are -c, and threads -t" },
    Habit {
        flags: &["--headless"],
        whose: "Locust",
        here: "there is nothing to leave out: brunt shows a page only with --live",
    },
];

/// A habit's answer in the place of "unexpected argument"; any other error as it is.
pub(super) fn with_way(error: clap::Error) -> clap::Error {
    // Other tools have -d for data. The value may be a secret, and is not repeated.
    if let (ErrorKind::ValueValidation, Some(ContextValue::String(arg)), Some(ContextValue::String(value))) =
        (error.kind(), error.get(ContextKind::InvalidArg), error.get(ContextKind::InvalidValue))
        && arg.starts_with("--duration")
        && !value.starts_with(|c: char| c.is_ascii_digit())
    {
        let way = "-d is how long a run takes, such as 10s; a body is --body: brunt -X POST --body TEXT URL\n";
        return clap::Error::raw(ErrorKind::ValueValidation, way);
    }
    if error.kind() != ErrorKind::UnknownArgument {
        return error;
    }
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else { return error };
    let flag = unknown.split('=').next().unwrap_or(unknown);
    match HABITS.iter().find(|habit| habit.flags.contains(&flag)) {
        Some(Habit { whose, here, .. }) => {
            clap::Error::raw(ErrorKind::UnknownArgument, format!("{flag} is a flag of {whose}; {here}\n"))
        }
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the command line says to these words.
    fn said(line: &str) -> String {
        let definitions = crate::parser::definitions(&crate::built_in()).unwrap();
        let words = ["brunt".to_owned()].into_iter().chain(shlex::split(line).unwrap());
        definitions
            .try_get_matches_from(words)
            .map_err(with_way)
            .err()
            .map_or_else(String::new, |error| error.to_string())
    }

    #[test]
    fn habits_of_other_tools_lead_to_the_line_to_type() {
        for (line, expected) in [
            ("-z 10s http://a/", "-d 10s"),
            ("-n 1000 -q 50 http://a/", "-r 2000"),
            ("--rps 10 http://a/", "-r 2000"),
            ("--vus 5 -d 1s http://a/", "-c 50"),
            ("run --vus 5 a.lua", "brunt help scenarios"),
            ("--iterations 10 http://a/", "-n 10k"),
            ("--stage 1m:10 http://a/", "-r 0..2000/1m"),
            ("-T application/json http://a/", "-H 'Content-Type"),
            ("-D order.json http://a/", "--body @FILE"),
            ("-A me:pw http://a/", "--basic"),
            ("-a me:pw http://a/", "--basic"),
            ("-C a=b http://a/", "-b name=value"),
            ("-i http://a/", "-X HEAD"),
            ("--url http://a/", "brunt http://"),
            ("--http2 http://a/", "--http 2"),
            ("--disable-keepalive http://a/", "--reconnect"),
            ("--no-tui http://a/", "--quiet"),
            ("--latency-correction http://a/", "was due"),
            ("--summary-export=a.json http://a/", "-o run.json"),
            ("--targets=a.txt http://a/", "--url-lines"),
            ("--headless http://a/", "--live"),
        ] {
            let said = said(line);
            assert!(said.contains(expected) && said.contains(" is a flag of "), "{line}: {said}");
            assert!(!said.contains("me:pw"), "{said}");
        }
    }

    #[test]
    fn data_in_the_place_of_a_duration_leads_to_the_body() {
        let data = said("-X POST -d hunter2 http://a/");
        assert!(data.contains("--body TEXT") && !data.contains("hunter2"), "{data}");
        assert!(said("-d 10x http://a/").contains("expected a duration"));
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
