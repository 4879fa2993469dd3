//! What a protocol is in scenarios that has no [`Dialect`](super::scenario::Dialect) of its own: `brunt.SCHEME`, whose options
//! and calls are given by the names of its flags. A call's bytes are those that a flood with these flags would send.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use brunt_model::content::Content;
use brunt_model::plan::Plan;
use brunt_model::target::Target;

use super::flags::{Flag, Given, Takes, Value as Flagged};
use super::scenario::{Answered, Caller, Dialect, Encoded, Fields, Setting, Value};
use super::{Client, OptionsError, Prepared, Protocol};

/// How many different calls are remembered as they are encoded.
const MOST_REMEMBERED: usize = 1000;

/// `brunt.SCHEME`.
pub(super) struct ByFlags {
    protocol: Arc<dyn Protocol>,
    name: &'static str,
}

impl ByFlags {
    /// For a protocol whose first scheme can be a name in Lua.
    pub(super) fn of(protocol: &Arc<dyn Protocol>) -> Option<Self> {
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
        include_str!("by_flags.lua")
    }

    fn client(&self, options: &Value<'_>, setting: &Setting<'_>) -> Result<Box<dyn Caller>, OptionsError> {
        let whose = format!("brunt.{}", self.name);
        let Some(base) = setting.base else {
            return Err(OptionsError(format!("{whose} needs an address: brunt.{}{{ address = \"…\" }}", self.name)));
        };
        let client = CallerByFlags {
            protocol: Arc::clone(&self.protocol),
            base: base.clone(),
            shared: entries(&whose, options)?,
            known: Mutex::default(),
            prepared: None,
        };
        let prepared = client.prepare(&whose, &[]).map_err(|e| OptionsError(format!("{whose}: {}", e.0)))?;
        Ok(Box::new(CallerByFlags { prepared: Some(prepared), ..client }))
    }
}

/// Options by name, in an order that does not change.
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

/// What calls of one client go through.
struct CallerByFlags {
    protocol: Arc<dyn Protocol>,
    base: Target,
    /// What all calls have in common.
    shared: Vec<(String, Value<'static>)>,
    /// Calls that were made, by their options.
    known: Mutex<HashMap<String, Remembered>>,
    /// What makes connections.
    prepared: Option<Arc<dyn Prepared>>,
}

/// A call as it is encoded.
struct Remembered {
    bytes: Vec<u8>,
    idempotent: bool,
    hint: u32,
}

impl CallerByFlags {
    /// What a flood with these options would prepare.
    fn prepare(&self, whose: &str, own: &[(String, Value<'static>)]) -> Result<Arc<dyn Prepared>, OptionsError> {
        let flags = self.protocol.flags();
        let names: Vec<_> = flags.iter().map(|flag| flag.name.replace('-', "_")).collect();
        let known: Vec<_> = names.iter().map(String::as_str).collect();
        let mut given = Given::default();
        let shared = self.shared.iter().filter(|(name, _)| own.iter().all(|(own, _)| own != name));
        for (name, value) in shared.chain(own) {
            let table = Value::Table(vec![(Value::text(name), value.clone())]);
            let fields = Fields::of(whose, &table, &known)?;
            if let Some(flag) = flags.iter().find(|flag| flag.name.replace('-', "_") == *name) {
                push(&mut given, flag, name, &fields)?;
            }
        }
        let options = self.protocol.options(&given)?;
        self.protocol.prepare(&Plan::of_calls(self.base.clone(), options))
    }

    fn remembered(&self, own: &[(String, Value<'static>)]) -> Result<Remembered, OptionsError> {
        let prepared = self.prepare("call", own)?;
        let mut user = prepared.user();
        let message = user.call(0).map_err(|refusal| OptionsError(format!("there is no call: {refusal:?}")))?;
        if message.tail.is_some() {
            return Err(OptionsError("a call with a body so large is for floods".to_owned()));
        }
        Ok(Remembered { bytes: message.bytes.to_vec(), idempotent: message.idempotent, hint: message.hint })
    }
}

/// Adds what a table says to what is given by flags.
fn push(given: &mut Given, flag: &Flag, name: &str, fields: &Fields<'_>) -> Result<(), OptionsError> {
    let text = |value: &Value<'_>| -> Result<String, OptionsError> {
        let number = value.as_number().map(|number| number.to_string());
        let text = number.or_else(|| value.as_str().map(str::to_owned));
        let text = text.ok_or_else(|| fields.wrong(name, "a string"))?;
        if let Some(check) = flag.check {
            check(&text).map_err(|problem| OptionsError(format!("{name}: {problem}")))?;
        }
        Ok(text)
    };
    let value = fields.value(name);
    let flagged = match flag.takes {
        Takes::Nothing => {
            if fields.flag(name)? == Some(true) {
                given.push(flag.name, Flagged::Set);
            }
            return Ok(());
        }
        Takes::Texts(_) if !value.entries().is_empty() => {
            for (_, one) in value.entries() {
                given.push(flag.name, Flagged::Text(text(one)?));
            }
            return Ok(());
        }
        Takes::OneOf(_, known) => {
            let text = text(value)?;
            if !known.contains(&text.as_str()) {
                return Err(fields.wrong(name, &format!("one of {}", known.join(", "))));
            }
            Flagged::Text(text)
        }
        // A file's content, as it is: what is in it is the script's.
        Takes::File(_) | Takes::TextOrFile(_) => match value {
            Value::Text(bytes) => Flagged::File { name: name.to_owned(), content: Content(bytes.clone().into_owned()) },
            other => Flagged::Text(text(other)?),
        },
        Takes::Text(_) | Takes::Texts(_) => Flagged::Text(text(value)?),
    };
    given.push(flag.name, flagged);
    Ok(())
}

impl Caller for CallerByFlags {
    fn connection(&self) -> Box<dyn Client> {
        match &self.prepared {
            Some(prepared) => prepared.client(true),
            None => Box::new(crate::worker::origins::NoClient),
        }
    }

    fn alpn(&self) -> Vec<Vec<u8>> {
        self.prepared.as_ref().map(|prepared| prepared.alpn()).unwrap_or_default()
    }

    fn encode(&self, values: &[Value<'_>], out: &mut Encoded) -> Result<(), OptionsError> {
        let own = entries("call", values.first().unwrap_or(&Value::Nil))?;
        let key = format!("{own:?}");
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let made;
        let call = match known.get(&key) {
            Some(call) => call,
            None if known.len() < MOST_REMEMBERED => known.entry(key).or_insert(self.remembered(&own)?),
            None => {
                made = self.remembered(&own)?;
                &made
            }
        };
        out.bytes.extend_from_slice(&call.bytes);
        (out.idempotent, out.hint) = (call.idempotent, call.hint);
        Ok(())
    }

    fn read<'a>(&self, what: &str, answer: &Answered<'a>) -> Result<Value<'a>, OptionsError> {
        match what {
            "body" => Ok(Value::Text(Cow::Borrowed(answer.parts.body))),
            "head" => Ok(Value::Text(Cow::Borrowed(answer.parts.head))),
            _ => Err(OptionsError(format!("an answer of {} has no '{what}'", self.protocol.name()))),
        }
    }
}
