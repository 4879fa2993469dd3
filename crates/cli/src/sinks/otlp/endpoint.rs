//! Where OTLP goes: the flag, and the variables of OpenTelemetry's exporters
//! (<https://opentelemetry.io/docs/specs/otel/protocol/exporter/>).

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use brunt_metrics::otlp::Temporality;
use brunt_plan::percent::percent_decoded;
use brunt_plan::target::Url;
use brunt_record::redaction::Secrets;
use http::{HeaderName, HeaderValue, Uri, header};

/// The value that means the environment's endpoint.
pub const ENVIRONMENT: &str = "env";
/// The default timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The most resource attributes from the environment.
const MOST_ATTRIBUTES: usize = 64;

/// Where requests go, and how.
#[derive(Debug)]
pub struct Endpoint {
    /// For metrics.
    pub metrics: Uri,
    /// For events.
    pub logs: Uri,
    /// Header fields of each request.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// How long a request may take.
    pub timeout: Duration,
    /// Whether bodies are compressed by gzip.
    pub gzip: bool,
    /// Authorities to trust instead of the system's.
    pub authorities: Option<PathBuf>,
    /// Whether points are differences or sums so far.
    pub temporality: Temporality,
    /// Resource attributes that add to brunt's or replace them.
    pub resource: Vec<(String, String)>,
    /// Its URL, without secrets.
    pub shown: String,
    /// Its secrets.
    pub secrets: Secrets,
}

/// Reads a variable; an empty one counts as not set.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

impl Endpoint {
    /// The endpoint at `given`, a URL or [`ENVIRONMENT`], with the settings in `env`.
    ///
    /// # Errors
    /// For values that cannot be parsed, by the name of the flag or variable.
    pub fn new(given: &str, env: Env<'_>) -> Result<Self> {
        let of = |signal: &str, name: &str| {
            let all = format!("OTEL_EXPORTER_OTLP_{name}");
            let own = format!("OTEL_EXPORTER_OTLP_{signal}_{name}");
            env(&own).map(|value| (own, value)).or_else(|| env(&all).map(|value| (all, value)))
        };
        let (base, mut metrics, mut logs) = if given == ENVIRONMENT { from_environment(env)? } else { of_url(given)? };
        let mut secrets = Vec::new();
        let mut headers = Vec::new();
        for pair in of("METRICS", "HEADERS").map(|(name, text)| pairs(&name, &text)).transpose()?.into_iter().flatten()
        {
            let name = HeaderName::try_from(pair.0.as_str()).context("OTEL_EXPORTER_OTLP_HEADERS: a name is wrong")?;
            let mut value = HeaderValue::try_from(pair.1.as_str())
                .with_context(|| format!("OTEL_EXPORTER_OTLP_HEADERS: {name}"))?;
            value.set_sensitive(true);
            headers.push((name, value));
            // `Bearer TOKEN`: either part may be echoed.
            secrets.extend(pair.1.split_once(' ').map(|(_, token)| token.to_owned()));
            secrets.push(pair.1);
        }
        if let Some(user) = metrics.user.take().or_else(|| logs.user.take()) {
            let credentials = STANDARD.encode(&user);
            let value = HeaderValue::try_from(format!("Basic {credentials}"))?;
            headers.push((header::AUTHORIZATION, value));
            secrets.extend(user.split_once(':').map(|(_, password)| password.to_owned()));
            secrets.push(credentials);
        }
        let timeout = match of("METRICS", "TIMEOUT") {
            None => TIMEOUT,
            Some((name, text)) => {
                let ms = text.parse::<u64>().ok().filter(|ms| *ms > 0);
                Duration::from_millis(ms.with_context(|| format!("{name}: expected milliseconds, got '{text}'"))?)
            }
        };
        let gzip = match of("METRICS", "COMPRESSION") {
            None => false,
            Some((_, text)) if text == "none" => false,
            Some((_, text)) if text == "gzip" => true,
            Some((name, text)) => bail!("{name}: expected gzip or none, got '{text}'"),
        };
        Ok(Self {
            shown: base.shown(),
            metrics: metrics.uri()?,
            logs: logs.uri()?,
            headers,
            timeout,
            gzip,
            authorities: of("METRICS", "CERTIFICATE").map(|(_, path)| path.into()),
            temporality: temporality(env)?,
            resource: resource(env)?,
            secrets: Secrets::new(secrets),
        })
    }
}

/// A URL in its parts.
struct Parts {
    url: Url,
    user: Option<String>,
}

impl Parts {
    fn read(name: &str, text: &str) -> Result<Self> {
        let mut url = Url::parse(text).map_err(|error| anyhow!("{name}: {error}"))?;
        if !matches!(url.target.scheme.as_str(), "http" | "https") {
            bail!("{name}: expected a URL that begins with http:// or https://, got {}", url.target.url());
        }
        let user = url.user.take();
        Ok(Self { url, user })
    }

    /// Appends `more` to its path.
    fn with(&self, more: &str) -> Self {
        let mut url = self.url.clone();
        let (path, query) = url.target.path.split_at(url.target.path.find('?').unwrap_or(url.target.path.len()));
        url.target.path = format!("{}/{more}{query}", path.trim_end_matches('/'));
        Self { url, user: self.user.clone() }
    }

    fn shown(&self) -> String {
        self.url.target.url()
    }

    fn uri(&self) -> Result<Uri> {
        self.url.target.whole_url().parse().with_context(|| format!("--otlp: {}", self.shown()))
    }
}

/// Base, metrics and logs of a URL that a flag gives: that of all signals, or that of metrics.
fn of_url(given: &str) -> Result<(Parts, Parts, Parts)> {
    let mut base = Parts::read("--otlp", given)?;
    if let Some(path) = base.url.target.path.strip_suffix("v1/metrics") {
        base.url.target.path = path.to_owned();
    }
    let (metrics, logs) = (base.with("v1/metrics"), base.with("v1/logs"));
    Ok((base, metrics, logs))
}

/// The same from the environment.
fn from_environment(env: Env<'_>) -> Result<(Parts, Parts, Parts)> {
    const BASE: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
    const METRICS: &str = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT";
    const LOGS: &str = "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT";
    let protocol = env("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL").or_else(|| env("OTEL_EXPORTER_OTLP_PROTOCOL"));
    if let Some(protocol) = protocol.filter(|protocol| protocol != "http/protobuf") {
        bail!(
            "--otlp env: OTEL_EXPORTER_OTLP_PROTOCOL is '{protocol}', and brunt speaks http/protobuf: give its URL, such as \
             --otlp http://127.0.0.1:4318"
        );
    }
    let read = |name: &str| env(name).map(|text| Parts::read(name, &text)).transpose();
    let (base, metrics, logs) = (read(BASE)?, read(METRICS)?, read(LOGS)?);
    let below = |given: Option<Parts>, path: &str| given.or_else(|| base.as_ref().map(|base| base.with(path)));
    let metrics = below(metrics, "v1/metrics");
    let Some(metrics) = metrics else {
        bail!("--otlp env: {BASE} is not set in the environment; set it, or give a URL such as http://127.0.0.1:4318");
    };
    let logs = match below(logs, "v1/logs") {
        Some(logs) => logs,
        None => of_url(&metrics.url.target.whole_url())?.2,
    };
    let base = base.unwrap_or_else(|| Parts { url: metrics.url.clone(), user: None });
    Ok((base, metrics, logs))
}

fn temporality(env: Env<'_>) -> Result<Temporality> {
    const NAME: &str = "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE";
    match env(NAME).map(|text| text.to_ascii_lowercase()).as_deref() {
        None | Some("delta" | "lowmemory") => Ok(Temporality::Delta),
        Some("cumulative") => Ok(Temporality::Cumulative),
        Some(text) => bail!("{NAME}: expected delta or cumulative, got '{text}'"),
    }
}

fn resource(env: Env<'_>) -> Result<Vec<(String, String)>> {
    const NAME: &str = "OTEL_RESOURCE_ATTRIBUTES";
    let mut given = env(NAME).map(|text| pairs(NAME, &text)).transpose()?.unwrap_or_default();
    if given.len() > MOST_ATTRIBUTES {
        bail!("{NAME}: expected at most {MOST_ATTRIBUTES} attributes, got {}", given.len());
    }
    if let Some(name) = env("OTEL_SERVICE_NAME") {
        given.retain(|(key, _)| key != "service.name");
        given.push(("service.name".to_owned(), name));
    }
    Ok(given)
}

/// `name=value,…`, values percent-encoded (W3C Baggage). Errors do not include values, which may be secret.
fn pairs(name: &str, text: &str) -> Result<Vec<(String, String)>> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty()).enumerate();
    let pair = |(place, part): (usize, &str)| {
        let (key, value) = part.split_once('=').filter(|(key, _)| !key.trim().is_empty()).with_context(|| {
            format!(
                "{name}: expected name=value pairs with commas between them; number {} has no name or no =",
                place + 1
            )
        })?;
        Ok((key.trim().to_owned(), percent_decoded(value.trim())))
    };
    parts.map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(given: &str, env: &[(&str, &str)]) -> Result<Endpoint> {
        Endpoint::new(given, &|name| env.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
    }

    fn urls(given: &str, env: &[(&str, &str)]) -> [String; 3] {
        let endpoint = endpoint(given, env).unwrap();
        [endpoint.metrics.to_string(), endpoint.logs.to_string(), endpoint.shown]
    }

    #[test]
    fn signals_have_paths_below_the_url() {
        for (given, metrics, logs) in [
            ("http://a:4318", "http://a:4318/v1/metrics", "http://a:4318/v1/logs"),
            ("http://a:4318/", "http://a:4318/v1/metrics", "http://a:4318/v1/logs"),
            ("a:4318", "http://a:4318/v1/metrics", "http://a:4318/v1/logs"),
            ("https://a/otlp/", "https://a/otlp/v1/metrics", "https://a/otlp/v1/logs"),
            ("https://a/otlp?k=1", "https://a/otlp/v1/metrics?k=1", "https://a/otlp/v1/logs?k=1"),
            ("http://a/v1/metrics", "http://a/v1/metrics", "http://a/v1/logs"),
            ("http://a/x/v1/metrics", "http://a/x/v1/metrics", "http://a/x/v1/logs"),
        ] {
            assert_eq!(urls(given, &[])[..2], [metrics, logs], "{given}");
        }
    }

    #[test]
    fn the_environment_gives_the_endpoint_if_it_is_asked() {
        let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318");
        assert_eq!(urls("env", &[base])[0], "http://c:4318/v1/metrics");
        let own = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://m:1/in");
        assert_eq!(urls("env", &[base, own])[..2], ["http://m:1/in", "http://c:4318/v1/logs"]);
        assert_eq!(urls("env", &[own])[0], "http://m:1/in");
        // What the flag names is not overruled.
        assert_eq!(urls("http://d", &[base, own])[0], "http://d/v1/metrics");
        let none = endpoint("env", &[]).unwrap_err().to_string();
        assert!(none.contains("OTEL_EXPORTER_OTLP_ENDPOINT is not set"), "{none}");
        let grpc = endpoint("env", &[base, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]).unwrap_err().to_string();
        assert!(grpc.contains("speaks http/protobuf"), "{grpc}");
    }

    #[test]
    fn secrets_go_into_headers_and_nowhere_else() {
        let headers = ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=k3y%20x, authorization=Bearer%20t0ken");
        let endpoint = endpoint("https://me:hunter2@a/", &[headers]).unwrap();
        let shown = format!("{endpoint:?}");
        assert!(!shown.contains("hunter2") && !shown.contains("k3y x"), "{shown}");
        assert_eq!(endpoint.shown, "https://a/");
        let values: Vec<_> = endpoint.headers.iter().map(|(_, value)| value.to_str().unwrap()).collect();
        assert_eq!(values, ["k3y x", "Bearer t0ken", "Basic bWU6aHVudGVyMg=="]);
        let said = endpoint.secrets.hide("401: t0ken, hunter2, bWU6aHVudGVyMg== and k3y x").into_owned();
        assert_eq!(said, "401: [redacted], [redacted], [redacted] and [redacted]");
    }

    #[test]
    fn the_resource_is_the_environments_before_ours() {
        let env = [
            ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=ci%2Fa, service.name=x"),
            ("OTEL_SERVICE_NAME", "shop load"),
        ];
        let resource = endpoint("http://a", &env).unwrap().resource;
        let of = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(resource, [of("deployment.environment.name", "ci/a"), of("service.name", "shop load")]);
    }

    #[test]
    fn what_is_wrong_is_named_without_values() {
        for (name, value, expected) in [
            ("OTEL_EXPORTER_OTLP_HEADERS", "s3cret", "number 1 has no name"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a=1,=s3cret", "number 2 has no name"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a b=s3cret", "a name is wrong"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "10s", "expected milliseconds"),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", "zstd", "expected gzip or none"),
            ("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "x", "expected delta or cumulative"),
        ] {
            let error = format!("{:#}", endpoint("http://a", &[(name, value)]).unwrap_err());
            assert!(error.contains(expected) && error.contains("OTEL_") && !error.contains("s3cret"), "{error}");
        }
        let scheme = endpoint("grpc://a:4317", &[]).unwrap_err().to_string();
        assert!(scheme.contains("--otlp: expected a URL that begins with http://"), "{scheme}");
    }
}
