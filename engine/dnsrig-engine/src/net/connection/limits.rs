//! How many connections there may be, and how they are taken on.

use std::{
    fs::File,
    io,
    net::{TcpListener, TcpStream},
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use nix::sys::socket::{SockFlag, accept4};

use super::counts::Connections;

/// So many connections are accepted before it is the others' turn.
const ACCEPTS_MAX: usize = 64;

/// What all threads' connections share.
#[derive(Clone)]
pub struct Limits {
    /// How many connections may be open.
    connections_max: usize,
    /// How many are.
    open: Arc<AtomicUsize>,
    /// A connection on which nothing happens is closed after so long.
    pub idle_ns: i64,
    /// A descriptor to be given up where there is no other. None: it was given up, and is not regained yet.
    spare: Arc<Mutex<Option<File>>>,
}

impl Limits {
    /// Limits under which no connection is open yet.
    pub fn new(connections_max: u32, idle_ns: i64) -> Self {
        let spare = Arc::new(Mutex::new(spare()));
        Limits { connections_max: connections_max as usize, open: Arc::default(), idle_ns, spare }
    }

    /// Takes on the connections that wait at `listener`, as far as there may be more, and gives `each` of them.
    ///
    /// False: those that still wait can be neither taken on nor refused. A poller would tell of them without end, so do not
    /// listen for a while.
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

    /// So many connections are closed.
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
