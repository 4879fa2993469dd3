//! What findings advise can be done: each flag that an advice names is one of the program's.

use brunt_report::advice::WORDS;

use super::program::run;

/// The text of `brunt COMMAND --help`, or of all flags of a run.
fn help(command: Option<&str>) -> String {
    let words = command.map_or(vec!["--help-all"], |command| vec![command, "--help"]);
    run(words).with_status(0).stdout
}

/// The program's commands, by its own help.
fn commands() -> Vec<String> {
    let help = run(["--help"]).with_status(0).stdout;
    let lines = help.lines().skip_while(|line| *line != "Commands").skip(1).take_while(|line| !line.is_empty());
    let names = lines.filter_map(|line| line.trim_start().split("  ").next());
    names.flat_map(|names| names.split([',', ' '])).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Whether `help` lists `flag`, at the start of an item or behind its short form.
fn has(help: &str, flag: &str) -> bool {
    help.lines().map(str::trim_start).filter(|line| line.starts_with('-')).any(|line| {
        let flags = line.split("  ").next().unwrap_or(line);
        flags.split([' ', ',', '=', '[', '<']).any(|word| word == flag)
    })
}

#[test]
fn flags_and_commands_that_advices_name_are_there() {
    let (commands, mut flags) = (commands(), 0);
    for advice in WORDS {
        // Flags are a run's, until a command is named; those in parentheses behind another program are its own.
        let (mut command, mut before) = (None, "");
        for word in advice.split(' ').map(|word| word.trim_matches(|c: char| "(),;:'…".contains(c))) {
            if before == "brunt" {
                command = commands.iter().map(String::as_str).find(|name| *name == word).or(command);
            }
            if word.starts_with('-') && before != "ulimit" {
                assert!(has(&help(command), word), "brunt {} has no {word}: {advice}", command.unwrap_or_default());
                flags += 1;
            }
            before = word;
        }
    }
    assert!(flags > 20, "{flags} flags were found");
}

#[test]
fn what_is_not_there_is_found() {
    let all = help(None);
    assert!(has(&all, "--once") && has(&all, "-c") && !has(&all, "--onc") && !has(&all, "-Hn"));
    assert!(commands().contains(&"doctor".to_owned()) && !commands().contains(&"had".to_owned()));
}
