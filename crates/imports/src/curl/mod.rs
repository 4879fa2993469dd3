//! Command lines of curl: a scenario that makes their requests.

pub(crate) mod command;
mod config;
mod glob;
mod options;
mod request;
mod shell;

use std::collections::HashMap;

use command::{Bit, Command, Word};
use options::Around;
use shell::{Input, Line};

use crate::encoded::is_token;
use crate::lua::{MOST_OF_FUNCTION, comment, indented, part_of_its_own, weight};
use crate::script::{Script, injection};
use crate::{Files, ImportError, Imported, secret};

/// The most commands in a text.
const MOST: usize = 1_000;
/// The most commands in one function, which Lua compiles as a whole.
const MOST_TOGETHER: usize = 50;

/// The scenario for the commands in a text.
pub(crate) fn import(text: &str, name: &str, files: Files) -> Result<Imported, ImportError> {
    let mut script = Script::default();
    let commands = commands(text, &mut script, files)?;
    if commands.iter().map(|command| command.urls.len()).sum::<usize>() > MOST {
        return Err(ImportError::Other(format!("more than {MOST} requests; cut it")));
    }
    let requests = request::requests(&commands, &mut script)?;
    let (mut body, mut part, mut count) = (String::new(), String::new(), 0);
    for code in &requests {
        if count >= MOST_TOGETHER || count > 0 && weight(&part) + weight(code) > MOST_OF_FUNCTION {
            body.push_str(&part_of_its_own(&part));
            part.clear();
            count = 0;
        }
        part.push_str(if count == 0 { "local " } else { "\n" });
        part.push_str(code);
        count += 1;
    }
    let last = if body.is_empty() { part } else { part_of_its_own(&part) };
    body.push_str(&last);
    script.body = format!(
        "\nlocal visit = brunt.scenario(\"visit\", function(vu)\n{}\nend)\n{}",
        indented(body.trim_end()),
        injection("visit")
    );
    Ok(script.written("curl commands in", name))
}

/// The only command in a text.
pub(crate) fn single(text: &str, files: Files) -> Result<Command, ImportError> {
    let mut script = Script::default();
    let mut commands = commands(text, &mut script, files)?;
    match (commands.pop(), commands.is_empty()) {
        (Some(mut command), true) if command.urls.len() == 1 => {
            command.left.extend(script.left.iter().map(ToString::to_string));
            Ok(command)
        }
        _ => {
            Err(ImportError::Other("it makes several requests: brunt import curl writes a scenario of them".to_owned()))
        }
    }
}

/// The command in words that a shell has read.
pub(crate) fn of_words(words: &[String], files: Files) -> Result<Command, ImportError> {
    let words: Vec<Word> = words.iter().map(|word| Word::plain(word.as_str())).collect();
    let words = words.strip_prefix(&[Word::plain("curl")][..]).unwrap_or(&words);
    let mut commands = options::read(words, &Around { files, input: None, line: 1 })?;
    match (commands.pop(), commands.is_empty()) {
        (Some(command), true) if command.urls.len() == 1 => Ok(command),
        _ => {
            Err(ImportError::Other("it makes several requests: brunt import curl writes a scenario of them".to_owned()))
        }
    }
}

/// The commands of curl in a text; other commands are listed as left out.
fn commands(text: &str, script: &mut Script, files: Files) -> Result<Vec<Command>, ImportError> {
    let mut all = Vec::new();
    let mut variables: HashMap<String, Word> = HashMap::new();
    let mut fed: Option<Input> = None;
    let mut lines = shell::lines(text)?.into_iter().peekable();
    while let Some(mut line) = lines.next() {
        let piped = fed.take();
        substitute(&mut line, &variables);
        let place = format!("line {}", line.number);
        let words = command_words(&line.words);
        let Some((first, words)) = words.split_first() else { continue };
        let program = program(first);
        if line.is_alternative {
            script.leave(
                place,
                format!("not moved: {}, which runs where the command before || fails", comment(program, 40)),
            );
        } else if program_is_curl(first) {
            let around = Around { files, input: line.input.clone().or(piped), line: line.number };
            let mut commands = options::read(words, &around)?;
            if let Some(last) = commands.last_mut() {
                last.shown.extend(line.redirected);
            }
            all.extend(commands);
        } else if let Some((name, value)) = assigned(first, words) {
            if value.known().is_some() && !secret::is_field(&name) {
                variables.insert(name, value);
            } else {
                script.leave(place, format!("not moved: {name}=…; where it is used, --env {name} gives it"));
            }
        } else {
            let feeds_curl = line.is_piped
                && lines.peek().is_some_and(|next| command_words(&next.words).first().is_some_and(program_is_curl));
            fed = if feeds_curl { said(program, words, line.input.as_ref()) } else { None };
            if fed.is_none() {
                script.leave(place, format!("not moved: {}, which is not curl", comment(program, 40)));
            }
        }
    }
    if all.is_empty() {
        return Err(ImportError::Nothing("there is no command line in it that begins with curl".to_owned()));
    }
    Ok(all)
}

/// The words behind a prompt or prefix that was copied along with the command, words of the shell and assignments.
fn command_words(words: &[Word]) -> &[Word] {
    let is_prefix = |word: &&Word| {
        matches!(
            word.known(),
            Some(
                "$" | "%"
                    | ">"
                    | "time"
                    | "command"
                    | "exec"
                    | "sudo"
                    | "do"
                    | "then"
                    | "else"
                    | "if"
                    | "while"
                    | "until"
                    | "!"
            )
        )
    };
    let behind = words.get(words.iter().take_while(is_prefix).count()..).unwrap_or_default();
    let assigned = behind.iter().take_while(|word| is_assignment(word)).count();
    match behind.get(assigned) {
        Some(word) if program_is_curl(word) => behind.get(assigned..).unwrap_or_default(),
        _ => behind,
    }
}

/// The name of a program, without its path.
fn program(word: &Word) -> &str {
    word.known().unwrap_or_default().rsplit(['/', '\\']).next().unwrap_or_default()
}

fn program_is_curl(word: &Word) -> bool {
    matches!(program(word), "curl" | "curl.exe")
}

fn is_assignment(word: &Word) -> bool {
    word.split('=').is_some_and(|(name, _)| name.known().is_some_and(is_name))
}

fn is_name(text: &str) -> bool {
    is_token(text)
        && !text.starts_with(|first: char| first.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// The variable that a command sets, and its value: `NAME=value`, `export NAME=value`.
fn assigned(first: &Word, rest: &[Word]) -> Option<(String, Word)> {
    let word = match (first.known(), rest) {
        (Some("export" | "readonly" | "local"), [only]) => only,
        (_, []) => first,
        _ => return None,
    };
    let (name, value) = word.split('=')?;
    Some((name.known().filter(|name| is_name(name))?.to_owned(), value))
}

/// Writes the values of variables that the text sets.
fn substitute(line: &mut Line, variables: &HashMap<String, Word>) {
    let input = line.input.iter_mut().map(|input| match input {
        Input::Text(word) | Input::File(word) => word,
    });
    for word in line.words.iter_mut().chain(input) {
        if !word.0.iter().any(|bit| matches!(bit, Bit::Variable(name) if variables.contains_key(name))) {
            continue;
        }
        let bits = std::mem::take(word).0;
        for bit in bits {
            let value = match &bit {
                Bit::Variable(name) => variables.get(name).cloned(),
                Bit::Plain(_) => None,
            };
            *word = std::mem::take(word).joined(&value.unwrap_or(Word(vec![bit])));
        }
    }
}

/// The text that a command of the shell writes into the next one, where it is known.
fn said(program: &str, words: &[Word], input: Option<&Input>) -> Option<Input> {
    let joined = |words: &[Word]| {
        let spaced = words
            .iter()
            .enumerate()
            .map(|(place, word)| if place == 0 { word.clone() } else { Word::plain(" ").joined(word) });
        spaced.fold(Word::default(), |before, word| before.joined(&word))
    };
    let is_option = |word: &Word| word.beginning().starts_with('-');
    match (program, words) {
        ("cat", []) => input.cloned(),
        ("cat", [file]) if !is_option(file) => Some(Input::File(file.clone())),
        ("echo", [first, rest @ ..]) if first.known() == Some("-n") && !rest.first().is_some_and(is_option) => {
            Some(Input::Text(joined(rest)))
        }
        ("echo", words) if !words.first().is_some_and(is_option) => {
            Some(Input::Text(joined(words).joined(&Word::plain("\n"))))
        }
        ("printf", [text]) if !is_option(text) && text.known().is_some_and(|text| !text.contains(['%', '\\'])) => {
            Some(Input::Text(text.clone()))
        }
        ("printf", [form, text]) if form.known() == Some("%s") => Some(Input::Text(text.clone())),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
