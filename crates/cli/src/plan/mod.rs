//! Flags into a plan: the one place where they are checked against each other. Below it nothing sees a flag.

mod pem;
pub mod scenario;

use std::path::Path;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, anyhow, bail};
use brunt_engine::protocol::Registry;
use brunt_model::SECOND_NS;
use brunt_model::arrivals::Spread;
use brunt_model::content::Content;
use brunt_model::plan::{Family, Load, PLAN_VERSION, Plan, Script, Stop, Tls, Transport};
use brunt_model::profile::Profile;
use brunt_model::random::Random;
use brunt_model::target::Url;

use crate::args::bench::{Arrivals, Bench, Connecting};
use crate::args::{self, values};
use crate::files;

const DEFAULT_CONNECTIONS: u32 = 64;
const DEFAULT_DURATION_NS: u64 = 10 * SECOND_NS;
const DEFAULT_TIMEOUT_NS: u64 = 10 * SECOND_NS;

/// The plan that the flags ask for: a kept one, or one made of them.
///
/// # Errors
/// Which flag, file, line or column is wrong, and what to do about it.
pub fn of(bench: &Bench, registry: &Registry) -> Result<Plan> {
    let mut plan = match &bench.kept.plan {
        Some(path) => kept(path)?,
        None => made(bench, registry)?,
    };
    plan.thresholds.extend(bench.output.thresholds.iter().cloned());
    if bench.trial.once {
        make_single(&mut plan);
    }
    plan.validate()?;
    Ok(plan)
}

/// One call instead of the load; of scenarios, one user who goes through each of them once.
fn make_single(plan: &mut Plan) {
    (plan.connections, plan.workers, plan.pipeline, plan.warmup_ns) = (1, 1, 1, 0);
    plan.load = Load::Closed {};
    plan.stop = Stop { duration_ns: None, requests: Some(1) };
    if let Some(scenarios) = &mut plan.scenarios {
        let mut names: Vec<String> = Vec::new();
        for weighted in scenarios.populations.iter().flat_map(|population| &population.scenarios) {
            if !names.contains(&weighted.scenario) {
                names.push(weighted.scenario.clone());
            }
        }
        scenario::make_single(scenarios, &names);
        plan.stop = Stop::default();
    }
}

fn kept(path: &Path) -> Result<Plan> {
    let text = files::read_text(path)?;
    serde_json::from_str(&text).map_err(|e| {
        let problem = e.to_string();
        let problem = problem.split(" at line ").next().unwrap_or_default();
        anyhow!("{} is no plan: line {}, column {}: {problem}", path.display(), e.line(), e.column())
    })
}

fn made(bench: &Bench, registry: &Registry) -> Result<Plan> {
    let Some(url) = &bench.url else {
        bail!("no URL is given: name what to aim at, such as http://localhost:8080/ (or try brunt demo)");
    };
    if args::is_command(url) {
        bail!("{url} is a command, which stands before all flags (a host of that name is written http://{url}/)");
    }
    if !bench.surplus.is_empty() {
        bail!(
            "expected one URL, got {}: put values with spaces in quotes (-H 'Name: value'); for several paths of one \
             target, give --url-lines",
            bench.surplus.len() + 1
        );
    }
    let written = url;
    let url = Url::parse(url).map_err(|e| anyhow!("URL {e}"))?;
    // A password in it is not for plans that are stored.
    let shown = if url.user.is_some() { url.target.url() } else { written.clone() };
    let (protocol, _) = registry.named(&url.target.scheme)?;
    let given = bench
        .protocol
        .given(protocol, &url.target.scheme, registry)?
        .with_user(url.user)
        .with_files(Arc::new(files::read_if_there));
    let script = bench.request.script.as_deref().map(|path| script(path, shown, &bench.script_args)).transpose()?;
    let args::Load { connections, threads, timeout, connect_timeout, drain, warmup, seed, .. } = bench.load;
    let timeout_ns = timeout.unwrap_or(DEFAULT_TIMEOUT_NS);
    let connections = connections.unwrap_or_else(|| default_connections(bench.load.requests));
    let load = load(&bench.load)?;
    Ok(Plan {
        version: PLAN_VERSION,
        protocol: protocol.options(&given)?,
        target: url.target,
        script,
        scenarios: None,
        connections,
        workers: workers(threads, connections)?,
        stop: stop(&bench.load, &load),
        load,
        warmup_ns: warmup.unwrap_or(0),
        timeout_ns,
        connect_timeout_ns: connect_timeout.unwrap_or(DEFAULT_TIMEOUT_NS),
        drain_ns: drain.unwrap_or(timeout_ns),
        seed: seed.unwrap_or_else(fresh_seed),
        reconnect: bench.load.reconnect,
        pipeline: bench.load.pipeline.unwrap_or(1),
        transport: transport(&bench.connecting, tls(&bench.tls)?)?,
        ok_status: bench.request.ok_status.clone().unwrap_or_else(|| protocol.ok_status()),
        thresholds: Vec::new(),
    })
}

/// A script travels with the plan. What it gets as arguments is written as wrk has it: the URL comes first.
fn script(path: &Path, url: String, args: &[String]) -> Result<Script> {
    let args = std::iter::once(url).chain(args.iter().cloned()).collect();
    Ok(Script { file: path.display().to_string(), content: Content(files::read(path)?), args })
}

fn load(args: &args::Load) -> Result<Load> {
    let spread = match args.arrivals {
        Some(Arrivals::Poisson) => Spread::Poisson,
        Some(Arrivals::Uniform) | None => Spread::Uniform,
    };
    match &args.rate {
        Some(profile) => Ok(Load::Open { profile: profile.clone(), arrivals: spread }),
        None if args.arrivals.is_some() => {
            bail!("--arrivals says how the due times of a rate are spread, and there is no rate: give one with -r")
        }
        None => Ok(Load::Closed {}),
    }
}

/// What ends the run: as given; by default a duration, unless the load ends by itself.
fn stop(args: &args::Load, load: &Load) -> Stop {
    let ends = match load {
        Load::Open { profile, .. } => Profile::duration_ns(profile).is_some(),
        Load::Closed {} => false,
    };
    let default = (args.requests.is_none() && !ends).then_some(DEFAULT_DURATION_NS);
    Stop { duration_ns: args.duration.or(default), requests: args.requests }
}

/// No more connections than there are requests for them.
fn default_connections(requests: Option<u64>) -> u32 {
    let needed = requests.and_then(|requests| u32::try_from(requests).ok()).unwrap_or(u32::MAX);
    DEFAULT_CONNECTIONS.min(needed.max(1))
}

fn workers(asked: Option<u32>, connections: u32) -> Result<u32> {
    match asked {
        Some(threads) if threads > connections => bail!(
            "-t {threads} is more than -c {connections}, and each thread needs a connection: give -c {threads} or \
             more, or -t {connections} or fewer"
        ),
        Some(threads) => Ok(threads),
        None => {
            let cores = available_parallelism().map_or(1, std::num::NonZero::get);
            let cores = u32::try_from(cores).unwrap_or(values::MOST_THREADS).min(values::MOST_THREADS);
            Ok(cores.min(connections))
        }
    }
}

/// Short enough to type again.
fn fresh_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Random::new(now.as_nanos() as u64, u64::from(std::process::id())).next_u64() >> 32
}

fn transport(args: &Connecting, tls: Tls) -> Result<Transport> {
    let source_ips: Vec<_> = args.source_ip.iter().flat_map(|list| list.0.iter().copied()).collect();
    if source_ips.len() > values::MOST_SOURCE_IPS {
        bail!("--source-ip: expected at most {} addresses in all, got {}", values::MOST_SOURCE_IPS, source_ips.len());
    }
    let family = match (args.ipv4, args.ipv6) {
        (true, _) => Family::V4,
        (_, true) => Family::V6,
        _ => Family::Any,
    };
    let other = source_ips.iter().find(|ip| match family {
        Family::Any => false,
        Family::V4 => ip.is_ipv6(),
        Family::V6 => ip.is_ipv4(),
    });
    if let Some(ip) = other {
        let (flag, kind) = if args.ipv4 { ("-4", "IPv4") } else { ("-6", "IPv6") };
        bail!("--source-ip {ip} cannot be used with {flag}: give {kind} addresses, or leave {flag} out");
    }
    Ok(Transport {
        connect_to: args.connect_to.clone(),
        unix_socket: args.unix_socket.clone(),
        source_ips,
        family,
        tls,
        addresses: Vec::new(),
    })
}

fn tls(args: &args::Tls) -> Result<Tls> {
    match (&args.cert, &args.key) {
        (Some(_), None) => bail!("--cert needs the private key of that certificate: give it with --key"),
        (None, Some(_)) => bail!("--key needs the certificate of that private key: give it with --cert"),
        _ => {}
    }
    Ok(Tls {
        insecure: args.insecure,
        trusted_pem: args.cacert.as_deref().map(pem::certificates).transpose().context("--cacert")?,
        certificate_pem: args.cert.as_deref().map(pem::certificates).transpose().context("--cert")?,
        key_pem: args.key.as_deref().map(pem::key).transpose().context("--key")?,
        server_name: args.sni.clone(),
    })
}
