//! The flags of a sweep.
// The docs of fields here are the help that users read: no Markdown.
#![allow(clippy::doc_markdown)]

use std::path::PathBuf;

use brunt_decide::sweep::{Axis, Steps};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

use super::words::Words;

const EXAMPLES: &str = "\
Values are 1..4096 (doubling; the last is always among them), 100..1000+100, 1,8,64, or,
for connections, 100..max: as many as the limit on file descriptors allows.

Examples:
  brunt sweep -c 1..4096 http://localhost:8080/
  brunt sweep -c 100..max ws://localhost:8081/
  brunt sweep -r 1k..64k --threshold 'p99<50ms' --stop-at-failure URL
  brunt sweep --vary message=16..65536B ws://localhost:8081/     any other flag, with its unit

Exit status:
  0  done, and every threshold held at every value
  1  one did not, or a value had no answer
  2  the command line or a file was wrong
  3  the target never answered
  130  Ctrl-C ended the sweep early, with the values so far; pressed twice, at once (143: SIGTERM)";

/// The flags that can have several values: how they are called in their definitions, and whether they say how many
/// calls can be in flight.
const AXES: [(&str, bool); 5] =
    [("connections", true), ("rate", false), ("threads", false), ("pipeline", false), ("streams", false)];

#[derive(Debug, Args)]
#[command(after_help = "brunt sweep --help has every flag, examples and exit statuses", after_long_help = EXAMPLES)]
pub struct Sweep {
    #[command(flatten)]
    pub words: Swept,
    /// Vary another flag that takes a number, without its dashes, with the unit of all values at the end:
    /// message=16..65536B, timeout=1..8s
    #[arg(long, value_name = "FLAG=VALUES", value_parser = vary, help_heading = "Sweep")]
    pub vary: Option<Vary>,
    /// Stop at the first value that has no answer or misses a threshold
    #[arg(long, help_heading = "Sweep")]
    pub stop_at_failure: bool,
    /// Write the whole result of each run into this directory, as JSON
    #[arg(long, value_name = "DIR", help_heading = "Results")]
    pub keep: Option<PathBuf>,
}

/// The units of values, the longer ones first. `k` and `M` are parts of numbers.
const UNITS: [&str; 7] = ["KB", "MB", "us", "ms", "B", "s", "%"];

/// A flag that a sweep gives one value after the other.
#[derive(Debug, Clone)]
pub struct Vary {
    /// Its name, without dashes.
    pub flag: String,
    pub values: Steps,
    /// What stands behind each value: `B`, `ms`.
    pub unit: String,
}

fn vary(text: &str) -> Result<Vary, String> {
    let (flag, values) = text.split_once('=').ok_or("expected a flag and its values, such as message=16..65536B")?;
    let flag = flag.trim_start_matches('-');
    if flag.is_empty() {
        return Err("expected the name of a flag before the =".to_owned());
    }
    let unit = UNITS.into_iter().find(|unit| values.ends_with(unit)).unwrap_or_default();
    let numbers = values.strip_suffix(unit).unwrap_or(values);
    let steps = numbers.parse().map_err(|e: brunt_decide::sweep::StepsError| e.to_string())?;
    Ok(Vary { flag: flag.to_owned(), values: steps, unit: unit.to_owned() })
}

/// A run's flags; some may have several values.
#[derive(Debug, Clone, Default)]
pub struct Swept(pub Words);

impl Swept {
    /// Takes the flag out that has several values; with it how it is written, and its values.
    ///
    /// # Errors
    /// When no flag has, or several do.
    pub fn take_axis(&mut self, vary: Option<&Vary>) -> Result<(Axis, Steps), String> {
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
        found.extend(vary.map(|vary| (Axis { name: vary.flag.clone(), is_concurrency: false }, vary.values.clone())));
        match found.len() {
            1 => found.pop().ok_or_else(String::new),
            0 => Err("brunt sweep needs several values of one flag: -c 1..4096, say, or -r, -t, --pipeline, --streams, --vary"
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
