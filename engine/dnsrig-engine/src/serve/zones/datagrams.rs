//! The UDP side of one thread: SOA queries in batches.

use std::{io, net::UdpSocket, os::fd::AsFd};

use super::{
    answer::{Via, decide},
    counts::Counts,
    message_writer::MessageWriter,
    primary::{Now, Primary},
};
use crate::{
    base::clock,
    net::{
        framing::PREFIX_OCTETS,
        udp_batch::{BATCH_MAX, Receiver, Sender},
    },
    serve::sockets,
};

/// No query and no answer is longer: the size that avoids fragments (RFC 9715).
const OCTETS_MAX: usize = 1232;

/// So many full batches are answered before it is the connections' turn.
const BATCHES_MAX: usize = 8;

/// The receive buffer asked for.
pub const RECEIVE_BUFFER_OCTETS: usize = 4 * 1024 * 1024;

/// A UDP socket with what is received from it and sent through it.
pub struct Datagrams {
    socket: UdpSocket,
    receiver: Receiver,
    sender: Sender,
}

impl Datagrams {
    /// Serves at `socket`.
    pub fn new(socket: UdpSocket) -> Self {
        Datagrams { socket, receiver: Receiver::new(OCTETS_MAX), sender: Sender::new(OCTETS_MAX, false) }
    }

    /// The socket, to wait for.
    pub fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// Reads what has come and answers it.
    pub fn answer(&mut self, primary: &Primary, now: Now, counts: &mut Counts) -> io::Result<()> {
        for _ in 0..BATCHES_MAX {
            let count = match self.receiver.receive(self.socket.as_fd()) {
                Ok(count) => count,
                Err(error) if sockets::is_passing(&error) => continue,
                Err(error) => return Err(error),
            };
            // Who was told of a change by another thread and asks then must see it.
            let now = Now { monotonic_ns: clock::monotonic_ns(), ..now };
            for datagram in self.receiver.datagrams() {
                let via = Via::Datagram { peer: datagram.peer.map(|peer| peer.ip()) };
                let Some(mut answer) = decide(datagram.octets, via, primary, now, counts) else { continue };
                // The length that a stream has before each message is written first and then overwritten.
                let mut octets = [0; OCTETS_MAX + PREFIX_OCTETS];
                let mut to = MessageWriter::new(&mut octets, 0);
                answer.message(primary, &mut to, now.wall_s);
                let message = &to.written()[PREFIX_OCTETS..];
                self.sender.space()[..message.len()].copy_from_slice(message);
                self.sender.push(message.len(), datagram.peer);
                counts.messages += 1;
                counts.octets += message.len() as u64;
            }
            let queued = self.sender.len() as u64;
            // What the kernel does not take is lost, as datagrams are.
            let sent = self.sender.flush(self.socket.as_fd()).unwrap_or(0) as u64;
            counts.outcomes.done += sent;
            counts.outcomes.abandoned += queued - sent;
            if count < BATCH_MAX {
                break;
            }
        }
        Ok(())
    }
}
