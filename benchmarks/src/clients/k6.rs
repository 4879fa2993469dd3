//! k6, with a script that does the same as `scenario.lua`.

use std::path::Path;

use super::{Client, Load, Report, number_after, words};

pub const CLIENT: Client = Client { name: "k6", version: &["version"], scripts: false, arguments, read };

fn arguments(load: &Load) -> Vec<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/scenario.js");
    let mut arguments = words("run --quiet --no-color --no-usage-report --discard-response-bodies");
    arguments.extend(words(&format!("--vus {} --duration {}s", load.connections, load.length.as_secs())));
    arguments.extend(["--env".to_owned(), format!("URL={}", load.url), script.display().to_string()]);
    arguments
}

fn read(output: &str) -> anyhow::Result<Report> {
    // "http_reqs......: 15500  15498.1/s"
    let line = output.lines().find(|line| line.trim_start().starts_with("http_reqs"));
    let line = line.ok_or_else(|| anyhow::anyhow!("'http_reqs' is missing in the output:\n{output}"))?;
    let answered = number_after(line, ":")?;
    let per_s = number_after(line, &format!(": {answered}"))?;
    let failed = output.lines().find(|line| line.trim_start().starts_with("http_req_failed"));
    // "http_req_failed.: 0.00%  0 out of 15500"
    let failed = failed.and_then(|line| number_after(line, "% ").ok()).unwrap_or(0);
    Ok(Report { answered, per_s, failed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_prints_is_read() {
        let output = "
    HTTP
    http_req_duration.......................................................: avg=3.9ms min=1ms med=3ms max=20ms
    http_req_failed.........................................................: 0.02%  3 out of 15500
    http_reqs...............................................................: 15500  15498.25/s
";
        assert_eq!(read(output).unwrap(), Report { answered: 15_500, per_s: 15_498.25, failed: 3 });
    }
}
