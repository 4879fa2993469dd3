//! How workers wait until calls are due.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::Value;

use brunt_testbed::server::ServerConfig;

use crate::program::{Done, run};
use crate::runs::target;

const AT_A_RATE: [&str; 6] = ["-r500", "-d1s", "-t1", "--format=json", "--no-save", "--pace"];

/// Runs brunt where it may use only one of the CPUs. A thread of its own, as children inherit what a thread may use.
fn on_one_cpu(args: &[&str]) -> Done {
    std::thread::scope(|scope| {
        let work = || {
            let all = sched_getaffinity(None).unwrap();
            let first = (0..CpuSet::MAX_CPU).find(|cpu| all.is_set(*cpu)).unwrap();
            let mut one = CpuSet::new();
            one.set(first);
            sched_setaffinity(None, &one).unwrap();
            run(args)
        };
        scope.spawn(work).join().unwrap()
    })
}

fn health(done: &Done, field: &str) -> u64 {
    let result: Value = serde_json::from_str(&done.stdout).unwrap_or_else(|error| panic!("{error}: {done:#?}"));
    result["health"][field].as_u64().unwrap_or(0)
}

#[test]
fn a_worker_that_waits_awake_is_not_taken_for_a_busy_one() {
    let (_server, url) = target(ServerConfig::default());
    if std::thread::available_parallelism().unwrap().get() > 1 {
        let done = run([&AT_A_RATE[..], &["spin", &url]].concat());
        let (wall, cpu, spun) = (health(&done, "wall_ns"), health(&done, "cpu_ns"), health(&done, "spun_ns"));
        assert!(spun > wall / 2, "{spun} of {wall}: {done:#?}");
        assert!(cpu < wall / 2, "{cpu} of {wall}: {done:#?}");
        assert!(!done.stdout.contains("cpu_saturated"), "{done:#?}");
        let shown = run(["-r500", "-d1s", "-t1", "--no-save", "--pace", "spin", "-v", &url]);
        assert!(shown.stdout.contains("% waiting awake"), "{shown:#?}");
    }
    let asleep = run([&AT_A_RATE[..], &["timer", &url]].concat());
    let (wall, spun) = (health(&asleep, "wall_ns"), health(&asleep, "spun_ns"));
    assert!(spun < wall / 8, "{spun} of {wall}: {asleep:#?}");
}

#[test]
fn one_cpu_is_too_few_to_wait_awake() {
    let (_server, url) = target(ServerConfig::default());
    let refused = on_one_cpu(&[&AT_A_RATE[..], &["spin", &url]].concat()).with_status(2);
    let expected = "there is 1, for 1 worker: let it sleep (--pace timer)";
    assert!(refused.stderr.contains(expected), "{refused:#?}");
    // By itself it sleeps there, at any rate.
    let asleep = on_one_cpu(&["-r2000", "-d1s", "-t1", "--format=json", "--no-save", &url]);
    assert!(health(&asleep, "spun_ns") < health(&asleep, "wall_ns") / 8, "{asleep:#?}");
}
