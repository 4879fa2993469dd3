//! Imports descriptions of services as scenarios of brunt, in Lua that is meant to be read: recordings of browsers
//! (HAR), OpenAPI descriptions, Postman collections and curl command lines.
//!
//! ```text
//! har/      archive ─▶ choice ─▶ sources, carried ─▶ written ┐
//! openapi/  document (JSON, YAML) ─▶ samples, security ──────┼─▶ call.rs (a request in Lua) ─▶ script.rs (the file)
//! postman/  collection ─▶ variables, tests ──────────────────┤
//! curl/     shell (words) ─▶ options ─▶ request ─────────────┘
//! ```
//!
//! Bytes in, text out: nothing is sent, and no file is read but those of options that a command of curl names, which [`Files`] reads. Whatever the document holds, the text is Lua
//! that parses: `lua.rs` alone writes texts and comments. Parts of the document that are not moved are listed in
//! [`Imported::left`], and never left out silently. Secrets of the document are not in the Lua, which reads them by
//! `brunt.env`.
//!
//! ```
//! let imported = brunt_imports::curl("curl -X POST http://127.0.0.1:8080/_/echo -d a=1", "a.sh", &|_| Err(std::io::ErrorKind::NotFound.into()))?;
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

use std::{fmt, io};

pub use curl::command::{Bit, Command, Data, FormPart, Word};
pub use har::Options as HarOptions;

/// The most bytes of a document.
pub const MOST_BYTES: usize = 256 << 20;

/// Reads a file that a command of curl names (`-K`, `-H @FILE`), by its name as written.
pub type Files<'f> = &'f dyn Fn(&str) -> io::Result<Vec<u8>>;

/// Scenarios in Lua, and the parts of the document that are not in them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The scenarios, as a script of brunt.
    pub lua: String,
    /// Parts that were not moved, or that mean something else here, in the order of the document.
    pub left: Vec<Left>,
    /// What is left out on purpose, and how it can be had.
    pub aside: Option<String>,
    /// The names of the variables that hold the document's secrets, for `--env`.
    pub secrets: Vec<String>,
}

/// A part of a document that was not moved, or that means something else in brunt.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Left {
    /// Its place: a line, a request, an operation.
    pub place: String,
    /// Its description, and what to do about it.
    pub what: String,
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// Why a document was not imported.
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
        /// The problem there.
        problem: String,
    },
    /// The document can be read, but is not of the requested kind.
    #[error("{0}")]
    Other(String),
    /// The document has nothing that can be moved.
    #[error("{0}")]
    Nothing(String),
}

/// The scenario for a recording of a browser (HAR 1.2). `name` is its file's name, for the first line.
///
/// # Errors
/// When it is not a HAR file, or has no request that can be made.
pub fn har(archive: &[u8], name: &str, options: &HarOptions) -> Result<Imported, ImportError> {
    har::import(bounded(archive)?, name, options)
}

/// A scenario for each operation of an OpenAPI description, 3.0 or 3.1, in JSON or YAML.
///
/// # Errors
/// When it is not such a description, or has no operation.
pub fn openapi(document: &[u8], name: &str) -> Result<Imported, ImportError> {
    openapi::import(bounded(document)?, name)
}

/// The scenario for a Postman collection (2.1, 2.0).
///
/// # Errors
/// When it is not a collection, or has no request.
pub fn postman(collection: &[u8], name: &str) -> Result<Imported, ImportError> {
    postman::import(bounded(collection)?, name)
}

/// The scenario for command lines of curl, as a shell reads them, with the files of options that they name.
///
/// # Errors
/// When there is no command line of curl, or one of them cannot be read or has an unknown flag.
pub fn curl(text: &str, name: &str, files: Files) -> Result<Imported, ImportError> {
    bounded(text.as_bytes())?;
    curl::import(text, name, files)
}

/// The one command line of curl in a text, as a shell reads it.
///
/// # Errors
/// As [`curl`], and when there are several.
pub fn curl_command(text: &str, files: Files) -> Result<Command, ImportError> {
    bounded(text.as_bytes())?;
    curl::single(text, files)
}

/// The command line of curl in these words, from a shell's arguments.
///
/// # Errors
/// When it cannot be read, or has an unknown flag.
pub fn curl_words(words: &[String], files: Files) -> Result<Command, ImportError> {
    curl::of_words(words, files)
}

fn bounded(bytes: &[u8]) -> Result<&[u8], ImportError> {
    if bytes.len() > MOST_BYTES { Err(ImportError::Long) } else { Ok(bytes) }
}
