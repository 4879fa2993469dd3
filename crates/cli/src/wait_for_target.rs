//! Waiting for a target that is starting, before any load (`--wait-for`).

use std::net::{TcpStream, ToSocketAddrs as _};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use brunt_engine::{AskError, EngineError, StopHandle};
use brunt_plan::plan::Plan;
use brunt_plan::units::ExactDuration;
use brunt_protocol::Registry;
use brunt_protocol::discovery::DiscoveryReply;

use crate::console;
use crate::exit::NoAnswer;
use crate::wording::{Settings, render_error};

/// How long to wait between two attempts.
const PAUSE: Duration = Duration::from_millis(100);
/// The time after which a note names what is waited for.
const SILENT: Duration = Duration::from_secs(1);

/// Waits until the target of `plan` answers, for as long as the plan says. A flood's own call has to succeed. Calls of
/// a script are unknown before the load, so any answer suffices for it; for scenarios, a connection does. `tells`
/// allows a note on standard error that names what is waited for.
///
/// # Errors
/// [`NoAnswer`] when it does not answer in time, and mistakes in the plan.
pub fn wait(plan: &Plan, registry: &Registry, stop: &StopHandle, tells: bool) -> Result<()> {
    let attempt = |left: Duration| {
        if plan.scenarios.is_some() {
            return Ok(connect(plan, registry, left));
        }
        let reply = answer(&with_timeouts(plan, left), registry, stop);
        Ok(match as_problem(reply)? {
            Ok(reply) if plan.script.is_none() && !plan.ok_status.holds(reply.status) => {
                Err(format!("the answer was {}", reply.status))
            }
            other => other.map(drop),
        })
    };
    until(plan.transport.wait_ns, stop, tells, attempt)
}

/// Makes the call of `plan`, again and again while nothing answers, for as long as the plan says.
///
/// # Errors
/// The error of the last attempt.
pub fn ask(plan: &Plan, registry: &Registry) -> Result<DiscoveryReply, AskError> {
    let stop = StopHandle::default();
    let mut last = None;
    let attempt = |left: Duration| {
        let reply = answer(&with_timeouts(plan, left), registry, &stop);
        let is_there = !reply.as_ref().is_err_and(is_silence);
        last = Some(reply);
        Ok(if is_there { Ok(()) } else { Err(String::new()) })
    };
    // The last attempt has the reason.
    drop(until(plan.transport.wait_ns, &stop, false, attempt));
    last.unwrap_or_else(|| answer(plan, registry, &stop))
}

fn answer(plan: &Plan, registry: &Registry, stop: &StopHandle) -> Result<DiscoveryReply, AskError> {
    brunt_engine::ask(plan, registry, stop)
}

/// Repeats `attempt`, which gets the remaining time, until it succeeds.
fn until(
    wait_ns: u64,
    stop: &StopHandle,
    mut tells: bool,
    mut attempt: impl FnMut(Duration) -> Result<Result<(), String>>,
) -> Result<()> {
    if wait_ns == 0 {
        return Ok(());
    }
    let wait = Duration::from_nanos(wait_ns);
    let begin = Instant::now();
    loop {
        let problem = match attempt(wait.saturating_sub(begin.elapsed()).max(PAUSE))? {
            Ok(()) => return Ok(()),
            Err(problem) => problem,
        };
        if stop.is_stopped() {
            return Ok(());
        }
        if tells && begin.elapsed() >= SILENT {
            console::note(&format!("waiting up to {} for the target: {problem}", ExactDuration(wait_ns)));
            tells = false;
        }
        if begin.elapsed() >= wait {
            let wait = ExactDuration(wait_ns);
            return Err(NoAnswer::new(format!("the target was not ready within {wait} (--wait-for): {problem}")).into());
        }
        thread::sleep(PAUSE.min(wait.saturating_sub(begin.elapsed())));
    }
}

/// An attempt must not take longer than the wait.
fn with_timeouts(plan: &Plan, left: Duration) -> Plan {
    let left_ns = u64::try_from(left.as_nanos()).unwrap_or(u64::MAX);
    let mut plan = plan.clone();
    if plan.transport.wait_ns > 0 {
        plan.timeout_ns = plan.timeout_ns.min(left_ns);
        plan.connect_timeout_ns = plan.connect_timeout_ns.min(left_ns);
    }
    plan
}

/// Whether the target was silent, like one that is starting.
fn is_silence(error: &AskError) -> bool {
    match error {
        AskError::Engine(EngineError::Route(route)) => route.is_no_address(),
        AskError::Engine(_) => false,
        AskError::Failed { .. } | AskError::Unanswered => true,
    }
}

/// A silence is a problem that may pass; any other error is the plan's.
fn as_problem(reply: Result<DiscoveryReply, AskError>) -> Result<Result<DiscoveryReply, String>> {
    match reply {
        Ok(reply) => Ok(Ok(reply)),
        Err(error) if is_silence(&error) => Ok(Err(render_error(&error.into(), Settings::Flags))),
        Err(error) => Err(error.into()),
    }
}

/// Makes a connection, and leaves it.
fn connect(plan: &Plan, registry: &Registry, left: Duration) -> Result<(), String> {
    if let Some(path) = &plan.transport.unix_socket {
        return UnixStream::connect(path).map(drop).map_err(|error| format!("{}: {error}", path.display()));
    }
    let (host, port) = if let Some(proxy) = &plan.transport.proxy {
        (proxy.host.clone(), proxy.port)
    } else if let Some((host, port)) = &plan.transport.connect_to {
        (host.clone(), *port)
    } else {
        let default = registry.named(&plan.target.scheme).ok().map(|(_, scheme)| scheme.default_port);
        (plan.target.host.clone(), plan.target.port.or(default).unwrap_or_default())
    };
    let name = host.trim_start_matches('[').trim_end_matches(']');
    let addresses = (name, port).to_socket_addrs().map_err(|error| format!("{host}: {error}"))?;
    let mut problem = format!("{host} has no address");
    for address in addresses {
        match TcpStream::connect_timeout(&address, left) {
            Ok(_) => return Ok(()),
            Err(error) => problem = format!("{address}: {error}"),
        }
    }
    Err(problem)
}
