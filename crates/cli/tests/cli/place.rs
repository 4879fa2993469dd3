//! Runs that `brunt ctl` reaches, apart from those of other tests.

use std::process::Command;

use serde_json::Value;

use crate::program::{Directory, Done, Running, brunt, done, until};

/// Where the runs of a test listen, apart from those of other tests.
pub struct Place {
    /// What the runs have for `XDG_RUNTIME_DIR`.
    pub directory: Directory,
}

impl Place {
    pub fn new() -> Self {
        Self { directory: Directory::new() }
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = brunt(args);
        command.env("XDG_RUNTIME_DIR", self.directory.path(""));
        command
    }

    pub fn start(&self, args: &[&str]) -> Running {
        Running::spawn(self.command(args))
    }

    pub fn ctl(&self, words: &[&str]) -> Done {
        done(&mut self.command(&[&["ctl"], words].concat()))
    }

    /// The same once the load has begun; the change.
    pub fn change(&self, words: &[&str]) -> Value {
        let mut came = None;
        until("the run takes the change", || {
            let done = self.ctl(&[words, &["--json"]].concat());
            if done.status == Some(0) {
                came = Some(serde_json::from_str(&done.stdout).unwrap());
            } else {
                let waits = ["has not begun", "no run of this user"].iter().any(|why| done.stderr.contains(why));
                assert!(waits, "{done:#?}");
            }
            came.is_some()
        });
        came.unwrap()
    }
}

/// When a change took effect, in seconds of the measured part.
pub fn at_s(change: &Value) -> f64 {
    change["at_ns"].as_f64().unwrap() / 1e9
}
