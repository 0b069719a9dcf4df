//! Reads a stream for one of the threads that send: its share of the clients, as chunks.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::{
    base::failure::Failure,
    load::{
        captured::{Chunk, ChunkSender, Way},
        classes::Classes,
        segment::Part,
    },
    query_stream::{NEW_CONNECTION, RETRANSMISSION, StreamReader, Transport},
};

/// The longest message that a datagram of IPv6 carries without an extension header: 65,535 less the header of UDP.
pub const MESSAGE_BYTES_MAX: usize = 65_527;

/// What is sent of a stream, and when.
#[derive(Clone, Debug)]
pub struct Selection {
    /// The clients of this thread.
    pub part: Part,
    /// So many times as fast.
    pub speed: f64,
    pub retransmissions: bool,
    /// Which class each client is in.
    pub classes: Classes,
    /// By class: all over this one; none: as they came.
    pub transports: Vec<Option<Transport>>,
}

/// Queries of a stream that are not sent on purpose.
#[derive(Debug, Default)]
pub struct Skipped {
    pub retransmissions: AtomicU64,
    /// Longer than a datagram.
    pub too_long: AtomicU64,
}

impl Selection {
    fn is_mine(&self, client: u32) -> bool {
        if !self.part.segment.has_client(client) {
            return false;
        }
        // Numbers of clients that ask much need not be spread evenly, their products are (Knuth, TAOCP 3, 6.4).
        let spread = u64::from(client).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        spread % self.part.threads as u64 == self.part.thread as u64
    }
}

/// Gives chunks until the stream ends, or nobody takes them.
pub fn read_ahead(
    mut stream: StreamReader,
    selection: &Selection,
    skipped: &Skipped,
    sender: &mut ChunkSender,
) -> Result<(), Failure> {
    let mut chunk = Chunk::default();
    let mut numbers = 0..;
    while let Some((record, number)) = stream.next()?.zip(numbers.next()) {
        if !selection.is_mine(record.client) {
            continue;
        }
        if !selection.retransmissions && record.flags & RETRANSMISSION != 0 {
            skipped.retransmissions.fetch_add(1, Ordering::Relaxed);
            continue;
        }
        let wanted = selection.transports[selection.classes.of(record.client)];
        let transport = wanted.unwrap_or(match record.transport {
            // What is closest of those that there are.
            Transport::Doh | Transport::Doq => Transport::Dot,
            captured => captured,
        });
        if record.message.len() > MESSAGE_BYTES_MAX {
            skipped.too_long.fetch_add(1, Ordering::Relaxed);
            continue;
        }
        let way = Way {
            transport,
            // Who is to use nothing but UDP does not go to TCP, either.
            asks_again: wanted != Some(Transport::Udp),
            // How long connections over another transport last is not the stream's to say.
            begins_connection: wanted.is_none() && record.flags & NEW_CONNECTION != 0,
        };
        let due_ns = (record.due_ns as f64 / selection.speed) as i64;
        chunk.push((number, due_ns), record.client, way, record.message);
        if !chunk.has_room() {
            let Some(empty) = sender.give(chunk) else { return Ok(()) };
            chunk = empty;
        }
    }
    if !chunk.is_empty() {
        // Whoever takes it may have ended early.
        let _ = sender.give(chunk);
    }
    Ok(())
}

#[cfg(test)]
#[path = "read_ahead_tests.rs"]
mod tests;
