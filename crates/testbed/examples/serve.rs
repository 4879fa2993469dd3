//! Serves until killed: `serve [ADDRESS [WORKERS [tls]]]`, for measuring with other programs.

use brunt_testbed::server::{Server, ServerConfig};
use brunt_testbed::tls::Tls;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:8080".to_owned()).parse()?;
    let workers = arguments.next().map_or(Ok(1), |workers| workers.parse())?;
    let tls = arguments.next().map(|_| Tls::default());
    let _server = Server::start(ServerConfig { address, workers, tls, ..ServerConfig::default() })?;
    loop {
        std::thread::park();
    }
}
