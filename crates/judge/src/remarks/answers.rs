//! Answers of another kind than before: a proxy's error page with status 200, a redirect to a login.

use crate::advice::Advice;
use brunt_plan::units::{Clock, count, percent};
use brunt_record::kinds::{AnswerKind, Kinds};
use brunt_record::snapshot::Snapshot;
use brunt_record::timeline::Timeline;

use super::{About, Remark};

/// The least share of a stretch's answers that are of the new kind.
const SHARE: f64 = 0.05;
/// The fewest of them that were sampled, and the fewest answers before them.
const FEWEST: (u64, u64) = (10, 20);
/// The highest probability that none came before by chance, if the kind had existed all along.
const BY_CHANCE: f64 = 1e-6;
/// The longest excerpt that is shown, in characters.
const SHOWN: usize = 60;

/// A kind of answers that is new from some time on.
struct Another<'a> {
    name: &'a str,
    kind: &'a AnswerKind,
    usual: &'a AnswerKind,
    from_ns: u64,
    to_ns: u64,
    share: f64,
}

/// The most frequent new kind of answers, if there is one.
pub(super) fn another(total: &Snapshot) -> Option<Remark> {
    let found = total.kinds.by_name().flat_map(|(name, kinds)| of_name(&total.kinds, name, kinds));
    let most = found.max_by(|one, other| one.kind.count().cmp(&other.kind.count()))?;
    Some(remark(&most, &total.timeline, total))
}

fn of_name<'a>(all: &Kinds, name: &'a str, kinds: &'a [AnswerKind]) -> Vec<Another<'a>> {
    let between = |kind: &AnswerKind, from: u64, to: u64| kind.seen.range(from..to).map(|(_, n)| n).sum::<u64>();
    let another = |kind: &'a AnswerKind| {
        let (first, last) = (*kind.seen.keys().next()?, *kind.seen.keys().next_back()?);
        let before: u64 = kinds.iter().map(|kind| between(kind, 0, first)).sum();
        let within: u64 = kinds.iter().map(|kind| between(kind, first, last + 1)).sum();
        let share = kind.count() as f64 / within.max(1) as f64;
        let by_chance = (1.0 - share).powf(before as f64);
        if kind.count() < FEWEST.0 || before < FEWEST.1 || share < SHARE || by_chance > BY_CHANCE {
            return None;
        }
        // A list that grows has answers of the next size at some time.
        let known = || kinds.iter().filter(|known| between(known, 0, first) > 0);
        if known().any(|known| is_near(known, kind)) {
            return None;
        }
        let usual = known().max_by_key(|known| between(known, 0, first))?;
        let (from_ns, to_ns) = (first * all.width_ns(), (last + 1) * all.width_ns());
        Some(Another { name, kind, usual, from_ns, to_ns, share })
    };
    kinds.iter().filter_map(another).collect()
}

/// Whether two kinds differ in their size alone, and by little.
fn is_near(one: &AnswerKind, other: &AnswerKind) -> bool {
    let sizes = match (one.size, other.size) {
        (Some(one), Some(other)) => one.abs_diff(other) <= 1,
        // The size of an answer in pieces is not stated.
        _ => true,
    };
    sizes && one.status == other.status && one.content_type == other.content_type
}

fn remark(another: &Another<'_>, timeline: &Timeline, total: &Snapshot) -> Remark {
    let Another { name, kind, usual, from_ns, to_ns, share } = *another;
    let ended = timeline.points().next_back().map_or(0, |(start, _)| start + timeline.width_ns());
    // The kind lasts to the end if less than a stretch is left.
    let width = total.kinds.width_ns();
    let when = if to_ns + width >= ended {
        format!("from {} on", Clock(from_ns))
    } else {
        format!("from {} to {}", Clock(from_ns), Clock(to_ns))
    };
    let of = if name.is_empty() { String::new() } else { format!(" of {name}") };
    let said = if kind.said.is_empty() {
        String::new()
    } else {
        let words = kind.said.split_whitespace().collect::<Vec<_>>().join(" ");
        let cut: String = words.chars().take(SHOWN).collect();
        format!(": {cut}{}", if cut.len() < words.len() { "…" } else { "" })
    };
    let calls = calls(another, timeline, total);
    Remark {
        advice: Some(Advice::CheckBodies),
        from_ns: Some(from_ns),
        to_ns: Some(to_ns),
        calls,
        share_ratio: Some(share),
        request: (!name.is_empty()).then(|| name.to_owned()),
        ..Remark::new(
            About::AnotherAnswer,
            format!(
                "{when}, {} of answers{of} were {}, not {} as before{said}",
                percent(share),
                described(kind),
                described(usual)
            ),
        )
    }
}

/// About how many calls had this answer; `None` where the calls of its name are not known by time.
fn calls(another: &Another<'_>, timeline: &Timeline, total: &Snapshot) -> Option<u64> {
    if total.kinds.by_name().count() > 1 {
        return None;
    }
    let within = timeline.points().filter(|(start, _)| (another.from_ns..another.to_ns).contains(start));
    let ok: u64 = within.map(|(_, point)| point.ok).sum();
    Some((ok as f64 * another.share).round() as u64)
}

/// Such as `200 text/html of 512 bytes`.
fn described(kind: &AnswerKind) -> String {
    let mut text = kind.status.to_string();
    if !kind.content_type.is_empty() {
        text.push(' ');
        text.push_str(&kind.content_type);
    }
    if let Some(bytes) = kind.length {
        text += &[" of ", count(bytes).as_str(), " bytes"].concat();
    }
    text
}

#[cfg(test)]
mod tests {
    use brunt_record::SECOND_NS;
    use brunt_record::kinds::AnswerSample;

    use super::*;

    /// A run of so many seconds at so many calls a second; each call's answer is told by when it was due.
    fn run(per_s: u64, seconds: u64, kind: impl Fn(u64, u64) -> (u16, &'static str, u64)) -> Snapshot {
        let mut total = Snapshot::default();
        for second in 0..seconds {
            let mut here = Snapshot::default();
            for n in 0..per_s {
                let due_ns = second * SECOND_NS + n * SECOND_NS / per_s;
                let (status, content_type, length) = kind(due_ns, n);
                let look = AnswerSample { content_type, length: Some(length), ..AnswerSample::default() };
                here.kinds.add("", status, look, due_ns, || "<html>sorry".to_owned());
            }
            total.kinds.merge(&here.kinds);
        }
        total
    }

    #[test]
    fn an_error_page_with_status_200_is_found() {
        for (per_s, seconds) in [(50, 10), (500, 10), (1, 3 * 3600)] {
            let (from, to) = (seconds * SECOND_NS * 3 / 10, seconds * SECOND_NS * 6 / 10);
            for other in [(200, "text/html", 512), (302, "application/json", 2000), (200, "application/json", 100)] {
                let total = run(per_s, seconds, |due, n| {
                    if (from..to).contains(&due) && n % 2 == 0 { other } else { (200, "application/json", 2000) }
                });
                let remark = another(&total).unwrap_or_else(|| panic!("{per_s} {seconds} {other:?}"));
                assert_eq!(remark.about, About::AnotherAnswer);
                let width = total.kinds.width_ns() + SECOND_NS / per_s;
                assert!(remark.from_ns.unwrap().abs_diff(from) <= width && remark.to_ns.unwrap().abs_diff(to) <= width);
                assert!(remark.message.to_string().contains("<html>sorry"), "{}", remark.message);
            }
        }
    }

    #[test]
    fn answers_that_vary_all_along_or_grow_are_no_finding() {
        let mut random = brunt_plan::random::Random::new(7, 1);
        let mut sizes = Vec::new();
        for _ in 0..4096 {
            sizes.push((200.0 * (4.0 * random.unit()).exp()) as u64);
        }
        let place = |due: u64| (due / 7_000_000 % 4096) as usize;
        assert!(another(&run(200, 30, |due, _| (200, "text/html", sizes[place(due)]))).is_none());
        assert!(
            another(&run(200, 30, |due, _| (200, "text/html", 100 + due / 1_000_000))).is_none(),
            "a list that grows"
        );
        assert!(another(&run(200, 30, |_, n| (200, if n % 100 == 0 { "a/b" } else { "c/d" }, 9))).is_none());
        assert!(another(&run(200, 1, |_, _| (200, "a/b", 9))).is_none());
    }
}
