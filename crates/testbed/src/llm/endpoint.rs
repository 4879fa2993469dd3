//! Paths, and the APIs that they belong to.

/// Whose API a path is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    OpenAi,
    Anthropic,
    Ollama,
}

/// A path that answers with tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Endpoint {
    Chat,
    Completions,
    Messages,
    OllamaChat,
    OllamaGenerate,
}

impl Endpoint {
    pub(super) fn api(self) -> Api {
        match self {
            Self::Chat | Self::Completions => Api::OpenAi,
            Self::Messages => Api::Anthropic,
            Self::OllamaChat | Self::OllamaGenerate => Api::Ollama,
        }
    }

    /// Whether prompts are messages, to which a template adds tokens.
    pub(super) fn is_chat(self) -> bool {
        matches!(self, Self::Chat | Self::Messages | Self::OllamaChat)
    }

    /// Whether an answer is a stream if the request does not say.
    pub(super) fn streams_unasked(self) -> bool {
        self.api() == Api::Ollama
    }

    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Chat => "/v1/chat/completions",
            Self::Completions => "/v1/completions",
            Self::Messages => "/v1/messages",
            Self::OllamaChat => "/api/chat",
            Self::OllamaGenerate => "/api/generate",
        }
    }
}

/// What a request is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    Health,
    Models,
    /// One model, by name.
    Model(String),
    Tokens(Endpoint),
    Unknown(Api),
}

impl Place {
    /// The place with this path, without a query.
    pub(super) fn of(path: &[u8]) -> Self {
        let path = String::from_utf8_lossy(path);
        match path.as_ref() {
            "/health" => Self::Health,
            "/v1/models" => Self::Models,
            "/v1/chat/completions" => Self::Tokens(Endpoint::Chat),
            "/v1/completions" => Self::Tokens(Endpoint::Completions),
            "/v1/messages" => Self::Tokens(Endpoint::Messages),
            "/api/chat" => Self::Tokens(Endpoint::OllamaChat),
            "/api/generate" => Self::Tokens(Endpoint::OllamaGenerate),
            other => match other.strip_prefix("/v1/models/") {
                Some(name) => Self::Model(name.to_owned()),
                None if other.starts_with("/v1/messages/") => Self::Unknown(Api::Anthropic),
                None if other.starts_with("/api/") => Self::Unknown(Api::Ollama),
                None => Self::Unknown(Api::OpenAi),
            },
        }
    }

    /// Whose errors are answered.
    pub(super) fn api(&self) -> Api {
        match self {
            Self::Tokens(endpoint) => endpoint.api(),
            Self::Unknown(api) => *api,
            _ => Api::OpenAi,
        }
    }

    /// The method with which it is asked for; none of what there is not.
    pub(super) fn method(&self) -> Option<&'static str> {
        match self {
            Self::Tokens(_) => Some("POST"),
            Self::Health | Self::Models | Self::Model(_) => Some("GET"),
            Self::Unknown(_) => None,
        }
    }
}
