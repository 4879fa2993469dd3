//! `brunt help [TOPIC]`: the guide offline, and what commands do.

use std::fmt::Write as _;

use anyhow::{Result, bail};
use brunt_protocol::Registry;
use clap::Command;

use crate::args::{self, Help};
use crate::console;
use crate::exit::Exit;
use crate::guide::{self, TOPICS};

/// How wide pages are at most, in columns: lines that are read with ease.
const WIDEST: usize = 100;

pub fn run(asked: &Help, registry: &Registry) -> Result<Exit> {
    let mut command = args::command(registry)?;
    command.build();
    let text = match asked.words.as_slice() {
        [] => contents(&command),
        [name] if guide::topic(name).is_some() => page(name),
        words => of_command(&mut command, words)?,
    };
    console::print(text.as_bytes())?;
    Ok(Exit::Done)
}

fn page(name: &str) -> String {
    let width = console::stdout_width().min(WIDEST);
    guide::topic(name).map_or_else(String::new, |topic| topic.for_terminal(width, console::stdout_colour(false)))
}

/// What can be asked for.
fn contents(command: &Command) -> String {
    let mut text = String::from("Topics: brunt help TOPIC\n");
    for topic in TOPICS {
        let _ = writeln!(text, "  {:<17}{}", topic.name, topic.about);
    }
    text.push_str("\nCommands: brunt help COMMAND\n");
    let mut subs: Vec<_> = command.get_subcommands().filter(|sub| !sub.is_hide_set()).collect();
    subs.sort_by_key(|sub| sub.get_display_order());
    for sub in subs {
        let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
        let about = about.split(['(', ',', ':']).next().unwrap_or_default().trim_end();
        let _ = writeln!(text, "  {:<17}{about}", sub.get_name());
    }
    text
}

/// The whole help of a command, or of one below it.
fn of_command(command: &mut Command, words: &[String]) -> Result<String> {
    let mut found = command;
    for word in words {
        match found.find_subcommand_mut(word) {
            Some(sub) => found = sub,
            None => bail!("{}", unknown(word)),
        }
    }
    Ok(found.render_long_help().to_string())
}

fn unknown(word: &str) -> String {
    let topics = TOPICS.iter().map(|topic| topic.name);
    let meant = args::nearest(word, topics).map(str::to_owned).or_else(|| args::mistyped(word));
    let meant = meant.map_or(String::new(), |meant| format!("; did you mean brunt help {meant}?"));
    format!("there is no topic or command '{word}'{meant} (brunt help lists them)")
}
