//! The text of an answer, for the turns that follow it.

/// The most of an answer that later turns repeat, in bytes.
pub const MOST_REPLY: usize = 1024 * 1024;

/// The beginning of what a model answers.
#[derive(Debug, Default)]
pub struct Reply {
    text: String,
    is_full: bool,
}

impl Reply {
    /// Where to append more of it, while there is room.
    pub fn open(&mut self) -> Option<&mut String> {
        (!self.is_full).then_some(&mut self.text)
    }

    /// Cuts off what has no room. The first character without room ends it: what comes later would stand behind a gap.
    pub fn cut(&mut self) {
        if self.text.len() > MOST_REPLY {
            let fits = (0..=MOST_REPLY).rev().find(|end| self.text.is_char_boundary(*end));
            self.text.truncate(fits.unwrap_or(0));
            self.text.shrink_to(MOST_REPLY);
            self.is_full = true;
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::ApiDialect;

    #[test]
    fn the_text_of_each_dialect_is_its_answer() {
        let all = |dialect: ApiDialect, events: &[&str]| {
            let mut reply = Reply::default();
            for event in events {
                let _ = dialect.read(event.as_bytes(), reply.open());
                reply.cut();
            }
            reply.as_str().to_owned()
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
