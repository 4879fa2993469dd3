//! Virtual users on a worker: who they are, what each waits for, and the names by which they are counted.
//!
//! A user is a coroutine of a [`script`]; here are its slot, its calls and its connections. Read the life of a user in
//! [`living`] and the life of its call in [`calling`], each from top to bottom. Each other file has one thing that both
//! need: when users come ([`crowd`]), what they are resumed for ([`agenda`]), where calls go ([`clients`]).

mod absences;
mod agenda;
pub(crate) mod among_workers;
mod begun;
mod call;
mod calling;
mod clients;
mod crowd;
mod ids;
mod kin;
mod links;
mod living;
mod loading;
mod meetings;
mod names;
mod script;
mod throttle;
mod traces;
mod user;
mod watch;
mod workload;

use std::sync::Arc;

use brunt_plan::plan::Plan;
use brunt_plan::profile::Profile;
use brunt_plan::scenario::Scenarios;
use brunt_plan::share::Share;
use brunt_plan::threshold::Selection;
use brunt_record::time::Tick;

use self::agenda::{Agenda, TimedWake, Wake};
use self::among_workers::AmongWorkers;
use self::call::UserCall;
use self::clients::Clients;
use self::crowd::Crowds;
use self::ids::UserId;
use self::loading::Loading;
use self::meetings::Meetings;
use self::names::Names;
use self::script::Script;
use self::throttle::Throttle;
use self::traces::Traces;
use self::user::{Users, VirtualUser};
use self::watch::Watch;
use crate::control::Control;
use crate::gate::Horizon;
use crate::network::Network;
use crate::slots::Slots;
use crate::trace::Trace;
use crate::transport::ConnectionId;
use brunt_protocol::user::Heart;
use brunt_script::{Library, ScriptClient, ScriptError};

/// The network of virtual users, whose calls are known by the slots that hold them.
type UsersNetwork<D> = Network<D, u32>;

/// The virtual users of a worker.
pub(crate) struct VirtualUsers {
    script: Script,
    clients: Clients,
    crowds: Crowds,
    users: Users,
    calls: Slots<UserCall>,
    agenda: Agenda,
    loading: Loading,
    /// Connections with a call to be sent after this round of resumed users; and whether calls are gathered.
    gathered: Vec<ConnectionId>,
    gathers: bool,
    names: Names,
    throttle: Option<Throttle>,
    traces: Traces,
    meetings: Meetings,
    watch: Watch,
    /// The number of iterations that have ended, in error or not; and the first error that ended one.
    ended: u64,
    first_error: Option<String>,
}

impl VirtualUsers {
    /// One worker's share of the users, who live in `library`.
    ///
    /// # Errors
    /// When the script has none of the scenarios that the plan names.
    pub(crate) fn new(
        library: Box<dyn Library>,
        plan: &Plan,
        scenarios: &Scenarios,
        among: &AmongWorkers,
        share: Share,
    ) -> Result<Self, ScriptError> {
        let crowds = Crowds::new(scenarios, library.as_ref(), plan, share, among)?;
        Ok(Self::with(library, plan, scenarios.throttle.clone(), crowds, among.clone(), share))
    }

    /// One user, who goes once through the scenario with this place in the script.
    pub(crate) fn once(library: Box<dyn Library>, plan: &Plan, place: u32, name: &str) -> Self {
        let crowds = Crowds::once(place, name, plan);
        Self::with(library, plan, None, crowds, AmongWorkers::of_one(), Share::WHOLE)
    }

    fn with(
        library: Box<dyn Library>,
        plan: &Plan,
        throttle: Option<Profile>,
        crowds: Crowds,
        among: AmongWorkers,
        share: Share,
    ) -> Self {
        Self {
            clients: Clients::new(library.as_ref(), plan),
            script: Script::new(library),
            crowds,
            users: Users::default(),
            calls: Slots::default(),
            agenda: Agenda::default(),
            loading: Loading::default(),
            gathered: Vec::new(),
            gathers: false,
            names: Names::selecting(Selection::all(plan.conditions())),
            throttle: throttle.map(|profile| Throttle::new(profile, share)),
            traces: Traces::from_plan(plan),
            meetings: Meetings::new(among),
            watch: Watch::default(),
            ended: 0,
            first_error: None,
        }
    }

    /// The same users, who make calls only up to this horizon.
    pub(crate) fn within(self, horizon: Horizon) -> Self {
        Self { loading: self.loading.within(horizon), ..self }
    }

    /// The same users in a run that `control` changes.
    pub(crate) fn changed_by(self, control: &Control) -> Self {
        Self { loading: self.loading.changed_by(control), ..self }
    }

    /// Shows `trace` what the users do, as far as its sight goes.
    pub(crate) fn show(&mut self, trace: &Arc<dyn Trace>) {
        self.watch = Watch::of(trace);
        if self.watch.sees_everything() {
            self.script.library().trace();
        }
    }

    /// The heart, which shows whether the script returns.
    pub(crate) fn heart(&self) -> Heart {
        self.script.heart()
    }

    /// The functions of its scenarios, by the scenarios' numbers.
    pub(crate) fn functions(&self) -> Vec<(u32, String)> {
        let function = |(place, name): (u32, &str)| {
            let at = self.script.library().written_at(place).map_or_else(String::new, |at| format!(" ({at})"));
            (place, format!("the function of scenario '{name}'{at}"))
        };
        self.crowds.scenarios().map(function).collect()
    }

    /// The clients of the script.
    pub(crate) fn clients(&self) -> &[ScriptClient] {
        self.clients.all()
    }

    /// Whether an iteration has come to its end, in error or not.
    pub(crate) fn has_finished(&self) -> bool {
        self.ended > 0
    }

    /// The script's state, and the first error that ended an iteration.
    pub(crate) fn into_library(self) -> (Box<dyn Library>, Option<String>) {
        (self.script.into_library(), self.first_error)
    }

    #[inline]
    fn user(&mut self, user: UserId) -> Option<&mut VirtualUser> {
        self.users.get_mut(user)
    }

    /// The user whose connections and iteration `user` shares: itself, or the user whose task it is.
    #[inline]
    fn home(&self, user: UserId) -> UserId {
        self.users.home(user)
    }

    /// The place in the script of a user's scenario.
    #[inline]
    fn place_of(&self, user: UserId) -> u32 {
        self.users.get(user).map_or(0, |user| user.who.place)
    }

    /// The call that a ticket names, if its answer is still there.
    fn ticketed(&self, ticket: u64) -> Option<&UserCall> {
        call::ticketed(&self.calls, ticket)
    }

    /// The ticket of the call in this slot.
    fn ticket(&self, slot: u32) -> f64 {
        call::ticket(&self.calls, slot)
    }

    fn set_timer(&mut self, at: Tick, user: UserId, wake: TimedWake) {
        self.agenda.set_timer(&self.users, at, user, wake);
    }

    #[inline]
    fn make_ready(&mut self, user: UserId, wake: Wake) {
        self.agenda.wake(&self.users, user, wake);
    }
}
