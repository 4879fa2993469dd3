//! ab: HTTP/1.0 with keep-alive.

use super::{Client, Load, Report, number_after, words};

pub(super) const CLIENT: Client = Client { name: "ab", version: &["-V"], scripts: false, arguments, read };

fn arguments(load: &Load) -> Vec<String> {
    // -t sets -n to 50,000 unless -n comes after it. A much greater number would cost ab memory.
    let seconds = load.length.as_secs();
    words(&format!("-q -k -c {} -t {seconds} -n {} {}", load.connections, seconds * 500_000, load.url))
}

fn read(output: &str) -> anyhow::Result<Report> {
    let errors = if output.contains("Non-2xx responses:") { number_after(output, "Non-2xx responses:")? } else { 0 };
    Ok(Report {
        answered: number_after(output, "Complete requests:")?,
        per_s: number_after(output, "Requests per second:")?,
        failed: errors + number_after::<u64>(output, "Failed requests:")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_prints_is_read() {
        let output = "\
Time taken for tests:   2.000 seconds
Complete requests:      352894
Failed requests:        0
Keep-Alive requests:    352894
Requests per second:    176423.09 [#/sec] (mean)
";
        assert_eq!(read(output).unwrap(), Report { answered: 352_894, per_s: 176_423.09, failed: 0 });
    }
}
