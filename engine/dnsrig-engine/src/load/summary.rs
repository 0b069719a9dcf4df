//! The result of a measurement, as the program that reads the events gets it.

use dnsrig_core::{stats::Distribution, units::nanoseconds};
use dnsrig_net::{quic::Congestion, tls::Fault};

use super::{
    answer::RCODE_NAMES,
    arguments::{Arguments, TransportKind},
    arrivals::{Model, Period},
    classes::{Class, TransportChoice},
    client_totals::{ClassTotal, ClientTotals, UnequalClients},
    collect::Outcome,
    counts::{Connections, Counts, Losses, UnmatchedResponses, WrongAnswers},
    expect::judge::WrongExample,
    hold::{Held, Lifetimes},
    interval_stats::Series,
    priority::Priority,
    ramp::Step,
    segment::Segment,
};
use crate::query_stream::Header;
use serde::Serialize;
use std::{collections::BTreeMap, iter};

/// The share of the loop that a loss must keep waiting to be reported.
const WAITING_SHARE_MIN: f64 = 0.1;

/// A closed loop that waits for queries without an answer.
///
/// The number of outstanding queries is the rate times the mean time for which each is outstanding (J. Little, A Proof
/// for the Queuing Formula L = λW, 1961). A query without an answer is outstanding for the whole timeout, so a small
/// loss makes the mean time long and the rate low.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LoopBound {
    /// The share of queries without an answer in the time of all outstanding queries.
    pub waiting_share: f64,
    /// The rate without that loss, if answers had come as fast as they did.
    pub qps_without_loss: f64,
}

impl LoopBound {
    /// The bound of a closed loop, if queries without an answer bounded it.
    pub fn of(summary: &Summary) -> Option<Self> {
        let lost = summary.lost.total() + summary.wrong.total();
        let [ended, lost, timeouts] =
            [summary.answered + summary.timeouts + lost, lost, summary.timeouts].map(|count| count as f64);
        let timeout_s = summary.timeout_ns as f64 / 1e9;
        if summary.model != "closed" || summary.answered == 0 || summary.duration_s <= 0.0 {
            return None;
        }
        // A query that was lost with its connection, or had a wrong answer, is recorded at the limit, but kept no place
        // until then.
        let all_s = summary.sent_latency_ns.mean * ended / 1e9 - lost * timeout_s;
        let waiting_s = timeouts * timeout_s;
        let waiting_share = waiting_s / all_s;
        let answered_s = (all_s - waiting_s) / summary.answered as f64;
        // If there are several generators, this one has a part of the outstanding queries.
        let outstanding = all_s / summary.duration_s;
        (waiting_share > WAITING_SHARE_MIN && answered_s > 0.0)
            .then(|| LoopBound { waiting_share: waiting_share.min(1.0), qps_without_loss: outstanding / answered_s })
    }
}

/// The captured queries that were sent, and how.
#[derive(Debug, Serialize)]
pub struct Replayed {
    pub stream: Header,
    pub speed: f64,
    pub transport: TransportChoice,
    pub ports: usize,
    /// Queries that clients had sent again, and that were left out because the user asked for that.
    pub retransmissions_skipped: u64,
    /// Queries that are too long for a datagram.
    pub too_long_skipped: u64,
}

/// The settings of a class of clients, and what became of its queries and connections.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ClassResult {
    #[serde(flatten)]
    pub asked: Option<Class>,
    #[serde(flatten)]
    pub seen: ClassTotal,
    pub connections: Connections,
}

impl ClassResult {
    /// The result of a class, without its settings.
    pub fn new(seen: ClassTotal, connections: Connections) -> Self {
        ClassResult { asked: None, seen, connections }
    }
}

/// The final event.
#[derive(Debug, Default, Serialize)]
pub struct Summary {
    pub transport: TransportKind,
    pub model: &'static str,
    pub asked_qps: Option<f64>,
    pub poisson: bool,
    pub outstanding: Option<usize>,
    /// Whether queries ask for recursion (RD). `None` for captured queries, each of which has its own flag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recursion_desired: Option<bool>,
    /// The number of this generator, if several share a schedule: rate, outstanding queries and stream are shared, and
    /// counts and clients belong to this generator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segment: Option<Segment>,
    pub interrupted: bool,
    pub start_ns: i64,
    pub end_ns: i64,
    pub duration_s: f64,
    pub interval_s: f64,
    pub timeout_ns: i64,
    pub clients: usize,
    pub threads: usize,
    /// Whether every thread had real-time priority.
    pub real_time: bool,
    /// Why not, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub real_time_missing: Option<&'static str>,
    pub due: u64,
    pub sent: u64,
    pub unsent: u64,
    /// Queries that had to wait until a message id was free, or were never sent for lack of one.
    pub waited_for_id: u64,
    /// Queries that had to wait until the server permitted another stream of HTTP/2, or were never sent.
    pub waited_for_stream: u64,
    /// The largest possible number of answers that belong to an earlier query with the same id that had no answer.
    pub wrong_matches_max: u64,
    /// From the start to the last sending, in nanoseconds.
    pub sending_ns: i64,
    /// Queries with an answer that is not wrong.
    pub answered: u64,
    /// Answers that differ from what --expect expects, by how they differ.
    pub wrong: WrongAnswers,
    /// Answers of which the file of --expect expects nothing.
    pub unlisted: u64,
    /// Some of the wrong answers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub wrong_examples: Vec<WrongExample>,
    pub timeouts: u64,
    pub lost: Losses,
    /// Queries that HTTP left without an answer, by kind.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub http_faults: BTreeMap<String, u64>,
    /// Why TLS failed on one of the connections, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_sentence: Option<&'static str>,
    #[serde(flatten)]
    pub unmatched: UnmatchedResponses,
    pub truncated: u64,
    /// Answers with AD set.
    pub authenticated: u64,
    pub unreachable: u64,
    /// Datagrams that this program had no room for: the receive buffers of its sockets were full.
    pub datagrams_dropped: u64,
    pub rcodes: BTreeMap<&'static str, u64>,
    pub bytes_sent: u64,
    pub bytes_received: u64,
    pub connections: Connections,
    /// After which time the server ended connections, since the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lifetimes: Option<Lifetimes>,
    /// How connections were held, if they were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<Held>,
    /// The congestion control of the client's side, over QUIC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion: Option<Congestion>,
    /// By class of clients; the first class has the clients that no --class has. Empty if there are no classes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<ClassResult>,
    pub latency_ns: Distribution,
    pub sent_latency_ns: Distribution,
    pub lower_latency_ns: Distribution,
    pub lag_ns: Distribution,
    pub handshake_ns: Option<Distribution>,
    pub busy_share: f64,
    /// The longest time that a thread was ready to run while another program had its CPU.
    pub cpu_wait_ns: i64,
    /// Complete intervals that had no room where intervals are written and reported: their queries are counted in the
    /// summary only.
    pub intervals_lost: u64,
    /// Queries that had no room among the rows, if rows are wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows_dropped: Option<u64>,
    pub cpu_ns: i64,
    /// The bound of a closed loop, if queries without an answer bound it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loop_bound: Option<LoopBound>,
    pub steps: Vec<Step>,
    /// Groups of clients that the server does not serve alike, if there are such groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unequal_clients: Option<UnequalClients>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replayed: Option<Replayed>,
    pub capacity_qps: Option<f64>,
    /// The server may hold more: the instrument or the highest rate allowed ended the search.
    pub capacity_is_lower_bound: bool,
    /// The share of the queries that had no answer at any rate up to the capacity, if that is more than --ramp-loss
    /// permits: then a rate holds if it loses no more than both together.
    pub base_loss_share: Option<f64>,
}

impl Summary {
    /// A summary of what was asked for in a period.
    pub fn asked(arguments: &Arguments, period: Period) -> Self {
        let mut summary = Summary {
            transport: arguments.transport,
            congestion: arguments.congestion(),
            segment: arguments.instrument.segment.if_shared(),
            recursion_desired: Some(arguments.queries.recursion_desired),
            interval_s: arguments.instrument.interval.as_secs_f64(),
            timeout_ns: nanoseconds(arguments.timeout),
            ..Summary::default()
        };
        summary.set_period(period);
        summary
    }

    /// Sets when the period began and ended.
    pub fn set_period(&mut self, Period { start_ns, end_ns, .. }: Period) {
        (self.start_ns, self.end_ns, self.duration_s) = (start_ns, end_ns, (end_ns - start_ns) as f64 / 1e9);
    }

    /// Sets whether every thread had real-time priority, and if not, why.
    pub fn set_priority(&mut self, priority: Priority) {
        self.real_time = priority == Priority::RealTime;
        self.real_time_missing = priority.why_ordinary();
    }

    /// Sets the result of a period.
    pub fn set_outcome(&mut self, outcome: &Outcome, period: Period) {
        self.set_period(period);
        (self.model, self.asked_qps, self.poisson, self.outstanding) = match period.model {
            Model::Rate { qps, poisson } => ("rate", Some(qps), poisson, None),
            Model::Outstanding(count) => ("closed", None, false, Some(count)),
            Model::Captured { .. } => ("stream", None, false, None),
        };
        self.fill(&outcome.counts, &outcome.series);
        self.wrong_examples.clone_from(&outcome.wrong);
        self.set_connections(outcome.connections());
        self.datagrams_dropped = outcome.datagrams_dropped;
        self.lifetimes = outcome.lifetimes_us.as_ref().and_then(Lifetimes::of);
        self.classes = by_class(outcome);
        self.sending_ns = outcome.sending_ns;
        self.busy_share = outcome.busy_share(period);
        self.set_priority(outcome.priority);
        self.intervals_lost = outcome.intervals_lost;
        self.loop_bound = LoopBound::of(self);
        self.unequal_clients = outcome.unequal_clients;
        self.cpu_wait_ns = outcome.cpu_wait_ns;
    }

    /// Sets what became of connections, after [`Summary::fill`].
    pub fn set_connections(&mut self, connections: Connections) {
        self.connections = connections;
        self.waited_for_stream += connections.quic.waited_for_stream;
    }

    /// Sets the parts that are counts and times.
    pub fn fill(&mut self, counts: &Counts, series: &Series) {
        self.due = counts.due;
        self.sent = counts.sent;
        self.unsent = counts.due - counts.sent;
        self.waited_for_id = counts.waited_for_id;
        self.waited_for_stream = counts.waited_for_stream;
        self.wrong_matches_max = counts.wrong_matches_max;
        self.answered = counts.answered;
        (self.wrong, self.unlisted) = (counts.wrong, counts.unlisted);
        self.timeouts = counts.timeouts;
        self.lost = counts.lost;
        self.http_faults = counts.http.named();
        self.tls_sentence = counts.tls_fault.map(Fault::sentence);
        self.unmatched = counts.unmatched;
        self.truncated = counts.truncated;
        self.authenticated = counts.authenticated;
        self.unreachable = counts.unreachable;
        self.rcodes = RCODE_NAMES.into_iter().zip(counts.rcodes).filter(|(_, count)| *count > 0).collect();
        self.bytes_sent = counts.bytes_sent;
        self.bytes_received = counts.bytes_received;
        self.latency_ns = (&series.due).into();
        self.sent_latency_ns = (&series.sent).into();
        self.lower_latency_ns = (&series.lower).into();
        self.lag_ns = (&series.lag).into();
        self.handshake_ns = (!series.handshake.is_empty()).then(|| (&series.handshake).into());
    }
}

/// What became of the queries and connections of each class. Empty if clients have no classes.
fn by_class(outcome: &Outcome) -> Vec<ClassResult> {
    let of_clients = outcome.clients.as_ref().map(ClientTotals::by_class).unwrap_or_default();
    let connections = outcome.connections.iter().copied().chain(iter::repeat(Connections::default()));
    of_clients.into_iter().zip(connections).map(|(seen, counts)| ClassResult::new(seen, counts)).collect()
}

#[cfg(test)]
mod tests {
    use dnsrig_core::stats::Distribution;

    use super::*;

    /// A summary of 10 outstanding queries for 10 s, with answers after 0.1 ms and timeouts after a second.
    fn closed(answered: u64, timeouts: u64) -> Summary {
        let mean = (answered as f64 * 1e5 + timeouts as f64 * 1e9) / (answered + timeouts) as f64;
        Summary {
            model: "closed",
            answered,
            timeouts,
            timeout_ns: 1_000_000_000,
            duration_s: 10.0,
            sent_latency_ns: Distribution { mean, ..Distribution::default() },
            ..Summary::default()
        }
    }

    #[test]
    fn a_small_loss_bounds_a_closed_loop_and_the_rate_without_it_is_known() {
        // 3 of 1,000 for a second, 997 for 0.1 ms: 10 outstanding make 3,226 a second instead of 100,000.
        let bound = LoopBound::of(&closed(32_160, 97)).unwrap();
        assert!((bound.waiting_share - 0.968).abs() < 0.001, "{bound:?}");
        assert!((bound.qps_without_loss - 100_000.0).abs() < 2_000.0, "{bound:?}");
        assert_eq!(LoopBound::of(&closed(1_000_000, 1)), None);
        assert_eq!(LoopBound::of(&closed(0, 100)), None);
        assert_eq!(LoopBound::of(&Summary { model: "rate", ..closed(32_160, 97) }), None);
    }

    /// Of 19 s of all outstanding queries, ten took the timeout of a second, and 90 a tenth of it. Queries that were
    /// lost or had a wrong answer are recorded at the limit, and kept no place.
    #[test]
    fn the_bound_is_as_it_is_computed_by_hand() {
        let bound = |lost: u64, wrong: u64| {
            let mean = (19.0 + (lost + wrong) as f64) / (100 + lost + wrong) as f64 * 1e9;
            LoopBound::of(&Summary {
                lost: Losses { reset: lost, ..Losses::default() },
                wrong: WrongAnswers { rrset: wrong, ..WrongAnswers::default() },
                sent_latency_ns: Distribution { mean, ..Distribution::default() },
                ..closed(90, 10)
            })
        };
        for (lost, wrong) in [(0, 0), (5, 0), (0, 7), (3, 4)] {
            let LoopBound { waiting_share, qps_without_loss } = bound(lost, wrong).unwrap();
            assert!((waiting_share - 10.0 / 19.0).abs() < 1e-9, "{lost} {wrong}: {waiting_share}");
            assert!((qps_without_loss - 19.0).abs() < 1e-6, "{lost} {wrong}: {qps_without_loss}");
        }
        // A tenth of the time is not reported, and more is.
        let waiting =
            |mean| Summary { sent_latency_ns: Distribution { mean, ..Distribution::default() }, ..closed(9, 1) };
        assert_eq!([1.01e9, 0.99e9].map(|mean| LoopBound::of(&waiting(mean)).is_some()), [false, true]);
        assert_eq!(LoopBound::of(&Summary { duration_s: 0.0, ..waiting(0.5e9) }), None);
    }

    #[test]
    fn a_summary_has_the_counts_and_the_names_of_rcodes() {
        let mut counts = Counts { due: 10, sent: 7, answered: 4, timeouts: 3, bytes_sent: 70, ..Counts::default() };
        (counts.rcodes[0], counts.rcodes[3], counts.unreachable, counts.truncated) = (3, 1, 2, 5);
        let mut series = Series::default();
        series.due.record(1_000).unwrap();
        let mut summary = Summary::default();
        summary.fill(&counts, &series);
        assert_eq!((summary.due, summary.sent, summary.unsent, summary.answered), (10, 7, 3, 4));
        assert_eq!((summary.timeouts, summary.unreachable, summary.truncated, summary.bytes_sent), (3, 2, 5, 70));
        assert_eq!(summary.rcodes, [("NOERROR", 3), ("NXDOMAIN", 1)].into());
        assert_eq!((summary.latency_ns.count, summary.sent_latency_ns.count), (1, 0));
        assert!(summary.handshake_ns.is_none());
        let model = Model::Outstanding(5);
        summary.set_period(Period { model, start_ns: 1_000_000_000, end_ns: 3_500_000_000, seed: 1 });
        assert_eq!((summary.start_ns, summary.end_ns, summary.duration_s), (1_000_000_000, 3_500_000_000, 2.5));
    }
}
