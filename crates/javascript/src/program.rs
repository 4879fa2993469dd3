//! A plan's script, from its files to what its users share.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use brunt_plan::environment::Environment;
use brunt_plan::plan::Plan;
use brunt_plan::plan::ProtocolOptions;
use brunt_plan::scenario::Scenarios;
use brunt_plan::target::{Target, Url};
use brunt_protocol::Registry;
use brunt_protocol::discovery::Inquiry;
use brunt_protocol::scenario::{ClientSetting, Value};
use brunt_record::redaction::Secrets;
use brunt_script::{Asking, Files, KeepAlive, Library, Program, ScriptClient, ScriptError};

use crate::library::JavaScriptLibrary;
use crate::modules::Modules;
use crate::options::Options;
use crate::shared::{ASIDE, SUMMARY, Schema, Shared};
use crate::user::User;
use crate::worker::Worker;

/// The most connections of a user to one origin at once, as k6's `batchPerHost`.
const PER_HOST: u32 = 6;
/// The timeout of a call that has none of its own, as in k6.
const TIMEOUT_NS: u64 = 60_000_000_000;

/// How the names of contents begin that servers of gRPC have told of themselves.
const REFLECTED: &str = "reflection of ";

/// What there is to run a script with.
pub(crate) struct Source {
    pub(crate) modules: Arc<Modules>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) seed: u64,
    pub(crate) secrets: Secrets,
}

/// What is known of a script once its top has run.
pub(crate) struct Probed {
    pub(crate) options: Options,
    pub(crate) has_setup: bool,
    pub(crate) has_teardown: bool,
    pub(crate) has_summary: bool,
    /// The schemas that its top has loaded.
    pub(crate) schemas: Vec<Schema>,
    /// The kinds of the script's own metrics, by name.
    pub(crate) metrics: Vec<(String, brunt_record::figures::OwnKind)>,
}

impl Source {
    /// Runs the script's top, and reads its options.
    ///
    /// # Errors
    /// The file and line of what is wrong.
    pub(crate) fn probe(&self, shows_top: bool) -> Result<Probed, ScriptError> {
        let shared = Arc::new(self.shared(None, shows_top));
        let worker = Worker::new(shared, 0);
        let user = User::new(&worker);
        let probed = user.with_script(|script| {
            let probed = || {
                let text =
                    script.ctx.json_stringify(script.options.clone())?.map(|text| text.to_string()).transpose()?;
                let has = |name: &str| script.function(name).map(|function| function.is_some());
                let executable = |name: &str| has(name).unwrap_or(false);
                let options = Options::read(text.as_deref().unwrap_or("{}"), &self.env, &executable);
                Ok::<_, rquickjs::Error>((options, has("setup")?, has("teardown")?, has(SUMMARY)?))
            };
            probed().map_err(|error| user.problem(&script.ctx, &error))
        });
        let file = self.modules.script();
        let probed = probed.and_then(|probed| probed).map_err(|problem| ScriptError::from_text(&problem));
        let (options, has_setup, has_teardown, has_summary) = probed?;
        let options = options.map_err(|wrong| match self.modules.line_of_option(&wrong.written) {
            Some(line) => ScriptError::from_text(&format!("{file}:{line}: {}", wrong.problem)),
            None => ScriptError::new(file, wrong.problem),
        })?;
        Ok(Probed {
            options,
            has_setup,
            has_teardown,
            has_summary,
            schemas: worker.schemas.take(),
            metrics: worker.declared(),
        })
    }

    fn shared(&self, known: Option<(&Probed, Vec<ScriptClient>)>, shows_top: bool) -> Shared {
        let (probed, clients) = known.map_or((None, Vec::new()), |(probed, clients)| (Some(probed), clients));
        let mut functions = probed.map_or_else(Vec::new, |probed| probed.options.functions());
        let scenarios = functions.len();
        let wanted =
            probed.map_or_else(|| "[]".to_owned(), |probed| probed.options.wanted(probed.has_summary, &probed.metrics));
        functions.extend(ASIDE.map(|name| (name.to_owned(), name.to_owned())));
        Shared {
            modules: Arc::clone(&self.modules),
            env: self.env.clone(),
            options: probed.map(|probed| probed.options.json.clone()),
            samples_checks: wanted.contains(r#""checks""#),
            wanted,
            executors: probed.map_or_else(Vec::new, |probed| probed.options.executors()),
            functions,
            has_setup: probed.is_some_and(|probed| probed.has_setup),
            has_teardown: probed.is_some_and(|probed| probed.has_teardown),
            has_summary: probed.is_some_and(|probed| probed.has_summary),
            pacing_ns: probed.map_or(0, |probed| probed.options.pacing_ns),
            clients,
            schemas: probed.map_or_else(Vec::new, |probed| probed.schemas.clone()),
            seed: self.seed,
            secrets: self.secrets.clone(),
            shows_top,
            is_silent: false,
            begun: (0..scenarios).map(|_| AtomicU64::new(0)).collect(),
            ended: AtomicU64::new(0),
            users: AtomicU64::new(0),
            started: Instant::now(),
            started_at_ms: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64() * 1e3),
            extents: probed.map_or_else(Vec::new, |probed| probed.options.extents()),
            arrays: Mutex::default(),
        }
    }

    /// The program of a script whose top has been run.
    pub(crate) fn program(&self, probed: &Probed, clients: Vec<ScriptClient>) -> Shared {
        self.shared(Some((probed, clients)), false)
    }
}

/// The clients by which k6's modules make their calls.
///
/// # Errors
/// When the program has no HTTP.
pub(crate) fn clients(
    registry: &Registry,
    options: &Options,
    base: Option<&Target>,
    schemas: &[Schema],
    (modules, asking): (&Arc<Modules>, &Asking),
) -> Result<Vec<ScriptClient>, String> {
    let base = base.map(|target| Target { path: String::new(), ..target.clone() });
    let client = |name: &str, own: Value<'_>, base: Option<Target>| {
        let mut offered = registry.protocols().filter_map(|protocol| Some((protocol.dialect()?, protocol.schemes())));
        let Some((dialect, schemes)) = offered.find(|(dialect, _)| dialect.name() == name) else {
            return Err(format!("this program has no protocol '{name}'"));
        };
        let base = base.filter(|base| schemes.iter().any(|scheme| scheme.name == base.scheme));
        let ask = |call: &ProtocolOptions| match (asking.asks(), base.as_ref()) {
            (Some(ask), Some(base)) => ask(base, base, call),
            _ => Err("there is no target to ask here".to_owned()),
        };
        let learn = |name: &str, make: &dyn Fn(&Inquiry<'_>) -> Result<Vec<u8>, String>| {
            modules.files().made(name, |_| make(&ask))
        };
        let beside = Arc::clone(modules);
        let read = move |path: &str| beside.files().find(path);
        let setting = ClientSetting {
            base: base.as_ref(),
            read: &read,
            learn: &learn,
            closes: options.keep_alive == KeepAlive::Call,
        };
        let caller = dialect.client(&own, &setting).map_err(|e| e.0)?;
        Ok(ScriptClient {
            caller: Arc::from(caller),
            base,
            schemes: schemes.to_vec(),
            per_user: PER_HOST,
            pool: None,
            grows: false,
            pipeline: 1,
            timeout_ns: Some(TIMEOUT_NS),
            keep_alive: options.keep_alive,
            identities: options.identities.clone(),
            is_base_found: true,
        })
    };
    let mut fields = Vec::new();
    if let Some(agent) = &options.user_agent {
        fields.push((Value::text("User-Agent"), Value::text(agent)));
    }
    let mut http = vec![(Value::text("headers"), Value::Table(fields))];
    // ALPN chooses HTTP/2 on each connection with TLS, whatever the base is. Plain connections that serve one call speak HTTP/1.1 alone, which
    // has `Connection: close`.
    if options.keep_alive != KeepAlive::Call || base.as_ref().is_some_and(|base| base.scheme == "https") {
        http.push((Value::text("http"), Value::text("auto")));
    }
    let mut all =
        vec![client("http", Value::Table(http), base.clone())?, client("ws", Value::Table(Vec::new()), base)?];
    for schema in schemas {
        let mut grpc = vec![(Value::text("json"), Value::Boolean(true))];
        let mut base = None;
        match schema {
            Schema::Files(files, directories) => {
                grpc.push((Value::text("proto"), Value::list(files.iter().map(|file| Value::text(file)))));
                grpc.push((Value::text("proto_path"), Value::list(directories.iter().map(|one| Value::text(one)))));
            }
            Schema::Set(file) => grpc.push((Value::text("descriptor_set"), Value::text(file))),
            Schema::Server(url) => {
                grpc.push((Value::text("reflection"), Value::Boolean(true)));
                base = Some(Url::parse(url).map_err(|error| format!("{url}: {error}"))?.target);
            }
        }
        all.push(
            client("grpc", Value::Table(grpc), base).map_err(|problem| problem.replace("brunt.grpc", "k6/net/grpc"))?,
        );
    }
    Ok(all)
}

/// A plan's script, before any worker runs it.
pub(crate) struct JavaScriptProgram(Arc<Shared>);

impl JavaScriptProgram {
    /// The script of `plan`.
    ///
    /// # Errors
    /// The file and line of what is wrong.
    pub(crate) fn prepare(plan: &Plan, scenarios: &Scenarios, registry: &Registry) -> Result<Self, ScriptError> {
        let source = Source::of_plan(plan, scenarios)?;
        let mut probed = source.probe(false)?;
        // What servers have told of themselves travels in the plan.
        let told = scenarios.files.iter().filter_map(|file| file.name.strip_prefix(REFLECTED));
        probed.schemas.extend(told.map(|url| Schema::Server(url.to_owned())));
        let clients = clients(
            registry,
            &probed.options,
            Some(&plan.target),
            &probed.schemas,
            (&source.modules, &Asking::default()),
        )
        .map_err(|problem| ScriptError::new(source.modules.script(), problem))?;
        Ok(Self(Arc::new(source.program(&probed, clients))))
    }
}

impl Source {
    /// The script that a plan carries.
    ///
    /// # Errors
    /// When it lacks what it needs.
    pub(crate) fn of_plan(plan: &Plan, scenarios: &Scenarios) -> Result<Self, ScriptError> {
        let file =
            scenarios.files.first().cloned().ok_or_else(|| ScriptError::new("the plan", "there is no script"))?;
        let env = revealed(&file.name, scenarios, &plan.environment)?;
        let files = Files::Plan(scenarios.files.get(1..).unwrap_or(&[]).to_vec());
        let modules = Arc::new(Modules::new(file.name, file.content.0, files));
        Ok(Self { modules, env, seed: plan.seed, secrets: plan.secrets() })
    }
}

/// The values that a plan gives its script.
pub(crate) fn revealed(
    file: &str,
    scenarios: &Scenarios,
    environment: &Environment,
) -> Result<Vec<(String, String)>, ScriptError> {
    let reveal = |(name, value): (&String, &brunt_plan::secret::Template)| {
        let value = value.reveal(|variable| environment.value(variable));
        value.map(|value| (name.clone(), value)).map_err(|e| ScriptError::new(file, format!("the value '{name}': {e}")))
    };
    scenarios.env.iter().map(reveal).collect()
}

impl Program for JavaScriptProgram {
    fn rehearse(&self, scenarios: &[&str]) -> Result<(), ScriptError> {
        let known = |name: &str| self.0.functions.iter().any(|(scenario, _)| scenario == name);
        match scenarios.iter().find(|name| !known(name)) {
            Some(name) => Err(ScriptError::new(self.0.modules.script(), format!("there is no scenario '{name}'"))),
            None => Ok(()),
        }
    }

    fn begin(&self, worker: u32) -> Result<Box<dyn Library>, ScriptError> {
        Ok(Box::new(JavaScriptLibrary::begin(&self.0, worker)?))
    }
}
