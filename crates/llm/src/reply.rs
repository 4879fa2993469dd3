//! The text of answers, for the turns that follow them.

use serde::Deserialize;

use crate::dialect::ApiDialect;

/// The most of an answer that later turns repeat, in bytes.
pub const MOST_REPLY: usize = 1024 * 1024;

#[derive(Deserialize)]
struct OpenAi {
    #[serde(default)]
    choices: Vec<Choice>,
}

#[derive(Deserialize)]
struct Choice {
    delta: Option<Said>,
    message: Option<Said>,
    text: Option<String>,
}

#[derive(Deserialize)]
struct Said {
    content: Option<String>,
}

#[derive(Deserialize)]
struct Anthropic {
    delta: Option<Text>,
    #[serde(default)]
    content: Vec<Text>,
}

#[derive(Deserialize)]
struct Text {
    text: Option<String>,
}

#[derive(Deserialize)]
struct Ollama {
    message: Option<Said>,
    response: Option<String>,
}

/// Appends the text that an event, or a whole answer, adds to what a model has said: its answer, without reasoning and calls of tools. It is cut
/// at [`MOST_REPLY`].
pub fn add_text(dialect: ApiDialect, data: &[u8], out: &mut String) {
    let text = match dialect {
        ApiDialect::Chat | ApiDialect::Completions => serde_json::from_slice::<OpenAi>(data).ok().and_then(|read| {
            let choice = read.choices.into_iter().next()?;
            choice.delta.or(choice.message).and_then(|said| said.content).or(choice.text)
        }),
        ApiDialect::Messages => serde_json::from_slice::<Anthropic>(data).ok().map(|read| {
            let all = read.delta.into_iter().chain(read.content);
            all.filter_map(|part| part.text).collect()
        }),
        ApiDialect::OllamaChat | ApiDialect::OllamaGenerate => {
            let read = serde_json::from_slice::<Ollama>(data).ok();
            read.and_then(|read| read.message.and_then(|said| said.content).or(read.response))
        }
    };
    let text = text.unwrap_or_default();
    // The first character that has no room ends it: what comes later would stand behind a gap.
    let whole = text.char_indices().map(|(at, c)| at + c.len_utf8()).take_while(|end| out.len() + end <= MOST_REPLY);
    let fits = if out.len() + text.len() <= MOST_REPLY { text.len() } else { whole.last().unwrap_or(0) };
    out.push_str(text.get(..fits).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_each_dialect_is_its_answer() {
        let all = |dialect, events: &[&str]| {
            let mut out = String::new();
            for event in events {
                add_text(dialect, event.as_bytes(), &mut out);
            }
            out
        };
        let chat = [
            r#"{"choices":[{"delta":{"role":"assistant","content":""}}]}"#,
            r#"{"choices":[{"delta":{"reasoning_content":"hm"}}]}"#,
            r#"{"choices":[{"delta":{"content":"a\n"}}],"usage":null}"#,
            r#"{"choices":[{"delta":{"content":null,"tool_calls":[{}]}}]}"#,
            r#"{"choices":[{"delta":{"content":"é"}}]}"#,
            r#"{"choices":[],"usage":{"completion_tokens":2}}"#,
            "[DONE]",
        ];
        assert_eq!(all(ApiDialect::Chat, &chat), "a\né");
        assert_eq!(all(ApiDialect::Chat, &[r#"{"choices":[{"message":{"content":"whole"}}]}"#]), "whole");
        assert_eq!(
            all(ApiDialect::Completions, &[r#"{"choices":[{"text":"a"}]}"#, r#"{"choices":[{"text":"b"}]}"#]),
            "ab"
        );
        let anthropic = [
            r#"{"type":"content_block_start","content_block":{"type":"text","text":""}}"#,
            r#"{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"hm"}}"#,
            r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}"#,
        ];
        assert_eq!(all(ApiDialect::Messages, &anthropic), "a");
        assert_eq!(
            all(
                ApiDialect::Messages,
                &[r#"{"content":[{"type":"thinking","thinking":"x"},{"type":"text","text":"b"}]}"#]
            ),
            "b"
        );
        assert_eq!(all(ApiDialect::OllamaChat, &[r#"{"message":{"content":"a"},"done":false}"#]), "a");
        assert_eq!(all(ApiDialect::OllamaGenerate, &[r#"{"response":"b"}"#, "{"]), "b");
        let long = format!(r#"{{"response":"{}"}}"#, "x".repeat(MOST_REPLY - 3));
        let [cut, tail] = [r#"{"response":"aéé"}"#, r#"{"response":"b"}"#];
        let said = all(ApiDialect::OllamaGenerate, &[&long, cut, tail]);
        assert!(
            said.ends_with("xaé") && said.len() == MOST_REPLY,
            "its beginning alone, without a gap: {}",
            said.len()
        );
        let whole = format!(r#"{{"response":"{}"}}"#, "y".repeat(MOST_REPLY + 9));
        assert_eq!(all(ApiDialect::OllamaGenerate, &[&whole]).len(), MOST_REPLY);
    }
}
