//! A target that lets a rate through and turns the rest away: nginx with `limit_req`.

use crate::nginx::Nginx;
use crate::program::run;
use crate::report::report;

/// One that answers so many calls a second, and `burst` at once after a pause, and refuses others with 429.
fn limited(per_s: u32, burst: u32) -> Nginx {
    let zone = format!("limit_req_zone $binary_remote_addr zone=all:1m rate={per_s}r/s;");
    let body = format!(
        "location / {{ limit_req zone=all burst={burst} nodelay; limit_req_status 429; try_files /none @ok; }}
        location @ok {{ return 200 hello; }}"
    );
    Nginx::start_behind(|_| zone.clone(), &body)
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn a_limit_of_the_rate_is_said_with_its_rate() {
    for (limit, rate, seconds) in [(100, "150", "6s"), (20, "60", "10s")] {
        let nginx = limited(limit, 3);
        let report = report(0, ["-r", rate, "-d", seconds, "--timeout", "5s", &nginx.url("/")]);
        let remarks = report.at("/remarks").as_array().unwrap();
        let found =
            remarks.iter().find(|remark| remark["about"] == "rate_limit").unwrap_or_else(|| panic!("{remarks:#?}"));
        let message = found["message"].as_str().unwrap();
        let said = message.strip_prefix("the target let ").and_then(|rest| rest.split(' ').next());
        let said: f64 = said.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{message}"));
        // A machine that stands still sends less, and nginx then lets less through.
        assert!((0.5..=1.1).contains(&(said / f64::from(limit))) && message.contains("with 429"), "{limit}: {message}");
    }
}

#[test]
#[ignore = "needs nginx: make test installs it"]
fn a_search_ends_at_the_limit() {
    // Where this machine stood still for half a second, what was due meanwhile comes in one burst. The limit lets that through.
    let nginx = limited(100, 50);
    let args = ["find", "--threshold", "p99<500ms", "--from", "50", "-d", "4s", "-w", "500ms", "--repeats", "3"];
    let search = || {
        let done = run([&args[..], &["--max-error-rate", "1%", "--format", "json", &nginx.url("/")]].concat());
        let found: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
        let ends = ["low_per_s", "high_per_s"].map(|name| found["answer"][name].as_f64());
        ends[0].zip(ends[1]).ok_or(done.stderr)
    };
    // A machine that is busy with others may spoil trials, and brunt then finds no capacity; an answer that it gives holds.
    let (low, high) = search().or_else(|_| search()).or_else(|_| search()).unwrap_or_else(|said| panic!("{said}"));
    // 1% may fail, and the burst is answered: 115/s fail by 3% in 4.5 s.
    assert!((70.0..=115.0).contains(&low) && (80.0..=150.0).contains(&high), "{low} to {high}");
}
