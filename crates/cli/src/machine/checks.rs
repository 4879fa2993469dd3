//! Problems of a machine for a run of a given size. Pure: nothing is read here.

use brunt_plan::units::{Duration, counted};
use serde::Serialize;

use super::{Facts, Reached};

/// How long a port is taken after its connection is closed, in seconds (Linux, `TCP_TIMEWAIT_LEN`).
const TIME_WAIT_S: f64 = 60.0;
/// The same where ports are reused, in seconds.
const REUSED_AFTER_S: f64 = 1.0;
/// How long a firewall knows a closed connection, in seconds (`nf_conntrack_tcp_timeout_time_wait`).
const TRACKED_S: f64 = 120.0;
/// The longest reading of the clock, in nanoseconds: each call needs several.
const SLOW_READING_NS: f64 = 250.0;
/// The greatest delay of a timer, in nanoseconds: due times are kept to the millisecond.
const LATE_TIMER_NS: u64 = 1_000_000;
/// A share of the CPUs that a hypervisor may take.
const STOLEN: f64 = 0.05;
/// The greatest use by another program, in CPUs.
const BUSY: f64 = 0.5;
/// How long a name may take to be looked up, in nanoseconds.
const SLOW_LOOKUP_NS: u64 = 100_000_000;

/// A run's demands on its machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Size {
    /// Connections at the same time; `None` where they grow as far as the machine allows.
    pub connections: Option<u64>,
    /// The highest rate, in calls a second; `None` in the closed model.
    pub rate: Option<f64>,
    /// Threads.
    pub workers: u32,
    /// Whether each call has a connection of its own.
    pub reconnects: bool,
    /// Its length in seconds, as far as it is known.
    pub seconds: Option<f64>,
    /// The number of its local addresses; 0 if they were not given.
    pub sources: u64,
    /// Whether its connections take local ports: those to a Unix socket take none.
    pub takes_ports: bool,
}

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// A problem that would spoil the run.
    Problem,
    /// A possible problem.
    Warning,
    /// No problem.
    Ok,
    /// Unknown on this machine.
    Unknown,
}

impl Level {
    /// Its word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Problem => "problem",
            Self::Warning => "warning",
            Self::Ok => "ok",
            Self::Unknown => "unknown",
        }
    }
}

/// A check of a machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Check {
    /// Its subject.
    #[serde(rename = "check")]
    pub name: &'static str,
    /// Its result.
    pub level: Level,
    /// The machine's value, and the run's need.
    pub message: String,
    /// Commands and flags that help, one each; empty without a problem.
    pub remedies: Vec<String>,
}

impl Check {
    fn new(name: &'static str, level: Level, message: impl Into<String>, remedies: &[&str]) -> Self {
        let remedies = remedies.iter().map(|&remedy| remedy.to_owned()).collect();
        Self { name, level, message: message.into(), remedies }
    }

    fn ok(name: &'static str, message: impl Into<String>) -> Self {
        Self::new(name, Level::Ok, message, &[])
    }

    fn unknown(name: &'static str) -> Self {
        Self::new(name, Level::Unknown, "this system does not say", &[])
    }
}

/// All checks, in the order in which they are shown. A target is checked if one was named.
pub fn all(facts: &Facts, size: &Size, target: Option<&Reached>) -> Vec<Check> {
    let mut checks = vec![
        descriptors(facts, size),
        ports(facts, size, target),
        cpus(facts, size),
        quota(facts, size),
        other_programs(facts, size),
        hypervisor(facts),
        speed(facts),
        clock(facts),
        timers(facts),
        arrival_times(facts),
        firewall(facts, size),
    ];
    if target.is_none_or(|target| target.is_here) {
        checks.push(loopback(facts));
    }
    if let Some(target) = target {
        checks.extend(name(target));
        if !matches!(target.lookup, Some(Err(_))) {
            checks.push(connection(target));
        }
    }
    checks
}

fn descriptors(facts: &Facts, size: &Size) -> Check {
    const NAME: &str = "descriptors";
    let Some(limit) = facts.descriptors else { return Check::ok(NAME, "no limit") };
    let spare = brunt_engine::descriptors_besides(size.workers);
    let Some(connections) = size.connections else {
        let most = limit.saturating_sub(spare);
        return Check::ok(NAME, format!("the limit is {limit}: connections may grow to {most}"));
    };
    let needed = connections + spare;
    if needed <= limit {
        return Check::ok(NAME, format!("{needed} needed, {limit} allowed"));
    }
    let remedy = format!("sudo prlimit --pid $$ --nofile={needed}:{needed}");
    Check::new(NAME, Level::Problem, format!("{needed} needed, {limit} allowed"), &[&remedy])
}

fn ports(facts: &Facts, size: &Size, target: Option<&Reached>) -> Check {
    const NAME: &str = "local ports";
    if !size.takes_ports {
        return Check::ok(NAME, "a Unix socket takes none");
    }
    let Some(of_an_address) = facts.ports else { return Check::unknown(NAME) };
    let is_here = target.is_some_and(|target| target.is_here);
    let all = of_an_address * size.sources.max(1);
    // Over IPv4 on this machine brunt connects from as many addresses as necessary, unless addresses were given.
    let is_spread = target.is_some_and(|target| target.is_spread) && size.sources == 0;
    let at_once = size.connections.unwrap_or(0);
    let reuses = matches!((facts.reuses_ports, is_here), (Some(1), _) | (Some(2), true));
    let kept_s = if reuses { REUSED_AFTER_S } else { TIME_WAIT_S };
    let closed = match size.rate {
        Some(rate) if size.reconnects => rate * size.seconds.unwrap_or(kept_s).min(kept_s),
        _ => 0.0,
    };
    let needed = at_once + closed as u64;
    let taken = facts.time_wait.unwrap_or(0);
    let sources = "--source-ip 10.0.0.5-10.0.0.8: several addresses of this machine";
    if needed > all && closed > 0.0 {
        let message = format!("{needed} needed, {all} there: a closed connection keeps its port for {kept_s:.0}s");
        let remedies = ["no --reconnect", "sudo sysctl -w net.ipv4.tcp_tw_reuse=1", sources];
        return Check::new(NAME, Level::Problem, message, &remedies);
    }
    if needed > all && !is_spread {
        let range = "sudo sysctl -w net.ipv4.ip_local_port_range='1024 65535'";
        return Check::new(NAME, Level::Problem, format!("{needed} needed, {all} there"), &[range, sources]);
    }
    if taken.saturating_mul(2) > all {
        let message = format!("{taken} of {all} are still taken by connections that were closed");
        return Check::new(NAME, Level::Warning, message, &["wait a minute: ss -s shows them as timewait"]);
    }
    Check::ok(NAME, format!("{all} to one address"))
}

fn cpus(facts: &Facts, size: &Size) -> Check {
    const NAME: &str = "CPUs";
    let (threads, usable) = (size.workers as usize, facts.usable);
    if threads > usable {
        let message = format!("{threads} threads, and this process may use {usable} CPUs at a time");
        return Check::new(
            NAME,
            Level::Problem,
            message,
            &[&format!("-t {usable}"), "more CPUs by taskset, or for the container"],
        );
    }
    Check::ok(NAME, format!("{usable} for {}", counted(u64::from(size.workers), "thread")))
}

fn quota(facts: &Facts, size: &Size) -> Check {
    const NAME: &str = "CPU quota";
    let Some(quota) = facts.quota else { return Check::ok(NAME, "none") };
    let message = format!("{quota:.2} CPUs for {}", counted(u64::from(size.workers), "thread"));
    if quota >= f64::from(size.workers) {
        return Check::ok(NAME, message);
    }
    let stops = format!("{message}: beyond that the kernel stops them, for tens of milliseconds");
    Check::new(
        NAME,
        Level::Problem,
        stops,
        &[&format!("-t {}", (quota as u32).max(1)), "docker run --cpus=N, resources.limits.cpu, CPUQuota="],
    )
}

fn other_programs(facts: &Facts, size: &Size) -> Check {
    const NAME: &str = "other programs";
    let processors = &facts.processors;
    let others = processors.used;
    let used = format!("they use {others:.1} of {} CPUs", processors.count);
    if others < BUSY {
        return Check::ok(NAME, used);
    }
    let left = processors.count as f64 - others;
    let level = if left < f64::from(size.workers) - BUSY { Level::Problem } else { Level::Warning };
    let message = match processors.busy.first() {
        Some(most) => format!("{used}, the most by {} (process {}, {:.1})", most.name, most.process, most.cpus),
        None => format!("{used}, many of them a little"),
    };
    Check::new(
        NAME,
        level,
        message,
        &["end them", &format!("leave them CPUs of their own: -t {}", (left as u32).max(1))],
    )
}

fn hypervisor(facts: &Facts) -> Check {
    const NAME: &str = "hypervisor";
    let processors = &facts.processors;
    let share = processors.stolen / processors.count.max(1) as f64;
    if share < STOLEN {
        return Check::ok(NAME, "it takes no CPU time away");
    }
    let message = format!("it gave {:.0}% of the CPU time to other guests", share * 100.0);
    Check::new(NAME, Level::Problem, message, &["a machine whose CPUs are not shared"])
}

fn speed(facts: &Facts) -> Check {
    const NAME: &str = "CPU speed";
    if facts.governors.is_empty() {
        return Check::unknown(NAME);
    }
    let governors = facts.governors.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    if governors == "performance" {
        return Check::ok(NAME, "governor performance");
    }
    // These drivers choose the speed themselves, and quickly, whatever the governor is called.
    let is_quick = facts.speed_driver.as_deref().is_some_and(|driver| driver.contains("pstate"));
    let level = if is_quick || !facts.governors.contains("powersave") { Level::Warning } else { Level::Problem };
    let message = format!("governor {governors}: a CPU is slow until it was busy for a while");
    Check::new(NAME, level, message, &["sudo cpupower frequency-set --governor performance"])
}

fn clock(facts: &Facts) -> Check {
    const NAME: &str = "clock";
    let source = facts.clock.as_deref().unwrap_or("unknown source");
    let message = format!("{source}, {:.0}ns a reading", facts.reading_ns);
    if facts.reading_ns <= SLOW_READING_NS {
        return Check::ok(NAME, message);
    }
    Check::new(NAME, Level::Problem, message, &["clocksource=tsc among the kernel's parameters", "another machine"])
}

fn timers(facts: &Facts) -> Check {
    const NAME: &str = "timers";
    let Some(slack) = facts.timer_slack_ns else { return Check::unknown(NAME) };
    let message = format!("they may come {}µs late", slack / 1_000);
    if slack < LATE_TIMER_NS {
        return Check::ok(NAME, message);
    }
    Check::new(
        NAME,
        Level::Problem,
        message,
        &["another shell: it comes from what started this one", "TimerSlackNSec=50us in its unit"],
    )
}

fn arrival_times(facts: &Facts) -> Check {
    const NAME: &str = "arrival times";
    if facts.has_arrival_times {
        return Check::ok(NAME, "the kernel says when an answer came");
    }
    let message = "the kernel does not say when an answer came: times include what brunt takes to read it";
    Check::new(NAME, Level::Warning, message, &["a lower rate, and more threads than are busy"])
}

fn firewall(facts: &Facts, size: &Size) -> Check {
    const NAME: &str = "firewall";
    let Some((tracked, most)) = facts.tracked else { return Check::ok(NAME, "it tracks no connections") };
    let closed = match size.rate {
        Some(rate) if size.reconnects => rate * size.seconds.unwrap_or(TRACKED_S).min(TRACKED_S),
        _ => 0.0,
    };
    let needed = size.connections.unwrap_or(0) + closed as u64;
    let message = format!("it tracks {tracked} of at most {most} connections; this run adds {needed}");
    if tracked + needed <= most {
        return Check::ok(NAME, message);
    }
    let remedy = format!("sudo sysctl -w net.netfilter.nf_conntrack_max={}", (tracked + needed) * 2);
    Check::new(NAME, Level::Problem, message, &[&remedy])
}

fn loopback(facts: &Facts) -> Check {
    const NAME: &str = "loopback";
    let Some(congestion) = facts.congestion.as_deref() else { return Check::unknown(NAME) };
    if !congestion.starts_with("bbr") {
        return Check::ok(NAME, format!("congestion control {congestion}"));
    }
    let message = format!("a target here sends by {congestion}, which spreads its answers over time");
    Check::new(NAME, Level::Warning, message, &["sudo sysctl -w net.ipv4.tcp_congestion_control=cubic"])
}

fn name(target: &Reached) -> Option<Check> {
    const NAME: &str = "name";
    let lookup_ns = match target.lookup.as_ref()? {
        Ok(lookup_ns) => *lookup_ns,
        Err(error) => {
            let message = format!("{} cannot be looked up: {error}", target.target);
            return Some(Check::new(NAME, Level::Problem, message, &["another name, or an address", "--connect-to"]));
        }
    };
    let message = format!("looked up in {}", Duration(lookup_ns));
    if lookup_ns < SLOW_LOOKUP_NS {
        return Some(Check::ok(NAME, message));
    }
    Some(Check::new(NAME, Level::Warning, message, &["an address instead of a name", "--connect-to"]))
}

fn connection(target: &Reached) -> Check {
    const NAME: &str = "target";
    match &target.connect {
        Ok(ns) => Check::ok(NAME, format!("{} connects in {}", target.target, Duration(*ns))),
        Err(error) => {
            let message = format!("{}: {error}", target.target);
            Check::new(NAME, Level::Problem, message, &["start it", "--wait-for 30s, where it is still starting"])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Processors;
    use super::super::busy::Busy;
    use super::*;

    /// A machine with nothing wrong.
    fn clean() -> Facts {
        Facts {
            descriptors: Some(1 << 20),
            ports: Some(28_232),
            time_wait: Some(3),
            reuses_ports: Some(2),
            usable: 4,
            quota: None,
            clock: Some("tsc".to_owned()),
            reading_ns: 25.0,
            governors: ["performance".to_owned()].into(),
            speed_driver: Some("intel_pstate".to_owned()),
            timer_slack_ns: Some(50_000),
            congestion: Some("cubic".to_owned()),
            tracked: None,
            has_arrival_times: true,
            processors: Processors { count: 4, used: 0.1, stolen: 0.0, busy: Vec::new() },
        }
    }

    fn usual() -> Size {
        Size {
            connections: Some(1000),
            rate: Some(5000.0),
            workers: 2,
            reconnects: false,
            seconds: Some(10.0),
            sources: 0,
            takes_ports: true,
        }
    }

    fn far() -> Reached {
        Reached {
            target: "shop:80".to_owned(),
            is_here: false,
            is_spread: false,
            lookup: Some(Ok(1_000_000)),
            connect: Ok(200_000),
        }
    }

    /// The checks that are not ok.
    fn wrong(facts: &Facts, size: &Size, target: &Reached) -> Vec<(&'static str, Level)> {
        let checks = all(facts, size, Some(target));
        for check in &checks {
            let is_fine = matches!(check.level, Level::Ok | Level::Unknown);
            assert_eq!(check.remedies.is_empty(), is_fine, "{check:?}");
        }
        checks.into_iter().filter(|check| check.level != Level::Ok).map(|check| (check.name, check.level)).collect()
    }

    #[test]
    fn a_clean_machine_has_no_problem() {
        assert_eq!(wrong(&clean(), &usual(), &far()), []);
        let here = Reached { is_here: true, is_spread: true, ..far() };
        assert_eq!(wrong(&clean(), &Size { connections: Some(50_000), ..usual() }, &here), []);
        assert_eq!(wrong(&clean(), &Size { connections: None, rate: None, ..usual() }, &here), []);
    }

    #[test]
    fn each_problem_is_found_alone() {
        let busy = Busy { process: 7, name: "make".to_owned(), cpus: 3.0 };
        let busy = Processors { count: 4, used: 3.1, stolen: 0.0, busy: vec![busy] };
        let found: [(&str, Facts); 10] = [
            ("descriptors", Facts { descriptors: Some(1024), ..clean() }),
            ("local ports", Facts { ports: Some(100), ..clean() }),
            ("CPUs", Facts { usable: 1, ..clean() }),
            ("CPU quota", Facts { quota: Some(0.5), ..clean() }),
            ("other programs", Facts { processors: busy, ..clean() }),
            (
                "hypervisor",
                Facts { processors: Processors { count: 4, stolen: 0.4, ..Processors::default() }, ..clean() },
            ),
            ("CPU speed", Facts { governors: ["powersave".to_owned()].into(), speed_driver: None, ..clean() }),
            ("clock", Facts { clock: Some("hpet".to_owned()), reading_ns: 900.0, ..clean() }),
            ("timers", Facts { timer_slack_ns: Some(50_000_000), ..clean() }),
            ("firewall", Facts { tracked: Some((65_000, 65_536)), ..clean() }),
        ];
        for (name, facts) in found {
            assert_eq!(wrong(&facts, &usual(), &far()), [(name, Level::Problem)]);
        }
        let many = Processors { count: 4, used: 3.9, stolen: 0.0, busy: Vec::new() };
        let many = wrong(&Facts { processors: many, ..clean() }, &usual(), &far());
        assert_eq!(many, [("other programs", Level::Problem)], "none of them stands out");
        let refused = Reached { connect: Err("Connection refused".to_owned()), ..far() };
        assert_eq!(wrong(&clean(), &usual(), &refused), [("target", Level::Problem)]);
        let why = "Name or service not known".to_owned();
        let unknown = Reached { lookup: Some(Err(why.clone())), connect: Err(why), ..far() };
        assert_eq!(
            wrong(&clean(), &usual(), &unknown),
            [("name", Level::Problem)],
            "and nothing of a target that is not started"
        );
    }

    #[test]
    fn what_may_spoil_a_run_is_a_warning() {
        let doubts: [(&str, Facts); 4] = [
            ("arrival times", Facts { has_arrival_times: false, ..clean() }),
            ("CPU speed", Facts { governors: ["powersave".to_owned()].into(), ..clean() }),
            ("local ports", Facts { time_wait: Some(20_000), ..clean() }),
            ("loopback", Facts { congestion: Some("bbr".to_owned()), ..clean() }),
        ];
        let here = Reached { is_here: true, is_spread: true, ..far() };
        for (name, facts) in doubts {
            assert_eq!(wrong(&facts, &usual(), &here), [(name, Level::Warning)]);
        }
        let slow = Reached { lookup: Some(Ok(400_000_000)), ..far() };
        assert_eq!(wrong(&clean(), &usual(), &slow), [("name", Level::Warning)]);
    }

    /// A port stays taken for a minute, or for a second where the kernel gives it out again.
    #[test]
    fn closed_connections_keep_their_ports() {
        let size = Size { reconnects: true, ..usual() };
        let here = Reached { is_here: true, is_spread: true, ..far() };
        assert_eq!(wrong(&clean(), &size, &far()), [("local ports", Level::Problem)], "50,000 in 10 s");
        assert_eq!(wrong(&clean(), &size, &here), [], "5,000 in a second");
        let never = Facts { reuses_ports: Some(0), ..clean() };
        assert_eq!(wrong(&never, &size, &here), [("local ports", Level::Problem)]);
        let everywhere = Facts { reuses_ports: Some(1), ..clean() };
        assert_eq!(wrong(&everywhere, &size, &far()), []);
        assert_eq!(wrong(&clean(), &Size { sources: 4, ..size.clone() }, &far()), []);
        assert_eq!(wrong(&clean(), &Size { takes_ports: false, ..size }, &here), [], "over a Unix socket");
        let many = Size { connections: Some(50_000), ..usual() };
        let by_ipv6 = Reached { is_spread: false, ..here };
        assert_eq!(wrong(&clean(), &many, &by_ipv6), [("local ports", Level::Problem)]);
    }

    #[test]
    fn a_limit_that_is_just_met_is_none() {
        for (limit, expected) in [(1_072, vec![]), (1_071, vec![("descriptors", Level::Problem)])] {
            let facts = Facts { descriptors: Some(limit), ..clean() };
            assert_eq!(wrong(&facts, &usual(), &far()), expected);
        }
    }
}
