//! gRPC's flags, and the options made of them.

use brunt_plan::content::Content;
use brunt_plan::plan::ProtocolOptions;
use brunt_plan::units;
use brunt_protocol::OptionsError;
use brunt_protocol::arguments::{ARGS, ARGS_LINES, CALL, MAX_ANSWER, arguments, most_answer_bytes};
use brunt_protocol::flags::{Flag, FlagValues, ValueKind};
use brunt_protocol::headers::{HEADER, Header, headers};
use brunt_protocol::messages::{STALL_TIMEOUT, stall_timeout};
use brunt_protocol::traced::{self, TRACE};

use crate::client::keep_alive_s;
use crate::options::{Compression, Options, read_proto};
use crate::reflection::Reflection;
use crate::request::add_metadata;
use crate::schema::parts_of;

/// The flags of gRPC. Those for calls, arguments and answers are used by Thrift, too.
pub(crate) const FLAGS: [Flag; 13] = [
    Flag::new(
        "proto",
        ValueKind::Texts("FILE"),
        "The .proto file that defines the service, repeatable; its imports are read, too",
    )
    .conflicts_with(&["descriptor-set"]),
    Flag::new("proto-path", ValueKind::Texts("DIR"), "A directory to search for imports, repeatable").short('I'),
    Flag::new("descriptor-set", ValueKind::File("FILE"), "A descriptor set instead of .proto files (protoc -o)"),
    Flag::new(
        "reflection",
        ValueKind::Nothing,
        "Ask the server for the schema instead (server reflection), before the load",
    )
    .conflicts_with(&["proto", "descriptor-set"]),
    CALL,
    ARGS,
    ARGS_LINES,
    MAX_ANSWER,
    HEADER,
    STALL_TIMEOUT,
    Flag::new(
        "ping-every",
        ValueKind::Text("T"),
        "Ping a server that has been silent for so long (keepalive), and end its connection after 20s without an answer",
    )
    .checked(|text| ping_every(text).map(drop)),
    TRACE,
    Flag::new("compress", ValueKind::OneOf("NAME", &["gzip"]), "Compress the messages that are sent"),
];

/// The silence before a ping, in nanoseconds.
fn ping_every(text: &str) -> Result<u64, String> {
    let ns = units::parse_duration(text).map_err(|error| error.to_string())?;
    keep_alive_s(ns).map(|_| ns)
}

/// Checks metadata before a server is asked, as far as it has no references to the environment.
fn check_metadata(headers: &[Header]) -> Result<(), OptionsError> {
    for header in headers {
        let (name, value) = (header.name().to_ascii_lowercase(), header.value().as_written());
        let value = if name.ends_with("-bin") && value.starts_with('@') { "" } else { value };
        if !matches!(name.as_str(), "host" | "user-agent") {
            add_metadata(&name, value.as_bytes(), &mut String::new())
                .map_err(|error| OptionsError(format!("-H: {error}")))?;
        }
    }
    Ok(())
}

/// The options that the flags ask for.
pub(crate) fn options(given: &FlagValues) -> Result<Options, OptionsError> {
    let files: Vec<_> = given.texts("proto").map(str::to_owned).collect();
    let mut descriptor_set = given.file("descriptor-set").map(|(_, content)| content.clone());
    let has_reflection = given.has("reflection");
    if files.is_empty() && descriptor_set.is_none() && !has_reflection {
        let problem = "grpc:// needs the schema of the service: give --proto FILE.proto or --descriptor-set FILE, or \
                       --reflection to ask the server";
        return Err(OptionsError(problem.to_owned()));
    }
    let Some(call) = given.text("call") else {
        let problem = "grpc:// needs the method to call: give --call PACKAGE.SERVICE/METHOD";
        return Err(OptionsError(problem.to_owned()));
    };
    let dirs: Vec<_> = given.texts("proto-path").map(str::to_owned).collect();
    let proto = read_proto(&files, &dirs, &mut |path| given.read(path))?;
    let ((args, args_lines), headers) = (arguments(given)?, headers(given)?);
    if has_reflection {
        check_metadata(&headers)?;
        // The other flags were checked before this, so that a server is not asked in vain.
        let ask = |options: &ProtocolOptions| given.ask(options);
        let told = Reflection::new(&ask, &headers).descriptor_set(parts_of(call).0);
        descriptor_set = Some(Content(told.map_err(|error| OptionsError(format!("--reflection: {error}")))?));
    }
    Ok(Options {
        proto,
        descriptor_set,
        call: call.to_owned(),
        args,
        args_lines,
        headers,
        compress: given.has("compress").then_some(Compression::Gzip),
        max_answer_bytes: most_answer_bytes(given),
        stall_ns: stall_timeout(given)?,
        keep_alive_ns: given.text("ping-every").map(ping_every).transpose().map_err(OptionsError)?,
        trace_ratio: traced::given(given)?,
    })
}
