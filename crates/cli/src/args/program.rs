//! The program as it was called.

use brunt_protocol::Registry;
use clap::{ArgMatches, Command};

/// The program as it was called: its protocols, its commands with all their flags, and the values of these.
///
/// Commands that refer to others (the help, the manual, a URL that is a mistyped command) find them here, so that none
/// depends on another's module.
pub struct Program {
    /// The protocols that it has.
    pub registry: Registry,
    /// The definitions of all commands and flags.
    pub definitions: Command,
    /// The values of its flags; `None` where the program was called as `wrk`.
    pub given: Option<ArgMatches>,
}

impl Program {
    /// Whether a command is called that.
    pub fn is_command(&self, name: &str) -> bool {
        self.definitions.find_subcommand(name).is_some()
    }

    /// The command that `word` means, if it is a slip of the fingers away from it.
    pub fn mistyped(&self, word: &str) -> Option<&str> {
        // No command has such a name, and comparing letters takes long.
        if word.contains(['/', ':', '.']) {
            return None;
        }
        nearest(word, self.definitions.get_subcommands().map(Command::get_name))
    }
}

/// The one of `known` that `word` is a slip of the fingers away from: at most one letter in three is wrong, surplus,
/// missing or exchanged with the next.
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let most = (word.chars().count() / 3).clamp(1, 3);
    let near = known.map(|name| (strsim::damerau_levenshtein(word, name), name)).filter(|(slips, _)| *slips <= most);
    near.min().map(|(_, name)| name)
}
