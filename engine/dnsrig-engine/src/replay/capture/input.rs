//! The bytes of a capture, from a file or a pipe, in a buffer of bounded size.

use std::io::{self, Read};

/// Bytes are read in pieces of so many.
const READ_BYTES: usize = 1 << 18;

/// So many bytes can be looked at together: more than the longest packet or block that is believed.
pub const LOOK_BYTES_MAX: usize = 1 << 24;

/// Bytes that are read once, from front to back.
pub struct Input {
    source: Box<dyn Read>,
    buffer: Vec<u8>,
    at: usize,
    filled: usize,
    /// How many bytes have been passed over.
    offset: u64,
}

impl Input {
    pub fn new(source: impl Read + 'static) -> Self {
        Input { source: Box::new(source), buffer: vec![0; READ_BYTES], at: 0, filled: 0, offset: 0 }
    }

    /// How many bytes have been passed over.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The next `bytes` bytes, without passing over them; fewer at the end of the file.
    #[inline]
    pub fn look(&mut self, bytes: usize) -> io::Result<&[u8]> {
        if self.filled - self.at < bytes {
            self.fill(bytes)?;
        }
        let end = self.filled.min(self.at + bytes);
        Ok(&self.buffer[self.at..end])
    }

    /// Passes over bytes that were looked at.
    #[inline]
    pub fn pass(&mut self, bytes: usize) {
        assert!(bytes <= self.filled - self.at, "only what was looked at can be passed over");
        self.at += bytes;
        self.offset += bytes as u64;
    }

    #[cold]
    fn fill(&mut self, bytes: usize) -> io::Result<()> {
        assert!(bytes <= LOOK_BYTES_MAX, "the caller checks lengths that it read");
        self.buffer.copy_within(self.at..self.filled, 0);
        (self.at, self.filled) = (0, self.filled - self.at);
        // A length may be wrong: room is made as the bytes come, not as they are announced.
        while self.filled < bytes {
            if self.filled == self.buffer.len() {
                self.buffer.resize(self.buffer.len() * 2, 0);
            }
            match self.source.read(&mut self.buffer[self.filled..]) {
                Ok(0) => break,
                Ok(read) => self.filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
