//! Connections that a server accepts: how many at most, and the counts of them.

use std::{
    fs::File,
    io,
    net::{TcpListener, TcpStream},
    ops::AddAssign,
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use nix::sys::socket::{SockFlag, accept4};
use serde::Serialize;

/// The number of connections that are accepted in a row; then other sockets have their turn.
const ACCEPTS_MAX: usize = 64;

/// What became of connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Connections {
    /// Taken on.
    pub accepted: u64,
    /// Closed at once, because there were too many.
    pub refused: u64,
    /// TLS handshakes completed, the resumed ones among them.
    pub handshakes: u64,
    /// TLS handshakes that resumed an earlier session.
    pub resumed: u64,
    /// Resumed TLS handshakes with queries in the first flight (0-RTT) that were accepted.
    pub early_data: u64,
    /// Ended by an error of TLS, mostly before the handshake was complete.
    pub tls_failed: u64,
    /// Reset or broken by the peer.
    pub reset: u64,
    /// Closed by us, because no query came for too long.
    pub idle: u64,
}

impl AddAssign for Connections {
    fn add_assign(&mut self, other: Connections) {
        self.accepted += other.accepted;
        self.refused += other.refused;
        self.handshakes += other.handshakes;
        self.resumed += other.resumed;
        self.early_data += other.early_data;
        self.tls_failed += other.tls_failed;
        self.reset += other.reset;
        self.idle += other.idle;
    }
}

/// The limits that the connections of all threads share.
#[derive(Clone)]
pub struct Limits {
    /// How many connections may be open.
    connections_max: usize,
    /// How many connections are open.
    open: Arc<AtomicUsize>,
    /// A connection on which nothing happens is closed after this time.
    pub idle_ns: i64,
    /// A descriptor to be given up if there is no other. None: it was given up, and is not regained yet.
    spare: Arc<Mutex<Option<File>>>,
}

impl Limits {
    /// Limits under which no connection is open yet.
    pub fn new(connections_max: u32, idle_ns: i64) -> Self {
        let spare = Arc::new(Mutex::new(spare()));
        Limits { connections_max: connections_max as usize, open: Arc::default(), idle_ns, spare }
    }

    /// Accepts the connections that wait at `listener`, as far as the limit allows, and calls `each` with them.
    ///
    /// False: the connections that still wait can be neither accepted nor refused. A poller would report them again and
    /// again, so do not listen for a while.
    pub fn accept(
        &self,
        listener: &TcpListener,
        counts: &mut Connections,
        mut each: impl FnMut(TcpStream) -> io::Result<()>,
    ) -> io::Result<bool> {
        for _ in 0..ACCEPTS_MAX {
            let socket = match accept(listener) {
                Ok(socket) => socket,
                Err(nix::Error::EAGAIN) => return Ok(true),
                Err(nix::Error::EMFILE | nix::Error::ENFILE | nix::Error::ENOBUFS | nix::Error::ENOMEM) => {
                    match self.refuse(listener) {
                        Ok(()) => counts.refused += 1,
                        Err(nix::Error::EAGAIN) => return Ok(true),
                        Err(_) => return Ok(false),
                    }
                    continue;
                }
                // Errors of the connection that would have been next (accept(2)).
                Err(_) => continue,
            };
            if self.open.fetch_add(1, Ordering::Relaxed) >= self.connections_max {
                self.release(1);
                counts.refused += 1;
                continue;
            }
            counts.accepted += 1;
            each(socket)?;
        }
        Ok(true)
    }

    /// Accepts a connection and closes it, by means of the spare descriptor.
    fn refuse(&self, listener: &TcpListener) -> nix::Result<()> {
        let mut kept = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        drop(kept.take());
        let refused = accept(listener).map(drop);
        *kept = spare();
        refused
    }

    /// Notes that this number of connections was closed.
    pub fn release(&self, count: usize) {
        self.open.fetch_sub(count, Ordering::Relaxed);
    }
}

fn accept(listener: &TcpListener) -> nix::Result<TcpStream> {
    let fd = accept4(listener.as_raw_fd(), SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC)?;
    // SAFETY: accept4 has just made it, so that nobody else owns or closes it.
    Ok(TcpStream::from(unsafe { OwnedFd::from_raw_fd(fd) }))
}

fn spare() -> Option<File> {
    File::open("/dev/null").ok()
}
