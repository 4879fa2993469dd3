//! The library's functions in Rust: clients, files, data, figures of load. Each returns a problem, or nil and a value.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use brunt_plan::bodies::shown_beginning;
use brunt_plan::hosts::Hosts;
use brunt_plan::plan::ProtocolOptions;
use brunt_plan::profile::Profile;
use brunt_plan::scenario::{DeclaredFigure, Population};
use brunt_plan::secret::Template;
use brunt_plan::target::{Target, Url};
use brunt_plan::threshold::Threshold;
use brunt_plan::units;
use brunt_record::figures::{LONGEST_UNIT, MOST_NAMES, OwnFigures, OwnKind};
use bstr::BStr;
use mlua::{Function, Lua, LuaString, Table, Value as LuaValue, Variadic};

use super::data::{Order, Rows, SharedFeeder};
use super::resources::Resources;
use super::{charset, digests, pack, reading, tokens, urls, value, written};
use crate::error;
use brunt_protocol::Scheme;
use brunt_protocol::discovery::Inquiry;
use brunt_protocol::scenario::{ClientSetting, Fields, Value, is_rounded, number_text, rounded, unknown, unknown_name};
use brunt_script::{ClientKind, Identity, KeepAlive, ScriptClient, is_inside};

/// The most connections that a user may have at once to one origin, as browsers do over HTTP/1.1.
const BROWSER_CONNECTIONS: u32 = 6;
/// The most figures that a script may declare.
const MOST_OWN: usize = 100;
/// The most connections of a client.
const MOST_CONNECTIONS: u32 = 1_000_000;

/// The declarations that a script makes while it runs from its first line to its last.
#[derive(Default)]
pub(super) struct Declared {
    pub(super) clients: Vec<ScriptClient>,
    /// The kinds of its clients, each once.
    pub(super) kinds: Vec<ClientKind>,
    pub(super) populations: Vec<Population>,
    pub(super) thresholds: Vec<Threshold>,
    pub(super) throttle: Option<Profile>,
    pub(super) hosts: Hosts,
    data: Vec<Arc<Rows>>,
    feeders: Vec<SharedFeeder>,
    /// The base URL of the first client, as the script has it.
    first_base: Option<String>,
    /// The script's own figures, with their names.
    own: Vec<(String, OwnFigures)>,
    /// The missing value that the script asked for last.
    pub(super) missing_value: Option<String>,
}

impl Declared {
    /// The script's own figures.
    pub(super) fn own_figures(&self) -> Vec<DeclaredFigure> {
        self.own.iter().map(|(name, own)| DeclaredFigure::new(name, own.kind, &own.unit)).collect()
    }
}

/// The state behind the functions of one Lua state.
#[derive(Clone)]
pub(super) struct Host {
    pub(super) common: Arc<Resources>,
    pub(super) declared: Arc<Mutex<Declared>>,
    /// The script's text.
    pub(super) script: Arc<[u8]>,
}

/// A problem, or nil and the result.
type Told<T> = (Option<String>, Option<T>);

fn told<T>(result: Result<T, String>) -> Told<T> {
    match result {
        Ok(value) => (None, Some(value)),
        Err(problem) => (Some(problem), None),
    }
}

impl Host {
    pub(super) fn declared(&self) -> MutexGuard<'_, Declared> {
        self.declared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The table of functions with which the library begins.
    pub(super) fn table(&self, lua: &Lua) -> mlua::Result<Table> {
        let table = lua.create_table()?;
        self.add_clients(lua, &table)?;
        self.add_load(lua, &table)?;
        self.add_data(lua, &table)?;
        add_values(lua, &table)?;
        self.add_own(lua, &table)?;
        reading::add(lua, &table)?;
        Ok(table)
    }

    /// The function that returns the text of a module beside the script, by its file's name, or nil.
    pub(super) fn module(&self, lua: &Lua) -> mlua::Result<Function> {
        let host = self.clone();
        lua.create_function(move |lua, name: String| {
            let inside = is_inside(Path::new(&name));
            let read = inside.then(|| host.common.files.read(&name).ok()).flatten();
            read.map(|text| lua.create_string(text)).transpose()
        })
    }

    fn add_clients(&self, lua: &Lua, table: &Table) -> mlua::Result<()> {
        let host = self.clone();
        let client = lua.create_function(move |_, (name, options): (String, LuaValue)| {
            let made = value::of_lua(&options).and_then(|options| host.client(&name, options));
            Ok(told(made.map(|number| number as f64)))
        })?;
        table.raw_set("client", client)?;
        let host = self.clone();
        let base = lua.create_function(move |_, client: usize| {
            let declared = host.declared();
            let base = declared.clients.get(client.wrapping_sub(1)).and_then(|client| client.base.as_ref());
            Ok(match base {
                None => (None, None),
                Some(base) => {
                    let prefix = base.path.trim_end_matches('/');
                    let origin = format!("{}://{}", base.scheme, base.authority());
                    (Some(origin), (!prefix.is_empty()).then(|| prefix.to_owned()))
                }
            })
        })?;
        table.raw_set("base", base)?;
        let host = self.clone();
        let examine = lua.create_function(move |_, (client, values): (usize, Variadic<LuaValue>)| {
            let caller = host.declared().clients.get(client.wrapping_sub(1)).map(|client| Arc::clone(&client.caller));
            let Some(caller) = caller else { return Ok(told(Ok(200))) };
            let values: Result<Vec<_>, _> = values.iter().map(value::of_lua).collect();
            // Values that a protocol cannot take are reported when they are given to it.
            Ok(told(values.map_or(Ok(200), |values| caller.examine(&values).map_err(|e| e.0))))
        })?;
        table.raw_set("examine", examine)?;
        table.raw_set("module", self.module(lua)?)?;
        let host = self.clone();
        let written = lua.create_function(move |lua, name: String| {
            let text = host.common.files.find(&name).ok().flatten().unwrap_or_default();
            written::to_lua(lua, &text)
        })?;
        table.raw_set("written_checks", written)?;
        let host = self.clone();
        // Whether the script, or a module of it, assigns a field of this name.
        let assigns = lua.create_function(move |_, name: String| {
            let files = host.common.files.names().into_iter().filter(|name| super::is_lua(name));
            let mut modules = files.filter_map(|file| host.common.files.find(&file).ok().flatten());
            Ok(written::assigns_field(&host.script, &name) || modules.any(|text| written::assigns_field(&text, &name)))
        })?;
        table.raw_set("assigns_field", assigns)?;
        let host = self.clone();
        let ok_status = lua.create_function(|_, text: String| {
            Ok(text.parse::<brunt_record::outcome::OkStatus>().err().map(|problem| problem.to_string()))
        })?;
        table.raw_set("ok_status", ok_status)?;
        let env = lua.create_function(move |_, name: String| Ok(host.common.env.get(&name).cloned()))?;
        table.raw_set("env", env)?;
        let host = self.clone();
        let without = lua.create_function(move |_, text: String| Ok(host.common.secrets.hide(&text).into_owned()))?;
        table.raw_set("without_secrets", without)?;
        let host = self.clone();
        // The user and the password in the base URL of a client with this one in the script.
        let base_user = lua.create_function(move |_, written: Option<String>| {
            let base = host.chosen_base(&host.declared(), written.as_deref());
            let user = base.and_then(|base| Url::parse(&base).ok()).and_then(|url| url.user);
            Ok(user.map(|user| match user.split_once(':') {
                Some((user, password)) => vec![user.to_owned(), password.to_owned()],
                None => vec![user, String::new()],
            }))
        })?;
        table.raw_set("base_user", base_user)?;
        let host = self.clone();
        let missing = lua.create_function(move |_, name: String| {
            let problem = error::missing(&name);
            host.declared().missing_value = Some(name);
            Ok(problem)
        })?;
        table.raw_set("missing", missing)
    }

    /// The base URL of a client with this one in the script. Another URL (`--base-url`) replaces the first client's.
    fn chosen_base(&self, declared: &Declared, written: Option<&str>) -> Option<String> {
        let is_first = declared.clients.is_empty();
        match &self.common.base_url {
            Some(base) if is_first || written.is_some() && written == declared.first_base.as_deref() => {
                Some(base.clone())
            }
            _ => written.map(str::to_owned),
        }
    }

    /// Makes a client. Returns its number, counted from 1.
    fn client(&self, name: &str, options: Value<'static>) -> Result<usize, String> {
        let offered = self.common.dialects.iter().find(|(dialect, _)| dialect.name() == name);
        let Some((dialect, schemes)) = offered else { return Err(format!("there is no protocol '{name}'")) };
        let whose = format!("brunt.{name}");
        let engine = ["base", "timeout", "connections", "pool", "pipeline", "keep_alive", "cert", "key"];
        let Value::Table(entries) = options else { return Err(format!("{whose} takes a table of options")) };
        let (ours, theirs): (Vec<_>, Vec<_>) =
            entries.into_iter().partition(|(key, _)| key.as_str().is_some_and(|key| engine.contains(&key)));
        let (ours, theirs) = (Value::Table(ours), Value::Table(theirs));
        let fields = Fields::parse(&whose, &ours, &engine).map_err(|e| e.0)?;
        let mut declared = self.declared();
        let written = fields.text("base").map_err(|e| e.0)?.map(str::to_owned);
        if declared.clients.is_empty() {
            declared.first_base.clone_from(&written);
        }
        let base = self.chosen_base(&declared, written.as_deref());
        let base = base.map(|base| base_of(&whose, &base, schemes)).transpose()?;
        let files = Arc::clone(&self.common);
        let first_target = declared.clients.iter().find_map(|client| client.base.as_ref()).or(base.as_ref());
        let ask = |call: &ProtocolOptions| match (self.common.asking.asks(), base.as_ref(), first_target) {
            (Some(ask), Some(base), Some(first)) => ask(base, first, call),
            _ => Err("there is no target to ask here".to_owned()),
        };
        let learn = |name: &str, make: &dyn Fn(&Inquiry<'_>) -> Result<Vec<u8>, String>| {
            self.common.files.made(name, |_| make(&ask))
        };
        let keep_alive = keep_alive_of(&fields)?;
        let closes = keep_alive == KeepAlive::Call;
        let setting =
            ClientSetting { base: base.as_ref(), read: &move |path| files.files.find(path), learn: &learn, closes };
        let caller = dialect.client(&theirs, &setting).map_err(|e| e.0)?;
        let count = |name: &str| fields.count(name, 1..=MOST_CONNECTIONS).map_err(|e| e.0);
        if !fields.value("pool").is_nil() && !fields.value("connections").is_nil() {
            return Err(format!(
                "{whose}: connections are each user's own, pool is for all of them: give one of the two"
            ));
        }
        let shares = fields.value("connections").as_str() == Some("shared");
        if shares && !caller.multiplexes() {
            let way_out = if name == "http" { "give http = \"2\", or share so many" } else { "share so many" };
            return Err(format!(
                "{whose}: connections = \"shared\" needs streams, which these connections have not: {way_out} connections by pool = 10"
            ));
        }
        let is_pooled = shares || !fields.value("pool").is_nil();
        if keep_alive == KeepAlive::Iteration && is_pooled || closes && shares {
            return Err(format!(
                "{whose}: keep_alive is for connections that are a user's own; those of a pool can be closed after each \
                 call, by keep_alive = false"
            ));
        }
        let (per_user, pool, pipeline) = if shares {
            (1, Some(MOST_CONNECTIONS), count("pipeline")?.unwrap_or(u32::MAX))
        } else if fields.value("connections").as_bytes().is_some() {
            return Err(fields.wrong("connections", "a number of each user's own, or \"shared\"").0);
        } else {
            let per_user = count("connections")?.unwrap_or(BROWSER_CONNECTIONS);
            (per_user, count("pool")?, count("pipeline")?.unwrap_or(1))
        };
        let kind = ClientKind { name: whose.clone(), traces: caller.traces() };
        if !declared.kinds.contains(&kind) {
            declared.kinds.push(kind);
        }
        declared.clients.push(ScriptClient {
            caller: Arc::from(caller),
            base,
            schemes: schemes.clone(),
            per_user,
            pool,
            grows: shares,
            pipeline,
            timeout_ns: fields.duration_ns("timeout").map_err(|e| e.0)?,
            keep_alive,
            is_base_found: false,
            identities: identity_of(&whose, &fields)?.into_iter().collect(),
        });
        Ok(declared.clients.len())
    }

    fn add_load(&self, lua: &Lua, table: &Table) -> mlua::Result<()> {
        let host = self.clone();
        let hosts = lua.create_function(move |lua, described: LuaValue| {
            let read = value::lua_to_json(lua, &described)
                .and_then(|json| serde_json::from_slice::<Hosts>(&json).map_err(|e| without_place(&e)))
                .and_then(|hosts| hosts.validate().map(|()| hosts));
            Ok(told(read.map(|hosts| {
                let known = &mut host.declared().hosts;
                known.mapped.extend(hosts.mapped);
                known.blocked.extend(hosts.blocked);
            }))
            .0)
        })?;
        table.raw_set("hosts", hosts)?;
        let host = self.clone();
        let run_iteration = lua.create_function(move |_, ()| Ok(host.common.iteration()))?;
        table.raw_set("run_iteration", run_iteration)?;
        let host = self.clone();
        let population = lua.create_function(move |lua, described: LuaValue| {
            let read = value::lua_to_json(lua, &described)
                .and_then(|json| serde_json::from_slice::<Population>(&json).map_err(|e| without_place(&e)));
            let mut declared = host.declared();
            Ok(told(read.map(|population| {
                declared.populations.push(population);
                declared.populations.len() - 1
            })))
        })?;
        table.raw_set("population", population)?;
        let host = self.clone();
        let expect = lua.create_function(move |_, (figure, condition, abort): (String, String, bool)| {
            // The figure has the name that reports show.
            let read = expected(&host.common.secrets.hide(&figure), &condition, abort);
            Ok(told(read.map(|threshold| host.declared().thresholds.push(threshold))).0)
        })?;
        table.raw_set("expect", expect)?;
        let host = self.clone();
        let throttle = lua.create_function(move |_, text: String| {
            let read = text.parse::<Profile>().map_err(|e| format!("brunt.throttle: {e}"));
            Ok(told(read.map(|profile| host.declared().throttle = Some(profile))).0)
        })?;
        table.raw_set("throttle", throttle)
    }

    fn add_data(&self, lua: &Lua, table: &Table) -> mlua::Result<()> {
        let host = self.clone();
        let data = lua.create_function(move |_, (kind, name, options): (String, String, LuaValue)| {
            let rows = value::of_lua(&options).and_then(|options| host.common.rows(&kind, &name, &options));
            Ok(match rows {
                Err(problem) => (Some(problem), None, None),
                Ok(rows) => {
                    let columns = rows.columns();
                    let mut declared = host.declared();
                    declared.data.push(rows);
                    (None, Some(declared.data.len()), columns)
                }
            })
        })?;
        table.raw_set("data", data)?;
        let host = self.clone();
        let rows = lua.create_function(move |_, length: u64| {
            let mut declared = host.declared();
            declared.data.push(Arc::new(Rows::Elsewhere(length)));
            Ok(declared.data.len())
        })?;
        table.raw_set("rows", rows)?;
        let host = self.clone();
        let length = lua.create_function(move |_, data: usize| Ok(host.data(data).map_or(0, |rows| rows.len())))?;
        table.raw_set("length", length)?;
        let host = self.clone();
        let feeder = lua.create_function(move |_, (data, order): (usize, String)| {
            let rows = host.data(data).map_or(0, |rows| rows.len());
            let order = Order::from_name(&order).unwrap_or(Order::Circular);
            let mut declared = host.declared();
            let feeder = host.common.feeder(declared.feeders.len(), order, rows);
            declared.feeders.push(feeder);
            Ok(declared.feeders.len())
        })?;
        table.raw_set("feeder", feeder)?;
        let host = self.clone();
        let next = lua.create_function(move |_, feeder: usize| {
            let feeder = host.declared().feeders.get(feeder.wrapping_sub(1)).cloned();
            Ok(feeder.and_then(|feeder| feeder.next()))
        })?;
        table.raw_set("next", next)?;
        let host = self.clone();
        let row = lua.create_function(move |lua, (data, number): (usize, u64)| match host.data(data) {
            Some(rows) => rows.to_lua(lua, number),
            None => Ok(LuaValue::Nil),
        })?;
        table.raw_set("row", row)
    }

    /// Adds the functions that make the script's own figures and record into them.
    fn add_own(&self, lua: &Lua, table: &Table) -> mlua::Result<()> {
        let host = self.clone();
        let own = lua.create_function(move |_, (kind, name, unit, is_tagged): (String, String, String, bool)| {
            let kind = OwnKind::from_name(&kind).unwrap_or_default();
            let mut declared = host.declared();
            let (most, what) =
                if is_tagged { (MOST_NAMES, "figures by tags") } else { (MOST_OWN, "figures of its own") };
            if declared.own.len() >= most {
                return Ok(told(Err(format!("a script has {most} {what} at most"))));
            }
            if unit.len() > LONGEST_UNIT {
                return Ok(told(Err(format!("a unit has {LONGEST_UNIT} bytes at most, not '{unit}'"))));
            }
            let shown = |text: &str| host.common.secrets.hide(text).into_owned();
            declared.own.push((shown(&name), OwnFigures::new(kind, &shown(&unit))));
            Ok(told(Ok(declared.own.len())))
        })?;
        table.raw_set("own", own)?;
        let host = self.clone();
        let record = lua.create_function(move |_, (number, value, now): (usize, f64, f64)| {
            if let Some((_, own)) = host.declared().own.get_mut(number.wrapping_sub(1)) {
                own.record(value, now as u64);
            }
            Ok(())
        })?;
        table.raw_set("record", record)
    }

    /// Takes the values that the script's own figures have recorded since the last call.
    pub(super) fn take_own(&self) -> Vec<(String, OwnFigures)> {
        let mut declared = self.declared();
        let recorded = declared.own.iter_mut().filter(|(_, own)| own.count > 0);
        let taken = recorded.map(|(name, own)| {
            let empty = OwnFigures::new(own.kind, &own.unit);
            (name.clone(), std::mem::replace(own, empty))
        });
        taken.collect()
    }

    fn data(&self, number: usize) -> Option<Arc<Rows>> {
        self.declared().data.get(number.wrapping_sub(1)).cloned()
    }
}

/// The base URL of a client, which may lack its scheme.
fn base_of(whose: &str, text: &str, schemes: &[Scheme]) -> Result<Target, String> {
    let default = schemes.first().map_or("http", |scheme| scheme.name);
    let whole = if text.contains("://") { text.to_owned() } else { format!("{default}://{text}") };
    let base = Url::parse(&whole).map_err(|e| format!("{whose}: base: {e}"))?.target;
    if !schemes.iter().any(|scheme| scheme.name == base.scheme) {
        let known: Vec<_> = schemes.iter().map(|scheme| format!("{}://", scheme.name)).collect();
        return Err(format!("{whose}: base must begin with {}, not '{text}'", known.join(" or ")));
    }
    Ok(base)
}

/// A threshold of `brunt.expect`.
fn expected(figure: &str, condition: &str, abort: bool) -> Result<Threshold, String> {
    Threshold::expected(figure, condition, abort).map_err(|e| e.to_string())
}

/// The problem with a table, without the place in the JSON made from it.
/// How long a client's connections carry calls.
fn keep_alive_of(fields: &Fields<'_>) -> Result<KeepAlive, String> {
    match fields.value("keep_alive") {
        Value::Nil | Value::Boolean(true) => Ok(KeepAlive::Kept),
        Value::Boolean(false) => Ok(KeepAlive::Call),
        value if value.as_str() == Some("iteration") => Ok(KeepAlive::Iteration),
        _ => Err(fields.wrong("keep_alive", "false for a connection for each call, or \"iteration\"").0),
    }
}

/// The certificate that a client shows, and its key.
fn identity_of(whose: &str, fields: &Fields<'_>) -> Result<Option<Identity>, String> {
    let text = |name: &str| fields.text(name).map_err(|e| e.0);
    let (certificate_pem, key_pem) = match (text("cert")?, text("key")?) {
        (None, None) => return Ok(None),
        (Some(certificate), Some(key)) => (certificate.to_owned(), Template::secret(key)),
        _ => return Err(format!("{whose}: cert and key are given together: the one is of no use without the other")),
    };
    if !certificate_pem.contains("-----BEGIN") {
        return Err(fields.wrong("cert", "a certificate in PEM, such as brunt.file(\"client.pem\")").0);
    }
    Ok(Some(Identity { certificate_pem, key_pem, hosts: Vec::new() }))
}

fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or(&text).to_owned()
}

/// Functions on bytes, which return a problem, or nil and a result.
fn add_bytes(lua: &Lua, table: &Table) -> mlua::Result<()> {
    let pack = lua.create_function(|lua, (format, values): (LuaString, Variadic<LuaValue>)| {
        let packed = values
            .iter()
            .map(value::of_lua)
            .collect::<Result<Vec<_>, _>>()
            .and_then(|values| pack::pack(&format.to_string_lossy(), &values));
        Ok(match packed {
            Ok(bytes) => (None, Some(lua.create_string(bytes)?)),
            Err(problem) => (Some(problem), None),
        })
    })?;
    table.raw_set("pack", pack)?;
    let unpack = lua.create_function(|lua, (format, bytes, from): (LuaString, LuaString, Option<usize>)| {
        let mut results = mlua::MultiValue::new();
        match pack::unpack(&format.to_string_lossy(), &bytes.as_bytes(), from.unwrap_or(1)) {
            Ok((values, next)) => {
                results.push_back(LuaValue::Nil);
                for value in &values {
                    results.push_back(value::to_lua(lua, value)?);
                }
                results.push_back(LuaValue::Number(next as f64));
            }
            Err(problem) => results.push_back(LuaValue::String(lua.create_string(problem)?)),
        }
        Ok(results)
    })?;
    table.raw_set("unpack", unpack)
}

/// Functions on values alone.
fn add_values(lua: &Lua, table: &Table) -> mlua::Result<()> {
    let duration = lua.create_function(|_, text: String| {
        Ok(units::parse_duration(&text).ok().map(|ns| ns as f64 / brunt_record::SECOND_NS as f64))
    })?;
    table.raw_set("duration", duration)?;
    let unknown = lua.create_function(|_, (whose, name, known): (String, String, String)| {
        Ok(unknown(&whose, &name, &known.split(' ').collect::<Vec<_>>()))
    })?;
    table.raw_set("unknown", unknown)?;
    let unknown_name = lua.create_function(|_, (whose, name, known): (String, String, Vec<String>)| {
        let known: Vec<_> = known.iter().map(String::as_str).collect();
        Ok(unknown_name(&whose, &name, &known))
    })?;
    table.raw_set("unknown_name", unknown_name)?;
    let number_text = lua.create_function(|_, number: f64| Ok(number_text(number)))?;
    table.raw_set("number_text", number_text)?;
    // The problem with a number that has no exact text; nil where it has one.
    let inexact = lua.create_function(|_, number: f64| {
        Ok(match number {
            number if !number.is_finite() => Some(format!("{number} is no number that can be written")),
            number if is_rounded(number) => Some(rounded(number)),
            _ => None,
        })
    })?;
    table.raw_set("inexact", inexact)?;
    let charset = lua.create_function(|lua, (body, content_type): (LuaString, Option<LuaString>)| {
        let content_type = content_type.map(|text| text.to_string_lossy());
        Ok(match charset::decoded(&body.as_bytes(), content_type.as_deref()) {
            Err(problem) => (Some(problem.to_string()), None),
            Ok(None) => (None, None),
            Ok(Some(text)) => (None, Some(lua.create_string(text)?)),
        })
    })?;
    table.raw_set("text_in_charset", charset)?;
    let now = lua.create_function(|_, ()| {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        // A clock before 1970 gives a negative time.
        Ok(since.map_or_else(|before| -before.duration().as_secs_f64(), |since| since.as_secs_f64()))
    })?;
    table.raw_set("now", now)?;
    let beginning = lua.create_function(|lua, (body, most): (LuaString, usize)| {
        let (beginning, is_cut) = shown_beginning(&body.as_bytes(), most);
        Ok((lua.create_string(beginning)?, is_cut))
    })?;
    table.raw_set("beginning", beginning)?;
    let decode = lua.create_function(|lua, text: LuaString| {
        Ok(match value::json_to_lua(lua, &text.as_bytes()) {
            Ok(value) => (value, None),
            Err(problem) => (LuaValue::Nil, Some(problem)),
        })
    })?;
    table.raw_set("json_decode", decode)?;
    let encode = lua.create_function(|lua, value: LuaValue| {
        Ok(match value::lua_to_json(lua, &value) {
            Ok(text) => (Some(lua.create_string(BStr::new(&text))?), None),
            Err(problem) => (None, Some(problem)),
        })
    })?;
    table.raw_set("json_encode", encode)?;
    add_bytes(lua, table)?;
    digests::add(lua, table)?;
    urls::add(lua, table)?;
    tokens::add(lua, table)?;
    table.raw_set("null", LuaValue::NULL)
}
