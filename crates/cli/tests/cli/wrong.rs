//! Every way to be wrong before a run begins: the error names the flag or the file (with line and column where there
//! are some) and what would have been right, and the exit status is 2.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

use crate::program::{Directory, Done, brunt, done as done_by, run};

const URL: &str = "http://127.0.0.1:9/";

#[track_caller]
fn refused(args: &[&str], expected: &str) -> Done {
    let done = run(args);
    assert_eq!(done.status, Some(2), "{args:?}: {done:#?}");
    // Long messages are wrapped at the width of the terminal.
    let said = done.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains(expected), "{args:?}\nexpected: {expected}\nsaid: {said}");
    assert!(!said.contains("panicked"), "{said}");
    assert!(done.stderr.lines().all(|line| line.trim() != "tip:"), "{args:?}: a tip of no words:\n{}", done.stderr);
    assert_eq!(done.stdout, "", "{args:?}");
    done
}

#[test]
fn flags_that_are_wrong() {
    for (args, expected) in [
        // Load
        ("-c 0", "invalid value '0' for '--connections <N>': expected a number from 1 to 1000000"),
        ("-c many", "'--connections <N>': expected a whole number such as 64, 10k, 2M or 1G, got 'many'"),
        ("-c 1.5", "expected a whole number such as 64, 10k, 2M or 1G, got '1.5'"),
        ("-c -5", "unexpected argument '-5' found"),
        ("-t 0", "'--threads <N>': expected a number from 1 to 1024"),
        (
            "-t 8 -c 4",
            "-t 8 is more than -c 4, and each thread needs a connection: give -c 8 or more, or -t 4 or fewer",
        ),
        ("-t 100", "-t 100 is more than -c 64"),
        ("-d 10x", "'--duration <T>': expected a duration such as 500µs, 20ms, 10s, 1m30s or 1h, got '10x'"),
        ("-d 0s", "'--duration <T>': expected a duration above 0"),
        ("-d 1000h", "expected a duration of at most 720h, got '1000h'"),
        ("-n 0", "'--requests <N>': expected a number above 0"),
        ("-n 1e3", "expected a whole number such as 64, 10k, 2M or 1G, got '1e3'"),
        ("-r fast", "'--rate <R>': expected a rate such as 2000, or ramps and holds such as 1000..2000/60s,2000/30s"),
        ("-r 0", "no call is ever due"),
        ("-r 1k/1m,5x/1m", "in '5x/1m' expected a number"),
        ("-r 1..2", "in '1..2' a length is missing, such as the /60s of 1000..2000/60s"),
        ("--arrivals poisson", "there is no rate: give one with -r"),
        ("--arrivals often -r 1", "expected uniform, poisson or bursty:0.5"),
        ("--seed x", "invalid value 'x' for '--seed <N>'"),
        ("-w -1s", "unexpected argument '-1' found"),
        ("-w soon", "'--warmup <T>': expected a duration"),
        ("--timeout 0", "'--timeout <T>': expected a duration above 0"),
        ("--connect-timeout 0", "'--connect-timeout <T>': expected a duration above 0"),
        ("--drain x", "'--drain <T>': expected a duration"),
        ("--pipeline 0", "'--pipeline <N>': expected a number from 1 to 1024"),
        ("--pipeline 2k", "'--pipeline <N>': expected a number from 1 to 1024"),
        ("--reconnect --pipeline 2", "--reconnect and --pipeline cannot go together"),
        // Request
        ("-m GE(T", "'--method <M>': column 3: expected a method such as GET"),
        ("-H NoColon", "-H number 1: expected 'Name: value', found no ':' in it"),
        ("-H A:1 -H B(:2", "-H number 2, column 2: '(' cannot stand in the name of a header field"),
        ("-H :v", "-H number 1, column 1: expected 'Name: value', found no name before the ':'"),
        ("-H X:\u{7}", "-H 'X', column 3: '\\u{7}' cannot stand in the value of a header field"),
        ("--body a --body-file f", "'--body <TEXT>' cannot be used with '--body-file <F>'"),
        ("--body-file f --body-lines f", "'--body-file <F>' cannot be used with '--body-lines <F>'"),
        ("--order random", "there are none: give --url-lines or --body-lines"),
        ("--order up", "[possible values: sequential, random]"),
        ("--basic me", "--basic: expected USER:PASSWORD (an empty password is USER:), found no ':' in it"),
        ("--ok-status 2x", "expected statuses such as 200, 2xx or 200-399, separated by commas, got '2x'"),
        // Connection
        ("--connect-to 10.0.0.7", "'--connect-to <H:P>': expected a host and a port such as 10.0.0.7:8080"),
        ("--connect-to a:x", "'--connect-to <H:P>': column 3: expected a port from 1 to 65535, got 'x'"),
        ("--connect-to a:1 --unix-socket s", "cannot be used with"),
        ("--source-ip 10.0.0", "expected addresses such as 10.0.0.1 or 10.0.0.1-10.0.0.9, got '10.0.0'"),
        ("--source-ip 10.0.0.9-10.0.0.1", "'10.0.0.9-10.0.0.1' ends before it begins: write 10.0.0.1-10.0.0.9"),
        ("--source-ip 10.0.0.0-10.9.0.0", "expected at most 65536 addresses in all"),
        (
            "--source-ip 10.0.0.0-10.0.255.255 --source-ip 10.1.0.0",
            "expected at most 65536 addresses in all, got 65537",
        ),
        ("--source-ip ::1 --unix-socket s", "cannot be used with"),
        ("--source-ip ::1 -4", "--source-ip ::1 cannot be used with -4: give IPv4 addresses, or leave -4 out"),
        ("--source-ip 192.0.2.1", "cannot connect from 192.0.2.1; --source-ip takes addresses of this machine"),
        ("-4 -6", "'--ipv4' cannot be used with '--ipv6'"),
        // TLS
        ("-k --cacert f", "'--insecure' cannot be used with '--cacert <F>'"),
        ("--cert f", "--cert: cannot read f"),
        ("--key f", "--key needs the certificate of that private key: give it with --cert"),
        ("--sni a:1", "'--sni <NAME>': expected a host name such as example.org"),
        // Results
        ("--threshold p99", "a comparison is missing: <, <=, >, >= or =="),
        ("--threshold p99<50", "expected a duration with its unit, such as 50ms"),
        ("--threshold latency<5ms", "'latency' is not a figure"),
        ("--format xml", "[possible values: text, wrk, vllm, json, csv, junit, html, markdown]"),
        ("--quiet -v", "'--quiet' cannot be used with '--verbose'"),
        ("-o result.pdf", "-o: expected a file name that ends in .txt, .json, .csv, .xml (junit), .html or .md"),
        ("-o -", "-o: expected a file name that ends in .txt, .json, .csv, .xml"),
        ("--name 7", "'--name <NAME>': expected a name of up to 200 characters that is not a number, and not 'last'"),
        ("--tag branch", "'--tag <K=V>': expected a key and a value such as branch=main"),
        ("--store f --no-save", "'--store <FILE>' cannot be used with '--no-save'"),
        ("--nonsense", "unexpected argument '--nonsense' found"),
        ("--duratoin 5s", "a similar argument exists: '--duration'"),
        // What other tools have.
        ("-L", "brunt follows no redirects in a flood"),
        ("--location", "brunt follows no redirects in a flood"),
        ("-x socks5://proxy:1080", "does not speak SOCKS"),
        ("--proxy https://me:hunter2@proxy:3128", "does not speak TLS to the proxy itself"),
        ("--proxy http://proxy:3128 --unix-socket s", "cannot be used with '--unix-socket <F>'"),
        ("--json {} --body x", "'--json <TEXT|@F>' cannot be used with '--body <TEXT>'"),
        ("--basic a:b -H authorization:x", "would both be sent: leave one out"),
        ("--body @/nonexistent", "cannot read /nonexistent"),
    ] {
        let args: Vec<_> = args.split(' ').chain([URL]).collect();
        refused(&args, expected);
    }
}

#[test]
fn urls_that_are_wrong() {
    for (url, expected) in [
        ("http://", "URL 'http://', column 8: expected a host name or address, got nothing"),
        ("http://a b/", "column 9: ' ' cannot stand in a host name"),
        ("http://a:70000/", "column 10: expected a port from 1 to 65535, got '70000'"),
        ("http://a/b c", "column 11: ' ' cannot stand in a URL: write it as %20"),
        ("http://[::g]/", "column 9: expected an IPv6 address, got '::g'"),
        ("://a/", "column 1: expected a scheme such as http"),
    ] {
        refused(&[url], expected);
    }
    let done = refused(&["http://me:hunter2@a b/"], "column");
    assert!(!done.stderr.contains("hunter2"), "{}", done.stderr);
    refused(&["--basic", "a:b", "http://me:hunter2@localhost/"], "--basic and the URL both name a user");
    refused(&["-c", "5"], "no URL is given: name what to aim at, such as http://localhost:8080/");
    refused(&["http://a/", "http://b/"], "expected one URL, got 2: put values with spaces in quotes");
    let done = refused(&["-H", "Authorization:", "Bearer", "hunter2", "http://a/"], "expected one URL, got 3");
    assert!(!done.stderr.contains("hunter2"), "{}", done.stderr);
    refused(&[], "brunt -r 200 -d 30s URL");
}

#[test]
fn commands_that_are_mistyped() {
    refused(
        &["swep", URL],
        "swep is not a command: did you mean brunt sweep? (A host of that name is written http://swep/)",
    );
    refused(&["hlep"], "did you mean brunt help?");
    let done = refused(&["--nonsense", "5s", URL], "unexpected argument '--nonsense' found");
    assert!(!done.stderr.contains("similar"), "{}", done.stderr);
}

#[test]
fn files_that_cannot_be_used() {
    let dir = Directory::new();
    let key_only = dir.file("key.pem", "-----BEGIN PRIVATE KEY-----\nMC4=\n-----END PRIVATE KEY-----\n");
    let locked =
        dir.file("locked.pem", "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMC4=\n-----END ENCRYPTED PRIVATE KEY-----\n");
    let certificate = dir.file("cert.pem", "-----BEGIN CERTIFICATE-----\nMC4=\n-----END CERTIFICATE-----\n");
    let binary = dir.file("binary.pem", b"line 1\nline 2 \xff\n");
    let (missing, directory) = (dir.path("missing"), dir.path(""));
    for (args, expected) in [
        (["--body-file", &missing].as_slice(), format!("cannot read {missing}: No such file or directory")),
        (&["--body-lines", &missing], format!("cannot read {missing}: No such file")),
        (&["--url-lines", &directory], format!("cannot read {directory}: Is a directory")),
        (&["--body-file", "/dev/zero"], "cannot read /dev/zero: it is longer than 1 GiB".to_owned()),
        (&["--cacert", &missing], format!("--cacert: cannot read {missing}")),
        (&["--cacert", &binary], format!("--cacert: {binary}: expected certificates in PEM")),
        (&["--cacert", &key_only], format!("--cacert: {key_only}: expected certificates in PEM")),
        (&["--cert", &certificate, "--key", &missing], format!("--key: cannot read {missing}")),
        (&["--cert", &certificate, "--key", &certificate], format!("--key: {certificate}: expected a private key")),
        (&["--cert", &certificate, "--key", &locked], "the key is encrypted; decrypt it first".to_owned()),
        (&["--cert", &key_only, "--key", &key_only], format!("--cert: {key_only}: expected certificates in PEM")),
        (&["-o", "/nonexistent/run.json"], "cannot write /nonexistent/run.json: No such file".to_owned()),
        (&["--write-plan", "/nonexistent/p"], "cannot write /nonexistent/p: No such file".to_owned()),
        (&["--write-plan", &directory], format!("cannot write {directory}: it is a directory; name a file in it")),
        (&["--dry-run", "-o", "/proc/run.csv"], "cannot write /proc/run.csv".to_owned()),
    ] {
        refused(&[args, &[URL]].concat(), &expected);
    }
    assert_eq!(dir.names(), ["binary.pem", "cert.pem", "key.pem", "locked.pem"]);
}

#[test]
fn requests_that_cannot_be_made() {
    let dir = Directory::new();
    let urls = dir.file("urls", "/a\nGET /b c\n");
    let empty = dir.file("empty", "");
    for (args, expected) in [
        (["ftp://localhost/"].as_slice(), "no protocol is called 'ftp'; there are grpc, grpcs, http, ".to_owned()),
        (&["--url-lines", &urls, URL], format!("{urls}, line 2: '/b c', column 3: ' ' cannot stand in a URL")),
        (&["--url-lines", &empty, URL], empty.clone()),
        (&["--body-lines", &empty, URL], empty.clone()),
        (&["-H", "Authorization: Bearer @NOT_SET", URL], "environment variable NOT_SET, which is not set".to_owned()),
        (&["--basic", "me:@NOT_SET", URL], "environment variable NOT_SET, which is not set".to_owned()),
    ] {
        refused(args, &expected);
        refused(&[&["--dry-run"], args].concat(), &expected);
    }
    let plan = dir.path("plan.json");
    run(["--dry-run", "--write-plan", &plan, "http://me:hunter2@localhost/"]).with_status(0);
    refused(&["--plan", &plan], "the plan holds no secrets");
}

#[test]
fn plans_that_cannot_be_read() {
    let dir = Directory::new();
    let plan = dir.path("plan.json");
    run(["--dry-run", "--write-plan", &plan, URL]).with_status(0);
    let right = std::fs::read_to_string(&plan).unwrap();
    for (from, to, expected) in [
        (
            "\"version\": 1",
            "\"version\": 99",
            "the plan has format version 99, this brunt reads version 1: write it again with --write-plan",
        ),
        ("\"connections\": 64", "\"connections\": -1", "line"),
        ("\"connections\": 64", "\"connectoins\": 64", "unknown field `connectoins`"),
        (
            "\"connections\": 64",
            "\"connections\": 0",
            "connections must be between 1 and 1000000, not 0: change connections in the plan",
        ),
        ("\"pipeline\": 1", "\"pipeline\": 2000", "between 1 and 1024, not 2000: change pipeline in the plan"),
        (
            "\"duration_ns\": 10000000000",
            "\"duration_ns\": null",
            "give it an end with stop.duration_ns, stop.requests",
        ),
        (
            "\"source_ips\": []",
            "\"source_ips\": [\"192.0.2.1\"]",
            "transport.source_ips in the plan takes addresses of",
        ),
        ("\"closed\": {}", "\"open\": {\"profile\": \"fast\", \"arrivals\": \"uniform\"}", "expected a rate such as"),
    ] {
        assert!(right.contains(from), "{right}");
        let wrong = dir.file("wrong.json", right.replacen(from, to, 1));
        refused(&["--plan", &wrong], expected);
    }
    let cut = dir.file("cut.json", "{\n  \"version\": 1,\n  oops");
    refused(&["--plan", &cut], &format!("{cut} is not a plan: line 3, column 3: key must be a string"));
    refused(&["--plan", &dir.path("none")], "cannot read");
}

#[test]
fn a_value_that_a_scenario_lacks_is_given_where_the_run_is_written() {
    let (dir, lacks) = (Directory::new(), "scenario.lua:2: the script was given no value 'PLAN'");
    let script = "local brunt = require 'brunt'\nbrunt.env('PLAN')\nbrunt.http{ base = 'http://127.0.0.1:9' }\n\
                  brunt.scenario('s', function() end):inject { brunt.users(1, '1s') }\n";
    let (script, plan) = (dir.file("scenario.lua", script), dir.path("plan.json"));
    let done = refused(&["run", &script], lacks);
    assert!(
        done.stderr.contains("give it with --env PLAN=VALUE, or --env PLAN for that of the environment"),
        "{}",
        done.stderr
    );
    done_by(brunt(["run", &script, "--env", "PLAN", "--dry-run"]).env("PLAN", "a")).with_status(0);
    run(["run", &script, "--env", "PLAN=a", "--dry-run", "--write-plan", &plan]).with_status(0);
    let whole = std::fs::read_to_string(&plan).unwrap();
    let lacking = dir.file("lacking.json", whole.replace("\"PLAN\":", "\"OTHER\":"));
    let done = refused(&["--plan", &lacking], lacks);
    assert!(done.stderr.contains("give it with scenarios.env.PLAN in the plan"), "{}", done.stderr);
}

#[test]
fn a_kept_plan_takes_no_flags_that_would_change_it() {
    for flag in ["-c5", "-d5s", "-n5", "-r5", "--timeout=5s", "-mPUT", "-HA:b", "--body=x", "-k", "-4", "--reconnect"] {
        refused(&["--plan", "plan.json", flag], "'--plan <FILE>' cannot be used with");
    }
    refused(&["--plan", "plan.json", URL], "cannot be used with");
}

#[test]
fn subcommands_that_are_used_wrongly() {
    for (args, expected) in [
        (["-c", "5", "serve", "http"].as_slice(), "serve is a command, which stands before all flags"),
        (&["serve"], "Usage: brunt serve <COMMAND>"),
        (&["serve", "gopher"], "unrecognized subcommand 'gopher'"),
        (&["serve", "http", "here"], "expected an address such as 127.0.0.1:8080, [::1]:8080, :8080, 8080 or unix:"),
        (&["serve", "http", "--workers", "0"], "expected a number from 1 to 1024"),
        (&["serve", "http", "--delay", "5ms..1ms"], "expected the shorter delay first, such as 1ms..5ms"),
        (&["serve", "http", "--delay", "2h", "0"], "delay: expected at most 1 hour"),
        (&["serve", "http", "--error-rate", "2"], "expected a share from 0 to 1, or from 0% to 100%"),
        (&["serve", "http", "--stall", "5s/1s"], "expected a length above 0 and below its period, such as 1s/5s"),
        (&["serve", "http", "--close-after", "0"], "expected a number above 0"),
        (&["serve", "http", "--body-size", "big"], "expected a size in bytes such as 512, 64k, 1M or 2G, got 'big'"),
        (&["serve", "http", "--write-cert", "f"], "--tls"),
        (&["serve", "http", "--tls", "--tls-cert", "f"], "--tls-key"),
        (&["serve", "http", "--tls", "--tls-cert", "/no", "--tls-key", "/no", "0"], "cannot serve: cannot read /no"),
        (&["serve", "http", "192.0.2.1:1"], "cannot listen on 192.0.2.1:1"),
        (&["demo", "-c", "0"], "expected a number from 1 to 1000000"),
        (&["demo", "http://a/"], "unexpected argument 'http://a/'"),
        (&["completions", "cmd"], "[possible values: bash, elvish, fish, powershell, zsh]"),
        (&["man", "--dir", "/dev/null/man"], "--dir /dev/null/man: "),
    ] {
        refused(args, expected);
    }
}

#[test]
fn flags_of_a_search_that_are_wrong() {
    for (args, expected) in [
        ("", "brunt find needs to know what the target must meet: give --threshold"),
        ("--threshold p99<1s -r 5", "-r cannot be used with brunt find: the rate is what is searched for"),
        ("--threshold p99<1s -n 5", "-n cannot be used with brunt find"),
        ("--threshold p99<1s -v", "--verbose is for a single run (brunt bench), which this command does not make"),
        ("--threshold p99<1s --from 0", "'--from <R>': expected a rate from 1 to 10M calls a second"),
        ("--threshold p99<1s --from 20 --highest 10", "--highest 10 is below --from 20"),
        ("--threshold p99<1s --precision 0", "'--precision <SHARE>': expected a share from 0.5% to 50%"),
        ("--threshold p99<1s --repeats 0", "'--repeats <N>': expected a number from 1 to 100"),
        ("--threshold p99<1s --format wrk", "[possible values: text, json, csv, junit, markdown, html]"),
        (
            "--threshold p99<1s -o a.pdf",
            "expected a file name that ends in .txt, .json, .csv, .xml (junit), .md or .html",
        ),
        ("--threshold p99<1s -t 8 -c 4", "-t 8 is more than -c 4"),
        ("--threshold p99<1s --keep /dev/null/x", "--keep: cannot make /dev/null/x"),
    ] {
        let words: Vec<_> = ["find"].into_iter().chain(args.split_whitespace()).chain([URL]).collect();
        refused(&words, expected);
    }
    refused(&["find", "--threshold", "p99<1s"], "no URL is given");
    refused(&["find", "--threshold", "p99<1s", URL, URL], "expected one URL, got 2");
}

#[test]
fn a_url_is_no_script_and_the_line_for_it_is_told() {
    refused(&["run", "http://me:pw@127.0.0.1:9/"], "a load on a URL is: brunt 'http://[redacted]@127.0.0.1:9/'");
}

#[test]
fn flags_of_a_comparison_that_are_wrong() {
    let other = "http://127.0.0.1:10/";
    for (args, expected) in [
        (vec![], "brunt compare needs two targets, one target with --a and --b, or two results"),
        (vec![URL], "what is to be compared with it? Give a second target"),
        (vec![URL, other, URL], "expected two targets or results, got 3"),
        (vec![URL, other, "--rounds", "9"], "'--rounds <N>': expected a number from 10 to 10000"),
        (vec![URL, "--a", "-c many"], "--a: invalid value 'many' for '--connections <N>'"),
        (vec![URL, "--b", "-H 'X"], "--b: a quote is not closed"),
        (vec![URL, "--a", "--nonsense"], "--a: unexpected argument '--nonsense' found"),
        (vec![URL, other, "--fail-if", "p99>50ms"], "expected a factor such as 1.05x"),
        (vec![URL, "/dev"], "cannot be compared: name two targets, or two results"),
        (vec!["/nothing/a.json", "/nothing/b.json"], "there is no file or directory /nothing/a.json"),
        (vec!["old/", "new/"], "there is no file or directory old/ (a target of that name is written http://old/)"),
        (vec!["a.json", "b.json"], "cannot read a.json"),
        (vec!["a.json", "b.json", "-c", "4"], "stored results cannot be run again"),
        (vec!["/dev", "/dev"], "/dev holds no results"),
    ] {
        refused(&[&["compare"], args.as_slice()].concat(), expected);
    }
    let dir = Directory::new();
    let file = dir.file("a.json", "{}");
    refused(&["compare", &file, &file], "expected a result that brunt wrote");
}

#[test]
fn flags_of_a_sweep_that_are_wrong() {
    for (args, expected) in [
        ("", "brunt sweep needs several values of one flag: -c 1..4096"),
        ("-c 4", "brunt sweep needs several values of one flag"),
        ("-c 1..4 -t 1,2", "one flag is varied at a time, and these have several values: connections, threads"),
        ("-c 4..1", "'--connections <VALUES>': expected values such as 1..4096 (doubling)"),
        ("-c 0..4", "a value must be above 0"),
        ("-c 1..9M", "--connections=1048576: expected a number from 1 to 1000000"),
        ("-t 1..8 -c 4", "--threads=8: -t 8 is more than -c 4"),
        ("--vary nonsense=1,2", "--nonsense=1: unexpected argument '--nonsense' found"),
        ("--vary nonsense", "expected a flag and its values, such as message=16..65536"),
        ("--vary =1,2", "expected the name of a flag before the ="),
        ("-c 1..4 -v", "--verbose is for a single run"),
    ] {
        let words: Vec<_> = ["sweep"].into_iter().chain(args.split_whitespace()).chain([URL]).collect();
        refused(&words, expected);
    }
}

#[test]
fn words_that_are_no_text_are_refused() {
    let (no_text, no_flag) = (OsStr::from_bytes(b"\xff"), OsStr::from_bytes(b"-\xff"));
    for words in [vec![no_text], vec![no_flag], vec![OsStr::new("runs"), no_flag], vec![OsStr::new("bench"), no_text]] {
        let said = run(&words).with_status(2).stderr;
        assert!(said.starts_with("error: ") && !said.contains("panicked"), "{words:?}: {said}");
    }
}
