//! `brunt demo`: a target that freezes, seen by the closed and by the open model at the same time.
// The docs of fields here are the help that users read: no Markdown.
#![allow(clippy::doc_markdown)]

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration as Time;

use anyhow::{Context as _, Result, anyhow};
use brunt_engine::{EngineError, Finished, Observer, RunningTotal, StopHandle};
use brunt_judge::distribution::Distribution;
use brunt_judge::summary::Summary;
use brunt_judge::verdict::Judgement;
use brunt_plan::plan::Plan;
use brunt_plan::profile::Profile;
use brunt_plan::units::Duration;
use brunt_record::catalogue::{Counter, Timing};
use brunt_record::histogram::{AtLeast, Percentile};
use brunt_record::live::Live;
use brunt_record::snapshot::Phase;
use brunt_report::{Format, Style};
use brunt_testbed::server::{Delay, Server, ServerConfig, Stall};
use clap::Args;

use crate::args::{Bench, Load, Program, values};
use crate::exit::Exit;
use crate::scripts::SCRIPTS;
use crate::{console, files, machine, plan, signals};

/// Watch a target freeze, by the closed and by the open model: 10 seconds
#[derive(Debug, Args)]
pub struct Demo {
    /// Connections of the closed model
    #[arg(short, long, value_name = "N", value_parser = values::connections, default_value = "4")]
    pub connections: u32,
    /// Requests a second of the open model
    #[arg(short, long, value_name = "R", value_parser = values::rate, default_value = "1000")]
    pub rate: f64,
    /// How long both run
    #[arg(short, long, value_name = "T", value_parser = values::positive_duration, default_value = "10s")]
    pub duration: u64,
    /// Write the report page of the open model into this file
    #[arg(long, value_name = "FILE", default_value = "brunt-demo.html")]
    pub html: PathBuf,
}

/// How long each answer takes: long enough that a few connections leave CPU to spare.
const DELAY: Time = Time::from_millis(2);
/// When the target answers nothing.
const STALL: Stall = Stall { length: Time::from_secs(1), period: Time::from_secs(4) };
/// The sides of the demo, in the order of the columns.
const MODELS: [&str; 2] = ["closed model", "open model"];

pub fn run(args: &Demo, program: &Program) -> Result<Exit> {
    files::check_writable(&args.html).context("the report page (--html names another file)")?;
    let target = ServerConfig { delay: Delay::Fixed(DELAY), stall: Some(STALL), ..ServerConfig::default() };
    let server = Server::start(target).context("cannot start the built-in target")?;
    let plans = plans(args, &server.url(), program)?;
    console::print(introduction(args).as_bytes())?;
    let stop = StopHandle::default();
    signals::stop_at_first(stop.clone())?;
    let (closed, open) = side_by_side(&plans, program, &stop)?;
    server.stop();
    console::print(comparison([&closed, &open]).as_bytes())?;
    if stop.is_stopped() {
        return Ok(Exit::Done);
    }
    files::write(&args.html, &brunt_report::render(Format::Html, &open, Style::default())?)?;
    console::print(conclusion(args).as_bytes())?;
    Ok(Exit::Done)
}

/// The same load in two ways: on connections that wait for their answers, and at a rate that waits for nothing.
fn plans(args: &Demo, url: &str, program: &Program) -> Result<[Plan; 2]> {
    let planned = |connections: Option<u32>, rate: Option<Profile>| {
        let load = Load { connections, threads: Some(1), duration: Some(args.duration), rate, ..Load::default() };
        plan::from_flags(&Bench { url: Some(url.to_owned()), load, ..Bench::default() }, program)
    };
    Ok([planned(Some(args.connections), None)?, planned(None, Some(Profile::constant(args.rate)?))?])
}

/// Carries both plans out at the same time, and prints a line for each second.
fn side_by_side(plans: &[Plan; 2], program: &Program, stop: &StopHandle) -> Result<(Box<Summary>, Box<Summary>)> {
    let (send, receive) = channel();
    thread::scope(|scope| {
        let [closed, open] = plans;
        let [closed, open] = [(0, closed), (1, open)].map(|(side, plan)| {
            let mut seconds = Seconds { side, send: send.clone() };
            scope.spawn(move || brunt_engine::run(plan, &program.registry, SCRIPTS, &mut seconds, stop))
        });
        drop(send);
        let printed = show_seconds(&receive, |line| console::print(line.as_bytes()));
        let ended = |run: thread::ScopedJoinHandle<'_, _>| match run.join() {
            Ok(finished) => {
                let Finished { plan, run, .. } = Result::<_, EngineError>::map_err(finished, anyhow::Error::from)?;
                Ok(machine::summary_of(plan, run))
            }
            Err(_) => Err(anyhow!("a run of the demo panicked: this is a fault in brunt, please report it")),
        };
        let summaries = (Box::new(ended(closed)?), Box::new(ended(open)?));
        printed?;
        Ok(summaries)
    })
}

/// One second of one side, for a line.
struct Second {
    side: usize,
    number: u64,
    answered: u64,
    p99: Option<AtLeast<u64>>,
}

/// Passes the seconds of one side to the printing thread.
struct Seconds {
    side: usize,
    send: Sender<Second>,
}

impl Observer for Seconds {
    fn second(&mut self, live: &Live, _so_far: &RunningTotal<'_>) -> ControlFlow<brunt_engine::AbortCause> {
        if live.phase == Phase::Measured {
            let number = live.elapsed_ns.saturating_sub(live.length_ns) / brunt_record::SECOND_NS;
            let [p99] = live.snapshot.times.get(Timing::Response).quantiles([0.99]);
            // Nobody receives them once standard output has failed.
            drop(self.send.send(Second {
                side: self.side,
                number,
                answered: live.snapshot.numbers.get(Counter::EndedAnswered),
                p99,
            }));
        }
        ControlFlow::Continue(())
    }
}

/// Shows a line as soon as both sides have its second.
fn show_seconds(seconds: &Receiver<Second>, mut show: impl FnMut(&str) -> Result<()>) -> Result<()> {
    let mut waiting: Vec<Second> = Vec::new();
    for second in seconds {
        match waiting.iter().position(|other| other.number == second.number && other.side != second.side) {
            None => waiting.push(second),
            Some(place) => {
                let other = waiting.swap_remove(place);
                let (closed, open) = if second.side == 0 { (&second, &other) } else { (&other, &second) };
                let cells = [closed, open].map(|side| {
                    format!("{:>12} {:>12}", side.answered, side.p99.map_or_else(|| "-".to_owned(), shown))
                });
                show(&format!("{:>6} {} {}\n", second.number, cells[0], cells[1]))?;
            }
        }
    }
    Ok(())
}

fn introduction(args: &Demo) -> String {
    let Demo { connections, rate, .. } = args;
    let plural = if *connections == 1 { "" } else { "s" };
    let (closed, open) = (format!("{connections} connection{plural}"), format!("{rate} requests/s"));
    format!(
        "A target answers in 2ms, and freezes for one second in every four.\nTwo loads meet it at the same time: {closed}, \
         each of which waits for its\nanswer before it asks again, and {open}, which wait for nobody.\n\n       \
         {:>25} {:>25}\n{:>6} {:>12} {:>12} {:>12} {:>12}\n",
        MODELS[0], MODELS[1], "second", "answered", "p99", "answered", "p99"
    )
}

/// The figures of both sides, with their verdicts.
fn comparison(sides: [&Summary; 2]) -> String {
    let mut text = format!("\n{:<16}{:>18}{:>18}\n", "", MODELS[0], MODELS[1]);
    let mut row = |name: &str, cell: &dyn Fn(&Summary) -> String| {
        let _ = writeln!(text, "{name:<16}{:>18}{:>18}", cell(sides[0]), cell(sides[1]));
    };
    row("requests", &|summary| summary.total.numbers.get(Counter::Due).to_string());
    for percentile in [Percentile::P50, Percentile::P90, Percentile::P99] {
        row(percentile.name(), &|summary| {
            summary.times.response.as_ref().map_or_else(String::new, |times| quantile(times, percentile))
        });
    }
    row("longest", &|summary| summary.times.response.as_ref().map_or_else(String::new, |times| shown(times.max)));
    row("measurement", &|summary| {
        let judgement = match summary.verdict.judgement {
            Judgement::Trustworthy => "measured well",
            Judgement::GeneratorBound => "✗ brunt's limit",
            Judgement::NothingMeasured => "✗ no answer",
            Judgement::LatencyUnreliable => "✗ brunt was late",
        };
        judgement.to_owned()
    });
    text
}

fn quantile(times: &Distribution, percentile: Percentile) -> String {
    times.quantile(percentile).map_or_else(String::new, shown)
}

fn shown(ns: AtLeast<u64>) -> String {
    format!("{}{}", if ns.at_least { "≥" } else { "" }, Duration(ns.value))
}

/// The meaning of the figures, the place of the page, and further steps.
fn conclusion(args: &Demo) -> String {
    let has_frozen = Time::from_nanos(args.duration) >= STALL.period;
    let meaning = if has_frozen { MEANING } else { TOO_SHORT };
    format!("{meaning}\nReport page of the open model, for a browser: {}\n\n{NEXT}", args.html.display())
}

/// The text where the load ended before the target froze.
const TOO_SHORT: &str = "
What it means
  The load ended before the target's first freeze, so both models saw the same.
  The freeze comes in the fourth second: brunt demo -d 10s shows it.
";

const MEANING: &str = "
What it means
  Whoever asks during a freeze waits up to a second: the open model counts each
  of these requests from when it was due, and its p90 and p99 show them.
  In the closed model each connection makes one request into a freeze and then
  waits, so that the worst seconds have the fewest requests: p99 looks good.
  Measure latency at a rate (-r); measure the most a target takes without one.
";

const NEXT: &str = "\
Try next
  brunt serve http --stall 1s/4s           the target, in another terminal
  brunt --once http://127.0.0.1:8080/      one request and its answer
  brunt -r 2000 -d 20s http://127.0.0.1:8080/
  brunt help                               the guide, by topic
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_is_shown_once_both_sides_have_it() {
        let (send, receive) = channel();
        for (side, number) in [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2)] {
            let p99 = (side == 1).then_some(AtLeast { value: 951_200_000, at_least: false });
            send.send(Second { side, number, answered: 7 + side as u64, p99 }).unwrap();
        }
        drop(send);
        let mut lines = Vec::new();
        show_seconds(&receive, |line| {
            lines.push(line.to_owned());
            Ok(())
        })
        .unwrap();
        let words: Vec<_> = lines.iter().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(words, ["0 7 - 8 951.2ms", "1 7 - 8 951.2ms"]);
    }

    #[test]
    fn what_it_says_fits_a_terminal() {
        for (duration, meant) in [(1, TOO_SHORT), (4_000_000_000, MEANING)] {
            let args = Demo { connections: 4, rate: 1000.0, duration, html: "brunt-demo.html".into() };
            let said = introduction(&args) + &conclusion(&args);
            assert!(said.contains(meant) && said.lines().all(|line| line.chars().count() < 80), "{said}");
        }
    }
}
