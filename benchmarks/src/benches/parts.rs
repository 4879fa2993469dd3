//! The flood beside a bare epoll loop, and the price of each thing that it does beside sending and reading.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;

use super::{Bench, Both, calm};
use crate::bar::Bar;
use crate::bare;
use crate::clients::{CLIENTS, Client, Load};
use crate::race::Race;
use crate::servers::Server;
use crate::setup::{Installed, Setup};
use crate::table::Table;

/// Connections of each comparison.
const CONNECTIONS: [u32; 3] = [1, 64, 1_000];
/// Connections at which the parts are told apart.
const PARTS_AT: u32 = 64;
/// The most CPU time of a request, relative to the bare loop's.
const MOST: f64 = 1.08;
/// The least requests a second, relative to the bare loop's.
const LEAST: f64 = 0.97;

pub(super) const BENCH: Bench = Bench {
    name: "parts",
    about: "The flood beside a bare epoll loop that records nothing, with 1, 64 and 1,000 connections; and what each part of its work costs.",
    run,
};

/// The bare loop with these switches, on sockets with the congestion control that brunt asks for.
macro_rules! bare {
    ($name:literal, $switches:literal) => {
        Client {
            name: $name,
            version: &[],
            scripts: false,
            arguments: |load| arguments(load, concat!("reno ", $switches)),
            read: bare::read,
        }
    };
}

const BARE: Client = bare!("bare loop", "");
/// What is added to the bare loop, one at a time.
const PARTS: [Client; 13] = [
    bare!("the same", ""),
    bare!("the machine's congestion control", "reno=0"),
    bare!("all answers are read before requests are sent", "reads-first"),
    bare!("epoll reports changes", "edges"),
    bare!("at most 16 events at once", "events=16"),
    bare!("sockets with arrival stamps, none taken", "stamped"),
    bare!("one stamp taken in 50 reads", "stamped takes-stamp=50"),
    bare!("every stamp taken", "stamped takes-stamp=1"),
    bare!("two looks at the clock", "clocks=2"),
    bare!("requests of 80 bytes", "request=80"),
    bare!("requests of 1,000 bytes", "request=1000"),
    bare!("room for 256 KB in a read", "buffer=262144"),
    bare!("1 KB of other memory touched", "touches=1024"),
];
const AS_READ: Client = Client {
    name: "brunt --arrival-times read",
    arguments: |load| [(CLIENTS[0].arguments)(load), vec!["--arrival-times".to_owned(), "read".to_owned()]].concat(),
    ..CLIENTS[0]
};

fn arguments(load: &Load, switches: &str) -> Vec<String> {
    let mut words = vec![bare::AS_BARE.to_owned(), load.url.clone()];
    words.push(format!("connections={}", load.connections));
    words.push(format!("seconds={}", load.length.as_secs()));
    words.extend(switches.split_whitespace().map(str::to_owned));
    words
}

fn run(setup: &Setup) -> anyhow::Result<Vec<Bar>> {
    let own = std::env::current_exe().context("this program has no path")?;
    let installed = |client: &'static Client, program: &PathBuf| Installed {
        client,
        program: program.clone(),
        version: String::new(),
    };
    let (brunt, bare) = (installed(&CLIENTS[0], &setup.brunt), installed(&BARE, &own));
    let server = Server::target(setup, &[])?;
    let mut bars = Vec::new();
    let mut table = Table::new(&["connections", "at once with the bare loop", "CPU µs/req", "× bare", "range"]);
    for connections in CONNECTIONS {
        let load = Load::new(&server.url, connections, setup.length);
        let race = Race::run(setup, &server, &load, &[&brunt, &bare])?;
        println!("{}", race.table());
        let rates = race.ratio("brunt", BARE.name, |sample| sample.report.per_s).context("no rounds")?;
        let of = |figure: &str| format!("{connections} connections: {figure}");
        let excuse = race.server_bound().or_else(|| race.disturbed(BARE.name));
        bars.push(
            Bar::new(of("requests/s"), format!("≥ {LEAST} × bare"), format!("{rates:.3} ×"), rates >= LEAST)
                .excused(excuse),
        );
        let both = Both::measured(setup, &load, [&brunt, &bare], [calm(setup, &load)?, Duration::ZERO])?;
        let whole = Both::measured(setup, &load, [&brunt, &bare], [Duration::ZERO; 2])?;
        row(&mut table, &both, connections, "brunt, without its start and end");
        row(&mut table, &whole, connections, "brunt, from its start to its end");
        bars.push(Bar::new(
            of("CPU per request, both at once"),
            format!("≤ {MOST} × bare"),
            format!(
                "{:.3} × ({:.3} to {:.3}), {:.3} × with start and end",
                both.ratio, both.least, both.greatest, whole.ratio
            ),
            both.ratio <= MOST,
        ));
    }
    let load = Load::new(&server.url, PARTS_AT, setup.length);
    let as_read = installed(&AS_READ, &setup.brunt);
    let both = Both::measured(setup, &load, [&as_read, &bare], [calm(setup, &load)?, Duration::ZERO])?;
    row(&mut table, &both, PARTS_AT, "the same with --arrival-times read");
    for part in &PARTS {
        let both = Both::measured(setup, &load, [&installed(part, &own), &bare], [Duration::ZERO; 2])?;
        row(&mut table, &both, PARTS_AT, part.name);
    }
    println!("{} rounds of {} s:\n\n{table}", setup.rounds, load.length.as_secs());
    Ok(bars)
}

fn row(table: &mut Table, both: &Both, connections: u32, name: &str) {
    table.row([
        connections.to_string(),
        name.to_owned(),
        format!("{:.2}", both.cpu_us),
        format!("{:.3}", both.ratio),
        format!("{:.3} to {:.3}", both.least, both.greatest),
    ]);
}
