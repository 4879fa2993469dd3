//! A search for a capacity on its page: the p99 of each trial against its rate, and its rates.

use brunt_decide::capacity::{Answer, Capacity, Outcome};
use brunt_plan::plan::Plan;

use super::super::capacity;
use super::Content;
use super::drawing::{Axis, Chart, How, Line, Measured, Sign, csv, levels, limits, plots, section};
use super::own;
use super::tabled::tabled;
use crate::numbers::counted;
use crate::page::{Mark, Unit};
use crate::style::Role;

const HEIGHT: f64 = 170.0;

pub(super) fn content(plan: &Plan, capacity: &Capacity, is_over: bool) -> Content {
    let mut content = Content {
        title: format!("find {}", capacity::subject(plan, capacity)),
        how: vec![capacity::how(plan, capacity), format!("to be met: {}", capacity::criteria(plan, capacity))],
        ..Content::default()
    };
    let (sentence, reasons) = capacity::sentence(plan, capacity);
    let (sign, role) = capacity::outcome(capacity);
    if is_over {
        content.found.push((format!("{sign} {sentence}"), role));
    }
    content.found.extend(reasons.into_iter().map(|reason| (reason, Role::Plain)));
    if capacity.trials.is_empty() {
        return content;
    }
    let names = capacity::Names::new(capacity.settings.searched);
    let line = |name: &'static str, class, sign, outcome| Line {
        name: name.into(),
        class,
        how: How::Points,
        sign,
        places: capacity
            .trials
            .iter()
            .filter(|trial| trial.outcome == outcome)
            .filter_map(|trial| Some(Measured { x: trial.level, y: trial.evidence.p99_ns?.value.max(1) as f64 }))
            .collect(),
    };
    let mut lines = vec![
        line("met", "blue", Sign::Disc, Outcome::Met),
        line("failed", "orange", Sign::Cross, Outcome::Failed),
        line("spoiled by brunt", "faint", Sign::Ring, Outcome::Spoiled),
    ];
    lines.retain(|line| !line.places.is_empty());
    let axis =
        Axis::through(levels(capacity), capacity::unit(plan, capacity.settings.searched), super::super::runs::rate);
    let chart = Chart {
        title: "p99".into(),
        note: format!("of each trial, against its {}", names.noun),
        unit: Unit::Ns,
        is_logarithmic: true,
        height: HEIGHT,
        lines,
        limits: limits(plan, &[0.99]),
    };
    let mut charts = vec![chart];
    let runs: Vec<_> = capacity.trials.iter().map(|trial| (trial.level, &trial.evidence)).collect();
    charts.extend(own::charts(&runs, names.noun, How::Points));
    let mut plots = plots("latency", &axis, &charts);
    let mark =
        |at: f64, words: &str| Mark { class: "choice", from: axis.x(at), to: axis.x(at), words: words.to_owned() };
    if let Answer::Between { low, high, .. } = &capacity.answer {
        plots.marks = vec![mark(*low, "met"), mark(*high, "not met")];
    }
    let knees = capacity::knees(plan, capacity);
    let marked = knees.iter().filter(|(knee, _)| !knee.is_last);
    plots.marks.extend(marked.map(|(knee, _)| mark(knee.at, &format!("knee of {}", knee.figure))));
    content.found.extend(knees.into_iter().map(|(_, sentence)| (sentence, Role::Plain)));
    content.sections.push(section(
        "charts",
        &format!("Trials by {}", names.noun),
        &plots,
        csv("latency", &axis, &charts),
    ));
    let trials = counted(capacity.trials.len() as u64, "trial");
    let caption = format!("{trials}; of several {}, the typical one", names.at_one);
    // Each rate links to the trial that is shown for it.
    let shown = capacity::groups(capacity).into_iter().map(|group| {
        let shown = capacity::typical(&group)?;
        let nth = capacity.trials.iter().position(|trial| std::ptr::eq(trial, shown))?;
        Some(format!("#run-{}", nth + 1))
    });
    let hrefs: Vec<_> = shown.collect();
    content.sections.push(tabled("rates", names.title, &caption, &capacity::table(capacity), &hrefs));
    content
}
