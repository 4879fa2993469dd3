//! Runs clients in turn against the same server, in rounds, so that a drift of the machine affects all of them.

use std::time::Duration;

use anyhow::Context as _;

use crate::clients::{Load, Report};
use crate::machine::{CoreTime, core_time, used_by_others};
use crate::process::{Process, pinned, ticks};
use crate::servers::Server;
use crate::setup::{Installed, Setup};
use crate::table::Table;

/// The share of a core above which the server limits the rate, and not the client.
pub const SERVER_BOUND: f64 = 0.95;
/// The share of a core used by others above which rates are unreliable.
pub const DISTURBED: f64 = 0.05;
/// The time that a client may take beyond its load's length.
const SLACK: Duration = Duration::from_secs(30);

/// One run of one client.
#[derive(Debug, Clone)]
pub struct Sample {
    /// The client.
    pub client: &'static str,
    /// The client's own report.
    pub report: Report,
    /// Requests that the server counted meanwhile.
    pub served: u64,
    /// CPU time of the whole process.
    pub cpu: Duration,
    /// The most resident memory, in bytes.
    pub peak_bytes: u64,
    /// The share of its load's length in which the server's core was busy, from 0 to 1.
    pub server_busy: f64,
    /// The share of the busier core that neither server nor client used, from 0 to 1.
    pub others: f64,
}

impl Sample {
    /// CPU time of the client for each request, in µs.
    pub fn cpu_us(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.report.answered.max(1) as f64
    }

    fn is_undisturbed(&self) -> bool {
        self.others <= DISTURBED
    }
}

/// Every run of every client.
#[derive(Debug)]
pub struct Race {
    clients: Vec<&'static str>,
    rounds: Vec<Vec<Sample>>,
}

impl Race {
    /// Runs `clients` at `server` in rounds. In a round each has its load's length, a slice at a time, in turn with the
    /// others and each round beginning with another: a machine whose speed changes every few seconds, as virtual ones
    /// do, then changes it for all.
    pub fn run(setup: &Setup, server: &Server, load: &Load, clients: &[&Installed]) -> anyhow::Result<Self> {
        println!(
            "{}; {} connections, {} rounds of {} s for each client, in slices of a second\n",
            server.about,
            load.connections,
            setup.rounds,
            load.length.as_secs()
        );
        let mut rounds = Vec::new();
        for round in 0..setup.rounds {
            let order: Vec<_> = (0..clients.len()).map(|place| clients[(place + round) % clients.len()]).collect();
            let slices = load.length.as_secs().max(1);
            let slice = Load { length: load.length / slices as u32, ..load.clone() };
            let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); order.len()];
            for _ in 0..slices {
                for (client, samples) in order.iter().zip(&mut samples) {
                    samples.push(sample(setup, server, &slice, client)?);
                }
            }
            rounds.push(samples.iter().filter_map(|slices| together(slices)).collect());
        }
        Ok(Self { clients: clients.iter().map(|installed| installed.client.name).collect(), rounds })
    }

    /// A client's runs.
    pub fn samples(&self, client: &str) -> impl Iterator<Item = &Sample> {
        self.rounds.iter().flatten().filter(move |sample| sample.client == client)
    }

    /// The median of a figure over a client's undisturbed runs, or over all if none is undisturbed; `None` if the
    /// client did not take part.
    pub fn median(&self, client: &str, figure: impl Fn(&Sample) -> f64) -> Option<f64> {
        let undisturbed: Vec<_> = self.samples(client).filter(|sample| sample.is_undisturbed()).map(&figure).collect();
        median(undisturbed).or_else(|| median(self.samples(client).map(&figure).collect()))
    }

    /// A client's run and another's in the same round, for each round in which neither was disturbed, or for all rounds
    /// if there is no such one. The flag: whether there is one.
    fn pairs(&self, client: &str, other: &str) -> (bool, Vec<(&Sample, &Sample)>) {
        let all: Vec<_> =
            self.rounds.iter().filter_map(|round| Some((find(round, client)?, find(round, other)?))).collect();
        let undisturbed = |(one, other): &(&Sample, &Sample)| one.is_undisturbed() && other.is_undisturbed();
        let fair: Vec<_> = all.iter().copied().filter(undisturbed).collect();
        if fair.is_empty() { (false, all) } else { (true, fair) }
    }

    /// The median over the rounds of a figure's ratio to wrk's in the same round.
    pub fn ratio_to_wrk(&self, client: &str, figure: impl Fn(&Sample) -> f64) -> Option<f64> {
        self.ratio(client, "wrk", figure)
    }

    /// The median over the rounds of a figure's ratio to another client's in the same round.
    pub fn ratio(&self, client: &str, to: &str, figure: impl Fn(&Sample) -> f64) -> Option<f64> {
        median(self.pairs(client, to).1.into_iter().map(|(sample, other)| figure(sample) / figure(other)).collect())
    }

    /// Why a comparison to this client may be unfair, if every round was disturbed.
    pub fn disturbed(&self, to: &str) -> Option<String> {
        let (fair, pairs) = self.pairs("brunt", to);
        let others = pairs.iter().map(|(one, other)| one.others.max(other.others)).collect();
        disturbed(median(others)?).filter(|_| !fair)
    }

    /// Why the server may be the cause of a low rate, if it may.
    pub fn server_bound(&self) -> Option<String> {
        let busy = self.median("brunt", |sample| sample.server_busy)?;
        let why = format!("the server's core was {:.0} % busy; only CPU per request tells", busy * 100.0);
        (busy > SERVER_BOUND).then_some(why)
    }

    /// The clients' medians, the fastest first.
    pub fn table(&self) -> Table {
        let mut table = Table::new(&[
            "client",
            "req/s",
            "× wrk",
            "CPU µs/req",
            "× wrk",
            "RSS MB",
            "server's core",
            "used by others",
            "failed",
            "uncounted",
            "undisturbed",
        ]);
        let rate = |client: &str| self.median(client, |sample| sample.report.per_s).unwrap_or(0.0);
        let mut clients = self.clients.clone();
        clients.sort_by(|one, other| rate(other).total_cmp(&rate(one)));
        for client in clients {
            let median = |figure: fn(&Sample) -> f64| self.median(client, figure).unwrap_or(0.0);
            let ratio = |figure: fn(&Sample) -> f64| {
                self.ratio_to_wrk(client, figure).map_or_else(|| "–".to_owned(), |ratio| format!("{ratio:.2}"))
            };
            let failed: u64 = self.samples(client).map(|sample| sample.report.failed).sum();
            table.row([
                client.to_owned(),
                format!("{:.0}", rate(client)),
                ratio(|sample| sample.report.per_s),
                format!("{:.2}", median(Sample::cpu_us)),
                ratio(Sample::cpu_us),
                format!("{:.1}", median(|sample| sample.peak_bytes as f64) / 1e6),
                format!("{:.0} %", median(|sample| sample.server_busy) * 100.0),
                format!("{:.0} %", median(|sample| sample.others) * 100.0),
                failed.to_string(),
                format!("{:+}", self.uncounted(client)),
                format!("{} of {}", self.samples(client).filter(|s| s.is_undisturbed()).count(), self.rounds.len()),
            ]);
        }
        table
    }

    /// Requests that the server counted in all of a client's runs, and the client did not.
    pub fn uncounted(&self, client: &str) -> i64 {
        self.samples(client).map(|sample| sample.served.cast_signed() - sample.report.answered.cast_signed()).sum()
    }
}

fn find<'a>(round: &'a [Sample], client: &str) -> Option<&'a Sample> {
    round.iter().find(|sample| sample.client == client)
}

/// A note if others used so much of a core that rates and times are not the client's own.
pub fn disturbed(others: f64) -> Option<String> {
    (others > DISTURBED).then(|| format!("other processes used {:.0} % of a core", others * 100.0))
}

/// One sample of several slices of a client's load.
fn together(slices: &[Sample]) -> Option<Sample> {
    let mean = |figure: fn(&Sample) -> f64| slices.iter().map(figure).sum::<f64>() / slices.len() as f64;
    Some(Sample {
        client: slices.first()?.client,
        report: Report {
            answered: slices.iter().map(|slice| slice.report.answered).sum(),
            per_s: mean(|slice| slice.report.per_s),
            failed: slices.iter().map(|slice| slice.report.failed).sum(),
        },
        served: slices.iter().map(|slice| slice.served).sum(),
        cpu: slices.iter().map(|slice| slice.cpu).sum(),
        peak_bytes: slices.iter().map(|slice| slice.peak_bytes).max()?,
        server_busy: mean(|slice| slice.server_busy),
        others: mean(|slice| slice.others),
    })
}

/// CPU time of each request, in µs, of clients that run at once and share the clients' core, in their order, for each
/// round. Whatever the machine does affects all of them.
pub fn at_once(setup: &Setup, load: &Load, clients: &[&Installed]) -> anyhow::Result<Vec<Vec<f64>>> {
    let cpu_us = |round: Vec<Shared>| round.iter().map(|client| client.cpu_us).collect();
    (0..setup.rounds).map(|_| once(setup, load, clients).map(cpu_us)).collect()
}

/// The result of a client that shared its core with others.
#[derive(Debug, Clone, Copy)]
pub struct Shared {
    /// CPU time for each request, in µs.
    pub cpu_us: f64,
    /// Requests answered a second, and in all.
    pub per_s: f64,
    pub answered: u64,
}

/// One round of clients at once, in their order.
pub fn once(setup: &Setup, load: &Load, clients: &[&Installed]) -> anyhow::Result<Vec<Shared>> {
    setup.wait_for_quiet();
    let start = |installed: &&Installed| {
        let mut command = pinned(setup.client_core, &installed.program);
        command.args((installed.client.arguments)(load));
        Process::client(command, installed.client.name)
    };
    let running = clients.iter().map(start).collect::<anyhow::Result<Vec<_>>>()?;
    let end = |(process, installed): (Process, &&Installed)| {
        let finished = process.finish(load.length * clients.len() as u32 + SLACK, |_| {})?;
        let report = (installed.client.read)(&finished.stdout).context(installed.client.name)?;
        let cpu_us = finished.cpu.as_secs_f64() * 1e6 / report.answered.max(1) as f64;
        Ok(Shared { cpu_us, per_s: report.per_s, answered: report.answered })
    };
    running.into_iter().zip(clients).map(end).collect()
}

fn sample(setup: &Setup, server: &Server, load: &Load, installed: &Installed) -> anyhow::Result<Sample> {
    let Installed { client, program, .. } = installed;
    setup.wait_for_quiet();
    let mut command = pinned(setup.client_core, program);
    command.args((client.arguments)(load));
    let (ran, finished) =
        Watched::run(setup, server, || Process::client(command, client.name)?.finish(load.length + SLACK, |_| {}))?;
    let report = (client.read)(&finished.stdout).with_context(|| client.name)?;
    // While a client starts and ends, some 40 ms, no server is busy.
    let loaded = load.length.as_secs_f64() / finished.wall.as_secs_f64();
    Ok(Sample {
        client: client.name,
        report,
        served: ran.served,
        cpu: ticks(finished.cpu_ticks),
        peak_bytes: finished.peak_bytes,
        server_busy: (ran.server_busy / loaded.min(1.0)).min(1.0),
        others: ran.others(finished.cpu_ticks),
    })
}

/// What was measured while a client ran.
#[derive(Debug, Clone, Copy)]
pub struct Watched {
    /// Requests that the server counted.
    pub served: u64,
    /// The share of time in which the server's core was not idle, from 0 to 1.
    pub server_busy: f64,
    server_others: f64,
    client_core: [CoreTime; 2],
}

impl Watched {
    /// Does `work`, which runs one client on the clients' core, and measures the server and the cores meanwhile.
    pub fn run<T>(
        setup: &Setup,
        server: &Server,
        work: impl FnOnce() -> anyhow::Result<T>,
    ) -> anyhow::Result<(Self, T)> {
        let core = |number| core_time(number).context("the time of a core cannot be read");
        let before = server.requests()?;
        let cpu = server.cpu_ticks()?;
        let (server_core, client_core) = (core(setup.server_core)?, core(setup.client_core)?);
        let done = work()?;
        let client_core = [client_core, core(setup.client_core)?];
        let server_ticks = server.cpu_ticks()? - cpu;
        let server_core_after = core(setup.server_core)?;
        let server_others = used_by_others(server_core, server_core_after, server_ticks);
        let server_busy = used_by_others(server_core, server_core_after, 0);
        // The second count includes the request for the first one.
        let served = server.requests()?.saturating_sub(before + 1);
        Ok((Self { served, server_busy, server_others, client_core }, done))
    }

    /// The share of the busier core that neither the server nor the client with this CPU time used.
    pub fn others(&self, client_ticks: u64) -> f64 {
        let [before, after] = self.client_core;
        used_by_others(before, after, client_ticks).max(self.server_others)
    }
}

/// The median; `None` for an empty list.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    if values.len() % 2 == 1 { Some(upper) } else { Some(f64::midpoint(values[middle - 1], upper)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(client: &'static str, per_s: f64, served: u64) -> Sample {
        Sample {
            client,
            report: Report { answered: 1000, per_s, failed: 0 },
            served,
            cpu: Duration::from_millis(5),
            peak_bytes: 1,
            server_busy: 0.9,
            others: 0.0,
        }
    }

    #[test]
    fn medians() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn slices_are_put_together() {
        let slices = [sample("wrk", 100.0, 1000), Sample { peak_bytes: 7, others: 0.1, ..sample("wrk", 300.0, 1010) }];
        let all = together(&slices).unwrap();
        assert_eq!((&all.report, all.served), (&Report { answered: 2000, per_s: 200.0, failed: 0 }, 2010));
        assert_eq!((all.cpu, all.peak_bytes), (Duration::from_millis(10), 7));
        assert!((all.others - 0.05).abs() < 1e-9 && (all.server_busy - 0.9).abs() < 1e-9);
        assert!((all.cpu_us() - 5.0).abs() < 1e-9);
        assert!(together(&[]).is_none());
    }

    #[test]
    fn ratios_are_taken_within_rounds() {
        let rounds = [(100.0, 150.0), (10.0, 14.0), (50.0, 70.0)];
        let rounds = rounds.map(|(wrk, brunt)| vec![sample("wrk", wrk, 1064), sample("brunt", brunt, 1000)]);
        let race = Race { clients: vec!["wrk", "brunt"], rounds: rounds.into() };
        assert_eq!(race.ratio_to_wrk("brunt", |sample| sample.report.per_s), Some(1.4));
        assert_eq!(race.ratio_to_wrk("ab", |sample| sample.report.per_s), None);
        assert_eq!(race.median("wrk", Sample::cpu_us), Some(5.0));
        assert_eq!((race.uncounted("wrk"), race.uncounted("brunt")), (192, 0));
        assert_eq!((race.disturbed("wrk"), race.server_bound()), (None, None));
    }

    #[test]
    fn disturbed_rounds_count_only_where_there_are_no_others() {
        let round = |per_s, others| vec![sample("wrk", 10.0, 0), Sample { others, ..sample("brunt", per_s, 0) }];
        let rate = |sample: &Sample| sample.report.per_s;
        let clients = || vec!["wrk", "brunt"];
        let race = Race { clients: clients(), rounds: vec![round(20.0, 0.0), round(5.0, 0.3), round(6.0, 0.3)] };
        assert_eq!((race.ratio_to_wrk("brunt", rate), race.median("brunt", rate)), (Some(2.0), Some(20.0)));
        assert_eq!(race.disturbed("wrk"), None);
        let race = Race { clients: clients(), rounds: vec![round(5.0, 0.3), round(6.0, 0.3), round(7.0, 0.3)] };
        assert_eq!(race.ratio_to_wrk("brunt", rate), Some(0.6));
        assert!(race.disturbed("wrk").unwrap().contains("30 %"));
    }

    #[test]
    fn a_busy_server_excuses_a_low_rate() {
        let busy = Sample { server_busy: 0.97, ..sample("brunt", 1.0, 1000) };
        let race = Race { clients: vec!["brunt"], rounds: vec![vec![busy]] };
        assert!(race.server_bound().unwrap().contains("97 % busy"));
    }
}
