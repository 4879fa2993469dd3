//! The machine: its description, and how busy its cores are.

use std::fs;

/// Time that a core has spent since the machine started, in clock ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoreTime {
    /// Doing something, for us or for whoever shares the machine.
    pub busy: u64,
    /// Altogether.
    pub total: u64,
}

/// The time that a core has spent so far; `None` where the system does not tell.
pub fn core_time(core: usize) -> Option<CoreTime> {
    core_time_in(&fs::read_to_string("/proc/stat").ok()?, core)
}

/// Reads `/proc/stat` (proc(5)): user, nice, system, idle, iowait, irq, softirq, steal.
fn core_time_in(stat: &str, core: usize) -> Option<CoreTime> {
    let name = format!("cpu{core}");
    let line = stat.lines().find(|line| line.split(' ').next() == Some(&name))?;
    let spent: Vec<u64> = line.split_whitespace().skip(1).take(8).map_while(|field| field.parse().ok()).collect();
    let idle: u64 = spent.get(3..5)?.iter().sum();
    let total: u64 = spent.iter().sum();
    Some(CoreTime { busy: total - idle, total })
}

/// The time that all cores together have spent so far, and their number; `None` where the system does not tell.
pub fn all_cores_time() -> Option<(CoreTime, usize)> {
    all_cores_time_in(&fs::read_to_string("/proc/stat").ok()?)
}

fn all_cores_time_in(stat: &str) -> Option<(CoreTime, usize)> {
    let cores: Vec<_> = (0..).map_while(|core| core_time_in(stat, core)).collect();
    let sum = |of: fn(&CoreTime) -> u64| cores.iter().map(of).sum();
    let all = CoreTime { busy: sum(|core| core.busy), total: sum(|core| core.total) };
    (!cores.is_empty()).then_some((all, cores.len()))
}

/// The share of a core, from 0 to 1, that others used from `before` on while ours used `ours_ticks`.
pub fn used_by_others(before: CoreTime, after: CoreTime, ours_ticks: u64) -> f64 {
    let total = after.total.saturating_sub(before.total).max(1);
    let busy = after.busy.saturating_sub(before.busy);
    busy.saturating_sub(ours_ticks) as f64 / total as f64
}

/// Kernel, processor and number of cores, for people.
pub fn describe() -> String {
    let uname = rustix::system::uname();
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let models: Vec<_> = cpus.lines().filter_map(|line| line.strip_prefix("model name")).collect();
    let model = models.first().map_or("unknown processor", |text| text.trim_start_matches([' ', '\t', ':']));
    format!(
        "{} {} {}, {} × {model}",
        uname.sysname().to_string_lossy(),
        uname.release().to_string_lossy(),
        uname.machine().to_string_lossy(),
        models.len().max(1),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  3 0 3 6 0 0 0 0 0 0\ncpu0 1 0 1 2 0 0 0 0 0 0\ncpu1 20 1 10 50 9 1 2 7 0 0\nintr 1\n";

    #[test]
    fn busy_is_what_is_neither_idle_nor_waiting_for_a_disk() {
        assert_eq!(core_time_in(STAT, 1), Some(CoreTime { busy: 41, total: 100 }));
        assert_eq!(core_time_in(STAT, 2), None);
        assert_eq!(all_cores_time_in(STAT), Some((CoreTime { busy: 43, total: 104 }, 2)));
    }

    #[test]
    fn others_used_what_we_did_not() {
        let (before, after) = (CoreTime { busy: 10, total: 100 }, CoreTime { busy: 100, total: 200 });
        assert!((used_by_others(before, after, 70) - 0.2).abs() < 1e-9);
        assert!(used_by_others(before, after, 95) < 1e-9);
    }
}
