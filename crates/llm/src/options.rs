//! The `protocol` part of a plan for language models.

use brunt_http1::options::Options as Http;
use brunt_plan::plan::ProtocolOptions;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::dialect::{ApiDialect, Taken};
use crate::length::Length;
use crate::objectives::Objectives;
use crate::prompt::Prompts;
use crate::turns::Turns;

/// How a server is asked, and with what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LlmOptions {
    /// The dialect; `None` for that of the target's path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api: Option<ApiDialect>,
    /// The model.
    pub model: String,
    /// Whether answers are streamed.
    pub stream: bool,
    /// The prompts.
    pub prompts: Prompts,
    /// How conversations go on, where requests are turns of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<Turns>,
    /// The most tokens of an answer; `None` where the server decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Length>,
    /// Whether answers have these tokens exactly, whatever the model would say.
    #[serde(default)]
    pub ignore_eos: bool,
    /// Further fields of each body.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
    /// What the server takes.
    #[serde(default)]
    pub taken: Taken,
    /// Objectives of an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objectives: Option<Objectives>,
    /// The longest time between two events, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall_ns: Option<u64>,
    /// HTTP below: header fields and version.
    pub http: Value,
    /// A question before the load, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks: Option<Question>,
}

/// What a server is asked before the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Question {
    /// For its models.
    Models,
    /// For an answer, which is read whole.
    Answer,
}

impl LlmOptions {
    /// Streamed answers of as many tokens as the server likes, asked for in the dialect of the target's path.
    pub fn new(model: &str, prompts: Prompts) -> Self {
        Self {
            api: None,
            model: model.to_owned(),
            stream: true,
            prompts,
            turns: None,
            output: None,
            ignore_eos: false,
            extra: Map::new(),
            taken: Taken::default(),
            objectives: None,
            stall_ns: None,
            http: Value::Null,
            asks: None,
        }
    }

    /// The options as part of a plan: `http` whole for the engine, without secrets for everything else.
    pub fn to_protocol(&self, http: &Http) -> ProtocolOptions {
        let http = http.to_protocol();
        let written =
            |http: &Value| serde_json::to_value(Self { http: http.clone(), ..self.clone() }).unwrap_or_default();
        ProtocolOptions::new(written(http.reveal()), written(http.shown()))
    }
}
