//! A script of wrk's on wrk and on brunt.

use std::path::Path;

use super::{Bench, CONNECTIONS, counted_bar, rate_bar};
use crate::bar::Bar;
use crate::clients::Load;
use crate::process;
use crate::race::Race;
use crate::servers::Server;
use crate::setup::Setup;

pub(super) const BENCH: Bench = Bench {
    name: "script",
    about: "A Lua script that makes every request and sees every answer (scripts/counter.lua), compared to wrk.",
    run,
};

fn run(setup: &Setup) -> anyhow::Result<Vec<Bar>> {
    // Lua is not in every brunt.
    if !process::output(&setup.brunt, &["--help"])?.contains("-s, --script") {
        return Ok(vec![Bar::not_measured("requests/s", "≥ 1.35 × wrk", "this brunt runs no scripts")]);
    }
    let server = Server::target(setup, &[])?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/counter.lua");
    let load = Load { script: Some(script), ..Load::new(&server.url, CONNECTIONS, setup.length) };
    let clients: Vec<_> = setup.clients.iter().filter(|installed| installed.client.scripts).collect();
    let race = Race::run(setup, &server, &load, &clients)?;
    println!("{}", race.table());
    Ok(vec![rate_bar(&race, 1.35)?, counted_bar(&race)])
}
