//! The live view: on a terminal only, in its place, and gone before the result.

use std::fs::File;
use std::io::Read as _;
use std::process::Stdio;

use brunt_testbed::server::Config;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::program::brunt;
use crate::runs::target;

/// What the program prints, and what it draws on a terminal as standard error.
fn on_a_terminal(args: &[&str], term: &str) -> (String, String) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let terminal = File::options().read(true).write(true).open(name).unwrap();
    let mut command = brunt(args);
    let child = command.env("TERM", term).stdout(Stdio::piped()).stderr(terminal).spawn().unwrap();
    // Else the terminal would stay open in this process, and reading it never end.
    drop(command);
    let drawing = std::thread::spawn(move || {
        let mut drawn = Vec::new();
        // The end of a terminal is an error.
        let _ = File::from(master).read_to_end(&mut drawn);
        String::from_utf8_lossy(&drawn).into_owned()
    });
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    (String::from_utf8(output.stdout).unwrap(), drawing.join().unwrap())
}

#[test]
fn a_run_is_drawn_and_then_wiped_away() {
    let (_server, url) = target(Config::default());
    let (printed, drawn) = on_a_terminal(&["-d", "1100ms", "-c", "2", &url], "xterm");
    assert!(drawn.contains("measuring") && drawn.contains("answered"), "{drawn}");
    assert!(drawn.ends_with("\r\x1b[7A\x1b[J"), "{drawn:?}");
    assert!(drawn.contains("\x1b[36m"), "a terminal has colours: {drawn:?}");
    assert!(!printed.contains('\x1b'), "a pipe has none: {printed}");
    let (_, drawn) = on_a_terminal(&["-n", "10", "--no-color", &url], "xterm");
    assert!(drawn.contains("starting") && !drawn.contains("\x1b[36m"), "{drawn:?}");
}

#[test]
fn nothing_is_drawn_where_it_is_not_wanted_or_cannot_be() {
    let (_server, url) = target(Config::default());
    assert_eq!(on_a_terminal(&["-n", "10", &url], "dumb").1, "");
    assert_eq!(on_a_terminal(&["-n", "10", "--quiet", &url], "xterm").1, "");
    assert_eq!(on_a_terminal(&["-n", "10", "-v", &url], "xterm").1, "");
}
