//! Header fields (HPACK, RFC 7541): all of the decoder, and an encoder for a few fields that seldom change.

mod decoder;
mod encoder;
mod huffman;
mod table;

pub use self::{decoder::Decoder, encoder::Encoder, table::names};

/// The most that a header list may have: names, values, and 32 bytes for each field (RFC 7541 §4.1). It is announced as
/// SETTINGS_MAX_HEADER_LIST_SIZE. A response of DNS over HTTPS has some hundred bytes.
pub const LIST_BYTES_MAX: usize = 16_384;

/// The size of the dynamic table (RFC 7541 §4.2): the default, which is never changed.
pub const TABLE_BYTES_MAX: usize = 4_096;

/// What a field takes in a table besides its name and its value (RFC 7541 §4.1).
const FIELD_BYTES: usize = 32;

/// A header block cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invalid;
