//! How many connections there may be, and how they are taken on.

use std::{
    io,
    net::{TcpListener, TcpStream},
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    sync::{
        Arc,
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
}

impl Limits {
    /// Limits under which no connection is open yet.
    pub fn new(connections_max: u32, idle_ns: i64) -> Self {
        Limits { connections_max: connections_max as usize, open: Arc::default(), idle_ns }
    }

    /// Takes on the connections that wait at `listener`, as far as there may be more, and gives `each` of them.
    pub fn accept(
        &self,
        listener: &TcpListener,
        counts: &mut Connections,
        mut each: impl FnMut(TcpStream) -> io::Result<()>,
    ) -> io::Result<()> {
        for _ in 0..ACCEPTS_MAX {
            let socket = match accept4(listener.as_raw_fd(), SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC) {
                // SAFETY: accept4 has just made it, so that nobody else owns or closes it.
                Ok(fd) => TcpStream::from(unsafe { OwnedFd::from_raw_fd(fd) }),
                Err(nix::Error::EAGAIN) => return Ok(()),
                Err(nix::Error::EMFILE | nix::Error::ENFILE | nix::Error::ENOBUFS | nix::Error::ENOMEM) => {
                    // Left where they are; perhaps one of ours ends.
                    counts.refused += 1;
                    return Ok(());
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
        Ok(())
    }

    /// So many connections are closed.
    pub fn release(&self, count: usize) {
        self.open.fetch_sub(count, Ordering::Relaxed);
    }
}
