//! The fields of header blocks, and a memory of the blocks that came last.

use super::table::ENTRY_BYTES;

/// Limit on the fields of one block, as `SETTINGS_MAX_HEADER_LIST_SIZE` counts them: name, value and 32 bytes each.
pub const MOST_LIST_BYTES: usize = 64 * 1024;
/// Blocks of up to this size are remembered with their fields, in bytes.
const REMEMBERED_BYTES: usize = 1024;
/// How many blocks are remembered: heads and trailers may take turns.
pub const REMEMBERED: usize = 2;

/// The fields of a header block, in their order.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Fields {
    bytes: Vec<u8>,
    /// Where names and values end in `bytes`.
    ends: Vec<(u32, u32)>,
}

impl Fields {
    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut from = 0;
        self.ends.iter().map(move |(name, value)| {
            let begin = std::mem::replace(&mut from, *value as usize);
            let part = |from: usize, to: usize| self.bytes.get(from..to).unwrap_or(&[]);
            (part(begin, *name as usize), part(*name as usize, *value as usize))
        })
    }

    /// The value of the first field that is called `name`.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.iter().find(|(known, _)| *known == name.as_bytes()).map(|(_, value)| value)
    }

    /// Their number.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Appends a field. False if all of them would take more than [`MOST_LIST_BYTES`].
    pub fn add(&mut self, name: &[u8], value: &[u8]) -> bool {
        if self.size() + name.len() + value.len() + ENTRY_BYTES > MOST_LIST_BYTES {
            return false;
        }
        self.bytes.extend_from_slice(name);
        let end = self.bytes.len() as u32;
        self.bytes.extend_from_slice(value);
        self.ends.push((end, self.bytes.len() as u32));
        true
    }

    /// Their size, as the limit counts it.
    pub(super) fn size(&self) -> usize {
        self.bytes.len() + self.ends.len() * ENTRY_BYTES
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(16 * 1024);
        self.ends.clear();
    }
}

/// A block with its fields, which are valid as long as the table does not change.
#[derive(Debug, Default)]
struct Remembered {
    /// Empty if no block is remembered.
    block: Vec<u8>,
    fields: Fields,
}

/// A block that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadBlock {
    /// The index at which it is remembered, under [`REMEMBERED`].
    pub place: usize,
    /// Whether the fields at that index are the same as before.
    pub known: bool,
}

/// The last blocks with their fields. To read one again costs a comparison: servers send the same head again and again.
#[derive(Debug, Default)]
pub struct BlockMemory {
    remembered: [Remembered; REMEMBERED],
    /// The index of the one read last.
    last: usize,
}

impl BlockMemory {
    /// The fields of the block that was read last.
    pub fn fields(&self) -> &Fields {
        let [first, second] = &self.remembered;
        if self.last == 0 { &first.fields } else { &second.fields }
    }

    /// Recalls a block.
    #[inline]
    pub fn recall(&mut self, block: &[u8]) -> Option<ReadBlock> {
        let place = self.remembered.iter().position(|known| !known.block.is_empty() && known.block == block)?;
        self.last = place;
        Some(ReadBlock { place, known: true })
    }

    /// Forgets the older block, and returns empty fields for the one that is read next ([`Self::keep`]).
    pub fn begin(&mut self) -> Fields {
        self.last = (self.last + 1) % REMEMBERED;
        let Some(oldest) = self.remembered.get_mut(self.last) else { return Fields::default() };
        oldest.block.clear();
        let mut fields = std::mem::take(&mut oldest.fields);
        fields.clear();
        fields
    }

    /// Keeps the fields of the block that was read after [`Self::begin`]. With `again`, the block means the same the next time.
    pub fn keep(&mut self, block: &[u8], fields: Fields, again: bool) -> ReadBlock {
        if let Some(known) = self.remembered.get_mut(self.last) {
            known.fields = fields;
            if again && block.len() <= REMEMBERED_BYTES {
                known.block.extend_from_slice(block);
            }
        }
        ReadBlock { place: self.last, known: false }
    }

    /// Forgets all blocks, which mean something else from now on. The fields stay.
    pub fn forget(&mut self) {
        self.remembered.iter_mut().for_each(|known| known.block.clear());
    }
}
