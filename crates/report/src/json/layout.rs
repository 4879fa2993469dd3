//! The layout of a document: its first levels have one field a line, deeper levels are one line each, so that people
//! can read it and `grep` finds whole points of the series.

use std::io::{self, Write};

use serde_json::ser::Formatter;

/// How many levels are spread over lines.
const SPREAD: usize = 2;

/// The number of array levels with spaces: the values of histograms, most of a document, are deeper.
const SPACED: usize = 3;

/// See the module's text.
#[derive(Default)]
pub(crate) struct Layout {
    depth: usize,
    has_value: bool,
}

impl Layout {
    fn open<W: ?Sized + Write>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth += 1;
        self.has_value = false;
        out.write_all(bracket)
    }

    fn close<W: ?Sized + Write>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        if self.has_value && self.depth <= SPREAD {
            self.depth -= 1;
            self.new_line(out)?;
        } else {
            self.depth -= 1;
        }
        self.has_value = true;
        out.write_all(bracket)
    }

    fn separate<W: ?Sized + Write>(&self, out: &mut W, first: bool, spaced: bool) -> io::Result<()> {
        if !first {
            out.write_all(b",")?;
        }
        if self.depth <= SPREAD {
            return self.new_line(out);
        }
        if first || !spaced { Ok(()) } else { out.write_all(b" ") }
    }

    fn new_line<W: ?Sized + Write>(&self, out: &mut W) -> io::Result<()> {
        out.write_all(b"\n")?;
        (0..self.depth).try_for_each(|_| out.write_all(b"  "))
    }
}

impl Formatter for Layout {
    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.open(out, b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.close(out, b"]")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.separate(out, first, self.depth <= SPACED)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_value = true;
        Ok(())
    }

    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.open(out, b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.close(out, b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.separate(out, first, true)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_value = true;
        Ok(())
    }
}
