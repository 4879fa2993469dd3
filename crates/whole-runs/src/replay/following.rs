//! Calls that follow from the ends of others: turns of conversations.

use brunt_plan::connections::Connections;
use brunt_plan::plan::StopRule;
use brunt_protocol::replay::{Following, LoggedCall, ReplayedEnd, Upcoming, WorkerReplay};
use brunt_protocol::source::{Message, SourceEnd};
use brunt_record::catalogue::Counter;
use brunt_record::snapshot::Phase;

use super::{MS, SECOND_NS, replayed};

/// Conversations that begin at these times, of so many turns, with half a second between an answer and the next turn. Calls have numbers of
/// three digits: the conversation's, and two of its turn.
struct Talks {
    begin: Vec<u64>,
    next: usize,
    turns: u64,
    bytes: String,
    /// What is left of the beginnings once the measured part begins.
    phase: Phase,
}

impl Talks {
    fn of(begin: &[u64], turns: u64, phase: Phase) -> Vec<Box<dyn WorkerReplay>> {
        vec![Box::new(Self { begin: begin.to_vec(), next: 0, turns, bytes: String::new(), phase })]
    }
}

impl WorkerReplay for Talks {
    fn begin(&mut self, phase: Phase) {
        if phase != self.phase {
            (self.phase, self.next) = (phase, self.begin.len());
        }
    }

    fn next(&mut self) -> Upcoming {
        let Some(due_ns) = self.begin.get(self.next).copied() else { return Upcoming::Over };
        self.next += 1;
        Upcoming::Call(LoggedCall { number: self.next as u64 * 100 + 1, due_ns, session: None, logged_ns: 0 })
    }

    fn call(&mut self, number: u64) -> Result<Message<'_>, SourceEnd> {
        self.bytes = format!("GET /{number} HTTP/1.1\r\nHost: a\r\n\r\n");
        Ok(Message { bytes: self.bytes.as_bytes(), ..Message::default() })
    }

    fn name(&self, number: u64) -> (u32, &str) {
        if number % 100 == 1 { (0, "first") } else { (1, "later") }
    }

    fn ended(&mut self, _number: u64, _ended: ReplayedEnd<'_>) {}

    fn follows(&mut self, number: u64) -> Option<Following> {
        (number % 100 < self.turns).then(|| Following { number: number + 1, after_ns: SECOND_NS / 2 })
    }
}

#[test]
fn a_turn_is_due_once_the_answer_before_has_ended_and_its_user_has_thought() {
    let logs = Talks::of(&[0, 100 * MS], 3, Phase::Measured);
    let (summary, came) = replayed(|_| (), logs, |_| 300 * MS);
    // Each takes 0.3 s, and half a second passes between two: 0.8 s from one to the next.
    let began = came[0].0;
    let at: Vec<_> = came.iter().map(|(at, _, number)| ((at - began + MS) / (10 * MS), *number)).collect();
    assert_eq!(at, [(0, 101), (10, 201), (80, 102), (90, 202), (160, 103), (170, 203)]);
    let of = |conversation: u64| came.iter().filter(move |(.., number)| number / 100 == conversation);
    for conversation in [1, 2] {
        let connections: std::collections::BTreeSet<_> =
            of(conversation).map(|(_, connection, _)| connection).collect();
        assert_eq!(connections.len(), 1, "a conversation keeps its connection");
    }
    // Nobody waited: what passes between turns is in no time.
    assert!(summary.times.response.as_ref().unwrap().max.value < 310 * MS);
    assert_eq!(summary.total.numbers.get(Counter::Due), 6);
    let names: Vec<_> =
        summary.total.figures.requests.iter().map(|(name, of)| (name, of.numbers.get(Counter::Due))).collect();
    assert_eq!(names, [("first", 2), ("later", 4)]);
    assert!(!summary.verdict.is_brunt_the_limit());
}

#[test]
fn turns_due_after_the_end_are_not_part_of_the_run() {
    let stop = |plan: &mut brunt_plan::plan::Plan| {
        plan.stop = StopRule { duration_ns: Some(SECOND_NS), requests: None };
        plan.connections = Connections::UpTo(1);
    };
    // The second conversation waits for the connection of the first, also while its user thinks.
    let (summary, came) = replayed(stop, Talks::of(&[0, 10 * MS], 9, Phase::Measured), |_| 200 * MS);
    let numbers: Vec<_> = came.iter().map(|(.., number)| *number).collect();
    assert_eq!(numbers[0], 101);
    assert_eq!(summary.total.numbers.get(Counter::Due), came.len() as u64 + summary.total.numbers.get(Counter::Unsent));
    assert!(came.len() < 6, "{numbers:?}");
}

#[test]
fn conversations_go_on_from_a_warm_up() {
    let warmed = |plan: &mut brunt_plan::plan::Plan| plan.warmup_ns = SECOND_NS;
    let (summary, came) = replayed(warmed, Talks::of(&[0, 100 * MS], 4, Phase::Warmup), |_| 300 * MS);
    assert_eq!(came.len(), 8);
    // Turns are due after 0, 0.8, 1.6 and 2.4 s, and the first second is the warm-up.
    assert_eq!(summary.total.numbers.get(Counter::Due), 4);
    assert_eq!(summary.total.statuses.total(), 4);
}
