//! The functions of `brunt:native`, on which k6's modules stand.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::atomic::Ordering;

use brunt_protocol::record::figures::OwnKind;
use brunt_protocol::record::recording::Stop;
use brunt_protocol::scenario::Value as Plain;
use brunt_script::{Labelled, Operation, Placement, Wanted};
use rquickjs::function::{Opt, Rest};
use rquickjs::module::{Declarations, Exports, ModuleDef};
use rquickjs::{ArrayBuffer, Class, Ctx, Exception, Function, Module, Object, Persistent, Result, Value};

use crate::bytes::Text;
use crate::functions::Functions;
use crate::modules::{Modules, NATIVE, RECEIVER};
use crate::outcome::{Answer, Outcome};
use crate::responses::{self, Answered, Response, answer};
use crate::shared::Schema;
use crate::user::{Myself, User};
use crate::values::{refused, shown};
use crate::worker::{Event, Parts, Task, TaskState};
use crate::{bytes, html, shortcuts};

/// The module of the usual functions.
pub(crate) struct Natives;
/// The module of all functions.
pub(crate) struct Every;

/// The figure that counts how often the script has failed the test.
pub(crate) const FAILS: &str = "exec.test.fail";
/// The client that requests of HTTP go by.
pub(crate) const HTTP: usize = 0;
/// The parts of an answer of HTTP that a call beside the script keeps.
const HTTP_PARTS: [&str; 3] = ["body", "headers", "exchange"];

/// Names of functions that every script needs.
const USUAL: &[&str] = &[
    "http",
    "prepare",
    "send",
    "isSameUser",
    "iterationNumber",
    "goesOnAlone",
    "hasCookies",
    "moved",
    "shortcut",
    "remember",
    "drain",
    "readText",
    "readBytes",
    "readTimings",
    "readJson",
    "responsePrototype",
    "labelOf",
    "ticketOf",
    "failsFirst",
    "setsCookies",
    "hopOf",
    "text",
    "label",
    "check",
    "checkPassed",
    "checkFailed",
    "pause",
    "groupBegin",
    "groupEnded",
    "print",
    "log",
    "now",
    "user",
    "env",
    "options",
    "readFile",
    "figure",
    "record",
    "random",
    "requireModule",
    "take",
];

/// Names of the others.
const FURTHER: &[&str] = &[
    "httpAll",
    "httpBegin",
    "nextEvent",
    "readHeaders",
    "readPeer",
    "readSizes",
    "isAnswer",
    "failureOf",
    "setHop",
    "unsent",
    "excuse",
    "stop",
    "digest",
    "hmac",
    "randomBytes",
    "base64",
    "unbase64",
    "utf8",
    "sharedLength",
    "sharedItem",
    "sharedMake",
    "call",
    "begin",
    "cancel",
    "release",
    "readPart",
    "schema",
    "stream",
    "nextOf",
    "say",
    "deflate",
    "execution",
    "failRun",
    "html",
    "htmlSelect",
    "htmlNode",
    "htmlText",
    "htmlInner",
    "htmlOuter",
    "statusText",
];

/// The functions of these names.
fn functions<'js>(ctx: &Ctx<'js>, user: &Rc<User>, names: &'static [&'static str]) -> Result<Object<'js>> {
    let all = Functions::new(ctx, names)?;
    requests(&all, user)?;
    calls(&all, user)?;
    streams(&all, user)?;
    responses::add(ctx, &all, user)?;
    counting(&all, user)?;
    surroundings(&all, user)?;
    modules(&all, user)?;
    shortcuts::add(ctx, &all, user)?;
    bytes::add(ctx, &all)?;
    html::add(ctx, &all)?;
    Ok(all.object)
}

fn export<'js>(exports: &Exports<'js>, object: &Object<'js>, names: &[&str]) -> Result<()> {
    names.iter().try_for_each(|name| exports.export(*name, object.get::<_, Value<'js>>(*name)?).map(drop))
}

pub(crate) fn myself(ctx: &Ctx<'_>) -> Result<Rc<User>> {
    let user = ctx.userdata::<Myself>().map(|myself| Rc::clone(&myself.0));
    user.ok_or_else(|| Exception::throw_internal(ctx, "there is no user"))
}

impl ModuleDef for Natives {
    fn declare(declared: &Declarations<'_>) -> Result<()> {
        USUAL.iter().try_for_each(|name| declared.declare(*name).map(drop))
    }

    fn evaluate<'js>(ctx: &Ctx<'js>, exports: &Exports<'js>) -> Result<()> {
        let user = myself(ctx)?;
        let object = functions(ctx, &user, USUAL)?;
        export(exports, &object, USUAL)?;
        *user.natives.borrow_mut() = Some(Persistent::save(ctx, object));
        Ok(())
    }
}

impl ModuleDef for Every {
    fn declare(declared: &Declarations<'_>) -> Result<()> {
        USUAL.iter().chain(FURTHER).try_for_each(|name| declared.declare(*name).map(drop))
    }

    fn evaluate<'js>(ctx: &Ctx<'js>, exports: &Exports<'js>) -> Result<()> {
        let user = myself(ctx)?;
        export(exports, &functions(ctx, &user, FURTHER)?, FURTHER)?;
        let usual = user.natives.borrow().clone();
        let Some(usual) = usual else { return Err(Exception::throw_internal(ctx, "the usual functions come first")) };
        export(exports, &usual.restore(ctx)?, USUAL)
    }
}

/// A request as the script's library gives it, with what its Response is to have.
struct Request<'js> {
    wanted: Wanted,
    hop: Value<'js>,
    discards: bool,
}

impl<'js> Request<'js> {
    /// The request of these values: the library's own object, label, timeout in ms, method, URL, header fields, body, and whether nobody reads
    /// the body of its answer.
    fn of(ctx: &Ctx<'js>, values: &[Value<'js>]) -> Result<Self> {
        let number = |at: usize| values.get(at).and_then(Value::as_number).unwrap_or(0.0);
        let text = |at: usize| -> Result<Plain<'static>> {
            let text = values.get(at).filter(|value| value.is_string());
            let text = text.ok_or_else(|| Exception::throw_type(ctx, "a request takes a method and a URL"))?;
            Ok(Plain::Text(bytes::text(ctx, text)?.into_bytes().into()))
        };
        let mut fields = Vec::new();
        if let Some(given) = values.get(5).and_then(Value::as_array) {
            let mut given = given.iter::<Text>();
            while let (Some(name), Some(value)) = (given.next(), given.next()) {
                fields.push((Plain::Text(name?.0.into_bytes().into()), Plain::Text(value?.0.into_bytes().into())));
            }
        }
        let body = match values.get(6) {
            None => Plain::Nil,
            Some(body) if body.is_null() || body.is_undefined() => Plain::Nil,
            Some(body) => Plain::Text(bytes::of(ctx, body)?.into()),
        };
        let discards = values.get(7).and_then(Value::as_bool) == Some(true);
        let own = vec![
            text(3)?,
            text(4)?,
            Plain::Table(fields),
            Plain::Nil,
            body,
            Plain::Nil,
            Plain::Boolean(discards),
            Plain::Boolean(false),
            Plain::Nil,
            Plain::Boolean(false),
        ];
        let hop = values.first().cloned().unwrap_or_else(|| Value::new_undefined(ctx.clone()));
        Ok(Self { wanted: call(HTTP, number(1) as u32, timeout_ns(number(2)), own), hop, discards })
    }
}

/// Converts a timeout from milliseconds to nanoseconds; 0 means that the request sets none.
fn timeout_ns(ms: f64) -> Option<u64> {
    (ms > 0.0).then_some((ms * 1e6) as u64)
}

fn call(client: usize, label: u32, timeout_ns: Option<u64>, values: Vec<Plain<'static>>) -> Wanted {
    Wanted { client, label, timeout_ns, way: Placement::Any, judged: false, optional: false, streams: false, values }
}

/// An answer of another protocol than HTTP, as the script's library takes it.
fn ended<'js>(ctx: &Ctx<'js>, answer: &Answer) -> Result<Object<'js>> {
    let object = Object::new(ctx.clone())?;
    object.set("ticket", answer.ticket)?;
    object.set("status", answer.status)?;
    object.set("ok", answer.ok)?;
    object.set("flags", answer.flags)?;
    if let Some((failure, reason)) = answer.failure.as_deref() {
        object.set("error", failure.as_str())?;
        object.set("reason", reason.as_str())?;
    }
    Ok(object)
}

/// Sets a function of the module.
macro_rules! set {
    ($object:expr, $ctx:expr, $name:literal, $function:expr) => {
        $object.set($name, || Function::new($ctx.clone(), $function))?
    };
}

/// Requests of HTTP.
fn requests<'js>(object: &Functions<'_, 'js>, user: &Rc<User>) -> Result<()> {
    let ctx = object.ctx;
    let me = Rc::clone(user);
    set!(object, ctx, "http", move |ctx: Ctx<'js>, values: Rest<Value<'js>>| -> Result<Class<'js, Response<'js>>> {
        let Request { wanted, hop, discards } = Request::of(&ctx, &values.0)?;
        let label = wanted.label;
        let answer = answer(&ctx, me.wait(&ctx, Operation::Call(wanted))?)?;
        me.respond(&ctx, hop, (label, discards), answer)
    });
    // The number by which a request is sent from then on; 0 where there are too many.
    let me = Rc::clone(user);
    set!(object, ctx, "prepare", move |ctx: Ctx<'js>, values: Rest<Value<'js>>| -> Result<u32> {
        let wanted = Request::of(&ctx, &values.0)?.wanted;
        if let Some(number) = me.worker.prepared(&wanted.values) {
            return Ok(number);
        }
        let values = wanted.values.clone();
        match me.ask(&ctx, Operation::Prepare(wanted))? {
            Outcome::Number(number) => {
                me.worker.keep_prepared(&values, number);
                Ok(number)
            }
            Outcome::Refused(problem) => Err(refused(&ctx, &problem)),
            _ => Ok(0),
        }
    });
    let me = Rc::clone(user);
    set!(object, ctx, "send", move |ctx: Ctx<'js>,
                                    hop: Value<'js>,
                                    label: u32,
                                    timeout: f64,
                                    number: u32,
                                    discards: bool|
          -> Result<Class<'js, Response<'js>>> {
        let prepared = number.wrapping_sub(1);
        let call = Operation::CallPrepared { prepared, label, timeout_ns: timeout_ns(timeout) };
        let answer = answer(&ctx, me.wait(&ctx, call)?)?;
        me.respond(&ctx, hop, (label, discards), answer)
    });
    let me = Rc::clone(user);
    set!(object, ctx, "httpAll", move |ctx: Ctx<'js>,
                                       requests: Vec<Vec<Value<'js>>>|
          -> Result<Vec<Class<'js, Response<'js>>>> {
        let all = requests.iter().map(|values| Request::of(&ctx, values)).collect::<Result<Vec<_>>>()?;
        let mut begun = Vec::with_capacity(all.len());
        for Request { wanted, hop, discards } in all {
            begun.push((hop, (wanted.label, discards)));
            if let Outcome::Refused(problem) = me.wait(&ctx, Operation::Start(wanted))? {
                // Those that were begun must not be taken for later ones.
                me.ask(&ctx, Operation::Wait)?;
                return Err(refused(&ctx, &problem));
            }
        }
        let Outcome::Results(results) = me.wait(&ctx, Operation::Wait)? else { return Ok(Vec::new()) };
        let all = begun.into_iter().zip(results);
        all.map(|((hop, call), result)| me.respond(&ctx, hop, call, answer(&ctx, result)?)).collect()
    });
    let me = Rc::clone(user);
    set!(object, ctx, "httpBegin", move |ctx: Ctx<'js>, values: Rest<Value<'js>>| -> Result<f64> {
        let Request { wanted, discards, .. } = Request::of(&ctx, &values.0)?;
        let http = Some((wanted.label, discards));
        beside(&ctx, &me, Operation::Call(wanted), http, HTTP_PARTS.map(Cow::Borrowed).to_vec())
    });
    Ok(())
}

/// Calls of other protocols, and what comes for those that run beside the script.
fn calls<'js>(object: &Functions<'_, 'js>, user: &Rc<User>) -> Result<()> {
    let ctx = object.ctx;
    let me = Rc::clone(user);
    set!(object, ctx, "nextEvent", move |ctx: Ctx<'js>, most_ms: f64| -> Result<Option<Object<'js>>> {
        if me.mailbox.events.borrow().is_empty() {
            let most_ns = (most_ms >= 0.0).then_some((most_ms * 1e6) as u64);
            match most_ns {
                None if me.mailbox.under_way.get() == 0 => return Ok(None),
                Some(length) if me.mailbox.under_way.get() == 0 => me.wait(&ctx, Operation::Pause(length))?,
                _ => me.wait(&ctx, Operation::Join(most_ns))?,
            };
        }
        let event = me.mailbox.events.borrow_mut().pop_front();
        event.map(|event| happened(&ctx, &me, event)).transpose()
    });
    let me = Rc::clone(user);
    set!(object, ctx, "pause", move |ctx: Ctx<'js>, seconds: f64| -> Result<()> {
        me.wait(&ctx, Operation::Pause((seconds.max(0.0) * 1e9) as u64)).map(drop)
    });
    let me = Rc::clone(user);
    set!(object, ctx, "stop", move |ctx: Ctx<'js>, Text(reason): Text, ok: bool| -> Result<()> {
        me.ask(&ctx, Operation::Stop(Stop { reason, ok }))?;
        me.ask(&ctx, Operation::End).map(drop)
    });
    let me = Rc::clone(user);
    set!(object, ctx, "call", move |ctx: Ctx<'js>, values: Rest<Value<'js>>| -> Result<Object<'js>> {
        let wanted = wanted_of_protocol(&ctx, &values.0)?;
        ended(&ctx, &answer(&ctx, me.wait(&ctx, Operation::Call(wanted))?)?)
    });
    let me = Rc::clone(user);
    set!(object, ctx, "begin", move |ctx: Ctx<'js>, values: Rest<Value<'js>>| -> Result<f64> {
        let parts =
            values.0.first().and_then(Value::as_array).map(|parts| parts.iter::<String>().collect::<Result<Vec<_>>>());
        let parts = parts.transpose()?.unwrap_or_default().into_iter().map(Cow::Owned).collect();
        let wanted = wanted_of_protocol(&ctx, values.0.get(1..).unwrap_or_default())?;
        beside(&ctx, &me, Operation::Call(wanted), None, parts)
    });
    let me = Rc::clone(user);
    set!(object, ctx, "cancel", move |ctx: Ctx<'js>, id: f64| -> Result<()> {
        let slot = me.worker.tasks.borrow().iter().find(|(_, task)| task.id == id).map(|(slot, _)| *slot);
        slot.map_or(Ok(()), |slot| me.ask(&ctx, Operation::Cancel(slot)).map(drop))
    });
    let me = Rc::clone(user);
    set!(object, ctx, "release", move |ctx: Ctx<'js>, handle: u32| -> Result<()> {
        me.ask(&ctx, Operation::Release(handle)).map(drop)
    });
    Ok(())
}

/// Streams of messages, and the schemas by which they are read.
fn streams<'js>(object: &Functions<'_, 'js>, user: &Rc<User>) -> Result<()> {
    let ctx = object.ctx;
    let me = Rc::clone(user);
    set!(object, ctx, "readPart", move |ctx: Ctx<'js>, ticket: f64, what: String| -> Result<Value<'js>> {
        match me.ask(&ctx, Operation::Read { ticket: ticket as u64, what })? {
            Outcome::Read(value) => shown(&ctx, &value),
            Outcome::Refused(problem) => Err(refused(&ctx, &problem)),
            _ => Ok(Value::new_undefined(ctx)),
        }
    });
    let me = Rc::clone(user);
    set!(object, ctx, "schema", move |ctx: Ctx<'js>,
                                      kind: String,
                                      names: Vec<Text>,
                                      directories: Vec<Text>|
          -> Result<usize> {
        let (names, directories) = (texts(names), texts(directories));
        let modules = &me.modules;
        let beside = |path: &String| modules.beside(modules.script(), path);
        let schema = match kind.as_str() {
            "files" => {
                let directories: Vec<String> = directories.iter().map(beside).collect();
                let file = |name: &String| {
                    let mut places = directories
                        .iter()
                        .filter(|one| !one.is_empty())
                        .map(|directory| modules.beside(&format!("{directory}/"), name));
                    let found = places.find(|path| modules.read(path).is_ok());
                    found.unwrap_or_else(|| beside(name))
                };
                Schema::Files(names.iter().map(file).collect(), directories.clone())
            }
            "set" => Schema::Set(names.first().map(beside).unwrap_or_default()),
            _ => Schema::Server(names.into_iter().next().unwrap_or_default()),
        };
        let program = &me.worker.program;
        if me.id.get() != 0 && !program.is_silent && !program.schemas.contains(&schema) {
            return Err(refused(
                &ctx,
                "the server was not asked for its schema when the script was loaded, since a try with made-up answers did not come here: load() \
                 the .proto files in the init context",
            ));
        }
        Ok(me.worker.schema(schema))
    });
    let me = Rc::clone(user);
    set!(object, ctx, "stream", move |ctx: Ctx<'js>, values: Rest<Value<'js>>| -> Result<f64> {
        let mut wanted = wanted_of_protocol(&ctx, &values.0)?;
        wanted.streams = true;
        match me.wait(&ctx, Operation::Stream(wanted))? {
            Outcome::Begun(ticket) => Ok(ticket),
            Outcome::Refused(problem) => Err(refused(&ctx, &problem)),
            _ => Err(refused(&ctx, "the stream did not begin")),
        }
    });
    let me = Rc::clone(user);
    set!(object, ctx, "nextOf", move |ctx: Ctx<'js>, ticket: f64, part: String| -> Result<f64> {
        let next = Operation::NextMessage { ticket: ticket as u64, part, most_ns: None };
        beside(&ctx, &me, next, None, vec![Cow::Borrowed("head")])
    });
    let me = Rc::clone(user);
    set!(object, ctx, "say", move |ctx: Ctx<'js>, ticket: f64, values: Rest<Value<'js>>| -> Result<bool> {
        let values = values.0.iter().map(|value| bytes::plain(&ctx, value)).collect::<Result<Vec<_>>>()?;
        match me.wait(&ctx, Operation::Say { ticket: ticket as u64, values })? {
            Outcome::Refused(problem) => Err(refused(&ctx, &problem)),
            outcome => Ok(matches!(outcome, Outcome::Number(1))),
        }
    });
    Ok(())
}

/// A call of another protocol as the script's library gives it: client, label, timeout in ms, `open`, `on` or nothing with the handle of a
/// connection, whether it is optional, then the protocol's values.
fn wanted_of_protocol<'js>(ctx: &Ctx<'js>, values: &[Value<'js>]) -> Result<Wanted> {
    let number = |at: usize| values.get(at).and_then(Value::as_number).unwrap_or(0.0);
    let handle = number(4) as u32;
    let way = match values.get(3).and_then(Value::as_string).map(rquickjs::String::to_string).transpose()?.as_deref() {
        Some("open") => Placement::Open(handle),
        Some("on") => Placement::On(handle),
        _ => Placement::Any,
    };
    let own = values.get(6..).unwrap_or_default();
    let own = own.iter().map(|value| bytes::plain(ctx, value)).collect::<Result<Vec<_>>>()?;
    let timeout = number(2);
    let mut wanted = call(number(0) as usize, number(1) as u32, timeout_ns(timeout), own);
    wanted.way = way;
    wanted.optional = values.get(5).and_then(Value::as_bool) == Some(true);
    Ok(wanted)
}

/// Begins what runs beside the script. Returns the number of its event. A call of HTTP has a label, and may discard its answer's body.
fn beside(
    ctx: &Ctx<'_>,
    user: &Rc<User>,
    operation: Operation,
    http: Option<(u32, bool)>,
    parts: Parts,
) -> Result<f64> {
    let Outcome::Number(slot) = user.ask(ctx, Operation::Spawn)? else {
        return Err(refused(ctx, "no more calls can run beside this one"));
    };
    let id = user.worker.last_event.get() + 1.0;
    user.worker.last_event.set(id);
    user.mailbox.under_way.set(user.mailbox.under_way.get() + 1);
    let task = Task { owner: Rc::clone(&user.mailbox), id, http, parts, state: TaskState::Begins(operation) };
    user.worker.tasks.borrow_mut().insert(slot, task);
    Ok(id)
}

/// An event, as the script's library takes it.
fn happened<'js>(ctx: &Ctx<'js>, user: &User, event: Event) -> Result<Object<'js>> {
    let object = Object::new(ctx.clone())?;
    object.set("id", event.id)?;
    if let Some((label, discards)) = event.http {
        let answered = Answered::of_event(label, discards, event).map(Rc::new);
        let response = answered.map(|answered| user.response(ctx, None, answered)).transpose()?;
        object.set("response", response)?;
        return Ok(object);
    }
    if let Some(answer) = &event.answer {
        object.set("answer", ended(ctx, answer)?)?;
    }
    for (what, value) in event.parts.iter().zip(event.read) {
        let what = what.split(' ').next().unwrap_or_default();
        match (what, value) {
            (_, None) => {}
            ("body", Some(body)) => {
                object.set(what, ArrayBuffer::new_copy(ctx.clone(), body.as_bytes().unwrap_or_default())?)?;
            }
            (_, Some(value)) => object.set(what, shown(ctx, &value)?)?,
        }
    }
    Ok(object)
}

/// Names, checks, groups and figures.
fn counting<'js>(object: &Functions<'_, 'js>, user: &Rc<User>) -> Result<()> {
    let ctx = object.ctx;
    let me = Rc::clone(user);
    let label = move |ctx: Ctx<'js>,
                      Text(name): Text,
                      tags: Opt<Vec<Text>>,
                      scenario: Opt<Text>,
                      group: Opt<Text>,
                      ok: Opt<Option<String>>|
          -> Result<u32> {
        let tags = texts(tags.0.unwrap_or_default());
        let [scenario, group] = [scenario, group].map(|part| part.0.map(|part| part.0).unwrap_or_default());
        let place = (scenario, group);
        let ok = ok.0.flatten();
        let key = [
            &[name.as_str(), &place.0, &place.1, ok.as_deref().unwrap_or("")],
            tags.iter().map(String::as_str).collect::<Vec<_>>().as_slice(),
        ]
        .concat()
        .join("\0")
        .into_bytes();
        if let Some(label) = me.worker.label(&key) {
            return Ok(label);
        }
        let ok = match ok.as_deref().map(str::parse) {
            None => None,
            Some(Ok(ok)) => Some(ok),
            Some(Err(_)) => return Err(refused(&ctx, "the statuses that a request expects are not statuses")),
        };
        let Outcome::Number(label) = me.ask(&ctx, Operation::Label(Box::new(Labelled { name, tags, place, ok })))?
        else {
            return Ok(0);
        };
        me.worker.keep_label(key, label);
        Ok(label)
    };
    set!(object, ctx, "label", label);
    let me = Rc::clone(user);
    set!(object, ctx, "excuse", move |ctx: Ctx<'js>, label: u32, status: u16| -> Result<()> {
        me.ask(&ctx, Operation::Excuse { label, status }).map(drop)
    });
    let me = Rc::clone(user);
    set!(object, ctx, "check", move |ctx: Ctx<'js>, label: u32, Text(name): Text| -> Result<u32> {
        if let Some(id) = me.worker.check(label, &name) {
            return Ok(id);
        }
        let Outcome::Number(id) = me.ask(&ctx, Operation::Check { label, name: name.clone(), is_reason: false })?
        else {
            return Ok(0);
        };
        me.worker.keep_check(label, &name, id);
        Ok(id)
    });
    let me = Rc::clone(user);
    set!(object, ctx, "checkPassed", move |ctx: Ctx<'js>, id: u32| -> Result<()> { me.check_passed(&ctx, id) });
    let me = Rc::clone(user);
    set!(object, ctx, "checkFailed", move |ctx: Ctx<'js>,
                                           id: u32,
                                           ticket: f64,
                                           label: u32,
                                           first: bool,
                                           reason: Opt<Option<Text>>|
          -> Result<()> {
        let reason = reason.0.flatten().map(|reason| reason.0);
        let failed = Operation::CheckFailed { id, ticket: ticket as u64, label, first, reason };
        me.ask(&ctx, failed).map(drop)
    });
    let me = Rc::clone(user);
    set!(object, ctx, "groupBegin", move |ctx: Ctx<'js>, Text(path): Text| -> Result<u32> {
        Ok(match me.ask(&ctx, Operation::Group(path))? {
            Outcome::Number(id) => id,
            _ => 0,
        })
    });
    let me = Rc::clone(user);
    set!(object, ctx, "groupEnded", move |ctx: Ctx<'js>, id: u32, with: f64, without: f64, ok: bool| -> Result<()> {
        let (with_pauses_ns, without_pauses_ns) = (with.max(0.0) as u64, without.max(0.0) as u64);
        me.ask(&ctx, Operation::GroupEnded { id, with_pauses_ns, without_pauses_ns, ok }).map(drop)
    });
    let me = Rc::clone(user);
    set!(object, ctx, "figure", move |kind: String, Text(name): Text, is_time: Opt<bool>| -> usize {
        let kind = OwnKind::from_name(&kind).unwrap_or_default();
        me.worker.figure(kind, &name, if is_time.0 == Some(true) { "ms" } else { "" })
    });
    let me = Rc::clone(user);
    set!(object, ctx, "record", move |number: usize, value: f64| me.worker.record(number, value));
    Ok(())
}

/// The user, the clock, what is printed, chance.
fn surroundings<'js>(object: &Functions<'_, 'js>, user: &Rc<User>) -> Result<()> {
    let ctx = object.ctx;
    let me = Rc::clone(user);
    set!(object, ctx, "now", move || me.worker.now_ms());
    let me = Rc::clone(user);
    set!(object, ctx, "user", move |ctx: Ctx<'js>| -> Result<Object<'js>> {
        let object = Object::new(ctx)?;
        object.set("id", me.id.get() as f64)?;
        object.set("iteration", me.iteration.get() as f64)?;
        let scenario = if me.id.get() == 0 { "" } else { me.worker.program.scenario(me.place.get()) };
        object.set("scenario", scenario)?;
        object.set("worker", me.worker.number)?;
        Ok(object)
    });
    // Whether the user, and its scenario, is the one of the last time.
    let me = Rc::clone(user);
    set!(object, ctx, "isSameUser", move || {
        let now = (me.id.get(), me.place.get());
        me.told.replace(now) == now
    });
    let me = Rc::clone(user);
    set!(object, ctx, "iterationNumber", move || me.iteration.get() as f64);
    let me = Rc::clone(user);
    set!(object, ctx, "goesOnAlone", move |alone: bool| me.goes_on_alone.set(alone));
    let me = Rc::clone(user);
    set!(object, ctx, "hasCookies", move |has: bool| {
        me.has_cookies.set(has);
        if has {
            me.goes_on_alone.set(false);
        }
    });
    let me = Rc::clone(user);
    set!(object, ctx, "moved", move |place: u32| me.place_of_calls.set(place));
    let me = Rc::clone(user);
    set!(object, ctx, "env", move |ctx: Ctx<'js>| -> Result<Object<'js>> {
        let object = Object::new(ctx)?;
        for (name, value) in &me.worker.program.env {
            object.set(name.as_str(), value.as_str())?;
        }
        Ok(object)
    });
    let me = Rc::clone(user);
    set!(object, ctx, "options", move |ctx: Ctx<'js>| -> Result<Value<'js>> {
        match &me.worker.program.options {
            Some(options) => ctx.json_parse(options.as_str()),
            None => Object::new(ctx).map(Object::into_value),
        }
    });
    let me = Rc::clone(user);
    set!(object, ctx, "execution", move |ctx: Ctx<'js>| execution(&ctx, &me));
    let me = Rc::clone(user);
    set!(object, ctx, "failRun", move |Text(reason): Text| {
        me.print("error", &reason);
        me.worker.record(me.worker.figure(OwnKind::Counter, FAILS, ""), 1.0);
    });
    let me = Rc::clone(user);
    set!(object, ctx, "print", move |level: String, Text(text): Text| me.print(&level, &text));
    let me = Rc::clone(user);
    set!(object, ctx, "log", move |ctx: Ctx<'js>, level: String, Text(text): Text| -> Result<()> {
        if me.id.get() == 0 {
            me.print(&level, &text);
            return Ok(());
        }
        me.ask(&ctx, Operation::Log { level, text }).map(drop)
    });
    let me = Rc::clone(user);
    set!(object, ctx, "random", move || me.worker.random());
    let me = Rc::clone(user);
    // Runs what promises wait for. The first rejection that nobody has handled, if there is one.
    set!(object, ctx, "drain", move |ctx: Ctx<'js>| -> Result<Option<Object<'js>>> {
        me.run_jobs(&ctx)?;
        if me.rejected.borrow().is_empty() {
            return Ok(None);
        }
        let first = std::mem::take(&mut *me.rejected.borrow_mut()).into_iter().next();
        let Some((_, reason)) = first else { return Ok(None) };
        let object = Object::new(ctx.clone())?;
        object.set("reason", reason.restore(&ctx)?)?;
        Ok(Some(object))
    });
    Ok(())
}

/// What `k6/execution` tells of the run, as far as this process knows it.
fn execution<'js>(ctx: &Ctx<'js>, user: &Rc<User>) -> Result<Object<'js>> {
    let program = &user.worker.program;
    let place = user.place.get();
    let ran_ms = program.started.elapsed().as_secs_f64() * 1e3;
    let object = Object::new(ctx.clone())?;
    let instance = Object::new(ctx.clone())?;
    instance.set("iterationsInterrupted", 0)?;
    instance.set("iterationsCompleted", program.ended.load(Ordering::Relaxed) as f64)?;
    let users = program.users.load(Ordering::Relaxed);
    instance.set("vusActive", users)?;
    instance.set("vusInitialized", users)?;
    instance.set("currentTestRunDuration", ran_ms)?;
    object.set("instance", instance)?;
    if let Some(begun) = program.begun.get(place as usize) {
        let scenario = Object::new(ctx.clone())?;
        scenario.set("executor", program.executors.get(place as usize).map_or("", String::as_str))?;
        scenario.set("startTime", program.started_at_ms)?;
        scenario.set("progress", program.progress(place, ran_ms / 1e3, begun.load(Ordering::Relaxed)))?;
        scenario.set("iterationInInstance", user.iteration_in_test.get() as f64)?;
        scenario.set("iterationInTest", user.iteration_in_test.get() as f64)?;
        object.set("scenario", scenario)?;
    }
    let vu = Object::new(ctx.clone())?;
    vu.set("idInInstance", user.id.get() as f64)?;
    vu.set("iterationInScenario", user.iteration.get() as f64)?;
    object.set("vu", vu)?;
    Ok(object)
}

/// The exports of a module, at once: a promise of them would let the script's other promises go on in its midst.
pub(crate) fn imported<'js>(ctx: &Ctx<'js>, user: &User, id: &str) -> Result<Object<'js>> {
    let text =
        format!("import * as it from {}; import {{ take }} from '{NATIVE}'; take(it);", serde_json::Value::from(id));
    let evaluated = Module::evaluate(ctx.clone(), RECEIVER, text)?;
    // A module that waits at its top is one of the script's, at the script's top.
    user.finished::<Value<'js>>(ctx, &evaluated)?;
    let taken = user.taken.take().ok_or_else(|| refused(ctx, &format!("{id} was not loaded")))?;
    taken.restore(ctx)
}

fn texts(all: Vec<Text>) -> Vec<String> {
    all.into_iter().map(|text| text.0).collect()
}

/// Files, modules of `CommonJS`, arrays that all users share.
fn modules<'js>(object: &Functions<'_, 'js>, user: &Rc<User>) -> Result<()> {
    let ctx = object.ctx;
    let me = Rc::clone(user);
    set!(object, ctx, "readFile", move |ctx: Ctx<'js>, Text(path): Text, binary: Opt<bool>| -> Result<Value<'js>> {
        let modules = &me.modules;
        // The first file of the script's among those who ask.
        let from = (1..4).find_map(|level| {
            let name = ctx.script_or_module_name(level)?.to_string().ok()?;
            Modules::is_scripts(&name).then_some(name)
        });
        let from = from.unwrap_or_default();
        let read = modules
            .read(&modules.beside(&from, &path))
            .or_else(|_| modules.read(&modules.beside(modules.script(), &path)));
        let content = read.map_err(|problem| refused(&ctx, &problem))?;
        if binary.0 == Some(true) {
            return Ok(ArrayBuffer::new_copy(ctx, &content)?.into_value());
        }
        Ok(bytes::string(&ctx, &content)?.into_value())
    });
    let me = Rc::clone(user);
    set!(object, ctx, "requireModule", move |ctx: Ctx<'js>,
                                             Text(name): Text,
                                             referrer: Opt<String>|
          -> Result<Object<'js>> {
        let modules = &me.modules;
        let referrer =
            referrer.0.filter(|referrer| !referrer.is_empty()).unwrap_or_else(|| modules.script().to_owned());
        let id = modules.resolved(&referrer, &name).map_err(|problem| refused(&ctx, &problem))?;
        let object = Object::new(ctx.clone())?;
        object.set("id", id.as_str())?;
        match modules.wrapper(&ctx, &id)? {
            Some(wrapper) => object.set("wrapper", wrapper)?,
            None => object.set("namespace", imported(&ctx, &me, &id)?)?,
        }
        Ok(object)
    });
    let me = Rc::clone(user);
    set!(object, ctx, "take", move |ctx: Ctx<'js>, exports: Object<'js>| {
        *me.taken.borrow_mut() = Some(Persistent::save(&ctx, exports));
    });
    let me = Rc::clone(user);
    set!(object, ctx, "sharedMake", move |Text(name): Text, items: Vec<Text>| {
        me.worker.program.share(name, texts(items));
    });
    let me = Rc::clone(user);
    set!(object, ctx, "sharedLength", move |Text(name): Text| me.worker.program.shared(&name).map(|items| items.len()));
    let me = Rc::clone(user);
    set!(object, ctx, "sharedItem", move |Text(name): Text, at: usize| {
        me.worker.program.shared(&name).and_then(|items| items.get(at).cloned())
    });
    Ok(())
}
