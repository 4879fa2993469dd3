//! Command lines of curl: a scenario that makes their requests.

pub(crate) mod command;
mod options;
mod request;
mod shell;

use command::{Command, Word};

use crate::lua::{MOST_OF_FUNCTION, comment, indented, part_of_its_own, weight};
use crate::script::{Script, injection};
use crate::{ImportError, Imported};

/// The most commands in a text.
const MOST: usize = 1_000;
/// The most commands in one function, which Lua compiles as a whole.
const MOST_TOGETHER: usize = 50;

/// The scenario for the commands in a text.
pub(crate) fn import(text: &str, name: &str) -> Result<Imported, ImportError> {
    let mut script = Script::default();
    let commands = commands(text, &mut script)?;
    if commands.len() > MOST {
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
pub(crate) fn single(text: &str) -> Result<Command, ImportError> {
    let mut script = Script::default();
    let mut commands = commands(text, &mut script)?;
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
pub(crate) fn of_words(words: &[String]) -> Result<Command, ImportError> {
    let words: Vec<Word> = words.iter().map(|word| Word::plain(word.as_str())).collect();
    let words = words.strip_prefix(&[Word::plain("curl")][..]).unwrap_or(&words);
    let mut commands = options::read(words, 1)?;
    match (commands.pop(), commands.is_empty()) {
        (Some(command), true) if command.urls.len() == 1 => Ok(command),
        _ => {
            Err(ImportError::Other("it makes several requests: brunt import curl writes a scenario of them".to_owned()))
        }
    }
}

/// The commands of curl in a text; other commands are listed as left out.
fn commands(text: &str, script: &mut Script) -> Result<Vec<Command>, ImportError> {
    let mut all = Vec::new();
    for line in shell::lines(text)? {
        let place = format!("line {}", line.number);
        // A prompt or prefix that was copied along with the command.
        let is_prompt = |word: &&Word| matches!(word.known(), Some("$" | "%" | ">" | "time" | "command"));
        let prompts = line.words.iter().take_while(is_prompt).count();
        let words = line.words.get(prompts..).unwrap_or_default();
        let Some((first, words)) = words.split_first() else { continue };
        let program = first.known().unwrap_or_default().rsplit(['/', '\\']).next().unwrap_or_default();
        if program == "curl" || program == "curl.exe" {
            let mut commands = options::read(words, line.number)?;
            if let Some(last) = commands.last_mut() {
                last.shown.extend(line.redirected);
            }
            all.extend(commands);
        } else if let Some((name, _)) = first.split('=').filter(|_| words.is_empty()) {
            let name = name.known().unwrap_or_default().to_owned();
            script.leave(place, format!("not moved: {name}=…; where it is used, --env {name} gives it"));
        } else {
            script.leave(place, format!("not moved: {}, which is not curl", comment(program, 40)));
        }
    }
    if all.is_empty() {
        return Err(ImportError::Nothing("there is no command line in it that begins with curl".to_owned()));
    }
    Ok(all)
}

#[cfg(test)]
mod tests;
