//! Shortcuts in Rust for what iterations do most: a repeated plain GET, a check, a member of a Response's JSON. Every other use calls the library's
//! function of JavaScript.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::mem::MaybeUninit;
use std::rc::Rc;

use brunt_script::Operation;
use rquickjs::class::{Trace, Tracer};
use rquickjs::function::{Args, Opt, Params};
use rquickjs::object::Filter;
use rquickjs::{Atom, Class, Coerced, Ctx, Function, Object, Result, Value, qjs};

use crate::bytes::Text;
use crate::callable::callable;
use crate::error::told;
use crate::functions::Functions;
use crate::outcome::Answer;
use crate::responses::{Answered, Response, SETS_COOKIES, answer, json, json_member};
use crate::user::{Name, User};

/// The most GETs and the most checks that a user remembers.
const MOST_KNOWN: usize = 64;

/// A function of the library's with a shortcut in front.
struct Shortcut<'js> {
    user: Rc<User>,
    way: Way<'js>,
    /// The library's function.
    usual: Function<'js>,
}

/// What a shortcut does.
enum Way<'js> {
    Get {
        known: RefCell<Vec<Known<'js>>>,
        /// Keeps the engine's shape of Responses alive: a shape lives as long as some object has it.
        pattern: Class<'js, Response<'js>>,
        /// What the library does with an answer that leads to more than a Response.
        exchanged: Function<'js>,
    },
    Check(RefCell<Checks<'js>>),
    Json,
}

/// Checks that were asked for before.
#[derive(Default)]
struct Checks<'js> {
    /// Their numbers, by the label of their calls and their names.
    numbers: Vec<(u32, Atom<'js>, u32)>,
    /// Objects with the names of conditions, which keep their shapes alive.
    patterns: Vec<Object<'js>>,
}

/// A prepared GET, with the place in the script that it counts for.
struct Known<'js> {
    url: Box<str>,
    place: u32,
    hop: Value<'js>,
    label: u32,
    prepared: u32,
    discards: bool,
}

impl<'js> Trace<'js> for Shortcut<'js> {
    fn trace<'a>(&self, tracer: Tracer<'a, 'js>) {
        self.usual.trace(tracer);
        // Whoever writes to these holds nothing of the collector's meanwhile.
        match &self.way {
            Way::Get { known, pattern, exchanged } => {
                exchanged.trace(tracer);
                pattern.trace(tracer);
                known.try_borrow().iter().flat_map(|known| known.iter()).for_each(|known| known.hop.trace(tracer));
            }
            Way::Check(checks) => {
                if let Ok(checks) = checks.try_borrow() {
                    checks.numbers.iter().for_each(|(_, name, _)| name.trace(tracer));
                    checks.patterns.iter().for_each(|pattern| pattern.trace(tracer));
                }
            }
            Way::Json => {}
        }
    }
}

callable!(Shortcut);

/// An argument that is given.
fn given<'js>(params: &Params<'_, 'js>, at: usize) -> Option<Value<'js>> {
    params.arg(at).filter(|given| !given.is_undefined())
}

impl<'js> Shortcut<'js> {
    fn apply(&self, params: &Params<'_, 'js>) -> Result<Value<'js>> {
        let done = match &self.way {
            Way::Get { known, exchanged, .. } => self.get(params, known, exchanged)?,
            Way::Check(checks) => self.check(params, checks)?,
            Way::Json => self.json(params)?,
        };
        if let Some(done) = done {
            return Ok(done);
        }
        let mut args = Args::new(params.ctx().clone(), params.len());
        args.this(params.this())?;
        args.push_args((0..params.len()).filter_map(|at| params.arg(at)))?;
        args.apply(&self.usual)
    }

    /// Sends a prepared GET without Params or cookies. `None`: the GET is another one.
    #[inline(never)]
    fn get(
        &self,
        params: &Params<'_, 'js>,
        known: &RefCell<Vec<Known<'js>>>,
        exchanged: &Function<'js>,
    ) -> Result<Option<Value<'js>>> {
        let user = &self.user;
        let place = user.place_of_calls.get();
        if place == 0 || user.has_cookies.get() || given(params, 1).is_some() {
            return Ok(None);
        }
        let Some(url) = params.arg(0).and_then(Value::into_string) else { return Ok(None) };
        let url = url.to_cstring()?;
        let found = {
            let known = known.borrow();
            let found = known.iter().find(|known| known.place == place && *known.url == *url.as_str());
            found.map(|known| (known.hop.clone(), known.label, known.prepared, known.discards))
        };
        drop(url);
        let Some((hop, label, prepared, discards)) = found else { return Ok(None) };
        let ctx = params.ctx();
        let call = Operation::CallPrepared { prepared: prepared.wrapping_sub(1), label, timeout_ns: None };
        let answer = answer(ctx, user.wait(ctx, call)?)?;
        let is_all = (200..300).contains(&answer.status) && answer.flags & SETS_COOKIES == 0;
        let response = user.respond(ctx, hop.clone(), (label, discards), answer)?;
        if is_all { Ok(Some(response.into_value())) } else { exchanged.call((hop, 0, response)).map(Some) }
    }

    /// Judges a Response or a plain value by conditions that have numbers. `None`: the value is another object, or a condition is new.
    #[inline(never)]
    fn check(&self, params: &Params<'_, 'js>, checks: &RefCell<Checks<'js>>) -> Result<Option<Value<'js>>> {
        let (user, ctx) = (&self.user, params.ctx());
        let (Some(value), Some(conditions)) = (params.arg(0), params.arg(1)) else { return Ok(None) };
        if user.at_top.get() || user.worker.program.samples_checks || conditions.is_function() {
            return Ok(None);
        }
        let Some(conditions) = conditions.as_object() else { return Ok(None) };
        let response = value.as_object().and_then(|object| object.as_class::<Response<'js>>());
        if response.is_none() && value.is_object() {
            return Ok(None);
        }
        let label = response.map_or(0, |response| response.borrow().label());
        let mut all = Vec::new();
        for name in conditions.own_keys::<Atom<'js>>(Filter::new().string().enum_only()) {
            let name = name?;
            let Some(number) = self.number(checks, label, (&name, conditions))? else { return Ok(None) };
            all.push((name, number));
        }
        let mut hold = true;
        for (name, id) in all {
            let condition: Value<'js> = conditions.get(name)?;
            let judged = match condition.as_function() {
                Some(condition) => condition.call::<_, Coerced<bool>>((value.clone(),)),
                None => condition.get::<Coerced<bool>>(),
            };
            match judged {
                Ok(Coerced(true)) => user.check_passed(ctx, id)?,
                Ok(Coerced(false)) => {
                    hold = false;
                    user.check_failed(ctx, (id, label), response, None)?;
                }
                Err(_) => {
                    let thrown = ctx.catch();
                    // SAFETY: the value is alive.
                    if !unsafe { qjs::JS_IsUncatchableError(thrown.as_raw()) } {
                        user.check_failed(ctx, (id, label), response, Some(told(&thrown)))?;
                    }
                    return Err(ctx.throw(thrown));
                }
            }
        }
        Ok(Some(Value::new_bool(ctx.clone(), hold)))
    }

    /// The number of a check; `None` where the check is new.
    fn number(
        &self,
        checks: &RefCell<Checks<'js>>,
        label: u32,
        (name, conditions): (&Atom<'js>, &Object<'js>),
    ) -> Result<Option<u32>> {
        let known =
            checks.borrow().numbers.iter().find(|known| known.0 == label && known.1 == *name).map(|known| known.2);
        if known.is_some() {
            return Ok(known);
        }
        let number = self.user.worker.check(label, &name.to_string()?);
        if let Some(number) = number {
            let pattern = Object::new(conditions.ctx().clone())?;
            for name in conditions.own_keys::<Atom<'js>>(Filter::new().string().enum_only()) {
                pattern.set(name?, 0)?;
            }
            let mut checks = checks.borrow_mut();
            if checks.numbers.len() >= MOST_KNOWN {
                *checks = Checks::default();
            }
            checks.numbers.push((label, name.clone(), number));
            checks.patterns.push(pattern);
        }
        Ok(number)
    }

    /// A member of a Response's JSON, or all of it. `None`: the script has set the body, the path has several steps, or the body is no JSON.
    #[inline(never)]
    fn json(&self, params: &Params<'_, 'js>) -> Result<Option<Value<'js>>> {
        let ctx = params.ctx();
        let this = params.this();
        let Some(response) = this.as_object().and_then(|object| object.as_class::<Response<'js>>()) else {
            return Ok(None);
        };
        let path = match given(params, 0) {
            None => None,
            Some(path) if path.is_null() => None,
            Some(path) => match path.into_string() {
                Some(path) if is_name(path.clone().to_cstring()?.as_str()) => Some(path),
                _ => return Ok(None),
            },
        };
        if own(ctx, response, self.user.atom(ctx, Name::Body))?.is_some() {
            return Ok(None);
        }
        if let Some(path) = &path
            && let Some(member) = json_member(ctx, &self.user, response, path.clone().to_cstring()?.as_str())?
        {
            return Ok(Some(member));
        }
        let value = match json(ctx, &self.user, response) {
            Ok(Some(value)) => value,
            Ok(None) => return Ok(None),
            Err(error) if self.user.suspender.quits() => return Err(error),
            Err(_) => {
                // It is no JSON: the library says so.
                drop(ctx.catch());
                return Ok(None);
            }
        };
        let Some(path) = path else { return Ok(Some(value)) };
        let Some(object) = value.as_object().filter(|object| !object.is_array()) else { return Ok(None) };
        // SAFETY: the value is a string of this context, which is alive; the atom is freed below.
        let atom = unsafe { qjs::JS_ValueToAtom(ctx.as_raw().as_ptr(), path.as_raw()) };
        let found = own(ctx, object, atom);
        // SAFETY: as above.
        unsafe { qjs::JS_FreeAtom(ctx.as_raw().as_ptr(), atom) };
        match found? {
            // What a script has put there.
            Some(Own::Accessor) => Ok(None),
            Some(Own::Value(found)) => Ok(Some(found)),
            None => Ok(Some(Value::new_undefined(ctx.clone()))),
        }
    }
}

/// Whether a GJSON path names a member of an object, and no more.
fn is_name(path: &str) -> bool {
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    path.bytes().all(is_of_name) && path.bytes().next().is_some_and(|first| !first.is_ascii_digit())
}

/// A property of an object's own.
enum Own<'js> {
    Value(Value<'js>),
    Accessor,
}

/// The own property of an object.
fn own<'js>(ctx: &Ctx<'js>, object: &Object<'js>, name: qjs::JSAtom) -> Result<Option<Own<'js>>> {
    let mut found = MaybeUninit::<qjs::JSPropertyDescriptor>::uninit();
    // SAFETY: the object and the atom are alive; the description is written where the property is there.
    match unsafe { qjs::JS_GetOwnProperty(ctx.as_raw().as_ptr(), found.as_mut_ptr(), object.as_raw(), name) } {
        0 => Ok(None),
        1.. => {
            // SAFETY: it was written, and its values are the caller's.
            let (value, parts) = unsafe {
                let found = found.assume_init();
                let owned = |value| Value::from_raw(ctx.clone(), value);
                (owned(found.value), [owned(found.getter), owned(found.setter)])
            };
            let is_accessor = parts.iter().any(|part| !part.is_undefined());
            Ok(Some(if is_accessor { Own::Accessor } else { Own::Value(value) }))
        }
        _ => Err(rquickjs::Error::Exception),
    }
}

/// Adds `shortcut`, which puts a shortcut in front of a function, and `remember`, which tells it of a prepared GET.
pub(crate) fn add<'js>(ctx: &Ctx<'js>, object: &Functions<'_, 'js>, user: &Rc<User>) -> Result<()> {
    let me = Rc::clone(user);
    object.set("shortcut", || {
        Function::new(
            ctx.clone(),
            move |ctx: Ctx<'js>,
                  name: String,
                  usual: Function<'js>,
                  length: usize,
                  exchanged: Opt<Function<'js>>|
                  -> Result<Function<'js>> {
                let way = match (name.as_str(), exchanged.0) {
                    ("get", Some(exchanged)) => {
                        let none = Rc::new(Answered::new(0, Answer::refused(String::new()), false, false));
                        let pattern = me.response(&ctx, None, none)?;
                        Way::Get { known: RefCell::default(), pattern, exchanged }
                    }
                    ("check", _) => Way::Check(RefCell::default()),
                    _ => Way::Json,
                };
                let shortcut = Class::instance(ctx, Shortcut { user: Rc::clone(&me), way, usual })?;
                let function: Function<'js> = shortcut.into_value().get()?;
                function.with_name(&name)?.with_length(length)
            },
        )
    })?;
    object.set("remember", || {
        Function::new(
            ctx.clone(),
            move |get: Class<'js, Shortcut<'js>>,
                  Text(url): Text,
                  hop: Value<'js>,
                  label: u32,
                  prepared: u32,
                  discards: bool| {
                let get = get.borrow();
                let Way::Get { known, .. } = &get.way else { return };
                let place = get.user.place_of_calls.get();
                let mut known = known.borrow_mut();
                if known.iter().any(|known| known.place == place && *known.url == *url) {
                    return;
                }
                if known.len() >= MOST_KNOWN {
                    known.clear();
                }
                known.push(Known { url: url.into_boxed_str(), place, hop, label, prepared, discards });
            },
        )
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

    use std::sync::Arc;

    use brunt_protocol::record::time::Tick;
    use brunt_protocol::scenario::Value as Plain;
    use brunt_record::redaction::Secrets;
    use brunt_script::{Files, Labelled, Library as _, Resumption};

    use super::*;
    use crate::library::JavaScriptLibrary;
    use crate::modules::Modules;
    use crate::program::Source;

    /// What the calls of each iteration count as, and how many operations it took beside them.
    fn iterations(text: &str, count: usize, flags: u32) -> (Vec<(Vec<String>, usize)>, u64) {
        let modules = Arc::new(Modules::new("s.js".to_owned(), text.as_bytes().to_vec(), Files::Plan(Vec::new())));
        let source = Source { modules, env: Vec::new(), seed: 1, secrets: Secrets::default() };
        let probed = source.probe(false).unwrap();
        let library = JavaScriptLibrary::begin(&Arc::new(source.program(&probed, Vec::new())), 0).unwrap();
        let mut labels = Vec::new();
        let mut all = Vec::new();
        for _ in 0..count {
            let mut operation = library.begin_iteration(0, Tick::default(), 1, 0);
            let (mut calls, mut others) = (Vec::new(), 0);
            loop {
                others += 1;
                let answered = Resumption::Answered { ticket: 1.0, status: 200, ok: true, flags, goes_on: false };
                let with = match operation {
                    Operation::Call(wanted) => {
                        calls.push(wanted.label);
                        answered
                    }
                    Operation::CallPrepared { label, .. } => {
                        calls.push(label);
                        answered
                    }
                    Operation::Label(named) => {
                        let Labelled { place: (_, group), ok, .. } = *named;
                        labels.push(format!("{group} {}", ok.is_some_and(|ok| ok.holds(404))));
                        Resumption::Number(labels.len() as u32 - 1)
                    }
                    Operation::Read { what, .. } if what == "body" => Resumption::Read(Plain::text(r#"{"id":7}"#)),
                    Operation::Read { .. } => {
                        Resumption::Read(Plain::Table(vec![(Plain::text("set-cookie"), Plain::text("a=b"))]))
                    }
                    Operation::Iterated { .. } => break,
                    Operation::Failed { problem, .. } => panic!("{problem}"),
                    _ => Resumption::Number(1),
                };
                operation = library.resume(0, Tick::default(), with).0;
            }
            others -= 1 + calls.len();
            let counts_as = calls.iter().map(|label| labels.get(*label as usize).cloned().unwrap_or_default());
            all.push((counts_as.collect(), others));
        }
        (all, library.take_passes().iter().map(|(_, count)| count).sum())
    }

    const SCRIPT: &str = "import http from 'k6/http';
        import { check, group } from 'k6';
        function go() {
            const answer = http.get('http://a.test/b');
            check(answer, { 'ok': (r) => r.status === 200, 'is seven': (r) => r.json('id') === 7 });
        }
        export default function () {
            if (__ITER === 4) http.setResponseCallback(http.expectedStatuses(404));
            go();
            group('g', go);
        }";

    #[test]
    fn a_known_get_counts_as_what_its_user_is_about() {
        let (all, passes) = iterations(SCRIPT, 8, 0);
        for (at, (calls, others)) in all.iter().enumerate() {
            let ok = at >= 4;
            assert_eq!(calls, &[format!(" {ok}"), format!("g {ok}")], "iteration {at}");
            // The member of each answer, the group and its end.
            if matches!(at, 2 | 3 | 6 | 7) {
                assert_eq!(*others, 4, "iteration {at}");
            }
        }
        assert_eq!(passes, 8 * 4);
    }

    #[test]
    fn cookies_are_for_their_iteration() {
        // Each first request has none, and each second one the cookie of the first.
        let text = SCRIPT.replace(
            "go();\n",
            "if (http.cookieJar().cookiesForURL('http://a.test/b').a) throw new Error('stale'); go();\n",
        );
        let text = text.replace(
            "group('g', go);",
            "if (!http.cookieJar().cookiesForURL('http://a.test/b').a) throw new Error('none'); go();",
        );
        let (all, passes) = iterations(&text, 5, SETS_COOKIES);
        assert!(all.iter().all(|(calls, _)| calls.len() == 2), "{all:?}");
        assert_eq!(passes, 5 * 4);
    }
}
