//! The connections of one thread, TCP and XoT: accepting, reading, writing, closing.

use std::{
    collections::VecDeque,
    io::{self, Read},
    mem,
    net::{Shutdown, TcpListener, TcpStream},
    sync::Arc,
};

use nix::sys::epoll::EpollFlags;
use rustls::ServerConfig;

use super::{
    conversation::{Conversation, Filled},
    counts::Counts,
    message_writer::MessageWriter,
    primary::{Now, Primary},
};
use crate::{
    base::clock,
    net::{
        connection::{
            limits::Limits,
            table::{Table, Token},
        },
        poller::Poller,
    },
    serve::connection::{Connection, Handshake},
};

/// So many octets are read from a connection at once, before it is the next one's turn.
const READ_OCTETS_MAX: usize = 64 * 1024;

/// Messages are written until there are so many octets, which then leave with one system call.
const WRITE_OCTETS: usize = 64 * 1024;

/// What may be written beyond that: a message of the largest size, and what the last record of a message overhangs
/// before it is taken back.
const OVERHANG_OCTETS: usize = 65_537 + 2048;

/// So many times a connection is written to, while the socket takes all of it, before it is the next one's turn.
const WRITES_MAX: usize = 16;

struct Stream {
    socket: TcpStream,
    connection: Connection,
    conversation: Conversation,
    interest: EpollFlags,
    /// When anything was last read or written.
    active_ns: i64,
    /// Whether the next message waits for its time.
    is_paused: bool,
    /// The peer sends no more.
    has_ended: bool,
    closing: Closing,
}

/// How far a connection is closed that we close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closing {
    Not,
    /// As soon as what was written has left.
    Soon,
    /// We said goodbye. What still comes is read and dropped: closing before would reset the connection, and what is
    /// on its way to the peer could be lost.
    Said,
}

/// What connections need of their thread.
pub struct Context<'a> {
    pub primary: &'a Primary,
    pub now: Now,
    pub counts: &'a mut Counts,
    pub poller: &'a Poller,
}

/// A table of connections.
pub struct Streams {
    limits: Limits,
    table: Table<Stream>,
    received: Box<[u8]>,
    decrypted: Box<[u8]>,
    written: Box<[u8]>,
    /// Connections whose next message has its time, in its order: they all wait equally long.
    paused: VecDeque<(i64, Token)>,
}

impl Streams {
    /// An empty table.
    pub fn new(limits: Limits) -> Self {
        let buffer = |octets| vec![0; octets].into_boxed_slice();
        Streams {
            limits,
            table: Table::default(),
            received: buffer(READ_OCTETS_MAX),
            decrypted: buffer(READ_OCTETS_MAX),
            written: buffer(WRITE_OCTETS + OVERHANG_OCTETS),
            paused: VecDeque::new(),
        }
    }

    /// Takes on the connections that wait at `listener`, with TLS if there is a `config` for it. False: see [`Limits::accept`].
    pub fn accept(
        &mut self,
        listener: &TcpListener,
        config: Option<&Arc<ServerConfig>>,
        context: &mut Context<'_>,
    ) -> io::Result<bool> {
        let Streams { limits, table, .. } = self;
        limits.accept(listener, &mut context.counts.connections, |socket| {
            let connection = match config {
                Some(config) => Connection::tls(Arc::clone(config)).map_err(io::Error::other)?,
                None => Connection::plain(),
            };
            let interest = EpollFlags::EPOLLIN;
            let peer = socket.peer_addr().ok().map(|peer| peer.ip());
            let token = table.insert(Stream {
                socket,
                connection,
                conversation: Conversation::new(peer),
                interest,
                active_ns: context.now.monotonic_ns,
                is_paused: false,
                has_ended: false,
                closing: Closing::Not,
            });
            table.get(token).map_or(Ok(()), |stream| context.poller.add(&stream.socket, interest, token.number()))
        })
    }

    /// Does what the poller says can be done on a connection.
    pub fn on_event(&mut self, token: Token, happened: EpollFlags, context: &mut Context<'_>) -> io::Result<()> {
        let Some(stream) = self.table.get(token) else { return Ok(()) };
        let mut result = Ok(());
        if happened.contains(EpollFlags::EPOLLHUP) && !happened.contains(EpollFlags::EPOLLERR) && stream.is_leaving() {
            // Both sides said goodbye.
            stream.has_ended = true;
        } else if happened.intersects(EpollFlags::EPOLLERR | EpollFlags::EPOLLHUP) {
            result = Err(io::ErrorKind::ConnectionReset.into());
        }
        if result.is_ok() && happened.contains(EpollFlags::EPOLLOUT) {
            result = stream.connection.flush(&mut stream.socket);
            stream.active_ns = context.now.monotonic_ns;
        }
        if result.is_ok() && happened.contains(EpollFlags::EPOLLIN) {
            result = stream.read(&mut self.received, &mut self.decrypted, context);
        }
        self.go_on(token, result, context)
    }

    /// When the next connection's pause is over.
    pub fn due_ns(&self) -> Option<i64> {
        self.paused.front().map(|(due_ns, _)| *due_ns)
    }

    /// Goes on with the connections whose pause is over.
    pub fn resume(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        while self.due_ns().is_some_and(|due_ns| due_ns <= context.now.monotonic_ns) {
            let Some((_, token)) = self.paused.pop_front() else { break };
            if let Some(stream) = self.table.get(token) {
                stream.is_paused = false;
                self.go_on(token, Ok(()), context)?;
            }
        }
        Ok(())
    }

    /// Writes what is to be written; then waits for what has to come next, or closes.
    fn go_on(&mut self, token: Token, result: io::Result<()>, context: &mut Context<'_>) -> io::Result<()> {
        let Some(stream) = self.table.get(token) else { return Ok(()) };
        let result = result.and_then(|()| stream.write(&mut self.written, context));
        let pause = match result {
            Ok(pause) => pause,
            Err(_) => {
                context.counts.connections.reset += 1;
                self.remove(token, context.counts);
                return Ok(());
            }
        };
        if let Some(ns) = pause {
            stream.is_paused = true;
            self.paused.push_back((context.now.monotonic_ns + ns, token));
        }
        if stream.is_over() {
            self.remove(token, context.counts);
            return Ok(());
        }
        let interest = stream.interest(context.primary);
        if mem::replace(&mut stream.interest, interest) != interest {
            context.poller.change(&stream.socket, interest, token.number())?;
        }
        Ok(())
    }

    /// Closes the connections on which nothing happened for too long, and gives back the room that others had.
    pub fn sweep(&mut self, now_ns: i64, counts: &mut Counts) {
        let idle_ns = self.limits.idle_ns;
        let closed = self.table.extract(|stream| {
            stream.conversation.rest();
            let is_idle = !stream.is_paused && now_ns - stream.active_ns >= idle_ns;
            if is_idle {
                let _ = stream.connection.close(&mut stream.socket);
                stream.conversation.abandon(counts);
            }
            is_idle
        });
        self.limits.release(closed);
        counts.connections.idle += closed as u64;
    }

    /// Counts what is under way when the thread ends.
    pub fn abandon(&mut self, counts: &mut Counts) {
        self.table.extract(|stream| {
            stream.conversation.abandon(counts);
            true
        });
    }

    fn remove(&mut self, token: Token, counts: &mut Counts) {
        if let Some(mut stream) = self.table.remove(token) {
            stream.conversation.abandon(counts);
            self.limits.release(1);
        }
    }
}

impl Stream {
    /// Reads once.
    fn read(&mut self, received: &mut [u8], decrypted: &mut [u8], context: &mut Context<'_>) -> io::Result<()> {
        let octets = match self.socket.read(received) {
            Ok(0) => {
                self.has_ended = true;
                return Ok(());
            }
            Ok(count) => &received[..count],
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        // Who was told of a change by another thread and asks then must see it.
        context.now.monotonic_ns = clock::monotonic_ns();
        self.active_ns = context.now.monotonic_ns;
        if self.closing != Closing::Not {
            return Ok(());
        }
        let Context { primary, now, counts, .. } = context;
        let outcome = self.connection.receive(octets, decrypted, |message| {
            self.conversation.take(message, primary, *now, counts);
        });
        match self.connection.handshake() {
            Some(Handshake::Full) => counts.connections.handshakes += 1,
            Some(Handshake::Resumed) => {
                counts.connections.handshakes += 1;
                counts.connections.resumed += 1;
            }
            None => {}
        }
        // Handshakes, and the alert after an error of TLS.
        self.connection.flush(&mut self.socket)?;
        match outcome {
            Ok(goodbye) => self.has_ended |= goodbye,
            Err(_) => {
                counts.connections.tls_failed += 1;
                self.has_ended = true;
                self.conversation.abandon(counts);
            }
        }
        Ok(())
    }

    /// Writes as much as the socket takes, for a while; how long the next message has to wait, if it has to.
    fn write(&mut self, written: &mut [u8], context: &mut Context<'_>) -> io::Result<Option<i64>> {
        for _ in 0..WRITES_MAX {
            if self.is_paused || self.closing != Closing::Not || !self.connection.is_flushed() {
                break;
            }
            let mut to = MessageWriter::new(written, 0);
            let Context { primary, now, counts, .. } = context;
            let filled = self.conversation.fill(primary, &mut to, WRITE_OCTETS, now.wall_s, counts);
            if to.at() > 0 {
                self.connection.send(to.written(), &mut self.socket)?;
                self.active_ns = context.now.monotonic_ns;
            }
            match filled {
                Filled::More => {}
                Filled::Empty => break,
                Filled::Pause { ns } => return Ok(Some(ns)),
                Filled::Close => self.closing = Closing::Soon,
            }
        }
        self.say_goodbye()?;
        Ok(None)
    }

    fn say_goodbye(&mut self) -> io::Result<()> {
        if self.closing == Closing::Soon && self.connection.is_flushed() {
            self.connection.close(&mut self.socket)?;
            self.socket.shutdown(Shutdown::Write)?;
            self.closing = Closing::Said;
        }
        let is_done = self.has_ended && self.conversation.is_empty() && self.connection.is_flushed();
        if is_done && self.closing == Closing::Not {
            // What a peer that is gone does not want to hear is no error.
            let _ = self.connection.close(&mut self.socket);
        }
        Ok(())
    }

    fn is_leaving(&self) -> bool {
        self.closing == Closing::Said
    }

    fn is_over(&self) -> bool {
        match self.closing {
            Closing::Not => self.has_ended && self.conversation.is_empty() && self.connection.is_flushed(),
            Closing::Soon => false,
            Closing::Said => self.has_ended,
        }
    }

    /// What to wait for. Who does not read is not read from without limit: this bounds what waits.
    fn interest(&self, primary: &Primary) -> EpollFlags {
        let is_flushed = self.connection.is_flushed();
        let mut interest = EpollFlags::empty();
        let has_more = !self.conversation.is_empty() && !self.is_paused && self.closing == Closing::Not;
        if !is_flushed || has_more {
            interest |= EpollFlags::EPOLLOUT;
        }
        let wants_queries = self.conversation.wants_queries(primary.cut.order) || self.closing == Closing::Said;
        if !self.has_ended && wants_queries && self.closing != Closing::Soon {
            interest |= EpollFlags::EPOLLIN;
        }
        interest
    }
}
