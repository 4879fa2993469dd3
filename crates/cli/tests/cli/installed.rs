//! Programs that are not ours, installed once below the target directory at pinned versions.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// Copies these files into a directory of this name and makes something of them there, unless that was done with the same files; the
/// directory.
pub fn installed(name: &str, files: &[PathBuf], make: impl FnOnce(&Path)) -> PathBuf {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let wanted: String = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    let done = home.join("installed.txt");
    if fs::read_to_string(&done).is_ok_and(|done| done == wanted) {
        return home;
    }
    fs::create_dir_all(&home).unwrap();
    for file in files {
        fs::copy(file, home.join(file.file_name().unwrap())).unwrap();
    }
    make(&home);
    fs::write(done, wanted).unwrap();
    home
}

/// A Python with what the file of requirements names, and nothing that those packages ask for besides with `--no-deps` among `flags`.
pub fn python(name: &str, requirements: impl Into<PathBuf>, flags: &[&str]) -> PathBuf {
    let requirements = requirements.into();
    let make = |home: &Path| {
        succeed(Command::new("python3").args(["-m", "venv", "--clear"]).arg(home));
        let pip = ["-m", "pip", "install", "--quiet"];
        succeed(Command::new(home.join("bin/python")).args(pip).args(flags).arg("-r").arg(&requirements));
    };
    installed(name, std::slice::from_ref(&requirements), make).join("bin/python")
}

/// A folder of these files, `package.json` and its lock among them, with the packages from npm that those name.
pub fn node(name: &str, files: &[PathBuf]) -> PathBuf {
    installed(name, files, |home| {
        succeed(Command::new("npm").args(["ci", "--silent", "--no-audit", "--no-fund"]).current_dir(home));
    })
}

/// Runs a command that must succeed.
#[track_caller]
pub fn succeed(command: &mut Command) {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}; `make test` installs what it needs"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
