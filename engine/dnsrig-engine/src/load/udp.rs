//! Queries over UDP, in batches in both directions: a connected socket a client, or a pool of sockets that many clients
//! share.

use dnsrig_core::{clock, failure::Failure, target};
use dnsrig_dns::query::QUERY_BYTES_MAX;
use dnsrig_net::{
    poller::{Poller, Timeout},
    udp_batch::{self, BATCH_MAX, Receiver, Sender},
};

use super::{
    announced::Announced,
    arrivals::Due,
    in_flight::{InFlight, Sending},
    proxy::HEADER_BYTES_MAX,
    segment::ClientAddresses,
    transport::{Transport, cannot_open, cannot_receive, cannot_send},
};
use nix::sys::{
    epoll::EpollFlags,
    socket::{self as net, AddressFamily, SockFlag, SockType, SockaddrStorage, setsockopt, sockopt},
};
use std::{
    io,
    net::{IpAddr, SocketAddr, UdpSocket},
    os::fd::{AsFd, AsRawFd as _},
    thread,
    time::Duration,
};

/// Receive buffer of a socket, in bytes: some thousand answers, so that a burst is not lost on this host.
const RECEIVE_BUFFER_BYTES: usize = 8 << 20;

/// The number of ICMP errors that are taken in a row. Then it is the turn of queries and answers.
const ICMP_MAX: usize = 1024;

/// The time for which a reading of both clocks is used to convert the kernel's timestamps. NTP turns the wall clock's
/// rate by at most 500 ppm (ntp_adjtime(2)), so the error stays below 5 µs.
const OFFSET_AGE_MAX_NS: i64 = 10_000_000;

/// Sockets that many clients share: the queries of a client leave from its address, by any of them.
#[derive(Clone, Copy, Debug)]
pub struct Pool {
    /// The number of sockets, each with a port.
    pub ports: usize,
    pub addresses: ClientAddresses,
    /// Whether a client keeps its port, or uses the next one for each query.
    pub keeps_port: bool,
}

impl Pool {
    fn source(&self, due: &Due) -> Option<IpAddr> {
        self.addresses.of(due.client?)
    }
}

/// The sockets of one thread.
pub struct Udp {
    server: SocketAddr,
    sockets: Vec<UdpSocket>,
    /// How sockets are shared. `None`: each is connected, and belongs to one client.
    pool: Option<Pool>,
    poller: Poller,
    sender: Sender,
    burst: usize,
    receiver: Receiver,
    /// The clients that the PROXY protocol announces, and the number of the first socket's client among them.
    announced: Option<(Announced, u32)>,
    /// The socket that sends next.
    turn: usize,
    /// Whether that socket had no room for another query.
    full: bool,
    /// Realtime less monotonic, and when it was read.
    offset_ns: i64,
    offset_read_ns: i64,
}

impl Udp {
    /// Opens `clients` sockets to `server`, from the addresses `sources` in turn, or from any address if `sources` is
    /// empty.
    ///
    /// Each sends at most `burst` queries in a row: enough for batches to save time, and few enough for the server's
    /// threads, among which the kernel shares clients out, to be evenly loaded. Of each answer at most
    /// `received_bytes_max` bytes are kept.
    pub fn open(
        server: SocketAddr,
        sources: &[IpAddr],
        clients: usize,
        bytes_max: usize,
        segmentation: bool,
        burst: usize,
        received_bytes_max: usize,
    ) -> Result<Self, Failure> {
        let sockets = (0..clients)
            .map(|client| socket(server, sources.get(client % sources.len().max(1)).copied(), false))
            .collect::<io::Result<_>>()
            .map_err(|error| cannot_open(server, error))?;
        let udp = Self::with(server, sockets, bytes_max, segmentation, burst)?;
        Ok(Udp { receiver: Receiver::new(received_bytes_max), ..udp })
    }

    /// Opens sockets that clients share.
    pub fn open_pool(server: SocketAddr, pool: Pool, bytes_max: usize) -> Result<Self, Failure> {
        let sockets = (0..pool.ports).map(|_| shared_socket(server)).collect::<io::Result<_>>();
        let sockets = sockets.map_err(|error| cannot_open(server, error))?;
        // If each query has another port, each is a system call of its own.
        let burst = if pool.keeps_port { BATCH_MAX } else { 1 };
        Ok(Udp { pool: Some(pool), ..Self::with(server, sockets, bytes_max, false, burst)? })
    }

    /// Announces its clients with the PROXY protocol, if they are to be announced. The client of the first socket has
    /// the number beside them.
    pub fn announcing(self, announced: Option<(Announced, u32)>, bytes_max: usize) -> Self {
        if announced.is_none() {
            return self;
        }
        Udp { sender: Sender::new(HEADER_BYTES_MAX + bytes_max, self.sender.has_segmentation()), announced, ..self }
    }

    /// Uses sockets that are connected.
    fn with(
        server: SocketAddr,
        sockets: Vec<UdpSocket>,
        bytes_max: usize,
        segmentation: bool,
        burst: usize,
    ) -> Result<Self, Failure> {
        let failed = |error| cannot_open(server, error);
        let poller = Poller::new().map_err(failed)?;
        for (client, socket) in sockets.iter().enumerate() {
            poller.add(socket, EpollFlags::EPOLLIN, client as u64).map_err(failed)?;
        }
        Ok(Udp {
            server,
            sockets,
            pool: None,
            poller,
            sender: Sender::new(bytes_max, segmentation),
            burst: burst.min(BATCH_MAX),
            receiver: Receiver::new(QUERY_BYTES_MAX),
            announced: None,
            turn: 0,
            full: false,
            offset_ns: 0,
            offset_read_ns: i64::MIN,
        })
    }

    /// The socket that a query must leave by. `None`: it can be any.
    fn named(&self, due: &Due) -> Option<usize> {
        let client = due.client?;
        match &self.pool {
            None => Some(client as usize),
            Some(Pool { keeps_port, addresses, .. }) => {
                keeps_port.then(|| addresses.segment.own_number(client) as usize % self.sockets.len())
            }
        }
    }

    /// Drafts and sends queries of one socket. Returns the number of queries that were sent, and whether more can be
    /// sent at once.
    fn send_burst(&mut self, due: &[Due], in_flight: &mut InFlight) -> Result<(usize, bool), Failure> {
        let named = self.named(&due[0]);
        let client = named.unwrap_or(self.turn);
        self.turn = client;
        let peer = self.pool.map(|_| self.server);
        let mut bytes = 0;
        for due in due.iter().take(self.burst) {
            if self.named(due) != named {
                break;
            }
            let header = self.write_header(client, due);
            let Some(length) = in_flight.draft(client, *due, &mut self.sender.space()[header..]) else { break };
            let source = self.pool.and_then(|pool| pool.source(due));
            self.sender.push_from(header + length, peer, source);
            bytes += length;
        }
        let drafts = self.sender.len();
        let began_ns = clock::monotonic_ns();
        let flushed = self.sender.flush(self.sockets[client].as_fd());
        let sending = Sending { began_ns, ended_ns: clock::monotonic_ns() };
        match flushed {
            Ok(count) => {
                in_flight.sent(client, count, bytes * count / drafts.max(1), sending);
                self.wait_for_room(false)?;
                self.turn = (client + 1) % self.sockets.len();
                Ok((count, count == drafts && (count > 0 || named.is_none())))
            }
            Err(error) => {
                in_flight.sent(client, 0, 0, sending);
                self.after_error(error, in_flight, began_ns).map(|again| (0, again))
            }
        }
    }

    /// Writes the header that announces the client of a query to the place of the next datagram. Returns its length: 0
    /// if no client is announced.
    #[inline]
    fn write_header(&mut self, socket: usize, due: &Due) -> usize {
        let Some((announced, first)) = &self.announced else { return 0 };
        let header = match (&self.pool, due.client) {
            (Some(Pool { keeps_port: false, .. }), Some(client)) => announced.datagram(client, due.number),
            (Some(_), Some(client)) => announced.datagram(client, client.into()),
            _ => announced.datagram(first + socket as u32, u64::from(*first) + socket as u64),
        };
        let bytes = header.bytes();
        self.sender.space()[..bytes.len()].copy_from_slice(bytes);
        bytes.len()
    }

    /// Whether to try again at once after an error of sending, or later. Other errors end the load.
    fn after_error(&mut self, error: io::Error, in_flight: &mut InFlight, now_ns: i64) -> Result<bool, Failure> {
        match error.raw_os_error() {
            Some(libc::EAGAIN) => self.wait_for_room(true).map(|()| false),
            // A queue of the device is full, and nothing reports when it has room.
            Some(libc::ENOBUFS) => Ok(false),
            Some(libc::EINTR) => Ok(true),
            _ if self.pool.is_some() && self.take_icmp(in_flight, self.turn, now_ns) => Ok(true),
            // An ICMP error to an earlier query; this one was not sent.
            Some(libc::ECONNREFUSED | libc::EHOSTUNREACH | libc::ENETUNREACH) => {
                in_flight.count_unreachable(now_ns, 1);
                Ok(true)
            }
            _ => Err(cannot_send(self.server, error)),
        }
    }

    /// Sets whether [`Transport::wait`] ends as soon as the socket whose turn it is has room.
    fn wait_for_room(&mut self, full: bool) -> Result<(), Failure> {
        if self.full == full {
            return Ok(());
        }
        self.full = full;
        let interest = if full { EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT } else { EpollFlags::EPOLLIN };
        let changed = self.poller.change(&self.sockets[self.turn], interest, self.turn as u64);
        changed.map_err(|error| cannot_send(self.server, error))
    }

    /// Takes in a batch of datagrams of one socket.
    fn receive_batch(&mut self, client: usize, in_flight: &mut InFlight) -> Result<usize, Failure> {
        let now_ns = clock::monotonic_ns();
        match self.receiver.receive(self.sockets[client].as_fd()) {
            Ok(count) => {
                self.refresh_offset(now_ns);
                for datagram in self.receiver.datagrams() {
                    // To a socket that is not connected anyone may send.
                    if self.pool.is_some() && datagram.peer != Some(self.server) {
                        in_flight.count_unexpected(now_ns);
                        continue;
                    }
                    let stamp_ns = datagram.received_realtime_ns.map(|realtime_ns| realtime_ns - self.offset_ns);
                    in_flight.answer(client, datagram.bytes, datagram.length, received_ns(stamp_ns, now_ns));
                }
                Ok(count)
            }
            Err(error) => match error.raw_os_error() {
                Some(libc::EINTR) => Ok(0),
                _ if self.pool.is_some() && self.take_icmp(in_flight, client, now_ns) => Ok(0),
                Some(libc::ECONNREFUSED | libc::EHOSTUNREACH | libc::ENETUNREACH) => {
                    in_flight.count_unreachable(now_ns, 1);
                    Ok(0)
                }
                _ => Err(cannot_receive(self.server, error)),
            },
        }
    }

    /// Takes in the ICMP errors that wait at a socket which is not connected. Returns whether there were any. Only
    /// their queue has all of them, and the socket fails until it is empty (ip(7)).
    fn take_icmp(&self, in_flight: &mut InFlight, client: usize, now_ns: i64) -> bool {
        let mut errors = 0;
        while errors < ICMP_MAX
            && let Ok(is_unreachable) = udp_batch::icmp_error(self.sockets[client].as_fd())
        {
            errors += 1;
            in_flight.count_unreachable(now_ns, u64::from(is_unreachable));
        }
        errors > 0
    }

    fn refresh_offset(&mut self, now_ns: i64) {
        if now_ns.saturating_sub(self.offset_read_ns) > OFFSET_AGE_MAX_NS {
            let anchor = clock::anchor();
            (self.offset_ns, self.offset_read_ns) = (anchor.realtime_ns - anchor.monotonic_ns, now_ns);
        }
    }
}

impl Transport for Udp {
    fn send(&mut self, due: &[Due], in_flight: &mut InFlight) -> Result<usize, Failure> {
        let mut sent = 0;
        // A client whose table is full sends nothing; then it is the next one's turn. Each gets two.
        for _ in 0..2 * self.sockets.len() + due.len() {
            if sent == due.len() {
                break;
            }
            let (count, again) = self.send_burst(&due[sent..], in_flight)?;
            sent += count;
            if !again {
                break;
            }
        }
        Ok(sent)
    }

    fn receive(&mut self, in_flight: &mut InFlight) -> Result<usize, Failure> {
        if self.sockets.len() == 1 {
            return self.receive_batch(0, in_flight);
        }
        let mut count = 0;
        let ready = self.poller.wait(Timeout::Exact(0)).map_err(|error| cannot_receive(self.server, error))?;
        for at in 0..ready {
            let client = self.poller.event(at).0 as usize;
            count += self.receive_batch(client, in_flight)?;
        }
        Ok(count)
    }

    fn wait(&mut self, timeout_ns: i64, wanted: bool) -> Result<(), Failure> {
        if !wanted && !self.full {
            // To be woken for each answer would cost more than to send the query did, also on the server: its CPU
            // interrupts ours.
            thread::sleep(Duration::from_nanos(timeout_ns.max(0).unsigned_abs()));
            return Ok(());
        }
        self.poller.sleep(timeout_ns).map_err(|error| cannot_receive(self.server, error))
    }

    fn datagrams_dropped(&self) -> u64 {
        self.sockets.iter().filter_map(udp_batch::dropped).sum()
    }
}

/// When a datagram came: by the kernel's timestamp, which does not depend on how late the thread looked. A timestamp
/// far from the reading `now_ns` means that the wall clock was stepped; then that reading is used.
fn received_ns(stamp_ns: Option<i64>, now_ns: i64) -> i64 {
    const STEP_NS: i64 = 1_000_000_000;
    match stamp_ns {
        Some(stamp_ns) if (now_ns - STEP_NS..=now_ns).contains(&stamp_ns) => stamp_ns,
        // It came between this reading and the kernel's.
        Some(stamp_ns) if (now_ns..now_ns + STEP_NS).contains(&stamp_ns) => stamp_ns,
        _ => now_ns,
    }
}

/// Makes a socket that is connected to `server`. A `routed` source may be an address that this host has by a local
/// route alone.
pub fn socket(server: SocketAddr, source: Option<IpAddr>, routed: bool) -> io::Result<UdpSocket> {
    let socket = bind(source.unwrap_or(target::unspecified(server)), routed)?;
    socket.connect(server)?;
    Ok(socket)
}

/// Makes a socket that is not connected: so answers to all addresses of clients come to it.
fn shared_socket(server: SocketAddr) -> io::Result<UdpSocket> {
    let socket = bind(target::unspecified(server), false)?;
    // The kernel keeps ICMP errors of unconnected sockets only if asked to (ip(7), ipv6(7)).
    if server.is_ipv6() {
        setsockopt(&socket, sockopt::Ipv6RecvErr, &true)?;
        // IPv6 does not count an address as this host's if it has only a local route to it (`ip route add local`).
        setsockopt(&socket, sockopt::IpFreebind, &true)?;
    } else {
        setsockopt(&socket, sockopt::Ipv4RecvErr, &true)?;
    }
    Ok(socket)
}

fn bind(source: IpAddr, routed: bool) -> io::Result<UdpSocket> {
    let family = if source.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let socket = net::socket(family, SockType::Datagram, flags, None)?;
    if routed && source.is_ipv6() {
        setsockopt(&socket, sockopt::IpFreebind, &true)?;
    }
    net::bind(socket.as_raw_fd(), &SockaddrStorage::from(SocketAddr::new(source, 0)))?;
    let socket = UdpSocket::from(socket);
    // Only root can go beyond net.core.rmem_max. Otherwise what the kernel gives is used.
    if setsockopt(&socket, sockopt::RcvBufForce, &RECEIVE_BUFFER_BYTES).is_err() {
        setsockopt(&socket, sockopt::RcvBuf, &RECEIVE_BUFFER_BYTES)?;
    }
    setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use std::{
        os::{fd::OwnedFd, unix::net::UnixDatagram},
        thread,
        time::{Duration, Instant},
    };

    use super::*;

    const SECOND_NS: i64 = 1_000_000_000;
    const DUE: Due = Due { at_ns: 0, client: None, query: 0, number: 0 };

    fn in_flight(clients: usize) -> InFlight {
        let query = vec![0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, b'a', 0, 0, 1, 0, 1];
        InFlight::with_messages([query], clients, 65_536 / clients, 60 * SECOND_NS)
    }

    #[test]
    fn a_thread_that_waits_for_room_is_woken_when_there_is_room() {
        // A socket between processes is full as long as nobody reads at its other end; over loopback a UDP socket never
        // is.
        let (ours, theirs) = UnixDatagram::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let sockets = vec![UdpSocket::from(OwnedFd::from(ours))];
        let (mut udp, mut in_flight) =
            (Udp::with("127.0.0.1:53".parse().unwrap(), sockets, 19, false, 1).unwrap(), in_flight(1));
        while udp.send(&[DUE], &mut in_flight).unwrap() > 0 {}
        let reader = thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            while theirs.recv(&mut [0; 64]).is_ok() && theirs.set_nonblocking(true).is_ok() {}
            theirs
        });
        let asleep = Instant::now();
        udp.wait(5 * SECOND_NS, false).unwrap();
        assert!(asleep.elapsed() < Duration::from_secs(2), "it slept on though there was room");
        let _theirs = reader.join().unwrap();
        assert_eq!(udp.send(&[DUE], &mut in_flight).unwrap(), 1);
        // With room left it waits for an answer.
        let asleep = Instant::now();
        udp.wait(SECOND_NS / 20, true).unwrap();
        assert!(asleep.elapsed() >= Duration::from_millis(50));
    }

    #[test]
    fn an_answer_wakes_only_a_thread_that_waits_for_it() {
        let (ours, theirs) = UnixDatagram::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let sockets = vec![UdpSocket::from(OwnedFd::from(ours))];
        let mut udp = Udp::with("127.0.0.1:53".parse().unwrap(), sockets, 19, false, 1).unwrap();
        theirs.send(&[0; 12]).unwrap();
        let asleep = Instant::now();
        udp.wait(SECOND_NS / 20, false).unwrap();
        assert!(asleep.elapsed() >= Duration::from_millis(50));
        let asleep = Instant::now();
        udp.wait(5 * SECOND_NS, true).unwrap();
        assert!(asleep.elapsed() < Duration::from_secs(2));
    }

    #[test]
    fn a_query_leaves_from_the_client_that_it_names() {
        let (ours, theirs): (Vec<_>, Vec<_>) = (0..2).map(|_| UnixDatagram::pair().unwrap()).unzip();
        let sockets = ours.into_iter().map(|socket| UdpSocket::from(OwnedFd::from(socket))).collect();
        let mut udp = Udp::with("127.0.0.1:53".parse().unwrap(), sockets, 19, false, 16).unwrap();
        let mut in_flight = in_flight(2);
        let due = [1, 1, 0, 1].map(|client| Due { client: Some(client), ..DUE });
        assert_eq!(udp.send(&due, &mut in_flight).unwrap(), 4);
        assert_eq!([0, 1].map(|client| in_flight.outstanding_of(client)), [1, 3]);
        let received = theirs.iter().map(|socket| {
            socket.set_nonblocking(true).unwrap();
            std::iter::from_fn(|| socket.recv(&mut [0; 64]).ok()).count()
        });
        assert_eq!(received.collect::<Vec<_>>(), [1, 3]);
    }
}
