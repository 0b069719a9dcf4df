use super::*;
use crate::load::expect::judge::WrongKind;
use dnsrig_core::stats::TIME_MAX_NS;
use dnsrig_net::connection::CloseReason;

const SECOND: i64 = 1_000_000_000;
const ANSWERED: End = End::Answered { rcode: 0, truncated: false, authenticated: false };

/// Three seconds from 100 s on, for two clients.
fn interval_stats() -> IntervalStats {
    IntervalStats::new(100 * SECOND, 103 * SECOND, SECOND, 2)
}

fn ended(due_ns: i64, sent_ns: i64, ended_ns: i64, end: End) -> Ended {
    Ended { due_ns, sent_ns, ended_ns, lower_ns: ended_ns - sent_ns, end }
}

#[test]
fn a_query_belongs_to_the_interval_in_which_it_was_due() {
    let mut interval_stats = interval_stats();
    let due_ns = 100 * SECOND + 900_000_000;
    interval_stats.sent(due_ns, due_ns + 300_000_000, 40);
    interval_stats.end(1, ended(due_ns, due_ns + 300_000_000, due_ns + 400_000_000, ANSWERED));
    let first = interval_stats.complete(i64::MAX).unwrap();
    assert_eq!((first.number, first.counts.due, first.counts.answered), (0, 1, 1));
    assert_eq!(first.clients[0], ClientCounts::default());
    let (sum_ns, max_ns, fastest_ns) = (400_000_000, 400_000_000, 100_000_000);
    let expected = ClientCounts { answered: 1, unanswered: 0, sum_ns, max_ns, fastest_ns };
    assert_eq!(first.clients[1], expected);
    let second = interval_stats.complete(i64::MAX).unwrap();
    assert_eq!((second.number, second.counts), (1, Counts::default()));
}

#[test]
fn an_interval_waits_for_its_queries_and_for_the_next_ones() {
    let mut interval_stats = interval_stats();
    let due_ns = 100 * SECOND;
    interval_stats.sent(due_ns, due_ns, 40);
    assert!(interval_stats.complete(i64::MAX).is_none(), "a query is outstanding");
    interval_stats.end(0, ended(due_ns, due_ns, due_ns + SECOND, End::Timeout));
    assert!(interval_stats.complete(101 * SECOND - 1).is_none(), "more may fall due");
    assert_eq!(interval_stats.complete(101 * SECOND).unwrap().counts.timeouts, 1);
    assert!(interval_stats.complete(101 * SECOND).is_none());
}

#[test]
fn all_intervals_come_once_and_in_order_also_empty_ones() {
    let mut interval_stats = interval_stats();
    let numbers: Vec<_> =
        std::iter::from_fn(|| interval_stats.complete(i64::MAX)).map(|interval| interval.number).collect();
    assert_eq!(numbers, [0, 1, 2]);
}

#[test]
fn an_interval_used_again_is_empty() {
    let mut interval_stats = interval_stats();
    interval_stats.sent(100 * SECOND, 100 * SECOND, 40);
    interval_stats.end(0, ended(100 * SECOND, 100 * SECOND, 101 * SECOND, End::Lost(CloseReason::Reset)));
    let first = interval_stats.complete(i64::MAX).unwrap();
    assert_eq!((first.counts.lost.reset, first.counts.unanswered(), first.clients[0].unanswered), (1, 1, 1));
    interval_stats.reuse(first);
    interval_stats.at(102 * SECOND);
    let second = interval_stats.complete(i64::MAX).unwrap();
    assert_eq!(
        (second.number, second.counts, second.series.due.len(), second.clients[0].unanswered),
        (1, Counts::default(), 0, 0)
    );
}

#[test]
fn a_period_cut_short_has_fewer_intervals() {
    let mut interval_stats = interval_stats();
    interval_stats.cut(101 * SECOND + 1);
    assert_eq!(std::iter::from_fn(|| interval_stats.complete(i64::MAX)).count(), 2);
}

#[test]
fn an_overlong_time_is_recorded_as_the_longest() {
    let mut interval_stats = interval_stats();
    interval_stats.sent(100 * SECOND, 100 * SECOND, 1);
    interval_stats.end(0, ended(100 * SECOND, 100 * SECOND, 100_000 * SECOND, ANSWERED));
    let max_ns = interval_stats.complete(i64::MAX).unwrap().series.due.max();
    assert!(max_ns >= TIME_MAX_NS);
}

/// (seconds from the start, sent, answered) of the bins in use.
fn used(interval: &Interval) -> Vec<(f64, u32, u32)> {
    interval.bins.used().map(|(into_ns, bin)| (into_ns as f64 / 1e9, bin.sent, bin.answered)).collect()
}

#[test]
fn an_answer_counts_in_the_bin_in_which_it_came_not_in_that_of_its_query() {
    let mut interval_stats = interval_stats();
    let due_ns = 100 * SECOND + 995_000_000;
    interval_stats.sent(due_ns, due_ns, 40);
    interval_stats.answer_came(due_ns + 400_000_000);
    interval_stats.end(1, ended(due_ns, due_ns, due_ns + 400_000_000, ANSWERED));
    assert_eq!(used(&interval_stats.complete(i64::MAX).unwrap()), [(0.99, 1, 0)]);
    let second = interval_stats.complete(i64::MAX).unwrap();
    assert_eq!(used(&second), [(0.39, 0, 1)]);
    let bin = second.bins.used().next().unwrap().1;
    assert_eq!((bin.first_ns, bin.last_ns), (due_ns + 400_000_000, due_ns + 400_000_000));
}

#[test]
fn answers_outside_the_period_or_to_an_interval_given_away_are_in_no_bin() {
    let mut interval_stats = interval_stats();
    interval_stats.answer_came(100 * SECOND - 1);
    interval_stats.answer_came(103 * SECOND);
    assert!(interval_stats.complete(i64::MAX).is_some());
    interval_stats.answer_came(100 * SECOND + 5);
    assert!(std::iter::from_fn(|| interval_stats.complete(i64::MAX)).all(|interval| used(&interval).is_empty()));
}

#[test]
fn bins_of_all_threads_keep_the_first_and_the_last_answer() {
    let [mut one, mut other, mut all] = [Bins::new(25_000_000), Bins::new(25_000_000), Bins::default()];
    one.at(9_999_999).unwrap().answered(109);
    one.at(0).unwrap().answered(105);
    one.at(24_999_999).unwrap().sent += 1;
    other.at(0).unwrap().answered(103);
    all.add(&one);
    all.add(&other);
    let used: Vec<_> = all.used().map(|(start_ns, bin)| (start_ns, *bin)).collect();
    let answered = Bin { sent: 0, answered: 3, first_ns: 103, last_ns: 109 };
    assert_eq!(used, [(0, answered), (20_000_000, Bin { sent: 1, ..Bin::default() })]);
    all.clear();
    assert_eq!(all.used().count(), 0);
}

#[test]
fn an_interval_of_an_hour_has_a_bounded_number_of_bins() {
    let mut hour = Bins::new(3_600_000_000_000);
    assert!(hour.bins.len() <= BINS_MAX as usize);
    assert!(hour.at(3_599_999_999_999).is_some() && hour.at(3_700_000_000_000).is_none());
}

/// An end that is asked for before the start makes a period of a nanosecond.
#[test]
fn a_period_has_a_nanosecond_at_least() {
    let mut interval_stats = interval_stats();
    interval_stats.cut(99 * SECOND);
    assert_eq!(interval_stats.intervals(), 1);
    interval_stats.answer_came(100 * SECOND);
    interval_stats.answer_came(100 * SECOND + 1);
    assert_eq!(used(&interval_stats.complete(i64::MAX).unwrap()), [(0.0, 0, 1)]);
    assert!(interval_stats.complete(i64::MAX).is_none());
}

#[test]
fn a_period_has_as_many_intervals_as_begin_in_it() {
    for (end_ns, intervals) in [(1, 1), (9, 1), (10, 1), (11, 2), (20, 2), (21, 3)] {
        let mut interval_stats = IntervalStats::new(100, 100 + end_ns, 10, 1);
        assert_eq!(interval_stats.intervals(), intervals, "{end_ns}");
        // What comes before the first or after the last belongs to these.
        assert_eq!(interval_stats.at(0).number, 0);
        assert_eq!(interval_stats.at(1_000).number, intervals - 1, "{end_ns}");
    }
    let mut interval_stats = IntervalStats::new(100, 130, 10, 1);
    assert_eq!([100, 109, 110, 119, 120].map(|time_ns| interval_stats.at(time_ns).number), [0, 0, 1, 1, 2]);
}

/// Up to 16,384 bins of 10 ms; a longer interval has longer ones.
#[test]
fn bins_are_as_long_as_the_interval_makes_them() {
    let count = |interval_ns| Bins::new(interval_ns).bins.len();
    assert_eq!([1, 10_000_000, 10_000_001, 20_000_000].map(count), [1, 1, 2, 2]);
    let most_ns = 16_384 * 10_000_000;
    assert_eq!([most_ns, most_ns + 1, 2 * most_ns].map(count), [16_384, 16_384, 16_384]);
    let mut bins = Bins::new(20_000_000);
    for into_ns in [0, 9_999_999, 10_000_000] {
        bins.at(into_ns).unwrap().sent += 1;
    }
    assert!(bins.at(20_000_000).is_none());
    assert_eq!(bins.used().map(|(into_ns, bin)| (into_ns, bin.sent)).collect::<Vec<_>>(), [(0, 2), (10_000_000, 1)]);
}

/// Every query that ended counts once, by how it ended.
#[test]
fn each_end_of_a_query_is_counted() {
    let wrong = End::Wrong { kind: WrongKind::Empty, rcode: 3, truncated: true, authenticated: true };
    let ends = [ANSWERED, wrong, wrong, End::Timeout, End::Lost(CloseReason::Closed)];
    let mut interval_stats = interval_stats();
    for end in ends {
        interval_stats.sent(100 * SECOND, 100 * SECOND, 40);
        interval_stats.end(0, ended(100 * SECOND, 100 * SECOND, 101 * SECOND, end));
    }
    interval_stats.given_up(100 * SECOND);
    interval_stats.truncated(0, 100 * SECOND);
    let counts = interval_stats.complete(i64::MAX).unwrap().counts;
    assert_eq!((counts.due, counts.sent, counts.bytes_sent), (6, 5, 200));
    assert_eq!((counts.answered, counts.wrong.empty, counts.timeouts, counts.lost.closed), (1, 2, 1, 1));
    assert_eq!((counts.truncated, counts.authenticated, counts.rcodes[0], counts.rcodes[3]), (3, 2, 1, 2));
    assert_eq!(counts.unanswered(), 2);
}
