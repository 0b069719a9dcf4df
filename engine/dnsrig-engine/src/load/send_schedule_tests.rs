use std::{collections::VecDeque, sync::Arc};

use super::*;
use crate::load::{
    arrivals::Model,
    in_flight::{Sending, Settings},
    interval_stats::{Counts, IntervalStats, Series},
    queries::Queries,
};

const MS: i64 = 1_000_000;
const SECOND: i64 = 1_000 * MS;
const ALONE: Part = Part { thread: 0, threads: 1 };

/// A server, a link and an instrument in virtual time: no real time passes.
struct World {
    send_schedule: SendSchedule,
    in_flight: InFlight,
    /// When an answer to a query sent at a time arrives.
    server: fn(i64) -> Option<i64>,
    /// When the instrument may send; before, it is kept busy by something else.
    able_from: fn(i64) -> i64,
    on_the_way: VecDeque<(i64, Vec<u8>)>,
}

impl World {
    fn new(model: Model, end_ns: i64, server: fn(i64) -> Option<i64>) -> Self {
        let query = vec![0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, b'a', 0, 0, 1, 0, 1];
        let settings = Settings {
            queries: Arc::new(Queries::from_messages([query])),
            signer: None,
            first: 0,
            timeout_ns: SECOND,
            clients: 1,
            table: 1 << 14,
            closed_loop: false,
        };
        let mut in_flight = InFlight::new(settings, IntervalStats::new(0, 1, 100 * SECOND, 1));
        let send_schedule =
            SendSchedule::new(Period { model, start_ns: 0, end_ns, seed: 1 }, ALONE, SECOND, &mut in_flight);
        World { send_schedule, in_flight, server, able_from: |now_ns| now_ns, on_the_way: VecDeque::new() }
    }

    /// Lets time pass until its period is over; returns the time, what was counted and what was timed.
    fn run(mut self, step_ns: i64) -> (i64, Counts, Series) {
        let mut now_ns = 0;
        while !self.send_schedule.is_over(now_ns, &self.in_flight) {
            now_ns = (self.able_from)(now_ns);
            let count = self.send_schedule.due(now_ns).len();
            for at in 0..count {
                let due_ns = self.send_schedule.due(now_ns)[at];
                let mut space = [0; 64];
                let length = self.in_flight.draft(0, due_ns, &mut space).expect("the table is large");
                self.in_flight.sent(0, 1, length, Sending { began_ns: now_ns, ended_ns: now_ns });
                space[2] |= 0x80;
                if let Some(answered_ns) = (self.server)(now_ns) {
                    self.on_the_way.push_back((answered_ns, space[..length].to_vec()));
                }
            }
            self.send_schedule.sent(count, now_ns);
            while self.on_the_way.front().is_some_and(|(arrives_ns, _)| *arrives_ns <= now_ns) {
                let (arrived_ns, message) = self.on_the_way.pop_front().unwrap();
                self.in_flight.answer(0, &message, message.len(), arrived_ns);
            }
            self.send_schedule.learn(&mut self.in_flight);
            if self.send_schedule.is_check_due(now_ns) {
                self.send_schedule.check(now_ns, false, &mut self.in_flight);
            }
            now_ns += step_ns;
            assert!(now_ns < 1_000 * SECOND, "it ends");
        }
        let whole = self.in_flight.interval_stats.complete(i64::MAX).expect("everything has ended");
        (now_ns, whole.counts, whole.series)
    }
}

/// Answers after 1 ms, but nothing in the first 200 ms of each second, and then all that waits at once.
fn stalls(sent_ns: i64) -> Option<i64> {
    let within_ns = sent_ns % SECOND;
    Some(sent_ns - within_ns + within_ns.max(200 * MS) + MS)
}

#[test]
fn a_periodic_stall_shows_as_it_is_computed_by_hand() {
    let model = Model::Rate { qps: 1000.0, poisson: false };
    let (_, counts, series) = World::new(model, 10 * SECOND, stalls).run(MS);
    assert_eq!((counts.due, counts.sent, counts.answered), (10_000, 10_000, 10_000));
    // Of each second's 1,000 queries, due at 0, 1, 2 … ms, those at 0 to 199 take 201 down to 2 ms, the others 1 ms.
    for (percent, expected_ms) in [(50.0, 1.0), (80.0, 1.0), (85.0, 51.0), (90.0, 101.0), (99.0, 191.0), (100.0, 201.0)]
    {
        let found_ms = series.due.value_at_quantile(percent / 100.0) as f64 / MS as f64;
        assert!((found_ms / expected_ms - 1.0).abs() < 0.011, "{percent} %: {found_ms} ms, not {expected_ms}");
    }
    assert_eq!(series.lag.max(), 0);
}

#[test]
fn an_instrument_that_stalls_itself_says_so_in_the_lag_and_the_due_latency_only() {
    let model = Model::Rate { qps: 1000.0, poisson: false };
    let mut world = World::new(model, SECOND, |sent_ns| Some(sent_ns + MS));
    world.able_from = |now_ns| if (400 * MS..600 * MS).contains(&now_ns) { 600 * MS } else { now_ns };
    let (_, counts, series) = world.run(MS);
    assert_eq!(counts.answered, 1_000);
    assert_eq!(series.sent.max() / MS as u64, 1);
    assert!((200..=201).contains(&(series.lag.max() / MS as u64)));
    assert!((201..=202).contains(&(series.due.max() / MS as u64)));
}

#[test]
fn a_closed_loop_hides_the_stall_as_every_closed_loop_does() {
    let (_, counts, series) = World::new(Model::Outstanding(1), SECOND, stalls).run(MS);
    assert!(counts.answered > 350);
    assert!(series.due.value_at_quantile(0.99) / MS as u64 <= 2, "of hundreds of queries one met the stall");
}

#[test]
fn a_server_that_never_answers_costs_a_timeout_and_ends() {
    let model = Model::Rate { qps: 100.0, poisson: true };
    let (ended_ns, counts, series) = World::new(model, SECOND, |_| None).run(MS);
    assert_eq!((counts.answered, counts.timeouts), (0, counts.sent));
    assert!(counts.sent > 50 && ended_ns <= 2 * SECOND + 5 * MS);
    assert!(series.sent.min() >= 999 * MS as u64, "each is recorded at the limit");
}

#[test]
fn a_wish_to_stop_ends_the_period_and_counts_nothing_that_was_not_due() {
    let model = Model::Rate { qps: 100.0, poisson: false };
    let mut world = World::new(model, 60 * SECOND, |_| None);
    assert_eq!(world.send_schedule.due(0).len(), 1);
    world.send_schedule.check(500 * MS, true, &mut world.in_flight);
    assert_eq!(world.send_schedule.due(SECOND).len(), 0);
    assert!(world.send_schedule.is_over(500 * MS, &world.in_flight));
    // Due until then and never sent: 0 to 490 ms.
    assert_eq!(world.in_flight.interval_stats.complete(i64::MAX).unwrap().counts.due, 50);
}
