//! Header blocks out.

use super::table::Table;
use super::{write_integer, write_string};

/// The largest table that is used, whatever the peer allows, in bytes: the protocol's default.
const MOST_TABLE_BYTES: usize = 4096;

/// Writes the header blocks of one connection.
///
/// A block is whole bytes in the order of its fields: [`begin`](Self::begin), then [`field`](Self::field) for each. As
/// long as [`changes`](Self::changes) stays the same, a block written before can be sent again.
#[derive(Debug)]
pub struct Encoder {
    table: Table,
    /// The smallest size since the last block, if the size has changed: the peer is told both sizes.
    resized: Option<usize>,
    changes: u64,
}

impl Default for Encoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Encoder {
    /// An encoder with the initial table of every peer.
    pub fn new() -> Self {
        Self { table: Table::new(MOST_TABLE_BYTES), resized: None, changes: 0 }
    }

    /// Applies the peer's `SETTINGS_HEADER_TABLE_SIZE`, in bytes.
    pub fn limit_table(&mut self, bytes: usize) {
        let size = bytes.min(MOST_TABLE_BYTES);
        if size != self.table.most() {
            self.resized = Some(self.resized.map_or(size, |least| least.min(size)));
            self.table.resize(size);
            self.changes += 1;
        }
    }

    /// The number of changes of the table: while it stays the same, a block can be copied.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// A block begins.
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        if let Some(least) = self.resized.take() {
            self.changes += 1;
            if least < self.table.most() {
                write_integer(0x20, 5, least, out);
            }
            write_integer(0x20, 5, self.table.most(), out);
        }
    }

    /// Appends a field, whose name is in lower case. With `index` it enters the table and takes one byte the next time:
    /// for fields that come again.
    pub fn field(&mut self, name: &[u8], value: &[u8], index: bool, out: &mut Vec<u8>) {
        let (whole, named) = self.table.find(name, value);
        if let Some(place) = whole {
            return write_integer(0x80, 7, place, out);
        }
        let index = index && name.len() + value.len() + 32 <= self.table.most() / 2;
        let (first, bits) = if index { (0x40, 6) } else { (0, 4) };
        write_integer(first, bits, named.unwrap_or(0), out);
        if named.is_none() {
            write_string(0, 7, name, out);
        }
        write_string(0, 7, value, out);
        if index {
            self.table.insert(name, value);
            self.changes += 1;
        }
    }
}
