//! What asks for calls on a worker.

use super::users::VirtualUsers;
use crate::protocol::Parts;
use crate::user::{Interests, Message, Refusal, User};

/// What asks for calls on a worker.
pub(crate) enum Source {
    /// One user, for all connections alike.
    Calls(Box<dyn User>),
    /// Virtual users, who come and go.
    Users(Box<VirtualUsers>),
}

impl Source {
    #[inline]
    pub(super) fn call(&mut self, index: u64) -> Result<Message<'_>, Refusal> {
        match self {
            Self::Calls(user) => user.call(index),
            Self::Users(users) => users.call(index),
        }
    }

    /// How long the call may take, if not as long as the plan says.
    #[inline]
    pub(super) fn timeout_ns(&self, index: u64) -> Option<u64> {
        match self {
            Self::Calls(_) => None,
            Self::Users(users) => users.timeout_ns(index),
        }
    }

    pub(super) fn interests(&self) -> Interests {
        match self {
            Self::Calls(user) => user.interests(),
            Self::Users(_) => Interests::default(),
        }
    }

    pub(super) fn pause(&mut self) -> Result<u64, Refusal> {
        match self {
            Self::Calls(user) => user.pause(),
            Self::Users(_) => Ok(0),
        }
    }

    pub(super) fn answered(&mut self, status: u16, parts: Parts<'_>) -> Result<(), Refusal> {
        match self {
            Self::Calls(user) => user.answered(status, parts),
            Self::Users(_) => Ok(()),
        }
    }

    pub(super) fn expect(&mut self, calls: usize) {
        if let Self::Calls(user) = self {
            user.expect(calls);
        }
    }

    pub(super) fn settle(&mut self) -> Result<(), Refusal> {
        match self {
            Self::Calls(user) => user.settle(),
            Self::Users(_) => Ok(()),
        }
    }

    pub(super) fn take_busy_ns(&mut self) -> u64 {
        match self {
            Self::Calls(user) => user.take_busy_ns(),
            Self::Users(users) => users.take_busy_ns(),
        }
    }
}
