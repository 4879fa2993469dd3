//! Several logs read as one, such as those of several servers, or one that was rotated: line by line, by time.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use crate::config::ReplayConfig;
use crate::format::{Format, Parser};
use crate::input::{self, Bytes, LogLines};
use crate::position::Position;

impl ReplayConfig {
    /// Opens the log, or its logs, whose lines are in this format. The position tells how much of it was read.
    ///
    /// # Errors
    /// When one of them cannot be read.
    pub(crate) fn open(&self, format: Format) -> io::Result<(Bytes, Position)> {
        if self.more.is_empty() {
            return input::open(&self.path, self.bytes);
        }
        let mut position = Position::default();
        let mut sources = Vec::new();
        for (number, path) in std::iter::once(&self.path).chain(&self.more).enumerate() {
            let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
            let bytes = opened(path, &mut position).map_err(named)?;
            let parser = Parser::new(format, self.options.clone()).map_err(io::Error::other)?;
            let mut source = Source { lines: LogLines::new(bytes), parser, line: None, at: None };
            if number > 0 && format == Format::Csv {
                // The first table names the columns of all of them; each parser reads its own.
                source.go_on().map_err(named)?;
            }
            source.go_on().map_err(named)?;
            sources.push(source);
        }
        Ok((Box::new(BufReader::with_capacity(128 << 10, Merged { sources, line: VecDeque::new() })), position))
    }
}

fn opened(path: &Path, position: &mut Position) -> io::Result<Bytes> {
    let file = position.add_file(File::open(path)?);
    input::unpacked(Box::new(file))
}

/// A log among others.
struct Source {
    lines: LogLines,
    parser: Parser,
    /// The next line; `None` at the end.
    line: Option<Vec<u8>>,
    /// When its request came, in nanoseconds since 1970; for a line without a time, that of the line before.
    at: Option<i64>,
}

impl Source {
    /// Reads the next line.
    fn go_on(&mut self) -> io::Result<()> {
        self.line = self.lines.next_line()?.map(<[u8]>::to_vec);
        if let Some(line) = &self.line
            && let Ok(Some(entry)) = self.parser.line(line)
            && let Some(at) = entry.at
        {
            self.at = Some(at.ns);
        }
        Ok(())
    }
}

/// The lines of all logs, the earliest first.
struct Merged {
    sources: Vec<Source>,
    /// The rest of the line that is being read.
    line: VecDeque<u8>,
}

impl Read for Merged {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.line.is_empty() {
            let left = self.sources.iter_mut().filter(|source| source.line.is_some());
            let Some(next) = left.min_by_key(|source| source.at) else { return Ok(0) };
            self.line.extend(next.line.take().unwrap_or_default());
            self.line.push_back(b'\n');
            next.go_on()?;
        }
        self.line.read(buffer)
    }
}
