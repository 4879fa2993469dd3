//! A page for `man`, in roff with the macros of man(7).

use std::fmt::Write as _;

use super::markdown::Part;

pub fn text(name: &str, about: &str, parts: &[Part]) -> String {
    let mut text = format!(
        ".TH brunt\\-{} 7 \"\" \"brunt {}\" brunt\n.SH NAME\nbrunt\\-{} \\- {}\n",
        escaped(name),
        env!("CARGO_PKG_VERSION"),
        escaped(name),
        escaped(about)
    );
    for part in parts {
        match part {
            Part::Heading { level: 1, text: heading } => {
                let _ = writeln!(text, ".SH {}", quoted(&heading.to_uppercase()));
            }
            Part::Heading { level: 2, text: heading } => {
                let _ = writeln!(text, ".SH {}", quoted(heading));
            }
            Part::Heading { text: heading, .. } => {
                let _ = writeln!(text, ".SS {}", quoted(heading));
            }
            Part::Paragraph(paragraph) => {
                let _ = writeln!(text, ".PP\n{}", escaped(paragraph));
            }
            Part::Item { number: None, text: item } => {
                let _ = writeln!(text, ".IP \\(bu 2\n{}", escaped(item));
            }
            Part::Item { number: Some(number), text: item } => {
                let _ = writeln!(text, ".IP {number} 4\n{}", escaped(item));
            }
            Part::Row(cells) => {
                let Some((first, others)) = cells.split_first() else { continue };
                let others: Vec<_> = others.iter().filter(|cell| !cell.is_empty()).map(|cell| escaped(cell)).collect();
                let _ = writeln!(text, ".TP\n{}\n{}", escaped(first), others.join("; "));
            }
            Part::Code(lines) => {
                let lines: Vec<_> = lines.iter().map(|line| escaped(line)).collect();
                let _ = writeln!(text, ".PP\n.RS 4\n.nf\n{}\n.fi\n.RE", lines.join("\n"));
            }
        }
    }
    text
}

/// A section with its lines unchanged.
pub fn as_it_is(heading: &str, text: &str) -> String {
    let lines: Vec<_> = text.lines().map(escaped).collect();
    format!(".SH {}\n.nf\n{}\n.fi\n", quoted(heading).trim_matches('"'), lines.join("\n"))
}

/// A line of text in which nothing is a request or an escape.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}

/// An argument of a macro.
fn quoted(text: &str) -> String {
    format!("\"{}\"", escaped(text).replace('"', "\\(dq"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_page_is_taken_for_a_request() {
        let parts = super::super::markdown::parts(
            "# A\n\n.PP is text\n\n```sh\nbrunt -d 5s \\\n  'x'\n```\n\n| `-c` | many |\n",
        );
        let page = text("load", "how much", &parts);
        assert!(page.contains("brunt\\-load \\- how much\n.SH \"A\"\n.PP\n\\&.PP is text\n"), "{page}");
        assert!(page.contains(".nf\nbrunt \\-d 5s \\e\n  'x'\n.fi"), "{page}");
        assert!(page.ends_with(".TP\n\\-c\nmany\n"), "{page}");
    }
}
