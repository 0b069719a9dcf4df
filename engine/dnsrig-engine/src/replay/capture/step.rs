//! What reading a capture comes to, packet by packet.

use std::io;

/// A packet as it was captured; its bytes are lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Captured<'c> {
    /// Since 1970.
    pub time_ns: i64,
    /// The number of its link layer.
    pub link: u16,
    pub bytes: &'c [u8],
}

/// What a capture holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'c> {
    Packet(Captured<'c>),
}

/// Whether there is more.
#[derive(Debug)]
pub enum Step {
    /// A packet, or something between packets, was read.
    More,
    End(End),
}

/// How a capture ends.
#[derive(Debug)]
pub enum End {
    Whole,
    /// In the middle of what begins at this byte.
    Cut(u64),
    /// What stands at this byte cannot be.
    Damaged(u64, &'static str),
    Unread(io::Error),
}
