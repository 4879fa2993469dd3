//! A command line of curl, read into its parts.

/// A word of a command line: text, possibly with variables of the shell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Word(pub Vec<Bit>);

/// A part of a [`Word`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Bit {
    /// Text.
    Plain(String),
    /// The name of a variable.
    Variable(String),
}

impl Word {
    /// A word without variables.
    pub fn plain(text: impl Into<String>) -> Self {
        Self(vec![Bit::Plain(text.into())])
    }

    /// The text of the word, if it has no variables.
    pub fn known(&self) -> Option<&str> {
        match self.0.as_slice() {
            [] => Some(""),
            [Bit::Plain(text)] => Some(text),
            _ => None,
        }
    }

    pub(crate) fn push(&mut self, letter: char) {
        match self.0.last_mut() {
            Some(Bit::Plain(text)) => text.push(letter),
            _ => self.0.push(Bit::Plain(letter.into())),
        }
    }

    /// The text with which it begins.
    pub(crate) fn beginning(&self) -> &str {
        if let Some(Bit::Plain(text)) = self.0.first() { text } else { "" }
    }

    /// The word without its first `length` bytes, which are text.
    pub(crate) fn without(&self, length: usize) -> Self {
        let mut bits = self.0.clone();
        if let Some(Bit::Plain(text)) = bits.first_mut() {
            *text = text.get(length..).unwrap_or_default().to_owned();
        }
        bits.retain(|bit| *bit != Bit::Plain(String::new()));
        Self(bits)
    }

    /// The two words around the first `mark` outside of variables; `None` if there is none.
    pub(crate) fn split(&self, mark: char) -> Option<(Self, Self)> {
        for (place, bit) in self.0.iter().enumerate() {
            let Bit::Plain(text) = bit else { continue };
            let Some((before, after)) = text.split_once(mark) else { continue };
            let mut left: Vec<Bit> = self.0.iter().take(place).cloned().collect();
            let mut right = vec![Bit::Plain(after.to_owned())];
            left.push(Bit::Plain(before.to_owned()));
            right.extend(self.0.iter().skip(place + 1).cloned());
            left.retain(|bit| *bit != Bit::Plain(String::new()));
            right.retain(|bit| *bit != Bit::Plain(String::new()));
            return Some((Self(left), Self(right)));
        }
        None
    }

    /// The word followed by `other`.
    pub(crate) fn joined(mut self, other: &Self) -> Self {
        for bit in &other.0 {
            match (self.0.last_mut(), bit) {
                (Some(Bit::Plain(last)), Bit::Plain(text)) => last.push_str(text),
                _ => self.0.push(bit.clone()),
            }
        }
        self
    }
}

/// A part of the data that a command sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Data {
    /// Plain text.
    Text(Word),
    /// Text to be escaped for a form: the name before `=`, and the value behind it.
    Encoded(String, Word),
    /// The content of a file; without its line ends if `true`.
    File(String, bool),
    /// The content of a file to be escaped for a form: the name before `=`, and the file.
    EncodedFile(String, String),
}

/// A part of a form with files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FormPart {
    /// Its name.
    pub name: String,
    /// Its text.
    pub value: Word,
    /// The file that has its content, in place of `value`.
    pub file: Option<String>,
    /// The file name to send, if it is a file.
    pub filename: Option<String>,
    /// Its content type.
    pub content_type: Option<String>,
    /// Further header fields.
    pub headers: Vec<(String, String)>,
}

/// A command of curl: requests that differ only in their URLs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of curl")]
pub struct Command {
    /// The line on which it begins, from 1.
    pub line: usize,
    /// The URLs.
    pub urls: Vec<Word>,
    /// The method, if it is given.
    pub method: Option<String>,
    /// Header fields, in their order.
    pub headers: Vec<(String, Word)>,
    /// Header fields that other options make, as they are given: `-A`, `-e`, `-r`, `--oauth2-bearer`.
    pub(super) made: Vec<(&'static str, Word)>,
    /// The names of header fields that it leaves out (`-H 'Name:'`), in lower case.
    pub removed: Vec<String>,
    /// Data, whose parts are joined by `&`.
    pub data: Vec<Data>,
    /// Further parts of the query (`--url-query`).
    pub url_query: Vec<Data>,
    /// Whether the data is JSON, by `--json`: its parts are joined as they are.
    pub is_json: bool,
    /// A form with files.
    pub form: Vec<FormPart>,
    /// What `-T` sends, without a type.
    pub upload: Option<Data>,
    /// The values of `-T`: the first goes to the first URL, the second to the second.
    pub(super) uploads: Vec<Word>,
    /// The file of options that is to be read next (`-K`).
    pub(super) config: Option<String>,
    /// The path that is sent in place of the URL's.
    pub(super) target: Option<String>,
    /// The value of `--aws-sigv4`.
    pub aws: Option<String>,
    /// Whether the data goes into the query (`-G`).
    pub is_query: bool,
    /// Whether it asks for the head alone (`-I`).
    pub is_head: bool,
    /// The user and the password.
    pub user: Option<Word>,
    /// Whether the user and the password answer a Digest challenge.
    pub is_digest: bool,
    /// Cookies, as a header field has them.
    pub cookies: Option<Word>,
    /// Whether it keeps the cookies that answers set (`-c`, or `-b FILE`).
    pub keeps_cookies: bool,
    /// The file with cookies that it reads (`-b FILE`).
    pub cookie_file: Option<String>,
    /// The file into which it writes cookies (`-c FILE`).
    pub cookie_jar: Option<String>,
    /// Whether it asks for compressed answers.
    pub is_compressed: bool,
    /// Whether it takes any certificate.
    pub is_insecure: bool,
    /// Whether it follows redirects.
    pub follows: bool,
    /// Whether letters such as `[` in URLs stand for themselves (`-g`).
    pub is_literal: bool,
    /// Whether `..` in paths stands for itself.
    pub is_path_as_is: bool,
    /// The version of HTTP: `1.1`, or `2`.
    pub http: Option<&'static str>,
    /// The timeout in seconds, as written.
    pub timeout: Option<String>,
    /// The timeout of connecting in seconds, as written.
    pub connect_timeout: Option<String>,
    /// Flags of the connection, by their long names in curl, with their values.
    pub connecting: Vec<(&'static str, Option<String>)>,
    /// Flags of what curl shows or keeps, as written.
    pub shown: Vec<String>,
    /// Further parts that do not become part of the request, with the reasons.
    pub left: Vec<String>,
}

impl Command {
    /// The method, given or implied.
    pub fn method(&self) -> &str {
        let has_body = !self.is_query && !self.data.is_empty() || !self.form.is_empty();
        let by_flags = if self.is_head {
            "HEAD"
        } else if self.upload.is_some() {
            "PUT"
        } else if has_body {
            "POST"
        } else {
            "GET"
        };
        self.method.as_deref().unwrap_or(by_flags)
    }

    /// Whether it says of the header field `name`, in lower case, what to send or that none is sent.
    pub fn says_of(&self, name: &str) -> bool {
        self.has_header(name) || self.removed.iter().any(|known| known == name)
    }

    pub(super) fn has_header(&self, name: &str) -> bool {
        self.headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name))
    }

    /// The parts that do not become part of the request, with the reasons. It may read cookies that a command `before` it
    /// has written.
    pub fn left_out(&self, before: &[Self]) -> Vec<String> {
        let mut left = self.left.clone();
        let unread =
            self.cookie_file.as_ref().filter(|file| before.iter().all(|one| one.cookie_jar.as_ref() != Some(file)));
        left.extend(unread.map(|file| format!("-b {file}: a file of cookies is not read")));
        left
    }

    /// The parts of the query beyond the URL's own: data of `-G` takes the place of `--url-query`, as in curl.
    pub fn query(&self) -> &[Data] {
        if self.is_query && !self.data.is_empty() { &self.data } else { &self.url_query }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_cut_at_their_text() {
        let word = Word(vec![Bit::Plain("a".into()), Bit::Variable("B".into()), Bit::Plain("c:d".into())]);
        let (left, right) = word.split(':').unwrap();
        assert_eq!(left.0.len(), 3);
        assert_eq!(right, Word::plain("d"));
        assert_eq!(word.split('x'), None);
        assert_eq!(left.clone().joined(&right).0.last(), Some(&Bit::Plain("cd".into())));
        assert_eq!(Word::plain("abc").without(1), Word::plain("bc"));
    }
}
