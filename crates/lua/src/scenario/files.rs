//! Files that scripts may read.

use crate::state::{is_inside, read_inside};
use brunt_plan::content::Content;
use brunt_plan::scenario::{File, Streamed};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Where the files of a script come from.
pub enum Files {
    /// From disk, beside the script. Each file that is read is remembered.
    Disk {
        /// The script's own directory.
        directory: PathBuf,
        /// Whether files elsewhere are refused.
        confined: bool,
        /// The files read so far.
        seen: Mutex<Vec<File>>,
    },
    /// From a plan.
    Plan(Vec<File>),
}

/// The places of streamed files, according to the run's sandbox.
pub(super) struct Streaming {
    /// The script's own directory.
    pub(super) directory: PathBuf,
    /// The files that were opened while a script is loaded.
    pub(super) opened: Mutex<Vec<Streamed>>,
    /// The files that the plan names, for a script that is carried out.
    pub(super) planned: Option<Vec<Streamed>>,
}

impl Files {
    /// The content of the file.
    pub(super) fn read(&self, name: &str) -> Result<Vec<u8>, String> {
        self.find(name)?.ok_or_else(|| match self {
            Self::Plan(_) => format!("the plan has no file '{name}'"),
            Self::Disk { .. } => format!("cannot read {name}: there is no such file"),
        })
    }

    /// The content of the file; `None` if it does not exist.
    pub(super) fn find(&self, name: &str) -> Result<Option<Vec<u8>>, String> {
        match self {
            Self::Plan(files) => {
                let file = files.iter().find(|file| file.name == name);
                Ok(file.map(|file| file.content.0.clone()))
            }
            Self::Disk { directory, confined, seen } => {
                let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(known) = seen.iter().find(|file| file.name == name) {
                    return Ok(Some(known.content.0.clone()));
                }
                if *confined {
                    let Some(content) = read_inside(directory, Path::new(name)) else {
                        return if is_inside(Path::new(name)) { Ok(None) } else { Err(outside(name)) };
                    };
                    seen.push(File { name: name.to_owned(), content: Content(content.clone()) });
                    return Ok(Some(content));
                }
                let content = match fs::read(directory.join(name)) {
                    Ok(content) => content,
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
                    Err(error) => return Err(format!("cannot read {name}: {error}")),
                };
                seen.push(File { name: name.to_owned(), content: Content(content.clone()) });
                Ok(Some(content))
            }
        }
    }
}

impl Files {
    /// Content that is in no file: made from outside sources while the script is loaded, and taken from the plan
    /// afterwards.
    pub(super) fn made(
        &self,
        name: &str,
        make: impl FnOnce(&Path) -> Result<Vec<u8>, String>,
    ) -> Result<Vec<u8>, String> {
        match self {
            Self::Plan(_) => self.read(name),
            Self::Disk { directory, seen, .. } => {
                let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(known) = seen.iter().find(|file| file.name == name) {
                    return Ok(known.content.0.clone());
                }
                let content = make(directory)?;
                seen.push(File { name: name.to_owned(), content: Content(content.clone()) });
                Ok(content)
            }
        }
    }
}

/// The path of a file beside the script; in the sandbox it has to be below the script's directory.
pub(super) fn beside(directory: &Path, name: &str, is_confined: bool) -> Result<PathBuf, String> {
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    if !is_confined {
        return Ok(directory.join(name));
    }
    let path = is_inside(Path::new(name)).then(|| directory.join(name).canonicalize().ok()).flatten();
    let home = directory.canonicalize().map_err(|e| format!("cannot read {name}: {e}"))?;
    path.filter(|path| path.starts_with(home)).ok_or_else(|| outside(name))
}

fn outside(name: &str) -> String {
    format!(
        "cannot read {name}: in the sandbox a script reads files of its own directory alone (--no-sandbox lifts it)"
    )
}
