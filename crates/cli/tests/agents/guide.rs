//! docs/machines.md with TLS and permissions, by its own commands: a NATS server, agents, and a controller with the target, each in a network of its own.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use crate::bus::{Agent, closes};
use crate::program::{Directory, Done, done, until};

const GUIDE: &str = include_str!("../../../../docs/machines.md");
const HOSTS: &str = "127.0.0.1 localhost\n10.87.0.1 bus\n10.87.0.2 load\n10.87.0.3 desk\n";
/// A machine's own hosts and loopback, for as long as it is not ended.
const BEGIN: &str = "mount --bind hosts /etc/hosts && ip link set lo up && echo there && exec sleep 600";

/// Network and hosts of a machine, which last as long as this.
struct Machine(Child);

impl Machine {
    /// None where the system does not permit it.
    fn begin(dir: &Directory) -> Option<Self> {
        let mut command = Command::new("unshare");
        command.args(["--net", "--mount", "sh", "-c", BEGIN]).current_dir(dir.path(""));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take()?).read_line(&mut line).ok()?;
        let machine = Self(child);
        (line == "there\n").then_some(machine)
    }

    /// A program with its arguments, on this machine.
    fn command(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        // In the directory where that began: to enter other mounts is to leave one's own.
        command.args(["--net", "--mount", "--wd", "--target", &self.0.id().to_string(), program]);
        // BRUNT_SEEDS of `make test` and its like are about the tests.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("BRUNT_")) {
            command.env_remove(name);
        }
        command.args(args).stdin(Stdio::null()).env("BRUNT_NO_SAVE", "1");
        command
    }

    fn brunt(&self, args: &[&str]) -> Command {
        self.command(env!("CARGO_BIN_EXE_brunt"), args)
    }

    fn ip(&self, args: &str) {
        let words: Vec<&str> = args.split(' ').collect();
        let ran = done(&mut self.command("ip", &words));
        assert_eq!(ran.status, Some(0), "ip {args}: {ran:#?}");
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A program that ends with its test.
struct Background(Child);

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Three machines on one network: 10.87.0.1, .2 and .3.
fn network(dir: &Directory) -> Option<[Machine; 3]> {
    let [bus, load, desk] = [Machine::begin(dir)?, Machine::begin(dir)?, Machine::begin(dir)?];
    if done(&mut bus.command("ip", &["link", "add", "switch", "type", "bridge"])).status != Some(0) {
        return None;
    }
    bus.ip("addr add 10.87.0.1/24 dev switch");
    bus.ip("link set switch up");
    for (number, machine) in (2..).zip([&load, &desk]) {
        bus.ip(&format!("link add port{number} type veth peer name eth0 netns {}", machine.0.id()));
        bus.ip(&format!("link set port{number} master switch up"));
        machine.ip(&format!("addr add 10.87.0.{number}/24 dev eth0"));
        machine.ip("link set eth0 up");
    }
    Some([bus, load, desk])
}

/// The guide's text between these two, which stand in it once.
#[track_caller]
fn between(begin: &str, end: &str) -> &'static str {
    let (_, after) = GUIDE.split_once(begin).unwrap_or_else(|| panic!("docs/machines.md has no '{begin}'"));
    after.split_once(end).unwrap_or_else(|| panic!("docs/machines.md has no '{end}' after '{begin}'")).0
}

/// Makes the authority and the server's certificate as the guide does, and writes its configuration down.
fn configure(dir: &Directory) {
    let mut commands = 0;
    for command in GUIDE.lines().filter_map(|line| line.strip_prefix("$ ")).filter(|line| line.starts_with("openssl "))
    {
        let ran = done(Command::new("sh").args(["-ec", command]).current_dir(dir.path("")));
        assert_eq!(ran.status, Some(0), "{command}: {ran:#?}");
        commands += 1;
    }
    assert_eq!(commands, 3, "an authority, a request and a certificate");
    let tls = between("With TLS, add `", "`");
    let permissions = between("authorization {", "\n```");
    dir.file("bus.conf", format!("authorization {{{permissions}\n{tls}\n"));
}

fn serve(bus: &Machine, dir: &Directory) -> Background {
    let mut command = bus.command("nats-server", &["-c", "bus.conf", "-l", "bus.log"]);
    command.current_dir(dir.path("")).stdout(Stdio::null()).stderr(Stdio::null());
    for (name, password) in [("A1_PASSWORD", "one"), ("A2_PASSWORD", "two"), ("CONTROLLER_PASSWORD", "other")] {
        command.env(name, password);
    }
    let server = Background(command.spawn().unwrap());
    let log = || std::fs::read_to_string(dir.path("bus.log")).unwrap_or_default();
    until("nats-server is ready", || log().contains("Server is ready"));
    server
}

#[test]
#[ignore = "needs nats-server, openssl, iproute2, util-linux: make test installs them"]
fn the_guide_holds_over_three_networks() {
    let dir = Directory::new();
    dir.file("hosts", HOSTS);
    let Some([bus, load, desk]) = network(&dir) else {
        eprintln!("not run: this system permits no network namespaces; root may make them");
        return;
    };
    configure(&dir);
    let _server = serve(&bus, &dir);
    let ca = dir.path("ca.pem");
    let as_agent = |name: &str, password: &str| format!("tls://{name}:{password}@bus:4222");
    let agent = |name: &str, password: &str| {
        let args = ["agent", "--nats", "@BUS", "--nats-ca", &ca, "--name", name, "--cores", "1"];
        Agent::start(load.brunt(&args).env("BUS", as_agent(name, password)), name)
    };
    let agents = [agent("a1", "one"), agent("a2", "two")];
    let mut command = desk.brunt(&["serve", "http", "10.87.0.3:8080"]);
    let mut target = Background(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    let mut line = String::new();
    BufReader::new(target.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("listening on http://10.87.0.3:8080"), "{line}");
    let controller = |args: &[&str]| {
        let mut command = desk.brunt(&[args, &["--nats", "@BUS"]].concat());
        command.env("BUS", as_agent("controller", "other")).env("TOKEN", "t0");
        command
    };
    let own = |args: &[&str]| done(&mut controller(args));
    let trusting = |args: &[&str]| own(&[args, &["--nats-ca", &ca]].concat());
    let listed = trusting(&["agents"]).with_status(0);
    assert!(listed.stdout.contains("a1 ") && listed.stdout.contains("a2 "), "{listed:#?}");
    let report = |done: &Done| serde_json::from_str::<Value>(&done.stdout).unwrap();
    // A secret travels by TLS, from one machine to the other.
    let url = "http://desk:8080/";
    let run = ["-r", "200", "-t", "1", "--format", "json", "--quiet", "-H", "Authorization: Bearer @TOKEN"];
    let came = trusting(&[&run[..], &["-d", "2s", "--agents", "2", url]].concat()).with_status(0);
    assert_eq!(report(&came)["outcomes"]["answered"], 400, "{came:#?}");
    for agent in &agents {
        agent.says("is free again");
    }
    // Whoever does not know the authority, and whoever asks for the server by another name, does not speak with it.
    let stranger = own(&["agents"]);
    assert_eq!(stranger.status, Some(2), "{stranger:#?}");
    let elsewhere = ["agents", "--nats", "tls://controller:other@10.87.0.1:4222", "--nats-ca", &ca];
    let elsewhere = done(&mut desk.brunt(&elsewhere));
    assert_eq!(elsewhere.status, Some(2), "{elsewhere:#?}");
    // An agent's account controls nobody.
    let account = as_agent("a1", "one");
    let args = ["-n", "1", "--nats", &account, "--nats-ca", &ca, "--agents-wait", "2s", url];
    let refused = done(&mut load.brunt(&args)).with_status(2);
    assert!(refused.stderr.contains("does not let us use its subjects"), "{refused:#?}");
    // Agents whose machine leaves the network are lost.
    let args = [&run[..], &["-d", "8s", "--nats-ca", &ca, url]].concat();
    let running = controller(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    for agent in &agents {
        agent.says_times("prepares workers", 2);
    }
    sleep(Duration::from_millis(2500));
    load.ip("link set eth0 down");
    let output = running.wait_with_output().unwrap();
    let came: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(4), "{came:#}");
    closes(&came);
    assert!(came["agents"]["list"].as_array().unwrap().iter().all(|agent| agent["lost"].is_object()), "{came:#}");
    assert!(came["outcomes"]["answered"].as_u64() > Some(100), "{came:#}");
}
