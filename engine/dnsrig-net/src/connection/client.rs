//! One connection: its socket, its TLS session, and the bytes that wait on either side.

use std::{
    mem,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use dnsrig_dns::framing::{Frames, PREFIX_BYTES, each_frame};
use nix::sys::socket::{getsockopt, sockopt};

use super::socket::{self, CloseReason, SocketOptions};
use crate::{
    http2,
    tls::{Client, Fault, Progress, Session},
};

/// An incomplete TLS record, or a handshake message of several, is at most this long; rustls allows 64 KiB and a
/// record.
const UNREAD_BYTES_MAX: usize = 96 << 10;

/// Bytes of HTTP/2 that go into one TLS record: as many as it takes (RFC 8446 §5.1).
const RECORD_BYTES_MAX: usize = 16_384;

/// A connection that has ended keeps no more memory than this for the next in its place.
const SPARE_BYTES_MAX: usize = 4 << 10;

/// Buffers that the connections of a thread share.
pub struct Buffers {
    read: Box<[u8]>,
    wire: Vec<u8>,
}

impl Buffers {
    /// Buffers for readings of at most `read_bytes`.
    pub fn new(read_bytes: usize) -> Self {
        Buffers { read: vec![0; UNREAD_BYTES_MAX + read_bytes].into_boxed_slice(), wire: Vec::new() }
    }
}

/// What a reading brought.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reading {
    /// The number of bytes that came.
    pub bytes: usize,
    /// There was nothing more to read.
    pub drained: bool,
    /// There was as much as there was room for.
    pub full: bool,
    /// The TLS handshake is done.
    pub open: bool,
    /// The other side has ended the connection.
    pub closed: bool,
}

/// What became of queries that were sent as early data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EarlyQueries {
    pub accepted: u64,
    /// Sent again after the handshake.
    pub rejected: u64,
}

/// A connection, or the place of one.
#[derive(Default)]
pub struct Connection {
    socket: Option<OwnedFd>,
    /// What comes is acknowledged at once.
    quickack: bool,
    /// TCP is connected.
    connected: bool,
    session: Option<Box<Session>>,
    /// What turns queries into requests, and responses into answers, if HTTP/2 is spoken.
    http: Option<Box<http2::Client>>,
    incoming: Frames,
    /// Queries that wait until the connection is open, framed.
    queue: Vec<u8>,
    /// How many bytes of the queue, from its begin on, were sent as early data; over HTTP/2, of its output.
    early_bytes: usize,
    /// Over HTTP/2, the requests in these bytes.
    early: EarlyQueries,
    /// Bytes that the socket had no room for, or the introduction.
    out: Vec<u8>,
    /// Whether `out` has bytes that go first, in one write with what follows them.
    is_introduced: bool,
    /// Received bytes of a TLS record that is not complete.
    unread: Vec<u8>,
}

impl Connection {
    /// Takes a socket that is connecting, made with `options`. With `tls`, a handshake follows.
    pub fn begin(&mut self, socket: OwnedFd, options: &SocketOptions, tls: Option<&Client>) -> Result<(), CloseReason> {
        self.socket = Some(socket);
        self.quickack = options.quickack;
        if let Some(client) = tls {
            self.session = Some(Box::new(Session::new(client).map_err(fault)?));
        }
        Ok(())
    }

    /// Sends these bytes first on the connection that was just begun, before TLS.
    pub fn introduce(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
        self.is_introduced = true;
    }

    /// Speaks HTTP/2 inside the TLS of the connection that was just begun.
    pub fn speak_http(&mut self, client: http2::Client) {
        self.http = Some(Box::new(client));
    }

    /// Its HTTP/2, if that is spoken.
    pub fn http(&mut self) -> Option<&mut http2::Client> {
        self.http.as_deref_mut()
    }

    /// How many queries it takes now, those that wait included. None: any number.
    pub fn room(&self) -> Option<usize> {
        let http = self.http.as_ref()?;
        Some(http.room().saturating_sub(each_frame(&self.queue).count()))
    }

    /// Its socket, while there is one.
    pub fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.socket.as_ref().map(OwnedFd::as_fd)
    }

    pub fn is_connected(&self) -> bool {
        self.connected
    }

    /// Whether bytes wait for room in the socket.
    pub fn is_blocked(&self) -> bool {
        !self.is_introduced && !self.out.is_empty()
    }

    /// Whether its TLS session, if there is one, was resumed.
    pub fn is_resumed(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.is_resumed())
    }

    /// Why connecting failed.
    pub fn error(&self) -> nix::Error {
        let error = self.socket.as_ref().and_then(|socket| getsockopt(socket, sockopt::SocketError).ok());
        error.filter(|error| *error != 0).map_or(nix::Error::ECONNRESET, nix::Error::from_raw)
    }

    /// TCP is connected: the TLS handshake begins, if there is one, with queries that wait as early data where these
    /// are permitted. True if queries can be sent already.
    pub fn connected(&mut self, buffers: &mut Buffers) -> Result<bool, CloseReason> {
        self.connected = true;
        let is_permitted = self.session.as_ref().is_some_and(|session| session.permits_early_data());
        let requests = if is_permitted { self.request_waiting() } else { 0 };
        let Some(session) = &mut self.session else { return Ok(true) };
        buffers.wire.clear();
        self.early_bytes = match &mut self.http {
            None => session.begin(each_frame(&self.queue), &mut buffers.wire),
            // All requests leave early, or none.
            Some(http) => {
                let output = http.output().as_slice();
                let early = Some(output).filter(|output| requests > 0 && output.len() <= RECORD_BYTES_MAX);
                session.begin(early.into_iter(), &mut buffers.wire)
            }
        }
        .map_err(fault)?;
        self.early.accepted = if self.early_bytes > 0 { requests } else { 0 };
        self.write(&buffers.wire)?;
        Ok(false)
    }

    /// Makes requests of the queries that wait, as far as HTTP/2 has room. Returns their number.
    fn request_waiting(&mut self) -> u64 {
        let Some(http) = self.http.as_mut() else { return 0 };
        let (mut taken, mut count) = (0, 0);
        for frame in each_frame_mut(&mut self.queue) {
            match &mut frame[PREFIX_BYTES..] {
                query if http.is_over() => http.refuse(query),
                query if http.room() > 0 => http.request(query),
                _ => break,
            }
            (taken, count) = (taken + frame.len(), count + 1);
        }
        self.queue.drain(..taken);
        count
    }

    /// Keeps framed queries until the connection is open; returns how many bytes wait by now.
    pub fn queue(&mut self, frames: &[u8]) -> usize {
        self.queue.extend_from_slice(frames);
        self.queue.len()
    }

    /// Sends the queries that were kept until the connection was open, except those that the server accepted as early
    /// data. Over HTTP/2 those for which there is no room go on waiting, for [`Connection::send_waiting`].
    pub fn send_queue(&mut self, buffers: &mut Buffers) -> Result<EarlyQueries, CloseReason> {
        if self.http.is_some() {
            self.send_http(buffers)?;
            return self.send_waiting(buffers).map(|()| mem::take(&mut self.early));
        }
        let mut queue = mem::take(&mut self.queue);
        let early_bytes = mem::take(&mut self.early_bytes);
        let count = each_frame(&queue[..early_bytes]).count() as u64;
        let (early, rest) = if self.is_early_data_accepted() {
            (EarlyQueries { accepted: count, rejected: 0 }, &mut queue[early_bytes..])
        } else {
            (EarlyQueries { accepted: 0, rejected: count }, &mut queue[..])
        };
        let sent = if rest.is_empty() { Ok(()) } else { self.send(rest, buffers) };
        self.queue = queue;
        self.queue.clear();
        sent.map(|()| early)
    }

    /// Sends queries that waited for room, as far as HTTP/2 has room by now. If the connection takes no requests any
    /// more, they are lost.
    pub fn send_waiting(&mut self, buffers: &mut Buffers) -> Result<(), CloseReason> {
        if self.http.is_none() || self.queue.is_empty() {
            return Ok(());
        }
        self.request_waiting();
        self.send_http(buffers)
    }

    /// Sends framed queries on an open connection; what the socket has no room for waits.
    pub fn send(&mut self, frames: &mut [u8], buffers: &mut Buffers) -> Result<(), CloseReason> {
        if let Some(http) = &mut self.http {
            each_frame_mut(frames).for_each(|frame| http.request(&mut frame[PREFIX_BYTES..]));
            return self.send_http(buffers);
        }
        let Some(session) = &mut self.session else { return self.write(frames) };
        buffers.wire.clear();
        session.seal(&mut self.unread, each_frame(frames), &mut buffers.wire).map_err(fault)?;
        self.write(&buffers.wire)
    }

    /// Whether the server accepted queries as early data.
    fn is_early_data_accepted(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.is_early_data_accepted())
    }

    /// Sends what HTTP/2 has to send, except what the server accepted as early data.
    pub fn send_http(&mut self, buffers: &mut Buffers) -> Result<(), CloseReason> {
        let is_accepted = self.is_early_data_accepted();
        let Some(http) = &mut self.http else { return Ok(()) };
        let mut output = mem::take(http.output());
        match mem::take(&mut self.early_bytes) {
            0 => {}
            sent if is_accepted => drop(output.drain(..sent)),
            _ => self.early = EarlyQueries { accepted: 0, rejected: self.early.accepted },
        }
        if output.is_empty() {
            return Ok(());
        }
        let sent = match &mut self.session {
            None => self.write(&output),
            Some(session) => {
                buffers.wire.clear();
                let records = output.chunks(RECORD_BYTES_MAX);
                let sealed = session.seal(&mut self.unread, records, &mut buffers.wire).map_err(fault);
                sealed.and_then(|()| self.write(&buffers.wire))
            }
        };
        output.clear();
        if let Some(http) = &mut self.http {
            *http.output() = output;
        }
        sent
    }

    /// Sends what waits for room.
    pub fn flush(&mut self) -> Result<(), CloseReason> {
        let Some(socket) = &self.socket else { return Ok(()) };
        let written = socket::write(socket, &self.out)?;
        self.out.drain(..written);
        Ok(())
    }

    /// Reads once, and calls `each` with the messages that have come.
    pub fn read(&mut self, buffers: &mut Buffers, mut each: impl FnMut(&[u8])) -> Result<Reading, CloseReason> {
        let Some(socket) = &self.socket else { return Ok(Reading::default()) };
        let Buffers { read: space, wire } = buffers;
        let start = self.unread.len();
        let room = space.len() - UNREAD_BYTES_MAX;
        space[..start].copy_from_slice(&self.unread);
        let Some(count) = socket::read(socket, &mut space[start..start + room])? else {
            return Ok(Reading { drained: true, ..Reading::default() });
        };
        if self.quickack {
            socket::acknowledge(socket);
        }
        let mut reading = Reading { bytes: count, full: count == room, closed: count == 0, ..Reading::default() };
        let Some(session) = &mut self.session else {
            self.incoming.feed(&space[..count], each);
            return Ok(reading);
        };
        wire.clear();
        let incoming = &mut space[..start + count];
        let (messages, http) = (&mut self.incoming, &mut self.http);
        let mut spoken = Ok(());
        let driven = session.drive(incoming, wire, |bytes| match http {
            None => messages.feed(bytes, &mut each),
            Some(http) if spoken.is_ok() => spoken = http.receive(bytes, &mut each),
            Some(_) => {}
        });
        let Progress { used, open, closed } = driven.map_err(fault)?;
        self.unread.clear();
        self.unread.extend_from_slice(&incoming[used..]);
        if self.unread.len() > UNREAD_BYTES_MAX {
            return Err(CloseReason::Tls(Fault::Protocol));
        }
        (reading.open, reading.closed) = (open, closed || reading.closed);
        if !wire.is_empty() {
            self.write(wire)?;
        }
        if open {
            self.send_http(buffers)?;
        }
        spoken.map_err(CloseReason::Http)?;
        Ok(reading)
    }

    /// Closes the connection; an open TLS session is ended first if there is to be a `close_notify`.
    pub fn close(&mut self, close_notify: bool, buffers: &mut Buffers) {
        drop(self.leave(close_notify, buffers));
    }

    /// Ends the connection like [`Connection::close`], but returns the socket, and whether there was a TLS session. The
    /// caller closes the socket when the other side has ended its session: what comes after a close resets the
    /// connection.
    pub fn leave(&mut self, close_notify: bool, buffers: &mut Buffers) -> Option<(OwnedFd, bool)> {
        if let (true, Some(session), Some(socket)) =
            (close_notify && self.out.is_empty(), &mut self.session, &self.socket)
        {
            buffers.wire.clear();
            // The connection is over, whether the other side hears of it or not.
            if session.close(&mut self.unread, &mut buffers.wire).is_ok() {
                let _ = socket::write(socket, &buffers.wire);
            }
        }
        let had_session = self.session.take().is_some();
        self.http = None;
        (self.connected, self.is_introduced) = (false, false);
        (self.early_bytes, self.early) = (0, EarlyQueries::default());
        self.incoming.clear();
        for buffer in [&mut self.queue, &mut self.out, &mut self.unread] {
            buffer.clear();
            buffer.shrink_to(SPARE_BYTES_MAX);
        }
        self.socket.take().map(|socket| (socket, had_session))
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), CloseReason> {
        let Some(socket) = &self.socket else { return Ok(()) };
        let written = if self.out.is_empty() { socket::write(socket, bytes)? } else { 0 };
        self.out.extend_from_slice(&bytes[written..]);
        if mem::take(&mut self.is_introduced) { self.flush() } else { Ok(()) }
    }
}

/// Cuts frames that [`each_frame`] cuts, to be changed.
fn each_frame_mut(mut frames: &mut [u8]) -> impl Iterator<Item = &mut [u8]> {
    std::iter::from_fn(move || {
        let length = each_frame(frames).next()?.len();
        let (frame, rest) = mem::take(&mut frames).split_at_mut(length);
        frames = rest;
        Some(frame)
    })
}

fn fault(error: rustls::Error) -> CloseReason {
    CloseReason::Tls(Fault::from(&error))
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
