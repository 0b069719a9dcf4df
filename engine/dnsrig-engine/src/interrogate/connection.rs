//! A connection, plain or with TLS, that blocks: what touches sockets here.
//!
//! Simple rather than fast: an interrogation waits most of its time. Checks write several queries in one TLS record,
//! want to know what a handshake came to, and name errors in words, which a
//! [`dnsrig_net::connection`] does not do.

use std::{
    collections::VecDeque,
    fmt,
    io::{self, Read, Write},
    iter,
    net::{SocketAddr, TcpStream},
    os::linux::net::TcpStreamExt,
    time::{Duration, Instant},
};

use dnsrig_dns::framing::Frames;
use dnsrig_net::tls::{Client, Handshake, Progress, Session};

use super::limits::CONNECT_MAX;

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
    tls: Option<Box<Session>>,
    /// Bytes of a TLS record that is not complete.
    unread: Vec<u8>,
    incoming: Frames,
    /// Messages that came and were not taken yet.
    messages: VecDeque<Vec<u8>>,
    acknowledges_at_once: bool,
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
            unread: Vec::new(),
            incoming: Frames::default(),
            messages: VecDeque::new(),
            acknowledges_at_once: false,
        })
    }

    /// Connects as `client` and makes the handshake. Sends `early` as early data (0-RTT) if the session that is resumed
    /// permits it, and returns whether it did.
    pub fn tls(server: SocketAddr, client: &Client, early: &[u8]) -> Result<(Self, bool), CloseReason> {
        let mut connection = Self::tcp(server)?;
        let (mut session, mut wire) = (Session::new(client)?, Vec::new());
        let frames = iter::once(early).filter(|frame| !frame.is_empty());
        let is_sent = session.begin(frames, &mut wire)? > 0;
        connection.socket.write_all(&wire)?;
        connection.tls = Some(Box::new(session));
        let deadline = Instant::now() + CONNECT_MAX;
        while !connection.fill(deadline)? {}
        Ok((connection, is_sent))
    }

    /// Has the kernel acknowledge what comes at once (TCP_QUICKACK, tcp(7)).
    pub fn acknowledge_at_once(&mut self) {
        self.acknowledges_at_once = true;
    }

    /// What the handshake came to; None without TLS.
    pub fn handshake(&self) -> Option<Handshake> {
        self.tls.as_ref().map(|session| session.handshake())
    }

    /// Sends messages that have their length before them, with one write of the socket.
    pub fn send(&mut self, messages: &[Vec<u8>], records: Records) -> Result<(), CloseReason> {
        let together = messages.concat();
        let Some(session) = &mut self.tls else {
            return Ok(self.socket.write_all(&together)?);
        };
        let mut wire = Vec::new();
        match records {
            Records::OneEach => session.seal(&mut self.unread, messages.iter().map(Vec::as_slice), &mut wire)?,
            Records::OneForAll => session.seal(&mut self.unread, iter::once(&*together), &mut wire)?,
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

    /// Waits for bytes and takes them in; returns whether queries can be sent.
    fn fill(&mut self, deadline: Instant) -> Result<bool, CloseReason> {
        let mut buffer = [0; READ_BYTES];
        let count = self.read_socket(&mut buffer, deadline)?;
        let Connection { socket, tls, unread, incoming, messages, .. } = self;
        let mut keep = |message: &[u8]| messages.push_back(message.to_vec());
        let Some(session) = tls else {
            incoming.feed(&buffer[..count], keep);
            return if count == 0 { Err(CloseReason::Closed) } else { Ok(true) };
        };
        let (mut wire, mut has_come) = (Vec::new(), false);
        unread.extend_from_slice(&buffer[..count]);
        let Progress { used, open, closed } = session.drive(unread, &mut wire, |plain| {
            has_come = true;
            incoming.feed(plain, &mut keep);
        })?;
        unread.drain(..used);
        if (closed || count == 0) && !has_come {
            return Err(CloseReason::Closed);
        }
        socket.write_all(&wire)?;
        Ok(open)
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
}
