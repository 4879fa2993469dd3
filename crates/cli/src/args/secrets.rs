//! Command lines for display: names of sides, errors.

use brunt_plan::bodies::shown_body;
use brunt_plan::secret::{REDACTED, Template, shown_url};
use brunt_protocol::Registry;
use brunt_protocol::flags::Flag;
use clap::error::{ContextKind, ContextValue, Error};

/// Flags of brunt's own, by the names in their definitions, whose values may be secrets.
const OWN: [&str; 7] = ["cookie", "cookies", "json", "key", "env", "a", "b"];

/// The value of a run's flag, by the flag's `id`, for display.
pub fn shown_value(id: &str, value: &str, registry: &Registry) -> String {
    match (id, of_protocol(id, registry)) {
        (_, Some(flag)) => flag.shown_text(value),
        // The name of a file is no secret.
        ("key", _) if !value.starts_with('@') => value.to_owned(),
        ("json", _) => String::from_utf8_lossy(&shown_body(value.as_bytes())).into_owned(),
        ("proxy", _) => shown_proxy(value),
        (id, _) if OWN.contains(&id) => Template::secret(value).shown().into_owned(),
        _ => shown_url(value).into_owned(),
    }
}

/// A proxy's URL, which may lack its scheme, with the names of what the environment gives.
fn shown_proxy(value: &str) -> String {
    let (scheme, rest) = value.split_once("://").unwrap_or(("http", value));
    match rest.rsplit_once('@') {
        Some((user, host)) => format!("{scheme}://{}@{host}", Template::credentials(user).shown()),
        None => format!("{scheme}://{rest}"),
    }
}

fn of_protocol(name: &str, registry: &Registry) -> Option<Flag> {
    registry.protocols().flat_map(|protocol| protocol.flags()).find(|flag| flag.name == name).copied()
}

/// The error without its value, if that may be a secret.
pub fn without_secrets(mut error: Error, registry: &Registry) -> Error {
    let flag = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(flag)) => flag.clone(),
        _ => String::new(),
    };
    let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidValue) else { return error };
    let name = flag.trim_start_matches('-').split([' ', '=', '[']).next().unwrap_or_default();
    let is_secret = OWN.contains(&name) || of_protocol(name, registry).is_some_and(|flag| flag.may_be_secret());
    let shown = match name {
        _ if is_secret => REDACTED.to_owned(),
        "proxy" => shown_proxy(value),
        _ => shown_url(value).into_owned(),
    };
    if shown != *value {
        error.insert(ContextKind::InvalidValue, ContextValue::String(shown));
    }
    error
}
