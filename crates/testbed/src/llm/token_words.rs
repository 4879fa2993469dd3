//! Text as tokens: the words of prompts, and those of answers.

use std::borrow::Cow;
use std::collections::hash_map::DefaultHasher;
use std::hash::Hasher as _;

/// Tokens in a block of the prefix cache, as vLLM has by default.
pub(super) const BLOCK: u64 = 16;

/// A part of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part<'a> {
    /// Text: a token is a run of bytes other than ASCII white space. None goes on in the next part.
    Text(Cow<'a, str>),
    /// Tokens by their numbers.
    Ids(Vec<u64>),
}

/// A prompt, counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Prompt {
    pub(super) tokens: u64,
    /// For each whole block of tokens, a hash of all tokens from the first to the block's last. Empty unless asked for.
    pub(super) blocks: Vec<u64>,
}

impl Prompt {
    /// Counts the tokens of `parts` behind `template` tokens that all prompts share.
    pub(super) fn count(parts: &[Part<'_>], template: u64, with_blocks: bool) -> Self {
        let mut counter = Counter { prompt: Self::default(), hasher: with_blocks.then(DefaultHasher::new) };
        for _ in 0..template {
            counter.token(b"");
        }
        for part in parts {
            match part {
                Part::Text(text) => words(text).for_each(|word| counter.token(word)),
                Part::Ids(ids) => ids.iter().for_each(|id| counter.token(&id.to_le_bytes())),
            }
        }
        counter.prompt
    }
}

/// The words of a text.
fn words(text: &str) -> impl Iterator<Item = &[u8]> {
    text.as_bytes().split(|byte| is_space(*byte)).filter(|word| !word.is_empty())
}

fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

struct Counter {
    prompt: Prompt,
    hasher: Option<DefaultHasher>,
}

impl Counter {
    fn token(&mut self, bytes: &[u8]) {
        self.prompt.tokens += 1;
        let Some(hasher) = &mut self.hasher else { return };
        hasher.write(bytes);
        // A byte that no text has, so that words do not run into each other.
        hasher.write_u8(0xff);
        if self.prompt.tokens.is_multiple_of(BLOCK) {
            self.prompt.blocks.push(hasher.finish());
        }
    }
}

/// Appends the text of answer token `k`, counted from 1: ` w1`, ` w2`, …. Each is one word, and each word one token of the next
/// prompt. Every fourth has something to escape or beyond ASCII: ` "w4"`, ` wé8`, ` w語12`, ` w😀16`, ` "w20"`, ….
pub(super) fn push_token(k: u64, text: &mut String) {
    let number = k.to_string();
    let parts = match k % 16 {
        4 => [" \"w", &number, "\""],
        8 => [" wé", &number, ""],
        12 => [" w語", &number, ""],
        0 => [" w😀", &number, ""],
        _ => [" w", &number, ""],
    };
    text.extend(parts);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(text: &str) -> Part<'_> {
        Part::Text(text.into())
    }

    #[test]
    fn a_token_is_a_word() {
        let count = |parts: &[Part<'_>], template| Prompt::count(parts, template, false).tokens;
        assert_eq!(count(&[text("")], 0), 0);
        assert_eq!(count(&[text(" a\tb\r\n\u{b}c\u{c} ")], 0), 3);
        assert_eq!(count(&[text("naïve 漢字\u{a0}x")], 0), 2, "white space beyond ASCII is part of words");
        assert_eq!(count(&[text("a"), text("b"), Part::Ids(vec![7, 8, 9])], 10), 15);
    }

    #[test]
    fn answers_are_words_of_ascii_and_beyond() {
        let mut all = String::new();
        (1..=16).for_each(|k| push_token(k, &mut all));
        assert_eq!(all, " w1 w2 w3 \"w4\" w5 w6 w7 wé8 w9 w10 w11 w語12 w13 w14 w15 w😀16");
        assert_eq!(Prompt::count(&[text(&all)], 0, false).tokens, 16);
    }

    #[test]
    fn blocks_tell_prompts_apart_from_their_first_difference_on() {
        let prompt = |text: String| Prompt::count(&[Part::Text(text.into())], 0, true).blocks;
        let long = (0..100).map(|n| format!("w{n}")).collect::<Vec<_>>().join(" ");
        let other = long.replacen("w40 ", "x40 ", 1);
        let (one, two) = (prompt(long.clone()), prompt(other));
        assert_eq!((one.len(), two.len()), (6, 6));
        assert_eq!(one[..2], two[..2]);
        assert!((2..6).all(|at| one[at] != two[at]));
        let ids = |ids: Vec<u64>| Prompt::count(&[Part::Ids(ids)], 0, true).blocks;
        assert_eq!(ids((0..32).collect())[0], ids((0..17).collect())[0]);
    }

    proptest! {
        #[test]
        fn words_are_those_of_the_definition(text in "[a-zé \\t\\n\\u{b}]{0,60}", template in 0_u64..40) {
            let expected = text.split([' ', '\t', '\n', '\u{b}']).filter(|word| !word.is_empty()).count() as u64 + template;
            let prompt = Prompt::count(&[Part::Text(text.into())], template, true);
            prop_assert_eq!((prompt.tokens, prompt.blocks.len() as u64), (expected, expected / BLOCK));
        }
    }
}
