//! Whether workers wait awake for the times at which calls are due.

use std::thread::available_parallelism;

use brunt_plan::plan::{Load, Pace, Plan};
use brunt_plan::share::Portion;
use brunt_plan::units::counted;

/// Workers that wait awake would leave no CPU to anything else.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("a worker that waits awake needs a CPU of its own and leaves one to all else: there {} {cpus}, for {}",
    if *cpus == 1 { "is" } else { "are" }, counted(u64::from(*workers), "worker"))]
pub struct NoSpareCpu {
    /// The workers of this machine.
    pub workers: u32,
    /// The CPUs that this process may use.
    pub cpus: u32,
}

/// From so many calls a second of a worker on it is worth a CPU that each goes when it is due: at fewer, a CPU that slept takes
/// as long to come to speed as a timer takes to wake a worker.
const ASKS_FROM: f64 = 1000.0;

/// Whether the workers of `plan` on this machine wait awake.
///
/// # Errors
/// Where the plan says that they do, and no CPU would be left beside them.
pub(crate) fn spins(plan: &Plan, here: Portion) -> Result<bool, NoSpareCpu> {
    let cpus = available_parallelism().map_or(1, std::num::NonZero::get) as u32;
    let workers = here.workers();
    match plan.transport.pace {
        Pace::Timer => Ok(false),
        Pace::Spin if cpus > workers => Ok(true),
        Pace::Spin => Err(NoSpareCpu { workers, cpus }),
        // Agents begin together, and each would see the same CPUs free.
        Pace::Auto if !here.is_whole() => Ok(false),
        Pace::Auto => Ok(asks_for_it(&plan.load, workers) && has_room(workers, cpus, usual_load())),
    }
}

/// Whether each of so many workers has calls that are due so often.
fn asks_for_it(load: &Load, workers: u32) -> bool {
    match load {
        Load::Open { profile, .. } => profile.highest_rate() >= ASKS_FROM * f64::from(workers),
        Load::Closed {} | Load::Replay(_) => false,
    }
}

/// Whether `workers` can each keep a CPU awake, and another one is left over beside what runs already.
fn has_room(workers: u32, cpus: u32, usual_load: Option<f64>) -> bool {
    cpus > workers + 1 && usual_load.is_some_and(|load| load + f64::from(workers) + 1.0 <= f64::from(cpus))
}

/// How many threads ran or waited to run, on average over the last minute (proc(5)); `None` where that is unknown.
fn usual_load() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use brunt_plan::arrivals::Spread;
    use brunt_plan::plan::ProtocolOptions;
    use brunt_plan::profile::Profile;
    use brunt_plan::target::Url;

    use super::*;

    #[test]
    fn a_cpu_has_to_be_left_over() {
        assert!(has_room(1, 4, Some(0.3)));
        assert!(has_room(1, 3, Some(1.0)));
        assert!(!has_room(1, 2, Some(0.0)), "one for the worker, and one for all else");
        assert!(!has_room(1, 4, Some(2.5)), "others use them");
        assert!(!has_room(1, 64, None), "nobody knows");
    }

    #[test]
    fn a_high_rate_of_calls_that_are_due_asks_for_it() {
        let open = |rate: f64| Load::Open { profile: Profile::constant(rate).unwrap(), arrivals: Spread::default() };
        assert!(asks_for_it(&open(1000.0), 1));
        assert!(!asks_for_it(&open(999.0), 1));
        assert!(!asks_for_it(&open(1000.0), 2), "each of two workers has a call every 2 ms");
        assert!(!asks_for_it(&Load::Closed {}, 1), "the next call is due when the last has ended");
    }

    #[test]
    fn one_of_several_machines_does_not_spin_by_itself() {
        let target = Url::parse("http://a/").unwrap().target;
        let mut plan = Plan::of_calls(target, ProtocolOptions::default());
        plan.load = Load::Open { profile: Profile::constant(1e6).unwrap(), arrivals: Spread::default() };
        let part = Portion::new(0, 1, 2).unwrap();
        assert!(!spins(&plan, part).unwrap());
        plan.transport.pace = Pace::Spin;
        let cpus = available_parallelism().map_or(1, std::num::NonZero::get);
        assert_eq!(spins(&plan, part).is_ok(), cpus > 1, "what is asked for holds there, too");
    }
}
