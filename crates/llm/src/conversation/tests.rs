use brunt_http1::options::Options as Http;
use brunt_plan::arrivals::Spread;
use brunt_plan::connections::Connections;
use brunt_plan::content::Content;
use brunt_plan::plan::StopRule;
use brunt_plan::replay::LogReplay as Trace;
use brunt_plan::target::Url;
use brunt_protocol::meter::MeteredSecond;
use brunt_protocol::{AnswerParts, Protocol};
use brunt_record::SECOND_NS;
use serde_json::Value;

use super::*;
use crate::Llm;
use crate::dialect::ApiDialect;
use crate::event::Usage;
use crate::length::{Distribution as Numbers, Length};
use crate::options::LlmOptions;
use crate::prompt::{Prompts, Rate};
use crate::think::Think;

/// The options of conversations in this dialect.
fn options(api: ApiDialect, turns: Option<Turns>) -> LlmOptions {
    let prompts = Prompts::Made { input: Length::fixed(6.0), prefix: 0, rate: Rate::default() };
    LlmOptions { api: Some(api), turns, output: Some(Length::fixed(4.0)), ..LlmOptions::new("m", prompts) }
}

/// The plan of these options, changed by `change`.
fn plan(options: &LlmOptions, change: impl FnOnce(&mut Plan)) -> Plan {
    let http = Http { method: "POST".to_owned(), ..Http::default() };
    let target = Url::parse("llm://h:1/").unwrap().target;
    let mut plan = Plan::of_calls(target, options.to_protocol(&http));
    plan.connections = Connections::Fixed(2);
    change(&mut plan);
    plan
}

fn calls(plan: &Plan, share: Share) -> Box<dyn WorkerReplay> {
    Llm.prepare(plan).unwrap().own_calls(share).unwrap()
}

const THREE: Option<Turns> = Some(Turns { turns: Length::fixed(3.0), think: Think::By(Numbers::Fixed(2e9)) });

/// The next call: when it is due, and its number.
fn next(calls: &mut dyn WorkerReplay) -> Option<(u64, u64)> {
    match calls.next() {
        Upcoming::Call(call) => calls.claim(call.number).then_some((call.due_ns, call.number)),
        Upcoming::Over => None,
        other => panic!("{other:?}"),
    }
}

/// The body of a call.
fn body(calls: &mut dyn WorkerReplay, number: u64) -> Value {
    let request = calls.call(number).unwrap().bytes.to_vec();
    let at = request.windows(4).position(|part| part == b"\r\n\r\n").unwrap() + 4;
    let head = String::from_utf8_lossy(&request[..at]).into_owned();
    assert!(head.contains(&format!("Content-Length: {}\r\n", request.len() - at)), "{head}");
    serde_json::from_slice(&request[at..]).unwrap()
}

/// Answers a call with this text. Returns the call that follows.
fn ended(calls: &mut dyn WorkerReplay, number: u64, text: &str) -> Option<Following> {
    let mut facts = Vec::new();
    facts::write_end(&mut facts, &Usage::default(), None, 0, text);
    let parts = AnswerParts { head: b"", body: &facts };
    calls.ended(number, ReplayedEnd::Answered { status: 200, took_ns: 5, parts });
    calls.follows(number)
}

/// The same; the call that follows is made, and comes with its pause in nanoseconds.
fn answer(calls: &mut dyn WorkerReplay, number: u64, text: &str) -> Option<(u64, u64)> {
    let following = ended(calls, number, text)?;
    calls.claim(following.number).then_some((following.number, following.after_ns))
}

/// The texts of a body's messages, with the roles.
fn said(body: &Value) -> Vec<(String, String)> {
    let text = |message: &Value, field: &str| message[field].as_str().unwrap().to_owned();
    let all = body["messages"].as_array().unwrap();
    all.iter().map(|message| (text(message, "role"), text(message, "content"))).collect()
}

#[test]
fn a_turn_repeats_what_was_said_with_the_servers_answers() {
    let plan = plan(&options(ApiDialect::Chat, THREE), |_| ());
    let mut calls = calls(&plan, Share::WHOLE);
    let (due, first) = next(calls.as_mut()).unwrap();
    assert_eq!((due, calls.name(first)), (0, (0, "turn 1")));
    let one = said(&body(calls.as_mut(), first));
    assert_eq!((one.len(), one[0].0.as_str()), (1, "user"));
    assert_eq!(body(calls.as_mut(), first), body(calls.as_mut(), first), "it may be sent again");
    let (second, after_ns) = answer(calls.as_mut(), first, "he said \"no\"\n").unwrap();
    assert_eq!((after_ns, calls.name(second)), (2 * SECOND_NS, (1, "turn 2+")));
    assert_ne!(calls.call(second).unwrap().hint & LATER, 0);
    let two = said(&body(calls.as_mut(), second));
    assert_eq!(two[0], one[0]);
    assert_eq!(two[1], ("assistant".to_owned(), "he said \"no\"\n".to_owned()));
    assert!(two.len() == 3 && two[2].0 == "user" && two[2].1 != one[0].1);
    let (third, _) = answer(calls.as_mut(), second, "yes").unwrap();
    let three = said(&body(calls.as_mut(), third));
    assert_eq!((&three[..3], three.len()), (&two[..], 5));
    assert_eq!(body(calls.as_mut(), third)["max_tokens"], 4);
    // In the closed model another conversation comes in its place at once.
    let (other, after_ns) = answer(calls.as_mut(), third, "yes").unwrap();
    let begins = said(&body(calls.as_mut(), other));
    assert!(after_ns == 0 && begins.len() == 1 && begins != one);
    assert!(calls.call(first).is_err(), "what has ended is forgotten");
}

#[test]
fn dialects_without_roles_repeat_the_texts() {
    let plan = plan(&options(ApiDialect::Completions, THREE), |_| ());
    let mut calls = calls(&plan, Share::WHOLE);
    let (_, first) = next(calls.as_mut()).unwrap();
    let one = body(calls.as_mut(), first)["prompt"].as_str().unwrap().to_owned();
    let (second, _) = answer(calls.as_mut(), first, "a \"b\"").unwrap();
    let two = body(calls.as_mut(), second)["prompt"].as_str().unwrap().to_owned();
    assert!(two.starts_with(&format!("{one}\n\na \"b\"\n\n")), "{two}");
}

#[test]
fn a_turn_that_fails_ends_its_conversation_and_the_rest_is_counted() {
    let plan = plan(&options(ApiDialect::Chat, THREE), |_| ());
    let prepared = Llm.prepare(&plan).unwrap();
    let mut calls = prepared.own_calls(Share::WHOLE).unwrap();
    let (_, first) = next(calls.as_mut()).unwrap();
    let (second, _) = answer(calls.as_mut(), first, "a").unwrap();
    calls.ended(second, ReplayedEnd::Failed);
    let following = calls.follows(second).unwrap();
    assert_eq!(following.after_ns, AFTER_FAILURE_NS);
    assert!(calls.claim(following.number));
    assert_eq!(said(&body(calls.as_mut(), following.number)).len(), 1, "another conversation");
    let refused = AnswerParts { head: b"", body: b"" };
    calls.ended(following.number, ReplayedEnd::Answered { status: 429, took_ns: 1, parts: refused });
    assert!(calls.follows(following.number).is_some());
    let mut lost = None;
    let mut meter = prepared.meter().unwrap();
    meter.take(&MeteredSecond::default(), &mut |name, figures| {
        if name == "turns_lost" {
            lost = figures.sum();
        }
    });
    assert_eq!(lost, Some(3.0), "one of the first conversation, two of the second");
}

#[test]
fn a_conversation_is_bounded() {
    let many = Some(Turns { turns: Length::fixed(100.0), think: Think::NONE });
    let plan = plan(&options(ApiDialect::Chat, many), |_| ());
    let mut calls = calls(&plan, Share::WHOLE);
    let (_, mut number) = next(calls.as_mut()).unwrap();
    let long = "x".repeat(1024 * 1024);
    let mut turns = 0;
    loop {
        number = answer(calls.as_mut(), number, &long).unwrap().0;
        if said(&body(calls.as_mut(), number)).len() == 1 {
            break;
        }
        turns += 1;
    }
    assert_eq!(turns, 3);
}

#[test]
fn requests_are_as_many_as_asked_for_and_begin_at_once_or_by_a_rate() {
    let some = |change: fn(&mut Plan)| plan(&options(ApiDialect::Chat, THREE), change);
    let closed = some(|plan| plan.stop = StopRule { duration_ns: None, requests: Some(7) });
    let mut made = 0;
    for worker in 0..2 {
        let mut calls = calls(&closed, Share::new(worker, 2).unwrap());
        let (_, mut number) = next(calls.as_mut()).unwrap();
        assert_eq!(next(calls.as_mut()), None, "one connection each");
        made += 1;
        while let Some((following, _)) = answer(calls.as_mut(), number, "a") {
            (number, made) = (following, made + 1);
        }
    }
    assert_eq!(made, 7);
    let open = some(|plan| {
        plan.load = Load::Open { profile: "10".parse().unwrap(), arrivals: Spread::Uniform };
        plan.warmup_ns = SECOND_NS;
    });
    let mut calls = calls(&open, Share::WHOLE);
    let dues: Vec<u64> = (0..3).map(|_| next(calls.as_mut()).unwrap().0).collect();
    assert_eq!(dues, [0, SECOND_NS / 10, SECOND_NS / 5]);
    calls.begin(Phase::Measured);
    let (due, number) = next(calls.as_mut()).unwrap();
    assert_eq!(due, 0, "the measured part has arrivals of its own");
    let (second, _) = answer(calls.as_mut(), number, "a").unwrap();
    let (third, _) = answer(calls.as_mut(), second, "a").unwrap();
    assert_eq!(answer(calls.as_mut(), third, "a"), None, "others come by the rate");
}

#[test]
fn turns_that_a_warm_up_planned_are_among_those_asked_for() {
    let some = |requests| {
        plan(&options(ApiDialect::Chat, THREE), |plan| {
            plan.connections = Connections::Fixed(4);
            plan.warmup_ns = SECOND_NS;
            plan.stop = StopRule { duration_ns: None, requests: Some(requests) };
        })
    };
    // Fewer than think at the end of the warm-up, as many, and more.
    for requests in [1, 3, 4, 10] {
        let plan = some(requests);
        let mut calls = calls(&plan, Share::WHOLE);
        let mut thinking = Vec::new();
        while let Some((_, number)) = next(calls.as_mut()) {
            thinking.push(ended(calls.as_mut(), number, "a").unwrap().number);
        }
        assert_eq!(thinking.len(), 4);
        calls.begin(Phase::Measured);
        let mut made = 0;
        while let Some(number) = thinking.pop() {
            if calls.claim(number) {
                made += 1;
                thinking.extend(ended(calls.as_mut(), number, "a").map(|following| following.number));
            }
        }
        assert_eq!(made, requests);
        assert_eq!(next(calls.as_mut()), None);
    }
}

#[test]
fn what_an_assistant_did_not_say_is_not_repeated() {
    let plan = plan(&options(ApiDialect::Messages, THREE), |_| ());
    let mut calls = calls(&plan, Share::WHOLE);
    let (_, first) = next(calls.as_mut()).unwrap();
    let (other, after_ns) = answer(calls.as_mut(), first, "").unwrap();
    assert_eq!((said(&body(calls.as_mut(), other)).len(), after_ns), (1, 0), "another conversation");
}

#[test]
fn a_trace_comes_at_its_times_and_a_warm_up_takes_its_beginning() {
    let trace: String = [(1000, 30), (1500, 20), (3000, 10), (4000, 5)]
        .map(|(at, tokens)| format!("{{\"timestamp\": {at}, \"input_length\": {tokens}, \"output_length\": 3}}\n"))
        .concat();
    let mut of_trace = options(ApiDialect::Chat, None);
    of_trace.prompts =
        Prompts::Given { file: "t".to_owned(), content: Content(trace.into_bytes()), rate: Rate::default() };
    let at = |change: fn(&mut Plan)| {
        let speed = Trace { speed: 2.0, ..Trace::new("t", "lengths") };
        plan(&of_trace, |plan| {
            plan.load = Load::Replay(Box::new(speed));
            change(plan);
        })
    };
    let mut all = calls(&at(|_| ()), Share::WHOLE);
    let mut came = Vec::new();
    while let Some((due, number)) = next(all.as_mut()) {
        let body = body(all.as_mut(), number);
        let words = said(&body)[0].1.split(' ').count();
        assert_eq!((body["max_tokens"].as_u64(), all.name(number)), (Some(3), (0, "")));
        came.push((due / 1_000_000, words));
    }
    assert_eq!(came, [(0, 30), (250, 20), (1000, 10), (1500, 5)]);
    let mut half = calls(&at(|_| ()), Share::new(1, 2).unwrap());
    assert_eq!(next(half.as_mut()).map(|(due, _)| due), Some(250_000_000));
    let mut warmed = calls(&at(|plan| plan.warmup_ns = SECOND_NS / 2), Share::WHOLE);
    assert_eq!(next(warmed.as_mut()).map(|(due, _)| due), Some(0));
    warmed.begin(Phase::Measured);
    assert_eq!(next(warmed.as_mut()).map(|(due, _)| due), Some(500_000_000));
    // The last request is due after 1.5 s, and somebody has to be measured.
    assert!(Llm.prepare(&at(|plan| plan.warmup_ns = 1_500_000_000)).is_ok());
    let refused = Llm.prepare(&at(|plan| plan.warmup_ns = 1_500_000_001)).err().unwrap().0;
    assert!(
        refused.contains("the last request of the trace comes after 1.50s: nothing would be measured"),
        "{refused}"
    );
}
