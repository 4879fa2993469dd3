//! Lua states with all of `LuaJIT`, the sandbox around the scripts in them, and the chunks that are run in them.

use std::path::{Component, Path};

use mlua::chunk::ChunkMode;
use mlua::{Function, Lua, LuaOptions, StdLib, Table};

use crate::error::from_lua;
use crate::memory;
use brunt_script::ScriptError;

/// Where in the registry the table of what our own code needs of `LuaJIT` after the sandbox has closed is.
const INNER: &str = "brunt.inner";

/// A new Lua state, of limited memory, with every library, `ffi` and `debug` among them, as wrk gives them to its scripts.
#[expect(unsafe_code, reason = "mlua leaves these libraries, and C modules, to who answers for the script")]
pub(crate) fn everything() -> Lua {
    // SAFETY: what `ffi`, `debug` and C modules let a script do to this process is done by the script's author, who is
    // the user that starts brunt: it could as well be any other program of theirs. A script that the user does not answer
    // for runs after `close`, which takes all of that away. Nothing that comes from the network is ever loaded as code.
    let lua = unsafe { Lua::unsafe_new_with(StdLib::ALL, LuaOptions::default()) };
    // Where it cannot be limited, the system's own limits hold.
    let _ = lua.set_memory_limit(memory::limit());
    lua
}

/// Keeps what our own code needs of `LuaJIT`, whatever the script or the sandbox makes of the globals.
pub(crate) fn keep_inner(lua: &Lua) -> mlua::Result<()> {
    let inner: Table = lua
        .load(
            "local out, load = io.stdout, loadstring\n\
             return { getinfo = debug.getinfo, load = load, flush = function() out:flush() end }",
        )
        .set_name("=brunt")
        .call(())?;
    lua.set_named_registry_value(INNER, inner)
}

/// What [`keep_inner`] has kept.
pub(crate) fn inner(lua: &Lua) -> mlua::Result<Table> {
    lua.named_registry_value(INNER)
}

/// Closes the sandbox. `source_of` gives the text of a Lua file that belongs to the script, by its name, or nil.
pub(crate) fn close(lua: &Lua, source_of: Function) -> mlua::Result<()> {
    lua.load(include_str!("sandbox.lua")).set_name("=sandbox").call(source_of)
}

/// Whether a file's name leads nowhere but below the directory that it is taken from.
pub(crate) fn is_inside(name: &Path) -> bool {
    let mut parts = name.components();
    parts.clone().next().is_some() && parts.all(|part| matches!(part, Component::Normal(_)))
}

/// Content of a file below `directory`; none if the file does not exist, or a link leads out of the directory.
pub(crate) fn read_inside(directory: &Path, name: &Path) -> Option<Vec<u8>> {
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let path = is_inside(name).then(|| directory.join(name).canonicalize().ok()).flatten()?;
    if !path.starts_with(directory.canonicalize().ok()?) || !path.is_file() {
        return None;
    }
    std::fs::read(path).ok()
}

/// The chunk that `file` with this content is. Bytecode is taken only where the script `is_open`, outside of the sandbox.
///
/// # Errors
/// With file and line of what is wrong.
pub(crate) fn load(lua: &Lua, file: &str, content: &[u8], is_open: bool) -> Result<Function, ScriptError> {
    // The first line may be one for the shell; its line end stays, so that lines keep their numbers.
    let begins = if content.starts_with(b"#") { content.iter().position(|byte| *byte == b'\n') } else { Some(0) };
    let content = begins.and_then(|at| content.get(at..)).unwrap_or(&[]);
    let chunk = lua.load(content).set_name(format!("@{file}"));
    let chunk = if is_open { chunk } else { chunk.set_mode(ChunkMode::Text) };
    chunk.into_function().map_err(|error| from_lua("the script", file, &error))
}

/// The global of this name, if it is a function.
pub(crate) fn function(lua: &Lua, name: &str) -> Option<Function> {
    lua.globals().get::<Function>(name).ok()
}

/// Lets what the script has printed go where it belongs, before anything else is printed.
pub(crate) fn flush(lua: &Lua) {
    let flushed = inner(lua).and_then(|inner| inner.get::<Function>("flush")?.call::<()>(()));
    // A standard output that cannot be written to is found out by who prints the result.
    drop(flushed);
}
