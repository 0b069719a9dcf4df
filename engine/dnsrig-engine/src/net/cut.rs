//! How a client cuts a stream into messages: two octets of length before each (RFC 1035 §4.2.2). No socket.

use super::framing::Frames;

/// The incoming side of a stream.
///
/// What is kept between two readings is of one message, so at most 65,537 octets.
pub trait Framer: Default {
    /// What there is of a message.
    type Message<'a>;

    /// Takes in what was read and calls `each` with every message that is complete, in order. One of length 0 counts.
    fn push(&mut self, octets: &[u8], each: impl FnMut(Self::Message<'_>));

    /// Forgets an unfinished message.
    fn clear(&mut self);
}

/// Every message whole: from where it was read if it lies there whole, so that it is not copied.
impl Framer for Frames {
    type Message<'a> = &'a [u8];

    fn push(&mut self, octets: &[u8], each: impl FnMut(&[u8])) {
        self.feed(octets, each);
    }

    fn clear(&mut self) {
        Frames::clear(self);
    }
}
