//! The flag of commands about runs that were kept.
// The docs of fields here are the help that users read: no Markdown.
#![allow(clippy::doc_markdown)]

use std::path::PathBuf;

use clap::Args;

/// Where runs are kept.
#[derive(Debug, Default, Args)]
pub struct From {
    /// The file of kept runs [default: brunt/runs.db in $XDG_STATE_HOME or ~/.local/state]
    #[arg(long, value_name = "FILE", global = true)]
    pub store: Option<PathBuf>,
}
