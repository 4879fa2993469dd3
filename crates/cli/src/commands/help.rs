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
use crate::guide::{self, TOPICS};

/// Print a topic of the guide, or what a command does
#[derive(Debug, Args)]
pub struct Help {
    /// A topic or a command, with the command below it; without one, the list of them
    #[arg(value_name = "TOPIC")]
    pub words: Vec<String>,
}

/// The widest pages, in columns, for easy reading.
const WIDEST: usize = 100;

pub fn run(args: &Help, program: &Program) -> Result<Exit> {
    let mut command = program.definitions.clone();
    command.build();
    let text = match args.words.as_slice() {
        [] => contents(&command),
        [name] if guide::topic(name).is_some() => page(name),
        [name] if of_tool(name).is_some() => of_tool(name).map_or_else(String::new, page),
        words => of_command(&mut command, words, program)?,
    };
    console::print(text.as_bytes())?;
    Ok(Exit::Done)
}

/// The topic for whoever comes from this tool.
fn of_tool(name: &str) -> Option<&'static str> {
    match name {
        "wrk" | "ab" | "hey" | "oha" | "vegeta" | "curl" => Some("other-tools"),
        "k6" => Some("javascript"),
        "gatling" => Some("moving"),
        "har" | "openapi" | "swagger" | "postman" => Some("import"),
        "locust" | "jmeter" => Some("locust-jmeter"),
        _ => None,
    }
}

fn page(name: &str) -> String {
    let width = console::stdout_width().min(WIDEST);
    guide::topic(name).map_or_else(String::new, |topic| topic.for_terminal(width, console::stdout_colour(false)))
}

/// The topics and commands.
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
    let topics = TOPICS.iter().map(|topic| topic.name);
    let meant = nearest(word, topics).or_else(|| program.mistyped(word));
    let meant = meant.map_or(String::new(), |meant| format!("; did you mean brunt help {meant}?"));
    format!("there is no topic or command '{word}'{meant} (brunt help lists them)")
}
