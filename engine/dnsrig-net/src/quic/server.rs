//! The server's side: connections of any clients, with a query on each stream.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
    mem,
    net::IpAddr,
    sync::Arc,
};

use bytes::{Bytes, BytesMut};
use dnsrig_dns::framing::{self, PREFIX_BYTES};
use quinn_proto::{
    ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig, Event as QuicEvent, HashedConnectionIdGenerator,
    IdleTimeout, Incoming, ReadError, ServerConfig, StreamEvent, StreamId, VarInt, crypto::rustls::QuicServerConfig,
};

use super::{Clock, Flow, Way, cancel, code, counts::PROTOCOL_ERROR, timers::Timers, transmit, transport, way, write};

/// The longest query that is kept, in bytes: the longest message.
const QUERY_BYTES_MAX: usize = PREFIX_BYTES + u16::MAX as usize;

/// How a server serves.
#[derive(Clone)]
pub struct Settings {
    /// Certificate and key, tickets and early data.
    pub tls: Arc<rustls::ServerConfig>,
    pub flow: Flow,
    /// The number of streams that a client may have open.
    pub streams_max: u32,
    /// The time after which a connection without any packet ends.
    pub idle_ns: i64,
    /// The number of connections of a thread. Further ones are refused.
    pub connections_max: usize,
    /// Every client has to prove its address first (Retry, RFC 9000 §8.1.2).
    pub retry: bool,
}

/// The settings in the library, which the threads of a server share: so each accepts what another one gave out.
#[derive(Clone)]
pub struct Config {
    endpoint: Arc<EndpointConfig>,
    server: Arc<ServerConfig>,
    retry: bool,
    connections_max: usize,
}

impl Config {
    /// Prepares these settings.
    pub fn new(settings: &Settings) -> Self {
        let crypto = QuicServerConfig::try_from(settings.tls.clone()).expect("ring has the suite of initial packets");
        let mut server = ServerConfig::with_crypto(Arc::new(crypto));
        let mut transport = transport(settings.flow, settings.streams_max);
        let idle_ms = VarInt::from_u64(settings.idle_ns.max(0).unsigned_abs() / 1_000_000).unwrap_or(VarInt::MAX);
        transport.max_idle_timeout(Some(IdleTimeout::from(idle_ms)));
        server.transport_config(Arc::new(transport));
        // A thread that gets a packet of a connection that it does not know can reset the connection.
        let key = RandomState::new().hash_one(0);
        let mut endpoint = EndpointConfig::default();
        endpoint.cid_generator(move || Box::new(HashedConnectionIdGenerator::from_key(key)));
        let Settings { retry, connections_max, .. } = *settings;
        Config { endpoint: Arc::new(endpoint), server: Arc::new(server), retry, connections_max }
    }
}

/// An answer of many messages is written in pieces of at least this size before other streams have their turn.
const TURN_BYTES: usize = 256 << 10;

/// Names a stream of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamKey {
    connection: usize,
    /// Distinguishes connections that had the same place one after another.
    generation: u32,
    stream: StreamId,
}

/// What becomes of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The answer has taken the place of the query.
    Now,
    /// The answer follows: see [`Server::answer`].
    Later,
    /// The answer has many messages: see [`Answers::more`].
    Many,
}

/// How an answer of many messages goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum More {
    /// There is more.
    More,
    /// All messages are written.
    End,
    /// The stream is reset with this code, whatever was written.
    Reset(u32),
}

/// What a server does with queries.
pub trait Answers {
    /// Takes a whole query of a client.
    fn query(&mut self, key: StreamKey, peer: IpAddr, message: &mut Vec<u8>) -> Reply;

    /// Writes the next messages of an answer of many behind `to`, each with its length before it.
    fn more(&mut self, _key: StreamKey, _to: &mut Vec<u8>) -> More {
        More::End
    }

    /// An answer of many messages is no longer wanted, whatever was still to be written.
    fn abandon(&mut self, _key: StreamKey) {}
}

/// A function that answers a query at once, or returns false.
impl<F: FnMut(StreamKey, &mut Vec<u8>) -> bool> Answers for F {
    fn query(&mut self, key: StreamKey, _peer: IpAddr, message: &mut Vec<u8>) -> Reply {
        if self(key, message) { Reply::Now } else { Reply::Later }
    }
}

/// What a server counted of connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerCounts {
    pub accepted: u64,
    /// Connections that were refused, because there were too many.
    pub refused: u64,
    pub handshakes: u64,
    /// Connections that broke before the handshake was done.
    pub failed: u64,
    /// Connections that ended because no packet came.
    pub idle: u64,
    /// Clients that had to prove their address.
    pub retries: u64,
}

/// All connections of one thread.
pub struct Server {
    clock: Clock,
    endpoint: Endpoint,
    retry: bool,
    connections_max: usize,
    connections: Vec<Option<Box<Connection>>>,
    generation: u32,
    timers: Timers,
    pub counts: ServerCounts,
    buffer: Vec<u8>,
    /// Connections that have something to do: see [`Server::work`].
    touched: Vec<usize>,
}

struct Connection {
    generation: u32,
    quic: quinn_proto::Connection,
    established: bool,
    streams: HashMap<StreamId, Stream>,
    /// Streams that had their turn and can be written to.
    writable: Vec<StreamId>,
}

/// A query that comes, or the rest of an answer that leaves.
#[derive(Default)]
struct Stream {
    query: Vec<u8>,
    answer: Vec<u8>,
    /// The number of bytes of `answer` that were written.
    written: usize,
    /// More messages follow.
    has_more: bool,
}

impl Server {
    /// A server without connections.
    pub fn new(config: &Config, now_ns: i64) -> Self {
        Server {
            clock: Clock::new(now_ns),
            endpoint: Endpoint::new(config.endpoint.clone(), Some(config.server.clone()), false, None),
            retry: config.retry,
            connections_max: config.connections_max,
            connections: Vec::new(),
            generation: 0,
            timers: Timers::default(),
            counts: ServerCounts::default(),
            buffer: Vec::new(),
            touched: Vec::new(),
        }
    }

    /// Takes in a datagram from a peer, which came to an address of this host. Calls `send` if the answer to it belongs
    /// to no connection.
    pub fn receive(&mut self, (peer, local): Way, datagram: &[u8], now_ns: i64, mut send: impl FnMut(&[u8], Way)) {
        self.buffer.clear();
        let now = self.clock.at(now_ns);
        let event = self.endpoint.handle(now, peer, local, None, BytesMut::from(datagram), &mut self.buffer);
        match event {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(connection) = self.connections.get_mut(handle.0).and_then(Option::as_mut) {
                    connection.quic.handle_event(event);
                    self.touched.push(handle.0);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.accept(incoming, now_ns, send),
            Some(DatagramEvent::Response(response)) => send(&self.buffer[..response.size], way(&response)),
            None => {}
        }
    }

    fn accept(&mut self, incoming: Incoming, now_ns: i64, mut send: impl FnMut(&[u8], Way)) {
        self.buffer.clear();
        if self.retry && !incoming.remote_address_validated() && incoming.may_retry() {
            if let Ok(retry) = self.endpoint.retry(incoming, &mut self.buffer) {
                self.counts.retries += 1;
                send(&self.buffer[..retry.size], way(&retry));
            }
            return;
        }
        if self.endpoint.open_connections() >= self.connections_max {
            let refusal = self.endpoint.refuse(incoming, &mut self.buffer);
            self.counts.refused += 1;
            return send(&self.buffer[..refusal.size], way(&refusal));
        }
        match self.endpoint.accept(incoming, self.clock.at(now_ns), &mut self.buffer, None) {
            Ok((ConnectionHandle(number), quic)) => {
                self.counts.accepted += 1;
                self.generation = self.generation.wrapping_add(1);
                if self.connections.len() <= number {
                    self.connections.resize_with(number + 1, || None);
                }
                let (generation, streams) = (self.generation, HashMap::new());
                let (established, writable) = (false, Vec::new());
                let connection = Connection { generation, quic, established, streams, writable };
                self.connections[number] = Some(Box::new(connection));
                self.touched.push(number);
            }
            Err(error) => {
                self.counts.failed += 1;
                if let Some(response) = error.response {
                    send(&self.buffer[..response.size], way(&response));
                }
            }
        }
    }

    /// When the next connection has something to do, whatever comes.
    pub fn due_ns(&self) -> Option<i64> {
        self.timers.next_ns()
    }

    /// Does what is due.
    pub fn on_time(&mut self, now_ns: i64) {
        while let Some(number) = self.timers.pop(now_ns) {
            let now = self.clock.at(now_ns);
            if let Some(connection) = &mut self.connections[number] {
                if connection.quic.poll_timeout().is_some_and(|timeout| timeout <= now) {
                    connection.quic.handle_timeout(now);
                }
                self.touched.push(number);
            }
        }
    }

    /// Goes on with the connections that have something to do: passes each whole query to `answers`, and calls `send`
    /// with each datagram.
    pub fn work(&mut self, now_ns: i64, answers: &mut impl Answers, mut send: impl FnMut(&[u8], Way)) {
        while let Some(number) = self.touched.pop() {
            let Some(connection) = self.connections[number].as_mut() else { continue };
            let now = self.clock.at(now_ns);
            let handle = ConnectionHandle(number);
            let mut is_drained = connection.go_on(handle, &mut self.endpoint, &mut self.counts, answers);
            transmit(&mut connection.quic, now, &mut self.buffer, &mut send);
            while !connection.writable.is_empty() {
                is_drained |= connection.go_on(handle, &mut self.endpoint, &mut self.counts, answers);
                transmit(&mut connection.quic, now, &mut self.buffer, &mut send);
            }
            if let Some(timeout) = connection.quic.poll_timeout() {
                self.timers.by(number, self.clock.ns(timeout));
            }
            if is_drained {
                connection.abandon(number, answers);
                self.connections[number] = None;
                self.timers.remove(number);
            }
        }
    }

    fn find(&mut self, key: StreamKey) -> Option<&mut Connection> {
        let connection = self.connections.get_mut(key.connection)?.as_mut()?;
        if connection.generation != key.generation {
            return None;
        }
        self.touched.push(key.connection);
        Some(connection)
    }

    /// Answers a query. False: its stream is gone. Follow with [`Server::work`].
    pub fn answer(&mut self, key: StreamKey, message: &[u8]) -> bool {
        let mut no_more = |_: StreamKey, _: &mut Vec<u8>| false;
        self.find(key).is_some_and(|connection| connection.answer(key, message, &mut no_more))
    }

    /// Resets the stream of a query (RESET_STREAM) with a code of DNS over QUIC.
    pub fn reset(&mut self, key: StreamKey, error: u32) {
        if let Some(connection) = self.find(key) {
            let _ = connection.quic.send_stream(key.stream).reset(code(error));
            connection.streams.remove(&key.stream);
        }
    }

    /// Ends the stream of a query after these bytes, whatever they are.
    pub fn end(&mut self, key: StreamKey, bytes: &[u8]) {
        if let Some(connection) = self.find(key) {
            let _ = write(&mut connection.quic.send_stream(key.stream), bytes, true);
            connection.streams.remove(&key.stream);
        }
    }

    /// Permits no streams beyond those that the client may open by now.
    pub fn permit_no_more_streams(&mut self, key: StreamKey) {
        if let Some(connection) = self.find(key) {
            connection.quic.set_max_concurrent_streams(Dir::Bi, 0_u8.into());
        }
    }

    /// Closes the connection of a query with a code of DNS over QUIC.
    pub fn close(&mut self, key: StreamKey, error: u32, now_ns: i64) {
        let now = self.clock.at(now_ns);
        if let Some(connection) = self.find(key) {
            connection.quic.close(now, code(error), Bytes::new());
        }
    }

    /// The number of connections.
    pub fn open_connections(&self) -> usize {
        self.endpoint.open_connections()
    }
}

impl Connection {
    /// Takes in what happened. True: the connection is over.
    fn go_on(
        &mut self,
        handle: ConnectionHandle,
        endpoint: &mut Endpoint,
        counts: &mut ServerCounts,
        answers: &mut impl Answers,
    ) -> bool {
        let (connection, generation) = (handle.0, self.generation);
        let key = |stream| StreamKey { connection, generation, stream };
        mem::take(&mut self.writable).into_iter().for_each(|id| self.go_on_writing(key(id), answers));
        let mut is_drained = false;
        loop {
            while let Some(event) = self.quic.poll_endpoint_events() {
                is_drained |= event.is_drained();
                if let Some(event) = endpoint.handle_event(handle, event) {
                    self.quic.handle_event(event);
                }
            }
            let Some(event) = self.quic.poll() else { return is_drained };
            match event {
                QuicEvent::Connected => {
                    self.established = true;
                    counts.handshakes += 1;
                }
                QuicEvent::ConnectionLost { reason } => {
                    counts.failed += u64::from(!self.established);
                    counts.idle += u64::from(reason == quinn_proto::ConnectionError::TimedOut);
                    self.abandon(connection, answers);
                }
                QuicEvent::Stream(StreamEvent::Opened { dir: Dir::Bi }) => {
                    while let Some(stream) = self.quic.streams().accept(Dir::Bi) {
                        self.streams.insert(stream, Stream::default());
                        self.read(key(stream), answers);
                    }
                }
                QuicEvent::Stream(StreamEvent::Readable { id }) => self.read(key(id), answers),
                QuicEvent::Stream(StreamEvent::Writable { id }) => self.go_on_writing(key(id), answers),
                // The client does not want the answer any more.
                QuicEvent::Stream(StreamEvent::Stopped { id, error_code }) => {
                    let _ = self.quic.send_stream(id).reset(error_code);
                    self.forget(key(id), answers);
                }
                _ => {}
            }
        }
    }

    /// Forgets all streams.
    fn abandon(&mut self, connection: usize, answers: &mut impl Answers) {
        let generation = self.generation;
        for (stream, _) in self.streams.drain().filter(|(_, stream)| stream.has_more) {
            answers.abandon(StreamKey { connection, generation, stream });
        }
    }

    /// Forgets a stream, the rest of whose answer is not wanted.
    fn forget(&mut self, key: StreamKey, answers: &mut impl Answers) {
        if self.streams.remove(&key.stream).is_some_and(|stream| stream.has_more) {
            answers.abandon(key);
        }
    }

    /// Reads a stream, and passes the query on when it has ended (FIN).
    fn read(&mut self, key: StreamKey, answers: &mut impl Answers) {
        let peer = self.quic.remote_address().ip();
        let Some(stream) = self.streams.get_mut(&key.stream) else { return };
        let mut received = self.quic.recv_stream(key.stream);
        let Ok(mut chunks) = received.read(true) else { return };
        let outcome = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => stream.query.extend_from_slice(&chunk.bytes),
                Ok(None) => break Some(true),
                Err(ReadError::Blocked) => break None,
                Err(ReadError::Reset(_)) => break Some(false),
            }
            if stream.query.len() > QUERY_BYTES_MAX {
                break Some(false);
            }
        };
        let _ = chunks.finalize();
        let Some(has_ended) = outcome else { return };
        let mut message = std::mem::take(&mut stream.query);
        let is_whole = message.first_chunk().is_some_and(|prefix: &[u8; PREFIX_BYTES]| {
            usize::from(u16::from_be_bytes(*prefix)) == message.len() - PREFIX_BYTES
        });
        if !has_ended || !is_whole {
            cancel(&mut self.quic, key.stream);
            let _ = self.quic.send_stream(key.stream).reset(code(PROTOCOL_ERROR));
            self.streams.remove(&key.stream);
            return;
        }
        message.drain(..PREFIX_BYTES);
        match answers.query(key, peer, &mut message) {
            Reply::Now => drop(self.answer(key, &message, answers)),
            Reply::Later => {}
            Reply::Many => {
                stream.has_more = true;
                self.go_on_writing(key, answers);
            }
        }
    }

    fn answer(&mut self, key: StreamKey, message: &[u8], answers: &mut impl Answers) -> bool {
        let Some(stream) = self.streams.get_mut(&key.stream) else { return false };
        // Its id is the query's. That is 0 (RFC 9250 §4.2.1), but kxdpgun 3.5 sends others and wants them back.
        framing::append(&mut stream.answer, message);
        self.go_on_writing(key, answers);
        true
    }

    /// Writes as much of an answer as flow control and its turn allow. What is answered is forgotten.
    fn go_on_writing(&mut self, key: StreamKey, answers: &mut impl Answers) {
        let id = key.stream;
        let Some(stream) = self.streams.get_mut(&id).filter(|stream| stream.has_more || !stream.answer.is_empty())
        else {
            return;
        };
        let mut turn_bytes = 0;
        loop {
            if stream.written == stream.answer.len() && stream.has_more {
                stream.answer.clear();
                stream.written = 0;
                match answers.more(key, &mut stream.answer) {
                    More::More => {}
                    More::End => stream.has_more = false,
                    More::Reset(error) => {
                        let _ = self.quic.send_stream(id).reset(code(error));
                        self.streams.remove(&id);
                        return;
                    }
                }
            }
            let rest = &stream.answer[stream.written..];
            let length = rest.len();
            let written = write(&mut self.quic.send_stream(id), rest, !stream.has_more);
            match written {
                Some(written) if written < length => return stream.written += written,
                Some(_) if stream.has_more => stream.written += length,
                Some(_) => return drop(self.streams.remove(&id)),
                None => return self.forget(key, answers),
            }
            turn_bytes += length;
            if turn_bytes >= TURN_BYTES {
                return self.writable.push(id);
            }
        }
    }
}
