//! The glossary of ARCHITECTURE.md, held against what people meet: public names, JSON keys, flags and labels of the text.
//!
//! Its last column names the synonyms that a word replaces. Prose may use them: a page for those who come from another tool
//! has to.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, ensure};
use serde_json::Value;
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Item, Token, Visibility};

use crate::files;
use crate::source::{self, Tree, plain};

/// The heading above the glossary.
const HEADING: &str = "## Words";

/// Flags that are called as in the tool whose scripts they are for: k6's.
const FOREIGN: &[&str] = &["vus"];

/// The word for each synonym that it replaces.
#[derive(Debug, PartialEq, Eq)]
pub struct Glossary(BTreeMap<String, String>);

impl Glossary {
    /// Reads the table below [`HEADING`]: word, meaning, and what it is not called, separated by commas.
    ///
    /// # Errors
    ///
    /// A text without that table, or one that forbids nothing.
    pub fn read(text: &str) -> anyhow::Result<Self> {
        let (_, below) = text.split_once(HEADING).with_context(|| format!("no heading {HEADING:?}"))?;
        let mut synonyms = BTreeMap::new();
        for line in below.lines().filter(|line| line.starts_with("| ")).skip(2) {
            let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
            let [word, _, never] = cells.as_slice() else { continue };
            let never = never.split(',').map(str::trim).filter(|synonym| !synonym.is_empty());
            synonyms.extend(never.map(|synonym| (synonym.to_lowercase(), (*word).to_owned())));
        }
        ensure!(!synonyms.is_empty(), "the glossary names no synonym");
        Ok(Self(synonyms))
    }

    /// What is wrong with a name: each of its words that is a synonym, with the word to use.
    fn complaints(&self, name: &str) -> impl Iterator<Item = (String, &str)> {
        words(name).into_iter().filter_map(|word| self.0.get(&word).map(|right| (word, right.as_str())))
    }
}

/// The words of a name in any case: `users_busy`, `UsersBusy`, `users-busy`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for character in name.chars() {
        if !character.is_alphanumeric() || (character.is_uppercase() && was_lower) {
            words.push(String::new());
        }
        was_lower = character.is_lowercase();
        if let (true, Some(last)) = (character.is_alphanumeric(), words.last_mut()) {
            last.extend(character.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Lines on every name that uses a synonym.
///
/// # Errors
///
/// A file that cannot be read, or a glossary without its table.
pub fn synonyms<'a>(folder: &Path, trees: impl IntoIterator<Item = &'a Tree>) -> anyhow::Result<Vec<String>> {
    let path = folder.join("ARCHITECTURE.md");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let glossary = Glossary::read(&text)?;
    let mut names = BTreeMap::new();
    for tree in trees {
        for file in &tree.files {
            let mut public = Public::default();
            public.visit_file(&file.syntax);
            names.extend(public.items.into_iter().map(|name| (name, "public name")));
            let own = public.flags.into_iter().filter(|flag| !FOREIGN.contains(&flag.as_str()));
            names.extend(own.map(|name| (name, "flag")));
        }
    }
    for schema in files::paths(&folder.join("crates/report/src/schema"), "json")? {
        let mut keys = Vec::new();
        json_keys(&serde_json::from_str(&std::fs::read_to_string(schema)?)?, &mut keys);
        names.extend(keys.into_iter().map(|name| (name, "JSON key")));
    }
    for golden in files::paths(&folder.join("crates/report/tests/golden"), "txt")? {
        let text = std::fs::read_to_string(golden)?;
        names.extend(text.lines().filter_map(label).map(|name| (name.to_owned(), "label")));
    }
    for kind in ["public name", "JSON key", "flag", "label"] {
        ensure!(names.values().any(|other| *other == kind), "no {kind} was found");
    }
    let complain = |(name, kind): (&String, &&str)| {
        glossary.complaints(name).map(|(word, right)| format!("{kind} {name}: {right}, not {word}")).collect::<Vec<_>>()
    };
    Ok(names.iter().flat_map(complain).collect())
}

/// The label at the beginning of a line of a report: what two blanks separate from its figures.
fn label(line: &str) -> Option<&str> {
    let (label, _) = line.trim_start().split_once("  ")?;
    (!label.is_empty() && label.chars().all(|character| character.is_alphabetic() || character == ' ')).then_some(label)
}

/// The names of all properties of a schema.
fn json_keys(schema: &Value, keys: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::Object(properties)) = fields.get("properties") {
                keys.extend(properties.keys().cloned());
            }
            fields.values().for_each(|value| json_keys(value, keys));
        }
        Value::Array(values) => values.iter().for_each(|value| json_keys(value, keys)),
        _ => {}
    }
}

/// Collects the names of items that are `pub`, and of flags, tests apart.
#[derive(Default)]
struct Public {
    items: Vec<String>,
    /// The fields of clap's structs, by which flags are called.
    flags: Vec<String>,
}

impl<'ast> Visit<'ast> for Public {
    fn visit_item(&mut self, item: &'ast Item) {
        if source::is_test(source::attributes(item)) {
            return;
        }
        let (visibility, name) = match item {
            Item::Const(item) => (&item.vis, &item.ident),
            Item::Enum(item) => (&item.vis, &item.ident),
            Item::Fn(item) => (&item.vis, &item.sig.ident),
            Item::Mod(item) => (&item.vis, &item.ident),
            Item::Struct(item) => (&item.vis, &item.ident),
            Item::Trait(item) => (&item.vis, &item.ident),
            Item::Type(item) => (&item.vis, &item.ident),
            _ => return visit::visit_item(self, item),
        };
        if matches!(visibility, Visibility::Public(_)) {
            self.items.push(plain(name));
        }
        visit::visit_item(self, item);
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        let is_args = |path: &syn::Path| path.segments.last().is_some_and(|last| last.ident == "Args");
        let derives = item.attrs.iter().filter(|attribute| attribute.path().is_ident("derive"));
        let derived = derives.filter_map(|attribute| {
            attribute.parse_args_with(Punctuated::<syn::Path, Token![,]>::parse_terminated).ok()
        });
        if derived.flatten().any(|path| is_args(&path)) {
            self.flags.extend(item.fields.iter().filter_map(|field| field.ident.as_ref()).map(plain));
        }
    }

    fn visit_impl_item_fn(&mut self, method: &'ast syn::ImplItemFn) {
        if matches!(method.vis, Visibility::Public(_)) && !source::is_test(&method.attrs) {
            self.items.push(plain(&method.sig.ident));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# Plan

## Words

| word | meaning | not |
| --- | --- | --- |
| agent | a brunt on another machine | node, slave |
| call | one request and its answer | transaction |
| check | a condition | |
";

    #[test]
    fn a_synonym_is_found_in_a_name_of_any_case() {
        let glossary = Glossary::read(TEXT).unwrap();
        let found = |name| glossary.complaints(name).map(|(word, right)| format!("{word} {right}")).collect::<Vec<_>>();
        for name in ["node_count", "NodeCount", "lost-node", "node"] {
            assert_eq!(found(name), ["node agent"], "{name}");
        }
        assert!(found("nodes").is_empty() && found("agent_calls").is_empty());
        assert_eq!(found("TransactionsOfSlave"), ["slave agent"]);
    }

    #[test]
    fn a_glossary_that_forbids_nothing_is_an_error() {
        assert!(Glossary::read("## Words\n\n| word | meaning |\n| --- | --- |\n| agent | a brunt |\n").is_err());
        assert!(Glossary::read("no heading").is_err());
    }

    #[test]
    fn names_are_read_where_people_meet_them() {
        assert_eq!(label("  error rate   0.1%"), Some("error rate"));
        assert_eq!(label("10 rounds, 95% intervals"), None);
        let mut keys = Vec::new();
        json_keys(&serde_json::json!({ "properties": { "due": { "properties": { "sent": {} } } } }), &mut keys);
        assert_eq!(keys, ["due", "sent"]);
        let mut public = Public::default();
        let text =
            "pub struct Due; struct Own; impl Due { pub fn sent(&self) {} fn own() {} } #[cfg(test)] pub struct Test;
            #[derive(Debug, clap::Args)] struct Flags { max_rate: f64 }";
        public.visit_file(&syn::parse_file(text).unwrap());
        assert_eq!(public.items, ["Due", "sent"]);
        assert_eq!(public.flags, ["max_rate"]);
    }
}
