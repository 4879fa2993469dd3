//! gRPC (gRPC over HTTP/2, `PROTOCOL-HTTP2.md`): calls from `.proto` files or a descriptor set, with no code generated.
//!
//! A plan carries the schema by content, also where the server was asked for it ([`reflection`]). Before the load it is compiled ([`schema`]), the arguments are fitted to it
//! ([`fitting`]), and each call is written down: its head, which a connection makes a header block of once, and its messages,
//! framed ([`framing`]). Answers are checked as they come: that they are gRPC, that their messages are whole, of the method's type
//! (`decoding`), as many as it has, and within the limit, and that they end with a status.
//!
//! A call's status is that in its trailers: 0 is OK, and the others are names ([`status::NAMES`]).
//!
//! ```
//! use brunt_grpc::schema::{Sources, compile, path_of};
//!
//! let proto = "syntax = \"proto3\"; package shop; message Id { int64 id = 1; } service Shop { rpc Get(Id) returns (Id); }";
//! let schema = compile(&["shop.proto".to_owned()], &Sources::from([("shop.proto".to_owned(), proto.to_owned())])).unwrap();
//! assert_eq!(path_of(&schema.method("Get").unwrap()), "shop.Shop/Get");
//! ```

mod client;
mod decoding;
pub mod definition;
pub mod editions;
pub mod fitting;
mod flags;
pub mod framing;
mod narration;
pub mod options;
pub mod reflection;
mod request;
mod scenario;
pub mod schema;
mod scripted;
pub mod status;

use std::collections::BTreeMap;
use std::sync::Arc;

use brunt_plan::plan::{Plan, ProtocolOptions};
use brunt_protocol::arguments::place_of;
use brunt_protocol::flags::{Flag, FlagValues, shown_options};
use brunt_protocol::headers::header_value;
use brunt_protocol::scenario::Dialect;
use brunt_protocol::source::{Message, RequestSource, SourceEnd};
use brunt_protocol::traced::{TRACEPARENT, TraceIds, Tracing};
use brunt_protocol::{Client, Narrator, OptionsError, Prepared, Protocol, Scheme, read_options};
use brunt_record::outcome::OkStatus;
use prost_reflect::MethodDescriptor;
use prost_reflect::prost_types::method_options::IdempotencyLevel;

use self::client::{GrpcStreams, Limits, STREAMS, keep_alive_s};
use self::narration::GrpcNarrator;
use self::options::{Compression, Options, schema_of};
use self::request::Envelope;
use self::schema::Schema;

/// gRPC over TCP, TLS and Unix sockets.
pub struct Grpc;

impl Protocol for Grpc {
    fn name(&self) -> &'static str {
        "gRPC"
    }

    fn schemes(&self) -> &[Scheme] {
        &[
            Scheme { name: "grpc", default_port: request::DEFAULT_PORT, tls: false },
            Scheme { name: "grpcs", default_port: 443, tls: true },
        ]
    }

    fn flags(&self) -> &[Flag] {
        &flags::FLAGS
    }

    fn multiplexes(&self, _given: &FlagValues) -> bool {
        true
    }

    fn options(&self, given: &FlagValues) -> Result<ProtocolOptions, OptionsError> {
        given.refuse_user("grpc")?;
        Ok(flags::options(given)?.to_protocol())
    }

    fn shown(&self, options: &serde_json::Value) -> serde_json::Value {
        let read = serde_json::from_value::<Options>(options.clone());
        let shown = read.map_or_else(|_| options.clone(), |options| options.to_protocol().shown().clone());
        // Arguments may hold secrets, too, which are recognised by the names of their fields.
        shown_options(&shown, self.flags())
    }

    fn dialect(&self) -> Option<Box<dyn Dialect>> {
        Some(Box::new(scenario::GrpcDialect))
    }

    /// The other statuses are errors.
    fn ok_status(&self) -> OkStatus {
        OkStatus::only(0)
    }

    fn prepare(&self, plan: &Plan) -> Result<Arc<dyn Prepared>, OptionsError> {
        let options: Options = read_options(plan, self.name())?;
        if plan.target.path != "/" {
            let path = &plan.target.path;
            let problem = format!("a gRPC server has no paths: leave '{path}' out, and name the method by --call");
            return Err(OptionsError(problem));
        }
        // Calls before the load, and those of scripts, have the statuses of all protocols.
        let is_default = [OkStatus::default(), OkStatus::of_scenarios()].contains(&plan.ok_status);
        if !is_default && plan.ok_status.highest() >= status::NAMES.len() as u16 {
            let problem =
                format!("--ok-status: gRPC's statuses are 0 (OK) to 16, so there is no {}", plan.ok_status.highest());
            return Err(OptionsError(problem));
        }
        Ok(Arc::new(PreparedGrpc::new(&options, plan)?))
    }
}

struct PreparedGrpc {
    schema: Arc<Schema>,
    is_secure: bool,
    limits: Arc<Limits>,
    flood: Arc<Flood>,
}

impl PreparedGrpc {
    fn new(options: &Options, plan: &Plan) -> Result<Self, OptionsError> {
        let schema = schema_of(&options.proto, options.descriptor_set.as_ref())?;
        let method =
            schema.method(&options.call).map_err(|error| OptionsError(format!("--call {}: {error}", options.call)))?;
        let metadata: Result<Vec<_>, OptionsError> = options
            .headers
            .iter()
            .map(|header| Ok((header.name().to_owned(), header_value(header, |name| std::env::var(name).ok())?)))
            .collect();
        check_stall(options, &method)?;
        let envelope = Envelope::new(&plan.target, &metadata?, options.compress, Some(plan.timeout_ns))?;
        let flood = Flood::new(&method, &envelope, options)?;
        Ok(Self {
            schema: Arc::new(schema),
            is_secure: plan.target.scheme == "grpcs",
            limits: Arc::new(Limits {
                message_bytes: options.max_answer_bytes,
                stall_ns: options.stall_ns.unwrap_or(u64::MAX),
                keep_alive_s: options.keep_alive_ns.map(keep_alive_s).transpose().map_err(OptionsError)?,
                answers: vec![method.output()],
            }),
            flood: Arc::new(flood),
        })
    }
}

/// Checks that a longest gap between messages means something.
fn check_stall(options: &Options, method: &MethodDescriptor) -> Result<(), OptionsError> {
    match options.stall_ns {
        Some(0) => Err(OptionsError("stall_ns must be above 0; leave it out for no limit".to_owned())),
        Some(_) if !method.is_server_streaming() => {
            let call = &options.call;
            let problem = format!(
                "--stall-timeout is for methods that answer with a stream, and {call} answers with one message: leave it out"
            );
            Err(OptionsError(problem))
        }
        _ => Ok(()),
    }
}

impl Prepared for PreparedGrpc {
    fn client(&self, keep: bool) -> Box<dyn Client> {
        Box::new(GrpcStreams::client(keep, self.is_secure, &self.limits))
    }

    fn user(&self) -> Box<dyn RequestSource> {
        Box::new(FloodUser { flood: Arc::clone(&self.flood), traced: Vec::new() })
    }

    fn alpn(&self) -> Vec<Vec<u8>> {
        vec![b"h2".to_vec()]
    }

    fn status_names(&self) -> BTreeMap<u16, String> {
        (0..).zip(status::NAMES).map(|(status, name)| (status, name.to_owned())).collect()
    }

    fn narrator(&self) -> Option<Box<dyn Narrator>> {
        Some(Box::new(GrpcNarrator::new(Arc::clone(&self.schema))))
    }
}

/// The calls of a flood, written down.
#[derive(Debug)]
struct Flood {
    calls: Vec<Vec<u8>>,
    hint: u32,
    idempotent: bool,
    /// Which calls are traced, if some are.
    tracing: Option<Tracing>,
}

impl Flood {
    fn new(method: &MethodDescriptor, envelope: &Envelope, options: &Options) -> Result<Self, OptionsError> {
        let path = request::path(method);
        let mut calls = Vec::with_capacity(options.args.len());
        for (number, args) in options.args.iter().enumerate() {
            let wrong =
                |problem: String| OptionsError(format!("{}: {problem}", place_of(options.args_lines.as_ref(), number)));
            let messages = fitting::messages(method, args).map_err(|misfit| wrong(misfit.to_string()))?;
            let mut call = Vec::new();
            envelope.write_head(&path, "", &mut call);
            for message in &messages {
                append(&fitting::encoded(message), options.compress, &mut call).map_err(wrong)?;
            }
            calls.push(call);
        }
        if calls.is_empty() {
            return Err(OptionsError("the plan has no arguments to call with".to_owned()));
        }
        Ok(Self { calls, hint: hint(method), idempotent: is_idempotent(method), tracing: tracing(options)? })
    }
}

/// Appends a framed message, compressed on request.
fn append(message: &[u8], compress: Option<Compression>, out: &mut Vec<u8>) -> Result<(), String> {
    if u32::try_from(message.len()).is_err() {
        return Err(format!("a message of {} bytes: 4 GiB are the most", message.len()));
    }
    match compress {
        None => framing::write_message(message, false, out),
        Some(Compression::Gzip) => {
            let compressed = framing::compressed(message).map_err(|error| error.to_string())?;
            framing::write_message(&compressed, true, out);
        }
    }
    Ok(())
}

/// The hint of a method's calls, for the connection.
fn hint(method: &MethodDescriptor) -> u32 {
    if method.is_server_streaming() { STREAMS } else { 0 }
}

/// Whether the schema calls a method idempotent.
fn is_idempotent(method: &MethodDescriptor) -> bool {
    let options = method.method_descriptor_proto().options.as_ref();
    options.is_some_and(|options| options.idempotency_level() != IdempotencyLevel::IdempotencyUnknown)
}

/// The traced calls; `None` where all calls have a `traceparent` of their own.
fn tracing(options: &Options) -> Result<Option<Tracing>, OptionsError> {
    let Some(share) = options.trace_ratio else { return Ok(None) };
    if !(share > 0.0 && share <= 1.0) {
        return Err(OptionsError(format!("trace_ratio must be above 0 and up to 1, not {share}")));
    }
    let has_own = options.headers.iter().any(|header| header.name().eq_ignore_ascii_case(TRACEPARENT));
    Ok((!has_own).then(|| Tracing::of_share(share)))
}

struct FloodUser {
    flood: Arc<Flood>,
    /// Memory for a call with a `traceparent`.
    traced: Vec<u8>,
}

impl RequestSource for FloodUser {
    fn request(&mut self, index: u64) -> Result<Message<'_>, SourceEnd> {
        let Flood { calls, hint, idempotent, tracing } = &*self.flood;
        let bytes = calls.get((index % calls.len().max(1) as u64) as usize).map_or(&[][..], Vec::as_slice);
        let bytes = match tracing.and_then(|tracing| tracing.ids(index)) {
            None => bytes,
            Some(ids) => {
                request::add_line(bytes, TRACEPARENT, &ids, &mut self.traced);
                &self.traced
            }
        };
        Ok(Message { bytes, idempotent: *idempotent, hint: *hint, ..Message::default() })
    }

    fn trace(&self, index: u64) -> Option<TraceIds> {
        self.flood.tracing?.ids(index)
    }

    fn traces(&self) -> bool {
        self.flood.tracing.is_some()
    }
}
