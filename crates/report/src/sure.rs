//! How a run was judged where its headline leaves that open, and how sure its figures are: words that text and page share.

use brunt_judge::summary::Summary;
use brunt_plan::plan::MAX_ERROR_RATE;
use brunt_record::agents::AgentPart;
use brunt_record::catalogue::Counter;
use brunt_record::recording::Ending;

use crate::numbers::percent;

/// What stands for intervals where an episode made the figures.
pub(crate) const ACROSS_EPISODE: &str = "exact for this run; no 95% interval across an episode";
/// The same where the run was too short.
pub(crate) const TOO_SHORT: &str = "exact for this run; too short for a 95% interval";

/// Whether the run passed, where no threshold was set, or nothing was answered: then the headline says what was seen.
pub(crate) fn judged(summary: &Summary) -> Option<String> {
    let is_whole = matches!(summary.run.ending, Ending::Completed | Ending::Stopped(_) | Ending::Unreached(_));
    if !is_whole || summary.total.numbers.get(Counter::Due) == 0 {
        return None;
    }
    if !summary.answered() {
        return Some("failed: no call was answered".to_owned());
    }
    let is_missed = summary.run.agents.iter().any(AgentPart::is_missed) || summary.paused_to_end().is_some();
    if is_missed || summary.thresholds.iter().any(|result| result.is_noted() || !result.held) {
        return None;
    }
    Some(match summary.plan.max_error_rate {
        most if most >= 1.0 => "no threshold was set: measured, not judged".to_owned(),
        most if most.total_cmp(&MAX_ERROR_RATE).is_eq() => {
            format!("passed the default limits alone (at most {} failed): no threshold was set", percent(most))
        }
        most => format!("passed the limit of {} failed calls: no other threshold was set", percent(most)),
    })
}

/// The interval of the error rate, such as `95%: 5.32% to 8.31%` or `95%: at most 0.205%`; else that the share is a count.
pub(crate) fn errors(summary: &Summary) -> String {
    match summary.error_rate_within {
        None => "an exact count".to_owned(),
        Some((low, high)) if low <= 0.0 => format!("95%: at most {}", percent(high)),
        Some((low, high)) if high >= 1.0 => format!("95%: at least {}", percent(low)),
        Some((low, high)) => format!("95%: {} to {}", percent(low), percent(high)),
    }
}

/// Why there are no intervals of chance, in words.
pub(crate) fn without_interval(summary: &Summary) -> &'static str {
    if summary.is_unsteady() { ACROSS_EPISODE } else { TOO_SHORT }
}
