//! oha.

use anyhow::Context as _;
use serde_json::Value;

use super::{Client, Load, Report, words};

pub(super) const CLIENT: Client = Client { name: "oha", version: &["--version"], scripts: false, arguments, read };

fn arguments(load: &Load) -> Vec<String> {
    let mut arguments = words("--no-tui --output-format json --http-version 1.1 --insecure");
    arguments.extend(words(&format!("-c {} -z {}s {}", load.connections, load.length.as_secs(), load.url)));
    arguments
}

fn read(output: &str) -> anyhow::Result<Report> {
    let result: Value = serde_json::from_str(output).context("oha printed no JSON")?;
    let per_s = result["summary"]["requestsPerSec"].as_f64().context("summary.requestsPerSec is missing")?;
    let statuses = result["statusCodeDistribution"].as_object().context("statusCodeDistribution is missing")?;
    let count = |wanted: fn(&str) -> bool| -> u64 {
        statuses.iter().filter(|(status, _)| wanted(status)).filter_map(|(_, n)| n.as_u64()).sum()
    };
    // Requests in flight at the end are given up, and counted among the errors.
    let errors = result["errorDistribution"].as_object().into_iter().flatten();
    let failed: u64 = errors.filter(|(reason, _)| !reason.contains("deadline")).filter_map(|(_, n)| n.as_u64()).sum();
    Ok(Report { answered: count(|_| true), per_s, failed: failed + count(|status| status >= "400") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_prints_is_read() {
        let output = r#"{
            "summary": {"successRate": 1.0, "total": 2.0, "requestsPerSec": 118600.5},
            "statusCodeDistribution": {"200": 237201, "503": 2},
            "errorDistribution": {"aborted due to deadline": 64, "connection error": 3}
        }"#;
        assert_eq!(read(output).unwrap(), Report { answered: 237_203, per_s: 118_600.5, failed: 5 });
    }
}
