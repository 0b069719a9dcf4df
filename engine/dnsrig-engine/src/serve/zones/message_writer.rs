//! Writes bytes into room that is there: no allocation on the way out.

/// A place in a buffer, behind what was written.
pub struct MessageWriter<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl<'a> MessageWriter<'a> {
    /// Writes into `bytes` from `at` on.
    pub fn new(bytes: &'a mut [u8], at: usize) -> Self {
        MessageWriter { bytes, at }
    }

    /// Where the next byte goes.
    #[inline]
    pub fn at(&self) -> usize {
        self.at
    }

    /// Takes back all that was written from `at` on.
    #[inline]
    pub fn return_to(&mut self, at: usize) {
        self.at = at;
    }

    /// What was written, the bytes before the first place included.
    pub fn written(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.at]
    }

    /// Writes `bytes`.
    ///
    /// # Panics
    ///
    /// If there is no room: who writes a message sees to it that the largest one fits.
    #[inline]
    pub fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }

    /// Room for a whole block, of which only the first `length` bytes count: quicker than a length that varies.
    ///
    /// # Panics
    ///
    /// Like [`MessageWriter::put`], if there is no room for the whole block.
    #[inline]
    pub fn block<const N: usize>(&mut self, length: usize) -> &mut [u8; N] {
        let block = self.bytes[self.at..].first_chunk_mut().expect("room for the block");
        self.at += length;
        block
    }

    /// Has `append` write behind what was written from `start` on. It gets all the room from there, and the length of
    /// what was written; it gives the new length.
    pub fn extend(&mut self, start: usize, append: impl FnOnce(&mut [u8], usize) -> usize) {
        self.at = start + append(&mut self.bytes[start..], self.at - start);
    }

    /// Writes a number, the most significant byte first.
    #[inline]
    pub fn put_u16(&mut self, number: u16) {
        self.put(&number.to_be_bytes());
    }

    /// Writes a number, the most significant byte first.
    #[inline]
    pub fn put_u32(&mut self, number: u32) {
        self.put(&number.to_be_bytes());
    }

    /// Overwrites two bytes at `at`.
    #[inline]
    pub fn set_u16(&mut self, at: usize, number: u16) {
        self.bytes[at..at + 2].copy_from_slice(&number.to_be_bytes());
    }
}
