//! SOA queries over UDP: the socket of a secondary.

use std::{
    io::{self, ErrorKind},
    net::{IpAddr, SocketAddr, UdpSocket},
    os::fd::{AsFd, BorrowedFd},
};

use dnsrig_core::target;
use dnsrig_net::connection::CloseReason;

/// The longest answer that is read: without EDNS a server sends at most 512 bytes (RFC 1035 §4.2.1).
const ANSWER_BYTES_MAX: usize = 4_096;

/// The number of answers that are read in a row, as many as are outstanding at a time; then other sockets have their
/// turn.
const ANSWERS_MAX: usize = 64;

/// A socket that asks one server.
pub struct SoaSocket(UdpSocket);

impl SoaSocket {
    /// A socket to `server`, from `source` or any address.
    pub fn open(server: SocketAddr, source: Option<IpAddr>) -> io::Result<Self> {
        let socket = UdpSocket::bind((source.unwrap_or(target::unspecified(server)), 0))?;
        socket.connect(server)?;
        socket.set_nonblocking(true)?;
        Ok(SoaSocket(socket))
    }

    /// Sends one query. If the socket has no room, the query is lost, like one that is lost on the way.
    pub fn send(&self, query: &[u8]) -> Result<(), CloseReason> {
        match self.0.send(query) {
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => Err(CloseReason::Refused),
            _ => Ok(()),
        }
    }

    /// Calls `each` with answers that have come, and returns whether these were all. If not, call it again: a poller
    /// that reports edges does not report what is left (epoll(7)).
    pub fn receive(&self, mut each: impl FnMut(&[u8])) -> Result<bool, CloseReason> {
        let mut space = [0; ANSWER_BYTES_MAX];
        for _ in 0..ANSWERS_MAX {
            match self.0.recv(&mut space) {
                Ok(count) => each(&space[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => return Err(CloseReason::Refused),
                // A signal, or an ICMP error to an earlier query: there may be more to read.
                Err(_) => {}
            }
        }
        Ok(false)
    }
}

impl AsFd for SoaSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_turn_leaves_is_said_and_taken_in_the_next() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let socket = SoaSocket::open(server.local_addr().unwrap(), None).unwrap();
        // Few enough for a receive buffer of the default size.
        let sent = ANSWERS_MAX + 10;
        for _ in 0..sent {
            server.send_to(&[0; 12], socket.0.local_addr().unwrap()).unwrap();
        }
        let mut count = 0;
        assert_eq!(socket.receive(|_| count += 1), Ok(false));
        assert_eq!(socket.receive(|_| count += 1), Ok(true));
        assert_eq!(count, sent);
    }
}
