//! The parts of pages: the file around them, sections, tables and drawings.
//!
//! A page is complete without a script. Its scripts add interaction: zooming, pointing, sorting, opening. No other
//! script may run in it, and it fetches nothing: its content security policy names the scripts' hashes (CSP Level 3,
//! section 2.3.1).

mod plots;
mod section;
mod table;

use std::io::{self, Write};
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::markup::Html;
pub(crate) use plots::{ACROSS, Across, Label, Mark, Panel, Plots, Point, Scale, Unit, change, percentile, steps};
pub(crate) use section::{Section, Tool, repeat, write_all};
pub(crate) use table::{Cell, Column, Table};

const STYLE: &str = include_str!("assets/style.css");
/// Runs before anything is drawn: marks that there are scripts.
const BEGIN: &str = "document.documentElement.classList.add(\"scripted\")";
const CHARTS: &str = include_str!("assets/charts.js");
const TABLES: &str = include_str!("assets/tables.js");
const LIVE: &str = include_str!("assets/live.js");

/// The actions for readers.
const KEYS: &str = "Drag in a chart over time to zoom, double-click to see all. With the keyboard, arrows move from point to point, + and - zoom, \
                    Escape shows all.";

/// The text before the title, for a file and for a page that follows a run.
static HEADS: LazyLock<[String; 2]> = LazyLock::new(|| {
    let policy = |scripts: &[&str], connects: &str| {
        let hash = |text: &&str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text.as_bytes())));
        let scripts = scripts.iter().map(hash).collect::<Vec<_>>().join(" ");
        format!(
            "default-src 'none'; script-src {scripts}; style-src {}; img-src data:;{connects} base-uri 'none'; form-action 'none'",
            hash(&STYLE)
        )
    };
    let head = |policy: String| {
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, \
             initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<meta http-equiv=\"Content-Security-Policy\" \
             content=\"{policy}\">\n<link rel=\"icon\" href=\"data:,\">\n<script>{BEGIN}</script>\n<style>{STYLE}</style>\n<title>brunt "
        )
    };
    [head(policy(&[BEGIN, CHARTS, TABLES], "")), head(policy(&[BEGIN, CHARTS, TABLES, LIVE], " connect-src 'self';"))]
});

/// A page: its window's title, and its content.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Page {
    title: String,
    main: String,
}

impl Page {
    /// A page with these parts; `title` comes from elsewhere and is text.
    pub(crate) fn new(title: String, mut main: Html) -> Self {
        main.raw("<footer id=\"keys\" class=\"faint\"><p>").raw(KEYS).raw("</p></footer>");
        Self { title, main: main.into_string() }
    }

    /// The same behind ways to other pages.
    pub(crate) fn behind(mut self, ways: &Html) -> Self {
        let mut main = ways.clone().into_string();
        main.push_str(&self.main);
        self.main = main;
        self
    }

    /// Writes it as one file.
    pub(crate) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let [head, _] = &*HEADS;
        self.write_after(out, head, &[CHARTS, TABLES])
    }

    fn write_after(&self, out: &mut impl Write, head: &str, scripts: &[&str]) -> io::Result<()> {
        let mut title = Html::default();
        title.text(&self.title);
        write!(
            out,
            "{head}{}</title>\n</head>\n<body>\n<main id=\"report\">{}</main>\n",
            title.into_string(),
            self.main
        )?;
        for script in scripts {
            writeln!(out, "<script>{script}</script>")?;
        }
        out.write_all(b"</body>\n</html>\n")
    }

    /// The content that replaces that of a page that follows, as JSON in a line.
    pub(crate) fn event(&self) -> io::Result<String> {
        Ok(serde_json::to_string(self)?)
    }
}

/// The page that follows a run. It gets its content from `events` beside it: server-sent events called `data`, and a
/// last one called `finished`, each with the result of [`Page::event`].
pub(crate) fn following() -> String {
    let mut main = Html::default();
    main.raw("<header><h1><span class=\"brand\">brunt</span> live</h1></header><p id=\"problem\" role=\"status\">waiting for the run: its first figures stand here after a second. If nothing comes, brunt has ended; start it again with --live</p>");
    let page = Page { title: String::new(), main: main.into_string() };
    let [_, head] = &*HEADS;
    let mut bytes = Vec::new();
    // Writing into memory cannot fail.
    let _ = page.write_after(&mut bytes, head, &[CHARTS, TABLES, LIVE]);
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_script_ends_its_own_element() {
        for text in [BEGIN, CHARTS, TABLES, LIVE, STYLE] {
            assert!(!text.contains("</script") && !text.contains("</style") && !text.contains("<!--"));
        }
    }

    #[test]
    fn only_what_stands_in_a_page_may_run_in_it() {
        let mut bytes = Vec::new();
        Page::new("</title><script>".to_owned(), Html::default()).write(&mut bytes).unwrap();
        let page = String::from_utf8(bytes).unwrap();
        let scripts: Vec<_> =
            page.split("<script>").skip(1).map(|rest| rest.split("</script>").next().unwrap()).collect();
        assert_eq!(scripts.len(), 3);
        for script in scripts {
            let hash = STANDARD.encode(Sha256::digest(script.as_bytes()));
            assert!(page.contains(&format!("'sha256-{hash}'")));
        }
        assert!(!page.contains("connect-src") && following().contains("connect-src 'self'"));
    }
}
