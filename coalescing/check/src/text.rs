//! The check's findings, for people.

use std::fmt::Write as _;
use std::time::Duration;

use crate::{Findings, Identical, PairVerdict};

/// Everything that the check found, as text.
pub(crate) fn findings(findings: &Findings) -> String {
    let mut text = identical(&findings.identical);
    let _ = writeln!(text, "\nRequests that differ, up to {} pairs each, at the same time", findings.rounds);
    let (mut apart, mut dropped) = (Vec::new(), Vec::new());
    for pair in &findings.pairs {
        let (mark, says) = match &pair.verdict {
            PairVerdict::Apart => {
                apart.push(pair.kind.as_ref());
                continue;
            }
            PairVerdict::OneHitTwoAnswers => ("✓", "one origin hit served both, each as it asked"),
            PairVerdict::OneHitUnseen => {
                ("?", "one origin hit served both; only an origin that repeats its request shows more")
            }
            PairVerdict::DroppedOrShared => {
                dropped.push(pair.kind.as_ref());
                continue;
            }
            PairVerdict::AddressesShare => {
                ("–", "one origin hit served both: if the origin goes by it, say --by-address")
            }
            PairVerdict::Shared(_) => ("✗", "one had the other's answer"),
            PairVerdict::Unknown => ("?", "cannot tell: nothing counts origin hits, and nothing is repeated"),
        };
        let _ = writeln!(text, "  {mark} {:<22} {says}", pair.kind);
        if let PairVerdict::Shared(offence) = &pair.verdict {
            let [one, two] = &offence.requests;
            let _ = write!(text, "      {one}\n      {two}\n      {}\n", offence.proof);
        }
    }
    let lists = [
        ("– one origin hit served both: dropped on the way, or see --by-forwarded", dropped),
        ("✓ each had an answer of its own", apart),
    ];
    for (says, kinds) in lists.iter().filter(|(_, kinds)| !kinds.is_empty()) {
        let _ = writeln!(text, "  {says}:");
        for line in lines(kinds) {
            let _ = writeln!(text, "      {line}");
        }
    }
    let tried = findings.pairs.len();
    let leaks = findings.pairs.iter().filter(|pair| matches!(pair.verdict, PairVerdict::Shared(_))).count();
    let unsure = findings.pairs.iter().filter(|pair| pair.verdict == PairVerdict::DroppedOrShared).count();
    let unless = if unsure > 0 { format!(", if {unsure} of them are dropped on the way") } else { String::new() };
    let verdict = if findings.is_unsafe() {
        format!("\n✗ unsafe: {leaks} of the {tried} differences tried gave a client another's answer\n")
    } else if findings.pairs.iter().any(|pair| pair.verdict == PairVerdict::Unknown) {
        "\n? cannot tell whether it is safe: give --origin-count or --origin-header\n".to_owned()
    } else if findings.pairs.iter().any(|pair| pair.verdict == PairVerdict::OneHitUnseen) {
        "\n? cannot tell of every pair: ask for something that repeats the headers of its request\n".to_owned()
    } else if findings.identical.coalesces() == Some(false) {
        format!(
            "\n✓ none of the {tried} differences tried gave a client another's answer{unless}; nothing is coalesced\n"
        )
    } else {
        format!("\n✓ none of the {tried} differences tried gave a client another's answer{unless}\n")
    };
    text.push_str(&verdict);
    text
}

/// Names one after the other, in lines of bounded length.
fn lines(names: &[&str]) -> Vec<String> {
    const WIDTH: usize = 74;
    let mut lines = vec![String::new()];
    for (at, name) in names.iter().enumerate() {
        let text = if at + 1 < names.len() { format!("{name}, ") } else { (*name).to_owned() };
        match lines.last_mut() {
            Some(line) if line.len() + text.len() <= WIDTH => line.push_str(&text),
            _ => lines.push(text),
        }
    }
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}

impl Identical {
    /// What the slowest answer took.
    pub(crate) fn longest(&self) -> Duration {
        self.first.iter().chain(&self.others).max().copied().unwrap_or_default()
    }

    /// Whether one hit of the origin served more than one request; `None` if hits are not counted.
    fn coalesces(&self) -> Option<bool> {
        self.origin_hits.map(|hits| hits < self.requests)
    }
}

fn identical(found: &Identical) -> String {
    let mut text = "Identical requests at the same time\n".to_owned();
    let requests = found.requests;
    let _ = match found.origin_hits {
        Some(hits) if hits < requests => {
            let each = requests as f64 / hits.max(1) as f64;
            writeln!(text, "  ✓ coalesced: {requests} requests, {hits} origin hits: {each:.1} requests a hit")
        }
        Some(hits) => writeln!(text, "  – not coalesced: {requests} requests, {hits} origin hits"),
        None => writeln!(text, "  ? cannot tell whether they are coalesced: nothing counts origin hits"),
    };
    if found.said != (0, 0) {
        let _ = writeln!(text, "    by x-coalesced: {} led, {} followed", found.said.0, found.said.1);
    }
    let at = |times: &[Duration], share: f64| {
        let last = times.len().saturating_sub(1);
        times.get((last as f64 * share).round() as usize).map_or_else(|| "–".to_owned(), |time| ms(*time))
    };
    let _ = writeln!(text, "    took, sent first: median {}, longest {}", at(&found.first, 0.5), at(&found.first, 1.0));
    let _ =
        writeln!(text, "    took, the others: median {}, longest {}", at(&found.others, 0.5), at(&found.others, 1.0));
    text
}

fn ms(time: Duration) -> String {
    format!("{:.1}ms", time.as_secs_f64() * 1e3)
}
