//! QPACK (RFC 9204) without a dynamic table: fields in few bytes, each section by itself.
//!
//! A decoder that offers no table of its own may be sent references to the static table, literals and Huffman's code, all of which
//! `brunt-http2` has but for the static table.

mod decoder;
mod encoder;
mod table;

pub use self::decoder::SectionDecoder;
pub use self::encoder::SectionEncoder;
