//! Thrift in scenarios: `brunt.thrift`. Its library is `scenario.lua`.

use std::borrow::Cow;
use std::sync::Arc;

use super::carrier::Transport;
use super::client::{Calls, hint};
use super::fitting::Fitting;
use super::options::{TransportName, WireName};
use super::schema::{Function, Schema, Service};
use super::untyped::Untyped;
use super::{idl, meaning, method_of, named_service, options};
use brunt_protocol::arguments::DEFAULT_MOST_ANSWER_BYTES;
use brunt_protocol::scenario::{Caller, ClientSetting, CompleteAnswer, Dialect, Encoded, Fields, Value as LuaValue};
use brunt_protocol::{Client, OptionsError};
use brunt_record::outcome::OkStatus;

/// Whole numbers up to this are exact as numbers of Lua.
const EXACT: i128 = 1 << 53;

/// `brunt.thrift`.
pub(super) struct ThriftDialect;

impl Dialect for ThriftDialect {
    fn name(&self) -> &'static str {
        "thrift"
    }

    fn library(&self) -> &'static str {
        include_str!("scenario.lua")
    }

    fn types(&self) -> &'static str {
        include_str!("types.lua")
    }

    fn client(&self, options: &LuaValue<'_>, setting: &ClientSetting<'_>) -> Result<Box<dyn Caller>, OptionsError> {
        let known = ["idl", "idl_path", "service", "protocol", "transport", "multiplexed", "max_answer"];
        let fields = Fields::parse("brunt.thrift", options, &known)?;
        let Some(base) = setting.base else {
            let problem = "brunt.thrift needs an address: brunt.thrift{ address = \"127.0.0.1:9090\", … }";
            return Err(OptionsError(problem.to_owned()));
        };
        let Some(file) = fields.text("idl")? else {
            let problem = "brunt.thrift needs the IDL that defines the service: idl = \"shop.thrift\"";
            return Err(OptionsError(problem.to_owned()));
        };
        let include_dirs: Vec<_> =
            fields.value("idl_path").entries().iter().filter_map(|(_, dir)| dir.as_str().map(str::to_owned)).collect();
        let schema = idl::load(file, &include_dirs, &mut |path| (setting.read)(path));
        let schema = Arc::new(schema.map_err(|error| OptionsError(format!("brunt.thrift: {error}")))?);
        let service = named_service(&schema, fields.text("service")?)
            .map_err(|problem| OptionsError(format!("brunt.thrift: service: {problem}")))?
            .clone();
        let wrong = |field: &str, why: String| OptionsError(format!("brunt.thrift: {field}: {why}"));
        let wire = match fields.text("protocol")? {
            Some(name) => options::protocol(name).map_err(|why| wrong("protocol", why))?,
            None => WireName::Binary,
        };
        let transport = match fields.text("transport")? {
            Some(name) => options::transport(name).map_err(|why| wrong("transport", why))?,
            None => TransportName::Unframed,
        };
        options::go_together(wire, transport, &base.path)
            .map_err(|why| OptionsError(format!("brunt.thrift: {why}")))?;
        let multiplexed = fields.flag("multiplexed")?.unwrap_or(false);
        let limit = fields.count("max_answer", 1..=i32::MAX as u32)?.unwrap_or(DEFAULT_MOST_ANSWER_BYTES);
        let calls = Calls {
            methods: service.functions.iter().map(|function| method_of(&service, function, multiplexed)).collect(),
            wire,
            transport: Transport::new(transport, base),
            limit,
            expected: None,
            schema: Arc::clone(&schema),
            functions: service.functions.clone(),
        };
        Ok(Box::new(ThriftCaller { schema, service, calls: Arc::new(calls) }))
    }
}

/// The caller of one `brunt.thrift{…}`.
struct ThriftCaller {
    schema: Arc<Schema>,
    service: Service,
    calls: Arc<Calls>,
}

/// A value of Lua, whose type is not yet known.
fn untyped(value: &LuaValue<'_>) -> Untyped {
    match value {
        LuaValue::Nil => Untyped::Null,
        LuaValue::Boolean(value) => Untyped::Bool(*value),
        LuaValue::Number(number) if number.fract() == 0.0 && number.abs() <= EXACT as f64 => {
            Untyped::Integer(*number as i128)
        }
        LuaValue::Number(number) => Untyped::Double(*number),
        LuaValue::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Untyped::Text(text.to_owned()),
            Err(_) => Untyped::Bytes(bytes.to_vec()),
        },
        LuaValue::Table(entries) => {
            let mut items: Vec<Option<&LuaValue<'_>>> = vec![None; entries.len()];
            for (key, value) in entries {
                let place = key.as_number().filter(|number| number.fract() == 0.0 && *number >= 1.0);
                if let Some(item) = place.and_then(|place| items.get_mut(place as usize - 1)) {
                    *item = Some(value);
                }
            }
            let list: Option<Vec<_>> = items.into_iter().collect();
            match list {
                Some(items) if !items.is_empty() => Untyped::List(items.into_iter().map(untyped).collect()),
                _ => Untyped::Map(entries.iter().map(|(key, value)| (untyped(key), untyped(value))).collect()),
            }
        }
    }
}

/// A value in Lua. A number that Lua cannot hold exactly becomes text.
fn in_lua(value: Untyped) -> LuaValue<'static> {
    let text = |text: String| LuaValue::Text(Cow::Owned(text.into_bytes()));
    match value {
        Untyped::Null => LuaValue::Nil,
        Untyped::Bool(value) => LuaValue::Boolean(value),
        Untyped::Integer(number) if number.abs() <= EXACT => LuaValue::Number(number as f64),
        Untyped::Integer(number) => text(number.to_string()),
        Untyped::Double(number) => LuaValue::Number(number),
        Untyped::Text(value) => text(value),
        Untyped::Bytes(bytes) => LuaValue::Text(Cow::Owned(bytes)),
        Untyped::List(items) => LuaValue::list(items.into_iter().map(in_lua)),
        Untyped::Map(pairs) => {
            // NaN cannot be a key.
            let is_key = |key: &Untyped| !matches!(key, Untyped::Double(number) if number.is_nan());
            let pairs = pairs.into_iter().filter(|(key, _)| is_key(key));
            LuaValue::Table(pairs.map(|(key, value)| (in_lua(key), in_lua(value))).collect())
        }
    }
}

impl ThriftCaller {
    fn place(&self, name: &str) -> Result<(usize, &Function), OptionsError> {
        let found = self.service.functions.iter().enumerate().find(|(_, function)| function.name == name);
        found.ok_or_else(|| {
            let names: Vec<_> = self.service.functions.iter().map(|function| function.name.as_str()).collect();
            OptionsError(format!("{} has no method '{name}'; it has {}", self.service.name, names.join(", ")))
        })
    }

    /// A call's result, or the exception that it threw: its name and its content.
    fn outcome(&self, answer: &CompleteAnswer<'_>) -> Result<(Option<String>, Untyped), OptionsError> {
        match self.function_of(answer) {
            Some(function) => meaning::outcome(&self.schema, function, answer.parts.body, self.calls.wire),
            None => Ok((None, Untyped::Null)),
        }
    }

    fn function_of(&self, answer: &CompleteAnswer<'_>) -> Option<&Function> {
        let (head, _) = meaning::head(answer.parts.head, self.calls.wire)?;
        meaning::function(&self.service.functions, head.name)
    }
}

impl Caller for ThriftCaller {
    fn connection(&self) -> Box<dyn Client> {
        self.calls.client(true)
    }

    /// The values: a method's name, and its arguments by their names.
    fn encode(&self, values: &[LuaValue<'_>], out: &mut Encoded) -> Result<(), OptionsError> {
        let (place, function) = self.place(values.first().and_then(LuaValue::as_str).unwrap_or_default())?;
        let given = match values.get(1) {
            None | Some(LuaValue::Nil) => Untyped::Map(Vec::new()),
            Some(table @ LuaValue::Table(_)) => untyped(table),
            Some(other) => {
                let problem = format!("{} takes a table of its arguments, not {}", function.name, other.kind());
                return Err(OptionsError(problem));
            }
        };
        let arguments = Fitting::scripted(&self.schema)
            .arguments(function, &given)
            .map_err(|misfit| OptionsError(misfit.to_string()))?;
        let Some(method) = self.calls.methods.get(place) else { return Ok(()) };
        let sequence_at = method.encode_as(self.calls.wire, &self.schema, function, &arguments, &mut out.bytes)?;
        out.hint = hint(place, sequence_at);
        Ok(())
    }

    fn examine(&self, values: &[LuaValue<'_>]) -> Result<u16, OptionsError> {
        self.encode(values, &mut Encoded::default()).map(|()| 0)
    }

    fn read<'a>(&self, what: &str, answer: &CompleteAnswer<'a>) -> Result<LuaValue<'a>, OptionsError> {
        let (exception, value) = self.outcome(answer)?;
        match (what, exception) {
            ("value", None) => Ok(in_lua(value)),
            ("value", Some(_)) | ("exception", None) => Ok(LuaValue::Nil),
            ("exception", Some(name)) => Ok(LuaValue::Table(vec![
                (LuaValue::text("name"), LuaValue::Text(Cow::Owned(name.into_bytes()))),
                (LuaValue::text("value"), in_lua(value)),
            ])),
            _ => Err(OptionsError(format!("an answer of Thrift has no '{what}'"))),
        }
    }

    fn ok_status(&self) -> Option<OkStatus> {
        Some(OkStatus::only(0))
    }

    /// Exceptions by the names of their types.
    fn status_name(&self, call: &Encoded, status: u16) -> Option<String> {
        let function = self.service.functions.get((call.hint >> 16) as usize)?;
        let thrown = function.throws.iter().find(|field| field.id.unsigned_abs() == status)?;
        Some(self.schema.type_name(&thrown.field_type))
    }

    fn shown_call<'a>(&self, call: &'a Encoded) -> Cow<'a, [u8]> {
        let place = (call.hint >> 16) as usize;
        let (Some(function), Some(method)) = (self.service.functions.get(place), self.calls.methods.get(place)) else {
            return Cow::Borrowed(&call.bytes);
        };
        let arguments = method.arguments_of(&call.bytes, (call.hint & 0xffff) as usize, self.calls.wire);
        let said = meaning::of_call(&self.schema, function, arguments, self.calls.wire);
        Cow::Owned([format!("{said}\r\n\r\n").as_bytes(), &call.bytes].concat())
    }

    fn shown_head<'a>(&self, answer: &CompleteAnswer<'a>) -> Cow<'a, [u8]> {
        let said = self.function_of(answer).map_or_else(
            || "returned null".to_owned(),
            |function| meaning::of_answer(&self.schema, function, answer.parts.body, self.calls.wire),
        );
        Cow::Owned(said.into_bytes())
    }

    fn shown_answer<'a>(&self, _call: &Encoded, answer: &CompleteAnswer<'a>) -> Cow<'a, [u8]> {
        Cow::Owned([answer.parts.head, answer.parts.body].concat())
    }
}

#[cfg(test)]
mod tests {
    use brunt_plan::target::Url;

    use super::super::schema::{Base, Type};
    use super::super::value::WireValue;
    use super::*;

    const IDL: &str = "enum Colour { RED = 1 }
        struct Item { 1: required string sku, 2: i32 count = 1, 3: optional Colour colour }
        exception Gone { 1: string why }
        service Shop { i64 price(1: string sku, 2: map<i32, Item> items) throws (1: Gone gone) }";

    fn made(options: &[(&'static str, LuaValue<'static>)]) -> Result<Box<dyn Caller>, String> {
        let base = Url::parse("thrift://127.0.0.1:9090").unwrap().target;
        let table =
            LuaValue::Table(options.iter().map(|(name, value)| (LuaValue::text(name), value.clone())).collect());
        let read = |path: &str| Ok((path == "shop.thrift").then(|| IDL.as_bytes().to_vec()));
        ThriftDialect
            .client(&table, &ClientSetting { read: &read, ..ClientSetting::alone(Some(&base)) })
            .map_err(|e| e.0)
    }

    #[test]
    fn what_is_wrong_with_a_client_is_said() {
        let idl = || ("idl", LuaValue::text("shop.thrift"));
        let error = |options: &[(&'static str, LuaValue<'static>)]| made(options).err().unwrap();
        assert!(error(&[]).contains("needs the IDL"));
        assert!(error(&[("idl", LuaValue::text("gone.thrift"))]).contains("gone.thrift: there is no such file"));
        assert!(error(&[idl(), ("service", LuaValue::text("Chop"))]).contains("no service 'Chop'; it has Shop"));
        assert!(error(&[idl(), ("protocol", LuaValue::text("simplejson"))]).contains("written alone, and not read"));
        assert!(error(&[idl(), ("transport", LuaValue::text("zlib"))]).contains("does not compress"));
        let both = [idl(), ("protocol", LuaValue::text("json")), ("transport", LuaValue::text("header"))];
        assert!(error(&both).contains("leave json out"));
        assert!(made(&[idl()]).is_ok());
    }

    #[test]
    fn tables_fit_the_idl_and_what_does_not_is_named() {
        let caller = made(&[("idl", LuaValue::text("shop.thrift"))]).unwrap();
        let item = |count: LuaValue<'static>| {
            LuaValue::Table(vec![(LuaValue::text("sku"), LuaValue::text("a")), (LuaValue::text("count"), count)])
        };
        let call = |name: &'static str, items: LuaValue<'static>| {
            let arguments =
                LuaValue::Table(vec![(LuaValue::text("sku"), LuaValue::text("a1")), (LuaValue::text("items"), items)]);
            let mut out = Encoded::default();
            caller.encode(&[LuaValue::text(name), arguments], &mut out).map_err(|e| e.0).map(|()| out)
        };
        // 1, 2, 3 … are keys, where the IDL has a map.
        let encoded = call("price", LuaValue::list([item(LuaValue::Number(7.0))])).unwrap();
        let shown = caller.shown_call(&encoded).into_owned();
        let shown = String::from_utf8_lossy(&shown).lines().next().unwrap_or_default().to_owned();
        assert_eq!(shown, r#"price({"sku": "a1", "items": {1: {"sku": "a", "count": 7}}})"#);
        let wrong = call("price", LuaValue::list([item(LuaValue::text("7"))])).err().unwrap();
        assert_eq!(wrong, r#"Shop.price.items[1].count: expected i32, got "7""#);
        assert_eq!(call("prise", LuaValue::Nil).err().unwrap(), "Shop has no method 'prise'; it has price");
    }

    #[test]
    fn numbers_beyond_what_lua_holds_are_their_digits() {
        assert_eq!(in_lua(Untyped::Integer(9_007_199_254_740_993)), LuaValue::text("9007199254740993"));
        assert_eq!(in_lua(Untyped::Integer(-5)), LuaValue::Number(-5.0));
        let schema = Schema::default();
        let back =
            Fitting::scripted(&schema).value(&Type::Base(Base::I64), &Untyped::Text("9007199254740993".to_owned()));
        assert_eq!(back, Ok(WireValue::I64(9_007_199_254_740_993)));
    }
}
