//! `brunt help [TOPIC]`: the guide offline, and the help of commands.
// The docs of fields here are the help that users read: no Markdown.
#![allow(clippy::doc_markdown)]

use std::fmt::Write as _;

use anyhow::{Result, bail};
use clap::{Args, Command};

use crate::args::Program;
use crate::args::program::nearest;
use crate::console;
use crate::exit::Exit;
use crate::guide::{self, GROUPS};

/// Print a topic of the guide, or what a command does
#[derive(Debug, Args)]
pub struct Help {
    /// A topic, a command with the command below it, or 'commands'; without one, the list of topics
    #[arg(value_name = "TOPIC")]
    pub words: Vec<String>,
}

/// The widest pages, in columns, for easy reading.
const WIDEST: usize = 100;

pub fn run(args: &Help, program: &Program) -> Result<Exit> {
    let mut command = program.definitions.clone();
    command.build();
    let text = match args.words.as_slice() {
        [] => contents(),
        [name] if name == "commands" => commands(&command),
        [name] if guide::topic(name).is_some() => page(name),
        words => of_command(&mut command, words, program)?,
    };
    console::print(text.as_bytes())?;
    Ok(Exit::Done)
}

fn page(name: &str) -> String {
    let width = console::stdout_width().min(WIDEST);
    guide::topic(name).map_or_else(String::new, |topic| topic.for_terminal(width, console::stdout_colour(false)))
}

/// The topics by their groups: a screen.
fn contents() -> String {
    let mut text = String::from("brunt help TOPIC prints a page; brunt help commands lists the commands.\n");
    for (group, topics) in GROUPS {
        for (nth, topic) in topics.iter().enumerate() {
            let group = if nth == 0 { group } else { "" };
            let _ = writeln!(text, "{group:<10} {:<16} {}", topic.name, topic.about);
        }
    }
    text
}

/// The commands, each with its line.
fn commands(command: &Command) -> String {
    let mut text = String::from(
        "brunt COMMAND --help prints the help of a command, brunt help COMMAND all of it, or the page of that name.\n",
    );
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
fn of_command(command: &mut Command, words: &[String], program: &Program) -> Result<String> {
    let mut found = command;
    for word in words {
        match found.find_subcommand_mut(word) {
            Some(sub) => found = sub,
            None => bail!("{}", unknown(word, program)),
        }
    }
    Ok(found.render_long_help().to_string())
}

fn unknown(word: &str, program: &Program) -> String {
    let topics = guide::topics().map(|topic| topic.name).chain(guide::ALIASES.iter().map(|(alias, _)| *alias));
    let meant = nearest(word, topics).or_else(|| program.mistyped(word));
    let meant = meant.map_or(String::new(), |meant| format!("; did you mean brunt help {meant}?"));
    format!("there is no topic or command '{word}'{meant} (brunt help lists topics, brunt help commands the commands)")
}
