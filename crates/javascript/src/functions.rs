//! Functions of Rust's that a module of JavaScript's has.

use rquickjs::{Ctx, Function, Object, Result};

/// The functions of a module. Those that it does not name are not made.
pub(crate) struct Functions<'a, 'js> {
    pub(crate) ctx: &'a Ctx<'js>,
    pub(crate) object: Object<'js>,
    names: &'static [&'static str],
}

impl<'a, 'js> Functions<'a, 'js> {
    /// None yet, of a module that has functions of these names.
    pub(crate) fn new(ctx: &'a Ctx<'js>, names: &'static [&'static str]) -> Result<Self> {
        Ok(Self { ctx, object: Object::new(ctx.clone())?, names })
    }

    /// Makes a function, if the module has one of this name.
    pub(crate) fn set(&self, name: &str, function: impl FnOnce() -> Result<Function<'js>>) -> Result<()> {
        if self.names.contains(&name) { self.object.set(name, function()?) } else { Ok(()) }
    }
}
