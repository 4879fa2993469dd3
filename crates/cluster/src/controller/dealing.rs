//! Requests of a counted number, dealt by progress.
//!
//! Ahead of a run each agent gets the numbers of its connections, so that nobody ever waits in a short run. Once the pace
//! of each is known, an agent that has more than some seconds of work in hand gives the rest back, and whoever runs low
//! gets more of it. So agents end together, however unequal they are, and a lost one takes seconds of work with it and not
//! its share of the run.
//!
//! Agents that gave something back wait for more until they are told which numbers were the last. Numbers are dealt to no
//! others: these may have ended meanwhile.

use std::collections::VecDeque;

use brunt_plan::plan::Plan;
use brunt_plan::share::{DealtNumbers, Portion};
use brunt_record::SECOND_NS;

use super::inspection::Breach;
use crate::messages::ToAgent;
use crate::roster::dealt_requests;
use crate::rules::{Rule, is_broken};

/// The work that an agent has in hand, in nanoseconds at its pace: it gets more below the first, up to the second, and gives
/// back what it has beyond the third.
const LOW_NS: u64 = 5 * SECOND_NS / 2;
const FULL_NS: u64 = 7 * SECOND_NS / 2;
const HIGH_NS: u64 = 9 * SECOND_NS / 2;
/// How often an agent's word is taken, in nanoseconds.
const OFTEN_NS: u64 = 100_000_000;
/// The shortest and the longest time over which a pace is measured, in nanoseconds.
const SOON_NS: u64 = SECOND_NS;
const LONG_NS: u64 = 4 * SECOND_NS;

/// The requests of a run, and who has them.
#[derive(Debug)]
pub(super) struct Dealing {
    run: u32,
    /// Given back, and not dealt again.
    store: VecDeque<DealtNumbers>,
    hands: Vec<AgentRequests>,
    has_begun: bool,
    is_over: bool,
}

/// An agent's requests.
#[derive(Debug)]
struct AgentRequests {
    /// Dealt to it, in the order in which it makes them; and how many that are.
    pieces: Vec<DealtNumbers>,
    dealt: u64,
    /// The fewest that it has in hand, however slow it is: one for each connection.
    fewest: u64,
    /// How many it had taken, and when it said so, in nanoseconds.
    reported: VecDeque<(u64, u64)>,
    /// How many it is to give back, while that is not answered.
    give_back_asked: Option<u64>,
    /// Whether it was asked once, and whether it waits for more.
    was_asked: bool,
    waits: bool,
    /// Whether it has ended its part, or is lost.
    is_gone: bool,
}

impl AgentRequests {
    fn new(plan: &Plan, portion: Portion) -> Self {
        let connections = u64::from(plan.connections.most());
        let numbers = DealtNumbers::by_connection(portion, dealt_requests(plan), connections);
        Self {
            dealt: numbers.remaining(),
            pieces: vec![numbers],
            fewest: portion.part_of(connections).max(1),
            reported: VecDeque::new(),
            give_back_asked: None,
            was_asked: false,
            waits: false,
            is_gone: false,
        }
    }

    fn in_hand(&self) -> u64 {
        self.dealt.saturating_sub(self.reported.back().map_or(0, |(_, taken)| *taken))
    }

    /// Its requests in a nanosecond, of late; `None` while that is not known. Slow ones make few in bursts: the longer of two
    /// times counts if it shows more.
    fn pace(&self) -> Option<f64> {
        let (now, taken) = self.reported.back()?;
        let since = |(at, before): &(u64, u64)| {
            let ns = now - at;
            (ns >= SOON_NS).then(|| (taken - before) as f64 / ns as f64)
        };
        let long = self.reported.front().and_then(since)?;
        let soon = self.reported.iter().rev().find_map(since)?;
        Some(long.max(soon))
    }

    /// The requests that so much work is.
    fn work(&self, pace: f64, ns: u64) -> u64 {
        ((pace * ns as f64) as u64).max(self.fewest)
    }
}

impl Dealing {
    /// Of a run that has a number of requests in the closed model.
    pub(super) fn new(run: u32, plan: &Plan, portions: impl Iterator<Item = Portion>) -> Option<Self> {
        dealt_requests(plan)?;
        let hands = portions.map(|portion| AgentRequests::new(plan, portion)).collect();
        Some(Self { run, store: VecDeque::new(), hands, has_begun: false, is_over: false })
    }

    /// How many requests an agent has, made and not.
    pub(super) fn dealt(&self, place: usize) -> u64 {
        self.hands.get(place).map_or(0, |hand| hand.dealt)
    }

    /// An agent has told how many its workers had taken.
    pub(super) fn report_taken(&mut self, place: usize, now: u64, taken: u64) {
        let Some(hand) = self.hands.get_mut(place) else { return };
        let (at, before) = hand.reported.back().copied().unwrap_or((0, 0));
        if now < at.saturating_add(OFTEN_NS) {
            return;
        }
        // It may say anything.
        hand.reported.push_back((now, taken.clamp(before, hand.dealt.max(before))));
        while hand.reported.get(1).is_some_and(|(at, _)| now.saturating_sub(*at) >= LONG_NS) {
            hand.reported.pop_front();
        }
    }

    /// An agent has given so many back, and has reported so many as due.
    ///
    /// # Errors
    /// When it was not asked for so many, or cannot have them.
    pub(super) fn given_back(&mut self, place: usize, requests: u64, due: u64) -> Result<(), Breach> {
        let Some(hand) = self.hands.get_mut(place) else { return Ok(()) };
        let most = hand.give_back_asked.take().unwrap_or(0).min(hand.dealt.saturating_sub(due));
        if requests > most {
            return Err(Breach::GivenBack { got: requests, most });
        }
        hand.waits |= requests > 0;
        let back = Self::take_back(hand, requests);
        if !is_broken(Rule::GivenBackIsDealtAgain) {
            self.store.extend(back);
        }
        Ok(())
    }

    /// Takes the last requests of an agent.
    fn take_back(hand: &mut AgentRequests, requests: u64) -> Vec<DealtNumbers> {
        let mut left = requests;
        let mut back = Vec::new();
        while left > 0
            && let Some(piece) = hand.pieces.last_mut()
        {
            let last = piece.split_last(left);
            left -= last.remaining();
            hand.dealt -= last.remaining();
            if piece.remaining() == 0 {
                hand.pieces.pop();
            }
            back.push(last);
        }
        back
    }

    /// An agent has ended its part, or is lost: it makes no more.
    pub(super) fn gone(&mut self, place: usize) {
        if let Some(hand) = self.hands.get_mut(place) {
            (hand.is_gone, hand.give_back_asked) = (true, None);
        }
    }

    /// Requests that nobody was dealt in the end.
    pub(super) fn left(&self) -> u64 {
        self.store.iter().map(DealtNumbers::remaining).sum()
    }

    /// What to tell agents now, by their places.
    pub(super) fn orders(&mut self) -> Vec<(usize, ToAgent)> {
        let mut orders = Vec::new();
        if self.is_over {
            return orders;
        }
        self.ask_back(&mut orders);
        self.deal(&mut orders);
        let living = || self.hands.iter().enumerate().filter(|(_, hand)| !hand.is_gone);
        if self.has_begun && self.store.is_empty() && living().all(|(_, hand)| hand.give_back_asked.is_none()) {
            self.is_over = true;
            if !is_broken(Rule::LastNumbersAreSaid) {
                let last = |place| (place, ToAgent::Numbers { run: self.run, numbers: Vec::new(), are_last: true });
                orders.extend(living().filter(|(_, hand)| hand.waits).map(|(place, _)| last(place)));
            }
        }
        orders
    }

    /// Asks agents for what they have beyond some seconds of work. Once one is asked, all are asked for one request at
    /// least, as only who waits for more can get it.
    fn ask_back(&mut self, orders: &mut Vec<(usize, ToAgent)>) {
        let beyond = |hand: &AgentRequests| {
            let pace = hand.pace().filter(|_| !hand.is_gone && hand.give_back_asked.is_none())?;
            (hand.in_hand() > hand.work(pace, HIGH_NS)).then(|| hand.in_hand() - hand.work(pace, FULL_NS))
        };
        self.has_begun |= self.hands.iter().any(|hand| beyond(hand).is_some());
        if !self.has_begun {
            return;
        }
        for (place, hand) in self.hands.iter_mut().enumerate() {
            let beyond = beyond(hand).or_else(|| (!hand.was_asked && !hand.is_gone).then_some(1));
            if let Some(most) = beyond.filter(|most| *most > 0) {
                (hand.give_back_asked, hand.was_asked) = (Some(most), true);
                orders.push((place, ToAgent::GiveBack { run: self.run, most }));
            }
        }
    }

    /// Deals what was given back to those who run low, by their pace.
    fn deal(&mut self, orders: &mut Vec<(usize, ToAgent)>) {
        let can_take = |hand: &AgentRequests| hand.waits && !hand.is_gone;
        let takers = || self.hands.iter().filter(|hand| can_take(hand));
        let (number, all) = (takers().count(), takers().filter_map(AgentRequests::pace).sum::<f64>());
        for (place, hand) in self.hands.iter_mut().enumerate() {
            let left = self.store.iter().map(DealtNumbers::remaining).sum::<u64>();
            if left == 0 {
                return;
            }
            let pace = hand.pace().unwrap_or(0.0);
            let in_hand = hand.in_hand();
            if !can_take(hand) || hand.give_back_asked.is_some() || in_hand >= hand.work(pace, LOW_NS) {
                continue;
            }
            let part = if all > 0.0 { pace / all } else { 1.0 / number.max(1) as f64 };
            let fair = ((left as f64 * part) as u64).max(1);
            let mut most = fair.min(hand.work(pace, FULL_NS) - in_hand);
            let mut numbers = Vec::new();
            while most > 0
                && let Some(piece) = self.store.front_mut()
            {
                let first = piece.split_first(most);
                most -= first.remaining();
                hand.dealt += first.remaining();
                numbers.push(first);
                if piece.remaining() == 0 {
                    self.store.pop_front();
                }
            }
            hand.pieces.extend(numbers.iter().cloned());
            orders.push((place, ToAgent::Numbers { run: self.run, numbers, are_last: false }));
        }
    }
}

#[cfg(test)]
mod tests;
