//! What reading a capture comes to, packet by packet.

use std::{io, net::Ipv6Addr};

use crate::{query_stream::Transport, replay::message::Message};

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

/// What a record says of its message.
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
    /// What stands at this byte cannot be.
    Damaged(u64, &'static str),
    Unread(io::Error),
}
