//! The tool on made-up crates.

use std::fs;
use std::path::PathBuf;

use crate::circles::{Circle, circles, folder_circles};
use crate::figures::Figures;
use crate::modules::{self, Uses};
use crate::source::Tree;

/// A crate's `src` in a temporary folder.
struct Made {
    folder: PathBuf,
    tree: Tree,
    uses: Uses,
}

impl Drop for Made {
    fn drop(&mut self) {
        // Best effort: a folder left behind harms nobody.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn made(name: &str, files: &[(&str, &str)]) -> Made {
    let folder = std::env::temp_dir().join(format!("brunt-house-{}-{name}", std::process::id()));
    for (path, text) in files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let tree = Tree::read(&folder.join("lib.rs")).unwrap();
    let uses = modules::uses(&tree);
    Made { folder, tree, uses }
}

impl Made {
    fn named(&self, circles: &[Circle]) -> Vec<String> {
        let name = |circle: &Circle| circle.iter().map(|&id| self.tree.name(id)).collect::<Vec<_>>().join(" ");
        circles.iter().map(name).collect()
    }

    fn circles(&self) -> Vec<String> {
        self.named(&circles(&self.tree, &self.uses))
    }

    fn folder_circles(&self) -> Vec<String> {
        self.named(&folder_circles(&self.tree, &self.uses))
    }
}

/// The circles of modules `a` and `b`, where `b` uses `a`, and this is in `a`.
fn with_in_a(name: &str, text: &str) -> Vec<String> {
    let b = "use crate::a::A;\npub struct B(A);\npub const N: u8 = 1;\npub fn f() {}";
    let a = format!("pub struct A;\n{text}");
    made(name, &[("lib.rs", "mod a;\nmod b;\npub use b::B;"), ("a.rs", &a), ("b.rs", b)]).circles()
}

#[test]
fn every_kind_of_path_makes_a_circle() {
    for (name, text) in [
        ("use", "use crate::b::B;"),
        ("group", "use crate::{b::{N, f}};"),
        ("super", "use super::b;"),
        ("glob", "use crate::b::*;"),
        ("type", "pub struct C { b: crate::b::B }"),
        ("expression", "fn g() -> u8 { super::b::N }"),
        ("inner-use", "fn g() { use crate::b::f; f(); }"),
        ("macro", "fn g() { println!(\"{}\", crate::b::N); }"),
        ("macro-rules", "macro_rules! m { () => { $crate::b::f() } }"),
        ("serde", "pub struct C { #[serde(with = \"crate::b\")] #[serde(default = \"crate::b::f\")] c: u8 }"),
        ("visibility", "impl crate::b::B { fn g() {} }"),
        ("re-export", "use crate::B;"),
        ("glob-re-export", "use crate::*;\nfn g(_: B) {}"),
    ] {
        assert_eq!(with_in_a(name, text), ["a b"], "{text}");
    }
}

#[test]
fn what_names_nothing_of_the_other_makes_none() {
    for (name, text) in [
        ("nothing", ""),
        ("other-crate", "use serde::b::B;\nfn g() { std::b::f(); }"),
        ("comment", "// use crate::b::B;\n/// [`crate::b::B`]\nfn g() {}"),
        ("text", "const T: &str = \"crate::b::B\";"),
        ("test", "#[cfg(test)]\nmod tests { use crate::b::B; }\n#[cfg(all(test, unix))]\nfn g() { crate::b::f(); }"),
        ("test-method", "impl A { #[cfg(test)] fn g() { crate::b::f(); } }"),
    ] {
        assert!(with_in_a(name, text).is_empty(), "{text}");
    }
}

#[test]
fn a_module_and_what_is_inside_of_it_make_no_circle() {
    let files = [
        ("lib.rs", "mod a;\nuse a::child::C;\npub struct Root;"),
        ("a/mod.rs", "mod child;\npub use child::C;\npub struct A(C);\nuse crate::Root;"),
        ("a/child.rs", "use super::A;\npub struct C;"),
    ];
    let made = made("family", &files);
    assert!(made.circles().is_empty() && made.folder_circles().is_empty());
}

#[test]
fn folders_make_a_circle_of_their_own() {
    let files = [
        ("lib.rs", "mod a;\nmod b;"),
        ("a/mod.rs", "pub mod x;\npub mod w;"),
        ("a/x.rs", "use crate::b::y::Y;"),
        ("a/w.rs", "pub struct W;"),
        ("b.rs", "pub mod y;\npub mod z { use crate::a::w::W; }"),
        ("b/y.rs", "pub struct Y;"),
    ];
    let made = made("folders", &files);
    assert!(made.circles().is_empty());
    assert_eq!(made.folder_circles(), ["a b"]);
}

#[test]
fn a_longer_circle_is_one() {
    let files = [(
        "lib.rs",
        "mod a { use crate::b; }\nmod b { use crate::c; }\nmod c { use crate::a; }\nmod d { use crate::a; }",
    )];
    assert_eq!(made("longer", &files).circles(), ["a b c"]);
}

#[test]
fn comments_blank_lines_and_tests_are_no_code() {
    let text = "//! Docs.\n\n/// A.\n/// B.\npub fn of(\n    a: u8,\n) -> u8 {\n    // Why.\n\n    a /* what */ + 1\n}\n\
                /* two\nlines */\nconst T: &str = \"one\n\nthree\";\n\
                #[cfg(test)]\nmod tests {\n    #[test]\n    fn t() {}\n}\n\
                #[derive(Debug)]\npub struct S;\nimpl S {\n    /// M.\n    pub fn m() {}\n    #[cfg(test)]\n    fn t() {}\n}\n";
    let figures = Figures::count(&made("figures", &[("lib.rs", text)]).tree);
    assert_eq!(figures.code, 5 + 3 + 2 + 3);
    assert_eq!(figures.functions, [5, 1]);
    assert_eq!((figures.function_quantile(0.5), figures.function_quantile(0.95)), (1, 5));
    assert_eq!((figures.named_of, figures.public, figures.public_docs), (1, 3, 3));
}

#[test]
fn a_struct_of_more_than_20_fields_is_listed() {
    let of_fields = |name: &str, fields: usize| {
        format!(
            "struct {name} {{ {} }}\n",
            (0..fields).map(|field| format!("f{field}: u8")).collect::<Vec<_>>().join(", ")
        )
    };
    let text = of_fields("Narrow", 20) + &of_fields("Wide", 21);
    let wide = Figures::count(&made("wide", &[("lib.rs", &text)]).tree).wide;
    let shown: Vec<_> =
        wide.iter().map(|(fields, name, place)| (*fields, &**name, place.ends_with("lib.rs:2"))).collect();
    assert_eq!(shown, [(21, "Wide", true)]);
}

#[test]
fn files_of_tests_are_not_read() {
    let files = [
        (
            "lib.rs",
            "mod a;\n#[cfg(test)]\nmod tests;\n#[cfg(feature = \"simulation\")]\nmod simulated;\n#[path = \"elsewhere.rs\"]\nmod here;",
        ),
        ("a/mod.rs", ""),
        ("elsewhere.rs", "pub struct E;"),
    ];
    let made = made("files", &files);
    let names: Vec<_> = (0..made.tree.modules.len()).map(|id| made.tree.name(id)).collect();
    assert_eq!(names, ["crate", "a", "here"]);
}

#[test]
fn a_crate_of_tests_has_no_code() {
    let made = made("crate-of-tests", &[("lib.rs", "//! Tests.\n#![cfg(test)]\nmod a;\nfn f() {}")]);
    assert_eq!((Figures::count(&made.tree).code, made.circles().len()), (0, 0));
}

#[test]
fn code_of_one_system_is_seen_and_comments_are_not() {
    assert!(crate::naming::names_a_system("    #[cfg(target_os = \"linux\")]\n"));
    assert!(crate::naming::names_a_system("use rustix::linux::x;"));
    assert!(!crate::naming::names_a_system("// Not target_os.\n/// rustix::linux\nlet target = os;"));
}
