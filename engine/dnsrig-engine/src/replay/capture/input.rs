//! The bytes of a capture, from a file or a pipe, in a buffer of bounded size; and what a reader finds in them, packet
//! by packet.

use std::{
    io::{self, Read},
    net::Ipv6Addr,
};

use crate::{query_stream::Transport, replay::message::Message};

/// Bytes are read in pieces of so many.
const READ_BYTES: usize = 1 << 18;

/// The most bytes that can be looked at together: more than the longest packet or block that is accepted.
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
    Record(Record<'c>),
}

/// A message that was written down by a server, or by who saw it, without the packets that carried it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'c> {
    pub role: Role,
    /// A query to the server, or its answer. The client is the source of both; an address or a port that is not in the
    /// file is 0.
    pub message: Message<'c>,
    /// What an answer tells of its query.
    pub asked: Option<Asked<'c>>,
}

/// The query that an answer belongs to, as it was written down with the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked<'c> {
    pub time_ns: i64,
    /// Empty if it was not written down: the answer tells what was asked.
    pub bytes: &'c [u8],
}

/// The role of a message in its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A client's query to the server.
    ToServer,
    /// The server's own query.
    Upstream,
    /// The server's answer to a client.
    Answer,
    /// Another server's answer to this one.
    UpstreamAnswer,
    Other,
    /// The record makes no sense.
    Unreadable,
}

impl Record<'static> {
    pub const UNREADABLE: Self = Record {
        role: Role::Unreadable,
        asked: None,
        message: Message {
            time_ns: 0,
            source: Ipv6Addr::UNSPECIFIED,
            source_port: 0,
            destination: Ipv6Addr::UNSPECIFIED,
            destination_port: 0,
            transport: Transport::Udp,
            is_first: false,
            bytes: &[],
        },
    };
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
    /// The content at this byte is invalid.
    Damaged(u64, &'static str),
    Unread(io::Error),
}
