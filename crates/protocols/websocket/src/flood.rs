//! The calls of a flood: on each connection one message over and over. The connection holds the message, so a user need not
//! supply it.

use std::sync::Arc;

use brunt_plan::plan::Plan;
use brunt_plan::secret::{REDACTED, Template};
use brunt_protocol::OptionsError;
use brunt_protocol::lines::{Lines, is_same, place_of};
use brunt_protocol::request_names;
use brunt_protocol::source::{Message, RequestSource, SourceEnd};

use super::handshake::Request;
use super::message::MOST_MESSAGE_BYTES;
use super::options::Options;

/// What the connections of a flood do: by their numbers, they take the requests and the messages in turn.
#[derive(Debug)]
pub(super) struct Turns {
    requests: Cycle<Arc<Request>>,
    echoes: Cycle<Arc<Echo>>,
    /// The names of the requests, and the index of each request's name; empty where they are not told apart.
    names: Vec<String>,
    named: Option<Cycle<u32>>,
}

impl Turns {
    /// Reads and checks the options of `plan`.
    ///
    /// # Errors
    /// Says which option or line is wrong.
    pub(super) fn prepare(options: &Options, plan: &Plan) -> Result<Self, OptionsError> {
        let echoes = match &options.body_lines {
            None => Cycle {
                first: Arc::new(Echo::new(&options.message.0, options).map_err(OptionsError)?),
                others: Vec::new(),
            },
            Some(lines) => echoes(lines, options)?,
        };
        let (requests, names, named) = match &options.url_lines {
            None => {
                let request = Request::prepare(options, &plan.target, |name| plan.environment.value(name))?;
                (Cycle { first: Arc::new(request), others: Vec::new() }, Vec::new(), None)
            }
            Some(lines) => requests(lines, options, plan)?,
        };
        Ok(Self { requests, echoes, names, named })
    }

    /// The handshake's request on the connection with this number, and the message that it sends.
    pub(super) fn turn(&self, number: u64) -> (Arc<Request>, Arc<Echo>) {
        (self.requests.turn(number), self.echoes.turn(number))
    }
}

/// At least one value, taken in turn.
#[derive(Debug)]
struct Cycle<T> {
    first: T,
    others: Vec<T>,
}

impl<T: Clone> Cycle<T> {
    /// `None` of no values.
    fn new(values: impl IntoIterator<Item = T>) -> Option<Self> {
        let mut values = values.into_iter();
        Some(Self { first: values.next()?, others: values.collect() })
    }

    fn turn(&self, number: u64) -> T {
        let at = number % (self.others.len() as u64 + 1);
        at.checked_sub(1).and_then(|at| self.others.get(at as usize)).unwrap_or(&self.first).clone()
    }
}

/// The message of each line.
fn echoes(lines: &Lines, options: &Options) -> Result<Cycle<Arc<Echo>>, OptionsError> {
    let message = |(number, range)| {
        let line = lines.content.0.get::<std::ops::Range<usize>>(range).unwrap_or_default();
        Echo::new(line, options).map(Arc::new).map_err(|problem| lines.wrong(number, &problem))
    };
    let echoes = lines.ranges().map(message).collect::<Result<Vec<_>, _>>()?;
    Cycle::new(echoes).ok_or_else(|| OptionsError(format!("{}: there is no message in it", lines.file)))
}

/// The request of each line, their names, and which of these each has.
type Named = (Cycle<Arc<Request>>, Vec<String>, Option<Cycle<u32>>);

fn requests(lines: &Lines, options: &Options, plan: &Plan) -> Result<Named, OptionsError> {
    let env = |name: &str| plan.environment.value(name);
    let (mut requests, mut paths) = (Vec::new(), Vec::new());
    for (number, line) in lines.requests() {
        let error = |problem: &str| lines.wrong(number, problem);
        let line = line.map_err(|problem| error(&problem))?;
        if line.contains(REDACTED) {
            return Err(error("a secret was left out of it when the plan was written; put it back"));
        }
        let (mut target, path, user) =
            place_of(line, &plan.target, ["ws", "wss"]).map_err(|problem| error(&problem))?;
        if !is_same(&target, &plan.target) {
            let (there, here) = (target.place(), plan.target.place());
            return Err(error(&format!(
                "{}://{there} is not the target {}://{here}, where all connections go: run brunt once for each host",
                target.scheme, plan.target.scheme
            )));
        }
        paths.push(path.split('?').next().unwrap_or_default().to_owned());
        target.path = path;
        // A line's own user goes before the user and the Authorization field of all lines.
        let own;
        let options = match user {
            None => options,
            Some(user) => {
                let user = if user.contains(':') { user } else { format!("{user}:") };
                let is_other = |name: &str| !name.eq_ignore_ascii_case("authorization");
                let headers = options.headers.iter().filter(|header| is_other(header.name())).cloned().collect();
                own = Options { headers, basic: Some(Template::literal(&user)), ..options.without_lines() };
                &own
            }
        };
        requests.push(Arc::new(Request::prepare(options, &target, env).map_err(|problem| error(&problem.0))?));
    }
    let requests =
        Cycle::new(requests).ok_or_else(|| OptionsError(format!("{}: there is no URL in it", lines.file)))?;
    let (names, named) = request_names::names(|| paths.iter().cloned());
    Ok((requests, names, Cycle::new(named)))
}

/// The source of a flood's calls, which say nothing themselves.
pub(super) struct Calls(pub(super) Arc<Turns>);

impl RequestSource for Calls {
    fn request(&mut self, _index: u64) -> Result<Message<'_>, SourceEnd> {
        Ok(Message::default())
    }

    fn names(&self) -> &[String] {
        &self.0.names
    }

    /// Connections decide it.
    fn name(&self, _index: u64) -> usize {
        usize::MAX
    }

    fn connection_name(&self, number: u64) -> Option<usize> {
        Some(self.0.named.as_ref()?.turn(number) as usize)
    }
}

/// The message that every call on a connection sends, and must get back.
#[derive(Debug)]
pub(super) struct Echo {
    pub(super) message: Vec<u8>,
    pub(super) text: bool,
    /// The compressed message, where permessage-deflate is offered.
    pub(super) compressed: Option<Vec<u8>>,
}

impl Echo {
    /// # Errors
    /// When the message cannot be sent, or not be taken back.
    fn new(message: &[u8], options: &Options) -> Result<Self, String> {
        if message.len() > MOST_MESSAGE_BYTES {
            return Err(format!(
                "the message has {} bytes, and at most {MOST_MESSAGE_BYTES} are taken back: give a shorter one",
                message.len()
            ));
        }
        if !options.binary && std::str::from_utf8(message).is_err() {
            return Err("the message is not UTF-8, as text must be: give --binary".to_owned());
        }
        Ok(Self {
            message: message.to_vec(),
            text: !options.binary,
            compressed: options.deflate.then(|| super::deflate::compress(message)),
        })
    }

    /// How a received message differs from the sent one; `None` if it does not.
    #[inline]
    pub(super) fn difference(&self, text: bool, body: &[u8]) -> Option<&'static str> {
        if body == self.message && text == self.text {
            None
        } else if text != self.text {
            Some(if text { "text came back for binary" } else { "binary came back for text" })
        } else if body.len() != self.message.len() {
            Some("a message of another length came back")
        } else {
            Some("a message with other content came back")
        }
    }
}
