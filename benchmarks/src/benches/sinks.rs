//! The cost of metrics: CPU time of a run that sends them, serves them or watches a process, relative to the same run
//! without.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, ensure};

use super::{Bench, CONNECTIONS};
use crate::bar::Bar;
use crate::clients::{CLIENTS, Client, Load};
use crate::race::{at_once, median};
use crate::servers::Server;
use crate::setup::{Installed, Setup};
use crate::table::Table;

/// Calls a second of each run.
const RATE: u64 = 5000;
/// The most that each may add, as a share of a core.
const MOST: f64 = 0.01;
/// How often a page is scraped.
const SCRAPE: Duration = Duration::from_secs(1);
/// How long a scrape may take.
const PATIENCE: Duration = Duration::from_secs(1);

pub(super) const BENCH: Bench = Bench {
    name: "sinks",
    about: "-r 5000 with --otlp, with --prometheus scraped each second, and with --watch of a process, beside the same without, all at once.",
    run,
};

const PLAIN: Client = client("plain", |load| arguments(load, &[]));
const OTLP: Client = client("--otlp", |load| arguments(load, &["--otlp", &format!("http://{}", places().receiver)]));
const PROMETHEUS: Client = client("--prometheus", |load| {
    arguments(load, &["--prometheus", &places().page.to_string(), "--prometheus-linger", "0s"])
});
const WATCH: Client = client("--watch", |load| arguments(load, &["--watch", &format!("pid:{}", std::process::id())]));

const fn client(name: &'static str, arguments: fn(&Load) -> Vec<String>) -> Client {
    Client { name, version: &[], scripts: false, arguments, read: CLIENTS[0].read }
}

fn arguments(load: &Load, more: &[&str]) -> Vec<String> {
    let (rate, connections) = (RATE.to_string(), load.connections.to_string());
    let length = format!("{}s", load.length.as_secs());
    let words = ["--format", "json", "--quiet", "--no-save", "-t", "1", "-c", &connections, "-r", &rate, "-d", &length];
    [&words[..], more, &[&load.url]].concat().into_iter().map(str::to_owned).collect()
}

/// The receiver that metrics are sent to, and the address at which a run serves them.
#[derive(Debug, Clone, Copy)]
struct Places {
    receiver: SocketAddr,
    page: SocketAddr,
}

/// Set when [`run`] begins: a client's arguments are made from its load alone.
static PLACES: OnceLock<Places> = OnceLock::new();

fn places() -> Places {
    let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 9));
    PLACES.get().copied().unwrap_or(Places { receiver: nowhere, page: nowhere })
}

fn run(setup: &Setup) -> anyhow::Result<Vec<Bar>> {
    let (sent, scraped) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let receiver = listener.local_addr()?;
    // The system does not soon give this port to another process.
    let page = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
    let Places { page, .. } = *PLACES.get_or_init(|| Places { receiver, page });
    // Both end with this program.
    let (of_receiver, of_scraper) = (Arc::clone(&sent), Arc::clone(&scraped));
    thread::spawn(move || take_in(&listener, &of_receiver));
    thread::spawn(move || scrape(page, &of_scraper));

    let server = Server::target(setup, &[])?;
    let load = Load::new(&server.url, CONNECTIONS, setup.length);
    let installed = |client| Installed { client, program: setup.brunt.clone(), version: String::new() };
    let clients = [&PLAIN, &OTLP, &PROMETHEUS, &WATCH].map(installed);
    let rounds = at_once(setup, &load, &clients.each_ref())?;
    let (sent, scraped) = (sent.load(Ordering::Relaxed), scraped.load(Ordering::Relaxed));
    ensure!(sent > 0 && scraped > 0, "{sent} requests came to the receiver, and {scraped} scrapes were answered");
    println!("{}; {RATE} calls/s each; {sent} requests of OTLP, {scraped} scrapes\n", server.about);

    let mut table = Table::new(&["run", "CPU µs/call", "× plain", "of a core more"]);
    let mut bars = Vec::new();
    for (place, installed) in clients.iter().enumerate() {
        let name = installed.client.name;
        let cpu_us = median(figures(&rounds, |round| round.get(place).copied())).context("no rounds")?;
        let ratios = figures(&rounds, |round| Some(round.get(place)? / round.first()?));
        let more = figures(&rounds, |round| Some((round.get(place)? - round.first()?) * RATE as f64 / 1e6));
        let (ratio, more) = (median(ratios).context("no rounds")?, median(more).context("no rounds")?);
        let shown = format!("{:+.2} %", more * 100.0);
        table.row([name.to_owned(), format!("{cpu_us:.2}"), format!("{ratio:.3}"), shown.clone()]);
        if place > 0 {
            bars.push(Bar::new(name, "< 1 % of a core more", shown, more < MOST));
        }
    }
    println!("{table}");
    Ok(bars)
}

fn figures(rounds: &[Vec<f64>], of: impl Fn(&Vec<f64>) -> Option<f64>) -> Vec<f64> {
    rounds.iter().filter_map(of).collect()
}

/// Accepts and counts requests.
fn take_in(listener: &TcpListener, requests: &Arc<AtomicU64>) {
    for stream in listener.incoming().map_while(Result::ok) {
        let requests = Arc::clone(requests);
        thread::spawn(move || answer(&stream, &requests));
    }
}

/// Answers requests of one connection until that ends.
fn answer(stream: &TcpStream, requests: &AtomicU64) -> Option<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
            if line.trim_end().is_empty() {
                break;
            }
        }
        reader.read_exact(&mut vec![0; length]).ok()?;
        (&*stream).write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").ok()?;
        requests.fetch_add(1, Ordering::Relaxed);
    }
}

/// Scrapes a page once a second, and counts the answers. Between two runs nobody serves the page.
fn scrape(page: SocketAddr, answers: &AtomicU64) {
    loop {
        if ask(page).is_some() {
            answers.fetch_add(1, Ordering::Relaxed);
        }
        thread::sleep(SCRAPE);
    }
}

fn ask(page: SocketAddr) -> Option<()> {
    let mut stream = TcpStream::connect_timeout(&page, PATIENCE).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let request = "GET /metrics HTTP/1.1\r\nHost: brunt\r\nAccept: application/vnd.google.protobuf;\
                   proto=io.prometheus.client.MetricFamily;encoding=delimited\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    answer.starts_with(b"HTTP/1.1 200").then_some(())
}
