//! What became of attempts to connect to each address of a target that has several.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::counts::Failures;
use crate::outcome::Failure;
use crate::redaction::Secrets;

/// The most addresses that are told apart; a name with more of them is seldom answered whole by a resolver.
const MOST_ADDRESSES: usize = 64;

/// Attempts to connect, by address. Empty where each target has one address.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Addresses(BTreeMap<SocketAddr, Attempts>);

/// Attempts to connect to one address.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempts {
    /// Connections that it took.
    pub made: u64,
    /// Attempts that failed, with the reasons.
    pub failed: Failures,
    /// Lookups that found the target's name here when it was elsewhere before.
    #[serde(default)]
    pub moved: u64,
}

impl Addresses {
    /// `address` took a connection.
    pub fn made(&mut self, address: SocketAddr) {
        if let Some(attempts) = self.of(address) {
            attempts.made += 1;
        }
    }

    /// A lookup found the target's name at `address` when it was elsewhere before.
    pub fn moved_to(&mut self, address: SocketAddr) {
        if let Some(attempts) = self.of(address) {
            attempts.moved += 1;
        }
    }

    /// `address` took no connection.
    pub fn failed(&mut self, address: SocketAddr, failure: Failure, reason: &str) {
        if let Some(attempts) = self.of(address) {
            attempts.failed.record(failure, reason);
        }
    }

    fn of(&mut self, address: SocketAddr) -> Option<&mut Attempts> {
        let has_room = self.0.len() < MOST_ADDRESSES || self.0.contains_key(&address);
        has_room.then(|| self.0.entry(address).or_default())
    }

    /// Addresses with their attempts, in order.
    pub fn iter(&self) -> impl Iterator<Item = (SocketAddr, &Attempts)> {
        self.0.iter().map(|(address, attempts)| (*address, attempts))
    }

    /// Addresses that took connections, with their number.
    pub fn taken(&self) -> impl Iterator<Item = (SocketAddr, u64)> {
        self.iter().map(|(address, attempts)| (address, attempts.made)).filter(|(_, made)| *made > 0)
    }

    /// Whether no target has several addresses.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        for (address, attempts) in other.iter() {
            if let Some(known) = self.of(address) {
                known.made += attempts.made;
                known.moved += attempts.moved;
                known.failed.merge(&attempts.failed);
            }
        }
    }

    pub(crate) fn hide(&mut self, secrets: &Secrets) {
        self.0.values_mut().for_each(|attempts| attempts.failed.hide(secrets));
    }
}
