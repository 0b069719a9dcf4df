//! Where the queries of a thread come from: prepared before, or captured ones that are read ahead. No clock, no socket,
//! no file.
//!
//! Captured queries are read from their file by another thread, so that the thread that sends never waits for a disk.
//! They go round in chunks: read ahead as many as the ring holds, taken from in the order of due times, and given back
//! when each of their queries has ended. As in [`collect`](super::collect), the thread that sends never waits for the
//! other one.

use std::{collections::VecDeque, sync::Arc, thread, time::Duration};

use rtrb::{Consumer, Producer, RingBuffer};

use super::queries::Queries;
use crate::query_stream::Transport;

/// Where the queries of a thread come from.
pub enum Source {
    /// Queries that all threads have in common, and send again and again.
    Prepared(Arc<Queries>),
    /// Queries that are sent once.
    Captured(Captured),
}

impl Source {
    /// The message of the query at this position. `None` if it has ended and is forgotten.
    #[inline]
    pub fn message(&self, place: u32) -> Option<&[u8]> {
        match self {
            Source::Prepared(queries) => Some(queries.message(place as usize)),
            Source::Captured(captured) => captured.message(place),
        }
    }

    /// The transport of the query at this position, if the source names one. The query has not ended.
    #[inline]
    pub fn transport(&self, place: u32) -> Option<Transport> {
        match self {
            Source::Prepared(_) => None,
            Source::Captured(captured) => Some(captured.way(place).transport),
        }
    }

    /// Whether the query at this position is asked again over TCP if its answer is truncated. The query has not ended.
    pub fn asks_again(&self, place: u32) -> bool {
        match self {
            Source::Prepared(_) => true,
            Source::Captured(captured) => captured.way(place).asks_again,
        }
    }

    /// Whether the query at this position is the first of a connection of its client. The query has not ended.
    pub fn begins_connection(&self, place: u32) -> bool {
        match self {
            Source::Prepared(_) => false,
            Source::Captured(captured) => captured.way(place).begins_connection,
        }
    }

    /// The length of the longest message.
    pub fn bytes_max(&self) -> usize {
        match self {
            Source::Prepared(queries) => queries.bytes_max(),
            Source::Captured(captured) => captured.bytes_max(),
        }
    }

    /// Takes in that a query that was due was answered, given up or never sent.
    #[inline]
    pub fn ended(&mut self, place: u32) {
        if let Source::Captured(captured) = self {
            captured.ended(place);
        }
    }
}

#[cfg(test)]
impl Source {
    /// A source for arrivals that do not look at it.
    pub fn none() -> Self {
        Source::Prepared(Arc::new(Queries::from_messages([vec![0; 12]])))
    }
}

/// The highest number of queries in a chunk, which takes some 200 kB with messages of the usual length …
const CHUNK_QUERIES: usize = 2_048;

/// … and the number of bytes of messages from which on no query is added.
const CHUNK_BYTES: usize = 128 << 10;

/// The number of chunks that are read ahead: at 150,000 queries per second they last for a tenth of a second.
const CHUNKS_AHEAD: usize = 8;

/// The number of chunks that can lie unused: if queries have 2 s to be answered, about this number goes round at that
/// rate.
const SPARE_MAX: usize = 128;

/// The time for which one side sleeps until it looks again for room, or for the first chunk.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// How a captured query is sent.
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
    /// Where its message begins in the chunk. It ends where the next one begins.
    start: u32,
}

/// A query that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    pub due_ns: i64,
    pub client: u32,
    /// Names the query, as long as it has not ended.
    pub place: u32,
    /// Its place in the file.
    pub number: u64,
}

/// Queries in the order of their due times.
#[derive(Debug, Default)]
pub struct Chunk {
    queries: Vec<Query>,
    messages: Vec<u8>,
    /// The number of queries that have not ended.
    open: usize,
}

impl Chunk {
    /// Whether there is room for another query.
    pub fn has_room(&self) -> bool {
        self.queries.len() < CHUNK_QUERIES && self.messages.len() < CHUNK_BYTES
    }

    /// Adds a query that is not due before any query of the chunk. `number` is its place in the file.
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

/// The side of the thread that reads ahead: it gives chunks, and gets used ones back.
pub struct ChunkSender {
    chunks: Producer<Chunk>,
    spare: Consumer<Chunk>,
}

impl ChunkSender {
    /// Gives a chunk away as soon as there is room. Returns an empty one, or `None` if the other side is gone.
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

/// The side of the thread that sends queries: it takes chunks, and gives used ones back.
pub struct ChunkReceiver {
    chunks: Consumer<Chunk>,
    spare: Producer<Chunk>,
}

/// Makes both sides.
pub fn channel() -> (ChunkSender, ChunkReceiver) {
    let (sent, received) = RingBuffer::new(CHUNKS_AHEAD);
    let (returned, spare) = RingBuffer::new(SPARE_MAX);
    (ChunkSender { chunks: sent, spare }, ChunkReceiver { chunks: received, spare: returned })
}

impl ChunkReceiver {
    /// The next chunk. `None` if it has not been read yet, `Err` if there is no further chunk.
    fn take(&mut self) -> Result<Option<Chunk>, Disconnected> {
        // This is looked at first: if the other side is gone by then, it has put everything in.
        let is_last = self.chunks.is_abandoned();
        match self.chunks.pop() {
            Ok(chunk) => Ok(Some(chunk)),
            Err(_) if is_last => Err(Disconnected),
            Err(_) => Ok(None),
        }
    }
}

/// There is no further chunk.
struct Disconnected;

/// The captured queries of one thread.
pub struct Captured {
    receiver: ChunkReceiver,
    /// Chunks with queries that have not ended. Queries are taken from the last one.
    chunks: VecDeque<Chunk>,
    /// The number of the first of them. Numbers have 16 bits, and begin again after the last.
    first: u16,
    /// The next query of the last chunk.
    next: usize,
    is_at_end: bool,
    /// When the query taken last was due.
    last_due_ns: i64,
    bytes_max: usize,
}

impl Captured {
    /// Takes queries from the chunks that are received. No message is longer than `bytes_max`. Waits for the first
    /// chunk.
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

    /// When the next query is due. As long as it has not been read: when the last one was due, because it is not due
    /// before. `i64::MAX` behind the last.
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

    /// The message of a query that was taken. `None` if it has ended and its chunk is gone.
    #[inline]
    pub fn message(&self, place: u32) -> Option<&[u8]> {
        let (chunk, at) = self.place(place);
        self.chunks.get(chunk)?.message(at)
    }

    /// How a query that has not ended is sent.
    #[inline]
    pub fn way(&self, place: u32) -> Way {
        let (chunk, at) = self.place(place);
        self.chunks[chunk].queries[at].way
    }

    /// Takes in that a query that was taken has ended.
    #[inline]
    pub fn ended(&mut self, place: u32) {
        let (chunk, _) = self.place(place);
        self.chunks[chunk].open -= 1;
        // The last one stays, because queries may be taken from it.
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
            // The thread that reads the file may be done, or has enough chunks.
            let _ = self.receiver.spare.push(chunk);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAY: Way = Way { transport: Transport::Udp, asks_again: false, begins_connection: false };

    /// A chunk of queries with these due times, of the client 7. Their messages are their due times.
    fn chunk(due_ns: &[i64]) -> Chunk {
        let mut chunk = Chunk::default();
        due_ns.iter().for_each(|due_ns| chunk.push((0, *due_ns), 7, WAY, &due_ns.to_be_bytes()));
        chunk
    }

    #[test]
    fn queries_are_taken_when_they_are_due_and_kept_until_they_end() {
        let (mut sender, receiver) = channel();
        sender.give(chunk(&[10, 20])).unwrap();
        sender.give(chunk(&[20, 30])).unwrap();
        let mut captured = Captured::new(receiver, 8);
        assert_eq!((captured.next_due_ns(), captured.take(9)), (10, None));
        let mut take = |now_ns| captured.take(now_ns).map(|taken| (taken.due_ns, taken.client, taken.place));
        let taken = [take(25), take(25), take(25), take(25)];
        assert_eq!(
            taken.map(|taken| taken.map(|(due_ns, client, _)| (due_ns, client))),
            [Some((10, 7)), Some((20, 7)), Some((20, 7)), None]
        );
        let [first, second, third] = [0, 1, 2].map(|at| taken[at].unwrap().2);
        assert_eq!(captured.message(second), Some(&20_i64.to_be_bytes()[..]));
        captured.ended(second);
        captured.ended(third);
        assert!(sender.spare.pop().is_err(), "the first query has not ended");
        captured.ended(first);
        assert!(sender.spare.pop().is_ok());
        assert_eq!([first, second].map(|place| captured.message(place)), [None, None]);
        assert_eq!(captured.message(third), Some(&20_i64.to_be_bytes()[..]), "others are taken from its chunk");
        // This is the last one that was read. Whether others follow is not known.
        assert!(captured.take(30).is_some());
        assert_eq!((captured.take(99), captured.next_due_ns()), (None, 30));
        sender.give(chunk(&[40])).unwrap();
        assert_eq!(captured.take(99).unwrap().due_ns, 40);
        drop(sender);
        assert_eq!((captured.take(99), captured.next_due_ns()), (None, i64::MAX));
    }

    #[test]
    fn numbers_of_chunks_begin_anew_and_memory_does_not_grow() {
        let (mut sender, receiver) = channel();
        sender.give(chunk(&[0])).unwrap();
        let mut captured = Captured::new(receiver, 8);
        let mut old = captured.take(0).unwrap().place;
        for number in 1..100_000 {
            assert!(sender.give(chunk(&[number])).unwrap().is_empty());
            let taken = captured.take(number).unwrap();
            assert_eq!(captured.message(taken.place), Some(&number.to_be_bytes()[..]));
            assert_eq!(captured.message(old), Some(&(number - 1).to_be_bytes()[..]));
            captured.ended(old);
            assert_eq!(captured.message(old), None);
            assert!(captured.chunks.len() == 1 && sender.spare.pop().is_ok());
            old = taken.place;
        }
    }

    #[test]
    fn a_file_without_queries_is_at_its_end() {
        let (sender, receiver) = channel();
        drop(sender);
        let mut captured = Captured::new(receiver, 8);
        assert_eq!((captured.take(i64::MAX), captured.next_due_ns()), (None, i64::MAX));
    }

    #[test]
    fn the_reader_gets_used_chunks_and_learns_that_the_other_side_is_gone() {
        let (mut sender, receiver) = channel();
        sender.give(chunk(&[1])).unwrap();
        sender.give(chunk(&[2])).unwrap();
        let mut captured = Captured::new(receiver, 8);
        let first = captured.take(1).unwrap().place;
        captured.take(2).unwrap();
        captured.ended(first);
        let used = sender.give(chunk(&[3])).unwrap();
        assert!(used.is_empty() && used.messages.capacity() >= 8, "its memory is used again");
        drop(captured);
        let given = (0..=CHUNKS_AHEAD as i64).map_while(|number| sender.give(chunk(&[number])));
        assert!(given.count() <= CHUNKS_AHEAD, "it ends as soon as there is no room");
    }
}
