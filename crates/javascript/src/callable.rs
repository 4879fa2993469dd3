//! Values of Rust that scripts see and call as functions.

/// Implements `JsClass` for a type with a lifetime `'js` and a method `apply(&self, &Params) -> Result<Value>`.
///
/// The type must hold nothing with a lifetime but values of the engine of `'js`, which is what makes `JsLifetime` sound, and trace them all.
macro_rules! callable {
    ($name:ident) => {
        // SAFETY: its only lifetime is that of the values that it holds, which `Changed` replaces.
        unsafe impl<'js> rquickjs::JsLifetime<'js> for $name<'js> {
            type Changed<'to> = $name<'to>;
        }

        impl<'js> rquickjs::class::JsClass<'js> for $name<'js> {
            const NAME: &'static str = "Function";
            const KIND: rquickjs::class::ClassKind = rquickjs::class::ClassKind::Callable;
            type Mutable = rquickjs::class::Readable;

            fn prototype(ctx: &rquickjs::Ctx<'js>) -> rquickjs::Result<Option<rquickjs::Object<'js>>> {
                Ok(Some(rquickjs::Function::prototype(ctx.clone())))
            }

            fn constructor(_: &rquickjs::Ctx<'js>) -> rquickjs::Result<Option<rquickjs::function::Constructor<'js>>> {
                Ok(None)
            }

            fn call<'a>(
                this: &rquickjs::class::JsCell<'js, Self>,
                params: rquickjs::function::Params<'a, 'js>,
            ) -> rquickjs::Result<rquickjs::Value<'js>> {
                this.borrow().apply(&params)
            }
        }
    };
}

pub(crate) use callable;
