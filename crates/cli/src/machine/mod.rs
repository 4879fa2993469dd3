//! This machine as a source of load: what it is, its limits, and the other programs on it.
//!
//! [`Facts`] are read once, from files below a root, so that tests can plant them. [`checks`] compares them with a run,
//! without reading anything.

mod busy;
pub mod checks;
mod reached;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use brunt_judge::summary::Summary;
use brunt_plan::plan::Plan;
use brunt_record::machine::Machine;
use brunt_record::recording::Recording;
use rustix::process::{Resource, getrlimit};
use rustix::system::uname;

pub use busy::Processors;
pub use reached::Reached;

/// How long other programs are watched, in milliseconds.
const WATCHED_MS: u64 = 500;
/// Readings of the clock that are timed.
const READINGS: u32 = 10_000;

/// Facts about a machine. Unknown ones are `None`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    /// How many descriptors a process may have: the hard limit.
    pub descriptors: Option<u64>,
    /// The number of local ports of one address.
    pub ports: Option<u64>,
    /// Earlier connections whose ports are still taken.
    pub time_wait: Option<u64>,
    /// `net.ipv4.tcp_tw_reuse`: 0 never, 1 everywhere, 2 on loopback.
    pub reuses_ports: Option<u64>,
    /// CPUs that this process may use at the same time: its affinity.
    pub usable: usize,
    /// CPU time that its cgroup may use, in CPUs; `None` without a limit.
    pub quota: Option<f64>,
    /// The kernel's clock source.
    pub clock: Option<String>,
    /// The duration of a reading of the clock, in nanoseconds.
    pub reading_ns: f64,
    /// How the speed of CPUs is chosen, each way once.
    pub governors: BTreeSet<String>,
    /// The driver that sets that speed.
    pub speed_driver: Option<String>,
    /// The slack of this process's timers, in nanoseconds.
    pub timer_slack_ns: Option<u64>,
    /// The system's congestion control.
    pub congestion: Option<String>,
    /// Connections tracked by the firewall, and its limit.
    pub tracked: Option<(u64, u64)>,
    /// Whether the kernel tells when the bytes of an answer arrived.
    pub has_arrival_times: bool,
    /// The use of CPUs while they were watched.
    pub processors: Processors,
}

impl Facts {
    /// Reads the facts, those in files below `root`. It takes half a second, in which other programs are watched.
    pub fn read(root: &Path) -> Self {
        let number = |path: &str| text(root, path)?.parse().ok();
        let before = busy::Sample::read(root);
        std::thread::sleep(Duration::from_millis(WATCHED_MS));
        let after = busy::Sample::read(root);
        Self {
            descriptors: getrlimit(Resource::Nofile).maximum,
            ports: ports(root),
            time_wait: time_wait(root),
            reuses_ports: number("proc/sys/net/ipv4/tcp_tw_reuse"),
            usable: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            quota: quota(root),
            clock: text(root, "sys/devices/system/clocksource/clocksource0/current_clocksource"),
            reading_ns: reading_ns(),
            governors: of_processors(root, "scaling_governor"),
            speed_driver: of_processors(root, "scaling_driver").into_iter().next(),
            timer_slack_ns: number("proc/self/timerslack_ns"),
            congestion: text(root, "proc/sys/net/ipv4/tcp_congestion_control"),
            tracked: number("proc/sys/net/netfilter/nf_conntrack_count")
                .zip(number("proc/sys/net/netfilter/nf_conntrack_max")),
            has_arrival_times: brunt_engine::has_arrival_times(),
            processors: after.since(&before),
        }
    }
}

/// The summary of a run that this machine has just made, or commanded.
pub fn summary_of(plan: Plan, run: Recording) -> Summary {
    Summary::new(plan, Recording { machine: Some(this(Path::new("/"))), ..run })
}

/// This machine, by files below `root` and the kernel.
fn this(root: &Path) -> Machine {
    let name = uname();
    let words = |name: &std::ffi::CStr| name.to_string_lossy().into_owned();
    Machine {
        hostname: words(name.nodename()),
        cpu: cpu(root).unwrap_or_else(|| words(name.machine())),
        cores: std::thread::available_parallelism().map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(u32::MAX)),
        kernel: format!("{} {}", words(name.sysname()), words(name.release())),
    }
}

/// The model of the first CPU, where the kernel knows it.
fn cpu(root: &Path) -> Option<String> {
    let lines = text(root, "proc/cpuinfo")?;
    let models = lines.lines().filter_map(|line| line.split_once(':')).filter(|(key, _)| key.trim() == "model name");
    let model = models.map(|(_, model)| model.split_whitespace().collect::<Vec<_>>().join(" ")).next()?;
    (!model.is_empty() && model != "unknown").then_some(model)
}

/// The content of a file, without its line end.
fn text(root: &Path, path: &str) -> Option<String> {
    let text = fs::read_to_string(root.join(path)).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn ports(root: &Path) -> Option<u64> {
    brunt_engine::ports_in(&text(root, "proc/sys/net/ipv4/ip_local_port_range")?).map(u64::from)
}

/// `TCP: inuse 5 orphan 0 tw 12 alloc 6 mem 1`.
fn time_wait(root: &Path) -> Option<u64> {
    let sockets = text(root, "proc/net/sockstat")?;
    let mut words = sockets.lines().find(|line| line.starts_with("TCP:"))?.split_whitespace();
    words.find(|word| *word == "tw")?;
    words.next()?.parse().ok()
}

/// The least quota on the path from this process's cgroup up to the root (Linux, admin-guide/cgroup-v2 and
/// scheduler/sched-bwc).
fn quota(root: &Path) -> Option<f64> {
    let groups = text(root, "proc/self/cgroup")?;
    let mut least: Option<f64> = None;
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(group)) = (fields.next(), fields.next(), fields.next()) else { continue };
        let base = if controllers.is_empty() {
            root.join("sys/fs/cgroup")
        } else if controllers.split(',').any(|controller| controller == "cpu") {
            root.join("sys/fs/cgroup/cpu")
        } else {
            continue;
        };
        // A container sees its own group at the root.
        let group = base.join(group.trim_start_matches('/'));
        let above: Vec<PathBuf> =
            group.ancestors().take_while(|path| path.starts_with(&base)).map(PathBuf::from).collect();
        for quota in above.iter().filter_map(|path| quota_in(path)) {
            least = Some(least.map_or(quota, |least| least.min(quota)));
        }
    }
    least
}

/// The quota of one group, in CPUs.
fn quota_in(group: &Path) -> Option<f64> {
    let (quota, period) = match text(group, "cpu.max") {
        Some(both) => {
            let mut words = both.split_whitespace().map(str::parse::<f64>);
            (words.next()?.ok()?, words.next()?.ok()?)
        }
        None => (text(group, "cpu.cfs_quota_us")?.parse().ok()?, text(group, "cpu.cfs_period_us")?.parse().ok()?),
    };
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

/// The CPUs' own account of how their speed is chosen.
fn of_processors(root: &Path, file: &str) -> BTreeSet<String> {
    let Ok(entries) = fs::read_dir(root.join("sys/devices/system/cpu")) else { return BTreeSet::new() };
    entries.flatten().filter_map(|entry| text(&entry.path(), &format!("cpufreq/{file}"))).collect()
}

fn reading_ns() -> f64 {
    let begin = Instant::now();
    for _ in 0..READINGS {
        std::hint::black_box(Instant::now());
    }
    begin.elapsed().as_nanos() as f64 / f64::from(READINGS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planted(files: &[(&str, &str)]) -> (tempdir::Folder, Facts) {
        let folder = tempdir::Folder::new();
        for (path, content) in files {
            folder.write(path, content);
        }
        let facts = Facts {
            ports: ports(folder.path()),
            time_wait: time_wait(folder.path()),
            quota: quota(folder.path()),
            governors: of_processors(folder.path(), "scaling_governor"),
            ..Facts::default()
        };
        (folder, facts)
    }

    #[test]
    fn a_machine_is_named_by_its_cpu_where_the_kernel_knows_it() {
        let folder = tempdir::Folder::new();
        assert!(!this(folder.path()).cpu.is_empty(), "the architecture stands for the model");
        folder.write("proc/cpuinfo", "processor\t: 0\nmodel name\t: Some  CPU @ 2.00GHz\n\nmodel name\t: other\n");
        let machine = this(folder.path());
        assert_eq!((machine.cpu.as_str(), machine.cores > 0), ("Some CPU @ 2.00GHz", true));
        assert!(machine.kernel.contains(' ') && !machine.hostname.is_empty(), "{machine:?}");
        folder.write("proc/cpuinfo", "model name\t: unknown\n");
        assert_ne!(this(folder.path()).cpu, "unknown");
    }

    /// Folders for planted files.
    mod tempdir {
        use std::path::{Path, PathBuf};
        use std::sync::atomic::{AtomicU32, Ordering};

        static COUNT: AtomicU32 = AtomicU32::new(0);

        pub struct Folder(PathBuf);

        impl Folder {
            pub fn new() -> Self {
                let number = COUNT.fetch_add(1, Ordering::Relaxed);
                let path = std::env::temp_dir().join(format!("brunt-machine-{}-{number}", std::process::id()));
                std::fs::create_dir_all(&path).unwrap();
                Self(path)
            }

            pub fn path(&self) -> &Path {
                &self.0
            }

            pub fn write(&self, path: &str, content: &str) {
                let path = self.0.join(path);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, content).unwrap();
            }
        }

        impl Drop for Folder {
            fn drop(&mut self) {
                let _ = std::fs::remove_dir_all(&self.0);
            }
        }
    }

    #[test]
    fn a_machine_that_says_nothing_is_not_known() {
        let (_folder, facts) = planted(&[]);
        assert_eq!((facts.ports, facts.time_wait, facts.quota), (None, None, None));
        assert!(facts.governors.is_empty());
    }

    #[test]
    fn files_are_read_as_kernels_write_them() {
        let (_folder, facts) = planted(&[
            ("proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n"),
            ("proc/net/sockstat", "sockets: used 9\nTCP: inuse 5 orphan 0 tw 12 alloc 6 mem 1\nUDP: inuse 0 mem 0\n"),
            ("proc/self/cgroup", "0::/user/job\n"),
            ("sys/fs/cgroup/user/job/cpu.max", "max 100000\n"),
            ("sys/fs/cgroup/user/cpu.max", "150000 100000\n"),
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n"),
            ("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n"),
        ]);
        assert_eq!((facts.ports, facts.time_wait, facts.quota), (Some(28_232), Some(12), Some(1.5)));
        assert_eq!(facts.governors.into_iter().collect::<Vec<_>>(), ["powersave"]);
    }

    #[test]
    fn quotas_of_the_first_version_of_groups_are_found() {
        let (_folder, facts) = planted(&[
            ("proc/self/cgroup", "8:pids:/\n2:cpu,cpuacct:/docker/abc\n0::/\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
            ("sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us", "-1\n"),
            ("sys/fs/cgroup/cpu/docker/abc/cpu.cfs_period_us", "100000\n"),
        ]);
        assert_eq!(facts.quota, Some(0.5));
    }

    #[test]
    fn garbage_is_not_known() {
        let (_folder, facts) = planted(&[
            ("proc/sys/net/ipv4/ip_local_port_range", "9 3\n"),
            ("proc/net/sockstat", "TCP: tw\n"),
            ("proc/self/cgroup", "::::\n0\n0::/a\n"),
            ("sys/fs/cgroup/a/cpu.max", "0 0\n"),
        ]);
        assert_eq!((facts.ports, facts.time_wait, facts.quota), (None, None, None));
    }
}
