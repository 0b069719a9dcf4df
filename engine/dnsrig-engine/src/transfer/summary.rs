//! The summary of a run, as programs read it.

use std::{collections::BTreeMap, net::IpAddr};

use dnsrig_core::stats::{Times, percentiles};
use dnsrig_dns::xfr::Outcome;
use dnsrig_net::quic::{Congestion, Flow, counts::Counts};
use serde::Serialize;

use super::{
    arguments::{Arguments, TransportKind},
    counters::{ConnectionCounts, Counters, Totals},
    schedule::{Policy, secondaries::Secondary},
};

/// The number of secondaries that are listed one by one.
const SECONDARIES_LISTED_MAX: usize = 1_000;

/// How long transfers took, from asking to the last message.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Took {
    pub mean: f64,
    pub min: u64,
    pub p50: u64,
    pub p90: u64,
    pub p99: u64,
    pub max: u64,
}

/// One secondary.
#[derive(Clone, Debug, Serialize)]
pub struct SecondarySummary {
    pub secondary: u32,
    pub source: Option<IpAddr>,
    pub done: u64,
    pub failed: u64,
    /// When it had its last zone.
    pub last_ns: Option<i64>,
    /// When the first NOTIFY came that began a transfer.
    pub notify_ns: Option<i64>,
}

/// What is known of connections over QUIC.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct QuicSummary {
    /// Congestion control of this side.
    pub congestion: Congestion,
    /// Flow control: the number of bytes that might be on their way to this side.
    pub window_bytes: u32,
    #[serde(flatten)]
    pub counts: Counts,
}

/// The whole summary.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Summary {
    pub transport: TransportKind,
    pub policy: Policy,
    pub window: u32,
    pub connections_at_once: u32,
    pub secondaries: u32,
    pub threads: usize,
    /// The number of zones on the list.
    pub zones: u32,
    pub start_ns: i64,
    /// When the last zone was done, or time was over.
    pub end_ns: i64,
    pub elapsed_ns: i64,
    pub done: u64,
    pub up_to_date: u64,
    pub failed: u64,
    /// Neither done nor failed, because time was over.
    pub unfinished: u64,
    pub outcomes: BTreeMap<&'static str, u64>,
    pub attempt_outcomes: BTreeMap<&'static str, u64>,
    #[serde(flatten)]
    pub totals: Totals,
    pub zones_per_s: f64,
    pub records_per_s: f64,
    pub bytes_per_s: f64,
    pub transfer_ns: Took,
    pub connections: ConnectionCounts,
    /// What TLS failed with last, e.g. `tls-pin`.
    pub tls_fault: Option<&'static str>,
    pub congestion: Option<String>,
    /// Over QUIC alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quic: Option<QuicSummary>,
    pub cpu_ns: i64,
    pub busy_share: f64,
    pub rows_lost: u64,
    /// TCP connections that were to bring NOTIFY and were refused: too many, or no descriptor was left.
    pub notify_refused: u64,
    pub interrupted: bool,
    pub per_secondary: Vec<SecondarySummary>,
    /// The failure of TLS as a sentence for people.
    #[serde(skip)]
    pub tls_sentence: Option<&'static str>,
}

impl Summary {
    /// A summary with the parts that are in the arguments.
    pub fn new(arguments: &Arguments, zones: u32, start_ns: i64) -> Self {
        let connections = &arguments.connections;
        let Flow { congestion, window_bytes } = arguments.quic.flow();
        let quic = QuicSummary { congestion, window_bytes: window_bytes.unwrap_or(0), counts: Counts::default() };
        Summary {
            quic: (connections.transport == TransportKind::Xoq).then_some(quic),
            transport: connections.transport,
            policy: connections.policy,
            window: connections.window,
            connections_at_once: connections.count,
            secondaries: connections.secondaries,
            zones,
            start_ns,
            ..Summary::default()
        }
    }

    /// Fills in everything that was counted; `end_ns` is when the work ended.
    pub fn fill(&mut self, counters: &Counters, end_ns: i64) {
        self.end_ns = end_ns;
        self.elapsed_ns = end_ns - self.start_ns;
        (self.done, self.up_to_date, self.failed) = (counters.done(), counters.up_to_date(), counters.failed());
        (self.outcomes, self.attempt_outcomes) = (by_word(&counters.outcomes), by_word(&counters.attempt_outcomes));
        self.totals = counters.totals;
        (self.connections, self.transfer_ns) = (counters.connections, (&counters.times).into());
        let elapsed_s = self.elapsed_ns.max(1) as f64 / 1e9;
        self.zones_per_s = (self.done + self.up_to_date) as f64 / elapsed_s;
        self.records_per_s = self.totals.records as f64 / elapsed_s;
        self.bytes_per_s = self.totals.bytes as f64 / elapsed_s;
    }

    /// Adds the secondaries of a thread; the first one has the number `first`.
    pub fn add_secondaries(&mut self, secondaries: &[Secondary], first: u32, sources: &[Option<IpAddr>]) {
        let room = SECONDARIES_LISTED_MAX.saturating_sub(self.per_secondary.len());
        let time = |ns: i64| (ns > 0).then_some(ns);
        self.per_secondary.extend((first..).zip(secondaries).take(room).map(|(secondary, one)| SecondarySummary {
            secondary,
            source: sources.get(secondary as usize).copied().flatten(),
            done: one.done,
            failed: one.failed,
            last_ns: time(one.last_ns),
            notify_ns: time(one.notify_ns),
        }));
    }

    /// Whether every zone is as the primary has it.
    pub fn is_good(&self) -> bool {
        self.failed == 0 && self.unfinished == 0
    }
}

impl From<&Times> for Took {
    fn from(times: &Times) -> Self {
        let [p50, p90, p99] = percentiles(times, [5_000, 9_000, 9_900]);
        Took { mean: times.mean(), min: times.min(), p50, p90, p99, max: times.max() }
    }
}

fn by_word(counts: &[u64]) -> BTreeMap<&'static str, u64> {
    Outcome::ALL
        .iter()
        .map(|outcome| outcome.word())
        .zip(counts.iter().copied())
        .filter(|(_, count)| *count > 0)
        .collect()
}

#[cfg(test)]
mod tests {
    use dnsrig_dns::xfr::Answered;

    use super::*;

    #[test]
    fn rates_are_of_the_time_from_the_beginning_to_the_end() {
        let mut counters = Counters::default();
        counters.outcomes[Outcome::Done as usize] = 6;
        counters.outcomes[Outcome::UpToDate as usize] = 2;
        counters.outcomes[Outcome::Refused as usize] = 3;
        counters.attempt_outcomes[Outcome::Refused as usize] = 9;
        (counters.totals.records, counters.totals.bytes) = (400, 6_000);
        (1..=100).for_each(|took_ns| counters.came(Answered::Axfr, 0, took_ns, 0));
        let mut summary = Summary { start_ns: 1_000_000_000, ..Summary::default() };
        summary.fill(&counters, 5_000_000_000);
        let Summary { end_ns, elapsed_ns, done, up_to_date, failed, .. } = summary;
        assert_eq!((end_ns, elapsed_ns, done, up_to_date, failed), (5_000_000_000, 4_000_000_000, 6, 2, 3));
        assert_eq!([summary.zones_per_s, summary.records_per_s, summary.bytes_per_s], [2.0, 100.0, 1_500.0]);
        let Took { mean, min, p50, p90, p99, max } = summary.transfer_ns;
        assert!((mean - 50.5).abs() < 1e-6, "{mean}");
        assert_eq!([min, p50, p90, p99, max], [1, 50, 90, 99, 100]);
        assert_eq!(summary.outcomes, [("done", 6), ("up-to-date", 2), ("refused", 3)].into());
        assert_eq!(summary.attempt_outcomes, [("refused", 9)].into());
        let is_good = |failed, unfinished| Summary { failed, unfinished, ..Summary::default() }.is_good();
        assert_eq!([is_good(0, 0), is_good(1, 0), is_good(0, 1)], [true, false, false]);
    }

    #[test]
    fn secondaries_are_listed_up_to_a_thousand() {
        let sources: Vec<_> = (0..3).map(|last: u8| Some(IpAddr::from([127, 0, 0, last]))).collect();
        let secondaries = |count: u64| -> Vec<Secondary> {
            let one = |number: u64| {
                let mut secondary = Secondary::new(0);
                (secondary.done, secondary.failed, secondary.last_ns) = (number, 1, number as i64);
                secondary
            };
            (0..count).map(one).collect()
        };
        let mut summary = Summary::default();
        summary.add_secondaries(&secondaries(2), 2, &sources);
        let [first, second] = &summary.per_secondary[..] else { panic!("two secondaries") };
        assert_eq!(
            (first.secondary, first.source, first.done, first.last_ns, first.notify_ns),
            (2, sources[2], 0, None, None)
        );
        assert_eq!((second.secondary, second.source, second.failed, second.last_ns), (3, None, 1, Some(1)));
        summary.add_secondaries(&secondaries(997), 4, &sources);
        assert_eq!(summary.per_secondary.len(), 999);
        summary.add_secondaries(&secondaries(2), 1_001, &sources);
        assert_eq!(summary.per_secondary.last().map(|last| (last.secondary, last.done)), Some((1_001, 0)));
        assert_eq!(summary.per_secondary.len(), SECONDARIES_LISTED_MAX);
    }
}
