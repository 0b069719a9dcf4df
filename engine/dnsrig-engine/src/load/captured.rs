//! The queries of a stream on their way: read ahead in chunks, kept until they have ended. No clock, no socket, no
//! file.
//!
//! Who reads the file is another thread, so that none waits for a disk that sends. Chunks go round: read ahead as many
//! as the ring holds, taken from in the order of due times, and given back when each of their queries has ended. As in
//! [`handover`](super::handover), the thread that sends never waits for the other one.

use std::{collections::VecDeque, thread, time::Duration};

use rtrb::{Consumer, Producer, RingBuffer};

use crate::query_stream::Transport;

/// A chunk has at most so many queries, and takes some 200 kB with messages of the usual length …
pub const CHUNK_QUERIES: usize = 2_048;

/// … and no query is added to one that has so many bytes of messages.
pub const CHUNK_BYTES: usize = 128 << 10;

/// So many chunks are read ahead: at 150,000 queries per second that is a tenth of a second.
const CHUNKS_AHEAD: usize = 8;

/// So many chunks may lie unused: with queries that have 2 s to be answered about as many go round at that rate.
const SPARE_MAX: usize = 128;

/// How long one side sleeps until it looks again for room, or for the first chunk.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// How a query travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    pub transport: Transport,
    /// Whether it is asked again over TCP if its answer is truncated.
    pub asks_again: bool,
    /// Whether it is the first of a connection of its client.
    pub begins_connection: bool,
}

/// A query of a chunk.
#[derive(Clone, Copy, Debug)]
struct Query {
    due_ns: i64,
    number: u64,
    client: u32,
    way: Way,
    /// Where its message begins in the chunk; it ends where the next one begins.
    start: u32,
}

/// A query that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    pub due_ns: i64,
    pub client: u32,
    /// Names it, as long as it has not ended.
    pub place: u32,
    /// Its place in the stream.
    pub number: u64,
}

/// Queries in the order of their due times.
#[derive(Debug, Default)]
pub struct Chunk {
    queries: Vec<Query>,
    messages: Vec<u8>,
    /// How many have not ended.
    open: usize,
}

impl Chunk {
    /// Whether another query finds room.
    pub fn has_room(&self) -> bool {
        self.queries.len() < CHUNK_QUERIES && self.messages.len() < CHUNK_BYTES
    }

    /// Adds a query, of which none before is due later; `number` is its place in the stream.
    pub fn push(&mut self, (number, due_ns): (u64, i64), client: u32, way: Way, message: &[u8]) {
        let start = self.messages.len() as u32;
        self.queries.push(Query { due_ns, number, client, way, start });
        self.messages.extend_from_slice(message);
        self.open += 1;
    }

    /// Whether it has no query.
    pub fn is_empty(&self) -> bool {
        self.queries.is_empty()
    }

    /// Makes room for others.
    pub fn clear(&mut self) {
        self.queries.clear();
        self.messages.clear();
        self.open = 0;
    }

    fn message(&self, at: usize) -> Option<&[u8]> {
        let end = self.queries.get(at + 1).map_or(self.messages.len(), |next| next.start as usize);
        Some(&self.messages[self.queries.get(at)?.start as usize..end])
    }
}

/// Where the one that reads ahead puts chunks, and gets used ones back.
pub struct ChunkSender {
    chunks: Producer<Chunk>,
    spare: Consumer<Chunk>,
}

impl ChunkSender {
    /// Gives a chunk away as soon as there is room; returns an empty one, or none if nobody takes any more.
    pub fn give(&mut self, mut chunk: Chunk) -> Option<Chunk> {
        while let Err(rtrb::PushError::Full(back)) = self.chunks.push(chunk) {
            if self.chunks.is_abandoned() {
                return None;
            }
            chunk = back;
            thread::sleep(LOOK_INTERVAL);
        }
        let mut spare = self.spare.pop().unwrap_or_default();
        spare.clear();
        Some(spare)
    }
}

/// Where the one that sends queries takes chunks from, and gives used ones back.
pub struct ChunkReceiver {
    chunks: Consumer<Chunk>,
    spare: Producer<Chunk>,
}

/// Both ends.
pub fn channel() -> (ChunkSender, ChunkReceiver) {
    let (sent, received) = RingBuffer::new(CHUNKS_AHEAD);
    let (returned, spare) = RingBuffer::new(SPARE_MAX);
    (ChunkSender { chunks: sent, spare }, ChunkReceiver { chunks: received, spare: returned })
}

impl ChunkReceiver {
    /// The next chunk; none yet, or `Err` if there will be none.
    fn take(&mut self) -> Result<Option<Chunk>, Disconnected> {
        // Looked at first: who has gone by then has put everything in.
        let is_last = self.chunks.is_abandoned();
        match self.chunks.pop() {
            Ok(chunk) => Ok(Some(chunk)),
            Err(_) if is_last => Err(Disconnected),
            Err(_) => Ok(None),
        }
    }
}

/// There are no more chunks.
struct Disconnected;

/// The queries of one thread.
pub struct Captured {
    receiver: ChunkReceiver,
    /// Those with queries that have not ended; from the last one queries are taken.
    chunks: VecDeque<Chunk>,
    /// The number of the first of them; numbers begin anew after the last of 16 bits.
    first: u16,
    /// The next query of the last chunk.
    next: usize,
    is_at_end: bool,
    /// When the query taken last was due.
    last_due_ns: i64,
    bytes_max: usize,
}

impl Captured {
    /// Of the chunks that are received; no message is longer than `bytes_max`. Waits for the first.
    pub fn new(mut receiver: ChunkReceiver, bytes_max: usize) -> Self {
        let first = loop {
            match receiver.take() {
                Ok(None) => thread::sleep(LOOK_INTERVAL),
                first => break first.ok().flatten(),
            }
        };
        Captured {
            is_at_end: first.is_none(),
            chunks: first.into_iter().collect(),
            receiver,
            first: 0,
            next: 0,
            last_due_ns: 0,
            bytes_max,
        }
    }

    /// The length of the longest message.
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// When the next query is due. As long as it has not been read: not before the last one. `i64::MAX` behind the
    /// last.
    pub fn next_due_ns(&self) -> i64 {
        match self.chunks.back().and_then(|chunk| chunk.queries.get(self.next)) {
            Some(query) => query.due_ns,
            None if self.is_at_end => i64::MAX,
            None => self.last_due_ns,
        }
    }

    /// Takes the next query if it is due by `now_ns`.
    #[inline]
    pub fn take(&mut self, now_ns: i64) -> Option<Taken> {
        if self.chunks.back().is_none_or(|chunk| self.next == chunk.queries.len()) {
            self.read_on();
        }
        let Query { due_ns, number, client, .. } = *self.chunks.back()?.queries.get(self.next)?;
        if due_ns > now_ns {
            return None;
        }
        let chunk = self.first.wrapping_add(self.chunks.len() as u16 - 1);
        let place = u32::from(chunk) << 16 | self.next as u32;
        self.next += 1;
        self.last_due_ns = due_ns;
        Some(Taken { due_ns, client, place, number })
    }

    /// The message of a query that was taken; none if it has ended and its chunk is gone.
    #[inline]
    pub fn message(&self, place: u32) -> Option<&[u8]> {
        let (chunk, at) = self.place(place);
        self.chunks.get(chunk)?.message(at)
    }

    /// How a query that has not ended travels.
    #[inline]
    pub fn way(&self, place: u32) -> Way {
        let (chunk, at) = self.place(place);
        self.chunks[chunk].queries[at].way
    }

    /// A query that was taken has ended.
    #[inline]
    pub fn ended(&mut self, place: u32) {
        let (chunk, _) = self.place(place);
        self.chunks[chunk].open -= 1;
        // The last one stays, as others may be taken from it.
        while self.chunks.len() > 1 && self.chunks[0].open == 0 {
            self.give_back();
        }
    }

    fn place(&self, place: u32) -> (usize, usize) {
        let chunk = ((place >> 16) as u16).wrapping_sub(self.first);
        (usize::from(chunk), (place & 0xffff) as usize)
    }

    /// Goes on with the next chunk, if it has been read.
    #[cold]
    fn read_on(&mut self) {
        match self.receiver.take() {
            Ok(Some(chunk)) => {
                self.chunks.push_back(chunk);
                self.next = 0;
                while self.chunks.len() > 1 && self.chunks[0].open == 0 {
                    self.give_back();
                }
            }
            Ok(None) => {}
            Err(Disconnected) => self.is_at_end = true,
        }
    }

    fn give_back(&mut self) {
        if let Some(chunk) = self.chunks.pop_front() {
            self.first = self.first.wrapping_add(1);
            // Who read the file may be done, or has enough of them.
            let _ = self.receiver.spare.push(chunk);
        }
    }
}

#[cfg(test)]
#[path = "captured_tests.rs"]
mod tests;
