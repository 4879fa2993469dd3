//! Plain HTTP/1.1 against the built-in target.

use super::{Bench, CONNECTIONS, counted_bar, cpu_bar_at_once, rate_bar};
use crate::bar::Bar;
use crate::clients::Load;
use crate::race::Race;
use crate::servers::Server;
use crate::setup::Setup;

pub(super) const BENCH: Bench =
    Bench { name: "http", about: "Plain HTTP/1.1 as fast as it goes, compared to every installed client.", run };

fn run(setup: &Setup) -> anyhow::Result<Vec<Bar>> {
    let server = Server::target(setup, &[])?;
    let load = Load::new(&server.url, CONNECTIONS, setup.length);
    let race = Race::run(setup, &server, &load, &setup.clients.iter().collect::<Vec<_>>())?;
    println!("{}", race.table());
    Ok(vec![rate_bar(&race, 1.30)?, cpu_bar_at_once(setup, &load, 0.78)?, counted_bar(&race)])
}
