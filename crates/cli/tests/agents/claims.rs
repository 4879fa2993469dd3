//! Whom a controller takes: agents of one name, agents that never take their claim, and agents that are busy.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::thread::spawn;
use std::time::{Duration, Instant};

use crate::breaking::started;
use crate::bus::{Agent, Bus, agent, closes, read, target};
use crate::program::{brunt, done};

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn a_name_that_a_living_agent_has_is_refused() {
    let (bus, server) = (Bus::start(), target());
    let agents = bus.agents(2);
    let running = started(&bus, &agents, &["-r", "100", "-d", "4s", &server.url()]);
    let second = done(&mut brunt(["agent", "--nats", &bus.url(), "--name", "a2"])).with_status(2);
    assert!(second.stderr.contains("'a2'") && second.stderr.contains("--name"), "{second:#?}");
    let report = read(&running.wait().with_status(0));
    assert_eq!((&report["outcomes"]["answered"], server.requests()), (&400.into(), 400));
    // Who has ended has no name.
    drop(agents);
    let _again = bus.agent("a2");
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn a_second_agent_of_a_name_disturbs_no_run() {
    // Permissions under which nobody can ask who has a name.
    let bus = Bus::with(
        "authorization { users = [\n\
         { user: agent, password: one, permissions: { publish: [\"brunt.from.>\"], subscribe: [\"brunt.hello\", \"brunt.to.>\"] } }\n\
         { user: controller, password: other, permissions: { publish: [\"brunt.hello\", \"brunt.to.>\", \"brunt.echo.>\"], \
         subscribe: [\"brunt.from.>\", \"brunt.echo.>\"] } }\n\
         ] }\n",
    );
    let server = target();
    let of_agents = format!("nats://agent:one@127.0.0.1:{}", bus.port);
    let of_controllers = format!("nats://controller:other@127.0.0.1:{}", bus.port);
    let start =
        |name: &str| Agent::start(&mut brunt(["agent", "--nats", &of_agents, "--name", name, "--cores", "1"]), name);
    let first = [start("a1"), start("a2")];
    let url = server.url();
    let args = ["-r", "100", "-d", "5s", &url, "--nats", &of_controllers, "--format", "json", "--quiet"];
    let running = crate::program::Running::start(args);
    for agent in &first {
        agent.says("prepares workers");
    }
    let second = start("a2");
    let report = read(&running.wait().with_status(0));
    closes(&report);
    assert!(agent(&report, "a2")["lost"].is_null(), "{report:#}");
    assert_eq!((&report["outcomes"]["answered"], server.requests()), (&500.into(), 500));
    assert!(!second.has_said("belongs to"));
}

/// Announces an agent whenever one is called for that is not there: the announcement of a real one, under a name as long.
fn ghost(port: u16, real: &str, name: &str) {
    let mut out = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut input = BufReader::new(out.try_clone().unwrap());
    out.write_all(b"CONNECT {\"verbose\":false}\r\nSUB brunt.from.> 1\r\nPING\r\n").unwrap();
    let (real, name) = (real.as_bytes().to_vec(), name.as_bytes().to_vec());
    let shown = |name: &[u8]| format!(".{}.", String::from_utf8_lossy(name));
    spawn(move || {
        let mut line = String::new();
        while input.read_line(&mut line).is_ok_and(|read| read > 0) {
            let words: Vec<String> = line.split_ascii_whitespace().map(str::to_owned).collect();
            line.clear();
            if words.first().is_some_and(|word| word == "PING") {
                out.write_all(b"PONG\r\n").unwrap();
            }
            if words.first().is_none_or(|word| word != "MSG") {
                continue;
            }
            let mut payload = vec![0; words.last().unwrap().parse::<usize>().unwrap() + 2];
            input.read_exact(&mut payload).unwrap();
            let has = |bytes: &[u8]| payload.windows(bytes.len()).position(|at| at == bytes);
            if let (Some(_), Some(at)) = (has(b"Here"), has(&real)) {
                payload[at..at + name.len()].copy_from_slice(&name);
                let subject = words[1].replace(&shown(&real), &shown(&name));
                write!(out, "PUB {subject} {}\r\n", payload.len() - 2).unwrap();
                out.write_all(&payload).unwrap();
            }
        }
    });
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn who_does_not_take_a_claim_is_left_out() {
    let (bus, server) = (Bus::start(), target());
    let _agents = bus.agents(2);
    ghost(bus.port, "a1", "g1");
    let run = |which: &str| {
        let args = ["-n", "20", "-c", "2", "--agents", which, "--nats", &bus.url(), "--format", "json", &server.url()];
        done(&mut brunt(args))
    };
    let all = run("all").with_status(0);
    assert!(all.stderr.contains("2 of 3 agents") && all.stderr.contains("g1 did not answer the claim"), "{all:#?}");
    let report = read(&all);
    assert_eq!(report["agents"]["list"].as_array().unwrap().len(), 2);
    let three = run("3").with_status(4);
    assert!(three.stderr.contains("g1 did not answer the claim"), "{three:#?}");
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn agents_that_are_busy_are_named_where_all_are_wanted() {
    let (bus, server) = (Bus::start(), target());
    let agents = [bus.agent_with("a1", &["--tag", "zone=eu"]), bus.agent("a2")];
    let first = started(&bus, &agents[..1], &["-r", "100", "-d", "6s", "--agents", "zone=eu", &server.url()]);
    let began = Instant::now();
    let second = done(&mut brunt(["-n", "10", "-c", "1", "--nats", &bus.url(), &server.url()])).with_status(0);
    assert!(began.elapsed() < Duration::from_secs(60));
    let said = &second.stderr;
    assert!(said.contains("1 of 2 agents") && said.contains("a1 carries out a run of"), "{second:#?}");
    first.wait().with_status(0);
}
