//! What is known of a service, as scenarios of brunt in Lua that is meant to be read: recordings of browsers (HAR), OpenAPI
//! descriptions, Postman collections and curl command lines.
//!
//! ```text
//! har/      archive ─▶ choice ─▶ sources, carried ─▶ written ┐
//! openapi/  document (JSON, YAML) ─▶ samples, security ──────┼─▶ call.rs (a request in Lua) ─▶ script.rs (the file)
//! postman/  collection ─▶ variables, tests ──────────────────┤
//! curl/     shell (words) ─▶ options ─▶ request ─────────────┘
//! ```
//!
//! Bytes in, text out: nothing is read from files and nothing is sent. Whatever the document holds, the text is Lua that parses:
//! `lua.rs` alone writes texts and comments. What is not moved is listed in
//! [`Imported::left`], and never left out in silence. Secrets of the document are not in the Lua: it asks for them by `brunt.env`.
//!
//! ```
//! let imported = brunt_imports::curl("curl -X POST http://127.0.0.1:8080/_/echo -d a=1", "a.sh")?;
//! assert!(imported.lua.contains("http:post(\"/_/echo\", { form = { a = \"1\" }, redirects = false })"), "{}", imported.lua);
//! assert!(imported.left.is_empty(), "{:?}", imported.left);
//! # Ok::<(), brunt_imports::ImportError>(())
//! ```

mod call;
mod curl;
mod encoded;
mod har;
pub mod lua;
mod openapi;
mod postman;
mod script;
mod secret;
mod text;
mod value;

use std::fmt;

pub use curl::command::{Bit, Command, Data, Part, Word};
pub use har::Options as HarOptions;

/// The most bytes of a document.
pub const MOST_BYTES: usize = 256 << 20;

/// Scenarios in Lua, and what of the document is not in them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The scenarios, as a script of brunt.
    pub lua: String,
    /// What was not moved, or means something else here, in the order of the document.
    pub left: Vec<Left>,
    /// Names of the variables that hold the document's secrets, for `--env`.
    pub secrets: Vec<String>,
}

/// Something of a document that was not moved, or that means something else in brunt.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Left {
    /// Where it stands: a line, a request, an operation.
    pub place: String,
    /// What it is, and what to do.
    pub what: String,
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// Why nothing was moved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// The document is longer than [`MOST_BYTES`].
    #[error("it is longer than 256 MiB; cut it")]
    Long,
    /// The document is neither JSON nor YAML.
    #[error("line {line}, column {column}: {problem}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What is wrong there.
        problem: String,
    },
    /// The document can be read, and is not what was asked for.
    #[error("{0}")]
    Other(String),
    /// Nothing in it can be moved.
    #[error("{0}")]
    Nothing(String),
}

/// The scenario that a recording of a browser (HAR 1.2) describes. `name` is that of its file, for the first line.
///
/// # Errors
/// When it is no HAR, or no request in it can be made.
pub fn har(archive: &[u8], name: &str, options: &HarOptions) -> Result<Imported, ImportError> {
    har::import(bounded(archive)?, name, options)
}

/// A scenario for each operation of an OpenAPI description, 3.0 or 3.1, in JSON or YAML.
///
/// # Errors
/// When it is no such description, or has no operation.
pub fn openapi(document: &[u8], name: &str) -> Result<Imported, ImportError> {
    openapi::import(bounded(document)?, name)
}

/// The scenario that a Postman collection (2.1, 2.0) describes.
///
/// # Errors
/// When it is no collection, or has no request.
pub fn postman(collection: &[u8], name: &str) -> Result<Imported, ImportError> {
    postman::import(bounded(collection)?, name)
}

/// The scenario that command lines of curl describe, as a shell reads them.
///
/// # Errors
/// When there is no command line of curl, one cannot be read, or has a flag that is not known.
pub fn curl(text: &str, name: &str) -> Result<Imported, ImportError> {
    bounded(text.as_bytes())?;
    curl::import(text, name)
}

/// The one command line of curl in a text, as a shell reads it.
///
/// # Errors
/// As [`curl`], and when there are several.
pub fn curl_command(text: &str) -> Result<Command, ImportError> {
    bounded(text.as_bytes())?;
    curl::single(text)
}

/// The command line of curl in these words, which a shell has read.
///
/// # Errors
/// When it cannot be read, or has a flag that is not known.
pub fn curl_words(words: &[String]) -> Result<Command, ImportError> {
    curl::of_words(words)
}

fn bounded(bytes: &[u8]) -> Result<&[u8], ImportError> {
    if bytes.len() > MOST_BYTES { Err(ImportError::Long) } else { Ok(bytes) }
}
