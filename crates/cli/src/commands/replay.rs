//! `brunt replay LOG URL`: a log's requests, at its times, in its sessions.
// The docs of fields here are the help that users read: no Markdown.
#![allow(clippy::doc_markdown)]

mod fail_if;

use std::path::PathBuf;

use anyhow::{Context as _, Result, anyhow, bail};
use brunt_plan::connections::Connections;
use brunt_plan::environment::Environment;
use brunt_plan::plan::{Load, MAX_ERROR_RATIO, PLAN_VERSION, Plan, Sandbox, Stop};
use brunt_plan::replay::Replay as Replayed;
use brunt_plan::target::Url;
use brunt_protocol::headers::{Header, header_value};
use brunt_protocol::options_of;
use brunt_record::outcome::OkStatus;
use brunt_record::replayed::Skip;
use brunt_replay::format::{Fields, Format, Options, SessionBy};
use brunt_replay::log::{Config, Log, LogError, Watch, format_names};
use brunt_replay::schedule::Scaling;
use brunt_replay::select::{Filter, FromHosts, Rewrite, Selection, Window};
use clap::Args;

use self::fail_if::FailIf;
use crate::args::bench::Connecting;
use crate::args::{Limits, Output, Program, ProtocolFlags, Saving, Tls, repeat, values};
use crate::exit::Exit;
use crate::kept::Keep;
use crate::plan;
use crate::results::Results;
use crate::single::Logs;
use crate::{console, single};

/// By less than this copies of a session are shifted where nothing else is said, in nanoseconds.
const SHIFT_NS: u64 = 50_000_000;
/// Within this time lines are sorted where nothing else is said, in nanoseconds.
const SORT_NS: u64 = 10_000_000_000;

/// Replay a log: its requests, at its times, in its sessions, beside what it says of the answers
#[derive(Debug, Default, Args)]
pub struct Replay {
    /// The log, also .gz or .zst; - is standard input
    #[arg(value_name = "LOG")]
    pub log: PathBuf,
    /// Where the requests go: a scheme, a host and a port. No other host is called
    #[arg(value_name = "URL")]
    pub url: String,
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
    pub output: Output,
    #[command(flatten)]
    pub saving: Saving,
}

/// How the log is read.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Log")]
pub struct Reading {
    /// Its format: combined, common, caddy, traefik, envoy, proxy, ndjson, vegeta, csv or har [default: recognised]
    #[arg(long, value_name = "NAME", value_parser = log_format)]
    pub log_format: Option<Format>,
    /// Its layout, as in nginx (log_format) or Apache (LogFormat): '$msec $request_time "$request" $status'
    #[arg(long, value_name = "LAYOUT", conflicts_with = "log_format")]
    pub layout: Option<String>,
    /// Of JSON or CSV, where the fields are: time=ts,path=request.uri,status=code,duration=took:ms
    #[arg(long, value_name = "ROLE=FIELD,…", value_parser = Fields::parse, conflicts_with_all = ["log_format", "layout"])]
    pub fields: Option<Fields>,
    /// What belongs together: client, cookie:NAME, field:NAME, or none [default: client]
    #[arg(long, value_name = "BY", value_parser = session_by)]
    pub session: Option<SessionBy>,
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
    #[arg(long, value_name = "FROM-TO", value_parser = window)]
    pub window: Option<(String, Window)>,
    /// What requests must be, repeatable: path^=/api, method!=HEAD, status=200, host=, session= (= != ^= $= *= !*=)
    #[arg(long = "filter", value_name = "CONDITION", value_parser = filter)]
    pub filters: Vec<(String, Filter)>,
    /// Paths that begin with one text begin with another, repeatable: /v1=/v2
    #[arg(long = "rewrite", value_name = "/FROM=/TO", value_parser = Rewrite::parse)]
    pub rewrites: Vec<Rewrite>,
    /// A header field of every request, in place of the log's, repeatable; @NAME takes V from the environment
    #[arg(short = 'H', long = "header", value_name = "K: V")]
    pub headers: Vec<String>,
    /// Send methods that write too: POST, PUT, PATCH, DELETE, …
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
    /// With --scale: copies of a session are shifted by less than this [default: 50ms]
    #[arg(long, value_name = "T", value_parser = values::duration)]
    pub shift: Option<u64>,
    /// Keep the time between the requests of a session where an answer comes late, instead of the due times
    #[arg(long)]
    pub think: bool,
    /// Begin the log anew at its end, until -d
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
    /// The most connections [default: as many as sessions take, within the limits of this machine]
    #[arg(short, long, value_name = "N", value_parser = values::connections)]
    pub connections: Option<u32>,
    /// Worker threads, which share the sessions [default: 1]
    #[arg(short, long, value_name = "N", value_parser = values::threads)]
    pub threads: Option<u32>,
    /// Which HTTP: 1.1, 2 or auto [default: 1.1]
    #[arg(long, value_name = "VERSION")]
    pub http: Option<String>,
    /// The statuses that are a success: 2xx, 200-399, 200,404 [default: all under 400]
    #[arg(long, value_name = "LIST")]
    pub ok_status: Option<OkStatus>,
    /// What must not be, against the log, repeatable: 'other_status>1%', 'p95>2x', 'GET /cart: p50>1.5x'; else exit status 1
    #[arg(long = "fail-if", value_name = "[TEMPLATE:]FIGURE>VALUE", value_parser = FailIf::parse)]
    pub fail_if: Vec<FailIf>,
}

fn log_format(text: &str) -> Result<Format, String> {
    Format::named(text).ok_or_else(|| format!("expected one of {}", format_names().join(", ")))
}

fn session_by(text: &str) -> Result<SessionBy, String> {
    match text.split_once(':') {
        Some(("cookie", name)) if !name.is_empty() => Ok(SessionBy::Cookie(name.to_owned())),
        Some(("field", name)) if !name.is_empty() => Ok(SessionBy::Field(name.to_owned())),
        None if text == "client" => Ok(SessionBy::Client),
        None if text == "none" => Ok(SessionBy::None),
        _ => Err("expected client, cookie:NAME, field:NAME or none".to_owned()),
    }
}

fn shown_session(by: &SessionBy) -> String {
    match by {
        SessionBy::Client => "client".to_owned(),
        SessionBy::Cookie(name) => format!("cookie:{name}"),
        SessionBy::Field(name) => format!("field:{name}"),
        SessionBy::None => "none".to_owned(),
    }
}

fn zone(text: &str) -> Result<i32, String> {
    brunt_replay::stamp::offset(text).ok_or_else(|| "expected an offset such as +02:00".to_owned())
}

fn window(text: &str) -> Result<(String, Window), String> {
    Ok((text.to_owned(), Window::parse(text)?))
}

fn filter(text: &str) -> Result<(String, Filter), String> {
    Ok((text.to_owned(), Filter::parse(text)?))
}

pub fn run(args: &Replay, program: &Program) -> Result<Exit> {
    let (mut plan, log) = planned(args, program)?;
    plan.origin.command = repeat::of_process(program, Some(plan.seed));
    let results = Results::writable(&args.output)?;
    if !args.output.quiet {
        let how =
            if args.reading.log_format.is_some() || args.reading.layout.is_some() { "as given" } else { "recognised" };
        console::note(&format!("{}: {} format, {how}", args.log.display(), log.format().name()));
    }
    let watch = log.watch();
    let logs = log.begin(plan.workers as usize).context("cannot start a thread that reads the log")?;
    let of_workers = logs.into_iter().map(|log| Box::new(log) as Box<dyn brunt_protocol::replay::Replay>).collect();
    let keep = Keep::from_flags(&args.saving, args.output.quiet);
    let told = || told(args, &watch);
    let logs = Logs { of_workers, in_log: &|elapsed_ns| watch.in_log(elapsed_ns) };
    single::replay(&plan, logs, &program.registry, &results, &args.output, &keep, told)
}

/// What was taken of the log, and whether it is as different as it must not be.
fn told(args: &Replay, watch: &Watch) -> brunt_record::replayed::Replayed {
    let mut replayed = watch.replayed();
    replayed.conditions = args.calling.fail_if.iter().map(|condition| condition.judge(&replayed)).collect();
    if let Some(advice) = nothing_left(&replayed) {
        console::note(&format!("note: {advice}"));
    }
    replayed
}

/// What to do where nothing of the log was replayed.
fn nothing_left(replayed: &brunt_record::replayed::Replayed) -> Option<&'static str> {
    let (most, count) = replayed.skipped.iter().max_by_key(|(_, count)| **count)?;
    if replayed.skipped.values().sum::<u64>() < replayed.lines {
        return None;
    }
    let is_defect = Skip::named(most).is_some_and(Skip::is_defect);
    Some(match most.as_str() {
        _ if *count < replayed.lines && !is_defect => "every line was skipped, for reasons that the result counts",
        "other_host" => "every request went to another host: --from-host HOST (or any) says which stand for the target",
        "writes" => "every request writes: --unsafe sends them",
        "no_time" => "the log has no times: --rate says how many requests come a second",
        "filtered" => "--filter left every request out",
        "outside_window" => "no request is within --window",
        _ => "no line gave a request: --log-format, --layout or --fields say how to read the log",
    })
}

/// The plan and the log that the flags ask for.
fn planned(args: &Replay, program: &Program) -> Result<(Plan, Log)> {
    let Replay { reading, selecting, timing, calling, .. } = args;
    let url = Url::parse(&args.url).map_err(|e| anyhow!("URL {e}"))?;
    if url.target.path != "/" {
        bail!(
            "the paths are the log's: leave {} out of the URL (--rewrite /=/PREFIX/ puts it before them)",
            url.target.path
        );
    }
    let (protocol, _) = program.registry.named(&url.target.scheme)?;
    if !matches!(url.target.scheme.as_str(), "http" | "https") {
        bail!("a log's requests are HTTP: give a URL that begins with http:// or https://");
    }
    let flags = ProtocolFlags::default().with("header", selecting.headers.clone()).with("http", calling.http.clone());
    let given = flags.given(protocol, &url.target.scheme, &program.registry)?.with_user(url.user);
    let format_and_options = Options {
        template: reading.layout.clone(),
        fields: reading.fields.clone(),
        session: reading.session.clone().unwrap_or_default(),
        zone_s: reading.zone.unwrap_or(0),
    };
    let mut selection = Selection::new(url.target.clone());
    selection.window = selecting.window.as_ref().map(|(_, window)| *window);
    selection.filters = selecting.filters.iter().map(|(_, filter)| filter.clone()).collect();
    selection.rewrites.clone_from(&selecting.rewrites);
    selection.writes = selecting.r#unsafe;
    selection.hosts = match selecting.from_hosts.as_slice() {
        [] => FromHosts::Target,
        hosts if hosts.iter().any(|host| host == "any") => FromHosts::Any,
        hosts => FromHosts::Named(hosts.to_vec()),
    };
    let seed = args.limits.seed.unwrap_or_else(plan::fresh_seed);
    let scaling = Scaling {
        speed: timing.speed.unwrap_or(1.0),
        scale: timing.scale.unwrap_or(1.0),
        shift_ns: timing.shift.unwrap_or(SHIFT_NS),
        seed,
    };
    let log = Log::open(Config {
        path: args.log.clone(),
        format: reading.log_format,
        options: format_and_options,
        selection,
        scaling,
        sort_ns: reading.sort_window.unwrap_or(SORT_NS),
        repeats: timing.repeats,
        rate: reading.rate,
        headers: headers(&selecting.headers)?,
    })
    .map_err(with_way_out)?;
    let replay = Replayed {
        log: args.log.display().to_string(),
        format: log.format().name().to_owned(),
        speed: scaling.speed,
        scale: scaling.scale,
        shift_ns: scaling.shift_ns,
        session: shown_session(&reading.session.clone().unwrap_or_default()),
        think: timing.think,
        writes: selecting.r#unsafe,
        repeats: timing.repeats,
        window: selecting.window.as_ref().map(|(text, _)| text.clone()),
        filters: selecting.filters.iter().map(|(text, _)| text.clone()).collect(),
    };
    let transport = plan::transport(&args.connecting, plan::tls(&args.tls)?)?;
    let workers = calling.threads.unwrap_or(1);
    let most =
        calling.connections.unwrap_or_else(|| brunt_engine::most_growing_connections(transport.source_ips.len()));
    if most < workers {
        bail!("-t {workers} is more than -c {most}, and each thread needs a connection");
    }
    let plan = Plan {
        version: PLAN_VERSION,
        protocol: options_of(protocol, &given)?,
        target: url.target,
        script: None,
        scenarios: None,
        connections: Connections::UpTo(most),
        workers,
        load: Load::Replay(replay),
        stop: Stop { duration_ns: timing.duration, requests: None },
        warmup_ns: 0,
        timeout_ns: args.limits.timeout_ns(),
        connect_timeout_ns: args.limits.connect_timeout_ns(),
        drain_ns: args.limits.drain_ns(),
        seed,
        reconnect: false,
        pipeline: 1,
        transport,
        ok_status: calling.ok_status.clone().unwrap_or_else(|| protocol.ok_status()),
        thresholds: args.output.thresholds.clone(),
        guards: args.output.guards.clone(),
        guard_action: args.output.guard_action.unwrap_or_default(),
        watches: args.output.watches.clone(),
        max_error_ratio: args.output.most_errors()?.unwrap_or(MAX_ERROR_RATIO),
        origin: plan::origin(&args.saving),
        sandbox: Sandbox::default(),
        environment: Environment::default(),
    };
    plan.validate()?;
    Ok((plan, log))
}

/// The fields that every request has.
fn headers(given: &[String]) -> Result<Vec<(String, String)>> {
    let field = |text: &String| {
        let (name, value) = text.split_once(':').ok_or_else(|| anyhow!("-H: expected 'Name: value'"))?;
        let header = Header::new(name.trim(), value.trim());
        let value = header_value(&header, |name| std::env::var(name).ok())?;
        Ok((header.name().to_owned(), value))
    };
    given.iter().map(field).collect()
}

/// What to do about a log that cannot be replayed.
fn with_way_out(error: LogError) -> anyhow::Error {
    let way = match &error {
        LogError::Unknown { .. } => {
            format!(
                "give --log-format ({}), --layout for a layout of your own, or --fields for JSON",
                format_names().join(", ")
            )
        }
        LogError::Template(_) => "--layout has the format as the server's configuration does".to_owned(),
        LogError::Open { .. } | LogError::Empty { .. } => return error.into(),
    };
    anyhow!("{error}: {way}")
}
