//! Files of options (`-K`), as curl reads them.

/// The words for the options of a file: each as on a command line, with its value in a word of its own.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for line in text.lines() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let is_dashed = line.starts_with('-');
        let separates = |letter: char| letter.is_whitespace() || !is_dashed && matches!(letter, '=' | ':');
        let (name, rest) = line.split_at(line.find(separates).unwrap_or(line.len()));
        words.push(if is_dashed { name.to_owned() } else { format!("--{name}") });
        let value = rest.trim_start_matches(separates);
        if let Some(quoted) = value.strip_prefix('"') {
            words.push(unquoted(quoted));
        } else if let Some(value) = value.split_whitespace().next().filter(|value| !value.starts_with('#')) {
            words.push(value.to_owned());
        }
    }
    words
}

/// A text up to its quotation mark.
fn unquoted(text: &str) -> String {
    let mut made = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next().filter(|letter| *letter != '"') {
        let escaped = if letter == '\\' { letters.next().unwrap_or('\\') } else { letter };
        made.push(match (letter, escaped) {
            ('\\', 't') => '\t',
            ('\\', 'n') => '\n',
            ('\\', 'r') => '\r',
            ('\\', 'v') => '\u{b}',
            (_, other) => other,
        });
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_words() {
        let text = "# a comment\n\nurl = \"http://a/ b\"\n-d \"a=\\\"1\\\"\\n\"\nheader: X:1 # why\n--silent\ncompressed\nuser=me:pw\ndata = \"\"\n";
        let expected = [
            "--url",
            "http://a/ b",
            "-d",
            "a=\"1\"\n",
            "--header",
            "X:1",
            "--silent",
            "--compressed",
            "--user",
            "me:pw",
            "--data",
            "",
        ];
        assert_eq!(words(text), expected);
    }
}
