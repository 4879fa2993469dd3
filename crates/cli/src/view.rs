//! A live view on the terminal: drawn when there is news, when a key is pressed, and when the terminal changes its
//! size.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use brunt_engine::StopHandle;
use brunt_report::live::{Buffer, Chosen, Hands};

use crate::{console, terminal};

/// How long a run goes on before the view takes the terminal: nobody could read that of a shorter one.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often keys and the terminal's size are looked at.
const LOOKS: Duration = Duration::from_millis(100);
/// The pause after preparing, or drawing, as a multiple of its duration: either takes at most 2% of a CPU.
const REST: u32 = 50;

/// Something that can be drawn.
pub trait Picture: Send + 'static {
    /// Prepares the next drawings, where that is worth keeping from one to the next.
    fn prepare(&mut self) {}

    /// A number that changes with the state, so that a change is shown at once.
    fn state(&self) -> u8 {
        0
    }

    /// The picture in this many columns and lines.
    fn draw(&self, width: u16, height: u16, chosen: Chosen) -> Buffer;
}

/// A picture that has the terminal until it is dropped.
pub struct View<P> {
    shared: Arc<Mutex<Shared<P>>>,
    keys: Option<JoinHandle<()>>,
}

struct Shared<P> {
    picture: P,
    chosen: Chosen,
    stop: StopHandle,
    began: Instant,
    /// Whether it has the terminal.
    has_terminal: bool,
    /// Whether a key has asked the run to end; a second one cuts off everything under way.
    has_quit: bool,
    is_over: bool,
    size: (u16, u16),
    /// The state that was drawn last.
    state: u8,
    /// Until when nothing is prepared, and until when nothing is drawn.
    prepares_from: Instant,
    draws_from: Instant,
}

impl<P: Picture> View<P> {
    /// A view of work that `stop` can end.
    pub fn new(picture: P, stop: StopHandle) -> Self {
        let now = Instant::now();
        let shared = Shared {
            picture,
            chosen: Chosen::default(),
            stop,
            began: now,
            has_terminal: false,
            has_quit: false,
            is_over: false,
            size: (0, 0),
            state: 0,
            prepares_from: now,
            draws_from: now,
        };
        let shared = Arc::new(Mutex::new(shared));
        let watched = Arc::clone(&shared);
        let keys = thread::Builder::new().name("view".to_owned()).spawn(move || watch(&watched)).ok();
        Self { shared, keys }
    }

    /// Changes the picture, and draws it.
    pub fn update(&self, change: impl FnOnce(&mut P)) {
        let mut shared = lock(&self.shared);
        change(&mut shared.picture);
        shared.prepare_and_draw();
    }

    /// Draws the picture a last time, and gives the terminal back: a recording of it ends with the whole run, however
    /// long ago it was prepared.
    pub fn end(&mut self) {
        let mut shared = lock(&self.shared);
        shared.is_over = true;
        if shared.has_terminal && !shared.chosen.is_held {
            shared.prepare();
            shared.draw();
        }
        drop(shared);
        if let Some(keys) = self.keys.take() {
            // A thread that panicked has given it back.
            let _ = keys.join();
        }
        terminal::give_back();
    }
}

impl<P> Drop for View<P> {
    fn drop(&mut self) {
        lock(&self.shared).is_over = true;
        terminal::give_back();
    }
}

fn lock<P>(shared: &Mutex<Shared<P>>) -> MutexGuard<'_, Shared<P>> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Looks at keys and the terminal's size until the view is over.
fn watch<P: Picture>(shared: &Mutex<Shared<P>>) {
    loop {
        let has_keys = lock(shared).chosen.hands != Hands::Off;
        let keys = if has_keys {
            terminal::keys(LOOKS)
        } else {
            thread::sleep(LOOKS);
            Vec::new()
        };
        let mut shared = lock(shared);
        if shared.is_over {
            return;
        }
        shared.look(&keys);
    }
}

impl<P: Picture> Shared<P> {
    fn look(&mut self, keys: &[u8]) {
        if !self.has_terminal {
            if self.began.elapsed() >= PATIENCE && terminal::is_free() {
                self.has_terminal = true;
                self.chosen.hands = if terminal::take() { Hands::On } else { Hands::Off };
                self.prepare();
                self.draw();
            }
            return;
        }
        let is_new = self.stop.is_stopped() && self.chosen.hands != Hands::Ending;
        if is_new {
            self.chosen.hands = Hands::Ending;
        }
        let has_changed = keys.iter().fold(is_new, |changed, key| self.press(*key) || changed);
        if has_changed || self.size != console::stderr_size() {
            self.draw();
        }
    }

    /// Carries out a key. Returns whether to draw.
    fn press(&mut self, key: u8) -> bool {
        let chosen = &mut self.chosen;
        match key {
            b'q' | b'Q' if !self.has_quit => {
                self.has_quit = true;
                // The same as Ctrl-C, for every handler.
                let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::INT);
                return false;
            }
            b' ' => {
                chosen.is_held = !chosen.is_held;
                if !chosen.is_held {
                    self.prepare();
                }
            }
            b'\t' => chosen.is_last_minute = !chosen.is_last_minute,
            b'?' => chosen.is_help = !chosen.is_help,
            _ => return false,
        }
        true
    }

    /// Prepares and draws, unless that was done a moment ago and the state is the same.
    fn prepare_and_draw(&mut self) {
        if !self.has_terminal || self.chosen.is_held {
            return;
        }
        let is_new = self.picture.state() != self.state;
        let begun = Instant::now();
        if is_new || begun >= self.prepares_from {
            self.prepare();
        }
        let begun = Instant::now();
        if is_new || begun >= self.draws_from {
            self.draw();
            self.draws_from = begun + begun.elapsed() * REST;
        }
    }

    fn prepare(&mut self) {
        let begun = Instant::now();
        self.picture.prepare();
        self.prepares_from = begun + begun.elapsed() * REST;
        self.state = self.picture.state();
    }

    fn draw(&mut self) {
        self.size = console::stderr_size();
        let (width, height) = self.size;
        terminal::show(self.picture.draw(width, height, self.chosen));
    }
}
