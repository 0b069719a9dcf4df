//! One connection's TLS session: bytes in, bytes out, no socket.

use rustls::{
    Error, HandshakeKind,
    client::{ClientConnectionData, UnbufferedClientConnection},
    unbuffered::{ConnectionState, EncodeError, EncryptError, UnbufferedStatus, WriteTraffic},
};

use super::client::Client;

/// Longer than all that TLS adds to a record: 22 bytes in TLS 1.3 (RFC 8446 §5.2), 29 in TLS 1.2 with AES-GCM.
const RECORD_BYTES_MAX: usize = 64;

/// Room for a message of the handshake. If one needs more, the library returns how much.
const HANDSHAKE_BYTES: usize = 1_024;

/// A longer frame does not fit into one record (RFC 8446 §5.1), and is not sent as early data.
const EARLY_FRAME_BYTES_MAX: usize = 16_384;

/// How the record begins that a client sends at the end of its early data, if the server has accepted it, and never
/// otherwise (RFC 8446 §4.5): encrypted, with a message of 4 bytes, its type and a tag of 16. rustls does not say what
/// became of early data, but this it must send.
const END_OF_EARLY_DATA: [u8; 5] = [23, 3, 3, 0, 21];

/// What [`Session::drive`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The number of incoming bytes that were used; the others belong to a record that is not complete.
    pub used: usize,
    /// The handshake is done: queries can be sent.
    pub open: bool,
    /// The server has ended its side (close_notify).
    pub closed: bool,
}

/// What a handshake came to.
#[derive(Clone, Debug)]
pub struct Handshake {
    pub version: String,
    pub suite: String,
    pub alpn: Option<String>,
    pub is_resumed: bool,
    pub is_early_data_accepted: bool,
}

/// The client's side of one connection.
pub struct Session {
    connection: UnbufferedClientConnection,
    /// The protocol that must have been agreed on by the end of the handshake; None after it was checked.
    alpn_wanted: Option<&'static [u8]>,
    /// The number of bytes of early data that may be sent.
    early_bytes_max: usize,
    /// Whether the server has accepted it.
    early_accepted: bool,
    /// Whether the handshake is done.
    is_open: bool,
}

impl Session {
    /// The session of a connection on which nothing was sent yet. [`Session::begin`] begins the handshake.
    pub fn new(client: &Client) -> Result<Self, Error> {
        let connection = UnbufferedClientConnection::new(client.config.clone(), client.name.clone())?;
        let early_bytes_max = client.early_bytes_max();
        Ok(Session {
            connection,
            alpn_wanted: client.alpn_required,
            early_bytes_max,
            early_accepted: false,
            is_open: false,
        })
    }

    /// Whether the server has accepted the early data; known once the handshake is done.
    pub fn is_early_data_accepted(&self) -> bool {
        self.early_accepted
    }

    /// Whether early data may be sent: the client wants to, and the session that is resumed permits it.
    pub fn permits_early_data(&self) -> bool {
        self.early_bytes_max > 0
    }

    /// Begins the handshake: `wire` gets the first flight. As many of `frames` go with it as early data as the session
    /// that is resumed permits, none mostly; returns how many bytes of them.
    pub fn begin<'a>(&mut self, frames: impl Iterator<Item = &'a [u8]>, wire: &mut Vec<u8>) -> Result<usize, Error> {
        let mut frames = frames.peekable();
        let mut early = 0;
        loop {
            match self.connection.process_tls_records(&mut []).state? {
                ConnectionState::EncodeTlsData(mut data) => {
                    append(wire, HANDSHAKE_BYTES, |space| data.encode(space).map_err(needed_by_handshake))?;
                }
                ConnectionState::TransmitTlsData(mut data) => {
                    if let Some(mut traffic) = data.may_encrypt_early_data() {
                        let room = |early: usize| (self.early_bytes_max - early).min(EARLY_FRAME_BYTES_MAX);
                        while let Some(frame) = frames.next_if(|frame| frame.len() <= room(early)) {
                            // One that had too little room would have to be encrypted again, which counts twice.
                            let bytes = frame.len() + RECORD_BYTES_MAX;
                            append(wire, bytes, |space| traffic.encrypt(frame, space).map_err(|_| None))?;
                            early += frame.len();
                        }
                    }
                    data.done();
                }
                ConnectionState::BlockedHandshake => return Ok(early),
                _ => return Err(Error::General("a state that no handshake begins with".into())),
            }
        }
    }

    /// What the handshake came to, once it is done.
    pub fn handshake(&self) -> Handshake {
        let version = self.connection.protocol_version().and_then(|version| version.as_str());
        let suite = self.connection.negotiated_cipher_suite().and_then(|suite| suite.suite().as_str());
        Handshake {
            version: version.map(|name| name.replace('_', ".")).unwrap_or_default(),
            suite: suite.unwrap_or_default().to_owned(),
            alpn: self.connection.alpn_protocol().map(|name| String::from_utf8_lossy(name).into_owned()),
            is_resumed: self.is_resumed(),
            is_early_data_accepted: self.early_accepted,
        }
    }

    /// Whether the handshake resumed a session.
    pub fn is_resumed(&self) -> bool {
        self.connection.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// Takes in bytes from the server. `each` gets what they decrypt to; messages of TLS itself go to `reply`.
    pub fn drive(
        &mut self,
        incoming: &mut [u8],
        reply: &mut Vec<u8>,
        mut each: impl FnMut(&[u8]),
    ) -> Result<Progress, Error> {
        let progress = self.advance(incoming, reply, &mut each)?;
        if progress.open
            && let Some(alpn) = self.alpn_wanted.take()
            && self.connection.alpn_protocol() != Some(alpn)
        {
            return Err(Error::NoApplicationProtocol);
        }
        Ok(progress)
    }

    fn advance(
        &mut self,
        incoming: &mut [u8],
        reply: &mut Vec<u8>,
        mut each: impl FnMut(&[u8]),
    ) -> Result<Progress, Error> {
        let mut progress = Progress::default();
        loop {
            let UnbufferedStatus { mut discard, state } =
                self.connection.process_tls_records(&mut incoming[progress.used..]);
            let is_over = match state? {
                ConnectionState::ReadTraffic(mut traffic) => {
                    while let Some(record) = traffic.next_record() {
                        let record = record?;
                        discard += record.discard;
                        each(record.payload);
                    }
                    false
                }
                ConnectionState::EncodeTlsData(mut data) => {
                    let start = reply.len();
                    append(reply, HANDSHAKE_BYTES, |space| data.encode(space).map_err(needed_by_handshake))?;
                    self.early_accepted |= !self.is_open && reply[start..].starts_with(&END_OF_EARLY_DATA);
                    false
                }
                ConnectionState::TransmitTlsData(data) => {
                    data.done();
                    false
                }
                ConnectionState::WriteTraffic(_) => {
                    (progress.open, self.is_open) = (true, true);
                    true
                }
                ConnectionState::BlockedHandshake => true,
                ConnectionState::PeerClosed | ConnectionState::Closed => {
                    progress.closed = true;
                    true
                }
                _ => return Err(Error::General("a state that a client of this kind never has".into())),
            };
            progress.used += discard;
            if is_over {
                return Ok(progress);
            }
        }
    }

    /// Encrypts `frames` into `wire`, each in a record of its own: with several in one, some servers wait for the
    /// socket while the second query lies in their TLS library. `unread` is what [`Session::drive`] has not used yet.
    pub fn seal<'a>(
        &mut self,
        unread: &mut [u8],
        frames: impl Iterator<Item = &'a [u8]>,
        wire: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let mut traffic = self.writer(unread)?;
        for frame in frames {
            append(wire, frame.len() + RECORD_BYTES_MAX, |space| traffic.encrypt(frame, space).map_err(needed))?;
        }
        Ok(())
    }

    /// Writes to `wire` that this side has ended (close_notify).
    pub fn close(&mut self, unread: &mut [u8], wire: &mut Vec<u8>) -> Result<(), Error> {
        let mut traffic = self.writer(unread)?;
        append(wire, RECORD_BYTES_MAX, |space| traffic.queue_close_notify(space).map_err(needed))
    }

    fn writer(&mut self, unread: &mut [u8]) -> Result<WriteTraffic<'_, ClientConnectionData>, Error> {
        match self.connection.process_tls_records(unread) {
            UnbufferedStatus { state: Ok(ConnectionState::WriteTraffic(traffic)), discard: 0, .. } => Ok(traffic),
            UnbufferedStatus { state: Err(error), .. } => Err(error),
            _ => Err(Error::HandshakeNotComplete),
        }
    }
}

/// Has `write` append to `wire`: in this number of bytes of room, or in the number that it returns as needed.
fn append(
    wire: &mut Vec<u8>,
    bytes: usize,
    mut write: impl FnMut(&mut [u8]) -> Result<usize, Option<usize>>,
) -> Result<(), Error> {
    let start = wire.len();
    wire.resize(start + bytes, 0);
    let mut written = write(&mut wire[start..]);
    if let Err(Some(needed)) = written {
        wire.resize(start + needed, 0);
        written = write(&mut wire[start..]);
    }
    wire.truncate(start + written.unwrap_or(0));
    written.map(|_| ()).map_err(|_| Error::EncryptError)
}

/// How many bytes are needed, if room was too small.
fn needed(error: EncryptError) -> Option<usize> {
    match error {
        EncryptError::InsufficientSize(size) => Some(size.required_size),
        EncryptError::EncryptExhausted => None,
    }
}

/// How many bytes a message of the handshake needs, if room was too small.
fn needed_by_handshake(error: EncodeError) -> Option<usize> {
    match error {
        EncodeError::InsufficientSize(size) => Some(size.required_size),
        EncodeError::AlreadyEncoded => None,
    }
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
