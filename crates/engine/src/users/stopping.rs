//! The last function of users, once their iterations are over: its calls are counted, but it is no iteration.

use brunt_record::time::Tick;

use super::{Doing, UsersNetwork, VirtualUsers, Wake};
use crate::transport::Driver;
use brunt_script::Operation;

impl VirtualUsers {
    /// Runs the last function of a user whose iterations are over, or ends the user. `between`: whether it stands
    /// between two iterations.
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

    /// Begins the last function of a user; `None` if the script has none.
    pub(super) fn begin_stop(&mut self, user: u32, between: bool, now: Tick) -> Option<Operation> {
        let of = self.user(user)?;
        of.began = now;
        let timer = self.begin_step();
        let operation = self.library.begin_stop(user, now, between);
        self.end_step(timer);
        operation
    }
}
