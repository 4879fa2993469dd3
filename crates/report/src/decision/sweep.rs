//! The views of a sweep.

use brunt_decide::decision::Decision;
use brunt_decide::evidence::Evidence;
use brunt_decide::knee::Knee;
use brunt_decide::sweep::{Choice, ENOUGH, Fit, FitInterval, Law, NoFit, Peak, Sweep, SweepStep};
use brunt_plan::plan::{Load, Plan};
use brunt_plan::scenario::Population;

use super::leading;
use super::not_made::not_made;
use super::plot::Logarithmic;
use super::runs::{self, COLUMNS, rate};
use super::table::{Cell, Table};
use super::watched;
use crate::chart;
use crate::csv::Row;
use crate::numbers::{clean, count, counted, percent};
use crate::style::{Paint, Role};
use crate::text::{WIDTH, wrapped};

/// Room for the plots beside a value.
const LATENCY: usize = 44;
const OUTCOMES: usize = 30;

pub(super) fn text(plan: &Plan, sweep: &Sweep, label: Vec<String>, paint: Paint) -> String {
    let mut sections = vec![[head(plan, sweep, paint), label].concat(), conclusion(sweep, paint)];
    let runs: Vec<_> = sweep.steps.iter().filter_map(|step| step.evidence.as_ref()).collect();
    if !runs.is_empty() {
        // Where nothing answered, the conclusion states it.
        if sweep.steps.iter().any(SweepStep::is_answered) {
            let (role, verdicts) = runs::verdicts(runs);
            let lines = wrapped("", "  ", &clean(&verdicts), WIDTH);
            sections.push(lines.into_iter().map(|line| paint.as_(role, line)).collect());
        }
        sections.push(table(sweep).text(paint));
        sections.push(problems(sweep, paint));
        let rows: Vec<_> = sweep
            .steps
            .iter()
            .filter_map(|step| {
                let evidence = step.evidence.as_ref()?;
                Some((count(step.value), vec![evidence]))
            })
            .collect();
        let knees = knees(plan, sweep);
        sections.push(leading::section(&rows, &plan.target.scheme, &knees, paint));
        sections.push(watched::section(&rows, paint));
        sections.push(latency(sweep, paint));
        sections.push(outcomes(sweep, paint));
    }
    let sections = sections.iter().filter(|lines| !lines.is_empty());
    sections.map(|lines| lines.join("\n")).collect::<Vec<_>>().join("\n\n") + "\n"
}

pub(super) fn markdown(plan: &Plan, sweep: &Sweep) -> String {
    let mut parts = vec![format!("# Sweep of {} at {}", sweep.axis.name, clean(&runs::subject(plan)))];
    parts.extend(law(sweep).into_iter().map(|(_, sentence)| clean(&sentence).into_owned()));
    parts.push(how(plan));
    let runs: Vec<_> = sweep.steps.iter().filter_map(|step| step.evidence.as_ref()).collect();
    if !runs.is_empty() {
        parts.push(clean(&runs::verdicts(runs).1).into_owned());
        parts.push(table(sweep).markdown().trim_end().to_owned());
    }
    let problems = sweep.steps.iter().filter(|step| !step.problem.is_empty());
    let problems: Vec<_> = problems.map(|step| format!("- {}: {}", count(step.value), clean(&step.problem))).collect();
    if !problems.is_empty() {
        parts.push(problems.join("\n"));
    }
    parts.extend(knees(plan, sweep).into_iter().map(|(_, sentence)| sentence));
    if !sweep.ended.is_empty() {
        parts.push(clean(&sweep.ended).into_owned());
    }
    parts.join("\n\n") + "\n"
}

/// The knees of the protocol's figures over the values.
pub(super) fn knees(plan: &Plan, sweep: &Sweep) -> Vec<(Knee, String)> {
    let name = &sweep.axis.name;
    leading::knees(Decision::Sweep(plan, sweep), |value| format!("{} {name}", count(value as u64)))
}

pub(super) fn csv(plan: &Plan, sweep: &Sweep) -> String {
    let names = [sweep.axis.name.as_str(), "thresholds_held", "problem"];
    let own = leading::columns(sweep.steps.iter().filter_map(|step| step.evidence.as_ref()));
    let mut text = runs::head(&names, &own);
    for step in &sweep.steps {
        let mut row = Row::default();
        row.put(step.value);
        row.put(u8::from(step.is_good()));
        row.put(&step.problem);
        match &step.evidence {
            Some(run) => runs::put(&mut row, run, &plan.origin),
            None => COLUMNS.iter().for_each(|_| row.put("")),
        }
        leading::put(&mut row, step.evidence.as_ref(), &own);
        text += &row.line();
    }
    text
}

fn head(plan: &Plan, sweep: &Sweep, paint: Paint) -> Vec<String> {
    let title = format!("brunt sweep {} {}", sweep.axis.name, clean(&runs::subject(plan)));
    let how = wrapped("  ", "  ", &how(plan), WIDTH).into_iter().map(|line| paint.faint(line));
    std::iter::once(paint.strong(title)).chain(how).collect()
}

/// How the runs are made; the table shows the varied parameter.
pub(super) fn how(plan: &Plan) -> String {
    let of_users = plan.scenarios.as_ref().and_then(|scenarios| scenarios.populations.first());
    let model = match &plan.load {
        Load::Closed {} if of_users.is_some_and(Population::is_open) => "open model of a script's users".to_owned(),
        Load::Closed {} if of_users.is_some() => "closed model of a script's users".to_owned(),
        Load::Closed {} => "closed model".to_owned(),
        Load::Open { .. } | Load::Replay(_) => "open model".to_owned(),
    };
    let lengths = runs::lengths(plan.load_ns(), plan.stop.requests, plan.warmup_ns);
    let mut text = format!("{model}, {lengths}, seed {}", plan.seed);
    if !plan.thresholds.is_empty() {
        let thresholds: Vec<_> = plan.thresholds.iter().map(ToString::to_string).collect();
        text += &[", to be met: ", &thresholds.join(", ")].concat();
    }
    text
}

fn conclusion(sweep: &Sweep, paint: Paint) -> Vec<String> {
    let law = law(sweep).into_iter().flat_map(|(role, sentence)| {
        let mark = match role {
            Role::Bad => "✗ ",
            Role::Warning => "! ",
            _ => "→ ",
        };
        wrapped(mark, "  ", &clean(&sentence), WIDTH).into_iter().map(move |line| paint.as_(role, line))
    });
    let ended = (!sweep.ended.is_empty()).then(|| wrapped("! ", "  ", &clean(&sweep.ended), WIDTH));
    law.chain(ended.into_iter().flatten().map(|line| paint.warning(line))).collect()
}

/// The result, in sentences: first the choice for the reader, then warnings, then the law.
pub(super) fn law(sweep: &Sweep) -> Vec<(Role, String)> {
    let of = counted(sweep.steps.len() as u64, "value");
    let silent: Vec<_> = sweep.steps.iter().filter(|step| !step.is_answered()).collect();
    let mut sentences: Vec<_> = not_made(&sweep.lacking).map(|not_made| (Role::Warning, not_made)).collect();
    if let Some(first) = silent.first() {
        let text =
            format!("{} of {of} without an answer, such as {}: {}", silent.len(), count(first.value), first.problem);
        sentences.push((Role::Bad, text));
        if silent.len() == sweep.steps.len() {
            return sentences;
        }
    }
    let missed: Vec<_> = sweep.steps.iter().filter(|step| step.is_answered() && !step.is_good()).collect();
    if let Some(first) = missed.first() {
        let text = format!(
            "thresholds failed at {} of {of}, such as {}: {}",
            missed.len(),
            count(first.value),
            first.why_not()
        );
        sentences.push((Role::Bad, text));
    }
    let useless: Vec<_> =
        sweep.steps.iter().filter_map(|step| Some((step, step.evidence.as_ref()?.without_yield()?))).collect();
    if let Some((first, figure)) = useless.first() {
        let is_all = useless.len() + silent.len() == sweep.steps.len();
        let text = if is_all {
            format!("{figure} is 0 at every value: no call met its objectives")
        } else {
            format!(
                "{figure} is 0 at {} of {of}, such as {}: no call met its objectives",
                useless.len(),
                count(first.value)
            )
        };
        sentences.push((if is_all { Role::Bad } else { Role::Warning }, text));
        // How many calls are answered is then no answer.
        sentences.extend(choice(sweep));
    } else {
        sentences.extend(choice(sweep).or_else(|| highest(sweep)));
    }
    let left_out = if sweep.law.is_some() { "; the law leaves them out" } else { "" };
    for (number, what) in [
        (sweep.generator_bound, "brunt, not the target, was the limit: throughput there is a lower bound"),
        (sweep.latency_unreliable, "brunt itself had to wait: throughput and latency there are not the target's alone"),
    ] {
        if number > 0 {
            sentences.push((Role::Warning, format!("at {number} of {of} {what}{left_out}")));
        }
    }
    match &sweep.law {
        None => {}
        Some(Law::NoFit(why @ NoFit::TooFew { .. })) => {
            sentences.push((Role::Faint, format!("no knee or peak can be named: {why}")));
        }
        Some(Law::NoFit(why)) => sentences.push((Role::Faint, why.to_string())),
        Some(Law::Fit(fit)) => fitted(fit, &mut sentences),
    }
    sentences
}

/// A value of an axis as a sentence begins with it, and the verb's form: `8 connections answer`, `rate 50 answers`.
fn subject(name: &str, value: u64) -> (String, &'static str) {
    match name.strip_suffix('s') {
        Some(one) if value == 1 => (format!("1 {one}"), "answers"),
        Some(_) => (format!("{} {name}", count(value)), "answer"),
        None => (format!("{name} {}", count(value)), "answers"),
    }
}

/// Such as `8 connections answer 12,380 calls/s, 99% of the most (12,500 at 64 connections), at 0.50 × the p99: 5ms instead of 10ms`.
fn choice(sweep: &Sweep) -> Option<(Role, String)> {
    let choice = sweep.choice()?;
    let Choice { enough: (value, run), most: (most, at_most) } = choice;
    let name = &sweep.axis.name;
    let (subject, answers) = subject(name, value);
    let is_asked = run.thresholds.iter().any(|result| !result.is_implicit());
    let met = if is_asked { " with every threshold met" } else { "" };
    if value == most {
        let less = sweep.steps.iter().any(|step| step.value < value && step.evidence.is_some());
        let less = if less { format!("; fewer answer less than {} of that", percent(ENOUGH)) } else { String::new() };
        let text = format!("{subject} {answers} the most{met}: {} calls/s{less}", rate(run.ok_per_s));
        return Some((Role::Strong, text));
    }
    let share = (choice.throughput_ratio() * 100.0).round();
    let share =
        if share < 100.0 { format!("{} of the most", percent(share / 100.0)) } else { "as many as any".to_owned() };
    let latency = choice.latency_ratio().map_or(String::new(), |(percentile, ratio)| {
        let time = |run: &Evidence| runs::time(run.quantile(percentile));
        let (here, there, percentile) = (time(run), time(at_most), percentile.name());
        match ratio {
            0.95..1.05 => format!(", at the same {percentile} of {here}"),
            _ => format!(", at {ratio:.2} × the {percentile}: {here} instead of {there}"),
        }
    });
    let text = format!(
        "{subject} {answers} {} calls/s{met}, {share} ({} at {}){latency}",
        rate(run.ok_per_s),
        rate(at_most.ok_per_s),
        self::subject(name, most).0,
    );
    Some((Role::Strong, text))
}

fn fitted(fit: &Fit, sentences: &mut Vec<(Role, String)>) {
    if fit.is_poor {
        let off = percent(fit.residual_ratio);
        let text = format!("no knee and no peak: the Universal Scalability Law misses the values by {off} on average");
        sentences.push((Role::Faint, text));
        return;
    }
    bends(fit, sentences);
    let text = format!(
        "Universal Scalability Law over {}: λ {}/s, σ {}, κ {}; it misses the values by {} on average",
        counted(fit.points as u64, "value"),
        whole(&fit.lambda_per_s),
        small(&fit.sigma),
        small(&fit.kappa),
        percent(fit.residual_ratio)
    );
    sentences.push((Role::Faint, text));
}

/// The bend of throughput, by the law.
fn bends(fit: &Fit, sentences: &mut Vec<(Role, String)>) {
    if let Some(knee) = &fit.knee {
        let text = format!("knee at {} connections: more of them mostly queue", whole(knee));
        sentences.push((Role::Plain, text));
    }
    let text = match &fit.peak {
        Some(Peak { connections, per_s, is_beyond }) => {
            let beyond = if *is_beyond { ", beyond what was tried" } else { "" };
            format!("peak at {} connections, {} calls/s{beyond}", whole(connections), whole(per_s))
        }
        None if fit.knee.is_none() => "no knee and no peak seen: throughput grows with connections".to_owned(),
        None => "no peak: throughput levels off and was not seen to fall".to_owned(),
    };
    sentences.push((Role::Plain, text));
}

/// The most calls answered a second, and where.
fn highest(sweep: &Sweep) -> Option<(Role, String)> {
    let runs = sweep.steps.iter().filter_map(|step| Some((step.value, step.evidence.as_ref()?.ok_per_s)));
    let (value, per_s) = runs.filter(|(_, per_s)| *per_s > 0.0).max_by(|a, b| a.1.total_cmp(&b.1))?;
    let text = format!("most answered: {} calls/s at {} {}", rate(per_s), count(value), sweep.axis.name);
    Some((Role::Plain, text))
}

fn whole(interval: &FitInterval) -> String {
    format!("{} [{}, {}]", rate(interval.value), rate(interval.low), rate(interval.high))
}

fn small(interval: &FitInterval) -> String {
    format!("{:.2e} [{:.1e}, {:.1e}]", interval.value, interval.low, interval.high)
}

pub(super) fn table(sweep: &Sweep) -> Table {
    let mut table = Table::new(["", "answered/s", "mean", "p50", "p99", "ok", "failed", ""]);
    for step in &sweep.steps {
        let value = Cell::from(count(step.value)).as_(Role::Strong);
        let Some(run) = &step.evidence else {
            table.push([value, "-".into(), "-".into(), "-".into(), "-".into(), "-".into(), "-".into(), "✗".into()]);
            continue;
        };
        let mean = run.mean_ns.map(|mean| mean.map(|ns| ns.round() as u64));
        table.push([
            value,
            rate(run.ok_per_s).into(),
            runs::time(mean).into(),
            runs::time(run.p50_ns).into(),
            runs::time(run.p99_ns).into(),
            count(run.ok).into(),
            runs::failed(run),
            mark(step, run),
        ]);
    }
    table
}

/// A remark on a value, in a word or two.
fn mark(step: &SweepStep, run: &Evidence) -> Cell {
    if !step.problem.is_empty() {
        Cell::from("✗ no answer").as_(Role::Bad)
    } else if run.failed_threshold().is_some() {
        Cell::from("✗ threshold").as_(Role::Bad)
    } else if !run.is_rate_believed {
        Cell::from("! generator").as_(Role::Warning)
    } else if !run.is_trustworthy() {
        Cell::from("! latency").as_(Role::Warning)
    } else {
        "".into()
    }
}

fn problems(sweep: &Sweep, paint: Paint) -> Vec<String> {
    let lines = sweep.steps.iter().flat_map(|step| {
        let why = step.why_not();
        let text = format!("at {}: {}", count(step.value), clean(&why));
        if why.is_empty() { Vec::new() } else { wrapped("  ✗ ", "    ", &text, WIDTH) }
    });
    lines.map(|line| paint.bad(line)).collect()
}

fn latency(sweep: &Sweep, paint: Paint) -> Vec<String> {
    let runs = || sweep.steps.iter().filter_map(|step| Some((step.value, step.evidence.as_ref()?)));
    let times = runs().flat_map(|(_, run)| [run.p50_ns, run.p99_ns]).flatten().map(|ns| ns.value as f64);
    let Some(scale) = Logarithmic::fit(times, LATENCY) else { return Vec::new() };
    let mut table = Table::new([" ", " "]);
    for (value, run) in runs() {
        let marks = [(run.p50_ns, 'o'), (run.p99_ns, '●')];
        let marks: Vec<_> = marks.iter().filter_map(|(ns, mark)| Some((ns.as_ref()?.value as f64, *mark))).collect();
        table.push([Cell::from(count(value)), Cell::from(scale.line(&marks)).as_(Role::Chart)]);
    }
    table.push(["".into(), Cell::from(scale.legend()).as_(Role::Faint)]);
    let title = format!("{}  o p50 ── p99 ●, against {}", paint.strong("Latency"), sweep.axis.name);
    std::iter::once(title).chain(table.text(paint).into_iter().skip(1)).collect()
}

fn outcomes(sweep: &Sweep, paint: Paint) -> Vec<String> {
    let runs = || sweep.steps.iter().filter_map(|step| Some((step.value, step.evidence.as_ref()?)));
    let per_s = |n: u64, run: &Evidence| n as f64 * 1e9 / run.measured_ns.max(1) as f64;
    let most = runs().map(|(_, run)| per_s(run.ok, run).max(per_s(run.failed, run))).fold(0.0, f64::max);
    if most <= 0.0 {
        return Vec::new();
    }
    let bar = |n: u64, run: &Evidence| chart::filled(per_s(n, run) / most, OUTCOMES);
    let mut table = Table::new([" ", " "]);
    let widest = runs().map(|(_, run)| bar(run.ok, run).chars().count()).max().unwrap_or(0);
    for (value, run) in runs() {
        let line = format!("{:<widest$} {}", bar(run.ok, run), bar(run.failed, run).replace('█', "▒"));
        table.push([Cell::from(count(value)), Cell::from(line.trim_end()).as_(Role::Chart)]);
    }
    let title = format!("{}  █ ok and ▒ failed a second, against {}", paint.strong("Outcomes"), sweep.axis.name);
    std::iter::once(title).chain(table.text(paint).into_iter().skip(1)).collect()
}
