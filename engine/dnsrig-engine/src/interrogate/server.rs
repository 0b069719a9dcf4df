//! The server: connections to it, and exchanges on them.

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use dnsrig_core::clock;
use dnsrig_dns::{catalog::Members, query::Ask, tsig::sign::Signer};
use dnsrig_net::tls::{Client, Sessions, Settings};

use super::{
    answer::Transport,
    connection::{CloseReason, Connection, Records},
    exchange::{Exchange, Now},
    limits::{EXCHANGE_MAX, LARGE_BYTES_MAX, MESSAGES_MAX, QUIET_MAX, SURVEY_BYTES_MAX},
    transfer::ZoneName,
};

/// The protocol that a client names for DNS over TLS and for XoT (RFC 7858, RFC 9103 §7.1).
pub const DOT: &str = "dot";

/// The number of tickets that a check keeps.
pub const TICKETS_MAX: usize = 8;

/// The server that is asked, and the key.
#[derive(Clone)]
pub struct Server {
    pub tcp: SocketAddr,
    pub xot: SocketAddr,
    pub signer: Option<Arc<Signer>>,
    pub tls: Client,
    /// Certificates for connections over QUIC.
    pub quic: Arc<Settings>,
}

impl Server {
    /// A new connection.
    pub fn open(&self, transport: Transport) -> Result<Connection, CloseReason> {
        match transport {
            Transport::Tcp => Connection::tcp(self.tcp),
            Transport::Xot => self.open_tls(&[DOT], None),
            Transport::Xoq => Err(CloseReason::Network("QUIC has no such connections".into())),
        }
    }

    /// A new connection with TLS that offers these protocols (ALPN), and keeps sessions if there is something to keep
    /// them.
    pub fn open_tls(&self, alpn: &[&str], sessions: Option<&Arc<Sessions>>) -> Result<Connection, CloseReason> {
        self.open_tls_with_early_data(alpn, sessions, &[]).map(|(connection, _)| connection)
    }

    /// A new connection as of [`Server::open_tls`], and whether `early` was sent as early data (0-RTT), which the
    /// session that is resumed must permit.
    pub fn open_tls_with_early_data(
        &self,
        alpn: &[&str],
        sessions: Option<&Arc<Sessions>>,
        early: &[u8],
    ) -> Result<(Connection, bool), CloseReason> {
        Connection::tls(self.xot, &self.tls.offering(alpn, sessions), early)
    }

    /// Sends all queries in one write, before any answer, and takes what comes.
    pub fn ask_at_once(&self, connection: &mut Connection, asks: &[(&ZoneName, Ask)], records: Records) -> Exchange {
        let mut talk = Talk::new(self.signer.clone());
        let queries: Vec<_> = asks.iter().map(|(zone, ask)| talk.draft(zone, *ask)).collect();
        talk.note(connection.send(&queries, records));
        talk.listen(connection);
        talk.exchange
    }

    /// Asks one after another: each when the one before has its answer.
    pub fn ask_in_turn(&self, connection: &mut Connection, asks: &[(&ZoneName, Ask)]) -> Exchange {
        let mut talk = Talk::new(self.signer.clone());
        for (zone, ask) in asks {
            let query = talk.draft(zone, *ask);
            talk.note(connection.send(&[query], Records::OneEach));
            talk.listen(connection);
            if talk.exchange.close_reason.is_some() {
                break;
            }
        }
        talk.exchange
    }

    /// Transfers a catalog on a new connection, for its members; errors are sentences.
    pub fn transfer_catalog(&self, members: Members, transport: Transport, zone: &ZoneName) -> Result<(), String> {
        let mut connection = self.open(transport).map_err(|close_reason| close_reason.to_string())?;
        let mut talk = Talk::new(self.signer.clone()).at_most(SURVEY_BYTES_MAX);
        let query = talk.draft(zone, Ask::Axfr);
        talk.exchange.transfers[0].keep_members(members);
        talk.note(connection.send(&[query], Records::OneEach));
        talk.listen(&mut connection);
        if talk.exchange.done() == 1 { Ok(()) } else { Err(talk.exchange.complaint()) }
    }

    /// Asks one thing on a new connection.
    pub fn ask_once(&self, transport: Transport, zone: &ZoneName, ask: Ask) -> Result<Exchange, CloseReason> {
        Ok(self.ask_in_turn(&mut self.open(transport)?, &[(zone, ask)]))
    }
}

/// An exchange in progress, and its clock.
pub struct Talk {
    pub exchange: Exchange,
    signer: Option<Arc<Signer>>,
    start: Instant,
    bytes_max: u64,
    time_max: Duration,
}

impl Talk {
    pub fn new(signer: Option<Arc<Signer>>) -> Self {
        Self::since(signer, Instant::now())
    }

    /// With a beginning that several share.
    pub fn since(signer: Option<Arc<Signer>>, start: Instant) -> Self {
        let exchange = Exchange::default();
        Talk { exchange, signer, start, bytes_max: 4 * LARGE_BYTES_MAX, time_max: EXCHANGE_MAX }
    }

    /// Limits the bytes that are taken.
    pub fn at_most(mut self, bytes_max: u64) -> Self {
        self.bytes_max = bytes_max;
        self
    }

    /// Limits the time.
    pub fn within(mut self, time_max: Duration) -> Self {
        self.time_max = time_max;
        self
    }

    fn now(&self) -> Now {
        Now { at: self.start.elapsed(), wall_s: clock::wall_time_s() }
    }

    /// Has zones compared with their digests.
    pub fn check_digests(mut self) -> Self {
        self.exchange.checks_digests = true;
        self
    }

    /// A query, as it is sent.
    pub fn draft(&mut self, zone: &ZoneName, ask: Ask) -> Vec<u8> {
        let now = self.now();
        self.exchange.ask(zone, ask, self.signer.as_ref(), now)
    }

    /// A query for SOA that asks how long an idle connection stays.
    pub fn draft_keepalive(&mut self, zone: &ZoneName) -> Vec<u8> {
        let now = self.now();
        self.exchange.ask_keepalive(zone, now)
    }

    /// Takes in a message, and notes when it is enough.
    pub fn take(&mut self, message: &[u8]) {
        let now = self.now();
        self.exchange.take(now, message);
        if self.exchange.bytes() > self.bytes_max || self.exchange.arrivals.len() > MESSAGES_MAX {
            self.note(Err(CloseReason::Enough));
        }
    }

    /// Keeps the first reason.
    pub fn note(&mut self, result: Result<(), CloseReason>) {
        if let (Err(close_reason), None) = (result, &self.exchange.close_reason) {
            self.exchange.close_reason = Some(close_reason);
        }
    }

    /// Takes in messages until everything is answered, or there is no hope of it.
    pub fn listen(&mut self, connection: &mut Connection) {
        self.listen_until(connection, |_| false);
    }

    /// Takes in messages as [`Talk::listen`] does, or until `is_enough`, which is asked after each message.
    pub fn listen_until(&mut self, connection: &mut Connection, is_enough: impl Fn(&Exchange) -> bool) {
        let end = Instant::now() + self.time_max;
        while self.exchange.open() > 0 && self.exchange.close_reason.is_none() && !is_enough(&self.exchange) {
            let quiet = self.start + self.exchange.progress_at + QUIET_MAX;
            match connection.receive(end.min(quiet)) {
                Ok(message) => self.take(&message),
                Err(CloseReason::TimedOut) => self.note_silence(Instant::now() >= end),
                Err(close_reason) => self.note(Err(close_reason)),
            }
        }
    }

    /// Notes why nothing more is waited for: no record came for a while, or `is_over`: there is no time left.
    pub fn note_silence(&mut self, is_over: bool) {
        self.note(Err(match self.exchange.fruitless {
            count @ 1.. => CloseReason::Fruitless(count),
            _ if self.exchange.goes_on() && is_over => CloseReason::Unfinished,
            _ => CloseReason::TimedOut,
        }));
    }
}
