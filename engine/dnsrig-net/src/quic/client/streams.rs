//! The streams of one connection: queries that wait for a stream, and queries that wait for their answer.

use std::{
    collections::{HashMap, VecDeque},
    mem,
};

use dnsrig_dns::framing::PREFIX_BYTES;
use quinn_proto::{Connection, Dir, ReadError, StreamId};

use crate::quic::event::Event;
use crate::{
    connection::CloseReason,
    quic::{
        cancel, code,
        counts::{Counts, REQUEST_CANCELLED},
        write,
    },
};

/// A query, with what has come of its answer.
struct Stream {
    id: u16,
    sent_ns: i64,
    /// The query with its length. It is kept until no handshake can reject it.
    query: Vec<u8>,
    written: usize,
    answer: Vec<u8>,
    answered: bool,
    /// Whether it was counted that the query waited.
    counted: bool,
}

/// All queries of a connection.
#[derive(Default)]
pub struct Streams {
    /// Queries without a stream, oldest first.
    waiting: VecDeque<Stream>,
    open: HashMap<StreamId, Stream>,
    /// The open stream of each id.
    by_id: HashMap<u16, StreamId>,
    /// The times at which queries on streams were sent, oldest first. Some have ended.
    order: VecDeque<(i64, StreamId)>,
    /// The number of streams that were opened before the handshake was done.
    early: u64,
}

impl Streams {
    /// Adds a query, which waits. The caller is done with an earlier query that has the same id: if its stream is still
    /// open, what comes on it would be taken for this query's answer, so it is cancelled. Returns the number of
    /// streams that it cancelled.
    pub fn push(&mut self, message: &[u8], now_ns: i64, quic: &mut Connection) -> u64 {
        let id = message.first_chunk().map_or(0, |id| u16::from_be_bytes(*id));
        let cancelled = self.by_id.get(&id).copied().map_or(0, |earlier| self.abort(earlier, quic));
        let query = framed(message);
        let answer = Vec::new();
        self.waiting.push_back(Stream {
            id,
            sent_ns: now_ns,
            query,
            written: 0,
            answer,
            answered: false,
            counted: false,
        });
        cancelled
    }

    /// Whether a query waits for a stream.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The number of queries that wait for a stream.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The number of queries that wait for a stream since the last call.
    pub fn count_waiting(&mut self) -> u64 {
        let mut count = 0;
        for stream in self.waiting.iter_mut().rev() {
            if mem::replace(&mut stream.counted, true) {
                break;
            }
            count += 1;
        }
        count
    }

    /// Whether queries wait though no stream is open.
    pub fn is_stuck(&self) -> bool {
        self.is_waiting() && self.open.is_empty()
    }

    /// Takes out the queries that wait, for another connection.
    pub fn take_waiting(&mut self) -> Self {
        Streams { waiting: mem::take(&mut self.waiting), ..Streams::default() }
    }

    /// Gives streams to the queries that wait, as far as the server permits.
    pub fn open(&mut self, quic: &mut Connection, established: bool) {
        while self.is_waiting()
            && let Some(id) = quic.streams().open(Dir::Bi)
            && let Some(stream) = self.waiting.pop_front()
        {
            self.early += u64::from(!established);
            self.order.push_back((stream.sent_ns, id));
            self.by_id.insert(stream.id, id);
            self.open.insert(id, stream);
            self.write(id, quic, established);
        }
    }

    /// Goes on to write a query.
    pub fn write(&mut self, id: StreamId, quic: &mut Connection, established: bool) {
        let Some(stream) = self.open.get_mut(&id).filter(|stream| stream.written < stream.query.len()) else { return };
        let Some(written) = write(&mut quic.send_stream(id), &stream.query[stream.written..], true) else { return };
        stream.written += written;
        if established && stream.written == stream.query.len() {
            (stream.query, stream.written) = (Vec::new(), 0);
        }
    }

    /// Takes in that the handshake is done. If the server `rejected` the early data, all queries wait for new streams.
    /// Returns the number of queries that were sent early.
    pub fn established(&mut self, rejected: bool) -> u64 {
        let early = mem::take(&mut self.early);
        if rejected {
            self.order.clear();
            self.by_id.clear();
            let mut again: Vec<_> = self.open.drain().collect();
            again.sort_by_key(|(id, _)| *id);
            for (_, stream) in again.into_iter().rev() {
                self.waiting.push_front(Stream { written: 0, ..stream });
            }
        }
        for stream in self.open.values_mut().filter(|stream| stream.written == stream.query.len()) {
            (stream.query, stream.written) = (Vec::new(), 0);
        }
        early
    }

    /// Reads what has come on a stream.
    pub fn read(&mut self, id: StreamId, quic: &mut Connection, counts: &mut Counts, each: &mut impl FnMut(Event<'_>)) {
        let Some(stream) = self.open.get_mut(&id) else { return };
        let mut received = quic.recv_stream(id);
        let Ok(mut chunks) = received.read(true) else { return };
        let mut is_partial = false;
        let over = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => {
                    stream.answer.extend_from_slice(&chunk.bytes);
                    is_partial = !stream.take_messages(each);
                }
                Ok(None) => {
                    counts.streams_short += u64::from(!stream.answered || !stream.answer.is_empty());
                    break Some(CloseReason::Closed);
                }
                Err(ReadError::Blocked) => break None,
                Err(ReadError::Reset(code)) => {
                    counts.reset(code.into_inner());
                    break Some(CloseReason::Reset);
                }
            }
        };
        // What it permits the server to send leaves with the next packet.
        let _ = chunks.finalize();
        match over {
            None if is_partial => each(Event::Partial(stream.id)),
            None => {}
            Some(reason) => {
                let (id, answered) = (stream.id, stream.answered);
                each(if answered { Event::StreamOver(id, reason) } else { Event::StreamLost(id, reason) });
            }
        }
        if over.is_some() {
            self.forget(id);
        }
    }

    fn forget(&mut self, id: StreamId) -> Option<Stream> {
        let stream = self.open.remove(&id)?;
        if self.by_id.get(&stream.id) == Some(&id) {
            self.by_id.remove(&stream.id);
        }
        Some(stream)
    }

    /// When the oldest query was sent that has neither an answer nor ended.
    pub fn oldest_ns(&mut self) -> Option<i64> {
        while self.order.front().is_some_and(|(_, id)| !self.open.contains_key(id)) {
            self.order.pop_front();
        }
        let sent = self.order.front().map(|(sent_ns, _)| *sent_ns);
        let waiting = self.waiting.front().map(|stream| stream.sent_ns);
        sent.into_iter().chain(waiting).min()
    }

    /// Gives up queries that were sent at this time or earlier. Returns the number of streams that it cancelled.
    pub fn give_up(&mut self, sent_ns: i64, quic: &mut Connection) -> u64 {
        let mut cancelled = 0;
        while let Some((_, id)) = self.order.pop_front_if(|(at_ns, _)| *at_ns <= sent_ns) {
            cancelled += self.abort(id, quic);
        }
        while self.waiting.pop_front_if(|stream| stream.sent_ns <= sent_ns).is_some() {}
        cancelled
    }

    /// Gives up the query with this id. Returns the number of streams that it cancelled.
    pub fn cancel(&mut self, id: u16, quic: &mut Connection) -> u64 {
        if let Some(open) = self.by_id.get(&id).copied() {
            return self.abort(open, quic);
        }
        // The oldest is the first to be given up.
        if let Some(at) = self.waiting.iter().position(|stream| stream.id == id) {
            self.waiting.remove(at);
        }
        0
    }

    fn abort(&mut self, id: StreamId, quic: &mut Connection) -> u64 {
        if self.forget(id).is_none() {
            return 0;
        }
        let _ = quic.send_stream(id).reset(code(REQUEST_CANCELLED));
        cancel(quic, id);
        1
    }
}

impl Stream {
    /// Takes out the messages that are whole. Returns whether there were any.
    fn take_messages(&mut self, each: &mut impl FnMut(Event<'_>)) -> bool {
        let mut start = 0;
        while let Some(prefix) = self.answer[start..].first_chunk::<PREFIX_BYTES>() {
            let length = usize::from(u16::from_be_bytes(*prefix));
            let from = start + PREFIX_BYTES;
            let Some(message) = self.answer.get_mut(from..from + length) else { break };
            start = from + length;
            match message.first_chunk_mut() {
                Some(id) if *id == [0, 0] => {
                    *id = self.id.to_be_bytes();
                    self.answered = true;
                    each(Event::Answer(self.id, message));
                }
                _ => each(Event::WrongId),
            }
        }
        self.answer.drain(..start);
        start > 0
    }
}

/// A message with its length before it, and with the id 0 (RFC 9250 §4.2.1).
fn framed(message: &[u8]) -> Vec<u8> {
    let mut framed = Vec::with_capacity(PREFIX_BYTES + message.len());
    framed.extend((message.len() as u16).to_be_bytes());
    framed.extend(message);
    framed[PREFIX_BYTES..].iter_mut().take(2).for_each(|byte| *byte = 0);
    framed
}
