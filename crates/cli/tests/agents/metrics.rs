//! What a controller sends of a run by several agents.

use std::time::Duration;

use brunt_testbed::server::{Config, Delay, Server};

use crate::bus::{Bus, closes};
use crate::receiver::Receiver;

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn percentiles_of_three_agents_are_those_of_the_report() {
    let bus = Bus::start();
    let server =
        Server::start(Config { delay: Delay::Exponential { mean: Duration::from_millis(4) }, ..Config::default() })
            .unwrap();
    let _agents = bus.agents(3);
    let receiver = Receiver::start();
    let report = bus.run(&["-r", "600", "-d", "3s", "--otlp", &receiver.url, &server.url()]);
    closes(&report);
    let metrics = receiver.metrics();
    metrics.distribution("http.client.request.duration", |_| true).agree_with(&report["times"]["response"]);
    metrics.distribution("brunt.service.duration", |_| true).agree_with(&report["times"]["service"]);
    assert_eq!(metrics.sum("brunt.due", |_| true), report["outcomes"]["due"].as_u64().unwrap());
    for agent in report["agents"]["list"].as_array().unwrap() {
        let of =
            |attributes: &std::collections::BTreeMap<String, String>| attributes["brunt.agent.name"] == agent["name"];
        assert_eq!(metrics.sum("brunt.agent.answered", of), agent["answered"].as_u64().unwrap(), "{}", agent["name"]);
    }
    assert_eq!(report["deliveries"][0]["seconds_missed"], 0, "{:#}", report["deliveries"]);
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn the_controller_watches_whoever_carries_the_run_out() {
    let bus = Bus::start();
    let server = Server::start(Config::default()).unwrap();
    let _agents = bus.agents(2);
    let page = "queue_depth 7\n";
    let page = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{page}", page.len());
    let exporter = Receiver::with(move |_, _| Some(page.clone()));
    let at = exporter.url.replace("http://", "http://me:hunter2@");
    let watch = format!("queue={at}/metrics#queue_depth");
    let threshold = ["--threshold", "watch.queue:max==7"];
    let report = bus.run(&[&["-r", "300", "-d", "3s", "--watch", &watch], &threshold[..], &[&server.url()]].concat());
    closes(&report);
    let figure = &report["watched"][0];
    assert_eq!((figure["name"].as_str(), figure["mean"].as_f64()), (Some("queue"), Some(7.0)), "{figure:#}");
    assert!(report["thresholds"].as_array().unwrap().iter().all(|threshold| threshold["held"] == true));
    assert!(exporter.requests().iter().all(|request| request.head.contains("authorization: Basic")));
    assert!(!report.to_string().contains("hunter2"));
}
