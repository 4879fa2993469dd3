//! The texts of errors' stacks: the error's own, then a line for each place in the script, by its source map where it has one.

use std::fmt::Write as _;
use std::rc::Rc;

use rquickjs::function::This;
use rquickjs::{Array, Ctx, Function, Object, Result, Value};

use crate::bytes;
use crate::modules::Modules;
use crate::stack::Room;
use crate::user::User;

/// The most bytes of an error's name and of its message that its stack begins with.
const MOST_TEXT: usize = 32 << 10;

/// Gives errors of this runtime their texts.
pub(crate) fn prepare<'js>(ctx: &Ctx<'js>, user: &Rc<User>) -> Result<()> {
    let me = Rc::clone(user);
    let text = move |ctx: Ctx<'js>, error: Object<'js>, frames: Array<'js>| {
        // A script that has no stack left is told so as well.
        let _room = Room::on(&ctx);
        text(&me.modules, &error, &frames)
    };
    let error: Object<'js> = ctx.globals().get("Error")?;
    error.set("prepareStackTrace", Function::new(ctx.clone(), text)?)
}

fn text<'js>(modules: &Modules, error: &Object<'js>, frames: &Array<'js>) -> Result<String> {
    let part = |name: &str| -> Result<Option<String>> {
        let value: Value<'js> = error.get(name)?;
        if value.is_undefined() { Ok(None) } else { bytes::text_up_to(error.ctx(), &value, MOST_TEXT).map(Some) }
    };
    let mut text = part("name")?.unwrap_or_else(|| "Error".to_owned());
    let message = part("message")?.filter(|message| !message.is_empty());
    // A string takes whatever is written to it.
    let _ = message.map(|message| write!(text, ": {message}"));
    for frame in frames.iter::<Object<'js>>() {
        let frame = frame?;
        let call = |name: &str| frame.get::<_, Function<'js>>(name);
        let file: Option<String> = call("getFileName")?.call((This(frame.clone()),))?;
        let Some(file) = file.filter(|file| Modules::is_scripts(file)) else { continue };
        let function: Option<String> = call("getFunctionName")?.call((This(frame.clone()),))?;
        let function = function.filter(|function| !function.is_empty());
        // They are -1 where they are not known, which is 0 here.
        let line: Option<f64> = call("getLineNumber")?.call((This(frame.clone()),))?;
        let column: Option<f64> = call("getColumnNumber")?.call((This(frame.clone()),))?;
        let place = modules.place(&file, line.unwrap_or(0.0) as usize, column.unwrap_or(0.0) as usize);
        let _ = write!(text, "\n    at {} ({place})", function.as_deref().unwrap_or("<anonymous>"));
    }
    Ok(text)
}
