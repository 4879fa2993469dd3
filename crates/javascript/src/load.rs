//! Loading a script from disk: its files, its options, where its calls go.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use brunt_plan::content::Content;
use brunt_plan::environment::Environment;
use brunt_plan::plan::Sandbox;
use brunt_plan::scenario::{File, Scenarios};
use brunt_plan::secret::{Template, is_secret_header};
use brunt_plan::secrets::secrets_in;
use brunt_plan::target::{Target, Url};
use brunt_plan::threshold::Threshold;
use brunt_protocol::Registry;
use brunt_record::figures::OwnKind;
use brunt_script::{Asking, ClientKind, Files, LoadOptions, Loaded, Outline, OwnRules, ScriptError};

use crate::modules::{Modules, STRIP_TYPES, is_typed};
use crate::native::FAILS;
use crate::options::{VARIABLES, declared};
use crate::program::{Source, clients, revealed};
use crate::rehearsal::rehearse;

/// Loads the script at `path` from disk, with the files that it imports and opens.
///
/// # Errors
/// The file and line of what is wrong.
pub fn load(path: &Path, options: &LoadOptions, registry: &Registry) -> Result<Loaded, ScriptError> {
    let name = path.display().to_string();
    let content = std::fs::read(path).map_err(|e| ScriptError::new(&name, format!("cannot be read: {e}")))?;
    if is_typed(&name) {
        return Err(ScriptError::new(&name, STRIP_TYPES));
    }
    let directory = path.parent().unwrap_or(Path::new("")).to_owned();
    let files = Files::Disk { directory, confined: options.sandbox != Sandbox::Open, seen: Mutex::default() };
    let modules = Arc::new(Modules::new(name.clone(), content.clone(), files));
    let environment = Environment::default();
    // As in k6, a script finds the environment in `__ENV`; one in the sandbox finds what it is given. What is no text is left out.
    let is_open = options.sandbox == Sandbox::Open;
    let texts =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let given: Vec<(String, String)> = texts.filter(|_| is_open).collect();
    let mut all: BTreeMap<String, Template> =
        given.iter().map(|(name, value)| (name.clone(), template(name, value))).collect();
    all.extend(options.env.clone());
    let secrets = secrets_in(all.values(), options.base_url.as_deref(), |name| environment.value(name));
    let mut scenarios = Scenarios { env: all, ..Scenarios::default() };
    let source = Source {
        modules: Arc::clone(&modules),
        env: revealed(&name, &scenarios, &environment)?,
        seed: 0,
        secrets: secrets.clone(),
    };
    let loaded = loaded(&source, &mut scenarios, options, registry, content);
    loaded.map_err(|error| error.without(&secrets))
}

/// A value of the environment. One whose name suggests a secret is neither shown nor stored.
fn template(name: &str, value: &str) -> Template {
    if is_secret_header(name) { Template::secret(value) } else { Template::open(value) }
}

fn loaded(
    source: &Source,
    scenarios: &mut Scenarios,
    given: &LoadOptions,
    registry: &Registry,
    content: Vec<u8>,
) -> Result<Loaded, ScriptError> {
    let file = source.modules.script();
    let wrong = |problem: String| ScriptError::new(file, problem);
    let probed = source.probe(true)?;
    let options = &probed.options;
    let mut thresholds = options.conditions(&probed.metrics).map_err(wrong)?;
    // `exec.test.fail` fails the run at its end, as a threshold does.
    let may_fail = contains(&content, b"k6/execution") && contains(&content, b"fail(");
    if may_fail {
        thresholds.extend(format!("figure {FAILS}:sum == 0").parse::<Threshold>());
    }
    let mut schemas = probed.schemas.clone();
    let surroundings = (&source.modules, &given.asking);
    let program = source.program(&probed, clients(registry, options, None, &schemas, surroundings).map_err(wrong)?);
    let rehearsed = rehearse(&Arc::new(program.silenced()))?;
    if !rehearsed.schemas.is_empty() {
        // Servers are asked now for what they tell of themselves.
        schemas.extend(rehearsed.schemas);
        clients(registry, options, None, &schemas, surroundings).map_err(wrong)?;
    }
    // A URL in a script that makes no calls is a text.
    let written = || if source.modules.makes_calls() { written_target(&content, &source.env) } else { None };
    let target = rehearsed.target.or_else(written);
    // A script that makes no call runs all the same.
    let target = target.or_else(|| Url::parse("http://localhost").ok().map(|url| url.target));
    let names: Vec<String> = options.scenarios.iter().map(|one| one.name.clone()).collect();
    if !given.injections.is_empty() {
        return Err(wrong(
            "--inject changes scenarios in Lua: options of a script of k6 stand in the script".to_owned(),
        ));
    }
    if let Some(name) = given.only.iter().find(|name| !names.contains(name)) {
        return Err(wrong(format!("there is no scenario '{name}'; there are {}", names.join(", "))));
    }
    let mut files = vec![File { name: file.to_owned(), content: Content(content) }];
    if let Files::Disk { seen, .. } = source.modules.files() {
        files.append(&mut seen.lock().unwrap_or_else(PoisonError::into_inner));
    }
    // Of this machine's environment, what the script names travels with it.
    let is_named = |name: &str| files.iter().any(|file| contains(&file.content.0, name.as_bytes()));
    let sets_users = |name: &str| VARIABLES.iter().any(|(variable, _)| *variable == name);
    scenarios.env.retain(|name, _| given.env.contains_key(name) || sets_users(name) || is_named(name));
    scenarios.files = files;
    scenarios.base_url.clone_from(&given.base_url);
    scenarios.populations = options.scenarios.iter().map(|one| one.population.clone()).collect();
    scenarios.throttle = options.rps.and_then(|rps| rps.to_string().parse().ok());
    scenarios.own = options.declared(probed.has_summary, &probed.metrics);
    if may_fail {
        scenarios.own.push(declared(FAILS, OwnKind::Counter));
    }
    scenarios.hosts = options.hosts.clone();
    scenarios.setup_timeout_ns = options.setup_timeout_ns;
    scenarios.teardown_timeout_ns = options.teardown_timeout_ns;
    if !given.only.is_empty() {
        scenarios.keep(&given.only);
    }
    let judges = |metrics: &[&str]| options.thresholds.iter().any(|asked| metrics.contains(&asked.metric.as_str()));
    Ok(Loaded {
        scenarios: std::mem::take(scenarios),
        thresholds,
        target,
        clients: vec![ClientKind { name: "k6/http".to_owned(), traces: true }],
        names,
        assigned_locals: Vec::new(),
        unset_globals: Vec::new(),
        own_rules: OwnRules {
            errors: judges(&["http_req_failed", "checks"]),
            load: judges(&["iterations", "dropped_iterations"]),
        },
        is_insecure: options.is_insecure,
        notes: options.notes.clone(),
    })
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    !word.is_empty() && text.windows(word.len()).any(|here| here == word)
}

/// How the URLs begin that a script's calls go to.
const SCHEMES: [&str; 4] = ["http://", "https://", "ws://", "wss://"];

/// The first URL that the script's text or its environment has, for a script whose calls depend on answers.
fn written_target(content: &[u8], env: &[(String, String)]) -> Option<Target> {
    let text = String::from_utf8_lossy(content);
    let urls = |text: &str| {
        let url = |at: usize| {
            let rest = text.get(at..).filter(|rest| SCHEMES.iter().any(|scheme| rest.starts_with(scheme)))?;
            let end = rest.find(|c: char| c.is_whitespace() || "\"'`$<>(){}\\".contains(c)).unwrap_or(rest.len());
            Url::parse(rest.get(..end)?).ok().map(|url| url.target)
        };
        let begins = |(at, _): (usize, char)| url(at);
        text.char_indices().filter(|(_, c)| *c == 'h' || *c == 'w').find_map(begins)
    };
    let named = env.iter().filter(|(name, _)| text.contains(name.as_str()));
    urls(&text)
        .filter(|target| !target.host.ends_with("k6.io"))
        .or_else(|| named.into_iter().find_map(|(_, value)| urls(value)))
}

/// Goes once through a script that was loaded, with made-up answers.
///
/// # Errors
/// The file and line of what is wrong at its top.
pub fn outline(scenarios: &Scenarios, _: Sandbox, registry: &Registry) -> Result<Outline, ScriptError> {
    let environment = Environment::default();
    let secrets = secrets_in(scenarios.env.values(), scenarios.base_url.as_deref(), |name| environment.value(name));
    let outlined = || {
        let file =
            scenarios.files.first().cloned().ok_or_else(|| ScriptError::new("the plan", "there is no script"))?;
        let env = revealed(&file.name, scenarios, &environment)?;
        let files = Files::Plan(scenarios.files.get(1..).unwrap_or(&[]).to_vec());
        let modules = Arc::new(Modules::new(file.name, file.content.0, files));
        let source = Source { modules, env, seed: 0, secrets: secrets.clone() };
        let probed = source.probe(false)?;
        let surroundings = (&source.modules, &Asking::default());
        let clients = clients(registry, &probed.options, None, &probed.schemas, surroundings);
        let clients = clients.map_err(|problem| ScriptError::new(source.modules.script(), problem))?;
        let rehearsed = rehearse(&Arc::new(source.program(&probed, clients).silenced()))?;
        // A name that nothing has is a slip, whatever the answers are.
        let (slips, ended): (Vec<_>, Vec<_>) =
            rehearsed.ended.into_iter().partition(|ended| ended.problem.contains("ReferenceError: "));
        let problems = slips.iter().map(|ended| ScriptError::from_text(&ended.problem)).collect();
        Ok(Outline { met: rehearsed.met, problems, ended, unreached: Vec::new(), unlikely: Vec::new() })
    };
    outlined().map_err(|error: ScriptError| error.without(&secrets))
}
