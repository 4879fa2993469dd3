//! brunt with its defaults: all histograms and timeouts are on.

use anyhow::Context as _;
use serde_json::Value;

use super::{Client, Load, Report, words};

pub(super) const CLIENT: Client = Client { name: "brunt", version: &["--version"], scripts: true, arguments, read };

fn arguments(load: &Load) -> Vec<String> {
    let mut arguments = words("-t 1 --format json --quiet");
    arguments.extend(words(&format!("-c {} -d {}s", load.connections, load.length.as_secs())));
    if load.url.starts_with("https:") {
        // As the others do: no certificate is verified.
        arguments.push("-k".to_owned());
    }
    if let Some(streams) = load.streams {
        arguments.extend(words(&format!("--http 2 --streams {streams}")));
    }
    if let Some(script) = &load.script {
        arguments.extend(["-s".to_owned(), script.display().to_string()]);
    }
    arguments.push(load.url.clone());
    arguments
}

fn read(output: &str) -> anyhow::Result<Report> {
    let result = figures(output)?;
    let count = |name: &str| result["outcomes"][name].as_u64().with_context(|| format!("outcomes.{name} is missing"));
    let per_s = result["rates"]["answered_per_s"].as_f64().context("rates.answered_per_s is missing")?;
    Ok(Report { answered: count("answered")?, per_s, failed: count("not_ok")? })
}

/// A result as brunt prints it with `--format json`.
pub fn figures(output: &str) -> anyhow::Result<Value> {
    serde_json::from_str(output).context("brunt printed no JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_prints_is_read() {
        let output = r#"{"rates": {"answered_per_s": 198.5}, "outcomes": {"answered": 400, "not_ok": 3}}"#;
        assert_eq!(read(output).unwrap(), Report { answered: 400, per_s: 198.5, failed: 3 });
        assert!(read("{}").is_err());
    }
}
