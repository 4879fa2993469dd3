//! The sentence of a run that made less load than it was asked for.

use brunt_judge::asked::{Asked, Made, Missing, Shortage};
use brunt_judge::summary::Summary;
use brunt_judge::thresholds::{JudgedCondition, ThresholdResult};
use brunt_plan::units::Number;

use crate::numbers::{count, counted, percent};
use crate::skipped;

/// The most reasons that are named.
const MOST_NAMED: usize = 3;

/// Such as `only 11.7% of the load was made: 7 of 60 users, 53 found no place (most_alive)`, for the result of such a
/// condition that failed; `None` for others.
pub(crate) fn sentence_of(result: &ThresholdResult, summary: &Summary) -> Option<String> {
    let JudgedCondition::Made(of) = result.condition else { return None };
    Some(sentence(summary.made.iter().find(|made| made.of == of).filter(|_| !result.held)?))
}

/// The sentence of load that was not made.
pub(crate) fn sentence(made: &Made) -> String {
    let why = made.why.iter().take(MOST_NAMED).map(|missing| format!(", {}", words(*missing)));
    format!(
        "only {} of the load was made: {} of {} {}{}",
        percent(made.share()),
        amount(made, made.made),
        amount(made, made.asked),
        made.of,
        why.collect::<String>()
    )
}

/// The results of a run on load that was not made, each with its sentence.
pub(crate) fn sentences(summary: &Summary) -> impl Iterator<Item = (&ThresholdResult, String)> {
    summary.thresholds.iter().filter_map(|result| Some((result, sentence_of(result, summary)?)))
}

fn amount(made: &Made, value: f64) -> String {
    if made.of == Asked::UserSeconds { Number(value).to_string() } else { count(value as u64) }
}

fn words(missing: Missing) -> String {
    let n = count(missing.count);
    match missing.shortage {
        Shortage::NotAdmitted => format!("{n} not admitted (most_alive)"),
        Shortage::OutOfRows => format!("{n} ended as all rows of a queue were used up"),
        Shortage::ScriptErrors => format!("{n} ended by errors of the script"),
        Shortage::LostAgents => format!("{n} made by fewer agents"),
        Shortage::NotMade => format!("{n} not made"),
        Shortage::Generator => format!("brunt was the limit in {}", counted(missing.count, "trial")),
        Shortage::Skipped(skip) => format!("{n} lines {}", skipped::words(skip.name())),
    }
}
