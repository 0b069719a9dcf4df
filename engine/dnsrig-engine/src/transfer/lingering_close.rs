//! Connections that were ended here and not yet there.
//!
//! A TLS session ends with a word from each side (RFC 8446 §6.1). What comes to a closed socket resets the connection,
//! so the last word of the primary is waited for: then the connection ends with FIN, and this side has the TIME_WAIT
//! that it would have without TLS.

use std::{
    collections::VecDeque,
    os::fd::{AsRawFd, OwnedFd},
};

use nix::sys::socket::{Shutdown, shutdown};

use crate::net::connection::socket;

/// Nobody is waited for longer.
const WAIT_NS_MAX: i64 = 2_000_000_000;

/// So many are waited for at a time; one more, and the oldest is closed as it is.
const WAITING_MAX: usize = 4_096;

/// What comes meanwhile is read in pieces of this size and thrown away, so many at a time.
const PIECE_BYTES: usize = 4_096;
const PIECES_MAX: usize = 64;

/// Sockets that wait for the other side's last word, oldest first.
#[derive(Default)]
pub struct LingeringCloses(VecDeque<(i64, OwnedFd)>);

impl LingeringCloses {
    /// Says on `socket` that nothing more will be sent, and waits.
    pub fn add(&mut self, socket: OwnedFd, now_ns: i64) {
        if shutdown(socket.as_raw_fd(), Shutdown::Write).is_err() {
            // It is over already.
            return;
        }
        if self.0.len() >= WAITING_MAX {
            self.0.pop_front();
        }
        self.0.push_back((now_ns + WAIT_NS_MAX, socket));
    }

    /// Closes those whose other side has ended, or that have waited for too long; returns how many are left.
    pub fn look(&mut self, now_ns: i64) -> usize {
        self.0.retain(|(until_ns, socket)| now_ns < *until_ns && !has_ended(socket));
        self.0.len()
    }
}

fn has_ended(socket: &OwnedFd) -> bool {
    let mut space = [0; PIECE_BYTES];
    for _ in 0..PIECES_MAX {
        match socket::read(socket, &mut space) {
            Ok(None) => return false,
            Ok(Some(0)) | Err(_) => return true,
            Ok(Some(_)) => {}
        }
    }
    false
}
