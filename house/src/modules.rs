//! Which modules of a tree use which, by the paths that they write.
//!
//! A path counts for the module that defines what it names: a re-export is followed to its end. So
//! `use crate::Plan`, where the root says `pub use plan::Plan`, counts for `plan`.

use std::collections::{BTreeMap, HashMap};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItem, Item, TraitItem, UseTree};

use crate::source::{self, Id, ROOT, Tree, plain};

/// Uses of one module by another: from, to, and where the first of them stands.
pub type Uses = BTreeMap<(Id, Id), Place>;

/// A line of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// In [`Tree::files`].
    pub file: usize,
    pub line: usize,
}

/// Re-exports followed before a name counts as unknown. Only a circle of re-exports is longer.
const LONGEST_CHAIN: usize = 32;

/// All uses in a tree, except of a module by itself.
pub fn uses(tree: &Tree) -> Uses {
    let names = Names::collect(tree);
    let mut uses = Uses::new();
    for (id, module) in tree.modules.iter().enumerate() {
        let mut reader = Reader { names: &names, from: id, file: module.file, uses: &mut uses };
        for item in &module.items {
            reader.visit_item(item);
        }
    }
    uses
}

/// What a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Named {
    Module(Id),
    /// Something that this module defines.
    ItemIn(Id),
}

impl Named {
    fn module(self) -> Id {
        match self {
            Self::Module(id) | Self::ItemIn(id) => id,
        }
    }
}

/// What each module's scope holds.
struct Names<'a> {
    tree: &'a Tree,
    scopes: Vec<Scope>,
}

#[derive(Default)]
struct Scope {
    children: HashMap<String, Id>,
    /// Names that the module defines itself, variants and fields apart.
    own: Vec<String>,
    /// Imported names, with the paths that they stand for.
    imports: HashMap<String, Vec<String>>,
    /// Paths of `use path::*`.
    globs: Vec<Vec<String>>,
}

impl<'a> Names<'a> {
    fn collect(tree: &'a Tree) -> Self {
        let mut scopes: Vec<Scope> = tree.modules.iter().map(|module| Scope::read(&module.items)).collect();
        for (id, module) in tree.modules.iter().enumerate() {
            if let (Some(parent), Some(name)) = (module.parent, module.names.last())
                && let Some(scope) = scopes.get_mut(parent)
            {
                scope.children.insert(name.clone(), id);
            }
        }
        Self { tree, scopes }
    }

    /// What a path names where it stands in a module; none if that is outside of the tree.
    fn resolve(&self, from: Id, path: &[String], depth: usize) -> Option<Named> {
        let (first, mut rest) = path.split_first()?;
        let mut at = match first.as_str() {
            "crate" => Named::Module(ROOT),
            "self" => Named::Module(from),
            "super" => Named::Module(self.tree.modules.get(from)?.parent?),
            name => self.lookup(from, name, depth)?,
        };
        while let (Named::Module(id), Some((name, others))) = (at, rest.split_first()) {
            at = match name.as_str() {
                "self" => at,
                "super" => Named::Module(self.tree.modules.get(id)?.parent?),
                // A name that no item gives is a macro's, or made by one.
                name => self.lookup(id, name, depth).unwrap_or(Named::ItemIn(id)),
            };
            rest = others;
        }
        Some(at)
    }

    fn lookup(&self, module: Id, name: &str, depth: usize) -> Option<Named> {
        let scope = self.scopes.get(module)?;
        if let Some(&child) = scope.children.get(name) {
            return Some(Named::Module(child));
        }
        if scope.own.iter().any(|own| own == name) {
            return Some(Named::ItemIn(module));
        }
        let deeper = depth.checked_sub(1)?;
        match scope.imports.get(name) {
            // `use anyhow;` and the like stand for themselves.
            Some(path) if path.len() == 1 => None,
            Some(path) => self.resolve(module, path, deeper),
            None => scope.globs.iter().find_map(|path| {
                let Named::Module(id) = self.resolve(module, path, deeper)? else { return None };
                (id != module).then(|| self.lookup(id, name, deeper))?
            }),
        }
    }
}

impl Scope {
    fn read(items: &[Item]) -> Self {
        let mut scope = Self::default();
        for item in items {
            match item {
                Item::Use(item) => {
                    for (name, path) in leaves(&item.tree) {
                        match name {
                            Some(name) => drop(scope.imports.insert(name, path)),
                            None => scope.globs.push(path),
                        }
                    }
                }
                Item::Const(item) => scope.own.push(plain(&item.ident)),
                Item::Enum(item) => scope.own.push(plain(&item.ident)),
                Item::Fn(item) => scope.own.push(plain(&item.sig.ident)),
                Item::Static(item) => scope.own.push(plain(&item.ident)),
                Item::Struct(item) => scope.own.push(plain(&item.ident)),
                Item::Trait(item) => scope.own.push(plain(&item.ident)),
                Item::Type(item) => scope.own.push(plain(&item.ident)),
                Item::Union(item) => scope.own.push(plain(&item.ident)),
                Item::Macro(item) => scope.own.extend(item.ident.as_ref().map(plain)),
                _ => {}
            }
        }
        scope
    }
}

/// The names that a `use` brings in, with their paths; a glob has no name.
pub fn leaves(tree: &UseTree) -> Vec<(Option<String>, Vec<String>)> {
    fn walk(tree: &UseTree, path: &[String], leaves: &mut Vec<(Option<String>, Vec<String>)>) {
        let with = |name: &proc_macro2::Ident| [path, &[plain(name)]].concat();
        match tree {
            UseTree::Path(step) => walk(&step.tree, &with(&step.ident), leaves),
            UseTree::Name(leaf) if leaf.ident == "self" => leaves.push((path.last().cloned(), path.to_vec())),
            UseTree::Name(leaf) => leaves.push((Some(plain(&leaf.ident)), with(&leaf.ident))),
            UseTree::Rename(leaf) if leaf.ident == "self" => leaves.push((Some(plain(&leaf.rename)), path.to_vec())),
            UseTree::Rename(leaf) => leaves.push((Some(plain(&leaf.rename)), with(&leaf.ident))),
            UseTree::Glob(_) => leaves.push((None, path.to_vec())),
            UseTree::Group(group) => group.items.iter().for_each(|tree| walk(tree, path, leaves)),
        }
    }
    let mut found = Vec::new();
    walk(tree, &[], &mut found);
    found
}

/// Reads the paths of one module's items.
struct Reader<'a> {
    names: &'a Names<'a>,
    from: Id,
    file: usize,
    uses: &'a mut Uses,
}

impl Reader<'_> {
    fn path(&mut self, path: &[String], line: usize) {
        let Some(to) = self.names.resolve(self.from, path, LONGEST_CHAIN).map(Named::module) else { return };
        if to != self.from {
            self.uses.entry((self.from, to)).or_insert(Place { file: self.file, line });
        }
    }

    /// The paths in tokens that are no syntax yet: what macros are given, and their bodies.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path = Vec::new();
        let (mut line, mut colons) = (0, 0);
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.path(&path, line);
                        path.clear();
                    }
                    line = ident.span().start().line;
                    path.push(plain(&ident));
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                other => {
                    self.path(&path, line);
                    path.clear();
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.tokens(group.stream());
                    }
                }
            }
        }
        self.path(&path, line);
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if !source::is_test(source::attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        let attributes: &[Attribute] = match item {
            ImplItem::Const(item) => &item.attrs,
            ImplItem::Fn(item) => &item.attrs,
            ImplItem::Type(item) => &item.attrs,
            ImplItem::Macro(item) => &item.attrs,
            _ => &[],
        };
        if !source::is_test(attributes) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_trait_item(&mut self, item: &'ast TraitItem) {
        if !matches!(item, TraitItem::Fn(item) if source::is_test(&item.attrs)) {
            visit::visit_trait_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        for (_, path) in leaves(&item.tree) {
            self.path(&path, item.use_token.span.start().line);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let line = path.segments.first().map_or(0, |first| first.ident.span().start().line);
        let names: Vec<_> = path.segments.iter().map(|segment| plain(&segment.ident)).collect();
        if path.leading_colon.is_none() {
            self.path(&names, line);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        self.visit_path(&called.path);
        self.tokens(called.tokens.clone());
    }

    /// Paths in texts: `#[serde(with = "crate::wire")]`.
    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        let syn::Meta::List(list) = &attribute.meta else { return };
        for token in list.tokens.clone() {
            let TokenTree::Literal(literal) = token else { continue };
            let line = literal.span().start().line;
            let syn::Lit::Str(text) = syn::Lit::new(literal) else { continue };
            if let Ok(path) = text.parse::<syn::Path>() {
                let names: Vec<_> = path.segments.iter().map(|segment| plain(&segment.ident)).collect();
                if names.len() > 1 {
                    self.path(&names, line);
                }
            }
        }
    }
}
