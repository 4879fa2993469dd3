//! What runs of a healthy target lead with on a busy machine: the outcome, and no doubt or cause that the result does not bear out.

use std::time::Duration;

use anyhow::Context as _;
use serde_json::Value;

use super::Bench;
use super::shown::{Times, Verdict};
use crate::bar::Bar;
use crate::clients::figures;
use crate::clocked::{AS_BUSY_LOOP, Answered, Latency};
use crate::process::{Process, anywhere, keeping_nothing};
use crate::servers::Server;
use crate::setup::Setup;
use crate::table::Table;

/// The number of runs, by default.
const RUNS: usize = 100;
const LENGTH: Duration = Duration::from_secs(5);
/// How many busy loops want the cores of brunt and its target.
const BUSY: usize = 2;
/// The loads, by turns.
const LOADS: [&str; 4] = ["-c 10 -t 1", "-r 100", "-r 1000", "-c 64"];
/// Findings about a stretch in which calls took long: the target's own log says whether they did.
const OF_TIMES: [&str; 3] = ["freeze", "slowness", "overload"];
/// Findings that only explain figures.
const NOTES: [&str; 5] = ["slow_request", "modes", "failure_times", "closes", "cut_off"];
/// How much of a time that a finding names the target must have taken.
const BORNE_OUT: u64 = 2;

pub(super) const BENCH: Bench = Bench {
    name: "shapes",
    about: "Healthy targets beside two busy loops: no run leads with a doubt that its JSON does not bear out, and none names a false cause.",
    run,
};

/// What is wrong with what a run says.
#[derive(Debug, Default, PartialEq, Eq)]
struct Wrong {
    /// Doubts that its figures do not bear out, or that come first.
    doubts: Vec<String>,
    /// Causes that the target's own log contradicts.
    causes: Vec<String>,
}

fn run(setup: &Setup) -> anyhow::Result<Vec<Bar>> {
    let count = setup.rounds_or(RUNS);
    println!("our own target, which answers within 1 to 20 ms, beside {BUSY} busy loops; brunt -d 5s, {count} runs\n");
    let program = std::env::current_exe().context("this program cannot be found")?;
    let busy = || {
        let mut busy = keeping_nothing(anywhere(&program));
        busy.arg(AS_BUSY_LOOP);
        Process::server(busy, "a busy loop")
    };
    let _busy = (0..BUSY).map(|_| busy()).collect::<anyhow::Result<Vec<_>>>()?;
    let mut table = Table::new(&["load", "runs", "doubts", "doubts not borne out", "false causes"]);
    let mut seen: [(usize, usize, usize, usize); LOADS.len()] = Default::default();
    for number in 0..count {
        let load = number % LOADS.len();
        let (Some(options), Some(seen)) = (LOADS.get(load), seen.get_mut(load)) else { continue };
        let (result, took) = one(setup, options, number as u64)?;
        let wrong = wrong(&result, &took)?;
        let is_doubted = !Verdict::from_result(&result)?.is_trustworthy();
        *seen = (
            seen.0 + 1,
            seen.1 + usize::from(is_doubted),
            seen.2 + usize::from(!wrong.doubts.is_empty()),
            seen.3 + usize::from(!wrong.causes.is_empty()),
        );
        for said in wrong.doubts.iter().chain(&wrong.causes) {
            println!("{options}: {said}");
        }
    }
    for (options, (runs, doubted, doubts, causes)) in LOADS.iter().zip(&seen) {
        table.row([
            (*options).to_owned(),
            runs.to_string(),
            doubted.to_string(),
            doubts.to_string(),
            causes.to_string(),
        ]);
    }
    println!("\n{table}");
    let all = |of: fn(&(usize, usize, usize, usize)) -> usize| seen.iter().map(of).sum::<usize>();
    let bar = |name: &str, wrong: usize| Bar::new(name, "none", format!("{wrong} of {count} runs"), wrong == 0);
    Ok(vec![bar("doubts that lead or are not borne out", all(|seen| seen.2)), bar("false causes", all(|seen| seen.3))])
}

/// A run, with the times that the target itself took for its answers.
fn one(setup: &Setup, options: &str, seed: u64) -> anyhow::Result<(Value, Times)> {
    let server = Server::own(None, Latency::Ar1 { median_us: 5_000, sigma: 0.4, memory: 0.0, seed })?;
    let mut command = anywhere(&setup.brunt);
    // Calls that brunt has no CPU for are told, and are no doubt.
    command.args(options.split(' ')).args(["-d", "5s", "--max-error-rate", "100%", "--format", "json", "--quiet"]);
    command.arg(&server.url);
    let finished = Process::client(command, "brunt")?.finish(LENGTH + Duration::from_secs(60), |_| {})?;
    let took = server.answered()?.into_iter().map(Answered::took);
    Ok((figures(&finished.stdout)?, Times::each(took)))
}

/// What is wrong with what `result` says of a healthy target that took these times.
fn wrong(result: &Value, took: &Times) -> anyhow::Result<Wrong> {
    let remarks = result["remarks"].as_array().context("brunt's result has no remarks")?;
    let verdict = Verdict::from_result(result)?;
    let text = |remark: &Value| remark["message"].as_str().unwrap_or_default().to_owned();
    let is_doubt =
        |text: &str| text.contains("brunt was the limit") || text.contains("unreliable") || text.contains("as asked");
    let unsent = result["outcomes"]["unsent"].as_u64().unwrap_or(0);
    let is_open = result["plan"]["load"].get("open").is_some();
    let mut wrong = Wrong::default();
    for (place, said) in remarks.iter().map(text).enumerate().filter(|(_, said)| is_doubt(said)) {
        let is_borne_out =
            verdict.decisive().next().is_some() && !(is_open && unsent == 0 && said.contains("the limit"));
        if place == 0 || !is_borne_out {
            wrong.doubts.push(said);
        }
    }
    for remark in remarks.iter().filter(|remark| remark["of"] == "target") {
        let about = remark["about"].as_str().unwrap_or_default();
        if NOTES.contains(&about) {
            continue;
        }
        // A target that had no CPU was slow, whoever took it.
        let claimed = remark["worst_ns"].as_u64().unwrap_or_else(|| BORNE_OUT * BORNE_OUT * took.quantile(0.5));
        if !(OF_TIMES.contains(&about) && took.quantile(1.0) >= claimed / BORNE_OUT) {
            let longest = Duration::from_nanos(took.quantile(1.0));
            wrong.causes.push(format!("{}; the target took {longest:?} at the most", remark["message"]));
        }
    }
    Ok(wrong)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn result(said: &[&str], is_decisive: bool, found: &[Value]) -> Value {
        let said = said.iter().map(|text| json!({ "of": "run", "message": text }));
        let remarks: Vec<_> = said.chain(found.iter().cloned()).collect();
        let findings = json!([{ "cause": "lag", "decisive": is_decisive, "seconds": [] }]);
        json!({
            "remarks": remarks,
            "outcomes": { "unsent": 0 },
            "plan": { "load": { "open": {} } },
            "verdict": { "judgement": "latency_unreliable", "sentence": "", "findings": findings },
        })
    }

    #[test]
    fn doubts_come_second_and_have_a_finding() {
        let took = Times::each([5_000_000].into_iter());
        let doubts = |said: &[&str], is_decisive| {
            wrong(&result(said, is_decisive, &[]), &took).unwrap().doubts.len()
        };
        let (outcome, doubt) = ("500 of 500 calls succeeded, 100 ok/s", "p99 is unreliable; p50 holds");
        assert_eq!((doubts(&[outcome], false), doubts(&[outcome, doubt], true)), (0, 0));
        assert_eq!((doubts(&[outcome, doubt], false), doubts(&[doubt], true)), (1, 1));
        assert_eq!(
            doubts(&[outcome, "brunt was the limit: the target can do at least 9 ok/s"], true),
            1,
            "all were sent"
        );
    }

    #[test]
    fn a_freeze_is_true_where_the_target_took_as_long() {
        let causes = |about: &str, took_ms: u64| {
            let found = json!({ "of": "target", "about": about, "message": "…", "worst_ns": 400_000_000 });
            let took = Times::each([5_000_000, took_ms * 1_000_000].into_iter());
            wrong(&result(&["fine"], true, &[found]), &took).unwrap().causes.len()
        };
        assert_eq!(
            [causes("freeze", 300), causes("freeze", 20), causes("outage", 300), causes("modes", 5)],
            [0, 1, 1, 0]
        );
    }
}
