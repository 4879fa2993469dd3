//! Thrift (Apache Thrift's `doc/specs`): calls from the IDL itself, with no code generated.
//!
//! A plan carries the IDL by content. Before the load it is read ([`idl`]), the arguments are fitted to it ([`fitting`]), and
//! the call is written down but for its sequence id ([`method`]). Answers are checked as they come ([`reply`]): that they
//! are well-formed, within the limit, to a call in flight, and a result or an exception that the IDL has.
//!
//! A call's status is the id in its result: 0 if it returned, the number of the exception in `throws` if it threw one that
//! it declares.
//!
//! ```
//! let idl = "service Search { list<string> find(1: string words) throws (1: Busy busy) }  exception Busy { 1: i32 wait }";
//! let schema = brunt_thrift::idl::load("search.thrift", &[], &mut |_| Ok(Some(idl.into()))).unwrap();
//! assert_eq!(schema.service("Search").unwrap().functions[0].name, "find");
//! ```

mod carrier;
mod client;
pub mod conforming;
pub mod fitting;
pub mod idl;
mod json;
mod meaning;
pub mod method;
pub mod named;
pub mod options;
pub mod reply;
mod scenario;
pub mod schema;
pub mod untyped;
pub mod value;
pub mod wire;

use std::collections::BTreeMap;
use std::sync::Arc;

use brunt_plan::plan::{Plan, ProtocolOptions};
use brunt_record::outcome::OkStatus;

use self::carrier::Transport;
use self::client::{Calls, hint};
use self::fitting::Fitting;
use self::method::Method;
use self::options::Options;
use self::schema::{Function, Schema, Service};
use self::untyped::Untyped;
use self::value::WireValue;
use brunt_protocol::Direction;
use brunt_protocol::arguments::place_of;
use brunt_protocol::flags::{Flag, FlagValues};
use brunt_protocol::scenario::Dialect;
use brunt_protocol::source::{Message, RequestSource, SourceEnd};
use brunt_protocol::{Client, OptionsError, Prepared, Protocol, Scheme};

/// Thrift over TCP, TLS and Unix sockets.
pub struct Thrift;

/// The port that Apache Thrift's own examples use.
const DEFAULT_PORT: u16 = 9090;

impl Protocol for Thrift {
    fn name(&self) -> &'static str {
        "Thrift"
    }

    fn schemes(&self) -> &[Scheme] {
        &[
            Scheme { name: "thrift", default_port: DEFAULT_PORT, tls: false },
            Scheme { name: "thrifts", default_port: DEFAULT_PORT, tls: true },
        ]
    }

    fn flags(&self) -> &[Flag] {
        &options::FLAGS
    }

    fn options(&self, given: &FlagValues) -> Result<ProtocolOptions, OptionsError> {
        given.refuse_user("thrift")?;
        Ok(options::options(given)?.to_protocol())
    }

    fn dialect(&self) -> Option<Box<dyn Dialect>> {
        Some(Box::new(scenario::ThriftDialect))
    }

    /// Exceptions have the other statuses.
    fn ok_status(&self) -> OkStatus {
        OkStatus::only(0)
    }

    fn prepare(&self, plan: &Plan) -> Result<Arc<dyn Prepared>, OptionsError> {
        let options: Options = serde_json::from_value(plan.protocol.reveal().clone())
            .map_err(|e| OptionsError(format!("the plan's protocol part is not one of Thrift: {e}")))?;
        options::go_together(options.protocol, options.transport, &plan.target.path)
            .map_err(|why| OptionsError(format!("{why}, and name the method by --call")))?;
        Ok(Arc::new(PreparedThrift::new(&options, Transport::new(options.transport, &plan.target))?))
    }
}

struct PreparedThrift {
    calls: Arc<Calls>,
    flood: Arc<Flood>,
}

impl PreparedThrift {
    fn new(options: &Options, transport: Transport) -> Result<Self, OptionsError> {
        let schema = Arc::new(schema_of(options)?);
        let (service, function) = named_method(&schema, &options.call)?;
        let method = method_of(service, function, options.multiplexed);
        let flood = Flood::new(&schema, function, &method, options)?;
        let expected = options.expect.as_ref().map(|expect| expected(&schema, function, expect)).transpose()?;
        let functions = vec![function.clone()];
        let limit = options.max_answer_bytes;
        let calls =
            Calls { methods: vec![method], wire: options.protocol, transport, limit, expected, schema, functions };
        Ok(Self { calls: Arc::new(calls), flood: Arc::new(flood) })
    }
}

impl Prepared for PreparedThrift {
    fn client(&self, keep: bool) -> Box<dyn Client> {
        self.calls.client(keep)
    }

    /// Exceptions by the names of their types.
    fn status_names(&self) -> BTreeMap<u16, String> {
        let throws = self.calls.functions.iter().flat_map(|function| &function.throws);
        throws.map(|field| (field.id.unsigned_abs(), self.calls.schema.type_name(&field.field_type))).collect()
    }

    fn meaning(&self, direction: Direction, bytes: &[u8]) -> Option<String> {
        meaning::of_message(&self.calls, self.calls.wire, direction, bytes)
    }

    fn user(&self) -> Box<dyn RequestSource> {
        Box::new(FloodUser(Arc::clone(&self.flood)))
    }
}

/// Reads the IDL that the options carry.
fn schema_of(options: &Options) -> Result<Schema, OptionsError> {
    let Some(main) = options.idl.first() else {
        return Err(OptionsError("the plan has no IDL".to_owned()));
    };
    let mut read = |path: &str| Ok(options.idl.iter().find(|idl| idl.file == path).map(|idl| idl.content.0.clone()));
    idl::load(&main.file, &options.include_dirs, &mut read).map_err(|error| OptionsError(error.to_string()))
}

/// The method and its service that `call` names.
fn named_method<'a>(schema: &'a Schema, call: &str) -> Result<(&'a Service, &'a Function), OptionsError> {
    let wrong = |problem: String| OptionsError(format!("--call {call}: {problem}"));
    let (service, name) = match call.rsplit_once('.') {
        Some((service, name)) => (Some(service), name),
        None => (None, call),
    };
    let service = named_service(schema, service).map_err(wrong)?;
    service.functions.iter().find(|function| function.name == name).map(|function| (service, function)).ok_or_else(
        || {
            let names: Vec<_> = service.functions.iter().map(|function| function.name.as_str()).collect();
            let problem =
                format!("--call {call}: {} has no method '{name}'; it has {}", service.name, names.join(", "));
            OptionsError(problem)
        },
    )
}

/// The service of this name; without a name, the only service of the main file.
fn named_service<'a>(schema: &'a Schema, name: Option<&str>) -> Result<&'a Service, String> {
    let services = || match schema.services() {
        [] => "none".to_owned(),
        some => some.iter().map(|service| service.name.as_str()).collect::<Vec<_>>().join(", "),
    };
    if let Some(name) = name {
        let unknown = || format!("the IDL has no service '{name}'; it has {}", services());
        return schema.service(name).ok_or_else(unknown);
    }
    // Services of the main file, not of the files that it includes.
    let mut own = schema.services().iter().filter(|service| !service.name.contains('.'));
    match (own.next(), own.next()) {
        (Some(service), None) => Ok(service),
        (None, _) => Err(format!("name the service; the IDL has {}", services())),
        _ => Err(format!("name the service, as the IDL has several: {}", services())),
    }
}

/// The part of a method's definition that its calls and answers need.
fn method_of(service: &Service, function: &Function, multiplexed: bool) -> Method {
    Method {
        name: function.name.clone(),
        // The name without its file's prefix, which servers do not know.
        service: multiplexed.then(|| service.name.rsplit('.').next().unwrap_or_default().to_owned()),
        oneway: function.oneway,
        result: function.result.as_ref().map(schema::Type::wire_type),
        throws: function.throws.iter().map(|field| field.id).collect(),
    }
}

/// The result struct that a method must return.
fn expected(schema: &Schema, function: &Function, expect: &serde_json::Value) -> Result<WireValue, OptionsError> {
    match (&function.result, expect) {
        _ if function.oneway => {
            Err(OptionsError(format!("--result: {} is oneway, and returns nothing", function.name)))
        }
        (None, serde_json::Value::Null) => Ok(WireValue::Struct(Vec::new())),
        (None, _) => Err(OptionsError(format!("--result: {} is void: expected null", function.name))),
        (Some(result), _) => {
            let value = Fitting::expectation(schema).value(result, &Untyped::from(expect));
            value
                .map(|value| WireValue::Struct(vec![(0, value)]))
                .map_err(|misfit| OptionsError(format!("--result: {misfit}")))
        }
    }
}

/// The calls of a flood, encoded except for their sequence ids.
#[derive(Debug)]
struct Flood {
    calls: Vec<Vec<u8>>,
    hint: u32,
}

impl Flood {
    fn new(schema: &Schema, function: &Function, method: &Method, options: &Options) -> Result<Self, OptionsError> {
        let (mut calls, mut sequence_at) = (Vec::with_capacity(options.args.len()), 0);
        for (number, args) in options.args.iter().enumerate() {
            let arguments = Fitting::new(schema).arguments(function, &Untyped::from(args)).map_err(|misfit| {
                OptionsError(format!("{}: {misfit}", place_of(options.args_lines.as_ref(), number)))
            })?;
            let mut bytes = Vec::new();
            sequence_at = method.encode_as(options.protocol, schema, function, &arguments, &mut bytes)?;
            calls.push(bytes);
        }
        if calls.is_empty() {
            return Err(OptionsError("the plan has no arguments to call with".to_owned()));
        }
        Ok(Self { calls, hint: hint(0, sequence_at) })
    }
}

struct FloodUser(Arc<Flood>);

impl RequestSource for FloodUser {
    fn request(&mut self, index: u64) -> Result<Message<'_>, SourceEnd> {
        let Flood { calls, hint } = &*self.0;
        let bytes = calls.get((index % calls.len().max(1) as u64) as usize).map_or(&[][..], Vec::as_slice);
        // An IDL does not tell whether a method is idempotent.
        Ok(Message { bytes, idempotent: false, hint: *hint, ..Message::default() })
    }
}
