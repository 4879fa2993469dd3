//! brunt's benchmarks: what is measured against the wall clock and against other clients, with an exit status.
//!
//! Each benchmark (`benches/`) measures something and holds it against its bars. Exit status: 0 no bar was missed, 1 one
//! was, 2 something could not be measured.

mod args;
mod bar;
mod bare;
mod benches;
mod clients;
mod clocked;
mod counted;
mod machine;
mod process;
mod race;
mod servers;
mod setup;
mod table;

use std::process::ExitCode;

use crate::args::Args;
use crate::bar::{Bar, Outcome};
use crate::setup::Setup;

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Runs the requested benchmarks; returns whether no bar was missed.
fn run() -> anyhow::Result<bool> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.split_first() {
        Some((first, words)) if first == clocked::AS_TARGET => return clocked::serve(words).map(|()| true),
        Some((first, words)) if first == counted::AS_VALGRIND => {
            return counted::become_valgrind(words).map(|()| true);
        }
        Some((first, words)) if first == bare::AS_BARE => return bare::run(words).map(|()| true),
        Some((first, _)) if first == clocked::AS_BUSY_LOOP => {
            clocked::busy_loop();
            return Ok(true);
        }
        _ => {}
    }
    let Some(args) = Args::read(words)? else {
        print!("{}", args::help());
        return Ok(true);
    };
    let setup = Setup::new(&args)?;
    println!("{}", setup.describe());
    let mut bars = Vec::new();
    for bench in &args.benches {
        println!("## {}\n\n{}\n", bench.name, bench.about);
        let judged = (bench.run)(&setup)?;
        println!("{}", bar::table(&judged));
        bars.extend(judged);
    }
    println!("{}", summary(&bars));
    Ok(bars.iter().all(|bar| !matches!(bar.outcome, Outcome::Missed)))
}

fn summary(bars: &[Bar]) -> String {
    let count = |wanted: fn(&Outcome) -> bool| bars.iter().filter(|bar| wanted(&bar.outcome)).count();
    let met = count(|outcome| matches!(outcome, Outcome::Met));
    let missed = count(|outcome| matches!(outcome, Outcome::Missed));
    let unjudged = bars.len() - met - missed;
    format!("{met} bars met, {missed} missed, {unjudged} not judged.")
}
