//! Measures brunt's source: its size, circles between modules, arrows between crates, and names.
//!
//! Exit status: 0 nothing to complain of, 1 something, 2 something could not be read.

mod arrows;
mod circles;
mod dependencies;
mod figures;
mod files;
mod glossary;
mod modules;
mod naming;
mod source;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;

use crate::arrows::Package;
use crate::circles::Circle;
use crate::dependencies::Dependencies;
use crate::figures::Figures;
use crate::modules::Uses;
use crate::source::Tree;

const HELP: &str = "\
Prints the size of brunt's source, circles between modules, forbidden arrows between crates, vague and doubled names, and licences and use of crates of others

Usage: house [--edges] [FOLDER]

Arguments:
  FOLDER   the workspace [default: .]

Options:
  --edges  print each use that makes a circle, with its line
  --help   print this

Exit status: 0 no circle, no forbidden arrow, and no name, licence or dependency to complain of, 1 otherwise, 2 something could not be read.
";

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Prints everything; returns whether there is nothing to complain of.
fn run() -> anyhow::Result<bool> {
    let (mut folder, mut edges) = (PathBuf::from("."), false);
    for word in std::env::args().skip(1) {
        match word.as_str() {
            "--help" | "-h" => {
                print!("{HELP}");
                return Ok(true);
            }
            "--edges" => edges = true,
            _ if word.starts_with('-') => bail!("{word} is no option; see --help"),
            _ => folder = word.into(),
        }
    }
    let folder = folder.canonicalize()?;
    let packages = arrows::packages(&folder)?;
    let mut trees = Vec::new();
    for package in &packages {
        for root in &package.roots {
            trees.push((package, Tree::read(root)?));
        }
    }
    print_sizes(&folder, &packages, &trees)?;
    let none_between_crates = print_crates(&packages);
    let none_between_modules = print_modules(&folder, &trees, edges);
    let names_are_fine = print_names(&folder, &packages, &trees)?;
    let dependencies = Dependencies::read(&folder)?;
    print_dependencies(&dependencies);
    Ok(none_between_crates && none_between_modules && names_are_fine && dependencies.are_fine())
}

/// A file's path as seen from the workspace.
fn seen_from<'a>(folder: &Path, path: &'a Path) -> &'a Path {
    path.strip_prefix(folder).unwrap_or(path)
}

fn print_sizes(folder: &Path, packages: &[Package], trees: &[(&Package, Tree)]) -> anyhow::Result<()> {
    println!("| crate | lines of code | functions | median | p95 | longest | public items | doc lines each |");
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    let mut total = Figures::default();
    for package in packages {
        let mut figures = Figures::default();
        for (_, tree) in trees.iter().filter(|(owner, _)| owner.name == package.name) {
            figures.add(Figures::count(tree));
        }
        println!("{}", row(&package.name, &figures));
        total.add(figures);
    }
    println!("{}\n", row("all", &total));
    if let Some((lines, place)) = &total.longest {
        println!("longest function: {lines} lines, {}", seen_from(folder, Path::new(place)).display());
    }
    println!("functions called `of`: {}", total.named_of);
    println!("lines of Lua in crates: {}", files::code(&folder.join("crates"), "lua", "--")?);
    println!("lines of JavaScript in crates: {}", files::code(&folder.join("crates"), "js", "//")?);
    total.wide.sort();
    println!("structs of more than {} fields: {}\n", figures::WIDE, total.wide.len());
    for (fields, name, place) in total.wide.iter().rev() {
        println!("- {fields} {name}, {}", seen_from(folder, Path::new(place)).display());
    }
    println!();
    Ok(())
}

fn row(name: &str, figures: &Figures) -> String {
    let docs = figures.public_docs as f64 / figures.public.max(1) as f64;
    format!(
        "| {name} | {} | {} | {} | {} | {} | {} | {docs:.1} |",
        figures.code,
        figures.functions.len(),
        figures.function_quantile(0.5),
        figures.function_quantile(0.95),
        figures.function_quantile(1.0),
        figures.public,
    )
}

/// Prints circular and forbidden dependencies between crates; returns whether there are none.
fn print_crates(packages: &[Package]) -> bool {
    let edges: BTreeSet<(&str, &str)> = packages
        .iter()
        .flat_map(|package| package.uses.iter().map(|used| (package.name.as_str(), used.as_str())))
        .collect();
    let circles = circles::components(&edges);
    println!("circles between crates: {}", circles.len());
    for circle in &circles {
        println!("- {}", circle.join(", "));
    }
    let forbidden = arrows::forbidden(packages);
    println!("forbidden arrows between crates: {}", forbidden.len());
    for arrow in &forbidden {
        println!("- {arrow}");
    }
    circles.is_empty() && forbidden.is_empty()
}

/// Prints vague file names, code of one system, names that several public types share or that stand in texts, and synonyms; returns whether
/// there are none.
fn print_names(folder: &Path, packages: &[Package], trees: &[(&Package, Tree)]) -> anyhow::Result<bool> {
    let vague = naming::vague_files(packages)?;
    println!("\nfiles whose name says nothing: {}", vague.len());
    for path in &vague {
        println!("- {}", seen_from(folder, path).display());
    }
    let systems = naming::of_one_system(folder, packages)?;
    println!("files that are of one system: {}", systems.len());
    for path in &systems {
        println!("- {}", seen_from(folder, path).display());
    }
    let doubled = naming::doubled_types(packages, trees);
    println!("names of several public types: {}", doubled.len());
    for line in &doubled {
        println!("- {line}");
    }
    let texts = naming::types_in_texts(trees);
    println!("texts with the name of a type: {}", texts.len());
    for line in &texts {
        println!("- {line}");
    }
    let synonyms = glossary::synonyms(folder, trees.iter().map(|(_, tree)| tree))?;
    println!("names with synonyms of the glossary's words: {}", synonyms.len());
    for line in &synonyms {
        println!("- {line}");
    }
    let complaints = [vague.len(), systems.len(), doubled.len(), texts.len(), synonyms.len()];
    Ok(complaints.iter().all(|count| *count == 0))
}

/// Prints what is to be said of crates of others.
fn print_dependencies(dependencies: &Dependencies) {
    let lines = |title: &str, lines: &[String]| {
        println!("{title}: {}", lines.len());
        for line in lines {
            println!("- {line}");
        }
    };
    println!("\ncrates of others: {}", dependencies.count);
    lines("under a licence that is not allowed", &dependencies.licences);
    lines("named by a manifest and by no source", &dependencies.unused);
    lines("in several versions", &dependencies.doubled);
}

/// Prints circular dependencies between modules; returns whether there are none.
fn print_modules(folder: &Path, trees: &[(&Package, Tree)], edges: bool) -> bool {
    let mut lines = Vec::new();
    let (mut of_files, mut of_folders) = (0, 0);
    for (package, tree) in trees {
        let uses = modules::uses(tree);
        of_files += circles::circles(tree, &uses).len();
        for circle in circles::folder_circles(tree, &uses) {
            of_folders += 1;
            let names: Vec<_> = circle.iter().map(|&id| tree.name(id)).collect();
            lines.push(format!("- {}: {} modules: {}", package.name, names.len(), names.join(", ")));
            if edges {
                lines.extend(edges_of(folder, tree, &uses, &circle));
            }
        }
    }
    println!("circles between modules: {of_folders} ({of_files} where a module stands without what is inside of it)");
    for line in &lines {
        println!("{line}");
    }
    of_folders == 0
}

/// The uses between the modules of a circle, a line each.
fn edges_of(folder: &Path, tree: &Tree, uses: &Uses, circle: &Circle) -> Vec<String> {
    let mut lines = Vec::new();
    for (&(from, to), place) in uses {
        let Some((one, other)) = circles::beside_each_other(tree, from, to) else { continue };
        if circle.contains(&one) && circle.contains(&other) {
            let path = tree.files.get(place.file).map_or(Path::new("?"), |file| seen_from(folder, &file.path));
            lines.push(format!("    {} → {} ({}:{})", tree.name(from), tree.name(to), path.display(), place.line));
        }
    }
    lines
}
