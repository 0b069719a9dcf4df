//! Whom to tell of which change, and when again (RFC 1996). No socket and no clock: times are given.

use super::{
    primary::Period,
    shape::{Shape, Zone},
};
use crate::net::outstanding::Outstanding;

/// So many NOTIFYs may wait for their answers: a quarter of the ids.
const PENDING_MAX: u32 = 16_384;

/// An answer is waited for so long. RFC 1996 §3.6 recommends a minute, in which a measurement would be over.
const RETRY_NS: i64 = 1_000_000_000;

/// After the first, a NOTIFY is sent so many times more (RFC 1996 §3.6).
const RETRIES_MAX: u8 = 5;

/// With so many changes not told of, those before the newest are passed over.
const BACKLOG_MAX: u64 = 65_536;

/// A NOTIFY that is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notify {
    pub id: u16,
    /// The number of the one to tell.
    pub to: u32,
    /// What changed.
    pub zone: Zone,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    to: u32,
    zone: Zone,
    retries: u8,
    due_ns: i64,
}

/// How many NOTIFY messages there were, and what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct NotifyCounts {
    /// Messages sent, retries among them.
    pub sent: u64,
    pub retries: u64,
    pub answered: u64,
    /// Given up: every retry is over.
    pub unanswered: u64,
    /// Changes that came faster than they could be told of, or may be: those of a catalog are told of together.
    pub changes_skipped: u64,
}

/// Those to one secondary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SecondaryNotifyCounts {
    pub sent: u32,
    pub answered: u32,
}

/// Tells secondaries of every change of a zone. Of a catalog, which changes again and again, it tells of the newest
/// version, at most once in an interval.
pub struct Notifier {
    catalog_interval_ns: i64,
    /// The change that is told of, and the next one to tell of it.
    change: u64,
    to: u32,
    /// When the catalog may be told of again.
    next_ns: i64,
    /// All wait equally long, so the oldest one is the first to be sent again.
    pending: Outstanding<Pending>,
    /// What was counted so far.
    pub counts: NotifyCounts,
    /// Of it, each one's.
    pub each: Box<[SecondaryNotifyCounts]>,
}

impl Notifier {
    /// Tells `count` of them.
    pub fn new(count: usize, catalog_interval_ns: i64) -> Self {
        Notifier {
            catalog_interval_ns,
            change: 0,
            to: 0,
            next_ns: i64::MIN,
            pending: Outstanding::new(PENDING_MAX),
            counts: NotifyCounts::default(),
            each: vec![SecondaryNotifyCounts::default(); count].into(),
        }
    }

    /// The next NOTIFY to send at `now_ns`; none if there is nothing to tell yet.
    pub fn next(&mut self, shape: &Shape, period: &Period, now_ns: i64) -> Option<Notify> {
        if let Some(again) = self.again(now_ns) {
            return Some(again);
        }
        let changes = shape.changes_until(period.elapsed_ns(now_ns));
        if self.each.is_empty() || self.is_full() || self.change >= changes {
            return None;
        }
        let (behind, is_catalog) = (changes - self.change, shape.changes.churn.is_some());
        if self.to == 0 {
            if is_catalog && now_ns < self.next_ns {
                return None;
            }
            if is_catalog || behind > BACKLOG_MAX {
                self.counts.changes_skipped += behind - 1;
                self.change = changes - 1;
            }
            self.next_ns = now_ns + self.catalog_interval_ns;
        }
        let (zone, _) = shape.changed_by(self.change);
        let pending = Pending { to: self.to, zone, retries: 0, due_ns: now_ns + RETRY_NS };
        let id = self.pending.add(pending).expect("fewer are pending than there are ids");
        self.to += 1;
        if self.to as usize == self.each.len() {
            self.to = 0;
            self.change += 1;
        }
        Some(self.sent(id, pending))
    }

    /// The next one that was not answered in its time.
    fn again(&mut self, now_ns: i64) -> Option<Notify> {
        while let Some((id, mut pending)) = self.pending.oldest().filter(|(_, pending)| pending.due_ns <= now_ns) {
            if pending.retries == RETRIES_MAX {
                self.pending.end(id);
                self.counts.unanswered += 1;
                continue;
            }
            (pending.retries, pending.due_ns) = (pending.retries + 1, now_ns + RETRY_NS);
            self.pending.renew(id, pending);
            self.counts.retries += 1;
            return Some(self.sent(id, pending));
        }
        None
    }

    /// Counts a NOTIFY that is to be sent.
    fn sent(&mut self, id: u16, Pending { to, zone, .. }: Pending) -> Notify {
        self.counts.sent += 1;
        self.each[to as usize].sent += 1;
        Notify { id, to, zone }
    }

    fn is_full(&self) -> bool {
        self.pending.len() >= PENDING_MAX as usize
    }

    /// Whom the NOTIFY with this id was sent to, if it waits for an answer.
    pub fn asked(&self, id: u16) -> Option<u32> {
        self.pending.get(id).map(|pending| pending.to)
    }

    /// The one that was asked answered, whatever it said.
    pub fn answer(&mut self, id: u16) {
        if let Some(pending) = self.pending.get(id) {
            self.pending.end(id);
            self.counts.answered += 1;
            self.each[pending.to as usize].answered += 1;
        }
    }

    /// When there is something to do again: the time of the next change, or of a NOTIFY without an answer.
    pub fn due_ns(&self, shape: &Shape, period: &Period) -> Option<i64> {
        let change_ns = shape.change_ns(self.change).and_then(|elapsed_ns| period.time_ns(elapsed_ns));
        let change_ns = change_ns.filter(|_| !self.is_full() && !self.each.is_empty());
        let is_held = shape.changes.churn.is_some() && self.to == 0;
        let change_ns = change_ns.map(|due_ns| if is_held { due_ns.max(self.next_ns) } else { due_ns });
        let retry_ns = self.pending.oldest().map(|(_, pending)| pending.due_ns);
        [change_ns, retry_ns].into_iter().flatten().min()
    }
}

#[cfg(test)]
#[path = "notify_tests.rs"]
mod tests;
