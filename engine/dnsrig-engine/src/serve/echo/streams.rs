//! The connections of one thread, TCP and DoT: accepting, reading, writing, closing.

use std::{
    io::{self, Read},
    mem,
    net::{TcpListener, TcpStream},
    sync::Arc,
};

use nix::sys::epoll::EpollFlags;
use rustls::ServerConfig;

use super::{
    answerer::{Answerer, Destination, Turn},
    message,
};
use crate::{
    net::{
        connection::{
            limits::Limits,
            table::{Table, Token},
        },
        framing,
        poller::Poller,
    },
    serve::connection::{Connection, Handshake},
};

/// So many octets are read from a connection at once, before it is the next one's turn.
const READ_OCTETS_MAX: usize = 64 * 1024;

struct Stream {
    socket: TcpStream,
    connection: Connection,
    interest: EpollFlags,
    /// When it was accepted or last had a query.
    active_ns: i64,
    /// Answers that wait for their delay.
    waiting: u32,
    /// The peer sends no more.
    ended: bool,
}

/// A table of connections.
pub struct Streams {
    limits: Limits,
    table: Table<Stream>,
    received: Box<[u8]>,
    decrypted: Box<[u8]>,
    answers: Vec<u8>,
}

impl Streams {
    /// An empty table.
    pub fn new(limits: Limits) -> Self {
        let buffer = || vec![0; READ_OCTETS_MAX].into_boxed_slice();
        let (received, decrypted) = (buffer(), buffer());
        Streams { limits, table: Table::default(), received, decrypted, answers: Vec::new() }
    }

    /// Takes on the connections that wait at `listener`, with TLS if there is a `config` for it. False: see [`Limits::accept`].
    pub fn accept(
        &mut self,
        listener: &TcpListener,
        config: Option<&Arc<ServerConfig>>,
        now_ns: i64,
        answerer: &mut Answerer,
        poller: &Poller,
    ) -> io::Result<bool> {
        let Streams { limits, table, .. } = self;
        limits.accept(listener, &mut answerer.counts.connections, |socket| {
            let connection = match config {
                Some(config) => Connection::tls(Arc::clone(config)).map_err(io::Error::other)?,
                None => Connection::plain(),
            };
            let interest = EpollFlags::EPOLLIN;
            let token =
                table.insert(Stream { socket, connection, interest, active_ns: now_ns, waiting: 0, ended: false });
            table.get(token).map_or(Ok(()), |stream| poller.add(&stream.socket, interest, token.number()))
        })
    }

    /// Does what the poller says can be done on a connection.
    pub fn on_event(
        &mut self,
        token: Token,
        happened: EpollFlags,
        now_ns: i64,
        answerer: &mut Answerer,
        poller: &Poller,
    ) -> io::Result<()> {
        let Some(stream) = self.table.get(token) else { return Ok(()) };
        let mut result = Ok(());
        if happened.intersects(EpollFlags::EPOLLERR | EpollFlags::EPOLLHUP) {
            result = Err(io::ErrorKind::ConnectionReset.into());
        } else if happened.contains(EpollFlags::EPOLLOUT) {
            result = stream.connection.flush(&mut stream.socket);
        } else if happened.contains(EpollFlags::EPOLLIN) {
            result = self.read(token, now_ns, answerer);
        }
        self.settle(token, result, answerer, poller)
    }

    /// Reads once, and answers what is to be answered at once.
    fn read(&mut self, token: Token, now_ns: i64, answerer: &mut Answerer) -> io::Result<()> {
        let Streams { table, received, decrypted, answers, .. } = self;
        let Some(stream) = table.get(token) else { return Ok(()) };
        let octets = match stream.socket.read(received) {
            Ok(0) => {
                stream.ended = true;
                return Ok(());
            }
            Ok(count) => &received[..count],
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        answerer.tick();
        answers.clear();
        let mut answered = 0;
        let outcome = stream.connection.receive(octets, decrypted, |query| {
            stream.active_ns = now_ns;
            match answerer.take(query, query.len(), Destination::Stream(token)) {
                Turn::Now => {
                    let start = framing::append(answers, query);
                    message::answer(&mut answers[start..]);
                    answered += 1;
                }
                Turn::Later => stream.waiting += 1,
                Turn::Never => {}
            }
        });
        count_handshake(stream, answerer);
        let sent = !answers.is_empty() && stream.connection.send(answers, &mut stream.socket).unwrap_or(false);
        *if sent { &mut answerer.counts.answers } else { &mut answerer.counts.dropped.unsent } += answered;
        stream.connection.flush(&mut stream.socket)?;
        match outcome {
            Ok(goodbye) => stream.ended |= goodbye,
            Err(_) => {
                answerer.counts.connections.tls_failed += 1;
                stream.ended = true;
            }
        }
        Ok(())
    }

    /// Sends the answer to a query whose delay is over.
    pub fn answer_later(
        &mut self,
        token: Token,
        query: &mut [u8],
        answerer: &mut Answerer,
        poller: &Poller,
    ) -> io::Result<()> {
        let Some(stream) = self.table.get(token) else {
            answerer.counts.dropped.unsent += 1;
            return Ok(());
        };
        stream.waiting -= 1;
        message::answer(query);
        self.answers.clear();
        framing::append(&mut self.answers, query);
        let result = stream.connection.send(&self.answers, &mut stream.socket);
        let sent = matches!(result, Ok(true));
        *if sent { &mut answerer.counts.answers } else { &mut answerer.counts.dropped.unsent } += 1;
        self.settle(token, result.map(drop), answerer, poller)
    }

    /// Closes a connection that broke or is done with; otherwise waits for what has to come next.
    fn settle(
        &mut self,
        token: Token,
        result: io::Result<()>,
        answerer: &mut Answerer,
        poller: &Poller,
    ) -> io::Result<()> {
        let Some(stream) = self.table.get(token) else { return Ok(()) };
        let flushed = stream.connection.is_flushed();
        if result.is_err() {
            answerer.counts.connections.reset += 1;
            self.remove(token);
            return Ok(());
        }
        if stream.ended && flushed && stream.waiting == 0 {
            // What a peer that is gone does not want to hear is no error.
            let _ = stream.connection.close(&mut stream.socket);
            self.remove(token);
            return Ok(());
        }
        // Who does not read is not read from: this bounds what waits.
        let interest = match (flushed, stream.ended) {
            (false, _) => EpollFlags::EPOLLOUT,
            (true, false) => EpollFlags::EPOLLIN,
            (true, true) => EpollFlags::empty(),
        };
        if mem::replace(&mut stream.interest, interest) != interest {
            poller.change(&stream.socket, interest, token.number())?;
        }
        Ok(())
    }

    /// Closes the connections that had no query for too long.
    pub fn sweep(&mut self, now_ns: i64, answerer: &mut Answerer) {
        let idle_ns = self.limits.idle_ns;
        let closed = self.table.extract(|stream| {
            let is_idle = stream.waiting == 0 && now_ns - stream.active_ns >= idle_ns;
            if is_idle {
                let _ = stream.connection.close(&mut stream.socket);
            }
            is_idle
        });
        self.limits.release(closed);
        answerer.counts.connections.idle += closed as u64;
    }

    fn remove(&mut self, token: Token) {
        if self.table.remove(token).is_some() {
            self.limits.release(1);
        }
    }
}

fn count_handshake(stream: &mut Stream, answerer: &mut Answerer) {
    let connections = &mut answerer.counts.connections;
    match stream.connection.handshake() {
        Some(Handshake::Full) => connections.handshakes += 1,
        Some(Handshake::Resumed) => {
            connections.handshakes += 1;
            connections.resumed += 1;
        }
        None => {}
    }
}
