//! `brunt ctl`: changes a run while it goes on.
// The docs of fields here are the help that users read: no Markdown.
#![allow(clippy::doc_markdown)]

use anyhow::{Result, bail};
use brunt_engine::ControlError;
use brunt_plan::units;
use brunt_record::change::{Action, LONGEST_MARK};
use clap::Args;
use serde_json::json;

use crate::console;
use crate::ctl::{Answer, Place, Question, ask, reachable, sentence};
use crate::exit::Exit;

const EXAMPLES: &str = "\
Examples:
  brunt ctl                       the runs of this user that can be changed
  brunt ctl rate 5k               5,000 calls a second are due from now on
  brunt ctl users 50              50 virtual users are there from now on
  brunt ctl pause                 nothing is due until brunt ctl resume
  brunt ctl mark 'deployed v2'    a line on every chart
  brunt ctl 4711 rate 5k          the same of one of several runs, by its process";

/// Change the rate or the users of a run in progress, pause and resume it, or mark a moment
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[command(override_usage = "brunt ctl [RUN] rate N|users N|pause|resume|mark TEXT\n       brunt ctl")]
pub struct Ctl {
    /// Which run, where there are several: its process, the beginning of its id, or its --name. Then what to do: rate N, users N,
    /// pause, resume, mark TEXT. Nothing: list the runs
    #[arg(value_name = "[RUN] ACTION")]
    pub words: Vec<String>,
    /// Print the run's answer as JSON
    #[arg(long)]
    pub json: bool,
}

/// The actions, for errors.
const ACTIONS: &str = "rate N, users N, pause, resume or mark TEXT";
/// Where nobody listens.
const NONE: &str = "no run of this user goes on that could be changed; with -v a run says why it could not be";

pub fn run(args: &Ctl) -> Result<Exit> {
    let words: Vec<&str> = args.words.iter().map(String::as_str).collect();
    let Some((run, action)) = read(&words)? else { return list(args.json) };
    let place = pick(reachable(), run)?;
    let change = match ask(&place.path, &Question::Change(action))? {
        Answer::Changed(change) => change,
        Answer::Refused(why) => bail!("{why}"),
        Answer::Run(_) => bail!("the run answers something else: is it of another brunt?"),
    };
    if args.json {
        let mut text = serde_json::to_string_pretty(&change)?;
        text.push('\n');
        console::print(text.as_bytes())?;
    } else {
        console::print(format!("{}\n", sentence(&change)).as_bytes())?;
    }
    Ok(Exit::Done)
}

/// The run and the action; `None` without words.
fn read<'a>(words: &[&'a str]) -> Result<Option<(Option<&'a str>, Action)>> {
    if words.is_empty() {
        return Ok(None);
    }
    match action(words)? {
        Some(action) => return Ok(Some((None, action))),
        None if words.len() == 1 => bail!("what is run {} to do? {ACTIONS}", words.join(" ")),
        None => {}
    }
    let (run, rest) = words.split_first().map_or(("", words), |(run, rest)| (*run, rest));
    match action(rest)? {
        Some(action) => Ok(Some((Some(run), action))),
        None => bail!("expected {ACTIONS}, got '{}'", rest.join(" ")),
    }
}

/// The action in these words; `None` if they do not begin with one.
fn action(words: &[&str]) -> Result<Option<Action>> {
    Ok(Some(match words {
        ["rate", rate] => {
            Action::Rate(units::parse_number(rate).map_err(|problem| anyhow::anyhow!("rate: {problem}"))?)
        }
        ["pause"] => Action::Pause,
        ["resume"] => Action::Resume,
        ["users", users] => Action::Users(users.parse().map_err(|_| {
            anyhow::anyhow!("users: expected a whole number of virtual users, as in 'users 50', got '{users}'")
        })?),
        // The run says the same of one that fits into a question.
        ["mark", text] if text.chars().count() > LONGEST_MARK => bail!("{}", ControlError::Mark),
        ["mark", text] => Action::Mark((*text).to_owned()),
        ["users", ..] => bail!("{} takes one number, as in 'users 50'", words.join(" ")),
        ["rate", ..] => bail!("{} takes one number, as in 'rate 5k'", words.join(" ")),
        ["mark", ..] => bail!("mark takes one text: put it in quotes, as in mark 'deployed v2'"),
        ["pause" | "resume", ..] => bail!("pause and resume stand alone"),
        _ => return Ok(None),
    }))
}

/// The run that is meant.
fn pick(places: Vec<Place>, run: Option<&str>) -> Result<Place> {
    let known = places.iter().map(|place| format!("{} ({})", place.about.pid, place.about.target)).collect::<Vec<_>>();
    let Some(run) = run else {
        let mut places = places;
        return match (places.pop(), places.is_empty()) {
            (Some(place), true) => Ok(place),
            (None, _) => bail!("{NONE}"),
            (Some(_), false) => bail!("which run? There are {}: brunt ctl PID …", known.join(", ")),
        };
    };
    let is_it = |place: &Place| {
        let about = &place.about;
        about.pid.to_string() == run
            || about.name.as_deref() == Some(run)
            || run.len() >= 4 && about.id.starts_with(run)
    };
    let mut fitting: Vec<_> = places.into_iter().filter(is_it).collect();
    match (fitting.pop(), fitting.is_empty()) {
        (Some(place), true) => Ok(place),
        (Some(_), false) => {
            bail!("several runs are called '{run}': name one by its process; there are {}", known.join(", "))
        }
        (None, _) if known.is_empty() => bail!("{NONE}"),
        (None, _) => bail!("no run '{run}' goes on; there are {}", known.join(", ")),
    }
}

fn list(as_json: bool) -> Result<Exit> {
    let places = reachable();
    if as_json {
        let runs: Vec<_> = places.iter().map(|place| json!(place.about)).collect();
        let mut text = serde_json::to_string_pretty(&runs)?;
        text.push('\n');
        console::print(text.as_bytes())?;
        return Ok(Exit::Done);
    }
    if places.is_empty() {
        console::note(NONE);
    }
    for Place { about, .. } in &places {
        let name = about.name.as_ref().map_or(String::new(), |name| format!("  {name}"));
        console::print(format!("{}  {}  {}{name}\n", about.pid, about.id, about.target).as_bytes())?;
    }
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_name_a_run_or_none() {
        let read = |words: &[&'static str]| read(words).map_err(|error| error.to_string());
        assert_eq!(read(&[]), Ok(None));
        assert_eq!(read(&["rate", "5k"]), Ok(Some((None, Action::Rate(5000.0)))));
        assert_eq!(read(&["buy", "users", "50"]), Ok(Some((Some("buy"), Action::Users(50)))));
        for wrong in [&["users", "5.5"][..], &["users", "-1"], &["users", "many"], &["users"]] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
        assert_eq!(read(&["4711", "pause"]), Ok(Some((Some("4711"), Action::Pause))));
        assert_eq!(
            read(&["rate", "pause"]).unwrap_err(),
            "rate: expected a number such as 200, 1.5k or 2M, got 'pause'"
        );
        assert_eq!(
            read(&["mark", "deployed", "v2"]).unwrap_err(),
            "mark takes one text: put it in quotes, as in mark 'deployed v2'"
        );
        let long: &'static str = "x".repeat(100_000).leak();
        assert!(read(&["mark", long]).unwrap_err().starts_with("a mark has a text of 1 to 200 characters"));
        assert_eq!(read(&["4711"]).unwrap_err(), format!("what is run 4711 to do? {ACTIONS}"));
        assert_eq!(read(&["4711", "faster"]).unwrap_err(), format!("expected {ACTIONS}, got 'faster'"));
    }
}
