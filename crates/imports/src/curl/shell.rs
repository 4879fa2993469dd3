//! Command lines as a POSIX shell reads them, with bash's `$'…'`, split into words and commands.

use super::command::{Bit, Word};
use crate::ImportError;

/// The most words of a text.
const MOST_WORDS: usize = 100_000;

/// A command: its words, and the line on which it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) number: usize,
    pub(crate) words: Vec<Word>,
    /// Redirections of the output, as written: `> out.json`.
    pub(crate) redirected: Vec<String>,
    /// Its standard input, if the text gives it.
    pub(crate) input: Option<Input>,
    /// Whether its output is the input of the next command.
    pub(crate) is_piped: bool,
    /// Whether it runs only where the command before it fails (`||`).
    pub(crate) is_alternative: bool,
}

impl Line {
    fn new(number: usize) -> Self {
        Self { number, words: Vec::new(), redirected: Vec::new(), input: None, is_piped: false, is_alternative: false }
    }
}

/// The standard input of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Input {
    /// The text of `<<EOF` or `<<<`.
    Text(Word),
    /// The file of `< FILE`.
    File(Word),
}

/// A `<<EOF` whose text begins with the next line.
struct Here {
    /// The place of its command.
    command: usize,
    /// The line that ends the text.
    end: String,
    /// Whether the text stands for itself, without variables.
    is_literal: bool,
    /// Whether tabs before each line are left out (`<<-`).
    is_indented: bool,
}

/// Splits a text into commands.
///
/// # Errors
/// When a quote does not end, or the text needs a real shell.
pub(crate) fn lines(text: &str) -> Result<Vec<Line>, ImportError> {
    let mut reader = Reader {
        letters: text.chars().collect(),
        at: 0,
        line: 1,
        commands: Vec::new(),
        current: None,
        here: Vec::new(),
        is_alternative: false,
    };
    reader.read()?;
    Ok(reader.commands)
}

struct Reader {
    letters: Vec<char>,
    at: usize,
    line: usize,
    commands: Vec<Line>,
    current: Option<Line>,
    here: Vec<Here>,
    is_alternative: bool,
}

impl Reader {
    fn peek(&self) -> Option<char> {
        self.letters.get(self.at).copied()
    }

    fn after(&self, more: usize) -> Option<char> {
        self.letters.get(self.at + more).copied()
    }

    fn next(&mut self) -> Option<char> {
        let letter = self.peek()?;
        self.at += 1;
        if letter == '\n' {
            self.line += 1;
        }
        Some(letter)
    }

    fn wrong<T>(&self, problem: &str) -> Result<T, ImportError> {
        Err(ImportError::Other(format!("line {}: {problem}", self.line)))
    }

    /// Skips a backslash at the end of a line, together with the line's end.
    fn skips_continuation(&mut self) -> bool {
        let ends = match (self.after(1), self.after(2)) {
            (Some('\n'), _) => 2,
            (Some('\r'), Some('\n')) => 3,
            _ => return false,
        };
        if self.peek() != Some('\\') {
            return false;
        }
        for _ in 0..ends {
            self.next();
        }
        true
    }

    fn read(&mut self) -> Result<(), ImportError> {
        let mut words = 0;
        while let Some(letter) = self.peek() {
            if self.skips_continuation() {
                continue;
            }
            match letter {
                '\n' => {
                    self.next();
                    self.end();
                    self.here_texts()?;
                }
                '|' if self.after(1) != Some('|') => {
                    self.next();
                    if let Some(line) = &mut self.current {
                        line.is_piped = true;
                    }
                    self.end();
                }
                '|' => {
                    self.next();
                    self.next();
                    self.end();
                    self.is_alternative = true;
                }
                ';' | '&' | '(' | ')' => {
                    self.next();
                    self.end();
                }
                letter if letter.is_whitespace() => {
                    self.next();
                }
                '#' => {
                    while self.peek().is_some_and(|letter| letter != '\n') {
                        self.next();
                    }
                }
                '<' | '>' => self.redirection()?,
                '2' | '1' if self.after(1) == Some('>') => {
                    self.next();
                    self.redirection()?;
                }
                _ => {
                    words += 1;
                    if words > MOST_WORDS {
                        return self.wrong("more than 100,000 words");
                    }
                    let number = self.line;
                    let word = self.word()?;
                    let line = self.current.get_or_insert_with(|| Line::new(number));
                    line.words.push(word);
                }
            }
        }
        self.end();
        Ok(())
    }

    fn end(&mut self) {
        if let Some(mut line) = self.current.take() {
            line.is_alternative = std::mem::take(&mut self.is_alternative);
            self.commands.push(line);
        }
    }

    /// Reads `> FILE`, `2>&1`, `< FILE`, `<<EOF` or `<<< TEXT`.
    fn redirection(&mut self) -> Result<(), ImportError> {
        if self.next() == Some('<') {
            return self.input();
        }
        let mut shown = String::from("> ");
        while matches!(self.peek(), Some('>' | '&' | '|')) {
            self.next();
        }
        while self.peek().is_some_and(|letter| letter == ' ' || letter == '\t') {
            self.next();
        }
        if self.peek().is_some_and(|letter| !letter.is_whitespace()) {
            let word = self.word()?;
            shown.push_str(word.known().unwrap_or("…"));
        }
        if let Some(line) = &mut self.current {
            line.redirected.push(shown);
        }
        Ok(())
    }

    /// Reads what stands behind the first `<`.
    fn input(&mut self) -> Result<(), ImportError> {
        let mut marks = 1;
        while marks < 3 && self.peek() == Some('<') {
            self.next();
            marks += 1;
        }
        let is_indented = marks == 2 && self.peek() == Some('-');
        if is_indented {
            self.next();
        }
        while matches!(self.peek(), Some(' ' | '\t')) {
            self.next();
        }
        if self.peek().is_none_or(|letter| letter.is_whitespace() || matches!(letter, '(' | '&' | '<' | '>')) {
            return self.wrong("`<` gives curl its input from elsewhere: write it after -d");
        }
        let is_literal = matches!(self.peek(), Some('\'' | '"' | '\\'));
        let number = self.line;
        let mut word = self.word()?;
        let command = self.commands.len();
        let line = self.current.get_or_insert_with(|| Line::new(number));
        match marks {
            1 => line.input = Some(Input::File(word)),
            3 => {
                word.push('\n');
                line.input = Some(Input::Text(word));
            }
            _ => match word.known() {
                Some(end) => self.here.push(Here { command, end: end.to_owned(), is_literal, is_indented }),
                None => return self.wrong("the word behind << is a variable: write it"),
            },
        }
        Ok(())
    }

    /// Reads the texts of `<<EOF` on the line before.
    fn here_texts(&mut self) -> Result<(), ImportError> {
        for here in std::mem::take(&mut self.here) {
            let began = self.line;
            let mut text = String::new();
            while self.peek().is_some() {
                let mut line = String::new();
                while let Some(letter) = self.next().filter(|letter| *letter != '\n') {
                    line.push(letter);
                }
                let kept = if here.is_indented { line.trim_start_matches('\t') } else { &line };
                if kept.trim_end_matches('\r') == here.end {
                    break;
                }
                text.push_str(kept);
                text.push('\n');
            }
            let word = if here.is_literal { Word::plain(text) } else { here_word(&text, began)? };
            if let Some(line) = self.commands.get_mut(here.command) {
                line.input = Some(Input::Text(word));
            }
        }
        Ok(())
    }

    fn word(&mut self) -> Result<Word, ImportError> {
        let mut word = Word::default();
        while let Some(letter) = self.peek() {
            if self.skips_continuation() {
                continue;
            }
            match letter {
                letter if letter.is_whitespace() || matches!(letter, ';' | '|' | '&' | '(' | ')' | '<' | '>') => break,
                '\'' => {
                    self.next();
                    self.single(&mut word)?;
                }
                '"' => {
                    self.next();
                    self.double(&mut word)?;
                }
                '\\' => {
                    self.next();
                    word.push(self.next().unwrap_or('\\'));
                }
                '$' if self.after(1) == Some('\'') => {
                    self.next();
                    self.next();
                    self.ansi(&mut word)?;
                }
                '$' => self.variable(&mut word)?,
                '`' => return self.wrong("`…` runs another program: write what it gives"),
                '^' if matches!(self.after(1), Some('"' | '\n' | '\r')) => {
                    return self.wrong("this is a command for cmd.exe: copy it as cURL (bash)");
                }
                _ => {
                    self.next();
                    word.push(letter);
                }
            }
        }
        Ok(word)
    }

    fn single(&mut self, word: &mut Word) -> Result<(), ImportError> {
        let began = self.line;
        loop {
            match self.next() {
                Some('\'') => return Ok(()),
                Some(letter) => word.push(letter),
                None => return unended('\'', began),
            }
        }
    }

    fn double(&mut self, word: &mut Word) -> Result<(), ImportError> {
        let began = self.line;
        loop {
            if self.skips_continuation() {
                continue;
            }
            match self.peek() {
                Some('"') => {
                    self.next();
                    return Ok(());
                }
                Some('\\') => {
                    self.next();
                    match self.peek() {
                        Some(letter @ ('"' | '\\' | '$' | '`')) => {
                            self.next();
                            word.push(letter);
                        }
                        _ => word.push('\\'),
                    }
                }
                Some('$') => self.variable(word)?,
                Some('`') => return self.wrong("`…` runs another program: write what it gives"),
                Some(letter) => {
                    self.next();
                    word.push(letter);
                }
                None => return unended('"', began),
            }
        }
    }

    /// Reads bash's `$'…'`, with the escapes of C.
    fn ansi(&mut self, word: &mut Word) -> Result<(), ImportError> {
        let began = self.line;
        loop {
            match self.next() {
                Some('\'') => return Ok(()),
                Some('\\') => {
                    let Some(letter) = self.next() else { return unended('\'', began) };
                    let escaped = match letter {
                        'n' => '\n',
                        't' => '\t',
                        'r' => '\r',
                        'a' => '\u{7}',
                        'b' => '\u{8}',
                        'e' | 'E' => '\u{1b}',
                        'f' => '\u{c}',
                        'v' => '\u{b}',
                        'x' => self.code(16, 2)?,
                        'u' => self.code(16, 4)?,
                        'U' => self.code(16, 8)?,
                        '0'..='7' => {
                            self.at -= 1;
                            self.code(8, 3)?
                        }
                        '\\' | '\'' | '"' | '?' => letter,
                        other => {
                            word.push('\\');
                            other
                        }
                    };
                    word.push(escaped);
                }
                Some(letter) => word.push(letter),
                None => return unended('\'', began),
            }
        }
    }

    /// Reads the code of a character, in up to `most` digits. A byte that is not a character by itself is refused.
    fn code(&mut self, radix: u32, most: usize) -> Result<char, ImportError> {
        let mut code = 0_u32;
        let mut digits = 0;
        while digits < most
            && let Some(digit) = self.peek().and_then(|letter| letter.to_digit(radix))
        {
            code = code.saturating_mul(radix).saturating_add(digit);
            digits += 1;
            self.next();
        }
        let is_byte = radix == 8 || most == 2;
        match char::from_u32(code).filter(|_| digits > 0 && !(is_byte && code > 127)) {
            Some(letter) => Ok(letter),
            None => self.wrong("an escape in $'…' that stands for no letter"),
        }
    }

    fn variable(&mut self, word: &mut Word) -> Result<(), ImportError> {
        self.next();
        let is_braced = self.peek() == Some('{');
        if self.peek() == Some('(') {
            return self.wrong("$(…) runs another program: write what it gives");
        }
        if is_braced {
            self.next();
        }
        let mut name = String::new();
        while let Some(letter) = self.peek().filter(|letter| letter.is_ascii_alphanumeric() || *letter == '_') {
            name.push(letter);
            self.next();
        }
        let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
        if is_braced {
            if !is_name || self.peek() != Some('}') {
                return self.wrong("${…} is more than the name of a variable: write what it gives");
            }
            self.next();
            word.0.push(Bit::Variable(name));
        } else if is_name {
            word.0.push(Bit::Variable(name));
        } else {
            word.push('$');
            name.chars().for_each(|letter| word.push(letter));
        }
        Ok(())
    }
}

/// The text of a `<<EOF` with its variables.
fn here_word(text: &str, line: usize) -> Result<Word, ImportError> {
    let mut reader = Reader {
        letters: text.chars().collect(),
        at: 0,
        line,
        commands: Vec::new(),
        current: None,
        here: Vec::new(),
        is_alternative: false,
    };
    let mut word = Word::default();
    while let Some(letter) = reader.peek() {
        if reader.skips_continuation() {
            continue;
        }
        match letter {
            '\\' if matches!(reader.after(1), Some('$' | '`' | '\\')) => {
                reader.next();
                if let Some(letter) = reader.next() {
                    word.push(letter);
                }
            }
            '$' => reader.variable(&mut word)?,
            '`' => return reader.wrong("`…` runs another program: write what it gives"),
            _ => {
                reader.next();
                word.push(letter);
            }
        }
    }
    Ok(word)
}

fn unended<T>(quote: char, line: usize) -> Result<T, ImportError> {
    Err(ImportError::Other(format!("line {line}: the quote {quote} that begins here does not end")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<Vec<String>> {
        let shown = |word: &Word| {
            let bit = |bit: &Bit| match bit {
                Bit::Plain(text) => text.clone(),
                Bit::Variable(name) => format!("<{name}>"),
            };
            word.0.iter().map(bit).collect::<String>()
        };
        lines(text).unwrap().iter().map(|line| line.words.iter().map(shown).collect()).collect()
    }

    #[test]
    fn words_are_those_of_a_shell() {
        for (text, expected) in [
            ("curl a 'b c' \"d \\\"e\\\" \\n\" f\\ g", vec![vec!["curl", "a", "b c", "d \"e\" \\n", "f g"]]),
            ("curl \\\n  a \\\r\n b # c\nd", vec![vec!["curl", "a", "b"], vec!["d"]]),
            ("curl $'a\\n\\u0041\\x42\\103\\'' ''", vec![vec!["curl", "a\nABC'", ""]]),
            ("curl \"Bearer $T\" ${U}x $ 5$", vec![vec!["curl", "Bearer <T>", "<U>x", "$", "5$"]]),
            (
                "$ curl a | jq . && curl b > c 2>&1; d",
                vec![vec!["$", "curl", "a"], vec!["jq", "."], vec!["curl", "b"], vec!["d"]],
            ),
            ("curl 'a\nb'", vec![vec!["curl", "a\nb"]]),
        ] {
            assert_eq!(words(text), expected, "{text}");
        }
    }

    #[test]
    fn input_is_that_of_the_command_before_it() {
        let inputs = |text: &str| {
            let shown = |line: Line| match line.input {
                Some(Input::Text(word)) => word.known().map_or("…".to_owned(), str::to_owned),
                Some(Input::File(word)) => format!("< {}", word.known().unwrap_or("…")),
                None if line.is_piped => "|".to_owned(),
                None => String::new(),
            };
            lines(text).unwrap().into_iter().map(shown).collect::<Vec<_>>()
        };
        for (text, expected) in [
            ("curl <<EOF\na\nEOF\ncurl", vec!["a\n", ""]),
            ("cat <<-'E' | curl -d @-\n\t$a\n\tE\n", vec!["$a\n", ""]),
            ("curl <<E\n$a\nE", vec!["…"]),
            ("curl <<E\n\\$a\\\\ \\n \\\nb\nE", vec!["$a\\ \\n b\n"]),
            ("curl <<< 'a b' < c", vec!["< c"]),
            ("curl <<<a", vec!["a\n"]),
            ("a <<A <<B; b\n1\nA\n2\nB\n", vec!["2\n", ""]),
            ("a <<A\nunended", vec!["unended\n"]),
            ("a | b || c", vec!["|", "", ""]),
        ] {
            assert_eq!(inputs(text), expected, "{text}");
        }
    }

    #[test]
    fn what_only_a_shell_can_do_is_refused() {
        for (text, said) in [
            ("curl 'a", "line 1: the quote '"),
            ("curl \\\n\"a", "line 2: the quote \""),
            ("curl $(a)", "$(…) runs another program"),
            ("curl `a`", "runs another program"),
            ("curl ${a:-b}", "more than the name"),
            ("curl < (a)", "write it after -d"),
            ("curl -d @- <<$A", "behind << is a variable"),
            ("curl -d @- <<A\n`date`\nA", "runs another program"),
            ("curl ^\"a^\"", "copy it as cURL (bash)"),
            ("curl $'\\xff'", "stands for no letter"),
        ] {
            let error = lines(text).unwrap_err().to_string();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
