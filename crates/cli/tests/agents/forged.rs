//! What somebody says who has the account of another agent: frames that were heard, at random, and made up.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::thread::{sleep, spawn};
use std::time::Duration;

use crate::bus::{Agent, Bus, agent, agrees, read, target};
use crate::program::{Running, brunt};
use crate::safety::permissions;

/// How many messages are said during a run, how many of them at once, and how long the pause behind those is: all are said within some two seconds.
const MESSAGES: usize = 100_000;
const AT_ONCE: usize = 500;
const PAUSE: Duration = Duration::from_millis(8);
/// How many of the frames that were heard last are said again.
const HEARD: usize = 400;
/// How much more memory a controller may take than one that nobody disturbs, in bytes.
const GROWTH: u64 = 100_000_000;

/// Where a frame's kind and offset stand, and the length of what stands before its payload: crates/cluster/src/frame.rs.
const KIND: usize = 6;
const OFFSET: Range<usize> = 15..23;
const HEAD: usize = 39;

/// Frames that were heard, each with the end of the subject that it came on: the controller's name.
type Heard = Arc<Mutex<VecDeque<(String, Vec<u8>)>>>;

/// Listens to all that a1 says, as somebody does who has the controllers' account.
fn listen(bus: &Bus) -> Heard {
    let mut stream = TcpStream::connect(("127.0.0.1", bus.port)).unwrap();
    stream
        .write_all(
            b"CONNECT {\"user\":\"controller\",\"pass\":\"other\",\"verbose\":false}\r\nSUB brunt.from.a1.> 1\r\n",
        )
        .unwrap();
    let heard = Heard::default();
    let keeps = Arc::clone(&heard);
    spawn(move || {
        let mut stream = BufReader::new(stream);
        let mut line = String::new();
        while stream.read_line(&mut line).is_ok_and(|length| length > 0) {
            if line.starts_with("PING") {
                stream.get_mut().write_all(b"PONG\r\n").unwrap();
            } else if let Some(message) = line.strip_prefix("MSG ") {
                let words: Vec<&str> = message.split_whitespace().collect();
                let (subject, length) = (words[0], words[words.len() - 1].parse::<usize>().unwrap());
                let mut payload = vec![0; length + 2];
                if stream.read_exact(&mut payload).is_err() {
                    return;
                }
                payload.truncate(length);
                let to = subject.rsplit('.').next().unwrap().to_owned();
                let mut kept = keeps.lock().unwrap();
                kept.push_back((to, payload));
                if kept.len() > HEARD {
                    kept.pop_front();
                }
            }
            line.clear();
        }
    });
    heard
}

/// Says so many messages with the account of a2: frames as they were heard, frames that come before the agent's own next ones, that end its session, with
/// bytes changed or cut, and bytes at random.
fn forge(bus: &Bus, heard: &Heard, seed: u64) -> usize {
    let mut stream = TcpStream::connect(("127.0.0.1", bus.port)).unwrap();
    stream.write_all(b"CONNECT {\"user\":\"a2\",\"pass\":\"two\",\"verbose\":false}\r\n").unwrap();
    let mut state = seed | 1;
    let mut random = move |most: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 16) as usize % most.max(1)
    };
    let mut said = 0;
    while said < MESSAGES {
        let known: Vec<_> = heard.lock().unwrap().iter().cloned().collect();
        let mut batch = Vec::new();
        for _ in 0..AT_ONCE {
            let (to, mut frame) = known[random(known.len())].clone();
            match random(6) {
                0 => {}
                // Ahead of what the agent says next in this session, and an end of the session.
                1 if frame[KIND] == 1 && frame.len() > HEAD => {
                    let next = u64::from_be_bytes(frame[OFFSET].try_into().unwrap()) + (frame.len() - HEAD) as u64;
                    frame[OFFSET].copy_from_slice(&next.to_be_bytes());
                }
                2 if frame.len() > HEAD => {
                    frame[KIND] = 3;
                    frame.splice(HEAD.., *b"\xa7Unknown");
                }
                3 => frame.truncate(random(frame.len())),
                4 => (0..=random(8)).for_each(|_| {
                    let place = random(frame.len());
                    frame[place] = random(256) as u8;
                }),
                _ => frame = (0..random(200)).map(|_| random(256) as u8).collect(),
            }
            let subject = if random(10) == 0 { "brunt.from.a2.here".to_owned() } else { format!("brunt.from.a2.{to}") };
            write!(batch, "PUB {subject} {}\r\n", frame.len()).unwrap();
            batch.extend_from_slice(&frame);
            batch.extend_from_slice(b"\r\n");
        }
        stream.write_all(&batch).unwrap();
        said += AT_ONCE;
        sleep(PAUSE);
    }
    stream.write_all(b"PING\r\n").unwrap();
    let lines = BufReader::new(stream).lines().map_while(Result::ok);
    let answers: Vec<String> = lines.skip(1).take_while(|line| line != "PONG").collect();
    assert!(answers.iter().all(|line| line == "PING"), "the bus has taken all: {answers:?}");
    said
}

#[test]
#[ignore = "needs nats-server: make test installs it"]
fn a_hundred_thousand_messages_of_another_account_change_no_figure() {
    let bus = Bus::with(&permissions());
    let server = target();
    let agents = format!("nats://a1:one@127.0.0.1:{}", bus.port);
    let controllers = format!("nats://controller:other@127.0.0.1:{}", bus.port);
    let member = Agent::start(&mut brunt(["agent", "--nats", &agents, "--name", "a1", "--cores", "1"]), "a1");
    let heard = listen(&bus);
    let (url, mut memory, mut counted) = (server.url(), Vec::new(), 0);
    for is_disturbed in [false, true, true] {
        let args = ["-r", "300", "-d", "6s", "-t", "1", "--agents", "1", "--nats", &controllers, "--quiet", &url];
        let run = Running::start([&args[..], &["--format", "json"]].concat());
        member.says_times("prepares workers", memory.len() + 1);
        sleep(Duration::from_millis(1500));
        if is_disturbed {
            assert_eq!(forge(&bus, &heard, memory.len() as u64 + 7), MESSAGES);
        }
        memory.push(run.resident_bytes());
        let report = read(&run.wait().with_status(0));
        agrees(&report, server.requests() - counted);
        counted = server.requests();
        assert_eq!(report["outcomes"]["due"], 1800);
        assert_eq!(report["outcomes"]["answered"], 1800);
        assert_eq!(report["agents"]["list"].as_array().unwrap().len(), 1, "{report:#}");
        assert!(agent(&report, "a1")["lost"].is_null(), "{report:#}");
    }
    let most = memory.iter().max().unwrap();
    assert!(*most < memory[0] + GROWTH, "{memory:?}");
}
