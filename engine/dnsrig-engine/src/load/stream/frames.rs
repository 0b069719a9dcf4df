//! The beginnings of messages on a stream: as much of each as an answer is checked by. No socket.

use crate::{
    load::answer::CHECKED_OCTETS_MAX,
    net::{cut::Framer, framing::PREFIX_OCTETS},
};

/// Of a message that comes in pieces so much is kept, with its length: more is not looked at.
const KEPT_OCTETS_MAX: usize = PREFIX_OCTETS + CHECKED_OCTETS_MAX;

/// The incoming side of a stream.
///
/// Messages that lie whole in what was read are given on from there; only the beginning of one that does not is copied,
/// and of that no more than an answer is checked by. A message's length has 16 bits, so what is skipped is bounded too.
#[derive(Default)]
pub struct Frames {
    /// Length and beginning of an unfinished message.
    kept: Vec<u8>,
    /// How much of it has come.
    seen: usize,
}

/// A message is what there is of it, and its length.
impl Framer for Frames {
    type Message<'a> = (&'a [u8], usize);

    fn push(&mut self, mut octets: &[u8], mut each: impl FnMut((&[u8], usize))) {
        while self.seen > 0 && !octets.is_empty() {
            octets = self.resume(octets, &mut each);
        }
        while let Some((prefix, rest)) = octets.split_first_chunk() {
            let length = usize::from(u16::from_be_bytes(*prefix));
            let Some((message, rest)) = rest.split_at_checked(length) else { break };
            each((message, length));
            octets = rest;
        }
        if !octets.is_empty() {
            self.seen = octets.len();
            self.kept.extend_from_slice(&octets[..octets.len().min(KEPT_OCTETS_MAX)]);
        }
    }

    /// Its memory stays for the next.
    fn clear(&mut self) {
        self.kept.clear();
        self.seen = 0;
    }
}

impl Frames {
    /// Adds to the unfinished message, and returns what belongs to later ones.
    fn resume<'a>(&mut self, octets: &'a [u8], each: &mut impl FnMut((&[u8], usize))) -> &'a [u8] {
        let whole = match self.kept.first_chunk() {
            Some(prefix) => PREFIX_OCTETS + usize::from(u16::from_be_bytes(*prefix)),
            None => PREFIX_OCTETS,
        };
        let (piece, rest) = octets.split_at(octets.len().min(whole - self.seen));
        let room = KEPT_OCTETS_MAX - self.kept.len();
        self.kept.extend_from_slice(&piece[..piece.len().min(room)]);
        self.seen += piece.len();
        if let Some((prefix, message)) = self.kept.split_first_chunk() {
            let length = usize::from(u16::from_be_bytes(*prefix));
            if self.seen == PREFIX_OCTETS + length {
                each((message, length));
                self.clear();
            }
        }
        rest
    }
}

#[cfg(test)]
#[path = "frames_tests.rs"]
mod tests;
