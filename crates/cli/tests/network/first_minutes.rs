//! What a new user meets in the first minutes: a rate that takes more connections than anybody would guess, and mistakes that
//! have a name and a way out.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::Duration;

use brunt_testbed::server::{Delay, Server, ServerConfig};
use brunt_testbed::tls::Tls;

use crate::program::{nobody, run};
use crate::report::report;

/// The built-in target, which takes so long for each answer.
fn slow(delay: Duration) -> Server {
    Server::start(ServerConfig { delay: Delay::Fixed(delay), ..ServerConfig::default() }).unwrap()
}

/// A server that says `words` to everybody who connects, once something has come.
fn saying(words: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut buffer = [0; 4096];
            let _ = stream.read(&mut buffer).and_then(|_| stream.write_all(words));
        }
    });
    address.to_string()
}

#[test]
fn a_rate_has_the_connections_that_it_takes() {
    let server = slow(Duration::from_millis(200));
    // 400 a second for 200 ms each: 80 at once, and the first four carry 20 a second.
    let report = report(0, ["-r", "400", "-d", "3s", "--timeout", "60s", &server.url()]);
    report.assert_all(1200, 200);
    assert!(report.connections("made") >= 70, "{}", report.at("/connections"));
    assert!(report.at("/plan/connections/up_to").as_u64() > Some(100), "{}", report.at("/plan/connections"));
}

#[test]
fn a_number_of_connections_that_is_too_low_is_named_with_one_that_is_not() {
    let server = slow(Duration::from_millis(200));
    let done = run(["-r", "50", "-c", "2", "-d", "5s", "--drain", "100ms", &server.url()]).with_status(0);
    assert!(done.stdout.contains("all 2 connections were busy"), "{done:#?}");
    // Calls wait for more than three seconds, and not for the target.
    assert!(!done.stdout.contains("the target answered "), "{done:#?}");
    assert!(done.stdout.contains("raise -c to about "), "{done:#?}");
}

#[test]
fn nobody_listening_is_said_at_once() {
    let (_port, url) = nobody();
    for args in
        [["-d", "1h"].as_slice(), &["-d", "1h", "-r", "100"], &["-d", "1h", "-w", "1h"], &["-d", "1h", "--reconnect"]]
    {
        let done = run([args, &[&url]].concat()).with_status(3);
        let said = ["the target never answered: connect × ", "no connection to the target could be made"];
        assert!(said.iter().any(|words| done.stdout.contains(words)), "{args:?} {done:#?}");
        assert!(done.stdout.contains("connection refused"), "{args:?} {done:#?}");
    }
}

#[test]
fn a_mistake_has_a_name_and_a_way_out() {
    let tls = Server::start(ServerConfig { tls: Some(Tls::default()), ..ServerConfig::default() }).unwrap();
    let plain = Server::start(ServerConfig::default()).unwrap();
    let h2 = saying(&[0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 100]);
    for (url, named) in [
        (tls.url().replace("https", "http"), "use https://"),
        (plain.url().replace("http", "https"), "use http://"),
        (tls.url(), "self-signed: -k takes it"),
        (format!("http://{h2}/"), "give --http 2"),
    ] {
        let done = run(["-n", "20", "-c", "2", "-d", "1h", &url]).with_status(3);
        let words = done.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(named), "{url}: {done:#?}");
    }
}

#[test]
fn refusals_and_redirects_stand_above_the_verdict() {
    let refusing = saying(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    let leading = saying(b"HTTP/1.1 302 Found\r\nLocation: /login\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    let done = run(["-n", "10", "-c", "1", "--reconnect", &format!("http://{refusing}/")]).with_status(0);
    let (said, verdict) = (done.stdout.find("every answer was 401"), done.stdout.find("Measurement"));
    assert!(said.is_some() && said < verdict, "{done:#?}");
    let done = run(["-n", "10", "-c", "1", "--reconnect", &format!("http://{leading}/")]).with_status(0);
    assert!(done.stdout.contains(&format!("a redirect (302) to http://{leading}/login")), "{done:#?}");
    let once = run(["--once", &format!("http://{refusing}/")]).with_status(0);
    assert!(once.stdout.contains("the answer was 401") && !once.stdout.contains("Measurement"), "{once:#?}");
}
