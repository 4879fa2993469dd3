//! The flags of a search for the capacity.
// The docs of fields here are the help that users read: no Markdown.
#![allow(clippy::doc_markdown)]

use std::path::PathBuf;

use brunt_decide::capacity::{LOWEST_RATE, PRECISION};
use brunt_plan::profile::HIGHEST_RATE;
use brunt_plan::units;
use clap::Args;

use super::values;
use super::words::Words;

const EXAMPLES: &str = "\
Example:
  brunt serve http --service-time 2ms --servers 4      (answers 2,000 a second, no more)
  brunt find --threshold 'p99<50ms' --threshold 'error_rate<0.1%' http://127.0.0.1:8080/

Exit status:
  0  the capacity is known
  1  it is not: brunt itself gave out first, no rate was met, or the search was interrupted
  2  the command line or a file was wrong
  3  the target never answered
Ctrl-C ends the search early, with what it found so far; pressed twice, it exits at once with 130";

#[derive(Debug, Args)]
#[command(after_help = "brunt find --help has every flag, examples and exit statuses", after_long_help = EXAMPLES)]
pub struct Find {
    #[command(flatten)]
    pub words: Words,
    /// The first rate tried, in calls a second; from there it doubles, or halves
    #[arg(long, value_name = "R", value_parser = rate, default_value = "100", help_heading = "Search")]
    pub from: f64,
    /// Try no rate above this
    #[arg(long, value_name = "R", value_parser = rate, default_value = "10M", help_heading = "Search")]
    pub highest: f64,
    /// How far apart rates lie at the edge: 2% or 0.02
    #[arg(long, value_name = "SHARE", value_parser = precision, default_value = "2%", help_heading = "Search")]
    pub precision: f64,
    /// How often each end of the answer must be seen the same way
    #[arg(long, value_name = "N", value_parser = values::repeats, default_value = "6", help_heading = "Search")]
    pub repeats: u32,
    /// Write the whole result of each run into this directory, as JSON
    #[arg(long, value_name = "DIR", help_heading = "Results")]
    pub keep: Option<PathBuf>,
}

/// A rate in calls a second.
pub fn rate(text: &str) -> Result<f64, String> {
    let rate = units::parse_number(text).map_err(|e| e.to_string())?;
    if (LOWEST_RATE..=HIGHEST_RATE).contains(&rate) {
        return Ok(rate);
    }
    Err("expected a rate from 1 to 10M calls a second".to_owned())
}

fn precision(text: &str) -> Result<f64, String> {
    let share = values::ratio(text)?;
    if (PRECISION.0..=PRECISION.1).contains(&share) {
        return Ok(share);
    }
    Err(format!("expected a share from {}% to {}%", PRECISION.0 * 100.0, PRECISION.1 * 100.0))
}
