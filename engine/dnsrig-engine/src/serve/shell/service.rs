//! What distinguishes one server from another: how it handles messages, and what it counts. No socket.

use std::net::{IpAddr, TcpStream};

use dnsrig_dns::framing;
use dnsrig_net::{
    connection::limits::Connections,
    quic::server::{More, Reply, StreamKey},
    udp_batch::{Datagram, Peer},
};
use slotmap::DefaultKey;

/// No datagram is longer: the size that avoids fragments (RFC 9715).
pub const DATAGRAM_BYTES_MAX: usize = 1232;

/// Names a connection of a thread; none has the key of one that is gone.
pub type Key = DefaultKey;

/// A server, as each of its threads has one.
pub trait Service {
    /// What it knows of a connection.
    type Conversation;
    /// What it counted.
    type Counts;

    /// Looks at the clock: messages were just read.
    fn tick(&mut self);

    /// Until when the thread does nothing at all, if it is blocked on purpose.
    fn blocked_until_ns(&self) -> Option<i64> {
        None
    }

    /// Takes a datagram. If it has an answer now, that is written to `space`, and its length returned.
    fn datagram(&mut self, datagram: Datagram<'_>, space: &mut [u8]) -> Option<usize>;

    /// Takes the query of a stream. If it has an answer now, that takes the place of the query.
    fn stream_query(&mut self, _message: &mut Vec<u8>, _peer: IpAddr, _key: StreamKey) -> Reply {
        Reply::Later
    }

    /// Writes the next messages of a stream whose answer has many behind `to`, each with its length before it.
    fn stream_more(&mut self, _key: StreamKey, _to: &mut Vec<u8>) -> More {
        More::End
    }

    /// A stream whose answer has many messages is over, whatever was still to be written.
    fn stream_abandon(&mut self, _key: StreamKey) {}

    /// The kernel took `sent` answers over UDP, and did not take `unsent`.
    fn datagrams_sent(&mut self, sent: u64, unsent: u64);

    /// A connection was accepted.
    fn open(&mut self, socket: &TcpStream) -> Self::Conversation;

    /// Takes a message of a connection.
    fn message(&mut self, conversation: &mut Self::Conversation, message: &[u8], key: Key);

    /// Writes messages to a connection, each with its length before it; says how many bytes, and what comes next.
    fn write(&mut self, conversation: &mut Self::Conversation, space: &mut [u8], key: Key) -> (usize, Next);

    /// Whether a connection is to be read. `is_flushed`: the peer has read enough for all that was written to leave.
    fn wants_messages(&self, conversation: &Self::Conversation, is_flushed: bool) -> bool;

    /// A connection is over, whatever was still to be written.
    fn abandon(&mut self, _conversation: &mut Self::Conversation) {}

    /// When to wake up for what waits for its time.
    fn due_ns(&self) -> Option<i64>;

    /// Takes out the next message that is due, and writes it to `space`. Returns its destination and its length.
    fn take_due(&mut self, space: &mut [u8]) -> Option<(Destination, usize)>;

    /// Goes on with a connection for which `message` was due; none: it is gone.
    fn resume(&mut self, conversation: Option<&mut Self::Conversation>, message: &[u8]);

    /// The counts at the end, with what the shell counted.
    fn finish(self, shell: ShellCounts) -> Self::Counts;
}

/// Whom an answer is for.
#[derive(Clone, Copy, Debug)]
pub enum Destination {
    /// The sender of a datagram. The answer leaves from `source`; none: from the socket's own address.
    Datagram { peer: Peer, source: Option<IpAddr> },
    /// A connection.
    Connection(Key),
    /// A stream of a QUIC connection.
    Stream(StreamKey),
}

/// What comes after what was written to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// There is more to write now.
    More,
    /// What is next has to wait for its time: see [`Service::take_due`].
    Later,
    /// All is answered.
    Nothing,
    /// The connection is to be closed as soon as what was written has left.
    Close,
}

/// What every server's threads count.
#[derive(Clone, Copy, Debug, Default)]
pub struct ShellCounts {
    pub connections: Connections,
    /// Datagrams that found the receive buffer full.
    pub receive_buffer_drops: u64,
    /// CPU time of the thread, user and system.
    pub cpu_ns: i64,
}

/// The most bytes of answers that wait. As nothing is read from a peer while anything waits for it, only delayed
/// answers and those to many queries at once come near.
pub const WAITING_BYTES_MAX: usize = 256 * 1024;

/// The room for answers in bytes that a connection keeps.
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
