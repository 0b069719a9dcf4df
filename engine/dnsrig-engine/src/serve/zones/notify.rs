//! Which secondaries to notify of which change, and when to repeat it (RFC 1996). No socket and no clock.

use dnsrig_net::outstanding::{OUTSTANDING_MAX, Outstanding};

use super::{
    primary::Period,
    shape::{Shape, Zone},
};

/// The most NOTIFYs that wait for their answers: a quarter of the ids, so an id is used again only after many others.
const PENDING_MAX: u32 = 16_384;

/// The time to wait for an answer. RFC 1996 §3.6 recommends a minute, but a measurement would be over by then.
const RETRY_NS: i64 = 1_000_000_000;

/// The number of times that a NOTIFY is sent again (RFC 1996 §3.6).
const RETRIES_MAX: u8 = 5;

/// If more changes than this wait for a NOTIFY, all but the newest are passed over.
const BACKLOG_MAX: u64 = 65_536;

/// A NOTIFY that is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notify {
    pub id: u16,
    /// The number of the secondary to notify.
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

/// Counts of NOTIFY messages by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct NotifyCounts {
    /// Messages sent, retries among them.
    pub sent: u64,
    pub retries: u64,
    pub answered: u64,
    /// Given up: every retry is over.
    pub unanswered: u64,
    /// Changes without a NOTIFY of their own: they came too fast, or are changes of a catalog, which share one.
    pub changes_skipped: u64,
}

/// The NOTIFY messages to one secondary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SecondaryNotifyCounts {
    pub sent: u32,
    pub answered: u32,
}

/// Decides which NOTIFY messages are sent: to all secondaries for every change of a zone, and at most once in an
/// interval for the newest version of a catalog, which changes again and again.
pub struct Notifier {
    catalog_interval_ns: i64,
    /// The change that NOTIFY messages are sent for, and the next secondary to notify.
    change: u64,
    to: u32,
    /// When a NOTIFY for the catalog may be sent again.
    next_ns: i64,
    /// All wait equally long, so the oldest one is the first to be sent again.
    pending: Outstanding<Pending>,
    /// What was counted so far.
    pub counts: NotifyCounts,
    /// The counts of each secondary.
    pub each: Box<[SecondaryNotifyCounts]>,
}

impl Notifier {
    /// Notifies `count` secondaries.
    pub fn new(count: usize, catalog_interval_ns: i64) -> Self {
        Notifier {
            catalog_interval_ns,
            change: 0,
            to: 0,
            next_ns: i64::MIN,
            pending: Outstanding::new(OUTSTANDING_MAX),
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
mod tests {
    use super::*;
    use crate::{dataset::churn::Churn, serve::zones::shape::tests::shape};

    const SECOND_NS: i64 = 1_000_000_000;

    /// The shortest time between two NOTIFY messages for the catalog.
    const INTERVAL_NS: i64 = SECOND_NS / 10;

    /// Two zones, of which one changes each second, in turn.
    fn changing() -> Shape {
        let mut shape = shape(2, 4);
        shape.changes.per_s = 1.0;
        shape
    }

    /// A catalog that changes a hundred times a second.
    fn churning() -> Shape {
        let mut shape = shape(1000, 4);
        shape.changes.per_s = 100.0;
        shape.changes.churn = Churn::new(1000, 0, 10);
        shape
    }

    fn all(notifier: &mut Notifier, shape: &Shape, period: &Period, now_ns: i64) -> Vec<Notify> {
        std::iter::from_fn(|| notifier.next(shape, period, now_ns)).collect()
    }

    #[test]
    fn everyone_is_told_of_every_change_once_if_all_answer() {
        let shape = changing();
        let (mut notifier, period) = (Notifier::new(3, 0), Period::since(7));
        let due_ns = notifier.due_ns(&shape, &period);
        assert_eq!((all(&mut notifier, &shape, &period, 7), due_ns), (vec![], Some(7 + SECOND_NS)));
        let mut told = Vec::new();
        for second in 1..=4 {
            for notify in all(&mut notifier, &shape, &period, 7 + second * SECOND_NS) {
                assert_eq!(notifier.asked(notify.id), Some(notify.to));
                notifier.answer(notify.id);
                told.push((notify.zone, notify.to));
            }
        }
        let expected: Vec<_> =
            [0, 1, 0, 1].iter().flat_map(|zone| (0..3).map(|to| (Zone::Member(*zone), to))).collect();
        assert_eq!(told, expected);
        assert_eq!(notifier.counts, NotifyCounts { sent: 12, answered: 12, ..NotifyCounts::default() });
        assert_eq!(*notifier.each, [SecondaryNotifyCounts { sent: 4, answered: 4 }; 3]);
    }

    #[test]
    fn who_does_not_answer_is_told_again_and_then_given_up() {
        let mut shape = changing();
        let (mut notifier, period) = (Notifier::new(1, 0), Period::since(0));
        let first = all(&mut notifier, &shape, &period, SECOND_NS);
        // No further change, only its retries.
        shape.changes.per_s = 1e-9;
        notifier.change = 0;
        let mut now_ns = SECOND_NS;
        for _ in 0..RETRIES_MAX {
            now_ns = notifier.due_ns(&shape, &period).unwrap();
            assert_eq!(all(&mut notifier, &shape, &period, now_ns - 1), []);
            assert_eq!(all(&mut notifier, &shape, &period, now_ns), first);
        }
        assert_eq!(all(&mut notifier, &shape, &period, now_ns + RETRY_NS), []);
        assert_eq!(notifier.asked(first[0].id), None);
        let sent = 1 + u64::from(RETRIES_MAX);
        assert_eq!(
            notifier.counts,
            NotifyCounts { sent, retries: RETRIES_MAX.into(), unanswered: 1, ..NotifyCounts::default() }
        );
    }

    #[test]
    fn what_waits_is_bounded_and_goes_on_when_there_is_room() {
        let mut shape = changing();
        shape.changes.per_s = 1e5;
        let (mut notifier, period) = (Notifier::new(1, 0), Period::since(0));
        let first = all(&mut notifier, &shape, &period, SECOND_NS / 2);
        assert_eq!(first.len(), PENDING_MAX as usize);
        assert_eq!(notifier.due_ns(&shape, &period), Some(SECOND_NS / 2 + RETRY_NS), "changes alone do not wake us");
        first.iter().take(10).for_each(|notify| notifier.answer(notify.id));
        assert_eq!(all(&mut notifier, &shape, &period, SECOND_NS / 2).len(), 10);
    }

    #[test]
    fn changes_that_come_too_fast_are_skipped_but_the_newest_is_told() {
        let mut shape = changing();
        shape.changes.per_s = 1e6;
        let mut notifier = Notifier::new(1, 0);
        let notify = notifier.next(&shape, &Period::since(0), SECOND_NS).unwrap();
        assert_eq!(notify.zone, shape.changed_by(999_999).0);
        assert_eq!(notifier.counts.changes_skipped, 999_999);
    }

    #[test]
    fn an_old_answer_ends_no_newer_notify() {
        let shape = changing();
        let mut notifier = Notifier::new(1, 0);
        let first = all(&mut notifier, &shape, &Period::since(0), SECOND_NS)[0];
        notifier.answer(first.id);
        notifier.answer(first.id);
        assert_eq!(notifier.counts.answered, 1);
    }

    #[test]
    fn a_catalog_is_told_of_at_most_once_in_an_interval_and_never_not_at_all() {
        let (shape, period) = (churning(), Period::new());
        let mut notifier = Notifier::new(2, INTERVAL_NS);
        assert_eq!((all(&mut notifier, &shape, &period, SECOND_NS), notifier.due_ns(&shape, &period)), (vec![], None));
        period.begin(SECOND_NS);
        let mut told_ns = Vec::new();
        let mut now_ns = SECOND_NS;
        while let Some(due_ns) = notifier.due_ns(&shape, &period).filter(|due_ns| *due_ns < 2 * SECOND_NS) {
            assert!(due_ns >= now_ns, "time goes on");
            now_ns = due_ns;
            for notify in all(&mut notifier, &shape, &period, now_ns) {
                assert_eq!(notify.zone, Zone::Catalog);
                notifier.answer(notify.id);
                told_ns.push(now_ns - SECOND_NS);
            }
        }
        let expected: Vec<_> = (0..10).flat_map(|nth| [SECOND_NS / 100 + nth * INTERVAL_NS; 2]).collect();
        assert_eq!(told_ns, expected, "both, from the first change on");
        // The last change, 5 ms before the end, gets its NOTIFY in its turn, and then there is nothing more to send.
        let end_ns = period.end(|| now_ns + 15_000_000, 0x1);
        assert_eq!(notifier.due_ns(&shape, &period), Some(now_ns + INTERVAL_NS));
        assert_eq!(all(&mut notifier, &shape, &period, now_ns + INTERVAL_NS).len(), 2);
        notifier.pending.clear();
        assert_eq!((notifier.due_ns(&shape, &period), end_ns > now_ns), (None, true));
        assert_eq!(notifier.counts.changes_skipped + notifier.counts.sent / 2, notifier.change);
    }
}
