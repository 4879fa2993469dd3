//! Parts of a page: a heading with a link to it, and what can be taken away from it.

use std::fmt::Write as _;

use crate::markup::Html;

/// Something that a reader can take away: a file that stands in the page itself.
#[derive(Debug)]
pub(crate) struct Tool {
    name: &'static str,
    file: String,
    href: String,
}

impl Tool {
    /// `text` as a CSV file called after `id`.
    pub(crate) fn csv(id: &str, text: &str) -> Self {
        Self { name: "CSV", file: format!("{id}.csv"), href: format!("data:text/csv;charset=utf-8,{}", encoded(text)) }
    }
}

/// Text as a part of an address (RFC 3986): what could end it or be changed in it is escaped.
fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b',' | b'.' | b'-' | b'_' | b'/' | b':' | b'(' | b')' => {
                encoded.push(char::from(byte));
            }
            other => drop(write!(encoded, "%{other:02X}")),
        }
    }
    encoded
}

/// A part of the page.
#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) id: &'static str,
    pub(crate) title: String,
    /// In smaller letters beside its title.
    pub(crate) note: String,
    pub(crate) tools: Vec<Tool>,
    pub(crate) body: Html,
    /// Whether its drawings can be taken away.
    pub(crate) is_drawn: bool,
}

impl Section {
    pub(crate) fn new(id: &'static str, title: impl Into<String>) -> Self {
        Self { id, title: title.into(), note: String::new(), tools: Vec::new(), body: Html::default(), is_drawn: false }
    }

    /// Whether there is anything in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.body == Html::default()
    }

    pub(crate) fn write(&self, html: &mut Html) {
        html.raw("<section id=\"")
            .raw(self.id)
            .raw("\" aria-labelledby=\"")
            .raw(self.id)
            .raw("-title\"><div class=\"heading\"><h2 id=\"");
        html.raw(self.id).raw("-title\">").text(&self.title).raw("</h2>");
        if !self.note.is_empty() {
            html.raw(" <p class=\"faint\">").text(&self.note).raw("</p>");
        }
        html.raw("<details class=\"tools\"><summary aria-label=\"save or link ")
            .text(&self.title)
            .raw("\">save</summary><div>");
        if self.is_drawn {
            html.raw("<button type=\"button\" class=\"svg\" hidden>SVG</button> ");
        }
        for tool in &self.tools {
            html.raw("<a download=\"")
                .text(&tool.file)
                .raw("\" href=\"")
                .text(&tool.href)
                .raw("\">")
                .raw(tool.name)
                .raw("</a> ");
        }
        html.raw("<a href=\"#")
            .raw(self.id)
            .raw("\" aria-label=\"link to ")
            .text(&self.title)
            .raw("\">link</a></div></details></div>");
        html.html(&self.body).raw("</section>");
    }
}

/// The sections of a page, and links to them.
pub(crate) fn write_all(html: &mut Html, sections: &[Section]) {
    let shown = || sections.iter().filter(|section| !section.is_empty());
    html.raw("<nav id=\"contents\" aria-label=\"Contents\"><ul>");
    for section in shown() {
        html.raw("<li><a href=\"#").raw(section.id).raw("\">").text(&section.title).raw("</a></li>");
    }
    html.raw("</ul></nav>");
    for section in shown() {
        section.write(html);
    }
}

/// The command that makes it again.
pub(crate) fn repeat(command: &str) -> Section {
    let mut section = Section::new("repeat", "Run it again");
    if !command.is_empty() {
        section
            .body
            .raw("<pre tabindex=\"0\" role=\"region\" aria-label=\"command\">")
            .text(&crate::numbers::clean(command))
            .raw("</pre>");
    }
    section
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_in_an_address_stays_whole() {
        assert_eq!(encoded("a,b\n\"ü#%&\""), "a,b%0A%22%C3%BC%23%25%26%22");
    }
}
