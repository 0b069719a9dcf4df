//! What a client learns of its connections.

use crate::connection::CloseReason;

/// What happened on a connection.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// The handshake is done.
    Established(Handshake),
    /// A message came on the stream of the query with this id, which is in the message again.
    Answer(u16, &'a [u8]),
    /// Bytes came on the stream of the query with this id that complete no message.
    Partial(u16),
    /// A message came whose id is not 0.
    WrongId,
    /// The stream of the query with this id ended without an answer: the server reset it, or left the answer out.
    StreamLost(u16, CloseReason),
    /// The stream of the query with this id ended after an answer, or was reset then.
    StreamOver(u16, CloseReason),
    /// Queries wait, all streams have ended, and the server permits no further ones: call `Client::replace`.
    UsedUp,
    /// The connection is gone: call `Client::close`.
    Lost(CloseReason),
}

/// How a handshake went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handshake {
    /// It resumed a session.
    pub resumed: bool,
    /// The number of queries that the server took with the first flight (0-RTT).
    pub early_accepted: u64,
    /// The number of queries that it did not take so: they are sent again.
    pub early_rejected: u64,
}
