//! CPU, memory and descriptors of a process of this machine, as Linux tells in `/proc` (proc(5)).

use std::fs;
use std::time::{Duration, Instant};

use super::Value;

/// A process, with its use at the last reading.
#[derive(Debug)]
pub struct Process {
    pid: u32,
    ticks_per_s: f64,
    page_bytes: f64,
    /// Its start, in ticks after the system's: another process may get its id.
    began: Option<u64>,
    before: Option<(Instant, u64)>,
}

/// The fields of `/proc/PID/stat`.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    /// CPU time of all its threads, in ticks.
    cpu_ticks: u64,
    began: u64,
    resident_pages: u64,
    is_dead: bool,
}

/// Values of its figures, in the order of `Watch::figures`: `cpu`, `memory`, `descriptors`. The first time there is no
/// CPU value, as it is a difference of two readings.
pub type Values = [Option<Value>; 3];

impl Process {
    pub fn new(pid: u32) -> Self {
        Self {
            pid,
            ticks_per_s: rustix::param::clock_ticks_per_second() as f64,
            page_bytes: rustix::param::page_size() as f64,
            began: None,
            before: None,
        }
    }

    /// Its use now.
    pub fn look(&mut self, now: Instant) -> Values {
        let pid = self.pid;
        // A name is cut at 15 bytes, also in the midst of a character.
        let stat = match fs::read(format!("/proc/{pid}/stat")) {
            Ok(text) => {
                stat(&String::from_utf8_lossy(&text)).ok_or_else(|| format!("cannot read what /proc/{pid}/stat says"))
            }
            Err(_) => Err(format!("there is no process {pid}")),
        };
        let stat = match stat {
            Ok(stat) if self.began.is_some_and(|began| began != stat.began) => {
                Err(format!("process {pid} has ended, and another has its number"))
            }
            Ok(Stat { is_dead: true, .. }) => Err(format!("process {pid} has ended")),
            other => other,
        };
        let stat = match stat {
            Ok(stat) => stat,
            Err(problem) => return [const { None }; 3].map(|_: Option<Value>| Some(Err(problem.clone()))),
        };
        self.began = Some(stat.began);
        let before = self.before.replace((now, stat.cpu_ticks));
        let cpu = before.and_then(|(before, ticks)| {
            let elapsed = now.saturating_duration_since(before);
            let used = stat.cpu_ticks.saturating_sub(ticks) as f64 / self.ticks_per_s;
            (elapsed > Duration::ZERO).then(|| Ok(used / elapsed.as_secs_f64()))
        });
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd"))
            .map(|entries| entries.count() as f64)
            .map_err(|error| format!("cannot see its descriptors: {error}"));
        [cpu, Some(Ok(stat.resident_pages as f64 * self.page_bytes)), Some(descriptors)]
    }
}

fn stat(text: &str) -> Option<Stat> {
    // The name is in parentheses, and may have some in it.
    let (_, rest) = text.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    // The first of these fields is the third of all.
    let number = |place: usize| fields.get(place - 3)?.parse::<u64>().ok();
    Some(Stat {
        cpu_ticks: number(14)? + number(15)?,
        began: number(22)?,
        resident_pages: number(24)?,
        is_dead: matches!(fields.first(), Some(&("Z" | "X"))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_a_process_is_read_whatever_its_name() {
        let line = "7 (a) R (b) ) S 1 7 7 0 -1 4194560 1 2 3 4 250 50 0 0 20 0 3 0 9999 123456 42 18446744073709551615";
        let expected = Stat { cpu_ticks: 300, began: 9999, resident_pages: 42, is_dead: false };
        assert_eq!(stat(line), Some(expected));
        assert!(stat(&line.replace(") S ", ") Z ")).unwrap().is_dead);
        for cut in 0..line.len() - 22 {
            let _ = stat(&line[..cut]);
        }
        assert_eq!(stat(""), None);
        assert_eq!(stat("7 (a) S 1"), None);
    }

    #[test]
    fn this_process_uses_memory_and_descriptors() {
        let mut own = Process::new(std::process::id());
        let now = Instant::now();
        let [cpu, memory, descriptors] = own.look(now);
        assert_eq!(cpu, None, "nobody knows how much it has used since");
        assert!(memory.unwrap().unwrap() > 100_000.0 && descriptors.unwrap().unwrap() >= 3.0);
        let [cpu, ..] = own.look(now + Duration::from_secs(1));
        assert!(cpu.unwrap().unwrap() >= 0.0);
        // Another one with its number is not it.
        own.began = Some(1);
        let [cpu, memory, _] = own.look(now + Duration::from_secs(2));
        assert!(cpu.unwrap().unwrap_err().contains("another has its number") && memory.unwrap().is_err());
    }

    /// The system keeps 15 bytes of a name.
    #[test]
    fn a_process_may_have_a_name_that_is_no_text() {
        let directory = std::env::temp_dir().join(format!("brunt-process-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let program = directory.join("fourteen-bytes\u{fc}");
        std::os::unix::fs::symlink("/bin/sleep", &program).unwrap();
        let mut child = std::process::Command::new(&program).arg("60").spawn().unwrap();
        // A process that has left its parent's memory gets its name a moment later.
        let own = fs::read("/proc/thread-self/comm").unwrap();
        let name = std::iter::repeat_with(|| fs::read(format!("/proc/{}/comm", child.id())).unwrap())
            .find(|name| *name != own)
            .unwrap();
        let [_, memory, _] = Process::new(child.id()).look(Instant::now());
        child.kill().unwrap();
        child.wait().unwrap();
        fs::remove_dir_all(&directory).unwrap();
        assert!(String::from_utf8(name).is_err(), "the name is cut in its last character");
        assert!(memory.unwrap().is_ok());
    }

    #[test]
    fn a_process_that_is_not_there_has_no_values() {
        // Numbers are less than this (proc(5), pid_max).
        let values = Process::new(4_194_305).look(Instant::now());
        assert!(values.into_iter().all(|value| value == Some(Err("there is no process 4194305".to_owned()))));
    }
}
