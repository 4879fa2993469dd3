//! A decision as a page: the result, in the words of the other views; drawings; tables; and the runs behind it.

mod capacity;
mod comparison;
mod drawing;
mod own;
mod runs;
mod sweep;
mod tabled;

use std::path::Path;

use brunt_decide::capacity::{Length, Trial};
use brunt_decide::evidence::Evidence;
use brunt_decide::sweep::SweepStep;

use super::Decision;
use super::runs as figures;
use crate::dates::iso_8601;
use crate::markup::Html;
use crate::numbers::{brief, clean, count};
use crate::page::{Page, Section, repeat, write_all};
use crate::style::Role;
use crate::text;

/// Where the runs of a decision can be found.
#[derive(Debug, Clone, Copy, Default)]
pub struct Runs<'a> {
    /// The runs' numbers in the store, in the order in which they were made; fewer than there are runs where some were
    /// not kept.
    pub kept: &'a [i64],
    /// The text before a number in the address of a run's page, where such pages are served; otherwise empty.
    pub address: &'a str,
    /// The file of the store, if it is not the default one.
    pub store: Option<&'a Path>,
}

impl Runs<'_> {
    /// The number of each run; `None` where some were not kept, so that numbers cannot be matched to runs.
    fn numbers(&self, of: usize) -> Option<&[i64]> {
        (self.kept.len() == of).then_some(self.kept)
    }

    /// The command that makes the page of a run.
    fn command(&self, number: i64) -> String {
        let store = self.store.map(|path| path.to_string_lossy().into_owned());
        let store = store.map(|path| format!(" --store '{}'", path.replace('\'', "'\\''")));
        format!("brunt report {number}{} -o run-{number}.html", store.unwrap_or_default())
    }
}

/// The content of a decision's page.
#[derive(Debug, Default)]
struct Content {
    title: String,
    how: Vec<String>,
    /// The result, in sentences. The first is the page's headline.
    found: Vec<(String, Role)>,
    sections: Vec<Section>,
}

/// The page of `decision`; `live` is its progress, where it goes on.
pub(crate) fn page(decision: Decision<'_>, found: Runs<'_>, live: Option<&str>) -> Page {
    let mut content = match decision {
        Decision::Sweep(plan, sweep) => sweep::content(plan, sweep),
        Decision::Capacity(plan, capacity) => capacity::content(plan, capacity, live.is_none()),
        Decision::Comparison(compared) => comparison::content(compared),
    };
    let evidence = evidence(decision);
    if !evidence.is_empty() {
        let (role, verdicts) = match decision {
            Decision::Capacity(_, capacity) => super::capacity::verdict(capacity),
            _ => figures::verdicts(evidence.iter().map(|(_, run)| *run)),
        };
        content.found.push((verdicts, role));
        content.sections.push(runs::section(&evidence, found));
        content.sections.extend(runs::leading(&evidence));
        content.sections.extend(runs::watched(&evidence));
    }
    if evidence.is_empty() {
        content.found.push(match live {
            Some(_) => ("no run has ended yet: what is found stands here after the first one".to_owned(), Role::Plain),
            None => ("no run ended, so nothing was found: the command below runs it again".to_owned(), Role::Warning),
        });
    }
    content.found.extend(decision.lacking().losses.iter().map(|loss| (loss.clone(), Role::Warning)));
    content.sections.push(repeat(&decision.origin().command));
    let name = decision.origin().name.as_deref().map_or_else(String::new, |name| format!("{}: ", brief(name)));
    let title = format!("{name}{}", clean(&content.title));
    let mut main = Html::default();
    main.raw("<header><h1><span class=\"brand\">brunt</span> ").text(&title).raw("</h1></header>");
    if let Some(how_far) = live {
        main.raw("<div id=\"live\" role=\"group\" aria-label=\"live\"><p><strong>● running</strong> ")
            .text(&clean(how_far));
        main.raw("</p><p id=\"problem\" class=\"warning\" role=\"status\"></p></div>");
    }
    sentences(&mut main, &content.found, live.is_some());
    made(&mut main, decision, &content.how);
    write_all(&mut main, &content.sections);
    Page::new(title, main)
}

/// How and when the runs were made, below what was found.
fn made(html: &mut Html, decision: Decision<'_>, how: &[String]) {
    html.raw("<div id=\"made\">");
    for line in how.iter().filter(|line| !line.is_empty()) {
        html.raw("<p class=\"faint\">").text(&clean(line)).raw("</p>");
    }
    html.raw("<p class=\"faint\">");
    if let Some(began) = decision.started_unix_ms() {
        html.raw("<time datetime=\"")
            .text(&iso_8601(began / 1000))
            .raw("\">")
            .text(&text::moment(began))
            .raw("</time> · ");
    }
    html.raw("brunt ").raw(env!("CARGO_PKG_VERSION"));
    if let Some(machine) = decision.machine() {
        html.raw(" · <span id=\"machine\">on ").text(&clean(&machine.to_string())).raw("</span>");
    }
    for (key, value) in &decision.origin().tags {
        html.raw(" <span class=\"tag\">").text(&brief(&format!("{key}={value}"))).raw("</span>");
    }
    html.raw("</p></div>");
}

/// The result; the first sentence leads.
fn sentences(html: &mut Html, found: &[(String, Role)], is_live: bool) {
    if found.is_empty() {
        return;
    }
    html.raw("<section id=\"found\" aria-labelledby=\"found-title\"><h2 id=\"found-title\">");
    html.raw(if is_live { "What was found so far" } else { "What was found" }).raw("</h2>");
    for (nth, (sentence, role)) in found.iter().enumerate() {
        let class = if *role == Role::Strong { "" } else { tabled::class(*role) };
        html.raw("<p class=\"")
            .raw(if nth == 0 { "outcome " } else { "" })
            .raw(class)
            .raw("\">")
            .text(&clean(sentence))
            .raw("</p>");
    }
    html.raw("</section>");
}

/// The decision in a sentence.
pub fn conclusion(decision: Decision<'_>) -> String {
    match decision {
        Decision::Sweep(_, sweep) => {
            super::sweep::law(sweep).into_iter().next().map_or(String::new(), |(_, text)| text)
        }
        Decision::Capacity(plan, capacity) => super::capacity::sentence(plan, capacity).0,
        Decision::Comparison(compared) => super::comparison::sentences(compared).join("; "),
    }
}

/// The runs behind a decision, with their names.
fn evidence(decision: Decision<'_>) -> Vec<(String, &Evidence)> {
    match decision {
        Decision::Sweep(_, sweep) => {
            let of = |step: &'_ SweepStep| format!("{} {}", sweep.axis.name, count(step.value));
            sweep.steps.iter().filter_map(|step| Some((of(step), step.evidence.as_ref()?))).collect()
        }
        Decision::Capacity(_, capacity) => {
            let length = |length| if length == Length::Full { "full" } else { "short" };
            let each = (1..).zip(&capacity.trials);
            let of = |(n, trial): (u32, &'_ Trial)| {
                let level = super::capacity::level(capacity.settings.searched, trial.level);
                format!("trial {n}, {level}, {}", length(trial.length))
            };
            each.map(|(n, trial)| (of((n, trial)), &trial.evidence)).collect()
        }
        Decision::Comparison(compared) => {
            let side = |is_b| if is_b { "B" } else { "A" };
            compared.runs.iter().map(|run| (format!("{} {}", side(run.is_b), run.number), &run.evidence)).collect()
        }
    }
}
