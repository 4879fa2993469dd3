//! What Thrift calls are made from: the `protocol` part of a plan for `thrift` and `thrifts`.

use brunt_model::content::Content;
use brunt_model::plan::ProtocolOptions;
use brunt_model::secret::shown_body;
use serde::{Deserialize, Serialize};

use super::idl;
use brunt_protocol::OptionsError;
use brunt_protocol::flags::{Flag, Given, Takes};

/// The most bytes of an answer where nothing else is asked for: the largest frame of `thrift-rpc.md`.
pub(super) const DEFAULT_MOST_ANSWER_BYTES: u32 = 16_384_000;

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
    /// Its path, by which includes find it.
    pub file: String,
    /// What is in it.
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
}

/// How messages follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransportName {
    /// Each with its length before it.
    Framed,
    /// One after the other.
    Unframed,
}

/// The flags of Thrift.
pub(super) const FLAGS: [Flag; 10] = [
    Flag::new("idl", Takes::Text("FILE"), "The IDL that defines the service; what it includes is read, too"),
    Flag::new("idl-path", Takes::Texts("DIR"), "Where included files are looked for as well, repeatable"),
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
    Flag::new(
        "result",
        Takes::TextOrFile("JSON|@F"),
        "What each call must return, else it fails as mismatch; fields of structs that are not named may be anything",
    ),
    Flag::new("protocol", Takes::OneOf("NAME", &["binary", "compact"]), "How messages are written [default: binary]"),
    Flag::new(
        "transport",
        Takes::OneOf("NAME", &["framed", "unframed"]),
        "Whether each message has its length before it [default: unframed, also known as buffered]",
    ),
    Flag::new("multiplexed", Takes::Nothing, "Name the service in each call, for servers with several of them"),
    Flag::new(
        "max-answer",
        Takes::Text("BYTES"),
        "The most bytes of one answer, or of a message in it [default: 16384000]",
    )
    .checked(bytes),
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
pub(super) fn options(given: &Given) -> Result<Options, OptionsError> {
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
    // Read for what it includes; it is read again, from the plan, when it is carried out.
    idl::load(main, &include_dirs, &mut read).map_err(|error| OptionsError(error.to_string()))?;
    Ok(Options {
        idl: files,
        include_dirs,
        call: call.to_owned(),
        args: arguments(given)?,
        protocol: if given.text("protocol") == Some("compact") { WireName::Compact } else { WireName::Binary },
        transport: if given.text("transport") == Some("framed") {
            TransportName::Framed
        } else {
            TransportName::Unframed
        },
        multiplexed: given.has("multiplexed"),
        expect: given.bytes("result").map(|text| json("--result", &text)).transpose()?,
        max_answer_bytes: given
            .text("max-answer")
            .and_then(|text| text.parse().ok())
            .unwrap_or(DEFAULT_MOST_ANSWER_BYTES),
    })
}

fn arguments(given: &Given) -> Result<Vec<serde_json::Value>, OptionsError> {
    if let Some((file, content)) = given.file("args-lines") {
        let lines = content.0.split(|byte| *byte == b'\n').zip(1..).filter(|(line, _)| !line.trim_ascii().is_empty());
        let read = |(line, number): (&[u8], usize)| {
            serde_json::from_slice(line).map_err(|error| {
                let problem = error.to_string();
                let problem = problem.split(" at line ").next().unwrap_or_default();
                OptionsError(format!("{file}, line {number}, column {}: no JSON: {problem}", error.column()))
            })
        };
        let lines: Vec<_> = lines.map(read).collect::<Result<_, _>>()?;
        if lines.is_empty() {
            return Err(OptionsError(format!("{file}: there are no arguments in it")));
        }
        return Ok(lines);
    }
    let Some(text) = given.bytes("args") else { return Ok(vec![serde_json::Map::new().into()]) };
    Ok(vec![json("--args", &text)?])
}

fn json(flag: &str, text: &[u8]) -> Result<serde_json::Value, OptionsError> {
    serde_json::from_slice(text).map_err(|error| {
        let problem = error.to_string();
        let problem = problem.split(" at line ").next().unwrap_or_default();
        OptionsError(format!("{flag}, line {}, column {}: no JSON: {problem}", error.line(), error.column()))
    })
}

/// In a plan, no expectation is a field that is not there, and `null` is an expectation.
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
    /// The options as a plan carries them. They hold no secrets.
    pub fn to_protocol(&self) -> ProtocolOptions {
        let json = serde_json::to_value(self).unwrap_or_default();
        ProtocolOptions::new(json.clone(), json)
    }
}
