//! Lua states: all of `LuaJIT`, the table `wrk`, and the script run in it.

use brunt_model::plan::Script;
use mlua::{Function, Lua, LuaOptions, ObjectLike as _, StdLib, Table};

use super::ScriptError;
use super::Start;
use super::address;

/// Where in the registry the makers of objects are.
pub(super) const OBJECTS: &str = "brunt.objects";

/// A new Lua state with every library, `ffi` and `debug` among them, as wrk gives them to its scripts.
#[expect(unsafe_code, reason = "mlua leaves these libraries, and C modules, to who answers for the script")]
pub(super) fn everything() -> Lua {
    // SAFETY: what `ffi`, `debug` and C modules let a script do to this process is done by the script's author, who is
    // the user that starts brunt: it could as well be any other program of theirs. Nothing that comes from the network
    // is ever loaded as code.
    unsafe { Lua::unsafe_new_with(StdLib::ALL, LuaOptions::default()) }
}

/// Checks that `script` is Lua, without running it.
///
/// # Errors
/// With file and line of what is wrong.
pub(crate) fn check(script: &Script) -> Result<(), ScriptError> {
    load(&everything(), &script.file, &script.content.0).map(drop)
}

/// A state in which `script` has been run, for requests that begin with `start`.
///
/// # Errors
/// With file, line and traceback of what is wrong.
pub(super) fn begin(script: &Script, start: &Start) -> Result<Lua, ScriptError> {
    let lua = everything();
    prepare_objects(&lua)
        .and_then(|objects| prepare(&lua, &objects, start))
        .map_err(|error| ScriptError::from_lua("preparing the script", &script.file, &error))?;
    let chunk = load(&lua, &script.file, &script.content.0)?;
    chunk.call::<()>(()).map_err(|error| ScriptError::from_lua("the script", &script.file, &error))?;
    Ok(lua)
}

/// The chunk that `file` with this content is.
///
/// # Errors
/// With file and line of what is wrong.
pub(super) fn load(lua: &Lua, file: &str, content: &[u8]) -> Result<Function, ScriptError> {
    // The first line may be one for the shell; its line end stays, so that lines keep their numbers.
    let begins = if content.starts_with(b"#") { content.iter().position(|byte| *byte == b'\n') } else { Some(0) };
    let content = begins.and_then(|at| content.get(at..)).unwrap_or(&[]);
    lua.load(content)
        .set_name(format!("@{file}"))
        .into_function()
        .map_err(|error| ScriptError::from_lua("the script", file, &error))
}

/// Makes ready what makes the objects that scripts are given.
///
/// They are Lua's own proxies, not userdata of Rust's: `LuaJIT` on x86-64 takes the whole register for the number of a C
/// function's results, of which only the lower half is defined, so that the finalizer that is made for a type of Rust
/// crashes or not as its code happens to come out.
pub(super) fn prepare_objects(lua: &Lua) -> mlua::Result<Table> {
    let objects: Table = lua.load(include_str!("objects.lua")).set_name("=wrk").call(())?;
    lua.set_named_registry_value(OBJECTS, &objects)?;
    Ok(objects)
}

/// Puts the global `wrk` in.
fn prepare(lua: &Lua, objects: &Table, start: &Start) -> mlua::Result<()> {
    let wrk: Table = lua.load(include_str!("wrk.lua")).set_name("=wrk").call(())?;
    wrk.set("scheme", start.scheme.as_str())?;
    wrk.set("host", start.host.as_str())?;
    wrk.set("port", start.port.map(|port| port.to_string()))?;
    wrk.set("path", start.path.as_str())?;
    wrk.set("method", start.method.as_str())?;
    wrk.set("body", start.body.as_deref().map(bstr::BStr::new))?;
    let headers: Table = wrk.get("headers")?;
    for (name, value) in &start.headers {
        headers.raw_set(name.as_str(), value.as_str())?;
    }
    let scheme = start.scheme.clone();
    let lookup = lua.create_function(move |_, (host, service): (String, Option<String>)| {
        Ok(match address::lookup(&host, service.as_deref().unwrap_or(&scheme)) {
            Ok(found) => (Some(found.into_iter().map(address::to_text).collect::<Vec<_>>()), None),
            Err(problem) => (None, Some(problem)),
        })
    })?;
    wrk.set("lookup", objects.call_function::<Function>("lookup", lookup)?)?;
    let connects = lua.create_function(|_, text: String| Ok(address::of_text(&text).is_some_and(address::connects)))?;
    wrk.set("connect", objects.call_function::<Function>("connect", connects)?)?;
    lua.globals().set("wrk", &wrk)?;
    let loaded: Table = lua.globals().get::<Table>("package")?.get("loaded")?;
    loaded.set("wrk", wrk)
}

/// The global of this name, if it is a function.
pub(super) fn function(lua: &Lua, name: &str) -> Option<Function> {
    lua.globals().get::<Function>(name).ok()
}

/// Lets what the script has printed go where it belongs, before anything else is printed.
pub(super) fn flush(lua: &Lua) {
    let flushed: mlua::Result<()> = lua.load("io.stdout:flush()").exec();
    // A standard output that cannot be written to is found out by who prints the result.
    drop(flushed);
}
