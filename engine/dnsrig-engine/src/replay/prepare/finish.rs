//! From sorted queries to a stream: due times, numbers of clients, retransmissions.

use std::{
    collections::{HashMap, hash_map::DefaultHasher},
    hash::{Hash, Hasher},
    net::Ipv6Addr,
};

use serde::Serialize;

use super::{
    anonymise::Anonymiser,
    edns::{Shares, Wanted},
    operations::Transports,
    sort::Entry,
};
use crate::dns::stream::{Header, NEW_CONNECTION, RETRANSMISSION, Record, StreamError, StreamWriter, Transport};

/// A client that sends the same message again within so long, over UDP and from the same port, retransmits it. Stub
/// resolvers wait for up to five seconds.
const RETRANSMISSION_NS: i64 = 5_000_000_000;

/// No client gives up waiting so soon: the capture has the packet twice.
const AT_ONCE_NS: i64 = 1_000_000;

/// So many messages are remembered for that, in each of two halves.
const REMEMBERED_MAX: usize = 1 << 19;

/// What a client costs: its address, its number, and room in the table, which grows by doubling.
pub const CLIENT_BYTES: usize = 64;

/// What the stream comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Written {
    pub queries: u64,
    pub clients: u64,
    pub first_wall_ns: i64,
    pub duration_ns: i64,
    pub retransmissions: u64,
    /// Of those, the ones within a millisecond.
    pub repeated_at_once: u64,
    /// Queries whose EDNS was left as it was though another was asked for: they have other records, too.
    pub edns_left: u64,
    /// Stretches without a query that were left out, beyond --gap-s.
    pub gaps: u64,
    pub gaps_ns: i64,
    /// Queries of clients for whose numbers there was no room.
    #[serde(skip)]
    pub beyond_memory: u64,
}

/// How to write.
#[derive(Clone, Debug)]
pub struct Options {
    pub transports: Transports,
    pub edns: Shares,
    /// Time passes so many times as fast.
    pub speed: f64,
    pub clients_max: usize,
    pub store_addresses: bool,
}

/// Takes in queries in the order of their times, which are those at which they are due.
pub struct Finisher {
    options: Options,
    anonymiser: Option<Anonymiser>,
    writer: StreamWriter,
    numbers: HashMap<(Ipv6Addr, u16), u32>,
    addresses: Vec<Ipv6Addr>,
    /// A message with other EDNS than it was captured with.
    rewritten: Vec<u8>,
    seen: Seen,
    written: Written,
}

impl Finisher {
    pub fn new(options: Options, anonymiser: Option<Anonymiser>, writer: StreamWriter) -> Self {
        Finisher {
            options,
            anonymiser,
            writer,
            numbers: HashMap::new(),
            addresses: Vec::new(),
            rewritten: Vec::new(),
            seen: Seen::default(),
            written: Written::default(),
        }
    }

    pub fn push(&mut self, entry: &Entry) -> Result<(), StreamError> {
        let known = self.numbers.len();
        let Some(client) = self.client(entry) else {
            self.written.beyond_memory += 1;
            return Ok(());
        };
        let is_new = self.numbers.len() > known;
        let mut flags = entry.flags;
        let mut transport = entry.transport;
        if let Some(other) = self.options.transports.of(entry.client, entry.copy).filter(|other| *other != transport) {
            // How long its connections last is decided when the stream is sent: one begins for certain.
            flags = if is_new && other != Transport::Udp { NEW_CONNECTION } else { 0 };
            transport = other;
        }
        if transport == Transport::Udp
            && let Some(since_ns) = self.seen.repeated_after_ns(entry.time_ns, client, entry)
        {
            flags |= RETRANSMISSION;
            self.written.retransmissions += 1;
            self.written.repeated_at_once += u64::from(since_ns < AT_ONCE_NS);
        }
        let due_ns = (entry.time_ns as f64 / self.options.speed) as i64;
        let due_ns = if self.options.speed == 1.0 { entry.time_ns } else { due_ns };
        let message = match &mut self.anonymiser {
            // Only what has a question became an entry.
            Some(anonymiser) => anonymiser.rewrite(entry.message, client).unwrap_or(&[]),
            None => entry.message,
        };
        let wanted = self.options.edns.of(entry.client, entry.copy);
        let message = if wanted == Wanted::default() {
            message
        } else if wanted.rewrite(message, &mut self.rewritten) {
            &self.rewritten
        } else {
            self.written.edns_left += 1;
            message
        };
        self.writer.push(Record { due_ns, client, transport, flags, message })
    }

    /// The client's number, if there is room for it.
    fn client(&mut self, entry: &Entry) -> Option<u32> {
        let next = self.numbers.len();
        let key = (entry.client, entry.copy);
        if next >= self.options.clients_max {
            return self.numbers.get(&key).copied();
        }
        let number = *self.numbers.entry(key).or_insert(next as u32);
        if self.options.store_addresses && number as usize == self.addresses.len() {
            self.addresses.push(entry.client);
        }
        Some(number)
    }

    /// Puts the stream at its path, unless there is nothing in it.
    pub fn finish(self, first_wall_ns: i64) -> Result<Written, StreamError> {
        if self.numbers.is_empty() {
            return Ok(self.written);
        }
        let addresses = self.options.store_addresses.then_some(self.addresses);
        let header = self.writer.finish(first_wall_ns, addresses)?;
        let Header { queries, clients, first_wall_ns, duration_ns, .. } = header;
        Ok(Written { queries, clients, first_wall_ns, duration_ns, ..self.written })
    }
}

/// The messages of the last seconds: their hashes, and when each was due. Two halves, of which the older one is
/// forgotten when the newer one is full or old.
#[derive(Default)]
struct Seen {
    newer: HashMap<u64, i64>,
    older: HashMap<u64, i64>,
    since_ns: i64,
}

impl Seen {
    /// How long ago the same message came, if that is not too long.
    fn repeated_after_ns(&mut self, due_ns: i64, client: u32, entry: &Entry) -> Option<i64> {
        if due_ns - self.since_ns > RETRANSMISSION_NS || self.newer.len() >= REMEMBERED_MAX {
            std::mem::swap(&mut self.newer, &mut self.older);
            self.newer.clear();
            self.since_ns = due_ns;
        }
        let mut hasher = DefaultHasher::new();
        (client, entry.port, entry.message).hash(&mut hasher);
        let hash = hasher.finish();
        let before_ns = self.newer.insert(hash, due_ns).or_else(|| self.older.get(&hash).copied());
        before_ns.map(|before_ns| due_ns - before_ns).filter(|&since_ns| since_ns <= RETRANSMISSION_NS)
    }
}
