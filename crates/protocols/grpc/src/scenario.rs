//! gRPC in scenarios: `brunt.grpc`. Its library is `scenario.lua`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use brunt_plan::target::{Target, Url};
use brunt_protocol::arguments::DEFAULT_MOST_ANSWER_BYTES;
use brunt_protocol::headers::{Header, header_fields};
use brunt_protocol::scenario::{Caller, ClientSetting, CompleteAnswer, Dialect, Encoded, Fields, Value};
use brunt_protocol::traced::{TRACEPARENT, TraceIds};
use brunt_protocol::{Client, OptionsError};
use brunt_record::outcome::OkStatus;
use prost_reflect::{DynamicMessage, MethodDescriptor};

use crate::client::{CONNECT, FINISH, GrpcStreams, Limits, OPEN, TAKEN, hint_of_method, keep_alive_s};
use crate::options::{Compression, read_proto, schema_of};
use crate::reflection::Reflection;
use crate::request::{self, Envelope, add_metadata};
use crate::schema::{Schema, path_of};
use crate::{append, fitting, framing, hint, is_idempotent, narration, scripted, status};

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

    fn client(&self, options: &Value<'_>, setting: &ClientSetting<'_>) -> Result<Box<dyn Caller>, OptionsError> {
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
            "ping_every",
            "json",
        ];
        let fields = Fields::parse("brunt.grpc", options, &known)?;
        let wrong = |problem: String| OptionsError(format!("brunt.grpc: {problem}"));
        let is_json = fields.flag("json")?.unwrap_or(false);
        let anywhere =
            Target { scheme: "grpc".to_owned(), host: "localhost".to_owned(), port: None, path: "/".to_owned() };
        let base = match setting.base {
            // Each call says where it goes.
            None if is_json => &anywhere,
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
        let every = fields.duration_ns("ping_every")?.map(keep_alive_s).transpose();
        let keep_alive_s = every.map_err(|why| wrong(format!("ping_every: {why}")))?;
        let envelope = Envelope::new(base, &metadata, compress, fields.duration_ns("deadline")?)
            .map_err(|error| wrong(error.0))?;
        let methods: Vec<_> =
            schema.pool().services().flat_map(|service| service.methods().collect::<Vec<_>>()).collect();
        let answers = methods.iter().map(MethodDescriptor::output).collect();
        let methods = methods.into_iter().enumerate();
        let methods = methods.map(|(number, method)| (path_of(&method), KnownMethod::new(number, method))).collect();
        Ok(Box::new(GrpcCaller {
            schema,
            methods,
            envelope,
            metadata,
            is_json,
            compress,
            is_secure: !is_json && base.scheme == "grpcs",
            limits: Arc::new(Limits { message_bytes, stall_ns, keep_alive_s, answers }),
        }))
    }
}

/// The schema that the options name: files, a descriptor set, or what the server at `base` tells.
fn schema(
    fields: &Fields<'_>,
    base: &Target,
    metadata: &[(String, String)],
    setting: &ClientSetting<'_>,
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
        (Value::Nil, None, false) if fields.flag("json")?.unwrap_or(false) => {
            Schema::of_descriptor_set(&[]).map_err(|error| wrong(error.to_string()))
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
struct KnownMethod {
    method: MethodDescriptor,
    path: String,
    hint: u32,
    idempotent: bool,
}

impl KnownMethod {
    fn new(number: usize, method: MethodDescriptor) -> Self {
        let hint = hint(&method) | hint_of_method(number);
        Self { path: request::path(&method), hint, idempotent: is_idempotent(&method), method }
    }
}

/// What calls of one `brunt.grpc{…}` go through.
struct GrpcCaller {
    schema: Schema,
    /// All there are, as calls name them in full.
    methods: HashMap<String, KnownMethod>,
    envelope: Envelope,
    metadata: Vec<(String, String)>,
    /// Whether messages are texts of JSON, in protobuf's own mapping.
    is_json: bool,
    compress: Option<Compression>,
    is_secure: bool,
    limits: Arc<Limits>,
}

impl GrpcCaller {
    fn known(&self, call: &str) -> Result<&KnownMethod, OptionsError> {
        if let Some(known) = self.methods.get(call) {
            return Ok(known);
        }
        let method = self.schema.method(call).map_err(|error| OptionsError(format!("{call}: {error}")))?;
        self.methods.get(&path_of(&method)).ok_or_else(|| OptionsError(format!("{call}: no service has it")))
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
    fn value(&self, call: &str, answer: &CompleteAnswer<'_>) -> Result<Value<'static>, OptionsError> {
        let method = &self.known(call)?.method;
        let mut messages = Vec::new();
        for (_, message) in framing::messages(answer.parts.body) {
            let read = DynamicMessage::decode(method.output(), message);
            let read = read.map_err(|error| {
                OptionsError(format!("{call}: an answer that is not a {}: {error}", method.output().full_name()))
            })?;
            messages.push(scripted::in_lua(&read));
        }
        if method.is_server_streaming() {
            return Ok(Value::list(messages));
        }
        Ok(messages.into_iter().next().unwrap_or(Value::Nil))
    }
}

impl GrpcCaller {
    /// A message of a stream.
    fn one(&self, call: &str, answer: &CompleteAnswer<'_>) -> Result<Value<'static>, OptionsError> {
        let output = self.known(call)?.method.output();
        let Some((_, message)) = framing::messages(answer.parts.body).next() else { return Ok(Value::Nil) };
        let read = DynamicMessage::decode(output.clone(), message);
        let read = read.map_err(|error| {
            OptionsError(format!("{call}: a message that is not a {}: {error}", output.full_name()))
        })?;
        Ok(scripted::in_lua(&read))
    }

    /// The first message as JSON, with all of its fields.
    fn json(&self, call: &str, answer: &CompleteAnswer<'_>) -> Result<Value<'static>, OptionsError> {
        let output = self.known(call)?.method.output();
        let Some((_, message)) = framing::messages(answer.parts.body).next() else { return Ok(Value::Nil) };
        let text = fitting::in_json(&output, message);
        let text = text.map_err(|error| OptionsError(format!("{call}: not a {}: {error}", output.full_name())))?;
        Ok(Value::Text(Cow::Owned(text)))
    }

    /// The method of an encoded call.
    fn method_of(&self, call: &Encoded) -> Option<MethodDescriptor> {
        let (head, _) = request::parts(&call.bytes);
        let (_, path) = request::fields(head).find(|(name, _)| *name == b":path")?;
        self.schema.method(std::str::from_utf8(path).ok()?).ok()
    }
}

/// The value of a field in the metadata of an answer; the last of several.
fn field<'a>(answer: &CompleteAnswer<'a>, wanted: &str) -> Option<&'a [u8]> {
    answer.parts.head.rsplit(|byte| *byte == b'\n').find_map(|line| {
        let line = line.strip_suffix(b"\r")?;
        let at = line.windows(2).position(|two| two == b": ")?;
        line.get(..at)?.eq_ignore_ascii_case(wanted.as_bytes()).then(|| line.get(at + 2..))?
    })
}

impl Caller for GrpcCaller {
    fn connection(&self) -> Box<dyn Client> {
        Box::new(GrpcStreams::client(true, self.is_secure, &self.limits))
    }

    fn alpn(&self) -> Vec<Vec<u8>> {
        vec![b"h2".to_vec()]
    }

    fn multiplexes(&self) -> bool {
        true
    }

    /// The values: a method's name, its arguments, metadata of the call, what of a call it is ([`StreamPart`]; `connect` makes no call, and
    /// ends when there is a connection), and where it goes, if not to the base.
    fn encode(&self, values: &[Value<'_>], out: &mut Encoded) -> Result<(), OptionsError> {
        let value = |place: usize| values.get(place).unwrap_or(&Value::Nil);
        let call = value(0).as_str().unwrap_or_default();
        let elsewhere = match value(4).as_str() {
            None => None,
            Some(url) => {
                let target = Url::parse(url).map_err(|error| OptionsError(error.to_string()))?.target;
                let envelope = Envelope::new(&target, &self.metadata, self.compress, None)?;
                out.target = Some(target);
                Some(envelope)
            }
        };
        if value(3).as_str() == Some("connect") {
            out.hint = CONNECT;
            return Ok(());
        }
        let known = self.known(call)?;
        let wrong = |problem: String| OptionsError(format!("{call}: {problem}"));
        let said = StreamPart::from_name(value(3))
            .ok_or_else(|| wrong("its fourth value is not 'open', 'more', 'finish' or nil".to_owned()))?;
        said.check(&known.method).map_err(wrong)?;
        let messages = match (said, value(1)) {
            (StreamPart::Finish, _) => Vec::new(),
            (StreamPart::Open, Value::Nil) if known.method.is_client_streaming() => Vec::new(),
            (StreamPart::More | StreamPart::All | StreamPart::Open, Value::Text(json)) if self.is_json => {
                let read = serde_json::from_slice(json).map_err(|error| wrong(error.to_string()))?;
                let message = fitting::message(&known.method.input(), &read);
                vec![message.map_err(|misfit| wrong(misfit.to_string()))?]
            }
            (StreamPart::More, given) => vec![scripted::message(&known.method.input(), given).map_err(wrong)?],
            (StreamPart::All | StreamPart::Open, given) => Self::messages(&known.method, given).map_err(wrong)?,
        };
        if matches!(said, StreamPart::More | StreamPart::Finish) {
            request::write_path(&known.path, &mut out.bytes);
        } else {
            let mut own = String::new();
            for (name, value) in header_fields(call, value(2))? {
                add_metadata(&name.to_ascii_lowercase(), &value, &mut own)?;
            }
            elsewhere.as_ref().unwrap_or(&self.envelope).write_head(&known.path, &own, &mut out.bytes);
        }
        for message in &messages {
            append(&fitting::encoded(message), self.compress, &mut out.bytes).map_err(wrong)?;
        }
        out.hint = match said {
            StreamPart::All => known.hint,
            StreamPart::Open if known.method.is_client_streaming() => known.hint | TAKEN | OPEN,
            StreamPart::Open => known.hint | TAKEN,
            StreamPart::More => 0,
            StreamPart::Finish => FINISH,
        };
        out.idempotent = known.idempotent;
        Ok(())
    }

    fn traces(&self) -> bool {
        true
    }

    fn add_trace(&self, call: &mut Encoded, ids: &TraceIds) -> bool {
        let has_own = request::fields(request::parts(&call.bytes).0).any(|(name, _)| name == TRACEPARENT.as_bytes());
        if has_own {
            return false;
        }
        let untraced = std::mem::take(&mut call.bytes);
        request::add_line(&untraced, TRACEPARENT, ids, &mut call.bytes);
        true
    }

    fn join(&self, more: &Encoded, call: &mut Encoded) {
        call.bytes.extend_from_slice(request::parts(&more.bytes).1);
        if more.hint & FINISH != 0 {
            call.hint &= !OPEN;
        }
    }

    fn examine(&self, values: &[Value<'_>]) -> Result<u16, OptionsError> {
        self.encode(values, &mut Encoded::default()).map(|()| 0)
    }

    /// `value METHOD`, `message`, `details`, `head`, or `metadata NAME`; of one message of a stream `one METHOD`; `json METHOD` of either.
    fn read<'a>(&self, what: &str, answer: &CompleteAnswer<'a>) -> Result<Value<'a>, OptionsError> {
        let owned = |text: String| Value::Text(Cow::Owned(text.into_bytes()));
        match what.split_once(' ').unwrap_or((what, "")) {
            ("value", call) => self.value(call, answer),
            ("one", call) => self.one(call, answer),
            ("json", call) => self.json(call, answer),
            ("head", "") => Ok(Value::Text(Cow::Borrowed(answer.parts.head))),
            ("message", "") => Ok(owned(field(answer, "grpc-message").map_or_else(String::new, status::message))),
            ("metadata", name) => Ok(field(answer, name).map_or(Value::Nil, |value| Value::Text(Cow::Borrowed(value)))),
            ("details", "") => {
                let details = field(answer, "grpc-status-details-bin").and_then(status::details);
                let details = details.map(|details| details.details).unwrap_or_default();
                Ok(Value::list(details.into_iter().map(|detail| {
                    let name = detail.type_name().to_owned();
                    let value = narration::detail(&name, &detail.value, &self.schema);
                    let value = value.map_or(Value::Text(Cow::Owned(detail.value)), |value| scripted::in_lua(&value));
                    Value::Table(vec![(Value::text("type"), owned(name)), (Value::text("value"), value)])
                })))
            }
            _ => Err(OptionsError(format!("an answer of gRPC has no '{what}'"))),
        }
    }

    /// Its fields, and of a status its name, its message and its details.
    fn shown_head<'a>(&self, answer: &CompleteAnswer<'a>) -> Cow<'a, [u8]> {
        let head = answer.parts.head;
        match std::str::from_utf8(head).ok().and_then(|head| narration::status_words(head, &self.schema)) {
            Some(words) => Cow::Owned([head, words.trim_start().replace('\n', "\r\n").as_bytes(), b"\r\n"].concat()),
            None => Cow::Borrowed(head),
        }
    }

    fn shown_message<'a>(&self, call: &Encoded, message: &CompleteAnswer<'a>) -> Cow<'a, [u8]> {
        self.shown_answer(call, message)
    }

    fn shown_answer<'a>(&self, call: &Encoded, answer: &CompleteAnswer<'a>) -> Cow<'a, [u8]> {
        match self.method_of(call) {
            Some(method) => {
                let (words, _) = narration::in_words(&method.output(), framing::messages(answer.parts.body));
                Cow::Owned(words.into_bytes())
            }
            None => Cow::Borrowed(answer.parts.body),
        }
    }

    fn ok_status(&self) -> Option<OkStatus> {
        Some(OkStatus::only(0))
    }

    fn status_name(&self, _call: &Encoded, status: u16) -> Option<String> {
        status::name(status).map(str::to_owned)
    }

    /// Its head, then its messages as JSON; of what is said besides the messages alone.
    fn shown_call<'a>(&self, call: &'a Encoded) -> Cow<'a, [u8]> {
        let (head, body) = request::parts(&call.bytes);
        let Some(method) = self.method_of(call) else { return Cow::Borrowed(&call.bytes) };
        let (words, _) = narration::in_words(&method.input(), framing::messages(body));
        if request::fields(head).count() == 1 {
            let words = if words.is_empty() { "nothing more".to_owned() } else { words };
            return Cow::Owned(words.into_bytes());
        }
        let mut text = head.split(|byte| *byte == b'\n').collect::<Vec<_>>().join(&b"\r\n"[..]);
        text.extend_from_slice(b"\r\n");
        text.extend_from_slice(words.as_bytes());
        Cow::Owned(text)
    }
}

/// What of a call is said at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StreamPart {
    /// All of it, and the answer is waited for as a whole.
    All,
    /// How it begins: its user goes on saying, or takes messages, one by one.
    Open,
    /// One more message.
    More,
    /// That there are no more.
    Finish,
}

impl StreamPart {
    /// By its name in the library.
    fn from_name(name: &Value<'_>) -> Option<Self> {
        match (name, name.as_str()) {
            (Value::Nil, _) => Some(Self::All),
            (_, Some("open")) => Some(Self::Open),
            (_, Some("more")) => Some(Self::More),
            (_, Some("finish")) => Some(Self::Finish),
            _ => None,
        }
    }

    /// Checks that this kind of method has it.
    ///
    /// # Errors
    /// When it has not.
    fn check(self, method: &MethodDescriptor) -> Result<(), String> {
        let streams = match self {
            Self::All => true,
            Self::Open => method.is_client_streaming() || method.is_server_streaming(),
            Self::More | Self::Finish => method.is_client_streaming(),
        };
        match self {
            _ if streams => Ok(()),
            Self::Open => Err("the method does not stream: make it by call".to_owned()),
            _ => Err("the method takes one message, which the stream began with: there is nothing to send".to_owned()),
        }
    }
}
