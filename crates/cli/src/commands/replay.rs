//! `brunt replay LOG URL`: a log's requests, at its times, in its sessions.
// The docs of fields here are the help that users read: no Markdown.
#![allow(clippy::doc_markdown)]

mod fail_if;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use brunt_plan::connections::Connections;
use brunt_plan::environment::Environment;
use brunt_plan::plan::{Load, MAX_ERROR_RATE, MAX_LESS_RATIO, PLAN_VERSION, Plan, Sandbox, StopRule};
use brunt_plan::replay::{Fingerprint, LogReplay as Replayed};
use brunt_plan::share::Portion;
use brunt_plan::target::Url;
use brunt_protocol::options_of;
use brunt_record::outcome::OkStatus;
use brunt_record::recording::Recording;
use brunt_record::replayed::{LogRead, Skip};
use brunt_replay::config::ReplayConfig;
use brunt_replay::fingerprint;
use brunt_replay::format::Format;
use brunt_replay::log::{Log, format_names};
use brunt_replay::watch::Watch;
use clap::Args;

use self::fail_if::FailIf;
use crate::args::bench::Connecting;
use crate::args::machines::Machines;
use crate::args::{Limits, Output, Program, ProtocolFlags, Saving, Tls, repeat, values};
use crate::exit::Exit;
use crate::kept::Keep;
use crate::logs::with_way_out;
use crate::plan;
use crate::results::Results;
use crate::single::Showing;
use crate::{console, single};

/// The default bound of the shifts of a session's copies, in nanoseconds.
const SHIFT_NS: u64 = 50_000_000;

/// Replay an access log: its requests, at its times, in its sessions, and its answers compared
#[derive(Debug, Default, Args)]
#[command(override_usage = "brunt replay [OPTIONS] <LOG>... <URL>")]
pub struct Replay {
    /// The log, also .gz or .zst; - is standard input; several are read as one, by time. Last the target: a scheme, a host, a port
    // One argument: clap takes the only log before a flag for the URL where there are two.
    #[arg(value_names = ["LOG", "URL"], required = true, num_args = 1..)]
    pub logs_and_url: Vec<PathBuf>,
    #[command(flatten)]
    pub reading: Reading,
    #[command(flatten)]
    pub selecting: Selecting,
    #[command(flatten)]
    pub timing: Timing,
    #[command(flatten)]
    pub calling: Calling,
    #[command(flatten)]
    pub limits: Limits,
    #[command(flatten)]
    pub connecting: Connecting,
    #[command(flatten)]
    pub tls: Tls,
    #[command(flatten)]
    pub machines: Machines,
    #[command(flatten)]
    pub output: Output,
    #[command(flatten)]
    pub saving: Saving,
}

impl Replay {
    /// The logs, and the target's URL.
    ///
    /// # Errors
    /// When there is no log or no URL.
    fn logs_and_url(&self) -> Result<(&[PathBuf], &str)> {
        let (last, logs) = self.logs_and_url.split_last().context("no log is given")?;
        let url = last.to_str().filter(|url| !logs.is_empty() || url.contains("://"));
        match (url, logs) {
            (Some(url), [_, ..]) => Ok((logs, url)),
            (Some(url), []) => bail!("no log is given: brunt replay LOG {url}"),
            (None, _) => bail!("no URL is given: brunt replay {} http://localhost:8080/", named(&self.logs_and_url)),
        }
    }
}

/// How the log is read.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Log")]
pub struct Reading {
    /// The log's format: combined, common, caddy, traefik, envoy, proxy, ndjson, vegeta, csv or har [default: recognised]
    #[arg(long, value_name = "NAME", value_parser = log_format)]
    pub log_format: Option<Format>,
    /// The log's layout, as in nginx (log_format) or Apache (LogFormat): '$msec $request_time "$request" $status'
    #[arg(long, value_name = "LAYOUT", conflicts_with = "log_format")]
    pub layout: Option<String>,
    /// The fields of JSON or CSV: time=ts,path=request.uri,status=code,duration=took:ms
    #[arg(long, value_name = "ROLE=FIELD,…", conflicts_with_all = ["log_format", "layout"])]
    pub fields: Option<String>,
    /// The key of a session: client, cookie:NAME, field:NAME, or none [default: client]
    #[arg(long, value_name = "BY")]
    pub session: Option<String>,
    /// The offset of times without a zone: +02:00 [default: UTC]
    #[arg(long, value_name = "OFFSET", value_parser = zone, allow_hyphen_values = true)]
    pub zone: Option<i32>,
    /// Lines out of order are sorted within this time of the log [default: 10s]
    #[arg(long, value_name = "T", value_parser = values::positive_duration)]
    pub sort_window: Option<u64>,
    /// Requests a second of a list without times (targets of vegeta)
    #[arg(short, long, value_name = "R", value_parser = values::rate)]
    pub rate: Option<f64>,
}

/// What of the log is replayed.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Requests")]
pub struct Selecting {
    /// A part of the log: 10:00-10:30 by its own clock, or FROM..TO in RFC 3339
    #[arg(long, value_name = "FROM-TO")]
    pub window: Option<String>,
    /// A condition that requests must meet, repeatable: path^=/api, method!=HEAD, status=200, host=, session= (= != ^= $= *=
    /// !*=)
    #[arg(long = "filter", value_name = "CONDITION")]
    pub filters: Vec<String>,
    /// Replace the beginning of paths, repeatable: /v1=/v2
    #[arg(long = "rewrite", value_name = "/FROM=/TO")]
    pub rewrites: Vec<String>,
    /// A header field of every request, in place of the log's, repeatable; @NAME takes V from the environment
    #[arg(short = 'H', long = "header", value_name = "K: V")]
    pub headers: Vec<String>,
    /// Also send methods that write: POST, PUT, PATCH, DELETE, …
    #[arg(long)]
    pub r#unsafe: bool,
    /// A host in the log that stands for the target, repeatable; any for all
    #[arg(long = "from-host", value_name = "HOST")]
    pub from_hosts: Vec<String>,
}

/// When requests are due.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Load")]
pub struct Timing {
    /// Divide the log's time: 2x, 0.5x
    #[arg(long, value_name = "FACTOR", value_parser = values::factor)]
    pub speed: Option<f64>,
    /// Multiply its requests, session by session, in the same time: 3x, 0.1x
    #[arg(long, value_name = "FACTOR", value_parser = values::factor)]
    pub scale: Option<f64>,
    /// With --scale: copies of a session are shifted by less than this, at most a minute [default: 50ms]
    #[arg(long, value_name = "T", value_parser = values::duration)]
    pub shift: Option<u64>,
    /// Keep the time between the requests of a session where an answer comes late, instead of the due times
    #[arg(long)]
    pub think: bool,
    /// Start again at the end of the log, until -d
    #[arg(long = "loop", requires = "duration")]
    pub repeats: bool,
    /// Stop after this long
    #[arg(short, long, value_name = "T", value_parser = values::positive_duration)]
    pub duration: Option<u64>,
}

/// How requests are made.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Load")]
pub struct Calling {
    /// The highest number of connections [default: as many as sessions take, within the limits of this machine]
    #[arg(short, long, value_name = "N", value_parser = values::connections)]
    pub connections: Option<u32>,
    /// Worker threads, of each agent too, which share the sessions [default: 1]
    #[arg(short, long, value_name = "N", value_parser = values::threads)]
    pub threads: Option<u32>,
    /// The version of HTTP: 1.1, 2, 3 or auto [default: 1.1]
    #[arg(long, value_name = "VERSION")]
    pub http: Option<String>,
    /// Statuses that count as success: 2xx, 200-399, 200,404 [default: all under 400, and the one in the log]
    #[arg(long, value_name = "LIST")]
    pub ok_status: Option<OkStatus>,
    /// Send a traceparent (W3C Trace Context), sampled, on this share of calls: 1%. Its id stands with failed and slow calls in
    /// the report. What the log has of its own is kept
    #[arg(long, value_name = "SHARE", value_parser = brunt_protocol::traced::share)]
    pub trace: Option<f64>,
    /// Fail condition against the log, repeatable: 'other_status>1%', 'p95>2x', 'GET /cart: p50>1.5x'. Exit status 1 where it
    /// holds
    #[arg(long = "fail-if", value_name = "[TEMPLATE:]FIGURE>VALUE", value_parser = FailIf::parse)]
    pub fail_if: Vec<FailIf>,
}

fn log_format(text: &str) -> Result<Format, String> {
    Format::named(text).ok_or_else(|| format!("expected one of {}", format_names().join(", ")))
}

fn zone(text: &str) -> Result<i32, String> {
    brunt_replay::stamp::offset(text).ok_or_else(|| "expected an offset such as +02:00".to_owned())
}

pub fn run(args: &Replay, program: &Program) -> Result<Exit> {
    let (mut plan, log) = planned(args, program)?;
    plan.origin.command = repeat::of_process(program, Some(plan.seed));
    let results = Results::writable(&args.output)?;
    if !args.output.quiet {
        let how =
            if args.reading.log_format.is_some() || args.reading.layout.is_some() { "as given" } else { "recognised" };
        console::note(&format!("{}: {} format, {how}", named(args.logs_and_url()?.0), log.format().name()));
    }
    let (watch, format) = (log.watch(), log.format());
    let keep = Keep::from_flags(&args.saving, args.output.quiet);
    let in_log = |elapsed_ns| watch.in_log(elapsed_ns);
    let showing = Showing { results: &results, args: &args.output, keep: &keep, in_log: &in_log };
    if args.machines.bus.nats.is_some() {
        let timetable = log.list().context("cannot start a thread that reads the log")?;
        let put_together = |run: &mut Recording, logs: &[(String, LogRead)]| {
            let replayed = judged(args, format, together(&watch, run, logs));
            run.replayed = Some(Box::new(replayed));
        };
        return single::replay_by_agents(
            &plan,
            Box::new(timetable),
            &program.registry,
            &showing,
            &args.machines,
            calling_threads(args),
            put_together,
        );
    }
    let logs = log.begin(Portion::whole(plan.workers)).context("cannot start a thread that reads the log")?;
    let logs = logs.into_iter().map(|log| Box::new(log) as Box<dyn brunt_protocol::replay::WorkerReplay>).collect();
    single::replay(&plan, logs, &program.registry, &showing, |run| {
        judged(args, format, watch.replayed(run.measured_ns))
    })
}

/// The threads of each agent.
fn calling_threads(args: &Replay) -> u32 {
    args.calling.threads.unwrap_or(1)
}

/// Merges the agents' reports on their parts of a log. The lines read and skipped were counted here, once. Fails the
/// run if an agent has read different lines.
fn together(watch: &Watch, run: &mut Recording, logs: &[(String, LogRead)]) -> brunt_record::replayed::Replayed {
    let here = watch.read().marks;
    if let Some((agent, line)) = logs.iter().find_map(|(name, log)| Some((name, log.marks.differ(&here)?))) {
        run.fail(format!(
            "agent '{agent}' did not read the log that this brunt has read: they differ at line {line} or before; nobody may write to a \
             log while it is replayed, but at its end"
        ));
    }
    let (all, templates) = brunt_record::replayed::total_and_templates(logs.iter().flat_map(|(_, log)| &log.compared));
    let requests = run.measured.due() + run.drained.due();
    brunt_record::replayed::Replayed { requests, all, templates, ..watch.replayed(run.measured_ns) }
}

/// Judges the conditions of `--fail-if`, and prints advice where nothing was replayed.
fn judged(
    args: &Replay,
    format: Format,
    mut replayed: brunt_record::replayed::Replayed,
) -> brunt_record::replayed::Replayed {
    replayed.conditions = args.calling.fail_if.iter().map(|condition| condition.judge(&replayed)).collect();
    if let Some(advice) = nothing_left(&replayed, format) {
        console::note(&format!("note: {advice}"));
    }
    replayed
}

/// The advice where nothing of the log was replayed.
fn nothing_left(replayed: &brunt_record::replayed::Replayed, format: Format) -> Option<&'static str> {
    let (most, count) = replayed.skipped.iter().max_by_key(|(_, count)| **count)?;
    if replayed.skipped.values().sum::<u64>() < replayed.lines {
        return None;
    }
    let most = Skip::named(most);
    let is_defect = most.is_some_and(Skip::is_defect);
    Some(match most {
        _ if *count < replayed.lines && !is_defect => "every line was skipped, for reasons that the result counts",
        Some(Skip::OtherHost) => {
            "every request went to another host: --from-host HOST (or any) says which stand for the target"
        }
        Some(Skip::Writes) => "every request writes: --unsafe sends them",
        Some(Skip::NoTime) if format.is_untimed() => {
            "the log has no times: --rate says how many requests come a second"
        }
        Some(Skip::NoTime) => {
            "no request of the log has a time: --layout or --fields says where lines of your own have it"
        }
        Some(Skip::Filtered) => "--filter left every request out",
        Some(Skip::Sampled) => "--scale left every session out: a larger factor, or another --seed, takes some of them",
        Some(Skip::Outside) => "no request is within --window",
        _ => "no line gave a request: --log-format, --layout or --fields say how to read the log",
    })
}

/// The plan and the log by the flags.
fn planned(args: &Replay, program: &Program) -> Result<(Plan, Log)> {
    let Replay { reading, selecting, timing, calling, .. } = args;
    let (logs, url) = args.logs_and_url()?;
    let url = Url::parse(url).map_err(|e| anyhow!("URL {e}"))?;
    if url.target.path != "/" {
        bail!(
            "the paths are the log's: leave {} out of the URL (--rewrite /=/PREFIX/ puts it before them)",
            url.target.path
        );
    }
    let (first, more) = logs_of(logs, timing.repeats)?;
    let (protocol, _) = program.registry.named(&url.target.scheme)?;
    if !matches!(url.target.scheme.as_str(), "http" | "https") {
        bail!("a log's requests are HTTP: give a URL that begins with http:// or https://");
    }
    let flags = ProtocolFlags::default().with("header", selecting.headers.clone()).with("http", calling.http.clone());
    let given = flags.given(protocol, &url.target.scheme, &program.registry)?.with_user(url.user);
    let seed = args.limits.seed.unwrap_or_else(plan::fresh_seed);
    let by_agents = args.machines.bus.nats.is_some();
    if by_agents && !more.is_empty() {
        bail!("agents replay one log: put the logs together into one file, which each of them has");
    }
    let (path, fingerprint) = if by_agents { for_agents(first)? } else { (first.clone(), None) };
    let mut replay = Replayed {
        speed: timing.speed.unwrap_or(1.0),
        scale: timing.scale.unwrap_or(1.0),
        shift_ns: timing.shift.unwrap_or(SHIFT_NS),
        session: reading.session.clone().unwrap_or_else(|| "client".to_owned()),
        think: timing.think,
        writes: selecting.r#unsafe,
        repeats: timing.repeats,
        logged_is_ok: calling.ok_status.is_none(),
        window: selecting.window.clone(),
        filters: selecting.filters.clone(),
        rewrites: selecting.rewrites.clone(),
        from_hosts: selecting.from_hosts.clone(),
        layout: reading.layout.clone(),
        fields: reading.fields.clone(),
        zone_s: reading.zone,
        sort_ns: reading.sort_window,
        rate: reading.rate,
        trace_ratio: calling.trace,
        fingerprint,
        logs: if by_agents { vec![path.display().to_string()] } else { names(logs) },
        ..Replayed::new("", reading.log_format.map_or("", Format::name))
    };
    let transport = plan::transport(&args.connecting, plan::tls(&args.tls)?)?;
    let workers = calling.threads.unwrap_or(1);
    let most =
        calling.connections.unwrap_or_else(|| brunt_engine::most_growing_connections(transport.source_ips.len()));
    if most < workers {
        bail!("-t {workers} is more than -c {most}, and each thread needs a connection");
    }
    let mut plan = Plan {
        version: PLAN_VERSION,
        protocol: options_of(protocol, &given)?,
        target: url.target,
        script: None,
        scenarios: None,
        connections: Connections::UpTo(most),
        workers,
        load: Load::Replay(Box::new(replay.clone())),
        stop: StopRule { duration_ns: timing.duration, requests: None },
        warmup_ns: 0,
        timeout_ns: args.limits.timeout_ns(),
        connect_timeout_ns: args.limits.connect_timeout_ns(),
        drain_ns: args.limits.drain_ns(),
        seed,
        reconnect: false,
        pipeline: 1,
        transport,
        ok_status: calling.ok_status.clone().unwrap_or_else(|| protocol.ok_status()),
        own_times: false,
        own: Vec::new(),
        thresholds: args.output.thresholds.clone(),
        guards: args.output.guards.clone(),
        guard_action: args.output.guard_action.unwrap_or_default(),
        watches: args.output.watches.clone(),
        max_error_rate: args.output.most_errors()?.unwrap_or(MAX_ERROR_RATE),
        max_less_ratio: args.output.allow_less.unwrap_or(MAX_LESS_RATIO),
        origin: plan::origin(&args.saving),
        sandbox: Sandbox::default(),
        environment: Environment::default(),
    };
    plan.validate()?;
    // A path that is not sent to agents need not be UTF-8.
    let config = ReplayConfig { path, more: more.to_vec(), ..ReplayConfig::from_plan(&plan, &replay)? };
    let log = Log::open(config).map_err(with_way_out)?;
    if reading.rate.is_some() && !log.format().is_untimed() {
        bail!(
            "--rate is for targets of vegeta, which have no times: a log in the {} format has its own, and --speed divides them",
            log.format().name()
        );
    }
    log.format().name().clone_into(&mut replay.format);
    plan.load = Load::Replay(Box::new(replay));
    Ok((plan, log))
}

/// The first log, and the others that are read with it.
///
/// # Errors
/// When they cannot be read as the flags ask.
fn logs_of(logs: &[PathBuf], repeats: bool) -> Result<(&PathBuf, &[PathBuf])> {
    let (first, more) = logs.split_first().context("no log is given")?;
    let has_input = logs.iter().any(|log| log.as_os_str() == "-");
    if has_input && !more.is_empty() {
        bail!("standard input is replayed by itself: give files, or one log");
    }
    if repeats && has_input {
        bail!("--loop reads the log from its beginning again, and standard input has none: give a file");
    }
    Ok((first, more))
}

/// The names of logs, such as `access.log access.log.1.gz`.
fn named(logs: &[PathBuf]) -> String {
    names(logs).join(" ")
}

fn names(logs: &[PathBuf]) -> Vec<String> {
    logs.iter().map(|log| log.display().to_string()).collect()
}

/// The absolute path of a log, as agents open it, and its fingerprint.
fn for_agents(path: &Path) -> Result<(PathBuf, Option<Fingerprint>)> {
    if path.as_os_str() == "-" {
        bail!("agents cannot read this brunt's standard input: give a file that each of them has, too");
    }
    let path = std::path::absolute(path).with_context(|| format!("cannot find {}", path.display()))?;
    if path.to_str().is_none() {
        bail!("{}: the path is not UTF-8, so that agents cannot be told it: rename the log", path.display());
    }
    let fingerprint = fingerprint::take(&path)?;
    Ok((path, Some(fingerprint)))
}
