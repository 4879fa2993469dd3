//! Field sections out.

use brunt_http2::hpack::{write_integer, write_string};

use super::table;

/// Writes field sections. Each stands by itself: [`begin`](Self::begin), then [`field`](Self::field) for each field.
#[derive(Debug, Clone, Copy, Default)]
pub struct SectionEncoder;

impl SectionEncoder {
    /// A section begins: its prefix says that it uses no dynamic table (RFC 9204, section 4.5.1).
    pub fn begin(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[0, 0]);
    }

    /// Appends a field, whose name is in lower case (RFC 9204, sections 4.5.2, 4.5.4 and 4.5.6).
    pub fn field(self, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        match table::find(name, value) {
            (Some(place), _) => write_integer(0xc0, 6, place, out),
            (None, Some(place)) => {
                write_integer(0x50, 4, place, out);
                write_string(0, 7, value, out);
            }
            (None, None) => {
                write_string(0x20, 3, name, out);
                write_string(0, 7, value, out);
            }
        }
    }
}
