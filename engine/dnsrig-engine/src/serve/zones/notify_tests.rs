use super::*;
use crate::{dataset::churn::Churn, serve::zones::shape::tests::shape};

const SECOND_NS: i64 = 1_000_000_000;

/// The catalog is told of at most so often.
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
    let expected: Vec<_> = [0, 1, 0, 1].iter().flat_map(|zone| (0..3).map(|to| (Zone::Member(*zone), to))).collect();
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
    // The last change, 5 ms before the end, is told of in its turn, and then nothing.
    let end_ns = period.end(|| now_ns + 15_000_000, 0x1);
    assert_eq!(notifier.due_ns(&shape, &period), Some(now_ns + INTERVAL_NS));
    assert_eq!(all(&mut notifier, &shape, &period, now_ns + INTERVAL_NS).len(), 2);
    notifier.pending.clear();
    assert_eq!((notifier.due_ns(&shape, &period), end_ns > now_ns), (None, true));
    assert_eq!(notifier.counts.changes_skipped + notifier.counts.sent / 2, notifier.change);
}
