//! The performance gates for GitHub and GitLab, run as a runner does: their steps, by a shell.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use brunt_testbed::server::{Delay, Server, ServerConfig};

use rustix::process::Signal;

use crate::program::{Directory, Running, done, until};
use crate::runs;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A target that answers at once.
fn target() -> (Server, String) {
    runs::target(ServerConfig::default())
}

/// The text below a line of YAML that ends with `|`, without its indentation.
fn block(yaml: &str, head: &str) -> String {
    let mut lines = yaml.lines().skip_while(|line| line.trim() != head).skip(1).peekable();
    let indent = lines.peek().unwrap().chars().take_while(|c| *c == ' ').count();
    let lines = lines.take_while(|line| line.starts_with(&" ".repeat(indent)));
    lines.flat_map(|line| [&line[indent..], "\n"]).collect()
}

/// The values of the action's inputs: those given, and the defaults of all others.
fn inputs(action: &str, given: &[(&str, &str)]) -> Vec<(String, String)> {
    let section = block(action, "inputs:");
    let names = section.lines().filter(|line| !line.starts_with(' ')).map(|line| line.trim_end_matches(':'));
    names
        .map(|name| {
            let default = block(&section, &format!("{name}:"));
            let default = default.lines().find_map(|line| line.strip_prefix("default: "));
            let default = default.map_or_else(String::new, |text| text.trim_matches('"').to_owned());
            let given = given.iter().find(|(given, _)| *given == name).map(|(_, value)| (*value).to_owned());
            (name.to_owned(), given.unwrap_or(default))
        })
        .collect()
}

/// The action's step, with its exit status, its summary and its outputs.
fn acted(dir: &Directory, given: &[(&str, &str)]) -> (i32, String, String) {
    let action = std::fs::read_to_string(root().join("action/action.yml")).unwrap();
    let inputs = inputs(&action, given);
    let script = block(&action, "run: |").replace("${{ github.action_path }}", "nowhere");
    let mut command = Command::new("bash");
    command.args(["--noprofile", "--norc", "-e", "-o", "pipefail", "-c", &script]).current_dir(dir.path("."));
    for line in block(&action, "env:").lines() {
        let (name, value) = line.split_once(": ").unwrap();
        let input = value.strip_prefix("${{ inputs.").unwrap().strip_suffix(" }}").unwrap();
        let (_, value) = inputs.iter().find(|(name, _)| name == input).unwrap();
        command.env(name, value);
    }
    let (summary, output) = (dir.file("summary", ""), dir.file("output", ""));
    command.env("GITHUB_ACTION_PATH", root().join("action")).env("GITHUB_STEP_SUMMARY", &summary);
    let done = done(command.env("GITHUB_OUTPUT", &output));
    let read = |path: &str| std::fs::read_to_string(path).unwrap();
    (done.status.unwrap_or(-1), read(&summary), read(&output))
}

#[test]
fn the_action_passes_and_fails_with_its_thresholds() {
    let dir = Directory::new();
    let (_server, url) = target();
    let common = [("brunt", env!("CARGO_BIN_EXE_brunt")), ("target", &*url), ("duration", "300ms")];
    let with = |more: &[(&'static str, &'static str)]| acted(&dir, &[&common[..], more].concat());
    let (status, summary, output) =
        with(&[("flags", "-r 50 -H 'X-Some: a b'"), ("thresholds", "p50<9s\n  error_rate<50%\n")]);
    assert_eq!(status, 0, "{summary}");
    assert!(summary.starts_with("### Performance: passed") && summary.contains("p50<9s"), "{summary}");
    assert!(output.contains("status=0") && output.contains("summary=brunt-gate/summary.md"), "{output}");
    for file in ["result.json", "junit.xml", "report.html"] {
        assert!(Path::new(&dir.path(&format!("brunt-gate/{file}"))).is_file(), "{file}");
    }
    let (status, summary, output) = with(&[("flags", "-n 20 -c 1"), ("thresholds", "p50<1ns"), ("folder", "other")]);
    assert_eq!(status, 1, "{summary}");
    assert!(summary.starts_with("### Performance: failed (exit status 1)") && output.contains("status=1"), "{summary}");
    // A quote in a threshold is no end of a word, and what is no threshold is told.
    let hostile = [("flags", "-n 20 $(touch owned) '; touch owned; '"), ("thresholds", "p50<'; touch owned; '")];
    for hostile in [&hostile[..1], &[("flags", "-n 20 -c 1"), hostile[1]][..]] {
        assert_eq!((with(hostile).0, Path::new(&dir.path("owned")).exists()), (2, false), "{hostile:?}");
    }
}

#[test]
fn the_action_compares_with_an_old_build() {
    let dir = Directory::new();
    let ((_new, url), (_old, baseline)) = (target(), target());
    let inputs = [
        ("brunt", env!("CARGO_BIN_EXE_brunt")),
        ("target", &url),
        ("baseline", &baseline),
        ("duration", "200ms"),
        ("round", "50ms"),
        ("flags", "-n 20 -c 1 -w 0s"),
        ("thresholds", ""),
    ];
    let (status, summary, _) = acted(&dir, &[&inputs[..], &[("fail-if", "error_rate > +90%")]].concat());
    assert_eq!(status, 0, "{summary}");
    assert!(summary.starts_with("### Performance: passed") && summary.contains("# B compared with A"), "{summary}");
    // Thresholds that hold are no reason to call a gate green that is not.
    let few = [("fail-if", "p99.9 > 9x"), ("folder", "few")];
    let (status, summary, _) = acted(&dir, &[&inputs[..], &few].concat());
    assert_eq!(status, 2, "{summary}");
    assert!(summary.starts_with("### Performance: could not be compared (exit status 2)"), "{summary}");
    assert!(
        summary.contains("--fail-if 'p99.9 > 9x' needs 5,000 calls in each run, and there are 20: give -n 5000"),
        "{summary}"
    );
    // Of a flood nobody knows beforehand.
    let flood = [("fail-if", "p99.9 > 9x"), ("folder", "flood"), ("flags", "-c 1 -w 0s")];
    let slow = runs::target(ServerConfig { delay: Delay::Fixed(Duration::from_millis(5)), ..ServerConfig::default() });
    let ends = [("target", slow.1.as_str()), ("baseline", slow.1.as_str())];
    let (status, summary, _) = acted(&dir, &[&flood[..], &ends, &inputs].concat());
    assert_eq!(status, 5, "{summary}");
    assert!(
        summary.starts_with("### Performance: could not be judged, by the runner or for too few calls"),
        "{summary}"
    );
    assert!(summary.contains("- ❔ `p99.9 > 9x`: cannot be judged: "), "{summary}");
}

/// Markdown without what is folded.
fn unfolded(markdown: &str) -> String {
    let mut depth = 0_usize;
    let shown = markdown.lines().filter(|line| {
        let was = depth;
        depth = depth + line.matches("<details>").count() - line.matches("</details>").count();
        was == 0 && depth == 0
    });
    shown.flat_map(|line| [line, "\n"]).collect()
}

#[test]
fn the_gate_has_conditions_of_its_own_and_says_why_it_could_not_compare() {
    let dir = Directory::new();
    let (_old, baseline) =
        runs::target(ServerConfig { delay: Delay::Fixed(Duration::from_millis(2)), ..ServerConfig::default() });
    let (_new, url) =
        runs::target(ServerConfig { delay: Delay::Fixed(Duration::from_millis(60)), ..ServerConfig::default() });
    let gate = |baseline: &str, folder: &str| {
        let mut command = Command::new("sh");
        command.arg(root().join("action/gate.sh")).current_dir(dir.path("."));
        command.env("GATE_BRUNT", env!("CARGO_BIN_EXE_brunt")).env("GATE_TARGET", &url).env("GATE_BASELINE", baseline);
        command.env("GATE_FLAGS", "-n 520 -c 64").env("GATE_DURATION", "9s").env("GATE_ROUND", "9s");
        let done = done(command.env("GATE_FOLDER", folder));
        (done.status, std::fs::read_to_string(dir.path(&format!("{folder}/summary.md"))).unwrap(), done.stderr)
    };
    let (status, summary, _) = gate(&baseline, "slower");
    assert_eq!(status, Some(1), "{summary}");
    assert!(
        summary.starts_with("### Performance: failed in the comparison") && summary.contains("❌ `p50 > 1.1x`"),
        "{summary}"
    );
    // What a reader of a pull request sees: what came of it and a table, and the rest folded.
    let open = unfolded(&summary);
    let lines = open.lines().filter(|line| !line.is_empty()).count();
    assert!(lines <= 15 && open.contains("| p50 |") && !open.contains("Run it again"), "{open}");
    assert_eq!(summary.matches("<details>").count(), summary.matches("</details>").count(), "{summary}");
    let (status, summary, stderr) = gate("nowhere.json", "none");
    assert_eq!(status, Some(2), "{summary}");
    assert!(summary.starts_with("### Performance: not run (exit status 2)\n"), "{summary}");
    let reason = "GATE_BASELINE: there is no file nowhere.json";
    assert!(summary.contains(reason) && stderr.contains(reason), "{summary}{stderr}");
}

#[test]
fn what_is_wrong_with_the_gates_variables_ends_it_before_the_load() {
    let dir = Directory::new();
    for (name, value, reason) in [
        ("GATE_TARGET", "", "GATE_TARGET is not set: give the address to load"),
        ("GATE_FLAGS", "-r 50 -H 'X: y", "GATE_FLAGS: a quote is not closed: -r 50 -H 'X: y"),
    ] {
        let mut command = Command::new("sh");
        command.arg(root().join("action/gate.sh")).current_dir(dir.path("."));
        command.env("GATE_BRUNT", env!("CARGO_BIN_EXE_brunt")).env("GATE_TARGET", "http://127.0.0.1:1/");
        let done = done(command.env(name, value)).with_status(2);
        let summary = std::fs::read_to_string(dir.path("brunt-gate/summary.md")).unwrap();
        assert!(done.stderr.starts_with(reason) && summary.contains(reason), "{done:#?}{summary}");
    }
}

/// The baseline may be the very file that the gate writes.
#[test]
fn the_result_of_an_earlier_gate_is_its_baseline_and_no_later_one() {
    let dir = Directory::new();
    let gate = |delay: u64, baseline: &str| {
        let (_server, url) =
            runs::target(ServerConfig { delay: Delay::Fixed(Duration::from_millis(delay)), ..ServerConfig::default() });
        let mut command = Command::new("sh");
        command.arg(root().join("action/gate.sh")).current_dir(dir.path("."));
        command.env("GATE_BRUNT", env!("CARGO_BIN_EXE_brunt")).env("GATE_TARGET", &url).env("GATE_BASELINE", baseline);
        command.env("GATE_FLAGS", "-c 4 -t 1 -w 0s").env("GATE_FAIL_IF", "p50 > 2x").env("GATE_DURATION", "10s");
        let done = done(&mut command);
        (done.status, std::fs::read_to_string(dir.path("brunt-gate/summary.md")).unwrap())
    };
    assert_eq!(gate(2, "").0, Some(0));
    let (status, summary) = gate(30, "brunt-gate/result.json");
    assert_eq!(status, Some(1), "{summary}");
    assert!(summary.contains("❌ `p50 > 2x`") && !summary.contains("whose thresholds held"), "{summary}");
    // A gate that made no run leaves nothing of an earlier one.
    let (status, _) = gate(2, "no.json");
    let is_left = |file: &str| Path::new(&dir.path("brunt-gate")).join(file).exists();
    assert_eq!((status, ["result.json", "comparison.json", "report.html"].map(is_left)), (Some(2), [false; 3]));
}

#[test]
fn the_template_for_gitlab_runs_the_same_gate() {
    let dir = Directory::new();
    let (_server, url) = target();
    let template = std::fs::read_to_string(root().join("action/gitlab.yml")).unwrap();
    let lines = |head: &str| {
        let block = block(&template, head);
        block.lines().flat_map(|line| [line.strip_prefix("- ").unwrap(), "\n"]).collect::<String>()
    };
    let mut command = Command::new("sh");
    command.args(["-e", "-c", &(lines("script:") + &lines("after_script:"))]).current_dir(dir.path("."));
    for line in block(&template, "variables:").lines() {
        let (name, value) = line.split_once(": ").unwrap();
        command.env(name, value);
    }
    let gate = root().join("action/gate.sh");
    command.env("GATE_SCRIPT", gate).env("GATE_BRUNT", env!("CARGO_BIN_EXE_brunt")).env("GATE_TARGET", &url);
    let done = done(command.env("GATE_DURATION", "200ms").env("GATE_THRESHOLDS", "p50<9s")).with_status(0);
    assert!(done.stdout.starts_with("Performance: passed: see brunt-gate/summary.md\n"), "{done:#?}");
    assert!(done.stdout.contains("### Performance: passed"), "{done:#?}");
    assert!(Path::new(&dir.path("brunt-gate/junit.xml")).is_file());
}

/// A job that is cancelled ends the run that it began.
#[test]
fn a_gate_that_is_ended_puts_no_more_load_on_anything() {
    let (_server, url) = target();
    let dir = Directory::new();
    let mut command = Command::new("sh");
    command.arg(root().join("action/gate.sh")).current_dir(dir.path("."));
    command.env("GATE_BRUNT", env!("CARGO_BIN_EXE_brunt")).env("GATE_TARGET", url).env("GATE_DURATION", "10m");
    let gate = Running::spawn(command);
    let children = format!("/proc/{0}/task/{0}/children", gate.id());
    let mut run = None;
    until("the gate has begun its run", || {
        let of_gate = std::fs::read_to_string(&children).unwrap_or_default();
        let name = |pid: &str| std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        run = of_gate.split_whitespace().find(|pid| name(pid).trim() == "brunt").map(str::to_owned);
        run.is_some()
    });
    gate.send(Signal::TERM);
    assert_eq!(gate.wait().status, None, "it is ended by the signal, as whoever sent it expects");
    assert!(!Path::new(&format!("/proc/{}", run.unwrap())).exists());
}
