//! The options of gRPC: the `protocol` part of a plan for `grpc` and `grpcs`.

use brunt_plan::content::Content;
use brunt_plan::plan::ProtocolOptions;
use brunt_protocol::OptionsError;
use brunt_protocol::arguments::ArgumentLines;
use brunt_protocol::headers::Header;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::schema::{self, Schema, Sources};

/// How the calls of a flood over gRPC are made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// The `.proto` files that define the service, and the files that they import; empty with a descriptor set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proto: Vec<ProtoFile>,
    /// A serialized `google.protobuf.FileDescriptorSet` instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub descriptor_set: Option<Content>,
    /// The method: `shop.Cart/Add`.
    pub call: String,
    /// The arguments of each call, in turn: the message in JSON, or a list of messages where the client streams.
    pub args: Vec<serde_json::Value>,
    /// Where the arguments stand, if they come from a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args_lines: Option<ArgumentLines>,
    /// Metadata of every call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<Header>,
    /// The compression of messages; `None` for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compress: Option<Compression>,
    /// The most bytes of a message in an answer.
    pub max_answer_bytes: u32,
    /// The longest gap between the messages of a stream, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall_ns: Option<u64>,
    /// How long a server is silent before it is pinged, in nanoseconds: a second at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep_alive_ns: Option<u64>,
    /// The share of calls that have a `traceparent`, above 0 and up to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_ratio: Option<f64>,
}

/// A `.proto` file, which travels by content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProtoFile {
    /// The name under which others import the file.
    pub file: String,
    /// The file's content.
    pub content: Content,
}

/// How messages are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compression {
    /// By gzip.
    Gzip,
}

/// Reads the files at these paths, followed by those that they import.
pub(crate) fn read_proto(
    files: &[String],
    dirs: &[String],
    read: &mut schema::ReadSchemaFile<'_>,
) -> Result<Vec<ProtoFile>, OptionsError> {
    let (mains, mut sources) = schema::load(files, dirs, read).map_err(|error| OptionsError(error.to_string()))?;
    let first: Vec<_> = mains.into_iter().filter_map(|name| sources.remove_entry(&name)).collect();
    let all = first.into_iter().chain(sources);
    Ok(all.map(|(file, content)| ProtoFile { file, content: Content(content.into_bytes()) }).collect())
}

/// The schema in a plan.
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

impl Options {
    /// The options as part of a plan: complete for the engine, without secrets for everything else.
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
