//! Counts over a stream, in memory that grows with its clients only.

use std::{
    collections::{BTreeMap, HashSet, hash_map::DefaultHasher},
    hash::{Hash, Hasher},
};

use domain::base::Rtype;

use super::report::{Clients, Summary};
use crate::dns::{
    header::{HEADER_BYTES, Header},
    name,
    stream::{self, NEW_CONNECTION, RETRANSMISSION, Record, Transport},
};

/// Columns of the chart.
const INTERVALS: usize = 60;

/// So many distinct questions are counted exactly; beyond, the number is at least that.
const QUESTIONS_MAX: usize = 1 << 24;

/// So many types are named.
const TYPES_NAMED: usize = 20;

/// The type of the record of EDNS (RFC 6891 §6.1.1).
const OPT: u16 = 41;

/// What is counted.
pub struct Counts {
    interval_ns: i64,
    queries: u64,
    intervals: Vec<u64>,
    second: (i64, u64),
    busiest_second: u64,
    clients: Vec<u64>,
    types: BTreeMap<u16, u64>,
    transports: [u64; Transport::ALL.len()],
    questions: HashSet<u64>,
    retransmissions: u64,
    connections: u64,
    edns: u64,
    dnssec_ok: u64,
    message_bytes: u64,
}

impl Counts {
    pub fn new(duration_ns: i64) -> Self {
        Counts {
            interval_ns: duration_ns / INTERVALS as i64 + 1,
            queries: 0,
            intervals: vec![0; INTERVALS],
            second: (0, 0),
            busiest_second: 0,
            clients: Vec::new(),
            types: BTreeMap::new(),
            transports: [0; Transport::ALL.len()],
            questions: HashSet::new(),
            retransmissions: 0,
            connections: 0,
            edns: 0,
            dnssec_ok: 0,
            message_bytes: 0,
        }
    }

    pub fn add(&mut self, record: &Record) {
        self.queries += 1;
        // The reader has seen to it that nothing is due behind the end.
        self.intervals[(record.due_ns / self.interval_ns) as usize] += 1;
        let second = record.due_ns / 1_000_000_000;
        self.second = if second == self.second.0 { (second, self.second.1 + 1) } else { (second, 1) };
        self.busiest_second = self.busiest_second.max(self.second.1);
        let client = record.client as usize;
        if client >= self.clients.len() {
            self.clients.resize(client + 1, 0);
        }
        self.clients[client] += 1;
        self.transports[record.transport as usize] += 1;
        self.retransmissions += u64::from(record.flags & RETRANSMISSION != 0);
        self.connections += u64::from(record.flags & NEW_CONNECTION != 0);
        self.message_bytes += record.message.len() as u64;
        self.add_message(record.message);
    }

    /// The question and EDNS, as far as they can be read.
    fn add_message(&mut self, message: &[u8]) {
        let Ok(behind) = name::skip_plain(message, HEADER_BYTES) else { return };
        let Some(&[a, b, _, _]) = message.get(behind..).and_then(<[u8]>::first_chunk) else { return };
        *self.types.entry(u16::from_be_bytes([a, b])).or_default() += 1;
        if self.questions.len() < QUESTIONS_MAX {
            let mut hasher = DefaultHasher::new();
            (message[HEADER_BYTES..behind].to_ascii_lowercase(), a, b).hash(&mut hasher);
            self.questions.insert(hasher.finish());
        }
        // A query has EDNS as the only record behind its question, nearly always.
        let alone = Header::read(message).is_ok_and(|header| header.records() == 1);
        if let Some(&[0, high, low, _, _, _, _, flags]) = message.get(behind + 4..).and_then(<[u8]>::first_chunk)
            && alone
            && u16::from_be_bytes([high, low]) == OPT
        {
            self.edns += 1;
            self.dnssec_ok += u64::from(flags & 0x80 != 0);
        }
    }

    pub fn summary(mut self, header: stream::Header) -> Summary {
        self.clients.sort_unstable_by(|a, b| b.cmp(a));
        let heaviest = |share: f64| -> u64 {
            let count = (self.clients.len() as f64 * share).ceil() as usize;
            self.clients.iter().take(count).sum()
        };
        let clients = Clients {
            median: self.clients.get(self.clients.len() / 2).copied().unwrap_or(0),
            largest: self.clients.first().copied().unwrap_or(0),
            heaviest_1_percent: heaviest(0.01),
            heaviest_10_percent: heaviest(0.1),
        };
        let mut types: Vec<_> = self.types.iter().map(|(&number, &count)| (number, count)).collect();
        types.sort_by_key(|&(number, count)| (std::cmp::Reverse(count), number));
        types.truncate(TYPES_NAMED);
        let named = |(number, count): (u16, u64)| (Rtype::from_int(number).to_string(), count);
        Summary {
            stream: header,
            queries_per_s: self.queries as f64 / (header.duration_ns.max(1) as f64 / 1e9),
            busiest_second: self.busiest_second,
            clients,
            types: types.into_iter().map(named).collect(),
            transports: Transport::ALL
                .iter()
                .map(|&transport| (transport, self.transports[transport as usize]))
                .collect(),
            distinct_questions: self.questions.len() as u64,
            retransmissions: self.retransmissions,
            connections: self.connections,
            edns: self.edns,
            dnssec_ok: self.dnssec_ok,
            message_bytes: self.message_bytes,
            interval_ns: self.interval_ns,
            intervals: self.intervals,
            ..Summary::default()
        }
    }
}
