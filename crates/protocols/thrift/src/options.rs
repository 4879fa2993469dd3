//! The options of Thrift: the `protocol` part of a plan for `thrift` and `thrifts`.

use brunt_plan::content::Content;
use brunt_plan::plan::ProtocolOptions;
use serde::{Deserialize, Serialize};

use super::idl;
use brunt_protocol::OptionsError;
use brunt_protocol::arguments::{
    ARGS, ARGS_LINES, ArgumentLines, CALL, MAX_ANSWER, arguments, json, most_answer_bytes,
};
use brunt_protocol::flags::{Flag, FlagValues, ValueKind};

/// How the calls of a flood over Thrift are made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// The IDL file, and those that it includes.
    pub idl: Vec<IdlFile>,
    /// Directories in which included files are looked for, besides those of the files.
    #[serde(default)]
    pub include_dirs: Vec<String>,
    /// The method, with its service before it: `Shop.price`.
    pub call: String,
    /// The arguments of each call, in turn.
    pub args: Vec<serde_json::Value>,
    /// Where the arguments stand, if they come from a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args_lines: Option<ArgumentLines>,
    /// How messages are written.
    pub protocol: WireName,
    /// How they follow each other.
    pub transport: TransportName,
    /// Whether the service's name stands before the method's, as several on one connection need it.
    pub multiplexed: bool,
    /// The most bytes of one answer.
    pub max_answer_bytes: u32,
    /// What the method must return, if that is to be checked; `null` is what a `void` method returns.
    #[serde(default, with = "expectation", skip_serializing_if = "Option::is_none")]
    pub expect: Option<serde_json::Value>,
}

/// An IDL file, which travels by content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IdlFile {
    /// The file's path, by which includes find it.
    pub file: String,
    /// The file's content.
    pub content: Content,
}

/// How messages are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WireName {
    /// The binary protocol.
    Binary,
    /// The compact protocol.
    Compact,
    /// The JSON protocol.
    Json,
}

/// How messages follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransportName {
    /// Each message has its length before it.
    Framed,
    /// Messages follow each other directly.
    Unframed,
    /// Each message is in a frame of `THeader`.
    Header,
    /// Each message is the body of a request of HTTP/1.1, or of its answer.
    Http,
}

/// The flags of Thrift.
pub(super) const FLAGS: [Flag; 10] = [
    Flag::new("idl", ValueKind::Text("FILE"), "The IDL that defines the service; its includes are read, too"),
    Flag::new("idl-path", ValueKind::Texts("DIR"), "A directory to search for includes, repeatable"),
    CALL,
    ARGS,
    ARGS_LINES,
    Flag::new(
        "result",
        ValueKind::TextOrFile("JSON|@F"),
        "The expected result; a call with another fails as mismatch. Struct fields that are not named may have any value",
    ),
    Flag::new("protocol", ValueKind::Text("NAME"), "The encoding of messages: binary, compact or json [default: binary]")
        .checked(|name| protocol(name).map(drop)),
    Flag::new(
        "transport",
        ValueKind::Text("NAME"),
        "What carries messages: unframed (also known as buffered), framed, header (THeader), or http, with the URL's path [default: unframed]",
    )
    .checked(|name| transport(name).map(drop)),
    Flag::new("multiplexed", ValueKind::Nothing, "Name the service in each call, for servers with several of them"),
    MAX_ANSWER,
];

/// The protocol of this name.
///
/// # Errors
/// Names the ones that brunt speaks, and what else a server may have for one of Thrift's that it does not.
pub(super) fn protocol(name: &str) -> Result<WireName, String> {
    let other = match name {
        "binary" => return Ok(WireName::Binary),
        "compact" => return Ok(WireName::Compact),
        "json" => return Ok(WireName::Json),
        "simplejson" => "Thrift's simple JSON can be written alone, and not read",
        "header" => "that is --transport header, with binary or compact in it",
        "multiplexed" => "that is --multiplexed, beside one of them",
        _ => return Err("expected binary, compact or json".to_owned()),
    };
    Err(format!("expected binary, compact or json: {other}"))
}

/// The transport of this name.
///
/// # Errors
/// Names the ones that brunt speaks, and what else a server may have for one of Thrift's that it does not.
pub(super) fn transport(name: &str) -> Result<TransportName, String> {
    let other = match name {
        "framed" => return Ok(TransportName::Framed),
        "unframed" | "buffered" => return Ok(TransportName::Unframed),
        "http" => return Ok(TransportName::Http),
        "header" => return Ok(TransportName::Header),
        "zlib" => "brunt does not compress messages",
        "rocket" => "RSocket is fbthrift's, and brunt does not speak it",
        _ => return Err("expected unframed, framed, header or http".to_owned()),
    };
    Err(format!("expected unframed, framed, header or http: {other}"))
}

/// Whether this protocol can be carried so, to a URL with this path.
///
/// # Errors
/// Says what does not go together.
pub(super) fn go_together(wire: WireName, transport: TransportName, path: &str) -> Result<(), String> {
    if transport == TransportName::Header && wire == WireName::Json {
        return Err("THeader carries binary or compact messages: leave json out".to_owned());
    }
    if transport != TransportName::Http && path != "/" {
        return Err(format!("a Thrift server has no paths, but over HTTP (transport http): leave '{path}' out"));
    }
    Ok(())
}

/// The options that the flags ask for.
pub(super) fn options(given: &FlagValues) -> Result<Options, OptionsError> {
    let Some(main) = given.text("idl") else {
        let problem = "thrift:// needs the IDL that defines the service: give --idl FILE.thrift";
        return Err(OptionsError(problem.to_owned()));
    };
    let Some(call) = given.text("call") else {
        let problem = "thrift:// needs the method to call: give --call SERVICE.METHOD";
        return Err(OptionsError(problem.to_owned()));
    };
    let include_dirs: Vec<_> = given.texts("idl-path").map(str::to_owned).collect();
    let mut files: Vec<IdlFile> = Vec::new();
    let mut read = |path: &str| {
        let content = given.read(path)?;
        if let Some(content) = &content {
            files.push(IdlFile { file: path.to_owned(), content: Content(content.clone()) });
        }
        Ok(content)
    };
    // Loaded to find its includes. It is loaded again from the plan when that is carried out.
    idl::load(main, &include_dirs, &mut read).map_err(|error| OptionsError(error.to_string()))?;
    let (args, args_lines) = arguments(given)?;
    Ok(Options {
        idl: files,
        include_dirs,
        call: call.to_owned(),
        args,
        args_lines,
        protocol: given.text("protocol").map_or(Ok(WireName::Binary), protocol).map_err(OptionsError)?,
        transport: given.text("transport").map_or(Ok(TransportName::Unframed), transport).map_err(OptionsError)?,
        multiplexed: given.has("multiplexed"),
        expect: given.bytes("result").map(|text| json("--result", &text)).transpose()?,
        max_answer_bytes: most_answer_bytes(given),
    })
}

/// In a plan, a missing field means no expectation, and `null` is an expectation.
mod expectation {
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};
    use serde_json::Value;

    #[expect(clippy::ref_option, reason = "what serde calls")]
    pub(super) fn serialize<S: Serializer>(value: &Option<Value>, serializer: S) -> Result<S::Ok, S::Error> {
        value.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
        Value::deserialize(deserializer).map(Some)
    }
}

impl Options {
    /// The options as part of a plan. They hold no secrets.
    pub fn to_protocol(&self) -> ProtocolOptions {
        let json = serde_json::to_value(self).unwrap_or_default();
        ProtocolOptions::new(json.clone(), json)
    }
}
