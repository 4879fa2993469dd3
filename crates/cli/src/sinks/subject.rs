//! A run as monitoring systems see it: the kind of its calls, and the resource of its metrics.

use anyhow::{Result, anyhow};
use brunt_metrics::second::CallKind;
use brunt_metrics::{Attributes, Subject};
use brunt_plan::plan::Plan;

use crate::executor::host_name;

/// The kind of a plan's calls, by OpenTelemetry's semantic conventions.
pub fn subject(plan: &Plan) -> Subject {
    let scheme = plan.target.scheme.as_str();
    let option = |name: &str| plan.protocol.shown().get(name).and_then(|value| value.as_str()).map(str::to_owned);
    let mut attributes: Attributes = vec![("server.address".into(), plan.target.host.clone().into())];
    attributes.extend(plan.target.port.map(|port| ("server.port".into(), port.into())));
    let (calls, of_calls): (_, Attributes) = match scheme {
        "http" | "https" => {
            // Users of scenarios may make requests of all kinds.
            let method = option("method").filter(|_| plan.scenarios.is_none() && plan.script.is_none());
            let method = method.unwrap_or_else(|| "_OTHER".to_owned());
            let scheme = scheme.to_owned().into();
            (CallKind::Http, vec![("http.request.method".into(), method.into()), ("url.scheme".into(), scheme)])
        }
        "grpc" | "grpcs" => (CallKind::Rpc, rpc("grpc", option("call"))),
        "thrift" | "thrifts" => (CallKind::Rpc, rpc("thrift", option("call"))),
        _ => (CallKind::Other, Vec::new()),
    };
    attributes.extend(of_calls);
    let names = brunt_grpc::status::NAMES.iter().enumerate().filter(|_| scheme.starts_with("grpc"));
    Subject {
        ok: plan.ok_status.clone(),
        calls,
        attributes,
        status_names: names.map(|(status, name)| (status as u16, (*name).to_owned())).collect(),
    }
}

fn rpc(system: &'static str, method: Option<String>) -> Attributes {
    let method = method.map(|method| ("rpc.method".into(), method.into()));
    std::iter::once(("rpc.system.name".into(), system.into())).chain(method).collect()
}

/// A run's id for its metrics: 16 random hexadecimal digits.
///
/// # Errors
/// When the system has no random numbers.
pub fn run_id() -> Result<String> {
    let mut bytes = [0; 8];
    let random = ring::rand::SystemRandom::new();
    ring::rand::SecureRandom::fill(&random, &mut bytes).map_err(|_| anyhow!("the system has no random numbers"))?;
    Ok(format!("{:016x}", u64::from_be_bytes(bytes)))
}

/// The resource of a run's metrics; attributes in `more` replace brunt's own.
pub fn resource(plan: &Plan, run_id: &str, more: Vec<(String, String)>) -> Attributes {
    let target = &plan.target;
    let port = target.port.map_or_else(String::new, |port| format!(":{port}"));
    let mut own = vec![
        ("service.name".to_owned(), "brunt".to_owned()),
        ("service.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        ("service.instance.id".to_owned(), run_id.to_owned()),
        ("host.name".to_owned(), host_name()),
        ("brunt.run.id".to_owned(), run_id.to_owned()),
        ("brunt.target".to_owned(), format!("{}://{}{port}", target.scheme, target.host)),
    ];
    own.extend(plan.origin.name.iter().map(|name| ("brunt.run.name".to_owned(), name.clone())));
    own.extend(plan.origin.tags.iter().map(|(key, value)| (format!("brunt.tag.{key}"), value.clone())));
    own.retain(|(key, _)| more.iter().all(|(given, _)| given != key));
    own.into_iter().chain(more).map(|(key, value)| (key.into(), value.into())).collect()
}
