//! Thrift's interface definition language: turns files into a [`Schema`].
//!
//! The parser is brunt's own: its errors name the file, the line and the column of a wrong name or value, which takes a
//! syntax tree with positions.

mod lexer;
mod parser;
mod resolve;
mod syntax;

use std::collections::HashMap;
use std::fmt;
use std::path::{Component, Path, PathBuf};

use self::resolve::Program;
use brunt_plan::content::without_mark;

use super::schema::Schema;

/// The most included files, in all.
const MOST_FILES: usize = 1000;
/// The most bytes of one file.
const MOST_FILE_BYTES: usize = 16 * 1024 * 1024;

/// A place in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    /// From 1.
    pub(super) line: u32,
    /// In characters, from 1.
    pub(super) column: u32,
}

/// An IDL that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct IdlError {
    place: Place,
    problem: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    file: String,
    position: Option<Position>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        self.position.map_or(Ok(()), |at| write!(f, ":{}:{}", at.line, at.column))
    }
}

impl IdlError {
    fn at(file: &str, at: Position, problem: impl Into<String>) -> Self {
        Self { place: Place { file: file.to_owned(), position: Some(at) }, problem: problem.into() }
    }

    fn in_file(file: &str, problem: impl Into<String>) -> Self {
        Self { place: Place { file: file.to_owned(), position: None }, problem: problem.into() }
    }
}

/// Reads the content at a path; `None` if there is no such file.
pub type ReadIdlFile<'a> = dyn FnMut(&str) -> Result<Option<Vec<u8>>, String> + 'a;

/// Reads the IDL file `main` and all that it includes. `read` gives the content of a path, or nothing if there is no such
/// file; an include is looked for beside the file that it stands in, beside the main file, and in `include_dirs`.
///
/// # Errors
/// Says in which file, line and column something is wrong. Errors of `read` are passed on with the path.
pub fn load(main: &str, include_dirs: &[String], read: &mut ReadIdlFile<'_>) -> Result<Schema, IdlError> {
    let mut loader =
        Loader { include_dirs, read, main_dir: parent(main), places: HashMap::new(), programs: Vec::new() };
    let main = normal(Path::new(main));
    match loader.load(&main) {
        Ok(Some(_)) => resolve::resolve(&loader.programs),
        Ok(None) => Err(IdlError::in_file(&main, "there is no such file")),
        Err(error) => Err(error),
    }
}

struct Loader<'a, 'r> {
    include_dirs: &'a [String],
    read: &'a mut ReadIdlFile<'r>,
    main_dir: PathBuf,
    /// Paths of files that were read, and which program each is.
    places: HashMap<String, usize>,
    programs: Vec<Program>,
}

impl Loader<'_, '_> {
    /// Reads a file and, one after the other, those that are included from there; its place, or nothing if there is no
    /// such file.
    fn load(&mut self, main: &str) -> Result<Option<usize>, IdlError> {
        let Some(first) = self.read_one(main)? else { return Ok(None) };
        let mut next = first;
        while let Some(program) = self.programs.get(next) {
            let (file, includes) = (program.file.clone(), program.syntax.includes.clone());
            for include in includes {
                let mut found = None;
                for candidate in self.candidates(&file, &include.text) {
                    found = self.read_one(&candidate)?;
                    if found.is_some() {
                        break;
                    }
                }
                let Some(found) = found else {
                    let looked: Vec<_> = self.candidates(&file, &include.text);
                    let problem = format!("the included file is not there: looked for {}", looked.join(", "));
                    return Err(IdlError::at(&file, include.at, problem));
                };
                if let Some(program) = self.programs.get_mut(next) {
                    program.includes.insert(stem(&include.text), found);
                }
            }
            next += 1;
        }
        Ok(Some(first))
    }

    fn read_one(&mut self, path: &str) -> Result<Option<usize>, IdlError> {
        if let Some(place) = self.places.get(path) {
            return Ok(Some(*place));
        }
        let Some(content) = (self.read)(path).map_err(|problem| IdlError::in_file(path, problem))? else {
            return Ok(None);
        };
        if self.programs.len() == MOST_FILES {
            return Err(IdlError::in_file(path, format!("expected at most {MOST_FILES} files, and this is one more")));
        }
        if content.len() > MOST_FILE_BYTES {
            return Err(IdlError::in_file(path, format!("{} bytes: expected at most 16 MiB of IDL", content.len())));
        }
        let text = std::str::from_utf8(without_mark(&content)).map_err(|error| {
            let before = content.get(..error.valid_up_to()).unwrap_or(&[]);
            let line = before.split(|byte| *byte == b'\n').count() as u32;
            IdlError::at(path, Position { line, column: 1 }, "expected UTF-8 text, found an invalid byte")
        })?;
        let syntax = parser::parse(path, text)?;
        self.places.insert(path.to_owned(), self.programs.len());
        self.programs.push(Program { file: path.to_owned(), prefix: stem(path), syntax, includes: HashMap::new() });
        Ok(Some(self.programs.len() - 1))
    }

    /// Where an include may be.
    fn candidates(&self, file: &str, include: &str) -> Vec<String> {
        let mut candidates: Vec<String> = Vec::new();
        let dirs = [parent(file), self.main_dir.clone()].into_iter().chain(self.include_dirs.iter().map(PathBuf::from));
        for dir in dirs {
            let candidate = normal(&dir.join(include));
            if !candidates.contains(&candidate) {
                candidates.push(candidate);
            }
        }
        candidates
    }
}

fn parent(path: &str) -> PathBuf {
    Path::new(path).parent().map(Path::to_owned).unwrap_or_default()
}

/// The prefix of a file's definitions in other files: its name without the extension.
fn stem(path: &str) -> String {
    Path::new(path).file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned())
}

/// A path without `.`, and without `..` where a name stands before it, so that a file has one path.
fn normal(path: &Path) -> String {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if matches!(parts.components().next_back(), Some(Component::Normal(_))) => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.display().to_string()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Loads the first of these files.
    pub(crate) fn load_files(files: &[(&str, &str)]) -> Result<Schema, String> {
        let mut read =
            |path: &str| Ok(files.iter().find(|(name, _)| *name == path).map(|(_, text)| text.as_bytes().to_vec()));
        load(files[0].0, &["/usr/share/idl".to_owned()], &mut read).map_err(|e| e.to_string())
    }

    #[test]
    fn includes_are_found_beside_their_file_beside_the_main_one_and_in_directories() {
        let schema = load_files(&[
            (
                "idl/main.thrift",
                "include './sub/../sub/a.thrift' struct M { 1: a.A a, 2: far.F f } include 'far.thrift'",
            ),
            ("idl/sub/a.thrift", "include 'b.thrift' include 'c.thrift' struct A { 1: b.B b, 2: c.C c }"),
            ("idl/sub/b.thrift", "include '../main.thrift' struct B { 1: optional main.M m }"),
            ("idl/c.thrift", "struct C {}"),
            ("/usr/share/idl/far.thrift", "struct F {}"),
        ])
        .unwrap();
        let mut names: Vec<_> = schema.types.keys().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["M", "a.A", "b.B", "c.C", "far.F"]);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let missing = load_files(&[("m.thrift", "\n include 'x.thrift'")]).unwrap_err();
        assert_eq!(
            missing,
            "m.thrift:2:10: the included file is not there: looked for x.thrift, /usr/share/idl/x.thrift"
        );
        let mut none = |_: &str| Ok(None);
        assert_eq!(load("a/../m.thrift", &[], &mut none).unwrap_err().to_string(), "m.thrift: there is no such file");
        let mut denied = |_: &str| Err("permission denied".to_owned());
        assert_eq!(load("m.thrift", &[], &mut denied).unwrap_err().to_string(), "m.thrift: permission denied");
        let mut latin = |_: &str| Ok(Some(b"// ok\n// \xff".to_vec()));
        assert!(load("m.thrift", &[], &mut latin).unwrap_err().to_string().starts_with("m.thrift:2:1: expected UTF-8"));
    }

    #[test]
    fn files_without_end_end() {
        let mut number = 0;
        let mut endless = |_: &str| {
            number += 1;
            Ok(Some(format!("include '{number}.thrift'").into_bytes()))
        };
        let error = load("0.thrift", &[], &mut endless).unwrap_err().to_string();
        assert!(error.contains("expected at most 1000 files"), "{error}");
    }
}
