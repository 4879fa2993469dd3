//! `brunt compare`: whether B differs from A, and by how much.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use brunt_model::SECOND_NS;
use brunt_model::compare::{self, BLOCKS, Compared, ComparedRun, Comparison, Figures, LEAST_BLOCK_POINTS, LEAST_RUNS};
use brunt_model::evidence::Evidence;
use brunt_model::plan::{Load, Origin, Plan};
use brunt_model::secret::shown_url;
use brunt_model::units::ExactDuration;
use brunt_protocol::Registry;
use brunt_report::decision::Decision;
use brunt_report::json::{self, Document};
use brunt_store::{Store, Which};

use super::Exit;
use super::show::found;
use crate::args::words::Words;
use crate::args::{Bench, Compare, repeat};
use crate::decided::Decided;
use crate::kept::{self, Keep};
use crate::runs::{Ran, Runs, length_ns};
use crate::{console, files, plan};

const DEFAULT_DURATION_NS: u64 = 3 * SECOND_NS;
const DEFAULT_WARMUP_NS: u64 = SECOND_NS / 2;

pub fn run(args: &Compare, registry: &Registry) -> Result<Exit> {
    let shown = &args.words.shown;
    let decided = Decided::of(shown)?;
    let compared = if let Some([a, b]) = results(args)? {
        let mut compared = of_results(&a, &b)?.with_conditions(&args.fail_if);
        compared.origin = plan::origin(&shown.saving);
        compared.origin.command = repeat::of_process(registry, None);
        let decision = Decision::Comparison(&compared);
        let written = decided.write(decision, found(&[a.kept, b.kept].concat(), shown.saving.store.as_deref()));
        // Its runs stay what they are: they may be compared with others, too.
        Keep::of(&shown.saving, shown.quiet).keep_decision(decision, &[]);
        written?;
        compared
    } else {
        let Some((compared, mut runs)) = live(args, registry)? else { return Ok(Exit::Done) };
        let compared = compared.with_conditions(&args.fail_if);
        runs.finish(Decision::Comparison(&compared), &decided)?;
        compared
    };
    let exit = exit_of(&compared);
    if !decided.is_for_people() {
        explain(&compared, exit);
    }
    Ok(exit)
}

/// A side of a comparison of results.
struct Results {
    name: String,
    documents: Vec<Document>,
    /// The numbers of those that are kept.
    kept: Vec<i64>,
}

/// What a side of a comparison names.
enum Named<'a> {
    /// A file or directory of results.
    File(&'a Path),
    /// A run that was kept.
    Run(Which),
    /// All that were kept with a tag.
    Tagged(String, String),
}

/// What `target` names, if not a target.
fn named<'a>(target: &'a OsString, store: &mut Option<Store>) -> Option<Named<'a>> {
    let path = Path::new(target);
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
        // A name may be that of a host, too: it is that of a run where one is called so.
        which @ Which::Name(_) => store.as_mut()?.number(&which).is_ok().then_some(Named::Run(which)),
        which => Some(Named::Run(which)),
    }
}

/// The results that are named instead of targets, if any are.
fn results(args: &Compare) -> Result<Option<[Results; 2]>> {
    let [a, b] = args.words.targets.as_slice() else { return Ok(None) };
    let store = || kept::path(args.words.shown.saving.store.as_deref()).and_then(|path| Ok(Store::open_kept(&path)?));
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
    if !args.words.is_bare() || args.a.is_some() || args.b.is_some() || args.keep.is_some() {
        bail!("stored results cannot be run again: run flags, --a, --b and --keep need live targets");
    }
    let read = |named: Named<'_>| match named {
        Named::File(path) => read(path),
        Named::Run(which) => kept_run(&mut store()?, &which),
        Named::Tagged(key, value) => tagged(&mut store()?, key, value),
    };
    Ok(Some([read(a_named)?, read(b_named)?]))
}

/// Refuses what can only be a file or directory, and is not there, before it is taken for a host.
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
/// When one of them is not there, or they are too short to be compared.
pub fn of_kept(store: &mut Store, a: i64, b: i64) -> Result<Compared> {
    let [a, b] = [a, b].map(|number| kept_run(store, &Which::Number(number)));
    of_results(&a?, &b?)
}

/// A run that was kept.
fn kept_run(store: &mut Store, which: &Which) -> Result<Results> {
    let number = store.number(which)?;
    let document = Document::of(&store.load(&Which::Number(number))?);
    let name = format!("run {number} ({})", document.plan.target.url());
    Ok(Results { name, documents: vec![document], kept: vec![number] })
}

/// All runs that were kept with a tag, the oldest first.
fn tagged(store: &mut Store, key: String, value: String) -> Result<Results> {
    let tag = format!("{key}={value}");
    let mut kept: Vec<_> = store.list(&[(key, value)])?.into_iter().filter(|entry| entry.kind == "run").collect();
    kept.reverse();
    let kept: Vec<_> = kept.iter().map(|entry| entry.number).collect();
    let load = |number: &i64| Ok(Document::of(&store.load(&Which::Number(*number))?));
    let documents = kept.iter().map(load).collect::<Result<Vec<_>>>()?;
    let Some(first) = documents.first() else {
        bail!("no run that was kept has the tag {tag}: `brunt runs --tag {tag}` lists those that have")
    };
    let name = format!("{} runs tagged {tag} ({})", documents.len(), first.plan.target.url());
    Ok(Results { name, documents, kept })
}

/// A result, or all in a directory.
fn read(path: &Path) -> Result<Results> {
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
    let documents = paths.iter().map(of_file).collect::<Result<Vec<_>>>()?.concat();
    let name = match documents.as_slice() {
        [] => bail!("{} holds no results: expected files that end in .json", path.display()),
        [one] => format!("{} ({})", path.display(), one.plan.target.url()),
        [first, ..] => format!("{} ({} results of {})", path.display(), documents.len(), first.plan.target.url()),
    };
    Ok(Results { name, documents, kept: Vec::new() })
}

/// Refuses a side whose results were not run alike: their mean would be of different experiments.
fn check_alike(side: &Results) -> Result<()> {
    let Some(first) = side.documents.first() else { return Ok(()) };
    for (number, document) in (2..).zip(side.documents.iter().skip(1)) {
        let mut differing = compare::differences(&first.plan, &document.plan);
        if first.plan.target != document.plan.target {
            let urls = [&first.plan, &document.plan].map(|plan| plan.target.url());
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

fn of_results(a: &Results, b: &Results) -> Result<Compared> {
    check_alike(a)?;
    check_alike(b)?;
    let differing = match (a.documents.first(), b.documents.first()) {
        (Some(a), Some(b)) => compare::differences(&a.plan, &b.plan),
        _ => Vec::new(),
    };
    let comparison = match (a.documents.as_slice(), b.documents.as_slice()) {
        ([a_one], [b_one]) => {
            let blocks = |name: &str, document: &Document| {
                compare::blocks(&document.points()).ok_or_else(|| {
                    anyhow!(
                        "{name} is too short to be compared by itself: {} s or more are needed (-d), or several results \
                         of each in a directory, or both run in turn by brunt compare with two URLs",
                        BLOCKS * LEAST_BLOCK_POINTS
                    )
                })
            };
            Comparison::of_blocks(&blocks(&a.name, a_one)?, &blocks(&b.name, b_one)?)
        }
        (a_all, b_all) => {
            for (name, documents) in [(&a.name, a_all), (&b.name, b_all)] {
                if documents.len() < LEAST_RUNS {
                    bail!("{name}: at least {LEAST_RUNS} results are needed where several are compared");
                }
            }
            let figures = |documents: &[Document]| documents.iter().map(Document::figures).collect::<Vec<_>>();
            Comparison::of_runs(&figures(a_all), &figures(b_all))
        }
    };
    let runs = |side: &Results, is_b: bool| -> Vec<_> {
        let run = |(number, document): (usize, &Document)| ComparedRun { is_b, number, evidence: document.evidence() };
        (1..).zip(&side.documents).map(run).collect()
    };
    Ok(Compared {
        origin: Origin::default(),
        a: a.name.clone(),
        b: b.name.clone(),
        how: String::new(),
        differing,
        comparison,
        conditions: Vec::new(),
        interrupted: false,
        runs: [runs(a, false), runs(b, true)].concat(),
    })
}

/// A side of a comparison of targets.
struct Side {
    name: String,
    plan: Plan,
    /// The flags of both sides, aimed at this one's target.
    line: Words,
    /// Those of this side alone.
    words: Vec<OsString>,
}

impl Side {
    /// The command of one of its runs.
    fn command(&self, plan: &Plan, registry: &Registry) -> Result<String> {
        self.line.command(&self.words, plan, registry)
    }
}

/// Runs both in turn; none if that was only to be checked.
fn live<'a>(args: &Compare, registry: &'a Registry) -> Result<Option<(Compared, Runs<'a>)>> {
    let [a, b] = sides(args, registry)?;
    for side in [&a, &b] {
        brunt_engine::check(&side.plan, registry)?;
    }
    if args.words.shown.dry_run {
        return Ok(None);
    }
    let threads = args.words.texts("threads").first().and_then(|text| text.parse().ok());
    let mut runs = Runs::new(registry, "compare", &args.words.shown, args.keep.as_deref(), threads)?;
    let origin = plan::origin(&args.words.shown.saving);
    let mut compared = Compared {
        origin: Origin { command: repeat::of_process(registry, Some(a.plan.seed)), ..origin },
        how: how(args.rounds, &a.plan, &b.plan),
        a: a.name.clone(),
        b: b.name.clone(),
        // What differs was asked for, and stands in the names.
        differing: Vec::new(),
        comparison: None,
        conditions: Vec::new(),
        interrupted: false,
        runs: Vec::new(),
    };
    let rounds = rounds(args.rounds, [&a, &b], &mut runs, &mut compared, registry);
    runs.clear();
    compared.comparison = Comparison::of_rounds(&rounds?);
    Ok(Some((compared, runs)))
}

fn sides(args: &Compare, registry: &Registry) -> Result<[Side; 2]> {
    let targets = args.words.targets.as_slice();
    let [a_url, b_url] = match targets {
        [one] if args.a.is_some() || args.b.is_some() => [one, one],
        [a, b] => [a, b],
        [] => bail!("brunt compare needs two targets, one target with --a and --b, or two results"),
        [_] => {
            bail!("what is to be compared with it? Give a second target, or the flags of each side with --a and --b")
        }
        more => bail!("expected two targets or results, got {}", more.len()),
    };
    let side = |url: &OsString, flags: Option<&String>, flag: &'static str| -> Result<Side> {
        let words = match flags {
            Some(text) => shlex::split(text).ok_or_else(|| anyhow!("{flag}: a quote is not closed"))?,
            None => Vec::new(),
        };
        // The flags themselves may be secret.
        let whose = || if flags.is_some() { flag } else { "the flags" };
        let mut bench = args.words.aimed_at(url).with(&words, registry).with_context(whose)?;
        defaults(&mut bench);
        let plan = plan::of(&bench, registry)?;
        let line = args.words.aimed_at(url);
        let flags = (!words.is_empty()).then(|| Words::shown(&words, registry)).transpose().with_context(whose)?;
        let name = [Some(plan.target.url()), flags].into_iter().flatten().collect::<Vec<_>>().join(" ");
        Ok(Side { name, plan, line, words: words.into_iter().map(OsString::from).collect() })
    };
    let (a, mut b) = (side(a_url, args.a.as_ref(), "--a")?, side(b_url, args.b.as_ref(), "--b")?);
    if !args.words.has("seed") {
        b.plan.seed = a.plan.seed;
    }
    Ok([a, b])
}

/// Many short runs tell more than few long ones.
fn defaults(bench: &mut Bench) {
    let ends = bench.load.rate.as_ref().is_some_and(|profile| profile.duration_ns().is_some());
    if bench.load.duration.is_none() && bench.load.requests.is_none() && !ends {
        bench.load.duration = Some(DEFAULT_DURATION_NS);
    }
    bench.load.warmup.get_or_insert(DEFAULT_WARMUP_NS);
}

fn rounds(
    n: u32,
    sides: [&Side; 2],
    runs: &mut Runs<'_>,
    compared: &mut Compared,
    registry: &Registry,
) -> Result<Vec<(Figures, Figures)>> {
    let seed = sides[0].plan.seed;
    let mut rounds = Vec::new();
    for round in 0..n {
        let order = if compare::a_goes_first(seed, round) { [false, true] } else { [true, false] };
        let mut figures: [Option<Figures>; 2] = [None, None];
        let mut evidence = Vec::new();
        for (done, is_b) in order.into_iter().enumerate() {
            let [a_side, b_side] = sides;
            let (a, b) = (&a_side.plan, &b_side.plan);
            let mut plan = if is_b { b } else { a }.clone();
            plan.seed = plan.seed.wrapping_add(u64::from(round));
            plan.origin.command = if is_b { b_side } else { a_side }.command(&plan, registry)?;
            let what = format!("round {} of {n}: {}", round + 1, if is_b { "B" } else { "A" });
            let rest = u64::from(n - round - 1) * (length_ns(a) + length_ns(b));
            let after = rest + if done == 0 { length_ns(if is_b { a } else { b }) } else { 0 };
            compared.comparison = Comparison::of_rounds(&rounds);
            runs.show(Decision::Comparison(compared), &what);
            let summary = match runs.carry_out(&plan, &what, after)? {
                Ran::Whole(summary) => summary,
                Ran::Interrupted => {
                    compared.interrupted = true;
                    return Ok(rounds);
                }
                Ran::Impossible(reason) => bail!("{what}: {reason}"),
            };
            let run = Evidence::of(&summary);
            runs.note(&format!("{what} {}", told(&run)));
            if let Some(place) = figures.get_mut(usize::from(is_b)) {
                *place = Some(Figures::of(&summary));
            }
            let silent = !run.is_answered();
            evidence.push(ComparedRun { is_b, number: round as usize + 1, evidence: run });
            if silent && round == 0 {
                compared.runs.append(&mut evidence);
                return Ok(rounds);
            }
        }
        compared.runs.append(&mut evidence);
        if let [Some(a), Some(b)] = figures {
            rounds.push((a, b));
        }
    }
    Ok(rounds)
}

fn told(run: &Evidence) -> String {
    let p99 = run.p99_ns.map_or(String::new(), |p99| {
        format!(", p99 {}{}", if p99.at_least { "≥" } else { "" }, brunt_model::units::Duration(p99.value))
    });
    let verdict = if run.is_trustworthy() { String::new() } else { format!("; {}", run.verdict) };
    format!("{}/s{p99}{verdict}", brunt_model::units::Number(run.answered_per_s.round()))
}

/// How the runs of both sides are made, as far as they are made alike.
fn how(rounds: u32, a: &Plan, b: &Plan) -> String {
    let mut parts = vec![format!("{rounds} rounds in turn (A B B A …)")];
    if a.connections == b.connections && a.workers == b.workers {
        parts.push(brunt_report::text::concurrency(a));
    }
    if a.load == b.load {
        parts.push(match &a.load {
            Load::Closed {} => "closed model".to_owned(),
            Load::Open { profile, .. } => format!("open model, rate {profile}"),
        });
    }
    if (a.stop, a.warmup_ns) == (b.stop, b.warmup_ns) {
        let length = a.duration_ns().map(|ns| ExactDuration(ns).to_string());
        let requests = a.stop.requests.map(|n| format!("{n} requests"));
        let lengths: Vec<_> = [length, requests].into_iter().flatten().collect();
        parts.push(format!("{} each after {} of warm-up", lengths.join(" or "), ExactDuration(a.warmup_ns)));
    }
    parts.push(format!("seed {}", a.seed));
    parts.join(", ")
}

/// Whether a side was never answered.
fn silent_side(compared: &Compared) -> Option<&ComparedRun> {
    let side = |is_b: bool| compared.runs.iter().filter(move |run| run.is_b == is_b);
    let is_silent = |is_b: bool| side(is_b).all(|run| !run.evidence.is_answered());
    [false, true].into_iter().filter(|is_b| is_silent(*is_b)).find_map(|is_b| side(is_b).next())
}

fn exit_of(compared: &Compared) -> Exit {
    if silent_side(compared).is_some() {
        Exit::NoAnswer
    } else if compared.comparison.is_none() || compared.conditions.iter().any(|condition| condition.failed) {
        Exit::ThresholdFailed
    } else {
        Exit::Done
    }
}

/// Says why the exit status is not 0.
fn explain(compared: &Compared, exit: Exit) {
    if let Some(run) = silent_side(compared) {
        let name = if run.is_b { &compared.b } else { &compared.a };
        let failure: String = run.evidence.failure.chars().filter(|c| !c.is_control()).collect();
        console::note(&format!("error: {name} never answered: {failure}"));
    } else if exit == Exit::ThresholdFailed && compared.comparison.is_none() {
        console::note("error: there was too little to compare");
    }
    for condition in &compared.conditions {
        let text = condition.condition.trim();
        match &condition.undecided {
            _ if condition.failed => console::note(&format!("error: {text}: {}", condition.got)),
            Some(from) => console::note(&format!(
                "warning: {text}: {}: not ruled out; it would have been seen from {from} on",
                condition.got
            )),
            None => {}
        }
    }
}
