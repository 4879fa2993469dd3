//! The members of a flight.

use std::task::Waker;

use http::Response;
use slab::Slab;

use super::Answering;
use crate::body::CutOff;

/// The state of a member.
pub(super) enum State<F: Answering> {
    /// For the answer.
    Waiting,
    /// For the piece with the number `next` of the body.
    Reading {
        next: u64,
        /// The bytes that it took since the flight last began to measure.
        taken: usize,
    },
    /// It waits for nothing: it was cut off, as it was too slow.
    CutOff,
    /// It calls the service itself. The flight's next leader waits until such a call is over.
    Released,
    /// It waits for nothing: this is its own call's outcome, for it alone.
    Owed(Box<Outcome<F>>),
}

/// The outcome of a call that is not shared.
pub(crate) enum Outcome<F: Answering> {
    Answer(Response<F::Body>),
    Error(F::Error),
    Panic(Box<dyn std::any::Any + Send>),
}

struct Entry<F: Answering> {
    state: State<F>,
    waker: Option<Waker>,
    /// Is told when it is cut off.
    cut_off: Option<CutOff>,
}

/// The members of a flight. The first one costs no allocation.
pub(super) struct Members<F: Answering> {
    first: Option<Entry<F>>,
    others: Slab<Entry<F>>,
    released: usize,
}

/// The place of a flight's first member.
pub(super) const FIRST: usize = 0;

impl<F: Answering> Members<F> {
    pub(super) fn new() -> Self {
        Self {
            first: Some(Entry { state: State::Waiting, waker: None, cut_off: None }),
            others: Slab::new(),
            released: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.others.len() + usize::from(self.first.is_some())
    }

    pub(super) fn join(&mut self) -> usize {
        self.others.insert(Entry { state: State::Waiting, waker: None, cut_off: None }) + 1
    }

    pub(super) fn leave(&mut self, place: usize) -> Option<State<F>> {
        let entry = match place.checked_sub(1) {
            None => self.first.take(),
            Some(place) => self.others.try_remove(place),
        };
        let state = entry.map(|entry| entry.state);
        self.released -= usize::from(matches!(state, Some(State::Released)));
        state
    }

    /// How many call the service themselves.
    pub(super) fn released(&self) -> usize {
        self.released
    }

    /// How many have a part in the flight's own call.
    pub(super) fn active(&self) -> usize {
        self.len() - self.released
    }

    /// Releases up to this many of those that wait, but not the last.
    pub(super) fn release(&mut self, most: usize) {
        let most = most.min(self.waiting().saturating_sub(1));
        for state in self.states().filter(|state| matches!(state, State::Waiting)).take(most) {
            *state = State::Released;
        }
        self.released += most;
    }

    fn entry(&mut self, place: usize) -> Option<&mut Entry<F>> {
        match place.checked_sub(1) {
            None => self.first.as_mut(),
            Some(place) => self.others.get_mut(place),
        }
    }

    fn entries(&mut self) -> impl Iterator<Item = &mut Entry<F>> {
        self.first.iter_mut().chain(self.others.iter_mut().map(|(_, entry)| entry))
    }

    pub(super) fn state(&mut self, place: usize) -> Option<&mut State<F>> {
        self.entry(place).map(|entry| &mut entry.state)
    }

    pub(super) fn states(&mut self) -> impl Iterator<Item = &mut State<F>> {
        self.entries().map(|entry| &mut entry.state)
    }

    /// Tells of this member being cut off.
    pub(super) fn cut_off(&mut self, place: usize) -> CutOff {
        self.entry(place).map_or_else(CutOff::default, |entry| entry.cut_off.get_or_insert_default().clone())
    }

    /// All states, and who is told of a member that is cut off.
    pub(super) fn readings(&mut self) -> impl Iterator<Item = (&mut State<F>, Option<&CutOff>)> {
        self.entries().map(|entry| (&mut entry.state, entry.cut_off.as_ref()))
    }

    /// How many have not been given the answer yet.
    pub(super) fn waiting(&mut self) -> usize {
        self.states().filter(|state| matches!(state, State::Waiting)).count()
    }

    /// How many will read each piece of the body that comes.
    pub(super) fn readers(&mut self) -> usize {
        self.states().filter(|state| matches!(state, State::Waiting | State::Reading { .. })).count()
    }

    /// Stores the member's waker.
    pub(super) fn register(&mut self, place: usize, waker: &Waker) {
        if let Some(entry) = self.entry(place) {
            match &mut entry.waker {
                Some(known) => known.clone_from(waker),
                none => *none = Some(waker.clone()),
            }
        }
    }

    /// Removes the waker of this member, which is awake.
    pub(super) fn is_awake(&mut self, place: usize) {
        if let Some(entry) = self.entry(place) {
            entry.waker = None;
        }
    }

    /// Takes all wakers, roughly in the order of their members' arrival.
    pub(super) fn take_wakers(&mut self) -> Vec<Waker> {
        self.entries().filter_map(|entry| entry.waker.take()).collect()
    }
}
