//! The flags of commands about runs that were kept.
// The docs of fields here are the help that users read: no Markdown.
#![allow(clippy::doc_markdown)]

use std::net::SocketAddr;
use std::path::PathBuf;

use brunt_store::Which;
use clap::{Args, Subcommand, ValueEnum};

use super::values;

/// Where runs are kept.
#[derive(Debug, Default, Args)]
pub struct From {
    /// Look in this file [default: brunt/runs.db in $XDG_STATE_HOME or ~/.local/state]
    #[arg(long, value_name = "FILE", global = true)]
    pub store: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Runs {
    #[command(subcommand)]
    pub command: Option<RunsCommand>,
    #[command(flatten)]
    pub from: From,
    /// List only runs with this tag, repeatable
    #[arg(long = "tag", value_name = "K=V", value_parser = values::tag)]
    pub tags: Vec<(String, String)>,
    /// List so many at most, the newest [default: 20; with --format json, all]
    #[arg(short = 'n', long, value_name = "N")]
    pub last: Option<usize>,
    /// List also the single runs that sweeps, comparisons and searches rest on
    #[arg(long)]
    pub all: bool,
    /// How they are listed: for people, or all that is known of each
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "text")]
    pub format: ListFormat,
    /// No colours
    #[arg(long)]
    pub no_color: bool,
}

/// How runs are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ListFormat {
    /// A table
    Text,
    /// A list of objects, the newest first
    Json,
}

#[derive(Debug, Subcommand)]
pub enum RunsCommand {
    /// Forget runs
    Rm {
        /// Their numbers or names, or last
        #[arg(required = true, value_name = "RUN")]
        runs: Vec<Which>,
    },
    /// Forget all runs but the newest
    Prune {
        /// How many stay
        #[arg(long, value_name = "N")]
        keep: u64,
    },
}

#[derive(Debug, Args)]
pub struct Show {
    /// Its number or name, last, or a result that was written with -o result.json, also one of
    /// sweep, find and compare; FILE:NUMBER is one of several runs in a file
    #[arg(value_name = "RUN", default_value = "last")]
    pub run: String,
    #[command(flatten)]
    pub from: From,
    /// How it is printed: as formats of brunt bench, or of what was decided over several runs [default: text]
    #[arg(long, value_name = "FORMAT", value_parser = ["text", "wrk", "json", "csv", "junit", "html", "markdown"])]
    pub format: Option<String>,
    /// Leave this agent out of the figures, of a run that agents carried out; repeatable
    #[arg(long, value_name = "AGENT")]
    pub without: Vec<String>,
    /// Print every figure
    #[arg(short, long)]
    pub verbose: bool,
    /// Write it into this file as well, repeatable: .txt, .json, .csv, .xml (JUnit), .md or .html
    #[arg(short, long = "output", value_name = "FILE")]
    pub outputs: Vec<PathBuf>,
    /// Write JSON without histograms: small, but brunt show, report and compare cannot read it
    #[arg(long)]
    pub no_histograms: bool,
    /// No colours
    #[arg(long)]
    pub no_color: bool,
}

#[derive(Debug, Args)]
pub struct Report {
    /// A number or name of a run that was kept, last, or a result that was written with -o result.json, also one of
    /// sweep, find and compare; FILE:NUMBER is one of several runs in a file
    #[arg(value_name = "RUN", default_value = "last")]
    pub run: String,
    #[command(flatten)]
    pub from: From,
    /// Write the page into this file [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Ui {
    /// Where to serve the pages: ADDRESS:PORT, or PORT on 127.0.0.1 [default: a free one]. The URL that is printed has a
    /// token, without which nothing is shown
    #[arg(long, value_name = "ADDR", default_value = "0", hide_default_value = true, value_parser = values::listen)]
    pub listen: SocketAddr,
    #[command(flatten)]
    pub from: From,
}
