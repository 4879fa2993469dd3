//! wrk, to which all others are compared.

use super::{Client, Load, Report, number_after, number_before, words};

pub(super) const CLIENT: Client = Client { name: "wrk", version: &["-v"], scripts: true, arguments, read };

fn arguments(load: &Load) -> Vec<String> {
    let mut arguments = words(&format!("-t 1 -c {} -d {}s", load.connections, load.length.as_secs()));
    if let Some(script) = &load.script {
        arguments.extend(["-s".to_owned(), script.display().to_string()]);
    }
    arguments.push(load.url.clone());
    arguments
}

fn read(output: &str) -> anyhow::Result<Report> {
    let mut failed = 0;
    if output.contains("Non-2xx or 3xx responses:") {
        failed += number_after::<u64>(output, "Non-2xx or 3xx responses:")?;
    }
    if let Some((_, errors)) = output.split_once("Socket errors:") {
        for label in ["connect ", "read ", "write ", "timeout "] {
            failed += number_after::<u64>(errors, label)?;
        }
    }
    let answered = number_before(output, " requests in ")?;
    Ok(Report { answered, per_s: number_after(output, "Requests/sec:")?, failed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_prints_is_read() {
        let output = "\
Running 3s test @ http://127.0.0.1:18080/
  1 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   273.96us  448.00us  12.06ms   99.16%
    Req/Sec   137.61k    12.03k  154.27k    56.67%
  412251 requests in 3.01s, 30.67MB read
  Socket errors: connect 1, read 2, write 0, timeout 4
  Non-2xx or 3xx responses: 5
Requests/sec: 136812.93
Transfer/sec:     10.18MB
";
        assert_eq!(read(output).unwrap(), Report { answered: 412_251, per_s: 136_812.93, failed: 12 });
    }
}
