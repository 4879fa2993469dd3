//! The terminal on standard error, taken over for a live view and given back: at the end, at an error, a signal or a panic.
//!
//! The view has the alternate screen (xterm's private mode 1049), so that the scrollback keeps nothing of it. Input
//! comes key by key and is not echoed; Ctrl-C remains a signal. Output to standard output or standard error meanwhile
//! would disturb the view: it is held back, and shown when the terminal is given back.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read as _, Seek as _, Write as _};
use std::os::fd::OwnedFd;
use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;

use brunt_report::live::{Buffer, changes};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};

use crate::console;

/// Enters the alternate screen, hides the cursor, clears.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[2J";
/// Resets colours, shows the cursor, leaves the alternate screen.
const LEAVE: &str = "\x1b[0m\x1b[?25h\x1b[?1049l";
/// The first byte of keys that send several bytes.
const ESCAPE: u8 = 0x1b;
/// Limit on the standard output held back.
const MOST_OUTPUT: u64 = 16 << 20;

/// The state to restore; `None` while no view has the terminal.
static TAKEN: Mutex<Option<Taken>> = Mutex::new(None);

/// A terminal that a view has.
struct Taken {
    /// Its settings; `None` where it has none.
    settings: Option<Termios>,
    /// Standard output, and the file that holds its content.
    output: Option<(OwnedFd, File)>,
    /// The content of the screen.
    shown: Buffer,
}

/// Whether a view may take the terminal: there is one, and this process is not in its background.
pub fn is_free() -> bool {
    console::stderr_redraws() && is_foreground()
}

/// Whether this process is in the foreground. A terminal that controls no process belongs to whoever has it.
fn is_foreground() -> bool {
    rustix::termios::tcgetpgrp(io::stderr()).map_or(true, |group| group == rustix::process::getpgrp())
}

/// Takes the terminal. Returns whether keys can be read from it.
pub fn take() -> bool {
    give_back_at_panics();
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    let settings = tcgetattr(io::stderr()).ok();
    let has_keys = settings
        .as_ref()
        .is_some_and(|settings| tcsetattr(io::stderr(), OptionalActions::Now, &by_key(settings)).is_ok());
    *taken = Some(Taken { settings, output: held_output(), shown: Buffer::default() });
    console::hold_notes();
    write(ENTER);
    has_keys
}

/// Settings in which keys come as they are pressed. Ctrl-C stays a signal; suspending is off, as it would leave the
/// view behind.
fn by_key(settings: &Termios) -> Termios {
    /// Stands for no character (POSIX: `_POSIX_VDISABLE`).
    const NONE: u8 = 0;
    let mut settings = settings.clone();
    settings.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
    settings.special_codes[SpecialCodeIndex::VSUSP] = NONE;
    settings.special_codes[SpecialCodeIndex::VQUIT] = NONE;
    settings.special_codes[SpecialCodeIndex::VMIN] = 1;
    settings.special_codes[SpecialCodeIndex::VTIME] = 0;
    settings
}

/// Redirects standard output into a file while it is a terminal: scripts print there. `None` where that is impossible.
fn held_output() -> Option<(OwnedFd, File)> {
    if !io::stdout().is_terminal() {
        return None;
    }
    let path = std::env::temp_dir().join(format!("brunt-{}-held", std::process::id()));
    let file = File::options().read(true).write(true).create_new(true).open(&path).ok()?;
    let _ = std::fs::remove_file(&path);
    let before = rustix::io::fcntl_dupfd_cloexec(io::stdout(), 0).ok()?;
    rustix::stdio::dup2_stdout(&file).ok()?;
    Some((before, file))
}

/// Gives the terminal back, if a view has it, and shows the output held back.
pub fn give_back() {
    let taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(taken) = taken {
        taken.give_back();
    }
}

impl Taken {
    fn give_back(self) {
        write(LEAVE);
        if let Some(settings) = &self.settings {
            let _ = tcsetattr(io::stderr(), OptionalActions::Now, settings);
        }
        if let Some((before, mut file)) = self.output {
            let _ = io::stdout().flush();
            let _ = rustix::stdio::dup2_stdout(&before);
            let mut held = Vec::new();
            if file.rewind().and_then(|()| file.take(MOST_OUTPUT).read_to_end(&mut held)).is_ok() {
                drop(console::print(console::printable(&String::from_utf8_lossy(&held)).as_bytes()));
            }
        }
        console::release_notes();
    }
}

/// A panic has to be readable: the terminal is given back before its message.
fn give_back_at_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            // Whoever panics may hold the lock.
            match TAKEN.try_lock() {
                Ok(mut taken) => {
                    if let Some(taken) = taken.take() {
                        taken.give_back();
                    }
                }
                Err(std::sync::TryLockError::Poisoned(poisoned)) => {
                    if let Some(taken) = poisoned.into_inner().take() {
                        taken.give_back();
                    }
                }
                Err(std::sync::TryLockError::WouldBlock) => write(LEAVE),
            }
            before(panic);
        }));
    });
}

/// Shows `next`, if a view has the terminal and is in its foreground: writes only the differences.
pub fn show(next: Buffer) {
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(taken) = taken.as_mut().filter(|_| is_foreground()) {
        write(&changes(&taken.shown, &next));
        taken.shown = next;
    }
}

/// The keys pressed within this time, as their bytes; those that begin with an escape are left out.
pub fn keys(within: Duration) -> Vec<u8> {
    let wait = Timespec { tv_sec: within.as_secs().cast_signed(), tv_nsec: within.subsec_nanos().into() };
    let stderr = io::stderr();
    let mut ready = [PollFd::new(&stderr, PollFlags::IN)];
    let n = poll(&mut ready, Some(&wait)).unwrap_or(0);
    let is_ready = ready.iter().any(|ready| ready.revents().contains(PollFlags::IN));
    let mut bytes = [0; 64];
    // Whoever reads in the background is stopped by the kernel.
    let read = if is_ready && is_foreground() { rustix::io::read(&stderr, &mut bytes).unwrap_or(0) } else { 0 };
    if n > 0 && read == 0 {
        // A terminal that is gone is always ready, and has no input.
        std::thread::sleep(within);
    }
    bytes.iter().take(read).copied().take_while(|byte| *byte != ESCAPE).collect()
}

fn write(text: &str) {
    let mut err = io::stderr().lock();
    let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    use super::*;

    /// This test runs itself in a process whose standard error is a terminal.
    #[test]
    fn a_panic_gives_the_terminal_back_before_its_message() {
        const NAME: &str = "terminal::tests::a_panic_gives_the_terminal_back_before_its_message";
        const CHILD: &str = "BRUNT_TEST_PANICS";
        if std::env::var_os(CHILD).is_some() {
            assert!(take(), "keys can be read");
            show(Buffer::with_lines(["drawn"]));
            panic!("as it was meant to");
        }
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let terminal = File::options().read(true).write(true).open(name).unwrap();
        let before = tcgetattr(&master).unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", NAME, "--nocapture"]).env(CHILD, "1").env("TERM", "xterm");
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(terminal).spawn().unwrap();
        drop(command);
        let mut drawn = Vec::new();
        // The end of a terminal is an error.
        let _ = File::from(master.try_clone().unwrap()).read_to_end(&mut drawn);
        assert!(!child.wait().unwrap().success());
        let drawn = String::from_utf8_lossy(&drawn).into_owned();
        let (view, after) = drawn.split_once(LEAVE).unwrap_or_else(|| panic!("{drawn:?}"));
        assert!(view.contains(ENTER) && view.contains("drawn") && !view.contains("meant"), "{drawn:?}");
        assert!(after.contains("as it was meant to"), "{drawn:?}");
        assert_eq!(tcgetattr(&master).unwrap().local_modes, before.local_modes);
    }
}
