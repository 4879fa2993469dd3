//! The cost of the kernel's arrival times in a flood.

use anyhow::{Context as _, bail};

use super::{Bench, CONNECTIONS};
use crate::bar::Bar;
use crate::clients::{CLIENTS, Client, Load};
use crate::process;
use crate::race::{median, once};
use crate::servers::Server;
use crate::setup::{Installed, Setup};
use crate::table::Table;

/// How often both run, by default.
const ROUNDS: usize = 10;
/// The most CPU time of a call, relative to a flood without arrival times.
const MOST: f64 = 1.015;
/// Below this rate a run is no flood: brunt then asks about each call, and means to.
const FLOOD_PER_S: f64 = 20_000.0;
const OPTION: &str = "--arrival-times";

const AS_READ: Client = Client {
    name: "brunt --arrival-times read",
    version: &[],
    scripts: false,
    arguments: arguments_as_read,
    read: CLIENTS[0].read,
};

pub(super) const BENCH: Bench = Bench {
    name: "timestamps",
    about: "A flood with the kernel's timestamps and one without, both at once: CPU time for each call.",
    run,
};

fn arguments_as_read(load: &Load) -> Vec<String> {
    let mut arguments = (CLIENTS[0].arguments)(load);
    arguments.extend([OPTION, "read"].map(str::to_owned));
    arguments
}

fn run(setup: &Setup) -> anyhow::Result<Vec<Bar>> {
    let wanted = format!("≤ {MOST:.3} × without");
    let figure = "CPU per call, both at once";
    if !process::output(&setup.brunt, &["--help"])?.contains(OPTION) {
        return Ok(vec![Bar::not_measured(figure, wanted, format!("this brunt has no {OPTION}"))]);
    }
    let server = Server::target(setup, &[])?;
    let load = Load::new(&server.url, CONNECTIONS, setup.length);
    let installed = |client| Installed { client, program: setup.brunt.clone(), version: String::new() };
    let (kernel, read) = (installed(&CLIENTS[0]), installed(&AS_READ));
    let rounds = setup.rounds_or(ROUNDS);
    println!(
        "{}; {CONNECTIONS} connections each, {rounds} rounds of {} s, each begun by the other\n",
        server.about,
        load.length.as_secs()
    );
    let mut table = Table::new(&["round", "with µs/call", "without µs/call", "ratio", "with, calls/s"]);
    let (mut ratios, mut rates) = (Vec::new(), Vec::new());
    for round in 1..=rounds {
        let is_first = round % 2 == 1;
        let order = if is_first { [&kernel, &read] } else { [&read, &kernel] };
        let &[one, other] = once(setup, &load, &order)?.as_slice() else { bail!("a figure for each client") };
        let (with, without) = if is_first { (one, other) } else { (other, one) };
        let ratio = with.cpu_us / without.cpu_us;
        ratios.push(ratio);
        rates.push(with.per_s);
        table.row([
            round.to_string(),
            format!("{:.3}", with.cpu_us),
            format!("{:.3}", without.cpu_us),
            format!("{ratio:.4}"),
            format!("{:.0}", with.per_s),
        ]);
    }
    println!("{table}");
    let (least, greatest) = ratios.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), r| (low.min(*r), high.max(*r)));
    let ratio = median(ratios).context("no rounds")?;
    let rate = median(rates).context("no rounds")?;
    let bar = Bar::new(figure, wanted, format!("{ratio:.4} × ({least:.4} to {greatest:.4})"), ratio <= MOST);
    Ok(vec![bar.excused(no_flood(rate))])
}

/// A note if the machine left too little CPU for a flood.
fn no_flood(per_s: f64) -> Option<String> {
    let why = || format!("{per_s:.0} calls/s are no flood, which begins at {FLOOD_PER_S:.0}: each call was timed");
    (per_s < FLOOD_PER_S).then(why)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn what_is_no_flood_is_not_judged() {
        assert!(no_flood(19_000.0).unwrap().contains("19000 calls/s are no flood"));
        assert_eq!(no_flood(50_000.0), None);
    }

    #[test]
    fn only_the_option_differs() {
        let load = Load::new("u", 1, Duration::from_secs(1));
        let mut arguments = (CLIENTS[0].arguments)(&load);
        arguments.extend([OPTION.to_owned(), "read".to_owned()]);
        assert_eq!((AS_READ.arguments)(&load), arguments);
    }
}
