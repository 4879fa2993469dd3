//! The program called as `wrk`.

use anyhow::Result;
use brunt_protocol::Registry;

use super::bench;
use crate::args::wrk::{USAGE, Wrk};
use crate::console;
use crate::exit::Exit;

pub fn run(wrk: &Wrk, registry: &Registry) -> Result<Exit> {
    if wrk.version {
        console::print(concat!("brunt ", env!("CARGO_PKG_VERSION"), ", called as wrk [epoll]\n").as_bytes())?;
    }
    match &wrk.bench {
        Ok(bench) => bench::run(bench, registry),
        Err(problem) => {
            if !problem.is_empty() {
                console::note(problem);
            }
            console::print(USAGE.as_bytes())?;
            Ok(Exit::AsWrk)
        }
    }
}
