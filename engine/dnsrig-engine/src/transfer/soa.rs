//! SOA queries over UDP: a socket of each secondary.

use std::{
    io::{self, ErrorKind},
    net::{IpAddr, SocketAddr, UdpSocket},
    os::fd::{AsFd, BorrowedFd},
};

use crate::{stream::Loss, target};

/// The longest answer that is taken: without EDNS a server sends no more than 512 octets (RFC 1035 §4.2.1), and some more
/// do no harm.
const ANSWER_OCTETS_MAX: usize = 4_096;

/// So many answers in a row are taken; what is left comes with the next turn.
const ANSWERS_MAX: usize = 256;

/// A socket that asks one server.
pub struct Asker(UdpSocket);

impl Asker {
    /// A socket to `server`, from `source` or any address.
    pub fn open(server: SocketAddr, source: Option<IpAddr>) -> io::Result<Self> {
        let socket = UdpSocket::bind((source.unwrap_or(target::unspecified(server)), 0))?;
        socket.connect(server)?;
        socket.set_nonblocking(true)?;
        Ok(Asker(socket))
    }

    /// Sends one query. Where there is no room it is lost, as on the way.
    pub fn send(&self, query: &[u8]) -> Result<(), Loss> {
        match self.0.send(query) {
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => Err(Loss::Refused),
            _ => Ok(()),
        }
    }

    /// Calls `each` with the answers that have come.
    pub fn receive(&self, mut each: impl FnMut(&[u8])) -> Result<(), Loss> {
        let mut space = [0; ANSWER_OCTETS_MAX];
        for _ in 0..ANSWERS_MAX {
            match self.0.recv(&mut space) {
                Ok(count) => each(&space[..count]),
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => return Err(Loss::Refused),
                Err(_) => break,
            }
        }
        Ok(())
    }
}

impl AsFd for Asker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
