//! Server reflection (`grpc.reflection.v1`, and `v1alpha` where the server has no v1): the schema as the server tells it.
//!
//! What is asked for is a call like any other, in which all requests are sent at once; who connects makes it ([`Inquiry`]). Files that the
//! others import are asked for until none is missing. What comes of it is a descriptor set, so that a plan carries it as one.

mod file_set;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use brunt_plan::content::Content;
use brunt_protocol::discovery::{DiscoveryReply, Inquiry};
use brunt_protocol::headers::Header;
use prost::Message as _;
use serde_json::json;

use crate::definition::Definition;
use crate::framing;
use crate::options::{Options, ProtoFile};
use crate::schema::{MOST_BYTES, MOST_FILES, Schema, SchemaError, is_named};
use crate::status;

use file_set::FileSet;

/// The schema of reflection itself.
const PROTO: &str = include_str!("../reflection.proto");
/// The versions of the service, in the order in which they are tried.
const VERSIONS: [&str; 2] = ["v1", "v1alpha"];
/// The beginning of the service's own names.
const OWN: &str = "grpc.reflection.";
/// The most calls for one schema, which allow for files that import each other that deep.
const MOST_CALLS: usize = 64;
/// The most requests in one call.
const MOST_REQUESTS: usize = 500;
/// The status `UNIMPLEMENTED`.
const UNIMPLEMENTED: u16 = 12;
/// The longest text of a server that an error shows, in characters.
const MOST_SHOWN: usize = 200;

/// Why a server's schema is not to be had, or cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReflectionError {
    /// No answer came.
    #[error("server reflection got no answer: {0}")]
    Unanswered(String),
    /// The server has no reflection service.
    #[error(
        "the server has no reflection (neither v1 nor v1alpha): turn it on there, or give the .proto files or a descriptor set"
    )]
    Unimplemented,
    /// The call ended with another status.
    #[error("server reflection ended with status {status}{}: {message}", named(*.status))]
    Refused {
        /// The status's number.
        status: u16,
        /// The server's message.
        message: String,
    },
    /// The answer is not one of reflection.
    #[error("server reflection: {0}")]
    Malformed(String),
    /// The server refuses one of the requests.
    #[error("server reflection: the server has no {what}: {message}")]
    Unknown {
        /// What was requested.
        what: String,
        /// The server's message.
        message: String,
    },
    /// No service is called that.
    #[error("the server has no service '{service}'; it has {known}")]
    Service {
        /// The requested name.
        service: String,
        /// The server's services.
        known: String,
    },
    /// Nothing has this name.
    #[error("the server has no service, method, message or enum '{symbol}'")]
    Symbol {
        /// The requested name.
        symbol: String,
    },
    /// Several are called that.
    #[error("give the full name of '{symbol}', as the server has {known}")]
    Ambiguous {
        /// The requested name.
        symbol: String,
        /// The possible full names.
        known: String,
    },
    /// The schema has more than is taken.
    #[error("server reflection: the schema has more than {most} {what}")]
    TooMuch {
        /// The limit.
        most: usize,
        /// What is limited.
        what: &'static str,
    },
    /// Files import each other in a circle.
    #[error("server reflection: files import each other in a circle: {0}")]
    Cycle(String),
    /// The files do not go together.
    #[error("server reflection: the files do not make a schema: {0}")]
    Schema(#[from] SchemaError),
}

/// A status's name in brackets, after a space.
fn named(status: u16) -> String {
    status::name(status).map_or(String::new(), |name| format!(" {name}"))
}

/// The part of a server's text that an error shows.
fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(MOST_SHOWN).collect()
}

/// A request on the stream, by the name of its field.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Request {
    List,
    File(String),
    Symbol(String),
}

impl Request {
    fn to_json(&self) -> serde_json::Value {
        match self {
            Self::List => json!({ "list_services": "*" }),
            Self::File(name) => json!({ "file_by_filename": name }),
            Self::Symbol(name) => json!({ "file_containing_symbol": name }),
        }
    }

    fn what(&self) -> String {
        match self {
            Self::List => "list of services".to_owned(),
            Self::File(name) => format!("file '{}'", shown(name)),
            Self::Symbol(name) => format!("'{}'", shown(name)),
        }
    }
}

/// `ServerReflectionResponse`.
#[derive(Clone, PartialEq, prost::Message)]
struct Response {
    #[prost(oneof = "MessageResponse", tags = "4, 6, 7")]
    told: Option<MessageResponse>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum MessageResponse {
    #[prost(message, tag = "4")]
    Files(Files),
    #[prost(message, tag = "6")]
    Services(Services),
    #[prost(message, tag = "7")]
    Error(Problem),
}

/// `FileDescriptorResponse`.
#[derive(Clone, PartialEq, prost::Message)]
struct Files {
    #[prost(bytes = "vec", repeated, tag = "1")]
    files: Vec<Vec<u8>>,
}

/// `ListServiceResponse`.
#[derive(Clone, PartialEq, prost::Message)]
struct Services {
    #[prost(message, repeated, tag = "1")]
    services: Vec<Service>,
}

/// `ServiceResponse`.
#[derive(Clone, PartialEq, prost::Message)]
struct Service {
    #[prost(string, tag = "1")]
    name: String,
}

/// `ErrorResponse`.
#[derive(Clone, PartialEq, prost::Message)]
struct Problem {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
}

/// A server that is asked for its schema.
pub struct Reflection<'a> {
    ask: &'a Inquiry<'a>,
    metadata: Vec<Header>,
    /// The server's version of the service, once it is known.
    version: Option<&'static str>,
    calls: usize,
}

impl<'a> Reflection<'a> {
    /// By calls that `ask` makes, with this metadata.
    pub fn new(ask: &'a Inquiry<'a>, metadata: &[Header]) -> Self {
        Self { ask, metadata: metadata.to_vec(), version: None, calls: 0 }
    }

    /// The names of the services, sorted.
    ///
    /// # Errors
    /// When the server does not name them.
    pub fn services(&mut self) -> Result<Vec<String>, ReflectionError> {
        let mut names = BTreeSet::new();
        for (_, told) in self.call(&[Request::List])? {
            match told {
                MessageResponse::Services(services) => {
                    names.extend(services.services.into_iter().map(|service| service.name));
                }
                MessageResponse::Error(problem) => return Err(unknown(&Request::List, &problem)),
                MessageResponse::Files(_) => {
                    return Err(ReflectionError::Malformed("files where services were asked for".to_owned()));
                }
            }
        }
        if names.len() > MOST_FILES {
            return Err(ReflectionError::TooMuch { most: MOST_FILES, what: "services" });
        }
        Ok(names.into_iter().collect())
    }

    /// The descriptor set of the services that this name may mean (`shop.Cart`, or `Cart` alone); of all there are but reflection's own
    /// without one.
    ///
    /// # Errors
    /// When there is no such service, or the server does not tell a schema that could be used.
    pub fn descriptor_set(&mut self, service: Option<&str>) -> Result<Vec<u8>, ReflectionError> {
        let all = self.services()?;
        let wanted: Vec<_> = match service {
            Some(service) => all.iter().filter(|known| is_named(known, service)).cloned().collect(),
            None => all.iter().filter(|known| !known.starts_with(OWN)).cloned().collect(),
        };
        if wanted.is_empty() {
            let known = if all.is_empty() { "none".to_owned() } else { shown(&all.join(", ")) };
            return Err(ReflectionError::Service { service: service.unwrap_or("*").to_owned(), known });
        }
        self.descriptor_set_of(&wanted)
    }

    /// The descriptor set of whatever has these full names: services, methods, messages.
    ///
    /// # Errors
    /// As [`descriptor_set`](Self::descriptor_set).
    pub fn descriptor_set_of(&mut self, symbols: &[String]) -> Result<Vec<u8>, ReflectionError> {
        let mut gathered = FileSet::default();
        let mut requests: Vec<_> = symbols.iter().cloned().map(Request::Symbol).collect();
        while !requests.is_empty() {
            for part in requests.chunks(MOST_REQUESTS) {
                for (request, told) in self.call(part)? {
                    match told {
                        MessageResponse::Files(files) => gathered.add(files.files)?,
                        MessageResponse::Error(problem) => gathered.refused(&request, &problem)?,
                        MessageResponse::Services(_) => {
                            return Err(ReflectionError::Malformed("services where files were asked for".to_owned()));
                        }
                    }
                }
            }
            let missing = gathered.missing();
            if missing == requests {
                let names: Vec<_> = missing.iter().map(Request::what).collect();
                let problem = format!("it was asked for {} and answered with other files", shown(&names.join(", ")));
                return Err(ReflectionError::Malformed(problem));
            }
            requests = missing;
        }
        let set = gathered.to_set()?;
        let Err(error) = Schema::of_descriptor_set(&set) else { return Ok(set) };
        if !gathered.import_what_is_used() {
            return Err(error.into());
        }
        let set = gathered.to_set()?;
        Schema::of_descriptor_set(&set)?;
        Ok(set)
    }

    /// The definition that the server has under this name, which is complete or long enough to be unique.
    ///
    /// # Errors
    /// When it has none or several of that name, or as [`descriptor_set`](Self::descriptor_set).
    pub fn definition(&mut self, symbol: &str) -> Result<Definition, ReflectionError> {
        let symbol = symbol.trim_start_matches(['.', '/']);
        let container = symbol.split('/').next().unwrap_or(symbol);
        match self.descriptor_set_of(&[container.to_owned()]) {
            Ok(set) => {
                if let Some(found) = Definition::find(&Schema::of_descriptor_set(&set)?, symbol) {
                    return Ok(found);
                }
            }
            Err(ReflectionError::Unknown { .. }) => {}
            Err(error) => return Err(error),
        }
        let schema = Schema::of_descriptor_set(&self.descriptor_set(None)?)?;
        if let Some(found) = Definition::find(&schema, symbol) {
            return Ok(found);
        }
        let mut named = Definition::find_by_end(&schema, symbol);
        match (named.pop(), named.is_empty()) {
            (Some(found), true) => Ok(found),
            (None, _) => Err(ReflectionError::Symbol { symbol: shown(symbol) }),
            (Some(last), false) => {
                let names: Vec<_> = named.iter().chain([&last]).map(Definition::full_name).collect();
                Err(ReflectionError::Ambiguous { symbol: shown(symbol), known: shown(&names.join(", ")) })
            }
        }
    }

    /// Makes one call with these requests, and returns each with its answer.
    fn call(&mut self, requests: &[Request]) -> Result<Vec<(Request, MessageResponse)>, ReflectionError> {
        let versions: &[&'static str] = self.version.as_ref().map_or(&VERSIONS, std::slice::from_ref);
        for version in versions {
            self.calls += 1;
            if self.calls > MOST_CALLS {
                return Err(ReflectionError::TooMuch {
                    most: MOST_CALLS,
                    what: "layers of files that import each other",
                });
            }
            let reply =
                (self.ask)(&self.options(version, requests).to_protocol()).map_err(ReflectionError::Unanswered)?;
            if reply.status != UNIMPLEMENTED {
                self.version = Some(version);
                return told(requests, &reply);
            }
        }
        Err(ReflectionError::Unimplemented)
    }

    fn options(&self, version: &str, requests: &[Request]) -> Options {
        Options {
            proto: vec![ProtoFile {
                file: "reflection.proto".to_owned(),
                content: Content(PROTO.replace("VERSION", version).into_bytes()),
            }],
            descriptor_set: None,
            call: format!("{OWN}{version}.ServerReflection/ServerReflectionInfo"),
            args: vec![requests.iter().map(Request::to_json).collect()],
            args_lines: None,
            headers: self.metadata.clone(),
            compress: None,
            max_answer_bytes: MOST_BYTES as u32,
            stall_ns: None,
            keep_alive_ns: None,
            trace_ratio: None,
        }
    }
}

/// The requests, each with its answer.
fn told(requests: &[Request], reply: &DiscoveryReply) -> Result<Vec<(Request, MessageResponse)>, ReflectionError> {
    if reply.status != 0 {
        let field = |name: &str| {
            let head = String::from_utf8_lossy(&reply.kept.head).into_owned();
            head.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(": ")?.to_owned()))
        };
        let message = field("grpc-message").map_or_else(String::new, |text| status::message(text.as_bytes()));
        let message = if message.is_empty() { "the server does not say why".to_owned() } else { shown(&message) };
        return Err(ReflectionError::Refused { status: reply.status, message });
    }
    let answers: Vec<_> = framing::messages(&reply.kept.body).collect();
    if answers.len() != requests.len() {
        let problem = format!("{} requests, and {} answers", requests.len(), answers.len());
        return Err(ReflectionError::Malformed(problem));
    }
    let read = |(request, (_, message)): (&Request, (bool, &[u8]))| {
        let response = Response::decode(message).map_err(|error| {
            ReflectionError::Malformed(format!("an answer that is not a reflection response: {error}"))
        })?;
        let told =
            response.told.ok_or_else(|| ReflectionError::Malformed("an answer with nothing in it".to_owned()))?;
        Ok((request.clone(), told))
    };
    requests.iter().zip(answers).map(read).collect()
}

fn unknown(request: &Request, problem: &Problem) -> ReflectionError {
    let name = u16::try_from(problem.code).ok().and_then(status::name).unwrap_or("an error");
    ReflectionError::Unknown { what: request.what(), message: format!("{name} {}", shown(&problem.message)) }
}
