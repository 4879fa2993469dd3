//! Calls at times of their own: the turns of conversations, and the requests of a trace.
//!
//! A conversation begins as a call of the load does: by a rate, at the time of its trace, or where the one before it on its connection is
//! over. Its next turn repeats what was said so far, with the server's own answers, and is due once the answer before has ended and its
//! user has thought. A turn that fails ends its conversation: the turns that it still had are counted as lost.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use brunt_plan::arrivals::Arrivals;
use brunt_plan::plan::{Load, Plan};
use brunt_plan::random::{ByNumber, Random};
use brunt_plan::share::Share;
use brunt_protocol::replay::{Following, LoggedCall, ReplayedEnd, Upcoming, WorkerReplay};
use brunt_protocol::source::{Message, SourceEnd};
use brunt_record::snapshot::Phase;

use crate::facts;
use crate::prompt::escaped;
use crate::request::Requests;
use crate::turns::{LATER, Lost, Turns};

/// The most of a conversation that its turns repeat, in bytes; it ends there.
const MOST_SAID: usize = 4 * 1024 * 1024;
/// How long a connection waits after a turn that failed before it begins another conversation, in nanoseconds.
const AFTER_FAILURE_NS: u64 = 100_000_000;
/// Separates the random numbers of turns from those of prompts.
const TURNS: u64 = 0x7a1_4e55;
/// The names of turns in a report.
const NAMES: [&str; 2] = ["turn 1", "turn 2+"];

/// Where conversations come from.
#[derive(Debug)]
enum Beginning {
    /// This many at the start, and another whenever one ends.
    AtOnce(u64),
    /// At a rate.
    Rate(Box<Arrivals>),
    /// At the times of a file from this one on, less a time in nanoseconds.
    Times(usize, u64),
}

/// A conversation with a turn that is planned or in flight.
#[derive(Debug)]
struct Conversation {
    /// Its number, over all workers.
    number: u64,
    /// That turn, from 0.
    turn: u32,
    turns: u32,
    /// All that was said, up to this turn's prompt, escaped for JSON.
    said: String,
    /// Whether it was due, and is a call.
    is_made: bool,
    /// The most tokens of this turn's answer.
    most: Option<u32>,
    /// The answer to this turn, once it has come whole.
    reply: Option<String>,
}

/// The calls of one worker.
pub struct OwnCalls {
    plan: Arc<Plan>,
    prompts: Arc<Requests>,
    turns: Option<Turns>,
    /// When the conversations of a file come, in nanoseconds of the run.
    times: Arc<[u64]>,
    share: Share,
    beginning: Beginning,
    phase: Phase,
    /// How many calls may still be made.
    left: u64,
    /// How many were planned, and how many of them are not due yet.
    planned: u64,
    waiting: u64,
    /// The call of the next conversation, until it is due.
    ahead: Option<u64>,
    /// How many conversations this worker has begun.
    begun: u64,
    under_way: ByNumber<Conversation>,
    lost: Lost,
    body: Vec<u8>,
    bytes: Vec<u8>,
}

impl OwnCalls {
    /// Those of a share of `plan`; `times` are for a load that replays them.
    pub fn new(
        plan: &Arc<Plan>,
        prompts: &Arc<Requests>,
        turns: Option<Turns>,
        times: &Arc<[u64]>,
        lost: &Lost,
        share: Share,
    ) -> Self {
        let phase = if plan.warmup_ns > 0 { Phase::Warmup } else { Phase::Measured };
        let mut calls = Self {
            plan: Arc::clone(plan),
            prompts: Arc::clone(prompts),
            turns,
            times: Arc::clone(times),
            share,
            beginning: Beginning::AtOnce(0),
            phase,
            left: u64::MAX,
            planned: 0,
            waiting: 0,
            ahead: None,
            begun: 0,
            under_way: ByNumber::default(),
            lost: Arc::clone(lost),
            body: Vec::new(),
            bytes: Vec::new(),
        };
        calls.begin_part(phase);
        calls
    }

    fn begin_part(&mut self, phase: Phase) {
        let is_first = self.begun == 0;
        self.phase = phase;
        // The engine leaves it out: it was to come later in the warm-up.
        if let Some(number) = self.ahead.take() {
            self.forget(number);
        }
        self.left = match self.plan.stop.requests {
            Some(requests) if phase == Phase::Measured => self.share.part_of(requests),
            _ => u64::MAX,
        };
        self.beginning = match &self.plan.load {
            Load::Replay(_) => {
                let passed_ns = if phase == Phase::Measured { self.plan.warmup_ns } else { 0 };
                let place = self.times.partition_point(|at| *at < passed_ns);
                Beginning::Times(place, passed_ns)
            }
            _ => match self.plan.arrivals(phase, self.share) {
                Some(arrivals) => Beginning::Rate(Box::new(arrivals)),
                // Those of a warm-up go on.
                None if is_first => Beginning::AtOnce(self.share.part_of(u64::from(self.plan.connections.most()))),
                None => Beginning::AtOnce(0),
            },
        };
    }

    /// The next conversation: when its first turn is due, and its number.
    fn next_beginning(&mut self) -> Option<(u64, u64)> {
        match &mut self.beginning {
            Beginning::AtOnce(0) => None,
            Beginning::AtOnce(more) => {
                *more -= 1;
                Some((0, self.share.number(self.begun)?))
            }
            Beginning::Rate(arrivals) => arrivals.next().map(|arrival| (arrival.due_ns, arrival.index)),
            Beginning::Times(next, passed_ns) => {
                let (workers, worker) = (self.share.count() as usize, self.share.index() as usize);
                let place = *next + (workers + worker - *next % workers) % workers;
                let at_ns = self.times.get(place)?;
                *next = place + 1;
                Some((at_ns - *passed_ns, place as u64))
            }
        }
    }

    /// Begins the conversation with this number. Returns the number of its first call; `None` if no more calls are made.
    fn open(&mut self, number: u64) -> Option<u64> {
        self.begun += 1;
        let mut random = Random::new(self.prompts.seed ^ TURNS, number);
        let drawn = self.turns.map_or(1, |of| of.turns.draw(&mut random));
        let turns = self.prompts.source.turns(number).map_or(drawn, |of_file| drawn.min(of_file));
        self.say(Conversation { number, turn: 0, turns, said: String::new(), is_made: false, most: None, reply: None })
    }

    /// Appends the prompt of a conversation's current turn. Returns the number of its call, which is planned; `None` if no more calls are made.
    fn say(&mut self, mut conversation: Conversation) -> Option<u64> {
        // Those that wait go first.
        if self.left <= self.waiting {
            return None;
        }
        let Conversation { number, turn, .. } = conversation;
        let stream = number.wrapping_add(u64::from(turn) << 40);
        let (said, most) = (&mut conversation.said, &mut conversation.most);
        *most = self.prompts.add(number, turn, stream, said);
        conversation.is_made = false;
        self.planned += 1;
        self.waiting += 1;
        self.under_way.insert(self.planned, conversation);
        Some(self.planned)
    }

    /// Goes on with a conversation whose turn was answered; `None` where it is over, or cannot go on.
    fn go_on(&mut self, mut conversation: Conversation) -> Option<Following> {
        let reply = conversation.reply.take()?;
        // Servers refuse a turn of an assistant that said nothing.
        if reply.is_empty() {
            self.lose(&conversation, 1);
            return None;
        }
        let think = self.turns.filter(|_| conversation.turn + 1 < conversation.turns)?.think;
        let [before, behind] = self.prompts.dialect.between_turns();
        for part in [before, escaped(&reply).as_str(), behind] {
            conversation.said.push_str(part);
        }
        conversation.turn += 1;
        if conversation.said.len() > MOST_SAID {
            self.lose(&conversation, 0);
            return None;
        }
        let mut random =
            Random::new(self.prompts.seed ^ TURNS, !(conversation.number << 12 | u64::from(conversation.turn)));
        let after_ns = think.draw(&mut random);
        Some(Following { number: self.say(conversation)?, after_ns })
    }

    /// Forgets a call that was planned and never came due.
    fn forget(&mut self, number: u64) {
        if self.under_way.remove(&number).is_some_and(|conversation| !conversation.is_made) {
            self.waiting -= 1;
        }
    }

    /// Counts a conversation's turns from its current one on as lost, but for so many that were `asked`.
    fn lose(&self, conversation: &Conversation, asked: u32) {
        let lost = conversation.turns.saturating_sub(conversation.turn + asked);
        if self.phase == Phase::Measured {
            self.lost.fetch_add(u64::from(lost), Ordering::Relaxed);
        }
    }
}

impl WorkerReplay for OwnCalls {
    fn begin(&mut self, phase: Phase) {
        if phase != self.phase {
            self.begin_part(phase);
        }
    }

    fn next(&mut self) -> Upcoming {
        let Some((due_ns, number)) = self.next_beginning().filter(|_| self.left > 0) else { return Upcoming::Over };
        match self.open(number) {
            Some(number) => {
                self.ahead = Some(number);
                Upcoming::Call(LoggedCall { number, due_ns, session: None, logged_ns: 0 })
            }
            None => Upcoming::Over,
        }
    }

    fn claim(&mut self, number: u64) -> bool {
        self.ahead = self.ahead.filter(|ahead| *ahead != number);
        // After a warm-up more may wait than are still to be made.
        let (Some(left), Some(conversation)) = (self.left.checked_sub(1), self.under_way.get_mut(&number)) else {
            self.forget(number);
            return false;
        };
        conversation.is_made = true;
        (self.left, self.waiting) = (left, self.waiting - 1);
        true
    }

    fn call(&mut self, number: u64) -> Result<Message<'_>, SourceEnd> {
        let conversation = self.under_way.get(&number).ok_or(SourceEnd::Done)?;
        self.prompts.write(conversation.number, &conversation.said, conversation.most, &mut self.body, &mut self.bytes);
        let hint = self.prompts.hint() | if conversation.turn > 0 { LATER } else { 0 };
        Ok(Message { bytes: &self.bytes, hint, ..Message::default() })
    }

    fn name(&self, number: u64) -> (u32, &str) {
        let [first, later] = NAMES;
        match self.under_way.get(&number) {
            Some(conversation) if self.turns.is_some() && conversation.turn == 0 => (0, first),
            Some(_) if self.turns.is_some() => (1, later),
            _ => (0, ""),
        }
    }

    fn ended(&mut self, number: u64, ended: ReplayedEnd<'_>) {
        let Some(conversation) = self.under_way.get_mut(&number) else { return };
        // Held back past its time: it was due, and never sent.
        if !conversation.is_made {
            self.forget(number);
            self.left = self.left.saturating_sub(1);
            return;
        }
        conversation.reply = match ended {
            ReplayedEnd::Answered { status, parts, .. } if (200..300).contains(&status) => {
                Some(facts::reply(parts.body).to_owned())
            }
            ReplayedEnd::Answered { .. } | ReplayedEnd::Failed | ReplayedEnd::Cut => None,
        };
    }

    fn follows(&mut self, number: u64) -> Option<Following> {
        let conversation = self.under_way.remove(&number)?;
        let has_failed = conversation.reply.is_none();
        if has_failed {
            self.lose(&conversation, 1);
        } else if let Some(following) = self.go_on(conversation) {
            return Some(following);
        }
        // By a rate, or a trace, others come by themselves.
        if self.plan.load.is_open() {
            return None;
        }
        let number = self.share.number(self.begun)?;
        Some(Following { number: self.open(number)?, after_ns: if has_failed { AFTER_FAILURE_NS } else { 0 } })
    }
}

#[cfg(test)]
mod tests;
