//! The flags of a comparison.
// The docs of fields here are the help that users read: no Markdown.
#![allow(clippy::doc_markdown)]

use std::path::PathBuf;

use brunt_decide::compare::FailIf;
use clap::Args;

use super::values;
use super::words::Words;

const EXAMPLES: &str = "\
Examples:
  brunt compare http://old:8080/ http://new:8080/
  brunt compare URL --a '-t 1' --b '-t 2'         one target, two sets of flags
  brunt compare OLD.json NEW.json                 two results, of 30 s or more
  brunt compare old/ new/                         directories of results, three or more
  brunt compare URL_A URL_B --fail-if 'p99 > 1.05x' -o comparison.md

Exit status:
  0  compared, and no --fail-if condition is met
  1  one is met, or there was too little to compare
  2  the command line or a file was wrong
  3  a target never answered
  130  Ctrl-C ended it early, with the rounds so far; pressed twice, at once (143: SIGTERM)";

#[derive(Debug, Args)]
#[command(after_help = "brunt compare --help has every flag, examples and exit statuses", after_long_help = EXAMPLES)]
pub struct Compare {
    #[command(flatten)]
    pub words: Words,
    /// Flags of A's runs alone, in quotes: '-t 1'
    #[arg(long, value_name = "FLAGS", allow_hyphen_values = true, help_heading = "Comparison")]
    pub a: Option<String>,
    /// Flags of B's runs alone
    #[arg(long, value_name = "FLAGS", allow_hyphen_values = true, help_heading = "Comparison")]
    pub b: Option<String>,
    /// How often both run, in turn
    #[arg(long, value_name = "N", value_parser = values::rounds, default_value = "10", help_heading = "Comparison")]
    pub rounds: u32,
    /// Fail condition, repeatable: 'p99 > 1.05x', 'rate < 0.95x', 'error_rate > +0.5%', 'first_message.p99 > 1.05x'. Exit
    /// status 1 where the whole 95 % interval meets it
    #[arg(long, value_name = "FIGURE OP FACTOR", help_heading = "Comparison")]
    pub fail_if: Vec<FailIf>,
    /// Write the whole result of each run into this directory, as JSON
    #[arg(long, value_name = "DIR", help_heading = "Results")]
    pub keep: Option<PathBuf>,
}
