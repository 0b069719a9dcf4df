//! Which queries fall due, and when: by a rate, or as windows become free. No clock, no socket.

use std::collections::VecDeque;

use super::{captured::Taken, source::Source};
use crate::base::{draw::exponential, random::Random};

/// Tells the random stream of arrivals from others of the same seed.
const PURPOSE: u64 = 0x6172_7269_7661_6c73;

/// What decides when a query falls due.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Model {
    /// Queries at this many a second, evenly or as a Poisson process, whatever becomes of those before ("open loop").
    Rate { qps: f64, poisson: bool },
    /// As many at a time: the next is due when one ends ("closed loop").
    Outstanding(usize),
    /// When a stream says, which is so many a second on average.
    Stream { qps: f64 },
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
    /// The number of the thread's client that sends it; none: whichever client's turn it is.
    pub client: Option<u32>,
    /// Its position in the order of queries.
    pub query: u32,
}

/// The order of queries: the first comes again after the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    pub next: u32,
    pub count: u32,
}

impl Order {
    fn take(&mut self) -> u32 {
        let query = self.next;
        self.next = if query + 1 == self.count { 0 } else { query + 1 };
        query
    }
}

/// Which of several threads this one is; they share a rate, or the outstanding queries, evenly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub thread: usize,
    pub threads: usize,
}

/// The queries of one thread that fall due from a start to before an end.
pub struct Arrivals {
    end_ns: i64,
    /// Which query is next.
    pub order: Order,
    kind: Kind,
}

enum Kind {
    Even {
        start_ns: i64,
        qps: f64,
        next: u64,
        step: u64,
    },
    Poisson {
        next_ns: f64,
        mean_gap_ns: f64,
        random: Random,
    },
    Windows {
        free_ns: VecDeque<i64>,
    },
    /// None is due before `next_ns`.
    Stream {
        start_ns: i64,
        next_ns: i64,
    },
}

impl Arrivals {
    /// Of the thread `part`, in `period`; Poisson arrivals are the same for the same seed.
    pub fn new(period: Period, part: Part, order: Order) -> Self {
        let Period { model, start_ns, end_ns, seed } = period;
        let kind = match model {
            Model::Rate { qps, poisson: false } => {
                Kind::Even { start_ns, qps, next: part.thread as u64, step: part.threads as u64 }
            }
            Model::Rate { qps, poisson: true } => {
                // The superposition of independent Poisson processes is one of the sum of their rates.
                let mean_gap_ns = part.threads as f64 * 1e9 / qps;
                let mut random = Random::new(seed, PURPOSE + part.thread as u64);
                Kind::Poisson { next_ns: start_ns as f64 + mean_gap_ns * exponential(&mut random), mean_gap_ns, random }
            }
            Model::Outstanding(windows) => {
                let mine = windows / part.threads + usize::from(part.thread < windows % part.threads);
                let mut free_ns = VecDeque::with_capacity(mine);
                free_ns.resize(mine, start_ns);
                Kind::Windows { free_ns }
            }
            Model::Stream { .. } => Kind::Stream { start_ns, next_ns: start_ns },
        };
        Arrivals { end_ns, order, kind }
    }

    /// When the next query is due; `i64::MAX` if none will be, as far as is known.
    pub fn next_due_ns(&self) -> i64 {
        let next_ns = match &self.kind {
            // From the start each time, so that no error adds up.
            Kind::Even { start_ns, qps, next, .. } => start_ns + (*next as f64 * 1e9 / qps) as i64,
            Kind::Poisson { next_ns, .. } => *next_ns as i64,
            Kind::Windows { free_ns } => free_ns.front().copied().unwrap_or(i64::MAX),
            Kind::Stream { next_ns, .. } => *next_ns,
        };
        if next_ns < self.end_ns { next_ns } else { i64::MAX }
    }

    /// Takes the next query of `source` if its time has come.
    pub fn take(&mut self, now_ns: i64, source: &mut Source) -> Option<Due> {
        let at_ns = self.next_due_ns();
        if at_ns > now_ns {
            return None;
        }
        if let (Kind::Stream { start_ns, next_ns }, Source::Captured(captured)) = (&mut self.kind, source) {
            let latest_ns = now_ns.min(self.end_ns - 1) - *start_ns;
            let taken = captured.take(latest_ns);
            *next_ns = captured.next_due_ns().saturating_add(*start_ns);
            return taken.map(|Taken { due_ns, client, place }| Due {
                at_ns: *start_ns + due_ns,
                client: Some(client),
                query: place,
            });
        }
        match &mut self.kind {
            Kind::Even { next, step, .. } => *next += *step,
            Kind::Poisson { next_ns, mean_gap_ns, random } => *next_ns += *mean_gap_ns * exponential(random),
            Kind::Windows { free_ns } => {
                free_ns.pop_front();
            }
            Kind::Stream { .. } => return None,
        }
        Some(Due { at_ns, client: None, query: self.order.take() })
    }

    /// Takes in that a query ended: with outstanding queries the next is due at that moment.
    pub fn ended(&mut self, ended_ns: i64) {
        if let Kind::Windows { free_ns } = &mut self.kind {
            // Mostly the last; a lost query ends at its timeout, which is yet to come, and must not keep others
            // waiting.
            let place = free_ns.partition_point(|free_ns| *free_ns <= ended_ns);
            free_ns.insert(place, ended_ns);
        }
    }

    /// Ends the period earlier.
    pub fn cut(&mut self, end_ns: i64) {
        self.end_ns = self.end_ns.min(end_ns);
    }

    /// Whether somebody reads the queries, who may be late with it: what is due then is not there to be taken.
    pub fn is_read_ahead(&self) -> bool {
        matches!(self.kind, Kind::Stream { .. })
    }

    /// Whether a query that ends makes another one due.
    pub fn is_closed_loop(&self) -> bool {
        matches!(self.kind, Kind::Windows { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALONE: Part = Part { thread: 0, threads: 1 };

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
        let mut due_ns: Vec<i64> =
            (0..3).flat_map(|thread| all(arrivals(model, Part { thread, threads: 3 }, 0, 1_000_000_000))).collect();
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
        let count = |thread| all(arrivals(Model::Outstanding(5), Part { thread, threads: 3 }, 0, 9)).len();
        assert_eq!([0, 1, 2].map(count), [2, 2, 1]);
    }
    #[test]
    fn queries_come_in_their_order_and_the_first_after_the_last() {
        let mut arrivals = arrivals(Model::Outstanding(4), ALONE, 0, 9);
        let due: Vec<_> = std::iter::from_fn(|| arrivals.take(0, &mut Source::none())).collect();
        assert_eq!(due, [1, 2, 0, 1].map(|query| Due { at_ns: 0, client: None, query }));
        assert_eq!(arrivals.order, Order { next: 2, count: 3 });
    }
}
