//! The connections of one thread, with and without TLS: accepting, reading, writing, closing.

use std::{
    io::{self, Read},
    mem,
    net::{Shutdown, TcpListener, TcpStream},
};

use dnsrig_net::{
    connection::limits::{Connections, Limits},
    poller::Poller,
};
use nix::sys::epoll::EpollFlags;
use slotmap::{Key as _, SlotMap};

use super::{
    connection::{Connection, Handshake, Tls},
    service::{Key, Next, Service},
};

/// The number of bytes that are read from a connection before the next one has its turn.
const READ_BYTES_MAX: usize = 64 * 1024;

/// A service writes messages up to this number of bytes, which then leave with one system call.
pub const WRITE_BYTES: usize = 64 * 1024;

/// What it may write beyond that: a message of the largest size, and what the last record of a message overhangs before
/// it is taken back.
pub const OVERHANG_BYTES: usize = 65_537 + 2048;

/// The number of times that a connection is written to, while the socket takes everything, before the next one has its
/// turn.
const WRITES_MAX: usize = 16;

struct OpenConnection<C> {
    socket: TcpStream,
    connection: Connection,
    conversation: C,
    interest: EpollFlags,
    /// When a message was last complete, or anything was written. Parts of a message are no sign of life: a byte now
    /// and then would keep a connection for ever.
    active_ns: i64,
    /// What the service has to write.
    next: Next,
    /// The peer has closed its side.
    has_ended: bool,
    closing: Closing,
}

/// How far a connection is closed that we close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closing {
    Not,
    /// It is closed as soon as everything that was written has left.
    Soon,
    /// We said goodbye. What still comes is read and dropped: closing before would reset the connection, and what is
    /// on its way to the peer could be lost.
    Said,
}

/// What connections need of their thread.
pub struct Context<'a, S> {
    pub service: &'a mut S,
    pub poller: &'a Poller,
    pub now_ns: i64,
}

/// The connections.
pub struct OpenConnections<C> {
    limits: Limits,
    table: SlotMap<Key, OpenConnection<C>>,
    counts: Connections,
    buffers: Buffers,
}

struct Buffers {
    received: Box<[u8]>,
    decrypted: Box<[u8]>,
    written: Box<[u8]>,
}

impl<C> OpenConnections<C> {
    /// None yet.
    pub fn new(limits: Limits) -> Self {
        let buffer = |bytes| vec![0; bytes].into_boxed_slice();
        let buffers = Buffers {
            received: buffer(READ_BYTES_MAX),
            decrypted: buffer(READ_BYTES_MAX),
            written: buffer(WRITE_BYTES + OVERHANG_BYTES),
        };
        OpenConnections { limits, table: SlotMap::new(), counts: Connections::default(), buffers }
    }

    /// Takes on the connections that wait at `listener`, with `tls` if there is any. False: see
    /// [`Limits::accept`].
    pub fn accept<S: Service<Conversation = C>>(
        &mut self,
        listener: &TcpListener,
        tls: Option<&Tls>,
        context: &mut Context<'_, S>,
    ) -> io::Result<bool> {
        let OpenConnections { limits, table, counts, .. } = self;
        limits.accept(listener, counts, |socket| {
            let connection = match tls {
                Some(tls) => Connection::tls(tls.clone()).map_err(io::Error::other)?,
                None => Connection::plain(),
            };
            let interest = EpollFlags::EPOLLIN;
            let conversation = context.service.open(&socket);
            let key = table.insert(OpenConnection {
                socket,
                connection,
                conversation,
                interest,
                active_ns: context.now_ns,
                next: Next::Nothing,
                has_ended: false,
                closing: Closing::Not,
            });
            context.poller.add(&table[key].socket, interest, key.data().as_ffi())
        })
    }

    /// Does what the poller says can be done on a connection.
    pub fn on_event<S: Service<Conversation = C>>(
        &mut self,
        key: Key,
        happened: EpollFlags,
        context: &mut Context<'_, S>,
    ) -> io::Result<()> {
        let Some(open) = self.table.get_mut(key) else { return Ok(()) };
        let mut result = Ok(());
        if happened.contains(EpollFlags::EPOLLHUP)
            && !happened.contains(EpollFlags::EPOLLERR)
            && open.closing == Closing::Said
        {
            // Both sides said goodbye.
            open.has_ended = true;
        } else if happened.intersects(EpollFlags::EPOLLERR | EpollFlags::EPOLLHUP) {
            result = Err(io::ErrorKind::ConnectionReset.into());
        }
        if result.is_ok() && happened.contains(EpollFlags::EPOLLOUT) {
            result = open.connection.flush(&mut open.socket);
            open.active_ns = context.now_ns;
        }
        if result.is_ok() && happened.contains(EpollFlags::EPOLLIN) {
            result = open.read(key, &mut self.buffers, &mut self.counts, context);
        }
        self.go_on(key, result, context)
    }

    /// Goes on with a connection for which `message` is due; it may be gone.
    pub fn resume<S: Service<Conversation = C>>(
        &mut self,
        key: Key,
        message: &[u8],
        context: &mut Context<'_, S>,
    ) -> io::Result<()> {
        context.service.resume(self.table.get_mut(key).map(|open| &mut open.conversation), message);
        self.go_on(key, Ok(()), context)
    }

    /// Writes what is to be written; then waits for what has to come next, or closes.
    fn go_on<S: Service<Conversation = C>>(
        &mut self,
        key: Key,
        result: io::Result<()>,
        context: &mut Context<'_, S>,
    ) -> io::Result<()> {
        let Some(open) = self.table.get_mut(key) else { return Ok(()) };
        let result = result.and_then(|()| open.write(key, &mut self.buffers.written, context));
        self.counts.reset += u64::from(result.is_err());
        if result.is_err() || open.is_over() {
            context.service.abandon(&mut open.conversation);
            self.table.remove(key);
            self.limits.release(1);
            return Ok(());
        }
        let interest = open.interest(context.service);
        if mem::replace(&mut open.interest, interest) != interest {
            context.poller.change(&open.socket, interest, key.data().as_ffi())?;
        }
        Ok(())
    }

    /// Closes the connections on which nothing happened for too long.
    pub fn sweep(&mut self, now_ns: i64, service: &mut impl Service<Conversation = C>) {
        let before = self.table.len();
        self.table.retain(|_, open| {
            let is_idle = open.next != Next::Later && now_ns - open.active_ns >= self.limits.idle_ns;
            if is_idle {
                let _ = open.connection.close(&mut open.socket);
                service.abandon(&mut open.conversation);
            }
            !is_idle
        });
        let closed = before - self.table.len();
        self.limits.release(closed);
        self.counts.idle += closed as u64;
    }

    /// Abandons what is under way when the thread ends; what was counted.
    pub fn finish(mut self, service: &mut impl Service<Conversation = C>) -> Connections {
        self.table.values_mut().for_each(|open| service.abandon(&mut open.conversation));
        self.counts
    }
}

impl<C> OpenConnection<C> {
    /// Reads once.
    fn read<S: Service<Conversation = C>>(
        &mut self,
        key: Key,
        buffers: &mut Buffers,
        counts: &mut Connections,
        context: &mut Context<'_, S>,
    ) -> io::Result<()> {
        let bytes = match self.socket.read(&mut buffers.received) {
            Ok(0) => {
                self.has_ended = true;
                return Ok(());
            }
            Ok(count) => &buffers.received[..count],
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        if self.closing != Closing::Not {
            return Ok(());
        }
        let service = &mut *context.service;
        service.tick();
        let OpenConnection { connection, conversation, active_ns, .. } = self;
        let outcome = connection.receive(bytes, &mut buffers.decrypted, |message| {
            *active_ns = context.now_ns;
            service.message(conversation, message, key);
        });
        if let Some(handshake) = connection.handshake() {
            counts.handshakes += 1;
            counts.resumed += u64::from(handshake == Handshake::Resumed);
            counts.early_data += u64::from(connection.took_early_data());
        }
        // Handshakes, and the alert after an error of TLS.
        connection.flush(&mut self.socket)?;
        match outcome {
            Ok(goodbye) => self.has_ended |= goodbye,
            Err(_) => {
                counts.tls_failed += 1;
                self.has_ended = true;
                service.abandon(conversation);
            }
        }
        Ok(())
    }

    /// Writes as much as the socket takes, for a while.
    fn write<S: Service<Conversation = C>>(
        &mut self,
        key: Key,
        space: &mut [u8],
        context: &mut Context<'_, S>,
    ) -> io::Result<()> {
        for _ in 0..WRITES_MAX {
            if self.closing != Closing::Not || !self.connection.is_flushed() {
                break;
            }
            let (written, next) = context.service.write(&mut self.conversation, space, key);
            self.next = next;
            if written > 0 {
                self.connection.send(&space[..written], &mut self.socket)?;
                self.active_ns = context.now_ns;
            }
            if self.connection.is_over() {
                self.closing = Closing::Soon;
            }
            match next {
                Next::More => {}
                Next::Later | Next::Nothing => break,
                Next::Close => self.closing = Closing::Soon,
            }
        }
        self.say_goodbye()
    }

    fn say_goodbye(&mut self) -> io::Result<()> {
        if self.closing == Closing::Soon && self.connection.is_flushed() {
            self.connection.close(&mut self.socket)?;
            self.socket.shutdown(Shutdown::Write)?;
            self.closing = Closing::Said;
        } else if self.closing == Closing::Not && self.is_over() {
            // What a peer that is gone does not want to hear is no error.
            let _ = self.connection.close(&mut self.socket);
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        match self.closing {
            Closing::Not => self.has_ended && self.next == Next::Nothing && self.connection.is_flushed(),
            Closing::Soon => false,
            Closing::Said => self.has_ended,
        }
    }

    /// The events to wait for. If a peer does not read its answers, its queries are not read either: this bounds what
    /// waits.
    fn interest(&self, service: &impl Service<Conversation = C>) -> EpollFlags {
        let is_flushed = self.connection.is_flushed();
        let mut interest = EpollFlags::empty();
        if !is_flushed || (self.next == Next::More && self.closing == Closing::Not) {
            interest |= EpollFlags::EPOLLOUT;
        }
        let reads = match self.closing {
            Closing::Not => service.wants_messages(&self.conversation, is_flushed),
            Closing::Soon => false,
            Closing::Said => true,
        };
        if reads && !self.has_ended {
            interest |= EpollFlags::EPOLLIN;
        }
        interest
    }
}
