//! The QUIC side of one thread: datagrams in, the streams of connections to the service, datagrams out.

use std::{
    io,
    net::{IpAddr, UdpSocket},
    os::fd::AsFd,
};

use dnsrig_core::clock;
use dnsrig_net::{
    connection::limits::Connections,
    quic::{
        Way,
        server::{Answers, Config, More, Reply, Server, StreamKey},
    },
    udp_batch::{BATCH_MAX, Receiver, Sender, dropped},
};

use super::{datagrams::is_passing, service::Service};

/// The longest datagram in both directions: what fits a packet of Ethernet. A stateless reset can be almost as long as
/// the datagram that it answers.
const DATAGRAM_BYTES: usize = 1_500;

/// The number of full batches that are taken in before others have their turn.
const BATCHES_MAX: usize = 8;

/// A UDP socket with the QUIC connections of its peers.
pub struct Quic {
    out: Out,
    receiver: Receiver,
    server: Server,
}

struct Out {
    socket: UdpSocket,
    sender: Sender,
}

impl Out {
    /// Sends a datagram with the next batch.
    fn push(&mut self, datagram: &[u8], (peer, source): Way) {
        if !self.sender.has_room() {
            self.flush();
        }
        self.sender.space()[..datagram.len()].copy_from_slice(datagram);
        self.sender.push_from(datagram.len(), Some(peer), source);
    }

    /// Sends what is queued. What the kernel does not take is lost, and QUIC sends it again.
    fn flush(&mut self) {
        let _ = self.sender.flush(self.socket.as_fd());
    }
}

/// Passes what happens on streams on to a service.
struct Streams<'a, S>(&'a mut S);

impl<S: Service> Answers for Streams<'_, S> {
    fn query(&mut self, key: StreamKey, peer: IpAddr, message: &mut Vec<u8>) -> Reply {
        self.0.stream_query(message, peer, key)
    }

    fn more(&mut self, key: StreamKey, to: &mut Vec<u8>) -> More {
        self.0.stream_more(key, to)
    }

    fn abandon(&mut self, key: StreamKey) {
        self.0.stream_abandon(key);
    }
}

impl Quic {
    /// A socket without connections.
    pub fn new(socket: UdpSocket, config: &Config, segmentation: bool) -> Self {
        let out = Out { socket, sender: Sender::new(DATAGRAM_BYTES, segmentation) };
        Quic { out, receiver: Receiver::new(DATAGRAM_BYTES), server: Server::new(config, clock::monotonic_ns()) }
    }

    /// The socket, to wait for.
    pub fn socket(&self) -> &UdpSocket {
        &self.out.socket
    }

    /// When something has to be done, whatever comes.
    pub fn due_ns(&self) -> Option<i64> {
        self.server.due_ns()
    }

    /// Does what is due by now.
    pub fn on_time(&mut self, now_ns: i64, service: &mut impl Service) {
        if self.due_ns().is_some_and(|due_ns| due_ns <= now_ns) {
            self.server.on_time(now_ns);
            self.work(now_ns, service);
        }
    }

    /// Takes in what has come, and answers what is to be answered at once.
    pub fn receive(&mut self, service: &mut impl Service) -> io::Result<()> {
        let Quic { out, receiver, server } = self;
        for _ in 0..BATCHES_MAX {
            let count = match receiver.receive(out.socket.as_fd()) {
                Ok(count) => count,
                Err(error) if is_passing(&error) => continue,
                Err(error) => return Err(error),
            };
            let now_ns = clock::monotonic_ns();
            for datagram in receiver.datagrams().filter(|datagram| datagram.length <= DATAGRAM_BYTES) {
                if let Some(peer) = datagram.peer {
                    let from = (peer, datagram.destination);
                    server.receive(from, datagram.bytes, now_ns, |bytes, way| out.push(bytes, way));
                }
            }
            if count < BATCH_MAX {
                break;
            }
        }
        service.tick();
        self.work(clock::monotonic_ns(), service);
        Ok(())
    }

    /// Answers a query that had to wait. False: its stream is gone.
    pub fn answer(&mut self, key: StreamKey, message: &[u8], service: &mut impl Service) -> bool {
        let is_answered = self.server.answer(key, message);
        self.work(clock::monotonic_ns(), service);
        is_answered
    }

    fn work(&mut self, now_ns: i64, service: &mut impl Service) {
        let Quic { out, server, .. } = self;
        server.work(now_ns, &mut Streams(service), |bytes, way| out.push(bytes, way));
        out.flush();
    }

    /// Adds what was counted to what other connections counted.
    pub fn add_counts(&self, connections: &mut Connections, receive_buffer_drops: &mut u64) {
        let counts = self.server.counts;
        connections.accepted += counts.accepted;
        connections.refused += counts.refused;
        connections.handshakes += counts.handshakes;
        connections.tls_failed += counts.failed;
        connections.idle += counts.idle;
        *receive_buffer_drops += dropped(&self.out.socket).unwrap_or(0);
    }
}
