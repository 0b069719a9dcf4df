//! The connections of many clients to one server, each with a stream for every query (RFC 9250 §4.2).
//!
//! A client is a slot: the place of one connection at a time. The caller says what was received and what time it is,
//! and sends the datagrams that a slot hands out from the slot's own socket.

mod streams;

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use bytes::{Bytes, BytesMut};
use dnsrig_core::failure::Failure;
use quinn_proto::{
    ClientConfig, ConnectionError, ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig, EndpointEvent,
    Event as QuicEvent, NoneTokenStore, StreamEvent, TransportConfig, crypto::rustls::QuicClientConfig,
};

use self::streams::Streams;
use super::{
    Clock, Flow, code,
    counts::{Counts, NO_ERROR, REQUEST_CANCELLED},
    event::{Event, Handshake},
    timers::Timers,
    transmit, transport,
};
use crate::{
    connection::CloseReason,
    tls::{self, CountingVerifier, DOQ, Fault},
};

/// The time after three round trips that a server has to permit another stream. An acknowledgement is held back for 25
/// ms by default (RFC 9000 §18.2).
const STREAM_GRACE_NS: i64 = 100_000_000;

/// The time after which a connection is given up if queries were sent and nothing came from the server: the larger of
/// this number of timeouts and this time. A connection without queries stays open.
const SILENCE_TIMEOUTS: i64 = 3;
const SILENCE_NS_MIN: i64 = 5_000_000_000;

/// How connections are set up. Connections with the same configuration share TLS sessions.
#[derive(Clone)]
pub struct Config {
    quic: ClientConfig,
    transport: Arc<TransportConfig>,
    tls: tls::Client,
    verifier: Arc<CountingVerifier>,
}

impl Config {
    /// Connections to this server, with certificates, sessions and early data (0-RTT) as in `tls`, whose protocol is
    /// always [`DOQ`].
    pub fn new(server: IpAddr, tls: tls::Settings, flow: Flow) -> Result<Self, Failure> {
        let trust = tls.trust.clone();
        let tls = tls::Client::new(server, tls::Settings { protocol: DOQ, ..tls })?;
        let verifier = Arc::new(CountingVerifier::new(trust, tls.config().crypto_provider().clone())?);
        // The server ends connections that are idle, and this side those whose server does not react. No side but the
        // client opens streams.
        let mut transport = transport(flow, 0);
        transport.max_idle_timeout(None);
        let transport = Arc::new(transport);
        Ok(Config { quic: library_config(&tls, &verifier, &transport), transport, tls, verifier })
    }

    /// Copies the configuration, with as much room for sessions of its own.
    pub fn another(&self) -> Self {
        let tls = self.tls.another();
        Config { quic: library_config(&tls, &self.verifier, &self.transport), tls, ..self.clone() }
    }
}

fn library_config(
    tls: &tls::Client,
    verifier: &Arc<CountingVerifier>,
    transport: &Arc<TransportConfig>,
) -> ClientConfig {
    let mut config = rustls::ClientConfig::clone(tls.config());
    config.dangerous().set_certificate_verifier(verifier.clone());
    let crypto = QuicClientConfig::try_from(config).expect("ring has the suite of initial packets");
    let mut config = ClientConfig::new(Arc::new(crypto));
    config.transport_config(transport.clone());
    // Tokens of earlier connections would spare a Retry. Each connection is to be like the first of a client.
    config.token_store(Arc::new(NoneTokenStore));
    config
}

/// All connections of one thread.
pub struct Client {
    server: SocketAddr,
    clock: Clock,
    endpoint: Endpoint,
    timeout_ns: Option<i64>,
    slots: Box<[Option<Box<Connection>>]>,
    /// The slot of each connection, by its handle.
    slot_of: Vec<usize>,
    timers: Timers,
    /// By class of connections.
    counts: Box<[Counts]>,
    buffer: Vec<u8>,
}

struct Connection {
    class: usize,
    config: Config,
    handle: ConnectionHandle,
    quic: quinn_proto::Connection,
    streams: Streams,
    established: bool,
    /// Whether the server showed its certificate, as in a full handshake only.
    showed_certificate: bool,
    /// What is wrong with that certificate: the alert that this side sends is less exact.
    certificate_fault: Option<Fault>,
    /// Whether the endpoint has forgotten it already.
    drained: bool,
    /// Since when queries wait though no stream is open.
    stuck_ns: Option<i64>,
    used_up: bool,
    /// When the first query was sent since the last datagram from the server.
    silent_ns: Option<i64>,
    vanished: bool,
}

impl Client {
    /// A client of this server with this number of slots, all without a connection, and classes of connections that are
    /// counted apart. A query is given up after a timeout, and its stream cancelled. Without a timeout, the caller
    /// cancels queries ([`Client::cancel`]), and ends connections whose server is silent.
    pub fn new(server: SocketAddr, timeout_ns: Option<i64>, slots: usize, classes: usize, now_ns: i64) -> Self {
        Client {
            server,
            clock: Clock::new(now_ns),
            endpoint: Endpoint::new(Arc::new(EndpointConfig::default()), None, false, None),
            timeout_ns,
            slots: (0..slots).map(|_| None).collect(),
            slot_of: Vec::new(),
            timers: Timers::default(),
            counts: vec![Counts::default(); classes].into(),
            buffer: Vec::new(),
        }
    }

    /// Begins a connection of a class in a slot without one.
    pub fn begin(
        &mut self,
        slot: usize,
        class: usize,
        config: &Config,
        now_ns: i64,
    ) -> Result<(), quinn_proto::ConnectError> {
        debug_assert!(self.slots[slot].is_none());
        let now = self.clock.at(now_ns);
        let (handle, quic) = self.endpoint.connect(now, config.quic.clone(), self.server, &config.tls.name())?;
        if self.slot_of.len() <= handle.0 {
            self.slot_of.resize(handle.0 + 1, usize::MAX);
        }
        self.slot_of[handle.0] = slot;
        let connection = Connection {
            class,
            config: config.clone(),
            handle,
            quic,
            streams: Streams::default(),
            established: false,
            showed_certificate: false,
            certificate_fault: None,
            drained: false,
            stuck_ns: None,
            used_up: false,
            silent_ns: None,
            vanished: false,
        };
        self.slots[slot] = Some(Box::new(connection));
        Ok(())
    }

    /// Sends a query, whose id its answer will have, on a stream of its own. It waits if the server permits no stream,
    /// or the connection is not established and has no early data.
    pub fn send(&mut self, slot: usize, message: &[u8], now_ns: i64) {
        let Some(connection) = &mut self.slots[slot] else { return };
        self.counts[connection.class].streams_cancelled +=
            connection.streams.push(message, now_ns, &mut connection.quic);
        connection.streams.open(&mut connection.quic, connection.established);
        connection.silent_ns.get_or_insert(now_ns);
        if connection.established {
            self.counts[connection.class].waited_for_stream += connection.streams.count_waiting();
        }
    }

    /// Gives up a query: its stream is cancelled (DOQ_REQUEST_CANCELLED). Follow with [`Client::transmit`].
    pub fn cancel(&mut self, slot: usize, id: u16) {
        if let Some(connection) = &mut self.slots[slot] {
            self.counts[connection.class].streams_cancelled += connection.streams.cancel(id, &mut connection.quic);
        }
    }

    /// Whether queries wait on an established connection.
    pub fn is_blocked(&self, slot: usize) -> bool {
        self.slots[slot].as_ref().is_some_and(|connection| connection.established && connection.streams.is_waiting())
    }

    /// The number of queries that wait for a stream.
    pub fn waiting(&self, slot: usize) -> usize {
        self.slots[slot].as_ref().map_or(0, |connection| connection.streams.waiting())
    }

    /// Takes in a datagram from the server. Returns the slot of its connection, unless it belongs to none: then call
    /// [`Client::poll`] and [`Client::transmit`] for that slot.
    pub fn receive(&mut self, datagram: &[u8], now_ns: i64) -> Option<usize> {
        self.buffer.clear();
        let now = self.clock.at(now_ns);
        let bytes = BytesMut::from(datagram);
        // A response is a stateless reset, which a client need not send.
        let event = self.endpoint.handle(now, self.server, None, None, bytes, &mut self.buffer)?;
        let DatagramEvent::ConnectionEvent(handle, event) = event else { return None };
        let slot = *self.slot_of.get(handle.0)?;
        let connection = self.slots.get_mut(slot)?.as_mut()?;
        self.counts[connection.class].retries += u64::from(!connection.established && is_retry(datagram));
        let before = connection.config.verifier.certificates();
        connection.quic.handle_event(event);
        connection.silent_ns = None;
        connection.showed_certificate |= connection.config.verifier.certificates() > before;
        connection.certificate_fault = connection.config.verifier.take_fault().or(connection.certificate_fault);
        Some(slot)
    }

    /// Calls `each` with everything that happened in a slot.
    pub fn poll(&mut self, slot: usize, mut each: impl FnMut(Event<'_>)) {
        let Some(connection) = &mut self.slots[slot] else { return };
        if std::mem::take(&mut connection.used_up) {
            self.counts[connection.class].connections_used_up += 1;
            each(Event::UsedUp);
        }
        while let Some(event) = connection.quic.poll_endpoint_events() {
            connection.drained |= event.is_drained();
            if let Some(event) = self.endpoint.handle_event(connection.handle, event) {
                connection.quic.handle_event(event);
            }
        }
        if std::mem::take(&mut connection.vanished) {
            each(Event::Lost(self.counts[connection.class].ends.count(&ConnectionError::TimedOut)));
            return;
        }
        let counts = &mut self.counts[connection.class];
        while let Some(event) = connection.quic.poll() {
            connection.happened(event, counts, &mut each);
        }
    }

    /// Calls `send` with the datagrams that a slot has to send.
    pub fn transmit(&mut self, slot: usize, now_ns: i64, mut send: impl FnMut(&[u8])) {
        let Some(connection) = &mut self.slots[slot] else { return };
        let now = self.clock.at(now_ns);
        transmit(&mut connection.quic, now, &mut self.buffer, |datagram, _| send(datagram));
        // It also forgets streams that have ended, so call it whether or not queries have a timeout.
        let oldest_ns = connection.streams.oldest_ns();
        let oldest_ns = self.timeout_ns.and_then(|timeout_ns| Some(oldest_ns? + timeout_ns));
        let timeout_ns = connection.quic.poll_timeout().map(|timeout| self.clock.ns(timeout));
        let used_up_ns = connection.used_up_ns(now_ns);
        for time_ns in [oldest_ns, timeout_ns, used_up_ns].into_iter().flatten() {
            self.timers.by(slot, time_ns);
        }
    }

    /// When the next slot has something to do, whatever comes.
    pub fn due_ns(&self) -> Option<i64> {
        self.timers.next_ns()
    }

    /// Does what is due in a slot, and returns the slot. Call it until it returns `None`, and follow each with
    /// [`Client::poll`] and [`Client::transmit`].
    pub fn on_time(&mut self, now_ns: i64) -> Option<usize> {
        let slot = self.timers.pop(now_ns)?;
        if let Some(connection) = &mut self.slots[slot] {
            let now = self.clock.at(now_ns);
            if connection.quic.poll_timeout().is_some_and(|timeout| timeout <= now) {
                connection.quic.handle_timeout(now);
            }
            if let Some(timeout_ns) = self.timeout_ns {
                let sent_ns = now_ns - timeout_ns;
                self.counts[connection.class].streams_cancelled +=
                    connection.streams.give_up(sent_ns, &mut connection.quic);
                let limit_ns = SILENCE_NS_MIN.max(SILENCE_TIMEOUTS * timeout_ns);
                connection.vanished = connection.silent_ns.is_some_and(|silent_ns| now_ns - silent_ns >= limit_ns);
            }
            connection.used_up = connection.used_up_ns(now_ns).is_some_and(|used_up_ns| used_up_ns <= now_ns);
        }
        Some(slot)
    }

    /// Ends the connection of a slot and begins another one, on which the queries that wait are sent. Returns their
    /// number. Some servers permit a fixed number of streams for each connection.
    pub fn replace(
        &mut self,
        slot: usize,
        now_ns: i64,
        send: impl FnMut(&[u8]),
    ) -> Result<usize, quinn_proto::ConnectError> {
        let Some(connection) = &mut self.slots[slot] else { return Ok(0) };
        let (streams, class, config) = (connection.streams.take_waiting(), connection.class, connection.config.clone());
        self.close(slot, now_ns, send);
        self.begin(slot, class, &config, now_ns)?;
        let waiting = streams.waiting();
        if let Some(connection) = &mut self.slots[slot] {
            connection.streams = streams;
            connection.streams.open(&mut connection.quic, false);
        }
        Ok(waiting)
    }

    /// Ends the connection of a slot. Calls `send` with what the server is to know (DOQ_NO_ERROR).
    pub fn close(&mut self, slot: usize, now_ns: i64, mut send: impl FnMut(&[u8])) {
        let Some(mut connection) = self.slots[slot].take() else { return };
        let now = self.clock.at(now_ns);
        connection.quic.close(now, code(NO_ERROR), Bytes::new());
        transmit(&mut connection.quic, now, &mut self.buffer, |datagram, _| send(datagram));
        self.counts[connection.class].add_path(&connection.quic.stats());
        if !connection.drained {
            self.endpoint.handle_event(connection.handle, EndpointEvent::drained());
        }
        self.slot_of[connection.handle.0] = usize::MAX;
        self.timers.remove(slot);
    }

    /// The counts of a class so far.
    pub fn counts(&self, class: usize) -> Counts {
        let mut counts = self.counts[class];
        let open = self.slots.iter().flatten().filter(|connection| connection.class == class);
        open.for_each(|connection| counts.add_path(&connection.quic.stats()));
        counts
    }
}

impl Connection {
    /// When the connection counts as used up, if queries wait though no stream is open: after a few round trips and the
    /// delay of an acknowledgement, the server could have permitted another stream.
    fn used_up_ns(&mut self, now_ns: i64) -> Option<i64> {
        self.stuck_ns = match self.established && self.streams.is_stuck() {
            true => self.stuck_ns.or(Some(now_ns)),
            false => None,
        };
        let grace_ns = STREAM_GRACE_NS + 3 * self.quic.rtt().as_nanos() as i64;
        self.stuck_ns.map(|stuck_ns| stuck_ns + grace_ns)
    }

    fn happened(&mut self, event: QuicEvent, counts: &mut Counts, each: &mut impl FnMut(Event<'_>)) {
        match event {
            QuicEvent::Connected => {
                self.established = true;
                if self.showed_certificate {
                    counts.full_handshake(self.quic.stats().udp_rx.bytes);
                }
                let had_early = self.quic.has_0rtt();
                let early = self.streams.established(had_early && !self.quic.accepted_0rtt());
                let [early_accepted, early_rejected] =
                    if had_early && self.quic.accepted_0rtt() { [early, 0] } else { [0, early] };
                each(Event::Established(Handshake {
                    resumed: !self.showed_certificate,
                    early_accepted,
                    early_rejected,
                }));
                self.streams.open(&mut self.quic, true);
                counts.waited_for_stream += self.streams.count_waiting();
            }
            QuicEvent::ConnectionLost { reason } => {
                let counted = counts.ends.count(&reason);
                each(Event::Lost(self.certificate_fault.map_or(counted, CloseReason::Tls)));
            }
            QuicEvent::Stream(StreamEvent::Readable { id }) => self.streams.read(id, &mut self.quic, counts, each),
            QuicEvent::Stream(StreamEvent::Writable { id }) => self.streams.write(id, &mut self.quic, self.established),
            QuicEvent::Stream(StreamEvent::Available { .. }) => self.streams.open(&mut self.quic, self.established),
            QuicEvent::Stream(StreamEvent::Stopped { id, error_code }) => {
                let _ = self.quic.send_stream(id).reset(code(REQUEST_CANCELLED));
                counts.stopped(error_code.into_inner());
            }
            _ => {}
        }
    }
}

/// Whether a datagram is a Retry packet of version 1 (RFC 9000 §17.2.5).
fn is_retry(datagram: &[u8]) -> bool {
    datagram.first_chunk().is_some_and(|[first, version @ ..]: &[u8; 5]| first >> 4 == 0xf && version == &[0, 0, 0, 1])
}
