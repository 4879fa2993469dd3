//! Hosts of scripts, which make scripts from a plan's files: one language, or several.

use brunt_protocol::plan::plan::Plan;
use brunt_protocol::plan::scenario::Scenarios;
use brunt_protocol::plan::share::Portion;
use brunt_protocol::{Prepared, Registry};

use crate::{FloodScript, Program, ScriptError};

/// Makes the scripts that plans carry. The engine is handed one beside the [`Registry`] of protocols, and knows no other way to a script.
///
/// # Example
///
/// A language whose floods repeat the script's text, and which has no scenarios:
///
/// ```
/// use brunt_protocol::plan::content::Content;
/// use brunt_protocol::plan::plan::{Plan, ProtocolOptions, Script};
/// use brunt_protocol::plan::scenario::Scenarios;
/// use brunt_protocol::plan::share::Portion;
/// use brunt_protocol::plan::stop::StopHandle;
/// use brunt_protocol::plan::target::Url;
/// use brunt_protocol::source::{Heartbeat, RepeatingSource};
/// use brunt_protocol::{Prepared, Registry};
/// use brunt_script::{
///     Begun, FloodPlace, FloodScript, Program, ScriptError, ScriptHost, Scripted, Session, Totals,
/// };
///
/// struct Parrot;
///
/// impl ScriptHost for Parrot {
///     fn flood(&self, plan: &Plan, _: &dyn Prepared) -> Result<Option<Box<dyn FloodScript>>, ScriptError> {
///         let Some(script) = &plan.script else { return Ok(None) };
///         match script.content.0.as_slice() {
///             [] => Err(ScriptError::new(&script.file, "there is nothing to repeat")),
///             text => Ok(Some(Box::new(Text(text.to_vec())))),
///         }
///     }
///
///     fn program(
///         &self,
///         _: &Plan,
///         scenarios: &Scenarios,
///         _: &Registry,
///         _: Portion,
///     ) -> Result<Box<dyn Program>, ScriptError> {
///         let file = scenarios.files.first().map_or("the plan", |file| &file.name);
///         Err(ScriptError::new(file, "parrots have no scenarios"))
///     }
/// }
///
/// struct Text(Vec<u8>);
///
/// impl FloodScript for Text {
///     fn begin(&self, place: &FloodPlace, _: &StopHandle) -> Result<Begun, ScriptError> {
///         let scripted = |_| Scripted {
///             user: Box::new(RepeatingSource::new(self.0.clone(), false)),
///             heart: Heartbeat::default(),
///             address: None,
///         };
///         Ok(Begun { session: Box::new(Silence), workers: (0..place.workers).map(scripted).collect() })
///     }
/// }
///
/// struct Silence;
///
/// impl Session for Silence {
///     fn give_up(&mut self, _: u32) {}
///
///     fn has_done(&self) -> bool {
///         false
///     }
///
///     fn done(self: Box<Self>, _: Totals, _: &StopHandle) -> Result<(), ScriptError> {
///         Ok(())
///     }
/// }
/// # struct Any;
/// # impl Prepared for Any {
/// #     fn client(&self, _: bool) -> Box<dyn brunt_protocol::Client> { unimplemented!() }
/// #     fn user(&self) -> Box<dyn brunt_protocol::source::RequestSource> { Box::new(RepeatingSource::new(*b"", false)) }
/// # }
///
/// let mut plan = Plan::of_calls(Url::parse("tcp://127.0.0.1:7/")?.target, ProtocolOptions::default());
/// plan.script = Some(Script { file: "a.txt".to_owned(), content: Content(b"hi\n".to_vec()), args: Vec::new() });
/// let script = Parrot.flood(&plan, &Any)?.ok_or("a plan with a script")?;
/// let place = FloodPlace { addresses: Vec::new(), host: ("localhost".to_owned(), 7), workers: 2 };
/// let mut begun = script.begin(&place, &StopHandle::default())?;
/// assert_eq!(begun.workers.len(), 2);
/// let call = begun.workers.iter_mut().next().and_then(|worker| worker.user.request(0).ok());
/// assert_eq!(call.map(|call| call.bytes), Some(b"hi\n".as_slice()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait ScriptHost: Send + Sync {
    /// The script of `plan` for its flood ([`Plan::script`]), checked and not run. `prepared` is the plan's protocol.
    /// `None` where the plan has no script, or where no script can make calls of this protocol.
    ///
    /// # Errors
    /// With file and line of what is wrong.
    fn flood(&self, plan: &Plan, prepared: &dyn Prepared) -> Result<Option<Box<dyn FloodScript>>, ScriptError>;

    /// The script of `plan` for its virtual users (`scenarios` of [`Plan::scenarios`]), for the workers of this portion. It is not run.
    ///
    /// # Errors
    /// When it lacks what it needs.
    fn program(
        &self,
        plan: &Plan,
        scenarios: &Scenarios,
        registry: &Registry,
        portion: Portion,
    ) -> Result<Box<dyn Program>, ScriptError>;
}

/// The host of runs without a script.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoScripts;

impl ScriptHost for NoScripts {
    fn flood(&self, _plan: &Plan, _prepared: &dyn Prepared) -> Result<Option<Box<dyn FloodScript>>, ScriptError> {
        Ok(None)
    }

    fn program(
        &self,
        _plan: &Plan,
        scenarios: &Scenarios,
        _registry: &Registry,
        _portion: Portion,
    ) -> Result<Box<dyn Program>, ScriptError> {
        let file = scenarios.files.first().map_or("a script", |file| &file.name);
        Err(ScriptError::new(file, "this run takes no script"))
    }
}
