//! Files of data that stay on disk: an index has the places of rows, and each row is read when it is handed out.
//!
//! The index has the place of each row as long as there are at most [`MOST_PLACES`]. Beyond it, every second place is
//! dropped, again and again, so that its size is bounded. To find a row between two places, the file is read from the
//! first of them.

use std::cell::Cell;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read, Seek as _, SeekFrom};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use csv_core::ReadRecordResult;
use serde::de::IgnoredAny;

use super::table::{Kind, Table, wrong_cells, wrong_record};

/// The most places that an index has: 8 bytes each.
const MOST_PLACES: usize = 1 << 20;
/// The most bytes of one row.
const MOST_ROW: u64 = 16 << 20;
/// The bytes read at once while the index is made.
const BUFFER: usize = 1 << 20;
/// The most indexes that the process keeps.
const MOST_INDEXES: usize = 16;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Rows in a file.
#[derive(Debug)]
pub(super) struct Stream {
    file: File,
    kind: Kind,
    table: Table,
    /// Idle readers of a table's rows: making one costs ten times as much as reading a row.
    readers: Mutex<Vec<csv_core::Reader>>,
    /// The offset of each `spacing`-th row, from the first on.
    places: Vec<u64>,
    spacing: u64,
    rows: u64,
    /// The offset of the end of the last row.
    end: u64,
}

/// The cells of a row, joined.
#[derive(Debug)]
pub(super) struct Cells {
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl Cells {
    /// The cells, in the order of the columns.
    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut from = 0;
        self.ends.iter().map(move |end| {
            let cell = self.text.get(from..*end).unwrap_or(&[]);
            from = *end;
            cell
        })
    }
}

/// The key of a remembered index: the file's state, and the way in which it was read.
type Known = (PathBuf, u64, Option<SystemTime>, Kind, Table);

/// The indexes of this process, so that a run that loads its script several times reads a large file through only once.
static INDEXES: Mutex<Vec<(Known, Arc<Stream>)>> = Mutex::new(Vec::new());

/// A reader that refuses an endless row.
struct Bounded {
    file: File,
    since_row: Rc<Cell<u64>>,
}

impl Read for Bounded {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.since_row.get() > MOST_ROW {
            return Err(std::io::Error::other("a row has more than 16 MiB: is a quote missing?"));
        }
        let length = self.file.read(buffer)?;
        self.since_row.set(self.since_row.get() + length as u64);
        Ok(length)
    }
}

/// The offsets of rows found so far.
struct Places {
    all: Vec<u64>,
    spacing: u64,
    rows: u64,
    most: usize,
}

impl Places {
    fn new(most: usize) -> Self {
        Self { all: Vec::new(), spacing: 1, rows: 0, most: most.max(2) }
    }

    fn push(&mut self, place: u64) {
        if self.rows.is_multiple_of(self.spacing) {
            if self.all.len() >= self.most {
                let mut at = 0;
                self.all.retain(|_| {
                    at += 1;
                    at % 2 == 1
                });
                self.spacing *= 2;
            }
            if self.rows.is_multiple_of(self.spacing) {
                self.all.push(place);
            }
        }
        self.rows += 1;
    }
}

impl Stream {
    /// Opens the file at `path`, called `name` in the script, and makes its index.
    ///
    /// # Errors
    /// The line and what is wrong in it.
    pub(super) fn open(kind: Kind, path: &Path, name: &str, table: Table) -> Result<Arc<Self>, String> {
        let wrong = |error: std::io::Error| format!("cannot read {name}: {error}");
        let file = File::open(path).map_err(wrong)?;
        let about = file.metadata().map_err(wrong)?;
        if !about.is_file() {
            return Err(format!("cannot read {name}: only a file can be streamed"));
        }
        let known = (path.to_owned(), about.len(), about.modified().ok(), kind, table.clone());
        let mut indexes = INDEXES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, stream)) = indexes.iter().find(|(one, _)| *one == known) {
            return Ok(Arc::clone(stream));
        }
        let stream = Arc::new(Self::index(kind, file, name, table, MOST_PLACES)?);
        if indexes.len() >= MOST_INDEXES {
            indexes.remove(0);
        }
        indexes.push((known, Arc::clone(&stream)));
        Ok(stream)
    }

    fn index(kind: Kind, mut file: File, name: &str, table: Table, most: usize) -> Result<Self, String> {
        let wrong = |error: std::io::Error| format!("cannot read {name}: {error}");
        let end = file.metadata().map_err(wrong)?.len();
        let mut mark = [0; 3];
        let begin = match file.read_exact_at(&mut mark, 0) {
            Ok(()) if mark == BYTE_ORDER_MARK => mark.len() as u64,
            _ => 0,
        };
        file.seek(SeekFrom::Start(begin)).map_err(wrong)?;
        let reading = file.try_clone().map_err(wrong)?;
        let mut stream =
            Self { file, kind, table, readers: Mutex::default(), places: Vec::new(), spacing: 1, rows: 0, end };
        let mut places = Places::new(most);
        match kind {
            Kind::Csv => stream.index_cells(reading, name, begin, &mut places)?,
            _ => stream.index_lines(reading, name, begin, &mut places)?,
        }
        if places.rows == 0 {
            return Err(format!("{name}: there is no row in it"));
        }
        (stream.places, stream.spacing, stream.rows) = (places.all, places.spacing, places.rows);
        Ok(stream)
    }

    fn index_cells(&mut self, file: File, name: &str, begin: u64, places: &mut Places) -> Result<(), String> {
        let since_row = Rc::new(Cell::new(0));
        let reader = Bounded { file, since_row: Rc::clone(&since_row) };
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(self.table.separator)
            .has_headers(false)
            .buffer_capacity(BUFFER)
            .from_reader(reader);
        let mut record = csv::ByteRecord::new();
        while reader.read_byte_record(&mut record).map_err(|e| wrong_record(name, &e))? {
            since_row.set(0);
            if self.table.columns.is_empty() {
                self.table.name_columns(name, &record)?;
                continue;
            }
            let place = record.position();
            if record.len() != self.table.columns.len() {
                return Err(wrong_cells(name, place, record.len(), self.table.columns.len()));
            }
            places.push(begin + place.map_or(0, csv::Position::byte));
        }
        Ok(())
    }

    fn index_lines(&mut self, file: File, name: &str, begin: u64, places: &mut Places) -> Result<(), String> {
        let since_row = Rc::new(Cell::new(0));
        let mut reader = BufReader::with_capacity(BUFFER, Bounded { file, since_row: Rc::clone(&since_row) });
        let (mut place, mut number, mut line) = (begin, 0, Vec::new());
        loop {
            line.clear();
            let length = reader.read_until(b'\n', &mut line).map_err(|e| format!("cannot read {name}: {e}"))?;
            if length == 0 {
                return Ok(());
            }
            since_row.set(0);
            number += 1;
            let text = without_end(&line);
            if !text.is_empty() {
                if self.kind == Kind::JsonLines {
                    let read = serde_json::from_slice::<IgnoredAny>(text);
                    read.map_err(|e| format!("{name}, line {number} is not JSON: {e}"))?;
                }
                places.push(place);
            }
            place += length as u64;
        }
    }

    /// The number of rows.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// The names of the columns, and the separator.
    pub(super) fn table(&self) -> &Table {
        &self.table
    }

    /// The kind of the rows.
    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    /// The size of the file.
    pub(super) fn bytes(&self) -> u64 {
        self.end
    }

    /// The bytes of the indexed block that holds the row with this number (from 0), and the number of rows before it in
    /// the block.
    fn block(&self, number: u64) -> std::io::Result<(Vec<u8>, u64)> {
        let at = (number / self.spacing) as usize;
        let from = self.places.get(at).copied().unwrap_or(self.end);
        let to = self.places.get(at + 1).copied().unwrap_or(self.end);
        let mut bytes = vec![0; to.saturating_sub(from) as usize];
        self.file.read_exact_at(&mut bytes, from)?;
        Ok((bytes, number % self.spacing))
    }

    /// The cells of the row with this number, from 0.
    ///
    /// # Errors
    /// When the file has changed.
    pub(super) fn cells(&self, number: u64) -> Result<Cells, String> {
        let spare = self.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut reader =
            spare.unwrap_or_else(|| csv_core::ReaderBuilder::new().delimiter(self.table.separator).build());
        reader.reset();
        let cells = self.read_cells(&mut reader, number)?;
        // A reader that stopped within a row is not reused: it would go on there.
        self.readers.lock().unwrap_or_else(PoisonError::into_inner).push(reader);
        Ok(cells)
    }

    fn read_cells(&self, reader: &mut csv_core::Reader, number: u64) -> Result<Cells, String> {
        let (bytes, skipped) = self.block(number).map_err(|e| changed(&e))?;
        let mut from = 0;
        // Cells are no longer than the bytes that they are read from. The reader needs spare room at the end.
        let columns = self.table.columns.len();
        let mut cells = Cells { text: vec![0; bytes.len() + 1], ends: vec![0; columns + 1] };
        for _ in 0..=skipped {
            let (mut text, mut ends) = (0, 0);
            loop {
                let input = bytes.get(from..).unwrap_or(&[]);
                let (Some(text_left), Some(ends_left)) = (cells.text.get_mut(text..), cells.ends.get_mut(ends..))
                else {
                    return Err(changed(&"a row has grown"));
                };
                let (result, read, written, ended) = reader.read_record(input, text_left, ends_left);
                (from, text, ends) = (from + read, text + written, ends + ended);
                match result {
                    ReadRecordResult::Record if ends == columns => break,
                    // The end of the block ends its last row.
                    ReadRecordResult::InputEmpty => {}
                    _ => return Err(changed(&"a row has another number of cells")),
                }
            }
        }
        cells.ends.truncate(columns);
        Ok(cells)
    }

    /// The line with this number, from 0.
    ///
    /// # Errors
    /// As [`Stream::cells`].
    pub(super) fn line(&self, number: u64) -> Result<Vec<u8>, String> {
        let (bytes, skipped) = self.block(number).map_err(|e| changed(&e))?;
        let mut lines = bytes.split(|byte| *byte == b'\n').map(without_end).filter(|line| !line.is_empty());
        let line = lines.nth(skipped as usize);
        line.map(<[u8]>::to_vec).ok_or_else(|| changed(&"a row is gone"))
    }
}

fn changed(problem: &impl std::fmt::Display) -> String {
    format!("a row cannot be read any more: {problem}; the file must stay as it is during the run")
}

fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    /// A temporary file, deleted at the end of its test.
    struct Temporary(PathBuf);

    impl Temporary {
        fn new(name: &str, content: &[u8]) -> Self {
            let path = std::env::temp_dir().join(format!("brunt-stream-{}-{name}", std::process::id()));
            File::create(&path).unwrap().write_all(content).unwrap();
            Self(path)
        }
    }

    impl Drop for Temporary {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    fn table(columns: &[&str]) -> Table {
        Table { columns: columns.iter().map(|name| (*name).to_owned()).collect(), separator: b',' }
    }

    fn indexed(name: &str, kind: Kind, content: &[u8], most: usize) -> Result<Stream, String> {
        let file = Temporary::new(name, content);
        Stream::index(kind, File::open(&file.0).unwrap(), "f", table(&[]), most)
    }

    #[test]
    fn every_row_is_found_whatever_the_index_holds() {
        let content: String = std::iter::once("\u{feff}id,text\r\n".to_owned())
            .chain((0..1000).map(|n| format!("{n},\"{}\n,\"\"\"\r\n", "x".repeat(n % 7))))
            .collect();
        for most in [2, 3, 64, 2000] {
            let stream = indexed(&format!("cells-{most}"), Kind::Csv, content.as_bytes(), most).unwrap();
            assert_eq!((stream.rows(), stream.table().columns.join(" ")), (1000, "id text".to_owned()));
            assert!(stream.places.len() <= most, "{} places", stream.places.len());
            for number in [0, 1, 2, 3, 511, 512, 513, 998, 999] {
                let row = stream.cells(number).unwrap();
                let cells: Vec<_> = row.iter().collect();
                assert_eq!(
                    (cells[0], cells[1].len()),
                    (number.to_string().as_bytes(), number as usize % 7 + 3),
                    "{most}"
                );
            }
        }
        let lines = (0..100).map(|n| format!("{n}\r\n\n")).collect::<Vec<_>>().concat();
        for kind in [Kind::Lines, Kind::JsonLines] {
            let stream = indexed(&format!("lines-{kind:?}"), kind, lines.as_bytes(), 8).unwrap();
            let all: Vec<_> = (0..stream.rows()).map(|n| String::from_utf8(stream.line(n).unwrap()).unwrap()).collect();
            assert!(all.iter().map(String::as_str).eq((0..100).map(|n| n.to_string()).collect::<Vec<_>>()), "{all:?}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said_with_its_line() {
        let error = |name, kind, content: &[u8]| indexed(name, kind, content, 8).unwrap_err();
        assert_eq!(error("few", Kind::Csv, b"a,b\n1,2\n3\n"), "f, line 3: it has 1 cells, and there are 2 columns");
        assert_eq!(error("none", Kind::Csv, b"a,b\n"), "f: there is no row in it");
        assert!(error("json", Kind::JsonLines, b"1\n\nx\n").starts_with("f, line 3 is not JSON"));
        let endless = [b"a\n\"".as_slice(), &vec![b'x'; 2 * MOST_ROW as usize]].concat();
        assert!(error("endless", Kind::Csv, &endless).contains("is a quote missing?"));
    }

    #[test]
    fn a_file_that_was_cut_short_is_told() {
        let file = Temporary::new("cut", b"a\n1\n2\n");
        let stream = Stream::open(Kind::Csv, &file.0, "f", table(&[])).unwrap();
        assert!(Arc::ptr_eq(&stream, &Stream::open(Kind::Csv, &file.0, "f", table(&[])).unwrap()), "it is read once");
        File::create(&file.0).unwrap();
        assert!(stream.cells(1).unwrap_err().contains("must stay as it is"));
    }
}
