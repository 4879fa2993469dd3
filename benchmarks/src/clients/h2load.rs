//! h2load, over HTTP/1.1 and HTTP/2.

use super::{Client, Load, Report, number_before, words};

pub(super) const CLIENT: Client = Client { name: "h2load", version: &["--version"], scripts: false, arguments, read };

fn arguments(load: &Load) -> Vec<String> {
    let version = load.streams.map_or_else(|| "--h1".to_owned(), |streams| format!("-m {streams}"));
    words(&format!("{version} -t 1 -c {} -D {} {}", load.connections, load.length.as_secs(), load.url))
}

fn read(output: &str) -> anyhow::Result<Report> {
    let failed: u64 = number_before(output, " failed,")?;
    let errors = number_before::<u64>(output, " 4xx,")? + number_before::<u64>(output, " 5xx")?;
    Ok(Report {
        answered: number_before(output, " done,")?,
        per_s: number_before(output, " req/s,")?,
        failed: failed + errors,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_prints_is_read() {
        let output = "\
starting benchmark...
finished in 2.00s, 138903.00 req/s, 10.33MB/s
requests: 277806 total, 277870 started, 277806 done, 277806 succeeded, 0 failed, 0 errored, 0 timeout
status codes: 277806 2xx, 0 3xx, 0 4xx, 0 5xx
";
        assert_eq!(read(output).unwrap(), Report { answered: 277_806, per_s: 138_903.0, failed: 0 });
    }
}
