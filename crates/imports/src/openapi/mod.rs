//! OpenAPI descriptions, 3.0 and 3.1, and Swagger 2.0, in JSON or YAML: a function and a scenario for each operation.

mod document;
mod operation;
mod sample;
mod security;
mod swagger;

use std::fmt::Write as _;

use document::Document;
use operation::Operation;

use crate::encoded::{is_token, origin_and_path};
use crate::lua::{comment, name_of, part, quoted};
use crate::script::Script;
use crate::value::Value;
use crate::{ImportError, Imported};

/// The most operations that are moved.
const MOST: usize = 2_000;
/// The base of calls if the description has no whole URL.
const NO_BASE: &str = "http://127.0.0.1:8080";
const METHODS: [&str; 8] = ["get", "head", "post", "put", "patch", "delete", "options", "trace"];

/// The scenarios for a description.
pub(crate) fn import(bytes: &[u8], name: &str) -> Result<Imported, ImportError> {
    let mut root = read(bytes)?;
    check_version(&root)?;
    if root.get("openapi").is_none() {
        root = swagger::converted(&root);
    }
    let document = Document { root: &root };
    let mut script = Script::default();
    let prefix = server(&root, &mut script);
    let operations = operations(document, &prefix, &mut script);
    let elsewhere =
        root.fields_at("paths").iter().find_map(|(_, item)| item.text_at("$ref").filter(|to| !to.starts_with('#')));
    if let (true, Some(file)) = (operations.is_empty(), elsewhere) {
        let problem = format!(
            "its paths are references to other files, such as $ref {}: bundle them into one file first, as by redocly bundle",
            comment(file, 60)
        );
        return Err(ImportError::Nothing(problem));
    }
    if operations.is_empty() {
        return Err(ImportError::Nothing("it describes no operation of a path".to_owned()));
    }
    if let Some(title) = root.at(&["info", "title"]).and_then(Value::text) {
        let version = root.at(&["info", "version"]).and_then(Value::shown).unwrap_or_default();
        script.notes.push(comment(&format!("{title} {version}"), 150));
    }
    let (mut functions, mut scenarios) = (String::new(), String::new());
    let (mut taken, mut names): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for operation in &operations {
        let scenario = unlike(&operation.name(), &mut names, |name, number| format!("{name} ({number})"));
        let id = name_of(&operation.name(), "operation");
        let function = unlike(&id, &mut taken, |name, number| format!("{name}_{number}"));
        let written = operation.written(&function, &mut script);
        let _ = write!(functions, "\n{}", written.code);
        let _ = writeln!(
            scenarios,
            "brunt.scenario({}, function() api{}({}) end):inject {{ brunt.iterations_each(1, 1) }}",
            quoted(&scenario),
            part(&function),
            written.arguments.join(", ")
        );
    }
    script.body = format!(
        "\nlocal api = {{}}\n{functions}\n-- Each operation is a scenario with one user, once. --only NAME takes one of them, --inject 'NAME=rate(5, 1m)' gives it users.\n{scenarios}"
    );
    Ok(script.written("OpenAPI description", name))
}

/// A name that differs from those before it, by a number if necessary.
fn unlike(wanted: &str, taken: &mut Vec<String>, numbered: impl Fn(&str, usize) -> String) -> String {
    let others = (2..).map(|number| numbered(wanted, number));
    let free = |name: &String| !taken.contains(name);
    let name = std::iter::once(wanted.to_owned()).chain(others).take(MOST + 1).find(free).unwrap_or_default();
    taken.push(name.clone());
    name
}

/// Reads a description in JSON, or otherwise in YAML.
fn read(bytes: &[u8]) -> Result<Value, ImportError> {
    let json = Value::from_json(bytes);
    let begins = bytes.iter().copied().find(|byte| !byte.is_ascii_whitespace());
    match (json, begins) {
        (Ok(value), _) => Ok(value),
        (Err(error), Some(b'{')) => {
            // A YAML document may begin with a brace, too.
            let text = std::str::from_utf8(bytes).map_err(|_| error.clone())?;
            Value::from_yaml(text).map_err(|_| error)
        }
        (Err(error), _) => {
            let text = std::str::from_utf8(bytes).map_err(|_| ImportError::Other("it is not text in UTF-8".to_owned()));
            if bytes.is_empty() { Err(error) } else { Value::from_yaml(text?) }
        }
    }
}

fn check_version(root: &Value) -> Result<(), ImportError> {
    let version = root.get("openapi").and_then(Value::shown);
    match version.as_deref() {
        Some(version) if version.starts_with("3.") || version == "3" => Ok(()),
        Some(version) => {
            Err(ImportError::Other(format!("it is OpenAPI {}; brunt reads 3.0 and 3.1", comment(version, 20))))
        }
        None if root.get("swagger").and_then(Value::shown).is_some_and(|version| version.starts_with('2')) => Ok(()),
        None if root.get("swagger").is_some() || root.get("swaggerVersion").is_some() => {
            Err(ImportError::Other("it is Swagger 1; brunt reads Swagger 2.0, OpenAPI 3.0 and 3.1".to_owned()))
        }
        None => Err(ImportError::Other("it is not an OpenAPI description: it has no field openapi".to_owned())),
    }
}

/// Sets the script's base. Returns the prefix of paths.
fn server(root: &Value, script: &mut Script) -> String {
    let first = root.list_at("servers").first();
    let url = first.and_then(|server| Some(with_variables(server.text_at("url")?, server))).unwrap_or_default();
    if let Some((origin, path)) = origin_and_path(&url) {
        script.base = origin;
        return path.trim_end_matches('/').to_owned();
    }
    NO_BASE.clone_into(&mut script.base);
    script.leave(
        "servers",
        format!("the description names no whole URL: {NO_BASE} is taken for the base; give --base-url"),
    );
    let path = url.trim_end_matches('/');
    if path.starts_with('/') { path.to_owned() } else { String::new() }
}

/// The URL of a server with its variables' defaults.
fn with_variables(url: &str, server: &Value) -> String {
    server.fields_at("variables").iter().take(50).fold(url.to_owned(), |url, (name, variable)| {
        let value = variable.get("default").and_then(Value::shown).unwrap_or_default();
        url.replace(&format!("{{{name}}}"), &value)
    })
}

fn operations<'d>(document: Document<'d>, prefix: &'d str, script: &mut Script) -> Vec<Operation<'d>> {
    let mut operations = Vec::new();
    for (name, _) in document.root.fields_at("webhooks") {
        script.leave(name.clone(), "not moved: a webhook is a request that the server makes");
    }
    for (path, item) in document.root.fields_at("paths") {
        let Some(item) = document.resolved(item) else {
            script.leave(path.clone(), "not moved: a path by a reference out of the document");
            continue;
        };
        if !path.starts_with('/') {
            if !path.starts_with("x-") {
                script.leave(path.clone(), "not moved: a path begins with /");
            }
            continue;
        }
        for (method, value) in item.fields() {
            if !METHODS.contains(&method.as_str()) || !is_token(method) {
                continue;
            }
            if operations.len() >= MOST {
                script.leave(path.clone(), format!("operations after the first {MOST} are left out"));
                return operations;
            }
            if value.list_at("servers").first().or(item.list_at("servers").first()).is_some() {
                script.leave(path.clone(), "it has servers of its own, and goes where all go");
            }
            operations.push(Operation { document, path, method, item, value, prefix });
        }
    }
    operations
}

#[cfg(test)]
mod tests;
