//! A simulated language model: it reads prompts and writes answers at the speed that it is told to, in the words of OpenAI's, Anthropic's and
//! Ollama's APIs, so that all that a client measures can be checked by arithmetic. docs/target.md has the formulas.
//!
//! This is everything but the connections: requests and times go in, documents and events come out. [`http`](crate::http) has the rest.
//!
//! | file | |
//! | --- | --- |
//! | `endpoint.rs`, `request.rs`, `refusal.rs` | paths, bodies, errors |
//! | `token_words.rs`, `prefixes.rs` | tokens of prompts and answers; the prefix cache |
//! | `slots.rs`, `plan.rs` | when a request starts; when each of its tokens comes |
//! | `telling.rs`, `openai.rs`, `anthropic.rs`, `ollama.rs` | answers in each API's words |
//! | `answer.rs` | an answer under way |
//! | `totals.rs` | counts, and the log |

mod answer;
mod anthropic;
mod config;
mod endpoint;
mod ollama;
mod openai;
mod plan;
mod prefixes;
mod refusal;
mod request;
mod slots;
mod telling;
#[cfg(test)]
mod tests;
mod token_words;
mod totals;

pub use config::{Answers, Faults, ModelConfig, Quirks, Speed};
pub use totals::Totals;

pub(crate) use answer::{Answer, Ask, Document, MAX_BODY, Model, Reply, Told};
pub(crate) use telling::Events;
