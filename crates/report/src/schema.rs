//! JSON Schemas (draft 2020-12) of what brunt writes as JSON.
//!
//! The files are made from the types that documents are written from: their names, their doc comments, their ranges. The
//! derives cost compile time in every build, so only tests with the feature `schema` have them:
//! `UPDATE_GOLDEN=1 cargo test -p brunt-report --features schema --test schemas` writes the files anew.
//!
//! The schemas are strict: they allow no key that they do not name. Whoever validates results of a later brunt drops
//! `additionalProperties`, as within a version keys are only ever added.

#[cfg(feature = "schema")]
mod derived;

#[cfg(feature = "schema")]
pub use derived::{decision, result, root_schema};

/// The schema of a run's result, [`crate::json::Document`].
pub const RESULT: &str = include_str!("schema/result.json");

/// The schema of a decision: what `brunt sweep`, `find` and `compare` write.
pub const DECISION: &str = include_str!("schema/decision.json");
