//! The views of a capacity that was searched for.

use brunt_decide::capacity::{Answer, Capacity, Length, Outcome, Trial};
use brunt_decide::evidence::Evidence;
use brunt_judge::verdict::Judgement;
use brunt_plan::arrivals::Spread;
use brunt_plan::plan::{Load, Plan};

use super::plot::Logarithmic;
use super::runs::{self, COLUMNS, rate};
use super::table::{Cell, Table};
use crate::csv::Row;
use crate::numbers::{clean, counted, percent};
use crate::style::{Paint, Role};
use crate::text::{WIDTH, concurrency, wrapped};

/// Room for the plot beside the figures of a rate.
const PLOT: usize = 24;

pub(super) fn text(plan: &Plan, capacity: &Capacity, label: Vec<String>, paint: Paint) -> String {
    let mut sections = vec![[head(plan, paint), label].concat(), answer(capacity, paint)];
    if !capacity.trials.is_empty() {
        let (role, verdicts) = verdict(capacity);
        sections.push(wrapped("", "  ", &verdicts, WIDTH).into_iter().map(|line| paint.as_(role, line)).collect());
        sections.push(rates(capacity, paint));
    }
    sections.iter().map(|lines| lines.join("\n")).collect::<Vec<_>>().join("\n\n") + "\n"
}

pub(super) fn markdown(plan: &Plan, capacity: &Capacity) -> String {
    let (sentence, reasons) = sentence(capacity);
    let reasons = if reasons.is_empty() { String::new() } else { format!(" ({})", clean(&reasons.join("; "))) };
    let mut parts = vec![
        format!("# Capacity of {}", clean(&plan.target.url())),
        format!("**{}**{reasons}", clean(&sentence)),
        format!("To be met: {}. {}.", clean(&criteria(plan)), how(plan)),
    ];
    if !capacity.trials.is_empty() {
        let (_, verdicts) = verdict(capacity);
        parts.push(clean(&verdicts).into_owned());
        parts.push(table(capacity).markdown().trim_end().to_owned());
    }
    parts.join("\n\n") + "\n"
}

/// A line on whether brunt itself decided trials. A doubt about a figure that no threshold looks at is none here.
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

pub(super) fn csv(plan: &Plan, capacity: &Capacity) -> String {
    let names = ["trial", "rate_per_s", "length", "outcome", "why"];
    let mut text = names.into_iter().chain(COLUMNS).collect::<Vec<_>>().join(",") + "\n";
    for (number, trial) in (1..).zip(&capacity.trials) {
        let mut row = Row::default();
        row.put(number);
        row.put(trial.rate_per_s);
        row.put(if trial.length == Length::Full { "full" } else { "short" });
        row.put(match trial.outcome {
            Outcome::Met => "met",
            Outcome::Failed => "failed",
            Outcome::Spoiled => "spoiled",
        });
        row.put(&trial.why);
        runs::put(&mut row, &trial.evidence, &plan.origin);
        text += &row.line();
    }
    text
}

fn head(plan: &Plan, paint: Paint) -> Vec<String> {
    let mut lines = vec![format!("{} {}", paint.strong("brunt find"), paint.strong(clean(&plan.target.url())))];
    for text in [how(plan), format!("to be met: {}", criteria(plan))] {
        lines.extend(wrapped("  ", "  ", &text, WIDTH).into_iter().map(|line| paint.faint(line)));
    }
    lines
}

pub(super) fn how(plan: &Plan) -> String {
    let arrivals = match &plan.load {
        Load::Open { arrivals: Spread::Poisson, .. } => "poisson",
        _ => "uniform",
    };
    format!(
        "{}, {arrivals} arrivals, trials of {}, seed {}",
        concurrency(plan),
        runs::lengths(plan.duration_ns(), None, plan.warmup_ns),
        plan.seed
    )
}

pub(super) fn criteria(plan: &Plan) -> String {
    let thresholds = plan.thresholds.iter().map(ToString::to_string);
    thresholds.chain(["the target keeps up".to_owned()]).collect::<Vec<_>>().join(", ")
}

fn answer(capacity: &Capacity, paint: Paint) -> Vec<String> {
    let (sentence, reasons) = sentence(capacity);
    let (sign, role) = if capacity.answer.is_known() { ("✓ ", Role::Good) } else { ("✗ ", Role::Bad) };
    let sentence = wrapped(sign, "  ", &clean(&sentence), WIDTH).into_iter().map(|line| paint.as_(role, line));
    let reasons = reasons.into_iter().flat_map(|reason| wrapped("  ", "  ", &clean(&reason), WIDTH));
    sentence.chain(reasons).collect()
}

/// The answer in a sentence, and what is to be said about it.
pub(super) fn sentence(capacity: &Capacity) -> (String, Vec<String>) {
    let beyond = |met: &Option<f64>| match met {
        Some(met) => format!("{}/s was met; beyond that nothing is known of the target", rate(*met)),
        None => "no rate was met, and nothing is known of the target".to_owned(),
    };
    match &capacity.answer {
        Answer::Between { low_per_s, high_per_s, repeats } => (
            format!("the capacity is between {} and {} calls/s", rate(*low_per_s), rate(*high_per_s)),
            between(capacity, *low_per_s, *high_per_s, *repeats),
        ),
        Answer::AtLeast { rate_per_s } => (
            format!("the capacity is at least {} calls/s, the highest rate allowed", rate(*rate_per_s)),
            vec!["to look further, raise --highest".to_owned()],
        ),
        Answer::BelowAll { rate_per_s } => (
            format!("no capacity: not even {}/s was met", rate(*rate_per_s)),
            capacity.trials.last().map(|trial| trial.why.clone()).into_iter().collect(),
        ),
        Answer::Generator { met_per_s, at_per_s, verdict } => (
            match met_per_s {
                Some(met) => format!("the capacity is at least {} calls/s: brunt is the limit", rate(*met)),
                None => format!("no answer: brunt, not the target, gave out at {}/s", rate(*at_per_s)),
            },
            vec![
                match met_per_s {
                    Some(_) => format!("the verdict at {}/s: {verdict}", rate(*at_per_s)),
                    None => format!("no rate was met; the verdict: {verdict}"),
                },
                "give brunt more cores (-t), keep other work off them, or let it run on a machine of its own"
                    .to_owned(),
            ],
        ),
        Answer::Connections { met_per_s, at_per_s, service_p50_ns, unloaded_service_p50_ns } => (
            format!(
                "no answer: at {}/s all connections were in use while the target was as fast as ever",
                rate(*at_per_s)
            ),
            vec![
                beyond(&Some(*met_per_s)),
                format!(
                    "from sent to end p50 was {}, and {} at its best: it is -c that is the limit, so give twice as many",
                    runs::ns(*service_p50_ns),
                    runs::ns(*unloaded_service_p50_ns)
                ),
            ],
        ),
        Answer::Unsteady { met_per_s } => (
            "no answer: repetitions contradict each other, the target is not steady".to_owned(),
            vec![
                beyond(met_per_s),
                "longer trials (-d) even out more, and a larger --precision asks for less".to_owned(),
            ],
        ),
        Answer::StoppedAnswering { at_per_s } => (
            format!("no answer: the target stopped answering; the last rate tried was {}/s", rate(*at_per_s)),
            Vec::new(),
        ),
        Answer::NeverAnswered { failure } => (format!("no answer: the target never answered ({failure})"), Vec::new()),
        Answer::Interrupted { met_per_s, failed_per_s } => {
            let so_far = match (met_per_s, failed_per_s) {
                (Some(met), Some(failed)) => format!("so far {}/s was met and {}/s was not", rate(*met), rate(*failed)),
                (Some(met), None) => format!("so far {}/s was met", rate(*met)),
                (None, Some(failed)) => format!("so far {}/s was not met", rate(*failed)),
                (None, None) => "nothing was seen so far".to_owned(),
            };
            ("no answer: interrupted".to_owned(), vec![so_far])
        }
    }
}

/// What the ends of the interval rest on.
fn between(capacity: &Capacity, low: f64, high: f64, repeats: u32) -> Vec<String> {
    let mut reasons = vec![format!(
        "met at {}/s in {repeats} of {repeats} trials, at {}/s in none of {repeats}",
        rate(low),
        rate(high)
    )];
    let why = capacity.trials.iter().rfind(|trial| trial.rate_per_s == high).map(|trial| &trial.why);
    reasons.extend(why.map(|why| format!("not met at {}/s: {why}", rate(high))));
    reasons.extend(doubtful(capacity, low, high));
    reasons.push(format!(
        "if either bound were wrong, at most {} of searches would look like this ({} tried, {} each)",
        percent(capacity.chance_of_error()),
        counted(capacity.rates_tried() as u64, "rate"),
        counted(u64::from(repeats), "trial")
    ));
    reasons
}

/// Says which rates within the answer are in doubt.
fn doubtful(capacity: &Capacity, low: f64, high: f64) -> Option<String> {
    let within = |trial: &&Trial| {
        let counts = trial.length == Length::Full && trial.outcome != Outcome::Spoiled;
        counts && trial.rate_per_s > low && trial.rate_per_s < high
    };
    let within: Vec<_> = capacity.trials.iter().filter(within).collect();
    let met = within.iter().filter(|trial| trial.outcome == Outcome::Met).count();
    (!within.is_empty()).then(|| format!("between them in {met} of {} trials", within.len()))
}

fn rates(capacity: &Capacity, paint: Paint) -> Vec<String> {
    let values = capacity.trials.iter().flat_map(|trial| [trial.evidence.p50_ns, trial.evidence.p99_ns]);
    let scale = Logarithmic::fit(values.flatten().map(|ns| ns.value as f64), PLOT);
    let count = counted(capacity.trials.len() as u64, "trial");
    let mut lines = vec![format!("{}  {count}; of several at one rate, the typical one", paint.strong("Rates"))];
    let mut table = Table::new(["rate/s", "short", "full", "p50", "p99", "failed", "o p50 ── p99 ●"]);
    for group in groups(capacity) {
        let Some(trial) = typical(&group) else { continue };
        let marks = [(trial.evidence.p50_ns, 'o'), (trial.evidence.p99_ns, '●')];
        let marks = marks.iter().filter_map(|(ns, mark)| Some((ns.as_ref()?.value as f64, *mark)));
        let plot = scale.map_or(String::new(), |scale| scale.line(&marks.collect::<Vec<_>>()));
        table.push([
            rate(trial.rate_per_s).into(),
            met(&group, Length::Short),
            met(&group, Length::Full),
            runs::time(trial.evidence.p50_ns).into(),
            runs::time(trial.evidence.p99_ns).into(),
            runs::failed(&trial.evidence),
            Cell::from(plot).as_(Role::Chart),
        ]);
    }
    if let Some(scale) = scale {
        table.push(["", "", "", "", "", "", &scale.legend()].map(|text| Cell::from(text).as_(Role::Faint)));
    }
    lines.extend(table.text(paint));
    lines
}

/// A row for each rate, with why it was not met.
pub(super) fn table(capacity: &Capacity) -> Table {
    let mut table =
        Table::new(["rate/s", "short trials", "full trials", "answered/s", "p50", "p99", "failed", "not met because"]);
    for group in groups(capacity) {
        let Some(trial) = typical(&group) else { continue };
        table.push([
            rate(trial.rate_per_s).into(),
            met(&group, Length::Short),
            met(&group, Length::Full),
            rate(trial.evidence.ok_per_s()).into(),
            runs::time(trial.evidence.p50_ns).into(),
            runs::time(trial.evidence.p99_ns).into(),
            runs::failed(&trial.evidence),
            clean(&trial.why).as_ref().into(),
        ]);
    }
    table
}

/// The trials of each rate, from low to high.
pub(super) fn groups(capacity: &Capacity) -> Vec<Vec<&Trial>> {
    let mut trials: Vec<_> = capacity.trials.iter().collect();
    trials.sort_by_key(|trial| trial.step);
    trials.chunk_by(|a, b| a.step == b.step).map(<[_]>::to_vec).collect()
}

/// The one with the median p99, of full length if there is one.
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
