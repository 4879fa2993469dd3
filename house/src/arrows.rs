//! Crates: who depends on whom, and who must not.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use serde_json::Value;

/// A crate of the workspace, as its manifest describes it.
#[derive(Debug, Clone)]
pub struct Package {
    pub name: String,
    /// The folder of its manifest.
    pub folder: PathBuf,
    /// Root files of its library and its programs.
    pub roots: Vec<PathBuf>,
    /// Crates of the workspace that it is built with, tests apart.
    pub uses: BTreeSet<String>,
}

/// A rule: this crate's tree holds none of those.
struct Rule {
    from: &'static str,
    never: &'static [&'static str],
    /// Exceptions of [`ANY`].
    but: &'static [&'static str],
}

/// Every crate of the workspace.
const ANY: &[&str] = &["*"];
/// What carries out or shows a run, which nothing below it may see.
const ABOVE: &[&str] = &["engine", "cluster", "report", "store", "judge", "decide", "cli", "lua"];

/// Names are without `brunt-`. A crate that does not exist is skipped, on both sides.
const RULES: &[Rule] = &[
    Rule { from: "record", never: ANY, but: &[] },
    Rule { from: "plan", never: ANY, but: &["record"] },
    Rule { from: "judge", never: ANY, but: &["plan", "record"] },
    Rule { from: "decide", never: ANY, but: &["judge", "plan", "record"] },
    Rule { from: "metrics", never: ANY, but: &["record"] },
    Rule { from: "replay", never: ANY, but: &["protocol", "plan", "record"] },
    Rule { from: "imports", never: ANY, but: &["plan", "record"] },
    Rule { from: "http2", never: ANY, but: &[] },
    Rule { from: "quic", never: ANY, but: &[] },
    Rule { from: "http3", never: ANY, but: &["http2", "quic"] },
    Rule { from: "testbed", never: ANY, but: &["http2", "http3", "quic"] },
    Rule { from: "coalesce", never: ANY, but: &[] },
    Rule { from: "proxy", never: ANY, but: &["coalesce"] },
    Rule { from: "protocol", never: ABOVE, but: &[] },
    Rule { from: "http2-calls", never: ABOVE, but: &[] },
    Rule { from: "script", never: ABOVE, but: &[] },
    Rule { from: "script", never: PROTOCOLS, but: &[] },
    Rule { from: "lua", never: &["engine", "cluster", "report", "store", "judge", "decide", "cli"], but: &[] },
    Rule {
        from: "javascript",
        never: &["engine", "cluster", "report", "store", "judge", "decide", "lua", "cli"],
        but: &[],
    },
    Rule {
        from: "engine",
        never: &["judge", "decide", "lua", "javascript", "cluster", "report", "store", "testbed"],
        but: &[],
    },
    Rule { from: "engine", never: PROTOCOLS, but: &[] },
    Rule { from: "cluster", never: &["report", "store", "testbed", "cli"], but: &[] },
    Rule { from: "cluster", never: PROTOCOLS, but: &[] },
    Rule { from: "report", never: &["engine", "cluster", "store", "lua", "protocol", "testbed", "cli"], but: &[] },
    Rule { from: "store", never: &["engine", "cluster", "report", "lua", "protocol", "testbed", "cli"], but: &[] },
];

/// Protocols: none sees another, the engine, or what judges and shows.
const PROTOCOLS: &[&str] = &["http1", "websocket", "thrift", "grpc", "tcp"];

/// Reads the workspace's crates from its manifests.
///
/// # Errors
///
/// Where Cargo cannot read a manifest.
pub fn packages(workspace: &Path) -> anyhow::Result<Vec<Package>> {
    let metadata = metadata(workspace, &["--no-deps", "--offline"])?;
    let packages = metadata["packages"].as_array().context("cargo metadata names no packages")?;
    let mut packages = packages.iter().map(package).collect::<anyhow::Result<Vec<_>>>()?;
    let ours: BTreeSet<String> = packages.iter().map(|package| package.name.clone()).collect();
    for package in &mut packages {
        package.uses.retain(|name| ours.contains(name));
    }
    packages.sort_by(|one, other| one.folder.cmp(&other.folder));
    Ok(packages)
}

/// What `cargo metadata` prints about a workspace.
///
/// # Errors
///
/// Where Cargo cannot read a manifest.
pub fn metadata(workspace: &Path, options: &[&str]) -> anyhow::Result<Value> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1"])
        .args(options)
        .arg("--manifest-path")
        .arg(workspace.join("Cargo.toml"))
        .output()
        .context("cannot run cargo metadata")?;
    ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim());
    serde_json::from_slice(&output.stdout).context("cargo metadata prints no JSON")
}

fn package(json: &Value) -> anyhow::Result<Package> {
    let text = |value: &Value| value.as_str().map(str::to_owned).context("cargo metadata left a name out");
    let list = |key: &str| json[key].as_array().map(Vec::as_slice).unwrap_or_default();
    let manifest = PathBuf::from(text(&json["manifest_path"])?);
    let folder = manifest.parent().context("a manifest without a folder")?.to_owned();
    let is_code = |target: &&Value| {
        let kinds = target["kind"].as_array().map(Vec::as_slice).unwrap_or_default();
        kinds.iter().any(|kind| ["lib", "bin", "proc-macro"].contains(&kind.as_str().unwrap_or_default()))
    };
    let roots = list("targets").iter().filter(is_code).map(|target| text(&target["src_path"]).map(PathBuf::from));
    let built_with = list("dependencies").iter().filter(|dependency| dependency["kind"] != "dev");
    Ok(Package {
        name: text(&json["name"])?,
        folder,
        roots: roots.collect::<anyhow::Result<_>>()?,
        uses: built_with.map(|dependency| text(&dependency["name"])).collect::<anyhow::Result<_>>()?,
    })
}

/// Arrows that a rule forbids, each as the chain of crates that makes it.
pub fn forbidden(packages: &[Package]) -> Vec<String> {
    let uses: BTreeMap<&str, Vec<&str>> = packages
        .iter()
        .map(|package| (short(&package.name), package.uses.iter().map(|name| short(name)).collect()))
        .collect();
    let mut found = Vec::new();
    let protocols = PROTOCOLS
        .iter()
        .flat_map(|&from| [Rule { from, never: ABOVE, but: &[] }, Rule { from, never: PROTOCOLS, but: &[] }]);
    let is_protocol = |package: &&Package| package.folder.parent().is_some_and(|folder| folder.ends_with("protocols"));
    let unknown = packages.iter().filter(is_protocol).map(|package| short(&package.name));
    found.extend(
        unknown
            .filter(|name| !PROTOCOLS.contains(name))
            .map(|name| format!("{name} is in no list of protocols (house/src/arrows.rs)")),
    );
    for rule in RULES.iter().map(|rule| Rule { ..*rule }).chain(protocols) {
        for (&to, chain) in &chains(&uses, rule.from) {
            let is_named = rule.never == ANY || rule.never.contains(&to);
            if is_named && !rule.but.contains(&to) && to != rule.from {
                found.push(chain.join(" → "));
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

fn short(name: &str) -> &str {
    name.strip_prefix("brunt-").unwrap_or(name)
}

/// The shortest chain from a crate to each that its tree holds.
fn chains<'a>(uses: &BTreeMap<&'a str, Vec<&'a str>>, from: &'a str) -> BTreeMap<&'a str, Vec<&'a str>> {
    let mut chains = BTreeMap::from([(from, vec![from])]);
    let mut next = std::collections::VecDeque::from([from]);
    while let Some(at) = next.pop_front() {
        let chain = chains.get(at).cloned().unwrap_or_default();
        for &to in uses.get(at).into_iter().flatten() {
            if !chains.contains_key(to) {
                chains.insert(to, [chain.clone(), vec![to]].concat());
                next.push_back(to);
            }
        }
    }
    chains
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, uses: &[&str]) -> Package {
        Package {
            name: format!("brunt-{name}"),
            folder: PathBuf::new(),
            roots: Vec::new(),
            uses: uses.iter().map(|name| format!("brunt-{name}")).collect(),
        }
    }

    #[test]
    fn a_forbidden_crate_is_found_behind_others() {
        let packages = [package("engine", &["model"]), package("model", &["judge"]), package("judge", &["record"])];
        assert_eq!(forbidden(&packages), ["engine → model → judge"]);
    }

    #[test]
    fn a_protocol_that_no_rule_knows_is_named() {
        let of = |folder: &str| Package { folder: folder.into(), ..package("line", &["protocol"]) };
        assert!(forbidden(&[of("crates/line")]).is_empty());
        assert_eq!(
            forbidden(&[of("crates/protocols/line")]),
            ["line is in no list of protocols (house/src/arrows.rs)"]
        );
    }

    #[test]
    fn an_exception_is_allowed_and_a_missing_crate_skipped() {
        assert!(forbidden(&[package("proxy", &["coalesce"]), package("coalesce", &[])]).is_empty());
        assert!(forbidden(&[package("protocol", &["plan"])]).is_empty());
    }

    #[test]
    fn protocols_see_neither_each_other_nor_the_engine() {
        let packages = [package("grpc", &["http1"]), package("http1", &["engine"])];
        assert_eq!(forbidden(&packages), ["grpc → http1", "grpc → http1 → engine", "http1 → engine"]);
    }

    #[test]
    fn a_guest_is_built_on_nothing_of_ours() {
        assert_eq!(forbidden(&[package("coalesce", &["secret"]), package("secret", &[])]), ["coalesce → secret"]);
    }
}
