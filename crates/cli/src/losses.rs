//! Sentences about lost agents.

use brunt_record::agents::{AgentEnd, AgentPart};
use brunt_record::recording::{Ending, Recording};

/// The loss of the first lost agent, such as `agent 'b' was lost after 4.0s: nothing was heard of it`, and the number
/// of further ones; `None` without losses.
pub fn sentence(run: &Recording) -> Option<String> {
    let lost = lost(&run.agents);
    let [(first, after_ns, reason), others @ ..] = lost.as_slice() else {
        return match &run.ending {
            Ending::AgentsLost(reason) => Some(reason.clone()),
            _ => None,
        };
    };
    let more = if others.is_empty() { String::new() } else { format!(", and then {} more", others.len()) };
    Some(format!("agent '{first}' was lost after {}{more}: {reason}", seconds(*after_ns)))
}

/// The same for one run among several, such as `lost agent 'b' after 4.0s (nothing was heard of it)`.
pub fn brief(run: &Recording) -> Option<String> {
    let lost = lost(&run.agents);
    let [(_, after_ns, reason), ..] = lost.as_slice() else {
        return match &run.ending {
            Ending::AgentsLost(reason) => Some(format!("lost its agents ({reason})")),
            _ => None,
        };
    };
    let names: Vec<&str> = lost.iter().map(|(name, ..)| *name).collect();
    Some(format!("lost agent '{}' after {} ({reason})", names.join("', '"), seconds(*after_ns)))
}

/// The lost agents: names, times of their last reports, and causes; the first one first.
pub fn lost(agents: &[AgentPart]) -> Vec<(&str, u64, &str)> {
    let lost = agents.iter().filter_map(|agent| match &agent.ended {
        AgentEnd::Lost { after_ns, reason, .. } => Some((agent.name.as_str(), *after_ns, reason.as_str())),
        AgentEnd::Finished => None,
    });
    let mut lost: Vec<_> = lost.collect();
    lost.sort_by_key(|(_, after_ns, _)| *after_ns);
    lost
}

/// Such as `4.0s`.
pub fn seconds(ns: u64) -> String {
    format!("{:.1}s", ns as f64 / 1e9)
}

#[cfg(test)]
mod tests {
    use brunt_judge::fixtures::summary;

    use super::*;

    #[test]
    fn the_first_loss_is_told_and_others_are_counted() {
        let mut run = summary().run;
        assert_eq!((sentence(&run), brief(&run)), (None, None));
        let lost = |name: &str, after_ns, reason: &str| {
            let mut part = AgentPart::new(name, "0", 1, 1, 2);
            let reason = reason.to_owned();
            part.ended = AgentEnd::Lost {
                after_ns,
                reason,
                users_missed: 0,
                iterations_unknown: 0,
                untold: None,
                is_allowed: false,
            };
            part
        };
        run.agents = vec![lost("b", 6_000_000_000, "it left"), lost("a", 4_000_000_000, "silence")];
        assert_eq!(sentence(&run).as_deref(), Some("agent 'a' was lost after 4.0s, and then 1 more: silence"));
        assert_eq!(brief(&run).as_deref(), Some("lost agent 'a', 'b' after 4.0s (silence)"));
        run.agents.clear();
        run.ending = Ending::AgentsLost("the bus was away".to_owned());
        assert_eq!(sentence(&run).as_deref(), Some("the bus was away"));
    }
}
