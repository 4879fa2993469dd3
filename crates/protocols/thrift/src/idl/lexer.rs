//! The tokens of an IDL file, with their positions: words, numbers, literals and signs.

use super::{IdlError, Position};

/// The longest word, in bytes: long enough for any name, and for a service's and a method's to fit into a message.
const MOST_WORD_BYTES: usize = 255;

/// The kind of a token.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    /// A keyword or an identifier, which may have dots in it.
    Word(String),
    /// A whole number.
    Integer(i64),
    /// A number with a fraction or an exponent.
    Double(f64),
    /// Text in quotes.
    Literal(String),
    /// A sign that stands for itself.
    Sign(char),
    /// The end of the file.
    End,
}

impl Kind {
    /// For errors.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Word(word) => format!("'{word}'"),
            Self::Integer(number) => number.to_string(),
            Self::Double(number) => number.to_string(),
            Self::Literal(_) => "a literal in quotes".to_owned(),
            Self::Sign(sign) => format!("'{sign}'"),
            Self::End => "the end of the file".to_owned(),
        }
    }
}

/// A token, with the position where it begins.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) at: Position,
}

pub(super) struct Lexer<'a> {
    file: &'a str,
    rest: &'a str,
    at: Position,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(file: &'a str, text: &'a str) -> Self {
        Self { file, rest: text.strip_prefix('\u{feff}').unwrap_or(text), at: Position { line: 1, column: 1 } }
    }

    /// An error at a place in this file.
    pub(super) fn error(&self, at: Position, problem: impl Into<String>) -> IdlError {
        IdlError::at(self.file, at, problem)
    }

    /// The next token.
    pub(super) fn next(&mut self) -> Result<Token, IdlError> {
        self.skip_blanks()?;
        let at = self.at;
        let Some(first) = self.rest.chars().next() else { return Ok(Token { kind: Kind::End, at }) };
        let kind = match first {
            'a'..='z' | 'A'..='Z' | '_' => self.word(at)?,
            '"' | '\'' => self.literal(at, first)?,
            '0'..='9' | '+' | '-' => self.number(at)?,
            '.' if self.rest.chars().nth(1).is_some_and(|c| c.is_ascii_digit()) => self.number(at)?,
            '{' | '}' | '(' | ')' | '[' | ']' | '<' | '>' | ',' | ';' | ':' | '=' | '*' | '&' | '@' => {
                self.take(1);
                Kind::Sign(first)
            }
            other => return Err(self.error(at, format!("{other:?} has no meaning in an IDL file"))),
        };
        Ok(Token { kind, at })
    }

    /// Takes this many bytes.
    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        for c in taken.chars() {
            if c == '\n' {
                self.at.line += 1;
                self.at.column = 1;
            } else {
                self.at.column += 1;
            }
        }
        self.rest = rest;
        taken
    }

    /// White space and comments: `//` and `#` to the end of the line, `/* … */`.
    fn skip_blanks(&mut self) -> Result<(), IdlError> {
        loop {
            let blank = self.rest.len() - self.rest.trim_start().len();
            self.take(blank);
            if self.rest.starts_with("//") || self.rest.starts_with('#') {
                self.take(self.rest.find('\n').unwrap_or(self.rest.len()));
            } else if self.rest.starts_with("/*") {
                let Some(end) = self.rest.get(2..).and_then(|rest| rest.find("*/")) else {
                    return Err(self.error(self.at, "this comment has no end: expected */"));
                };
                self.take(end + 4);
            } else {
                return Ok(());
            }
        }
    }

    fn word(&mut self, at: Position) -> Result<Kind, IdlError> {
        // A hyphen stands only in the names of a namespace.
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '.' | '-'));
        let word = self.take(end.unwrap_or(self.rest.len()));
        if word.len() > MOST_WORD_BYTES {
            return Err(self.error(at, format!("a word of {} letters: expected {MOST_WORD_BYTES} at most", word.len())));
        }
        Ok(Kind::Word(word.to_owned()))
    }

    fn literal(&mut self, at: Position, quote: char) -> Result<Kind, IdlError> {
        self.take(1);
        let mut text = String::new();
        loop {
            let end = self.rest.find([quote, '\\', '\n']).unwrap_or(self.rest.len());
            text.push_str(self.take(end));
            match self.rest.chars().next() {
                Some('\\') => text.push(self.escape()?),
                Some(c) if c == quote => {
                    self.take(1);
                    return Ok(Kind::Literal(text));
                }
                _ => return Err(self.error(at, format!("this literal has no end: expected {quote} on the same line"))),
            }
        }
    }

    fn escape(&mut self) -> Result<char, IdlError> {
        let at = self.at;
        let c = match self.rest.chars().nth(1) {
            Some(c @ ('"' | '\'' | '\\')) => c,
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            _ => return Err(self.error(at, r#"expected one of \" \' \\ \n \r \t behind a backslash"#)),
        };
        self.take(2);
        Ok(c)
    }

    fn number(&mut self, at: Position) -> Result<Kind, IdlError> {
        let unsigned = self.rest.trim_start_matches(['+', '-']);
        let sign = self.rest.len() - unsigned.len();
        let hexadecimal = unsigned.strip_prefix("0x").or_else(|| unsigned.strip_prefix("0X"));
        let end = match hexadecimal {
            Some(digits) => sign + 2 + length(digits, |c| c.is_ascii_hexdigit()),
            None => sign + decimal_length(unsigned),
        };
        let text = self.take(end);
        let negative = text.starts_with('-');
        let number = match hexadecimal {
            // Hexadecimal digits have no sign, and i128 holds any 16 of them.
            Some(_) => i128::from_str_radix(text.get(sign + 2..).unwrap_or(""), 16)
                .ok()
                .and_then(|number| i64::try_from(if negative { -number } else { number }).ok())
                .map(Kind::Integer),
            None if text.contains(['.', 'e', 'E']) => {
                text.parse().ok().filter(|number: &f64| number.is_finite()).map(Kind::Double)
            }
            None => text.parse().ok().map(Kind::Integer),
        };
        let followed = self.rest.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'));
        match number {
            Some(number) if sign <= 1 && !followed => Ok(number),
            _ => Err(self.error(at, format!("'{text}' is not a number of 64 bits"))),
        }
    }
}

fn length(text: &str, belongs: impl Fn(char) -> bool) -> usize {
    text.find(|c| !belongs(c)).unwrap_or(text.len())
}

/// How much of the beginning is a number: digits, a fraction, an exponent.
fn decimal_length(text: &str) -> usize {
    let digits = |from: usize| length(text.get(from..).unwrap_or(""), |c| c.is_ascii_digit());
    let mut end = digits(0);
    if text.get(end..).is_some_and(|rest| rest.starts_with('.')) {
        end += 1 + digits(end + 1);
    }
    if text.get(end..).is_some_and(|rest| rest.starts_with(['e', 'E'])) {
        let sign = usize::from(text.get(end + 1..).is_some_and(|rest| rest.starts_with(['+', '-'])));
        end += 1 + sign + digits(end + 1 + sign);
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Result<Vec<Kind>, String> {
        let mut lexer = Lexer::new("a.thrift", text);
        let mut kinds = Vec::new();
        loop {
            match lexer.next().map_err(|e| e.to_string())?.kind {
                Kind::End => return Ok(kinds),
                kind => kinds.push(kind),
            }
        }
    }

    #[test]
    fn words_numbers_literals_and_signs() {
        let word = |text: &str| Kind::Word(text.to_owned());
        let literal = |text: &str| Kind::Literal(text.to_owned());
        assert_eq!(
            tokens("\u{feff}a.b_1 // x\n# y\n/* z\n*/ { 7 -7 0x1F -0x1 +2 1.5 -2e3 .5 1. 'it\\'s' \"a\\n\" }"),
            Ok(vec![
                word("a.b_1"),
                Kind::Sign('{'),
                Kind::Integer(7),
                Kind::Integer(-7),
                Kind::Integer(31),
                Kind::Integer(-1),
                Kind::Integer(2),
                Kind::Double(1.5),
                Kind::Double(-2000.0),
                Kind::Double(0.5),
                Kind::Double(1.0),
                literal("it's"),
                literal("a\n"),
                Kind::Sign('}'),
            ])
        );
        assert_eq!(tokens("-9223372036854775808"), Ok(vec![Kind::Integer(i64::MIN)]));
    }

    #[test]
    fn what_is_wrong_is_shown_where_it_stands() {
        for (text, expected) in [
            ("a\n  %", "a.thrift:2:3: '%' has no meaning in an IDL file"),
            ("\n /* x", "a.thrift:2:2: this comment has no end: expected */"),
            ("é", "a.thrift:1:1: 'é' has no meaning in an IDL file"),
            ("'ä' \"b", "a.thrift:1:5: this literal has no end: expected \" on the same line"),
            ("'a\\x'", r#"a.thrift:1:3: expected one of \" \' \\ \n \r \t behind a backslash"#),
            ("9223372036854775808", "a.thrift:1:1: '9223372036854775808' is not a number of 64 bits"),
            ("0x", "a.thrift:1:1: '0x' is not a number of 64 bits"),
            ("12ab", "a.thrift:1:1: '12' is not a number of 64 bits"),
            ("--1", "a.thrift:1:1: '--1' is not a number of 64 bits"),
            ("1e", "a.thrift:1:1: '1e' is not a number of 64 bits"),
            ("1e999", "a.thrift:1:1: '1e999' is not a number of 64 bits"),
            ("-", "a.thrift:1:1: '-' is not a number of 64 bits"),
        ] {
            assert_eq!(tokens(text).unwrap_err(), expected, "{text}");
        }
        assert!(tokens(&"a".repeat(256)).unwrap_err().contains("a word of 256 letters"));
    }
}
