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
//! | [`dialect`], [`event`] | bodies, and what answers say |
//! | [`client`] | the client of a connection, above that of HTTP |
//! | [`meter`], [`objectives`] | the figures |

pub mod client;
pub mod dialect;
pub mod event;
mod facts;
mod flags;
pub mod length;
pub mod meter;
pub mod objectives;
pub mod options;
pub mod prompt;

use std::sync::Arc;

use brunt_http1::Http1;
use brunt_http1::options::{Content, Options as Http};
use brunt_plan::plan::{Plan, ProtocolOptions};
use brunt_plan::random::Random;
use brunt_plan::scenario::DeclaredFigure;
use brunt_protocol::flags::{Flag, FlagValues};
use brunt_protocol::messages::{Framing, MessageOptions};
use brunt_protocol::meter::Meter;
use brunt_protocol::source::{Message, RequestSource, SourceEnd};
use brunt_protocol::{Client, OptionsError, Prepared, Protocol, Scheme, read_options};
use brunt_record::SECOND_NS;
use serde::Deserialize;

use crate::client::LlmClient;
use crate::dialect::{ApiDialect, Asked, Body};
use crate::length::Length;
use crate::meter::TokenMeter;
use crate::options::{LlmOptions, Question};
use crate::prompt::PromptSource;

/// How long an answer may take by default: long ones take minutes.
const USUAL_TIMEOUT_NS: u64 = 600 * SECOND_NS;
/// Separates the random numbers of prompts from those of anything else.
const PROMPTS: u64 = 0x001_1a9e;
/// The field that says how long a body is, as HTTP writes that of the empty object.
const LENGTH: &[u8] = b"Content-Length: 2\r\n";

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

    fn shown(&self, options: &serde_json::Value) -> serde_json::Value {
        let mut shown = options.clone();
        if let Some(http) = shown.get_mut("http") {
            *http = Http1.shown(http);
        }
        shown
    }

    fn own_figures(&self, options: &ProtocolOptions) -> Vec<DeclaredFigure> {
        meter::declared(options.shown().get("objectives").is_some())
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
        let prompts = Prompts {
            request: Request::around(http.user().as_mut())?,
            body: dialect.body(&asked),
            source: options.prompts.ready(plan.seed)?,
            output: options.output,
            seed: plan.seed ^ PROMPTS,
        };
        Ok(Arc::new(PreparedLlm { http, dialect, options, prompts: Arc::new(prompts) }))
    }
}

struct PreparedLlm {
    http: Arc<dyn Prepared>,
    dialect: ApiDialect,
    options: LlmOptions,
    prompts: Arc<Prompts>,
}

impl Prepared for PreparedLlm {
    fn client(&self, keep: bool) -> Box<dyn Client> {
        // The answer to a question is read by whoever asks.
        if self.options.asks.is_some() {
            return self.http.client(keep);
        }
        Box::new(LlmClient::new(self.http.client(true), self.dialect, self.options.stream))
    }

    fn user(&self) -> Box<dyn RequestSource> {
        Box::new(Prompter {
            prompts: Arc::clone(&self.prompts),
            text: String::new(),
            body: Vec::new(),
            bytes: Vec::new(),
        })
    }

    fn meter(&self) -> Option<Box<dyn Meter>> {
        let objectives = self.options.objectives.unwrap_or_default();
        self.options.asks.is_none().then(|| Box::new(TokenMeter::new(objectives)) as Box<dyn Meter>)
    }

    fn alpn(&self) -> Vec<Vec<u8>> {
        self.http.alpn()
    }

    fn redirected_to(&self) -> Option<String> {
        self.http.redirected_to()
    }
}

/// A request of HTTP without its body.
#[derive(Debug)]
struct Request {
    /// Up to the length of its body, and what stands behind it.
    before: Vec<u8>,
    behind: Vec<u8>,
    hint: u32,
}

impl Request {
    /// The request around the body of HTTP's own calls.
    fn around(user: &mut dyn RequestSource) -> Result<Self, OptionsError> {
        let unusable = || OptionsError("a header field takes the place of Content-Length: leave it out".to_owned());
        let call = user.request(0).map_err(|_| unusable())?;
        let place = call.bytes.windows(LENGTH.len()).position(|part| part == LENGTH).ok_or_else(unusable)?;
        let behind =
            call.bytes.get(place + LENGTH.len()..).and_then(|rest| rest.strip_suffix(b"{}")).ok_or_else(unusable)?;
        Ok(Self {
            before: call.bytes.get(..place).unwrap_or_default().to_vec(),
            behind: behind.to_vec(),
            hint: call.hint,
        })
    }
}

/// The prompts of a run.
#[derive(Debug)]
struct Prompts {
    request: Request,
    body: Body,
    source: PromptSource,
    output: Option<Length>,
    seed: u64,
}

/// Makes the requests of one worker.
struct Prompter {
    prompts: Arc<Prompts>,
    text: String,
    body: Vec<u8>,
    bytes: Vec<u8>,
}

impl RequestSource for Prompter {
    fn request(&mut self, index: u64) -> Result<Message<'_>, SourceEnd> {
        let Prompts { request, body, source, output, seed } = &*self.prompts;
        let mut random = Random::new(*seed, index);
        let most = output.map(|length| length.draw(&mut random));
        self.text.clear();
        let of_file = source.write(index, &mut random, &mut self.text);
        self.body.clear();
        body.write(&self.text, of_file.or(most), &mut self.body);
        self.bytes.clear();
        self.bytes.extend_from_slice(&request.before);
        self.bytes.extend_from_slice(format!("Content-Length: {}\r\n", self.body.len()).as_bytes());
        self.bytes.extend_from_slice(&request.behind);
        self.bytes.extend_from_slice(&self.body);
        Ok(Message { bytes: &self.bytes, hint: request.hint, ..Message::default() })
    }
}
