//! Files that flags name: read with the file's name in every error, written whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Context as _, Result, anyhow, bail};

/// Limit on a file, in bytes, as for files in a plan.
const MOST_BYTES: u64 = 1 << 30;

/// The content of the file.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    let name = path.display();
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes));
    read.with_context(|| format!("cannot read {name}"))?;
    if bytes.len() as u64 > MOST_BYTES {
        bail!("cannot read {name}: it is longer than 1 GiB, the most that a plan carries; use a part of it");
    }
    Ok(bytes)
}

/// All of standard input, which is read once: commands that make many runs parse their flags for each.
pub fn read_stdin() -> Result<&'static [u8]> {
    static READ: OnceLock<Vec<u8>> = OnceLock::new();
    if let Some(bytes) = READ.get() {
        return Ok(bytes);
    }
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(MOST_BYTES + 1).read_to_end(&mut bytes);
    read.context("cannot read standard input")?;
    if bytes.len() as u64 > MOST_BYTES {
        bail!("cannot read standard input: it is longer than 1 GiB, the most that a plan carries");
    }
    Ok(READ.get_or_init(|| bytes))
}

/// The content of the file, if it exists; otherwise the reason for which it cannot be read.
pub fn read_if_there(path: &str) -> std::result::Result<Option<Vec<u8>>, String> {
    match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        _ => read(Path::new(path)).map(Some).map_err(|error| error.root_cause().to_string()),
    }
}

/// The content of the file, which must be text.
pub fn read_text(path: &Path) -> Result<String> {
    String::from_utf8(read(path)?).map_err(|e| {
        let valid = e.utf8_error().valid_up_to();
        let line = e.as_bytes().iter().take(valid).filter(|byte| **byte == b'\n').count() + 1;
        anyhow!("cannot read {}: line {line} is not text in UTF-8", path.display())
    })
}

/// Checks that [`write`] could write the file, before there is anything to lose. Leaves no trace.
pub fn check_writable(path: &Path) -> Result<()> {
    let checked = match Destination::at(path) {
        Destination::Special => OpenOptions::new().write(true).open(path).map(drop),
        Destination::File(file) => {
            let beside = beside(&file);
            File::create(&beside).and_then(|_| fs::remove_file(&beside))
        }
        Destination::Directory => bail!("{}: it is a directory; name a file in it", cannot_write(path)),
    };
    checked.with_context(|| cannot_write(path))
}

/// Writes the file. If that fails, the old content stays.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let written = match Destination::at(path) {
        Destination::File(file) => replace(&file, bytes),
        Destination::Special => OpenOptions::new().write(true).open(path).and_then(|mut file| file.write_all(bytes)),
        Destination::Directory => bail!("{}: it is a directory; name a file in it", cannot_write(path)),
    };
    written.with_context(|| cannot_write(path))
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

enum Destination {
    /// A regular file, or none yet, with links followed.
    File(PathBuf),
    Directory,
    /// A pipe or device: written into, never replaced.
    Special,
}

impl Destination {
    fn at(path: &Path) -> Self {
        match fs::metadata(path) {
            Ok(meta) if meta.is_dir() => Self::Directory,
            Ok(meta) if !meta.is_file() => Self::Special,
            Ok(_) => Self::File(fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())),
            Err(_) => Self::File(path.to_owned()),
        }
    }
}

/// An unused name in the same directory.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.part", std::process::id()))
}

fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let beside = beside(path);
    let written = File::create(&beside)
        .and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        let _ = fs::remove_file(&beside);
    }
    written
}
