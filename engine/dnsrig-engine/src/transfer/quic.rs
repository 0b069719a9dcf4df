//! The QUIC connections of one thread (RFC 9250): a stream for each query, on a connection and a UDP socket of each
//! slot.

use std::{
    io,
    net::{IpAddr, SocketAddr, UdpSocket},
    os::fd::AsFd,
};

use dnsrig_core::{clock, target};
use dnsrig_dns::{framing::PREFIX_BYTES, xfr::Cut};
use dnsrig_net::{
    connection::CloseReason,
    poller::Poller,
    quic::{
        DATAGRAM_BYTES_MAX,
        client::{Client, Config},
        counts::Counts,
        event::Event,
    },
    tls::Fault,
    udp_batch::{self, BATCH_MAX, Receiver, Sender},
};
use nix::sys::{
    epoll::EpollFlags,
    socket::{setsockopt, sockopt},
};

use super::schedule::{
    Schedule,
    slots::{Ended, Handshake},
};

/// The longest datagram that is taken in: what fits a packet of Ethernet.
const RECEIVE_BYTES: usize = 1_500;

/// The highest number of batches of a socket in a row. Then it is the others' turn.
const BATCHES_MAX: usize = 4;

/// The receive buffer of a socket, unless the user gives one. What finds it full is lost, and QUIC sends less.
const RECEIVE_BUFFER_BYTES: usize = 8 << 20;

/// The connections to one server, by slot.
pub struct QuicConnections {
    server: SocketAddr,
    receive_buffer_bytes: usize,
    client: Client,
    /// One for each client, which has an equal share of the slots.
    configs: Vec<Config>,
    sockets: Vec<Option<UdpSocket>>,
    sender: Sender,
    receiver: Receiver,
    /// The last failure of TLS.
    pub fault: Option<Fault>,
}

impl QuicConnections {
    /// Room for this number of slots, without a connection.
    pub fn new(server: SocketAddr, configs: Vec<Config>, receive_buffer: Option<u32>, slots: usize) -> Self {
        QuicConnections {
            server,
            receive_buffer_bytes: receive_buffer.map_or(RECEIVE_BUFFER_BYTES, |bytes| bytes as usize),
            client: Client::new(server, None, slots, 1, clock::monotonic_ns()),
            configs,
            sockets: (0..slots).map(|_| None).collect(),
            sender: Sender::new(DATAGRAM_BYTES_MAX, true),
            receiver: Receiver::new(RECEIVE_BYTES),
            fault: None,
        }
    }

    /// Begins a connection, from the socket that the slot had before. Returns the socket.
    pub fn open(&mut self, slot: u32, source: Option<IpAddr>, poller: &Poller, now_ns: i64) -> io::Result<&UdpSocket> {
        let at = slot as usize;
        if self.sockets[at].is_none() {
            let socket = self.socket(source)?;
            poller.add(&socket, EpollFlags::EPOLLIN, u64::from(slot))?;
            self.sockets[at] = Some(socket);
        }
        let config = &self.configs[at * self.configs.len() / self.sockets.len()];
        self.client.begin(at, 0, config, now_ns).map_err(io::Error::other)?;
        self.flush(at, now_ns)?;
        self.sockets[at].as_ref().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    fn socket(&self, source: Option<IpAddr>) -> io::Result<UdpSocket> {
        let socket = UdpSocket::bind((source.unwrap_or(target::unspecified(self.server)), 0))?;
        // Only root can go beyond net.core.rmem_max. Otherwise what the kernel gives is used.
        setsockopt(&socket, sockopt::RcvBufForce, &self.receive_buffer_bytes)
            .or_else(|_| setsockopt(&socket, sockopt::RcvBuf, &self.receive_buffer_bytes))?;
        socket.connect(self.server)?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    }

    /// Sends queries, each with its length before it and on a stream of its own. A query waits if the server permits no
    /// stream.
    pub fn send(&mut self, slot: u32, framed: &[u8], now_ns: i64) -> io::Result<()> {
        ask(&mut self.client, slot, framed, now_ns);
        self.flush(slot as usize, now_ns)
    }

    /// Cancels the stream of a query.
    pub fn cancel(&mut self, slot: u32, id: u16, now_ns: i64) -> io::Result<()> {
        self.client.cancel(slot as usize, id);
        self.flush(slot as usize, now_ns)
    }

    /// Ends the connection of a slot (DOQ_NO_ERROR).
    pub fn close(&mut self, slot: u32, now_ns: i64) {
        let QuicConnections { client, sockets, sender, .. } = self;
        // A datagram or two: the end of a connection, in each kind of packet that the server may understand.
        let Some(socket) = &sockets[slot as usize] else { return };
        // A server that is gone does not need it.
        client.close(slot as usize, now_ns, |datagram| drop(sender.add(socket.as_fd(), datagram)));
        let _ = sender.flush(socket.as_fd());
    }

    /// Takes in the datagrams that wait at the socket of a slot. Returns the number of messages that came.
    pub fn receive(&mut self, slot: u32, schedule: &mut Schedule, now_ns: i64) -> io::Result<usize> {
        let QuicConnections { client, sockets, receiver, .. } = self;
        let Some(socket) = &sockets[slot as usize] else { return Ok(0) };
        let mut is_refused = false;
        for _ in 0..BATCHES_MAX {
            let received = match receiver.receive(socket.as_fd()) {
                Ok(received) => received,
                Err(error) if udp_batch::is_unreachable(&error) => {
                    is_refused |= error.kind() == io::ErrorKind::ConnectionRefused;
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            for datagram in receiver.datagrams().filter(|datagram| datagram.length <= RECEIVE_BYTES) {
                client.receive(datagram.bytes, now_ns);
            }
            if received < BATCH_MAX {
                break;
            }
        }
        if is_refused {
            // Nothing listens there (ICMP): the handshake need not be waited for.
            self.lose(slot, Ended::Refused, schedule, now_ns);
            return Ok(0);
        }
        self.attend(slot, schedule, now_ns)
    }

    /// Does what is due by now. Returns the number of slots that had something to do.
    pub fn on_time(&mut self, schedule: &mut Schedule, now_ns: i64) -> io::Result<usize> {
        let mut count = 0;
        while let Some(slot) = self.client.on_time(now_ns) {
            self.attend(slot as u32, schedule, now_ns)?;
            count += 1;
        }
        Ok(count)
    }

    /// When something has to be done, whatever comes.
    pub fn due_ns(&self) -> i64 {
        self.client.due_ns().unwrap_or(i64::MAX)
    }

    /// What was counted of connections and streams.
    pub fn counts(&self) -> Counts {
        self.client.counts(0)
    }

    /// Passes on to the schedule what happened in a slot, and sends what is to be sent.
    fn attend(&mut self, slot: u32, schedule: &mut Schedule, now_ns: i64) -> io::Result<usize> {
        let (count, lost) = pass_on(&mut self.client, slot, schedule, now_ns, &mut self.fault);
        match lost {
            Some(ended) => self.lose(slot, ended, schedule, now_ns),
            None => self.flush(slot as usize, now_ns)?,
        }
        Ok(count)
    }

    fn lose(&mut self, slot: u32, ended: Ended, schedule: &mut Schedule, now_ns: i64) {
        self.close(slot, now_ns);
        schedule.lost(slot, ended, now_ns);
    }

    /// Sends what the connection of a slot has to send. What the kernel does not take is lost, and QUIC sends it again.
    fn flush(&mut self, slot: usize, now_ns: i64) -> io::Result<()> {
        let QuicConnections { client, sockets, sender, .. } = self;
        let Some(socket) = &sockets[slot] else { return Ok(()) };
        let mut result = Ok(());
        let mut see = |sent: io::Result<()>| match sent {
            Err(error) if !is_passing(&error) => result = Err(error),
            _ => {}
        };
        client.transmit(slot, now_ns, |datagram| see(sender.add(socket.as_fd(), datagram)));
        see(sender.flush(socket.as_fd()).map(drop));
        result
    }
}

/// Gives each query a stream. Each has its length before it.
fn ask(client: &mut Client, slot: u32, mut framed: &[u8], now_ns: i64) {
    while let Some((prefix, rest)) = framed.split_first_chunk::<PREFIX_BYTES>() {
        let (query, rest) = rest.split_at(usize::from(u16::from_be_bytes(*prefix)).min(rest.len()));
        client.send(slot as usize, query, now_ns);
        framed = rest;
    }
}

/// Passes on to the schedule what happened in a slot. Returns the number of messages, and why the connection is over,
/// if it is.
fn pass_on(
    client: &mut Client,
    slot: u32,
    schedule: &mut Schedule,
    now_ns: i64,
    fault: &mut Option<Fault>,
) -> (usize, Option<Ended>) {
    let (mut count, mut lost) = (0, None);
    client.poll(slot as usize, |event| match event {
        Event::Established(handshake) => {
            let kind = if handshake.resumed { Handshake::Resumed } else { Handshake::Full };
            schedule.opened(slot, kind, now_ns);
        }
        Event::Answer(_, message) => {
            count += 1;
            schedule.message(slot, message, now_ns);
        }
        Event::Partial(id) => schedule.partial_on_stream(slot, id, now_ns),
        Event::WrongId => schedule.counters.totals.unmatched += 1,
        Event::StreamLost(id, reason) | Event::StreamOver(id, reason) => {
            schedule.stream_ended(slot, id, cut(reason), now_ns);
        }
        // The transfers that wait are asked for on the next connection.
        Event::UsedUp => lost = Some(Ended::UsedUp),
        Event::Lost(reason) => {
            if let CloseReason::Tls(new) = reason {
                *fault = Some(new);
            }
            lost = Some(reason.into());
        }
    });
    (count, lost)
}

fn is_passing(error: &io::Error) -> bool {
    udp_batch::is_unreachable(error) || matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::ENOBUFS | libc::EINTR))
}

fn cut(reason: CloseReason) -> Cut {
    match reason {
        CloseReason::Reset => Cut::Reset,
        _ => Cut::Closed,
    }
}

#[cfg(test)]
#[path = "quic_tests.rs"]
mod tests;
