//! The prefix cache: which beginnings of prompts came before.

use std::collections::HashSet;

use super::token_words::{BLOCK, Prompt};

/// Blocks in one of the cache's two generations.
const GENERATION: usize = 131_072;

/// Blocks of earlier prompts. At least the last 131,072 that came are known, and never more than twice as many.
#[derive(Debug, Default)]
pub(super) struct Prefixes {
    young: HashSet<u64>,
    old: HashSet<u64>,
}

impl Prefixes {
    /// The tokens of `prompt` that need no prefill, since an earlier prompt began with the same whole blocks; from now on
    /// its own blocks are known. The last token always needs it: the first of the answer comes from there.
    pub(super) fn share(&mut self, prompt: &Prompt) -> u64 {
        let known = prompt.blocks.iter().take_while(|block| self.has(**block)).count() as u64;
        prompt.blocks.iter().for_each(|block| self.insert(*block));
        known.min(prompt.tokens.saturating_sub(1) / BLOCK) * BLOCK
    }

    fn has(&self, block: u64) -> bool {
        self.young.contains(&block) || self.old.contains(&block)
    }

    fn insert(&mut self, block: u64) {
        if self.young.len() >= GENERATION {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(tokens: u64, blocks: &[u64]) -> Prompt {
        Prompt { tokens, blocks: blocks.to_vec() }
    }

    #[test]
    fn whole_blocks_that_an_earlier_prompt_began_with_are_shared() {
        let mut prefixes = Prefixes::default();
        assert_eq!(prefixes.share(&prompt(40, &[1, 2])), 0);
        assert_eq!(prefixes.share(&prompt(40, &[1, 2])), 32);
        assert_eq!(prefixes.share(&prompt(40, &[1, 3])), 16);
        assert_eq!(prefixes.share(&prompt(40, &[4, 2])), 0, "what follows another beginning is another");
        assert_eq!(prefixes.share(&prompt(32, &[1, 2])), 16, "the last token is never cached");
        assert_eq!(prefixes.share(&prompt(0, &[])), 0);
    }

    #[test]
    fn memory_is_bounded_and_the_latest_blocks_are_kept() {
        let mut prefixes = Prefixes::default();
        for block in 0..3 * GENERATION as u64 {
            prefixes.share(&prompt(17, &[block]));
        }
        assert!(prefixes.young.len() + prefixes.old.len() <= 2 * GENERATION);
        assert_eq!(prefixes.share(&prompt(17, &[0])), 0);
        let recent = 2 * GENERATION as u64 + 1;
        assert_eq!(prefixes.share(&prompt(17, &[recent])), 16);
    }
}
