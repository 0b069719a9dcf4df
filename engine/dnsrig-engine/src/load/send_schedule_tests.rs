use super::*;
use crate::load::arrivals::Model;

const MS: i64 = 1_000_000;
const SECOND: i64 = 1_000 * MS;

/// A rate of 100 queries a second for a minute, and a timeout of a second.
fn schedule() -> (SendSchedule, InFlight) {
    let query = vec![0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, b'a', 0, 0, 1, 0, 1];
    let mut in_flight = InFlight::of([query], 1, 256, SECOND);
    let model = Model::Rate { qps: 100.0, poisson: false };
    let period = Period { model, start_ns: 0, end_ns: 60 * SECOND, seed: 1 };
    let alone = Part { thread: 0, threads: 1 };
    let schedule = SendSchedule::new(period, alone, Order { next: 7, count: 10 }, SECOND, &mut in_flight);
    (schedule, in_flight)
}

#[test]
fn a_wish_to_stop_ends_the_period_and_counts_nothing_that_was_not_due() {
    let (mut schedule, mut in_flight) = schedule();
    assert_eq!(schedule.due(0).len(), 1);
    schedule.check(500 * MS, true, &mut in_flight);
    assert_eq!(schedule.due(SECOND).len(), 0);
    assert!(schedule.is_over(500 * MS, &in_flight));
    // Due until then and never sent: 0 to 490 ms.
    assert_eq!(in_flight.interval_stats.complete(i64::MAX).unwrap().counts.due, 50);
}

#[test]
fn queries_that_were_not_sent_are_the_first_of_the_next_period() {
    let (mut schedule, mut in_flight) = schedule();
    let due: Vec<_> = schedule.due(40 * MS).iter().map(|due| (due.at_ns, due.query)).collect();
    assert_eq!(due, [(0, 7), (10 * MS, 8), (20 * MS, 9), (30 * MS, 0), (40 * MS, 1)]);
    schedule.sent(2, 40 * MS);
    assert_eq!(schedule.due(40 * MS)[0].query, 9, "those that could not be sent stay in front");
    schedule.check(40 * MS, true, &mut in_flight);
    assert_eq!(schedule.order(), Order { next: 9, count: 10 });
}
