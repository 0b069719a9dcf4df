//! What two streams are compared by, each with its deviation by bootstrap over clients (Efron, Annals of Statistics 7,
//! 1979): clients are drawn anew with replacement, and it is seen how much a figure varies.

use dnsrig_core::random::Random;

use super::measure::{COUNTS, Client, Count, Measured, STRETCHES_NS, TYPES};

/// How often clients are drawn anew; the deviation of a deviation is then 5 % of it.
const RESAMPLES: usize = 200;

/// Fewer events than so many may be none by chance, in one case of a hundred.
const CHANCE_EVENTS: f64 = 5.0;

/// How a quantity is computed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Of {
    Ratio(Count, Count),
    Type(usize),
    /// Clients with fewer queries, and with more.
    Below(u64),
    Above(u64),
    /// The share of the queries that the heaviest clients have.
    Heaviest(f64),
    QueriesAClient,
    QueriesAVisit,
    /// The variance by the mean of the number of queries in a stretch of time.
    Dispersion(usize),
}

impl Of {
    fn is_share(self) -> bool {
        !matches!(self, Of::QueriesAClient | Of::QueriesAVisit | Of::Dispersion(_))
    }
}

const QUANTITIES: [(&str, Of); 20] = [
    ("queries a client", Of::QueriesAClient),
    ("clients with fewer than 10 queries", Of::Below(10)),
    ("clients with more than 100", Of::Above(100)),
    ("queries of the heaviest 1 % of the clients", Of::Heaviest(0.01)),
    ("queries of the heaviest 10 %", Of::Heaviest(0.1)),
    ("EDNS", Of::Ratio(Count::Edns, Count::Queries)),
    ("DO", Of::Ratio(Count::DnssecOk, Count::Queries)),
    ("without RD", Of::Ratio(Count::WithoutRd, Count::Queries)),
    ("not over UDP", Of::Ratio(Count::NotUdp, Count::Queries)),
    ("sent again", Of::Ratio(Count::Repeats, Count::Queries)),
    ("names that do not exist", Of::Ratio(Count::Missing, Count::Asked)),
    ("names asked for once, of the queries", Of::Ratio(Count::Once, Count::Asked)),
    ("hit ratio, answers hold forever", Of::Ratio(Count::Before, Count::Asked)),
    ("hit ratio, answers hold for their TTLs", Of::Ratio(Count::Holds, Count::Asked)),
    ("a client's next query within 10 ms", Of::Ratio(Count::Below10Ms, Count::Gaps)),
    ("within 100 ms", Of::Ratio(Count::Below100Ms, Count::Gaps)),
    ("within 1 s", Of::Ratio(Count::Below1S, Count::Gaps)),
    ("queries without a pause of 1 s", Of::QueriesAVisit),
    ("variance by mean in 10 ms", Of::Dispersion(0)),
    ("variance by mean in 1 s", Of::Dispersion(1)),
];

/// A figure of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantity {
    pub name: String,
    pub is_share: bool,
    pub value: f64,
    /// How much it would vary with other clients of the same kind.
    pub deviation: f64,
}

/// All quantities of what was measured, in the same order each time.
pub fn quantities(measured: &Measured, mut random: Random) -> Vec<Quantity> {
    let mut clients: Vec<&Client> = measured.clients.iter().collect();
    clients.sort_by_key(|client| std::cmp::Reverse(client.get(Count::Queries)));
    let whole = Sample::of(&clients, measured, |_| 1);
    let resampled: Vec<Sample> = (0..RESAMPLES)
        .map(|_| {
            let mut drawn = vec![0; clients.len()];
            clients.iter().for_each(|_| drawn[random.below(clients.len() as u64) as usize] += 1);
            Sample::of(&clients, measured, |at| drawn[at])
        })
        .collect();
    let queries: Vec<f64> = resampled.iter().map(|sample| sample.value(Of::QueriesAClient)).collect();
    let of_queries = deviation(&queries) / whole.value(Of::QueriesAClient).max(1.0);
    let types = TYPES.iter().enumerate().map(|(at, rtype)| (rtype.to_string(), Of::Type(at)));
    let named = QUANTITIES.iter().map(|(name, of)| ((*name).to_owned(), *of));
    named
        .chain(types)
        .map(|(name, of)| {
            let value = match of {
                Of::Dispersion(at) => dispersion(measured.squares[at], whole.get(Count::Queries), measured, at),
                _ => whole.value(of),
            };
            let values: Vec<f64> = resampled.iter().map(|sample| sample.value(of)).collect();
            let chance = if of.is_share() { CHANCE_EVENTS / whole.cases(of).max(1.0) / DEVIATIONS } else { 0.0 };
            let more = match of {
                // A variance of n numbers is off by its sqrt(2 / n), with the same clients, too.
                Of::Dispersion(at) => value * (2.0 / stretches(measured, at)).sqrt(),
                // What clients ask is found more often where more is asked.
                Of::Ratio(Count::Before | Count::Holds, _) => (1.0 - value) * measured.sharing * of_queries,
                _ => 0.0,
            };
            let deviation = deviation(&values).max(chance).hypot(more);
            Quantity { name, is_share: of.is_share(), value, deviation }
        })
        .collect()
}

/// The number of deviations to either side that leaves out 1 % of a normal distribution, divided by the number of
/// quantities, 29 (Bonferroni): a population that is right has all of them inside in 99 of 100 cases.
const DEVIATIONS: f64 = 3.58;

/// What a population is expected within that was fitted to `fitted`, if it is right: the two halves vary, each by its
/// own deviation, and the population as the other half does. A wrong population does not widen its own interval.
pub fn interval(fitted: &Quantity, other: &Quantity) -> [f64; 2] {
    let deviation = (fitted.deviation.powi(2) + 2.0 * other.deviation.powi(2)).sqrt();
    let half = DEVIATIONS * deviation;
    let ends = [other.value - half, other.value + half];
    if other.is_share { ends.map(|end| end.clamp(0.0, 1.0)) } else { ends.map(|end| end.max(0.0)) }
}

/// Clients, some of them several times, put together.
struct Sample {
    sums: [f64; COUNTS],
    clients: f64,
    visits: f64,
    below_10: f64,
    above_100: f64,
    heaviest: [f64; 2],
    /// The dispersions if the numbers of queries of different clients were independent.
    dispersions: [f64; 2],
}

const HEAVIEST: [f64; 2] = [0.01, 0.1];

impl Sample {
    /// `times` says how often each client is in it; those with the most queries come first.
    fn of(clients: &[&Client], measured: &Measured, times: impl Fn(usize) -> u32) -> Self {
        let mut sample = Sample {
            sums: [0.0; COUNTS],
            clients: 0.0,
            visits: 0.0,
            below_10: 0.0,
            above_100: 0.0,
            heaviest: [0.0; 2],
            dispersions: [0.0; 2],
        };
        let most = HEAVIEST.map(|share| (share * clients.len() as f64).ceil());
        let mut own = [0.0; 2];
        for (at, client) in clients.iter().enumerate() {
            let times = f64::from(times(at));
            let queries = client.get(Count::Queries);
            for (heaviest, most) in sample.heaviest.iter_mut().zip(most) {
                *heaviest += (most - sample.clients).clamp(0.0, times) * queries as f64;
            }
            sample.sums.iter_mut().zip(client.counts).for_each(|(sum, count)| *sum += times * count as f64);
            sample.clients += times;
            sample.visits += times * client.visits() as f64;
            sample.below_10 += if queries < 10 { times } else { 0.0 };
            sample.above_100 += if queries > 100 { times } else { 0.0 };
            for (at, own) in own.iter_mut().enumerate() {
                let squares = client.counts[Count::Squares10Ms as usize + at];
                *own += times * queries as f64 * dispersion(squares, queries as f64, measured, at);
            }
        }
        sample.dispersions = own.map(|own| own / sample.sums[0].max(1.0));
        sample
    }

    fn get(&self, count: Count) -> f64 {
        self.sums[count as usize]
    }

    /// The number that a quantity is a share of.
    fn cases(&self, of: Of) -> f64 {
        match of {
            Of::Ratio(_, all) => self.get(all),
            Of::Below(_) | Of::Above(_) => self.clients,
            _ => self.get(Count::Queries),
        }
    }

    fn value(&self, of: Of) -> f64 {
        let part = match of {
            Of::Ratio(part, _) => self.get(part),
            Of::Type(at) => self.sums[Count::Type as usize + at],
            Of::Below(_) => self.below_10,
            Of::Above(_) => self.above_100,
            Of::Heaviest(share) => self.heaviest[usize::from(share != HEAVIEST[0])],
            Of::QueriesAClient => return self.get(Count::Queries) / self.clients.max(1.0),
            Of::QueriesAVisit => return (self.get(Count::Queries) - self.get(Count::Repeats)) / self.visits.max(1.0),
            Of::Dispersion(at) => return self.dispersions[at],
        };
        part / self.cases(of).max(1.0)
    }
}

/// The variance by the mean of numbers with this sum of squares and this sum.
fn dispersion(squares: u64, sum: f64, measured: &Measured, at: usize) -> f64 {
    squares as f64 / sum.max(1.0) - sum / stretches(measured, at)
}

fn stretches(measured: &Measured, at: usize) -> f64 {
    (measured.duration_ns / STRETCHES_NS[at] + 1) as f64
}

fn deviation(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use dnsrig_dns::{edns::Edns, query::Options, testing::name};

    use super::*;
    use crate::{
        generate::clients::like::measure::Measure,
        query_stream::{RETRANSMISSION, Record, Transport},
    };

    #[test]
    fn the_interval_is_of_the_difference_and_does_not_depend_on_the_population() {
        let of = |value, deviation| Quantity { name: String::new(), is_share: true, value, deviation };
        let [low, high] = interval(&of(0.9, 0.01), &of(0.5, 0.02));
        // sqrt(0.01² + 2 · 0.02²) = 0.03
        assert!((low - (0.5 - 0.1074)).abs() < 1e-9 && (high - (0.5 + 0.1074)).abs() < 1e-9);
        assert_eq!(interval(&of(0.0, 0.0), &of(0.99, 1.0)), [0.0, 1.0]);
    }

    /// Twelve queries of a client in as many milliseconds, the last of which was sent again, and two queries of each of
    /// ten others. They are for two types, of two clients with EDNS and of one over TCP; a client asks for two names,
    /// and another one for a name that is made to be missing.
    fn measured() -> Measured {
        let mut due: Vec<(i64, u32)> = (0..12).map(|due_ms| (due_ms, 0)).collect();
        for client in 1..=10 {
            let again_ms = match client {
                1 => 50,
                2 => 550,
                _ => 3_000,
            };
            due.extend([100 * i64::from(client), 100 * i64::from(client) + again_ms].map(|due_ms| (due_ms, client)));
        }
        due.sort_unstable();
        let mut measure = Measure::new(10_000_000_000, None);
        for (due_ms, client) in due {
            let edns = |dnssec_ok| Some(Edns { udp_payload_bytes: 1232, dnssec_ok });
            let edns = match client {
                3 => edns(true),
                4 => edns(false),
                _ => None,
            };
            let options = Options { recursion_desired: client > 0, edns };
            let text = match client {
                9 if due_ms > 1_000 => "other.example".to_owned(),
                10 => "c10-nx.example".to_owned(),
                _ => format!("c{client}.example"),
            };
            let rtype = if client == 8 { 28 } else { 1 };
            let message = [&options.header()[..], &name(&text), &[0, rtype, 0, 1], &options.opt()].concat();
            let transport = if client == 1 { Transport::Tcp } else { Transport::Udp };
            let flags = if due_ms == 11 { RETRANSMISSION } else { 0 };
            measure.add(client, &Record { due_ns: due_ms * 1_000_000, client, transport, flags, message: &message });
        }
        measure.finish()
    }

    #[test]
    fn each_quantity_is_what_it_is_called() {
        let found = quantities(&measured(), Random::new(1, 0));
        for (name, is_share, expected) in [
            ("queries a client", false, 32.0 / 11.0),
            ("clients with fewer than 10 queries", true, 10.0 / 11.0),
            ("clients with more than 100", true, 0.0),
            // One client and two.
            ("queries of the heaviest 1 % of the clients", true, 12.0 / 32.0),
            ("queries of the heaviest 10 %", true, 14.0 / 32.0),
            ("EDNS", true, 4.0 / 32.0),
            ("DO", true, 2.0 / 32.0),
            ("without RD", true, 12.0 / 32.0),
            ("not over UDP", true, 2.0 / 32.0),
            ("sent again", true, 1.0 / 32.0),
            // The one that was sent again is left out, and the first query of each client has no time before it.
            ("names that do not exist", true, 2.0 / 31.0),
            ("names asked for once, of the queries", true, 2.0 / 31.0),
            ("a client's next query within 10 ms", true, 10.0 / 20.0),
            ("within 100 ms", true, 11.0 / 20.0),
            ("within 1 s", true, 12.0 / 20.0),
            ("queries without a pause of 1 s", false, 31.0 / 19.0),
            // The squares of 10, 2 and twenty times 1 in 1,001 stretches; of 23, 1, 7 and 1 in 11.
            ("variance by mean in 10 ms", false, 124.0 / 32.0 - 32.0 / 1_001.0),
            ("variance by mean in 1 s", false, 580.0 / 32.0 - 32.0 / 11.0),
            ("A", true, 30.0 / 32.0),
            ("AAAA", true, 2.0 / 32.0),
            ("HTTPS", true, 0.0),
        ] {
            let found = found.iter().find(|quantity| quantity.name == name).unwrap();
            assert_eq!(found.is_share, is_share, "{name}");
            assert!((found.value - expected).abs() < 1e-12, "{name}: {} for {expected}", found.value);
        }
        assert_eq!(found.len(), QUANTITIES.len() + TYPES.len());
    }

    #[test]
    fn a_sample_has_each_client_as_often_as_it_was_drawn() {
        let measured = measured();
        let mut clients: Vec<&Client> = measured.clients.iter().collect();
        clients.sort_by_key(|client| std::cmp::Reverse(client.get(Count::Queries)));
        let sample = Sample::of(&clients, &measured, |_| 1);
        // The squares of each client by itself: 104 and 144 of the first; 2 and 2 of the others, but 4 of two of them
        // in a second.
        let of_10_ms = (124.0 - (144.0 + 40.0) / 1_001.0) / 32.0;
        let of_1_s = (168.0 - (144.0 + 40.0) / 11.0) / 32.0;
        let near = |found: f64, expected: f64| (found - expected).abs() < 1e-12;
        assert!(near(sample.value(Of::Dispersion(0)), of_10_ms) && near(sample.value(Of::Dispersion(1)), of_1_s));
        // The first is missing, the second was drawn three times, and the third once.
        let sample = Sample::of(&clients, &measured, |at| [0, 3, 1].get(at).copied().unwrap_or(0));
        assert_eq!((sample.clients, sample.get(Count::Queries)), (4.0, 8.0));
        assert_eq!(sample.heaviest, [2.0, 4.0], "one client, and two: the same one twice");
        assert_eq!((sample.below_10, sample.above_100), (4.0, 0.0));
        assert_eq!([Of::QueriesAClient, Of::Below(10), Of::Heaviest(0.1)].map(|of| sample.value(of)), [2.0, 1.0, 0.5]);
    }

    #[test]
    fn a_deviation_is_that_of_a_sample() {
        assert_eq!((deviation(&[1.0, 3.0]), deviation(&[5.0; 4])), (2.0_f64.sqrt(), 0.0));
        assert!((deviation(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]) - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
    }
}
