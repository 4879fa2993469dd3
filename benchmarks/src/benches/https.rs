//! HTTPS against nginx.

use super::{Bench, CONNECTIONS, counted_bar, cpu_bar};
use crate::bar::Bar;
use crate::clients::Load;
use crate::race::Race;
use crate::servers::{Nginx, Server};
use crate::setup::Setup;

pub(super) const BENCH: Bench = Bench {
    name: "https",
    about: "HTTP/1.1 over TLS 1.3 as fast as it goes, compared to every installed client.",
    run,
};

fn run(setup: &Setup) -> anyhow::Result<Vec<Bar>> {
    let server = Server::nginx(setup, Nginx { tls: true, http2: false })?;
    let load = Load::new(&server.url, CONNECTIONS, setup.length);
    let race = Race::run(setup, &server, &load, &setup.clients.iter().collect::<Vec<_>>())?;
    println!("{}", race.table());
    Ok(vec![cpu_bar(&race, 0.80)?, counted_bar(&race)])
}
