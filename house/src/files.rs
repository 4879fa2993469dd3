//! Hand-written files: their lines and their text.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// The lines of files of a kind that are neither blank nor a comment to the line's end.
///
/// # Errors
///
/// A folder or a file that cannot be read.
pub fn code(folder: &Path, kind: &str, comment: &str) -> anyhow::Result<usize> {
    let mut count = 0;
    for path in paths(folder, kind)? {
        let text = fs::read_to_string(&path)?;
        let is_code = |line: &&str| !line.is_empty() && !line.starts_with(comment);
        count += text.lines().map(str::trim).filter(is_code).count();
    }
    Ok(count)
}

/// All text of the files of a kind.
///
/// # Errors
///
/// A folder or a file that cannot be read.
pub fn text(folder: &Path, kind: &str) -> anyhow::Result<String> {
    let texts = paths(folder, kind)?.into_iter().map(|path| fs::read_to_string(&path).map_err(Into::into));
    Ok(texts.collect::<anyhow::Result<Vec<_>>>()?.join("\n"))
}

/// Files of a kind below a folder, without those that Cargo or npm made.
///
/// # Errors
///
/// A folder that cannot be read.
pub fn paths(folder: &Path, kind: &str) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        let is_made = path.file_name().is_some_and(|name| name == "target" || name == "node_modules");
        if path.is_dir() && !is_made {
            files.extend(paths(&path, kind)?);
        } else if path.extension().is_some_and(|extension| extension == kind) {
            files.push(path);
        }
    }
    Ok(files)
}
