//! Names: of files, and of the types that crates make public.
//!
//! A file is named by its one idea. A public type's name means one thing for everybody who can see it: no crate makes two types
//! of one name public, nor one that a crate below it has.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Item, LitStr, Macro, Visibility};

use crate::arrows::Package;
use crate::files;
use crate::modules::leaves;
use crate::source::{Id, ROOT, Tree, attributes, is_test, plain};

/// Names of files that say nothing: every file has words and names in it.
const VAGUE: &[&str] = &["common.rs", "helpers.rs", "misc.rs", "names.rs", "util.rs", "utils.rs", "words.rs"];

/// Types that share their name with a thing outside of the code.
const FOREIGN: &[&str] = &["JavaScript", "MetricFamily", "WebSocket"];

/// Files whose name names no idea, or only repeats that of their folder.
///
/// # Errors
///
/// A folder that cannot be read.
pub fn vague_files(packages: &[Package]) -> anyhow::Result<Vec<PathBuf>> {
    let mut vague = BTreeSet::new();
    for package in packages {
        vague.extend(files::paths(&package.folder, "rs")?.into_iter().filter(|path| is_vague(path)));
    }
    Ok(vague.into_iter().collect())
}

/// Folders that may hold code for one operating system. All other code is the same everywhere.
const OF_ONE_SYSTEM: &[&str] =
    &["crates/engine/src/transport/", "crates/cli/src/machine/", "crates/allocator/", "crates/testbed/"];

/// Files outside of these folders with code for one operating system.
///
/// # Errors
///
/// A file that cannot be read.
pub fn of_one_system(folder: &Path, packages: &[Package]) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = BTreeSet::new();
    for path in packages
        .iter()
        .map(|package| files::paths(&package.folder.join("src"), "rs"))
        .collect::<Result<Vec<_>, _>>()?
        .concat()
    {
        let seen = path.strip_prefix(folder).unwrap_or(&path).display().to_string();
        let may_be = OF_ONE_SYSTEM.iter().any(|place| seen.starts_with(place));
        if !may_be && names_a_system(&std::fs::read_to_string(&path)?) {
            files.insert(path);
        }
    }
    Ok(files.into_iter().collect())
}

/// Whether code, comments apart, asks for a system or calls what one alone has.
pub fn names_a_system(code: &str) -> bool {
    let code = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.into_iter().any(|line| ["target_os", "rustix::linux", "std::os::linux"].iter().any(|name| line.contains(name)))
}

fn is_vague(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let repeats = path.file_stem() == path.parent().and_then(Path::file_name);
    repeats || VAGUE.contains(&name)
}

/// Public types of one name: two of one crate, or one of a crate and one of another that it uses.
pub fn doubled_types(packages: &[Package], trees: &[(&Package, Tree)]) -> Vec<String> {
    let mut types: BTreeMap<&str, BTreeMap<String, Vec<String>>> = BTreeMap::new();
    for (package, tree) in trees {
        let of_package = types.entry(&package.name).or_default();
        for (name, module) in public_types(tree) {
            of_package.entry(name).or_default().push(format!("{} {module}", package.name));
        }
    }
    let mut doubled = Vec::new();
    for package in packages {
        for (name, own) in types.get(package.name.as_str()).into_iter().flatten() {
            let below = package.uses.iter().filter_map(|used| types.get(used.as_str())?.get(name));
            let places: Vec<_> = own.iter().chain(below.flatten()).map(String::as_str).collect();
            if places.len() > 1 {
                doubled.push(format!("{name}: {}", places.join(", ")));
            }
        }
    }
    doubled
}

/// The types and traits that other crates can name, each with the module that defines it.
pub fn public_types(tree: &Tree) -> BTreeSet<(String, String)> {
    let mut types = BTreeSet::new();
    let mut seen = BTreeSet::new();
    collect(tree, ROOT, &mut types, &mut seen);
    types
}

/// Adds what the module `id` makes public, itself, by its public children and by `pub use`.
fn collect(tree: &Tree, id: Id, types: &mut BTreeSet<(String, String)>, seen: &mut BTreeSet<Id>) {
    let Some(module) = tree.modules.get(id) else { return };
    if !seen.insert(id) {
        return;
    }
    for item in &module.items {
        if let Some(name) = public_type(item) {
            types.insert((name, tree.name(id)));
        }
        if let Item::Use(item) = item
            && matches!(item.vis, Visibility::Public(_))
        {
            for (name, path) in leaves(&item.tree) {
                re_export(tree, id, name.as_deref(), &path, types, seen);
            }
        }
    }
    let children = tree.modules.iter().enumerate().filter(|(_, child)| child.parent == Some(id) && child.is_public);
    for (child, _) in children {
        collect(tree, child, types, seen);
    }
}

/// Adds what `pub use path as name` in a module makes public; without a name it is a glob. What others define is theirs.
fn re_export(
    tree: &Tree,
    from: Id,
    name: Option<&str>,
    path: &[String],
    types: &mut BTreeSet<(String, String)>,
    seen: &mut BTreeSet<Id>,
) {
    let Some(name) = name else {
        if let Some(module) = module_at(tree, from, path) {
            collect(tree, module, types, seen);
        }
        return;
    };
    let Some((last, parents)) = path.split_last() else { return };
    let Some(module) = module_at(tree, from, parents) else { return };
    let items = tree.modules.get(module).map(|module| module.items.as_slice()).unwrap_or_default();
    if items.iter().any(|item| public_type(item).as_ref() == Some(last)) {
        types.insert((name.to_owned(), tree.name(module)));
        return;
    }
    // It may be re-exported there in turn.
    for item in items {
        let Item::Use(item) = item else { continue };
        for (inner, path) in leaves(&item.tree) {
            if inner.as_ref() == Some(last) && path.as_slice() != parents && path.len() > 1 {
                re_export(tree, module, Some(name), &path, types, seen);
            }
        }
    }
}

/// The module that a path names from `from`; none if it is another crate's.
fn module_at(tree: &Tree, from: Id, path: &[String]) -> Option<Id> {
    let mut at = from;
    for (place, name) in path.iter().enumerate() {
        at = match name.as_str() {
            "crate" if place == 0 => ROOT,
            "self" => at,
            "super" => tree.modules.get(at)?.parent?,
            name => tree
                .modules
                .iter()
                .position(|module| module.parent == Some(at) && module.names.last().is_some_and(|last| last == name))?,
        };
    }
    Some(at)
}

/// Names of types within texts, each with its crate and the text: a label that was renamed along with a type.
///
/// Only names of several words count, as others are words of any text.
pub fn types_in_texts(trees: &[(&Package, Tree)]) -> Vec<String> {
    let mut names = BTreeSet::new();
    for (_, tree) in trees {
        let items = tree.modules.iter().flat_map(|module| &module.items);
        names.extend(items.filter_map(type_name).filter(|name| {
            name.chars().filter(|character| character.is_uppercase()).count() > 1 && !FOREIGN.contains(&name.as_str())
        }));
    }
    let mut found = BTreeSet::new();
    for (package, tree) in trees {
        let mut texts = Texts::default();
        tree.modules.iter().flat_map(|module| &module.items).for_each(|item| texts.visit_item(item));
        for text in texts.0 {
            let mut words = text.split(|character: char| !character.is_alphanumeric() && character != '_');
            if words.any(|word| names.contains(word)) {
                found.insert(format!("{}: {text}", package.name));
            }
        }
    }
    found.into_iter().collect()
}

/// The texts of code, tests and attributes apart.
#[derive(Default)]
struct Texts(Vec<String>);

impl Texts {
    fn of_tokens(&mut self, tokens: TokenStream) {
        let mut is_attribute = false;
        for token in tokens {
            let was_attribute =
                std::mem::replace(&mut is_attribute, matches!(&token, TokenTree::Punct(sign) if sign.as_char() == '#'));
            match token {
                TokenTree::Group(_) if was_attribute => {}
                TokenTree::Group(group) => self.of_tokens(group.stream()),
                TokenTree::Literal(literal) => {
                    self.0.extend(syn::parse_str::<LitStr>(&literal.to_string()).ok().map(|text| text.value()));
                }
                TokenTree::Ident(_) | TokenTree::Punct(_) => {}
            }
        }
    }
}

impl<'ast> Visit<'ast> for Texts {
    fn visit_item(&mut self, item: &'ast Item) {
        let is_definition = matches!(item, Item::Macro(item) if item.ident.is_some());
        if !is_definition && !is_test(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}

    // What `Debug` shows is for whoever reads the code.
    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        self.visit_expr(&call.receiver);
        if !call.method.to_string().starts_with("debug_") {
            call.args.iter().for_each(|argument| self.visit_expr(argument));
        }
    }

    fn visit_lit_str(&mut self, text: &'ast LitStr) {
        self.0.push(text.value());
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        self.of_tokens(call.tokens.clone());
    }
}

/// The name of a type or trait.
fn type_name(item: &Item) -> Option<String> {
    Some(plain(match item {
        Item::Enum(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        _ => return None,
    }))
}

/// The name of a public type or trait.
fn public_type(item: &Item) -> Option<String> {
    let (visibility, name) = match item {
        Item::Enum(item) => (&item.vis, &item.ident),
        Item::Struct(item) => (&item.vis, &item.ident),
        Item::Trait(item) => (&item.vis, &item.ident),
        Item::Type(item) => (&item.vis, &item.ident),
        Item::Union(item) => (&item.vis, &item.ident),
        _ => return None,
    };
    matches!(visibility, Visibility::Public(_)).then(|| plain(name))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn package(name: &str, uses: &[&str]) -> Package {
        let uses = uses.iter().map(|&name| name.to_owned()).collect();
        Package { name: name.to_owned(), folder: PathBuf::new(), roots: Vec::new(), uses }
    }

    /// The tree of a crate with these files.
    fn tree(crate_name: &str, files: &[(&str, &str)]) -> Tree {
        let folder = std::env::temp_dir().join(format!("brunt-house-naming-{}-{crate_name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for (path, text) in files {
            fs::write(folder.join(path), text).unwrap();
        }
        let tree = Tree::read(&folder.join("lib.rs")).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        tree
    }

    #[test]
    fn a_file_is_named_by_its_idea() {
        for (path, vague) in [
            ("src/words.rs", true),
            ("src/text/names.rs", true),
            ("src/gate/gate.rs", true),
            ("src/util.rs", true),
            ("src/gate/mod.rs", false),
            ("src/request_names.rs", false),
        ] {
            assert_eq!(is_vague(Path::new(path)), vague, "{path}");
        }
    }

    #[test]
    fn what_a_crate_makes_public_is_found() {
        let lib = "mod hidden;\npub mod open;\npub use hidden::Shown;\npub use other::Foreign;\npub struct Root;\nstruct Own;";
        let hidden = "pub struct Shown;\npub struct NotShown;\npub(crate) struct Inner;";
        let open = "pub trait Open {}\npub use crate::hidden::Shown as Renamed;\n#[cfg(test)]\npub struct Test;";
        let tree = tree("public", &[("lib.rs", lib), ("hidden.rs", hidden), ("open.rs", open)]);
        let names: Vec<_> = public_types(&tree).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["Open", "Renamed", "Root", "Shown"]);
    }

    #[test]
    fn one_name_for_two_public_types_is_found_where_one_crate_uses_the_other() {
        let packages = [package("below", &[]), package("beside", &[]), package("above", &["below"])];
        let sources = ["pub struct Part;", "pub enum Part {}", "pub mod a { pub struct Part; }\npub struct Other;"];
        let trees: Vec<_> = packages
            .iter()
            .zip(sources)
            .map(|(package, text)| (package, tree(&format!("pair-{}", package.name), &[("lib.rs", text)])))
            .collect();
        assert_eq!(doubled_types(&packages, &trees), ["Part: above a, below crate"]);
    }

    #[test]
    fn a_text_with_the_name_of_a_type_is_found() {
        let text = "struct KeptKind;\nenum Kind {}\nconst A: &str = \"<label>KeptKind<select>\";
            fn shown() -> String { format!(\"{} is no Kind\", call(\"of KeptKinds\")) }
            fn told() { println!(\"the KeptKind {}\", 1); }
            #[serde(rename = \"KeptKind\")] struct Other;
            #[cfg(test)] mod tests { const A: &str = \"KeptKind of tests\"; }";
        let packages = [package("one", &[])];
        let found = types_in_texts(&[(&packages[0], tree("texts", &[("lib.rs", text)]))]);
        assert_eq!(found, ["one: <label>KeptKind<select>", "one: the KeptKind {}"]);
    }

    #[test]
    fn one_crate_has_one_public_type_of_a_name() {
        let packages = [package("one", &[])];
        let trees = [(&packages[0], tree("twice", &[("lib.rs", "pub struct Part;\npub mod a { pub struct Part; }")]))];
        assert_eq!(doubled_types(&packages, &trees), ["Part: one a, one crate"]);
    }
}
