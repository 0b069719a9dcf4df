//! A name in wire format that is put together.

use std::ops::Deref;

use crate::dns::name::NAME_BYTES_MAX;

#[derive(Clone, Copy)]
pub struct Wire {
    bytes: [u8; NAME_BYTES_MAX],
    length: usize,
}

impl Wire {
    /// Of parts that follow each other; together they are no longer than a name may be.
    pub fn of(parts: &[&[u8]]) -> Self {
        let mut wire = Wire { bytes: [0; NAME_BYTES_MAX], length: 0 };
        for part in parts {
            let end = wire.length + part.len();
            wire.bytes[wire.length..end].copy_from_slice(part);
            wire.length = end;
        }
        wire
    }
}

impl Deref for Wire {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}
