//! Functions of arrays that `QuickJS` does not interrupt, for lengths at which they return.
#![allow(unsafe_code)]

use rquickjs::class::{Trace, Tracer};
use rquickjs::function::{Args, Params};
use rquickjs::{Class, Ctx, Error, Exception, Function, Object, Result, Value, qjs};

use crate::callable::callable;

/// The most elements of an array that they take. One whose elements exist has fewer: they take 16 bytes each, and a user has 512 MiB.
const MOST: i64 = 1 << 26;

/// Functions of `Array.prototype` that go over all places, those without an element included.
const NAMES: [&str; 13] = [
    "concat",
    "copyWithin",
    "fill",
    "flat",
    "flatMap",
    "join",
    "reverse",
    "shift",
    "slice",
    "sort",
    "splice",
    "toLocaleString",
    "unshift",
];

/// A function that refuses what is too long for it.
struct Bounded<'js> {
    name: &'static str,
    usual: Function<'js>,
}

impl<'js> Trace<'js> for Bounded<'js> {
    fn trace<'a>(&self, tracer: Tracer<'a, 'js>) {
        self.usual.trace(tracer);
    }
}

callable!(Bounded);

impl<'js> Bounded<'js> {
    fn apply(&self, params: &Params<'_, 'js>) -> Result<Value<'js>> {
        let (ctx, list) = (params.ctx(), params.this());
        self.judge(ctx, &list)?;
        let given = || (0..params.len()).filter_map(|at| params.arg(at));
        if self.name == "concat" {
            given().try_for_each(|list| self.judge(ctx, &list))?;
        }
        let mut args = Args::new(ctx.clone(), params.len());
        args.this(list)?;
        args.push_args(given())?;
        args.apply(&self.usual)
    }

    /// Refuses a list that is too long.
    fn judge(&self, ctx: &Ctx<'js>, list: &Value<'js>) -> Result<()> {
        if !list.is_object() {
            return Ok(());
        }
        let mut length = 0;
        // SAFETY: the context and the object are alive. What its `length` throws is the script's.
        if unsafe { qjs::JS_GetLength(ctx.as_raw().as_ptr(), list.as_raw(), &raw mut length) } < 0 {
            return Err(Error::Exception);
        }
        if length > MOST {
            return Err(Exception::throw_range(
                ctx,
                &format!("{}() takes at most {MOST} elements, and got {length}", self.name),
            ));
        }
        Ok(())
    }
}

/// Puts them in place of the usual ones.
pub(crate) fn replace(ctx: &Ctx<'_>) -> Result<()> {
    let array: Object<'_> = ctx.globals().get("Array")?;
    let prototype: Object<'_> = array.get("prototype")?;
    for name in NAMES {
        let usual: Function<'_> = prototype.get(name)?;
        let length: usize = usual.get("length")?;
        let bounded = Class::instance(ctx.clone(), Bounded { name, usual })?;
        let bounded: Function<'_> = bounded.into_value().get()?;
        // An existing property stays as hidden as it is.
        prototype.set(name, bounded.with_name(name)?.with_length(length)?)?;
    }
    Ok(())
}
