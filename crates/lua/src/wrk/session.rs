//! The work before the load and after it.

use std::net::SocketAddr;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use brunt_plan::environment::Environment;
use brunt_plan::plan::{Plan, Sandbox, Script};
use brunt_plan::stop::StopHandle;
use mlua::{Function, Lua, ObjectLike as _, Table};

use super::address::{connects, to_text};
use super::start::Start;
use super::state;
use super::stats::{Stats, summary};
use super::thread::Thread;
use super::traced::TracedScript;
use super::user::ScriptUser;
use crate::error::from_lua;
use brunt_protocol::Prepared;
use brunt_protocol::source::{Heartbeat, RequestSource};
use brunt_protocol::traced::Tracing;
use brunt_script::{Begun, FloodPlace, FloodScript, ScriptError, Scripted, Session, Totals};

/// The time between two checks whether a script should be left behind.
const LOOK: Duration = Duration::from_millis(20);
/// The time that a hook may still take once the run is to end.
const PATIENCE: Duration = Duration::from_secs(1);

/// The script's main state, and its workers' states once their load is over.
pub(super) struct WrkSession {
    file: String,
    main: Lua,
    /// The workers' states; `None` for a state whose hook never returned.
    threads: Vec<(Arc<Thread>, Option<Lua>)>,
}

/// A plan's script, checked but not run yet.
pub(crate) struct WrkScript {
    script: Script,
    /// The defaults of its requests.
    start: Start,
    /// The script's permissions.
    sandbox: Sandbox,
    /// The values for references in its arguments.
    environment: Environment,
    /// The choice of requests with a `traceparent`.
    tracing: Option<Tracing>,
}

/// The material for each worker's state.
#[derive(Clone, Copy)]
struct Worker<'a> {
    script: &'a Script,
    args: &'a [String],
    start: &'a Start,
    sandbox: Sandbox,
    tracing: Option<Tracing>,
}

impl WrkScript {
    /// The script of `plan`. `None` where the plan has none, or where its protocol's calls are not HTTP/1.1.
    ///
    /// # Errors
    /// When it is not Lua, or the protocol makes no request as its start.
    pub(crate) fn from_plan(plan: &Plan, prepared: &dyn Prepared) -> Result<Option<Self>, ScriptError> {
        let (Some(script), Some(start)) = (&plan.script, Start::from_plan(plan, prepared)?) else { return Ok(None) };
        state::check(script, plan.sandbox)?;
        let environment = plan.environment.clone();
        let tracing = prepared.tracing();
        Ok(Some(Self { script: script.clone(), start, sandbox: plan.sandbox, environment, tracing }))
    }
}

impl FloodScript for WrkScript {
    fn begin(&self, place: &FloodPlace, stop: &StopHandle) -> Result<Begun, ScriptError> {
        let (script, start, sandbox, tracing) = (self.script.clone(), self.start.clone(), self.sandbox, self.tracing);
        let FloodPlace { addresses, host, workers } = place.clone();
        let args = script.reveal_args(|name| self.environment.value(name));
        let args = args.map_err(|error| ScriptError::new(&script.file, format!("its arguments: {error}")))?;
        watched(stop, move |at| {
            at.set("the script");
            let main = state::begin(&script, &start, sandbox)?;
            at.set("wrk.resolve()");
            resolve(&main, &script, &addresses, &host)?;
            let mut session = WrkSession { file: script.file.clone(), main, threads: Vec::new() };
            let worker = Worker { script: &script, args: &args, start: &start, sandbox, tracing };
            let mut parts = Vec::new();
            for number in 0..workers {
                parts.push(session.begin_worker(number, &worker, at)?);
            }
            state::flush(&session.main);
            Ok(Begun { session: Box::new(session), workers: parts })
        })
    }
}

/// Gives `wrk.addrs` to the main state: the addresses that accept connections, as in wrk, unless the script finds them
/// itself. Where none accepts, all are kept: an unreachable target is a result like any other.
fn resolve(main: &Lua, script: &Script, addresses: &[SocketAddr], host: &(String, u16)) -> Result<(), ScriptError> {
    let wrong = |error: mlua::Error| from_lua("wrk.resolve()", &script.file, &error);
    let wrk: Table = main.globals().get("wrk").map_err(wrong)?;
    let own: Option<Function> = wrk.get("resolve").map_err(wrong)?;
    let own = own.filter(|function| function.info().source.is_none_or(|source| source != "=wrk"));
    match own {
        Some(resolve) if !addresses.is_empty() => {
            resolve.call::<()>((host.0.as_str(), host.1.to_string())).map_err(wrong)
        }
        _ => {
            let mut usable: Vec<_> = addresses.to_vec();
            if addresses.len() > 1 {
                usable.retain(|address| connects(*address));
            }
            let usable = if usable.is_empty() { addresses } else { &usable };
            let texts: Vec<_> = usable.iter().copied().map(to_text).collect();
            let objects: Table = main.named_registry_value(state::OBJECTS).map_err(wrong)?;
            let addresses: Table = objects.call_function("addresses", texts).map_err(wrong)?;
            wrk.set("addrs", addresses).map_err(wrong)
        }
    }
}

impl WrkSession {
    /// Prepares a worker's state by `setup`, `init` and its first request.
    fn begin_worker(&mut self, number: u32, given: &Worker<'_>, at: &Whereabouts) -> Result<Scripted, ScriptError> {
        let Worker { script, args: texts, start, sandbox, tracing } = *given;
        let wrong = |what: &'static str| move |error: mlua::Error| from_lua(what, &script.file, &error);
        at.set("the script");
        let lua = state::begin(script, start, sandbox)?;
        let thread = Arc::new(Thread::new(number, &lua));
        let wrk: Table = lua.globals().get("wrk").map_err(wrong("the script"))?;
        thread.object(&lua).and_then(|object| wrk.set("thread", object)).map_err(wrong("the script"))?;

        at.set("setup()");
        let main: Table = self.main.globals().get("wrk").map_err(wrong("setup()"))?;
        let setup: Function = main.get("setup").map_err(wrong("setup()"))?;
        thread.object(&self.main).and_then(|object| setup.call::<()>(object)).map_err(wrong("setup()"))?;

        at.set("init()");
        let args = lua.create_table().map_err(wrong("init()"))?;
        for (place, arg) in texts.iter().enumerate() {
            args.raw_set(place, arg.as_str()).map_err(wrong("init()"))?;
        }
        let init: Function = wrk.get("init").map_err(wrong("init()"))?;
        init.call::<()>(args).map_err(wrong("init()"))?;

        at.set("request()");
        let heart = Heartbeat::default();
        let user = ScriptUser::begin(lua.clone(), &script.file, Arc::clone(&thread), heart.clone())?;
        let address = thread.address();
        self.threads.push((thread, Some(lua)));
        // Decided here, so that a run without traces checks nothing at each request.
        let user: Box<dyn RequestSource> = match tracing {
            None => Box::new(user),
            Some(tracing) => Box::new(TracedScript::new(user, tracing)),
        };
        Ok(Scripted { user, heart, address })
    }
}

impl Session for WrkSession {
    fn give_up(&mut self, number: u32) {
        if let Some((thread, lua)) = self.threads.get_mut(number as usize) {
            thread.give_up();
            // Dropping the state would wait for the thread that uses it.
            std::mem::forget(lua.take());
        }
    }

    fn has_done(&self) -> bool {
        state::function(&self.main, "done").is_some()
    }

    fn done(self: Box<Self>, totals: Totals, stop: &StopHandle) -> Result<(), ScriptError> {
        let latency = Stats::microseconds(&totals.response);
        let requests = Stats::rates(totals.rates.clone());
        // A run that was ended early still gets its `done`: only a stop from now on counts.
        let stopped_before = stop.is_stopped();
        let never = StopHandle::default();
        watched(if stopped_before { &never } else { stop }, move |at| {
            at.set("done()");
            let called = match state::function(&self.main, "done") {
                None => Ok(()),
                Some(done) => summary(&totals, &self.main).and_then(|summary| {
                    done.call::<()>((summary, latency.object(&self.main)?, requests.object(&self.main)?))
                }),
            };
            state::flush(&self.main);
            called.map_err(|error| from_lua("done()", &self.file, &error))
        })
    }
}

/// The part of a script that is running.
#[derive(Debug, Clone, Default)]
struct Whereabouts(Arc<Mutex<&'static str>>);

impl Whereabouts {
    fn set(&self, what: &'static str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = what;
    }

    fn get(&self) -> &'static str {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs `work` on a separate thread, which is left behind if it has not returned a while after `stop`.
fn watched<T: Send + 'static>(
    stop: &StopHandle,
    work: impl FnOnce(&Whereabouts) -> Result<T, ScriptError> + Send + 'static,
) -> Result<T, ScriptError> {
    let at = Whereabouts::default();
    let (send, receive) = channel();
    let theirs = at.clone();
    let spawned = thread::Builder::new().name("script".to_owned()).spawn(move || {
        // The receiver is gone if the thread was left behind.
        let _ = send.send(work(&theirs));
    });
    if let Err(error) = spawned {
        return Err(ScriptError::stuck(&format!("a thread for the script cannot be started ({error}): it")));
    }
    let mut stopped: Option<Instant> = None;
    loop {
        match receive.recv_timeout(LOOK) {
            Ok(done) => return done,
            Err(RecvTimeoutError::Disconnected) => return Err(ScriptError::stuck(at.get())),
            Err(RecvTimeoutError::Timeout) if stop.is_stopped() => {
                if stopped.get_or_insert_with(Instant::now).elapsed() >= PATIENCE {
                    return Err(ScriptError::stuck(at.get()));
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}
