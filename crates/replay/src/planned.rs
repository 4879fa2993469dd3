//! The replay of a plan, made ready for reading.

use std::path::PathBuf;

use brunt_protocol::OptionsError;
use brunt_protocol::headers::{Header, authorization, header_value};
use brunt_protocol::plan::plan::Plan;
use brunt_protocol::plan::replay::LogReplay;
use brunt_protocol::plan::secret::Template;
use brunt_protocol::record::SECOND_NS;

use crate::config::ReplayConfig;
use crate::format::{Format, JsonFields, Options, SessionBy};
use crate::schedule::Scaling;
use crate::select::{Filter, FromHosts, Rewrite, Selection, Window};

/// The default window in which lines are sorted, in nanoseconds.
const SORT_NS: u64 = 10 * SECOND_NS;
/// The longest shift of a session's copies, in nanoseconds: copies wait in memory for that long.
const MOST_SHIFT_NS: u64 = 60 * SECOND_NS;

/// A part of a plan's replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayPart {
    /// The format's name.
    Format,
    /// The places of fields in JSON and tables.
    Fields,
    /// The property that makes a session.
    Session,
    /// The part of the log that is replayed.
    Window,
    /// The conditions on requests.
    Filters,
    /// The changes of paths.
    Rewrites,
    /// The divisor of the log's time.
    Speed,
    /// The factor of its requests.
    Scale,
    /// The bound of the shifts of a session's copies.
    Shift,
    /// The rate in requests per second of a list without times.
    Rate,
    /// Header fields of every request.
    Headers,
}

impl ReplayPart {
    /// The name of the part in a plan's file.
    pub const fn field(self) -> &'static str {
        match self {
            Self::Format => "load.replay.format",
            Self::Fields => "load.replay.fields",
            Self::Session => "load.replay.session",
            Self::Window => "load.replay.window",
            Self::Filters => "load.replay.filters",
            Self::Rewrites => "load.replay.rewrites",
            Self::Speed => "load.replay.speed",
            Self::Scale => "load.replay.scale",
            Self::Shift => "load.replay.shift_ns",
            Self::Rate => "load.replay.rate",
            Self::Headers => "protocol.headers",
        }
    }
}

/// A part of a plan's replay that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the plan's {}: {problem}", part.field())]
pub struct PlannedError {
    /// The part.
    pub part: ReplayPart,
    /// The expected value, and the one that came.
    pub problem: String,
}

impl ReplayConfig {
    /// Reads from a plan what is replayed, and how.
    ///
    /// # Errors
    /// The first part that cannot be read, with the expected value.
    pub fn from_plan(plan: &Plan, replay: &LogReplay) -> Result<Self, PlannedError> {
        let wrong = |part: ReplayPart| move |problem: String| PlannedError { part, problem };
        let format = Format::named(&replay.format);
        if format.is_none() && replay.layout.is_none() && !replay.format.is_empty() {
            let names = Format::ALL.map(Format::name).join(", ");
            return Err(wrong(ReplayPart::Format)(format!("expected one of {names}, got '{}'", replay.format)));
        }
        let options = Options {
            template: replay.layout.clone(),
            fields: replay.fields.as_deref().map(JsonFields::parse).transpose().map_err(wrong(ReplayPart::Fields))?,
            session: SessionBy::parse(&replay.session).map_err(wrong(ReplayPart::Session))?,
            zone_s: replay.zone_s.unwrap_or(0),
        };
        if replay.shift_ns > MOST_SHIFT_NS {
            let (most_s, shift_s) = (MOST_SHIFT_NS / SECOND_NS, replay.shift_ns as f64 / SECOND_NS as f64);
            return Err(wrong(ReplayPart::Shift)(format!(
                "expected at most {most_s}s, got {shift_s}s: copies wait in memory for this long, and bursts stay bursts only if \
                 copies are near"
            )));
        }
        Ok(Self {
            path: replay.logs.first().map(PathBuf::from).unwrap_or_default(),
            more: replay.logs.iter().skip(1).map(PathBuf::from).collect(),
            format,
            options,
            selection: selection(plan, replay)?,
            scaling: Scaling {
                speed: factor(ReplayPart::Speed, replay.speed)?,
                scale: factor(ReplayPart::Scale, replay.scale)?,
                shift_ns: replay.shift_ns,
                seed: plan.seed,
            },
            sort_ns: replay.sort_ns.unwrap_or(SORT_NS),
            repeats: replay.repeats,
            rate: replay.rate.map(|rate| factor(ReplayPart::Rate, rate)).transpose()?,
            trace: replay.trace_ratio,
            logged_is_ok: replay.logged_is_ok,
            headers: headers(plan).map_err(wrong(ReplayPart::Headers))?,
            bytes: replay.fingerprint.as_ref().map(|fingerprint| fingerprint.bytes),
        })
    }
}

/// The part of the log that is sent, and its changes.
fn selection(plan: &Plan, replay: &LogReplay) -> Result<Selection, PlannedError> {
    let wrong = |part: ReplayPart| move |problem: String| PlannedError { part, problem };
    let mut selection = Selection::new(plan.target.clone());
    selection.window = replay.window.as_deref().map(Window::parse).transpose().map_err(wrong(ReplayPart::Window))?;
    let filters = replay.filters.iter().map(|text| Filter::parse(text));
    selection.filters = filters.collect::<Result<_, _>>().map_err(wrong(ReplayPart::Filters))?;
    let rewrites = replay.rewrites.iter().map(|text| Rewrite::parse(text));
    selection.rewrites = rewrites.collect::<Result<_, _>>().map_err(wrong(ReplayPart::Rewrites))?;
    selection.writes = replay.writes;
    selection.hosts = match replay.from_hosts.as_slice() {
        [] => FromHosts::Target,
        hosts if hosts.iter().any(|host| host == "any") => FromHosts::Any,
        hosts => FromHosts::Named(hosts.to_vec()),
    };
    Ok(selection)
}

fn factor(part: ReplayPart, number: f64) -> Result<f64, PlannedError> {
    if number.is_finite() && number > 0.0 {
        return Ok(number);
    }
    Err(PlannedError { part, problem: format!("expected a number above 0, got {number}") })
}

/// The fields that every request has: those of flags, and the user of the target's URL.
fn headers(plan: &Plan) -> Result<Vec<(String, String)>, String> {
    let env = |name: &str| plan.environment.value(name);
    let options = plan.protocol.reveal();
    // A wrong field may hold a secret, so it is not shown.
    let headers: Vec<Header> = options
        .get("headers")
        .map_or(Ok(Vec::new()), |headers| serde_json::from_value(headers.clone()))
        .map_err(|_| "expected a list of header fields, each with a name and a value".to_owned())?;
    let user = options.get("user").and_then(|user| user.as_str()).map(Template::credentials);
    let is_given = headers.iter().any(|header| header.name().eq_ignore_ascii_case("authorization"));
    let user = user.filter(|_| !is_given).map(|user| Ok(("Authorization".to_owned(), authorization(&user, env)?)));
    let field = |header: &Header| Ok((header.name().to_owned(), header_value(header, env)?));
    let fields = headers.iter().map(field).chain(user).collect::<Result<_, OptionsError>>();
    fields.map_err(|error| error.to_string())
}
