//! A page for a terminal.

use std::fmt::Write as _;

use brunt_report::columns;

use super::markdown::Part;

/// The widest first cell of a table with the others beside it; below a wider one they have lines of their own.
const WIDEST: usize = 26;

pub fn text(parts: &[Part], width: usize, colour: bool) -> String {
    let mut text = String::new();
    let mut last: Option<&Part> = None;
    for (place, part) in parts.iter().enumerate() {
        let goes_on =
            matches!((last, part), (Some(Part::Row(_)), Part::Row(_)) | (Some(Part::Item { .. }), Part::Item { .. }));
        if last.is_some() && !goes_on {
            text.push('\n');
        }
        match part {
            Part::Heading { text: heading, .. } => {
                let (bold, plain) = if colour { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
                let _ = writeln!(text, "{bold}{heading}{plain}");
            }
            Part::Paragraph(paragraph) => wrap(&mut text, "  ", "  ", paragraph, width),
            Part::Item { number, text: item } => {
                let mark = format!("  {} ", number.as_deref().unwrap_or("-"));
                wrap(&mut text, &mark, &" ".repeat(mark.len()), item, width);
            }
            Part::Code(lines) => lines.iter().for_each(|line| {
                let _ = writeln!(text, "{}", format!("    {line}").trim_end());
            }),
            Part::Row(cells) => row(&mut text, cells, first_width(parts, place), width),
        }
        last = Some(part);
    }
    text
}

/// Width of the first column of the table around the row at `place`.
fn first_width(parts: &[Part], place: usize) -> usize {
    let cells = |part: &Part| match part {
        Part::Row(cells) => cells.first().map(|cell| columns::width(cell)),
        _ => None,
    };
    let (before, behind) = parts.split_at(place);
    let rows = before.iter().rev().map_while(cells).chain(behind.iter().map_while(cells));
    rows.filter(|width| *width <= WIDEST).max().unwrap_or(0)
}

fn row(text: &mut String, cells: &[String], first: usize, width: usize) {
    let Some((name, others)) = cells.split_first() else { return };
    let others: Vec<_> = others.iter().filter(|cell| !cell.is_empty()).map(String::as_str).collect();
    let others = others.join(" │ ");
    let indent = " ".repeat(first + 4);
    if columns::width(name) <= first {
        wrap(text, &format!("  {}  ", columns::padded(name, first)), &indent, &others, width);
    } else {
        wrap(text, "  ", "  ", name, width);
        if !others.is_empty() {
            wrap(text, &indent, &indent, &others, width);
        }
    }
}

/// Appends `words` in lines of at most `width` columns, the first behind `first`, the others behind `rest`.
fn wrap(text: &mut String, first: &str, rest: &str, words: &str, width: usize) {
    let mut line = first.to_owned();
    let mut has_word = false;
    for word in words.split_whitespace() {
        if has_word && columns::width(&line) + 1 + columns::width(word) > width {
            let _ = writeln!(text, "{}", line.trim_end());
            rest.clone_into(&mut line);
            has_word = false;
        }
        if has_word {
            line.push(' ');
        }
        line.push_str(word);
        has_word = true;
    }
    let _ = writeln!(text, "{}", line.trim_end());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_laid_out() {
        let parts = super::super::markdown::parts(
            "# Load\n\nHow much load, and for how long it is made.\n\n| flag | |\n| --- | --- |\n| `-c N` | connections that \
             are kept open |\n\n```sh\nbrunt URL\n```\n- one\n- two\n",
        );
        assert_eq!(
            text(&parts, 32, false),
            "Load\n\n  How much load, and for how\n  long it is made.\n\n  flag\n  -c N  connections that are\n        kept \
             open\n\n    brunt URL\n\n  - one\n  - two\n"
        );
    }
}
