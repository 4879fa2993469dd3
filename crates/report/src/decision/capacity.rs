//! The views of a capacity that was searched for.

use brunt_decide::capacity::{Answer, Capacity, Length, Outcome, Searched, Trial, key_of_level};
use brunt_decide::decision::Decision;
use brunt_decide::evidence::Evidence;
use brunt_decide::knee::Knee;
use brunt_judge::verdict::Judgement;
use brunt_plan::arrivals::Spread;
use brunt_plan::plan::{Load, Plan};
use brunt_plan::scenario::MOST_ALIVE;

use super::leading;
use super::not_made::not_made;
use super::plot::Logarithmic;
use super::runs::{self, rate};
use super::table::{Cell, Table};
use crate::csv::Row;
use crate::numbers::{brief, clean, count, counted, percent};
use crate::style::{Paint, Role};
use crate::text::{WIDTH, concurrency, wrapped};

/// Room for the plot beside the figures of a rate.
const PLOT: usize = 16;

pub(super) fn text(plan: &Plan, capacity: &Capacity, label: Vec<String>, paint: Paint) -> String {
    let mut sections = vec![[head(plan, capacity, paint), label].concat(), answer(plan, capacity, paint)];
    if !capacity.trials.is_empty() {
        let (role, verdicts) = verdict(capacity);
        sections.push(wrapped("", "  ", &verdicts, WIDTH).into_iter().map(|line| paint.as_(role, line)).collect());
        sections.push(rates(capacity, paint));
        sections.push(leading::section(&by_level(capacity), &plan.target.scheme, &knees(plan, capacity), paint));
        sections.retain(|lines| !lines.is_empty());
    }
    sections.iter().map(|lines| lines.join("\n")).collect::<Vec<_>>().join("\n\n") + "\n"
}

pub(super) fn markdown(plan: &Plan, capacity: &Capacity) -> String {
    let (sentence, reasons) = sentence(plan, capacity);
    let reasons = if reasons.is_empty() { String::new() } else { format!(" ({})", clean(&reasons.join("; "))) };
    let mut parts = vec![
        format!("# Capacity of {}", clean(&subject(plan, capacity))),
        format!("**{}**{reasons}", clean(&sentence)),
        format!("To be met: {}. {}.", clean(&criteria(plan, capacity)), how(plan, capacity)),
    ];
    if !capacity.trials.is_empty() {
        let (_, verdicts) = verdict(capacity);
        parts.push(clean(&verdicts).into_owned());
        parts.push(table(capacity).markdown().trim_end().to_owned());
    }
    parts.extend(knees(plan, capacity).into_iter().map(|(_, sentence)| sentence));
    parts.join("\n\n") + "\n"
}

/// A line on whether brunt itself decided trials. A doubt about a figure without a threshold does not count here.
pub(super) fn verdict(capacity: &Capacity) -> (Role, String) {
    let all = capacity.trials.len();
    let runs = || capacity.trials.iter().map(|trial| &trial.evidence);
    let doubted = capacity.trials.iter().filter(|trial| trial.outcome == Outcome::Spoiled);
    if let Some(worst) = doubted.clone().next() {
        let why = if worst.evidence.is_trustworthy() { &worst.why } else { &worst.evidence.verdict };
        let line = format!("! brunt itself may have limited {} of {all} trials, such as: {why}", doubted.count());
        return (Role::Warning, line);
    }
    let is_silent = runs().any(|run| run.judgement == Judgement::NothingMeasured);
    if is_silent || runs().all(Evidence::is_trustworthy) {
        return runs::verdicts(runs());
    }
    (Role::Good, format!("✓ brunt itself limited none of {all} trials"))
}

/// The typical trial of each level.
fn by_level(capacity: &Capacity) -> Vec<(String, Vec<&Evidence>)> {
    let typical = groups(capacity).into_iter().filter_map(|group| typical(&group));
    typical.map(|trial| (level(capacity.settings.searched, trial.level), vec![&trial.evidence])).collect()
}

/// The knees of the protocol's figures over the levels.
pub(super) fn knees(plan: &Plan, capacity: &Capacity) -> Vec<(Knee, String)> {
    leading::knees(Decision::Capacity(plan, capacity), |value| level(capacity.settings.searched, value))
}

fn key_of(searched: Searched) -> String {
    const RATE: &str = "rate_per_s";
    searched.counted().map_or_else(|| RATE.to_owned(), |unit| key_of_level(RATE, unit))
}

pub(super) fn csv(plan: &Plan, capacity: &Capacity) -> String {
    let level = key_of(capacity.settings.searched);
    let names = ["trial", &level, "length", "outcome", "why"];
    let own = leading::columns(capacity.trials.iter().map(|trial| &trial.evidence));
    let mut text = runs::head(&names, &own);
    for (number, trial) in (1..).zip(&capacity.trials) {
        let mut row = Row::default();
        row.put(number);
        row.put(trial.level);
        row.put(if trial.length == Length::Full { "full" } else { "short" });
        row.put(match trial.outcome {
            Outcome::Met => "met",
            Outcome::Failed => "failed",
            Outcome::Spoiled => "spoiled",
        });
        row.put(&trial.why);
        runs::put(&mut row, &trial.evidence, &plan.origin);
        leading::put(&mut row, Some(&trial.evidence), &own);
        text += &row.line();
    }
    text
}

fn head(plan: &Plan, capacity: &Capacity, paint: Paint) -> Vec<String> {
    let mut lines = vec![format!("{} {}", paint.strong("brunt find"), paint.strong(clean(&subject(plan, capacity))))];
    for text in [how(plan, capacity), format!("to be met: {}", criteria(plan, capacity))] {
        lines.extend(wrapped("  ", "  ", &text, WIDTH).into_iter().map(|line| paint.faint(line)));
    }
    lines
}

pub(super) fn how(plan: &Plan, capacity: &Capacity) -> String {
    let trials = format!("trials of {}, seed {}", runs::lengths(plan.load_ns(), None, plan.warmup_ns), plan.seed);
    let settings = capacity.settings;
    match (settings.searched.counted(), &plan.scenarios) {
        (Some(unit), _) => format!("at most {}, {trials}", counted(settings.highest as u64, unit)),
        (None, Some(scenarios)) => {
            let limits = scenarios.populations.iter().map(|population| population.most_alive.unwrap_or(MOST_ALIVE));
            let users = format!("at most {} at a time", counted(limits.sum(), "user"));
            let arrivals = scenarios.populations.first().map_or(Spread::Uniform, |population| population.arrivals);
            format!("{users}, {} arrivals of iterations, {trials}", arrivals.in_words())
        }
        (None, None) => {
            let arrivals = if let Load::Open { arrivals, .. } = &plan.load { *arrivals } else { Spread::Uniform };
            format!("{}, {} arrivals, {trials}", concurrency(plan), arrivals.in_words())
        }
    }
}

pub(super) fn criteria(plan: &Plan, capacity: &Capacity) -> String {
    let thresholds = plan.thresholds.iter().map(ToString::to_string);
    // Connections and users that wait for their answers ask for no more than the target takes.
    let pace = (capacity.settings.searched == Searched::Rate).then(|| "the target keeps up".to_owned());
    thresholds.chain(pace).collect::<Vec<_>>().join(", ")
}

/// A level with its unit: `1,989/s`, `64 connections`.
pub(super) fn level(searched: Searched, level: f64) -> String {
    searched.counted().map_or_else(|| format!("{}/s", rate(level)), |unit| counted(level as u64, unit))
}

fn answer(plan: &Plan, capacity: &Capacity, paint: Paint) -> Vec<String> {
    let (sentence, reasons) = sentence(plan, capacity);
    let (sign, role) = outcome(capacity);
    let sentence =
        wrapped(&format!("{sign} "), "  ", &clean(&sentence), WIDTH).into_iter().map(|line| paint.as_(role, line));
    let reasons = reasons.into_iter().flat_map(|reason| wrapped("  ", "  ", &clean(&reason), WIDTH));
    sentence.chain(reasons).collect()
}

/// What to do where brunt was the limit.
const MORE_CORES: &str = "give brunt more cores (-t), keep other work off them, or let it run on a machine of its own";

/// The sign of the answer, and its role.
pub(super) fn outcome(capacity: &Capacity) -> (&'static str, Role) {
    let is_short = !capacity.lacking.short.is_empty();
    if capacity.is_found() && !is_short {
        ("✓", Role::Good)
    } else if is_short {
        ("!", Role::Warning)
    } else {
        ("✗", Role::Bad)
    }
}

/// The answer in a sentence, and remarks on it.
pub(super) fn sentence(plan: &Plan, capacity: &Capacity) -> (String, Vec<String>) {
    let (sentence, reasons) = if aims_at_nobody(plan, capacity) {
        let next = "see which calls its users make: brunt check FILE".to_owned();
        ("no answer: no call was due".to_owned(), vec![next])
    } else {
        of_answer(plan, capacity)
    };
    let not_made = not_made(&capacity.lacking).map(|not_made| format!("; {not_made}"));
    (sentence + &not_made.collect::<String>(), reasons)
}

/// Whether it carried out a script whose users never made a call: its target is then but a guess.
fn aims_at_nobody(plan: &Plan, capacity: &Capacity) -> bool {
    let is_idle = capacity.trials.iter().all(|trial| trial.evidence.due == 0);
    plan.scenarios.is_some() && is_idle && matches!(capacity.answer, Answer::NeverAnswered { .. })
}

/// What the search put load on.
pub(super) fn subject(plan: &Plan, capacity: &Capacity) -> String {
    let script = plan.script_name().filter(|_| aims_at_nobody(plan, capacity));
    script.map_or_else(|| runs::subject(plan), str::to_owned)
}

fn of_answer(plan: &Plan, capacity: &Capacity) -> (String, Vec<String>) {
    let searched = capacity.settings.searched;
    let named = |value: f64| level(searched, value);
    // A capacity in calls, conversations or iterations a second, or in connections or users.
    let whole = |value: f64| match searched {
        Searched::Rate => format!("{} {}", rate(value), plan.rate_unit()),
        Searched::Connections | Searched::Users => named(value),
    };
    let beyond = |met: &Option<f64>| match met {
        Some(met) => format!("met at {}; beyond that nothing is known of the target", named(*met)),
        None => format!("no {} was met, and nothing is known of the target", noun(searched)),
    };
    match &capacity.answer {
        Answer::Between { low, high, repeats } => (
            match searched {
                Searched::Connections | Searched::Users if high - low <= 1.0 => {
                    format!("the capacity is {}", named(*low))
                }
                _ => format!("the capacity is between {} and {}", rate(*low), whole(*high)),
            },
            between(capacity, *low, *high, *repeats),
        ),
        Answer::AtLeast { level } => (
            format!(
                "the capacity is at least {}, {}",
                whole(*level),
                match searched {
                    Searched::Rate => "the highest rate allowed",
                    Searched::Connections | Searched::Users => "the most allowed",
                }
            ),
            std::iter::once(match searched {
                Searched::Rate => "to look further, raise --highest".to_owned(),
                Searched::Connections => "to look further, raise the end of -c".to_owned(),
                Searched::Users => "to look further, raise the end of --users".to_owned(),
            })
            .chain(by_few(capacity, *level))
            .collect(),
        ),
        Answer::BelowAll { level } => (
            match searched {
                Searched::Rate => format!("no capacity: not even {} was met", named(*level)),
                Searched::Connections | Searched::Users => {
                    format!("no capacity: thresholds failed even with {}", named(*level))
                }
            },
            capacity.trials.last().map(|trial| trial.why.clone()).into_iter().collect(),
        ),
        Answer::Unjudged { threshold, calls, fewest_calls, .. } => unjudged(capacity, threshold, *calls, *fewest_calls),
        Answer::Generator { met, at, verdict } => (
            match met {
                Some(met) if capacity.is_found() => {
                    format!(
                        "the capacity is at least {}: above that brunt is the limit, which --allow-less permits",
                        whole(*met)
                    )
                }
                Some(met) => {
                    format!("no capacity found: it is at least {}, and above that brunt is the limit", whole(*met))
                }
                None => format!("no answer: brunt, not the target, gave out at {}", named(*at)),
            },
            vec![
                match met {
                    Some(met) => format!(
                        "brunt made {} as asked, {} of the {} that were to be tried; the verdict there: {verdict}",
                        named(*met),
                        percent(met / at),
                        named(*at)
                    ),
                    None => format!("no {} was met; the verdict: {verdict}", noun(searched)),
                },
                spoiled(capacity),
                MORE_CORES.to_owned(),
            ],
        ),
        Answer::Connections { met, at, service_p50_ns, unloaded_service_p50_ns } => {
            let (who, limit) = limit_of(plan);
            let (loaded, unloaded) = (runs::ns(*service_p50_ns), runs::ns(*unloaded_service_p50_ns));
            (
                format!("no answer: at {} all {who} while the target was as fast as ever", named(*at)),
                vec![
                    beyond(&Some(*met)),
                    format!("from sent to end p50 was {loaded}, and {unloaded} at its best: {limit}"),
                ],
            )
        }
        Answer::Unsteady { met } => unsteady(capacity, beyond(met)),
        Answer::StoppedAnswering { at } => {
            (format!("no answer: the target stopped answering; last tried at {}", named(*at)), Vec::new())
        }
        Answer::NeverAnswered { failure } => (format!("no answer: the target never answered ({failure})"), Vec::new()),
        Answer::Interrupted { met, failed } => {
            let so_far = match (met, failed) {
                (Some(met), Some(failed)) => format!("so far met at {}, and not at {}", named(*met), named(*failed)),
                (Some(met), None) => format!("so far met at {}", named(*met)),
                (None, Some(failed)) => format!("so far not met at {}", named(*failed)),
                (None, None) => "nothing was seen so far".to_owned(),
            };
            ("no answer: interrupted".to_owned(), vec![so_far])
        }
    }
}

/// What was all in use where it, and not the target, was the limit, and what to do.
const fn limit_of(plan: &Plan) -> (&'static str, &'static str) {
    if plan.scenarios.is_some() {
        ("users were busy", "the number of users is the limit: --users N allows more")
    } else {
        ("connections were in use", "it is -c that is the limit, so give twice as many")
    }
}

/// How many trials brunt itself can have decided, and the lowest level at which the target surely failed.
fn spoiled(capacity: &Capacity) -> String {
    let of = |outcome: Outcome| capacity.trials.iter().filter(move |trial| trial.outcome == outcome);
    let failed = of(Outcome::Failed).map(|trial| trial.level).min_by(f64::total_cmp);
    let failed =
        failed.map_or_else(String::new, |at| format!("; it failed at {}", level(capacity.settings.searched, at)));
    format!(
        "brunt itself may have limited {} of {} trials{failed}",
        of(Outcome::Spoiled).count(),
        capacity.trials.len()
    )
}

/// That repetitions contradict each other. Where brunt spoiled many of them, they say little of the target.
fn unsteady(capacity: &Capacity, beyond: String) -> (String, Vec<String>) {
    let all = capacity.trials.len();
    let spoiled = capacity.trials.iter().filter(|trial| trial.outcome == Outcome::Spoiled).count();
    if spoiled * 5 >= all {
        return (
            format!(
                "no answer: brunt itself may have limited {spoiled} of {all} trials, and the others contradict each other"
            ),
            vec![beyond, MORE_CORES.to_owned()],
        );
    }
    (
        "no answer: repetitions contradict each other: the target or this machine is perhaps not steady".to_owned(),
        vec![beyond, "longer trials (-d) even out more, and a larger --precision asks for less".to_owned()],
    )
}

const fn noun(searched: Searched) -> &'static str {
    match searched {
        Searched::Rate => "rate",
        Searched::Connections => "number of connections",
        Searched::Users => "number of users",
    }
}

/// The evidence for the ends of the interval.
fn between(capacity: &Capacity, low: f64, high: f64, repeats: u32) -> Vec<String> {
    let searched = capacity.settings.searched;
    let named = |value: f64| level(searched, value);
    let mut reasons = vec![format!(
        "met at {} in {repeats} of {repeats} trials, at {} in none of {repeats}",
        named(low),
        named(high)
    )];
    let why = capacity.trials.iter().rfind(|trial| trial.level == high).map(|trial| &trial.why);
    reasons.extend(why.map(|why| format!("not met at {}: {why}", named(high))));
    reasons.extend(doubtful(capacity, low, high));
    reasons.extend(by_few(capacity, low));
    let tried = counted(capacity.rates_tried() as u64, if searched.counted().is_some() { "number" } else { "rate" });
    reasons.push(format!(
        "confidence in both bounds: {} or more ({tried} tried, {} each)",
        percent(1.0 - capacity.chance_of_error()),
        counted(u64::from(repeats), "trial")
    ));
    reasons
}

/// That a threshold could not be judged by the last trial, and why.
fn unjudged(capacity: &Capacity, threshold: &str, calls: u64, fewest_calls: Option<u64>) -> (String, Vec<String>) {
    let last = capacity.trials.last();
    let at = last.map_or(String::new(), |last| format!(" at {}", level(capacity.settings.searched, last.level)));
    let (why, more) = match fewest_calls {
        Some(fewest) => {
            let missed = last.map(|last| last.why.clone()).into_iter();
            (takes(calls, fewest), missed.chain(["longer trials have more calls: -d".to_owned()]).collect())
        }
        None => ("nothing measures it".to_owned(), Vec::new()),
    };
    (format!("no answer: {} cannot be judged{at}: {why}", brief(threshold)), more)
}

/// Such as `a trial has 5 calls, and it takes 2,995`.
fn takes(calls: u64, fewest: u64) -> String {
    format!("a trial has {}, and it takes {}", counted(calls, "call"), count(fewest))
}

/// That chance decides a percentile at `level`, as its trials have too few calls.
fn by_few(capacity: &Capacity, level: f64) -> Option<String> {
    let (threshold, calls, fewest) = capacity.judged_by_few(level)?;
    Some(format!("{} is judged by few calls: {} (-d)", brief(&threshold.to_string()), takes(calls, fewest)))
}

/// The rates within the answer that are in doubt.
fn doubtful(capacity: &Capacity, low: f64, high: f64) -> Option<String> {
    let within = |trial: &&Trial| {
        let counts = trial.length == Length::Full && trial.outcome != Outcome::Spoiled;
        counts && trial.level > low && trial.level < high
    };
    let within: Vec<_> = capacity.trials.iter().filter(within).collect();
    let met = within.iter().filter(|trial| trial.outcome == Outcome::Met).count();
    (!within.is_empty()).then(|| format!("between them in {met} of {} trials", within.len()))
}

/// The words for the levels of a search.
pub(super) struct Names {
    /// The title of their table.
    pub(super) title: &'static str,
    /// Above their column.
    pub(super) column: &'static str,
    /// The phrase for trials at the same level.
    pub(super) at_one: &'static str,
    /// The noun for a level.
    pub(super) noun: &'static str,
}

impl Names {
    pub(super) const fn new(searched: Searched) -> Self {
        match searched {
            Searched::Rate => Self { title: "Rates", column: "rate/s", at_one: "at one rate", noun: "rate" },
            Searched::Connections => Self {
                title: "Connections",
                column: "connections",
                at_one: "with as many connections",
                noun: "connections",
            },
            Searched::Users => Self { title: "Users", column: "users", at_one: "with as many users", noun: "users" },
        }
    }
}

/// The unit of the levels of a search, on an axis.
pub(super) const fn unit(plan: &Plan, searched: Searched) -> &'static str {
    match searched {
        Searched::Rate => plan.rate_unit(),
        Searched::Connections => "connections",
        Searched::Users => "users",
    }
}

fn rates(capacity: &Capacity, paint: Paint) -> Vec<String> {
    let values = capacity.trials.iter().flat_map(|trial| [trial.evidence.p50_ns, trial.evidence.p99_ns]);
    let scale = Logarithmic::fit(values.flatten().map(|ns| ns.value as f64), PLOT);
    let count = counted(capacity.trials.len() as u64, "trial");
    let names = Names::new(capacity.settings.searched);
    let mut lines =
        vec![format!("{}  {count}; of several {}, the typical one", paint.strong(names.title), names.at_one)];
    let mut table = Table::new([names.column, "short", "full", "ok/s", "p50", "p99", "failed", "o p50 ── p99 ●"]);
    for group in groups(capacity) {
        let Some(trial) = typical(&group) else { continue };
        let marks = [(trial.evidence.p50_ns, 'o'), (trial.evidence.p99_ns, '●')];
        let marks = marks.iter().filter_map(|(ns, mark)| Some((ns.as_ref()?.value as f64, *mark)));
        let plot = scale.map_or(String::new(), |scale| scale.line(&marks.collect::<Vec<_>>()));
        table.push(row(&group, trial, Cell::from(plot).as_(Role::Chart)));
    }
    if let Some(scale) = scale {
        table.push(["", "", "", "", "", "", "", &scale.legend()].map(|text| Cell::from(text).as_(Role::Faint)));
    }
    lines.extend(table.text(paint));
    lines
}

/// A row for each rate, with the reason if it was not met.
pub(super) fn table(capacity: &Capacity) -> Table {
    let names = Names::new(capacity.settings.searched);
    let mut table =
        Table::new([names.column, "short trials", "full trials", "ok/s", "p50", "p99", "failed", "not met because"]);
    for group in groups(capacity) {
        let Some(trial) = typical(&group) else { continue };
        table.push(row(&group, trial, clean(&trial.why).as_ref().into()));
    }
    table
}

/// The figures of a rate by its typical trial, and `last` behind them.
fn row(group: &[&Trial], trial: &Trial, last: Cell) -> [Cell; 8] {
    [
        rate(trial.level).into(),
        met(group, Length::Short),
        met(group, Length::Full),
        rate(trial.evidence.ok_per_s).into(),
        runs::time(trial.evidence.p50_ns).into(),
        runs::time(trial.evidence.p99_ns).into(),
        runs::failed(&trial.evidence),
        last,
    ]
}

/// The trials of each rate, from low to high.
pub(super) fn groups(capacity: &Capacity) -> Vec<Vec<&Trial>> {
    let mut trials: Vec<_> = capacity.trials.iter().collect();
    trials.sort_by_key(|trial| trial.step);
    trials.chunk_by(|a, b| a.step == b.step).map(<[_]>::to_vec).collect()
}

/// The trial with the median p99, of full length if there is one.
pub(super) fn typical<'a>(trials: &[&'a Trial]) -> Option<&'a Trial> {
    let longest = if trials.iter().any(|trial| trial.length == Length::Full) { Length::Full } else { Length::Short };
    let mut sorted: Vec<_> = trials.iter().copied().filter(|trial| trial.length == longest).collect();
    sorted.sort_by_key(|trial| trial.evidence.p99_ns.map(|p99| (p99.value, p99.at_least)));
    sorted.get(sorted.len() / 2).copied()
}

/// Such as `3/6`: met in three of six. Where some were spoiled, it is marked.
fn met(trials: &[&Trial], length: Length) -> Cell {
    let of = |outcome: Option<Outcome>| {
        trials.iter().filter(|t| t.length == length && outcome.is_none_or(|outcome| t.outcome == outcome)).count()
    };
    let (all, met) = (of(None), of(Some(Outcome::Met)));
    let mark = if of(Some(Outcome::Spoiled)) > 0 { "!" } else { "" };
    let role = match met {
        0 => Role::Bad,
        _ if met == all => Role::Good,
        _ => Role::Warning,
    };
    if all == 0 { "".into() } else { Cell::from(format!("{met}/{all}{mark}")).as_(role) }
}
