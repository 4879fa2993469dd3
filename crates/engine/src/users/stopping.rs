//! What users do last, once their iterations are over: it is counted as calls, and as no iteration.

use super::{Doing, UsersNetwork, VirtualUsers, Wake};
use crate::transport::Driver;
use brunt_script::Operation;

impl VirtualUsers {
    /// The iterations of a user are over: it does what it does last, or ends. `between` says that it stands between two of them.
    pub(super) fn stop_or_end<D: Driver>(&mut self, network: &mut UsersNetwork<D>, user: u32, between: bool) {
        let may_begin = self.library.stops();
        let doing = self.user(user).map(|of| std::mem::replace(&mut of.doing, Doing::Last));
        let begins = may_begin && doing.is_some_and(|doing| doing != Doing::Last);
        if begins {
            self.make_ready(user, Wake::Stop(between));
        } else {
            self.end_user(network, user, between);
        }
    }

    /// Begins what a user does last; none if that is nothing.
    pub(super) fn begin_stop(&mut self, user: u32, between: bool, now: u64) -> Option<Operation> {
        let of = self.user(user)?;
        of.began = now;
        let timer = self.begin_step();
        let operation = self.library.begin_stop(user, now, between);
        self.end_step(timer);
        operation
    }
}
