//! The way of a user's runtime to its modules.

use std::sync::Arc;

use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::Declared;
use rquickjs::{Ctx, Exception, Function, Module};

use crate::bytes::Text;
use crate::modules::{Modules, NATIVE, NATIVES};
use crate::native::{Every, Natives};

/// The modules of one user's runtime.
#[derive(Clone)]
pub(crate) struct UserModules(pub(crate) Arc<Modules>);

impl Resolver for UserModules {
    fn resolve<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        base: &str,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<String> {
        self.0.found(base, name).map_err(|problem| {
            let at = self.0.line_of(base, name).map_or_else(String::new, |line| format!("{base}:{line}: "));
            Exception::throw_reference(ctx, &format!("{at}{problem}"))
        })
    }
}

impl Loader for UserModules {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<Module<'js, Declared>> {
        match name {
            NATIVE => Module::declare_def::<Natives, _>(ctx.clone(), NATIVE),
            NATIVES => Module::declare_def::<Every, _>(ctx.clone(), NATIVES),
            _ => {
                let module = self.0.declared(ctx, name)?;
                if self.0.has_meta(name) {
                    let (modules, base) = (Arc::clone(&self.0), name.to_owned());
                    let resolve = move |ctx: Ctx<'js>, Text(name): Text| {
                        modules.url(&base, &name).map_err(|problem| Exception::throw_type(&ctx, &problem))
                    };
                    module.meta()?.set("resolve", Function::new(ctx.clone(), resolve)?.with_name("resolve")?)?;
                }
                Ok(module)
            }
        }
    }
}
