//! What the instrument's own lateness may have added to a latency: the lower end of the interval in which the truth
//! lies. No clock, no socket.
//!
//! Queries that are due one after another and sent late are sent at once, and queue behind each other at the server.
//! Had they been sent in time, or all late by as much as the latest of them, each would have come later, and would have
//! waited less: by its *excess* at most, which is how much later than itself one before it was. Two bounds make that
//! less:
//!
//! - A query that found nothing of ours at the server waited for none of ours.
//! - No query is answered faster than the fastest was.
//!
//! docs/explanation/latency.md has the argument, and what it takes for granted of a server.

use std::collections::VecDeque;

/// So many peaks are kept; of more every second one counts for two.
const PEAKS_MAX: usize = 256;

/// Lateness of less than this part of the timeout makes no difference to a query without an answer: it is what
/// histograms with three digits do not tell apart.
const PART_OF_LIMIT: i64 = 1_000;

/// What is to be known of a query when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// In the order of sending, from 1.
    order: u64,
    /// By how much more one before it may have been late.
    excess_ns: i64,
}

impl Mark {
    /// Of a query that was not sent yet.
    pub const UNSENT: Mark = Mark { order: 0, excess_ns: 0 };
}

/// A query that is later than all that were sent after it.
#[derive(Clone, Copy)]
struct Peak {
    order: u64,
    late_ns: i64,
}

/// Of a client the query sent last of those that were answered, and how much sooner its answer could have come at most.
#[derive(Clone, Copy, Default)]
struct Reference {
    order: u64,
    sooner_ns: i64,
}

/// How late queries of one thread were, as far as it still matters.
pub struct Lateness {
    /// In the order of sending; their lateness falls.
    peaks: VecDeque<Peak>,
    references: Box<[Reference]>,
    last: u64,
    /// What was sent up to here has ended.
    ended: u64,
    fastest_ns: i64,
}

impl Lateness {
    /// Of a thread with so many clients, before its first query; 0: their queries take any path to the server's queues.
    pub fn new(clients: usize) -> Self {
        Lateness {
            peaks: VecDeque::with_capacity(PEAKS_MAX),
            references: vec![Reference::default(); clients].into_boxed_slice(),
            last: 0,
            ended: 0,
            fastest_ns: i64::MAX,
        }
    }

    /// Begins anew; nothing is outstanding.
    pub fn restart(&mut self) {
        self.nothing_outstanding();
        self.fastest_ns = i64::MAX;
    }

    /// The server has none of our queries: what is sent from now on waits for none of those before.
    pub fn nothing_outstanding(&mut self) {
        self.peaks.clear();
        self.ended = self.last;
    }

    /// Takes in that `client` sent a query, `lag_ns` after it was due, and perhaps `held_ns` later than that.
    pub fn sent(&mut self, client: usize, lag_ns: i64, held_ns: i64) -> Mark {
        self.last += 1;
        let late_ns = lag_ns + held_ns;
        while self.peaks.back().is_some_and(|peak| peak.late_ns <= late_ns) {
            self.peaks.pop_back();
        }
        if self.peaks.len() == PEAKS_MAX {
            self.thin_out();
        }
        self.peaks.push_back(Peak { order: self.last, late_ns });
        let Reference { order, sooner_ns } = self.references.get(client).copied().unwrap_or_default();
        // A client's queries go to one queue of the server. There, what was sent before the reference is done.
        let since = self.peaks.partition_point(|peak| peak.order <= order);
        let sooner_ns = if order > self.ended { sooner_ns } else { 0 };
        Mark { order: self.last, excess_ns: self.peaks[since].late_ns.max(sooner_ns) - lag_ns }
    }

    /// What the server would have taken at least, in time, for a query that was answered `latency_ns` after its
    /// sending.
    pub fn answered(&mut self, client: usize, mark: Mark, lag_ns: i64, latency_ns: i64) -> i64 {
        self.fastest_ns = self.fastest_ns.min(latency_ns);
        let waited_ns = mark.excess_ns.min(latency_ns - self.fastest_ns);
        if let Some(reference) = self.references.get_mut(client).filter(|reference| mark.order > reference.order) {
            *reference = Reference { order: mark.order, sooner_ns: lag_ns + waited_ns };
        }
        latency_ns - waited_ns
    }

    /// The same for a query without an answer: the limit, or anything if a burst of ours may have cost it its answer.
    pub fn unanswered(&self, mark: Mark, limit_ns: i64) -> i64 {
        if mark.excess_ns > limit_ns / PART_OF_LIMIT { self.fastest_ns.min(limit_ns) } else { limit_ns }
    }

    /// Drops every second peak; the next one stands for it, so that none is forgotten too early.
    fn thin_out(&mut self) {
        for at in 0..self.peaks.len() / 2 {
            let Peak { late_ns, .. } = self.peaks[2 * at];
            self.peaks[at] = Peak { late_ns, ..self.peaks[2 * at + 1] };
        }
        self.peaks.truncate(self.peaks.len() / 2);
    }
}

#[cfg(test)]
#[path = "lateness_tests.rs"]
mod tests;
