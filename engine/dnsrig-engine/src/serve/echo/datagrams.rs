//! The UDP side of one thread: a batch in, a batch out.

use std::{io, net::UdpSocket, os::fd::AsFd};

use super::{
    answerer::{Answerer, Destination, Turn},
    delayed::OCTETS_MAX,
    message,
};
use crate::{
    net::udp_batch::{BATCH_MAX, Peer, Receiver, Sender},
    serve::sockets,
};

/// So many full batches are answered before it is the connections' turn.
const BATCHES_MAX: usize = 8;

/// A UDP socket with what is received from it and sent through it.
pub struct Datagrams {
    socket: UdpSocket,
    receiver: Receiver,
    sender: Sender,
}

impl Datagrams {
    /// Answers go out segmented where `segmentation` is on (`UDP_SEGMENT`, udp(7)).
    pub fn new(socket: UdpSocket, segmentation: bool) -> Self {
        Datagrams { socket, receiver: Receiver::new(OCTETS_MAX), sender: Sender::new(OCTETS_MAX, segmentation) }
    }

    /// The socket, to wait for.
    pub fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// Reads what has come and answers what is to be answered at once.
    pub fn answer(&mut self, answerer: &mut Answerer) -> io::Result<()> {
        for _ in 0..BATCHES_MAX {
            let count = match self.receiver.receive(self.socket.as_fd()) {
                Ok(count) => count,
                Err(error) if sockets::is_passing(&error) => continue,
                Err(error) => return Err(error),
            };
            answerer.tick();
            for datagram in self.receiver.datagrams() {
                let turn = answerer.take(datagram.octets, datagram.length, Destination::Datagram(datagram.peer));
                if turn == Turn::Now {
                    put(&mut self.sender, datagram.octets, datagram.peer);
                }
            }
            self.flush(answerer);
            // A batch that is not full emptied the socket. With faults, look first at what is due.
            if count < BATCH_MAX || answerer.has_faults() {
                break;
            }
        }
        Ok(())
    }

    /// Queues the answer to a query whose delay is over; it leaves with [`Datagrams::flush`] at the latest.
    pub fn answer_later(&mut self, query: &[u8], peer: Peer, answerer: &mut Answerer) {
        if !self.sender.has_room() {
            self.flush(answerer);
        }
        put(&mut self.sender, query, peer);
    }

    /// Sends what is queued.
    pub fn flush(&mut self, answerer: &mut Answerer) {
        let queued = self.sender.len() as u64;
        let sent = self.sender.flush(self.socket.as_fd()).unwrap_or(0) as u64;
        answerer.counts.answers += sent;
        answerer.counts.dropped.unsent += queued - sent;
    }

    /// How many datagrams found the receive buffer full.
    pub fn receive_buffer_drops(&self) -> u64 {
        sockets::dropped(&self.socket).unwrap_or(0)
    }
}

fn put(sender: &mut Sender, query: &[u8], peer: Peer) {
    let space = &mut sender.space()[..query.len()];
    space.copy_from_slice(query);
    message::answer(space);
    sender.push(query.len(), peer);
}
