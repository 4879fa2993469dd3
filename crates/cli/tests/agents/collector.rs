//! A real collector of OpenTelemetry, made of its modules as its builder does.

use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use prost::Message as _;
use rustix::process::{Pid, Signal, kill_process};

use crate::installed::{installed, succeed};
use crate::program::{Directory, until};
use crate::receiver::Metrics;

/// A collector that writes what it receives into a file. It ends with its test.
pub struct Collector {
    child: Child,
    pub url: String,
    file: String,
}

impl Collector {
    /// Listens on a free port; it writes into `dir`.
    pub fn start(dir: &Directory) -> Self {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agents/collector");
        let files = ["go.mod", "go.sum", "main.go"].map(|file| sources.join(file));
        let home = installed("otel-collector", &files, |home| {
            succeed(Command::new("go").args(["build", "-o", "collector", "."]).current_dir(home));
        });
        let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let file = dir.path("metrics.otlp");
        let events = dir.path("events.otlp");
        let configuration = format!(
            "receivers: {{otlp: {{protocols: {{http: {{endpoint: '{address}'}}}}}}}}\n\
             exporters: {{file/metrics: {{path: '{file}', format: proto}}, file/logs: {{path: '{events}', format: proto}}}}\n\
             service:\n  telemetry: {{metrics: {{level: none}}, logs: {{level: warn}}}}\n  pipelines:\n    \
             metrics: {{receivers: [otlp], exporters: [file/metrics]}}\n    \
             logs: {{receivers: [otlp], exporters: [file/logs]}}\n"
        );
        let configuration = dir.file("collector.yaml", configuration);
        let mut command = Command::new(home.join("collector"));
        let command = command
            .arg(format!("file:{configuration}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit());
        let collector = Self { child: command.spawn().unwrap(), url: format!("http://{address}"), file };
        until("the collector listens", || TcpStream::connect(&address).is_ok());
        collector
    }

    /// Ends it, and gives the metrics that it has written.
    pub fn metrics(mut self) -> Metrics {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        assert!(self.child.wait().unwrap().success());
        Metrics(requests(&std::fs::read(&self.file).unwrap()))
    }
}

/// Requests in protobuf, each behind its length in four bytes.
fn requests(mut bytes: &[u8]) -> Vec<ExportMetricsServiceRequest> {
    let mut requests = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
        let (request, rest) = rest.split_at(u32::from_be_bytes(*length) as usize);
        requests.push(ExportMetricsServiceRequest::decode(request).unwrap());
        bytes = rest;
    }
    requests
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
