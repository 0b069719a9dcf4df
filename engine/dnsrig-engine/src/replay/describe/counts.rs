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

#[cfg(test)]
mod tests {
    use dnsrig_dns::{edns::Edns, query::Options, testing::name};

    use super::*;

    /// A query for a name of one letter, of 19 bytes, or of 30 with EDNS.
    fn query(letter: u8, rtype: u8, recursion_desired: bool, dnssec_ok: Option<bool>) -> Vec<u8> {
        let edns = dnssec_ok.map(|dnssec_ok| Edns { udp_payload_bytes: 1232, dnssec_ok });
        let options = Options { recursion_desired, edns };
        let owner = name(&char::from(letter).to_string());
        [&options.header()[..], &owner, &[0, rtype, 0, 1], &options.opt()].concat()
    }

    fn header(queries: u64, clients: u64, duration_ns: i64) -> query_stream::Header {
        query_stream::Header { queries, clients, duration_ns, ..query_stream::Header::default() }
    }

    #[test]
    fn everything_in_a_stream_is_counted() {
        let mut counts = Counts::new(1_000_000_000, Simulation::forever());
        for (due_ns, client, transport, flags, message) in [
            (0, 0, Transport::Udp, 0, query(b'a', 1, true, None)),
            (9_999_999, 0, Transport::Udp, RETRANSMISSION, query(b'a', 1, true, None)),
            (10_000_000, 1, Transport::Tcp, NEW_CONNECTION, query(b'b', 28, true, Some(true))),
            (999_999_999, 0, Transport::Udp, 0, query(b'a', 28, false, Some(false))),
            (1_000_000_000, 2, Transport::Dot, NEW_CONNECTION | RETRANSMISSION, query(b'a', 1, true, None)),
        ] {
            counts.add(&Record { due_ns, client, transport, flags, message: &message });
        }
        // A message without a question has no type.
        let message = &[0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        counts.add(&Record { due_ns: 1_000_000_000, client: 2, transport: Transport::Doq, flags: 0, message });
        let found = counts.summary(header(6, 3, 1_000_000_000));
        assert_eq!((found.queries_per_s, found.busiest_second), (6.0, 4));
        assert_eq!(found.types, [("A".to_owned(), 3), ("AAAA".to_owned(), 2)]);
        assert_eq!(found.transports.values().copied().collect::<Vec<_>>(), [3, 1, 1, 0, 1]);
        assert_eq!((found.retransmissions, found.connections, found.distinct_questions), (2, 2, 3));
        assert_eq!((found.edns, found.dnssec_ok, found.recursion_desired), (2, 1, 4));
        assert_eq!(found.message_bytes, 3 * 19 + 2 * 30 + 12);
        assert_eq!((found.interval_ns, found.intervals.len()), (16_666_667, 60));
        assert_eq!((found.intervals[0], found.intervals[59], found.intervals.iter().sum::<u64>()), (3, 3, 6));
        // Of 101 times 10 ms one has two queries, two have one each, and the last has two.
        let (mean, squares) = (6.0 / 101.0, (4.0 + 1.0 + 1.0 + 4.0) / 101.0);
        assert!((found.dispersion_10_ms - (squares - mean * mean) / mean).abs() < 1e-9, "{}", found.dispersion_10_ms);
        assert!(found.cache.is_none());
    }

    /// Clients with 101, 100, 10 and 9 queries.
    #[test]
    fn clients_are_counted_by_how_much_they_ask() {
        let mut counts = Counts::new(0, Simulation::forever());
        let all: Vec<_> = [(2, 101), (0, 100), (3, 10), (1, 9)]
            .iter()
            .flat_map(|(client, queries)| {
                (0..*queries).map(|number| (*client, query(b'a' + number % 12, 1, true, None)))
            })
            .collect();
        let record = |client, message| Record { due_ns: 0, client, transport: Transport::Udp, flags: 0, message };
        all.iter().for_each(|(client, message)| counts.add(&record(*client, message)));
        let mut heaviest = counts.heaviest();
        all.iter().for_each(|(client, message)| heaviest.add(&record(*client, message)));
        let heavy: Vec<_> = heaviest.clients().iter().map(|heavy| (heavy.queries, heavy.questions)).collect();
        assert_eq!(heavy, [(101, 12), (100, 12), (10, 10), (9, 9)]);
        let Clients { median, largest, heaviest_1_percent, heaviest_10_percent, below_10, above_100 } =
            counts.summary(header(220, 4, 0)).clients;
        assert_eq!((median, largest, below_10, above_100), (10, 101, 1, 1));
        assert_eq!((heaviest_1_percent, heaviest_10_percent), (101, 101));
    }

    /// The heaviest share of the clients has no fewer of them than the share says, and ten are looked at once more.
    #[test]
    fn the_heaviest_clients_are_the_first_of_all() {
        let mut counts = Counts::new(0, Simulation::forever());
        let message = query(b'a', 1, true, None);
        for client in 0..21 {
            let record = Record { due_ns: 0, client, transport: Transport::Udp, flags: 0, message: &message };
            (0..=client).for_each(|_| counts.add(&record));
        }
        let heaviest: Vec<_> = counts.heaviest().clients().iter().map(|heavy| heavy.queries).collect();
        assert_eq!(heaviest, (12..=21).rev().collect::<Vec<_>>());
        let found = counts.summary(header(231, 21, 0)).clients;
        assert_eq!((found.heaviest_1_percent, found.heaviest_10_percent, found.median), (21, 21 + 20 + 19, 11));
    }
}
