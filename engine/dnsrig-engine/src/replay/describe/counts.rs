//! Counts over a stream, in memory that grows with its clients only.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap, HashSet, hash_map::DefaultHasher},
    hash::{Hash, Hasher},
};

use dnsrig_dns::{
    header::{Header, RD},
    query::Asked,
};
use domain::base::Rtype;

use super::report::{Clients, Heavy, Summary};
use crate::query_stream::{self, NEW_CONNECTION, RETRANSMISSION, Record, Transport, cache::Simulation};

const CENTISECOND_NS: i64 = 10_000_000;

/// Columns of the chart.
const INTERVALS: usize = 60;

/// The number of heaviest clients that are looked at, and the most distinct questions of each that are counted.
const HEAVIEST: usize = 10;
const QUESTIONS_MAX: usize = 1 << 20;

/// The number of types that are named.
const TYPES_NAMED: usize = 20;

/// What is counted.
pub struct Counts<'t> {
    interval_ns: i64,
    queries: u64,
    intervals: Vec<u64>,
    second: (i64, u64),
    /// 10 ms: which, how many queries, and the sum of the squares of those before.
    centisecond: (i64, u64),
    squares: u64,
    busiest_second: u64,
    clients: Vec<u64>,
    types: BTreeMap<u16, u64>,
    transports: [u64; Transport::ALL.len()],
    simulation: Simulation<'t>,
    retransmissions: u64,
    connections: u64,
    edns: u64,
    dnssec_ok: u64,
    recursion_desired: u64,
    message_bytes: u64,
}

impl<'t> Counts<'t> {
    pub fn new(duration_ns: i64, simulation: Simulation<'t>) -> Self {
        Counts {
            interval_ns: duration_ns / INTERVALS as i64 + 1,
            queries: 0,
            intervals: vec![0; INTERVALS],
            second: (0, 0),
            centisecond: (0, 0),
            squares: 0,
            busiest_second: 0,
            clients: Vec::new(),
            types: BTreeMap::new(),
            transports: [0; Transport::ALL.len()],
            simulation,
            retransmissions: 0,
            connections: 0,
            edns: 0,
            dnssec_ok: 0,
            recursion_desired: 0,
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
        let centisecond = record.due_ns / CENTISECOND_NS;
        if centisecond == self.centisecond.0 {
            self.centisecond.1 += 1;
        } else {
            self.squares += self.centisecond.1.pow(2);
            self.centisecond = (centisecond, 1);
        }
        let client = record.client as usize;
        if client >= self.clients.len() {
            self.clients.resize(client + 1, 0);
        }
        self.clients[client] += 1;
        self.transports[record.transport as usize] += 1;
        self.retransmissions += u64::from(record.flags & RETRANSMISSION != 0);
        self.connections += u64::from(record.flags & NEW_CONNECTION != 0);
        self.message_bytes += record.message.len() as u64;
        self.recursion_desired += u64::from(Header::read(record.message).is_ok_and(|header| header.flags & RD != 0));
        // The question and EDNS, as far as they can be read.
        let Some(asked) = Asked::read(record.message) else { return };
        *self.types.entry(asked.rtype).or_default() += 1;
        self.simulation.add(record.client, record.due_ns, &asked);
        self.edns += u64::from(asked.edns.is_some());
        self.dnssec_ok += u64::from(asked.edns.is_some_and(|edns| edns.dnssec_ok));
    }

    /// The clients with the most queries, to be looked at once more.
    pub fn heaviest(&self) -> Heaviest {
        let mut clients: Vec<_> = (0..).zip(self.clients.iter().copied()).collect();
        clients.sort_unstable_by_key(|&(number, queries): &(u32, u64)| (Reverse(queries), number));
        clients.truncate(HEAVIEST);
        let places = clients.iter().enumerate().map(|(place, &(number, _))| (number, place)).collect();
        let questions = vec![HashSet::new(); clients.len()];
        Heaviest { places, queries: clients.into_iter().map(|(_, queries)| queries).collect(), questions }
    }

    pub fn summary(mut self, header: query_stream::Header) -> Summary {
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
            below_10: self.clients.iter().filter(|queries| **queries < 10).count() as u64,
            above_100: self.clients.iter().filter(|queries| **queries > 100).count() as u64,
        };
        let mut types: Vec<_> = self.types.iter().map(|(&number, &count)| (number, count)).collect();
        types.sort_by_key(|&(number, count)| (Reverse(count), number));
        types.truncate(TYPES_NAMED);
        let named = |(number, count): (u16, u64)| (Rtype::from_int(number).to_string(), count);
        let parts = (header.duration_ns / CENTISECOND_NS + 1) as f64;
        let mean = self.queries as f64 / parts;
        let squares = (self.squares + self.centisecond.1.pow(2)) as f64;
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
            distinct_questions: self.simulation.questions(),
            hit_ratios: self.simulation.hit_ratios(),
            retransmissions: self.retransmissions,
            connections: self.connections,
            edns: self.edns,
            dnssec_ok: self.dnssec_ok,
            recursion_desired: self.recursion_desired,
            message_bytes: self.message_bytes,
            interval_ns: self.interval_ns,
            intervals: self.intervals,
            dispersion_10_ms: (squares / parts - mean * mean) / mean.max(f64::MIN_POSITIVE),
            cache: self.simulation.finish(),
            ..Summary::default()
        }
    }
}

/// What the heaviest clients ask for.
pub struct Heaviest {
    places: HashMap<u32, usize>,
    queries: Vec<u64>,
    questions: Vec<HashSet<u64>>,
}

impl Heaviest {
    pub fn add(&mut self, record: &Record) {
        let Some(&place) = self.places.get(&record.client) else { return };
        let questions = &mut self.questions[place];
        if questions.len() < QUESTIONS_MAX
            && let Some(Asked { name, rtype, .. }) = Asked::read(record.message)
        {
            let mut hasher = DefaultHasher::new();
            (name, rtype).hash(&mut hasher);
            questions.insert(hasher.finish());
        }
    }

    /// The clients with the most queries come first.
    pub fn clients(&self) -> Vec<Heavy> {
        let each = self.queries.iter().zip(&self.questions);
        each.map(|(&queries, questions)| Heavy { queries, questions: questions.len() as u64 }).collect()
    }
}
