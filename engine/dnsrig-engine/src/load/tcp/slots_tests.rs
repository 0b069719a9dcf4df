use proptest::prelude::*;

use dnsrig_testing::inputs;

use super::*;

const TIMEOUT_NS: i64 = 100;
const BURST: usize = 16;
const KEPT: Usage = Usage { per_connection: 0, idle_ns: 0, resumption: false, early_data: false };

fn of_classes(count: usize, classes: &[Usage]) -> Slots {
    Slots::new(count, Policy { classes: classes.to_vec(), burst: BURST, timeout_ns: TIMEOUT_NS })
}

fn slots(count: usize, per_connection: u32) -> Slots {
    of_classes(count, &[Usage { per_connection, ..KEPT }])
}

/// Opens a connection in `slot`, at time 0, on which `count` queries were put.
fn open(slots: &mut Slots, slot: usize, count: usize) {
    slots.began(slot, 0);
    slots.took(slot, count, 0);
    slots.established(slot, false, 0);
}

#[test]
fn slots_take_turns() {
    let mut slots = slots(3, 0);
    for expected in [0, 1, 2, 0, 1] {
        let slot = slots.turn(None).unwrap();
        assert_eq!(slot, expected);
        if slots.state(slot) == State::Idle {
            open(&mut slots, slot, 1);
        } else {
            slots.took(slot, BURST, 1);
        }
    }
    assert_eq!(slots.connections(), [Connections { attempted: 3, established: 3, open: 3, ..Connections::default() }]);
}

#[test]
fn a_connection_that_is_being_opened_comes_after_those_that_are_not() {
    let mut slots = slots(2, 0);
    slots.began(0, 0);
    slots.took(0, 1, 0);
    assert_eq!(slots.turn(None), Some(1), "it can begin at once");
    slots.began(1, 0);
    slots.took(1, 1, 0);
    assert_eq!(slots.turn(None), Some(0), "all are being opened");
    slots.established(1, false, 5);
    assert_eq!(slots.turn(None), Some(1));
    slots.set_blocked(1, true, 6);
    assert_eq!(slots.turn(None), Some(0), "there is no room in the socket of the other");
    assert_eq!([0, 1].map(|client| slots.turn(Some(client))), [Some(0), None], "a client that is named, if it can");
    slots.filled(0);
    assert_eq!((slots.turn(None), slots.taking()), (None, 0));
    assert_eq!(slots.established(0, true, 9), 0);
    assert_eq!((slots.turn(None), slots.connections()[0].resumed), (Some(0), 1));
    slots.set_blocked(1, false, 9);
    assert_eq!(slots.taking(), 2);
}

#[test]
fn what_the_other_side_ends_is_counted_with_its_lifetime_if_it_was_open() {
    let mut slots = slots(2, 0);
    open(&mut slots, 0, 1);
    slots.began(1, 0);
    assert_eq!(slots.connections()[0].open, 1);
    for (slot, reason) in [(0, CloseReason::Closed), (1, CloseReason::Refused)] {
        slots.lost(slot, reason, 5_000_000);
        slots.ended(slot, false);
    }
    let counts = slots.connections()[0];
    assert_eq!((counts.open, counts.ended.closed, counts.ended.refused, counts.ended.total()), (0, 1, 1, 2));
    assert_eq!((slots.lifetimes_us().len(), slots.lifetimes_us().max() / 100), (1, 50));
    open(&mut slots, 0, 1);
    slots.ended(0, false);
    assert_eq!((slots.connections()[0].ended.total(), slots.lifetimes_us().len()), (2, 1), "this side closed it");
}

#[test]
fn a_used_up_connection_takes_no_more_until_it_is_closed() {
    let mut slots = slots(1, 20);
    assert_eq!(slots.room(0), BURST);
    open(&mut slots, 0, BURST);
    assert_eq!((slots.room(0), slots.is_used_up(0)), (4, false));
    slots.took(0, 4, 30);
    assert!(slots.is_used_up(0) && slots.turn(None).is_none());
    slots.ended(0, false);
    assert_eq!((slots.turn(None), slots.room(0), slots.connections()[0].failed), (Some(0), BURST, 0));
}

#[test]
fn a_used_up_connection_without_answers_is_closed_after_a_timeout() {
    let mut slots = slots(1, 1);
    open(&mut slots, 0, 0);
    slots.took(0, 1, 30);
    assert_eq!(slots.overdue(129, |_| 1), None);
    assert_eq!(slots.overdue(130, |_| 1), None, "nobody has looked yet");
    assert_eq!(slots.overdue(131, |_| 0), Some(0));
    slots.ended(0, false);
    assert_eq!(slots.overdue(131, |_| 0), None);
}

#[test]
fn a_connection_that_does_not_open_gets_no_new_queries_after_a_timeout_and_is_closed() {
    let mut slots = slots(1, 0);
    slots.began(0, 0);
    slots.took(0, 1, 0);
    slots.took(0, 1, 60);
    assert_eq!(slots.turn(None), Some(0));
    assert_eq!(slots.overdue(100, |_| 1), None);
    assert_eq!(slots.turn(None), None, "the first query has timed out");
    assert_eq!(slots.overdue(199, |_| 0), None);
    assert_eq!(slots.overdue(200, |_| 0), Some(0));
    slots.ended(0, false);
    assert_eq!((slots.connections()[0].failed, slots.turn(None)), (1, Some(0)));
}

#[test]
fn a_connection_that_does_not_move_is_closed_and_one_that_moves_again_is_not() {
    let mut slots = slots(2, 0);
    open(&mut slots, 0, 1);
    open(&mut slots, 1, 1);
    slots.set_blocked(0, true, 10);
    slots.set_blocked(1, true, 10);
    slots.set_blocked(1, false, 50);
    assert_eq!(slots.overdue(110, |_| 0), Some(0));
    slots.ended(0, false);
    assert_eq!((slots.overdue(1_000, |_| 0), slots.connections()[0].failed), (None, 0));
}

#[test]
fn only_what_the_other_side_broke_has_failed() {
    let mut slots = slots(1, 0);
    for (is_open, broken, failed) in [(false, false, 1), (false, true, 2), (true, true, 3), (true, false, 3)] {
        slots.began(0, 0);
        if is_open {
            slots.established(0, false, 0);
        }
        slots.ended(0, broken);
        assert_eq!(slots.connections()[0].failed, failed);
    }
}

proptest! {
    #![proptest_config(inputs(256))]

    /// Whatever happens in whatever order, whoever's turn it is can take queries, and nothing is stuck for ever.
    #[test]
    fn a_turn_is_never_given_in_vain(
        per_connection in 0_u32..4,
        steps in prop::collection::vec((0_usize..4, 0_usize..7), 0..200),
    ) {
        let mut slots = slots(4, per_connection);
        let mut now_ns = 0;
        for (slot, step) in steps {
            let state = slots.state(slot);
            match step {
                0 | 1 => if let Some(slot) = slots.turn(None) {
                    let room = slots.room(slot);
                    prop_assert!(room > 0 && !slots.is_used_up(slot));
                    if slots.state(slot) == State::Idle {
                        slots.began(slot, now_ns);
                    }
                    slots.took(slot, room.min(step + 1), now_ns);
                },
                2 if state == State::Opening => { slots.established(slot, false, now_ns); }
                3 if state == State::Opening => slots.filled(slot),
                4 if state != State::Idle => slots.set_blocked(slot, now_ns % 2 == 0, now_ns),
                5 if state != State::Idle => slots.ended(slot, false),
                6 => now_ns += 37,
                _ => {}
            }
            while let Some(slot) = slots.overdue(now_ns, |slot| slot % 2) {
                slots.ended(slot, false);
            }
            prop_assert!(slots.taking() > 0 || (0..4).all(|slot| slots.state(slot) != State::Idle));
        }
        for _ in 0..3 {
            now_ns += TIMEOUT_NS;
            while let Some(slot) = slots.overdue(now_ns, |_| 0) {
                slots.ended(slot, false);
            }
        }
        prop_assert_eq!(slots.taking(), 4, "what does not take queries is closed in the end");
    }
}

#[test]
fn a_connection_without_room_takes_no_query_until_it_has_some() {
    let mut slots = slots(2, 0);
    open(&mut slots, 0, 1);
    slots.set_room(0, 3);
    assert_eq!((slots.room(0), slots.room(1), slots.lack_room()), (3, BURST, false));
    slots.set_room(0, 0);
    assert_eq!((slots.turn(Some(0)), slots.taking(), slots.lack_room()), (None, 1, true));
    slots.set_room(0, 1);
    assert_eq!((slots.turn(Some(0)), slots.taking(), slots.lack_room()), (Some(0), 2, false));
    slots.set_room(0, 0);
    slots.ended(0, false);
    assert_eq!((slots.room(0), slots.lack_room()), (BURST, false), "the next connection has room");
    open(&mut slots, 0, 1);
    assert_eq!([slots.supersede(0, 5), slots.supersede(0, 6)], [true, false]);
}

#[test]
fn an_idle_connection_is_closed_unless_it_waits_for_answers() {
    let mut slots = of_classes(2, &[Usage { idle_ns: 100, ..KEPT }]);
    for (slot, now_ns) in [(0, 0), (1, 50)] {
        slots.began(slot, now_ns);
        slots.took(slot, 1, now_ns);
        slots.established(slot, false, now_ns);
    }
    assert_eq!((slots.idle(99, |_| 0), slots.longest_unused()), (None, Some(0)));
    assert_eq!(slots.idle(100, |_| 1), None, "it waits for an answer, and is looked at again later");
    assert_eq!((slots.idle(150, |_| 0), slots.longest_unused()), (Some(1), Some(1)));
    slots.ended(1, false);
    assert_eq!((slots.idle(199, |_| 0), slots.idle(200, |_| 0)), (None, Some(0)));
    slots.took(0, 1, 200);
    assert_eq!(slots.idle(299, |_| 0), None);
}

#[test]
fn connections_are_used_as_the_class_of_their_client_has_it() {
    let idle = |idle_ns| Usage { idle_ns, ..KEPT };
    let mut slots = of_classes(3, &[idle(300), idle(100), Usage { per_connection: 1, ..KEPT }]);
    for slot in 0..3 {
        slots.set_class(slot, slot);
        open(&mut slots, slot, 1);
    }
    assert_eq!([0, 1, 2].map(|slot| slots.is_used_up(slot)), [false, false, true]);
    assert_eq!((slots.idle(99, |_| 0), slots.idle(100, |_| 0)), (None, Some(1)), "each class has its own limit");
    slots.took(0, 1, 150);
    slots.ended(1, false);
    assert_eq!((slots.class(1), slots.longest_unused()), (0, Some(2)), "the oldest of all classes");
    slots.ended(2, true);
    assert_eq!((slots.idle(449, |_| 0), slots.idle(450, |_| 0)), (None, Some(0)));
    let counted = slots.connections().iter().map(|counts| (counts.attempted, counts.established, counts.failed));
    assert_eq!(counted.collect::<Vec<_>>(), [(1, 1, 0), (1, 1, 0), (1, 1, 1)]);
}

#[test]
fn a_slot_is_one_clients_until_it_is_released() {
    let mut assignment = Assignment::new(2);
    let [seven, nine] = [7, 9].map(|client| assignment.assign(client).unwrap());
    assert!(seven != nine && assignment.is_full() && assignment.assign(11).is_none());
    assert_eq!((assignment.slot(7), assignment.client(nine)), (Some(seven), Some(9)));
    assignment.release(seven);
    assignment.release(seven);
    assert_eq!((assignment.slot(7), assignment.client(seven)), (None, None));
    assert_eq!((assignment.assign(11), assignment.is_full()), (Some(seven), true));
}

#[test]
fn a_client_has_another_slot_beside_one_that_was_detached() {
    let mut assignment = Assignment::new(2);
    let first = assignment.assign(7).unwrap();
    assignment.detach(first);
    assert_eq!((assignment.slot(7), assignment.client(first)), (None, Some(7)));
    let second = assignment.assign(7).unwrap();
    assignment.detach(first);
    assert_eq!((assignment.slot(7), assignment.is_full()), (Some(second), true));
    assignment.release(first);
    assert_eq!((assignment.slot(7), assignment.client(first), assignment.is_full()), (Some(second), None, false));
}
