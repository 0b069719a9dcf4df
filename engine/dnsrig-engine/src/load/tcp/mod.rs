//! Queries over TCP (RFC 7766), TLS (RFC 7858) and HTTPS (RFC 8484).
//!
//! A client is a slot: the place of one connection at a time. [`slots`] says which slot is next and when its connection
//! has served its time; it knows no socket. A [`Connection`] is the connection
//! itself, and [`Tcp`] moves bytes between all of these and the [`InFlight`].

pub mod many;
pub mod slots;
pub mod tls_clients;

use std::{
    io,
    net::{IpAddr, SocketAddr},
    os::fd::OwnedFd,
    sync::Arc,
};

use dnsrig_core::{clock, failure::Failure, stats::Times};
use dnsrig_dns::framing::PREFIX_BYTES;
use dnsrig_net::{
    connection::{
        Buffers, Close, CloseReason, Connection, Reading, SocketOptions,
        chain::Chain,
        socket::{self, Begun},
    },
    http2::{self, Requests},
    poller::{Poller, Timeout},
    tls::{self, Client},
};
use nix::sys::epoll::EpollFlags;

use self::{
    many::{Many, ManyClients, Place},
    slots::{Policy, Slots, State},
    tls_clients::TlsClients,
};
use super::{
    announced::Announced,
    arrivals::Due,
    classes::Usage,
    counts::Connections,
    hold::HeldAs,
    in_flight::{InFlight, Sending},
    transport::{Transport, cannot_open, cannot_receive},
};

/// The highest number of bytes of one reading.
const READ_BYTES: usize = 64 << 10;

/// The number of bytes of queries that can wait on a connection that is being opened, and at most one burst more.
const QUEUE_BYTES_MAX: usize = 4_096;

/// The highest number of readings of a connection in a row. Then it is the others' turn.
const READS_MAX: usize = 4;

/// The receive buffer of a client that never reads, in bytes: what does not fit waits at the server.
const UNREAD_BUFFER_BYTES: u32 = 4_096;

/// The number of TLS sessions of a server that are kept, a kilobyte or two each, or one for each client if there are
/// fewer clients.
pub const SESSIONS_MAX: usize = 4_096;

/// How connections are used.
#[derive(Debug)]
pub struct Settings {
    /// How TLS is set up, without what depends on a class. `None`: TCP alone.
    pub tls: Option<tls::Settings>,
    /// The requests that carry queries inside TLS, if HTTP/2 is spoken there.
    pub http: Option<Arc<Requests>>,
    /// The clients that the PROXY protocol announces, and the number of slot 0 among them if a client is a slot.
    pub announced: Option<(Announced, u32)>,
    /// By class of clients. Clients that are slots have one class.
    pub classes: Vec<Usage>,
    /// The number of queries in a row that go on one connection, with one write.
    pub burst: usize,
    pub close: Close,
    /// What clients do with their connections.
    pub held_as: HeldAs,
    /// The longest query, in bytes.
    pub bytes_max: usize,
    /// The time after which a query is given up, in nanoseconds.
    pub timeout_ns: i64,
}

/// The connections of one thread.
pub struct Tcp {
    server: SocketAddr,
    sources: Vec<IpAddr>,
    /// Clients that have slots in turn. `None`: a client is a slot.
    many: Option<Many>,
    /// The number of slot 0 among the clients of the table of queries in flight.
    first: usize,
    options: SocketOptions,
    held_as: HeldAs,
    /// Whether a half-open connection has the first byte of a query.
    first_byte: bool,
    tls: Option<TlsClients<Client>>,
    http: Option<Arc<Requests>>,
    announced: Option<(Announced, u32)>,
    /// When streams of HTTP/2 without a response are closed next.
    sweep_ns: i64,
    timeout_ns: i64,
    slots: Slots,
    connections: Box<[Connection]>,
    /// Connections that were read [`READS_MAX`] times and may have more to read.
    unread: Chain,
    poller: Poller,
    buffers: Buffers,
    /// The queries of a burst, framed.
    burst: Box<[u8]>,
    bytes_max: usize,
}

/// The result of a slot's turn.
enum Turn {
    Sent(usize),
    /// The table of its ids is full.
    NoId,
    /// This host has no port left.
    NoPort,
}

impl Tcp {
    /// Prepares `clients` connections to `server`, from the addresses `sources` in turn, or from any address if
    /// `sources` is empty. Each connection is made when a query is to be sent on it.
    pub fn open(server: SocketAddr, sources: &[IpAddr], clients: usize, settings: Settings) -> Result<Self, Failure> {
        Self::with(server, sources, clients, None, settings)
    }

    /// Prepares `slots` connections that many clients share: a client without a connection gets the slot of a
    /// connection that was closed, or closes the connection whose last query is longest ago.
    pub fn open_many(server: SocketAddr, many: ManyClients, slots: usize, settings: Settings) -> Result<Self, Failure> {
        Self::with(server, &[], slots, Some(many), settings)
    }

    fn with(
        server: SocketAddr,
        sources: &[IpAddr],
        clients: usize,
        many: Option<ManyClients>,
        settings: Settings,
    ) -> Result<Self, Failure> {
        let failed = |error| cannot_open(server, error);
        let is_half_open = settings.held_as == HeldAs::HalfOpen;
        let first_byte = is_half_open && settings.tls.is_none();
        let tls = settings.tls.filter(|_| !is_half_open).map(|common| {
            let client = |tls::Settings { sessions_max, early_data, .. }| {
                Client::new(server.ip(), tls::Settings { sessions_max, early_data, ..common.again() })
            };
            TlsClients::new(&settings.classes, many.is_some(), clients.min(SESSIONS_MAX), client)
                .map_err(|error| failed(io::Error::other(error)))
        });
        let policy = Policy { classes: settings.classes, burst: settings.burst, timeout_ns: settings.timeout_ns };
        let routed_sources = many.is_some();
        let receive_buffer = (settings.held_as == HeldAs::SlowReader).then_some(UNREAD_BUFFER_BYTES);
        Ok(Tcp {
            server,
            sources: sources.to_vec(),
            first: many.as_ref().map_or(0, |many| many.first),
            many: many.map(|many| Many::new(many, clients)),
            options: SocketOptions {
                close: settings.close,
                routed_sources,
                receive_buffer,
                ..SocketOptions::default()
            },
            held_as: settings.held_as,
            first_byte,
            tls: tls.transpose()?,
            http: settings.http.filter(|_| !is_half_open),
            announced: settings.announced,
            sweep_ns: 0,
            timeout_ns: settings.timeout_ns,
            slots: Slots::new(clients, policy),
            connections: (0..clients).map(|_| Connection::default()).collect(),
            unread: Chain::new(clients),
            poller: Poller::new().map_err(failed)?,
            buffers: Buffers::new(READ_BYTES),
            burst: vec![0; settings.burst * (PREFIX_BYTES + settings.bytes_max)].into_boxed_slice(),
            bytes_max: settings.bytes_max,
        })
    }

    /// Readable when a connection has something to tell.
    pub fn poller(&self) -> &Poller {
        &self.poller
    }

    /// Whether one of many clients has a connection, open or not yet.
    pub fn has_connection(&self, client: Option<u32>) -> bool {
        self.many.as_ref().zip(client).is_some_and(|(many, client)| many.has_connection(client))
    }

    /// Whether there are bytes that were not read yet.
    pub fn has_unread(&self) -> bool {
        !self.unread.is_empty()
    }

    /// The slot that is to take a query: a slot of its client, or the slot whose turn it is. `None` if no slot can.
    fn turn(&mut self, due: &Due, in_flight: &mut InFlight) -> Option<usize> {
        loop {
            let (Some(many), Some(client)) = (&mut self.many, due.client) else {
                return self.slots.turn(due.client);
            };
            match many.place(due, client, &mut self.slots, in_flight) {
                Place::Slot(slot) => return Some(slot),
                Place::Close(slot) => self.end(slot, None, in_flight),
                Place::None => return None,
            }
        }
    }

    /// Whether a connection was ever begun.
    pub fn has_begun(&self) -> bool {
        self.slots.connections().iter().any(|counts| counts.attempted > 0)
    }

    /// The client that has a slot, of many.
    fn client_of(&self, slot: usize) -> Option<u32> {
        self.many.as_ref().and_then(|many| many.client(slot))
    }

    /// Drafts queries of one slot, and sends them or lets them wait for its connection.
    fn take_turn(&mut self, slot: usize, due: &[Due], in_flight: &mut InFlight) -> Result<Turn, Failure> {
        if self.held_as == HeldAs::HalfOpen {
            return self.stay_half_open(slot, in_flight);
        }
        let (mut count, mut framed) = (0, 0);
        let named = due[0].client;
        for due in due.iter().take(self.slots.room(slot)).take_while(|due| due.client == named) {
            let space = &mut self.burst[framed..framed + PREFIX_BYTES + self.bytes_max];
            let (prefix, message) = space.split_at_mut(PREFIX_BYTES);
            let Some(length) = in_flight.draft(self.first + slot, *due, message) else { break };
            prefix.copy_from_slice(&(length as u16).to_be_bytes());
            (count, framed) = (count + 1, framed + PREFIX_BYTES + length);
        }
        let began_ns = clock::monotonic_ns();
        if count == 0 {
            self.slots.took(slot, 0, began_ns);
            return Ok(Turn::NoId);
        }
        let mut lost = None;
        if self.slots.state(slot) == State::Idle {
            match self.connect(slot, began_ns, in_flight)? {
                Some(begun) => lost = begun.err(),
                None => {
                    in_flight.sent(self.first + slot, 0, 0, Sending { began_ns, ended_ns: began_ns });
                    return Ok(Turn::NoPort);
                }
            }
        }
        let frames = &mut self.burst[..framed];
        let mut filled = false;
        if self.slots.state(slot) == State::Open {
            lost = self.connections[slot].send(frames, &mut self.buffers).err();
        } else {
            filled = self.connections[slot].queue(frames) >= QUEUE_BYTES_MAX;
        }
        let sending = Sending { began_ns, ended_ns: clock::monotonic_ns() };
        in_flight.sent(self.first + slot, count, framed - count * PREFIX_BYTES, sending);
        self.slots.took(slot, count, began_ns);
        self.look_at_room(slot);
        if let Some(many) = &mut self.many
            && self.slots.is_used_up(slot)
        {
            // The next query of this client has a connection of its own, whether this one is answered or not.
            many.detach(slot);
        }
        if filled {
            self.slots.filled(slot);
        }
        match lost {
            Some(loss) => self.end(slot, Some(loss), in_flight),
            None => self.slots.set_blocked(slot, self.connections[slot].is_blocked(), began_ns),
        }
        Ok(Turn::Sent(count))
    }

    /// Sees to it that a slot has a connection on which no query is ever complete.
    fn stay_half_open(&mut self, slot: usize, in_flight: &mut InFlight) -> Result<Turn, Failure> {
        let now_ns = clock::monotonic_ns();
        if self.slots.state(slot) == State::Idle {
            let Some(begun) = self.connect(slot, now_ns, in_flight)? else { return Ok(Turn::NoPort) };
            if self.first_byte {
                self.connections[slot].queue(&[0]);
            }
            if let Err(loss) = begun {
                self.end(slot, Some(loss), in_flight);
            }
        }
        self.slots.took(slot, 0, now_ns);
        Ok(Turn::Sent(1))
    }

    /// Begins the connection of an idle slot. `None` if this host has no port for it; otherwise whether it is on its
    /// way.
    fn connect(
        &mut self,
        slot: usize,
        now_ns: i64,
        in_flight: &mut InFlight,
    ) -> Result<Option<Result<(), CloseReason>>, Failure> {
        let begun = match self.begin(slot)? {
            Begun::NoPort => {
                self.slots.had_no_port(slot);
                return Ok(None);
            }
            Begun::Failed(error) => Err(self.failure(error, now_ns, in_flight)),
            Begun::Connecting(socket) => self.start(slot, socket)?,
        };
        self.slots.began(slot, now_ns);
        Ok(Some(begun))
    }

    fn begin(&self, slot: usize) -> Result<Begun, Failure> {
        let source = match &self.many {
            Some(many) => many.source(slot),
            None => self.sources.get(slot % self.sources.len().max(1)).copied(),
        };
        socket::begin(self.server, source, &self.options).map_err(|error| cannot_open(self.server, error))
    }

    /// Watches a connection that was begun.
    fn start(&mut self, slot: usize, socket: OwnedFd) -> Result<Result<(), CloseReason>, Failure> {
        // Edge-triggered, so that the flags never need to be changed: a connection costs one system call here.
        let flags = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLRDHUP | EpollFlags::EPOLLET;
        self.poller.add(&socket, flags, slot as u64).map_err(|error| cannot_open(self.server, error))?;
        let (class, number) = (self.slots.class(slot), self.client_of(slot));
        let client = self.tls.as_mut().map(|clients| clients.of(class, number));
        let begun = self.connections[slot].begin(socket, &self.options, client);
        if let Some((announced, first)) = &mut self.announced {
            let header = announced.connection(number.unwrap_or(*first + slot as u32));
            self.connections[slot].introduce(header.bytes());
        }
        if let Some(requests) = &self.http {
            self.connections[slot].speak_http(http2::Client::new(requests.clone()));
        }
        Ok(begun)
    }

    /// Looks how many queries a connection takes.
    fn look_at_room(&mut self, slot: usize) {
        if let Some(room) = self.connections[slot].room() {
            self.slots.set_room(slot, room);
        }
    }

    /// Takes in what HTTP/2 has to tell of queries and of the connection. Returns the number of queries that ended.
    fn attend_http(&mut self, slot: usize, now_ns: i64, in_flight: &mut InFlight) -> usize {
        let (mut count, client) = (0, self.first + slot);
        let Some(http) = self.connections[slot].http() else { return 0 };
        for (id, fault) in http.take_lost() {
            in_flight.lose_one(client, id, CloseReason::Http(fault));
            count += 1;
        }
        if http.is_over() && self.slots.supersede(slot, now_ns) {
            self.slots.counts(slot).went_away += 1;
            if let Some(many) = &mut self.many {
                many.detach(slot);
            }
        }
        self.look_at_room(slot);
        count
    }

    /// Closes streams of HTTP/2 whose queries were given up.
    fn sweep(&mut self, now_ns: i64, in_flight: &mut InFlight) {
        self.sweep_ns = now_ns + self.timeout_ns;
        for slot in 0..self.connections.len() {
            if self.slots.state(slot) == State::Open
                && let Some(http) = self.connections[slot].http()
            {
                http.sweep();
                let connection = &mut self.connections[slot];
                let sent =
                    connection.send_waiting(&mut self.buffers).and_then(|()| connection.send_http(&mut self.buffers));
                match sent {
                    Ok(()) => self.look_at_room(slot),
                    Err(loss) => self.end(slot, Some(loss), in_flight),
                }
            }
        }
    }

    /// Counts why connecting failed.
    fn failure(&self, error: nix::Error, now_ns: i64, in_flight: &mut InFlight) -> CloseReason {
        if socket::is_unreachable(error) {
            in_flight.count_unreachable(now_ns, 1);
        }
        socket::loss(error)
    }

    /// Takes in an event of a connection. Returns the number of messages that came.
    fn event(&mut self, slot: usize, flags: EpollFlags, in_flight: &mut InFlight) -> usize {
        let over = EpollFlags::EPOLLERR | EpollFlags::EPOLLHUP;
        match self.attend(slot, flags, in_flight) {
            Ok(()) if self.held_as == HeldAs::SlowReader && self.slots.state(slot) == State::Open => {
                // What came stays unread, and so does the end of the stream: only the flags show it.
                if flags.intersects(EpollFlags::EPOLLRDHUP | over) {
                    let reason = if flags.intersects(over) { CloseReason::Reset } else { CloseReason::Closed };
                    self.end(slot, Some(reason), in_flight);
                }
                0
            }
            Ok(()) if flags.intersects(EpollFlags::EPOLLIN | EpollFlags::EPOLLRDHUP | over) => {
                self.read(slot, flags.intersects(EpollFlags::EPOLLRDHUP | over), in_flight)
            }
            Ok(()) => 0,
            Err(loss) => {
                self.end(slot, Some(loss), in_flight);
                0
            }
        }
    }

    /// Goes on with connecting, or with sending bytes that had no room.
    fn attend(&mut self, slot: usize, flags: EpollFlags, in_flight: &mut InFlight) -> Result<(), CloseReason> {
        let connection = &mut self.connections[slot];
        if !connection.is_connected() {
            let now_ns = clock::monotonic_ns();
            if flags.intersects(EpollFlags::EPOLLERR | EpollFlags::EPOLLHUP) {
                let error = connection.error();
                return Err(self.failure(error, now_ns, in_flight));
            }
            if connection.connected(&mut self.buffers)? {
                self.established(slot, in_flight)?;
            }
        } else if flags.intersects(EpollFlags::EPOLLOUT) && connection.is_blocked() {
            connection.flush()?;
        }
        let blocked = self.connections[slot].is_blocked();
        self.slots.set_blocked(slot, blocked, clock::monotonic_ns());
        Ok(())
    }

    /// Takes in that the handshakes are done, and sends what waited for them.
    fn established(&mut self, slot: usize, in_flight: &mut InFlight) -> Result<(), CloseReason> {
        let now_ns = clock::monotonic_ns();
        let connection = &mut self.connections[slot];
        let started_ns = self.slots.established(slot, connection.is_resumed(), now_ns);
        in_flight.count_established(started_ns, now_ns);
        let early = connection.send_queue(&mut self.buffers)?;
        let number = self.client_of(slot);
        if let Some(clients) = &mut self.tls {
            let counts = self.slots.counts(slot);
            counts.handshakes += 1;
            counts.returning += u64::from(number.is_some_and(|number| clients.established(number)));
            counts.early_accepted += early.accepted;
            counts.early_rejected += early.rejected;
        }
        Ok(())
    }

    /// Reads until less comes than there is room for, or, with `to_the_end`, until nothing comes. Returns the number of
    /// messages.
    fn read(&mut self, slot: usize, to_the_end: bool, in_flight: &mut InFlight) -> usize {
        let (mut count, first) = (0, self.first);
        self.unread.remove(slot);
        for _ in 0..READS_MAX {
            let now_ns = clock::monotonic_ns();
            let answer = |message: &[u8]| {
                in_flight.answer(first + slot, message, message.len(), now_ns);
                count += 1;
            };
            let read = self.connections[slot].read(&mut self.buffers, answer).and_then(|reading| {
                if reading.open && self.slots.state(slot) == State::Opening {
                    self.established(slot, in_flight)?;
                } else if self.slots.state(slot) == State::Open {
                    self.connections[slot].send_waiting(&mut self.buffers)?;
                }
                Ok(reading)
            });
            count += self.attend_http(slot, now_ns, in_flight);
            match read {
                Err(loss) => {
                    self.end(slot, Some(loss), in_flight);
                    return count;
                }
                Ok(Reading { closed: true, .. }) => {
                    self.end(slot, Some(CloseReason::Closed), in_flight);
                    return count;
                }
                Ok(Reading { drained, full, .. }) => {
                    if self.slots.is_used_up(slot) && in_flight.outstanding_of(self.first + slot) == 0 {
                        self.end(slot, None, in_flight);
                        return count;
                    }
                    let blocked = self.connections[slot].is_blocked();
                    self.slots.set_blocked(slot, blocked, now_ns);
                    if drained || !(full || to_the_end) {
                        return count;
                    }
                }
            }
        }
        self.unread.add(slot);
        count
    }

    /// Ends a connection, because this side closes it, or because it is lost.
    fn end(&mut self, slot: usize, lost: Option<CloseReason>, in_flight: &mut InFlight) {
        let broken = lost.is_some() && in_flight.outstanding_of(self.first + slot) > 0;
        if let Some(loss) = lost {
            self.slots.lost(slot, loss, clock::monotonic_ns());
            in_flight.lose(self.first + slot, loss);
        }
        let farewell = lost.is_none() && self.options.close == Close::Fin && self.slots.state(slot) == State::Open;
        self.connections[slot].close(farewell, &mut self.buffers);
        self.unread.remove(slot);
        self.slots.ended(slot, broken);
        if let Some(many) = &mut self.many {
            many.release(slot);
        }
    }
}

impl Transport for Tcp {
    fn send(&mut self, due: &[Due], in_flight: &mut InFlight) -> Result<usize, Failure> {
        let (mut sent, mut without_id) = (0, 0);
        while sent < due.len()
            && without_id < self.slots.taking()
            && let Some(slot) = self.turn(&due[sent], in_flight)
        {
            match self.take_turn(slot, &due[sent..], in_flight)? {
                Turn::Sent(count) => (sent, without_id) = (sent + count, 0),
                Turn::NoId if due[sent].client.is_some() => break,
                Turn::NoId => without_id += 1,
                Turn::NoPort => break,
            }
        }
        if sent < due.len() && self.slots.lack_room() {
            in_flight.waits_for_stream(&due[sent]);
        }
        Ok(sent)
    }

    fn receive(&mut self, in_flight: &mut InFlight) -> Result<usize, Failure> {
        let now_ns = clock::monotonic_ns();
        if self.http.is_some() && now_ns >= self.sweep_ns {
            self.sweep(now_ns, in_flight);
        }
        let (mut count, first) = (0, self.first);
        while let Some(slot) = self.slots.overdue(now_ns, |slot| in_flight.outstanding_of(first + slot)) {
            self.end(slot, None, in_flight);
            count += 1;
        }
        while let Some(slot) = self.slots.idle(now_ns, |slot| in_flight.outstanding_of(first + slot)) {
            self.end(slot, None, in_flight);
        }
        for _ in 0..self.unread.len() {
            let Some(slot) = self.unread.first() else { break };
            count += 1 + self.read(slot, true, in_flight);
        }
        let ready = self.poller.wait(Timeout::Exact(0)).map_err(|error| cannot_receive(self.server, error))?;
        for at in 0..ready {
            let (slot, flags) = self.poller.event(at);
            // Handshakes are work too, so an event counts even if it brought no message.
            count += self.event(slot as usize, flags, in_flight).max(1);
        }
        Ok(count)
    }

    fn wait(&mut self, timeout_ns: i64, _wanted: bool) -> Result<(), Failure> {
        if !self.unread.is_empty() {
            return Ok(());
        }
        self.poller.sleep(timeout_ns).map_err(|error| cannot_receive(self.server, error))
    }

    fn lifetimes_us(&self) -> Option<&Times> {
        Some(self.slots.lifetimes_us())
    }

    fn connections(&self) -> Vec<Connections> {
        self.slots.connections().to_vec()
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_query_leaves_on_the_connection_of_the_client_that_it_names() {
        let query = vec![0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, b'a', 0, 0, 1, 0, 1];
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let settings = Settings {
            tls: None,
            http: None,
            announced: None,
            classes: vec![Usage { per_connection: 0, idle_ns: 0, resumption: false, early_data: false }],
            burst: 16,
            close: Close::Rst,
            held_as: HeldAs::Idle,
            bytes_max: query.len(),
            timeout_ns: 1_000_000_000,
        };
        let mut tcp = Tcp::open(listener.local_addr().unwrap(), &[], 3, settings).unwrap();
        // A table has room for four.
        let mut in_flight = InFlight::with_messages([query], 3, 4, 1_000_000_000);
        let due = [2, 2, 0, 2, 2, 2, 0].map(|client| Due { at_ns: 0, client: Some(client), query: 0, number: 0 });
        assert_eq!(tcp.send(&due, &mut in_flight).unwrap(), 5, "the sixth waits for its client");
        assert_eq!([0, 1, 2].map(|client| in_flight.outstanding_of(client)), [1, 0, 4]);
    }
}
