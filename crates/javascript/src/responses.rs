//! Responses of HTTP: what a script holds of an answer, whose parts it reads when it wants them.
//!
//! The engine keeps an answer until its user waits again. Before that, the parts of each Response that the script still holds are taken over.
#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use brunt_protocol::scenario::Value as Plain;
use brunt_script::Operation;
use rquickjs::class::{JsClass, Readable, Trace, Tracer};
use rquickjs::function::Constructor;
use rquickjs::{ArrayBuffer, Class, Ctx, Function, JsLifetime, Object, Result, Value, qjs};

use crate::bytes::{self, Text};
use crate::functions::Functions;
use crate::members::member;
use crate::outcome::{Answer, Outcome};
use crate::user::{Name, Open, User};
use crate::values::{refused, shown};
use crate::worker::Event;

/// The bit of an answer's flags that says that it sets cookies.
pub(crate) const SETS_COOKIES: u32 = 1;

/// A Response. The script sees it through the functions below, which `library/responses.js` gives its prototype.
pub(crate) struct Response<'js> {
    answered: Rc<Answered>,
    /// The request that was answered, as `library/exchanges.js` has it.
    hop: RefCell<Option<Value<'js>>>,
    /// What was made of the body: a text, a buffer, and the value of its JSON.
    made: RefCell<Option<Box<[Option<Value<'js>>; 3]>>>,
    /// Members that were found by scanning.
    members: Cell<u32>,
}

/// Places in [`Response::made`].
const TEXT: usize = 0;
const BYTES: usize = 1;
const JSON: usize = 2;

/// The result of a request: an answer, or the reason why it failed.
pub(crate) struct Answered {
    label: u32,
    answer: Answer,
    /// Whether nobody reads its body.
    discards: bool,
    /// Whether a check of it has failed.
    is_judged: Cell<bool>,
    /// Whether the engine still has it.
    is_open: Cell<bool>,
    /// Its parts once they were taken over, by their place in [`PARTS`].
    kept: RefCell<Option<Box<[Option<Plain<'static>>; PARTS.len()]>>>,
}

/// The parts that are taken over.
const PARTS: [&str; 3] = ["body", "headers", "exchange"];

impl<'js> Trace<'js> for Response<'js> {
    fn trace<'a>(&self, tracer: Tracer<'a, 'js>) {
        // Whoever writes to these holds nothing of the collector's meanwhile.
        if let Ok(hop) = self.hop.try_borrow() {
            hop.trace(tracer);
        }
        if let Ok(made) = self.made.try_borrow() {
            made.iter().flat_map(|made| made.iter()).for_each(|made| made.trace(tracer));
        }
    }
}

// SAFETY: its only lifetime is that of the values that it holds, which `Changed` replaces.
unsafe impl<'js> JsLifetime<'js> for Response<'js> {
    type Changed<'to> = Response<'to>;
}

impl<'js> JsClass<'js> for Response<'js> {
    const NAME: &'static str = "Response";
    type Mutable = Readable;

    fn constructor(_: &Ctx<'js>) -> Result<Option<Constructor<'js>>> {
        Ok(None)
    }
}

impl Answered {
    pub(crate) fn new(label: u32, answer: Answer, discards: bool, is_open: bool) -> Self {
        Self {
            label,
            answer,
            discards,
            is_judged: Cell::new(false),
            is_open: Cell::new(is_open),
            kept: RefCell::default(),
        }
    }

    /// An answer that came to a call beside the script, with its parts.
    pub(crate) fn of_event(label: u32, discards: bool, event: Event) -> Option<Self> {
        let answered = Self::new(label, event.answer?, discards, false);
        for (what, value) in event.parts.iter().zip(event.read) {
            answered.take_over(what, value);
        }
        Some(answered)
    }

    /// Keeps a part.
    fn take_over(&self, what: &str, value: Option<Plain<'static>>) {
        if let Some(place) = PARTS.iter().position(|part| *part == what)
            && let Some(kept) = self.kept.borrow_mut().get_or_insert_default().get_mut(place)
        {
            *kept = value;
        }
    }

    /// Whether there is an answer to read parts of.
    fn is_answer(&self) -> bool {
        self.answer.failure.is_none()
    }

    /// A part of the answer: from the engine while that has the answer, then the copy; `Nil` where the answer lacks it.
    fn part(&self, user: &User, ctx: &Ctx<'_>, what: &str) -> Result<Plain<'static>> {
        if self.is_open.get() {
            let read = Operation::Read { ticket: self.answer.ticket as u64, what: what.to_owned() };
            return match user.ask(ctx, read)? {
                Outcome::Read(value) => Ok(value),
                Outcome::Refused(problem) => Err(refused(ctx, &problem)),
                _ => Ok(Plain::Nil),
            };
        }
        let place = PARTS.iter().position(|part| *part == what);
        let kept = self.kept.borrow();
        Ok(place.and_then(|place| kept.as_ref()?.get(place)?.clone()).unwrap_or(Plain::Nil))
    }
}

impl Open for Answered {
    /// Takes over all parts.
    fn keep(&self, user: &User, ctx: &Ctx<'_>) -> Result<()> {
        if !self.is_open.get() {
            return Ok(());
        }
        for what in PARTS {
            let is_read = self.is_answer() && !(self.discards && what == "body");
            if is_read {
                let value = self.part(user, ctx, what)?;
                self.take_over(what, Some(value));
            }
        }
        self.is_open.set(false);
        Ok(())
    }
}

impl User {
    /// A Response of an answer that the engine has.
    pub(crate) fn respond<'js>(
        &self,
        ctx: &Ctx<'js>,
        hop: Value<'js>,
        (label, discards): (u32, bool),
        answer: Answer,
    ) -> Result<Class<'js, Response<'js>>> {
        let is_answer = answer.failure.is_none();
        let answered = Rc::new(Answered::new(label, answer, discards, is_answer));
        if is_answer {
            let open: Weak<dyn Open> = Rc::downgrade(&answered) as Weak<Answered>;
            self.open.borrow_mut().push(open);
        }
        self.response(ctx, Some(hop), answered)
    }

    /// The Response of an answer.
    pub(crate) fn response<'js>(
        &self,
        ctx: &Ctx<'js>,
        hop: Option<Value<'js>>,
        answered: Rc<Answered>,
    ) -> Result<Class<'js, Response<'js>>> {
        let status = answered.answer.status;
        let object = Response { answered, hop: RefCell::new(hop), made: RefCell::default(), members: Cell::new(0) };
        let object = Class::instance(ctx.clone(), object)?;
        let (atom, flags) = (self.atom(ctx, Name::Status), qjs::JS_PROP_C_W_E as _);
        let status = Value::new_int(ctx.clone(), i32::from(status));
        // SAFETY: the object is alive and this context's; a number is counted by nobody.
        let defined = unsafe {
            qjs::JS_DefinePropertyValue(ctx.as_raw().as_ptr(), object.as_raw(), atom, status.as_raw(), flags)
        };
        if defined < 0 { Err(rquickjs::Error::Exception) } else { Ok(object) }
    }

    /// Counts a check that held.
    pub(crate) fn check_passed(&self, ctx: &Ctx<'_>, id: u32) -> Result<()> {
        self.worker.passed(id);
        if self.worker.traces.get() { self.ask(ctx, Operation::CheckPassed(id)).map(drop) } else { Ok(()) }
    }

    /// Counts a check that did not hold, of a Response or of something else, with the error that it has thrown.
    pub(crate) fn check_failed<'js>(
        &self,
        ctx: &Ctx<'js>,
        (id, label): (u32, u32),
        response: Option<&Class<'js, Response<'js>>>,
        reason: Option<String>,
    ) -> Result<()> {
        let answered = response.map(|response| Rc::clone(&response.borrow().answered));
        let first = answered.as_ref().is_some_and(|answered| !answered.is_judged.replace(true));
        let ticket = answered.map_or(0, |answered| answered.answer.ticket as u64);
        self.ask(ctx, Operation::CheckFailed { id, ticket, label, first, reason }).map(drop)
    }
}

impl Response<'_> {
    /// The number of what its call counts as.
    pub(crate) fn label(&self) -> u32 {
        self.answered.label
    }
}

/// Limits in bytes of a body and in reads, above which the whole JSON is parsed once.
const MOST_SCANNED: (usize, u32) = (16 << 10, 4);

/// A member of a Response's JSON that is neither list nor object, found by scanning the text; `None`: the caller parses the whole.
pub(crate) fn json_member<'js>(
    ctx: &Ctx<'js>,
    user: &User,
    given: &Class<'js, Response<'js>>,
    name: &str,
) -> Result<Option<Value<'js>>> {
    let response = given.borrow();
    let answered = &response.answered;
    let members = response.members.replace(response.members.get() + 1);
    let is_parsed = response.made.borrow().as_ref().is_some_and(|made| made.get(JSON).is_some_and(Option::is_some));
    if is_parsed || members >= MOST_SCANNED.1 || answered.discards || !answered.is_answer() {
        return Ok(None);
    }
    let body = answered.part(user, ctx, "body")?;
    let body = body.as_bytes().unwrap_or_default();
    // What is not UTF-8 is replaced where all is parsed.
    if body.len() > MOST_SCANNED.0 || std::str::from_utf8(body).is_err() {
        return Ok(None);
    }
    match member(body, name.as_bytes()) {
        None | Some([b'[' | b'{', ..]) => Ok(None),
        Some([]) => Ok(Some(Value::new_undefined(ctx.clone()))),
        Some(value) => ctx.json_parse(value).map(Some),
    }
}

/// The value of a Response's JSON; `None` where it has no body.
pub(crate) fn json<'js>(ctx: &Ctx<'js>, user: &User, given: &Class<'js, Response<'js>>) -> Result<Option<Value<'js>>> {
    made(ctx, user, given, JSON, |body| ctx.json_parse(String::from_utf8_lossy(body).into_owned()))
}

/// The times of a call in milliseconds, as k6 names them, of how it went. Sending ends when the socket has the last byte.
fn timings<'js>(ctx: &Ctx<'js>, exchange: &Plain<'_>) -> Result<Object<'js>> {
    let of = |place: usize| exchange.entries().get(place).and_then(|(_, value)| value.as_number()).unwrap_or(0.0) * 1e3;
    let (response, service, first_byte, connecting, handshaking) = (of(0), of(1), of(2), of(3), of(4));
    let sending = of(10);
    let object = Object::new(ctx.clone())?;
    object.set("blocked", (response - service - connecting - handshaking).max(0.0))?;
    object.set("looking_up", 0.0)?;
    object.set("connecting", connecting)?;
    object.set("tls_handshaking", handshaking)?;
    object.set("sending", sending)?;
    object.set("waiting", (first_byte - sending).max(0.0))?;
    object.set("receiving", (service - first_byte).max(0.0))?;
    object.set("duration", service)?;
    Ok(object)
}

/// The peer of a call, of how it went. Go names versions and suites of TLS otherwise than rustls.
fn peer<'js>(ctx: &Ctx<'js>, exchange: &Plain<'_>) -> Result<Object<'js>> {
    let of = |place: usize| exchange.entries().get(place).map_or(&Plain::Nil, |(_, value)| value);
    let text = |place: usize| of(place).as_str().unwrap_or_default();
    let object = Object::new(ctx.clone())?;
    object.set("ip", text(5))?;
    object.set("port", of(6).as_number().unwrap_or(0.0))?;
    object.set("proto", text(7))?;
    object.set("tls_version", text(8).replace("TLSv1_", "tls1."))?;
    object.set("tls_cipher_suite", text(9).replace("TLS13_", "TLS_"))?;
    Ok(object)
}

/// Adds the functions by which Responses are read.
pub(crate) fn add<'js>(ctx: &Ctx<'js>, object: &Functions<'_, 'js>, user: &Rc<User>) -> Result<()> {
    type Given<'js> = Class<'js, Response<'js>>;
    macro_rules! set {
        ($name:literal, $function:expr) => {
            object.set($name, || Function::new(ctx.clone(), $function))?
        };
    }
    set!("responsePrototype", move |ctx: Ctx<'js>| Class::<Response<'js>>::prototype(&ctx));
    set!("statusText", status_text);
    set!("labelOf", move |value: Value<'js>| {
        let response = value.as_object().and_then(|object| object.as_class::<Response<'js>>());
        response.map(|response| response.borrow().answered.label)
    });
    set!("ticketOf", move |given: Given<'js>| given.borrow().answered.answer.ticket);
    // Whether a check of the answer fails for the first time.
    set!("failsFirst", move |given: Given<'js>| !given.borrow().answered.is_judged.replace(true));
    set!("setsCookies", move |given: Given<'js>| given.borrow().answered.answer.flags & SETS_COOKIES != 0);
    set!("isAnswer", move |given: Given<'js>| given.borrow().answered.is_answer());
    set!("failureOf", move |given: Given<'js>| -> Option<Vec<String>> {
        let failure = given.borrow().answered.answer.failure.clone();
        failure.map(|failure| vec![failure.0, failure.1])
    });
    set!("hopOf", move |given: Given<'js>| given.borrow().hop.borrow().clone());
    set!("setHop", move |given: Given<'js>, hop: Value<'js>| drop(given.borrow().hop.replace(Some(hop))));
    // The Response of a request that could not be made, for this reason.
    let me = Rc::clone(user);
    set!("unsent", move |ctx: Ctx<'js>, hop: Value<'js>, Text(reason): Text| {
        me.response(&ctx, Some(hop), Rc::new(Answered::new(0, Answer::refused(reason), false, false)))
    });
    let me = Rc::clone(user);
    set!("readText", move |ctx: Ctx<'js>, given: Given<'js>| -> Result<Value<'js>> {
        let text = made(&ctx, &me, &given, TEXT, |body| bytes::string(&ctx, body).map(rquickjs::String::into_value))?;
        Ok(text.unwrap_or_else(|| Value::new_null(ctx)))
    });
    let me = Rc::clone(user);
    set!("readBytes", move |ctx: Ctx<'js>, given: Given<'js>| -> Result<Value<'js>> {
        let bytes = made(&ctx, &me, &given, BYTES, |body| {
            ArrayBuffer::new_copy(ctx.clone(), body).map(ArrayBuffer::into_value)
        })?;
        Ok(bytes.unwrap_or_else(|| Value::new_null(ctx)))
    });
    let me = Rc::clone(user);
    set!("readJson", move |ctx: Ctx<'js>, given: Given<'js>| -> Result<Option<Value<'js>>> { json(&ctx, &me, &given) });
    let me = Rc::clone(user);
    set!("readHeaders", move |ctx: Ctx<'js>, given: Given<'js>| -> Result<Value<'js>> {
        let headers = given.borrow().answered.part(&me, &ctx, "headers")?;
        if headers == Plain::Nil { Object::new(ctx).map(Object::into_value) } else { shown(&ctx, &headers) }
    });
    let me = Rc::clone(user);
    set!("readTimings", move |ctx: Ctx<'js>, given: Given<'js>| -> Result<Object<'js>> {
        timings(&ctx, &given.borrow().answered.part(&me, &ctx, "exchange")?)
    });
    let me = Rc::clone(user);
    set!("readPeer", move |ctx: Ctx<'js>, given: Given<'js>| -> Result<Object<'js>> {
        peer(&ctx, &given.borrow().answered.part(&me, &ctx, "exchange")?)
    });
    // Sizes of an answer that the engine still has.
    let me = Rc::clone(user);
    set!("readSizes", move |ctx: Ctx<'js>, given: Given<'js>| -> Result<Value<'js>> {
        shown(&ctx, &given.borrow().answered.part(&me, &ctx, "sizes")?)
    });
    Ok(())
}

/// A status and its text, as Go shows them; empty where there was no answer.
fn status_text(status: u16) -> String {
    let text = match status {
        0 => return String::new(),
        100 => "Continue",
        101 => "Switching Protocols",
        102 => "Processing",
        103 => "Early Hints",
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        203 => "Non-Authoritative Information",
        204 => "No Content",
        205 => "Reset Content",
        206 => "Partial Content",
        207 => "Multi-Status",
        208 => "Already Reported",
        226 => "IM Used",
        300 => "Multiple Choices",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        305 => "Use Proxy",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        407 => "Proxy Authentication Required",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Request Entity Too Large",
        414 => "Request URI Too Long",
        415 => "Unsupported Media Type",
        416 => "Requested Range Not Satisfiable",
        417 => "Expectation Failed",
        418 => "I'm a teapot",
        421 => "Misdirected Request",
        422 => "Unprocessable Entity",
        423 => "Locked",
        424 => "Failed Dependency",
        425 => "Too Early",
        426 => "Upgrade Required",
        428 => "Precondition Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        451 => "Unavailable For Legal Reasons",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        506 => "Variant Also Negotiates",
        507 => "Insufficient Storage",
        508 => "Loop Detected",
        510 => "Not Extended",
        511 => "Network Authentication Required",
        _ => return status.to_string(),
    };
    format!("{status} {text}")
}

/// What `make` makes of the body, made once; `None` where there is no body.
fn made<'js>(
    ctx: &Ctx<'js>,
    user: &User,
    given: &Class<'js, Response<'js>>,
    place: usize,
    make: impl FnOnce(&[u8]) -> Result<Value<'js>>,
) -> Result<Option<Value<'js>>> {
    let response = given.borrow();
    let known = response.made.borrow().as_ref().and_then(|made| made.get(place)?.clone());
    let answered = &response.answered;
    if known.is_some() || answered.discards || !answered.is_answer() {
        return Ok(known);
    }
    let body = answered.part(user, ctx, "body")?;
    let value = make(body.as_bytes().unwrap_or_default())?;
    if let Some(made) = response.made.borrow_mut().get_or_insert_default().get_mut(place) {
        *made = Some(value.clone());
    }
    Ok(Some(value))
}

/// The end of a call.
pub(crate) fn answer(ctx: &Ctx<'_>, outcome: Outcome) -> Result<Answer> {
    match outcome {
        Outcome::Ended(answer) => Ok(answer),
        Outcome::Refused(problem) => Err(refused(ctx, &problem)),
        _ => Err(refused(ctx, "the call came to no end")),
    }
}
