//! SOA records, as far as a transfer compares them.

use domain::base::Rtype;

use crate::dns::{
    name::{self, Wrong},
    record::Record,
};

/// What a transfer needs of an SOA record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Soa {
    pub serial: u32,
    /// Stands for all of its data, names in lower case. Two SOA records with the same one are taken for equal: by
    /// chance that happens to one pair in 2^64.
    pub fingerprint: u64,
}

impl Soa {
    /// Reads the data of an SOA record (RFC 1035 §3.3.13); `None` if it is another.
    pub fn read(record: &Record<'_>) -> Result<Option<Self>, Wrong> {
        if record.rtype != Rtype::SOA {
            return Ok(None);
        }
        let mut fingerprint = 0;
        let mut each = |label: &[u8]| fingerprint = fold_label(fingerprint, label);
        let (message, data) = record.context();
        let mailbox = name::labels(message, data, &mut each)?;
        each(&[]);
        let numbers = name::labels(message, mailbox, &mut each)?;
        each(&[]);
        let numbers: &[u8; 20] = message[numbers..].try_into().map_err(|_| Wrong::Form)?;
        for number in numbers.chunks_exact(4) {
            fingerprint = fold(fingerprint, u64::from(u32::from_be_bytes(number.try_into().expect("four bytes"))));
        }
        let serial = u32::from_be_bytes(*numbers.first_chunk().expect("20 bytes are there"));
        Ok(Some(Soa { serial, fingerprint }))
    }
}

/// Adds eight bytes to a fingerprint: multiplication by an odd constant (the golden ratio) and a rotation spread them.
#[inline(always)]
fn fold(fingerprint: u64, word: u64) -> u64 {
    (fingerprint.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Adds a label and its length.
fn fold_label(fingerprint: u64, label: &[u8]) -> u64 {
    let mut fingerprint = fold(fingerprint, label.len() as u64);
    let (words, rest) = label.as_chunks();
    for word in words {
        fingerprint = fold(fingerprint, u64::from_le_bytes(word.map(|byte| byte.to_ascii_lowercase())));
    }
    let rest = rest.iter().fold(0, |word, byte| word << 8 | u64::from(byte.to_ascii_lowercase()));
    fold(fingerprint, rest)
}

#[cfg(test)]
#[path = "soa_tests.rs"]
mod tests;
