//! Postman collections (2.1, 2.0): folders as groups, variables, authorization, tests as checks.

mod auth;
mod javascript;
mod request;
mod tests_moved;
mod variables;

use std::fmt::Write as _;

use variables::Variables;

use crate::lua::{MOST_OF_FUNCTION, block, comment, indented, part_of_its_own, quoted, weight};
use crate::script::{Script, injection};
use crate::value::Value;
use crate::{ImportError, Imported};

/// The most requests that are moved, and the greatest depth of folders.
const MOST: usize = 2_000;
const MOST_DEPTH: usize = 20;
/// The most requests in one function, which Lua compiles as a whole.
const MOST_TOGETHER: usize = 50;
/// The base of calls if the collection has no whole URL.
const NO_BASE: &str = "http://127.0.0.1:8080";

/// The scenario for a collection.
pub(crate) fn import(bytes: &[u8], name: &str) -> Result<Imported, ImportError> {
    let root = Value::from_json(bytes)?;
    // Postman's API wraps the collection in an object.
    let root = root.get("collection").filter(|inner| inner.get("item").is_some()).unwrap_or(&root);
    if root.get("item").is_none() {
        let what = if root.get("requests").is_some() {
            "it is a collection of version 1; export it as 2.1"
        } else {
            "it is not a Postman collection: it has no field item"
        };
        return Err(ImportError::Other(what.to_owned()));
    }
    let mut writer = Writer { variables: Variables::from_collection(root), script: Script::default(), count: 0 };
    let title = root.at(&["info", "name"]).and_then(Value::text).unwrap_or("collection").to_owned();
    writer.script.notes.push(format!("The collection {}", comment(&title, 100)));
    let holders = vec![(root, "the collection".to_owned())];
    let auth = root.get("auth").filter(|auth| is_there(auth));
    let body = writer.items(root.list_at("item"), &Inherited { auth, holders }, 0);
    if writer.count == 0 {
        return Err(ImportError::Nothing("it has no request".to_owned()));
    }
    let Writer { variables, mut script, .. } = writer;
    if script.base.is_empty() {
        NO_BASE.clone_into(&mut script.base);
    }
    let vars = variables.written(&mut script);
    script.body = format!(
        "\nlocal visit = brunt.scenario(\"visit\", function(vu)\n{}\nend)\n{}",
        indented(format!("{vars}{}", body.trim_start_matches('\n')).trim_end()),
        injection("visit")
    );
    Ok(script.written("Postman collection", name))
}

/// What a request inherits of the collection and its folders.
pub(super) struct Inherited<'c> {
    auth: Option<&'c Value>,
    /// The collection, and the folders down to the request, with their places: their scripts run with each request.
    holders: Vec<(&'c Value, String)>,
}

impl<'c> Inherited<'c> {
    fn place(&self) -> &str {
        self.holders.last().map_or("", |(_, place)| place)
    }

    /// What the items of a folder inherit.
    fn within(&self, folder: &'c Value, place: String) -> Self {
        let auth = folder.get("auth").filter(|auth| is_there(auth)).or(self.auth);
        let mut holders = self.holders.clone();
        holders.push((folder, place));
        Self { auth, holders }
    }
}

/// A scenario under construction.
struct Writer<'c> {
    variables: Variables<'c>,
    script: Script,
    count: usize,
}

impl<'c> Writer<'c> {
    /// Writes requests and folders, in their order.
    fn items(&mut self, items: &'c [Value], inherited: &Inherited<'c>, depth: usize) -> String {
        let (mut code, mut row) = (String::new(), Row::default());
        for item in items {
            let name = item.text_at("name").unwrap_or("request");
            let place = format!("{} / {}", inherited.place(), comment(name, 60));
            if item.get("item").is_some() {
                row.end(&mut code);
                if depth >= MOST_DEPTH {
                    self.script.leave(place, format!("not moved: a folder more than {MOST_DEPTH} deep"));
                    continue;
                }
                let inner = self.items(item.list_at("item"), &inherited.within(item, place), depth + 1);
                if !inner.trim().is_empty() {
                    // A `/` separates a group from an inner one.
                    let group = comment(name, 80).replace('/', " ");
                    let _ = write!(
                        code,
                        "\nbrunt.group({}, function()\n{}\nend)\n",
                        quoted(&group),
                        indented(inner.trim())
                    );
                }
                continue;
            }
            if item.get("request").is_none() {
                continue;
            }
            self.count += 1;
            if self.count > MOST {
                self.script.leave("the collection", format!("requests after the first {MOST} are left out"));
                break;
            }
            let whole = inherited.within(item, place);
            for (holder, _) in &whole.holders {
                self.variables.set_by(holder, "prerequest");
            }
            let (before, request) = self.request(item, name, &whole);
            for (holder, _) in &whole.holders {
                self.variables.set_by(holder, "test");
            }
            let (before, weight) = (format!("-- {}\n{before}", comment(name, 100)), weight(&before) + weight(&request));
            if row.count >= MOST_TOGETHER || row.count > 0 && row.weight + weight > MOST_OF_FUNCTION {
                row.end(&mut code);
            }
            let (gap, local) = if row.count > 0 { ("\n", "") } else { ("", "local ") };
            let _ = write!(row.code, "{gap}{before}{local}{request}");
            row.count += 1;
            row.weight += weight;
        }
        row.end(&mut code);
        code
    }
}

/// Whether a field has a value: null inherits, as if it were not there.
fn is_there(value: &Value) -> bool {
    *value != Value::Null
}

/// Consecutive requests, which share one local in their own block.
#[derive(Default)]
struct Row {
    code: String,
    count: usize,
    weight: usize,
    /// The weight of earlier rows in the same function.
    before: usize,
}

impl Row {
    fn end(&mut self, code: &mut String) {
        if self.count > 0 {
            self.before += self.weight;
            code.push('\n');
            code.push_str(&if self.before > MOST_OF_FUNCTION {
                part_of_its_own(&self.code)
            } else {
                block(&self.code)
            });
        }
        self.code.clear();
        (self.count, self.weight) = (0, 0);
    }
}

#[cfg(test)]
mod tests;
