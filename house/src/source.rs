//! A crate's source: its files, read into a tree of modules. Tests are left out.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use proc_macro2::{Ident, Span};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned as _;
use syn::{Attribute, Item, Meta, Token, Visibility};

/// A module's place in [`Tree::modules`].
pub type Id = usize;

/// The feature behind which the engine keeps what tests alone use.
const TEST_FEATURE: &str = "simulation";

/// The root module's place.
pub const ROOT: Id = 0;

/// A source file.
pub struct File {
    pub path: PathBuf,
    pub text: String,
    pub syntax: syn::File,
}

/// A module: a file's, or an inline one.
pub struct Module {
    /// Names from the crate's root down; empty for the root itself.
    pub names: Vec<String>,
    pub parent: Option<Id>,
    /// Whether it is declared `pub`; true of the root.
    pub is_public: bool,
    /// The place of its file in [`Tree::files`].
    pub file: usize,
    /// Its items, without tests and without child modules.
    pub items: Vec<Item>,
}

/// All modules of one library or program.
#[derive(Default)]
pub struct Tree {
    pub files: Vec<File>,
    /// Parents stand before their children; the root is first.
    pub modules: Vec<Module>,
}

impl Tree {
    /// Reads the tree whose root is the file at `path`. That of a crate of tests (`#![cfg(test)]`) is empty.
    ///
    /// # Errors
    ///
    /// A file that is missing or that is not Rust.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let mut tree = Self::default();
        let folder = path.parent().context("a root file without a folder")?;
        tree.file_module(path, folder, &[], (None, true))?;
        Ok(tree)
    }

    /// The module's path as Rust writes it; `crate` for the root.
    pub fn name(&self, id: Id) -> String {
        match self.modules.get(id) {
            Some(module) if !module.names.is_empty() => module.names.join("::"),
            _ => "crate".to_owned(),
        }
    }

    /// Whether one of the two is the other or contains it.
    pub fn related(&self, one: Id, other: Id) -> bool {
        let (Some(one), Some(other)) = (self.modules.get(one), self.modules.get(other)) else { return false };
        one.names.starts_with(&other.names) || other.names.starts_with(&one.names)
    }

    /// Reads the file of a module; `folder` is where the files of its children are, `declared` its parent and whether it is `pub`.
    fn file_module(
        &mut self,
        path: &Path,
        folder: &Path,
        names: &[String],
        declared: (Option<Id>, bool),
    ) -> anyhow::Result<()> {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let syntax = syn::parse_file(&text).with_context(|| format!("{} is not Rust", path.display()))?;
        if is_test(&syntax.attrs) {
            return Ok(());
        }
        let items = syntax.items.clone();
        self.files.push(File { path: path.to_owned(), text, syntax });
        self.module(items, self.files.len() - 1, folder, names, declared)
    }

    fn module(
        &mut self,
        items: Vec<Item>,
        file: usize,
        folder: &Path,
        names: &[String],
        (parent, is_public): (Option<Id>, bool),
    ) -> anyhow::Result<()> {
        let id = self.modules.len();
        let (children, items): (Vec<Item>, Vec<Item>) =
            items.into_iter().filter(|item| !is_test(attributes(item))).partition(|item| matches!(item, Item::Mod(_)));
        self.modules.push(Module { names: names.to_vec(), parent, is_public, file, items });
        for child in children {
            let Item::Mod(child) = child else { continue };
            let name = plain(&child.ident);
            let names = [names, std::slice::from_ref(&name)].concat();
            let below = folder.join(&name);
            let declared = (Some(id), matches!(child.vis, Visibility::Public(_)));
            if let Some((_, items)) = child.content {
                self.module(items, file, &below, &names, declared)?;
                continue;
            }
            let beside = match path_attribute(&child.attrs) {
                Some(path) => self.beside(file, &path),
                None => folder.join(format!("{name}.rs")),
            };
            let path = if beside.exists() { beside } else { below.join("mod.rs") };
            self.file_module(&path, &below, &names, declared)?;
        }
        Ok(())
    }

    fn beside(&self, file: usize, path: &str) -> PathBuf {
        let folder = self.files.get(file).and_then(|file| file.path.parent());
        folder.map_or_else(|| path.into(), |folder| folder.join(path))
    }
}

/// An identifier without `r#`.
pub fn plain(ident: &Ident) -> String {
    let text = ident.to_string();
    text.strip_prefix("r#").map_or(text.clone(), str::to_owned)
}

/// First and last line of a span, from 1.
pub fn lines(span: Span) -> (usize, usize) {
    (span.start().line, span.end().line)
}

/// First and last line of an item with its attributes.
pub fn item_lines(item: &Item) -> (usize, usize) {
    lines(item.span())
}

/// Whether attributes leave an item to tests alone: `#[cfg(test)]` `#[test]`, or a feature for tests.
pub fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg") && attribute.parse_args::<Meta>().is_ok_and(|meta| needs_test(&meta))
    })
}

/// Whether a condition of `cfg` holds in tests alone.
fn needs_test(meta: &Meta) -> bool {
    let list = match meta {
        Meta::List(list) => list,
        Meta::NameValue(_) => return is_feature(meta, TEST_FEATURE),
        Meta::Path(path) => return path.is_ident("test"),
    };
    let Ok(parts) = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated) else { return false };
    match list.path.get_ident().map(ToString::to_string).as_deref() {
        Some("all") => parts.iter().any(needs_test),
        Some("any") => !parts.is_empty() && parts.iter().all(needs_test),
        _ => false,
    }
}

fn is_feature(meta: &Meta, name: &str) -> bool {
    meta.path().is_ident("feature") && value(meta).is_some_and(|value| value == name)
}

/// The text of `name = "text"`.
fn value(meta: &Meta) -> Option<String> {
    let Meta::NameValue(pair) = meta else { return None };
    let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) = &pair.value else { return None };
    Some(text.value())
}

/// The file that `#[path = "…"]` names.
fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().find(|attribute| attribute.path().is_ident("path")).and_then(|attribute| value(&attribute.meta))
}

/// An item's attributes.
pub fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
