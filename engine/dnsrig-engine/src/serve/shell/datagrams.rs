//! The UDP side of one thread: a batch in, a batch out.

use std::{
    io,
    net::{IpAddr, UdpSocket},
    os::fd::AsFd,
};

use dnsrig_net::udp_batch::{self, BATCH_MAX, Peer, Receiver, Sender};

use super::service::{DATAGRAM_BYTES_MAX, Service};

/// The number of full batches that are answered before the connections have their turn.
const BATCHES_MAX: usize = 8;

/// A UDP socket with what is received from it and sent through it.
pub struct Datagrams {
    socket: UdpSocket,
    receiver: Receiver,
    sender: Sender,
    is_ipv6: bool,
}

impl Datagrams {
    /// Answers go out segmented where `segmentation` is on (`UDP_SEGMENT`, udp(7)).
    pub fn new(socket: UdpSocket, segmentation: bool) -> Self {
        let (receiver, sender) = (Receiver::new(DATAGRAM_BYTES_MAX), Sender::new(DATAGRAM_BYTES_MAX, segmentation));
        let is_ipv6 = socket.local_addr().is_ok_and(|address| address.is_ipv6());
        Datagrams { socket, receiver, sender, is_ipv6 }
    }

    /// The socket, to wait for.
    pub fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// Reads what has come and answers what is to be answered at once.
    pub fn answer(&mut self, service: &mut impl Service) -> io::Result<()> {
        for _ in 0..BATCHES_MAX {
            let count = match self.receiver.receive(self.socket.as_fd()) {
                Ok(count) => count,
                Err(error) if is_passing(&error) => continue,
                Err(error) => return Err(error),
            };
            service.tick();
            for datagram in self.receiver.datagrams() {
                let space = self.sender.space();
                if let Some(length) = service.datagram(datagram, space) {
                    self.sender.push_from(length, datagram.peer, datagram.destination);
                }
            }
            self.flush(service);
            // A batch that is not full emptied the socket. What waits for its time may be due.
            if count < BATCH_MAX || service.due_ns().is_some() || service.blocked_until_ns().is_some() {
                break;
            }
        }
        Ok(())
    }

    /// Whether a peer has an address of this socket's family.
    pub fn reaches(&self, peer: Peer) -> bool {
        peer.is_none_or(|peer| peer.is_ipv6() == self.is_ipv6)
    }

    /// Queues an answer that had to wait; it leaves with [`Datagrams::flush`] at the latest.
    pub fn send(&mut self, answer: &[u8], peer: Peer, source: Option<IpAddr>, service: &mut impl Service) {
        if !self.sender.has_room() {
            self.flush(service);
        }
        self.sender.space()[..answer.len()].copy_from_slice(answer);
        self.sender.push_from(answer.len(), peer, source);
    }

    /// Sends what is queued. What the kernel does not take is lost, as datagrams are.
    pub fn flush(&mut self, service: &mut impl Service) {
        let queued = self.sender.len() as u64;
        let sent = self.sender.flush(self.socket.as_fd()).unwrap_or(0) as u64;
        service.datagrams_sent(sent, queued - sent);
    }

    /// How many datagrams found the receive buffer full.
    pub fn receive_buffer_drops(&self) -> u64 {
        udp_batch::dropped(&self.socket).unwrap_or(0)
    }
}

/// Whether a datagram socket's error is a signal, or an ICMP error that belongs to an earlier answer (ip(7), icmp(7)).
pub fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, HostUnreachable, Interrupted, NetworkUnreachable};
    matches!(error.kind(), Interrupted | ConnectionRefused | HostUnreachable | NetworkUnreachable)
}
