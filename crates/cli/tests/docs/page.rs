//! A page, gone through from top to bottom as a reader would.

use std::fs;
use std::sync::{PoisonError, RwLock};

use crate::clone::Clone;
use crate::commands::{self, Command};
use crate::markdown::{self, Block, Treatment};
use crate::{root, shape};

/// Which blocks of a page are run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Blocks {
    /// Those that need brunt and a shell.
    OfBruntAlone,
    /// Those that need other programs, too.
    WithOtherPrograms,
}

/// Held alone by a page that looks for a process of brunt by its name, since those of other pages have the same.
static PROCESSES: RwLock<()> = RwLock::new(());

/// Runs the commands of the page at `path`.
///
/// # Panics
/// With each command that does not do what the page shows.
pub fn check(path: &str, which: Blocks) {
    let text = fs::read_to_string(root().join(path)).unwrap();
    let (alone, beside) = if text.contains("pgrep") {
        (Some(PROCESSES.write().unwrap_or_else(PoisonError::into_inner)), None)
    } else {
        (None, Some(PROCESSES.read().unwrap_or_else(PoisonError::into_inner)))
    };
    let mut clone = Clone::new(&root());
    let mut problems = Vec::new();
    for block in markdown::blocks(&text) {
        if block.needs_others == (which == Blocks::WithOtherPrograms) {
            problems.extend(run(&block, &mut clone).into_iter().map(|problem| format!("{path}:{problem}")));
        }
    }
    drop((alone, beside));
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n\n"));
}

/// What goes wrong in a block, with its line.
fn run(block: &Block, clone: &mut Clone) -> Vec<String> {
    let commands = match (&block.treatment, block.language.as_str()) {
        (Treatment::NotRun, _) => return Vec::new(),
        (Treatment::File(name), _) => {
            clone.write(name, &block.text);
            return Vec::new();
        }
        (_, "console") => commands::of_console(&block.text),
        (_, "sh") => commands::of_script(&block.text),
        (_, "text" | "toml") => return Vec::new(),
        (_, other) => {
            let line = block.line;
            return vec![format!("{line}: a block of '{other}' says neither which file it is nor why it is not run")];
        }
    };
    let mut problems = Vec::new();
    for (number, command) in commands.iter().enumerate() {
        // Whose exit status is shown may have any.
        let shows_status = commands.get(number + 1).is_some_and(|next| next.text.starts_with("echo $?"));
        if let Err(problem) = carry_out(command, &block.treatment, shows_status, clone) {
            problems.push(format!("{}: $ {}\n{problem}", block.line + command.line, command.text));
        }
    }
    problems
}

fn carry_out(command: &Command, treatment: &Treatment, shows_status: bool, clone: &mut Clone) -> Result<(), String> {
    if *treatment == Treatment::RunByCi {
        let ci = fs::read_to_string(root().join(".ci/run")).unwrap();
        let has = ci.lines().any(|line| line.strip_prefix("step ") == Some(command.foreground()));
        return if has { Ok(()) } else { Err("it is not a step of .ci/run".to_owned()) };
    }
    if command.is_background() {
        return clone.start(command.foreground());
    }
    if command.foreground().contains(" & ") {
        return Err("what it starts may not listen yet when the rest begins: put it into a line of its own".to_owned());
    }
    let done = if *treatment == Treatment::DryRun {
        clone.run(&format!("{} --dry-run", command.foreground()))?
    } else {
        clone.run(&command.text)?
    };
    let shown = command.output.as_deref().unwrap_or_default();
    // Figures are masked; exit statuses are compared.
    if command.text.contains("echo $?") && shown.lines().last() != done.output.lines().last() {
        return Err(format!("exit status {}, not {shown}", done.output));
    }
    let fails = shown.starts_with("error: ");
    if !shows_status && fails != (done.status != 0) {
        return Err(format!("exit status {}\n{}", done.status, done.output));
    }
    match (&command.output, treatment) {
        (Some(shown), Treatment::Run) => {
            shape::compare(shown, &done.output).map_err(|difference| format!("{difference}\n\n{}", done.output))
        }
        _ => Ok(()),
    }
}
