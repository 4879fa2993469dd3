//! Who may speak on the bus, and what others may read there.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread::spawn;

use serde_json::Value;

use crate::bus::{Agent, Bus, target};
use crate::program::{brunt, done};

/// What docs/machines.md shows, with passwords.
pub fn permissions() -> String {
    let guide = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/machines.md")).unwrap();
    let (_, after) = guide.split_once("authorization {").unwrap();
    let (inside, _) = after.split_once("\n```").unwrap();
    format!("authorization {{{inside}\n")
        .replace("$A1_PASSWORD", "one")
        .replace("$A2_PASSWORD", "two")
        .replace("$CONTROLLER_PASSWORD", "other")
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn the_permissions_of_the_guide_are_enough_and_no_more_than_that() {
    let bus = Bus::with(&permissions());
    let server = target();
    let agents = format!("nats://a1:one@127.0.0.1:{}", bus.port);
    let controllers = format!("nats://controller:other@127.0.0.1:{}", bus.port);
    let _agent = Agent::start(&mut brunt(["agent", "--nats", &agents, "--name", "a1", "--cores", "1"]), "a1");
    let report =
        done(&mut brunt(["-n", "20", "-c", "1", "--nats", &controllers, "--format", "json", "--quiet", &server.url()]));
    let report: Value = serde_json::from_str(&report.with_status(0).stdout).unwrap();
    assert_eq!(report["outcomes"]["answered"], 20);
    // An agent's credentials do not let anybody control agents.
    let refused = done(&mut brunt(["-n", "20", "-c", "1", "--nats", &agents, "--agents-wait", "2s", &server.url()]));
    assert_eq!(refused.status, Some(2), "{refused:#?}");
    assert!(refused.stderr.contains("does not let us use its subjects"), "{refused:#?}");
    let wrong = format!("nats://controller:hunter2@127.0.0.1:{}", bus.port);
    let refused = done(&mut brunt(["-n", "20", "--nats", &wrong, &server.url()]));
    assert_eq!(refused.status, Some(2), "{refused:#?}");
    assert!(
        refused.stderr.contains("refuses these credentials") && !refused.stderr.contains("hunter2"),
        "{refused:#?}"
    );
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn who_asks_for_an_answer_elsewhere_ends_no_agent() {
    let bus = Bus::with(&permissions());
    let server = target();
    let agents = format!("nats://a1:one@127.0.0.1:{}", bus.port);
    let controllers = format!("nats://controller:other@127.0.0.1:{}", bus.port);
    let _agent = Agent::start(&mut brunt(["agent", "--nats", &agents, "--name", "a1", "--cores", "1"]), "a1");
    // As `nats req brunt.hello ''` does: agents may not publish to the inbox that it names.
    let mut stranger = TcpStream::connect(("127.0.0.1", bus.port)).unwrap();
    stranger
        .write_all(
            b"CONNECT {\"user\":\"controller\",\"pass\":\"other\",\"verbose\":false}\r\n\
              PUB brunt.hello _INBOX.stranger 0\r\n\r\nPUB brunt.hello _INBOX.stranger 4\r\nwhat\r\nPING\r\n",
        )
        .unwrap();
    let lines = BufReader::new(stranger).lines().map_while(Result::ok);
    assert!(lines.take(10).any(|line| line == "PONG"), "the bus has taken it");
    for _ in 0..2 {
        let run = ["-n", "20", "-c", "1", "--nats", &controllers, "--format", "json", "--quiet", &server.url()];
        let report: Value = serde_json::from_str(&done(&mut brunt(run)).with_status(0).stdout).unwrap();
        assert_eq!(report["outcomes"]["answered"], 20);
    }
}

/// What the bus answers to these commands of one that is logged in so, up to the answer to a PING behind them.
fn said_to(bus: &Bus, user: &str, password: &str, commands: &str) -> Vec<String> {
    let mut stranger = TcpStream::connect(("127.0.0.1", bus.port)).unwrap();
    write!(stranger, "CONNECT {{\"user\":\"{user}\",\"pass\":\"{password}\",\"verbose\":false}}\r\n{commands}PING\r\n")
        .unwrap();
    let lines = BufReader::new(stranger).lines().map_while(Result::ok);
    lines.skip(1).take_while(|line| line != "PONG").collect()
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn an_agents_account_neither_hears_nor_speaks_for_another() {
    let bus = Bus::with(&permissions());
    let own = "SUB brunt.to.a1.> 1\r\nSUB brunt.hello 2\r\nPUB brunt.from.a1.c-1 1\r\nx\r\n";
    assert_eq!(said_to(&bus, "a1", "one", own), Vec::<String>::new());
    for others in [
        "SUB brunt.to.a2.> 1\r\n",
        "SUB brunt.to.> 1\r\n",
        "SUB brunt.from.> 1\r\n",
        "SUB > 1\r\n",
        "PUB brunt.from.a2.c-1 1\r\nx\r\n",
        "PUB brunt.to.a2.1 1\r\nx\r\n",
        "PUB brunt.echo.c-1 1\r\nx\r\n",
        "PUB brunt.hello 1\r\nx\r\n",
    ] {
        let said = said_to(&bus, "a1", "one", others);
        assert!(said.len() == 1 && said[0].starts_with("-ERR 'Permissions Violation"), "{others}: {said:?}");
    }
}

/// A server that answers one request after the other, and says which Authorization each had.
fn guard() -> (String, std::sync::mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let (heard, hears) = std::sync::mpsc::channel();
    spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut out = stream.try_clone().unwrap();
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                if let Some(value) = line.strip_prefix("Authorization: ") {
                    let _ = heard.send(value.to_owned());
                }
                if line.is_empty() && out.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").is_err() {
                    break;
                }
            }
        }
    });
    (url, hears)
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn secrets_travel_where_nobody_can_read_them_or_stay_with_the_agents() {
    let bus = Bus::start();
    let (target, authorizations) = guard();
    let url = bus.url();
    let mut command = brunt(["agent", "--nats", &url, "--name", "a1", "--cores", "1"]);
    let _agent = Agent::start(command.env("TOKEN", "of-the-agent"), "a1");
    let header = "Authorization: Bearer @TOKEN";
    let here = ["-n", "1", "-c", "1", "-H", header, "--quiet", &target];
    let run = |nats: &str, more: &[&str]| {
        let mut args = here.to_vec();
        args.extend(["--nats", nats]);
        args.extend(more);
        done(brunt(args).env("TOKEN", "of-the-controller"))
    };
    run(&url, &[]).with_status(0);
    assert_eq!(authorizations.recv().unwrap(), "Bearer of-the-controller");
    run(&url, &["--secrets-from-agents"]).with_status(0);
    assert_eq!(authorizations.recv().unwrap(), "Bearer of-the-agent");
    // 127.1 is this machine, and does not look like it.
    let open = format!("nats://127.1:{}", bus.port);
    let refused = run(&open, &[]).with_status(2);
    assert!(refused.stderr.contains("the way to the NATS server is not private"), "{refused:#?}");
    assert!(authorizations.try_recv().is_err());
    run(&open, &["--secrets-from-agents"]).with_status(0);
    assert_eq!(authorizations.recv().unwrap(), "Bearer of-the-agent");
    // Nothing of it is asked of this machine.
    for policy in ["continue", "abort"] {
        let args = [&here[..], &["--nats", &open, "--secrets-from-agents", "--on-lost-agent", policy]].concat();
        done(brunt(args).env_remove("TOKEN")).with_status(0);
        assert_eq!(authorizations.recv().unwrap(), "Bearer of-the-agent");
    }
    let unset = done(brunt([&here[..], &["--nats", &url]].concat()).env_remove("TOKEN")).with_status(2);
    assert!(unset.stderr.contains("TOKEN"), "{unset:#?}");
}

/// The usual set-up: the NATS server is on the controller's machine, and the agent is not.
#[test]
#[ignore = "needs nats-server: make test installs it"]
fn secrets_do_not_travel_to_an_agent_whose_way_others_can_read() {
    let bus = Bus::start();
    let (target, authorizations) = guard();
    let open = format!("nats://127.1:{}", bus.port);
    let _agent = Agent::start(&mut brunt(["agent", "--nats", &open, "--name", "far", "--cores", "1"]), "far");
    let args = ["-n", "1", "-c", "1", "-H", "Authorization: Bearer @TOKEN", "--quiet", "--nats", &bus.url(), &target];
    let refused = done(brunt(args).env("TOKEN", "t0")).with_status(2);
    assert!(refused.stderr.contains("the way from agent 'far' to the NATS server is not private"), "{refused:#?}");
    assert!(authorizations.try_recv().is_err());
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn the_bus_may_speak_tls_alone() {
    let certified = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let bus = {
        let dir = crate::program::Directory::new();
        let certificate = dir.file("bus.pem", certified.cert.pem());
        let key = dir.file("bus.key", certified.signing_key.serialize_pem());
        let bus = Bus::with(&format!("tls {{ cert_file: \"{certificate}\", key_file: \"{key}\" }}\n"));
        // The server has read them.
        drop(dir);
        bus
    };
    let trusted = bus.directory().file("ca.pem", certified.cert.pem());
    let url = format!("tls://localhost:{}", bus.port);
    let args = ["agent", "--nats", &url, "--nats-ca", &trusted, "--name", "a1", "--cores", "1"];
    let _agent = Agent::start(&mut brunt(args), "a1");
    let server = target();
    let args =
        ["-n", "5", "-c", "1", "--nats", &url, "--nats-ca", &trusted, "--format", "json", "--quiet", &server.url()];
    let report: Value = serde_json::from_str(&done(&mut brunt(args)).with_status(0).stdout).unwrap();
    assert_eq!(report["outcomes"]["answered"], 5);
    let untrusted = done(&mut brunt(["agents", "--nats", &url]));
    assert_eq!(untrusted.status, Some(2), "{untrusted:#?}");
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn scripts_of_controllers_do_no_more_than_agents_let_them() {
    let bus = Bus::start();
    let confined = bus.agent("a1");
    let server = target();
    let dir = crate::program::Directory::new();
    let script = dir.file("w.lua", "function init() os.execute('true') end\n");
    let refused = bus.command(&["-n", "1", "-c", "1", "-s", &script, &server.url()]);
    assert_eq!(refused.status, Some(2), "{refused:#?}");
    assert!(refused.stderr.contains("agent 'a1'") && refused.stderr.contains("init()"), "{refused:#?}");
    drop(confined);
    let _open = bus.agent_with("a2", &["--no-sandbox"]);
    assert_eq!(bus.run(&["-n", "1", "-c", "1", "-s", &script, &server.url()])["outcomes"]["answered"], 1);
}
