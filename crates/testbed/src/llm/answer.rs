//! A worker's model, and the answers that it has under way.

use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustix::time::{ClockId, clock_gettime};

use super::config::{Answers, Faults, ModelConfig};
use super::endpoint::{Api, Endpoint, Place};
use super::plan::{Fault, Plan, Speed};
use super::prefixes::Prefixes;
use super::refusal::{Reason, Refusal};
use super::request::{Asked, MOST_TOKENS};
use super::slots::{Slots, Ticket};
use super::telling::{Events, Facts, Finish, Moment, Telling, Voice};
use super::token_words::Prompt;
use super::totals::{End, Line, Log, MessageLog, Totals};
use super::{anthropic, ollama, openai};
use crate::service::Random;

/// The longest accepted body, in bytes.
pub(crate) const MAX_BODY: usize = 16 * 1024 * 1024;

/// What a request's head asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ask {
    place: Place,
    is_method: bool,
    is_authorized: bool,
}

/// A whole answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Document {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

/// The answer to a request.
#[derive(Debug)]
pub(crate) enum Reply {
    /// Known at once.
    Now(Document),
    /// To come.
    Later(Box<Answer>),
}

/// What an answer has told in its turn.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// Events, and there will be more.
    Events,
    /// The last events.
    LastEvents,
    /// The last events, before the connection ends without the stream's end.
    Torn,
    /// A whole answer.
    Document(Document),
    /// The first half of a whole answer, before the connection ends.
    TornDocument(Document),
}

/// How far an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Opening,
    /// This chunk is next.
    Chunk(u64),
    Over,
}

/// An answer under way.
#[derive(Debug)]
pub(crate) struct Answer {
    ticket: Ticket,
    facts: Facts,
    stage: Stage,
    next_comment: Option<Duration>,
    /// Tokens told, and when the first and the last were.
    told: u64,
    sent: Option<(u64, u64)>,
}

impl Answer {
    pub(crate) fn streams(&self) -> bool {
        self.facts.streams
    }

    /// How long after its start it tells this chunk, or all of it.
    fn offset(&self, chunk: u64) -> Duration {
        if self.facts.streams { self.facts.plan.due(chunk) } else { self.facts.plan.work() }
    }

    /// The content type of a stream.
    pub(crate) fn content_type(&self) -> &'static str {
        match self.facts.endpoint.api() {
            Api::OpenAi | Api::Anthropic => "text/event-stream",
            Api::Ollama => "application/x-ndjson",
        }
    }
}

/// The clocks of the machine at the server's start.
#[derive(Debug)]
struct Clocks {
    monotonic: Duration,
    unix: Duration,
}

impl Clocks {
    /// Reads them; the server started `since` ago.
    fn read(since: Duration) -> Self {
        let now = clock_gettime(ClockId::Monotonic);
        let now = Duration::new(u64::try_from(now.tv_sec).unwrap_or(0), u32::try_from(now.tv_nsec).unwrap_or(0));
        let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self { monotonic: now.saturating_sub(since), unix: unix.saturating_sub(since) }
    }

    /// A time since the server's start, in nanoseconds of the monotonic clock.
    fn monotonic(&self, at: Duration) -> u64 {
        u64::try_from((self.monotonic + at).as_nanos()).unwrap_or(u64::MAX)
    }
}

/// A model at work.
#[derive(Debug)]
pub(crate) struct Model {
    name: String,
    speed: Speed,
    template_tokens: u64,
    answers: Answers,
    faults: Faults,
    api_key: Option<String>,
    seed: u64,
    voice: Voice,
    slots: Slots,
    prefixes: Option<Prefixes>,
    clocks: Clocks,
    totals: Arc<Totals>,
    log: Option<Log>,
    message_log: Option<MessageLog>,
    /// Requests for tokens so far.
    requests: u64,
}

impl Model {
    /// A model that draws from `seed`, of a server that started `since` ago.
    ///
    /// # Errors
    /// A log cannot be created.
    pub(crate) fn new(config: ModelConfig, seed: u64, since: Duration, totals: Arc<Totals>) -> io::Result<Self> {
        let log = config.log.as_deref().map(Log::create).transpose()?;
        let message_log = config.message_log.as_deref().map(MessageLog::create).transpose()?;
        Ok(Self {
            voice: Voice {
                model: serde_json::Value::from(config.model.as_str()).to_string(),
                has_prefixes: config.prefix_cache,
                quirks: config.quirks,
            },
            name: config.model,
            speed: config.speed,
            template_tokens: config.template_tokens,
            answers: config.answers,
            faults: config.faults,
            api_key: config.api_key,
            seed,
            slots: Slots::new(config.slots, config.queue),
            prefixes: config.prefix_cache.then(Prefixes::default),
            clocks: Clocks::read(since),
            totals,
            log,
            message_log,
            requests: 0,
        })
    }

    /// What a request with this path, without its query, and this head is for.
    pub(crate) fn ask(&self, path: &[u8], head: &[u8]) -> Ask {
        let place = Place::of(path);
        let mut lines = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let method = lines.next().and_then(|line| line.split(|byte| *byte == b' ').next()).unwrap_or_default();
        let is_method = match place.method() {
            Some("GET") => matches!(method, b"GET" | b"HEAD"),
            Some(other) => method == other.as_bytes(),
            None => true,
        };
        let is_open = place == Place::Health || self.api_key.is_none();
        let is_authorized = is_open || lines.any(|line| self.is_key(line));
        Ask { place, is_method, is_authorized }
    }

    /// Whether this line of a head has the key.
    fn is_key(&self, line: &[u8]) -> bool {
        let Some(key) = &self.api_key else { return true };
        let Some(colon) = memchr::memchr(b':', line) else { return false };
        let (name, value) = line.split_at(colon);
        let value = value.get(1..).unwrap_or_default().trim_ascii();
        if name.eq_ignore_ascii_case(b"x-api-key") {
            return value == key.as_bytes();
        }
        let (scheme, credentials) = value.split_at(value.len().min(7));
        name.eq_ignore_ascii_case(b"authorization")
            && scheme.eq_ignore_ascii_case(b"bearer ")
            && credentials.trim_ascii() == key.as_bytes()
    }

    /// The refusal of a body that is too long.
    pub(crate) fn too_long(&self, ask: &Ask) -> Document {
        let refusal = Refusal::new(Reason::TooLarge, format!("expected a body of at most {MAX_BODY} bytes"));
        self.refuse(ask.place.api(), &refusal)
    }

    fn refuse(&self, api: Api, refusal: &Refusal) -> Document {
        let status = refusal.status(api);
        self.totals.refuse(status);
        Document { status, body: refusal.document(api).to_string().into_bytes() }
    }

    /// Answers a request of `connection` whose last byte has come now.
    pub(crate) fn answer(&mut self, ask: &Ask, body: &[u8], now: Duration, connection: usize) -> Reply {
        let taken_on = self.try_answer(ask, body, now, connection);
        taken_on.unwrap_or_else(|refusal| Reply::Now(self.refuse(ask.place.api(), &refusal)))
    }

    fn try_answer(&mut self, ask: &Ask, body: &[u8], now: Duration, connection: usize) -> Result<Reply, Refusal> {
        if !ask.is_authorized {
            return Err(Refusal::new(Reason::Unauthorized, "expected the API key as a bearer token, or as x-api-key"));
        }
        if let Some(method) = ask.place.method().filter(|_| !ask.is_method) {
            return Err(Refusal::new(Reason::Method, format!("expected the method {method}")));
        }
        match &ask.place {
            Place::Health => Ok(ok("{}".to_owned())),
            Place::Models => Ok(ok(format!(r#"{{"object":"list","data":[{}]}}"#, self.listed()))),
            Place::Model(name) if *name == self.name => Ok(ok(self.listed())),
            Place::Model(name) => Err(Refusal::no_model(Api::OpenAi, name)),
            Place::Tokens(endpoint) => {
                self.take_on(*endpoint, body, now, connection).map(|answer| Reply::Later(Box::new(answer)))
            }
            Place::Unknown(_) => Err(Refusal::new(
                Reason::NotFound,
                "expected /v1/models, /v1/chat/completions, /v1/completions, /v1/messages, /api/chat, /api/generate or /health",
            )),
        }
    }

    /// The model as OpenAI's list has it.
    fn listed(&self) -> String {
        let (id, created) = (&self.voice.model, self.clocks.unix.as_secs());
        format!(r#"{{"id":{id},"object":"model","created":{created},"owned_by":"brunt"}}"#)
    }

    /// Takes on a request for tokens.
    fn take_on(
        &mut self,
        endpoint: Endpoint,
        body: &[u8],
        now: Duration,
        connection: usize,
    ) -> Result<Answer, Refusal> {
        let id = self.requests;
        self.requests += 1;
        // By the request's number, so that no flag changes what another one draws.
        let mut random = Random::new(self.seed, id as usize);
        let [refuse, error, cut, fault_at, stall, stall_at] = std::array::from_fn(|_| random.uniform());
        if refuse < self.faults.refuse {
            let reason = if self.faults.refuse_status == 429 { Reason::Busy } else { Reason::Unavailable };
            return Err(Refusal::new(reason, "refused, as asked for"));
        }
        let asked = Asked::read(endpoint, body, &self.name, &self.voice.quirks.reject)?;
        let template = if endpoint.is_chat() { self.template_tokens } else { 0 };
        let prompt = Prompt::count(&asked.prompt, template, self.prefixes.is_some());
        let cached = self.prefixes.as_mut().map_or(0, |prefixes| prefixes.share(&prompt));
        let (tokens, finish) = self.length(&asked);
        let mut plan = Plan {
            speed: self.speed,
            uncached: prompt.tokens - cached,
            tokens,
            reasoning: if endpoint == Endpoint::Completions { 0 } else { self.answers.reasoning.min(tokens) },
            per_chunk: self.answers.per_chunk,
            burst: self.answers.burst,
            pause: None,
            fault: None,
        };
        let gaps = plan.all_chunks() - 1;
        let drawn = |at: f64| ((at * gaps as f64) as u64).min(gaps.saturating_sub(1));
        plan.pause = self
            .faults
            .stall
            .filter(|(_, share)| gaps > 0 && stall < *share)
            .map(|(length, _)| (drawn(stall_at), length));
        plan.fault = if error < self.faults.error_in_stream {
            Some((drawn(fault_at), Fault::Error))
        } else if cut < self.faults.cut {
            Some((drawn(fault_at), Fault::Cut))
        } else {
            None
        };
        let Some(ticket) = self.slots.take_on(now, plan.work(), connection) else {
            return Err(Refusal::new(Reason::Busy, "the queue is full"));
        };
        self.totals.take_on(prompt.tokens, cached);
        Ok(Answer {
            ticket,
            next_comment: self
                .voice
                .quirks
                .comments
                .filter(|_| asked.streams && endpoint.api() != Api::Ollama)
                .map(|period| now + period),
            facts: Facts {
                endpoint,
                id,
                streams: asked.streams,
                usage: asked.usage,
                prompt: prompt.tokens,
                cached,
                finish,
                plan,
                received: now,
            },
            stage: if asked.streams { Stage::Opening } else { Stage::Chunk(0) },
            told: 0,
            sent: None,
        })
    }

    /// The tokens of an answer, and why it ends there: its limit, or its own end unless that is ignored.
    fn length(&self, asked: &Asked<'_>) -> (u64, Finish) {
        let own = self.answers.tokens;
        match asked.limit {
            Some(limit) if asked.ignores_end || limit <= own => (limit.clamp(1, MOST_TOKENS), Finish::Length),
            None if asked.ignores_end => (own, Finish::Length),
            _ => (own, Finish::Stop),
        }
    }

    /// When an answer has something to tell next; `None` until it starts.
    pub(crate) fn due(&self, answer: &Answer) -> Option<Duration> {
        let comment = answer.next_comment;
        let chunk = match answer.stage {
            Stage::Opening | Stage::Over => return Some(Duration::ZERO),
            Stage::Chunk(chunk) => chunk,
        };
        let started = self.slots.started(&answer.ticket).map(|started| started + answer.offset(chunk));
        [started, comment].into_iter().flatten().min()
    }

    /// Tells the next part of an answer that has something due; `events` takes those of a stream.
    pub(crate) fn tell(&mut self, answer: &mut Answer, now: Duration, events: &mut Events) -> Told {
        events.clear();
        let chunk = match answer.stage {
            Stage::Opening => {
                let telling = self.telling(answer, now, answer.facts.received, Duration::ZERO);
                match answer.facts.endpoint.api() {
                    Api::OpenAi => openai::opening(events, &telling),
                    Api::Anthropic => anthropic::opening(events, &telling),
                    Api::Ollama => {}
                }
                answer.stage = Stage::Chunk(0);
                return Told::Events;
            }
            Stage::Over => return Told::LastEvents,
            Stage::Chunk(chunk) => chunk,
        };
        let started = self.slots.started(&answer.ticket);
        let due = started.map(|started| started + answer.offset(chunk));
        let (Some(started), Some(due)) = (started, due.filter(|due| *due <= now)) else {
            events.push(|out| out.extend_from_slice(b": keep-alive\n\n"));
            answer.next_comment = self.voice.quirks.comments.map(|period| now + period);
            return Told::Events;
        };
        answer.next_comment = None;
        if !answer.facts.streams {
            return self.tell_whole(answer, now, due, started);
        }
        self.tell_chunk(answer, chunk, now, due, started, events)
    }

    /// Tells a chunk, and what follows the last one.
    fn tell_chunk(
        &mut self,
        answer: &mut Answer,
        chunk: u64,
        now: Duration,
        due: Duration,
        started: Duration,
        events: &mut Events,
    ) -> Told {
        let is_last = chunk + 1 >= answer.facts.plan.chunks();
        let telling = self.telling(answer, now, due, started);
        match answer.facts.endpoint.api() {
            Api::OpenAi => openai::chunk(events, &telling, chunk),
            Api::Anthropic => anthropic::chunk(events, &telling, chunk),
            Api::Ollama => ollama::chunk(events, &telling, chunk),
        }
        let fault = answer.facts.plan.fault.map(|(_, fault)| fault);
        if is_last {
            close(&telling, fault, events);
        }
        let sent = telling.moment.sent;
        let (tokens, _) = answer.facts.plan.chunk(chunk);
        self.count(answer, tokens.end - tokens.start, sent);
        if let Some(log) = &mut self.message_log {
            log.write(answer.facts.id, sent, tokens.end - tokens.start);
        }
        answer.stage = Stage::Chunk(chunk + 1);
        if !is_last {
            return Told::Events;
        }
        self.end(answer, end_of(answer, fault), now);
        if fault == Some(Fault::Cut) { Told::Torn } else { Told::LastEvents }
    }

    fn tell_whole(&mut self, answer: &mut Answer, now: Duration, due: Duration, started: Duration) -> Told {
        let fault = answer.facts.plan.fault.map(|(_, fault)| fault);
        let api = answer.facts.endpoint.api();
        let telling = self.telling(answer, now, due, started);
        let told = if fault == Some(Fault::Error) {
            let refusal = Refusal::new(Reason::Broken, BROKEN);
            let body = refusal.document(api).to_string().into_bytes();
            Told::Document(Document { status: refusal.status(api), body })
        } else {
            let mut body = Vec::new();
            match api {
                Api::OpenAi => openai::document(&mut body, &telling),
                Api::Anthropic => anthropic::document(&mut body, &telling),
                Api::Ollama => ollama::document(&mut body, &telling),
            }
            let document = Document { status: 200, body };
            if fault.is_some() { Told::TornDocument(document) } else { Told::Document(document) }
        };
        let sent = telling.moment.sent;
        if fault.is_none() {
            self.count(answer, answer.facts.plan.tokens, sent);
        }
        self.end(answer, end_of(answer, fault), now);
        told
    }

    fn telling<'a>(&'a self, answer: &'a Answer, now: Duration, due: Duration, started: Duration) -> Telling<'a> {
        let moment = Moment {
            received: self.clocks.monotonic(answer.facts.received),
            due: self.clocks.monotonic(due),
            sent: self.clocks.monotonic(now),
            unix: self.clocks.unix + now,
            started,
        };
        Telling { facts: &answer.facts, voice: &self.voice, moment }
    }

    fn count(&self, answer: &mut Answer, tokens: u64, sent: u64) {
        answer.told += tokens;
        answer.sent = Some((answer.sent.map_or(sent, |(first, _)| first), sent));
        self.totals.tell(tokens);
    }

    /// The client of an answer is gone.
    pub(crate) fn leave(&mut self, answer: &mut Answer, now: Duration) {
        self.end(answer, End::Left, now);
    }

    /// Ends an answer, once.
    fn end(&mut self, answer: &mut Answer, end: End, now: Duration) {
        if answer.stage == Stage::Over {
            return;
        }
        answer.stage = Stage::Over;
        let started = self.slots.started(&answer.ticket);
        self.slots.leave(&answer.ticket, now);
        self.totals.end(end);
        let (received, started) =
            (self.clocks.monotonic(answer.facts.received), started.map(|started| self.clocks.monotonic(started)));
        if let Some(log) = &mut self.log {
            log.write(&Line {
                id: answer.facts.id,
                path: answer.facts.endpoint.path(),
                end,
                prompt: answer.facts.prompt,
                cached: answer.facts.cached,
                output: answer.told,
                received,
                started,
                sent: answer.sent,
            });
        }
        if let Some(log) = &mut self.message_log {
            log.flush();
        }
    }

    /// Gives free slots to those in line; returns the connections of those that started.
    pub(crate) fn advance(&mut self, now: Duration) -> Vec<usize> {
        self.slots.advance(now);
        self.slots.take_woken()
    }

    /// When to [`advance`](Self::advance) next.
    pub(crate) fn next_start(&self) -> Option<Duration> {
        self.slots.next_start()
    }
}

/// The words of an error in the midst of an answer.
const BROKEN: &str = "the model broke, as asked for";

/// What follows the last chunk.
fn close(telling: &Telling<'_>, fault: Option<Fault>, events: &mut Events) {
    let api = telling.facts.endpoint.api();
    match (fault, api) {
        (Some(Fault::Cut), _) => {}
        (Some(Fault::Error), _) => {
            let refusal =
                Refusal::new(if api == Api::Anthropic { Reason::Unavailable } else { Reason::Broken }, BROKEN);
            let document = refusal.document(api).to_string();
            match api {
                Api::OpenAi => {
                    events.sse(None, |out| out.extend_from_slice(document.as_bytes()));
                    // As vLLM does, so that who looks for the end alone takes this for a success.
                    openai::done(events, telling);
                }
                Api::Anthropic => events.sse(Some("error"), |out| out.extend_from_slice(document.as_bytes())),
                Api::Ollama => events.push(|out| {
                    out.extend_from_slice(document.as_bytes());
                    out.push(b'\n');
                }),
            }
        }
        (None, Api::OpenAi) => openai::closing(events, telling),
        (None, Api::Anthropic) => anthropic::closing(events, telling),
        (None, Api::Ollama) => ollama::closing(events, telling),
    }
}

fn end_of(answer: &Answer, fault: Option<Fault>) -> End {
    match (fault, answer.facts.finish) {
        (Some(Fault::Error), _) => End::Error,
        (Some(Fault::Cut), _) => End::Cut,
        (None, Finish::Stop) => End::Finished("stop"),
        (None, Finish::Length) => End::Finished("length"),
    }
}

/// An answer that is known at once.
fn ok(body: String) -> Reply {
    Reply::Now(Document { status: 200, body: body.into_bytes() })
}
