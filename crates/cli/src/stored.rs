//! Results that were stored, in files or in the store, as sides of a comparison.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use brunt_decide::compare::{self, BLOCKS, ComparedFigures, ComparedRun, ComparedRuns, Comparison, LEAST_RUNS};
use brunt_decide::evidence::{self, Evidence};
use brunt_decide::kept::KeptKind;
use brunt_decide::short::Lacking;
use brunt_judge::summary::Summary;
use brunt_plan::plan::Origin;
use brunt_plan::secret::shown_url;
use brunt_report::json;
use brunt_store::{RunSelector, Store};

use crate::args::runs::RunArgs;
use crate::{files, kept, losses};

/// One side of a comparison: its results, all of one plan.
pub struct StoredSide {
    /// Its name in reports.
    name: String,
    results: Vec<Summary>,
    /// The numbers of its kept runs; empty for files.
    pub kept: Vec<i64>,
}

/// The meaning of a side of a comparison.
enum Named<'a> {
    /// A file or directory of results.
    File(&'a Path),
    /// A run that was kept.
    Run(RunSelector),
    /// All that were kept with a tag.
    Tagged(String, String),
}

/// The meaning of `target`, if it is not a target.
fn named<'a>(target: &'a OsString, store: &mut Option<Store>) -> Option<Named<'a>> {
    let path = Path::new(target);
    if crate::scripts::is_script(path) {
        return None;
    }
    if path.exists() || path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json")) {
        return Some(Named::File(path));
    }
    let text = target.to_str()?;
    if text.contains('/') {
        return None;
    }
    if let Some((key, value)) = text.split_once('=') {
        return Some(Named::Tagged(key.to_owned(), value.to_owned()));
    }
    match text.parse().ok()? {
        // A name may also be a host's: if a run has it, it means the run.
        which @ RunSelector::Name(_) => store.as_mut()?.number(&which).is_ok().then_some(Named::Run(which)),
        which => Some(Named::Run(which)),
    }
}

/// The stored sides that `run` names in place of targets; `None` where they name targets. `is_of_results` says that no
/// flag of runs is given.
///
/// # Errors
/// When one side is stored and the other a target, when flags of runs are given, or when a result cannot be read.
pub fn sides(run: &RunArgs, is_of_results: bool) -> Result<Option<[StoredSide; 2]>> {
    let [a, b] = run.targets.as_slice() else { return Ok(None) };
    let store = || kept::path(run.shown.saving.store.as_deref()).and_then(|path| Ok(Store::open_kept(&path)?));
    let mut opened = store().ok();
    for target in [a, b] {
        refuse_missing(target)?;
    }
    let (a_named, b_named) = match (named(a, &mut opened), named(b, &mut opened)) {
        (None, None) => return Ok(None),
        (Some(a), Some(b)) => (a, b),
        _ => bail!(
            "{} and {} cannot be compared: name two targets, or two results (files, directories, runs that were kept)",
            a.display(),
            b.display()
        ),
    };
    if !is_of_results {
        bail!("stored results cannot be run again: run flags, --a, --b and --keep need live targets");
    }
    let read = |named: Named<'_>| match named {
        Named::File(path) => read(path),
        Named::Run(which) => kept_run(&mut store()?, &which),
        Named::Tagged(key, value) => tagged(&mut store()?, key, value),
    };
    Ok(Some([read(a_named)?, read(b_named)?]))
}

/// Refuses a missing file or directory, before it is taken for a host.
///
/// # Errors
/// When `target` has a slash and neither a scheme, a port, nor a dot before it.
fn refuse_missing(target: &OsString) -> Result<()> {
    let Some(text) = target.to_str().filter(|text| !text.contains("://")) else { return Ok(()) };
    let Some((before, _)) = text.split_once('/') else { return Ok(()) };
    let is_host = before.contains([':', '.']) && !before.starts_with('.') || before == "localhost";
    if !is_host && !Path::new(target).exists() {
        let text = shown_url(text);
        bail!("there is no file or directory {text} (a target of that name is written http://{text})");
    }
    Ok(())
}

/// Compares run `b` with run `a`, both kept.
///
/// # Errors
/// When one of them does not exist, or they are too short to be compared.
pub fn compare_kept(store: &mut Store, a: i64, b: i64) -> Result<ComparedRuns> {
    let [a, b] = [a, b].map(|number| kept_run(store, &RunSelector::Number(number)));
    compare_sides(&a?, &b?)
}

/// A run that was kept.
fn kept_run(store: &mut Store, which: &RunSelector) -> Result<StoredSide> {
    let number = store.number(which)?;
    let summary = store.load(&RunSelector::Number(number))?;
    let name = format!("run {number} ({})", summary.plan.target.url());
    Ok(StoredSide { name, results: vec![summary], kept: vec![number] })
}

/// All runs that were kept with a tag, the oldest first.
fn tagged(store: &mut Store, key: String, value: String) -> Result<StoredSide> {
    let tag = format!("{key}={value}");
    let mut kept: Vec<_> =
        store.list(&[(key, value)])?.into_iter().filter(|entry| entry.kind == KeptKind::Run).collect();
    kept.reverse();
    let kept: Vec<_> = kept.iter().map(|entry| entry.number).collect();
    let load = |number: &i64| Ok(store.load(&RunSelector::Number(*number))?);
    let results = kept.iter().map(load).collect::<Result<Vec<_>>>()?;
    let Some(first) = results.first() else {
        bail!("no run that was kept has the tag {tag}: `brunt runs --tag {tag}` lists those that have")
    };
    let name = format!("{} runs tagged {tag} ({})", results.len(), first.plan.target.url());
    Ok(StoredSide { name, results, kept })
}

/// A result, or all in a directory.
fn read(path: &Path) -> Result<StoredSide> {
    let mut paths: Vec<PathBuf> = Vec::new();
    if path.is_dir() {
        for entry in path.read_dir().with_context(|| format!("cannot read {}", path.display()))? {
            let path = entry.with_context(|| format!("cannot read {}", path.display()))?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                paths.push(path);
            }
        }
        paths.sort();
    } else {
        paths.push(path.to_owned());
    }
    let of_file = |path: &PathBuf| json::read_each(&files::read(path)?).with_context(|| path.display().to_string());
    let results: Vec<_> = paths.iter().map(of_file).collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
    let name = match results.as_slice() {
        [] => bail!("{} holds no results: expected files that end in .json", path.display()),
        [one] => format!("{} ({})", path.display(), one.plan.target.url()),
        [first, ..] => format!("{} ({} results of {})", path.display(), results.len(), first.plan.target.url()),
    };
    Ok(StoredSide { name, results, kept: Vec::new() })
}

/// Refuses a side whose results have different plans: their mean would be of different experiments.
fn check_alike(side: &StoredSide) -> Result<()> {
    let Some(first) = side.results.first() else { return Ok(()) };
    for (number, result) in (2..).zip(side.results.iter().skip(1)) {
        let mut differing = compare::differences(&first.plan, &result.plan);
        if first.plan.target != result.plan.target {
            let urls = [&first.plan, &result.plan].map(|plan| plan.target.url());
            differing.insert(0, format!("target {} and {}", urls[0], urls[1]));
        }
        if !differing.is_empty() {
            let of = |at: usize| side.kept.get(at).map_or_else(|| format!("result {}", at + 1), |n| format!("run {n}"));
            bail!(
                "{}: {} and {} were not run alike ({}): compare runs of one plan, by a tag or directory of their own",
                side.name,
                of(0),
                of(number - 1),
                differing.join("; ")
            );
        }
    }
    Ok(())
}

/// Refuses a result that stands on both sides, perhaps in two files: it never differs from itself.
fn check_apart(a: &StoredSide, b: &StoredSide) -> Result<()> {
    let identity = |result: &Summary| (result.run.started_unix_ms, result.plan.seed);
    let is_also_b = |result: &Summary| b.results.iter().any(|other| identity(result) == identity(other));
    if a.results.iter().any(is_also_b) {
        bail!("{} and {} hold the same run: a run cannot be compared with itself", a.name, b.name);
    }
    Ok(())
}

/// Sentences about results of a side that lost an agent.
fn losses_of(side: &StoredSide, name: &str) -> Vec<String> {
    let lost = |(number, result): (usize, &Summary)| {
        let agents = &result.run.agents;
        let (agent, after_ns, _) = losses::lost(agents).into_iter().next()?;
        let (of, after) = (agents.len(), losses::seconds(after_ns));
        Some(format!(
            "{name}: result {number} lost agent '{agent}' of {of} after {after}, and has only what was measured"
        ))
    };
    (1..).zip(&side.results).filter_map(lost).collect()
}

/// Compares `b` with `a`.
///
/// # Errors
/// When the results of a side have different plans, or there are too few of them.
pub fn compare_sides(a: &StoredSide, b: &StoredSide) -> Result<ComparedRuns> {
    check_alike(a)?;
    check_alike(b)?;
    check_apart(a, b)?;
    let differing = match (a.results.first(), b.results.first()) {
        (Some(a), Some(b)) => compare::differences(&a.plan, &b.plan),
        _ => Vec::new(),
    };
    let comparison = match (a.results.as_slice(), b.results.as_slice()) {
        ([a_one], [b_one]) => {
            let blocks = |name: &str, result: &Summary| {
                compare::blocks(result.run.series.points(), &evidence::leading(result)).ok_or_else(|| {
                    anyhow!(
                        "{name} is too short to be compared by itself: {BLOCKS} s or more are needed (-d), or several \
                         results of each in a directory, or both run in turn by brunt compare with two URLs"
                    )
                })
            };
            Comparison::of_blocks(&blocks(&a.name, a_one)?, &blocks(&b.name, b_one)?)
        }
        (a_all, b_all) => {
            if a_all.len().max(b_all.len()) < LEAST_RUNS {
                bail!(
                    "{} and {}: where several results are compared, at least {LEAST_RUNS} of one side are needed, by whose \
                     spread the other is judged",
                    a.name,
                    b.name
                );
            }
            let figures = |results: &[Summary]| results.iter().map(ComparedFigures::from_summary).collect::<Vec<_>>();
            Comparison::of_runs(&figures(a_all), &figures(b_all))
        }
    };
    let runs = |side: &StoredSide, is_b: bool| -> Vec<_> {
        let run = |(number, result): (usize, &Summary)| ComparedRun {
            is_b,
            number,
            evidence: Evidence::from_summary(result),
        };
        (1..).zip(&side.results).map(run).collect()
    };
    Ok(ComparedRuns {
        origin: Origin::default(),
        a: a.name.clone(),
        b: b.name.clone(),
        how: String::new(),
        differing,
        comparison,
        conditions: Vec::new(),
        interrupted: false,
        runs: [runs(a, false), runs(b, true)].concat(),
        lacking: Lacking { losses: [losses_of(a, "A"), losses_of(b, "B")].concat(), ..Lacking::default() },
    })
}
