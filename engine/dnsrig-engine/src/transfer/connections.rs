//! The connections of one thread: sockets for the slots of a schedule, which decides what is sent.

use std::{
    collections::VecDeque,
    io,
    net::{IpAddr, SocketAddr},
    os::fd::{AsFd, AsRawFd, OwnedFd},
};

use dnsrig_net::{
    connection::{
        Buffers, Close, CloseReason, Connection, Reading, SocketOptions,
        chain::Chain,
        socket::{self, Begun},
    },
    poller::Poller,
    tcp_info,
    tls::{Client, Fault},
};
use nix::sys::{
    epoll::EpollFlags,
    socket::{Shutdown, SockaddrStorage, getsockname, shutdown},
};

use super::{
    quic::QuicConnections,
    row_buffer::{InfoRow, RowBuffer},
    schedule::{
        Schedule,
        slots::{Ended, Handshake},
    },
    soa::SoaSocket,
};

/// The most that one reading takes. With less, a large zone costs more system calls; with more, it leaves the cache.
const READ_BYTES: usize = 256 << 10;

/// How often a connection is read in a row; then other connections have their turn.
const READS_MAX: usize = 4;

/// The number of connections whose counters in the kernel are read (TCP_INFO).
const WATCHED_MAX: usize = 256;

/// The longest wait for the primary's end of a connection that was closed here.
const CLOSE_WAIT_NS_MAX: i64 = 2_000_000_000;

/// The number of connections that wait so; with one more, the oldest is closed as it is.
const CLOSE_WAITING_MAX: usize = 4_096;

/// What comes meanwhile is read in pieces of this size and thrown away, at most this number of pieces at a time.
const PIECE_BYTES: usize = 4_096;
const PIECES_MAX: usize = 64;

/// The servers that a thread connects to, and how it does so.
pub struct Dial {
    pub server: SocketAddr,
    pub server_udp: SocketAddr,
    /// The address of each secondary of this thread.
    pub sources: Vec<Option<IpAddr>>,
    pub options: SocketOptions,
    /// The TLS client of each secondary, as each has sessions of its own; empty: no TLS.
    pub clients: Vec<Client>,
    /// Ports are looked up for rows.
    pub wants_ports: bool,
}

/// The sockets of one thread.
pub struct Connections {
    dial: Dial,
    connections: Box<[Connection]>,
    /// For slots that ask over UDP.
    soa_sockets: Vec<Option<SoaSocket>>,
    /// Whether a connection is open, with TLS after its handshake.
    is_open: Box<[bool]>,
    /// Connections that were read [`READS_MAX`] times and may have more.
    unread: Chain,
    lingering: LingeringCloses,
    buffers: Buffers,
    queries: Vec<u8>,
    /// The last failure of TLS.
    pub fault: Option<Fault>,
    /// The congestion control of the first connection.
    pub congestion: Option<String>,
    /// Over QUIC: all connections.
    pub quic: Option<QuicConnections>,
}

impl Connections {
    /// Room for the slots of a schedule.
    pub fn new(dial: Dial, quic: Option<QuicConnections>, slots: usize) -> Self {
        Connections {
            dial,
            connections: (0..slots).map(|_| Connection::default()).collect(),
            soa_sockets: (0..slots).map(|_| None).collect(),
            is_open: vec![false; slots].into_boxed_slice(),
            unread: Chain::new(slots),
            lingering: LingeringCloses::default(),
            buffers: Buffers::new(READ_BYTES),
            queries: Vec::new(),
            fault: None,
            congestion: None,
            quic,
        }
    }

    /// Begins a connection, or makes the UDP socket of a slot.
    pub fn open(&mut self, slot: u32, schedule: &mut Schedule, poller: &Poller, now_ns: i64) -> io::Result<()> {
        let secondary = schedule.secondary_of(slot) as usize;
        let source = self.dial.sources[secondary];
        // Edges, so that what is watched for need never be changed.
        let flags = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLET;
        if schedule.is_udp(slot) {
            let soa_socket = SoaSocket::open(self.dial.server_udp, source)?;
            poller.add(&soa_socket, flags, u64::from(slot))?;
            self.soa_sockets[slot as usize] = Some(soa_socket);
            schedule.opened(slot, Handshake::None, now_ns);
            return Ok(());
        }
        if let Some(quic) = &mut self.quic {
            match quic.open(slot, source, poller, now_ns) {
                Ok(socket) if self.dial.wants_ports => schedule.set_port(slot, port_of(socket)),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => schedule.lost(slot, Ended::NoPort, now_ns),
                Err(error) => return Err(error),
            }
            return Ok(());
        }
        match socket::begin(self.dial.server, source, &self.dial.options)? {
            Begun::NoPort => schedule.lost(slot, Ended::NoPort, now_ns),
            Begun::Failed(error) => schedule.lost(slot, socket::loss(error).into(), now_ns),
            Begun::Connecting(socket) => {
                poller.add(&socket, flags, u64::from(slot))?;
                self.start(slot, socket, secondary, schedule, now_ns);
            }
        }
        Ok(())
    }

    fn start(&mut self, slot: u32, socket: OwnedFd, secondary: usize, schedule: &mut Schedule, now_ns: i64) {
        let client = self.dial.clients.get(secondary);
        if let Err(loss) = self.connections[slot as usize].begin(socket, &self.dial.options, client) {
            self.lose(slot, loss, schedule, now_ns);
        }
    }

    /// Sends what the schedule has for a slot.
    pub fn fill(&mut self, slot: u32, schedule: &mut Schedule, now_ns: i64) -> io::Result<()> {
        let connection = &mut self.connections[slot as usize];
        if connection.is_blocked() {
            // It is woken when there is room.
            return Ok(());
        }
        self.queries.clear();
        if schedule.fill(slot, now_ns, &mut self.queries) == 0 {
            return Ok(());
        }
        if let Some(quic) = self.quic.as_mut().filter(|_| !schedule.is_udp(slot)) {
            return quic.send(slot, &self.queries, now_ns);
        }
        let sent = match &self.soa_sockets[slot as usize] {
            Some(soa_socket) => soa_socket.send(&self.queries),
            None => connection.send(&mut self.queries, &mut self.buffers),
        };
        if let Err(loss) = sent {
            self.lose(slot, loss, schedule, now_ns);
        }
        Ok(())
    }

    /// Closes the connection of a slot, as the schedule ordered.
    pub fn close(&mut self, slot: u32, poller: &Poller, now_ns: i64) {
        if let Some(quic) = &mut self.quic {
            quic.close(slot, now_ns);
        }
        let is_orderly = self.dial.options.close == Close::Fin && self.is_open[slot as usize];
        let left = self.connections[slot as usize].leave(is_orderly, &mut self.buffers);
        self.clear(slot);
        if let Some((socket, true)) = left.filter(|_| is_orderly)
            && poller.remove(&socket).is_ok()
        {
            self.lingering.add(socket, now_ns);
        }
    }

    /// Closes connections that the primary has ended too, and returns how many are left.
    pub fn look_after(&mut self, now_ns: i64) -> usize {
        self.lingering.look(now_ns)
    }

    /// Takes in the events of a slot's socket, and returns how many messages came.
    pub fn event(&mut self, slot: u32, flags: EpollFlags, schedule: &mut Schedule, now_ns: i64) -> io::Result<usize> {
        if self.soa_sockets[slot as usize].is_some() {
            return Ok(self.take(slot, true, schedule, now_ns));
        }
        if let Some(quic) = &mut self.quic {
            return quic.receive(slot, schedule, now_ns);
        }
        let over = EpollFlags::EPOLLERR | EpollFlags::EPOLLHUP;
        if let Err(loss) = self.attend(slot, flags, schedule, now_ns) {
            self.lose(slot, loss, schedule, now_ns);
            return Ok(0);
        }
        let ends = flags.intersects(EpollFlags::EPOLLRDHUP | over);
        let count =
            if flags.intersects(EpollFlags::EPOLLIN) || ends { self.take(slot, ends, schedule, now_ns) } else { 0 };
        Ok(count)
    }

    /// Reads the connections that had more than a turn allows, and returns how many messages came.
    pub fn read_on(&mut self, schedule: &mut Schedule, now_ns: i64) -> usize {
        let mut count = 0;
        for _ in 0..self.unread.len() {
            let Some(slot) = self.unread.first() else { break };
            count += 1 + self.take(slot as u32, true, schedule, now_ns);
        }
        count
    }

    /// Continues to connect, or sends what had no room.
    fn attend(
        &mut self,
        slot: u32,
        flags: EpollFlags,
        schedule: &mut Schedule,
        now_ns: i64,
    ) -> Result<(), CloseReason> {
        let connection = &mut self.connections[slot as usize];
        if connection.socket().is_none() {
            return Ok(());
        }
        if !connection.is_connected() {
            if flags.intersects(EpollFlags::EPOLLERR | EpollFlags::EPOLLHUP) {
                return Err(socket::loss(connection.error()));
            }
            if connection.connected(&mut self.buffers)? {
                self.opened(slot, Handshake::None, schedule, now_ns);
            }
        } else if flags.intersects(EpollFlags::EPOLLOUT) && connection.is_blocked() {
            connection.flush()?;
            if !connection.is_blocked() {
                schedule.wake(slot);
            }
        }
        Ok(())
    }

    fn opened(&mut self, slot: u32, handshake: Handshake, schedule: &mut Schedule, now_ns: i64) {
        self.is_open[slot as usize] = true;
        let socket = self.connections[slot as usize].socket();
        if let Some(socket) = socket.filter(|_| self.congestion.is_none()) {
            self.congestion = tcp_info::congestion(socket).ok();
        }
        if let Some(socket) = socket.filter(|_| self.dial.wants_ports) {
            schedule.set_port(slot, port_of(socket));
        }
        schedule.opened(slot, handshake, now_ns);
    }

    /// Takes in what has come, and returns how many messages came.
    fn take(&mut self, slot: u32, to_the_end: bool, schedule: &mut Schedule, now_ns: i64) -> usize {
        self.unread.remove(slot as usize);
        match self.soa_sockets[slot as usize] {
            Some(_) => self.receive(slot, schedule, now_ns),
            None => self.read(slot, to_the_end, schedule, now_ns),
        }
    }

    /// Reads until less comes than there is room for, or, with `to_the_end`, until nothing comes. Returns how many
    /// messages came.
    fn read(&mut self, slot: u32, to_the_end: bool, schedule: &mut Schedule, now_ns: i64) -> usize {
        let mut count = 0;
        for _ in 0..READS_MAX {
            let before = count;
            let read = self.connections[slot as usize].read(&mut self.buffers, |message| {
                count += 1;
                schedule.message(slot, message, now_ns);
            });
            let Reading { bytes, drained, full, open, closed } = match read {
                Ok(reading) => reading,
                Err(loss) => {
                    self.lose(slot, loss, schedule, now_ns);
                    return count;
                }
            };
            if open && !self.is_open[slot as usize] {
                let resumed = self.connections[slot as usize].is_resumed();
                self.opened(slot, if resumed { Handshake::Resumed } else { Handshake::Full }, schedule, now_ns);
            }
            if bytes > 0 && count == before {
                schedule.partial(slot, now_ns);
            }
            if closed {
                self.lose(slot, CloseReason::Closed, schedule, now_ns);
                return count;
            }
            if drained || !(full || to_the_end) {
                return count;
            }
        }
        self.unread.add(slot as usize);
        count
    }

    /// Takes in answers over UDP.
    fn receive(&mut self, slot: u32, schedule: &mut Schedule, now_ns: i64) -> usize {
        let Some(soa_socket) = &self.soa_sockets[slot as usize] else { return 0 };
        let mut count = 0;
        let received = soa_socket.receive(|message| {
            count += 1;
            schedule.message(slot, message, now_ns);
        });
        match received {
            Ok(true) => {}
            Ok(false) => self.unread.add(slot as usize),
            Err(loss) => self.lose(slot, loss, schedule, now_ns),
        }
        count
    }

    /// Reports to the schedule that a connection has ended by itself.
    fn lose(&mut self, slot: u32, loss: CloseReason, schedule: &mut Schedule, now_ns: i64) {
        if let CloseReason::Tls(fault) = loss {
            self.fault = Some(fault);
        }
        self.clear(slot);
        schedule.lost(slot, loss.into(), now_ns);
    }

    fn clear(&mut self, slot: u32) {
        self.connections[slot as usize].close(false, &mut self.buffers);
        self.soa_sockets[slot as usize] = None;
        self.is_open[slot as usize] = false;
        self.unread.remove(slot as usize);
    }

    /// Reads the kernel's counters of open connections, and keeps a row for each.
    pub fn look(&self, numbers: impl Fn(u32) -> u32, time_ns: i64, row_buffer: &mut RowBuffer) {
        for (slot, connection) in
            self.connections.iter().enumerate().filter(|(slot, _)| self.is_open[*slot]).take(WATCHED_MAX)
        {
            let Some(socket) = connection.socket() else { continue };
            let Ok(info) = tcp_info::read(socket) else { continue };
            row_buffer.info(InfoRow {
                time_ns,
                connection: numbers(slot as u32),
                rtt_us: info.rtt_us,
                rttvar_us: info.rttvar_us,
                cwnd: info.cwnd,
                retransmissions: info.retransmissions,
                lost: info.lost,
                delivery_rate_bytes_per_s: info.delivery_rate_bytes_per_s,
                received_bytes: info.received_bytes,
                sent_bytes: info.sent_bytes,
                unread_bytes: tcp_info::unread_bytes(socket).unwrap_or(0),
            });
        }
    }
}

/// The port on this side; 0 if the connection is gone.
fn port_of(socket: impl AsFd) -> u16 {
    let address = getsockname::<SockaddrStorage>(socket.as_fd().as_raw_fd()).ok();
    let v4 = address.as_ref().and_then(|address| address.as_sockaddr_in()).map(|address| address.port());
    let v6 = address.as_ref().and_then(|address| address.as_sockaddr_in6()).map(|address| address.port());
    v4.or(v6).unwrap_or(0)
}

/// Sockets of connections that were ended here and not yet by the primary, oldest first.
///
/// A TLS session ends with a message from each side (RFC 8446 §6.1). What comes to a closed socket resets the
/// connection, so the last message of the primary is waited for: then the connection ends with FIN, and this side has
/// the TIME_WAIT that it would have without TLS.
#[derive(Default)]
struct LingeringCloses(VecDeque<(i64, OwnedFd)>);

impl LingeringCloses {
    /// Ends the sending side of `socket`, and waits for the other side.
    fn add(&mut self, socket: OwnedFd, now_ns: i64) {
        if shutdown(socket.as_raw_fd(), Shutdown::Write).is_err() {
            // It is over already.
            return;
        }
        if self.0.len() >= CLOSE_WAITING_MAX {
            self.0.pop_front();
        }
        self.0.push_back((now_ns + CLOSE_WAIT_NS_MAX, socket));
    }

    /// Closes sockets whose other side has ended, or that have waited for too long; returns how many are left.
    fn look(&mut self, now_ns: i64) -> usize {
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
