//! hey.

use super::{Client, Load, Report, number_after, words};

pub(super) const CLIENT: Client = Client { name: "hey", version: &[], scripts: false, arguments, read };

fn arguments(load: &Load) -> Vec<String> {
    words(&format!("-cpus 1 -c {} -z {}s {}", load.connections, load.length.as_secs(), load.url))
}

fn read(output: &str) -> anyhow::Result<Report> {
    let seconds: f64 = number_after(output, "Total:")?;
    let per_s: f64 = number_after(output, "Requests/sec:")?;
    let tail = output.split_once("Status code distribution:").map_or("", |(_, rest)| rest);
    let (statuses, errors) = tail.split_once("Error distribution:").unwrap_or((tail, ""));
    let bad = statuses.lines().filter(|line| line.trim_start().starts_with('[') && !line.contains("[200]"));
    let failed = bad.filter_map(|line| number_after::<u64>(line, "]").ok()).sum::<u64>()
        + errors.lines().filter_map(|line| number_after::<u64>(line, "[").ok()).sum::<u64>();
    // hey counts statuses only up to a million; its rate includes all requests.
    Ok(Report { answered: (per_s * seconds).round() as u64, per_s, failed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_prints_is_read() {
        let output = "
Summary:
  Total:\t2.0000 secs
  Slowest:\t0.0100 secs
  Requests/sec:\t37100.5000

Status code distribution:
  [200]\t74196 responses
  [503]\t5 responses

Error distribution:
  [7]\tGet \"http://x/\": EOF
";
        assert_eq!(read(output).unwrap(), Report { answered: 74_201, per_s: 37_100.5, failed: 12 });
    }
}
