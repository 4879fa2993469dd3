//! The commands of a block, with what is shown of their output.

/// A command as a reader types it.
#[derive(Debug, PartialEq, Eq)]
pub struct Command {
    /// Its place in the block: how many lines stand before it.
    pub line: usize,
    /// Its words, several lines where it is continued.
    pub text: String,
    /// What is printed below it; none in a block without prompts.
    pub output: Option<String>,
}

impl Command {
    /// Whether it goes on while the next ones are typed: by an `&` at its end, or in another terminal, as its comment says.
    pub fn is_background(&self) -> bool {
        self.words().trim_end().ends_with('&') || self.text.contains("# in another terminal")
    }

    /// Without the comment behind it and an `&` at its end.
    pub fn foreground(&self) -> &str {
        let words = self.words().trim_end();
        words.strip_suffix('&').unwrap_or(words).trim_end()
    }

    /// Without the comment behind it.
    fn words(&self) -> &str {
        self.text.split(" # ").next().unwrap_or(&self.text)
    }
}

/// The commands of a block in which each stands behind `$ `, with its output below it.
pub fn of_console(text: &str) -> Vec<Command> {
    let mut commands: Vec<Command> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        match commands.last_mut() {
            Some(last) if !is_whole(&last.text) => append(&mut last.text, line),
            _ if line.starts_with("$ ") => {
                let text = line[2..].to_owned();
                commands.push(Command { line: number, text, output: Some(String::new()) });
            }
            Some(last) => append(last.output.as_mut().unwrap(), line),
            None => panic!("a block of commands begins with '{line}', not with '$ '"),
        }
    }
    commands
}

/// The commands of a block in which each stands in a line of its own.
pub fn of_script(text: &str) -> Vec<Command> {
    let mut commands: Vec<Command> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        match commands.last_mut() {
            Some(last) if !is_whole(&last.text) => append(&mut last.text, line),
            _ if line.trim().is_empty() || line.starts_with('#') => {}
            _ => commands.push(Command { line: number, text: line.to_owned(), output: None }),
        }
    }
    commands
}

fn append(text: &mut String, line: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(line);
}

/// Whether a shell would carry the command out, rather than wait for its next line.
fn is_whole(command: &str) -> bool {
    let mut quote = None;
    let mut before = ' ';
    for c in command.chars() {
        match quote {
            None if c == '#' && before == ' ' => return true,
            None if matches!(c, '\'' | '"') => quote = Some(c),
            Some(open) if c == open => quote = None,
            _ => {}
        }
        before = c;
    }
    quote.is_none() && !command.ends_with('\\')
}

#[test]
fn commands_and_their_output_are_told_apart() {
    let commands = of_console("$ brunt --args '{\n  \"a\": 1}' \\\n  URL\none\n\ntwo\n$ brunt serve http & # here\n");
    assert_eq!(commands[0].text, "brunt --args '{\n  \"a\": 1}' \\\n  URL");
    assert_eq!(commands[0].output.as_deref(), Some("one\n\ntwo"));
    assert!(!commands[0].is_background() && commands[1].is_background());
    assert_eq!((commands[1].line, commands[1].foreground()), (6, "brunt serve http"));
}

#[test]
fn lines_of_scripts_are_commands() {
    let commands = of_script(
        "# a comment\nbrunt a   # it's a comment\n\nbrunt b \\\n  c\nbrunt serve ws  # in another terminal\n",
    );
    let texts: Vec<_> = commands.iter().map(Command::foreground).collect();
    assert_eq!(texts, ["brunt a", "brunt b \\\n  c", "brunt serve ws"]);
    assert!(commands[2].is_background());
}
