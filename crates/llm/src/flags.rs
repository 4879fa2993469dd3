//! The flags of language models, and the options that they make.

use brunt_http1::HTTP;
use brunt_http1::options::{Options as Http, Version};
use brunt_plan::plan::ProtocolOptions;
use brunt_plan::replay::LogReplay as Trace;
use brunt_plan::units::parse_factor;
use brunt_protocol::discovery::DiscoveryReply;
use brunt_protocol::flags::{Flag, FlagValues, ValueKind};
use brunt_protocol::headers::{HEADER, Header, headers};
use brunt_protocol::messages::{STALL_TIMEOUT, stall_timeout};
use brunt_protocol::{OptionsError, OwnTimes};
use serde_json::{Map, Value};

use crate::dialect::{ApiDialect, Limit, Taken, first_model};
use crate::event::{of_ollama, of_openai};
use crate::length::Length;
use crate::objectives::Objectives;
use crate::options::{LlmOptions, Question};
use crate::prompt::{Prompts, Rate, kind_of_trace, read_file};
use crate::think::Think;
use crate::turns::Turns;

/// The tokens of a prompt where nothing is said of them.
const USUAL_INPUT: Length = Length::fixed(512.0);
/// The tokens of an answer where nothing is said of them.
const USUAL_OUTPUT: Length = Length::fixed(128.0);
/// The words of the two prompts by which a server is asked how it counts tokens.
const FEW_WORDS: u32 = 16;
const MANY_WORDS: u32 = 216;
/// The most of an answer that an error shows, in characters.
const MOST_SHOWN: usize = 200;
/// The version of Anthropic's API whose documentation this follows.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// The flags.
pub(super) const FLAGS: [Flag; 17] = [
    Flag::new("model", ValueKind::Text("NAME"), "The model [default: the first that the server lists]"),
    Flag::new(
        "api",
        ValueKind::OneOf("API", &["chat", "completions", "anthropic", "ollama", "ollama-generate"]),
        "How the server is asked [default: as the URL's path says, or OpenAI's chat]",
    ),
    Flag::new(
        "input-tokens",
        ValueKind::Text("N"),
        "Tokens of a prompt: 512, normal:512,64, lognormal:512,200 or uniform:100,900 [default: 512]",
    )
    .checked(length)
    .conflicts_with(&["dataset"]),
    Flag::new("output-tokens", ValueKind::Text("N"), "The most tokens of an answer, likewise [default: 128]")
        .checked(length),
    Flag::new(
        "prefix-tokens",
        ValueKind::Text("N"),
        "Tokens with which all prompts begin alike, before their own [default: 0]",
    )
    .checked(count)
    .conflicts_with(&["dataset"]),
    Flag::new(
        "dataset",
        ValueKind::File("F"),
        "Prompts from a file, in turn: ShareGPT's JSON, a text or a JSON object with a prompt in each line, or a trace with its times \
         (Mooncake, BurstGPT)",
    ),
    Flag::new("speed", ValueKind::Text("FACTOR"), "Divide the times of a trace: 2x, 0.5x [default: 1x]").checked(factor),
    Flag::new(
        "turns",
        ValueKind::Text("N"),
        "Turns of a conversation, each with the server's answers before it: 4, uniform:1,8, …; of a file's conversations, at most",
    )
    .checked(length),
    Flag::new(
        "think-time",
        ValueKind::Text("T"),
        "From an answer to the next turn: 2s, exp:2s, normal:2s,500ms, lognormal:2s,3s or uniform:1s,5s [default: 0s]",
    )
    .checked(think),
    Flag::new(
        "ignore-eos",
        ValueKind::Nothing,
        "Answers go on up to --output-tokens, whatever the model would say (vLLM, SGLang)",
    ),
    Flag::new("no-stream", ValueKind::Nothing, "Ask for answers as a whole: only their length and their end are known"),
    Flag::new(
        "objectives",
        ValueKind::Text("LIMITS"),
        "What a good answer keeps, such as ttft<500ms,tpot<50ms,latency<10s: goodput and attainment are of these",
    )
    .checked(objectives),
    Flag::new(
        "api-key",
        ValueKind::Text("KEY"),
        "The key, sent as the API has it; @NAME is taken from the environment",
    )
    .secret(),
    Flag::new("extra-body", ValueKind::TextOrFile("JSON|@F"), "Further fields of each body, as a JSON object")
        .checked(object),
    HEADER,
    STALL_TIMEOUT,
    HTTP,
];

fn length(text: &str) -> Result<(), String> {
    text.parse::<Length>().map(drop)
}

fn think(text: &str) -> Result<(), String> {
    text.parse::<Think>().map(drop)
}

fn factor(text: &str) -> Result<(), String> {
    parse_factor(text).map(drop).map_err(|error| error.to_string())
}

fn objectives(text: &str) -> Result<(), String> {
    text.parse::<Objectives>().map(drop)
}

fn count(text: &str) -> Result<(), String> {
    match text.parse::<u32>() {
        Ok(tokens) if f64::from(tokens) <= crate::length::MOST_TOKENS => Ok(()),
        _ => Err("expected a number of tokens".to_owned()),
    }
}

fn object(text: &str) -> Result<(), String> {
    read_object(text.as_bytes()).map(drop)
}

fn read_object(text: &[u8]) -> Result<Map<String, Value>, String> {
    let read = serde_json::from_slice(text);
    read.map_err(|error| format!("expected a JSON object such as {{\"temperature\": 0}}: {error}"))
}

fn wrong(flag: &'static str) -> impl Fn(String) -> OptionsError {
    move |problem| OptionsError(format!("--{flag}: {problem}"))
}

/// When calls made by these flags are due. The dataset has to be right for that, before anybody is asked.
pub(super) fn own_times(given: &FlagValues) -> Result<OwnTimes, OptionsError> {
    let speed = given.text("speed").map(|text| parse_factor(text).unwrap_or(1.0));
    let file = given.file("dataset");
    let all = file.map(|(name, content)| read_file(name, &content.0)).transpose()?.unwrap_or_default();
    if turns(given)?.is_some() && !all.is_empty() && all.iter().all(|entry| entry.turns.len() == 1) {
        return Err(OptionsError("--turns: no entry of --dataset has more than one prompt of its user".to_owned()));
    }
    if let (Some((name, _)), Some(first)) = (file, all.first())
        && all.iter().all(|entry| entry.at_ns.is_some())
    {
        let trace = Trace::new(name, kind_of_trace(first));
        let trace = Trace { session: "none".to_owned(), speed: speed.unwrap_or(1.0), ..trace };
        return Ok(OwnTimes::Trace { trace: Box::new(trace), has_turns: given.has("turns") });
    }
    if speed.is_some() {
        let problem = file.map_or_else(|| "no --dataset is given".to_owned(), |(name, _)| format!("{name} has none"));
        return Err(OptionsError(format!("--speed divides the times of a trace, and {problem}")));
    }
    Ok(if given.has("turns") { OwnTimes::Conversations } else { OwnTimes::None })
}

/// How conversations go on, if requests are turns of them.
fn turns(given: &FlagValues) -> Result<Option<Turns>, OptionsError> {
    let think = given.text("think-time").map(str::parse).transpose().map_err(wrong("think-time"))?;
    let turns = given.text("turns").map(str::parse).transpose().map_err(wrong("turns"))?;
    match (turns, think) {
        (Some(turns), think) => Ok(Some(Turns { turns, think: think.unwrap_or(Think::NONE) })),
        (None, None) => Ok(None),
        (None, Some(_)) => Err(OptionsError(
            "--think-time comes before a further turn: say how many there are with --turns".to_owned(),
        )),
    }
}

/// The options that the flags ask for. The server is asked for its model, for how it counts tokens and for what it takes.
pub(super) fn options(given: &FlagValues) -> Result<ProtocolOptions, OptionsError> {
    let of_length =
        |flag: &'static str, usual: Length| given.text(flag).map_or(Ok(usual), str::parse).map_err(wrong(flag));
    let api = given.text("api").and_then(ApiDialect::named);
    let extra = given.bytes("extra-body").map(|text| read_object(&text).map_err(wrong("extra-body"))).transpose()?;
    let http = http(given, api)?;
    let mut prompts = match given.file("dataset") {
        Some((file, content)) => {
            Prompts::Given { file: file.to_owned(), content: content.clone(), rate: Rate::default() }
        }
        None => Prompts::Made {
            input: of_length("input-tokens", USUAL_INPUT)?,
            prefix: given.text("prefix-tokens").and_then(|text| text.parse().ok()).unwrap_or(0),
            rate: Rate::default(),
        },
    };
    // Questions do not take a dataset along.
    let first = Prompts::of_words(FEW_WORDS);
    let mut options = LlmOptions {
        api,
        stream: !given.has("no-stream"),
        turns: turns(given)?,
        output: Some(of_length("output-tokens", USUAL_OUTPUT)?),
        ignore_eos: given.has("ignore-eos"),
        extra: extra.unwrap_or_default(),
        objectives: given.text("objectives").map(str::parse).transpose().map_err(wrong("objectives"))?,
        stall_ns: stall_timeout(given)?,
        ..LlmOptions::new(given.text("model").unwrap_or_default(), first)
    };
    let server = Server { given, http: &http };
    if options.model.is_empty() {
        options.model = server.model(&options)?;
    }
    if let Some(by) = server.learn(&mut options)? {
        let (Prompts::Made { rate, .. } | Prompts::Given { rate, .. }) = &mut prompts;
        *rate = by;
    }
    options.prompts = prompts;
    Ok(options.to_protocol(&http))
}

/// The options of HTTP: where the key goes, and what is asked for.
fn http(given: &FlagValues, api: Option<ApiDialect>) -> Result<Http, OptionsError> {
    let mut headers = headers(given)?;
    let has = |headers: &[Header], name: &str| headers.iter().any(|header| header.name().eq_ignore_ascii_case(name));
    let is_anthropic = api == Some(ApiDialect::Messages);
    if let Some(key) = given.text("api-key") {
        headers.push(if is_anthropic {
            Header::new("x-api-key", key)
        } else {
            Header::new("Authorization", format!("Bearer {key}"))
        });
    }
    if is_anthropic && !has(&headers, "anthropic-version") {
        headers.push(Header::new("anthropic-version", ANTHROPIC_VERSION));
    }
    if !has(&headers, "content-type") {
        headers.push(Header::new("Content-Type", "application/json"));
    }
    Ok(Http {
        method: "POST".to_owned(),
        headers,
        http: given.text("http").and_then(Version::named).unwrap_or_default(),
        ..Http::default()
    })
}

/// A server that is asked before the load.
struct Server<'a> {
    given: &'a FlagValues,
    http: &'a Http,
}

impl Server<'_> {
    fn ask(&self, options: &LlmOptions) -> Result<DiscoveryReply, OptionsError> {
        let mut http = self.http.clone();
        if options.asks == Some(Question::Models) {
            "GET".clone_into(&mut http.method);
        }
        let reply = self.given.ask(&options.to_protocol(&http));
        reply.map_err(|problem| OptionsError(format!("the server cannot be asked before the load: {problem}")))
    }

    /// The first model that the server lists.
    fn model(&self, options: &LlmOptions) -> Result<String, OptionsError> {
        let reply = self.ask(&LlmOptions { asks: Some(Question::Models), ..options.clone() })?;
        let of = first_model(&reply.kept.body);
        of.filter(|_| reply.status == 200).ok_or_else(|| {
            OptionsError(format!(
                "--model is not given, and the server lists no models: {} {}",
                reply.status,
                excerpt(&reply.kept.body)
            ))
        })
    }

    /// Learns what the server takes, and returns how many tokens words are, where it counts them: by three calls, or a fourth where it
    /// refuses the first.
    fn learn(&self, options: &mut LlmOptions) -> Result<Option<Rate>, OptionsError> {
        let question = |options: &LlmOptions, words: u32, stream: bool| LlmOptions {
            asks: Some(Question::Answer),
            stream,
            prompts: Prompts::of_words(words),
            output: Some(Length::fixed(1.0)),
            ignore_eos: false,
            turns: None,
            ..options.clone()
        };
        let mut few = self.ask(&question(options, FEW_WORDS, false))?;
        if few.status == 400 {
            let other = Taken { limit: Limit::MaxCompletionTokens, ..options.taken };
            let again = self.ask(&question(&LlmOptions { taken: other, ..options.clone() }, FEW_WORDS, false))?;
            if again.status == 200 {
                options.taken = other;
                few = again;
            }
        }
        // A server that is broken or busy may answer others: that is what the load is to show.
        if few.status == 429 || few.status >= 500 {
            return Ok(None);
        }
        if few.status != 200 {
            return Err(OptionsError(format!(
                "the server answers a first prompt by {}: {}",
                few.status,
                excerpt(&few.kept.body)
            )));
        }
        // One that ends a stream early was understood.
        if options.stream && self.ask(&question(options, FEW_WORDS, true)).is_ok_and(|reply| reply.status == 400) {
            options.taken.stream_options = false;
        }
        let Some(tokens) = input_tokens(&few.kept.body) else { return Ok(None) };
        let many = self.ask(&question(options, MANY_WORDS, false))?;
        Ok(input_tokens(&many.kept.body).and_then(|many| Rate::by((FEW_WORDS, tokens), (MANY_WORDS, many))))
    }
}

/// The tokens of the prompt, by the whole answer of any dialect.
fn input_tokens(body: &[u8]) -> Option<u32> {
    let of = |event: Option<crate::event::Event>| event.and_then(|event| event.usage.input);
    of(of_openai(body, None)).or_else(|| of(of_ollama(body, None)))
}

/// The beginning of an answer, for people.
fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let shown: String = text.chars().filter(|c| !c.is_control()).take(MOST_SHOWN).collect();
    if shown.is_empty() { "an empty answer".to_owned() } else { shown }
}

#[cfg(test)]
mod tests;
