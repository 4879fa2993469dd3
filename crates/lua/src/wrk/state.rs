//! Lua states of wrk's scripts: the table `wrk`, and the script run in them.

use std::path::Path;

use brunt_plan::plan::{Sandbox, Script};
use mlua::{Function, Lua, ObjectLike as _, Table};

use super::address;
use super::start::Start;
use crate::error::from_lua;
use brunt_script::ScriptError;

use crate::state::{close, keep_inner};
pub(super) use crate::state::{everything, flush, function, inner, load};
use brunt_script::read_inside;

/// The registry key of the constructors of objects.
pub(super) const OBJECTS: &str = "brunt.objects";

/// Checks that `script` is Lua, without running it.
///
/// # Errors
/// The file and line of a syntax error.
pub(super) fn check(script: &Script, sandbox: Sandbox) -> Result<(), ScriptError> {
    load(&everything(), &script.file, &script.content.0, sandbox == Sandbox::Open).map(drop)
}

/// A state in which `script` was run within `sandbox`, for requests with the defaults `start`.
///
/// # Errors
/// The file, line and traceback of an error.
pub(super) fn begin(script: &Script, start: &Start, sandbox: Sandbox) -> Result<Lua, ScriptError> {
    let lua = everything();
    prepare_objects(&lua)
        .and_then(|objects| prepare(&lua, &objects, start))
        .and_then(|()| confine(&lua, script, sandbox))
        .map_err(|error| from_lua("preparing the script", &script.file, &error))?;
    let chunk = load(&lua, &script.file, &script.content.0, sandbox == Sandbox::Open)?;
    chunk.call::<()>(()).map_err(|error| from_lua("the script", &script.file, &error))?;
    Ok(lua)
}

/// Closes the sandbox, if the script runs in one.
fn confine(lua: &Lua, script: &Script, sandbox: Sandbox) -> mlua::Result<()> {
    let directory = match sandbox {
        Sandbox::Open => return Ok(()),
        Sandbox::Directory => Some(Path::new(&script.file).parent().unwrap_or(Path::new("")).to_owned()),
        Sandbox::Closed => None,
    };
    let source_of = lua.create_function(move |lua, name: String| {
        let read = directory.as_deref().and_then(|directory| read_inside(directory, Path::new(&name)));
        read.map(|text| lua.create_string(text)).transpose()
    })?;
    close(lua, source_of)
}

/// Prepares the constructors of the objects given to scripts.
///
/// The objects are Lua's own proxies, not userdata of Rust's. `LuaJIT` on x86-64 takes the whole register for the
/// number of a C function's results, although only the lower half is defined. So the finalizer made for a type of Rust
/// crashes or not depending on how its code happens to be compiled.
pub(super) fn prepare_objects(lua: &Lua) -> mlua::Result<Table> {
    keep_inner(lua)?;
    let objects: Table = lua.load(include_str!("objects.lua")).set_name("=wrk").call(())?;
    lua.set_named_registry_value(OBJECTS, &objects)?;
    Ok(objects)
}

/// Sets the global `wrk`.
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
