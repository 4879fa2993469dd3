//! The Markdown that pages are written in: headings, paragraphs, lists, tables and fenced code.

/// A piece of a page.
#[derive(Debug, PartialEq, Eq)]
pub enum Part {
    Heading {
        level: usize,
        text: String,
    },
    Paragraph(String),
    Item {
        /// The number of an item, with its dot; `None` in a list without numbers.
        number: Option<String>,
        text: String,
    },
    /// A row of a table; the delimiter row is skipped.
    Row(Vec<String>),
    Code(Vec<String>),
}

/// The parts of a page, without comments.
pub fn parts(page: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    // Whether the next line may continue the last part.
    let mut is_open = false;
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let was_open = std::mem::take(&mut is_open);
        let text = line.trim();
        if line.starts_with("```") {
            parts.push(Part::Code(
                lines.by_ref().take_while(|line| !line.starts_with("```")).map(str::to_owned).collect(),
            ));
        } else if text.is_empty() || text.starts_with("<!--") {
        } else if let Some((level, heading)) = heading(text) {
            parts.push(Part::Heading { level, text: plain(heading) });
        } else if text.starts_with('|') {
            parts.extend(row(text).map(Part::Row));
        } else if let Some((number, item)) = item(line).filter(|(number, _)| {
            // As in CommonMark, a paragraph ends with an item that begins a list, and not with "2025. And so on".
            let within = was_open && matches!(parts.last(), Some(Part::Paragraph(_)));
            !within || number.as_deref().is_none_or(|number| number == "1.")
        }) {
            parts.push(Part::Item { number, text: item.to_owned() });
            is_open = true;
        } else {
            match parts.last_mut() {
                Some(Part::Paragraph(last) | Part::Item { text: last, .. }) if was_open => {
                    last.push(' ');
                    last.push_str(text);
                }
                _ => parts.push(Part::Paragraph(text.to_owned())),
            }
            is_open = true;
        }
    }
    // Markup may go on in the next line.
    for part in &mut parts {
        if let Part::Paragraph(text) | Part::Item { text, .. } = part {
            *text = plain(text);
        }
    }
    parts
}

fn heading(text: &str) -> Option<(usize, &str)> {
    let level = text.chars().take_while(|c| *c == '#').count();
    Some((level, text.trim_start_matches('#').strip_prefix(' ')?)).filter(|(level, _)| *level > 0)
}

/// The number and the text of an item that begins with this line.
fn item(line: &str) -> Option<(Option<String>, &str)> {
    if let Some(item) = line.strip_prefix("- ") {
        return Some((None, item));
    }
    let (number, item) = line.split_once(". ")?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| (Some(format!("{number}.")), item))
}

/// The cells of a row; `None` for a line of dashes.
fn row(text: &str) -> Option<Vec<String>> {
    // A bar within a cell is written `\|`.
    let escaped = text.trim_matches('|').replace("\\|", "\0");
    let cells: Vec<_> = escaped.split('|').map(|cell| plain(&cell.replace('\0', "|"))).collect();
    let is_rule = cells.iter().all(|cell| !cell.is_empty() && cell.chars().all(|c| matches!(c, '-' | ':')));
    let is_empty = cells.iter().all(String::is_empty);
    (!is_rule && !is_empty).then_some(cells)
}

/// Text without markup: links as their text, code and emphasis as they are read.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text.trim();
    let mut is_code = false;
    while let Some(c) = rest.chars().next() {
        if c == '`' {
            is_code = !is_code;
        } else if !is_code && rest.starts_with("**") {
            rest = rest.get(1..).unwrap_or_default();
        } else if let Some((link, behind)) = link(rest).filter(|_| !is_code) {
            plain.push_str(&self::plain(link));
            rest = behind;
            continue;
        } else if is_code || !is_emphasis(&plain, rest) {
            plain.push(c);
        }
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
    }
    plain
}

/// Whether `rest` begins with an asterisk that begins or ends words to stress.
fn is_emphasis(before: &str, rest: &str) -> bool {
    let Some(behind) = rest.strip_prefix('*') else { return false };
    let is_word = |c: Option<char>| c.is_some_and(|c| !c.is_whitespace());
    is_word(before.chars().last()) != is_word(behind.chars().next()) || is_word(before.chars().last())
}

/// The text of the link at the beginning of `text`, and the rest behind it.
fn link(text: &str) -> Option<(&str, &str)> {
    let (label, behind) = text.strip_prefix('[')?.split_once("](")?;
    let (_, behind) = behind.split_once(')')?;
    Some((label, behind)).filter(|(label, _)| !label.contains(']'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_have_their_numbers() {
        let item = |number: &str, text: &str| Part::Item { number: Some(number.to_owned()), text: text.to_owned() };
        assert_eq!(
            parts("1. one\n   more\n2. two\n10. ten\n\nIt was in\n2025. No item\n1. one\n"),
            [
                item("1.", "one more"),
                item("2.", "two"),
                item("10.", "ten"),
                Part::Paragraph("It was in 2025. No item".into()),
                item("1.", "one")
            ]
        );
    }

    #[test]
    fn pages_are_taken_apart() {
        let page = "# A *page*\n\nSome `co*de*`, **bold**\nand a [long\nlink](http://a/).\n\n- one\n  more\n- two\n\n<!-- not run: x -->\n\
                    ```sh\nbrunt  x\n```\n\n| a | `b\\|c` |\n| --- | --- |\n| 2 * 3 | [d](e) |\n";
        let text = |text: &str| text.to_owned();
        assert_eq!(
            parts(page),
            [
                Part::Heading { level: 1, text: text("A page") },
                Part::Paragraph(text("Some co*de*, bold and a long link.")),
                Part::Item { number: None, text: text("one more") },
                Part::Item { number: None, text: text("two") },
                Part::Code(vec![text("brunt  x")]),
                Part::Row(vec![text("a"), text("b|c")]),
                Part::Row(vec![text("2 * 3"), text("d")]),
            ]
        );
    }
}
