//! A user's runtime, and its life on a stack of its own.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use brunt_script::Operation;
use rquickjs::context::intrinsic;
use rquickjs::{Context, Ctx, Exception, FromJs, Function, Module, Object, Persistent, Promise, Runtime, Value};

use crate::error::{explained, thrown};
use crate::loader::UserModules;
use crate::memory::{MOST_MEMORY, Memory};
use crate::shared::SUMMARY;
use crate::stack::SCRIPT_STACK;
use crate::trace;
use crate::user::{LONGEST_STRETCH, LONGEST_TOP, Myself, User, uncatchable};
use crate::{bounded, bytes};

/// What a runtime has of `ECMAScript`: all of it. Globals of browsers that k6 has not (`atob`, `performance`) are not there either.
type Globals = (
    intrinsic::Date,
    intrinsic::Eval,
    intrinsic::RegExpCompiler,
    intrinsic::RegExp,
    intrinsic::Json,
    intrinsic::Proxy,
    intrinsic::MapSet,
    intrinsic::TypedArrays,
    intrinsic::Promise,
    intrinsic::WeakRef,
);

impl User {
    /// A runtime with the script in it, on the current stack.
    fn context(self: &Rc<Self>) -> Result<Context, String> {
        let failed = |error: rquickjs::Error| format!("there is no memory for a runtime: {error}");
        // Valgrind knows the blocks of the C library's allocator, and runs the tests.
        let runtime = if cfg!(test) { Runtime::new() } else { Runtime::new_with_alloc(Memory::new(Rc::clone(self))) }
            .map_err(failed)?;
        if cfg!(test) {
            runtime.set_memory_limit(MOST_MEMORY);
        }
        runtime.set_max_stack_size(SCRIPT_STACK);
        let modules = UserModules(Arc::clone(&self.modules));
        runtime.set_loader(modules.clone(), modules);
        let user = Rc::clone(self);
        runtime.set_interrupt_handler(Some(Box::new(move || user.is_over_time() || user.suspender.quits())));
        let user = Rc::clone(self);
        runtime.set_host_promise_rejection_tracker(Some(Box::new(move |ctx, promise, reason, is_handled| {
            let promise = Persistent::save(&ctx, promise);
            let mut rejected = user.rejected.borrow_mut();
            if is_handled {
                rejected.retain(|(known, _)| *known != promise);
            } else {
                rejected.push((promise, Persistent::save(&ctx, reason)));
            }
        })));
        Context::custom::<Globals>(&runtime).map_err(failed)
    }

    /// Runs `with` in a runtime in which the script's top has run.
    ///
    /// # Errors
    /// The file and line of what is wrong in it.
    pub(crate) fn with_script<T>(self: &Rc<Self>, with: impl FnOnce(&Script<'_>) -> T) -> Result<T, String> {
        let context = self.context()?;
        self.stretch.set((None, LONGEST_TOP));
        // What is known of another runtime is not of this one.
        self.begin_anew();
        let done = context.with(|ctx| {
            drop(ctx.store_userdata(Myself(Rc::clone(self))));
            self.at_top.set(true);
            let script = self.loaded(&ctx).map_err(|error| self.problem(&ctx, &error));
            self.at_top.set(false);
            script.map(|script| with(&script))
        });
        // What is held of the runtime goes before it does.
        self.rejected.borrow_mut().clear();
        drop((self.taken.take(), self.natives.take()));
        self.mailbox.events.borrow_mut().clear();
        context.runtime().set_host_promise_rejection_tracker(None);
        context.runtime().set_interrupt_handler(None);
        done
    }

    fn loaded<'js>(self: &Rc<Self>, ctx: &Ctx<'js>) -> rquickjs::Result<Script<'js>> {
        let import = |name: &str| self.finished::<Object<'js>>(ctx, &Module::import(ctx, name)?);
        trace::prepare(ctx, self)?;
        bounded::replace(ctx)?;
        import("brunt:prelude")?;
        let namespace = import(self.modules.script())?;
        let common: Option<Object<'js>> = namespace.get("__common")?;
        let exports = common.unwrap_or(namespace);
        let (user, samples, events) = (import("brunt:user")?, import("brunt:samples")?, import("brunt:loop")?);
        let options: Value<'js> = match &self.worker.program.options {
            Some(options) => ctx.json_parse(options.as_str())?,
            None => exports.get("options")?,
        };
        user.get::<_, Function<'js>>("configureTags")?.call::<_, ()>((options.clone(),))?;
        let wanted = ctx.json_parse(self.worker.program.wanted.as_str())?;
        samples.get::<_, Function<'js>>("configure")?.call::<_, ()>((wanted,))?;
        Ok(Script {
            ctx: ctx.clone(),
            exports,
            iterate: events.get("iterate")?,
            settle: events.get("settle")?,
            known: Cell::new(None),
            given: Cell::new(None),
            run_once: events.get("runOnce")?,
            options,
        })
    }

    /// The words for an error of the script.
    pub(crate) fn problem(&self, ctx: &Ctx<'_>, error: &rquickjs::Error) -> String {
        let is_thrown = !self.was_cut.get() && matches!(error, rquickjs::Error::Exception);
        let text = match error {
            _ if is_thrown => thrown(ctx, self.ran_out.take()),
            rquickjs::Error::WouldBlock => {
                "the top of the script waits for a promise that nothing settles: calls, pauses and timers are for its functions".to_owned()
            }
            error => error.to_string(),
        };
        // What was thrown may have getters that do not return.
        let text = if self.was_cut.get() {
            format!(
                "the script took {} s of CPU time without a call or a pause, and was cut off",
                self.stretch.get().1.as_secs()
            )
        } else {
            text
        };
        explained(&text, self.modules.script())
    }

    /// Runs what promises wait for, until nothing is left.
    ///
    /// # Errors
    /// One that no script can catch, once the user was cut off or is to end: what is left may go on for ever.
    pub(crate) fn run_jobs(&self, ctx: &Ctx<'_>) -> rquickjs::Result<()> {
        while ctx.execute_pending_job() {
            if self.was_cut.get() || self.suspender.quits() {
                return Err(uncatchable(ctx));
            }
        }
        Ok(())
    }

    /// The value of a promise, for which its jobs run.
    ///
    /// # Errors
    /// What it was rejected with; that nothing settles it; as for [`run_jobs`](Self::run_jobs).
    pub(crate) fn finished<'js, T: FromJs<'js>>(&self, ctx: &Ctx<'js>, promise: &Promise<'js>) -> rquickjs::Result<T> {
        loop {
            if let Some(result) = promise.result() {
                return result;
            }
            if !ctx.execute_pending_job() {
                return Err(rquickjs::Error::WouldBlock);
            }
            if self.was_cut.get() || self.suspender.quits() {
                return Err(uncatchable(ctx));
            }
        }
    }

    /// The user's life on its own stack, from its first iteration on.
    pub(crate) fn live(self: &Rc<Self>, id: u64, place: u32) {
        self.id.set(id);
        self.place.set(place);
        let mut next = Some(place);
        while let Some(place) = next {
            next = match self.with_script(|script| self.iterations(script, place)) {
                Ok(next) => next,
                Err(problem) => {
                    // The top has run before: what is wrong now is the machine's.
                    self.suspender.next_iteration(Operation::Failed { problem, wrong: true, pacing_ns: 0 });
                    None
                }
            };
        }
    }

    /// Iterations in one runtime. Returns the place of the next one where that needs a runtime of its own: what the script was in the midst of
    /// when it was cut off would go on there.
    fn iterations(&self, script: &Script<'_>, place: u32) -> Option<u32> {
        let mut next = Some(place);
        self.suspender.give_back();
        while let Some(place) = next {
            let last = self.iterate(script, place);
            if self.iteration.get() == 0 {
                // It has loaded what the script needs.
                script.ctx.run_gc();
                self.suspender.give_back();
            }
            next = self.suspender.next_iteration(last).map(|(id, place)| {
                self.stretch.set((None, LONGEST_STRETCH));
                self.iteration.set(if id == self.id.get() { self.iteration.get() + 1 } else { 0 });
                self.id.set(id);
                self.place.set(place);
                place
            });
            if self.was_cut.take() {
                return next;
            }
        }
        None
    }

    /// One iteration, or a function beside the load: the operation that ends it.
    fn iterate(&self, script: &Script<'_>, place: u32) -> Operation {
        if let Some(begun) = self.worker.program.begun.get(place as usize) {
            self.iteration_in_test.set(begun.fetch_add(1, Ordering::Relaxed));
        }
        self.stretch.set((None, LONGEST_STRETCH));
        self.mailbox.events.borrow_mut().clear();
        let ran = script.run(self, place);
        self.worker.program.ended.fetch_add(1, Ordering::Relaxed);
        let pacing_ns = self.worker.program.pacing_ns;
        let last = match ran {
            Ok(()) => Operation::Iterated { pacing_ns, ok: true },
            Err(error) => {
                let problem = self.problem(&script.ctx, &error);
                Operation::Failed { problem, wrong: false, pacing_ns }
            }
        };
        // What the script still holds of answers is there in its next iteration. A user that ends has none.
        if self.keep_open(&script.ctx).is_err() {
            drop(script.ctx.catch());
        }
        last
    }
}

/// The script in one user's runtime.
pub(crate) struct Script<'js> {
    pub(crate) ctx: Ctx<'js>,
    /// What it exports.
    pub(crate) exports: Object<'js>,
    /// The script's options, consolidated where a plan was made of them.
    pub(crate) options: Value<'js>,
    iterate: Function<'js>,
    /// Runs all that a function began which has returned its argument.
    settle: Function<'js>,
    /// The function that was run last, by its place.
    known: Cell<Option<(u32, Function<'js>)>>,
    /// What setup has returned, and the number of the user whose copy it is.
    given: Cell<Option<(u64, Value<'js>)>>,
    run_once: Function<'js>,
}

impl<'js> Script<'js> {
    /// The function that the script exports by this name, if it does.
    pub(crate) fn function(&self, name: &str) -> rquickjs::Result<Option<Function<'js>>> {
        let value: Value<'js> = self.exports.get(name)?;
        if name == "default" && !value.is_function() && self.exports.contains_key("__common")? {
            return Ok(None);
        }
        Ok(value.into_function())
    }

    /// Runs a function beside the load with these arguments.
    pub(crate) fn once(
        &self,
        function: Function<'js>,
        place: &str,
        argument: Value<'js>,
    ) -> rquickjs::Result<Value<'js>> {
        self.run_once.call((function, place, argument))
    }

    /// Runs the function of this place.
    fn run(&self, user: &User, place: u32) -> rquickjs::Result<()> {
        let goes_on_alone = user.goes_on_alone.get() && user.told.get() == (user.id.get(), place);
        if let Some((known, function)) = self.known.take().filter(|_| goes_on_alone)
            && known == place
        {
            let ran = self.run_alone(user, &function);
            // What was in its midst is the library's to end.
            user.goes_on_alone.set(user.goes_on_alone.get() && ran.is_ok());
            self.known.set(Some((known, function)));
            return ran;
        }
        let worker = &user.worker;
        let name = worker.program.function(place);
        let Some(function) = self.function(name)? else {
            return Err(Exception::throw_message(&self.ctx, &format!("the script exports no function '{name}'")));
        };
        let given = self.given(user)?;
        if name == SUMMARY {
            user.stretch.set((None, LONGEST_TOP));
            *worker.given.borrow_mut() = Some(self.texts(function, given)?);
            return Ok(());
        }
        if name == "setup" || name == "teardown" {
            let returned = self.once(function, name, given)?;
            if name == "setup" {
                let text = self.ctx.json_stringify(returned)?.map(|text| text.to_string()).transpose()?;
                *worker.given.borrow_mut() = text;
            }
            return Ok(());
        }
        self.known.set(Some((place, function.clone())));
        self.iterate.call((function, given))
    }

    /// Runs `handleSummary` with the run's result. Returns the texts that it makes, in base64 by the names of their files, as JSON.
    fn texts(&self, function: Function<'js>, result: Value<'js>) -> rquickjs::Result<String> {
        let ours: Object<'js> = Module::import(&self.ctx, "brunt:summary")?.finish()?;
        let data: Value<'js> = ours.get::<_, Function<'js>>("summaryData")?.call((result,))?;
        let mut texts = serde_json::Map::new();
        let made = self.once(function, "", data)?;
        for entry in made.as_object().into_iter().flat_map(Object::props::<Value<'js>, Value<'js>>) {
            let (name, text) = entry?;
            texts.insert(bytes::text(&self.ctx, &name)?, STANDARD.encode(bytes::of(&self.ctx, &text)?).into());
        }
        Ok(serde_json::Value::Object(texts).to_string())
    }

    /// The user's copy of what setup has returned. It is the same in all of the user's iterations, with what they have changed in it.
    fn given(&self, user: &User) -> rquickjs::Result<Value<'js>> {
        let text = user.worker.given.borrow();
        let Some(text) = text.as_deref() else { return Ok(Value::new_undefined(self.ctx.clone())) };
        let given = match self.given.take().filter(|(whose, _)| *whose == user.id.get()) {
            Some((_, given)) => given,
            None => self.ctx.json_parse(text)?,
        };
        self.given.set(Some((user.id.get(), given.clone())));
        Ok(given)
    }

    /// Runs a scenario's function, which needs the library for what it leaves behind alone.
    fn run_alone(&self, user: &User, function: &Function<'js>) -> rquickjs::Result<()> {
        let returned: Value<'js> = function.call((self.given(user)?,))?;
        if !returned.is_promise() && user.goes_on_alone.get() {
            user.run_jobs(&self.ctx)?;
            if user.goes_on_alone.get() && user.rejected.borrow().is_empty() {
                return Ok(());
            }
        }
        self.settle.call((returned,))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, unsafe_code, reason = "a test fails by a panic")]

    use std::mem::MaybeUninit;

    use brunt_record::redaction::Secrets;
    use brunt_script::Files;
    use rquickjs::qjs;

    use super::*;
    use crate::modules::Modules;
    use crate::program::Source;
    use crate::worker::Worker;

    /// The bytes of a runtime in which a script's top has run.
    fn bytes(text: &str) -> i64 {
        let modules = Arc::new(Modules::new("s.js".to_owned(), text.as_bytes().to_vec(), Files::Plan(Vec::new())));
        let source = Source { modules, env: Vec::new(), seed: 1, secrets: Secrets::default() };
        let probed = source.probe(false).unwrap();
        let worker = Worker::new(Arc::new(source.program(&probed, Vec::new())), 0);
        let used = User::new(&worker).with_script(|script| {
            let mut usage = MaybeUninit::<qjs::JSMemoryUsage>::zeroed();
            // SAFETY: the context and its runtime are alive, and numbers that are zero are numbers.
            unsafe {
                qjs::JS_ComputeMemoryUsage(qjs::JS_GetRuntime(script.ctx.as_raw().as_ptr()), usage.as_mut_ptr());
                usage.assume_init().malloc_size
            }
        });
        used.unwrap()
    }

    #[test]
    fn a_user_loads_what_its_script_needs() {
        let plain = bytes("import http from 'k6/http'; import { check } from 'k6'; export default function () {}");
        let further = bytes(
            "import http from 'k6/http'; import { parseHTML } from 'k6/html'; http.file('a'); console.log(1); export default function () {}",
        );
        assert!(plain < 330_000, "{plain} bytes");
        assert!(further > plain, "{further} and {plain} bytes");
    }
}
