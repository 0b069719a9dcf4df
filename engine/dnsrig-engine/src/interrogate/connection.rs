//! A connection, plain or with TLS, that blocks: what touches sockets here.
//!
//! Simple rather than fast: an interrogation waits most of its time. It has its own TLS beside
//! [`net::connection`](crate::net::connection), because checks do on purpose what other clients never do: several
//! queries in one TLS record, early data, protocols other than `dot`. They also report the outcome of a handshake.

use std::{
    collections::VecDeque,
    fmt,
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    os::linux::net::TcpStreamExt,
    sync::Arc,
    time::{Duration, Instant},
};

use rustls::{ClientConfig, ClientConnection, HandshakeKind, pki_types::ServerName};

use super::limits::CONNECT_MAX;
use crate::net::framing::Frames;

/// How many bytes are read at once.
const READ_BYTES: usize = 16_384;

/// Why nothing (more) came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// In the time that it had.
    TimedOut,
    /// Records came until the time was over.
    Unfinished,
    /// The server ended the connection in order.
    Closed,
    Reset,
    /// Nothing listens there.
    Refused,
    /// The network has no way there, or another error of it.
    Network(String),
    /// TLS failed, by this reason.
    Tls(String),
    /// More came than we want of it.
    Enough,
    /// This number of messages came in time, and no record of what was asked for.
    Fruitless(usize),
}

impl fmt::Display for CloseReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CloseReason::TimedOut => formatter.write_str("nothing came in time"),
            CloseReason::Unfinished => formatter.write_str("it did not finish in time"),
            CloseReason::Closed => formatter.write_str("the server closed the connection"),
            CloseReason::Reset => formatter.write_str("the server reset the connection"),
            CloseReason::Refused => formatter.write_str("nothing listens there"),
            CloseReason::Network(reason) => formatter.write_str(reason),
            CloseReason::Tls(reason) => write!(formatter, "TLS failed: {reason}"),
            CloseReason::Enough => formatter.write_str("there was more than an interrogation takes"),
            CloseReason::Fruitless(1) => {
                formatter.write_str("a message came that answers nothing, and no other in time")
            }
            CloseReason::Fruitless(count) => {
                write!(
                    formatter,
                    "{count} messages came that bring no record of what was asked for, and no other in time"
                )
            }
        }
    }
}

impl From<io::Error> for CloseReason {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => CloseReason::TimedOut,
            io::ErrorKind::ConnectionRefused => CloseReason::Refused,
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionAborted => {
                CloseReason::Reset
            }
            io::ErrorKind::UnexpectedEof => CloseReason::Closed,
            _ => CloseReason::Network(error.to_string()),
        }
    }
}

impl From<rustls::Error> for CloseReason {
    fn from(error: rustls::Error) -> Self {
        CloseReason::Tls(error.to_string())
    }
}

/// How several messages are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Records {
    /// Each in a TLS record of its own.
    OneEach,
    /// All in one TLS record.
    OneForAll,
}

/// A connection.
pub struct Connection {
    socket: TcpStream,
    tls: Option<Box<ClientConnection>>,
    incoming: Frames,
    /// Messages that came and were not taken yet.
    messages: VecDeque<Vec<u8>>,
    acknowledges_at_once: bool,
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

impl Connection {
    /// Connects.
    pub fn tcp(server: SocketAddr) -> Result<Self, CloseReason> {
        let socket = TcpStream::connect_timeout(&server, CONNECT_MAX)?;
        socket.set_nodelay(true)?;
        socket.set_write_timeout(Some(CONNECT_MAX))?;
        Ok(Connection {
            socket,
            tls: None,
            incoming: Frames::default(),
            messages: VecDeque::new(),
            acknowledges_at_once: false,
        })
    }

    /// Connects and makes the handshake.
    pub fn tls(server: SocketAddr, config: &Arc<ClientConfig>, name: ServerName<'static>) -> Result<Self, CloseReason> {
        Self::tls_with_early_data(server, config, name, &[]).map(|(connection, _)| connection)
    }

    /// Likewise; sends `early` as early data (0-RTT) if the session that is resumed permits it, and tells whether it
    /// did.
    pub fn tls_with_early_data(
        server: SocketAddr,
        config: &Arc<ClientConfig>,
        name: ServerName<'static>,
        early: &[u8],
    ) -> Result<(Self, bool), CloseReason> {
        let mut connection = Self::tcp(server)?;
        let mut tls = ClientConnection::new(config.clone(), name)?;
        let mut is_sent = false;
        if let Some(mut writer) = tls.early_data().filter(|_| !early.is_empty()) {
            is_sent = writer.write(early)? == early.len();
        }
        connection.tls = Some(Box::new(tls));
        let deadline = Instant::now() + CONNECT_MAX;
        while connection.tls.as_ref().is_some_and(|tls| tls.is_handshaking()) {
            connection.flush()?;
            if connection.tls.as_ref().is_some_and(|tls| tls.is_handshaking()) {
                connection.fill(deadline)?;
            }
        }
        connection.flush()?;
        Ok((connection, is_sent))
    }

    /// Has the kernel acknowledge what comes at once (TCP_QUICKACK, tcp(7)).
    pub fn acknowledge_at_once(&mut self) {
        self.acknowledges_at_once = true;
    }

    /// What the handshake came to; None without TLS.
    pub fn handshake(&self) -> Option<Handshake> {
        let tls = self.tls.as_ref()?;
        let text = |value: Option<String>| value.unwrap_or_default();
        Some(Handshake {
            version: text(
                tls.protocol_version().and_then(|version| version.as_str()).map(|name| name.replace('_', ".")),
            ),
            suite: text(tls.negotiated_cipher_suite().and_then(|suite| suite.suite().as_str()).map(str::to_owned)),
            alpn: tls.alpn_protocol().map(|name| String::from_utf8_lossy(name).into_owned()),
            is_resumed: tls.handshake_kind() == Some(HandshakeKind::Resumed),
            is_early_data_accepted: tls.is_early_data_accepted(),
        })
    }

    /// Sends messages that have their length before them, with one write of the socket.
    pub fn send(&mut self, messages: &[Vec<u8>], records: Records) -> Result<(), CloseReason> {
        let Some(tls) = &mut self.tls else {
            return Ok(self.socket.write_all(&messages.concat())?);
        };
        match records {
            // Each write makes a record, as far as it fits.
            Records::OneEach => messages.iter().try_for_each(|message| tls.writer().write_all(message))?,
            Records::OneForAll => tls.writer().write_all(&messages.concat())?,
        }
        let mut wire = Vec::new();
        while tls.wants_write() {
            tls.write_tls(&mut wire)?;
        }
        Ok(self.socket.write_all(&wire)?)
    }

    /// The next message, without its length. None is given after `deadline`, also where there are more.
    pub fn receive(&mut self, deadline: Instant) -> Result<Vec<u8>, CloseReason> {
        loop {
            if Instant::now() >= deadline {
                return Err(CloseReason::TimedOut);
            }
            if let Some(message) = self.messages.pop_front() {
                return Ok(message);
            }
            self.fill(deadline)?;
        }
    }

    /// Waits for bytes and takes them in.
    fn fill(&mut self, deadline: Instant) -> Result<(), CloseReason> {
        let mut buffer = [0; READ_BYTES];
        let count = self.read_socket(&mut buffer, deadline)?;
        let Some(tls) = &mut self.tls else {
            if count == 0 {
                return Err(CloseReason::Closed);
            }
            self.incoming.feed(&buffer[..count], |message| self.messages.push_back(message.to_vec()));
            return Ok(());
        };
        let mut incoming = &buffer[..count];
        loop {
            let taken = tls.read_tls(&mut incoming)?;
            let state = tls.process_new_packets()?;
            let mut plain = vec![0; state.plaintext_bytes_to_read()];
            tls.reader().read_exact(&mut plain)?;
            self.incoming.feed(&plain, |message| self.messages.push_back(message.to_vec()));
            if state.peer_has_closed() || count == 0 {
                return if plain.is_empty() { Err(CloseReason::Closed) } else { Ok(()) };
            }
            if taken == 0 || incoming.is_empty() {
                break;
            }
        }
        self.flush()
    }

    fn read_socket(&mut self, buffer: &mut [u8], deadline: Instant) -> Result<usize, CloseReason> {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(CloseReason::TimedOut);
            }
            // The kernel counts in milliseconds; a wait of none would be one without end.
            self.socket.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
            if self.acknowledges_at_once {
                // The kernel forgets it by and by.
                self.socket.set_quickack(true)?;
            }
            match self.socket.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return Ok(read?),
            }
        }
    }

    /// Sends what TLS itself has to say.
    fn flush(&mut self) -> Result<(), CloseReason> {
        if let Some(tls) = &mut self.tls {
            while tls.wants_write() {
                tls.write_tls(&mut self.socket)?;
            }
        }
        Ok(())
    }
}
