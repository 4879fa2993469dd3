//! Resources that all states of a script share: files, rows of data, secrets, declarations.

use super::by_flags::Offered;
use super::data::{Feeder, Order, Rows, SharedFeeder};
use super::stream::Stream;
use super::table::{Kind, Table as DataTable};
use super::{redis, sqlite};
use brunt_plan::plan::Plan;
use brunt_plan::plan::Sandbox;
use brunt_plan::scenario::Streamed;
use brunt_plan::share::Portion;
use brunt_plan::threshold::Selection;
use brunt_protocol::scenario::{Fields, Value};
use brunt_record::redaction::Secrets;
use brunt_script::{Asking, Files, is_inside, outside};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The places of streamed files, according to the run's sandbox.
pub(super) struct Streaming {
    /// The script's own directory.
    pub(super) directory: PathBuf,
    /// The files that were opened while a script is loaded.
    pub(super) opened: Mutex<Vec<Streamed>>,
    /// The files that the plan names, for a script that is carried out.
    pub(super) planned: Option<Vec<Streamed>>,
}

/// Resources that the states of one script share, across all workers.
pub(crate) struct Resources {
    pub(super) files: Files,
    pub(super) dialects: Vec<Offered>,
    pub(super) env: BTreeMap<String, String>,
    pub(super) base_url: Option<String>,
    pub(super) seed: u64,
    pub(super) sandbox: Sandbox,
    /// The workers among which rows are dealt out here.
    pub(super) portion: Portion,
    pub(super) streaming: Streaming,
    pub(super) asking: Asking,
    /// Secrets that declared names must not show.
    pub(super) secrets: Secrets,
    /// Whether thresholds tell calls apart by the scenario and the group of their user.
    pub(super) by_place: bool,
    /// Data by the arguments that asked for it, so that it is read once.
    pub(super) data: Mutex<Vec<(String, Arc<Rows>)>>,
    /// Feeders in the order in which the script makes them.
    pub(super) feeders: Mutex<Vec<SharedFeeder>>,
    /// Hands out the numbers of the run's iterations.
    iterations: OnceLock<Feeder>,
}

impl Resources {
    pub(super) fn new(
        files: Files,
        dialects: Vec<Offered>,
        env: BTreeMap<String, String>,
        base_url: Option<String>,
        seed: u64,
    ) -> Self {
        let sandbox = Sandbox::default();
        let streaming = Streaming { directory: PathBuf::new(), opened: Mutex::default(), planned: None };
        let (data, feeders) = (Mutex::default(), Mutex::default());
        let portion = Portion::whole(1);
        let asking = Asking::default();
        let secrets = Secrets::default();
        Self {
            files,
            dialects,
            env,
            base_url,
            seed,
            sandbox,
            portion,
            streaming,
            asking,
            secrets,
            by_place: false,
            data,
            feeders,
            iterations: OnceLock::new(),
        }
    }

    /// The resources of a script with these permissions.
    pub(super) fn within(self, sandbox: Sandbox) -> Self {
        Self { sandbox, ..self }
    }

    /// The resources with these secrets hidden.
    pub(super) fn hiding(self, secrets: Secrets) -> Self {
        Self { secrets, ..self }
    }

    /// The resources for counting calls by a plan's thresholds.
    pub(super) fn counting_for(self, plan: &Plan) -> Self {
        Self { by_place: Selection::all(plan.conditions()).iter().any(Selection::asks_for_place), ..self }
    }

    /// The resources for dealing rows out to the workers of this portion.
    pub(super) fn dealing(self, portion: Portion) -> Self {
        Self { portion, ..self }
    }

    /// The resources with a way to ask targets.
    pub(super) fn asking(self, asking: Asking) -> Self {
        Self { asking, ..self }
    }

    /// Sets the files that the plan streams, for a script in `directory` that is carried out.
    pub(super) fn streaming(self, directory: PathBuf, planned: Option<Vec<Streamed>>) -> Self {
        Self { streaming: Streaming { directory, opened: Mutex::default(), planned }, ..self }
    }

    /// Takes the files that were streamed.
    pub(super) fn take_streamed(&self) -> Vec<Streamed> {
        std::mem::take(&mut *self.streaming.opened.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Opens a file of rows that stays on disk.
    pub(super) fn stream(&self, kind: Kind, name: &str, options: &Value<'_>) -> Result<Rows, String> {
        let Streaming { directory, opened, planned } = &self.streaming;
        if planned.is_some() && self.sandbox == Sandbox::Closed {
            return Err(format!(
                "{name} is streamed from disk, and a plan in the sandbox has its own files alone: --no-sandbox lets it, or \
                 leave stream out when the plan is written, so that it carries the rows"
            ));
        }
        let table = if kind == Kind::Csv {
            DataTable::from_options(name, options)?
        } else {
            Fields::parse(&format!("brunt.{}", kind.name()), options, &["stream"]).map_err(|e| e.0)?;
            DataTable { columns: Vec::new(), separator: b',' }
        };
        let path = beside(directory, name, self.sandbox != Sandbox::Open)?;
        let stream = Stream::open(kind, &path, name, table)?;
        match planned {
            None => {
                let mut opened = opened.lock().unwrap_or_else(PoisonError::into_inner);
                if !opened.iter().any(|one| one.name == name) {
                    opened.push(Streamed { name: name.to_owned(), bytes: stream.bytes() });
                }
            }
            Some(planned) => match planned.iter().find(|one| one.name == name) {
                Some(one) if one.bytes != stream.bytes() => {
                    let (got, expected) = (stream.bytes(), one.bytes);
                    return Err(format!(
                        "{name} has {got} bytes, and had {expected} when the plan was made: put that file back, or make the \
                         plan again"
                    ));
                }
                Some(_) => {}
                None => return Err(format!("the plan names no streamed file '{name}': make the plan again")),
            },
        }
        Ok(Rows::Streamed(stream))
    }

    /// The rows that a query finds.
    pub(super) fn query(&self, name: &str, options: &Value<'_>) -> Result<Rows, String> {
        let fields = Fields::parse("brunt.sqlite", options, &["query"]).map_err(|e| e.0)?;
        let query = fields.text("query").map_err(|e| e.0)?.unwrap_or_default();
        let is_confined = self.sandbox != Sandbox::Open;
        let made = self.files.made(&format!("{name}: {query}"), |directory| {
            sqlite::rows(&beside(directory, name, is_confined)?, name, query)
        })?;
        Rows::read(Kind::JsonLines, name, &made, &Value::Nil)
    }

    /// The elements of a Redis list.
    pub(super) fn list(&self, options: &Value<'_>) -> Result<Rows, String> {
        let list = redis::List::from_options(options)?;
        let name = list.name();
        let made = self.files.made(&name, |_| {
            if self.sandbox == Sandbox::Open {
                return list.read();
            }
            Err("brunt.redis_list connects while the script is loaded, which the sandbox does not let it (--no-sandbox, or \
                 run without --sandbox, lifts it)"
                .to_owned())
        })?;
        Rows::read(Kind::JsonLines, &name, &made, &Value::Nil)
    }

    pub(super) fn rows(&self, kind: &str, name: &str, options: &Value<'_>) -> Result<Arc<Rows>, String> {
        let asked = format!("{kind} {name} {options:?}");
        let mut known = self.data.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, rows)) = known.iter().find(|(known, _)| *known == asked) {
            return Ok(Arc::clone(rows));
        }
        let rows = match (kind, Kind::named(kind)) {
            ("sqlite", _) => self.query(name, options)?,
            ("redis_list", _) => self.list(options)?,
            (_, Some(kind)) if options.get("stream") == &Value::Boolean(true) => self.stream(kind, name, options)?,
            (_, Some(kind)) => Rows::read(kind, name, &self.files.read(name)?, options)?,
            _ => return Err(format!("there is no data of kind '{kind}'")),
        };
        let rows = Arc::new(rows);
        known.push((asked, Arc::clone(&rows)));
        Ok(rows)
    }

    /// The number of an iteration among those of the run that have one, from 1: no other has it, on any machine.
    pub(super) fn iteration(&self) -> Option<u64> {
        self.iterations.get_or_init(|| Feeder::new(Order::Queue, u64::MAX, 0, self.portion)).next()
    }

    /// The feeder at this place in the script, the same for all workers.
    pub(super) fn feeder(&self, place: usize, order: Order, rows: u64) -> SharedFeeder {
        let mut known = self.feeders.lock().unwrap_or_else(PoisonError::into_inner);
        while known.len() <= place {
            let seed = self.seed ^ (known.len() as u64) << 32;
            known.push(Arc::new(Feeder::new(order, rows, seed, self.portion)));
        }
        known.get(place).cloned().unwrap_or_else(|| Arc::new(Feeder::new(order, rows, 0, self.portion)))
    }
}

/// The path of a file beside the script; in the sandbox it has to be below the script's directory.
fn beside(directory: &Path, name: &str, is_confined: bool) -> Result<PathBuf, String> {
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    if !is_confined {
        return Ok(directory.join(name));
    }
    let path = is_inside(Path::new(name)).then(|| directory.join(name).canonicalize().ok()).flatten();
    let home = directory.canonicalize().map_err(|e| format!("cannot read {name}: {e}"))?;
    path.filter(|path| path.starts_with(home)).ok_or_else(|| outside(name))
}
