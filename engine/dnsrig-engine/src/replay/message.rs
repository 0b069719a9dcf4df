//! Which messages are queries.

use std::net::Ipv6Addr;

use crate::dns::header::HEADER_BYTES;
use crate::dns::{
    header::{Header, OPCODE, QR},
    name,
    query::TAIL_BYTES,
    stream::Transport,
};

/// A DNS message and who sent it to whom; the message is lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'m> {
    /// Since 1970.
    pub time_ns: i64,
    pub source: Ipv6Addr,
    pub source_port: u16,
    pub destination: Ipv6Addr,
    pub destination_port: u16,
    pub transport: Transport,
    /// Whether it is the first of its connection.
    pub is_first: bool,
    pub bytes: &'m [u8],
}

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Query,
    Answer,
    OtherOperation,
    Malformed,
}

/// Looks at the header and the question. What follows is left as the client sent it, however odd: the server has to
/// cope with it as well.
#[inline]
pub fn kind(message: &[u8]) -> Kind {
    let Ok(header) = Header::read(message) else { return Kind::Malformed };
    if header.flags & QR != 0 {
        return Kind::Answer;
    }
    if header.flags & OPCODE != 0 {
        return Kind::OtherOperation;
    }
    let question = name::skip_plain(message, HEADER_BYTES);
    let is_whole = question.is_ok_and(|behind| behind + TAIL_BYTES <= message.len());
    if header.questions == 1 && is_whole { Kind::Query } else { Kind::Malformed }
}
