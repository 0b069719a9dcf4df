use proptest::prelude::*;

use super::*;
use crate::{base::testing::inputs, load::segment::Segment};

const ALONE: Part = Part { thread: 0, threads: 1, segment: Segment { number: 1, of: 1 } };

fn arrivals(model: Model, part: Part, start_ns: i64, end_ns: i64) -> Arrivals {
    Arrivals::new(Period { model, start_ns, end_ns, seed: 7 }, part, Order { next: 1, count: 3 })
}

fn take(arrivals: &mut Arrivals, now_ns: i64) -> Option<i64> {
    arrivals.take(now_ns, &mut Source::none()).map(|due| due.at_ns)
}

fn all(mut arrivals: Arrivals) -> Vec<i64> {
    std::iter::from_fn(|| take(&mut arrivals, i64::MAX - 1)).collect()
}

#[test]
fn an_even_rate_has_no_error_that_adds_up() {
    let due_ns = all(arrivals(Model::Rate { qps: 3.0, poisson: false }, ALONE, 1_000, 1_000 + 100_000_000_000));
    assert_eq!(due_ns.len(), 300);
    assert_eq!(due_ns[..4], [1_000, 333_334_333, 666_667_666, 1_000_001_000]);
    assert_eq!(due_ns[297], 1_000 + 99_000_000_000);
}

#[test]
fn threads_share_an_even_rate_without_a_gap() {
    let model = Model::Rate { qps: 1000.0, poisson: false };
    let mut due_ns: Vec<i64> = (0..3)
        .flat_map(|thread| all(arrivals(model, Part { thread, threads: 3, ..ALONE }, 0, 1_000_000_000)))
        .collect();
    due_ns.sort_unstable();
    assert_eq!(due_ns, (0..1000).map(|at| at * 1_000_000).collect::<Vec<_>>());
}

#[test]
fn nothing_is_due_before_its_time_nor_after_the_end() {
    let mut arrivals = arrivals(Model::Rate { qps: 10.0, poisson: false }, ALONE, 0, 150_000_000);
    assert_eq!(take(&mut arrivals, 0), Some(0));
    assert_eq!(take(&mut arrivals, 99_999_999), None);
    assert_eq!(arrivals.next_due_ns(), 100_000_000);
    assert_eq!(take(&mut arrivals, 100_000_000), Some(100_000_000));
    assert_eq!((arrivals.next_due_ns(), take(&mut arrivals, i64::MAX - 1)), (i64::MAX, None));
}

#[test]
fn poisson_arrivals_have_the_rate_and_the_spread_of_a_poisson_process() {
    let model = Model::Rate { qps: 10_000.0, poisson: true };
    let due_ns = all(arrivals(model, ALONE, 0, 10_000_000_000));
    // 100,000 expected; the standard deviation is the root of that, 316.
    assert!(due_ns.len().abs_diff(100_000) < 5 * 316, "{}", due_ns.len());
    let gaps: Vec<f64> = due_ns.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let deviation = (gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64).sqrt();
    assert!((0.98..1.02).contains(&(deviation / mean)), "of an exponential distribution they are equal");
    assert_eq!(due_ns, all(arrivals(model, ALONE, 0, 10_000_000_000)), "the same seed");
}

#[test]
fn a_closed_loop_is_due_at_once_and_then_when_a_query_ends() {
    let mut arrivals = arrivals(Model::Outstanding(2), ALONE, 5, 1_000);
    assert_eq!([(); 3].map(|()| take(&mut arrivals, 5)), [Some(5), Some(5), None]);
    arrivals.ended(70);
    assert_eq!((take(&mut arrivals, 69), take(&mut arrivals, 70)), (None, Some(70)));
    arrivals.ended(1_000);
    assert_eq!(arrivals.next_due_ns(), i64::MAX, "the end has come");
}

#[test]
fn a_query_that_ends_in_the_future_does_not_keep_others_waiting() {
    let mut arrivals = arrivals(Model::Outstanding(2), ALONE, 5, 1_000);
    assert_eq!([(); 2].map(|()| take(&mut arrivals, 5)), [Some(5), Some(5)]);
    arrivals.ended(500);
    arrivals.ended(70);
    assert_eq!(
        [take(&mut arrivals, 70), take(&mut arrivals, 499), take(&mut arrivals, 500)],
        [Some(70), None, Some(500)]
    );
}

#[test]
fn threads_share_the_outstanding_queries() {
    let count = |thread| all(arrivals(Model::Outstanding(5), Part { thread, threads: 3, ..ALONE }, 0, 9)).len();
    assert_eq!([0, 1, 2].map(count), [2, 2, 1]);
}

#[test]
fn queries_come_in_their_order_and_the_first_after_the_last() {
    let mut arrivals = arrivals(Model::Outstanding(4), ALONE, 0, 9);
    let due: Vec<_> = std::iter::from_fn(|| arrivals.take(0, &mut Source::none())).collect();
    let expected = [(0, 1), (1, 2), (2, 0), (3, 1)];
    assert_eq!(due, expected.map(|(number, query)| Due { at_ns: 0, client: None, query, number }));
    assert_eq!(arrivals.order_after(), Order { next: 2, count: 3 });
}

/// All parts of a schedule that so many generators share, each with so many threads.
fn parts(of: u32, threads: usize) -> impl Iterator<Item = Part> {
    let segments = (1..=of).map(move |number| Segment { number, of });
    segments.flat_map(move |segment| (0..threads).map(move |thread| Part { thread, threads, segment }))
}

/// Everything that falls due of a part: its number, when, which query.
fn schedule(period: Period, part: Part, order: Order) -> (Vec<(u64, i64, u32)>, Order) {
    let mut arrivals = Arrivals::new(period, part, order);
    let due = std::iter::from_fn(|| arrivals.take(i64::MAX - 1, &mut Source::none()));
    (due.map(|due| (due.number, due.at_ns, due.query)).collect(), arrivals.order_after())
}

proptest! {
    #![proptest_config(inputs(60))]

    #[test]
    fn the_parts_of_a_schedule_are_together_that_of_one_generator(
        (of, threads) in (1..=5_u32, 1..=3_usize),
        (qps, poisson) in (0.5..20_000.0_f64, any::<bool>()),
        start_ns in 0..1_i64 << 50,
        duration_ns in 1..50_000_000_i64,
        (next, count) in (1..40_u32).prop_flat_map(|count| (0..count, Just(count))),
        seed: u64,
    ) {
        let period = Period { model: Model::Rate { qps, poisson }, start_ns, end_ns: start_ns + duration_ns, seed };
        let order = Order { next, count };
        let (single, after) = schedule(period, ALONE, order);
        let all: Vec<_> = parts(of, threads).map(|part| schedule(period, part, order)).collect();
        let mut union: Vec<_> = all.iter().flat_map(|(due, _)| due.iter().copied()).collect();
        union.sort_unstable();
        prop_assert_eq!(&union, &single);
        prop_assert!(single.iter().zip(0..).all(|((number, _, query), n)| *number == n && *query == order.after(n)));
        if !poisson {
            prop_assert_eq!(after.next, order.after(single.len() as u64));
            prop_assert!(all.iter().all(|(_, of_part)| *of_part == after));
        }
    }

    #[test]
    fn outstanding_queries_of_all_parts_are_as_many_as_those_of_one(
        (of, threads, windows) in (1..=5_u32, 1..=3_usize, 0..40_usize),
    ) {
        let period = Period { model: Model::Outstanding(windows), start_ns: 0, end_ns: 9, seed: 1 };
        let order = Order { next: 0, count: 7 };
        let due = parts(of, threads).map(|part| schedule(period, part, order).0.len());
        prop_assert_eq!(due.sum::<usize>(), windows);
    }
}
