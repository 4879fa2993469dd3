//! A real Prometheus.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::program::{Directory, until};

/// A Prometheus that scrapes one address each second, with native histograms and exemplars. It ends with its test.
pub struct Prometheus {
    child: Child,
    pub url: String,
}

impl Prometheus {
    /// Scrapes `/metrics` at this address; it keeps its data in `dir`.
    pub fn start(dir: &Directory, scraped: &str) -> Self {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let config = format!(
            "scrape_configs:\n  - job_name: shop\n    scrape_interval: 1s\n    static_configs:\n      - targets: ['{scraped}']\n"
        );
        let config = dir.file("prometheus.yml", config);
        let mut command = Command::new("prometheus");
        command.args(["--config.file", &config, "--storage.tsdb.path", &dir.path("data")]);
        command.args(["--web.listen-address", &free, "--enable-feature=native-histograms,exemplar-storage"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().unwrap_or_else(|e| panic!("{e}: make test installs prometheus"));
        let prometheus = Self { child, url: format!("http://{free}") };
        until("Prometheus listens", || TcpStream::connect(&free).is_ok());
        prometheus
    }

    /// What it answers to a path, as JSON: the `data` of it.
    pub fn get(&self, path: &str) -> Value {
        let mut stream = TcpStream::connect(self.url.trim_start_matches("http://")).unwrap();
        write!(stream, "GET {path} HTTP/1.0\r\nHost: x\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let body = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer}")).1;
        let answer: Value = serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"));
        assert_eq!(answer["status"], "success", "{answer}");
        answer["data"].clone()
    }

    /// The one number that a query comes to at a time in seconds since 1970-01-01 UTC; none where it comes to nothing.
    pub fn number(&self, query: &str, at_s: f64) -> Option<f64> {
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._".contains(byte);
        let escaped = |byte: u8| if is_plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
        let query: String = query.bytes().map(escaped).collect();
        let data = self.get(&format!("/api/v1/query?query={query}&time={at_s}"));
        data["result"][0]["value"][1].as_str().map(|number| number.parse().unwrap())
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
