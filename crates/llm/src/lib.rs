//! Servers of language models: OpenAI's, Anthropic's and Ollama's APIs, and what imitates them.
//!
//! A guest on HTTP. A run against `llm://HOST` makes prompts of as many tokens as were asked for, and measures answers by their tokens: the
//! time to the first, the times between them, tokens a second, and how many answers met their objectives. The definitions stand in
//! [`meter`].
//!
//! | file | has |
//! | --- | --- |
//! | [`options`], `flags.rs` | what is asked for, and what a server was found to take |
//! | [`prompt`], [`length`] | prompts, and how long they are |
//! | `conversation.rs`, [`turns`], [`think`], [`reply`] | turns that repeat the answers before them, and traces at their own times |
//! | [`dialect`], `request.rs`, [`event`], [`json`] | bodies and the requests around them, and what answers say |
//! | [`client`] | the client of a connection, above that of HTTP |
//! | [`meter`], [`objectives`], [`timelines`] | the figures, and single answers token by token |
//!
//! ```
//! use brunt_llm::length::Length;
//! use brunt_llm::objectives::Objectives;
//!
//! let length: Length = "normal:512,64".parse().unwrap();
//! assert_eq!(length.mean(), 512.0);
//! let objectives: Objectives = "ttft<500ms,tpot<50ms".parse().unwrap();
//! assert_eq!(objectives.to_string(), "ttft<500ms,tpot<50ms");
//! ```

pub mod client;
mod conversation;
pub mod dialect;
pub mod event;
mod facts;
mod flags;
pub mod json;
pub mod length;
pub mod meter;
pub mod objectives;
pub mod options;
pub mod prompt;
pub mod reply;
mod request;
pub mod think;
pub mod timelines;
pub mod turns;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use brunt_http1::Http1;
use brunt_http1::options::{Content, Options as Http};
use brunt_plan::plan::{Load, Plan, ProtocolOptions};
use brunt_plan::scenario::DeclaredFigure;
use brunt_plan::share::Share;
use brunt_plan::threshold::Threshold;
use brunt_plan::units::{Duration, ExactDuration};
use brunt_protocol::flags::{Flag, FlagValues};
use brunt_protocol::messages::{Framing, MessageOptions};
use brunt_protocol::meter::Meter;
use brunt_protocol::replay::WorkerReplay;
use brunt_protocol::source::{Message, RequestSource, SourceEnd};
use brunt_protocol::{Client, OptionsError, OwnTimes, Prepared, Protocol, Scheme, quic_figures, read_options};
use brunt_record::SECOND_NS;
use brunt_record::call_timeline::CallTimeline;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::client::LlmClient;
use crate::conversation::OwnCalls;
use crate::dialect::{ApiDialect, Asked};
use crate::meter::TokenMeter;
use crate::objectives::Objectives;
use crate::options::{LlmOptions, Question};
use crate::request::{Request, Requests};
use crate::timelines::SharedTimelines;
use crate::turns::Lost;

/// How long an answer may take by default: long ones take minutes.
const USUAL_TIMEOUT_NS: u64 = 600 * SECOND_NS;
/// Separates the random numbers of prompts from those of anything else.
const PROMPTS: u64 = 0x001_1a9e;

/// Language models over HTTP.
pub struct Llm;

impl Protocol for Llm {
    fn name(&self) -> &'static str {
        "LLM"
    }

    fn schemes(&self) -> &[Scheme] {
        &[Scheme { name: "llm", default_port: 80, tls: false }, Scheme { name: "llms", default_port: 443, tls: true }]
    }

    fn usual_timeout_ns(&self) -> Option<u64> {
        Some(USUAL_TIMEOUT_NS)
    }

    fn flags(&self) -> &[Flag] {
        &flags::FLAGS
    }

    fn multiplexes(&self, given: &FlagValues) -> bool {
        Http1.multiplexes(given)
    }

    fn options(&self, given: &FlagValues) -> Result<ProtocolOptions, OptionsError> {
        given.refuse_user("llm")?;
        flags::options(given)
    }

    fn shown(&self, options: &Value) -> Value {
        let mut shown = options.clone();
        if let Some(http) = shown.get_mut("http") {
            *http = Http1.shown(http);
        }
        shown
    }

    fn own_figures(&self, options: &ProtocolOptions) -> Vec<DeclaredFigure> {
        let has = |option: &str| options.shown().get(option).is_some();
        let prefix = options.shown().pointer("/prompts/made/prefix").and_then(Value::as_u64);
        let mut declared = meter::declared(meter::FigureTerms {
            has_objectives: has("objectives"),
            has_turns: has("turns"),
            prompts_differ: prefix == Some(0) && !has("turns"),
        });
        if options.shown().pointer("/http/http").is_some_and(|version| version == "3") {
            declared.extend(quic_figures());
        }
        declared
    }

    fn own_times(&self, given: &FlagValues) -> Result<OwnTimes, OptionsError> {
        flags::own_times(given)
    }

    fn check_objectives(&self, limits: &str) -> Result<(), OptionsError> {
        limits.parse::<Objectives>().map(drop).map_err(OptionsError)
    }

    fn prepare(&self, plan: &Plan) -> Result<Arc<dyn Prepared>, OptionsError> {
        let options: LlmOptions = read_options(plan, self.name())?;
        let dialect = options.api.or_else(|| ApiDialect::of_path(&plan.target.path)).unwrap_or(ApiDialect::Chat);
        let mut http = Http::deserialize(&options.http)
            .map_err(|error| OptionsError(format!("the plan's protocol part is not one of LLM: http: {error}")))?;
        let mut below = plan.clone();
        if plan.target.scheme == "llms" { "https" } else { "http" }.clone_into(&mut below.target.scheme);
        below.target.path = dialect.path_behind(&plan.target.path);
        if options.asks == Some(Question::Models) {
            below.target.path = dialect.models_path(&below.target.path);
            below.protocol = http.to_protocol();
            return Http1.prepare(&below);
        }
        http.body = Some(Content(b"{}".to_vec()));
        if options.stream {
            http.messages = Some(MessageOptions { framing: dialect.framing(), last: None, stall_ns: options.stall_ns });
            if dialect.framing() == Framing::Sse
                && !http.headers.iter().any(|header| header.name().eq_ignore_ascii_case("accept"))
            {
                http.headers.push(brunt_protocol::headers::Header::new("Accept", "text/event-stream"));
            }
        }
        below.protocol = http.to_protocol();
        let http = Http1.prepare(&below)?;
        let asked = Asked {
            model: &options.model,
            streams: options.stream,
            ignores_end: options.ignore_eos,
            extra: &options.extra,
            taken: options.taken,
        };
        let source = options.prompts.ready(plan.seed, request::salt(plan.seed))?;
        let whole = |body: Option<&Map<String, Value>>| body.map(|body| dialect.whole_body(&asked, body));
        let prompts = Requests {
            request: Request::around(http.user().as_mut())?,
            body: dialect.body(&asked),
            bodies: source.bodies().into_iter().map(whole).collect(),
            source,
            output: options.output,
            dialect,
            seed: plan.seed ^ PROMPTS,
            serial: AtomicU64::new(0),
        };
        let times = match &plan.load {
            Load::Replay(replay) => {
                let times = prompts.source.times().ok_or_else(|| {
                    OptionsError("the plan replays a trace, and not all of its requests have times".to_owned())
                })?;
                let times: Vec<u64> = times.into_iter().map(|at_ns| (at_ns as f64 / replay.speed) as u64).collect();
                check_warm_up(plan.warmup_ns, &times)?;
                times
            }
            Load::Closed {} | Load::Open { .. } => Vec::new(),
        };
        let mut shares: Vec<(String, Objectives)> = Vec::new();
        for limits in plan.conditions().filter_map(Threshold::objectives) {
            let name = format!("within({limits})");
            if !shares.iter().any(|(known, _)| *known == name) {
                shares.push((name, limits.parse().map_err(OptionsError)?));
            }
        }
        Ok(Arc::new(PreparedLlm {
            http,
            dialect,
            options,
            prompts: Arc::new(prompts),
            plan: Arc::new(plan.clone()),
            times: times.into(),
            lost: Lost::default(),
            timelines: SharedTimelines::default(),
            shares,
        }))
    }
}

/// Refuses a warm-up after whose end no request of a trace is due, in nanoseconds.
fn check_warm_up(warmup_ns: u64, times: &[u64]) -> Result<(), OptionsError> {
    match times.last() {
        Some(last) if *last < warmup_ns => Err(OptionsError(format!(
            "the warm-up (-w) takes {}, and the last request of the trace comes after {}: nothing would be measured",
            ExactDuration(warmup_ns),
            Duration(*last)
        ))),
        _ => Ok(()),
    }
}

struct PreparedLlm {
    http: Arc<dyn Prepared>,
    dialect: ApiDialect,
    options: LlmOptions,
    prompts: Arc<Requests>,
    plan: Arc<Plan>,
    /// When the requests of a trace are due, in nanoseconds.
    times: Arc<[u64]>,
    lost: Lost,
    timelines: SharedTimelines,
    /// The objectives of thresholds, by the names of their figures.
    shares: Vec<(String, Objectives)>,
}

impl Prepared for PreparedLlm {
    fn client(&self, keep: bool) -> Box<dyn Client> {
        // The answer to a question is read by whoever asks.
        if self.options.asks.is_some() {
            return self.http.client(keep);
        }
        let client = LlmClient::new(self.http.client(true), self.dialect, self.options.stream);
        Box::new(if self.options.turns.is_some() { client.keeping_replies() } else { client })
    }

    fn user(&self) -> Box<dyn RequestSource> {
        Box::new(Prompter {
            prompts: Arc::clone(&self.prompts),
            text: String::new(),
            body: Vec::new(),
            bytes: Vec::new(),
        })
    }

    fn own_calls(&self, share: Share) -> Option<Box<dyn WorkerReplay>> {
        let has_own = self.options.turns.is_some() || matches!(self.plan.load, Load::Replay(_));
        (has_own && self.options.asks.is_none()).then(|| {
            let Self { plan, prompts, options, times, lost, .. } = self;
            Box::new(OwnCalls::new(plan, prompts, options.turns, times, lost, share)) as Box<dyn WorkerReplay>
        })
    }

    fn meter(&self) -> Option<Box<dyn Meter>> {
        let objectives = self.options.objectives.unwrap_or_default();
        let meter = || {
            let meter = TokenMeter::new(objectives).with_shares(&self.shares).choosing(&self.timelines);
            if self.options.turns.is_some() { meter.of_turns(&self.lost) } else { meter }
        };
        self.options.asks.is_none().then(|| Box::new(meter()) as Box<dyn Meter>)
    }

    fn timelines(&self) -> Vec<CallTimeline> {
        timelines::lock(&self.timelines).all()
    }

    fn alpn(&self) -> Vec<Vec<u8>> {
        self.http.alpn()
    }

    fn redirected_to(&self) -> Option<String> {
        self.http.redirected_to()
    }
}

/// Makes the requests of one worker.
struct Prompter {
    prompts: Arc<Requests>,
    text: String,
    body: Vec<u8>,
    bytes: Vec<u8>,
}

impl RequestSource for Prompter {
    fn request(&mut self, index: u64) -> Result<Message<'_>, SourceEnd> {
        self.text.clear();
        let most = self.prompts.add(index, 0, index, &mut self.text);
        self.prompts.write(index, &self.text, most, &mut self.body, &mut self.bytes);
        Ok(Message { bytes: &self.bytes, hint: self.prompts.hint(), ..Message::default() })
    }
}
