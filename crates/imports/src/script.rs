//! The file that an import writes: its head, its client, its body and its end.

use std::collections::BTreeSet;

use std::fmt::Write as _;

use crate::call::headers;
use crate::lua::{MOST_OF_REQUEST, comment, quoted, table, weight};
use crate::secret::Secrets;
use crate::text::Text;
use crate::{Imported, Left};

/// The most lines at the end of a file about parts that were not moved.
const MOST_LEFT: usize = 200;

/// The most entries that are listed, and one more that says that there are others.
const MOST_LISTED: usize = 1_000;
const MOST_NOTED: usize = MOST_LISTED + 1;
/// The most header fields of browsers that are named.
const MOST_OF_BROWSERS: usize = 5;
/// The most files that a script reads.
const MOST_FILES: usize = 1_000;

/// A file under construction.
#[derive(Debug, Default)]
pub(crate) struct Script {
    /// The base URL of calls.
    pub(crate) base: String,
    /// Header fields of every request.
    pub(crate) headers: Vec<(String, Text)>,
    /// Further options of the client, as Lua code.
    pub(crate) client: Vec<String>,
    /// Comments below the first line of the file.
    pub(crate) notes: Vec<String>,
    /// The code after the client and the files.
    pub(crate) body: String,
    pub(crate) secrets: Secrets,
    /// Expressions that read files, each once, as `files[1]`, `files[2]`, ….
    pub(crate) files: Vec<String>,
    pub(crate) left: Vec<Left>,
    /// What is left out on purpose, and can be had.
    pub(crate) aside: Option<String>,
    /// Header fields that browsers add by themselves, and that are left out for that, in lower case.
    pub(crate) of_browsers: BTreeSet<String>,
    /// Whether a placeholder stands for a part that was not moved.
    pub(crate) has_not_moved: bool,
}

impl Script {
    /// Lists a part that was not moved, or that means something else.
    pub(crate) fn leave(&mut self, place: impl Into<String>, what: impl Into<String>) {
        let left = Left { place: comment(&place.into(), 100), what: comment(&what.into(), 300) };
        match self.left.len() {
            MOST_NOTED.. => {}
            MOST_LISTED => self
                .left
                .push(Left { place: "the rest".to_owned(), what: "more needs a look than is listed".to_owned() }),
            _ if self.left.contains(&left) => {}
            _ => self.left.push(left),
        }
    }

    /// A placeholder expression for a part that was not moved: it raises an error where a user comes to it.
    pub(crate) fn not_moved(&mut self, place: &str, what: &str) -> String {
        self.leave(place, format!("not moved: {what}"));
        self.has_not_moved = true;
        format!("not_moved({})", quoted(&comment(&format!("{place}: {what}"), 200)))
    }

    /// The code of a request, an assignment to `answer`; or an error in its place if it is too long for a function of
    /// Lua.
    pub(crate) fn bounded(&mut self, code: String, place: &str) -> String {
        if weight(&code) <= MOST_OF_REQUEST {
            return code;
        }
        format!("answer = {}\n", self.not_moved(place, "a request of more values than a script takes"))
    }

    /// The expression for the content of a file, which is read once.
    pub(crate) fn file(&mut self, content: &str) -> String {
        let known = self.files.iter().position(|known| known == content);
        if known.is_none() && self.files.len() >= MOST_FILES {
            return self.not_moved("the files", &format!("more than {MOST_FILES}"));
        }
        let number = known.unwrap_or_else(|| {
            self.files.push(content.to_owned());
            self.files.len() - 1
        });
        format!("files[{}]", number + 1)
    }

    /// The whole file. `kind` is the kind of the document `name`.
    pub(crate) fn written(self, kind: &str, name: &str) -> Imported {
        let mut lua = format!("-- {}, from the {kind} {}.\n", "Made by brunt import", comment(name, 100));
        for note in &self.notes {
            let _ = writeln!(lua, "-- {}", comment(note, 300));
        }
        let secrets = self.secrets.names();
        if !secrets.is_empty() {
            let flags: Vec<_> = secrets.iter().map(|name| format!("--env {name}")).collect();
            let _ =
                writeln!(lua, "-- Secrets come from variables of the environment: brunt run {} FILE", flags.join(" "));
        }
        let mut client = vec![format!("base = {}", quoted(&self.base))];
        if !self.headers.is_empty() {
            client.push(format!("headers = {}", headers(&self.headers)));
        }
        client.extend(self.client);
        let _ = write!(lua, "local brunt = require \"brunt\"\nlocal http = brunt.http {}\n", table(&client));
        if self.has_not_moved {
            lua.push_str(
                "\n-- Stands for what was not moved: write it, or take it out.\nlocal function not_moved(what)\n  brunt.fail(\"not moved: \" .. what)\nend\n",
            );
        }
        if !self.files.is_empty() {
            let _ = writeln!(lua, "\nlocal files = {}", table(&self.files));
        }
        lua.push_str(&self.body);
        if !self.left.is_empty() {
            lua.push_str("\n-- What needs a look:\n");
            for left in self.left.iter().take(MOST_LEFT) {
                let _ = writeln!(lua, "-- {}", comment(&left.to_string(), 400));
            }
            if self.left.len() > MOST_LEFT {
                let _ = writeln!(lua, "-- and {} more", self.left.len() - MOST_LEFT);
            }
        }
        let of_browsers = (!self.of_browsers.is_empty()).then(|| {
            let some: Vec<_> = self.of_browsers.iter().take(MOST_OF_BROWSERS).map(String::as_str).collect();
            let more = if self.of_browsers.len() > MOST_OF_BROWSERS { ", …" } else { "" };
            format!("what browsers add by themselves ({}{more})", some.join(", "))
        });
        let aside: Vec<_> = self.aside.into_iter().chain(of_browsers).collect();
        let aside = (!aside.is_empty()).then(|| aside.join(", and "));
        Imported { lua, left: self.left, aside, secrets }
    }
}

/// The first injection of a scenario: one user, one iteration.
pub(crate) fn injection(scenario: &str) -> String {
    format!(
        "\n-- One user, once. More of them: brunt.users(10, \"1m\"), or brunt.rate(5, \"1m\") of new ones a second.\n{scenario}:inject {{ brunt.iterations_each(1, 1) }}\n"
    )
}
