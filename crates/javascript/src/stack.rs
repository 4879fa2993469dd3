//! A user's own stack: a function of k6 that waits suspends it in the midst of the script, and the result resumes it.
//!
//! ```text
//! library ──Input──▶ Stack::resume ──▶ (the script runs) ──▶ Wire::ask ──Operation──▶ library
//! ```
//!
//! The script's runtime is made, used and dropped on this stack alone, so that `QuickJS`'s own check of the stack's depth holds.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::ptr;

use brunt_script::Operation;
use corosensei::stack::{DefaultStack, Stack as _};
use corosensei::{Coroutine, CoroutineResult, Yielder};
use rquickjs::{Ctx, qjs};

use crate::outcome::Outcome;
use crate::system::page_size;

/// The size of a user's stack, in bytes. Pages that are never touched take no memory.
const STACK: usize = 1 << 20;
/// The part of it that is left to functions of ours and of C that a script calls.
const SPARE: usize = 64 << 10;

/// The size that a script may use of its stack, in bytes.
pub(crate) const SCRIPT_STACK: usize = STACK - SPARE;

/// The part of the spare that functions have which tell of a stack that is used up.
const ROOM: usize = SPARE / 2;
/// The bytes below a function's frame that are never given back: those of the functions that it calls for that.
const NEAR: usize = 1 << 10;

/// Lets a script use some of the spare, for as long as it lives.
pub(crate) struct Room(*mut qjs::JSRuntime);

impl Room {
    pub(crate) fn on(ctx: &Ctx<'_>) -> Self {
        // SAFETY: the context is alive, and so is its runtime, which runs the function that holds the room.
        let runtime = unsafe { qjs::JS_GetRuntime(ctx.as_raw().as_ptr()) };
        // SAFETY: as above. The limit stays within the stack.
        unsafe { qjs::JS_SetMaxStackSize(runtime, (SCRIPT_STACK + ROOM) as _) };
        Self(runtime)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        // SAFETY: as in `on`.
        unsafe { qjs::JS_SetMaxStackSize(self.0, SCRIPT_STACK as _) };
    }
}

/// What a user is told.
pub(crate) enum Input {
    /// It begins an iteration, with the function of this place.
    Begin { id: u64, place: u32 },
    /// The result of the operation that it waits for.
    Result(Outcome),
    /// It ends: whatever it waits for fails in a way that no script can catch.
    Quit,
}

/// A user's stack, with the script that runs on it.
pub(crate) struct Stack {
    coroutine: Coroutine<Input, Operation, (), DefaultStack>,
}

/// The way from a user's native functions to the library. It lives as long as the user.
pub(crate) struct Suspender {
    yielder: Cell<*const Yielder<Input, Operation>>,
    quits: Cell<bool>,
    /// The lowest address of the user's stack; 0 where it has none of its own.
    lowest: Cell<usize>,
}

/// Nobody can wait here: a script's top, or a user that ends.
pub(crate) enum CannotWait {
    /// There is no user yet.
    AtTheTop,
    /// The user ends.
    Quits,
}

impl Default for Suspender {
    fn default() -> Self {
        Self { yielder: Cell::new(ptr::null()), quits: Cell::new(false), lowest: Cell::new(0) }
    }
}

impl Suspender {
    /// Whether the user is to end.
    pub(crate) fn quits(&self) -> bool {
        self.quits.get()
    }

    /// Suspends the user until the library resumes it.
    ///
    /// # Errors
    /// When there is nobody to suspend, or it is to end.
    pub(crate) fn ask(&self, operation: Operation) -> Result<Outcome, CannotWait> {
        if self.quits.get() {
            return Err(CannotWait::Quits);
        }
        if let Input::Result(outcome) = self.suspend(operation)? {
            return Ok(outcome);
        }
        self.quits.set(true);
        Err(CannotWait::Quits)
    }

    /// Suspends the user between two iterations: the next one, unless it ends.
    pub(crate) fn next_iteration(&self, last: Operation) -> Option<(u64, u32)> {
        if let Ok(Input::Begin { id, place }) = self.suspend(last) {
            return Some((id, place));
        }
        self.quits.set(true);
        None
    }

    /// Gives the memory back that the user's stack has below this function's frame: a script's top goes deeper than its iterations.
    pub(crate) fn give_back(&self) {
        let lowest = self.lowest.get();
        if lowest == 0 || self.yielder.get().is_null() {
            return;
        }
        let page = page_size();
        let here = ptr::from_ref(&page) as usize;
        let end = here.saturating_sub(NEAR) & !(page - 1);
        if let Some(length) = end.checked_sub(lowest) {
            // SAFETY: the range is below the frames that are in use, and within this user's stack, on which this runs (see `suspend`): nobody
            // reads what frames have left there, and pages come back empty. A system that does not do it keeps the pages.
            unsafe { libc::madvise(lowest as *mut libc::c_void, length, libc::MADV_DONTNEED) };
        }
    }

    fn suspend(&self, operation: Operation) -> Result<Input, CannotWait> {
        let yielder = self.yielder.get();
        if yielder.is_null() {
            return Err(CannotWait::AtTheTop);
        }
        // SAFETY: `Stack::new` sets the pointer at the beginning of the coroutine to its yielder, which lives on the coroutine's stack until
        // its function returns, and clears it before that (`Clear`). Who calls this runs on that stack: natives are called by the user's own
        // runtime alone, which never leaves it.
        Ok(unsafe { &*yielder }.suspend(operation))
    }
}

/// Clears the pointer when the coroutine's function returns or panics.
struct Clear<'a>(&'a Suspender);

impl Drop for Clear<'_> {
    fn drop(&mut self) {
        self.0.yielder.set(ptr::null());
    }
}

impl Stack {
    /// A stack on which `run` runs with the first iteration, once it is [resumed](Self::resume).
    ///
    /// # Errors
    /// When the system has no memory for it.
    pub(crate) fn new(
        suspender: std::rc::Rc<Suspender>,
        run: impl FnOnce(&Suspender, u64, u32) + 'static,
    ) -> std::io::Result<Self> {
        let stack = DefaultStack::new(STACK)?;
        suspender.lowest.set(stack.limit().get());
        let coroutine = Coroutine::with_stack(stack, move |yielder, first| {
            suspender.yielder.set(yielder);
            let clear = Clear(&suspender);
            if let Input::Begin { id, place } = first {
                run(&suspender, id, place);
            }
            drop(clear);
        });
        Ok(Self { coroutine })
    }

    /// Lets the script go on until it wants something; `None` once it has ended.
    pub(crate) fn resume(&mut self, input: Input) -> Option<Operation> {
        if self.coroutine.done() {
            return None;
        }
        match self.coroutine.resume(input) {
            CoroutineResult::Yield(operation) => Some(operation),
            CoroutineResult::Return(()) => None,
        }
    }
}

impl Drop for Stack {
    /// Unwinds the script in order: its runtime must not be torn off its stack.
    fn drop(&mut self) {
        if self.coroutine.started() {
            while self.resume(Input::Quit).is_some() {}
        }
    }
}

/// Moves a value to another thread that nothing of this one knows any more.
pub(crate) struct Moved<T>(pub(crate) T);

// SAFETY: a library's users, their runtimes and what they share by `Rc` are reached from the library alone, and move with it as a whole:
// `Library` is called by one thread at a time, and neither QuickJS nor anything here keeps something of a thread (no thread-locals, no locks
// held, no stack of the thread: users have their own).
unsafe impl<T> Send for Moved<T> {}
