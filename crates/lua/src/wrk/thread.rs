//! Threads in the eyes of scripts: `setup(thread)` and `wrk.thread`.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bstr::{BStr, BString};
use mlua::{Lua, ObjectLike as _, Table, Value, WeakLua};

use super::address;
use super::values::Copied;

/// State shared by a worker and the objects that represent it.
pub(super) struct Thread {
    /// The worker's number.
    pub(super) number: u32,
    lua: WeakLua,
    stopped: AtomicBool,
    /// Whether a hook that never returned has its state.
    lost: AtomicBool,
    address: Mutex<Option<SocketAddr>>,
}

impl Thread {
    pub(super) fn new(number: u32, lua: &Lua) -> Self {
        Self {
            number,
            lua: lua.weak(),
            stopped: AtomicBool::new(false),
            lost: AtomicBool::new(false),
            address: Mutex::new(None),
        }
    }

    /// The address of its connections, if the script has set one.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        *self.address.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the script has stopped it.
    #[inline]
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Gives up its state: from now on nobody waits for it.
    pub(super) fn give_up(&self) {
        self.lost.store(true, Ordering::Relaxed);
    }

    fn state(&self) -> Result<Lua, String> {
        if self.lost.load(Ordering::Relaxed) {
            return Err(format!("thread {} never came back from a hook, and its values with it", self.number + 1));
        }
        self.lua.try_upgrade().ok_or_else(|| "the thread is gone".to_owned())
    }

    fn get(&self, name: &BString) -> Result<Copied, String> {
        let value: mlua::Result<Value> = self.state()?.globals().get(BStr::new(name));
        Copied::from_lua(&value.map_err(|error| error.to_string())?)
    }

    fn set(&self, name: &BString, value: &Value) -> Result<(), String> {
        let value = Copied::from_lua(value)?;
        self.state()?.globals().set(BStr::new(name), value).map_err(|error| error.to_string())
    }

    /// The object that represents it in `lua`, one of the states.
    pub(super) fn object(self: &Arc<Self>, lua: &Lua) -> mlua::Result<Value> {
        let natives = lua.create_table()?;
        let this = || Arc::clone(self);
        let thread = this();
        let get = move |_: &Lua, name: BString| match thread.get(&name) {
            Ok(value) => Ok((Some(value), None)),
            Err(problem) => Ok((None, Some(problem))),
        };
        natives.set("get", lua.create_function(get)?)?;
        let thread = this();
        let set = move |_: &Lua, (name, value): (BString, Value)| Ok(thread.set(&name, &value).err());
        natives.set("set", lua.create_function(set)?)?;
        let thread = this();
        let stop = move |_: &Lua, ()| {
            thread.stopped.store(true, Ordering::Relaxed);
            Ok(())
        };
        natives.set("stop", lua.create_function(stop)?)?;
        let thread = this();
        let address = move |_: &Lua, ()| Ok(thread.address().map(address::to_text));
        natives.set("address", lua.create_function(address)?)?;
        let thread = this();
        let redirect = move |_: &Lua, text: String| {
            *thread.address.lock().unwrap_or_else(PoisonError::into_inner) = address::of_text(&text);
            Ok(())
        };
        natives.set("redirect", lua.create_function(redirect)?)?;
        let objects: Table = lua.named_registry_value(super::state::OBJECTS)?;
        objects.call_function("thread", natives)
    }
}
