use brunt_protocol::AnswerParts;
use brunt_record::histogram::AtLeast;
use brunt_record::outcome::Failure;

use super::*;
use crate::event::Usage;
use crate::facts::Said;

const MS: u64 = 1_000_000;

/// A worker's meter in a test, with the calls that it was told of.
struct Told {
    meter: TokenMeter,
    facts: Vec<u8>,
    /// Whether its calls are of the warm-up.
    is_warm_up: bool,
}

impl Told {
    fn new(objectives: &str) -> Self {
        let objectives = if objectives.is_empty() { Objectives::default() } else { objectives.parse().unwrap() };
        Self { meter: TokenMeter::new(objectives), facts: Vec::new(), is_warm_up: false }
    }

    /// Every call is due at 0 and sent a millisecond later.
    fn reading(call: u64, at_ms: u64) -> Reading {
        Reading {
            call,
            after_due_ns: at_ms * MS,
            after_sent_ns: Some((at_ms - 1) * MS),
            at_ns: 1 + at_ms * MS,
            counts: true,
            is_within: at_ms < 1000,
        }
    }

    fn said(&mut self, call: u64, at_ms: u64, kind: TextKind, bytes: u32, output: Option<u32>) {
        facts::write_message(&mut self.facts, &Said { kind, bytes, output, is_later: false });
        let reading = Reading { counts: !self.is_warm_up, ..Self::reading(call, at_ms) };
        self.meter.message(&reading, AnswerParts { head: &[], body: &self.facts });
    }

    fn ended(&mut self, call: u64, at_ms: u64, output: Option<u32>) {
        let usage = Usage { input: Some(30), output, cached: None };
        facts::write_end(&mut self.facts, &usage, Some(Finish::Stop), 0, "");
        let end = MeteredEnd::Answered { ok: true, parts: AnswerParts { head: &[], body: &self.facts } };
        let reading = Reading { counts: !self.is_warm_up, ..Self::reading(call, at_ms) };
        self.meter.ended(&reading, end);
    }

    fn figures(&mut self, unsent: u64) -> std::collections::BTreeMap<String, OwnFigures> {
        let mut all = std::collections::BTreeMap::new();
        self.meter.take(&MeteredSecond { unsent, ends_ns: 1 }, &mut |name, figures| {
            all.insert(name.to_owned(), figures.clone());
        });
        all
    }
}

fn exactly(value: f64) -> AtLeast<f64> {
    AtLeast::exactly(value)
}

/// Means of these trends, in their order.
fn means(all: &std::collections::BTreeMap<String, OwnFigures>, names: &[&str]) -> Vec<f64> {
    names.iter().map(|name| (all[*name].mean().unwrap().value * 1000.0).round() / 1000.0).collect()
}

#[test]
fn an_answer_of_single_tokens_has_the_times_of_its_events() {
    let mut told = Told::new("");
    for at in [100, 120, 150, 160] {
        told.said(7, at, TextKind::Content, 4, None);
    }
    told.ended(7, 161, Some(4));
    let all = told.figures(0);
    assert_eq!(
        means(&all, &["ttft", "ttft_sent", "tpot", "itl", "chunk_gap", "user_tokens"]),
        [100.0, 99.0, 20.0, 20.0, 20.0, 50.0]
    );
    assert_eq!((all["itl"].count, all["itl"].max()), (3, Some(exactly(30.0))));
    assert_eq!(all["output_tokens"].sum(), Some(4.0));
    assert_eq!(
        (all["tokens_estimated"].share(), all["attainment"].share(), all["goodput"].sum()),
        (Some(0.0), Some(1.0), Some(1.0))
    );
}

#[test]
fn tokens_of_an_event_share_its_gap() {
    // Eight tokens in three events: 2, 4 and 2 by the lengths of their texts.
    let mut told = Told::new("");
    for (at, bytes) in [(100, 10), (180, 20), (220, 10)] {
        told.said(1, at, TextKind::Content, bytes, None);
    }
    told.ended(1, 230, Some(8));
    let all = told.figures(0);
    // (220 − 100) / (8 − 2)
    assert_eq!(means(&all, &["tpot", "itl", "chunk_gap"]), [20.0, 20.0, 60.0]);
    assert_eq!((all["itl"].count, all["tokens_estimated"].share()), (6, Some(1.0)));
    let sum = all["itl"].mean().unwrap().value * all["itl"].count as f64;
    assert!((sum - 120.0).abs() < 1e-6, "the gaps of tokens add up to the time between the first event and the last");
}

#[test]
fn a_first_event_has_a_token_however_short_its_text() {
    // Two tokens in three events: tokenizers of bytes cut characters.
    let mut told = Told::new("");
    for (at, bytes) in [(100, 1), (110, 10), (120, 10)] {
        told.said(1, at, TextKind::Content, bytes, None);
    }
    told.ended(1, 121, Some(2));
    let all = told.figures(0);
    assert_eq!((all["itl"].count, means(&all, &["itl", "tpot"])), (1, vec![20.0, 20.0]));
}

#[test]
fn tokens_that_the_server_counts_as_it_goes_are_not_estimated() {
    let mut told = Told::new("");
    for (at, output) in [(100, 1), (140, 5), (200, 6)] {
        told.said(1, at, TextKind::Content, 10, Some(output));
    }
    told.ended(1, 201, Some(6));
    let all = told.figures(0);
    assert_eq!((all["itl"].count, all["itl"].min(), all["itl"].max()), (5, Some(10.0), Some(exactly(60.0))));
    assert_eq!((all["output_tokens"].sum(), all["tokens_estimated"].share()), (Some(6.0), Some(0.0)));
}

#[test]
fn tokens_count_when_they_arrive_even_of_answers_that_never_end() {
    let mut told = Told::new("");
    for at in [900, 950, 1050] {
        told.said(1, at, TextKind::Content, 4, None);
    }
    told.meter.ended(&Told::reading(1, 1100), MeteredEnd::CutShort);
    let all = told.figures(0);
    assert_eq!(all["output_tokens"].sum(), Some(2.0), "the third came after the measured time");
    assert_eq!((all["attainment"].share(), all.contains_key("goodput")), (Some(0.0), false));
    // Twice as many tokens as events, known at the end: what was counted on the way is put right.
    for at in [900, 950, 1050] {
        told.said(2, at, TextKind::Content, 4, None);
    }
    assert_eq!(told.figures(0)["output_tokens"].sum(), Some(2.0));
    told.ended(2, 1100, Some(6));
    assert_eq!(told.figures(0)["output_tokens"].sum(), Some(2.0));
}

#[test]
fn reasoning_comes_before_content() {
    let mut told = Told::new("");
    told.said(1, 50, TextKind::Reasoning, 4, None);
    told.said(1, 300, TextKind::Content, 4, None);
    told.said(1, 320, TextKind::Content, 4, None);
    told.ended(1, 321, Some(3));
    let all = told.figures(0);
    assert_eq!(means(&all, &["ttft", "ttft_content"]), [50.0, 300.0]);
    assert_eq!(all["ttft_content"].count, 1);
}

#[test]
fn what_never_came_is_in_the_time_to_the_first_token() {
    let mut told = Told::new("");
    told.meter.ended(&Told::reading(1, 800), MeteredEnd::Failed(Failure::Timeout));
    told.meter.ended(&Told::reading(2, 10), MeteredEnd::Failed(Failure::Closed));
    told.meter.ended(&Told::reading(3, 300), MeteredEnd::CutShort);
    let unsent = Reading { after_sent_ns: None, ..Told::reading(4, 900) };
    told.meter.ended(&unsent, MeteredEnd::Failed(Failure::Connect));
    let all = told.figures(0);
    assert_eq!((all["ttft"].count, all["ttft"].bounds()), (3, 3), "none of them is known");
    assert_eq!(all["ttft"].max(), Some(AtLeast { value: 800.0, at_least: true }));
    assert!(!all.contains_key("ttft_sent"), "which is of those with a first token, as in other tools");
    assert_eq!(all["attainment"].share(), Some(0.0));
    // Beside 97 that came at once, the three move the p99 and not the median.
    for call in 10..107 {
        told.said(call, 20, TextKind::Content, 4, None);
    }
    told.meter.ended(&Told::reading(1, 800), MeteredEnd::Failed(Failure::Timeout));
    told.meter.ended(&Told::reading(2, 800), MeteredEnd::Failed(Failure::Timeout));
    let ttft = &told.figures(0)["ttft"];
    assert_eq!(ttft.quantile(0.5).map(|p50| p50.at_least), Some(false));
    assert_eq!(ttft.quantile(0.99), Some(AtLeast { value: 800.0, at_least: true }));
}

#[test]
fn goodput_is_of_answers_that_met_all_objectives() {
    let mut told = Told::new("ttft<100ms,tpot<25ms");
    let answer = |told: &mut Told, call: u64, first: u64, gap: u64| {
        told.said(call, first, TextKind::Content, 4, None);
        told.said(call, first + gap, TextKind::Content, 4, None);
        told.ended(call, first + gap, Some(2));
    };
    answer(&mut told, 1, 99, 20);
    answer(&mut told, 2, 100, 20);
    answer(&mut told, 3, 50, 30);
    // One token has no time for a token after it.
    told.said(4, 60, TextKind::Content, 4, None);
    told.ended(4, 60, Some(1));
    // A good one that ended after the measured time is no goodput, and is attained.
    answer(&mut told, 5, 90, 20);
    told.said(6, 95, TextKind::Content, 4, None);
    told.ended(6, 1200, Some(1));
    let all = told.figures(2);
    assert_eq!((all["goodput"].sum(), all["attainment"].share()), (Some(3.0), Some(0.5)));
}

#[test]
fn each_threshold_on_objectives_has_the_share_of_requests_that_met_them() {
    let limits = ["ttft<100ms,tpot<25ms", "ttft<200ms"];
    let shares = limits.map(|limits| (format!("within({limits})"), limits.parse().unwrap()));
    let mut told = Told::new("");
    told.meter = TokenMeter::new(Objectives::default()).with_shares(&shares);
    for (call, first, gap) in [(1, 50, 20), (2, 150, 20), (3, 50, 30), (4, 250, 10)] {
        told.said(call, first, TextKind::Content, 4, None);
        told.said(call, first + gap, TextKind::Content, 4, None);
        told.ended(call, first + gap, Some(2));
    }
    told.meter.ended(&Told::reading(5, 800), MeteredEnd::Failed(Failure::Timeout));
    let all = told.figures(3);
    let share = |limits: &str| all[&format!("within({limits})")].share();
    assert_eq!((share(limits[0]), share(limits[1])), (Some(1.0 / 8.0), Some(3.0 / 8.0)), "of eight that were due");
}

#[test]
fn an_answer_of_the_warm_up_that_ends_in_the_measured_time_is_good_by_the_same_objectives() {
    let mut told = Told { is_warm_up: true, ..Told::new("tpot<25ms") };
    for (call, gap) in [(1, 20), (2, 30)] {
        told.said(call, 50, TextKind::Content, 4, None);
        told.said(call, 50 + gap, TextKind::Content, 4, None);
        told.ended(call, 50 + gap, Some(2));
    }
    let all = told.figures(0);
    assert_eq!((all["goodput"].sum(), all["output_tokens"].sum()), (Some(1.0), Some(4.0)));
    assert!(["ttft", "tpot", "itl", "attainment"].iter().all(|of_call| !all.contains_key(*of_call)));
}

#[test]
fn a_long_gap_among_short_ones_is_a_stall() {
    let mut told = Told::new("");
    for at in 1..200 {
        told.said(1, 10 + at * 2, TextKind::Content, 4, None);
    }
    assert!(!told.figures(0).contains_key("stalls"));
    told.said(1, 408 + 19, TextKind::Content, 4, None);
    told.said(1, 408 + 60, TextKind::Content, 4, None);
    assert_eq!(told.figures(0)["stalls"].sum(), Some(1.0));
}

#[test]
fn a_usage_that_does_not_fit_its_text_is_told() {
    let figures = |output: Option<u32>| {
        let mut told = Told::new("");
        for at in [100, 120, 140] {
            told.said(1, at, TextKind::Content, 6, None);
        }
        told.ended(1, 141, output);
        told.figures(0)
    };
    // Of no tokens nothing is believed: an event is a token.
    let none = figures(Some(0));
    assert_eq!((none["usage_odd"].sum(), none["tokens_estimated"].share()), (Some(1.0), Some(1.0)));
    assert_eq!((none["output_tokens"].sum(), none["tpot"].mean().map(|mean| mean.value)), (Some(3.0), Some(20.0)));
    let many = figures(Some(35));
    assert_eq!((many["usage_odd"].sum(), many["tokens_estimated"].share()), (Some(1.0), Some(1.0)));
    for output in [None, Some(1), Some(3), Some(34)] {
        assert!(!figures(output).contains_key("usage_odd"), "{output:?}");
    }
    // A count without measure says nothing of the events of other answers.
    let mut told = Told::new("");
    told.said(1, 100, TextKind::Content, 6, None);
    told.ended(1, 141, Some(u32::MAX - 1));
    assert_eq!(told.meter.usual(), 1.0);
}

#[test]
fn figures_are_declared_in_the_order_of_their_names() {
    for ((name, ..), place) in FIGURES.iter().zip(0..) {
        assert_eq!(*name as usize, place);
    }
    assert!(declared(FigureTerms::default()).iter().any(|figure| figure.name == "ttft" && figure.unit == "ms"));
}

#[test]
fn tokens_in_a_cache_are_remarked_on_where_prompts_differ() {
    let remarks = |terms| {
        let remark = |figure: DeclaredFigure| figure.remark.map(|remark| (figure.name, remark.of));
        declared(terms).into_iter().filter_map(remark).collect::<Vec<_>>()
    };
    let [cached, odd] = [("cached_tokens", "input_tokens"), ("usage_odd", "output_length")]
        .map(|(figure, of)| (figure.to_owned(), of.to_owned()));
    assert_eq!(remarks(FigureTerms::default()), std::slice::from_ref(&odd));
    assert_eq!(remarks(FigureTerms { prompts_differ: true, ..FigureTerms::default() }), [cached, odd]);
}
