//! Which queries fall due, and when: by a rate, or as windows become free. No clock, no socket.

use dnsrig_core::{draw::exponential, random::Random};

use super::{
    segment::Part,
    source::{Source, Taken},
};
use std::collections::VecDeque;

/// Makes the random numbers of arrivals differ from others with the same seed.
const PURPOSE: u64 = 0x6172_7269_7661_6c73;

/// What decides when a query falls due.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Model {
    /// At this many queries a second, evenly or as a Poisson process, whatever becomes of the queries before ("open
    /// loop").
    Rate { qps: f64, poisson: bool },
    /// With this number of queries outstanding: the next one is due when one ends ("closed loop").
    Outstanding(usize),
    /// When captured queries say, at this many a second on average.
    Captured { qps: f64 },
}

/// A period in which queries fall due.
#[derive(Clone, Copy, Debug)]
pub struct Period {
    pub model: Model,
    pub start_ns: i64,
    pub end_ns: i64,
    pub seed: u64,
}

/// A query that falls due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    pub at_ns: i64,
    /// The number of the thread's client that sends it. `None`: the client whose turn it is.
    pub client: Option<u32>,
    /// Its position in the order of queries.
    pub query: u32,
    /// Its number in the schedule of all threads and generators. For a captured query, its place in the file.
    pub number: u64,
}

/// The order of queries, the same for all threads and generators: the first comes again after the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// The query that is number 0 of a schedule.
    pub next: u32,
    pub count: u32,
}

impl Order {
    /// The query that is `queries` further on.
    fn after(self, queries: u64) -> u32 {
        ((u64::from(self.next) + queries) % u64::from(self.count)) as u32
    }
}

/// The queries of one thread that fall due from a start to before an end.
///
/// The schedule is the same however many threads and generators share it: of `count` parts, part i has the queries
/// number i, i + `count`, i + 2 `count` …
pub struct Arrivals {
    start_ns: i64,
    end_ns: i64,
    order: Order,
    /// The number of the next query in the schedule, and which one it is.
    number: u64,
    query: u32,
    /// The distance from one number to the next, and the distance in the order.
    step: u64,
    query_step: u32,
    kind: Kind,
}

enum Kind {
    Even {
        qps: f64,
    },
    Poisson {
        /// Counted from the start.
        next_ns: f64,
        mean_gap_ns: f64,
        random: Random,
    },
    Windows {
        free_ns: VecDeque<i64>,
    },
    /// No query is due before `next_ns`.
    Captured {
        next_ns: i64,
    },
}

impl Arrivals {
    /// The arrivals of the thread `part` in `period`. Poisson arrivals are the same for the same seed.
    pub fn new(period: Period, part: Part, order: Order) -> Self {
        let Period { model, start_ns, end_ns, seed } = period;
        let (number, step) = (part.number() as u64, part.count() as u64);
        let kind = match model {
            Model::Rate { qps, poisson: false } => Kind::Even { qps },
            Model::Rate { qps, poisson: true } => {
                let (mean_gap_ns, mut random) = (1e9 / qps, Random::new(seed, PURPOSE));
                let next_ns = pass(0.0, number + 1, mean_gap_ns, &mut random);
                Kind::Poisson { next_ns, mean_gap_ns, random }
            }
            Model::Outstanding(windows) => {
                let mine = part.share(windows);
                let mut free_ns = VecDeque::with_capacity(mine);
                free_ns.resize(mine, start_ns);
                Kind::Windows { free_ns }
            }
            Model::Captured { .. } => Kind::Captured { next_ns: start_ns },
        };
        let (query, query_step) = (order.after(number), Order { next: 0, ..order }.after(step));
        Arrivals { start_ns, end_ns, order, number, query, step, query_step, kind }
    }

    /// When the next query is due. `i64::MAX` if no query will be due, as far as is known.
    pub fn next_due_ns(&self) -> i64 {
        let next_ns = match &self.kind {
            Kind::Even { qps } => self.start_ns + even_ns(self.number, *qps),
            Kind::Poisson { next_ns, .. } => self.start_ns + *next_ns as i64,
            Kind::Windows { free_ns } => free_ns.front().copied().unwrap_or(i64::MAX),
            Kind::Captured { next_ns } => *next_ns,
        };
        if next_ns < self.end_ns { next_ns } else { i64::MAX }
    }

    /// Takes the next query of `source` if its time has come.
    pub fn take(&mut self, now_ns: i64, source: &mut Source) -> Option<Due> {
        let at_ns = self.next_due_ns();
        if at_ns > now_ns {
            return None;
        }
        if let (Kind::Captured { next_ns }, Source::Captured(captured)) = (&mut self.kind, source) {
            let latest_ns = now_ns.min(self.end_ns - 1) - self.start_ns;
            let taken = captured.take(latest_ns);
            *next_ns = captured.next_due_ns().saturating_add(self.start_ns);
            return taken.map(|Taken { due_ns, client, place, number }| Due {
                at_ns: self.start_ns + due_ns,
                client: Some(client),
                query: place,
                number,
            });
        }
        match &mut self.kind {
            Kind::Even { .. } => {}
            Kind::Poisson { next_ns, mean_gap_ns, random } => {
                *next_ns = pass(*next_ns, self.step, *mean_gap_ns, random);
            }
            Kind::Windows { free_ns } => {
                free_ns.pop_front();
            }
            Kind::Captured { .. } => return None,
        }
        let due = Due { at_ns, client: None, query: self.query, number: self.number };
        self.number += self.step;
        self.query = add_within(self.query, self.query_step, self.order.count);
        Some(due)
    }

    /// Where the next period goes on: behind all queries of this schedule, sent or not.
    pub fn order_after(&self) -> Order {
        let passed = match self.kind {
            Kind::Even { qps } => even_count(self.end_ns - self.start_ns, qps),
            // This holds for one thread; several threads have no order in common.
            _ => self.number,
        };
        Order { next: self.order.after(passed), ..self.order }
    }

    /// Takes in that a query ended: in a closed loop the next one is due at that moment.
    pub fn ended(&mut self, ended_ns: i64) {
        if let Kind::Windows { free_ns } = &mut self.kind {
            // Mostly it is the last. A lost query ends at its timeout, which is yet to come, and must not keep others
            // waiting.
            let place = free_ns.partition_point(|free_ns| *free_ns <= ended_ns);
            free_ns.insert(place, ended_ns);
        }
    }

    /// Ends the period earlier.
    pub fn cut(&mut self, end_ns: i64) {
        self.end_ns = self.end_ns.min(end_ns);
    }

    /// Whether another thread reads the queries. It may be late, and then a query that is due cannot be taken yet.
    pub fn is_read_ahead(&self) -> bool {
        matches!(self.kind, Kind::Captured { .. })
    }

    /// Whether a query that ends makes another one due.
    pub fn is_closed_loop(&self) -> bool {
        matches!(self.kind, Kind::Windows { .. })
    }
}

/// The time from the start until query `number` is due, counted from the start each time, so that no error adds up.
fn even_ns(number: u64, qps: f64) -> i64 {
    (number as f64 * 1e9 / qps) as i64
}

/// The number of queries that are due within `duration_ns`.
fn even_count(duration_ns: i64, qps: f64) -> u64 {
    let about = (duration_ns as f64 * qps / 1e9) as u64;
    // The estimate is rounded, and so are the moments.
    (about.saturating_sub(2)..).find(|number| even_ns(*number, qps) >= duration_ns).unwrap_or(about)
}

/// The moment that is `arrivals` arrivals of a Poisson process after `from_ns`. Arrivals of other threads are drawn as
/// well: all threads have the one process of the seed, and the same roundings in it.
fn pass(from_ns: f64, arrivals: u64, mean_gap_ns: f64, random: &mut Random) -> f64 {
    (0..arrivals).fold(from_ns, |at_ns, _| at_ns + mean_gap_ns * exponential(random))
}

/// The sum of two numbers below `count`, modulo `count`.
fn add_within(one: u32, other: u32, count: u32) -> u32 {
    if other < count - one { one + other } else { other - (count - one) }
}

#[cfg(test)]
mod tests {
    use dnsrig_testing::inputs;
    use proptest::prelude::*;

    use super::*;
    use crate::load::segment::Segment;

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

    /// All parts of a schedule that `of` generators share, each with `threads` threads.
    fn parts(of: u32, threads: usize) -> impl Iterator<Item = Part> {
        let segments = (1..=of).map(move |number| Segment { number, of });
        segments.flat_map(move |segment| (0..threads).map(move |thread| Part { thread, threads, segment }))
    }

    /// All queries of a part: their numbers, due times, and positions in the order.
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
}
