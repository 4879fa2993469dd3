//! The sockets of runs: one for each process, in a directory that only its owner can read.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::{About, Answer, Question, ask};

/// The directory of this user's runs: below `XDG_RUNTIME_DIR`, or otherwise below the directory for temporary files.
fn directory() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR").filter(|directory| Path::new(directory).is_absolute()) {
        Some(directory) => PathBuf::from(directory).join("brunt"),
        None => std::env::temp_dir().join(format!("brunt-{}", rustix::process::getuid().as_raw())),
    }
}

/// The socket's path for a run of this process. Makes the directory if necessary.
///
/// # Errors
/// When it cannot be made, or others could read it.
pub fn own() -> Result<PathBuf> {
    let directory = directory();
    let shown = directory.display();
    DirBuilder::new().recursive(true).mode(0o700).create(&directory).with_context(|| format!("cannot make {shown}"))?;
    let found = fs::symlink_metadata(&directory).with_context(|| format!("cannot look at {shown}"))?;
    if !found.is_dir() || found.uid() != rustix::process::geteuid().as_raw() {
        bail!("{shown} is not a directory of this user's own");
    }
    if found.permissions().mode() & 0o077 != 0 {
        bail!("others can look into {shown}: chmod 700 it");
    }
    Ok(directory.join(format!("{}.sock", std::process::id())))
}

/// A run that listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Its socket.
    pub path: PathBuf,
    /// Which run it is.
    pub about: About,
}

/// The runs of this user that listen, by their process. A socket that was left over by a run that was killed is removed.
pub fn reachable() -> Vec<Place> {
    let entries = fs::read_dir(directory()).into_iter().flatten().filter_map(Result::ok);
    let sockets = entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "sock"));
    let mut places: Vec<Place> = sockets.filter_map(|path| place(&path)).collect();
    places.sort_by_key(|place| place.about.pid);
    places
}

fn place(path: &Path) -> Option<Place> {
    match ask(path, &Question::Who) {
        Ok(Answer::Run(about)) => Some(Place { path: path.to_owned(), about }),
        Ok(_) => None,
        Err(error) => {
            let refused = error.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
            if refused == Some(std::io::ErrorKind::ConnectionRefused) {
                // Best effort: a leftover file does no harm.
                drop(fs::remove_file(path));
            }
            None
        }
    }
}
