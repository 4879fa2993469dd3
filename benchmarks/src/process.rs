//! Processes that are pinned, watched, bounded in time, and ended by their own handle.

use std::fs;
use std::io::{Read, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

/// How often a running client is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// A program with its arguments, to be run on one core.
pub fn pinned(core: usize, program: &Path) -> Command {
    let mut command = Command::new("taskset");
    command.arg("-c").arg(core.to_string()).arg(program);
    // Runtimes with several threads read these: one thread, as for the other clients.
    command.env("GOMAXPROCS", "1").env("TOKIO_WORKER_THREADS", "1");
    keeping_nothing(command)
}

/// A program to be run on any core.
pub fn anywhere(program: &Path) -> Command {
    keeping_nothing(Command::new(program))
}

/// Others keep no runs either.
pub fn keeping_nothing(mut command: Command) -> Command {
    command.env("BRUNT_NO_SAVE", "1");
    command
}

/// A process that ends when this is dropped.
pub struct Process {
    child: Child,
    name: String,
    /// Exit statuses that are no failure.
    answers: &'static [i32],
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The result of a process that ran to its end.
#[derive(Debug, Clone)]
pub struct Finished {
    /// Its standard output.
    pub stdout: String,
    /// CPU time, user and system, of the whole process.
    pub cpu_ticks: u64,
    /// The same to the nanosecond, for programs that use little CPU time.
    pub cpu: Duration,
    /// The time from its start to its end.
    pub wall: Duration,
    /// The most resident memory, in bytes.
    pub peak_bytes: u64,
}

impl Process {
    /// Starts a client, whose end is waited for with [`Process::finish`].
    pub fn client(mut command: Command, name: &str) -> anyhow::Result<Self> {
        command.stderr(Stdio::piped());
        Self::start(command, name)
    }

    /// Starts a server, which runs until this is dropped. Its errors are printed at once.
    pub fn server(mut command: Command, name: &str) -> anyhow::Result<Self> {
        command.stderr(Stdio::inherit());
        Self::start(command, name)
    }

    fn start(mut command: Command, name: &str) -> anyhow::Result<Self> {
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let child = child.with_context(|| format!("cannot start {name}"))?;
        Ok(Self { child, name: name.to_owned(), answers: &[0] })
    }

    /// The same; these exit statuses count as success, too.
    pub fn answering_with(mut self, answers: &'static [i32]) -> Self {
        self.answers = answers;
        self
    }

    /// The standard output of a server.
    pub fn stdout(&mut self) -> anyhow::Result<impl Read + use<>> {
        self.child.stdout.take().with_context(|| format!("{}: its output was taken already", self.name))
    }

    fn proc(&self, file: &str) -> Option<String> {
        fs::read_to_string(format!("/proc/{}/{file}", self.child.id())).ok()
    }

    /// CPU time so far, in clock ticks. It can be read after the process has ended, until it is waited for.
    pub fn cpu_ticks(&self) -> anyhow::Result<u64> {
        self.proc("stat")
            .and_then(|stat| cpu_ticks_in(&stat))
            .with_context(|| format!("{}: cannot read its CPU time", self.name))
    }

    /// CPU time so far of all its threads, including ended ones. `None` once the process was waited for.
    pub fn cpu_time(&self) -> Option<Duration> {
        let pid = nix::unistd::Pid::from_raw(self.child.id().cast_signed());
        let clock = nix::time::clock_getcpuclockid(pid).ok()?;
        nix::time::clock_gettime(clock).ok().map(Duration::from)
    }

    /// Resident memory, in bytes; `None` once the process has ended. A page shared by several processes counts in equal
    /// parts for each.
    pub fn proportional_bytes(&self) -> Option<u64> {
        bytes_in(&self.proc("smaps_rollup")?, "Pss:")
    }

    /// Kills the process at once, like a machine that is switched off.
    pub fn kill(&mut self) -> anyhow::Result<()> {
        self.child.kill().with_context(|| format!("{} cannot be killed", self.name))?;
        self.child.wait()?;
        Ok(())
    }

    /// Resident memory now and at its peak, in bytes; `None` once the process has ended.
    pub fn resident_bytes(&self) -> Option<(u64, u64)> {
        let status = self.proc("status")?;
        Some((bytes_in(&status, "VmRSS:")?, bytes_in(&status, "VmHWM:")?))
    }

    /// Sends the process a signal.
    pub fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let pid = Pid::from_raw(self.child.id().cast_signed()).context("a process without a number")?;
        kill_process(pid, signal).with_context(|| format!("{} cannot be signalled", self.name))
    }

    fn has_ended(&self) -> anyhow::Result<bool> {
        let pid = Pid::from_raw(self.child.id().cast_signed()).context("a process without a number")?;
        // The process is not reaped yet, so that its figures can be read.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        Ok(waitid(WaitId::Pid(pid), options)?.is_some())
    }

    /// The same as [`finish`](Self::finish) for what is over within moments: it is looked at every 0.2 ms.
    pub fn finish_used(self, most: Duration) -> anyhow::Result<Finished> {
        self.finish_by(most, Duration::from_micros(200), |_| {})
    }

    /// Waits until the process has ended by itself, for `most` at most. Calls `look` every 20 ms.
    pub fn finish(self, most: Duration, look: impl FnMut(&Self)) -> anyhow::Result<Finished> {
        self.finish_by(most, LOOK, look)
    }

    fn finish_by(mut self, most: Duration, every: Duration, mut look: impl FnMut(&Self)) -> anyhow::Result<Finished> {
        let began = Instant::now();
        let (out, err) = (drain(self.child.stdout.take()), drain(self.child.stderr.take()));
        let mut peak_bytes = 0;
        while !self.has_ended()? {
            if began.elapsed() > most {
                bail!("{} did not end within {} s", self.name, most.as_secs());
            }
            if let Some((_, peak)) = self.resident_bytes() {
                peak_bytes = peak;
            }
            look(&self);
            thread::sleep(every);
        }
        let wall = began.elapsed();
        let cpu_ticks = self.cpu_ticks()?;
        let cpu = self.cpu_time().with_context(|| format!("{}: cannot read its CPU time", self.name))?;
        let status = self.child.wait()?;
        let (stdout, stderr) = (out.join().unwrap_or_default(), err.join().unwrap_or_default());
        if !status.code().is_some_and(|code| self.answers.contains(&code)) {
            bail!("{} ended with {status}: {}", self.name, stderr.trim());
        }
        Ok(Finished { stdout, cpu_ticks, cpu, wall, peak_bytes })
    }
}

fn drain(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // Output that cannot be read is missing; its parser reports that.
            let _ = pipe.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// User and system time in `/proc/PID/stat` (proc(5), fields 14 and 15; the second may contain anything).
fn cpu_ticks_in(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let (user, system): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    Some(user + system)
}

fn bytes_in(status: &str, field: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// A length in clock ticks as time.
pub fn ticks(ticks: u64) -> Duration {
    Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// Runs a program to its end, and returns its output (both streams).
pub fn output(program: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let output =
        Command::new(program).args(arguments).output().with_context(|| format!("cannot run {}", program.display()))?;
    let mut text = output.stdout;
    text.write_all(&output.stderr)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_found_behind_any_name() {
        let stat = "42 (a) b (c)) S 1 1 1 0 -1 4194560 1 0 0 0 250 125 0 0 20 0 1 0 100 0 0";
        assert_eq!(cpu_ticks_in(stat), Some(375));
    }

    #[test]
    fn memory_is_read_in_bytes() {
        let status = "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t       4 kB\n";
        assert_eq!((bytes_in(status, "VmRSS:"), bytes_in(status, "VmHWM:")), (Some(4096), Some(2 << 20)));
    }

    #[test]
    fn a_finished_process_tells_what_it_used() {
        let mut command = Command::new("sh");
        command.args(["-c", "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo $i"]);
        let finished = Process::client(command, "sh").unwrap().finish(Duration::from_secs(60), |_| {}).unwrap();
        assert_eq!(finished.stdout, "200000\n");
        assert!(finished.cpu_ticks > 0 && finished.peak_bytes > 0, "{finished:?}");
    }

    #[test]
    fn a_process_that_does_not_end_is_ended() {
        let mut command = Command::new("sleep");
        command.arg("60");
        let error = Process::client(command, "sleep").unwrap().finish(Duration::from_millis(50), |_| {}).unwrap_err();
        assert!(error.to_string().contains("did not end"), "{error}");
    }
}
