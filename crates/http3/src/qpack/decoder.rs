//! Field sections in.

use brunt_http2::Fields;
use brunt_http2::hpack::{BlockMemory, NotAString, ReadBlock, take_integer, take_string};

use super::table::STATIC;

const CUT: &str = "QPACK: a field section that is cut short, or an integer beyond 2^28";
const DYNAMIC: &str = "QPACK: a reference to the dynamic table, which was not offered";
const NO_ENTRY: &str = "QPACK: an index beyond the static table";
const NOT_HUFFMAN: &str = "QPACK: a string that is not in Huffman's code";
const TOO_LONG: &str = "QPACK: header fields of more than 64 KiB";

/// Reads the field sections of one connection. Each stands by itself, so one that comes again costs a comparison.
#[derive(Debug, Default)]
pub struct SectionDecoder {
    memory: BlockMemory,
    name: Vec<u8>,
    value: Vec<u8>,
}

impl SectionDecoder {
    /// The fields of the section that was read last.
    pub fn fields(&self) -> &Fields {
        self.memory.fields()
    }

    /// Reads a whole section (RFC 9204, section 4.5).
    ///
    /// # Errors
    /// Says what is wrong with it: the connection ends with `QPACK_DECOMPRESSION_FAILED`.
    #[inline]
    pub fn read(&mut self, section: &[u8]) -> Result<ReadBlock, &'static str> {
        match self.memory.recall(section) {
            Some(known) => Ok(known),
            None => self.read_anew(section),
        }
    }

    #[cold]
    fn read_anew(&mut self, section: &[u8]) -> Result<ReadBlock, &'static str> {
        let mut fields = self.memory.begin();
        let outcome = self.read_into(section, &mut fields);
        let read = self.memory.keep(section, fields, outcome.is_ok());
        outcome.map(|()| read)
    }

    fn read_into(&mut self, section: &[u8], fields: &mut Fields) -> Result<(), &'static str> {
        let mut rest = section;
        let required = take_integer(&mut rest, 8).ok_or(CUT)?;
        if required != 0 {
            return Err("QPACK: a Required Insert Count, although no dynamic table was offered");
        }
        let is_negative = rest.first().is_some_and(|first| first & 0x80 != 0);
        take_integer(&mut rest, 7).ok_or(CUT)?;
        if is_negative {
            return Err("QPACK: a Base below 0");
        }
        while let Some(first) = rest.first() {
            match first {
                // An indexed field: of the static table.
                0xc0.. => {
                    let (name, value) = entry(take_integer(&mut rest, 6))?;
                    add(fields, name.as_bytes(), value.as_bytes())?;
                }
                // A literal whose name is in the static table.
                0x50..=0x5f | 0x70..=0x7f => {
                    let (name, _) = entry(take_integer(&mut rest, 4))?;
                    self.value.clear();
                    take_string(&mut rest, 7, &mut self.value).map_err(in_qpack)?;
                    add(fields, name.as_bytes(), &self.value)?;
                }
                // A literal with its name.
                0x20..=0x3f => {
                    self.name.clear();
                    take_string(&mut rest, 3, &mut self.name).map_err(in_qpack)?;
                    self.value.clear();
                    take_string(&mut rest, 7, &mut self.value).map_err(in_qpack)?;
                    add(fields, &self.name, &self.value)?;
                }
                _ => return Err(DYNAMIC),
            }
        }
        Ok(())
    }
}

fn entry(index: Option<usize>) -> Result<(&'static str, &'static str), &'static str> {
    STATIC.get(index.ok_or(CUT)?).copied().ok_or(NO_ENTRY)
}

fn add(fields: &mut Fields, name: &[u8], value: &[u8]) -> Result<(), &'static str> {
    if fields.add(name, value) { Ok(()) } else { Err(TOO_LONG) }
}

fn in_qpack(wrong: NotAString) -> &'static str {
    match wrong {
        NotAString::Cut => CUT,
        NotAString::NotHuffman => NOT_HUFFMAN,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::SectionEncoder;
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<_> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
        digits.chunks(2).map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap()).collect()
    }

    fn lines(decoder: &SectionDecoder) -> Vec<String> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        decoder.fields().iter().map(|(name, value)| format!("{}={}", text(name), text(value))).collect()
    }

    #[test]
    fn the_example_of_the_rfc() {
        // RFC 9204, appendix B.1.
        let mut decoder = SectionDecoder::default();
        decoder.read(&hex("0000 510b 2f69 6e64 6578 2e68 746d 6c")).unwrap();
        assert_eq!(lines(&decoder), [":path=/index.html"]);
    }

    #[test]
    fn what_cannot_be_is_named() {
        for (section, reason) in [
            ("", CUT),
            ("00", CUT),
            // RFC 9204, appendix B.2 and B.3: references to a table that was not offered.
            ("0381 10 11", "QPACK: a Required Insert Count, although no dynamic table was offered"),
            ("0080", "QPACK: a Base below 0"),
            ("0000 80", DYNAMIC),
            ("0000 10", DYNAMIC),
            ("0000 40 00", DYNAMIC),
            ("0000 00 00", DYNAMIC),
            ("0000 ff24", NO_ENTRY),
            ("0000 ff", CUT),
            ("0000 51", CUT),
            ("0000 5105", CUT),
            ("0000 2361", CUT),
            ("0000 5185ffffffffff", NOT_HUFFMAN),
            ("0000 ffffffffff7f", CUT),
        ] {
            let mut decoder = SectionDecoder::default();
            assert_eq!(decoder.read(&hex(section)), Err(reason), "{section}");
            // It means the same the next time.
            assert_eq!(decoder.read(&hex(section)), Err(reason), "{section}");
        }
    }

    #[test]
    fn a_bomb_is_an_error() {
        // The longest entry of the static table, again and again.
        let mut section = vec![0, 0];
        section.extend([0xff, 85 - 63].repeat(10_000));
        assert_eq!(SectionDecoder::default().read(&section), Err(TOO_LONG));
    }

    #[test]
    fn a_section_that_comes_again_is_known() {
        let mut decoder = SectionDecoder::default();
        let (one, two) = (hex("0000 d9"), hex("0000 dc"));
        let mut known = Vec::new();
        for section in [&one, &one, &two, &one, &two, &hex("0000 c1"), &one] {
            known.push(decoder.read(section).unwrap().known);
        }
        assert_eq!(known, [false, true, false, true, true, false, false]);
        assert_eq!(lines(&decoder), [":status=200"]);
    }

    #[test]
    fn every_entry_of_the_table_is_one_or_two_bytes() {
        for (name, value) in STATIC {
            let mut section = Vec::new();
            SectionEncoder.begin(&mut section);
            SectionEncoder.field(name.as_bytes(), value.as_bytes(), &mut section);
            assert!(section.len() <= 4, "{name}: {value}");
            let mut decoder = SectionDecoder::default();
            decoder.read(&section).unwrap();
            assert_eq!(lines(&decoder), [format!("{name}={value}")]);
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            fields in prop::collection::vec(("(:path|age|x-[a-z]{0,30}|server|cookie)", prop::collection::vec(any::<u8>(), 0..200)), 0..20),
        ) {
            let mut section = Vec::new();
            SectionEncoder.begin(&mut section);
            for (name, value) in &fields {
                SectionEncoder.field(name.as_bytes(), value, &mut section);
            }
            let mut decoder = SectionDecoder::default();
            decoder.read(&section).unwrap();
            let read: Vec<_> =
                decoder.fields().iter().map(|(name, value)| (String::from_utf8_lossy(name).into_owned(), value.to_vec())).collect();
            prop_assert_eq!(read, fields);
        }

        #[test]
        fn no_bytes_reach_a_panic(section in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = SectionDecoder::default().read(&section);
            let _ = SectionDecoder::default().read(&[&[0, 0], section.as_slice()].concat());
        }
    }
}
