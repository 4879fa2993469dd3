//! The flags of a sweep.
// The docs of fields here are the help that users read: no Markdown.
#![allow(clippy::doc_markdown)]

use std::path::PathBuf;

use brunt_model::sweep::{Axis, Steps};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

use super::words::Words;

const EXAMPLES: &str = "\
Values are 1..4096 (doubling; the last is always among them), 100..1000+100, 1,8,64, or,
for connections, 100..max: as many as the limit on file descriptors allows.

Examples:
  brunt sweep -c 1..4096 http://localhost:8080/
  brunt sweep -c 100..max ws://localhost:8081/
  brunt sweep -r 1k..64k --threshold 'p99<50ms' --stop-at-failure URL
  brunt sweep --vary message=16..65536 ws://localhost:8081/

Exit status:
  0  done, and every threshold held at every value
  1  one did not, or a value had no answer
  2  the command line or a file was wrong
  3  the target never answered
Ctrl-C ends the sweep early, with the values so far; pressed twice, it exits at once.";

/// The flags that can have several values: how they are called in their definitions, and whether they say how many
/// calls can be in flight.
const AXES: [(&str, bool); 4] = [("connections", true), ("rate", false), ("threads", false), ("pipeline", false)];

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Sweep {
    #[command(flatten)]
    pub words: Swept,
    /// Vary another flag that takes a number, without its dashes: message=16..65536
    #[arg(long, value_name = "FLAG=VALUES", value_parser = vary, help_heading = "Sweep")]
    pub vary: Option<(String, Steps)>,
    /// Stop at the first value that has no answer or misses a threshold
    #[arg(long, help_heading = "Sweep")]
    pub stop_at_failure: bool,
    /// Write the whole result of each run into this directory, as JSON
    #[arg(long, value_name = "DIR", help_heading = "Results")]
    pub keep: Option<PathBuf>,
}

fn vary(text: &str) -> Result<(String, Steps), String> {
    let (flag, values) = text.split_once('=').ok_or("expected a flag and its values, such as message=16..65536")?;
    let flag = flag.trim_start_matches('-');
    if flag.is_empty() {
        return Err("expected the name of a flag before the =".to_owned());
    }
    Ok((flag.to_owned(), values.parse().map_err(|e: brunt_model::sweep::StepsError| e.to_string())?))
}

/// A run's flags, of which some may have several values.
#[derive(Debug, Clone, Default)]
pub struct Swept(pub Words);

impl Swept {
    /// Takes the flag out that has several values; with it how it is written, and its values.
    ///
    /// # Errors
    /// When no flag has, or several do.
    pub fn take_axis(&mut self, vary: Option<&(String, Steps)>) -> Result<(Axis, Steps), String> {
        let mut found = Vec::new();
        for (id, is_concurrency) in AXES {
            let meant = self.0.texts(id).iter().any(|text| Steps::is_meant_by(text));
            if !meant {
                continue;
            }
            let text = self.0.take(id).join(",");
            let steps = text.parse::<Steps>().map_err(|e| format!("--{id}: {e}"))?;
            found.push((Axis { name: id.to_owned(), is_concurrency }, steps));
        }
        found.extend(vary.map(|(flag, steps)| (Axis { name: flag.clone(), is_concurrency: false }, steps.clone())));
        match found.len() {
            1 => found.pop().ok_or_else(String::new),
            0 => Err("brunt sweep needs several values of one flag: -c 1..4096, say, or -r, -t, --pipeline, --vary"
                .to_owned()),
            _ => {
                let names: Vec<_> = found.iter().map(|(axis, _)| axis.name.as_str()).collect();
                Err(format!("one flag is varied at a time, and these have several values: {}", names.join(", ")))
            }
        }
    }
}

impl FromArgMatches for Swept {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Words::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl Args for Swept {
    fn augment_args(command: Command) -> Command {
        // What has one value is read by its own definition later.
        let several = |arg: Arg| arg.value_parser(clap::value_parser!(String)).value_name("VALUES");
        AXES.into_iter().fold(Words::augment_args(command), |command, (id, _)| command.mut_arg(id, several))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}
