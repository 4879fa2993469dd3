//! Lua states with all of `LuaJIT`, the sandbox around the scripts in them, and the chunks that are run in them.

use std::collections::HashMap;
use std::io::IsTerminal as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mlua::chunk::ChunkMode;
use mlua::{Function, Lua, LuaOptions, StdLib, Table};

use crate::error::from_lua;
use crate::memory;
use brunt_script::ScriptError;

/// The registry key of the table with the functions of `LuaJIT` that our own code needs after the sandbox has closed.
const INNER: &str = "brunt.inner";

/// A new Lua state with limited memory and every library, including `ffi` and `debug`, as wrk gives them to its
/// scripts.
#[expect(unsafe_code, reason = "mlua leaves these libraries, and C modules, to who answers for the script")]
pub(crate) fn everything() -> Lua {
    // SAFETY: what `ffi`, `debug` and C modules let a script do to this process is done by the script's author, who is
    // the user that starts brunt: it could as well be any other program of theirs. A script that the user does not answer
    // for runs after `close`, which takes all of that away. Nothing that comes from the network is ever loaded as code.
    let lua = unsafe { Lua::unsafe_new_with(StdLib::ALL, LuaOptions::default()) };
    // Where the limit cannot be set, the system's own limits hold.
    let _ = lua.set_memory_limit(memory::limit());
    // Without it, `print` is LuaJIT's own.
    let _ = clean_print(&lua);
    lua
}

/// Keeps what `print` prints from moving a terminal's cursor: it may be a peer's text. What a script writes by `io` is its own.
fn clean_print(lua: &Lua) -> mlua::Result<()> {
    let clean = lua.create_function(|lua, text: mlua::LuaString| {
        if !std::io::stdout().is_terminal() {
            return Ok(text);
        }
        lua.create_string(escaped(&text.as_bytes()))
    })?;
    lua.load(
        "local clean = ...\n\
         local out, select, tostring, concat = io.stdout, select, tostring, table.concat\n\
         function print(...)\n\
           local words = {}\n\
           for place = 1, select('#', ...) do words[place] = tostring((select(place, ...))) end\n\
           out:write(clean(concat(words, '\\t')), '\\n')\n\
         end",
    )
    .set_name("=brunt")
    .call(clean)
}

/// Text with its control characters written out, all but tabs and line feeds.
fn escaped(text: &[u8]) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in String::from_utf8_lossy(text).chars() {
        match c {
            '\t' | '\n' => shown.push(c),
            c if c.is_control() => shown.extend(c.escape_default()),
            c => shown.push(c),
        }
    }
    shown
}

/// Bytecode of chunks of our own, by their names and by where their texts are.
type Compiled = HashMap<(String, usize), Arc<[u8]>>;

static COMPILED: Mutex<Option<Compiled>> = Mutex::new(None);

/// A chunk of our own. It is compiled once in a process: parsing the library takes ten times as long as loading its bytecode, and each
/// worker and each rehearsal has a state of its own.
pub(crate) fn own(lua: &Lua, name: &str, text: &'static str) -> mlua::Result<Function> {
    let key = (name.to_owned(), text.as_ptr().addr());
    let known = compiled().get_or_insert_default().get(&key).cloned();
    if let Some(bytecode) = known {
        return lua.load(&*bytecode).set_mode(ChunkMode::Binary).set_name(name).into_function();
    }
    let function = lua.load(text).set_name(name).into_function()?;
    // With its lines, which tracebacks show.
    compiled().get_or_insert_default().insert(key, function.dump(false).into());
    Ok(function)
}

fn compiled() -> MutexGuard<'static, Option<Compiled>> {
    COMPILED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps the functions of `LuaJIT` that our own code needs, whatever the script or the sandbox does to the globals.
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

/// The functions kept by [`keep_inner`].
pub(crate) fn inner(lua: &Lua) -> mlua::Result<Table> {
    lua.named_registry_value(INNER)
}

/// Closes the sandbox. `source_of` returns the text of a Lua file that belongs to the script, by its name, or nil.
pub(crate) fn close(lua: &Lua, source_of: Function) -> mlua::Result<()> {
    lua.load(include_str!("sandbox.lua")).set_name("=sandbox").call(source_of)
}

/// Compiles the content of `file`. Bytecode is accepted only where the script `is_open`, outside of the sandbox.
///
/// # Errors
/// The file and line of a syntax error.
pub(crate) fn load(lua: &Lua, file: &str, content: &[u8], is_open: bool) -> Result<Function, ScriptError> {
    // The first line may be meant for the shell; its line end stays, so that lines keep their numbers.
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

/// Flushes what the script has printed, so that it comes before any other output.
pub(crate) fn flush(lua: &Lua) {
    let flushed = inner(lua).and_then(|inner| inner.get::<Function>("flush")?.call::<()>(()));
    // A standard output that cannot be written to is reported when the result is printed.
    drop(flushed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_of_our_own_is_the_same_from_bytecode() {
        for _ in 0..2 {
            let lua = everything();
            let chunk = own(&lua, "=brunt.test", "local held = ...\nlocal n = 5LL\nerror('no')").unwrap();
            let error = chunk.call::<()>(1).unwrap_err().to_string();
            assert!(error.contains("brunt.test:3: no"), "{error}");
            assert!(compiled().as_ref().unwrap().keys().any(|(name, _)| name == "=brunt.test"));
        }
    }

    #[test]
    fn a_peers_text_moves_no_cursor() {
        assert_eq!(
            escaped("ä\tb\n\u{1b}]0;title\u{7}\u{9b}2J\r".as_bytes()),
            "ä\tb\n\\u{1b}]0;title\\u{7}\\u{9b}2J\\r"
        );
    }
}
