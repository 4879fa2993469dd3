//! Events of language models in every dialect, and files of prompts: whatever bytes come, they are read or refused.

#![no_main]

use brunt_llm::dialect::ApiDialect;
use brunt_llm::prompt::{Prompts, Rate};
use brunt_plan::content::Content;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    for (_, dialect) in ApiDialect::NAMED {
        if let Some(event) = dialect.read(data, None) {
            // A text is no longer than the event that has it.
            assert!(event.text.is_none_or(|(_, bytes)| bytes as usize <= data.len()));
        }
    }
    let file = Prompts::Given { file: "f".to_owned(), content: Content(data.to_vec()), rate: Rate::default() };
    drop(file.ready(0, 0));
});
