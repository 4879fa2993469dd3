//! Protocols in scenarios without their own [`Dialect`]: `brunt.SCHEME`, whose options and calls have the names of its
//! flags. A call's bytes are those that a flood with these flags would send.

mod remembered;

use std::borrow::Cow;
use std::sync::Arc;

use brunt_plan::content::Content;
use brunt_plan::plan::Plan;
use brunt_plan::secret::escaped;
use brunt_plan::target::Target;

use self::remembered::{Call, Calls};
use brunt_protocol::flags::{Flag, FlagValue, FlagValues, ValueKind};
use brunt_protocol::scenario::{Caller, ClientSetting, CompleteAnswer, Dialect, Encoded, Fields, Value};
use brunt_protocol::{Client, OptionsError, Prepared, Protocol, Registry, Scheme};
use brunt_record::outcome::OkStatus;

/// A protocol in scenarios, with the schemes that its URLs may have.
pub(crate) type Offered = (Box<dyn Dialect>, Vec<Scheme>);

/// The protocols' dialects; of several with one name, the one registered last.
pub(super) fn dialects(registry: &Registry) -> Vec<Offered> {
    let mut dialects: Vec<Offered> = Vec::new();
    for protocol in registry.protocols() {
        let by_flags = || ByFlags::from_protocol(protocol).map(|dialect| Box::new(dialect) as Box<dyn Dialect>);
        if let Some(dialect) = protocol.dialect().or_else(by_flags)
            && dialects.iter().all(|(known, _)| known.name() != dialect.name())
        {
            dialects.push((dialect, protocol.schemes().to_vec()));
        }
    }
    dialects
}

/// `brunt.SCHEME`.
struct ByFlags {
    protocol: Arc<dyn Protocol>,
    name: &'static str,
}

impl ByFlags {
    /// The dialect of a protocol whose first scheme is a valid name in Lua.
    fn from_protocol(protocol: &Arc<dyn Protocol>) -> Option<Self> {
        let name = protocol.schemes().first()?.name;
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        is_name.then(|| Self { protocol: Arc::clone(protocol), name })
    }
}

impl Dialect for ByFlags {
    fn name(&self) -> &'static str {
        self.name
    }

    fn library(&self) -> &'static str {
        include_str!("../library/by_flags.lua")
    }

    fn client(&self, options: &Value<'_>, setting: &ClientSetting<'_>) -> Result<Box<dyn Caller>, OptionsError> {
        let whose = format!("brunt.{}", self.name);
        let Some(base) = setting.base else {
            return Err(OptionsError(format!("{whose} needs an address: brunt.{}{{ address = \"…\" }}", self.name)));
        };
        let options = ClientOptions {
            protocol: Arc::clone(&self.protocol),
            base: base.clone(),
            shared: entries(&whose, options)?,
        };
        let prepared = options.prepare(&whose, &[]).map_err(|e| OptionsError(format!("{whose}: {}", e.0)))?;
        Ok(Box::new(CallerByFlags { options, prepared, known: Calls::default() }))
    }
}

/// The options by name, in a fixed order.
fn entries(whose: &str, table: &Value<'_>) -> Result<Vec<(String, Value<'static>)>, OptionsError> {
    if !matches!(table, Value::Nil | Value::Table(_)) {
        return Err(OptionsError(format!("{whose} takes a table of options, not {}", table.kind())));
    }
    let mut all = Vec::new();
    for (name, value) in table.entries() {
        let name = name
            .as_str()
            .ok_or_else(|| OptionsError(format!("{whose}: the name of an option is a string, not {}", name.kind())))?;
        all.push((name.to_owned(), value.clone().into_owned()));
    }
    all.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(all)
}

/// The options of one client.
struct ClientOptions {
    protocol: Arc<dyn Protocol>,
    base: Target,
    /// The options that all its calls share.
    shared: Vec<(String, Value<'static>)>,
}

/// The caller of one client.
struct CallerByFlags {
    options: ClientOptions,
    /// Makes connections.
    prepared: Arc<dyn Prepared>,
    /// Encoded calls, by their options.
    known: Calls,
}

impl ClientOptions {
    /// Prepares the protocol as a flood with these options would.
    fn prepare(&self, whose: &str, own: &[(String, Value<'static>)]) -> Result<Arc<dyn Prepared>, OptionsError> {
        let flags = self.protocol.flags();
        let names: Vec<_> = flags.iter().map(|flag| flag.name.replace('-', "_")).collect();
        let known: Vec<_> = names.iter().map(String::as_str).collect();
        let mut given = FlagValues::default();
        let shared = self.shared.iter().filter(|(name, _)| own.iter().all(|(own, _)| own != name));
        for (name, value) in shared.chain(own) {
            let table = Value::Table(vec![(Value::text(name), value.clone())]);
            let fields = Fields::parse(whose, &table, &known)?;
            if let Some(flag) = flags.iter().find(|flag| flag.name.replace('-', "_") == *name) {
                push(&mut given, flag, name, &fields)?;
            }
        }
        let options = self.protocol.options(&given)?;
        self.protocol.prepare(&Plan::of_calls(self.base.clone(), options))
    }

    /// The call with these additional options.
    fn encode(&self, own: &[(String, Value<'static>)]) -> Result<Call, OptionsError> {
        let prepared = self.prepare("call", own)?;
        let mut user = prepared.user();
        let message = user.request(0).map_err(|refusal| OptionsError(format!("there is no call: {refusal:?}")))?;
        if message.tail.is_some() {
            return Err(OptionsError("a call with a body so large is for floods".to_owned()));
        }
        Ok(Call { bytes: message.bytes.to_vec(), idempotent: message.idempotent, hint: message.hint })
    }
}

/// Adds the options of a table to the values of flags.
fn push(given: &mut FlagValues, flag: &Flag, name: &str, fields: &Fields<'_>) -> Result<(), OptionsError> {
    let text = |value: &Value<'_>| -> Result<String, OptionsError> {
        let number = value.as_number().map(|number| number.to_string());
        let text = number.or_else(|| value.as_str().map(str::to_owned));
        let text = text.ok_or_else(|| fields.wrong(name, "a string"))?;
        if let Some(check) = flag.check {
            check(&text).map_err(|problem| OptionsError(format!("{name}: {problem}")))?;
        }
        // A script gets its secrets by brunt.env; references to the environment work only on the command line.
        Ok(if flag.may_be_secret() { escaped(&text) } else { text })
    };
    let value = fields.value(name);
    let flagged = match flag.value {
        ValueKind::Nothing => {
            if fields.flag(name)? == Some(true) {
                given.push(flag.name, FlagValue::Set);
            }
            return Ok(());
        }
        ValueKind::Texts(_) if !value.entries().is_empty() => {
            for (_, one) in value.entries() {
                given.push(flag.name, FlagValue::Text(text(one)?));
            }
            return Ok(());
        }
        ValueKind::OneOf(_, known) => {
            let text = text(value)?;
            if !known.contains(&text.as_str()) {
                return Err(fields.wrong(name, &format!("one of {}", known.join(", "))));
            }
            FlagValue::Text(text)
        }
        // A file's content is given as it is, and belongs to the script.
        ValueKind::File(_) | ValueKind::TextOrFile(_) => match value {
            Value::Text(bytes) => {
                FlagValue::File { name: name.to_owned(), content: Content(bytes.clone().into_owned()) }
            }
            other => FlagValue::Text(text(other)?),
        },
        ValueKind::Text(_) | ValueKind::Texts(_) => FlagValue::Text(text(value)?),
    };
    given.push(flag.name, flagged);
    Ok(())
}

impl Caller for CallerByFlags {
    fn connection(&self) -> Box<dyn Client> {
        self.prepared.client(true)
    }

    fn alpn(&self) -> Vec<Vec<u8>> {
        self.prepared.alpn()
    }

    fn ok_status(&self) -> Option<OkStatus> {
        Some(self.options.protocol.ok_status())
    }

    fn encode(&self, values: &[Value<'_>], out: &mut Encoded) -> Result<(), OptionsError> {
        let options = values.first().unwrap_or(&Value::Nil);
        if let Some(call) = self.known.find(options) {
            call.write(out);
            return Ok(());
        }
        let call = self.options.encode(&entries("call", options)?)?;
        call.write(out);
        self.known.remember(options, call);
        Ok(())
    }

    fn read<'a>(&self, what: &str, answer: &CompleteAnswer<'a>) -> Result<Value<'a>, OptionsError> {
        match what {
            "body" => Ok(Value::Text(Cow::Borrowed(answer.parts.body))),
            "head" => Ok(Value::Text(Cow::Borrowed(answer.parts.head))),
            _ => Err(OptionsError(format!("an answer of {} has no '{what}'", self.options.protocol.name()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    use brunt_plan::plan::ProtocolOptions;
    use brunt_plan::target::Url;
    use brunt_protocol::source::{RepeatingSource, RequestSource};
    use brunt_protocol::{Malformed, Progress, Started, write_options};

    use super::*;

    /// A protocol with one flag, which counts how often its options are read, and waits during one of these calls.
    #[derive(Default)]
    struct Counted {
        asked: Arc<AtomicU32>,
        /// Signals that `slow` was asked for, and waits until it may go on.
        slow: Mutex<Option<(Sender<()>, Receiver<()>)>>,
    }

    const FLAGS: [Flag; 1] = [Flag::new("item", ValueKind::Text("KEY"), "The item")];

    impl Protocol for Counted {
        fn name(&self) -> &'static str {
            "counted"
        }

        fn schemes(&self) -> &[Scheme] {
            &[Scheme { name: "counted", default_port: 1, tls: false }]
        }

        fn flags(&self) -> &[Flag] {
            &FLAGS
        }

        fn options(&self, given: &FlagValues) -> Result<ProtocolOptions, OptionsError> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            let item = given.text("item").unwrap_or_default();
            if item == "slow"
                && let Some((entered, go_on)) = self.slow.lock().unwrap().take()
            {
                entered.send(()).unwrap();
                go_on.recv().unwrap();
            }
            write_options(&item)
        }

        fn prepare(&self, plan: &Plan) -> Result<Arc<dyn Prepared>, OptionsError> {
            let item: String = brunt_protocol::read_options(plan, self.name())?;
            Ok(Arc::new(Gets(RepeatingSource::new(item.into_bytes(), true))))
        }
    }

    struct Gets(RepeatingSource);

    impl Prepared for Gets {
        fn client(&self, _keep: bool) -> Box<dyn Client> {
            struct Silent;
            impl Client for Silent {
                fn start(&mut self, _: &brunt_protocol::source::Message<'_>, _: &mut Vec<u8>) -> Started {
                    Started::Awaited
                }
                fn receive(&mut self, bytes: &[u8], _: &mut Vec<u8>) -> Result<(usize, Progress), Malformed> {
                    Ok((bytes.len(), Progress::More))
                }
            }
            Box::new(Silent)
        }

        fn user(&self) -> Box<dyn RequestSource> {
            Box::new(self.0.clone())
        }
    }

    fn caller(protocol: Counted) -> Box<dyn Caller> {
        let protocol: Arc<dyn Protocol> = Arc::new(protocol);
        let base = Url::parse("counted://a/").unwrap().target;
        let setting = ClientSetting::alone(Some(&base));
        ByFlags::from_protocol(&protocol).unwrap().client(&Value::Nil, &setting).unwrap()
    }

    fn encoded(caller: &dyn Caller, item: &'static str) -> Vec<u8> {
        let mut out = Encoded::default();
        let options = Value::Table(vec![(Value::text("item"), Value::text(item))]);
        caller.encode(&[options], &mut out).unwrap();
        assert!(out.idempotent);
        out.bytes
    }

    #[test]
    fn a_call_is_encoded_once() {
        let protocol = Counted::default();
        let asked = Arc::clone(&protocol.asked);
        let caller = caller(protocol);
        for _ in 0..100 {
            assert_eq!(encoded(&*caller, "a"), b"a");
            assert_eq!(encoded(&*caller, "b"), b"b");
        }
        assert_eq!(asked.load(Ordering::Relaxed), 3, "the client, and two calls");
    }

    /// While one worker's call is encoded for the first time, the calls of other workers go on.
    #[test]
    fn no_call_waits_for_anothers_encoding() {
        let ((entered, has_entered), (go_on, may_go_on)) = (channel(), channel());
        let protocol = Counted { slow: Mutex::new(Some((entered, may_go_on))), ..Counted::default() };
        let caller: Arc<dyn Caller> = Arc::from(caller(protocol));
        assert_eq!(encoded(&*caller, "known"), b"known");
        let theirs = Arc::clone(&caller);
        let slow = std::thread::spawn(move || encoded(&*theirs, "slow"));
        has_entered.recv().unwrap();
        let (done, is_done) = channel();
        let theirs = Arc::clone(&caller);
        std::thread::spawn(move || done.send(encoded(&*theirs, "known")));
        let known = is_done.recv_timeout(Duration::from_secs(20));
        go_on.send(()).unwrap();
        assert_eq!(slow.join().unwrap(), b"slow");
        assert_eq!(known.as_deref(), Ok(b"known".as_slice()), "it waited");
    }
}
