//! Hands the complete intervals of a thread over to the one that collects, of which only so many may wait there.
//!
//! Who collects writes files and events, and may be slow; the thread neither waits nor takes memory for that. What
//! would be too much is put together: its queries stay in the summary, and no interval of its own is told of it.

use std::sync::mpsc::{Receiver, Sender};

use super::{
    client_totals::ClientTotals,
    interval_stats::{Interval, IntervalStats},
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
    pub connections: Connections,
    pub sending_ns: i64,
    pub real_time: bool,
    /// Of the intervals that had no room, together.
    pub rest: Option<Box<Interval>>,
    /// How many intervals there were, those among them.
    pub intervals: u64,
    /// What clients saw, where intervals do not say it.
    pub clients: Option<ClientTotals>,
}

/// The thread's side.
pub struct Handover {
    thread: usize,
    reports: Sender<(usize, Report)>,
    /// Intervals that come back to be used again.
    spare: Receiver<Box<Interval>>,
    waiting: usize,
    /// What had no room.
    rest: Option<Box<Interval>>,
    /// How many were complete in this period.
    count: u64,
}

impl Handover {
    /// Of the thread with this number.
    pub fn new(thread: usize, reports: Sender<(usize, Report)>, spare: Receiver<Box<Interval>>) -> Self {
        Handover { thread, reports, spare, waiting: 0, rest: None, count: 0 }
    }

    /// Gives complete intervals away and takes used ones back; `next_due_ns` is when the next query falls due.
    pub fn give(&mut self, interval_stats: &mut IntervalStats, next_due_ns: i64) {
        while let Ok(interval) = self.spare.try_recv() {
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
    pub fn tell(&self, report: Report) {
        let _ = self.reports.send((self.thread, report));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

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
        let ((reports, collected), (give_back, spare)) = (channel(), channel());
        let mut interval_stats = IntervalStats::new(0, 1_000 * MS, MS, 1);
        let mut handover = Handover::new(3, reports, spare);
        worked(&mut interval_stats, 0, 500);
        handover.give(&mut interval_stats, 500 * MS);
        let taken: Vec<_> = collected.try_iter().collect();
        assert_eq!(taken.len(), WAITING_MAX);
        // Half of them are used, and as many find room again.
        for (thread, report) in taken.into_iter().take(WAITING_MAX / 2) {
            let Report::Interval(interval) = report else { panic!("an interval") };
            assert_eq!((thread, interval.counts.due), (3, 1));
            give_back.send(interval).unwrap();
        }
        worked(&mut interval_stats, 500, 500);
        handover.give(&mut interval_stats, i64::MAX);
        assert_eq!(collected.try_iter().count(), WAITING_MAX / 2);
        let (rest, count) = handover.end();
        assert_eq!((rest.unwrap().counts.due, count), (1_000 - 96, 1_000));
    }
}
