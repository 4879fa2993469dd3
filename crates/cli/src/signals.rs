//! Ctrl-C, SIGTERM, and a terminal that goes away.

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};
use brunt_engine::StopHandle;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::terminal;

/// The exit status of a process that has no time left: 128 and the number of SIGINT.
const KILLED: i32 = 130;
/// How long writing a result may take after the second signal.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// The number of the signal that ended the work; 0 if none did.
static FIRST: AtomicI32 = AtomicI32::new(0);

/// The number of the signal that ended the work early, if one did.
pub fn first() -> Option<u8> {
    u8::try_from(FIRST.load(Ordering::Relaxed)).ok().filter(|signal| *signal > 0)
}

/// Ignores a signal that came when there was nothing left to end.
pub fn forget() {
    FIRST.store(0, Ordering::Relaxed);
}

fn signals(hangup_ends: bool) -> Result<Signals> {
    let mut watched = vec![SIGINT, SIGTERM];
    // Whoever runs it by nohup wants it to go on without its terminal.
    if hangup_ends && !ignores_hangup(&std::fs::read_to_string("/proc/self/status").unwrap_or_default()) {
        watched.push(SIGHUP);
    }
    Signals::new(watched).context("cannot watch for Ctrl-C, SIGTERM and SIGHUP")
}

/// Whether SIGHUP is ignored, by the text of `/proc/self/status`.
fn ignores_hangup(status: &str) -> bool {
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 1 == 1)
}

/// Ends the run early at the first signal. At the second it ends at once, with its result so far; at the third, or when
/// that takes too long, this process ends.
pub fn stop_at_first(stop: StopHandle) -> Result<()> {
    let mut signals = signals(true)?;
    thread::spawn(move || {
        let mut coming = signals.forever();
        FIRST.store(coming.next().unwrap_or(0), Ordering::Relaxed);
        stop.stop();
        coming.next();
        stop.leave();
        thread::spawn(|| {
            thread::sleep(LAST_WORDS);
            exit();
        });
        coming.next();
        exit();
    });
    Ok(())
}

/// Ends the process, and restores the terminal.
fn exit() {
    terminal::give_back();
    signal_hook::low_level::exit(KILLED);
}

/// Waits for a signal.
pub struct Waiter(Receiver<()>);

impl Waiter {
    /// Signals from now on are waited for, and no longer end the process.
    pub fn new() -> Result<Self> {
        Ok(Self::of(signals(true)?))
    }

    /// The same, for a server that takes SIGHUP for another order.
    pub fn without_hangup() -> Result<Self> {
        Ok(Self::of(signals(false)?))
    }

    fn of(mut signals: Signals) -> Self {
        let (send, receive) = channel();
        thread::spawn(move || {
            for _ in signals.forever() {
                if send.send(()).is_err() {
                    break;
                }
            }
        });
        Self(receive)
    }

    /// Returns at a signal, or after this long if it is given.
    pub fn wait(&self, at_most: Option<Duration>) {
        match at_most {
            Some(time) => drop(self.0.recv_timeout(time)),
            None => drop(self.0.recv()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hangup_that_is_ignored_stays_so() {
        assert!(ignores_hangup("Name:\tbrunt\nSigIgn:\t0000000000001001\n"));
        assert!(!ignores_hangup("SigBlk:\t0000000000000001\nSigIgn:\t0000000000001000\n"));
        assert!(!ignores_hangup(""));
    }
}
