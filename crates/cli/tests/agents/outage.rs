//! A target that is down for a while, under the load of several agents.

use crate::bus::{Bus, closes};
use crate::program::Running;

/// Down for half of the time, a run has half of its calls fail, as on one machine.
#[test]
#[ignore = "needs nats-server: make test installs it"]
fn an_outage_has_its_share_of_failures_over_two_agents() {
    let bus = Bus::start();
    let _agents = bus.agents(2);
    // The run begins a second or so after the target.
    let mut server = Running::start(["serve", "http", "0", "--faults", "refuse 4s-8s", "--duration", "60s"]);
    let line = server.line();
    let url = line.trim_end().strip_prefix("listening on ").unwrap_or_else(|| panic!("{line}"));
    let report = bus.run(&["-r", "200", "-d", "8s", url]);
    closes(&report);
    let failed = report["outcomes"]["error_ratio"].as_f64().unwrap();
    assert!((0.49..=0.51).contains(&failed), "{failed}");
    let outages = report["remarks"].as_array().unwrap().iter().filter(|remark| remark["about"] == "outage");
    assert_eq!(outages.count(), 1, "{}", report["remarks"]);
}
