//! Figures of a tree's source: lines of code, functions' lengths, public items and their docs.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItem, Item, TraitItem, Visibility};

use crate::source::{self, File, Tree, lines};

/// A struct with more fields than this is listed.
pub const WIDE: usize = 20;

/// What was counted.
#[derive(Debug, Clone, Default)]
pub struct Figures {
    /// Lines with code: neither blank, nor a comment, nor of a test.
    pub code: usize,
    /// Lines of each function from its signature to its end, comments and blank lines not counted.
    pub functions: Vec<usize>,
    /// Functions that are called `of`.
    pub named_of: usize,
    /// Items that are `pub`: methods and modules too, fields and variants not.
    pub public: usize,
    /// Lines of their docs.
    pub public_docs: usize,
    /// The longest function: its lines, and where it is.
    pub longest: Option<(usize, String)>,
    /// Structs with more fields than [`WIDE`]: how many, their names, and where they are.
    pub wide: Vec<(usize, String, String)>,
}

impl Figures {
    /// Counts a whole tree.
    pub fn count(tree: &Tree) -> Self {
        let mut figures = Self::default();
        for file in &tree.files {
            figures.add(Self::count_file(file));
        }
        figures
    }

    fn count_file(file: &File) -> Self {
        let mut counter = Counter { file, figures: Self::default(), code: BTreeSet::new() };
        counter.code = code_lines(&file.text);
        let mut tests = Tests::default();
        tests.visit_file(&file.syntax);
        for (first, last) in tests.0 {
            counter.code.retain(|line| !(first..=last).contains(line));
        }
        counter.figures.code = counter.code.len();
        counter.visit_file(&file.syntax);
        counter.figures
    }

    /// Adds what was counted elsewhere.
    pub fn add(&mut self, other: Self) {
        self.code += other.code;
        self.functions.extend(other.functions);
        self.named_of += other.named_of;
        self.public += other.public;
        self.public_docs += other.public_docs;
        self.longest = self.longest.take().max(other.longest);
        self.wide.extend(other.wide);
    }

    /// The length of functions that this share of them does not exceed.
    pub fn function_quantile(&self, share: f64) -> usize {
        let mut sorted = self.functions.clone();
        sorted.sort_unstable();
        let rank = (share * sorted.len() as f64).ceil() as usize;
        sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
    }
}

/// The lines that hold a token. Docs are attributes to the parser; they are left out.
fn code_lines(text: &str) -> BTreeSet<usize> {
    fn mark(tokens: TokenStream, marked: &mut BTreeSet<usize>) {
        let tokens: Vec<_> = tokens.into_iter().collect();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            let doc = doc_length(tokens.get(at..).unwrap_or_default());
            if doc > 0 {
                at += doc;
                continue;
            }
            if let TokenTree::Group(group) = token {
                if group.delimiter() != Delimiter::None {
                    marked.insert(group.span_open().start().line);
                    marked.insert(group.span_close().end().line);
                }
                mark(group.stream(), marked);
            } else {
                let (first, last) = lines(token.span());
                marked.extend(first..=last);
            }
            at += 1;
        }
    }
    let mut marked = BTreeSet::new();
    if let Ok(tokens) = text.parse::<TokenStream>() {
        mark(tokens, &mut marked);
    }
    marked
}

/// How many tokens a doc comment at the beginning of these takes; 0 if there is none.
fn doc_length(tokens: &[TokenTree]) -> usize {
    let is_punct =
        |at: usize, wanted: char| matches!(tokens.get(at), Some(TokenTree::Punct(punct)) if punct.as_char() == wanted);
    let is_doc = |at: usize| {
        let Some(TokenTree::Group(group)) = tokens.get(at) else { return false };
        matches!(group.stream().into_iter().next(), Some(TokenTree::Ident(name)) if name == "doc")
    };
    match (is_punct(0, '#'), is_punct(1, '!')) {
        (true, false) if is_doc(1) => 2,
        (true, true) if is_doc(2) => 3,
        _ => 0,
    }
}

/// First and last lines of items that are tests.
#[derive(Default)]
struct Tests(Vec<(usize, usize)>);

impl<'ast> Visit<'ast> for Tests {
    fn visit_item(&mut self, item: &'ast Item) {
        if source::is_test(source::attributes(item)) {
            self.0.push(source::item_lines(item));
        } else {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if source::is_test(&item.attrs) {
            self.0.push(lines(item.span()));
        }
    }
}

/// Counts functions and public items.
struct Counter<'a> {
    file: &'a File,
    figures: Figures,
    code: BTreeSet<usize>,
}

impl Counter<'_> {
    fn function(&mut self, signature: &syn::Signature, end: usize) {
        let first = signature.span().start().line;
        let length = self.code.range(first..=end).count();
        self.figures.functions.push(length);
        if signature.ident == "of" {
            self.figures.named_of += 1;
        }
        let place = format!("{}:{first}", self.file.path.display());
        self.figures.longest = self.figures.longest.take().max(Some((length, place)));
    }

    fn public(&mut self, visibility: &Visibility, attributes: &[Attribute]) {
        if matches!(visibility, Visibility::Public(_)) {
            self.figures.public += 1;
            self.figures.public_docs += doc_lines(attributes);
        }
    }
}

fn doc_lines(attributes: &[Attribute]) -> usize {
    let docs = attributes.iter().filter(|attribute| attribute.path().is_ident("doc"));
    docs.map(|doc| lines(doc.span()).1 - lines(doc.span()).0 + 1).sum()
}

impl<'ast> Visit<'ast> for Counter<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if source::is_test(source::attributes(item)) {
            return;
        }
        let visibility = match item {
            Item::Const(item) => Some(&item.vis),
            Item::Enum(item) => Some(&item.vis),
            Item::Fn(item) => Some(&item.vis),
            Item::Mod(item) => Some(&item.vis),
            Item::Static(item) => Some(&item.vis),
            Item::Struct(item) => Some(&item.vis),
            Item::Trait(item) => Some(&item.vis),
            Item::Type(item) => Some(&item.vis),
            Item::Union(item) => Some(&item.vis),
            _ => None,
        };
        if let Some(visibility) = visibility {
            self.public(visibility, source::attributes(item));
        }
        visit::visit_item(self, item);
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        let fields = item.fields.len();
        if fields > WIDE {
            let place = format!("{}:{}", self.file.path.display(), item.ident.span().start().line);
            self.figures.wide.push((fields, item.ident.to_string(), place));
        }
        visit::visit_item_struct(self, item);
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig, item.span().end().line);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        match item {
            ImplItem::Fn(item) if source::is_test(&item.attrs) => return,
            ImplItem::Fn(item) => {
                self.public(&item.vis, &item.attrs);
                self.function(&item.sig, item.span().end().line);
            }
            ImplItem::Const(item) => self.public(&item.vis, &item.attrs),
            _ => {}
        }
        visit::visit_impl_item(self, item);
    }

    fn visit_trait_item(&mut self, item: &'ast TraitItem) {
        if let TraitItem::Fn(item) = item
            && item.default.is_some()
        {
            self.function(&item.sig, item.span().end().line);
        }
        visit::visit_trait_item(self, item);
    }
}
