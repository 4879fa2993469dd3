//! When the calls of the open model are due.

mod bursty;
mod poisson;
mod uniform;

use serde::{Deserialize, Serialize};

use crate::profile::Profile;
use crate::share::Share;

use self::bursty::Bursty;
use self::poisson::Poisson;
use self::uniform::Uniform;

/// How due times are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Spread {
    /// Evenly: the k-th call is due where the integral of the profile reaches k.
    #[default]
    Uniform,
    /// As independent users arrive: exponential gaps, a Poisson process with the profile as its intensity.
    Poisson,
    /// In bursts: gaps by a gamma distribution of this shape, in thousandths. 1000 is a Poisson process; the less, the burstier.
    Bursty {
        /// Above 0.
        shape_milli: u32,
    },
}

/// The least and the greatest shape of gaps, in thousandths.
pub const SHAPES_MILLI: std::ops::RangeInclusive<u32> = 10..=1_000_000;

impl Spread {
    /// Whether chance says when calls are due.
    pub const fn is_random(self) -> bool {
        !matches!(self, Self::Uniform)
    }

    /// Its name, as people read it.
    pub fn in_words(self) -> String {
        match self {
            Self::Uniform => "uniform".to_owned(),
            Self::Poisson => "poisson".to_owned(),
            Self::Bursty { shape_milli } => format!("bursty ({})", f64::from(shape_milli) / 1000.0),
        }
    }
}

/// One worker's share of a run's due times: a growing sequence, endless or finite. Pure arithmetic from the profile: it
/// neither drifts nor loses a due time, however late it is asked.
///
/// The shares of a run make up one sequence of due times, whatever their number: adding or removing a machine, or a
/// thread, moves none of them.
#[derive(Debug, Clone)]
pub struct Arrivals {
    profile: Profile,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Uniform(Uniform),
    Poisson(Box<Poisson>),
    Bursty(Box<Bursty>),
}

/// One arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// When it is due, in nanoseconds after the profile's start.
    pub due_ns: u64,
    /// Its number among all workers' arrivals. Numbers of one share grow with the due time.
    pub index: u64,
}

impl Arrivals {
    /// The arrivals of one share of a run that makes at most `requests` calls in all.
    ///
    /// Uniform arrivals are one sequence: share `i` of `n` takes every n-th from the i-th. Poisson arrivals are one
    /// process, drawn block by block, in which each share knows its own calls without the others' (`arrivals/poisson.rs`).
    /// Of these, `requests` are the earliest.
    pub fn new(profile: Profile, spread: Spread, share: Share, seed: u64, requests: Option<u64>) -> Self {
        let kind = match spread {
            Spread::Uniform => Kind::Uniform(Uniform::new(share, requests)),
            Spread::Poisson => Kind::Poisson(Box::new(Poisson::new(&profile, share, seed, requests))),
            Spread::Bursty { shape_milli } => {
                Kind::Bursty(Box::new(Bursty::new(share, f64::from(shape_milli) / 1000.0, seed, requests)))
            }
        };
        Self { profile, kind }
    }

    /// Passes over all arrivals that are due before `until_ns` (after the profile's start) and were not taken yet;
    /// returns their number. The next arrival is the first at that time or later.
    ///
    /// Costs the arithmetic of a few arrivals for uniform ones, however many are passed; for Poisson ones, one more
    /// random number per block of 256 calls of the whole run.
    pub fn pass(&mut self, until_ns: u64) -> u64 {
        match &mut self.kind {
            Kind::Uniform(uniform) => uniform.pass(&self.profile, until_ns),
            Kind::Poisson(poisson) => poisson.pass(&self.profile, until_ns),
            Kind::Bursty(bursty) => bursty.pass(&self.profile, until_ns),
        }
    }

    /// Goes on by this profile, which equals the one before up to a time that no arrival was taken beyond. Calls are
    /// numbered on.
    pub fn change(&mut self, profile: &Profile) {
        self.profile = profile.clone();
        match &mut self.kind {
            Kind::Uniform(uniform) => uniform.change(),
            Kind::Poisson(poisson) => poisson.change(profile),
            Kind::Bursty(bursty) => bursty.change(profile),
        }
    }

    /// Takes back the arrival taken last, which is then the next one again. No other may have been passed since.
    pub fn give_back(&mut self) {
        match &mut self.kind {
            Kind::Uniform(uniform) => uniform.give_back(),
            Kind::Poisson(poisson) => poisson.give_back(),
            Kind::Bursty(bursty) => bursty.give_back(),
        }
    }
}

fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9) as u64
}

impl Iterator for Arrivals {
    type Item = Arrival;

    #[inline]
    fn next(&mut self) -> Option<Arrival> {
        match &mut self.kind {
            Kind::Uniform(uniform) => uniform.next(&self.profile),
            Kind::Poisson(poisson) => poisson.next(&self.profile),
            Kind::Bursty(bursty) => bursty.next(&self.profile),
        }
    }
}

#[cfg(test)]
mod tests;
