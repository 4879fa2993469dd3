//! Users' calls, from a user's request to a connection.

use brunt_plan::profile::Profile;
use brunt_plan::target::Target;
use brunt_plan::timetable::Timetable;
use brunt_record::change::{Action, Change};
use brunt_record::time::Tick;

use super::placing::alive;
use super::{Owner, PreparedCall, State, TimedWake, UserCall, UsersNetwork, VirtualUsers, Wait};
use crate::network::origins::OriginId;
use crate::network::{Call, CallId, Counted, End, Place};
use crate::transport::{ConnectionId, Driver};
use brunt_protocol::scenario::Encoded;
use brunt_script::Placement;
use brunt_script::Wanted;

/// The properties of a requested call besides its message.
struct Asked {
    client: usize,
    label: u32,
    timeout_ns: Option<u64>,
    way: Placement,
    judged: bool,
    optional: bool,
    streams: bool,
}

/// Limits the rate of calls.
#[derive(Debug)]
pub(super) struct Throttle {
    pub(super) planned: Timetable,
    pub(super) profile: Profile,
    /// The number of workers, which share the rate.
    pub(super) workers: f64,
    pub(super) began: Tick,
    /// The number of calls released by all workers together, as if each released as many as this one.
    pub(super) calls: f64,
    pub(super) hint: usize,
}

impl Throttle {
    /// Applies changes of the rate. Pauses need no handling here: users make no calls during them.
    pub(super) fn change(&mut self, changes: &[Change]) {
        let rates = changes.iter().filter(|change| matches!(change.action, Action::Rate(_)));
        self.profile = self.planned.with(&rates.cloned().collect::<Vec<_>>(), 0);
        self.hint = 0;
    }

    /// The time at which a call requested at `now` may be made.
    fn release(&mut self, now: Tick) -> Tick {
        let elapsed = now.since(self.began) as f64 / 1e9;
        // An unused part of the rate is not made up for later.
        self.calls = self.calls.max(self.profile.calls_held_until(elapsed) - self.workers);
        let at = self.profile.time_held_of(self.calls, &mut self.hint);
        self.calls += self.workers;
        self.began + (at * 1e9) as u64
    }
}

impl VirtualUsers {
    /// Makes a call that a user wants, whether or not the user waits for its end. Returns the slot that holds it.
    ///
    /// # Errors
    /// When the call cannot be made; the text says why.
    pub(super) fn ask<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        user: u32,
        wanted: &Wanted,
        awaited: bool,
        now: Tick,
    ) -> Result<u32, String> {
        if let Placement::Open(_) = wanted.way {
            let home = self.home(user);
            self.user(home).ok_or_else(String::new)?.may_hold()?;
        }
        let chain = self.user(user).and_then(|of| of.continues.take());
        let slot = self.calls.take(UserCall::new);
        match self.encode_into(network, slot, wanted) {
            Ok(origin) => {
                if let Some(call) = self.calls.get_mut(slot) {
                    call.chain = chain;
                }
                self.trace_call(slot, wanted.client);
                let Wanted { client, label, timeout_ns, way, judged, optional, streams, .. } = *wanted;
                let asked = Asked { client, label, timeout_ns, way, judged, optional, streams };
                self.make_call(network, slot, user, &asked, origin, awaited, now);
                Ok(slot)
            }
            Err(problem) => {
                self.calls.free(slot);
                Err(problem)
            }
        }
    }

    /// Encodes a call into its slot, and finds its origin.
    fn encode_into<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        slot: u32,
        wanted: &Wanted,
    ) -> Result<OriginId, String> {
        let Some(client) = self.clients.get(wanted.client) else { return Err("there is no such client".to_owned()) };
        let Some(call) = self.calls.get_mut(slot) else { return Err(String::new()) };
        call.encoded.clear();
        client.caller.encode(&wanted.values, &mut call.encoded).map_err(|e| e.0)?;
        let target = call.encoded.target.take();
        match wanted.way {
            // The call goes to the origin of its connection.
            Placement::On(_) => Ok(OriginId::FIRST),
            Placement::Any | Placement::Open(_) => self.origin_of(network, wanted.client, target.as_ref()),
        }
    }

    /// The origin of a client's calls to `target`, or to its base.
    fn origin_of<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        client: usize,
        target: Option<&Target>,
    ) -> Result<OriginId, String> {
        if target.is_none()
            && let Some(origin) = self.bases.get(client).copied().flatten()
        {
            return Ok(origin);
        }
        let Some(script_client) = self.clients.get(client) else { return Err("there is no such client".to_owned()) };
        let Some(goal) = target.or(script_client.base.as_ref()) else {
            return Err("the client has no base to call".to_owned());
        };
        let origin = match network.origins.place(client, goal) {
            Some(origin) => origin,
            None => network.origins.seek(client, goal, script_client)?,
        };
        if target.is_none()
            && let Some(base) = self.bases.get_mut(client)
        {
            *base = Some(origin);
        }
        Ok(origin)
    }

    /// Encodes a call for reuse. Returns the number by which it is made from then on, counted from 1.
    ///
    /// # Errors
    /// When the call cannot be encoded; the text says why.
    pub(super) fn prepare_call(&mut self, wanted: &Wanted) -> Result<u32, String> {
        let Some(client) = self.clients.get(wanted.client) else { return Err("there is no such client".to_owned()) };
        let mut encoded = Encoded::default();
        client.caller.encode(&wanted.values, &mut encoded).map_err(|e| e.0)?;
        let target = encoded.target.take();
        self.prepared.push(PreparedCall { client: wanted.client, encoded, target, origin: None });
        Ok(self.prepared.len() as u32)
    }

    /// Makes a prepared call, whose user waits for its end.
    ///
    /// # Errors
    /// When the call cannot be placed where it should go.
    pub(super) fn ask_prepared<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        user: u32,
        (number, label, timeout_ns): (u32, u32, Option<u64>),
        now: Tick,
    ) -> Result<(), String> {
        let Some(prepared) = self.prepared.get(number as usize) else { return Err("it was not prepared".to_owned()) };
        let client = prepared.client;
        let origin = if let Some(origin) = prepared.origin {
            origin
        } else {
            let target = prepared.target.clone();
            let origin = self.origin_of(network, client, target.as_ref())?;
            if let Some(prepared) = self.prepared.get_mut(number as usize) {
                prepared.origin = Some(origin);
            }
            origin
        };
        let slot = self.calls.take(UserCall::new);
        if let Some(call) = self.calls.get_mut(slot) {
            call.prepared = Some(number);
        }
        self.trace_call(slot, client);
        let way = Placement::Any;
        let asked = Asked { client, label, timeout_ns, way, judged: false, optional: false, streams: false };
        self.make_call(network, slot, user, &asked, origin, true, now);
        Ok(())
    }

    /// Makes a call whose message and origin are known: now, or when the throttle releases it.
    #[allow(clippy::too_many_arguments)]
    fn make_call<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        slot: u32,
        user: u32,
        asked: &Asked,
        origin: OriginId,
        awaited: bool,
        now: Tick,
    ) {
        let timeout_ns = asked.timeout_ns.or_else(|| self.clients.get(asked.client)?.timeout_ns);
        network.longest_timeout_ns = network.longest_timeout_ns.max(timeout_ns.unwrap_or(0));
        let arrived = self.users.get_mut(user).and_then(|user| {
            if awaited {
                user.wait = Wait::Call(slot);
            }
            user.arrived.take()
        });
        let release = self.throttle.as_mut().map_or(now, |throttle| throttle.release(now).max(now));
        let Some(call) = self.calls.get_mut(slot) else { return };
        call.state = State::Throttled;
        call.user = user;
        call.client = asked.client;
        call.origin = origin;
        call.label = asked.label;
        call.awaited = awaited;
        call.timeout_ns = timeout_ns;
        call.way = asked.way;
        call.judged = asked.judged;
        call.optional = asked.optional;
        call.inbox = asked.streams.then(Box::default);
        // A call that the throttle holds back is due at its release.
        call.due = if release > now { release } else { arrived.unwrap_or(now) };
        if release > now {
            self.set_timer(release, user, TimedWake::Release(slot));
        } else {
            self.make_due(network, slot, now);
        }
    }

    /// Takes a call that is due to a connection.
    pub(super) fn make_due<D: Driver>(&mut self, network: &mut UsersNetwork<D>, slot: u32, now: Tick) {
        if self.begin(network, slot).is_some() {
            self.place(network, slot, now);
        }
    }

    /// Begins a call. It counts as due from now on, unless it is optional: then its end decides. Its name counts it
    /// once it has ended.
    pub(super) fn begin<D: Driver>(&mut self, network: &mut UsersNetwork<D>, slot: u32) -> Option<CallId> {
        let call = self.calls.get_mut(slot).filter(|call| call.state == State::Throttled)?;
        let counted = if call.optional { Counted::OnceEnded } else { Counted::AtOnce };
        let id = network.begin(Call::new(slot, call.due, self.loading, counted));
        call.state = State::UnderWay;
        call.id = Some(id);
        Some(id)
    }

    /// Closes connections that their user no longer needs.
    pub(super) fn close_connections<D: Driver>(
        &mut self,
        network: &mut UsersNetwork<D>,
        connections: impl IntoIterator<Item = ConnectionId>,
    ) {
        let now = network.driver.now();
        for token in connections {
            network.close(self, token, now);
            self.set_owner(token, Owner::Nobody);
            network.vacate(token);
        }
    }

    /// Takes the origins whose lookup has ended. Where one succeeded, the calls that waited for it go there.
    pub(super) fn take_found<D: Driver>(&mut self, network: &mut UsersNetwork<D>, now: Tick) {
        while let Some(origin) = network.origins.found() {
            let waiting =
                network.origins.get(origin).map(|there| std::mem::take(&mut there.waiting)).unwrap_or_default();
            for id in waiting {
                if let Some((slot, _)) = alive(network, id) {
                    self.place(network, slot, now);
                }
            }
        }
    }

    /// Ends a call that its user still has under way.
    pub(super) fn complete<D: Driver>(&mut self, network: &mut UsersNetwork<D>, slot: u32, end: End<'_>, now: Tick) {
        if let Some(id) = self.calls.get(slot).and_then(|call| call.id) {
            network.complete(self, id, end, now);
        }
    }

    /// Ends the calls that still wait for a connection when the measured part ends at `end`: they are never sent.
    pub(super) fn drop_unsent<D: Driver>(&mut self, network: &mut UsersNetwork<D>, end: Tick) {
        self.ready.clear();
        self.timers.clear();
        for there in network.origins.all() {
            there.waiting.clear();
        }
        for slot in 0..self.calls.len() as u32 {
            let Some(call) = self.calls.get(slot) else { continue };
            match call.state {
                // A throttled call was due a moment ago and begins now, or is not due yet and is forgotten.
                State::Throttled if call.due <= end => {
                    self.begin(network, slot);
                }
                State::Throttled => {
                    self.calls.free(slot);
                }
                State::UnderWay | State::Answered(_) | State::Failed(_) => {}
            }
            let Some(call) = self.calls.get(slot) else { continue };
            let waits = call.id.and_then(|id| network.call(id)).is_some_and(|call| call.place == Place::Waiting);
            if waits {
                let end_of_call = if call.optional { End::Withdrawn } else { End::Unsent };
                self.complete(network, slot, end_of_call, end);
            }
        }
    }
}
