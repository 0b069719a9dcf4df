use super::*;
use crate::serve::zones::shape::tests::shape;

const SECOND_NS: i64 = 1_000_000_000;

/// Two zones, of which one changes each second, in turn.
fn changing() -> Shape {
    let mut shape = shape(2, 4);
    shape.changes.per_s = 1.0;
    shape
}

fn all(notifier: &mut Notifier, shape: &Shape, now_ns: i64) -> Vec<Notify> {
    std::iter::from_fn(|| notifier.next(shape, now_ns)).collect()
}

#[test]
fn everyone_is_told_of_every_change_once_if_all_answer() {
    let shape = changing();
    let mut notifier = Notifier::new(3, 7);
    assert_eq!((all(&mut notifier, &shape, 7), notifier.due_ns(&shape)), (vec![], Some(7 + SECOND_NS)));
    let mut told = Vec::new();
    for second in 1..=4 {
        for notify in all(&mut notifier, &shape, 7 + second * SECOND_NS) {
            assert_eq!(notifier.asked(notify.id), Some(notify.to));
            notifier.answer(notify.id);
            told.push((notify.zone, notify.to));
        }
    }
    let expected: Vec<_> = [0, 1, 0, 1].iter().flat_map(|zone| (0..3).map(|to| (*zone, to))).collect();
    assert_eq!(told, expected);
    assert_eq!(notifier.told, Told { sent: 12, answered: 12, ..Told::default() });
}

#[test]
fn who_does_not_answer_is_told_again_and_then_given_up() {
    let mut shape = changing();
    let mut notifier = Notifier::new(1, 0);
    let first = all(&mut notifier, &shape, SECOND_NS);
    // No further change, only its retries.
    shape.changes.per_s = 1e-9;
    notifier.change = 0;
    let mut now_ns = SECOND_NS;
    for _ in 0..RETRIES_MAX {
        now_ns = notifier.due_ns(&shape).unwrap();
        assert_eq!(all(&mut notifier, &shape, now_ns - 1), []);
        assert_eq!(all(&mut notifier, &shape, now_ns), first);
    }
    assert_eq!(all(&mut notifier, &shape, now_ns + RETRY_NS), []);
    assert_eq!(notifier.asked(first[0].id), None);
    let sent = 1 + u64::from(RETRIES_MAX);
    assert_eq!(notifier.told, Told { sent, retries: RETRIES_MAX.into(), unanswered: 1, ..Told::default() });
}

#[test]
fn what_waits_is_bounded_and_goes_on_when_there_is_room() {
    let mut shape = changing();
    shape.changes.per_s = 1e5;
    let mut notifier = Notifier::new(1, 0);
    let first = all(&mut notifier, &shape, SECOND_NS / 2);
    assert_eq!(first.len(), PENDING_MAX);
    assert_eq!(notifier.due_ns(&shape), Some(SECOND_NS / 2 + RETRY_NS), "changes alone do not wake us");
    first.iter().take(10).for_each(|notify| notifier.answer(notify.id));
    assert_eq!(all(&mut notifier, &shape, SECOND_NS / 2).len(), 10);
}

#[test]
fn changes_that_come_too_fast_are_skipped_but_the_newest_is_told() {
    let mut shape = changing();
    shape.changes.per_s = 1e6;
    let mut notifier = Notifier::new(1, 0);
    let notify = notifier.next(&shape, SECOND_NS).unwrap();
    assert_eq!(notify.zone, shape.changed_by(999_999));
    assert_eq!(notifier.told.changes_skipped, 999_999);
}

#[test]
fn an_old_answer_ends_no_newer_notify() {
    let shape = changing();
    let mut notifier = Notifier::new(1, 0);
    let first = all(&mut notifier, &shape, SECOND_NS)[0];
    notifier.answer(first.id);
    notifier.answer(first.id);
    assert_eq!(notifier.told.answered, 1);
}
