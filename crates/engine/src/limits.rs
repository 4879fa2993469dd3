//! Limits of this process, raised as far as they go.

use brunt_plan::plan::{MOST_CONNECTIONS, Plan};
use brunt_plan::share::Portion;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::error::EngineError;
use crate::transport::route::ports_of_an_address;

/// Descriptors that a process needs in any case.
const SPARE_DESCRIPTORS: u64 = 64;

/// Raises the limit on file descriptors as far as it goes: how many users there will be is not known beforehand.
pub(crate) fn raise_descriptors_fully() {
    let limit = getrlimit(Resource::Nofile);
    // Where the limit cannot be raised, calls that find no descriptor fail with that reason.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// Raises the limit on file descriptors so that the portion's share of the plan's connections fits, one to each of this
/// many targets. Connections that grow with a rate are limited instead: the returned plan has as many as there may be.
///
/// # Errors
/// When the hard limit is too low for a number that was asked for.
pub(crate) fn make_room(plan: &Plan, portion: Portion, targets: u32) -> Result<Plan, EngineError> {
    let mut plan = plan.clone();
    let workers = portion.workers();
    if plan.connections.is_growing() {
        let limit = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
        let most = (limit.saturating_sub(descriptors_besides(workers)) / u64::from(targets)).max(u64::from(workers));
        let of_all = u128::from(most) * u128::from(portion.all_workers()) / u128::from(workers);
        plan.connections = plan.connections.capped(u32::try_from(of_all).unwrap_or(u32::MAX));
    }
    let connections = portion.part_of(u64::from(plan.connections.most())) as u32;
    raise_descriptors(connections.saturating_mul(targets), workers)?;
    Ok(plan)
}

/// Descriptors that a process with this many workers needs besides its connections.
pub fn descriptors_besides(workers: u32) -> u64 {
    u64::from(workers) * 4 + SPARE_DESCRIPTORS
}

/// The same for so many connections.
fn raise_descriptors(connections: u32, workers: u32) -> Result<(), EngineError> {
    let needed = u64::from(connections) + descriptors_besides(workers);
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    if limit.maximum.is_some_and(|maximum| maximum < needed) {
        return Err(EngineError::Descriptors { connections, needed, limit: limit.maximum.unwrap_or(u64::MAX) });
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum: limit.maximum })
        .map_err(|_| EngineError::Descriptors { connections, needed, limit: limit.current.unwrap_or(u64::MAX) })
}

/// The most connections that the hard limit on file descriptors allows this process, with as many workers as there are
/// cores.
pub fn most_connections() -> u32 {
    let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) as u32;
    let limit = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::from(MOST_CONNECTIONS));
    let left = limit.saturating_sub(descriptors_besides(workers)).max(1);
    u32::try_from(left).unwrap_or(MOST_CONNECTIONS).min(MOST_CONNECTIONS)
}

/// The share of a local address' ports that growing connections may take. Ports of a finished run stay taken for a
/// minute, and several runs may follow each other.
const PORTS_GROWN_INTO: f64 = 0.25;

/// The most connections that may grow with a rate: as many as descriptors allow, and a quarter of the ports of this
/// many local addresses.
pub fn most_growing_connections(addresses: usize) -> u32 {
    let ports = f64::from(ports_of_an_address()) * PORTS_GROWN_INTO * addresses.max(1) as f64;
    most_connections().min(ports as u32).max(1)
}
