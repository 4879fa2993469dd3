//! What gRPC calls are made from: the `protocol` part of a plan for `grpc` and `grpcs`.

use brunt_model::content::Content;
use brunt_model::plan::ProtocolOptions;
use brunt_model::secret::shown_body;
use brunt_protocol::OptionsError;
use brunt_protocol::flags::{Flag, Given, Takes};
use brunt_protocol::headers::{HEADER, Header, headers};
use brunt_protocol::messages::{STALL_TIMEOUT, stall_timeout};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::reflection::Reflection;
use crate::schema::{self, Schema, Sources, parts_of};

/// The most bytes of a message in an answer where nothing else is asked for.
pub(crate) const DEFAULT_MOST_ANSWER_BYTES: u32 = 16_384_000;

/// How the calls of a flood over gRPC are made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// The `.proto` files that define the service, and those that they import; none with a descriptor set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proto: Vec<ProtoFile>,
    /// A serialized `google.protobuf.FileDescriptorSet` instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub descriptor_set: Option<Content>,
    /// The method: `shop.Cart/Add`.
    pub call: String,
    /// The arguments of each call, in turn: the message in JSON, or a list of messages where the client streams.
    pub args: Vec<serde_json::Value>,
    /// Metadata of every call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<Header>,
    /// How messages are compressed, if they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compress: Option<Compression>,
    /// The most bytes of a message in an answer.
    pub max_answer_bytes: u32,
    /// The longest gap between the messages of a stream, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall_ns: Option<u64>,
}

/// A `.proto` file, which travels by content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProtoFile {
    /// The name by which others import it.
    pub file: String,
    /// What is in it.
    pub content: Content,
}

/// How messages are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compression {
    /// By gzip.
    Gzip,
}

/// The flags of gRPC. Those for calls, arguments and answers are Thrift's, too.
pub(crate) const FLAGS: [Flag; 11] = [
    Flag::new(
        "proto",
        Takes::Texts("FILE"),
        "The .proto file that defines the service, repeatable; what it imports is read, too",
    )
    .conflicts_with(&["descriptor-set"]),
    Flag::new("proto-path", Takes::Texts("DIR"), "Where imported files are looked for as well, repeatable").short('I'),
    Flag::new("descriptor-set", Takes::File("FILE"), "A descriptor set instead of .proto files (protoc -o)"),
    Flag::new("reflection", Takes::Nothing, "Ask the server for the schema instead (server reflection), before the load")
        .conflicts_with(&["proto", "descriptor-set"]),
    Flag::new(
        "call",
        Takes::Text("METHOD"),
        "The method to call: Shop.price or shop.Cart/Add, or the method alone where there is one service",
    ),
    Flag::new(
        "args",
        Takes::TextOrFile("JSON|@F"),
        "Its arguments as a JSON object, by the names of the IDL or the .proto file; a list of objects where a gRPC client \
         streams [default: {}]",
    )
    .conflicts_with(&["args-lines"])
    .shown_by(shown_arguments),
    Flag::new("args-lines", Takes::File("F"), "Arguments for each call: JSON as for --args in each line, in turn"),
    Flag::new("max-answer", Takes::Text("BYTES"), "The most bytes of one answer, or of a message in it [default: 16384000]")
        .checked(bytes),
    HEADER,
    STALL_TIMEOUT,
    Flag::new("compress", Takes::OneOf("NAME", &["gzip"]), "Compress the messages that are sent"),
];

/// Arguments as they may be shown: without what their fields' names tell to be secret.
fn shown_arguments(text: &str) -> String {
    String::from_utf8_lossy(&shown_body(text.as_bytes())).into_owned()
}

fn bytes(text: &str) -> Result<(), String> {
    match text.parse() {
        Ok(1..=0x7fff_ffff_u32) => Ok(()),
        _ => Err("expected a number of bytes from 1 to 2147483647".to_owned()),
    }
}

/// The options that the flags ask for.
pub(crate) fn options(given: &Given) -> Result<Options, OptionsError> {
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
    let (args, headers) = (arguments(given)?, headers(given)?);
    if has_reflection {
        // What is wrong with the flags has been said by now, so that nobody is asked in vain.
        let ask = |options: &ProtocolOptions| given.ask(options);
        let told = Reflection::new(&ask, &headers).descriptor_set(parts_of(call).0);
        descriptor_set = Some(Content(told.map_err(|error| OptionsError(format!("--reflection: {error}")))?));
    }
    Ok(Options {
        proto,
        descriptor_set,
        call: call.to_owned(),
        args,
        headers,
        compress: given.has("compress").then_some(Compression::Gzip),
        max_answer_bytes: given
            .text("max-answer")
            .and_then(|text| text.parse().ok())
            .unwrap_or(DEFAULT_MOST_ANSWER_BYTES),
        stall_ns: stall_timeout(given)?,
    })
}

/// The files by these paths, and those that they import, which come last.
pub(crate) fn read_proto(
    files: &[String],
    dirs: &[String],
    read: &mut schema::ReadFile<'_>,
) -> Result<Vec<ProtoFile>, OptionsError> {
    let (mains, mut sources) = schema::load(files, dirs, read).map_err(|error| OptionsError(error.to_string()))?;
    let first: Vec<_> = mains.into_iter().filter_map(|name| sources.remove_entry(&name)).collect();
    let all = first.into_iter().chain(sources);
    Ok(all.map(|(file, content)| ProtoFile { file, content: Content(content.into_bytes()) }).collect())
}

/// The schema that travels in a plan.
///
/// # Errors
/// Says where it is wrong.
pub(crate) fn schema_of(proto: &[ProtoFile], descriptor_set: Option<&Content>) -> Result<Schema, OptionsError> {
    let wrong = |error: schema::SchemaError| OptionsError(error.to_string());
    match descriptor_set {
        Some(set) if proto.is_empty() => {
            Schema::of_descriptor_set(&set.0).map_err(|error| OptionsError(format!("the descriptor set: {error}")))
        }
        Some(_) => Err(OptionsError("the plan has both .proto files and a descriptor set".to_owned())),
        None if proto.is_empty() => Err(OptionsError("the plan has no schema".to_owned())),
        None => {
            let text = |file: &ProtoFile| {
                let text = String::from_utf8(file.content.0.clone());
                text.map_err(|_| OptionsError(format!("{}: the file is not UTF-8", file.file)))
            };
            let sources: Result<Sources, _> = proto.iter().map(|file| Ok((file.file.clone(), text(file)?))).collect();
            let names: Vec<_> = proto.iter().map(|file| file.file.clone()).collect();
            schema::compile(&names, &sources?).map_err(wrong)
        }
    }
}

fn arguments(given: &Given) -> Result<Vec<serde_json::Value>, OptionsError> {
    if let Some((file, content)) = given.file("args-lines") {
        let lines = content.0.split(|byte| *byte == b'\n').zip(1..).filter(|(line, _)| !line.trim_ascii().is_empty());
        let lines: Result<Vec<_>, _> =
            lines.map(|(line, number): (_, usize)| json_of(&format!("{file}, line {number}"), line)).collect();
        let lines = lines?;
        if lines.is_empty() {
            return Err(OptionsError(format!("{file}: there are no arguments in it")));
        }
        return Ok(lines);
    }
    let Some(text) = given.bytes("args") else { return Ok(vec![serde_json::Map::new().into()]) };
    Ok(vec![json_of("--args", &text)?])
}

fn json_of(place: &str, text: &[u8]) -> Result<serde_json::Value, OptionsError> {
    serde_json::from_slice(text).map_err(|error| {
        let problem = error.to_string();
        let problem = problem.split(" at line ").next().unwrap_or_default();
        let line = if error.line() > 1 { format!(", line {}", error.line()) } else { String::new() };
        OptionsError(format!("{place}{line}, column {}: no JSON: {problem}", error.column()))
    })
}

impl Options {
    /// The options as a plan carries them: whole for the engine, without secrets for everyone else.
    pub fn to_protocol(&self) -> ProtocolOptions {
        let shown = serde_json::to_value(self).unwrap_or_default();
        let mut whole = shown.clone();
        let headers: serde_json::Value =
            self.headers.iter().map(|header| json!([header.name(), header.value().as_written()])).collect();
        if let Some(object) = whole.as_object_mut()
            && !self.headers.is_empty()
        {
            object.insert("headers".to_owned(), headers);
        }
        ProtocolOptions::new(whole, shown)
    }
}
