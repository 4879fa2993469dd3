//! Crates of others: their licences, those that are built in several versions, and those that nothing uses.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Context as _;
use serde_json::Value;

use crate::arrows::metadata;
use crate::files;

/// Licences that a binary under MIT or Apache 2.0 may hold, by their SPDX names.
const LICENCES: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "BlueOak-1.0.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "MPL-2.0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];
/// Where brunt runs; crates for other systems alone are not looked at.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";
/// Crates that are used without being named in Rust: they turn features of others on.
const BY_FEATURE: &[&str] = &["idna_adapter"];

/// What is to be said of the crates that the workspace is built with.
pub struct Dependencies {
    /// How many there are, those of the workspace left out.
    pub count: usize,
    /// Those under another licence than [`LICENCES`], with the licence.
    pub licences: Vec<String>,
    /// Those with several versions, with these.
    pub doubled: Vec<String>,
    /// Those that a manifest names and no source does, as `crate: dependency`.
    pub unused: Vec<String>,
}

impl Dependencies {
    /// Reads the manifests of `workspace`, its lock file and its sources.
    ///
    /// # Errors
    ///
    /// Where Cargo cannot read a manifest, or a source cannot be read.
    pub fn read(workspace: &Path) -> anyhow::Result<Self> {
        let metadata = metadata(workspace, &["--locked", "--filter-platform", PLATFORM])?;
        let packages = metadata["packages"].as_array().context("cargo metadata names no packages")?;
        let (ours, others): (Vec<_>, Vec<_>) = packages.iter().partition(|package| package["source"].is_null());
        let mut unused = Vec::new();
        let libraries: BTreeMap<&str, &str> = packages.iter().filter_map(library).collect();
        for package in ours {
            unused.extend(unused_of(package, &libraries)?);
        }
        Ok(Self { count: others.len(), licences: licences(&others), doubled: doubled(&others), unused })
    }

    /// Whether all is as it should be.
    pub fn are_fine(&self) -> bool {
        self.licences.is_empty() && self.unused.is_empty()
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn licences(packages: &[&Value]) -> Vec<String> {
    let is_allowed = |package: &&&Value| is_allowed(text(&package["license"]));
    let others = packages.iter().filter(|package| !is_allowed(package));
    others.map(|package| format!("{}: {}", text(&package["name"]), package["license"])).collect()
}

/// Whether one of the alternatives of an SPDX expression is allowed. Older manifests write `/` for OR.
fn is_allowed(expression: &str) -> bool {
    let expression = expression.replace('/', " OR ");
    let mode = spdx::ParseMode::LAX;
    let Ok(expression) = spdx::Expression::parse_mode(&expression, mode) else { return false };
    expression.evaluate(|licence| {
        let name = licence.license.id().map_or("", |id| id.name);
        LICENCES.contains(&name)
    })
}

fn doubled(packages: &[&Value]) -> Vec<String> {
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in packages {
        versions.entry(text(&package["name"])).or_default().insert(text(&package["version"]));
    }
    let doubled = versions.into_iter().filter(|(_, versions)| versions.len() > 1);
    doubled.map(|(name, versions)| format!("{name} {}", versions.into_iter().collect::<Vec<_>>().join(", "))).collect()
}

/// A package's name, and the name that sources have for its library.
fn library(package: &Value) -> Option<(&str, &str)> {
    let mut targets = package["targets"].as_array()?.iter();
    let is_library = |target: &&Value| {
        let kinds = target["kind"].as_array().map(Vec::as_slice).unwrap_or_default();
        kinds.iter().any(|kind| ["lib", "rlib", "proc-macro"].contains(&text(kind)))
    };
    targets.find(is_library).map(|target| (text(&package["name"]), text(&target["name"])))
}

/// The dependencies of a crate of the workspace that none of its sources names.
fn unused_of(package: &Value, libraries: &BTreeMap<&str, &str>) -> anyhow::Result<Vec<String>> {
    let folder = Path::new(text(&package["manifest_path"])).parent().context("a manifest without a folder")?;
    let source = files::text(folder, "rs")?;
    let words: BTreeSet<&str> = source.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let dependencies = package["dependencies"].as_array().map(Vec::as_slice).unwrap_or_default();
    let names = dependencies.iter().map(|dependency| match text(&dependency["rename"]) {
        "" => libraries.get(text(&dependency["name"])).copied().unwrap_or_else(|| text(&dependency["name"])),
        renamed => renamed,
    });
    let unused = names.filter(|name| !words.contains(name.replace('-', "_").as_str()) && !BY_FEATURE.contains(name));
    Ok(unused.map(|name| format!("{}: {name}", text(&package["name"]))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_allowed_alternative_is_enough() {
        for (expression, allowed) in [
            ("MIT", true),
            ("MIT OR GPL-3.0", true),
            ("MIT/Apache-2.0", true),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
            ("Apache-2.0 WITH LLVM-exception", true),
            ("MIT AND GPL-3.0", false),
            ("GPL-3.0-only", false),
            ("", false),
        ] {
            assert_eq!(is_allowed(expression), allowed, "{expression}");
        }
    }
}
