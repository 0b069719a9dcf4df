//! Hands the complete intervals of a thread over to the one that collects, of which only so many may wait there.
//!
//! Who collects writes files and events, and may be slow; the thread neither waits nor takes memory for that. What
//! would be too much is put together: its queries stay in the summary, and no interval of its own is told of it.
//!
//! Both ways are rings whose sides never wait for each other, not even for a value that is being put in. The thread may
//! go before everything else on its CPU: if it waited for an ordinary one that is to run there, it would wait until the
//! kernel took the CPU from it.

use std::thread::{self, Thread};

use rtrb::{Consumer, Producer, RingBuffer};

use super::{
    client_totals::ClientTotals,
    interval_stats::{Interval, IntervalStats},
    priority::Priority,
    rows::Rows,
    transport::Connections,
};

/// So many intervals of a thread may wait, about half a megabyte each.
const WAITING_MAX: usize = 64;

/// What a thread tells.
pub enum Report {
    /// An interval is complete.
    Interval(Box<Interval>),
    /// The period is over and every query has ended.
    Ended(Ended),
}

/// What is left to say of a period.
pub struct Ended {
    /// By class of clients.
    pub connections: Vec<Connections>,
    pub sending_ns: i64,
    pub priority: Priority,
    /// The time in which the thread was to run and had no CPU.
    pub cpu_wait_ns: i64,
    /// Of the intervals that had no room, together.
    pub rest: Option<Box<Interval>>,
    /// How many intervals there were, those among them.
    pub intervals: u64,
    /// What clients saw, where intervals do not say it.
    pub clients: Option<ClientTotals>,
    /// Of queries, where they are wanted.
    pub rows: Option<Rows>,
}

/// The thread's side.
pub struct Handover {
    reports: Producer<Report>,
    /// Who is woken when there is something to collect.
    collector: Thread,
    /// Intervals that come back to be used again.
    spare: Consumer<Box<Interval>>,
    waiting: usize,
    /// What had no room.
    rest: Option<Box<Interval>>,
    /// How many were complete in this period.
    count: u64,
}

/// The side of the one that collects.
pub struct Collected {
    pub reports: Consumer<Report>,
    spare: Producer<Box<Interval>>,
}

/// Both sides; the thread that calls is the one that collects. It may park until there is something.
pub fn handover() -> (Handover, Collected) {
    // The intervals that wait, and the end of the period.
    let (give, reports) = RingBuffer::new(WAITING_MAX + 1);
    let (give_back, spare) = RingBuffer::new(WAITING_MAX);
    let handover = Handover { reports: give, collector: thread::current(), spare, waiting: 0, rest: None, count: 0 };
    (handover, Collected { reports, spare: give_back })
}

impl Collected {
    /// Gives an interval back to be used again.
    pub fn give_back(&mut self, interval: Box<Interval>) {
        // There is room for as many as may wait.
        let _ = self.spare.push(interval);
    }
}

impl Handover {
    /// Gives complete intervals away and takes used ones back; `next_due_ns` is when the next query falls due.
    pub fn give(&mut self, interval_stats: &mut IntervalStats, next_due_ns: i64) {
        while let Ok(interval) = self.spare.pop() {
            self.waiting -= 1;
            interval_stats.reuse(interval);
        }
        while let Some(interval) = interval_stats.complete(next_due_ns) {
            self.count += 1;
            if self.waiting < WAITING_MAX {
                self.waiting += 1;
                self.tell(Report::Interval(interval));
            } else if let Some(rest) = &mut self.rest {
                rest.add(&interval, 0);
                rest.busy_ns += interval.busy_ns;
                interval_stats.reuse(interval);
            } else {
                self.rest = Some(interval);
            }
        }
    }

    /// At the end of a period: what had no room, and how many intervals were complete.
    pub fn end(&mut self) -> (Option<Box<Interval>>, u64) {
        (self.rest.take(), std::mem::take(&mut self.count))
    }

    /// Tells something; nobody listens only when the whole process ends.
    pub fn tell(&mut self, report: Report) {
        let _ = self.reports.push(report);
        self.collector.unpark();
    }
}

#[cfg(test)]
mod tests {
    use std::iter;

    use super::*;

    const MS: i64 = 1_000_000;

    /// What a thread counted after `count` intervals of a millisecond, with a query each.
    fn worked(interval_stats: &mut IntervalStats, from: i64, count: i64) {
        for number in from..from + count {
            interval_stats.given_up(number * MS);
        }
    }

    #[test]
    fn no_more_wait_than_may_and_nothing_is_lost() {
        let (mut handover, mut collected) = handover();
        let mut interval_stats = IntervalStats::new(0, 1_000 * MS, MS, 1);
        worked(&mut interval_stats, 0, 500);
        handover.give(&mut interval_stats, 500 * MS);
        let taken: Vec<_> = iter::from_fn(|| collected.reports.pop().ok()).collect();
        assert_eq!(taken.len(), WAITING_MAX);
        // Half of them are used, and as many find room again.
        for report in taken.into_iter().take(WAITING_MAX / 2) {
            let Report::Interval(interval) = report else { panic!("an interval") };
            assert_eq!(interval.counts.due, 1);
            collected.give_back(interval);
        }
        worked(&mut interval_stats, 500, 500);
        handover.give(&mut interval_stats, i64::MAX);
        assert_eq!(iter::from_fn(|| collected.reports.pop().ok()).count(), WAITING_MAX / 2);
        let (rest, count) = handover.end();
        assert_eq!((rest.unwrap().counts.due, count), (1_000 - 96, 1_000));
    }
}
