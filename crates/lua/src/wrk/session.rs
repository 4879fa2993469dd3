//! What happens before the load and after it.

use std::net::SocketAddr;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use brunt_plan::environment::Environment;
use brunt_plan::plan::{Sandbox, Script};
use brunt_plan::stop::StopHandle;
use mlua::{Function, Lua, ObjectLike as _, Table};

use super::address::{connects, to_text};
use super::stats::{Stats, Totals};
use super::thread::Thread;
use super::user::ScriptUser;
use super::{Start, state};
use crate::ScriptError;
use brunt_protocol::user::{Heart, User};

/// How often it is looked whether a script should be left behind.
const LOOK: Duration = Duration::from_millis(20);
/// How long a hook may still take once the run is to end.
const PATIENCE: Duration = Duration::from_secs(1);

/// A script whose workers can begin.
pub struct Begun {
    /// What is left to do after the load.
    pub session: Session,
    /// The workers' own parts, in their order.
    pub workers: Vec<Scripted>,
}

/// A worker's part of a script.
pub struct Scripted {
    /// What asks for its calls.
    pub user: Box<dyn User>,
    /// Shows whether it comes back.
    pub heart: Heart,
    /// Where its connections go, if the script says so.
    pub address: Option<SocketAddr>,
}

/// The script's main state, and those of its workers, once their load is over.
pub struct Session {
    file: String,
    main: Lua,
    /// None for those that never came back.
    threads: Vec<(Arc<Thread>, Option<Lua>)>,
}

/// What a script is begun with.
pub struct Beginning<'a> {
    /// The script.
    pub script: &'a Script,
    /// What its requests are made from.
    pub start: &'a Start,
    /// The target's addresses; none where connections go elsewhere than to an address.
    pub addresses: Vec<SocketAddr>,
    /// Host and port that the addresses belong to.
    pub host: (String, u16),
    /// How many workers there are.
    pub workers: u32,
    /// What the script may do.
    pub sandbox: Sandbox,
    /// What references in its arguments stand for.
    pub environment: &'a Environment,
}

/// What each worker's state is begun with.
#[derive(Clone, Copy)]
struct Worker<'a> {
    script: &'a Script,
    args: &'a [String],
    start: &'a Start,
    sandbox: Sandbox,
}

/// Loads the script into every state and calls what comes before the load.
///
/// # Errors
/// When the script is wrong, or when it has not come back although the run is to end.
pub fn begin(beginning: &Beginning<'_>, stop: &StopHandle) -> Result<Begun, ScriptError> {
    let (script, start) = (beginning.script.clone(), beginning.start.clone());
    let (addresses, host, workers) = (beginning.addresses.clone(), beginning.host.clone(), beginning.workers);
    let sandbox = beginning.sandbox;
    let args = script.reveal_args(|name| beginning.environment.value(name));
    let args = args.map_err(|error| ScriptError::new(&script.file, format!("its arguments: {error}")))?;
    watched(stop, move |at| {
        at.set("the script");
        let main = state::begin(&script, &start, sandbox)?;
        at.set("wrk.resolve()");
        resolve(&main, &script, &addresses, &host)?;
        let mut session = Session { file: script.file.clone(), main, threads: Vec::new() };
        let worker = Worker { script: &script, args: &args, start: &start, sandbox };
        let mut parts = Vec::new();
        for number in 0..workers {
            parts.push(session.begin_worker(number, &worker, at)?);
        }
        state::flush(&session.main);
        Ok(Begun { session, workers: parts })
    })
}

/// Gives `wrk.addrs` to the main state: those that take connections, as wrk finds them, unless the script finds them
/// itself. Where none does, all are kept: that the target cannot be reached is a result like any other.
fn resolve(main: &Lua, script: &Script, addresses: &[SocketAddr], host: &(String, u16)) -> Result<(), ScriptError> {
    let wrong = |error: mlua::Error| ScriptError::from_lua("wrk.resolve()", &script.file, &error);
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

impl Session {
    /// A worker's state, after `setup` and `init`, and its first request.
    fn begin_worker(&mut self, number: u32, given: &Worker<'_>, at: &Whereabouts) -> Result<Scripted, ScriptError> {
        let Worker { script, args: texts, start, sandbox } = *given;
        let wrong = |what: &'static str| move |error: mlua::Error| ScriptError::from_lua(what, &script.file, &error);
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
        let heart = Heart::default();
        let user = ScriptUser::begin(lua.clone(), &script.file, Arc::clone(&thread), heart.clone())?;
        let address = thread.address();
        self.threads.push((thread, Some(lua)));
        Ok(Scripted { user: Box::new(user), heart, address })
    }

    /// Worker `number` never came back: nobody asks for its values any more.
    pub fn give_up(&mut self, number: u32) {
        if let Some((thread, lua)) = self.threads.get_mut(number as usize) {
            thread.give_up();
            // Dropping it would wait for the thread that uses it.
            std::mem::forget(lua.take());
        }
    }

    /// Whether the script has anything to say about the result.
    pub fn has_done(&self) -> bool {
        state::function(&self.main, "done").is_some()
    }

    /// Calls `done(summary, latency, requests)`, if there is one. What it prints is printed when this returns.
    ///
    /// # Errors
    /// When it fails, or has not come back although it was asked to end by `stop`.
    pub fn done(self, totals: Totals, stop: &StopHandle) -> Result<(), ScriptError> {
        let latency = Stats::microseconds(&totals.response);
        let requests = Stats::rates(totals.rates.clone());
        // A run that was ended early is no reason to say nothing about it: only what comes now counts.
        let stopped_before = stop.is_stopped();
        let never = StopHandle::default();
        watched(if stopped_before { &never } else { stop }, move |at| {
            at.set("done()");
            let called = match state::function(&self.main, "done") {
                None => Ok(()),
                Some(done) => totals.table(&self.main).and_then(|summary| {
                    done.call::<()>((summary, latency.object(&self.main)?, requests.object(&self.main)?))
                }),
            };
            state::flush(&self.main);
            called.map_err(|error| ScriptError::from_lua("done()", &self.file, &error))
        })
    }
}

/// Which part of a script is under way.
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

/// Does `work` on a thread of its own, which is left behind if it has not come back a while after `stop`.
fn watched<T: Send + 'static>(
    stop: &StopHandle,
    work: impl FnOnce(&Whereabouts) -> Result<T, ScriptError> + Send + 'static,
) -> Result<T, ScriptError> {
    let at = Whereabouts::default();
    let (send, receive) = channel();
    let theirs = at.clone();
    let spawned = thread::Builder::new().name("script".to_owned()).spawn(move || {
        // Nobody listens any more once it was left behind.
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
