//! The live view: on a terminal only, in its place, and gone before the result.

use std::fs::File;
use std::io::Read as _;
use std::process::Stdio;

use brunt_testbed::server::Config;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::program::brunt;
use crate::runs::target;

/// What the program prints, and what it draws on a terminal as standard error.
fn on_a_terminal(args: &[&str], term: &str) -> (String, String) {
    on_a_terminal_of(args, term, &[])
}

/// The same on one that has each of these sizes (columns and lines) for a second.
fn on_a_terminal_of(args: &[&str], term: &str, sizes: &[(u16, u16)]) -> (String, String) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let terminal = File::options().read(true).write(true).open(name).unwrap();
    let resize = |&(ws_col, ws_row): &(u16, u16)| {
        tcsetwinsize(&master, Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    };
    sizes.first().into_iter().for_each(resize);
    let mut command = brunt(args);
    let child = command.env("TERM", term).stdout(Stdio::piped()).stderr(terminal).spawn().unwrap();
    // Else the terminal would stay open in this process, and reading it never end.
    drop(command);
    let reader = master.try_clone().unwrap();
    let drawing = std::thread::spawn(move || {
        let mut drawn = Vec::new();
        // The end of a terminal is an error.
        let _ = File::from(reader).read_to_end(&mut drawn);
        String::from_utf8_lossy(&drawn).into_owned()
    });
    for size in sizes.iter().skip(1) {
        std::thread::sleep(std::time::Duration::from_millis(1700));
        resize(size);
    }
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    (String::from_utf8(output.stdout).unwrap(), drawing.join().unwrap())
}

#[test]
fn a_run_is_drawn_and_then_wiped_away() {
    let (_server, url) = target(Config::default());
    let (printed, drawn) = on_a_terminal(&["-d", "1100ms", "-c", "2", &url], "xterm");
    assert!(drawn.contains("measuring") && drawn.contains("answered"), "{drawn}");
    assert!(drawn.ends_with("A\x1b[J"), "{drawn:?}");
    assert!(drawn.contains("response times so far") && drawn.contains("200 ×"), "{drawn}");
    assert!(drawn.contains("\x1b[36m"), "a terminal has colours: {drawn:?}");
    assert!(!printed.contains('\x1b'), "a pipe has none: {printed}");
    let (_, drawn) = on_a_terminal(&["-n", "10", "--no-color", &url], "xterm");
    assert!(drawn.contains("running") && !drawn.contains("\x1b[36m"), "{drawn:?}");
}

#[test]
fn nothing_is_drawn_where_it_is_not_wanted_or_cannot_be() {
    let (_server, url) = target(Config::default());
    assert_eq!(on_a_terminal(&["-n", "10", &url], "dumb").1, "");
    assert_eq!(on_a_terminal(&["-n", "10", "--quiet", &url], "xterm").1, "");
    assert_eq!(on_a_terminal(&["-n", "10", "-v", &url], "xterm").1, "");
}

/// The terminal is measured anew for each drawing: what is drawn fills the larger one and stays within the smaller one.
#[test]
fn a_terminal_may_change_its_size_while_a_run_goes_on() {
    let (_server, url) = target(Config::default());
    let (_, drawn) = on_a_terminal_of(&["-d", "5100ms", "-c", "2", &url], "xterm", &[(80, 24), (200, 50), (60, 10)]);
    let heights: Vec<_> = drawn.split("\x1b[J").map(|frame| frame.matches('\n').count()).collect();
    assert!(heights.iter().any(|height| (15..=23).contains(height)), "{heights:?}");
    assert!(heights.iter().any(|height| *height > 23), "{heights:?}");
    // A wide one has the charts beside the figures.
    let beside = |line: &str| line.contains("rate") && line.contains("max ");
    assert!(drawn.lines().any(beside), "{drawn}");
    let last = heights.iter().rev().find(|height| **height > 0).unwrap();
    assert!(*last <= 9, "{heights:?}");
}
