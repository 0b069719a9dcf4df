//! Queries over QUIC (RFC 9250): a stream for each, on the connections of [`quic::client`](dnsrig_net::quic::client).
//!
//! A client is a slot with a UDP socket of its own, which all its connections use one after another. If many clients
//! share the slots, each connection has a socket of its own, as on hosts. Which slot is next and when its connection
//! has served its time is decided as for TCP: see [`slots`](super::tcp::slots) and [`many`](super::tcp::many).

use std::{
    io,
    net::{IpAddr, SocketAddr, UdpSocket},
    os::fd::AsFd,
};

use dnsrig_core::{clock, failure::Failure, stats::Times};
use dnsrig_net::{
    connection::CloseReason,
    poller::{Poller, Timeout},
    quic::{
        Congestion, DATAGRAM_BYTES_MAX, Flow,
        client::{Client, Config},
        event::{Event, Handshake},
    },
    tls,
    udp_batch::{self, BATCH_MAX, Receiver, Sender},
};
use nix::sys::epoll::EpollFlags;

use super::{
    arrivals::Due,
    classes::Usage,
    counts::Connections,
    in_flight::{InFlight, Sending},
    tcp::{
        SESSIONS_MAX,
        many::{Many, ManyClients, Place},
        slots::{Policy, Slots, State},
        tls_clients::TlsClients,
    },
    transport::{Transport, cannot_open, cannot_receive, cannot_send},
    udp,
};

/// The number of queries that can wait for a handshake, and at most one burst more.
const WAITING_MAX: usize = 64;

/// The longest datagram that is taken in: what fits a packet of Ethernet.
const RECEIVE_BYTES: usize = 1_500;

/// The highest number of batches of a socket in a row. Then it is the others' turn.
const BATCHES_MAX: usize = 4;

/// How connections are used.
pub struct Settings {
    /// Which certificates are accepted.
    pub tls: tls::Settings,
    /// By class of clients. Clients that are slots have one class.
    pub classes: Vec<Usage>,
    pub congestion: Congestion,
    /// The number of queries in a row that go on one connection, and can share a packet.
    pub burst: usize,
    /// The longest query, in bytes.
    pub bytes_max: usize,
    /// The time after which a query is given up, in nanoseconds.
    pub timeout_ns: i64,
}

/// The connections of one thread.
pub struct Doq {
    server: SocketAddr,
    /// By slot. If many clients share the slots, only a slot with a connection has a socket.
    sockets: Vec<Option<UdpSocket>>,
    /// The datagrams that the kernel dropped at sockets that are closed.
    dropped: u64,
    /// Clients that have slots in turn. `None`: a client is a slot.
    many: Option<Many>,
    /// The number of slot 0 among the clients of the table of queries in flight.
    first: usize,
    client: Client,
    tls: TlsClients<Config>,
    slots: Slots,
    poller: Poller,
    sender: Sender,
    receiver: Receiver,
    bytes_max: usize,
    /// The queries of a burst, one after another, and their lengths.
    burst: Box<[u8]>,
    lengths: Vec<usize>,
}

impl Doq {
    /// Prepares `clients` connections to `server`, from the addresses `sources` in turn, or from any address if
    /// `sources` is empty. Each connection is made when a query is to be sent on it.
    pub fn open(server: SocketAddr, sources: &[IpAddr], clients: usize, settings: Settings) -> Result<Self, Failure> {
        let mut doq = Self::with(server, clients, None, settings)?;
        for slot in 0..clients {
            doq.open_socket(slot, sources.get(slot % sources.len().max(1)).copied())?;
        }
        Ok(doq)
    }

    /// Prepares `slots` connections that many clients share, as over TCP.
    pub fn open_many(server: SocketAddr, many: ManyClients, slots: usize, settings: Settings) -> Result<Self, Failure> {
        Self::with(server, slots, Some(many), settings)
    }

    fn with(server: SocketAddr, slots: usize, many: Option<ManyClients>, settings: Settings) -> Result<Self, Failure> {
        let Settings { tls, classes, congestion, burst, bytes_max, timeout_ns } = settings;
        let flow = Flow { congestion, window_bytes: None };
        let config = |tls::Settings { sessions_max, early_data, .. }| {
            Config::new(server.ip(), tls::Settings { sessions_max, early_data, ..tls.again() }, flow)
        };
        Ok(Doq {
            server,
            sockets: (0..slots).map(|_| None).collect(),
            dropped: 0,
            tls: TlsClients::new(&classes, many.is_some(), slots.min(SESSIONS_MAX), config)?,
            first: many.as_ref().map_or(0, |many| many.first),
            many: many.map(|many| Many::new(many, slots)),
            client: Client::new(server, Some(timeout_ns), slots, classes.len(), clock::monotonic_ns()),
            slots: Slots::new(slots, Policy { classes, burst, timeout_ns }),
            poller: Poller::new().map_err(|error| cannot_open(server, error))?,
            sender: Sender::new(DATAGRAM_BYTES_MAX, true),
            receiver: Receiver::new(RECEIVE_BYTES),
            bytes_max,
            burst: vec![0; burst * bytes_max].into_boxed_slice(),
            lengths: Vec::with_capacity(burst),
        })
    }

    /// Readable when a datagram has come.
    pub fn poller(&self) -> &Poller {
        &self.poller
    }

    /// When a connection has something to do, whatever comes.
    pub fn due_ns(&self) -> Option<i64> {
        self.client.due_ns()
    }

    /// Whether one of many clients has a connection, open or not yet.
    pub fn has_connection(&self, client: Option<u32>) -> bool {
        self.many.as_ref().zip(client).is_some_and(|(many, client)| many.has_connection(client))
    }

    /// Whether a connection was ever begun.
    pub fn has_begun(&self) -> bool {
        self.slots.connections().iter().any(|counts| counts.attempted > 0)
    }

    /// Opens the socket of a slot.
    fn open_socket(&mut self, slot: usize, source: Option<IpAddr>) -> Result<(), Failure> {
        let failed = |error| cannot_open(self.server, error);
        let socket = udp::socket(self.server, source, self.many.is_some()).map_err(failed)?;
        self.poller.add(&socket, EpollFlags::EPOLLIN, slot as u64).map_err(failed)?;
        self.sockets[slot] = Some(socket);
        Ok(())
    }

    /// Begins the connection of a slot.
    fn begin(&mut self, slot: usize, now_ns: i64) -> Result<(), Failure> {
        if let Some(source) = self.many.as_ref().map(|many| many.source(slot)) {
            self.open_socket(slot, source)?;
        }
        let class = self.slots.class(slot);
        let number = self.many.as_ref().and_then(|many| many.client(slot));
        let begun = self.client.begin(slot, class, self.tls.of(class, number), now_ns);
        begun.map_err(|error| cannot_open(self.server, io::Error::other(error)))?;
        self.slots.began(slot, now_ns);
        Ok(())
    }

    /// The slot that is to take a query: a slot of its client, or the slot whose turn it is. `None` if no slot can.
    fn turn(&mut self, due: &Due, in_flight: &mut InFlight) -> Result<Option<usize>, Failure> {
        loop {
            let (Some(many), Some(client)) = (&mut self.many, due.client) else {
                return Ok(self.slots.turn(due.client));
            };
            match many.place(due, client, &mut self.slots, in_flight) {
                Place::Slot(slot) => return Ok(Some(slot)),
                Place::Close(slot) => self.end(slot, None, in_flight)?,
                Place::None => return Ok(None),
            }
        }
    }

    /// Drafts queries of one slot, and sends them or lets them wait for its connection. Returns their number: 0 if the
    /// table of its ids is full.
    fn take_turn(&mut self, slot: usize, due: &[Due], in_flight: &mut InFlight) -> Result<usize, Failure> {
        let named = due[0].client;
        self.lengths.clear();
        let spaces = self.burst.chunks_mut(self.bytes_max);
        let alike = due.iter().take(self.slots.room(slot)).take_while(|due| due.client == named);
        for (due, space) in alike.zip(spaces) {
            let Some(length) = in_flight.draft(self.first + slot, *due, space) else { break };
            self.lengths.push(length);
        }
        let count = self.lengths.len();
        let began_ns = clock::monotonic_ns();
        if count > 0 {
            if self.slots.state(slot) == State::Idle {
                self.begin(slot, began_ns)?;
            }
            for (length, message) in self.lengths.iter().zip(self.burst.chunks(self.bytes_max)) {
                self.client.send(slot, &message[..*length], began_ns);
            }
            self.flush(slot, began_ns, in_flight)?;
            let sending = Sending { began_ns, ended_ns: clock::monotonic_ns() };
            in_flight.sent(self.first + slot, count, self.lengths.iter().sum(), sending);
        }
        self.slots.took(slot, count, began_ns);
        if self.slots.state(slot) == State::Opening && self.client.waiting(slot) >= WAITING_MAX {
            self.slots.filled(slot);
        }
        self.slots.set_blocked(slot, self.client.is_blocked(slot), began_ns);
        if let Some(many) = &mut self.many
            && self.slots.is_used_up(slot)
        {
            // The next query of this client has a connection of its own, whether this one is answered or not.
            many.detach(slot);
        }
        Ok(count)
    }

    /// Sends what the connection of a slot has to send.
    fn flush(&mut self, slot: usize, now_ns: i64, in_flight: &mut InFlight) -> Result<(), Failure> {
        let (mut unreachable, mut result) = (0, Ok(()));
        let Doq { client, sender, sockets, .. } = self;
        let Some(socket) = &sockets[slot] else { return Ok(()) };
        let mut see = |sent: io::Result<()>| match sent {
            Err(error) if udp_batch::is_unreachable(&error) => unreachable += 1,
            Err(error) => result = Err(error),
            Ok(()) => {}
        };
        client.transmit(slot, now_ns, |datagram| see(sender.add(socket.as_fd(), datagram)));
        see(sender.flush(socket.as_fd()).map(drop));
        if unreachable > 0 {
            in_flight.count_unreachable(now_ns, unreachable);
        }
        result.or_else(|error| self.after_error(error))
    }

    /// Whether an error of sending ends the load. What could not be sent is lost, and QUIC sends it again.
    fn after_error(&self, error: io::Error) -> Result<(), Failure> {
        match error.raw_os_error() {
            Some(libc::EAGAIN | libc::ENOBUFS | libc::EINTR) => Ok(()),
            _ => Err(cannot_send(self.server, error)),
        }
    }

    /// Takes in what happened on the connection of a slot, and sends what it has to send. Returns the number of
    /// messages and events.
    fn attend(&mut self, slot: usize, in_flight: &mut InFlight) -> Result<usize, Failure> {
        let (now_ns, mut count, mut lost, mut is_used_up) = (clock::monotonic_ns(), 0, None, false);
        let number = self.many.as_ref().and_then(|many| many.client(slot));
        let Doq { client, slots, tls, first, .. } = self;
        client.poll(slot, |event| {
            count += 1;
            match event {
                Event::Established(handshake) => {
                    established(slots, slot, handshake, now_ns, in_flight);
                    slots.counts(slot).returning += u64::from(number.is_some_and(|number| tls.established(number)));
                }
                Event::Answer(_, message) => drop(in_flight.answer(*first + slot, message, message.len(), now_ns)),
                Event::WrongId => in_flight.count_unexpected(now_ns),
                Event::StreamLost(id, reason) => in_flight.lose_one(*first + slot, id, reason),
                Event::Partial(_) | Event::StreamOver(..) => {}
                Event::UsedUp => is_used_up = true,
                Event::Lost(reason) => lost = Some(reason),
            }
        });
        if is_used_up && lost.is_none() {
            self.replace(slot, now_ns)?;
        }
        let is_over = self.slots.is_used_up(slot) && in_flight.outstanding_of(self.first + slot) == 0;
        if lost.is_some() || is_over {
            return self.end(slot, lost, in_flight).map(|()| count);
        }
        self.flush(slot, now_ns, in_flight)?;
        self.slots.set_blocked(slot, self.client.is_blocked(slot), now_ns);
        Ok(count)
    }

    /// Replaces a connection on which the server permits no further stream.
    fn replace(&mut self, slot: usize, now_ns: i64) -> Result<(), Failure> {
        let Doq { client, sender, .. } = self;
        // A datagram for the end of the old connection, which leaves with the first one of the new connection.
        let waiting = client.replace(slot, now_ns, |datagram| {
            sender.space()[..datagram.len()].copy_from_slice(datagram);
            sender.push(datagram.len(), None);
        });
        let waiting = waiting.map_err(|error| cannot_open(self.server, io::Error::other(error)))?;
        let class = self.slots.class(slot);
        self.slots.ended(slot, false);
        self.slots.set_class(slot, class);
        self.slots.began(slot, now_ns);
        self.slots.took(slot, waiting, now_ns);
        Ok(())
    }

    /// Ends a connection, because this side closes it, or because it is lost.
    fn end(&mut self, slot: usize, lost: Option<CloseReason>, in_flight: &mut InFlight) -> Result<(), Failure> {
        let broken = lost.is_some() && in_flight.outstanding_of(self.first + slot) > 0;
        if let Some(reason) = lost {
            self.slots.lost(slot, reason, clock::monotonic_ns());
            in_flight.lose(self.first + slot, reason);
        }
        let Doq { client, sender, sockets, .. } = self;
        client.close(slot, clock::monotonic_ns(), |datagram| {
            // A datagram or two: the end of a connection, in each kind of packet that the server may understand.
            sender.space()[..datagram.len()].copy_from_slice(datagram);
            sender.push(datagram.len(), None);
        });
        let sent = sockets[slot].as_ref().map_or(Ok(0), |socket| sender.flush(socket.as_fd()));
        self.slots.ended(slot, broken);
        if let Some(many) = &mut self.many {
            many.release(slot);
            self.dropped += self.sockets[slot].take().and_then(udp_batch::dropped).unwrap_or(0);
        }
        match sent {
            Err(error) if !udp_batch::is_unreachable(&error) => self.after_error(error),
            _ => Ok(()),
        }
    }

    /// Takes in the datagrams that wait at the socket of a slot.
    fn receive_from(&mut self, slot: usize, in_flight: &mut InFlight) -> Result<usize, Failure> {
        let mut count = 0;
        let Some(socket) = &self.sockets[slot] else { return Ok(0) };
        for _ in 0..BATCHES_MAX {
            let received = match self.receiver.receive(socket.as_fd()) {
                Ok(received) => received,
                Err(error) if udp_batch::is_unreachable(&error) => {
                    in_flight.count_unreachable(clock::monotonic_ns(), 1);
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(cannot_receive(self.server, error)),
            };
            let now_ns = clock::monotonic_ns();
            for datagram in self.receiver.datagrams().filter(|datagram| datagram.length <= RECEIVE_BYTES) {
                self.client.receive(datagram.bytes, now_ns);
            }
            count += received;
            if received < BATCH_MAX {
                break;
            }
        }
        Ok(if count > 0 { count + self.attend(slot, in_flight)? } else { 0 })
    }
}

/// Takes in that a handshake is done.
fn established(slots: &mut Slots, slot: usize, handshake: Handshake, now_ns: i64, in_flight: &mut InFlight) {
    let started_ns = slots.established(slot, handshake.resumed, now_ns);
    in_flight.count_established(started_ns, now_ns);
    let counts = slots.counts(slot);
    counts.handshakes += 1;
    counts.early_accepted += handshake.early_accepted;
    counts.early_rejected += handshake.early_rejected;
}

impl Transport for Doq {
    fn send(&mut self, due: &[Due], in_flight: &mut InFlight) -> Result<usize, Failure> {
        let (mut sent, mut without_id) = (0, 0);
        while sent < due.len()
            && without_id < self.slots.taking()
            && let Some(slot) = self.turn(&due[sent], in_flight)?
        {
            match self.take_turn(slot, &due[sent..], in_flight)? {
                0 if due[sent].client.is_some() => break,
                0 => without_id += 1,
                count => (sent, without_id) = (sent + count, 0),
            }
        }
        Ok(sent)
    }

    fn receive(&mut self, in_flight: &mut InFlight) -> Result<usize, Failure> {
        let (now_ns, mut count, first) = (clock::monotonic_ns(), 0, self.first);
        while let Some(slot) = self.slots.overdue(now_ns, |slot| in_flight.outstanding_of(first + slot)) {
            self.end(slot, None, in_flight)?;
            count += 1;
        }
        while let Some(slot) = self.slots.idle(now_ns, |slot| in_flight.outstanding_of(first + slot)) {
            self.end(slot, None, in_flight)?;
        }
        while let Some(slot) = self.client.on_time(now_ns) {
            self.attend(slot, in_flight)?;
        }
        let ready = self.poller.wait(Timeout::Exact(0)).map_err(|error| cannot_receive(self.server, error))?;
        for at in 0..ready {
            let slot = self.poller.event(at).0 as usize;
            count += self.receive_from(slot, in_flight)?;
        }
        Ok(count)
    }

    fn wait(&mut self, timeout_ns: i64, _wanted: bool) -> Result<(), Failure> {
        let due_ns = self.due_ns().map_or(i64::MAX, |due_ns| (due_ns - clock::monotonic_ns()).max(0));
        self.poller.sleep(timeout_ns.min(due_ns)).map_err(|error| cannot_receive(self.server, error))
    }

    fn datagrams_dropped(&self) -> u64 {
        self.dropped + self.sockets.iter().flatten().filter_map(udp_batch::dropped).sum::<u64>()
    }

    fn lifetimes_us(&self) -> Option<&Times> {
        Some(self.slots.lifetimes_us())
    }

    fn connections(&self) -> Vec<Connections> {
        let mut connections = self.slots.connections().to_vec();
        connections.iter_mut().enumerate().for_each(|(class, counts)| counts.quic = self.client.counts(class));
        connections
    }
}
