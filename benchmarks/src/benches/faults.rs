//! Real faults of the generator, which the verdict has to name, and slow targets, which it must not take for a fault.

use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use rustix::process::Signal;

use super::shown::Verdict;
use super::{Bench, Run, brunt};
use crate::bar::{Bar, Outcome};
use crate::clients::figures;
use crate::clocked::AS_BUSY_LOOP;
use crate::process::{self, Process, keeping_nothing, pinned};
use crate::race::disturbed;
use crate::servers::Server;
use crate::setup::{self, Setup};
use crate::table::Table;

/// How often each fault is made, by default.
const RUNS: usize = 10;
/// How long a process is stopped, and how long after the run's beginning.
const STOPPED: Duration = Duration::from_millis(300);
const STOPPED_AFTER: Duration = Duration::from_millis(2_200);
/// The second of the run in which the process is stopped.
const STOPPED_SECOND: u64 = 2;
/// How many busy loops want the starved generator's core.
const BUSY: usize = 3;

pub(super) const BENCH: Bench = Bench {
    name: "faults",
    about: "Faults that are planted: each is named, each time; a slow target never reads as a slow generator.",
    run,
};

/// The expected verdict on a run.
#[derive(Debug, Clone, Copy)]
enum ExpectedVerdict {
    /// It is spoiled by one of these causes.
    Cause(&'static [&'static str]),
    /// The verdict blames the generator for nothing.
    Nothing,
}

/// The actual verdict.
struct FaultVerdict {
    causes: Vec<String>,
    sentence: String,
    /// The share of a core that others used, from 0 to 1.
    others: f64,
}

impl FaultVerdict {
    fn from_run(run: &Run) -> anyhow::Result<Self> {
        let said = Self::by(&Verdict::from_result(&run.result)?);
        Ok(Self { others: run.others(), ..said })
    }

    /// The same; only causes that name this second count.
    fn of_second(run: &Run, second: u64) -> anyhow::Result<Self> {
        let verdict = Verdict::from_result(&run.result)?;
        let naming = verdict.decisive().filter(|finding| finding.names(second));
        Ok(Self { causes: naming.map(|finding| finding.cause.clone()).collect(), ..Self::from_run(run)? })
    }

    fn by(verdict: &Verdict) -> Self {
        let causes = verdict.causes().into_iter().map(str::to_owned).collect();
        Self { causes, sentence: verdict.sentence.clone(), others: 0.0 }
    }

    fn is(&self, wanted: ExpectedVerdict) -> bool {
        match wanted {
            ExpectedVerdict::Cause(names) => self.causes.iter().any(|cause| names.contains(&cause.as_str())),
            ExpectedVerdict::Nothing => self.causes.is_empty(),
        }
    }
}

struct Fault {
    name: &'static str,
    wanted: ExpectedVerdict,
    /// Makes the fault and returns the verdict; `None` where this system does not allow it. The flag alternates between
    /// runs, and chooses the load.
    plant: fn(&Setup, bool) -> anyhow::Result<Option<FaultVerdict>>,
}

const FAULTS: [Fault; 7] = [
    Fault { name: "starved of CPU", wanted: ExpectedVerdict::Cause(&["cpu_starved"]), plant: starved },
    Fault {
        name: "stopped for 300 ms",
        wanted: ExpectedVerdict::Cause(&["cpu_starved", "own_delays", "lag"]),
        plant: stopped,
    },
    Fault { name: "slow script", wanted: ExpectedVerdict::Cause(&["slow_script"]), plant: slow_script },
    Fault { name: "few local ports", wanted: ExpectedVerdict::Cause(&["ports"]), plant: few_ports },
    Fault { name: "few descriptors", wanted: ExpectedVerdict::Cause(&["descriptors"]), plant: few_descriptors },
    Fault { name: "slow target", wanted: ExpectedVerdict::Nothing, plant: slow_target },
    Fault { name: "stopped target", wanted: ExpectedVerdict::Nothing, plant: stopped_target },
];

fn run(setup: &Setup) -> anyhow::Result<Vec<Bar>> {
    let runs = setup.rounds_or(RUNS);
    let mut table = Table::new(&["planted", "runs", "as it should be", "what decided, in each run"]);
    let mut bars = Vec::new();
    for Fault { name, wanted, plant } in FAULTS {
        let mut said = Vec::new();
        for round in 0..runs {
            setup.wait_for_quiet();
            said.extend(plant(setup, round % 2 == 1).with_context(|| name)?);
        }
        for wrong in said.iter().filter(|said| !said.is(wanted)) {
            println!("{name}: '{}', while others used {:.0} % of a core", wrong.sentence, wrong.others * 100.0);
        }
        let right = said.iter().filter(|said| said.is(wanted)).count();
        let causes: Vec<_> = said.iter().map(|said| said.causes.join("+")).collect();
        table.row([name.to_owned(), said.len().to_string(), right.to_string(), causes.join(" ")]);
        bars.push(judge(name, wanted, &said));
    }
    println!("\n{table}");
    Ok(bars)
}

fn judge(name: &'static str, wanted: ExpectedVerdict, said: &[FaultVerdict]) -> Bar {
    let right = said.iter().filter(|said| said.is(wanted)).count();
    let (text, excuse) = match wanted {
        ExpectedVerdict::Cause(names) => (format!("named each time: {}", names.join(", ")), None),
        // If other processes really hold the generator up, the verdict says so, and rightly.
        ExpectedVerdict::Nothing => {
            let wrong = said.iter().filter(|said| !said.is(wanted));
            let least = wrong.map(|said| said.others).fold(f64::INFINITY, f64::min);
            ("nothing found, ever".to_owned(), disturbed(least).filter(|_| right < said.len()))
        }
    };
    let bar = Bar::new(name, text, format!("{right} of {}", said.len()), right == said.len());
    if said.is_empty() {
        let outcome = Outcome::Unjudged("this system does not let it be planted".to_owned());
        return Bar { outcome, ..bar };
    }
    bar.excused(excuse)
}

/// So slow a core that figures are spoiled, in either model.
fn starved(setup: &Setup, open: bool) -> anyhow::Result<Option<FaultVerdict>> {
    let program = std::env::current_exe().context("where this program is cannot be said")?;
    let server = Server::target(setup, &[])?;
    let busy = |_| {
        let mut busy = pinned(setup.client_core, &program);
        busy.arg(AS_BUSY_LOOP);
        Process::server(busy, "a busy loop")
    };
    let _busy = (0..BUSY).map(busy).collect::<anyhow::Result<Vec<_>>>()?;
    let load = if open { "-r 50k" } else { "-c 64" };
    let options = format!("{load} -d 3s --drain 100ms");
    FaultVerdict::from_run(&brunt(setup, &server, &options, Duration::from_secs(3), |_| {})?).map(Some)
}

/// Stops a process for a while, in the middle of a run.
#[derive(Default)]
struct Stop {
    began: Option<Instant>,
    is_over: bool,
}

impl Stop {
    /// To be called all the time.
    fn look(&mut self, signal: impl Fn(Signal) -> anyhow::Result<()>) {
        let began = self.began.get_or_insert_with(Instant::now);
        if !self.is_over && began.elapsed() > STOPPED_AFTER {
            self.is_over = true;
            // If the process has already ended, the verdict shows that.
            if signal(Signal::STOP).is_ok() {
                thread::sleep(STOPPED);
                let _ = signal(Signal::CONT);
            }
        }
    }
}

const FIVE_SECONDS: Duration = Duration::from_secs(5);

fn stopped(setup: &Setup, fast: bool) -> anyhow::Result<Option<FaultVerdict>> {
    let server = Server::target(setup, &[])?;
    let options = format!("-r {} -d 5s", if fast { "5k" } else { "1k" });
    let mut stop = Stop::default();
    let run = brunt(setup, &server, &options, FIVE_SECONDS, |process| stop.look(|signal| process.signal(signal)))?;
    FaultVerdict::of_second(&run, STOPPED_SECOND).map(Some)
}

fn slow_script(setup: &Setup, open: bool) -> anyhow::Result<Option<FaultVerdict>> {
    let server = Server::target(setup, &[])?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/slow.lua");
    let load = if open { "-r 20k --drain 100ms" } else { "-c 64" };
    let options = format!("{load} -d 3s -s {}", script.display());
    FaultVerdict::from_run(&brunt(setup, &server, &options, Duration::from_secs(3), |_| {})?).map(Some)
}

/// Target and generator in a network namespace with local ports for half of the connections.
fn few_ports(setup: &Setup, _: bool) -> anyhow::Result<Option<FaultVerdict>> {
    const PREPARED: &str = "ip link set lo up && echo 40000 40019 >/proc/sys/net/ipv4/ip_local_port_range";
    let command = |script: &str| {
        let flags: &[&str] = if rustix::process::geteuid().is_root() { &["-n"] } else { &["-r", "-n"] };
        let mut command = keeping_nothing(Command::new("unshare"));
        command.args(flags).args(["sh", "-c", script]);
        command
    };
    if !command(PREPARED).output().is_ok_and(|output| output.status.success()) {
        return Ok(None);
    }
    let brunt = setup.brunt.display();
    let script = format!(
        "{PREPARED} && said=$(mktemp) && {{ {brunt} serve http 127.0.0.1:8080 --duration 60s >$said & }} &&
         until grep -q listening $said; do sleep 0.02; done &&
         {brunt} -c 40 -t 1 --source-ip 127.0.0.1 -d 3s --format json --quiet http://127.0.0.1:8080/
         status=$?; kill $!; rm $said; exit $status"
    );
    let finished =
        Process::client(command(&script), "brunt with few ports")?.finish(Duration::from_secs(60), |_| {})?;
    Ok(Some(FaultVerdict::by(&Verdict::from_result(&figures(&finished.stdout)?)?)))
}

/// brunt says so before the load.
fn few_descriptors(setup: &Setup, _: bool) -> anyhow::Result<Option<FaultVerdict>> {
    let Some(prlimit) = setup::find("prlimit") else { return Ok(None) };
    let brunt = setup.brunt.display().to_string();
    let words = ["--nofile=100:100", &brunt, "-c", "200", "-n", "1", "--no-save", "http://127.0.0.1:9/"];
    let sentence = process::output(&prlimit, &words)?;
    let is_named = sentence.contains("file descriptors") && sentence.contains("limit is 100");
    let causes = if is_named { vec!["descriptors".to_owned()] } else { Vec::new() };
    Ok(Some(FaultVerdict { causes, sentence, others: 0.0 }))
}

fn slow_target(setup: &Setup, closed: bool) -> anyhow::Result<Option<FaultVerdict>> {
    let server = Server::target(setup, &["--delay", "50ms"])?;
    // In the open model the rate is twice what the connections can carry, so that calls wait for one.
    let load = if closed { "-c 64" } else { "-c 16 -r 640 --drain 100ms" };
    let options = format!("{load} -d 5s");
    FaultVerdict::from_run(&brunt(setup, &server, &options, FIVE_SECONDS, |_| {})?).map(Some)
}

fn stopped_target(setup: &Setup, closed: bool) -> anyhow::Result<Option<FaultVerdict>> {
    // So slow that a flood leaves the generator time to spare.
    let server = Server::target(setup, &["--delay", "1ms"])?;
    let load = if closed { "-c 8" } else { "-r 1k" };
    let mut stop = Stop::default();
    let options = format!("{load} -d 5s");
    let run = brunt(setup, &server, &options, FIVE_SECONDS, |_| stop.look(|signal| server.signal(signal)))?;
    FaultVerdict::from_run(&run).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(causes: &[&str], others: f64) -> FaultVerdict {
        FaultVerdict { causes: causes.iter().map(|&cause| cause.to_owned()).collect(), sentence: String::new(), others }
    }

    #[test]
    fn a_fault_is_named_each_time_or_the_bar_is_missed() {
        let outcome = |said: &[FaultVerdict]| judge("x", ExpectedVerdict::Cause(&["lag"]), said).outcome;
        assert_eq!(outcome(&[said(&["cpu_starved", "lag"], 0.0)]), Outcome::Met);
        assert_eq!(outcome(&[said(&["lag"], 0.5), said(&[], 0.5)]), Outcome::Missed);
        assert!(matches!(outcome(&[]), Outcome::Unjudged(_)));
    }

    #[test]
    fn others_excuse_only_what_they_disturbed() {
        let outcome = |said: &[FaultVerdict]| judge("x", ExpectedVerdict::Nothing, said).outcome;
        assert_eq!(outcome(&[said(&[], 0.0), said(&[], 0.9)]), Outcome::Met);
        assert_eq!(outcome(&[said(&["lag"], 0.0), said(&["lag"], 0.9)]), Outcome::Missed);
        assert!(matches!(outcome(&[said(&[], 0.0), said(&["lag"], 0.9)]), Outcome::Unjudged(_)));
    }
}
