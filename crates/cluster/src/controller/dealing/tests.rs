use std::collections::BTreeSet;

use brunt_plan::plan::{ProtocolOptions, StopRule};
use brunt_plan::target::Url;

use super::*;

const REQUESTS: u64 = 20_000;
const LOOK_NS: u64 = SECOND_NS / 4;

fn plan(requests: u64) -> Plan {
    let target = Url::parse("http://127.0.0.1/").unwrap().target;
    let stop = StopRule { duration_ns: None, requests: Some(requests) };
    Plan { stop, connections: 20.into(), ..Plan::of_calls(target, ProtocolOptions::default()) }
}

/// Agents that make so many requests a second each, until all are made or `until_s`. They get orders a little late.
struct Agents {
    dealing: Dealing,
    rates: Vec<u64>,
    numbers: Vec<VecDeque<DealtNumbers>>,
    waits: Vec<bool>,
    made: Vec<Vec<u64>>,
    ended_s: Vec<Option<f64>>,
    dead: BTreeSet<usize>,
}

impl Agents {
    fn new(requests: u64, rates: &[u64]) -> Self {
        let plan = plan(requests);
        let of = rates.len() as u32;
        let portions: Vec<_> = (0..of).map(|first| Portion::new(first, 1, of).unwrap()).collect();
        let numbers = |portion| VecDeque::from([DealtNumbers::by_connection(portion, Some(requests), 20)]);
        Self {
            dealing: Dealing::new(1, &plan, portions.iter().copied()).unwrap(),
            rates: rates.to_vec(),
            numbers: portions.into_iter().map(numbers).collect(),
            waits: vec![false; rates.len()],
            made: vec![Vec::new(); rates.len()],
            ended_s: vec![None; rates.len()],
            dead: BTreeSet::new(),
        }
    }

    /// Lets a quarter of a second pass.
    fn step(&mut self, now: u64) {
        for place in 0..self.rates.len() {
            if self.ended_s[place].is_some() || self.dead.contains(&place) {
                continue;
            }
            for _ in 0..self.rates[place] / 4 {
                let number = self.numbers[place].iter_mut().find_map(Iterator::next);
                self.made[place].extend(number);
            }
            if !self.waits[place] && self.numbers[place].iter().all(|piece| piece.remaining() == 0) {
                self.ended_s[place] = Some(now as f64 / 1e9);
                self.dealing.gone(place);
                continue;
            }
            self.dealing.report_taken(place, now, self.made[place].len() as u64);
        }
        for (place, order) in self.dealing.orders() {
            if self.dead.contains(&place) {
                continue;
            }
            match order {
                ToAgent::GiveBack { most, .. } => {
                    let mut left = most;
                    for piece in self.numbers[place].iter_mut().rev() {
                        left -= piece.split_last(left).remaining();
                    }
                    self.waits[place] |= left < most;
                    self.dealing.given_back(place, most - left, self.made[place].len() as u64).unwrap();
                }
                ToAgent::Numbers { numbers, are_last, .. } => {
                    self.numbers[place].extend(numbers);
                    self.waits[place] &= !are_last;
                }
                other => panic!("{other:?}"),
            }
        }
    }

    fn run(&mut self, until_s: u64) {
        for step in 1..=until_s * 4 {
            self.step(step * LOOK_NS);
        }
    }

    fn all_made(&self) -> Vec<u64> {
        let mut all: Vec<u64> = self.made.iter().flatten().copied().collect();
        all.sort_unstable();
        all
    }
}

#[test]
fn unequal_agents_end_together_and_make_each_number_once() {
    for rates in [vec![100, 900], vec![500, 500], vec![40, 200, 760], vec![4, 996]] {
        let mut agents = Agents::new(REQUESTS, &rates);
        agents.run(40);
        assert!(agents.all_made().into_iter().eq(0..REQUESTS), "{rates:?}");
        let ends: Vec<f64> = agents.ended_s.iter().map(|ended| ended.unwrap()).collect();
        let (first, last) = (ends.iter().copied().fold(f64::MAX, f64::min), ends.iter().copied().fold(0.0, f64::max));
        assert!(last < 22.0 + first - last + 4.0 && last - first < 3.0, "{rates:?}: {ends:?}");
    }
}

#[test]
fn a_short_run_is_dealt_ahead() {
    let mut agents = Agents::new(1000, &[500, 400]);
    agents.run(5);
    assert!(!agents.dealing.has_begun && agents.all_made().len() == 1000);
}

#[test]
fn a_lost_agent_takes_seconds_of_work_with_it() {
    let mut agents = Agents::new(REQUESTS, &[500, 500]);
    agents.run(5);
    agents.dead.insert(1);
    agents.dealing.gone(1);
    for step in 21..200 {
        agents.step(step * LOOK_NS);
    }
    let unmade = agents.dealing.dealt(1) - agents.made[1].len() as u64;
    assert!(unmade <= 500 * 9 / 2, "{unmade}");
    assert_eq!(agents.all_made().len() as u64 + unmade, REQUESTS);
    assert_eq!(agents.dealing.left(), 0);
}

#[test]
fn what_nobody_is_left_to_make_is_known() {
    let mut agents = Agents::new(REQUESTS, &[500, 500]);
    agents.run(5);
    for place in 0..2 {
        agents.dealing.gone(place);
    }
    assert_eq!(agents.dealing.orders(), []);
    let dealt = agents.dealing.dealt(0) + agents.dealing.dealt(1);
    assert_eq!(dealt + agents.dealing.left(), REQUESTS);
    assert!(dealt < 2 * 500 * 10, "{dealt}");
}

#[test]
fn a_target_that_becomes_faster_finds_agents_with_work() {
    let mut agents = Agents::new(1_000_000, &[400, 400]);
    agents.run(5);
    agents.rates = vec![4_000, 4_000];
    for step in 21..41 {
        agents.step(step * LOOK_NS);
    }
    let made = agents.all_made().len() - 2 * 5 * 400;
    assert!(made > 36_000, "{made} of 40,000");
}

#[test]
fn more_than_an_agent_was_asked_for_is_a_breach() {
    let mut dealing = Dealing::new(1, &plan(REQUESTS), [Portion::whole(1)].into_iter()).unwrap();
    assert_eq!(dealing.given_back(0, 1, 0), Err(Breach::GivenBack { got: 1, most: 0 }));
    for second in 1..4 {
        dealing.report_taken(0, second * SECOND_NS, second * 10);
    }
    let orders = dealing.orders();
    let [(0, ToAgent::GiveBack { most, .. })] = orders.as_slice() else { panic!("{orders:?}") };
    assert_eq!(dealing.orders(), [], "asked once");
    // It has reported calls that it would give back.
    assert_eq!(dealing.given_back(0, *most, REQUESTS), Err(Breach::GivenBack { got: *most, most: 0 }));
}

#[test]
fn numbers_that_an_agent_makes_up_are_bounded() {
    let mut dealing = Dealing::new(1, &plan(REQUESTS), [Portion::whole(1)].into_iter()).unwrap();
    for (at, taken) in [(SECOND_NS, u64::MAX), (3 * SECOND_NS, 0), (0, 5), (u64::MAX, 1)] {
        dealing.report_taken(0, at, taken);
        let _ = dealing.orders();
    }
    assert_eq!(dealing.dealt(0), REQUESTS);
}
