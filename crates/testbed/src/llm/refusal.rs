//! Answers that are no tokens: errors, in each API's shape.

use serde_json::{Value, json};

use super::endpoint::Api;

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reason {
    Invalid,
    Unauthorized,
    NotFound,
    NoModel,
    Method,
    TooLarge,
    /// Too many requests.
    Busy,
    /// Not now.
    Unavailable,
    /// The server broke.
    Broken,
}

/// A refusal with its words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) reason: Reason,
    pub(super) message: String,
}

impl Refusal {
    pub(super) fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }

    /// The refusal of a model that is not there, in the words of `api`.
    pub(super) fn no_model(api: Api, model: &str) -> Self {
        let message = match api {
            Api::OpenAi => format!("The model `{model}` does not exist"),
            Api::Anthropic => format!("model: {model}"),
            Api::Ollama => format!("model '{model}' not found"),
        };
        Self::new(Reason::NoModel, message)
    }

    pub(super) fn status(&self, api: Api) -> u16 {
        match self.reason {
            Reason::Invalid => 400,
            Reason::Unauthorized => 401,
            Reason::NotFound | Reason::NoModel => 404,
            Reason::Method => 405,
            Reason::TooLarge => 413,
            Reason::Busy => 429,
            // Anthropic has a status of its own for it.
            Reason::Unavailable if api == Api::Anthropic => 529,
            Reason::Unavailable => 503,
            Reason::Broken => 500,
        }
    }

    /// The document that says so, or the data of an event.
    pub(super) fn document(&self, api: Api) -> Value {
        match api {
            Api::OpenAi => {
                let (kind, code) = match self.reason {
                    Reason::Invalid | Reason::NotFound | Reason::Method | Reason::TooLarge => {
                        ("invalid_request_error", Value::Null)
                    }
                    Reason::Unauthorized => ("invalid_request_error", "invalid_api_key".into()),
                    Reason::NoModel => ("invalid_request_error", "model_not_found".into()),
                    Reason::Busy => ("requests", "rate_limit_exceeded".into()),
                    Reason::Unavailable | Reason::Broken => ("server_error", Value::Null),
                };
                json!({ "error": { "message": self.message, "type": kind, "param": null, "code": code } })
            }
            Api::Anthropic => {
                let kind = match self.reason {
                    Reason::Invalid | Reason::Method => "invalid_request_error",
                    Reason::Unauthorized => "authentication_error",
                    Reason::NotFound | Reason::NoModel => "not_found_error",
                    Reason::TooLarge => "request_too_large",
                    Reason::Busy => "rate_limit_error",
                    Reason::Unavailable => "overloaded_error",
                    Reason::Broken => "api_error",
                };
                json!({ "type": "error", "error": { "type": kind, "message": self.message } })
            }
            Api::Ollama => json!({ "error": self.message }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_api_has_its_shape() {
        let refusal = Refusal::new(Reason::Busy, "later");
        let openai = r#"{"error":{"code":"rate_limit_exceeded","message":"later","param":null,"type":"requests"}}"#;
        assert_eq!(refusal.document(Api::OpenAi).to_string(), openai);
        let anthropic = r#"{"error":{"message":"later","type":"rate_limit_error"},"type":"error"}"#;
        assert_eq!(refusal.document(Api::Anthropic).to_string(), anthropic);
        assert_eq!(refusal.document(Api::Ollama).to_string(), r#"{"error":"later"}"#);
        let none = Refusal::new(Reason::Unavailable, "");
        assert_eq!([Api::OpenAi, Api::Anthropic, Api::Ollama].map(|api| none.status(api)), [503, 529, 503]);
    }
}
