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

/// The number of peaks that are kept. If there are more, every second one is dropped.
const PEAKS_MAX: usize = 256;

/// The part of the timeout below which lateness makes no difference to a query without an answer: a histogram with
/// three digits does not show it.
const PART_OF_LIMIT: i64 = 1_000;

/// What must be known about a query when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// In the order of sending, from 1.
    order: u64,
    /// By how much later than this query one before it may have been.
    excess_ns: i64,
}

impl Mark {
    /// The mark of a query that was not sent yet.
    pub const UNSENT: Mark = Mark { order: 0, excess_ns: 0 };
}

/// A query that is later than all that were sent after it.
#[derive(Clone, Copy)]
struct Peak {
    order: u64,
    late_ns: i64,
}

/// The last query of a client among those that were answered, and how much sooner its answer could have come at most.
#[derive(Clone, Copy, Default)]
struct Reference {
    order: u64,
    sooner_ns: i64,
}

/// The lateness of the queries of one thread, as far as it still matters.
pub struct Lateness {
    /// In the order of sending. Their lateness falls.
    peaks: VecDeque<Peak>,
    references: Box<[Reference]>,
    last: u64,
    /// All queries up to this one have ended.
    ended: u64,
    fastest_ns: i64,
}

impl Lateness {
    /// Lateness of a thread with `clients` clients, before its first query. 0: their queries take any path to the
    /// server's queues.
    pub fn new(clients: usize) -> Self {
        Lateness {
            peaks: VecDeque::with_capacity(PEAKS_MAX),
            references: vec![Reference::default(); clients].into_boxed_slice(),
            last: 0,
            ended: 0,
            fastest_ns: i64::MAX,
        }
    }

    /// Begins another period. No query is outstanding.
    pub fn restart(&mut self) {
        self.nothing_outstanding();
        self.fastest_ns = i64::MAX;
    }

    /// Takes in that the server has none of our queries: later queries wait for none of the earlier ones.
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
        // A client's queries go to one queue of the server. The queries before the reference are done there.
        let since = self.peaks.partition_point(|peak| peak.order <= order);
        let sooner_ns = if order > self.ended { sooner_ns } else { 0 };
        Mark { order: self.last, excess_ns: self.peaks[since].late_ns.max(sooner_ns) - lag_ns }
    }

    /// The time that the server would have taken at least, if the instrument had been in time, for a query that was
    /// answered `latency_ns` after its sending.
    pub fn answered(&mut self, client: usize, mark: Mark, lag_ns: i64, latency_ns: i64) -> i64 {
        self.fastest_ns = self.fastest_ns.min(latency_ns);
        let waited_ns = mark.excess_ns.min(latency_ns - self.fastest_ns);
        if let Some(reference) = self.references.get_mut(client).filter(|reference| mark.order > reference.order) {
            *reference = Reference { order: mark.order, sooner_ns: lag_ns + waited_ns };
        }
        latency_ns - waited_ns
    }

    /// The least time for a query without an answer: the limit, or the fastest answer if a burst of ours may have cost
    /// it its answer.
    pub fn unanswered(&self, mark: Mark, limit_ns: i64) -> i64 {
        if mark.excess_ns > limit_ns / PART_OF_LIMIT { self.fastest_ns.min(limit_ns) } else { limit_ns }
    }

    /// Drops every second peak. The next one takes its lateness, so that none is forgotten too early.
    fn thin_out(&mut self) {
        for at in 0..self.peaks.len() / 2 {
            let Peak { late_ns, .. } = self.peaks[2 * at];
            self.peaks[at] = Peak { late_ns, ..self.peaks[2 * at + 1] };
        }
        self.peaks.truncate(self.peaks.len() / 2);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: i64 = 1_000_000;
    const US: i64 = 1_000;

    /// A server in virtual time: queues that each serve one query after another, by client, behind a path.
    struct Server {
        path_ns: i64,
        free_ns: Vec<i64>,
        /// From when to when it stands still.
        stall_ns: (i64, i64),
    }

    impl Server {
        fn new(queues: usize, path_ns: i64, stall_ns: (i64, i64)) -> Self {
            Server { path_ns, free_ns: vec![i64::MIN; queues], stall_ns }
        }

        /// When a query of `client`, sent at `sent_ns` and worth `cost_ns` of its time, is answered.
        fn answer(&mut self, client: usize, sent_ns: i64, cost_ns: i64) -> i64 {
            let queues = self.free_ns.len();
            let free_ns = &mut self.free_ns[client % queues];
            let (from_ns, to_ns) = self.stall_ns;
            let mut start_ns = (*free_ns).max(sent_ns + self.path_ns);
            if (from_ns..to_ns).contains(&start_ns) {
                start_ns = to_ns;
            }
            let in_between = (start_ns..start_ns + cost_ns).contains(&from_ns);
            let done_ns = start_ns + cost_ns + if in_between { to_ns - from_ns } else { 0 };
            *free_ns = done_ns;
            done_ns + self.path_ns
        }
    }

    #[derive(Clone, Copy, Debug)]
    struct Query {
        due_ns: i64,
        sent_ns: i64,
        cost_ns: i64,
    }

    /// The lower end of each query, in the order of sending, when `server` is asked by `clients` clients in turn.
    fn lower(queries: &[Query], clients: usize, mut server: Server) -> Vec<i64> {
        let mut lateness = Lateness::new(clients);
        let mut found = vec![0; queries.len()];
        let mut open: Vec<(i64, usize, Mark)> = Vec::new();
        for (number, query) in queries.iter().enumerate() {
            let client = number % clients;
            open.sort_unstable_by_key(|(answered_ns, ..)| *answered_ns);
            while let Some((answered_ns, of, mark)) = open.first().copied().filter(|(at, ..)| *at <= query.sent_ns) {
                let Query { due_ns, sent_ns, .. } = queries[of];
                found[of] = lateness.answered(of % clients, mark, sent_ns - due_ns, answered_ns - sent_ns);
                open.remove(0);
            }
            if open.is_empty() {
                lateness.nothing_outstanding();
            }
            let mark = lateness.sent(client, query.sent_ns - query.due_ns, 0);
            open.push((server.answer(client, query.sent_ns, query.cost_ns), number, mark));
        }
        open.sort_unstable_by_key(|(answered_ns, ..)| *answered_ns);
        for (answered_ns, of, mark) in open {
            let Query { due_ns, sent_ns, .. } = queries[of];
            found[of] = lateness.answered(of % clients, mark, sent_ns - due_ns, answered_ns - sent_ns);
        }
        found
    }

    /// The times that the server takes from the sending on.
    fn taken(queries: &[Query], clients: usize, mut server: Server) -> Vec<i64> {
        let answer = |(number, query): (usize, &Query)| {
            server.answer(number % clients, query.sent_ns, query.cost_ns) - query.sent_ns
        };
        queries.iter().enumerate().map(answer).collect()
    }

    fn on_time(queries: &[Query]) -> Vec<Query> {
        queries.iter().map(|query| Query { sent_ns: query.due_ns, ..*query }).collect()
    }

    /// Queries each `gap_ns`, those due while the instrument stood still sent when it went on.
    fn evenly(count: i64, gap_ns: i64, cost_ns: i64, still_ns: (i64, i64)) -> Vec<Query> {
        let query = |number| {
            let due_ns = number * gap_ns;
            let still = (still_ns.0..still_ns.1).contains(&due_ns);
            Query { due_ns, sent_ns: if still { still_ns.1 } else { due_ns }, cost_ns }
        };
        (0..count).map(query).collect()
    }

    fn never() -> (i64, i64) {
        (i64::MAX, i64::MAX)
    }

    #[test]
    fn a_query_in_time_counts_as_from_sent() {
        let queries = evenly(1_000, 100 * US, 130 * US, (0, 0));
        let server = || Server::new(1, 50 * US, (20 * MS, 40 * MS));
        assert_eq!(
            lower(&queries, 4, server()),
            taken(&queries, 4, server()),
            "also of a server that has too much to do"
        );
    }

    #[test]
    fn what_a_burst_queued_among_itself_is_subtracted() {
        let queries = evenly(1_000, 100 * US, 60 * US, (20 * MS, 40 * MS));
        let server = || Server::new(1, 50 * US, never());
        let from_sent = taken(&queries, 4, server());
        assert_eq!(
            from_sent.iter().max(),
            Some(&(160 * US + 200 * 60 * US)),
            "the last of 201 waits for all before it"
        );
        assert_eq!(lower(&queries, 4, server()), vec![160 * US; 1_000]);
    }

    #[test]
    fn the_servers_own_stall_is_not_subtracted() {
        // The instrument stands still for 2 ms while the server does so for 50 ms.
        let queries = evenly(1_000, 100 * US, 20 * US, (25 * MS, 27 * MS));
        let server = || Server::new(1, 50 * US, (20 * MS, 70 * MS));
        let (found, truth) = (lower(&queries, 4, server()), taken(&on_time(&queries), 4, server()));
        for (found, truth) in found.iter().zip(&truth) {
            assert!((truth - 2 * MS..=*truth).contains(found), "{found} of {truth}");
        }
    }

    #[test]
    fn a_long_path_does_not_hide_that_the_server_was_idle() {
        // Never without queries outstanding, and late only once, at the beginning.
        let queries = evenly(10_000, 100 * US, 20 * US, (5 * MS, 9 * MS));
        let mut found = lower(&queries, 4, Server::new(1, 10 * MS, (500 * MS, 520 * MS)));
        found.sort_unstable();
        assert_eq!(found[9_999], 40 * MS + 20 * US, "the stall is there in full");
    }

    #[test]
    fn a_burst_to_another_queue_of_the_server_is_remembered() {
        // Two queues; the burst lies in one of them while the other answers at once.
        let mut lateness = Lateness::new(2);
        let late = lateness.sent(0, 10 * MS, 0);
        let follows = lateness.sent(0, 9 * MS, 0);
        let other = lateness.sent(1, 0, 0);
        assert_eq!(lateness.answered(1, other, 0, MS), MS);
        assert_eq!(lateness.answered(0, late, 10 * MS, 3 * MS), 3 * MS);
        let next = lateness.sent(0, 0, 0);
        assert_eq!(lateness.answered(0, follows, 9 * MS, 4 * MS), 3 * MS, "1 ms closer to the first than due");
        assert_eq!(lateness.answered(0, next, 0, 20 * MS), 10 * MS);
    }

    #[test]
    fn a_query_that_was_held_up_while_sending_was_late_by_that() {
        let mut lateness = Lateness::new(1);
        let quick = lateness.sent(0, 0, 0);
        assert_eq!(lateness.answered(0, quick, 0, MS), MS);
        lateness.nothing_outstanding();
        let held = lateness.sent(0, 0, 50 * MS);
        assert_eq!(lateness.answered(0, held, 0, 52 * MS), 2 * MS);
    }

    #[test]
    fn without_an_answer_it_is_the_limit_unless_a_burst_may_be_why() {
        let mut lateness = Lateness::new(1);
        let (limit_ns, first) = (1_000 * MS, lateness.sent(0, 300 * MS, 0));
        assert_eq!(lateness.unanswered(first, limit_ns), limit_ns, "nothing of ours was before it");
        let close = lateness.sent(0, 299 * MS, 0);
        assert_eq!(lateness.unanswered(close, limit_ns), limit_ns, "and hardly anything here");
        let in_burst = lateness.sent(0, 290 * MS, 0);
        assert_eq!(lateness.unanswered(in_burst, limit_ns), limit_ns, "no answer was faster yet");
        lateness.answered(0, first, 300 * MS, 5 * MS);
        assert_eq!(lateness.unanswered(in_burst, limit_ns), 5 * MS);
    }

    /// With more than 256 peaks every second one is dropped, and the one that stays takes its lateness.
    #[test]
    fn of_many_peaks_none_is_forgotten_too_early() {
        let mut lateness = Lateness::new(1);
        let late = |number: i64| (1_000 - number) * MS;
        let marks: Vec<_> = (1..=300).map(|number| lateness.sent(0, 0, late(number))).collect();
        for (number, mark) in (1..).zip(marks) {
            // It is the fastest answer, so it waited for no other query.
            assert_eq!(lateness.answered(0, mark, 0, MS), MS);
            let next = lateness.sent(0, 0, 0);
            let expected = match number {
                300 => 0,
                // The second of a pair was dropped if there were 256, and with it the place of the first.
                1..256 if number % 2 == 1 => late(number),
                _ => late(number + 1),
            };
            assert_eq!(next.excess_ns, expected, "behind {number}");
        }
    }

    /// Lateness below a thousandth of the limit makes no difference.
    #[test]
    fn a_lateness_that_nobody_would_see_changes_nothing() {
        for (excess_ns, expected_ns) in [(0, 1_000_000), (1_000, 1_000_000), (1_001, 7)] {
            let mut lateness = Lateness::new(1);
            lateness.sent(0, excess_ns, 0);
            let mark = lateness.sent(0, 0, 0);
            lateness.fastest_ns = 7;
            assert_eq!(lateness.unanswered(mark, 1_000_000), expected_ns, "{excess_ns}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// The truth: the same queries at the same server in time. As what the server does by itself, its stall, knows
        /// nothing of the instrument, all of them may as well come later together; at the worst, as late as the latest.
        #[test]
        fn the_lower_end_is_never_above_the_truth(
            gaps_us in prop::collection::vec((0_i64..300, 0_i64..150), 1..150),
            stops_us in prop::collection::vec((0_i64..15_000, 1_i64..8_000), 0..4),
            (queues, clients) in (1_usize..4, 1_usize..3),
            path_us in 0_i64..5_000,
            stall_us in (0_i64..15_000, 0_i64..8_000),
        ) {
            let clients = clients * queues;
            let queries = stopped(&gaps_us, &stops_us);
            let stall_ns = (stall_us.0 * US, (stall_us.0 + stall_us.1) * US);
            let server = || Server::new(queues, path_us * US, stall_ns);
            let found = lower(&queries, clients, server());
            let mut truth = taken(&on_time(&queries), clients, server());
            for late_ns in queries.iter().map(|query| query.sent_ns - query.due_ns) {
                let later: Vec<_> =
                    queries.iter().map(|query| Query { sent_ns: query.due_ns + late_ns, ..*query }).collect();
                truth.iter_mut().zip(taken(&later, clients, server())).for_each(|(most, ns)| *most = ns.max(*most));
            }
            for (number, from_sent) in taken(&queries, clients, server()).into_iter().enumerate() {
                prop_assert!(found[number] <= from_sent.min(truth[number]), "{number}: {found:?} {truth:?}");
            }
        }
    }

    /// Queries with these gaps and costs, of a thread that stands still at times. The first query costs nothing, as the
    /// fastest does.
    fn stopped(gaps_us: &[(i64, i64)], stops_us: &[(i64, i64)]) -> Vec<Query> {
        let mut queries = vec![Query { due_ns: -100 * MS, sent_ns: -100 * MS, cost_ns: 0 }];
        let (mut due_us, mut went_us) = (0, 0);
        for (gap_us, cost_us) in gaps_us {
            due_us += gap_us;
            let stops = stops_us.iter().filter(|(at, long)| (*at..at + long).contains(&due_us));
            went_us = stops.map(|(at, long)| at + long).max().unwrap_or(due_us).max(went_us);
            queries.push(Query { due_ns: due_us * US, sent_ns: went_us * US, cost_ns: cost_us * US });
        }
        queries
    }
}
