//! The languages that scripts are written in.

use brunt_lua::LuaJit;
use brunt_script::ScriptHost;

/// The host of the scripts that brunt carries out: wrk's and scenarios, in Lua.
pub const SCRIPTS: &dyn ScriptHost = &LuaJit;
