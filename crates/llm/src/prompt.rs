//! Prompts: made of words, as many as there shall be tokens, or taken from a file.
//!
//! Made prompts differ from their first words on, so that no server answers one from what it keeps of another: a prompt begins with its
//! number, in words. What they shall share is said by `--prefix-tokens`.

use brunt_plan::content::{Content, without_mark};
use brunt_plan::random::Random;
use brunt_protocol::OptionsError;
use serde::{Deserialize, Serialize};
use serde_json::Value;

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
        /// The run's seed.
        seed: u64,
    },
    /// They are given.
    Given {
        /// All of them.
        all: Vec<Given>,
        /// How many tokens words are.
        rate: Rate,
        /// The run's seed.
        seed: u64,
    },
}

/// A prompt of a file, and the tokens of its answer if the file says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// The prompt.
    pub prompt: Text,
    /// The most tokens of its answer.
    pub output: Option<u32>,
}

/// A prompt of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Text {
    /// Its text, escaped for JSON.
    Whole(String),
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

impl Prompts {
    /// Makes them ready.
    ///
    /// # Errors
    /// Says where the file is wrong.
    pub fn ready(&self, seed: u64) -> Result<PromptSource, OptionsError> {
        match self {
            Self::Made { input, prefix, rate } => {
                let mut words = String::new();
                add_words(rate.words(f64::from(*prefix)), &mut Random::new(seed, u64::MAX), &mut words);
                Ok(PromptSource::Made { input: *input, prefix: words, rate: *rate, seed })
            }
            Self::Given { file, content, rate } => {
                Ok(PromptSource::Given { all: read_file(file, &content.0)?, rate: *rate, seed })
            }
        }
    }
}

impl PromptSource {
    /// Writes the prompt with this number into `out`, escaped for JSON. Returns the most tokens of its answer if a file says so.
    pub fn write(&self, number: u64, random: &mut Random, out: &mut String) -> Option<u32> {
        match self {
            Self::Made { input, prefix, rate, seed } => {
                let words = rate.words(f64::from(input.draw(random)) - rate.fixed).max(1);
                write_words(prefix, *seed, number, words, random, out);
                None
            }
            Self::Given { all, rate, seed } => {
                let given = all.get((number % all.len().max(1) as u64) as usize)?;
                match &given.prompt {
                    Text::Whole(text) => out.push_str(text),
                    Text::Tokens { tokens, blocks } => {
                        write_blocks(*rate, *seed, number, (*tokens, blocks), random, out);
                    }
                }
                given.output
            }
        }
    }
}

/// A prompt of so many words.
pub fn of_words(number: u64, words: u32) -> String {
    let mut text = String::new();
    write_words("", 0, number, words, &mut Random::new(0, number), &mut text);
    text
}

/// Writes a prompt of so many tokens, which begins with these blocks.
fn write_blocks(
    rate: Rate,
    seed: u64,
    number: u64,
    (tokens, blocks): (u32, &[u64]),
    random: &mut Random,
    out: &mut String,
) {
    let words = rate.words(f64::from(tokens) - rate.fixed).max(1);
    let each = rate.words(f64::from(BLOCK_TOKENS));
    let mut left = words;
    for block in blocks {
        let of_block = each.min(left);
        // The last block may be cut, and begins alike all the same.
        add_words(of_block, &mut Random::new(seed, *block), out);
        left -= of_block;
    }
    if blocks.is_empty() {
        write_words("", seed, number, words, random, out);
    } else {
        add_words(left, random, out);
    }
}

fn write_words(prefix: &str, seed: u64, number: u64, words: u32, random: &mut Random, out: &mut String) {
    out.push_str(prefix);
    // What differs stands first.
    let mut rest = number ^ (seed & 0x7fff);
    for _ in 0..words.min(NUMBER_WORDS) {
        add_word(rest, out);
        rest /= WORDS.len() as u64;
    }
    add_words(words.saturating_sub(NUMBER_WORDS), random, out);
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
fn escaped(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default().to_owned()
}

/// The prompts of a file: a JSON list, or a text in each line.
///
/// # Errors
/// Names the file, and the line or the entry.
fn read_file(file: &str, content: &[u8]) -> Result<Vec<Given>, OptionsError> {
    let content = without_mark(content);
    let wrong = |place: String, problem: &str| OptionsError(format!("{file}{place}: {problem}"));
    let text = std::str::from_utf8(content).map_err(|_| wrong(String::new(), "not UTF-8"))?;
    let mut all = Vec::new();
    if text.trim_start().starts_with('[') && serde_json::from_str::<Vec<Value>>(text).is_ok() {
        let entries: Vec<Value> = serde_json::from_str(text).unwrap_or_default();
        for (entry, number) in entries.iter().zip(1..) {
            let found = of_entry(entry).ok_or_else(|| {
                wrong(
                    format!(", entry {number}"),
                    "expected a text, or an object with prompt, text, messages, conversations or input_length",
                )
            })?;
            all.extend(found);
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
            let found = of_entry(&entry).ok_or_else(|| {
                wrong(
                    format!(", line {number}"),
                    "expected a text, or an object with prompt, text, messages, conversations or input_length",
                )
            })?;
            all.extend(found);
        }
    }
    if all.is_empty() {
        return Err(wrong(String::new(), "there are no prompts in it"));
    }
    Ok(all)
}

/// The prompts of an entry: none of a conversation without one, which `ShareGPT` has. `None` if it is no entry.
fn of_entry(entry: &Value) -> Option<Vec<Given>> {
    let given = |prompt: Text, output: Option<u32>| Some(vec![Given { prompt, output }]);
    if let Some(text) = entry.as_str() {
        return given(Text::Whole(escaped(text)), None);
    }
    let number = |names: &[&str]| {
        let number = names.iter().find_map(|name| entry.get(name)?.as_u64());
        number.and_then(|tokens| u32::try_from(tokens).ok()).filter(|tokens| f64::from(*tokens) <= MOST_TOKENS)
    };
    let output = number(&["output_tokens", "output_length", "max_tokens", "output_len"]);
    if let Some(text) = ["prompt", "text", "content"].iter().find_map(|name| entry.get(name)?.as_str()) {
        return given(Text::Whole(escaped(text)), output);
    }
    if let Some(tokens) = number(&["input_length", "input_tokens", "prompt_tokens", "input_len"]) {
        let blocks = entry.get("hash_ids").and_then(Value::as_array);
        let blocks = blocks.map(|blocks| blocks.iter().filter_map(Value::as_u64).collect()).unwrap_or_default();
        return given(Text::Tokens { tokens, blocks }, output);
    }
    let said = entry.get("conversations").or_else(|| entry.get("messages"))?.as_array()?;
    let by = |turn: &&Value| {
        let who = turn.get("from").or_else(|| turn.get("role")).and_then(Value::as_str);
        matches!(who, Some("human" | "user"))
    };
    let Some(turn) = said.iter().find(by) else { return Some(Vec::new()) };
    let text = turn.get("value").or_else(|| turn.get("content"))?.as_str()?;
    given(Text::Whole(escaped(text)), output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_differ_from_their_first_words_on() {
        let source = Prompts::Made { input: Length::Fixed(40.0), prefix: 3, rate: Rate { fixed: 4.0, each: 1.0 } };
        let source = source.ready(9).unwrap();
        let prompt = |number: u64| {
            let mut text = String::new();
            source.write(number, &mut Random::new(9, number), &mut text);
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
            let text = |prompt| if let Text::Whole(text) = prompt { text } else { format!("{prompt:?}") };
            read.map(|all| all.into_iter().map(|given| (text(given.prompt), given.output)).collect::<Vec<_>>())
                .map_err(|e| e.0)
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
            texts("{\"prompt\":\"a\",\"output_tokens\":5}\n\n\"b\"\nplain \"c\"\n42\n"),
            Ok(vec![
                ("a".to_owned(), Some(5)),
                ("b".to_owned(), None),
                ("plain \\\"c\\\"".to_owned(), None),
                ("42".to_owned(), None)
            ])
        );
        assert_eq!(texts("\n").unwrap_err(), "f: there are no prompts in it");
        assert!(texts("{\"a\":1}\n").unwrap_err().starts_with("f, line 1: expected a text"));
        assert!(texts("{\"a\":\n").unwrap_err().starts_with("f, line 1: not JSON"));
    }

    #[test]
    fn prompts_of_a_trace_share_their_blocks() {
        let lines = "{\"timestamp\": 0, \"input_length\": 1200, \"output_length\": 7, \"hash_ids\": [1, 2, 3]}\n\
                     {\"timestamp\": 5, \"input_length\": 1100, \"output_length\": 9, \"hash_ids\": [1, 2, 4]}\n\
                     {\"input_length\": 10}\n";
        let rate = Rate { fixed: 0.0, each: 2.0 };
        let given = Prompts::Given { file: "f".to_owned(), content: Content(lines.as_bytes().to_vec()), rate };
        let source = given.ready(3).unwrap();
        let prompt = |number: u64| {
            let mut text = String::new();
            let output = source.write(number, &mut Random::new(3, number), &mut text);
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
}
