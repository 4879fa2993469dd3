//! Files that scripts may read.

use brunt_protocol::plan::content::Content;
use brunt_protocol::plan::scenario::File;
use std::fs;
use std::path::{Component, Path, PathBuf};
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

impl Files {
    /// The content of the file.
    ///
    /// # Errors
    /// When there is no such file, or it lies where the sandbox does not let the script read.
    pub fn read(&self, name: &str) -> Result<Vec<u8>, String> {
        self.find(name)?.ok_or_else(|| match self {
            Self::Plan(_) => format!("the plan has no file '{name}'"),
            Self::Disk { .. } => format!("cannot read {name}: there is no such file"),
        })
    }

    /// The names of the files that were read so far, or that the plan has.
    pub fn names(&self) -> Vec<String> {
        let names = |files: &[File]| files.iter().map(|file| file.name.clone()).collect();
        match self {
            Self::Plan(files) => names(files),
            Self::Disk { seen, .. } => names(&seen.lock().unwrap_or_else(PoisonError::into_inner)),
        }
    }

    /// The content of the file; `None` if it does not exist.
    ///
    /// # Errors
    /// When it cannot be read, or lies where the sandbox does not let the script read.
    pub fn find(&self, name: &str) -> Result<Option<Vec<u8>>, String> {
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

    /// Content that is in no file: made from outside sources while the script is loaded, and taken from the plan
    /// afterwards.
    ///
    /// # Errors
    /// What `make` says, or that the plan has no such content.
    pub fn made(&self, name: &str, make: impl FnOnce(&Path) -> Result<Vec<u8>, String>) -> Result<Vec<u8>, String> {
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

/// Whether a file's name stays below the directory to which it is relative.
pub fn is_inside(name: &Path) -> bool {
    let mut parts = name.components();
    parts.clone().next().is_some() && parts.all(|part| matches!(part, Component::Normal(_)))
}

/// The content of a file below `directory`; `None` if the file does not exist, or a link leads out of the directory.
pub fn read_inside(directory: &Path, name: &Path) -> Option<Vec<u8>> {
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    let path = is_inside(name).then(|| directory.join(name).canonicalize().ok()).flatten()?;
    if !path.starts_with(directory.canonicalize().ok()?) || !path.is_file() {
        return None;
    }
    fs::read(path).ok()
}

/// The error that a file lies outside of the script's directory.
pub fn outside(name: &str) -> String {
    format!(
        "cannot read {name}: in the sandbox a script reads files of its own directory alone (--no-sandbox lifts it)"
    )
}
