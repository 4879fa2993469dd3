//! Header blocks in.

use super::fields::{BlockMemory, Fields, ReadBlock};
use super::table::Table;
use super::{NotAString, take_integer, take_string};

/// Reads the header blocks of one connection.
///
/// A block that does not change the table has the same fields when it comes again, so the last blocks are remembered.
#[derive(Debug)]
pub struct Decoder {
    table: Table,
    /// The largest table that the peer may use.
    limit: usize,
    memory: BlockMemory,
    /// Memory for a string in Huffman's code.
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Decoder {
    /// A decoder for a peer that was told this `SETTINGS_HEADER_TABLE_SIZE`, in bytes.
    pub fn new(limit: usize) -> Self {
        Self { table: Table::new(limit), limit, memory: BlockMemory::default(), name: Vec::new(), value: Vec::new() }
    }

    /// The fields of the block that was read last.
    pub fn fields(&self) -> &Fields {
        self.memory.fields()
    }

    /// Reads a whole block.
    ///
    /// # Errors
    /// Says what is wrong with it. The connection cannot be used after that, since the tables differ.
    #[inline]
    pub fn read(&mut self, block: &[u8]) -> Result<ReadBlock, &'static str> {
        match self.memory.recall(block) {
            Some(known) => Ok(known),
            None => self.read_anew(block),
        }
    }

    #[cold]
    fn read_anew(&mut self, block: &[u8]) -> Result<ReadBlock, &'static str> {
        let mut fields = self.memory.begin();
        let outcome = self.read_into(block, &mut fields);
        let changed = outcome.unwrap_or(true);
        if changed {
            self.memory.forget();
        }
        let read = self.memory.keep(block, fields, !changed);
        outcome.map(|_| read)
    }

    /// Reads a block. Returns whether it changed the table.
    fn read_into(&mut self, block: &[u8], fields: &mut Fields) -> Result<bool, &'static str> {
        let mut changed = false;
        let mut rest = block;
        while let Some(first) = rest.first() {
            match first {
                0x80.. => {
                    let index = take_integer(&mut rest, 7).ok_or(CUT)?;
                    let (name, value) = self.table.get(index).ok_or(NO_ENTRY)?;
                    add(fields, name, value)?;
                }
                0x40..=0x7f => {
                    self.take_literal(&mut rest, 6)?;
                    add(fields, &self.name, &self.value)?;
                    self.table.insert(&self.name, &self.value);
                    changed = true;
                }
                0x20..=0x3f => {
                    if !fields.is_empty() {
                        return Err("HPACK: a table size behind the first field");
                    }
                    let size = take_integer(&mut rest, 5).ok_or(CUT)?;
                    if size > self.limit {
                        return Err("HPACK: a larger table than was allowed");
                    }
                    self.table.resize(size);
                    changed = true;
                }
                _ => {
                    self.take_literal(&mut rest, 4)?;
                    add(fields, &self.name, &self.value)?;
                }
            }
        }
        Ok(changed)
    }

    /// Takes a literal whose name's index has a prefix of `bits` bits.
    fn take_literal(&mut self, rest: &mut &[u8], bits: u32) -> Result<(), &'static str> {
        let index = take_integer(rest, bits).ok_or(CUT)?;
        self.name.clear();
        if index == 0 {
            take_string(rest, 7, &mut self.name).map_err(in_hpack)?;
        } else {
            let (name, _) = self.table.get(index).ok_or(NO_ENTRY)?;
            self.name.extend_from_slice(name);
        }
        self.value.clear();
        take_string(rest, 7, &mut self.value).map_err(in_hpack)
    }
}

const CUT: &str = "HPACK: a header block that is cut short, or an integer beyond 2^28";
const NO_ENTRY: &str = "HPACK: an index without an entry";

fn in_hpack(wrong: NotAString) -> &'static str {
    match wrong {
        NotAString::Cut => CUT,
        NotAString::NotHuffman => "HPACK: a string that is not in Huffman's code",
    }
}

fn add(fields: &mut Fields, name: &[u8], value: &[u8]) -> Result<(), &'static str> {
    if fields.add(name, value) { Ok(()) } else { Err("HPACK: header fields of more than 64 KiB") }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Encoder;
    use super::*;

    type Owned = Vec<(Vec<u8>, Vec<u8>)>;

    fn owned(fields: &Fields) -> Owned {
        fields.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect()
    }

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<_> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        digits.chunks(2).map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap()).collect()
    }

    #[test]
    fn the_responses_of_the_rfc() {
        // RFC 7541, appendix C.6: with Huffman's code and a table of 256 bytes, from which entries leave.
        let mut decoder = Decoder::new(256);
        for (block, expected) in [
            (
                "488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97c8e9ae82ae43d3",
                ":status 302,cache-control private,date Mon, 21 Oct 2013 20:13:21 GMT,location https://www.example.com",
            ),
            (
                "4883640effc1c0bf",
                ":status 307,cache-control private,date Mon, 21 Oct 2013 20:13:21 GMT,location https://www.example.com",
            ),
        ] {
            decoder.read(&hex(block)).unwrap();
            let read: Vec<_> = owned(decoder.fields())
                .iter()
                .map(|(name, value)| format!("{} {}", String::from_utf8_lossy(name), String::from_utf8_lossy(value)))
                .collect();
            assert_eq!(read.join(","), expected);
        }
        assert_eq!(decoder.table.len(), 4);
    }

    #[test]
    fn what_breaks_the_grammar_is_named() {
        for (block, reason) in [
            ("80", NO_ENTRY),
            ("c8", NO_ENTRY),
            ("ffffffffffff7f", CUT),
            ("40", CUT),
            ("4003616263", CUT),
            ("823f e11f", "HPACK: a table size behind the first field"),
            ("3f e2 1f", "HPACK: a larger table than was allowed"),
            ("0085ffffffffff00", "HPACK: a string that is not in Huffman's code"),
        ] {
            assert_eq!(Decoder::new(4096).read(&hex(block)), Err(reason), "{block}");
        }
    }

    #[test]
    fn a_bomb_is_an_error() {
        // An entry of 4 KiB, then one byte each to name it again.
        let mut block = vec![0x40, 1, b'a', 0x7f];
        block.extend([0x80 | (3900_u16 - 127) as u8, ((3900_u16 - 127) >> 7) as u8]);
        block.extend([b'x'; 3900]);
        block.extend([0xbe; 1000]);
        assert_eq!(Decoder::new(4096).read(&block), Err("HPACK: header fields of more than 64 KiB"));
    }

    #[test]
    fn a_block_that_comes_again_means_the_same_only_while_the_table_is_the_same() {
        let mut decoder = Decoder::new(4096);
        let mut read = |block: &str| {
            let known = decoder.read(&hex(block)).unwrap().known;
            let values: Vec<_> = decoder.fields().iter().map(|(_, value)| value.to_vec()).collect();
            (known, values.concat())
        };
        assert_eq!(read("40 01 61 01 31"), (false, b"1".to_vec()));
        assert_eq!(read("be"), (false, b"1".to_vec()));
        assert_eq!(read("be"), (true, b"1".to_vec()));
        assert_eq!(read("40 01 61 01 32"), (false, b"2".to_vec()));
        assert_eq!(read("be"), (false, b"2".to_vec()));
        assert_eq!(read("bf"), (false, b"1".to_vec()));
        // Heads and trailers in turn are both remembered.
        assert_eq!(read("be"), (true, b"2".to_vec()));
        assert_eq!(read("bf"), (true, b"1".to_vec()));
    }

    fn lists() -> impl Strategy<Value = Vec<Owned>> {
        let name = prop::sample::select(vec![":status", ":path", "date", "x-a", "x-b", "set-cookie", "server"]);
        let value =
            prop::sample::select(vec!["200", "/", "Mon, 21 Oct 2013", "", "ä", "0123456789 0123456789 01234567"]);
        let field = (name, value).prop_map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()));
        prop::collection::vec(prop::collection::vec(field, 1..8), 1..12)
    }

    proptest! {
        #[test]
        fn what_we_write_is_read_back_here_and_by_others(lists in lists(), size in 0..300_usize) {
            let mut encoder = Encoder::new();
            encoder.limit_table(size);
            let mut decoder = Decoder::new(4096);
            let mut other = loona_hpack::Decoder::new();
            for list in &lists {
                let mut block = Vec::new();
                encoder.begin(&mut block);
                for (at, (name, value)) in list.iter().enumerate() {
                    encoder.field(name, value, at % 3 != 2, &mut block);
                }
                decoder.read(&block).unwrap();
                prop_assert_eq!(&owned(decoder.fields()), list);
                prop_assert_eq!(&other.decode(&block).unwrap(), list);
            }
        }

        #[test]
        fn what_others_write_is_read(lists in lists()) {
            let mut other = loona_hpack::Encoder::new();
            let mut decoder = Decoder::new(4096);
            for list in &lists {
                let block = other.encode(list.iter().map(|(name, value)| (name.as_slice(), value.as_slice())));
                decoder.read(&block).unwrap();
                prop_assert_eq!(&owned(decoder.fields()), list);
                // Again: it may be remembered now, or mean something else.
                let again = other.encode(list.iter().map(|(name, value)| (name.as_slice(), value.as_slice())));
                decoder.read(&again).unwrap();
                prop_assert_eq!(&owned(decoder.fields()), list);
            }
        }

        #[test]
        fn no_bytes_make_it_panic(blocks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 1..5)) {
            let mut decoder = Decoder::new(4096);
            for block in blocks {
                let _ = decoder.read(&block);
                prop_assert!(decoder.fields().size() <= super::super::MOST_LIST_BYTES);
            }
        }
    }
}
