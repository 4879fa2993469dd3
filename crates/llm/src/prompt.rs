//! Prompts: made of words, as many as there shall be tokens, or taken from a file.
//!
//! Made prompts differ from their first words on, so that no server answers one from what it keeps of another: a prompt begins with a
//! number of its own, in words. It is another one in a warm-up, and in another run by the same seed, which has the same lengths. What they
//! shall share is said by `--prefix-tokens`.

use brunt_plan::content::{Content, without_mark};
use brunt_plan::random::Random;
use brunt_protocol::OptionsError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::length::{Length, MOST_TOKENS};

/// Words that most tokenizers have as one token each, with the blank before them: common English words.
const WORDS: [&str; 128] = [
    "the", "of", "and", "to", "in", "is", "you", "that", "it", "he", "was", "for", "on", "are", "as", "with", "his",
    "they", "at", "be", "this", "have", "from", "or", "one", "had", "by", "word", "but", "not", "what", "all", "were",
    "we", "when", "your", "can", "said", "there", "use", "an", "each", "which", "she", "do", "how", "their", "if",
    "will", "up", "other", "about", "out", "many", "then", "them", "these", "so", "some", "her", "would", "make",
    "like", "him", "into", "time", "has", "look", "two", "more", "write", "go", "see", "number", "no", "way", "could",
    "people", "my", "than", "first", "water", "been", "call", "who", "oil", "its", "now", "find", "long", "down",
    "day", "did", "get", "come", "made", "may", "part", "over", "new", "sound", "take", "only", "little", "work",
    "know", "place", "year", "live", "me", "back", "give", "most", "very", "after", "thing", "our", "just", "name",
    "good", "sentence", "man", "think", "say", "great", "where", "help", "much",
];

/// The words that a number is written in: enough for any run.
const NUMBER_WORDS: u32 = 5;

/// How many tokens words are, as a server counts: `tokens = fixed + each × words`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// Tokens of a prompt without words: those of its template.
    pub fixed: f64,
    /// Tokens of a word.
    pub each: f64,
}

impl Default for Rate {
    fn default() -> Self {
        Self { fixed: 0.0, each: 1.0 }
    }
}

impl Rate {
    /// The rate by which so many words were so many tokens, twice.
    pub fn by((few_words, few): (u32, u32), (many_words, many): (u32, u32)) -> Option<Self> {
        let (words, tokens) = (f64::from(many_words) - f64::from(few_words), f64::from(many) - f64::from(few));
        let each = tokens / words;
        (words > 0.0 && each > 0.05 && each < 50.0)
            .then(|| Self { fixed: (f64::from(few) - each * f64::from(few_words)).max(0.0), each })
    }

    /// The words that are so many tokens, less those that stand in every prompt.
    fn words(self, tokens: f64) -> u32 {
        (tokens / self.each).round().max(0.0) as u32
    }
}

/// Where prompts come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Prompts {
    /// They are made.
    Made {
        /// Their tokens, beside those that all share.
        input: Length,
        /// The tokens with which each begins alike.
        #[serde(default)]
        prefix: u32,
        /// How many tokens words are.
        rate: Rate,
    },
    /// They are those of a file, in turn.
    Given {
        /// The file's name, for errors.
        file: String,
        /// Its content: a list of conversations as `ShareGPT` has them, or a JSON text or object in each line; or the lengths of a
        /// trace.
        content: Content,
        /// How many tokens words are, where prompts are made by their lengths.
        #[serde(default)]
        rate: Rate,
    },
}

/// Prompts made ready for a run.
#[derive(Debug)]
pub enum PromptSource {
    /// They are made.
    Made {
        /// Their tokens, beside those that all share.
        input: Length,
        /// The words with which each begins.
        prefix: String,
        /// How many tokens words are.
        rate: Rate,
        /// Makes the numbers of prompts those of this run alone.
        salt: u64,
    },
    /// They are given.
    Given {
        /// All of them.
        all: Vec<Given>,
        /// How many tokens words are.
        rate: Rate,
        /// Makes the numbers of prompts those of this run alone.
        salt: u64,
    },
}

/// A conversation of a file, most often of one prompt, and what the file says of its answers.
#[derive(Debug, Clone, PartialEq)]
pub struct Given {
    /// The prompts of its turns: at least one.
    pub turns: Vec<Text>,
    /// The most tokens of an answer.
    pub output: Option<u32>,
    /// When it comes, in nanoseconds.
    pub at_ns: Option<u64>,
}

/// A prompt of a file.
#[derive(Debug, Clone, PartialEq)]
pub enum Text {
    /// Its text, escaped for JSON.
    Whole(String),
    /// A whole body, in the words of its API.
    Body(Map<String, Value>),
    /// Its tokens, and the blocks that it begins with: those of the same number are alike in all prompts.
    Tokens {
        /// How many.
        tokens: u32,
        /// The blocks' numbers, each for [`BLOCK_TOKENS`].
        blocks: Vec<u64>,
    },
}

/// The tokens of a block of a trace, as Mooncake's have them.
pub const BLOCK_TOKENS: u32 = 512;
/// The latest time of a trace, in nanoseconds: times since 1970 are below it.
const MOST_TIME_NS: f64 = 4e18;

impl Prompts {
    /// One prompt of so many words.
    pub fn of_words(words: u32) -> Self {
        let content = Content(of_words(u64::from(words), words).into_bytes());
        Self::Given { file: "a first prompt".to_owned(), content, rate: Rate::default() }
    }

    /// Makes them ready.
    ///
    /// # Errors
    /// Says where the file is wrong.
    pub fn ready(&self, seed: u64, salt: u64) -> Result<PromptSource, OptionsError> {
        match self {
            Self::Made { input, prefix, rate } => {
                let mut words = String::new();
                add_words(rate.words(f64::from(*prefix)), &mut Random::new(seed, u64::MAX), &mut words);
                Ok(PromptSource::Made { input: *input, prefix: words, rate: *rate, salt })
            }
            Self::Given { file, content, rate } => {
                Ok(PromptSource::Given { all: read_file(file, &content.0)?, rate: *rate, salt })
            }
        }
    }
}

impl PromptSource {
    /// Appends the prompt of this turn (0 is the first) of the conversation with this number to `out`, escaped for JSON. Returns the most
    /// tokens of its answer if a file says so. `serial` is a number of this prompt alone.
    pub fn write(&self, number: u64, turn: u32, serial: u64, random: &mut Random, out: &mut String) -> Option<u32> {
        match self {
            Self::Made { input, prefix, rate, salt } => {
                let words = rate.words(f64::from(input.draw(random)) - rate.fixed).max(1);
                // What all begin with stands in the first turn alone.
                let prefix = if turn == 0 { prefix } else { "" };
                out.push_str(&of_number(prefix, serial ^ *salt, words, random));
                None
            }
            Self::Given { all, rate, salt } => {
                let given = all.get((number % all.len().max(1) as u64) as usize)?;
                match given.turns.get(turn as usize)? {
                    Text::Whole(text) => out.push_str(text),
                    // It has its prompt in it.
                    Text::Body(_) => {}
                    Text::Tokens { tokens, blocks } => {
                        out.push_str(&of_blocks(*rate, *salt, serial, (*tokens, blocks), random));
                    }
                }
                given.output
            }
        }
    }

    /// The whole bodies of a file, by the places of those that have one; empty where none has.
    pub fn bodies<'a>(&'a self) -> Vec<Option<&'a Map<String, Value>>> {
        let Self::Given { all, .. } = self else { return Vec::new() };
        let body = |given: &'a Given| match given.turns.first() {
            Some(Text::Body(body)) => Some(body),
            _ => None,
        };
        let bodies: Vec<_> = all.iter().map(body).collect();
        if bodies.iter().any(Option::is_some) { bodies } else { Vec::new() }
    }

    /// The turns that the conversation with this number has in its file; `None` of one that is made.
    pub fn turns(&self, number: u64) -> Option<u32> {
        let Self::Given { all, .. } = self else { return None };
        Some(all.get((number % all.len().max(1) as u64) as usize)?.turns.len() as u32)
    }

    /// When the conversations of a file come, in nanoseconds from the first of them, if it has times.
    pub fn times(&self) -> Option<Vec<u64>> {
        let Self::Given { all, .. } = self else { return None };
        let first = all.first()?.at_ns?;
        all.iter().map(|given| Some(given.at_ns?.saturating_sub(first))).collect()
    }
}

/// A prompt of so many words.
fn of_words(number: u64, words: u32) -> String {
    of_number("", number, words, &mut Random::new(0, number))
}

/// A prompt of so many tokens, which begins with these blocks.
fn of_blocks(rate: Rate, salt: u64, serial: u64, (tokens, blocks): (u32, &[u64]), random: &mut Random) -> String {
    if blocks.is_empty() {
        let words = rate.words(f64::from(tokens) - rate.fixed).max(1);
        return of_number("", serial ^ salt, words, random);
    }
    let mut out = String::new();
    let words = rate.words(f64::from(tokens) - rate.fixed).max(1);
    let each = rate.words(f64::from(BLOCK_TOKENS));
    let mut left = words;
    for block in blocks {
        let of_block = each.min(left);
        // The last block may be cut, and begins alike all the same.
        add_words(of_block, &mut Random::new(salt, *block), &mut out);
        left -= of_block;
    }
    add_words(left, random, &mut out);
    out
}

/// A prompt of so many words, which begins with `prefix` and its number.
fn of_number(prefix: &str, number: u64, words: u32, random: &mut Random) -> String {
    let mut out = prefix.to_owned();
    // What differs stands first.
    let mut rest = number;
    for _ in 0..words.min(NUMBER_WORDS) {
        add_word(rest, &mut out);
        rest /= WORDS.len() as u64;
    }
    add_words(words.saturating_sub(NUMBER_WORDS), random, &mut out);
    out
}

fn add_words(words: u32, random: &mut Random, out: &mut String) {
    let mut bits = 0;
    for nth in 0..words {
        if nth % 8 == 0 {
            bits = random.next_u64();
        }
        add_word(bits, out);
        bits >>= 7;
    }
}

fn add_word(number: u64, out: &mut String) {
    if !out.is_empty() {
        out.push(' ');
    }
    out.push_str(WORDS.get((number % WORDS.len() as u64) as usize).copied().unwrap_or_default());
}

/// A text escaped for JSON, without its quotes.
pub fn escaped(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default().to_owned()
}

/// The kind of a file with times of its own, as a report names it.
pub const fn kind_of_trace(given: &Given) -> &'static str {
    match given.turns.as_slice() {
        [Text::Tokens { blocks, .. }] if blocks.is_empty() => "lengths",
        [Text::Tokens { .. }] => "mooncake",
        _ => "prompts",
    }
}

/// The prompts of a file: a JSON list, a table of `BurstGPT`, or a text or an object in each line. Those with times are in their order.
///
/// # Errors
/// Names the file, and the line or the entry.
pub fn read_file(file: &str, content: &[u8]) -> Result<Vec<Given>, OptionsError> {
    let content = without_mark(content);
    let wrong = |place: String, problem: &str| OptionsError(format!("{file}{place}: {problem}"));
    let text = std::str::from_utf8(content).map_err(|_| wrong(String::new(), "not UTF-8"))?;
    let mut all = Vec::new();
    if let Some(columns) = text.lines().next().and_then(Columns::of) {
        for (line, number) in text.lines().zip(1..).skip(1).filter(|(line, _): &(&str, usize)| !line.trim().is_empty())
        {
            let row = columns.read(line).ok_or_else(|| {
                wrong(format!(", line {number}"), "expected numbers as Timestamp, Request tokens and Response tokens")
            })?;
            // A request without an answer had failed.
            all.extend(row);
        }
    } else if let Some(entries) = list(text) {
        for (entry, number) in entries.iter().zip(1..) {
            all.extend(of_entry(entry).map_err(|expected| wrong(format!(", entry {number}"), expected))?);
        }
    } else {
        for (line, number) in text.lines().zip(1..).filter(|(line, _): &(&str, usize)| !line.trim().is_empty()) {
            let entry = match serde_json::from_str::<Value>(line) {
                Ok(entry @ (Value::Object(_) | Value::String(_))) => entry,
                Err(_) if line.trim_start().starts_with('{') => {
                    return Err(wrong(format!(", line {number}"), "not JSON, though it begins with {"));
                }
                // A line of plain text is a prompt, and so is a number.
                _ => Value::from(line),
            };
            all.extend(of_entry(&entry).map_err(|expected| wrong(format!(", line {number}"), expected))?);
        }
    }
    if all.is_empty() {
        return Err(wrong(String::new(), "there are no prompts in it"));
    }
    let timed = all.iter().filter(|given| given.at_ns.is_some()).count();
    if timed == all.len() {
        all.sort_by_key(|given| given.at_ns);
    } else if timed > 0 {
        let without = all.len() - timed;
        let problem = format!("{without} of {} requests have no timestamp: give each one, or none", all.len());
        return Err(wrong(String::new(), &problem));
    }
    Ok(all)
}

/// The entries of a file that is a list in JSON. Other texts may begin with a bracket, too.
fn list(text: &str) -> Option<Vec<Value>> {
    serde_json::from_str(text).ok().filter(|_| text.trim_start().starts_with('['))
}

/// What an entry of a file may be.
const EXPECTED: &str = "expected a text, or an object with prompt, text, messages, conversations, body or input_length";

/// What its time may be.
const EXPECTED_TIME: &str = "expected a timestamp in milliseconds, 0 or more";

/// The places of the columns of `BurstGPT`'s tables.
#[derive(Debug, Clone, Copy)]
struct Columns {
    time: usize,
    input: usize,
    output: usize,
}

impl Columns {
    /// Those of a table with this first line, if it is one.
    fn of(head: &str) -> Option<Self> {
        let place = |name: &str| head.split(',').position(|column| column.trim().eq_ignore_ascii_case(name));
        Some(Self { time: place("Timestamp")?, input: place("Request tokens")?, output: place("Response tokens")? })
    }

    /// A row: none of a request that was not answered. `None` if it is no row.
    fn read(self, line: &str) -> Option<Vec<Given>> {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let number = |place: usize| fields.get(place)?.parse::<f64>().ok().filter(|number| *number >= 0.0);
        let (input, output) = (number(self.input)?, number(self.output)?);
        let at_ns = nanoseconds(number(self.time)?, 1e9)?;
        if input > MOST_TOKENS || output > MOST_TOKENS {
            return None;
        }
        let prompt = Text::Tokens { tokens: input as u32, blocks: Vec::new() };
        let given = Given { turns: vec![prompt], output: Some(output as u32), at_ns: Some(at_ns) };
        Some(if output >= 1.0 { vec![given] } else { Vec::new() })
    }
}

/// A time of a trace in nanoseconds, of units of so many.
fn nanoseconds(time: f64, unit: f64) -> Option<u64> {
    Some(time * unit).filter(|ns| (0.0..=MOST_TIME_NS).contains(ns)).map(|ns| ns.round() as u64)
}

/// The whole body that an entry is: the `body` of a line of OpenAI's batch files, or messages with what only a body has.
fn whole_body(entry: &Value) -> Option<&Map<String, Value>> {
    if let Some(body) = entry.get("body") {
        return body.as_object();
    }
    let messages = entry.get("messages")?.as_array()?;
    let has_parts = messages.iter().any(|message| message.get("content").is_some_and(Value::is_array));
    let is_body = has_parts || ["model", "tools"].iter().any(|field| entry.get(*field).is_some());
    entry.as_object().filter(|_| is_body)
}

/// The conversations of an entry: none where it has no prompt, as some of `ShareGPT`'s have none, or where its request had no answer.
///
/// # Errors
/// What was expected in its place.
fn of_entry(entry: &Value) -> Result<Vec<Given>, &'static str> {
    // Logs of chats have dates, which are no times of a trace.
    let time = entry.get("timestamp").and_then(Value::as_f64);
    let at_ns = time.map(|time| nanoseconds(time, 1e6).ok_or(EXPECTED_TIME)).transpose()?;
    read_entry(entry, at_ns).ok_or(EXPECTED)
}

/// The same of an entry with this time.
fn read_entry(entry: &Value, at_ns: Option<u64>) -> Option<Vec<Given>> {
    let number = |names: &[&str]| {
        let number = names.iter().find_map(|name| entry.get(name)?.as_u64());
        number.and_then(|tokens| u32::try_from(tokens).ok()).filter(|tokens| f64::from(*tokens) <= MOST_TOKENS)
    };
    let output = number(&["output_tokens", "output_length", "max_tokens", "output_len"]);
    let given = |turns: Vec<Text>| Some(vec![Given { turns, output, at_ns }]);
    if let Some(text) = entry.as_str() {
        return given(vec![Text::Whole(escaped(text))]);
    }
    if let Some(body) = whole_body(entry) {
        return given(vec![Text::Body(body.clone())]);
    }
    if let Some(text) = ["prompt", "text", "content"].iter().find_map(|name| entry.get(name)?.as_str()) {
        return given(vec![Text::Whole(escaped(text))]);
    }
    if let Some(tokens) = number(&["input_length", "input_tokens", "prompt_tokens", "input_len"]) {
        let blocks = entry.get("hash_ids").and_then(Value::as_array);
        let blocks = blocks.map(|blocks| blocks.iter().filter_map(Value::as_u64).collect()).unwrap_or_default();
        if output == Some(0) {
            return Some(Vec::new());
        }
        return given(vec![Text::Tokens { tokens, blocks }]);
    }
    let said = ["conversations", "messages", "turns"].iter().find_map(|name| entry.get(name)?.as_array())?;
    let by = |turn: &&Value| {
        let who = turn.get("from").or_else(|| turn.get("role")).and_then(Value::as_str);
        // A list of turns has nothing but these.
        matches!(who, None | Some("human" | "user"))
    };
    let text = |turn: &Value| {
        let text = ["value", "content", "text"].iter().find_map(|name| turn.get(name)?.as_str());
        Some(Text::Whole(escaped(text.or_else(|| turn.as_str())?)))
    };
    let turns: Vec<Text> = said.iter().filter(by).map(text).collect::<Option<_>>()?;
    if turns.is_empty() { Some(Vec::new()) } else { given(turns) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_differ_from_their_first_words_on() {
        let source = Prompts::Made { input: Length::fixed(40.0), prefix: 3, rate: Rate { fixed: 4.0, each: 1.0 } };
        let source = source.ready(9, 0x5_1234_5678).unwrap();
        let prompt = |number: u64| {
            let mut text = String::new();
            source.write(number, 0, number, &mut Random::new(9, number), &mut text);
            text
        };
        let texts: Vec<Vec<String>> =
            (0..2000).map(|number| prompt(number).split(' ').map(str::to_owned).collect()).collect();
        assert!(texts.iter().all(|words| words.len() == 39 && words[..3] == texts[0][..3]));
        let firsts: std::collections::HashSet<_> = texts.iter().map(|words| words[3..8].to_vec()).collect();
        assert_eq!(firsts.len(), 2000);
        assert!(texts.windows(2).all(|two| two[0][3] != two[1][3]), "the next prompt has another first word");
        assert_eq!(prompt(5), prompt(5));
        assert_eq!(of_words(1, 300).split(' ').count(), 300);
    }

    #[test]
    fn a_rate_is_known_by_two_prompts() {
        let rate = Rate::by((10, 23), (110, 148)).unwrap();
        assert!((rate.each - 1.25).abs() < 1e-9 && (rate.fixed - 10.5).abs() < 1e-9);
        assert_eq!((Rate::by((10, 20), (10, 20)), Rate::by((10, 20), (20, 20))), (None, None));
    }

    #[test]
    fn files_have_prompts_in_many_shapes() {
        let texts = |content: &str| {
            let read = read_file("f", content.as_bytes());
            let text = |turn: &Text| if let Text::Whole(text) = turn { text.clone() } else { format!("{turn:?}") };
            let texts = |given: Given| (given.turns.iter().map(text).collect::<Vec<_>>().join("|"), given.output);
            read.map(|all| all.into_iter().map(texts).collect::<Vec<_>>()).map_err(|e| e.0)
        };
        let one = |text: &str| Ok(vec![(text.to_owned(), None)]);
        assert_eq!(
            texts(
                "[{\"conversations\":[{\"from\":\"human\",\"value\":\"a\\nb\"},{\"from\":\"gpt\",\"value\":\"c\"}]}]"
            ),
            one("a\\nb")
        );
        assert_eq!(texts("[{\"conversations\":[]},{\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}]"), one("x"));
        assert_eq!(
            texts(
                "[{\"conversations\":[{\"from\":\"human\",\"value\":\"a\"},{\"from\":\"gpt\",\"value\":\"b\"},{\"from\":\"human\",\"value\":\"c\"}]}]"
            ),
            one("a|c")
        );
        assert_eq!(texts("{\"turns\":[{\"text\":\"a\"},{\"text\":\"b\"}]}"), one("a|b"));
        assert_eq!(
            texts("{\"prompt\":\"a\",\"output_tokens\":5}\n\n\"b\"\nplain \"c\"\n42\n"),
            Ok(vec![
                ("a".to_owned(), Some(5)),
                ("b".to_owned(), None),
                ("plain \\\"c\\\"".to_owned(), None),
                ("42".to_owned(), None)
            ])
        );
        let bodies = |content: &str| {
            let read = read_file("f", content.as_bytes()).unwrap();
            read.iter().map(|given| matches!(given.turns[..], [Text::Body(_)])).collect::<Vec<_>>()
        };
        let messages = "\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]";
        assert_eq!(
            bodies(&format!(
                "{{\"custom_id\":\"1\",\"method\":\"POST\",\"url\":\"/v1/chat/completions\",\"body\":{{{messages}}}}}\n{{{messages}}}\n\
                 {{{messages},\"tools\":[]}}\n{{\"messages\":[{{\"role\":\"user\",\"content\":[]}}]}}\n"
            )),
            [true, false, true, true]
        );
        assert_eq!(texts("\n").unwrap_err(), "f: there are no prompts in it");
        assert!(texts("{\"a\":1}\n").unwrap_err().starts_with("f, line 1: expected a text"));
        assert!(texts("{\"a\":\n").unwrap_err().starts_with("f, line 1: not JSON"));
    }

    #[test]
    fn prompts_of_a_trace_share_their_blocks() {
        let lines = "{\"timestamp\": 0, \"input_length\": 1200, \"output_length\": 7, \"hash_ids\": [1, 2, 3]}\n\
                     {\"timestamp\": 5, \"input_length\": 1100, \"output_length\": 9, \"hash_ids\": [1, 2, 4]}\n\
                     {\"timestamp\": 9, \"input_length\": 10}\n";
        let rate = Rate { fixed: 0.0, each: 2.0 };
        let given = Prompts::Given { file: "f".to_owned(), content: Content(lines.as_bytes().to_vec()), rate };
        let source = given.ready(3, 5).unwrap();
        let prompt = |number: u64| {
            let mut text = String::new();
            let output = source.write(number, 0, number, &mut Random::new(3, number), &mut text);
            (text.split(' ').map(str::to_owned).collect::<Vec<_>>(), output)
        };
        let [(first, seven), (second, nine), (third, none)] = [prompt(0), prompt(1), prompt(2)];
        assert_eq!((seven, nine, none), (Some(7), Some(9), None));
        // Two tokens a word, and blocks of 512 tokens.
        assert_eq!((first.len(), second.len(), third.len()), (600, 550, 5));
        assert_eq!(first[..512], second[..512]);
        assert_ne!(first[512..550], second[512..550]);
        assert_eq!(prompt(3), prompt(0), "they come in turn");
    }

    #[test]
    fn a_time_that_is_none_is_named_and_not_left_out() {
        let read = |text: &str| read_file("t", text.as_bytes()).map(|all| all.len()).map_err(|error| error.0);
        let line = |time: &str| format!("{{\"timestamp\": {time}, \"input_length\": 5, \"output_length\": 2}}\n");
        assert_eq!(read(&(line("0") + &line("7"))), Ok(2));
        for time in ["-1", "1e300"] {
            let problem = read(&(line("0") + &line(time))).unwrap_err();
            assert!(problem.contains("t, line 2: expected a timestamp in milliseconds"), "{problem}");
        }
        for other in ["{\"input_length\": 5}\n".to_owned(), line("\"soon\"")] {
            let problem = read(&(line("0") + &other)).unwrap_err();
            assert!(problem.contains("1 of 2 requests have no timestamp"), "{problem}");
        }
        // Logs of chats have dates.
        let chat = "{\"timestamp\": \"2026-11-30\", \"prompt\": \"hi\"}\n";
        assert_eq!(read(&chat.repeat(2)), Ok(2));
        // A request without an answer had failed.
        assert_eq!(read(&(line("0") + "{\"timestamp\": 3, \"input_length\": 5, \"output_length\": 0}\n")), Ok(1));
    }

    #[test]
    fn traces_have_times() {
        let times = |content: &str| {
            let content = Content(content.as_bytes().to_vec());
            let source = Prompts::Given { file: "f".to_owned(), content, rate: Rate::default() }.ready(1, 0);
            source.map(|source| source.times()).map_err(|error| error.0)
        };
        let mooncake = "{\"timestamp\": 2500, \"input_length\": 3}\n{\"timestamp\": 1000, \"input_length\": 3, \"hash_ids\": [1]}\n";
        assert_eq!(times(mooncake), Ok(Some(vec![0, 1_500_000_000])));
        let table = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,GPT-4,472,18,490,Conversation log\n\
                     9.5,ChatGPT,10,0,10,API log\n45,ChatGPT,1087,230,1317,Conversation log\n";
        assert_eq!(times(table), Ok(Some(vec![0, 40_000_000_000])), "what failed is left out");
        let read = read_file("f", table.as_bytes()).unwrap();
        assert_eq!((read[1].output, kind_of_trace(&read[1])), (Some(230), "lengths"));
        assert!(
            times("{\"timestamp\": 1, \"prompt\": \"a\"}\nb\n")
                .unwrap_err()
                .contains("1 of 2 requests have no timestamp")
        );
        assert!(times(&table.replace("472", "many")).unwrap_err().starts_with("f, line 2: expected numbers"));
    }
}
