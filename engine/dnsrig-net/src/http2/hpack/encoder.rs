//! Writes header blocks of fields that are mostly the same in every block.

use super::{FIELD_BYTES, TABLE_BYTES_MAX, table::STATIC};

/// Encodes the header blocks of one connection. Names are indices of the static table, and strings are not compressed:
/// fields that stay the same are sent once, and then are one byte each.
pub struct Encoder {
    /// The dynamic table, oldest first. Nothing is ever evicted: a field that has no room is not kept.
    fields: Vec<(u8, Box<[u8]>)>,
    bytes: usize,
    bytes_max: usize,
    /// The other side has made its table smaller, and the next block has to begin with the new size (RFC 7541 §4.2).
    is_resized: bool,
}

impl Default for Encoder {
    fn default() -> Self {
        Encoder { fields: Vec::new(), bytes: 0, bytes_max: TABLE_BYTES_MAX, is_resized: false }
    }
}

impl Encoder {
    /// Takes in the size of the table that the other side permits.
    pub fn permit(&mut self, bytes_max: u32) {
        let bytes_max = bytes_max as usize;
        if bytes_max < self.bytes_max {
            (self.bytes_max, self.bytes, self.is_resized) = (bytes_max, 0, true);
            self.fields.clear();
        }
    }

    /// Begins a block.
    pub fn begin(&mut self, block: &mut Vec<u8>) {
        if std::mem::take(&mut self.is_resized) {
            // Emptied first, so that both sides begin anew.
            integer(block, 0x20, 5, 0);
            integer(block, 0x20, 5, self.bytes_max);
        }
    }

    /// Appends a field of the static table.
    pub fn indexed(block: &mut Vec<u8>, index: u8) {
        block.push(0x80 | index);
    }

    /// Appends a field that later blocks have as well.
    pub fn kept(&mut self, block: &mut Vec<u8>, name: u8, value: &[u8]) {
        let is_same = |(kept, of_kept): &(u8, Box<[u8]>)| *kept == name && **of_kept == *value;
        if let Some(place) = self.fields.iter().position(is_same) {
            return integer(block, 0x80, 7, STATIC.len() + self.fields.len() - place);
        }
        let bytes = STATIC[usize::from(name) - 1].0.len() + value.len() + FIELD_BYTES;
        if self.bytes + bytes > self.bytes_max {
            return Encoder::plain(block, name, value);
        }
        self.bytes += bytes;
        self.fields.push((name, value.into()));
        integer(block, 0x40, 6, usize::from(name));
        string(block, value);
    }

    /// Appends a field that is different in each block.
    pub fn plain(block: &mut Vec<u8>, name: u8, value: &[u8]) {
        integer(block, 0x00, 4, usize::from(name));
        string(block, value);
    }
}

fn string(block: &mut Vec<u8>, value: &[u8]) {
    integer(block, 0x00, 7, value.len());
    block.extend_from_slice(value);
}

/// Appends an integer whose first byte has the lowest `bits`, below `flags` (RFC 7541 §5.1).
pub(super) fn integer(block: &mut Vec<u8>, flags: u8, bits: u32, number: usize) {
    let mask = (1_usize << bits) - 1;
    if number < mask {
        return block.push(flags | number as u8);
    }
    block.push(flags | mask as u8);
    let mut rest = number - mask;
    while rest >= 0x80 {
        block.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    block.push(rest as u8);
}
