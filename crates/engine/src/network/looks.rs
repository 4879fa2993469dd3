//! Which answers are looked at for their kind: a hundred a second, all of them where they are fewer.

use brunt_protocol::Answer;
use brunt_record::snapshot::Snapshot;

use super::examples::shown;
use super::{Load, Network};
use crate::transport::Driver;

/// Answers that are looked at in an interval before the next are spaced out. A look costs about a sixth of a request.
const ENOUGH: u32 = 100;

/// Counts answers down to the next one that is looked at.
#[derive(Debug)]
pub(super) struct Looks {
    /// One answer of so many is looked at, on average.
    one_in: u32,
    /// Answers until the next one that is.
    left: u32,
    /// Those in this interval.
    looked: u32,
    /// Where random numbers stand (xorshift): the choice must not fall in step with connections.
    random: u32,
}

impl Default for Looks {
    fn default() -> Self {
        Self { one_in: 1, left: 0, looked: 0, random: 0x9e37_79b9 }
    }
}

impl Looks {
    /// An answer has come: whether the next one on its connection is to be looked at.
    #[inline]
    pub(super) const fn is_due(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        self.left == 0
    }

    /// One more is to be looked at.
    fn space_out(&mut self) {
        self.looked += 1;
        if self.looked > ENOUGH {
            (self.one_in, self.looked) = (self.one_in.saturating_mul(2).min(1 << 20), 0);
        }
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
        self.left = 1 + self.random % (2 * self.one_in - 1);
    }

    /// An interval with so many answers has ended.
    pub(super) fn fit(&mut self, ended: &Snapshot) {
        let answers = u32::try_from(ended.statuses.total()).unwrap_or(u32::MAX);
        (self.one_in, self.looked) = ((answers / ENOUGH).clamp(1, 1 << 20), 0);
    }
}

impl<D: Driver, T: Copy + std::fmt::Debug> Network<D, T> {
    /// An answer has come on a connection that looks at one, or is to look at the next.
    #[cold]
    pub(super) fn look<L: Load<D, Tag = T>>(&mut self, load: &L, token: usize, answer: &Answer, came: &[u8]) {
        let connection = &mut self.connections[token];
        let call = connection.calls.get(answer.position).and_then(|id| self.calls.get(*id));
        if connection.looks
            && let Some(call) = call.filter(|call| call.measured)
            && self.recorder.is_ok(answer.status)
        {
            let name = load.request_name(call.tag).unwrap_or_default();
            let due_ns = self.recorder.measured_at(call.due);
            let client = &connection.client;
            if let Some(look) = client.looked() {
                let said = || match client.excerpt(came) {
                    [] => shown(client.parts().body),
                    excerpt => shown(excerpt),
                };
                self.recorder.snapshot.kinds.add(name, answer.status, look, due_ns, said);
            }
        }
        self.connections[token].looks = false;
        self.look_at_next(token);
    }

    /// The next answer on this connection is looked at, if one is to be.
    #[inline]
    pub(super) fn look_at_next(&mut self, token: usize) {
        if self.recorder.looks.left == 0 {
            let connection = &mut self.connections[token];
            connection.looks = true;
            connection.client.look();
            self.recorder.looks.space_out();
        }
    }
}
