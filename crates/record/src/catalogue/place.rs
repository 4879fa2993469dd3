//! Groups of numbers that stand beside each other in a JSON result.

use std::marker::PhantomData;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::counter::Counter;
use super::numbers::Numbers;

/// A group of numbers that stand together at one path of a JSON result.
pub trait JsonGroup {
    /// The name of its type in schemas.
    const NAME: &'static str;
    /// A sentence about it.
    const SENTENCE: &'static str;
    /// The names on the way to it, with dots between them.
    const PATH: &'static str;
}

macro_rules! places {
    ($($(#[doc = $sentence:literal])+ $name:ident at $path:literal;)+) => {
        /// The groups of numbers in a JSON result.
        pub mod places {
            $($(#[doc = $sentence])+
            #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
            pub struct $name;

            impl super::JsonGroup for $name {
                const NAME: &'static str = stringify!($name);
                const SENTENCE: &'static str = concat!($($sentence),+);
                const PATH: &'static str = $path;
            })+

            /// Their paths.
            pub const PATHS: &[&str] = &[$($path),+];
        }
    };
}

places! {
    /// How calls ended.
    Outcomes at "outcomes";
    /// Answers that come as messages.
    Messages at "outcomes.messages";
    /// How long connections were held back by what the target allows.
    HeldBack at "outcomes.held_back";
    /// Bytes over connections.
    Bytes at "bytes";
    /// Connections made and lost.
    Connections at "connections";
    /// How the generator fared.
    Health at "health";
    /// Of how many calls it is known when their answers arrived.
    Arrivals at "arrivals";
    /// Calls and messages by when they ended, within the measured time: the numbers behind the rates. Calls that began in the
    /// warm-up are among them.
    Throughput at "throughput";
}

/// The numbers of one group in a JSON result, by their names there. Declaring a number for the group is enough for it
/// to be written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JsonGroupNumbers<P> {
    numbers: Numbers,
    place: PhantomData<P>,
}

impl<P: JsonGroup> JsonGroupNumbers<P> {
    /// The counters of the group, with their names in it.
    pub fn counters() -> impl Iterator<Item = (Counter, &'static str)> {
        Counter::ALL.into_iter().filter_map(|counter| Some((counter, counter.name_at(P::PATH)?)))
    }

    /// The numbers of `numbers` that stand in this group.
    pub fn from_numbers(numbers: &Numbers) -> Self {
        let here = Self::counters().map(|(counter, _)| (counter, numbers.get(counter)));
        Self { numbers: Numbers::from_values(here), place: PhantomData }
    }

    /// These numbers, and 0 for every other.
    pub const fn numbers(&self) -> &Numbers {
        &self.numbers
    }

    /// The value of one number.
    pub const fn get(&self, counter: Counter) -> u64 {
        self.numbers.get(counter)
    }

    /// The value of a ratio.
    pub const fn ratio(&self, counter: Counter) -> f64 {
        self.numbers.ratio(counter)
    }

    /// Whether a counter is one of the group.
    pub fn has(counter: Counter) -> bool {
        counter.name_at(P::PATH).is_some()
    }

    /// Whether all of them are 0.
    pub fn is_nothing(&self) -> bool {
        self.numbers.counted().next().is_none()
    }
}

impl<P: JsonGroup> Serialize for JsonGroupNumbers<P> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(Self::counters().count()))?;
        for (counter, name) in Self::counters() {
            map.serialize_entry(name, &self.numbers.written(counter))?;
        }
        map.end()
    }
}
