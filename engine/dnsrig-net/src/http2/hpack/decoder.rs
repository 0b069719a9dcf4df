//! Reads header blocks, whatever is in them.

use std::collections::VecDeque;

use super::{FIELD_BYTES, Invalid, LIST_BYTES_MAX, TABLE_BYTES_MAX, huffman, table::STATIC};

struct Field {
    name: Box<[u8]>,
    value: Box<[u8]>,
}

impl Field {
    fn bytes(&self) -> usize {
        self.name.len() + self.value.len() + FIELD_BYTES
    }
}

/// Decodes the header blocks of one connection.
pub struct Decoder {
    /// The dynamic table, newest first.
    fields: VecDeque<Field>,
    bytes: usize,
    bytes_max: usize,
    // Literal strings, while they are decoded.
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Default for Decoder {
    fn default() -> Self {
        Decoder { fields: VecDeque::new(), bytes: 0, bytes_max: TABLE_BYTES_MAX, name: Vec::new(), value: Vec::new() }
    }
}

impl Decoder {
    /// Calls `each` with the name and the value of every field of a header block. After a failure the connection
    /// cannot go on, because the table may lack fields.
    pub fn decode(&mut self, block: &[u8], mut each: impl FnMut(&[u8], &[u8])) -> Result<(), Invalid> {
        let (mut input, mut has_fields, mut list_bytes) = (Input(block), false, 0);
        while let Some(first) = input.0.first().copied() {
            if first & 0xe0 == 0x20 {
                // Only at the beginning (RFC 7541 §4.2).
                if has_fields {
                    return Err(Invalid);
                }
                self.resize(input.integer(5)?)?;
                continue;
            }
            has_fields = true;
            list_bytes += self.field(&mut input, first, &mut each)?;
            if list_bytes > LIST_BYTES_MAX {
                return Err(Invalid);
            }
        }
        Ok(())
    }

    /// Decodes a field. Returns its size.
    fn field(
        &mut self,
        input: &mut Input<'_>,
        first: u8,
        each: &mut impl FnMut(&[u8], &[u8]),
    ) -> Result<usize, Invalid> {
        if first & 0x80 != 0 {
            let (name, value) = self.at(input.integer(7)?)?;
            each(name, value);
            return Ok(name.len() + value.len() + FIELD_BYTES);
        }
        let is_kept = first & 0x40 != 0;
        let index = input.integer(if is_kept { 6 } else { 4 })?;
        let mut name = std::mem::take(&mut self.name);
        name.clear();
        if index == 0 {
            input.string(&mut name)?;
        } else {
            name.extend_from_slice(self.at(index)?.0);
        }
        self.value.clear();
        input.string(&mut self.value)?;
        each(&name, &self.value);
        let bytes = name.len() + self.value.len() + FIELD_BYTES;
        if is_kept {
            self.keep(Field { name: name.as_slice().into(), value: self.value.as_slice().into() });
        }
        self.name = name;
        Ok(bytes)
    }

    /// The field with an index in both tables (RFC 7541 §2.3.3).
    fn at(&self, index: usize) -> Result<(&[u8], &[u8]), Invalid> {
        let place = index.checked_sub(1).ok_or(Invalid)?;
        if let Some((name, value)) = STATIC.get(place) {
            return Ok((name.as_bytes(), value.as_bytes()));
        }
        let field = self.fields.get(place - STATIC.len()).ok_or(Invalid)?;
        Ok((&field.name, &field.value))
    }

    fn resize(&mut self, bytes_max: usize) -> Result<(), Invalid> {
        if bytes_max > TABLE_BYTES_MAX {
            return Err(Invalid);
        }
        self.bytes_max = bytes_max;
        self.evict(bytes_max);
        Ok(())
    }

    /// Keeps a field. A field that is longer than the table empties it (RFC 7541 §4.4).
    fn keep(&mut self, field: Field) {
        let bytes = field.bytes();
        self.evict(self.bytes_max.saturating_sub(bytes));
        if bytes <= self.bytes_max {
            self.bytes += bytes;
            self.fields.push_front(field);
        }
    }

    fn evict(&mut self, bytes_max: usize) {
        while self.bytes > bytes_max
            && let Some(oldest) = self.fields.pop_back()
        {
            self.bytes -= oldest.bytes();
        }
    }
}

/// The rest of a header block.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    /// Takes an integer of which the first byte has the lowest `bits` (RFC 7541 §5.1).
    fn integer(&mut self, bits: u32) -> Result<usize, Invalid> {
        let mask = (1_usize << bits) - 1;
        let mut number = usize::from(self.byte()?) & mask;
        if number < mask {
            return Ok(number);
        }
        // No number that is of use has more than three further bytes.
        for shift in [0, 7, 14] {
            let byte = usize::from(self.byte()?);
            number += (byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(Invalid)
    }

    /// Takes a string, and appends it (RFC 7541 §5.2).
    fn string(&mut self, to: &mut Vec<u8>) -> Result<(), Invalid> {
        let is_huffman = self.0.first().ok_or(Invalid)? & 0x80 != 0;
        let length = self.integer(7)?;
        let (string, rest) = self.0.split_at_checked(length).ok_or(Invalid)?;
        self.0 = rest;
        if is_huffman {
            return huffman::decode(string, to);
        }
        to.extend_from_slice(string);
        Ok(())
    }

    fn byte(&mut self) -> Result<u8, Invalid> {
        let (first, rest) = self.0.split_first().ok_or(Invalid)?;
        self.0 = rest;
        Ok(*first)
    }
}

#[cfg(test)]
#[path = "decoder_tests.rs"]
mod tests;
