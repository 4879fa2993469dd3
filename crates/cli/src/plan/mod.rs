//! Flags into a plan: only here they are checked against each other. Code below sees no flags.

pub mod asking;
mod cookies;
mod pem;
mod repeated;

use std::path::Path;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, anyhow, bail};
use brunt_plan::connections::Connections;
use brunt_plan::content::Content;
use brunt_plan::environment::Environment;
use brunt_plan::plan::{
    ArrivalTimes, Family, Load, MAX_ERROR_RATE, MAX_LESS_RATIO, Origin, PLAN_VERSION, Pace, Plan, Script, StopRule,
    Tls, Transport,
};
use brunt_plan::profile::Profile;
use brunt_plan::random::Random;
use brunt_plan::scenario::DeclaredFigure;
use brunt_plan::secret::{REDACTED, Template};
use brunt_plan::target::{Target, Url};
use brunt_protocol::{OwnTimes, Registry, options_of, redact_loaded};
use brunt_record::SECOND_NS;
use brunt_record::figures::OwnKind;

use self::asking::Probe;
use crate::args::bench::{Bench, Connecting, Saving};
use crate::args::{self, Program, ProtocolFlags, values};
use crate::{files, foreign};

const DEFAULT_CONNECTIONS: u32 = 64;
/// Streams on one connection where a rate decides the number of calls: about as many as servers allow.
const STREAMS_OF_A_RATE: u32 = 100;
/// Calls a second that one worker makes with ease: over plain HTTP a tenth of its time, at 10 µs a call.
pub const EASY_RATE: f64 = 10_000.0;
const DEFAULT_DURATION_NS: u64 = 10 * SECOND_NS;

/// The plan of the flags: a stored one, or one made from them.
///
/// # Errors
/// Which flag, file, line or column is wrong, and what to do about it.
pub fn from_flags(bench: &Bench, program: &Program) -> Result<Plan> {
    let mut plan = match &bench.kept.plan {
        Some(path) => Plan { sandbox: bench.confinement.of_plan(), ..kept(path, &program.registry)? },
        None => made(bench, program)?,
    };
    plan.thresholds.extend(bench.output.thresholds.iter().cloned());
    plan.guards.extend(bench.output.guards.iter().cloned());
    plan.guard_action = bench.output.guard_action.unwrap_or(plan.guard_action);
    plan.watches.extend(bench.output.watches.iter().cloned());
    plan.max_error_rate = bench.output.most_errors()?.unwrap_or(plan.max_error_rate);
    plan.max_less_ratio = bench.output.allow_less.unwrap_or(plan.max_less_ratio);
    plan.origin = origin(&bench.saving);
    declare_objectives(&mut plan, program)?;
    if bench.trial.once {
        make_single(&mut plan);
        // A single call is made to see its answer, whatever that is.
        plan.max_error_rate = bench.output.max_error_rate.unwrap_or(1.0);
    }
    plan.validate()?;
    Ok(plan)
}

/// Declares the figures of thresholds on objectives of a call, which the target's protocol measures if it knows them.
fn declare_objectives(plan: &mut Plan, program: &Program) -> Result<()> {
    let Some((protocol, _)) = program.registry.find(&plan.target.scheme) else { return Ok(()) };
    let asked: Vec<_> = plan.conditions().filter(|condition| condition.objectives().is_some()).cloned().collect();
    for condition in asked {
        let Some(limits) = condition.objectives() else { continue };
        protocol.check_objectives(limits).with_context(|| format!("threshold '{condition}'"))?;
        let name = format!("within({limits})");
        if !plan.own.iter().any(|figure| figure.name == name) {
            plan.own.push(DeclaredFigure::new(&name, OwnKind::Rate, ""));
        }
    }
    Ok(())
}

/// The length of a run of `plan`, in nanoseconds, as far as it is known.
pub fn length_ns(plan: &Plan) -> u64 {
    plan.warmup_ns + plan.load_ns().unwrap_or(0)
}

/// The name and tags of a run or decision.
pub fn origin(saving: &Saving) -> Origin {
    Origin { name: saving.name.clone(), tags: saving.tags.iter().cloned().collect(), command: String::new() }
}

/// Replaces the load by one call; for scenarios, by one user who goes through each of them once.
fn make_single(plan: &mut Plan) {
    (plan.connections, plan.workers, plan.pipeline, plan.warmup_ns) = (Connections::Fixed(1), 1, 1, 0);
    plan.load = Load::Closed {};
    plan.stop = StopRule { duration_ns: None, requests: Some(1) };
    if let Some(scenarios) = &mut plan.scenarios {
        let mut names: Vec<String> = Vec::new();
        for weighted in scenarios.populations.iter().flat_map(|population| &population.scenarios) {
            if !names.contains(&weighted.scenario) {
                names.push(weighted.scenario.clone());
            }
        }
        scenarios.make_single(&names);
        plan.stop = StopRule::default();
    }
}

fn kept(path: &Path, registry: &Registry) -> Result<Plan> {
    let text = files::read_text(path)?;
    let mut plan: Plan = serde_json::from_slice(text.as_bytes()).map_err(|e| {
        let problem = e.to_string();
        let problem = problem.split(" at line ").next().unwrap_or_default();
        anyhow!("{} is not a plan: line {}, column {}: {problem}", path.display(), e.line(), e.column())
    })?;
    if let Some((protocol, _)) = registry.find(&plan.target.scheme) {
        // A secret in the file is hidden, as one from a flag is.
        plan.protocol = redact_loaded(protocol, &plan.protocol);
    }
    if let Some(watch) = plan.watches.iter().find(|watch| watch.is_redacted()) {
        bail!(
            "{}: the plan holds no secrets: the credentials of the watch {watch} were left out when it was written; put them back",
            path.display()
        );
    }
    if let Some(field) = redacted(plan.protocol.reveal()) {
        bail!(
            "{}: the plan holds no secrets: protocol.{field} was left out when it was written; put it back, or give a \
             header or password as @NAME and set NAME in the environment",
            path.display()
        );
    }
    Ok(plan)
}

/// Where in options something was left out, if anything was.
fn redacted(options: &serde_json::Value) -> Option<String> {
    let below = |name: String, value| {
        redacted(value).map(|inner| if inner.is_empty() { name.clone() } else { format!("{name}.{inner}") })
    };
    match options {
        serde_json::Value::String(text) => text.contains(REDACTED).then(String::new),
        serde_json::Value::Array(all) => {
            (0..).zip(all).find_map(|(place, one): (u32, _)| below(place.to_string(), one))
        }
        serde_json::Value::Object(fields) => fields.iter().find_map(|(name, one)| below(name.clone(), one)),
        _ => None,
    }
}

/// The word on the command line that stands where the URL is expected.
///
/// # Errors
/// When there is no such word, or it is no URL but a command, a file or a number: the error says what to type.
fn address<'a>(bench: &'a Bench, program: &Program) -> Result<&'a String> {
    let Some(url) = &bench.url else {
        bail!(
            "no URL is given: name what to aim at, such as http://localhost:8080/ (or try brunt demo); paths from standard input are --url-lines -"
        );
    };
    if program.is_command(url) {
        bail!("{url} is a command, which stands before all flags (a host of that name is written http://{url}/)");
    }
    refuse_foreign(&bench.request.foreign)?;
    if let Some(way) = foreign::file(Path::new(url)).filter(|_| Path::new(url).is_file()) {
        bail!("{way}");
    }
    if Path::new(url).extension().is_some_and(|extension| extension == "lua") && Path::new(url).is_file() {
        bail!(
            "{url} is a script: brunt run {url} carries its scenarios out; one for wrk stands before a URL, brunt -s {url} URL"
        );
    }
    if is_name_of_file(url) {
        bail!(
            "there is no file {url}: brunt run FILE carries out the scenarios of a script (a host of that name is written http://{url}/)"
        );
    }
    if let Some(command) = program.mistyped(url) {
        bail!("{url} is not a command: did you mean brunt {command}? (A host of that name is written http://{url}/)");
    }
    if [url].into_iter().chain(&bench.surplus).any(|word| is_number(word)) {
        bail!(
            "a number stands where the URL is expected: the flag before it, such as -v or -k, takes no value; a port of \
             this machine is http://localhost:PORT/"
        );
    }
    if !bench.surplus.is_empty() {
        bail!(
            "expected one URL, got {}: put values with spaces in quotes (-H 'Name: value'); for several paths of one \
             target, give --url-lines",
            bench.surplus.len() + 1
        );
    }
    Ok(url)
}

fn made(bench: &Bench, program: &Program) -> Result<Plan> {
    let registry = &program.registry;
    let written = address(bench, program)?;
    let url = Url::parse(written).map_err(|e| anyhow!("URL {e}"))?;
    // The user is in the header field that the script begins with.
    let of_script = if url.user.is_some() { url.target.whole_url() } else { written.clone() };
    let (protocol, _) = registry.named(&url.target.scheme)?;
    let authorizes = |header: &std::ffi::OsString| {
        header.to_string_lossy().split(':').next().is_some_and(|name| name.trim().eq_ignore_ascii_case("authorization"))
    };
    let has_basic = url.user.is_some() || bench.protocol.texts("basic").next().is_some();
    if has_basic && bench.protocol.texts("header").any(authorizes) {
        bail!("--basic (or a user in the URL) and -H 'Authorization: …' would both be sent: leave one out");
    }
    let args::Load { connections, threads, warmup, .. } = bench.load;
    let limits = &bench.limits;
    let (timeout_ns, connect_timeout_ns) = (limits.timeout_ns_of(protocol), limits.connect_timeout_ns());
    let transport = transport(&bench.connecting, tls(&bench.tls)?)?;
    let asker = Arc::new(Probe::new(transport.clone(), timeout_ns, connect_timeout_ns, registry));
    if bench.request.compressed && !matches!(url.target.scheme.as_str(), "http" | "https") {
        let instead = if protocol.flags().iter().any(|flag| flag.name == "deflate") { ": give --deflate" } else { "" };
        bail!("--compressed asks for compressed answers of HTTP, and {} has none{instead}", protocol.name());
    }
    let given = requested(&bench.request, &bench.protocol, &url.target)?
        .given(protocol, &url.target.scheme, registry)?
        .with_user(url.user)
        .with_files(Arc::new(files::read_if_there))
        .with_target(asker.inquiry(url.target.clone()));
    let script = bench.request.script.as_deref().map(|path| script(path, of_script, &bench.script_args)).transpose()?;
    let own_times = protocol.own_times(&given)?;
    let load = load_at(&own_times, bench)?;
    let has_own_times = match &own_times {
        OwnTimes::None => false,
        OwnTimes::Conversations => true,
        OwnTimes::Trace { has_turns, .. } => *has_turns || matches!(load, Load::Replay(_)),
    };
    let pipeline = in_flight(bench, &load, protocol.multiplexes(&given), has_own_times)?;
    let connections = match connections {
        Some(number) => Connections::Fixed(number),
        None => default_connections(&load, &transport, bench.load.requests, threads),
    };
    let workers = match threads {
        Some(threads) => given_workers(threads, connections.most())?,
        None => default_workers(&load, script.is_some(), connections.most()),
    };
    let options = asker.told(options_of(protocol, &given))?;
    let own = protocol.own_figures(&options);
    Ok(Plan {
        version: PLAN_VERSION,
        protocol: options,
        target: url.target,
        script,
        scenarios: None,
        connections,
        workers,
        own_times: has_own_times,
        stop: stop(&bench.load, &load),
        load,
        warmup_ns: warmup.unwrap_or(0),
        timeout_ns,
        connect_timeout_ns,
        drain_ns: limits.drain_ns(),
        seed: limits.seed.unwrap_or_else(fresh_seed),
        reconnect: bench.load.reconnect,
        pipeline,
        transport,
        ok_status: bench.request.ok_status.clone().unwrap_or_else(|| protocol.ok_status()),
        own,
        thresholds: Vec::new(),
        guards: Vec::new(),
        guard_action: brunt_plan::threshold::GuardAction::Stop,
        watches: Vec::new(),
        max_error_rate: MAX_ERROR_RATE,
        max_less_ratio: MAX_LESS_RATIO,
        origin: Origin::default(),
        sandbox: bench.confinement.of_named(),
        environment: Environment::default(),
    })
}

/// The flags of protocols, with shorthands expanded.
fn requested(request: &args::bench::Request, flags: &ProtocolFlags, target: &Target) -> Result<ProtocolFlags> {
    let mut flags = flags.clone();
    let given = flags.clone();
    let names = |name: &str| {
        let is_it = |header: &std::ffi::OsString| {
            header.to_string_lossy().split(':').next().is_some_and(|given| given.trim().eq_ignore_ascii_case(name))
        };
        given.texts("header").any(is_it)
    };
    if request.compressed && !names("Accept-Encoding") {
        flags = flags.with("header", ["Accept-Encoding: gzip, deflate, br, zstd".to_owned()]);
    }
    if let Some(json) = &request.json {
        // A pipe can be read once, and a file that cannot be read is told where bodies are read.
        if let Some(path) = json.strip_prefix('@')
            && Path::new(path).is_file()
            && let Ok(text) = std::fs::read(path)
        {
            let checked = values::is_json(&text);
            checked.map_err(|why| {
                anyhow!("--json @{path}: the file is not JSON ({why}); --body @{path} sends any bytes")
            })?;
        }
        let missing = ["Content-Type", "Accept"].into_iter().filter(|name| !names(name));
        let headers: Vec<_> = missing.map(|name| format!("{name}: application/json")).collect();
        flags = flags.with("body", [json.clone()]).with("header", headers);
    }
    if let Some(agent) = &request.user_agent {
        if names("User-Agent") {
            bail!("--user-agent and -H 'User-Agent: …' would both be sent: leave one out");
        }
        flags = flags.with("header", [format!("User-Agent: {agent}")]);
    }
    let has_lines = given.texts("url-lines").next().is_some();
    Ok(flags.with("header", cookies::field(&request.cookies, target, has_lines)?))
}

/// Whether this can hardly be anything but a file's name: no domain ends like this.
fn is_name_of_file(url: &str) -> bool {
    const ENDS: [&str; 8] = ["lua", "js", "mjs", "har", "jmx", "json", "yaml", "yml"];
    let end = Path::new(url).extension().and_then(|end| end.to_str());
    !url.contains(':') && end.is_some_and(|end| ENDS.contains(&end)) && !Path::new(url).is_file()
}

/// Refuses a flag that other tools have and brunt does not, with the reason.
fn refuse_foreign(foreign: &args::bench::Foreign) -> Result<()> {
    if foreign.follow {
        bail!(
            "brunt follows no redirects in a flood: aim at where they lead (brunt --once shows it), or let users \
             follow them in a scenario (brunt help scenarios); wrk2's -L is --latency"
        );
    }
    Ok(())
}

/// Whether a word is nothing but digits.
fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// A script travels with the plan. What it gets as arguments is written as wrk has it: the URL comes first.
fn script(path: &Path, url: String, args: &[String]) -> Result<Script> {
    if let Some(way) = foreign::file(path) {
        bail!("{way}");
    }
    if path.to_str().is_some_and(is_number) && !path.exists() {
        bail!("-s is a script of wrk; how long an answer may take is --timeout: brunt --timeout 30s URL");
    }
    let args = std::iter::once(url).chain(args.iter().cloned()).map(Template::secret).collect();
    let (file, content) = (path.display().to_string(), files::read(path)?);
    for (line, problem) in brunt_lua::misspelt(&content) {
        crate::console::note(&format!("note: {file}:{line}: {problem}"));
    }
    Ok(Script { file, content: Content(content), args })
}

/// The number of calls in flight on one connection.
fn in_flight(bench: &Bench, load: &Load, is_multiplexed: bool, has_own_times: bool) -> Result<u32> {
    match (bench.load.streams, bench.load.pipeline) {
        (None, None) if has_own_times => Ok(1),
        (Some(_), _) | (_, Some(_)) if has_own_times => {
            bail!("calls of a conversation or a trace have a connection each: leave --streams and --pipeline out")
        }
        (Some(_), _) if !is_multiplexed => {
            bail!(
                "--streams says how many calls share a connection of HTTP/2: give --http 2 (or auto), or --pipeline for HTTP/1.1"
            )
        }
        (_, Some(_)) if is_multiplexed => {
            bail!("--pipeline sends calls ahead of answers: with HTTP/2 (--http 2 or auto, gRPC), give --streams")
        }
        (Some(number), _) | (None, Some(number)) => Ok(number),
        (None, None) if is_multiplexed && matches!(load, Load::Open { .. }) && !bench.load.reconnect => {
            Ok(STREAMS_OF_A_RATE)
        }
        (None, None) => Ok(1),
    }
}

/// The load of the flags, or the times of a trace where they have neither a rate nor a number of connections.
fn load_at(own_times: &OwnTimes, bench: &Bench) -> Result<Load> {
    let by_flags = load(&bench.load, &bench.saving)?;
    let OwnTimes::Trace { trace, .. } = own_times else { return Ok(by_flags) };
    let flag = match &by_flags {
        Load::Open { .. } => "the rate",
        _ if bench.load.connections.is_some() => "-c",
        _ => return Ok(Load::Replay(trace.clone())),
    };
    if trace.speed.total_cmp(&1.0).is_ne() {
        bail!("--speed divides the times of {}, and {flag} takes their place: leave one out", trace.logs.join(" "));
    }
    if !bench.output.quiet {
        crate::console::note(&format!(
            "note: the times of {} are not used, since {flag} says when calls are due",
            trace.logs.join(" ")
        ));
    }
    Ok(by_flags)
}

fn load(args: &args::Load, saving: &Saving) -> Result<Load> {
    let spread = args.arrivals.unwrap_or_default();
    let repeated = args.profile.as_ref().map(|run| {
        repeated::profile(run, saving.store.as_deref()).with_context(|| format!("--profile from-run:{run}"))
    });
    match args.rate.clone().map(Ok).or(repeated).transpose()? {
        Some(profile) => Ok(Load::Open { profile, arrivals: spread }),
        None if args.arrivals.is_some() => {
            bail!("--arrivals says how the due times of a rate are spread, and there is no rate: give one with -r")
        }
        None => Ok(Load::Closed {}),
    }
}

/// The end of the run: as given; by default a duration, unless the load ends by itself.
fn stop(args: &args::Load, load: &Load) -> StopRule {
    let ends = match load {
        Load::Open { profile, .. } => Profile::duration_ns(profile).is_some(),
        Load::Closed {} => false,
        Load::Replay(_) => true,
    };
    let default = (args.requests.is_none() && !ends).then_some(DEFAULT_DURATION_NS);
    StopRule { duration_ns: args.duration.or(default), requests: args.requests }
}

/// With a rate, as many as it needs; otherwise the default. At most one for each request.
fn default_connections(load: &Load, transport: &Transport, requests: Option<u64>, threads: Option<u32>) -> Connections {
    let needed = requests.and_then(|requests| u32::try_from(requests).ok()).unwrap_or(u32::MAX).max(1);
    match load {
        Load::Closed {} => Connections::Fixed(DEFAULT_CONNECTIONS.min(needed)),
        Load::Open { .. } | Load::Replay(_) => {
            let most = brunt_engine::most_growing_connections(transport.source_ips.len());
            Connections::UpTo(most.min(needed.max(threads.unwrap_or(1))))
        }
    }
}

fn given_workers(threads: u32, connections: u32) -> Result<u32> {
    if threads > connections {
        bail!(
            "-t {threads} is more than -c {connections}, and each thread needs a connection: give -c {threads} or \
             more, or -t {connections} or fewer"
        );
    }
    Ok(threads)
}

/// As many workers as cores. For a rate, as few as carry it with ease: a single worker knows the effect of its own
/// delays on each call, and several do not know each other's. The cost of a script is unknown.
pub fn default_workers(load: &Load, has_script: bool, connections: u32) -> u32 {
    let cores = cores().min(connections);
    match load {
        Load::Open { profile, .. } if !has_script => {
            cores.min((profile.highest_rate() / EASY_RATE).ceil() as u32).max(1)
        }
        Load::Open { .. } | Load::Closed {} => cores,
        // One worker keeps the order of a log's calls.
        Load::Replay(_) => 1,
    }
}

/// The CPUs that this process may use.
pub fn cores() -> u32 {
    let cores = available_parallelism().map_or(1, std::num::NonZero::get);
    u32::try_from(cores).unwrap_or(values::MOST_THREADS).min(values::MOST_THREADS)
}

/// Short enough to type again.
pub fn fresh_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Random::new(now.as_nanos() as u64, u64::from(std::process::id())).next_u64() >> 32
}

/// How often a target's name is looked up again for new connections, in nanoseconds, unless a flag says otherwise.
const RESOLVE_EVERY_NS: u64 = SECOND_NS;

pub fn transport(args: &Connecting, tls: Tls) -> Result<Transport> {
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
        proxy: args.proxy.clone(),
        unix_socket: args.unix_socket.clone(),
        source_ips,
        family,
        tls,
        addresses: Vec::new(),
        arrival_times: match args.arrival_times {
            Some(args::bench::ArrivalTimes::Read) => ArrivalTimes::Read,
            Some(args::bench::ArrivalTimes::Kernel) | None => ArrivalTimes::Kernel,
        },
        pace: match args.pace {
            Some(args::bench::Pace::Timer) => Pace::Timer,
            Some(args::bench::Pace::Spin) => Pace::Spin,
            Some(args::bench::Pace::Auto) | None => Pace::Auto,
        },
        wait_ns: args.wait_for.unwrap_or(0),
        resolve_every_ns: args.resolve_every.unwrap_or(RESOLVE_EVERY_NS),
        udp_sockets: args.udp_sockets.unwrap_or(0),
    })
}

pub fn tls(args: &args::Tls) -> Result<Tls> {
    let key = match (&args.cert, &args.key) {
        // One file may hold both.
        (Some(cert), None) if pem::has_key(cert).context("--cert")? => {
            Some(pem::key(&cert.to_string_lossy()).context("--cert")?)
        }
        (Some(_), None) => {
            bail!("--cert needs the private key of that certificate: give it with --key, or in the same file")
        }
        (None, Some(_)) => bail!("--key needs the certificate of that private key: give it with --cert"),
        (_, key) => key.as_deref().map(pem::key).transpose().context("--key")?,
    };
    Ok(Tls {
        insecure: args.insecure,
        trusted_pem: args.cacert.as_deref().map(pem::certificates).transpose().context("--cacert")?,
        certificate_pem: args.cert.as_deref().map(pem::certificates).transpose().context("--cert")?,
        key_pem: key,
        server_name: args.sni.clone(),
        no_resumption: args.no_sessionid,
        early_data: args.early_data,
    })
}
