//! Timelines of single calls: when each part of an answer arrived.

use serde::{Deserialize, Serialize};

/// The most places of a timeline.
pub const MOST_PLACES: usize = 512;

/// A call whose answer came in parts, with their times. Times count from when the call was due, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallTimeline {
    /// Why it was chosen: `slowest`, `sample`.
    pub chosen: String,
    /// The unit of amounts, such as `tokens`.
    pub unit: String,
    /// When it was sent.
    pub sent_ns: u64,
    /// When parts arrived, and how much had arrived with each, from the first to the last; at most [`MOST_PLACES`].
    pub places: Vec<(u64, u64)>,
    /// When its answer ended.
    pub ended_ns: u64,
}

impl CallTimeline {
    /// Leaves out parts evenly, but for the first and the last, where there are too many.
    #[must_use]
    pub fn thinned(mut self) -> Self {
        let last = self.places.len().saturating_sub(1);
        let each = self.places.len().div_ceil(MOST_PLACES - 1).max(1);
        let mut nth = 0;
        self.places.retain(|_| {
            let stays = nth % each == 0 || nth == last;
            nth += 1;
            stays
        });
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_timeline_keeps_its_ends() {
        for places in [0, 1, 2, MOST_PLACES, MOST_PLACES + 1, 10_000, 123_457_u64 as usize] {
            let all: Vec<_> = (0..places as u64).map(|nth| (nth * 10, nth)).collect();
            let call = CallTimeline {
                chosen: "sample".to_owned(),
                unit: "tokens".to_owned(),
                sent_ns: 0,
                places: all.clone(),
                ended_ns: 0,
            };
            let thinned = call.thinned();
            assert!(thinned.places.len() <= MOST_PLACES, "{places}: {}", thinned.places.len());
            assert_eq!((thinned.places.first(), thinned.places.last()), (all.first(), all.last()));
            assert!(places > MOST_PLACES - 1 || thinned.places == all, "{places}");
        }
    }
}
