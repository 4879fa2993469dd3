//! Flags of scripts, for one run of a script or for many.
// The docs of fields here are the help that users read: no Markdown.
#![allow(clippy::doc_markdown)]

use clap::Args;

use super::values;

/// What a script is given, and which of its scenarios run.
#[derive(Debug, Default, Clone, Args)]
#[command(next_help_heading = "Script")]
pub struct Scripted {
    /// The script's __ENV.K or brunt.env(K), repeatable; @NAME takes V from the environment
    #[arg(long, short_alias = 'e', value_name = "K=V", value_parser = values::variable)]
    pub env: Vec<(String, String)>,
    /// The base URL of the script's first client
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,
    /// Run only the users of this scenario of the script, repeatable
    #[arg(long, value_name = "NAME")]
    pub only: Vec<String>,
    /// This many users in place of the script's own, for the duration; with -r, the most users at a time
    /// [default with -r: 5,000 of k6, the script's limit in Lua]
    #[arg(long, value_name = "N", value_parser = values::users)]
    pub users: Option<u32>,
}
