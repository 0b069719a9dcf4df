//! Answers that wait until the peer of a connection reads.

use super::service::Next;
use crate::net::framing;

/// So many bytes of answers may wait. As nothing is read from a peer while anything waits for it, only delayed answers
/// and those to many queries at once come near.
pub const WAITING_BYTES_MAX: usize = 256 * 1024;

/// A connection keeps room for so many bytes of answers.
const KEPT_BYTES_MAX: usize = 4096;

/// Answers, each with its length before it.
#[derive(Default)]
pub struct Answers(Vec<u8>);

impl Answers {
    /// Adds an answer, which can still be changed; none if there is no room.
    pub fn put(&mut self, message: &[u8]) -> Option<&mut [u8]> {
        if self.0.len() + framing::PREFIX_BYTES + message.len() > WAITING_BYTES_MAX {
            return None;
        }
        let start = framing::append(&mut self.0, message);
        Some(&mut self.0[start..])
    }

    /// Moves as many bytes as there is room for to `space`; says how many, and what comes next where so many
    /// answers are `delayed`.
    pub fn take(&mut self, space: &mut [u8], delayed: u32) -> (usize, Next) {
        let length = self.0.len().min(space.len());
        space[..length].copy_from_slice(&self.0[..length]);
        self.0.drain(..length);
        self.0.shrink_to(KEPT_BYTES_MAX);
        let next = match (self.0.is_empty(), delayed) {
            (false, _) => Next::More,
            (true, 0) => Next::Nothing,
            (true, _) => Next::Later,
        };
        (length, next)
    }
}
