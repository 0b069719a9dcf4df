//! One connection as a state machine: bytes in, messages out, and back. No socket and no clock.
//!
//! TLS is a layer below the framing: with it, bytes pass through a session of rustls, which has no I/O either.

use std::{
    io::{self, Read, Write},
    sync::Arc,
};

use rustls::{HandshakeKind, ServerConfig, ServerConnection};

use crate::net::framing::Frames;

/// A connection's state.
pub struct Connection {
    frames: Frames,
    layer: Layer,
}

enum Layer {
    Plain(Output),
    Tls(Box<Session>),
}

/// Bytes that the socket did not take yet.
#[derive(Default)]
struct Output {
    bytes: Vec<u8>,
    sent: usize,
}

struct Session {
    tls: ServerConnection,
    handshake_told: bool,
}

/// How a TLS session began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handshake {
    /// With certificates.
    Full,
    /// With a ticket from an earlier one.
    Resumed,
}

impl Connection {
    /// A connection without TLS.
    pub fn plain() -> Self {
        Connection { frames: Frames::default(), layer: Layer::Plain(Output::default()) }
    }

    /// A connection that starts with a TLS handshake.
    pub fn tls(config: Arc<ServerConfig>) -> Result<Self, rustls::Error> {
        let mut tls = ServerConnection::new(config)?;
        // A limit inside would cut answers in the middle. Nothing is sent before all that was sent has left.
        tls.set_buffer_limit(None);
        let session = Session { tls, handshake_told: false };
        Ok(Connection { frames: Frames::default(), layer: Layer::Tls(Box::new(session)) })
    }

    /// Takes in what came and calls `each` with every message that is now complete; true if the peer has said goodbye.
    ///
    /// After an error of TLS, [`Connection::flush`] sends the alert that tells the peer of it. `scratch` is room for
    /// what was decrypted, of any size but none.
    pub fn receive(
        &mut self,
        bytes: &[u8],
        scratch: &mut [u8],
        mut each: impl FnMut(&[u8]),
    ) -> Result<bool, rustls::Error> {
        let Layer::Tls(session) = &mut self.layer else {
            self.frames.feed(bytes, each);
            return Ok(false);
        };
        let mut rest = bytes;
        let mut goodbye = false;
        while !rest.is_empty() && !goodbye {
            let taken = session.tls.read_tls(&mut rest);
            goodbye = session.tls.process_new_packets()?.peer_has_closed();
            // It came before all else.
            while let Some(Ok(count @ 1..)) = session.tls.early_data().map(|mut early| early.read(scratch)) {
                self.frames.feed(&scratch[..count], &mut each);
            }
            while let Ok(count @ 1..) = session.tls.reader().read(scratch) {
                self.frames.feed(&scratch[..count], &mut each);
            }
            if taken.is_err() {
                return Err(rustls::Error::General("more bytes than a record may have".into()));
            }
        }
        Ok(goodbye)
    }

    /// How the TLS session began: once, as soon as it has.
    pub fn handshake(&mut self) -> Option<Handshake> {
        let Layer::Tls(session) = &mut self.layer else { return None };
        if session.handshake_told || session.tls.is_handshaking() {
            return None;
        }
        session.handshake_told = true;
        match session.tls.handshake_kind()? {
            HandshakeKind::Resumed => Some(Handshake::Resumed),
            _ => Some(Handshake::Full),
        }
    }

    /// Whether queries came with the first flight of the handshake and were taken (0-RTT).
    pub fn took_early_data(&mut self) -> bool {
        let Layer::Tls(session) = &mut self.layer else { return false };
        session.tls.early_data().is_some()
    }

    /// Sends framed messages as far as `to` takes them and keeps the rest. How much waits is for the caller to bound.
    pub fn send(&mut self, framed: &[u8], to: &mut impl Write) -> io::Result<()> {
        match &mut self.layer {
            Layer::Plain(output) if output.bytes.is_empty() => {
                let sent = write_some(to, framed)?;
                output.bytes.extend_from_slice(&framed[sent..]);
                return Ok(());
            }
            Layer::Plain(output) => output.bytes.extend_from_slice(framed),
            Layer::Tls(session) => session.tls.writer().write_all(framed)?,
        }
        self.flush(to)
    }

    /// Sends what waits, as far as `to` takes it without blocking.
    pub fn flush(&mut self, to: &mut impl Write) -> io::Result<()> {
        match &mut self.layer {
            Layer::Plain(output) => output.flush(to),
            Layer::Tls(session) => session.flush(to),
        }
    }

    /// Says goodbye, where the protocol has a word for it (RFC 8446 §6.1).
    pub fn close(&mut self, to: &mut impl Write) -> io::Result<()> {
        if let Layer::Tls(session) = &mut self.layer {
            session.tls.send_close_notify();
        }
        self.flush(to)
    }

    /// Whether nothing waits until the peer reads.
    pub fn is_flushed(&self) -> bool {
        match &self.layer {
            Layer::Plain(output) => output.bytes.is_empty(),
            Layer::Tls(session) => !session.tls.wants_write(),
        }
    }
}

impl Output {
    fn flush(&mut self, to: &mut impl Write) -> io::Result<()> {
        while self.sent < self.bytes.len() {
            match write_some(to, &self.bytes[self.sent..])? {
                0 => return Ok(()),
                count => self.sent += count,
            }
        }
        *self = Output::default();
        Ok(())
    }
}

impl Session {
    /// All records that are ready leave with one system call, as far as the socket takes them.
    fn flush(&mut self, to: &mut impl Write) -> io::Result<()> {
        while self.tls.wants_write() {
            match self.tls.write_tls(to) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Writes as much as `to` takes at once; nothing if it would block.
fn write_some(to: &mut impl Write, bytes: &[u8]) -> io::Result<usize> {
    loop {
        match to.write(bytes) {
            Ok(0) if !bytes.is_empty() => return Err(io::ErrorKind::WriteZero.into()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
            result => return result,
        }
    }
}

#[cfg(test)]
#[path = "connection_tests.rs"]
mod tests;
