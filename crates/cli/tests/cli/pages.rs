//! Help, manual and completions come out of the same definitions.

use std::fs::{self, File};
use std::path::Path;
use std::process::Stdio;

use crate::program::{Directory, brunt, done, run};

/// The pages that a list leads to, in its order.
fn listed(text: &str) -> Vec<&str> {
    let places = text.split("(docs/").skip(1).filter_map(|rest| Some(rest.split_once(".md")?.0));
    places.filter(|name| !name.contains('/')).collect()
}

#[test]
fn the_guide_has_one_list_of_pages() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = |name: &str| fs::read_to_string(repository.join(name)).unwrap();
    let contents = run(["help"]).with_status(0).stdout;
    let topic = |line: &str| line.get(11..)?.split_whitespace().next().map(str::to_owned);
    let topics: Vec<_> = contents.lines().skip(1).filter_map(topic).collect();
    assert_eq!(listed(&text("packaging/site/SUMMARY.md")), topics);
    let readme = text("README.md");
    let (_, guide) = readme.split_once("## Guide").unwrap();
    assert_eq!(listed(guide), topics);
    let names = repository.join("docs").read_dir().unwrap().map(|entry| entry.unwrap().path());
    let pages = names.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let mut pages: Vec<_> = pages.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    pages.sort();
    let mut sorted = topics.clone();
    sorted.sort();
    assert_eq!(pages, sorted);
}

#[test]
fn names_of_joined_pages_lead_to_their_text() {
    let dir = Directory::new();
    run(["man", "--dir", &dir.path("man")]).with_status(0);
    let site =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/site/book.toml")).unwrap();
    let moved = site.lines().filter_map(|line| line.strip_prefix("\"/docs/")?.split_once(".html\" = \""));
    let moved: Vec<_> = moved.map(|(old, new)| (old, new.strip_suffix(".html\"").unwrap())).collect();
    let stubs = dir
        .names_in("man")
        .into_iter()
        .filter(|name| fs::read_to_string(dir.path(&format!("man/{name}"))).unwrap().starts_with(".so "));
    assert_eq!(stubs.count(), moved.len());
    for (old, new) in moved {
        assert_eq!(run(["help", old]).with_status(0).stdout, run(["help", new]).with_status(0).stdout, "{old}");
        let stub = fs::read_to_string(dir.path(&format!("man/brunt-{old}.7"))).unwrap();
        assert_eq!(stub, format!(".so man7/brunt-{new}.7\n"));
    }
}

#[test]
fn help_names_every_flag_under_its_heading() {
    for args in [["--help-all"].as_slice(), &["bench", "--help-all"]] {
        let help = run(args).with_status(0).stdout;
        for heading in ["Load:", "Request:", "Connection:", "TLS:", "Results:", "Plan:"] {
            assert!(help.contains(&format!("\n{heading}\n")), "{args:?} {heading}\n{help}");
        }
        for flag in [
            "-c, --connections <N>",
            "-t, --threads <N>",
            "-d, --duration <T>",
            "-n, --requests <N>",
            "-r, --rate <R>",
            "--arrivals <HOW>",
            "--seed <N>",
            "-w, --warmup <T>",
            "--timeout <T>",
            "--connect-timeout <T>",
            "--drain <T>",
            "-m, --method <M>",
            "-H, --header <K: V>",
            "--body <TEXT>",
            "--body-file <F>",
            "--basic <U:P>",
            "--body-lines <F>",
            "--url-lines <F>",
            "--order <HOW>",
            "--reconnect",
            "--pipeline <N>",
            "--connect-to <H:P>",
            "--unix-socket <F>",
            "--source-ip <LIST>",
            "-4, --ipv4",
            "-6, --ipv6",
            "-k, --insecure",
            "--cacert <F>",
            "--cert <F>",
            "--key <F|@NAME>",
            "--sni <NAME>",
            "--live[=<ADDR>]",
            "-v, --verbose",
            "--format <FORMAT>",
            "-o, --output <FILE>",
            "--html <FILE>",
            "--store <FILE>",
            "--no-save",
            "--name <NAME>",
            "--tag <K=V>",
            "--quiet",
            "--no-color",
            "--threshold <[NAME:]FIGURE OP VALUE [abort]>",
            "--ok-status <LIST>",
            "--plan <FILE>",
            "--write-plan <FILE>",
        ] {
            assert!(help.contains(flag), "{args:?} {flag}\n{help}");
        }
    }
}

/// Every command with the words that lead to it, as the manual has them.
fn commands() -> Vec<Vec<String>> {
    let dir = Directory::new();
    let path = dir.path("man");
    run(["man", "--dir", &path]).with_status(0);
    let pages = dir.names_in("man").into_iter().filter_map(|name| name.strip_suffix(".1").map(str::to_owned));
    let words = |page: String| match page.as_str() {
        "brunt" => Vec::new(),
        "brunt-coalesce-check" => vec!["coalesce-check".to_owned()],
        _ => page.split('-').skip(1).map(str::to_owned).collect(),
    };
    pages.map(words).collect()
}

#[test]
fn the_help_of_every_command_fits_a_screen() {
    let commands = commands();
    assert!(commands.len() > 30, "{commands:?}");
    for command in commands {
        let help = |flag: &str| {
            let args = command.iter().map(String::as_str).chain([flag]);
            done(brunt(args).env("COLUMNS", "80")).with_status(0).stdout
        };
        let short = help("--help");
        let (lines, widest) = (short.lines().count(), short.lines().map(|line| line.chars().count()).max().unwrap());
        assert!(lines <= 40 && widest <= 80, "{command:?}: {lines} lines of {widest} columns\n{short}");
        assert_eq!(short, help("-h"), "{command:?}");
        // What is left out is told, and is where that says.
        let whole = help("--help-all");
        assert!(whole.lines().count() >= lines || command.is_empty(), "{command:?}\n{whole}");
        let left_out = flags(&whole).into_iter().any(|flag| !flags(&short).contains(&flag) && flag != "--help-all");
        assert!(!left_out || short.contains("--help-all"), "{command:?} does not say where the rest is\n{short}");
    }
    let (short, whole) = (run(["--help"]).stdout, run(["--help-all"]).stdout);
    for flag in short.lines().filter_map(|line| line.strip_prefix("  -")?.split([' ', ',']).next()) {
        assert!(whole.contains(&format!("-{flag}")), "-{flag} is in the short help alone");
    }
}

/// The long flags that a help describes.
fn flags(help: &str) -> Vec<String> {
    let lines = help.lines().filter(|line| line.trim_start().starts_with('-'));
    let flags = lines.filter_map(|line| line.split([' ', ',']).find(|word| word.starts_with("--")));
    flags.map(|flag| flag.split(['=', '[']).next().unwrap().to_owned()).collect()
}

#[test]
fn every_flag_is_in_the_manual() {
    let manual = run(["man"]).with_status(0).stdout.replace('\\', "");
    for command in commands() {
        let args = command.iter().map(String::as_str).chain(["--help-all"]);
        for flag in flags(&done(&mut brunt(args)).with_status(0).stdout) {
            assert!(manual.contains(&flag), "{command:?} {flag}");
        }
    }
}

#[test]
fn defaults_in_the_help_are_the_commands_own() {
    for (command, duration) in [("find", "5s"), ("sweep", "5s"), ("compare", "3s")] {
        let help = run([command, "--help-all"]).with_status(0).stdout;
        assert!(help.contains(&format!("How long each run takes [default: {duration}]")), "{help}");
        assert!(!help.contains("[default: 10s, unless"), "{help}");
    }
}

#[test]
fn the_guide_is_there_offline() {
    let contents = run(["help"]).with_status(0).stdout;
    assert!(contents.contains(" scenarios "), "{contents}");
    assert!(contents.lines().count() <= 24 && contents.lines().all(|line| line.chars().count() <= 80), "{contents}");
    assert!(run(["help", "commands"]).with_status(0).stdout.contains("  sweep"));
    let page = run(["help", "gate"]).with_status(0).stdout;
    assert!(page.starts_with("Pass or fail\n") && page.contains("    [[kind ]name:]figure"), "{page}");
    assert!(page.lines().all(|line| !line.contains("](") && !line.contains("<!--")), "{page}");
    assert!(run(["help", "serve", "http"]).with_status(0).stdout.contains("--error-rate"));
    let wrong = run(["help", "scenarois"]).with_status(2).stderr;
    assert!(wrong.contains("did you mean brunt help scenarios?"), "{wrong}");
}

#[test]
fn the_whole_help_fits_a_terminal() {
    for args in [
        ["--help-all"].as_slice(),
        &["serve", "http", "--help-all"],
        &["grpc", "list", "--help-all"],
        &["find", "--help-all"],
        &["compare", "--help-all"],
        &["sweep", "--help-all"],
    ] {
        let help = run(args).with_status(0).stdout;
        let longest = help.lines().max_by_key(|line| line.chars().count()).unwrap();
        assert!(longest.chars().count() <= 120, "{args:?} {longest}");
    }
}

#[test]
fn the_schemas_are_printed() {
    for document in ["result", "decision", "config"] {
        let schema: serde_json::Value = serde_json::from_str(&run(["schema", document]).with_status(0).stdout).unwrap();
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    }
}

#[test]
fn the_version_is_that_of_the_package() {
    let first = concat!("brunt ", env!("CARGO_PKG_VERSION"));
    let short = run(["-V"]).with_status(0).stdout;
    assert!(short.starts_with(first) && short.lines().count() == 1, "{short}");
    let long = run(["--version"]).with_status(0).stdout;
    assert!(long.starts_with(short.trim_end()), "{long}");
    for line in [
        "protocols  grpc, grpcs, http, https, ",
        "scripts    LuaJIT 2.1",
        "formats    result 3, decision 2, plan 1, store 4, agents 12",
    ] {
        assert!(long.lines().any(|said| said.starts_with(line)), "{long}");
    }
}

/// Every page of the manual.
const PAGES: &[&str] = &[
    "brunt-agent.1",
    "brunt-agents.1",
    "brunt-beside.7",
    "brunt-changing.7",
    "brunt-check.1",
    "brunt-coalesce-check.1",
    "brunt-coalescing.7",
    "brunt-compare.1",
    "brunt-completions.1",
    "brunt-config.1",
    "brunt-ctl.1",
    "brunt-curl.1",
    "brunt-custom-protocol.7",
    "brunt-deciding.7",
    "brunt-demo.1",
    "brunt-doctor.1",
    "brunt-doubt.7",
    "brunt-editors.7",
    "brunt-find.1",
    "brunt-first.7",
    "brunt-gate.7",
    "brunt-grpc-describe.1",
    "brunt-grpc-list.1",
    "brunt-grpc.1",
    "brunt-grpc.7",
    "brunt-help.1",
    "brunt-http.7",
    "brunt-http2.7",
    "brunt-import-curl.1",
    "brunt-import-har.1",
    "brunt-import-k6.1",
    "brunt-import-openapi.1",
    "brunt-import-postman.1",
    "brunt-import.1",
    "brunt-import.7",
    "brunt-init.1",
    "brunt-install.7",
    "brunt-javascript.7",
    "brunt-llm.1",
    "brunt-llm.7",
    "brunt-load.7",
    "brunt-locust-jmeter.7",
    "brunt-lua.7",
    "brunt-machines.7",
    "brunt-man.1",
    "brunt-metrics.7",
    "brunt-moving.7",
    "brunt-other-tools.7",
    "brunt-proxy.1",
    "brunt-reference.7",
    "brunt-replay.1",
    "brunt-replay.7",
    "brunt-report.1",
    "brunt-report.7",
    "brunt-results.7",
    "brunt-rpc.7",
    "brunt-run.1",
    "brunt-runs-prune.1",
    "brunt-runs-rm.1",
    "brunt-runs.1",
    "brunt-scenarios.7",
    "brunt-schema.1",
    "brunt-serve-grpc.1",
    "brunt-serve-http.1",
    "brunt-serve-llm.1",
    "brunt-serve-thrift.1",
    "brunt-serve-ws.1",
    "brunt-serve.1",
    "brunt-settings.7",
    "brunt-show.1",
    "brunt-sockets.7",
    "brunt-stability.7",
    "brunt-streams.7",
    "brunt-sweep.1",
    "brunt-target.7",
    "brunt-tcp.7",
    "brunt-thresholds.7",
    "brunt-thrift.7",
    "brunt-types.1",
    "brunt-ui.1",
    "brunt-watch.7",
    "brunt-websocket.7",
    "brunt-wrk-scripts.7",
    "brunt.1",
];

#[test]
fn the_manual_has_a_page_for_each_command() {
    let manual = run(["man"]).with_status(0).stdout;
    for title in [
        "brunt",
        "brunt-config",
        "brunt-proxy",
        "brunt-coalesce-check",
        "brunt-serve",
        "brunt-serve-http",
        "brunt-grpc-list",
        "brunt-demo",
        "brunt-completions",
        "brunt-man",
    ] {
        assert!(manual.contains(&format!(".TH {title} 1 ")), "{title}\n{manual}");
    }
    assert!(manual.contains("\\-\\-error\\-rate"), "{manual}");
    let examples = ".SH EXAMPLES AND EXIT STATUS\n.nf\nExamples:\n  brunt demo ";
    assert!(manual.contains(examples), "each example stands in a line of its own\n{manual}");
    assert!(manual.contains(".TH brunt\\-gate 7 "), "{manual}");
    let dir = Directory::new();
    // A folder that is not there yet is made.
    let path = dir.path("share/man");
    assert_eq!(run(["man", "--dir", &path]).with_status(0).stdout, "");
    assert_eq!(dir.names_in("share/man"), PAGES);
}

#[test]
fn completions_know_flags_and_subcommands() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = run(["completions", shell]).with_status(0).stdout;
        assert!(script.contains("connect-timeout") && script.contains("completions"), "{shell}");
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    for args in [["man"].as_slice(), &["completions", "bash"], &["--help-all"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let done = done(brunt(args).stdout(writer).stderr(Stdio::piped()));
        assert_eq!((done.status, done.stderr.as_str()), (Some(0), ""), "{args:?}");
    }
}

#[test]
fn a_full_disk_is_an_error() {
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let done = done(brunt(["man"]).stdout(full()).stderr(Stdio::piped())).with_status(2);
    assert!(done.stderr.contains("cannot write to standard output: No space left on device"), "{}", done.stderr);
}
