//! What a schedule does at a later time. No clock.

use std::{cmp::Reverse, collections::BinaryHeap};

use super::secondaries::Job;

/// What is to be done at a later time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// A slot may open a connection again.
    Open(u32),
    /// A slot's connection and transfers may have been silent for too long.
    Check(u32),
    /// A zone may be asked for again.
    Retry(Job),
    /// The next round may begin.
    Round,
}

/// Timers in the order in which they fall due: at most one retry a zone, and two of each slot.
#[derive(Default)]
pub(super) struct Timers(BinaryHeap<Reverse<(i64, Timer)>>);

impl Timers {
    pub(super) fn add(&mut self, due_ns: i64, timer: Timer) {
        self.0.push(Reverse((due_ns, timer)));
    }

    /// The next that is due.
    pub(super) fn take(&mut self, now_ns: i64) -> Option<Timer> {
        let due = self.0.peek().is_some_and(|Reverse((due_ns, _))| *due_ns <= now_ns);
        due.then(|| self.0.pop()).flatten().map(|Reverse((_, timer))| timer)
    }

    pub(super) fn due_ns(&self) -> i64 {
        self.0.peek().map_or(i64::MAX, |Reverse((due_ns, _))| *due_ns)
    }
}
