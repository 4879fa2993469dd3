//! Scripts of k6, in JavaScript, as scenarios of brunt, in Lua that is meant to be read.
//!
//! ```text
//! text ──tree-sitter──▶ syntax.rs ─▶ script.rs (what the file declares) ─▶ options.rs, thresholds.rs  (who comes when, what must hold)
//!                                                    └─▶ statements.rs ─▶ expressions.rs ─▶ operators.rs, calls.rs, requests.rs, methods.rs
//! ```
//!
//! The plain part of k6 is moved: `k6/http`, checks, groups, pauses, own metrics, options, thresholds, data, the environment. Nothing is left out
//! in silence: what was not moved is marked at its place, raises an error where a user comes to it, and is listed with its line in
//! [`Imported::left`].
//!
//! ```
//! let script = r#"
//! import http from "k6/http";
//! export const options = { vus: 5, duration: "10s" };
//! export default function () { http.get("http://127.0.0.1:8080/shop/"); }
//! "#;
//! let imported = brunt_k6::import(script, "visit.js")?;
//! assert!(imported.lua.contains("http:get(\"/shop/\")"), "{}", imported.lua);
//! assert!(imported.lua.contains("brunt.users(5, \"10s\")"), "{}", imported.lua);
//! assert!(imported.left.is_empty(), "{:?}", imported.left);
//! # Ok::<(), brunt_k6::ImportError>(())
//! ```

mod calls;
mod constant;
mod expressions;
mod functions;
mod helpers;
mod import;
mod methods;
mod names;
mod operators;
mod options;
mod own;
mod requests;
mod script;
mod statements;
mod syntax;
mod text;
mod thresholds;

use std::fmt;

/// A script in Lua, and the parts of the JavaScript that it lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The scenarios, as a script of brunt.
    pub lua: String,
    /// The parts that were not moved, or that mean something else here, in the order of their lines.
    pub left: Vec<Left>,
}

/// A part of a k6 script that was not moved, or that means something else in brunt.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Left {
    /// The line in the script, from 1.
    pub line: usize,
    /// The part, and what to write in its place.
    pub what: String,
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

/// Why a script was not moved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// The text is not JavaScript.
    #[error("line {line} is not JavaScript: {text}{}", if *typed { "; take the types out of TypeScript first, as by esbuild" } else { "" })]
    Syntax {
        /// The first unreadable line, from 1.
        line: usize,
        /// The text of that line.
        text: String,
        /// Whether the script looks like TypeScript.
        typed: bool,
    },
    /// The script's nesting is too deep.
    #[error("line {line} has more than 500 expressions in each other")]
    Deep {
        /// The line, from 1.
        line: usize,
    },
    /// The script has no function for users.
    #[error("no function is exported, as by `export default function () {{ … }}`: nothing says what users do")]
    NoFunction,
}

/// The scenarios of a k6 script. `name` is that of its file, for the first line.
///
/// # Errors
/// When the text is not JavaScript, or has no function for users.
pub fn import(text: &str, name: &str) -> Result<Imported, ImportError> {
    import::import(text, name)
}
