//! The live view: on a terminal only, over all of it, and gone before the result.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use brunt_testbed::server::{Server, ServerConfig};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Termios, Winsize, tcgetattr, tcsetwinsize};

use crate::program::{Directory, brunt, nobody, until};
use crate::runs::target;

/// How a view takes the terminal and gives it back.
const TAKEN: &str = "\x1b[?1049h";
const GIVEN_BACK: &str = "\x1b[0m\x1b[?25h\x1b[?1049l";

/// The program with a terminal as its standard error. It ends with its test, however that ends.
struct OnTerminal {
    child: Child,
    master: OwnedFd,
    drawn: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
    /// How the terminal was set.
    before: Termios,
}

impl OnTerminal {
    /// Where `is_whole`, standard output is that terminal, too.
    fn start(args: &[&str], term: &str, (ws_col, ws_row): (u16, u16), is_whole: bool) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let terminal = File::options().read(true).write(true).open(name).unwrap();
        tcsetwinsize(&master, Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let before = tcgetattr(&master).unwrap();
        let mut command = brunt(args);
        let stdout = if is_whole { terminal.try_clone().unwrap().into() } else { Stdio::piped() };
        for name in ["LC_ALL", "LC_CTYPE", "LANG"] {
            command.env_remove(name);
        }
        let child = command.env("TERM", term).stdout(stdout).stderr(terminal).spawn().unwrap();
        // Else the terminal would stay open in this process, and reading it never end.
        drop(command);
        let drawn = Arc::new(Mutex::new(Vec::new()));
        let (mut from, to) = (File::from(master.try_clone().unwrap()), Arc::clone(&drawn));
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The end of a terminal is an error.
            while let Ok(n @ 1..) = from.read(&mut bytes) {
                to.lock().unwrap().extend_from_slice(&bytes[..n]);
            }
        });
        Self { child, master, drawn, reader: Some(reader), before }
    }

    fn drawn(&self) -> String {
        String::from_utf8_lossy(&self.drawn.lock().unwrap()).into_owned()
    }

    fn until_drawn(&self, text: &str) {
        until(&format!("'{text}' is drawn"), || self.drawn().contains(text));
    }

    fn press(&self, keys: &str) {
        File::from(self.master.try_clone().unwrap()).write_all(keys.as_bytes()).unwrap();
    }

    fn resize(&self, ws_col: u16, ws_row: u16) {
        tcsetwinsize(&self.master, Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    }

    /// Its exit status, what it printed and what it drew; the terminal must be set as before.
    fn wait(mut self) -> (Option<i32>, String, String) {
        let mut printed = String::new();
        if let Some(mut stdout) = self.child.stdout.take() {
            stdout.read_to_string(&mut printed).unwrap();
        }
        let status = self.child.wait().unwrap().code();
        let after = tcgetattr(&self.master).unwrap();
        assert_eq!(after.local_modes, self.before.local_modes);
        self.reader.take().unwrap().join().unwrap();
        (status, printed, self.drawn())
    }
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the program prints, and what it draws on a terminal as standard error.
fn on_a_terminal(args: &[&str], term: &str) -> (String, String) {
    let (status, printed, drawn) = OnTerminal::start(args, term, (80, 24), false).wait();
    assert_eq!(status, Some(0), "{drawn}");
    (printed, drawn)
}

/// What stands on the terminal in the end, of a view drawn from the last time that it was cleared on, by rows.
fn shown(drawn: &str) -> Vec<String> {
    let view = drawn.rsplit("\x1b[2J").next().unwrap();
    let mut rows: Vec<Vec<char>> = Vec::new();
    let (mut x, mut y) = (0, 0);
    let mut parts = view.split('\x1b');
    parts.next();
    for part in parts {
        let end = part.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(0);
        let (code, text) = part.split_at(end + 1);
        if let Some(place) = code.strip_prefix('[').and_then(|code| code.strip_suffix('H')) {
            let (row, column) = place.split_once(';').unwrap();
            (y, x) = (row.parse::<usize>().unwrap() - 1, column.parse::<usize>().unwrap() - 1);
        } else if code.contains("?1049l") {
            break;
        }
        for c in text.chars() {
            if rows.len() <= y {
                rows.resize(y + 1, Vec::new());
            }
            if rows[y].len() <= x {
                rows[y].resize(x + 1, ' ');
            }
            rows[y][x] = c;
            x += 1;
        }
    }
    rows.into_iter().map(|row| row.into_iter().collect::<String>().trim_end().to_owned()).collect()
}

#[test]
fn a_run_is_drawn_over_the_terminal_which_is_then_given_back() {
    let (_server, url) = target(ServerConfig::default());
    let (printed, drawn) = on_a_terminal(&["-d", "1600ms", "-r", "100", &url], "xterm");
    assert!(drawn.starts_with(TAKEN) && drawn.ends_with(GIVEN_BACK), "{drawn:?}");
    let rows = shown(&drawn);
    assert!(rows[0].starts_with(&format!("GET {url}   100/s for 1600ms")), "{rows:#?}");
    assert!(rows.iter().any(|row| row.contains("answered a second")), "{rows:#?}");
    assert!(rows.last().unwrap().starts_with("q stop and report"), "{rows:#?}");
    assert!(drawn.contains("\x1b[36m"), "a terminal has colours: {drawn:?}");
    assert!(!printed.contains('\x1b') && printed.contains("Outcomes"), "a pipe has none: {printed}");
    let (_, drawn) = on_a_terminal(&["-d", "1600ms", "-r", "100", "--no-color", "--ascii", &url], "xterm");
    assert!(shown(&drawn).last().unwrap().starts_with("q stop"), "{drawn:?}");
    assert!(!drawn.contains("\x1b[36m") && drawn.is_ascii(), "{drawn:?}");
}

#[test]
fn the_first_run_says_once_what_next() {
    let (_server, url) = target(ServerConfig::default());
    let dir = Directory::new();
    let store = dir.path("runs.db");
    let closed = ["-n", "50", "-c", "1", "--store", &store, &url];
    let (_, first) = on_a_terminal(&closed, "xterm");
    for line in ["the same with -r ", "brunt show 1 -o run.html", "brunt help first"] {
        assert!(first.contains(line), "{first}");
    }
    let (_, second) = on_a_terminal(&closed, "xterm");
    assert!(second.contains("brunt show 2") && !second.contains("What next"), "{second}");
    let other = dir.path("other.db");
    let (_, open) = on_a_terminal(&["-n", "50", "-r", "500", "--store", &other, &url], "xterm");
    assert!(open.contains("brunt find --threshold 'p99<50ms'"), "{open}");
    // A run that nobody answered needs another advice.
    let (_nobody, nowhere) = nobody();
    let silent = dir.path("silent.db");
    let args = ["-n", "5", "-c", "1", "--store", &silent, &nowhere];
    let (_, _, drawn) = OnTerminal::start(&args, "xterm", (80, 24), false).wait();
    assert!(!drawn.contains("What next"), "{drawn}");
}

#[test]
fn nothing_is_drawn_where_it_is_not_wanted_or_cannot_be() {
    let (_server, url) = target(ServerConfig::default());
    for (args, term) in
        [(&["-d", "1200ms"][..], "dumb"), (&["-d", "1200ms", "--quiet"], "xterm"), (&["-n", "10"], "xterm")]
    {
        assert_eq!(on_a_terminal(&[args, &["-r", "100", &url]].concat(), term).1, "", "{args:?}");
    }
    let (_, noted) = on_a_terminal(&["-d", "1200ms", "-r", "100", "-v", &url], "xterm");
    assert!(!noted.contains(TAKEN) && noted.contains("0:01.0  steady"), "{noted:?}");
    let (_, noted) = on_a_terminal(&["-d", "1200ms", "-r", "100", "--plain", &url], "xterm");
    assert!(!noted.contains('\x1b') && noted.contains("0:00.0  start") && noted.contains("  end  "), "{noted:?}");
}

/// The terminal is measured anew for each drawing: what is drawn fills the larger one and stays within the smaller one.
#[test]
fn a_terminal_may_change_its_size_while_a_run_goes_on() {
    let (_server, url) = target(ServerConfig::default());
    let running = OnTerminal::start(&["-d", "1h", "-r", "100", &url], "xterm", (80, 24), false);
    running.until_drawn("answered a second");
    for (width, height, keys_row) in [(200, 50, "\x1b[50;1H"), (60, 10, "\x1b[10;1H")] {
        let before = running.drawn().len();
        running.resize(width, height);
        until("it is drawn anew", || running.drawn()[before..].contains(keys_row));
        let rows = shown(&running.drawn());
        assert!(rows.len() <= height.into(), "{rows:#?}");
        assert!(rows.iter().all(|row| row.chars().count() <= width.into()), "{rows:#?}");
        let is_large = rows.iter().any(|row| row.contains("─ requests ─") && row.contains("─ failures ─"));
        assert_eq!(is_large, width == 200, "{rows:#?}");
    }
    running.press("q");
    assert_eq!(running.wait().0, Some(130));
}

#[test]
fn keys_hold_the_view_explain_themselves_and_end_the_run() {
    let (_server, url) = target(ServerConfig::default());
    let running = OnTerminal::start(&["-d", "1h", "-r", "100", &url], "xterm", (80, 24), false);
    running.until_drawn("answered a second");
    // Ctrl-C stays a signal.
    let during = tcgetattr(&running.master).unwrap().local_modes;
    assert!(during.contains(LocalModes::ISIG) && !during.intersects(LocalModes::ICANON | LocalModes::ECHO));
    running.press(" ");
    running.until_drawn("HELD");
    running.press("?");
    running.until_drawn("stop, and report what was measured");
    running.press("x ?q");
    let (status, printed, drawn) = running.wait();
    assert_eq!(status, Some(130), "the same as after Ctrl-C");
    assert!(printed.contains("interrupted after"), "{printed}");
    assert!(drawn.ends_with(GIVEN_BACK), "{drawn:?}");
}

#[test]
fn after_ctrl_c_the_terminal_is_given_back_and_the_report_follows() {
    let server = Server::start(ServerConfig::default()).unwrap();
    let running = OnTerminal::start(&["-d", "1h", "-r", "100", &server.url()], "xterm", (80, 24), true);
    running.until_drawn("answered a second");
    kill_process(Pid::from_child(&running.child), Signal::INT).unwrap();
    let (status, _, drawn) = running.wait();
    assert_eq!(status, Some(130));
    let (_, report) = drawn.split_once(GIVEN_BACK).unwrap();
    assert!(report.contains("interrupted after") && report.contains("Outcomes"), "{report}");
    assert_eq!(drawn.matches("\x1b[?1049l").count(), 1);
}

#[test]
fn a_headline_that_scrolled_away_is_the_last_line() {
    let (_server, url) = target(ServerConfig::default());
    let args = ["-n", "50", "-c", "1", "--threshold", "p99<1ns", &url];
    for (rows, repeats) in [(10, 2), (24, 1), (60, 1)] {
        let (status, _, drawn) = OnTerminal::start(&args, "xterm", (80, rows), true).wait();
        assert_eq!(status, Some(1), "{drawn}");
        assert_eq!(drawn.matches("✗ 1 of 1 threshold failed: p99").count(), repeats, "{rows} rows: {drawn}");
        let is_last = drawn.trim_end().lines().last().unwrap().starts_with("✗ 1 of 1 threshold failed: p99");
        assert_eq!(is_last, repeats == 2, "{drawn}");
    }
    let (_, printed, _) = OnTerminal::start(&args, "xterm", (80, 10), false).wait();
    assert_eq!(printed.matches("threshold failed").count(), 1, "a pipe has all of it: {printed}");
    let compared = ["compare", "-n", "20", "-c", "1", "-w", "0s", &url, &url];
    let (_, _, drawn) = OnTerminal::start(&compared, "xterm", (80, 8), true).wait();
    let last = drawn.trim_end().lines().last().unwrap();
    let begins: String = last.chars().take(20).collect();
    assert!(drawn.matches(&begins).count() >= 2, "{drawn}");
}

/// A drain that waits for an hour is not sat out: three signals end the process, and the terminal is whole.
#[test]
fn a_process_that_is_killed_by_signals_gives_the_terminal_back() {
    let server = brunt_testbed::faulty::FaultyServer::start(brunt_testbed::faulty::Fault::NeverAnswer).unwrap();
    let args = ["-d", "1h", "--timeout", "1h", "--drain", "1h", "-c", "2", &server.url()];
    let running = OnTerminal::start(&args, "xterm", (80, 24), false);
    running.until_drawn("NO ANSWER YET");
    for signal in [Signal::INT, Signal::TERM, Signal::INT] {
        kill_process(Pid::from_child(&running.child), signal).unwrap();
    }
    let (_, _, drawn) = running.wait();
    assert!(drawn.ends_with(GIVEN_BACK), "{drawn:?}");
}

/// What scripts print while the view has the terminal is neither lost nor in its way.
#[test]
fn what_a_script_prints_is_shown_after_the_view() {
    let server = Server::start(ServerConfig::default()).unwrap();
    let directory = Directory::new();
    let script = format!(
        "local brunt = require 'brunt'; local http = brunt.http {{ base = '{}' }}
         brunt.scenario('s', function() http:get('/') print('printed by a user') brunt.pause(0.2) end)
           :inject {{ brunt.users(1, '2s') }}",
        server.url()
    );
    let path = directory.file("s.lua", script);
    let running = OnTerminal::start(&["run", &path], "xterm", (80, 24), true);
    let (status, _, drawn) = running.wait();
    assert_eq!(status, Some(0), "{drawn}");
    let (view, after) = drawn.split_once(GIVEN_BACK).unwrap();
    let view = view.split_once(TAKEN).unwrap().1;
    assert!(view.contains("s.lua") && !view.contains("printed by a user"), "{drawn}");
    assert!(after.contains("printed by a user"), "{drawn}");
}

#[test]
fn several_runs_are_drawn_too() {
    let (_server, url) = target(ServerConfig::default());
    let args = ["sweep", "-c", "1,2", "-d", "900ms", "-w", "0", &url];
    let running = OnTerminal::start(&args, "xterm", (80, 24), false);
    let (status, printed, drawn) = running.wait();
    assert!(status.is_some_and(|status| status < 2), "{printed}{drawn}");
    assert!(drawn.starts_with(TAKEN) && drawn.ends_with(GIVEN_BACK), "{drawn:?}");
    assert!(drawn.contains("brunt sweep") && drawn.contains("q stop"), "{drawn:?}");
}
