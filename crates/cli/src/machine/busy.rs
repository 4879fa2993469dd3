//! The use of CPUs over a while, by process (`proc(5)`: `/proc/stat`, `/proc/PID/stat`).

use std::collections::HashMap;
use std::fs;
use std::path::Path;

/// The most processes that are read.
const MOST_PROCESSES: usize = 20_000;
/// A share of a CPU below which a process is not named.
const LEAST_SHARE: f64 = 0.1;

/// A process that used CPU time.
#[derive(Debug, Clone, PartialEq)]
pub struct Busy {
    /// Its number.
    pub process: u32,
    /// Its name, printable.
    pub name: String,
    /// Its CPU use, in CPUs.
    pub cpus: f64,
}

/// The use of CPUs, in CPUs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Processors {
    /// Their number.
    pub count: usize,
    /// The use by programs and the kernel.
    pub used: f64,
    /// The part that a hypervisor gave to others.
    pub stolen: f64,
    /// The busiest processes first.
    pub busy: Vec<Busy>,
}

/// Running totals, in ticks.
#[derive(Debug, Default)]
pub(super) struct Sample {
    /// Time of all CPUs.
    all: u64,
    idle: u64,
    stolen: u64,
    count: usize,
    processes: HashMap<u32, (String, u64)>,
}

impl Sample {
    pub(super) fn read(root: &Path) -> Self {
        let mut sample = Self::default();
        let stat = fs::read_to_string(root.join("proc/stat")).unwrap_or_default();
        for line in stat.lines() {
            let Some(rest) = line.strip_prefix("cpu") else { continue };
            if !rest.starts_with(' ') {
                sample.count += 1;
                continue;
            }
            let ticks: Vec<u64> = rest.split_whitespace().filter_map(|ticks| ticks.parse().ok()).collect();
            let tick = |place: usize| ticks.get(place).copied().unwrap_or(0);
            // user, nice, system, idle, iowait, irq, softirq, steal; guests are in user and nice.
            sample.all = (0..8).map(tick).sum();
            sample.idle = tick(3) + tick(4);
            sample.stolen = tick(7);
        }
        let Ok(entries) = fs::read_dir(root.join("proc")) else { return sample };
        let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        for number in numbers.take(MOST_PROCESSES) {
            let Ok(stat) = fs::read(root.join(format!("proc/{number}/stat"))) else { continue };
            if let Some((name, ticks)) = process(&String::from_utf8_lossy(&stat)) {
                sample.processes.insert(number, (name, ticks));
            }
        }
        sample
    }

    /// The use since an earlier reading.
    pub(super) fn since(&self, before: &Self) -> Processors {
        let all = self.all.saturating_sub(before.all);
        if all == 0 || self.count == 0 {
            return Processors { count: self.count, ..Processors::default() };
        }
        let cpus = |ticks: u64| ticks as f64 / all as f64 * self.count as f64;
        let idle = self.idle.saturating_sub(before.idle);
        let stolen = self.stolen.saturating_sub(before.stolen);
        let itself = std::process::id();
        let mut busy: Vec<Busy> = Vec::new();
        for (&process, (name, ticks)) in &self.processes {
            let earlier = before.processes.get(&process).map_or(0, |(_, ticks)| *ticks);
            let cpus = cpus(ticks.saturating_sub(earlier));
            if process != itself && cpus >= LEAST_SHARE {
                busy.push(Busy { process, name: name.clone(), cpus });
            }
        }
        busy.sort_by(|a, b| b.cpus.total_cmp(&a.cpus).then(a.process.cmp(&b.process)));
        let used = cpus(all.saturating_sub(idle).saturating_sub(stolen));
        Processors { count: self.count, used, stolen: cpus(stolen), busy }
    }
}

/// Name and CPU time of a process, in ticks, from `PID (NAME) STATE …`. Fields 14 and 15 are the ticks in user mode and in the kernel. A name may have
/// spaces and brackets.
fn process(stat: &str) -> Option<(String, u64)> {
    let (head, rest) = stat.rsplit_once(')')?;
    let (_, name) = head.split_once('(')?;
    let mut fields = rest.split_whitespace().skip(11).map(str::parse::<u64>);
    let ticks = fields.next()?.ok()?.saturating_add(fields.next()?.ok()?);
    Some((name.chars().map(|char| if char.is_control() { '?' } else { char }).collect(), ticks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_hold_anything() {
        let rest = "S 1 2 3 4 5 6 7 8 9 10 30 12 0 0";
        assert_eq!(process(&format!("7 (a b) c) {rest}")), Some(("a b) c".to_owned(), 42)));
        assert_eq!(process(&format!("7 (\u{1b}[31m) {rest}")), Some(("?[31m".to_owned(), 42)));
        for garbage in ["", "7", "7 (", "7 (x)", "7 (x) S 1 2", "7 x) S 1 2 3 4 5 6 7 8 9 10 a b"] {
            assert_eq!(process(garbage), None, "{garbage}");
        }
    }

    #[test]
    fn shares_are_of_what_passed() {
        let sample = |all, idle, stolen, ticks| Sample {
            all,
            idle,
            stolen,
            count: 4,
            processes: [(u32::MAX, ("burner".to_owned(), ticks)), (u32::MAX - 1, ("sleeper".to_owned(), 5))].into(),
        };
        let then = sample(1000, 900, 0, 50);
        let processors = sample(1200, 1000, 20, 100).since(&then);
        let busy = Busy { process: u32::MAX, name: "burner".to_owned(), cpus: 1.0 };
        assert_eq!(processors, Processors { count: 4, used: 1.6, stolen: 0.4, busy: vec![busy] });
        assert_eq!(then.since(&then).used, 0.0);
    }
}
