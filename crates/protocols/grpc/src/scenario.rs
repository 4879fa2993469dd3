//! gRPC in scenarios: `brunt.grpc`. Its library is `scenario.lua`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use brunt_model::target::Target;
use brunt_protocol::headers::{Header, header_fields};
use brunt_protocol::scenario::{Answered, Caller, Dialect, Encoded, Fields, Setting, Value};
use brunt_protocol::{Client, OptionsError};
use prost_reflect::{DynamicMessage, MethodDescriptor};

use crate::client::{GrpcClient, GrpcStreams, Limits};
use crate::options::{Compression, DEFAULT_MOST_ANSWER_BYTES, read_proto, schema_of};
use crate::reflection::Reflection;
use crate::request::{self, Envelope, add_metadata};
use crate::schema::{Schema, path_of};
use crate::{append, fitting, framing, hint, is_idempotent, scripted, status, words};

/// `brunt.grpc`.
pub(crate) struct GrpcDialect;

impl Dialect for GrpcDialect {
    fn name(&self) -> &'static str {
        "grpc"
    }

    fn library(&self) -> &'static str {
        include_str!("scenario.lua")
    }

    fn types(&self) -> &'static str {
        include_str!("types.lua")
    }

    fn client(&self, options: &Value<'_>, setting: &Setting<'_>) -> Result<Box<dyn Caller>, OptionsError> {
        let known = [
            "proto",
            "proto_path",
            "descriptor_set",
            "reflection",
            "metadata",
            "compress",
            "deadline",
            "max_answer",
            "stall_timeout",
        ];
        let fields = Fields::of("brunt.grpc", options, &known)?;
        let wrong = |problem: String| OptionsError(format!("brunt.grpc: {problem}"));
        let base = match setting.base {
            None => {
                return Err(wrong("it needs a base: brunt.grpc { base = \"grpc://127.0.0.1:50051\", … }".to_owned()));
            }
            Some(base) if base.path != "/" => {
                return Err(wrong(format!("a gRPC server has no paths: leave '{}' out", base.path)));
            }
            Some(base) => base,
        };
        let metadata: Vec<_> = header_fields("brunt.grpc", fields.value("metadata"))?
            .into_iter()
            .map(|(name, value)| (name, String::from_utf8_lossy(&value).into_owned()))
            .collect();
        let schema = schema(&fields, base, &metadata, setting)?;
        let compress = match fields.text("compress")? {
            None => None,
            Some("gzip") => Some(Compression::Gzip),
            Some(_) => return Err(fields.wrong("compress", "\"gzip\"")),
        };
        let message_bytes = fields.count("max_answer", 1..=i32::MAX as u32)?.unwrap_or(DEFAULT_MOST_ANSWER_BYTES);
        let stall_ns = fields.duration_ns("stall_timeout")?.unwrap_or(u64::MAX);
        let envelope = Envelope::new(base, &metadata, compress, fields.duration_ns("deadline")?)
            .map_err(|error| wrong(error.0))?;
        let methods = schema.pool().services().flat_map(|service| service.methods().collect::<Vec<_>>());
        let methods = methods.map(|method| (path_of(&method), Known::of(method))).collect();
        Ok(Box::new(GrpcCaller {
            schema,
            methods,
            envelope,
            compress,
            is_secure: base.scheme == "grpcs",
            limits: Arc::new(Limits { message_bytes, stall_ns }),
        }))
    }
}

/// The schema that the options name: files, a descriptor set, or what the server at `base` tells.
fn schema(
    fields: &Fields<'_>,
    base: &Target,
    metadata: &[(String, String)],
    setting: &Setting<'_>,
) -> Result<Schema, OptionsError> {
    let wrong = |problem: String| OptionsError(format!("brunt.grpc: {problem}"));
    let has_reflection = fields.flag("reflection")?.unwrap_or(false);
    match (fields.value("proto"), fields.text("descriptor_set")?, has_reflection) {
        (Value::Nil, Some(file), false) => {
            let content = (setting.read)(file).map_err(|problem| wrong(format!("{file}: {problem}")))?;
            let content = content.ok_or_else(|| wrong(format!("{file}: there is no such file")))?;
            Schema::of_descriptor_set(&content).map_err(|error| wrong(format!("{file}: {error}")))
        }
        (Value::Nil, None, true) => {
            let headers: Vec<_> = metadata.iter().map(|field| Header::from(field.clone())).collect();
            let name = format!("reflection of {}://{}", base.scheme, base.authority());
            let told = (setting.learn)(&name, &|ask| {
                Reflection::new(ask, &headers).descriptor_set(None).map_err(|error| error.to_string())
            });
            let set = told.map_err(|problem| wrong(format!("reflection: {problem}")))?;
            Schema::of_descriptor_set(&set).map_err(|error| wrong(format!("{name}: {error}")))
        }
        (Value::Nil, None, false) => {
            Err(wrong("it needs the schema: proto = \"shop.proto\", or reflection = true to ask the server".to_owned()))
        }
        (_, None, false) => {
            let (files, dirs) = (texts(fields, "proto")?, texts(fields, "proto_path")?);
            let read = read_proto(&files, &dirs, &mut |path| (setting.read)(path));
            read.and_then(|proto| schema_of(&proto, None)).map_err(|error| wrong(error.0))
        }
        _ => Err(wrong("give one of proto, descriptor_set and reflection".to_owned())),
    }
}

/// A text or a list of texts.
fn texts(fields: &Fields<'_>, name: &str) -> Result<Vec<String>, OptionsError> {
    let wrong = || fields.wrong(name, "a string or a list of strings");
    match fields.value(name) {
        Value::Nil => Ok(Vec::new()),
        Value::Table(entries) => {
            let items = scripted::list(entries).ok_or_else(wrong)?;
            items.into_iter().map(|item| item.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
        }
        one => Ok(vec![one.as_str().ok_or_else(wrong)?.to_owned()]),
    }
}

/// A method, and what its calls have in common.
#[derive(Clone)]
struct Known {
    method: MethodDescriptor,
    path: String,
    hint: u32,
    idempotent: bool,
}

impl Known {
    fn of(method: MethodDescriptor) -> Self {
        Self { path: request::path(&method), hint: hint(&method), idempotent: is_idempotent(&method), method }
    }
}

/// What calls of one `brunt.grpc{…}` go through.
struct GrpcCaller {
    schema: Schema,
    /// All there are, as calls name them in full.
    methods: HashMap<String, Known>,
    envelope: Envelope,
    compress: Option<Compression>,
    is_secure: bool,
    limits: Arc<Limits>,
}

impl GrpcCaller {
    fn known(&self, call: &str) -> Result<Cow<'_, Known>, OptionsError> {
        if let Some(known) = self.methods.get(call) {
            return Ok(Cow::Borrowed(known));
        }
        let method = self.schema.method(call).map_err(|error| OptionsError(format!("{call}: {error}")))?;
        Ok(Cow::Owned(Known::of(method)))
    }

    /// The messages that the arguments are: a list is one for each where the client streams.
    fn messages(method: &MethodDescriptor, given: &Value<'_>) -> Result<Vec<DynamicMessage>, String> {
        let input = method.input();
        if matches!(given, Value::Nil) {
            return Ok(vec![DynamicMessage::new(input)]);
        }
        if let Value::Table(entries) = given
            && method.is_client_streaming()
            && let Some(items) = scripted::list(entries).filter(|items| !items.is_empty())
        {
            let items = (1_usize..).zip(items);
            return items
                .map(|(at, item)| scripted::message(&input, item).map_err(|problem| format!("message {at}: {problem}")))
                .collect();
        }
        Ok(vec![scripted::message(&input, given)?])
    }

    /// What was answered: the message, or a list of them where the server streams.
    fn value(&self, call: &str, answer: &Answered<'_>) -> Result<Value<'static>, OptionsError> {
        let method = &self.known(call)?.method;
        let mut messages = Vec::new();
        for (_, message) in framing::messages(answer.parts.body) {
            let read = DynamicMessage::decode(method.output(), message);
            let read = read.map_err(|error| {
                OptionsError(format!("{call}: an answer that is no {}: {error}", method.output().full_name()))
            })?;
            messages.push(scripted::in_lua(&read));
        }
        if method.is_server_streaming() {
            return Ok(Value::list(messages));
        }
        Ok(messages.into_iter().next().unwrap_or(Value::Nil))
    }
}

/// The value of a field in the metadata of an answer; the last of several.
fn field<'a>(answer: &Answered<'a>, wanted: &str) -> Option<&'a [u8]> {
    answer.parts.head.rsplit(|byte| *byte == b'\n').find_map(|line| {
        let line = line.strip_suffix(b"\r")?;
        let at = line.windows(2).position(|two| two == b": ")?;
        line.get(..at)?.eq_ignore_ascii_case(wanted.as_bytes()).then(|| line.get(at + 2..))?
    })
}

impl Caller for GrpcCaller {
    fn connection(&self) -> Box<dyn Client> {
        Box::new(GrpcClient::new(GrpcStreams::new(true, self.is_secure, Arc::clone(&self.limits))))
    }

    fn alpn(&self) -> Vec<Vec<u8>> {
        vec![b"h2".to_vec()]
    }

    /// The values: a method's name, its arguments, and metadata of the call.
    fn encode(&self, values: &[Value<'_>], out: &mut Encoded) -> Result<(), OptionsError> {
        let call = values.first().and_then(Value::as_str).unwrap_or_default();
        let known = self.known(call)?;
        let wrong = |problem: String| OptionsError(format!("{call}: {problem}"));
        let messages = Self::messages(&known.method, values.get(1).unwrap_or(&Value::Nil)).map_err(wrong)?;
        let mut own = String::new();
        for (name, value) in header_fields(call, values.get(2).unwrap_or(&Value::Nil))? {
            add_metadata(&name.to_ascii_lowercase(), &String::from_utf8_lossy(&value), &mut own)?;
        }
        self.envelope.write_head(&known.path, &own, &mut out.bytes);
        for message in &messages {
            append(&fitting::encoded(message), self.compress, &mut out.bytes).map_err(wrong)?;
        }
        (out.hint, out.idempotent) = (known.hint, known.idempotent);
        Ok(())
    }

    fn examine(&self, values: &[Value<'_>]) -> Result<u16, OptionsError> {
        self.encode(values, &mut Encoded::default()).map(|()| 0)
    }

    /// `value METHOD`, `message`, `details`, or `metadata NAME`.
    fn read<'a>(&self, what: &str, answer: &Answered<'a>) -> Result<Value<'a>, OptionsError> {
        let owned = |text: String| Value::Text(Cow::Owned(text.into_bytes()));
        match what.split_once(' ').unwrap_or((what, "")) {
            ("value", call) => self.value(call, answer),
            ("message", "") => Ok(owned(field(answer, "grpc-message").map_or_else(String::new, status::message))),
            ("metadata", name) => Ok(field(answer, name).map_or(Value::Nil, |value| Value::Text(Cow::Borrowed(value)))),
            ("details", "") => {
                let details = field(answer, "grpc-status-details-bin").and_then(status::details);
                let details = details.map(|details| details.details).unwrap_or_default();
                Ok(Value::list(details.into_iter().map(|detail| {
                    let name = detail.type_name().to_owned();
                    let value = words::detail(&name, &detail.value, &self.schema);
                    let value = value.map_or(Value::Text(Cow::Owned(detail.value)), |value| scripted::in_lua(&value));
                    Value::Table(vec![(Value::text("type"), owned(name)), (Value::text("value"), value)])
                })))
            }
            _ => Err(OptionsError(format!("an answer of gRPC has no '{what}'"))),
        }
    }

    /// Its size: what it says stands in the whole answer.
    fn shown_message<'a>(&self, message: &Answered<'a>) -> Cow<'a, [u8]> {
        let bytes: usize = framing::messages(message.parts.body).map(|(_, message)| message.len()).sum();
        Cow::Owned(format!("a message of {bytes} bytes").into_bytes())
    }

    fn status_name(&self, _call: &Encoded, status: u16) -> Option<String> {
        status::name(status).map(str::to_owned)
    }

    /// Its head, then its messages as JSON.
    fn shown_call<'a>(&self, call: &'a Encoded) -> Cow<'a, [u8]> {
        let (head, body) = request::parts(&call.bytes);
        let path = request::fields(head).find(|(name, _)| *name == b":path").map(|(_, path)| path);
        let method = path.and_then(|path| self.schema.method(std::str::from_utf8(path).ok()?).ok());
        let Some(method) = method else { return Cow::Borrowed(&call.bytes) };
        let mut text = head.split(|byte| *byte == b'\n').collect::<Vec<_>>().join(&b"\r\n"[..]);
        text.extend_from_slice(b"\r\n");
        let (words, _) = words::in_words(&method.input(), framing::messages(body));
        text.extend_from_slice(words.as_bytes());
        Cow::Owned(text)
    }
}
