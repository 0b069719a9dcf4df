//! What is counted of the clients of a half of a stream, or of a population: no I/O.

use std::collections::BTreeMap;

use dnsrig_dns::{header::RD, query::Asked};
use domain::base::iana::Rtype;

use crate::{
    dataset::{is_missing, name_table::NameTable},
    query_stream::{
        RETRANSMISSION, Record, Transport,
        cache::{Simulation, Ttls},
    },
};

/// A client that has asked nothing for so long begins a new visit: opens a page, or asks a single question.
pub const VISIT_NS: i64 = 1_000_000_000;

/// The least TTL of the names that a web page leads to (kau.se, the pages of Alexa's list): short streams, too, have
/// answers that expire.
pub const TTL_S: u32 = 60;

/// The numbers of queries in stretches of these lengths are looked at.
pub const STRETCHES_NS: [i64; 2] = [10_000_000, 1_000_000_000];

/// The types that are counted apart.
pub const TYPES: [Rtype; 9] =
    [Rtype::A, Rtype::AAAA, Rtype::HTTPS, Rtype::PTR, Rtype::TXT, Rtype::SRV, Rtype::MX, Rtype::DS, Rtype::ANY];

/// The counts of a client: 26 numbers, so that a client takes 248 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    Queries,
    Repeats,
    NotUdp,
    Edns,
    DnssecOk,
    WithoutRd,
    Missing,
    /// Queries that are no retransmissions, and can be read. The cache is asked these.
    Asked,
    Before,
    Holds,
    Once,
    /// Times between queries that are no retransmissions, and those below 10 ms, 100 ms and a second.
    Gaps,
    Below10Ms,
    Below100Ms,
    Below1S,
    /// Sums of the squares of the numbers of queries in stretches of 10 ms, and of a second.
    Squares10Ms,
    #[allow(dead_code, reason = "it is reached by its number, behind Squares10Ms")]
    Squares1S,
    /// The first of [`TYPES`]; the others follow.
    Type,
}

pub const COUNTS: usize = Count::Type as usize + TYPES.len();

/// A client.
#[derive(Clone, Debug)]
pub struct Client {
    pub counts: [u64; COUNTS],
    last_ns: i64,
    stretches: [Stretch; 2],
}

/// The number of queries in the stretch of time that is the last so far.
#[derive(Clone, Copy, Debug, Default)]
struct Stretch {
    number: i64,
    queries: u64,
}

impl Stretch {
    /// What a query adds to the sum of the squares of the numbers: (n + 1)² - n².
    fn add(&mut self, number: i64) -> u64 {
        if number != self.number {
            *self = Stretch { number, queries: 0 };
        }
        self.queries += 1;
        2 * self.queries - 1
    }
}

impl Client {
    fn new() -> Self {
        Client { counts: [0; COUNTS], last_ns: i64::MIN, stretches: [Stretch::default(); 2] }
    }

    pub fn get(&self, count: Count) -> u64 {
        self.counts[count as usize]
    }

    /// How often it came back.
    pub fn visits(&self) -> u64 {
        self.get(Count::Gaps) + u64::from(self.last_ns != i64::MIN) - self.get(Count::Below1S)
    }
}

/// How many names, or clients, were met so many times.
pub type Spectrum = BTreeMap<u64, u64>;

/// What was counted.
pub struct Measured {
    pub duration_ns: i64,
    pub clients: Vec<Client>,
    /// [`Count::Squares10Ms`] and the next count, of all clients together.
    pub squares: [u64; 2],
    /// The queries by type.
    pub types: BTreeMap<u16, u64>,
    /// Payload sizes in EDNS.
    pub payload_bytes: BTreeMap<u16, u64>,
    /// How much the logarithm of the share of misses falls with the logarithm of the number of clients.
    pub sharing: f64,
    /// Names by the number of their queries, without the names of addresses: names that exist, as far as is known, and
    /// the others.
    pub names: Spectrum,
    pub names_missing: Spectrum,
}

impl Measured {
    pub fn sum(&self, count: Count) -> u64 {
        self.clients.iter().map(|client| client.get(count)).sum()
    }
}

/// Counts one query after the other.
pub struct Measure<'t> {
    measured: Measured,
    stretches: [Stretch; 2],
    simulation: Simulation<'t>,
}

impl<'t> Measure<'t> {
    /// Measures a stream of this length, with the TTLs of a table. Without a table all TTLs are the same: if they were
    /// drawn, the few most popular names would decide, and these are other names in each population.
    pub fn new(duration_ns: i64, table: Option<&'t NameTable>) -> Self {
        let ttls = table.map_or(Ttls::Same(TTL_S), Ttls::Table);
        Measure {
            measured: Measured {
                duration_ns,
                clients: Vec::new(),
                squares: [0; 2],
                types: BTreeMap::new(),
                payload_bytes: BTreeMap::new(),
                sharing: 0.0,
                names: Spectrum::new(),
                names_missing: Spectrum::new(),
            },
            stretches: [Stretch::default(); 2],
            simulation: Simulation::timed(duration_ns, None, ttls),
        }
    }

    /// Clients are numbered from 0 in the order of their first queries.
    pub fn add(&mut self, number: u32, record: &Record) {
        let measured = &mut self.measured;
        if number as usize >= measured.clients.len() {
            measured.clients.resize(number as usize + 1, Client::new());
        }
        let client = &mut measured.clients[number as usize];
        let mut add = |count: Count, more: u64| client.counts[count as usize] += more;
        let is_repeat = record.flags & RETRANSMISSION != 0;
        add(Count::Queries, 1);
        add(Count::Repeats, u64::from(is_repeat));
        add(Count::NotUdp, u64::from(record.transport != Transport::Udp));
        add(Count::WithoutRd, u64::from(record.message[2] & RD == 0));
        for (at, length_ns) in STRETCHES_NS.into_iter().enumerate() {
            let stretch = record.due_ns / length_ns;
            measured.squares[at] += self.stretches[at].add(stretch);
            client.counts[Count::Squares10Ms as usize + at] += client.stretches[at].add(stretch);
        }
        if !is_repeat {
            client.add_gap(record.due_ns);
        }
        if let Some(asked) = Asked::read(record.message) {
            self.add_question(number, record.due_ns, is_repeat, &asked);
        }
    }

    fn add_question(&mut self, number: u32, due_ns: i64, is_repeat: bool, asked: &Asked) {
        let measured = &mut self.measured;
        let counts = &mut measured.clients[number as usize].counts;
        *measured.types.entry(asked.rtype).or_default() += 1;
        if let Some(at) = TYPES.iter().position(|rtype| rtype.to_int() == asked.rtype) {
            counts[Count::Type as usize + at] += 1;
        }
        if let Some(edns) = asked.edns {
            counts[Count::Edns as usize] += 1;
            counts[Count::DnssecOk as usize] += u64::from(edns.dnssec_ok);
            *measured.payload_bytes.entry(edns.udp_payload_bytes).or_default() += 1;
        }
        if !is_repeat {
            let found = self.simulation.add(number, due_ns, asked);
            counts[Count::Asked as usize] += 1;
            counts[Count::Missing as usize] += u64::from(is_missing(&asked.name));
            counts[Count::Before as usize] += u64::from(found.before);
            counts[Count::Holds as usize] += u64::from(found.holds);
        }
    }

    pub fn finish(self) -> Measured {
        let mut measured = self.measured;
        if let [.., half, whole] = &self.simulation.hit_ratios()[..] {
            let [half, whole] = [half, whole].map(|ratio| (1.0 - ratio.middle).max(f64::MIN_POSITIVE).log2());
            measured.sharing = (half - whole).max(0.0);
        }
        for name in self.simulation.names() {
            measured.clients[name.client as usize].counts[Count::Once as usize] += u64::from(name.queries == 1);
            if !name.is_reverse {
                let names = if name.is_missing { &mut measured.names_missing } else { &mut measured.names };
                *names.entry(name.queries.into()).or_default() += 1;
            }
        }
        measured
    }
}

impl Client {
    fn add_gap(&mut self, due_ns: i64) {
        if self.last_ns != i64::MIN {
            let gap_ns = due_ns - self.last_ns;
            self.counts[Count::Gaps as usize] += 1;
            let limits = [(Count::Below10Ms, 10_000_000), (Count::Below100Ms, 100_000_000), (Count::Below1S, VISIT_NS)];
            limits.iter().for_each(|(count, limit_ns)| self.counts[*count as usize] += u64::from(gap_ns < *limit_ns));
        }
        self.last_ns = due_ns;
    }
}

#[cfg(test)]
mod tests {
    use dnsrig_dns::testing::name;

    use super::*;

    #[test]
    fn queries_are_counted_by_client() {
        let mut measure = Measure::new(10_000_000_000, None);
        let mut ask = |client: u32, due_ms: i64, text: &str, flags: u8| {
            let rd = if client == 0 { RD } else { 0 };
            let message = [&[0, 0, rd, 0, 0, 1, 0, 0, 0, 0, 0, 0], &name(text)[..], &[0, 1, 0, 1]].concat();
            let due_ns = due_ms * 1_000_000;
            measure.add(client, &Record { due_ns, client, transport: Transport::Udp, flags, message: &message });
        };
        ask(0, 0, "a.example", 0);
        ask(0, 5, "b.example", 0);
        ask(1, 7, "A.example", 0);
        ask(0, 1005, "b.example", RETRANSMISSION);
        ask(0, 3000, "c-nx.example", 0);
        let measured = measure.finish();
        let of = |count: Count| (measured.clients[0].get(count), measured.clients[1].get(count));
        assert_eq!((of(Count::Queries), of(Count::Repeats), of(Count::Asked)), ((4, 1), (1, 0), (3, 1)));
        assert_eq!((of(Count::Before), of(Count::Holds), of(Count::Once)), ((0, 1), (0, 1), (2, 0)));
        assert_eq!((of(Count::Gaps), of(Count::Below10Ms), of(Count::Below1S)), ((2, 0), (1, 0), (1, 0)));
        assert_eq!((measured.clients[0].visits(), measured.clients[1].visits()), (2, 1));
        assert_eq!((of(Count::Squares10Ms), of(Count::Squares1S)), ((6, 1), (6, 1)));
        assert_eq!((measured.squares, of(Count::WithoutRd)), ([11, 11], (0, 1)));
        assert_eq!((of(Count::Missing), of(Count::Type)), ((1, 0), (4, 1)));
        assert_eq!((measured.names, measured.names_missing), ([(1, 1), (2, 1)].into(), [(1, 1)].into()));
    }
}
