//! A user, as the functions see it that its script calls.
#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Duration;

use brunt_script::Operation;
use rquickjs::{Ctx, Exception, JsLifetime, Object, Persistent, Value, qjs};

use crate::modules::Modules;
use crate::outcome::Outcome;
use crate::stack::{CannotWait, Suspender};
use crate::system::cpu_time;
use crate::worker::{Mailbox, Worker};

/// The most CPU time that a script takes without a call or a pause.
pub(crate) const LONGEST_STRETCH: Duration = Duration::from_secs(5);
/// The most CPU time that the top of a script takes.
pub(crate) const LONGEST_TOP: Duration = Duration::from_secs(60);

/// A user, as its native functions see it.
pub(crate) struct User {
    pub(crate) suspender: Rc<Suspender>,
    pub(crate) worker: Rc<Worker>,
    pub(crate) modules: Arc<Modules>,
    /// Whether the script's top runs.
    pub(crate) at_top: Cell<bool>,
    /// The user's number over the run, from 1; 0 at a script's top.
    pub(crate) id: Cell<u64>,
    /// Iterations that the user has begun before the current one.
    pub(crate) iteration: Cell<u64>,
    /// The number of its iteration over all of the scenario's here, from 0.
    pub(crate) iteration_in_test: Cell<u64>,
    /// The place of the function that it runs.
    pub(crate) place: Cell<u32>,
    /// What has come for calls that run beside the script.
    pub(crate) mailbox: Rc<Mailbox>,
    /// Answers to copy before the engine drops them, since the script may still hold their Responses.
    pub(crate) open: RefCell<Vec<Weak<dyn Open>>>,
    /// The user's number and place when the script's library last asked.
    pub(crate) told: Cell<(u64, u32)>,
    /// Whether native code may run the next iterations without the library's `iterate`.
    pub(crate) goes_on_alone: Cell<bool>,
    /// Whether a jar may hold cookies.
    pub(crate) has_cookies: Cell<bool>,
    /// The library's number of the user's current group and tags; 0 while unknown.
    pub(crate) place_of_calls: Cell<u32>,
    /// Interned property names, by [`Name`]; 0 before their first use.
    atoms: [Cell<qjs::JSAtom>; 2],
    /// Promises that were rejected and that nobody handles, with the reasons.
    pub(crate) rejected: RefCell<Vec<Rejected>>,
    /// The exports of a module that was imported for the library.
    pub(crate) taken: RefCell<Option<Persistent<Object<'static>>>>,
    /// The native functions that every script needs.
    pub(crate) natives: RefCell<Option<Persistent<Object<'static>>>>,
    /// The thread's CPU time when it was first asked for after the script was resumed, and how much more of it the script may take.
    pub(crate) stretch: Cell<(Option<Duration>, Duration)>,
    /// Whether it was cut off since it went on for too long.
    pub(crate) was_cut: Cell<bool>,
    /// Whether it asked for more memory than it may have.
    pub(crate) ran_out: Cell<bool>,
}

/// Something of the engine's that a script may still hold when the engine forgets it.
pub(crate) trait Open {
    /// The engine is about to forget it: takes over what the script may still ask for.
    ///
    /// # Errors
    /// When the engine does not answer.
    fn keep(&self, user: &User, ctx: &Ctx<'_>) -> rquickjs::Result<()>;
}

/// Property names that native code uses in each iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Name {
    Status,
    Body,
}

/// A promise that was rejected, with the reason.
type Rejected = (Persistent<Value<'static>>, Persistent<Value<'static>>);

/// A user, for native functions that are given nothing but a context.
pub(crate) struct Myself(pub(crate) Rc<User>);

// SAFETY: it holds nothing of a lifetime of the runtime's: `JsLifetime` says that this is always right then.
unsafe impl JsLifetime<'_> for Myself {
    type Changed<'to> = Myself;
}

impl User {
    pub(crate) fn new(worker: &Rc<Worker>) -> Rc<Self> {
        Rc::new(Self {
            suspender: Rc::default(),
            worker: Rc::clone(worker),
            modules: Arc::clone(&worker.program.modules),
            at_top: Cell::new(true),
            id: Cell::new(0),
            iteration: Cell::new(0),
            iteration_in_test: Cell::new(0),
            place: Cell::new(0),
            mailbox: Rc::default(),
            open: RefCell::default(),
            told: Cell::new((0, u32::MAX)),
            goes_on_alone: Cell::new(false),
            has_cookies: Cell::new(false),
            place_of_calls: Cell::new(0),
            atoms: Default::default(),
            rejected: RefCell::default(),
            taken: RefCell::default(),
            natives: RefCell::default(),
            stretch: Cell::new((None, LONGEST_TOP)),
            was_cut: Cell::new(false),
            ran_out: Cell::new(false),
        })
    }

    /// Whether the script has gone on for too long since it was resumed. While it has not, it lives.
    pub(crate) fn is_over_time(&self) -> bool {
        let (since, most) = self.stretch.get();
        let now = cpu_time();
        let since = since.unwrap_or(now);
        self.stretch.set((Some(since), most));
        let is_cut = now.saturating_sub(since) > most;
        self.was_cut.set(self.was_cut.get() || is_cut);
        if !is_cut {
            self.lives();
        }
        is_cut
    }

    /// Shows the watchdog that the user has not come to a stop.
    pub(crate) fn lives(&self) {
        if let Some(heart) = self.worker.heart.borrow().as_ref() {
            heart.goes_on();
        }
    }

    /// Forgets what is of a runtime that is gone.
    pub(crate) fn begin_anew(&self) {
        self.open.borrow_mut().clear();
        self.told.set((0, u32::MAX));
        self.goes_on_alone.set(false);
        self.has_cookies.set(false);
        self.place_of_calls.set(0);
        self.atoms.iter().for_each(|atom| atom.set(0));
        self.was_cut.set(false);
        self.ran_out.set(false);
    }

    /// Suspends the user until the engine has done this for it.
    ///
    /// # Errors
    /// Thrown in the script: at its top there is nobody to wait, and who ends is not resumed.
    pub(crate) fn ask(&self, ctx: &Ctx<'_>, operation: Operation) -> rquickjs::Result<Outcome> {
        let answered = self.suspender.ask(operation);
        self.stretch.set((None, LONGEST_STRETCH));
        answered.map_err(|cannot| match cannot {
            CannotWait::AtTheTop => Exception::throw_message(
                ctx,
                "calls and pauses are for the script's functions, and this is its top (the init context)",
            ),
            CannotWait::Quits => uncatchable(ctx),
        })
    }

    /// Suspends the user as [`ask`](Self::ask) does, for what makes the engine forget answers: their parts are taken over before.
    ///
    /// # Errors
    /// As for `ask`.
    pub(crate) fn wait(&self, ctx: &Ctx<'_>, operation: Operation) -> rquickjs::Result<Outcome> {
        self.keep_open(ctx)?;
        self.ask(ctx, operation)
    }

    /// Takes over the parts of answers that the script still holds, before the engine forgets them.
    ///
    /// # Errors
    /// As for [`ask`](Self::ask).
    pub(crate) fn keep_open(&self, ctx: &Ctx<'_>) -> rquickjs::Result<()> {
        if !self.open.borrow().is_empty() {
            let mut open = std::mem::take(&mut *self.open.borrow_mut());
            for answered in open.drain(..).filter_map(|answered| answered.upgrade()) {
                answered.keep(self, ctx)?;
            }
            // Reuse the allocation; nothing was opened meanwhile.
            *self.open.borrow_mut() = open;
        }
        Ok(())
    }

    /// The atom of a name.
    pub(crate) fn atom(&self, ctx: &Ctx<'_>, name: Name) -> qjs::JSAtom {
        let atom = match name {
            Name::Status => &self.atoms[0],
            Name::Body => &self.atoms[1],
        };
        if atom.get() == 0 {
            let text = if name == Name::Status { c"status" } else { c"body" };
            // SAFETY: the context is alive. The atom lives as long as its runtime: it is never freed, and so does the user, which has one runtime.
            atom.set(unsafe { qjs::JS_NewAtom(ctx.as_raw().as_ptr(), text.as_ptr()) });
        }
        atom.get()
    }

    /// Prints what the script says. What its top says is said once, though it runs for each user.
    pub(crate) fn print(&self, level: &str, text: &str) {
        if !self.at_top.get() || self.worker.program.shows_top {
            self.worker.program.print(level, text);
        }
    }
}

/// Throws what no script can catch.
pub(crate) fn uncatchable(ctx: &Ctx<'_>) -> rquickjs::Error {
    match Exception::from_message(ctx.clone(), "the user ends") {
        Ok(exception) => {
            let value = exception.into_object().into_value();
            // SAFETY: the value is an error of this context, which is alive: `Ctx` holds it.
            unsafe { qjs::JS_SetUncatchableError(ctx.as_raw().as_ptr(), value.as_raw()) };
            ctx.throw(value)
        }
        Err(error) => error,
    }
}
