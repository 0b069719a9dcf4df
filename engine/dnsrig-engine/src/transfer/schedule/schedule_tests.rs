use std::collections::HashMap;

use dnsrig_dns::xfr::{Answered, Cut, Outcome};
use dnsrig_net::outstanding::OUTSTANDING_MAX;
use dnsrig_testing::inputs;
use proptest::{option, prelude::*};

use super::{
    slots::Ended,
    virtual_primary::{MS, Manner, S, World, settings},
    *,
};
use crate::transfer::row_buffer::{Asked, TransferRow};

fn count(world: &World, outcome: Outcome) -> u64 {
    world.schedule.counters.outcomes[outcome as usize]
}

fn attempts(world: &World, outcome: Outcome) -> u64 {
    world.schedule.counters.attempt_outcomes[outcome as usize]
}

/// Each zone of each secondary has ended, once.
fn assert_all_ended(world: &mut World, secondaries: u32, zones: u32) -> Vec<TransferRow> {
    assert!(world.schedule.is_over(), "not over");
    let counters = &world.schedule.counters;
    let all = u64::from(secondaries) * u64::from(zones);
    assert_eq!(counters.outcomes.iter().sum::<u64>(), all);
    let done = counters.done() + counters.up_to_date();
    let each = world.schedule.secondaries().0.iter().map(|one| one.done + one.failed);
    assert!(each.clone().all(|ended| ended == u64::from(zones)), "{:?}", each.collect::<Vec<_>>());
    let rows = world.story().transfers;
    let mut good = HashMap::new();
    for row in rows.iter().filter(|row| row.outcome.is_good() && row.asked != Asked::Soa) {
        *good.entry((row.secondary, row.zone)).or_insert(0) += 1;
    }
    assert!(good.values().all(|times| *times == 1), "transferred again");
    assert!(good.len() as u64 <= done);
    rows
}

#[test]
fn a_slot_has_as_many_ids_at_hand_as_its_zones_need() {
    let settings = Settings { window: OUTSTANDING_MAX, ..settings() };
    let world = World::new(settings, 3, 10, Manner::default());
    assert!(world.schedule.slots.iter().all(|slot| slot.queries.ids_left() == 32));
}

#[test]
fn each_policy_brings_every_zone_with_the_connections_it_says() {
    for (policy, connections, expected) in [
        (Policy::One, 1, 50),
        (Policy::One, 5, 50),
        (Policy::Reused, 1, 1),
        (Policy::Reused, 5, 5),
        (Policy::Pipelined, 1, 1),
        (Policy::Pipelined, 5, 5),
    ] {
        let settings = Settings { policy, connections, ..settings() };
        let mut world = World::new(settings, 1, 50, Manner { messages_each: 3, ..Manner::default() });
        world.run(100 * S);
        assert_eq!(count(&world, Outcome::Done), 50, "{policy:?}");
        assert_eq!(world.connections, expected, "{policy:?}");
        assert_eq!(world.schedule.counters.totals.out_of_order + world.schedule.counters.totals.interleaved, 0);
        let rows = assert_all_ended(&mut world, 1, 50);
        assert!(rows.iter().all(|row| row.messages == 3 && row.records == 2 && row.foreign_messages == 0));
    }
}

#[test]
fn ids_are_used_again_beyond_65_536_zones_on_a_connection() {
    let settings = Settings { window: 500, ..settings() };
    let mut world = World::new(settings, 1, 70_000, Manner { delay_ns: 1, ..Manner::default() });
    world.run(i64::MAX - 1);
    assert_eq!((count(&world, Outcome::Done), world.connections), (70_000, 1));
}

#[test]
fn interleaved_answers_are_matched_and_counted() {
    let manner = Manner { interleaves: true, messages_each: 4, ..Manner::default() };
    let mut world = World::new(settings(), 1, 40, manner);
    world.run(100 * S);
    assert_eq!(count(&world, Outcome::Done), 40);
    let counters = &world.schedule.counters;
    assert!(counters.totals.interleaved >= 38, "{}", counters.totals.interleaved);
    assert_eq!(counters.totals.unmatched, 0);
    let rows = assert_all_ended(&mut world, 1, 40);
    assert!(rows.iter().any(|row| row.foreign_messages >= 20));
}

#[test]
fn a_limit_of_the_primary_is_met_with_patience() {
    let manner = Manner { limit: Some(8), ..Manner::default() };
    let mut world = World::new(settings(), 1, 40, manner);
    world.run(1_000 * S);
    let retries = world.schedule.counters.totals.retries;
    assert!(retries > 0 && attempts(&world, Outcome::Servfail) >= retries);
    assert!(world.queries <= 40 * 4, "no zone is asked for more often than allowed");
    assert_eq!(count(&world, Outcome::Done) + count(&world, Outcome::Servfail), 40);
    // Who was refused waited a second at least.
    let rows = assert_all_ended(&mut world, 1, 40);
    for row in rows.iter().filter(|row| row.attempt > 1) {
        assert!(row.asked_ns >= 2 * S, "{row:?}");
    }
}

#[test]
fn what_a_connection_takes_with_it_is_asked_for_again_and_no_retry_is_used_up() {
    for resets in [false, true] {
        let manner = Manner { close_after: Some(3), resets, ..Manner::default() };
        let mut world = World::new(Settings { retry: Retry { times: 0, after_ns: S }, ..settings() }, 1, 30, manner);
        world.run(100 * S);
        assert_eq!(count(&world, Outcome::Done), 30);
        let kind = if resets { Outcome::Reset } else { Outcome::Closed };
        assert_eq!(attempts(&world, kind), world.schedule.counters.totals.retries);
        assert!(attempts(&world, kind) >= 9 * 7, "all in the window, nearly each time");
        assert_all_ended(&mut world, 1, 30);
    }
}

#[test]
fn who_stands_in_the_middle_has_failed_and_the_others_have_not() {
    let manner = Manner { cut_after: Some(7), messages_each: 5, ..Manner::default() };
    let mut world = World::new(Settings { retry: Retry { times: 0, after_ns: S }, ..settings() }, 1, 20, manner);
    world.run(100 * S);
    // One comes whole on each connection, and the next has two messages.
    assert_eq!((count(&world, Outcome::Done), count(&world, Outcome::Cut)), (10, 10));
    assert_all_ended(&mut world, 1, 20);
}

#[test]
fn a_zone_that_ends_its_connection_takes_no_other_with_it() {
    for (interleaves, silent, poison) in [(false, None, Some(7)), (true, None, Some(7)), (true, Some(7), None)] {
        let manner = Manner { interleaves, silent, poison, ..Manner::default() };
        let mut world = World::new(settings(), 1, 50, manner);
        world.run(1_000 * S);
        let failure = if silent.is_some() { Outcome::TimedOut } else { Outcome::Closed };
        assert_eq!((count(&world, Outcome::Done), count(&world, failure)), (42, 8), "{silent:?}");
        assert_all_ended(&mut world, 1, 50);
    }
}

#[test]
fn a_wrong_answer_ends_its_zone_and_no_other() {
    let manner = Manner { wrong: Some(5), messages_each: 3, interleaves: true, ..Manner::default() };
    let mut world = World::new(settings(), 1, 50, manner);
    world.run(100 * S);
    assert_eq!((count(&world, Outcome::Done), count(&world, Outcome::SoaDifferent)), (40, 10));
    assert_eq!((world.queries, world.connections), (50, 1), "and is no reason to ask again");
}

#[test]
fn what_goes_on_without_end_ends_its_zone_and_no_other() {
    for (manner, outcome) in [
        (Manner { empty: Some(5), ..Manner::default() }, Outcome::NoProgress),
        (Manner { endless: Some(5), ..Manner::default() }, Outcome::TooLong),
    ] {
        for interleaves in [false, true] {
            let manner = Manner { interleaves, ..manner.clone() };
            let mut world = World::new(Settings { time_ns_max: 30 * S, ..settings() }, 1, 50, manner);
            world.run(1_000 * S);
            assert_eq!((count(&world, Outcome::Done), count(&world, outcome)), (40, 10));
            assert_eq!(attempts(&world, outcome), 10, "it is a result, and asked for once");
            assert_all_ended(&mut world, 1, 50);
        }
    }
}

#[test]
fn connections_that_stall_are_given_up_and_made_again() {
    let manner = Manner { stall_after: Some(25), ..Manner::default() };
    let mut world = World::new(settings(), 1, 100, manner);
    world.run(1_000 * S);
    assert_eq!(count(&world, Outcome::Done), 100);
    let story = world.story();
    assert!(story.connections.iter().filter(|row| row.ended == Ended::TimedOut).count() >= 3);
}

#[test]
fn nobody_there_is_an_outcome_of_every_zone() {
    for (manner, ended) in [
        (Manner { refuses: usize::MAX, ..Manner::default() }, Ended::Refused),
        (Manner { is_dead: true, ..Manner::default() }, Ended::TimedOut),
    ] {
        let settings = Settings { connections: 2, ..settings() };
        let mut world = World::new(settings, 3, 1_000, manner);
        world.run(1_000 * S);
        assert_eq!(count(&world, Outcome::NoConnection), 3_000);
        assert_eq!(world.connections, 3 * 2 * 4, "retries of each slot, after pauses");
        let story = world.story();
        assert!(story.connections.iter().all(|row| row.ended == ended && row.established_ns == 0));
        assert!(story.connections.iter().map(|row| row.begun_ns).max() >= Some(8 * S), "it waited 1 + 2 + 4 s");
    }
}

#[test]
fn a_secondary_goes_on_with_the_connections_that_are_left() {
    // The number of connections, of those that are refused, and of those that may be tried again.
    for (connections, refuses, times, expected) in [
        (2, 1, 0, Outcome::Done),
        (2, 2, 0, Outcome::NoConnection),
        (5, 4, 0, Outcome::Done),
        (1, 3, 3, Outcome::Done),
        (1, 4, 3, Outcome::NoConnection),
    ] {
        let settings = Settings { connections, retry: Retry { times, after_ns: S }, ..settings() };
        let mut world = World::new(settings, 1, 10, Manner { refuses, ..Manner::default() });
        world.run(100 * S);
        assert_eq!(count(&world, expected), 10, "{refuses} of {connections} refused, {times} retries");
        assert_all_ended(&mut world, 1, 10);
    }
}

#[test]
fn a_connection_whose_streams_are_used_up_was_fruitless_if_none_had_ended() {
    for (has_ended, fruitless) in [(true, 0), (false, 1)] {
        let settings = Settings { streams: true, ..settings() };
        let mut world = World::new(settings, 1, 10, Manner { silent: Some(1), ..Manner::default() });
        world.run(S + 10 * MS);
        let (id, _) = world.schedule.slots[0].queries.oldest().unwrap();
        if has_ended {
            world.schedule.stream_ended(0, id, Cut::Reset, world.now_ns);
        }
        world.schedule.lost(0, Ended::UsedUp, world.now_ns);
        assert_eq!(world.schedule.slots[0].fruitless, fruitless);
    }
}

#[test]
fn a_port_that_is_closed_for_udp_was_no_connection() {
    let manner = Manner { has_no_udp: true, ..Manner::default() };
    let mut world = World::new(Settings { soa: SoaFirst::Udp, ..settings() }, 1, 10, manner);
    world.run(1_000 * S);
    assert_eq!((count(&world, Outcome::NoConnection), count(&world, Outcome::Reset)), (10, 0));
    assert!(world.schedule.counters.connections.refused > 0);
}

#[test]
fn a_primary_that_comes_late_is_waited_for() {
    let mut world = World::new(settings(), 1, 10, Manner { refuses: 3, ..Manner::default() });
    world.run(100 * S);
    assert_eq!((count(&world, Outcome::Done), world.connections), (10, 4));
}

#[test]
fn the_soa_goes_first_where_it_is_asked_for() {
    for soa in [SoaFirst::Same, SoaFirst::Udp] {
        for policy in [Policy::One, Policy::Reused, Policy::Pipelined] {
            let mut world = World::new(Settings { soa, policy, ..settings() }, 2, 30, Manner::default());
            world.run(100 * S);
            assert_eq!(count(&world, Outcome::Done), 60, "{soa:?} {policy:?}");
            assert_eq!((world.queries, world.schedule.counters.totals.attempts), (120, 60));
            let rows = assert_all_ended(&mut world, 2, 30);
            let soas = rows.iter().filter(|row| row.asked == Asked::Soa && row.answered == Answered::Soa);
            assert_eq!(soas.count(), 60);
        }
    }
}

#[test]
fn a_serial_that_is_not_newer_saves_the_transfer() {
    for soa in [SoaFirst::Same, SoaFirst::Udp] {
        let mut world = World::new(Settings { soa, serial: Some(1), ..settings() }, 1, 30, Manner::default());
        world.run(100 * S);
        assert_eq!((count(&world, Outcome::UpToDate), world.queries), (30, 30));
        let mut world = World::new(Settings { soa, serial: Some(0), ..settings() }, 1, 30, Manner::default());
        world.run(100 * S);
        assert_eq!((count(&world, Outcome::Done), world.queries), (30, 60));
        assert!(assert_all_ended(&mut world, 1, 30).iter().all(|row| row.asked != Asked::Axfr));
    }
}

#[test]
fn a_lost_datagram_is_asked_for_again() {
    let manner = Manner { silent: Some(10), ..Manner::default() };
    let mut world = World::new(Settings { soa: SoaFirst::Udp, ..settings() }, 1, 30, manner);
    world.run(100 * S);
    assert_eq!((count(&world, Outcome::Done), count(&world, Outcome::TimedOut)), (27, 3));
    assert_eq!(attempts(&world, Outcome::TimedOut), 12);
}

#[test]
fn the_rate_is_kept() {
    let mut world = World::new(Settings { rate: Some(100.0), ..settings() }, 2, 100, Manner::default());
    world.run(100 * S);
    assert_eq!(count(&world, Outcome::Done), 200);
    let took_ns = world.schedule.counters.last_done_ns - S;
    assert!((1_950 * MS..2_100 * MS).contains(&took_ns), "{took_ns}");
}

#[test]
fn rounds_follow_each_other_until_time_is_over() {
    let mut world = World::new(Settings { repeat: true, ..settings() }, 2, 10, Manner::default());
    world.run(2 * S);
    let done = count(&world, Outcome::Done);
    assert!(done > 100 && world.connections == 2, "{done} on {}", world.connections);
    world.schedule.stop(world.now_ns);
    assert!(world.schedule.is_over());
    assert!(matches!(world.schedule.order(world.now_ns), Some(Order::Close(_))));
    let mut nobody =
        World::new(Settings { repeat: true, ..settings() }, 1, 10, Manner { refuses: 1_000_000, ..Manner::default() });
    nobody.run(100 * S);
    assert!(nobody.connections <= 100, "a primary that is not there is not hammered: {}", nobody.connections);
}

#[test]
fn a_notify_begins_a_transfer_and_those_that_come_meanwhile_one_more() {
    let mut world = World::new(Settings { on_notify: true, serial: Some(0), ..settings() }, 2, 10, Manner::default());
    world.run(2 * S);
    assert_eq!((world.queries, world.schedule.is_over()), (0, false));
    (0..3).for_each(|_| world.schedule.notify(1, 4, Some(1), 2 * S));
    world.schedule.notify(0, 4, None, 2 * S);
    world.now_ns = 2 * S;
    world.run(3 * S);
    // The second transfer of the same zone is asked for from the new serial.
    assert_eq!((world.queries, world.schedule.counters.totals.notifies), (3, 4));
    assert_eq!((world.schedule.left(), world.schedule.secondaries().0[1].notify_ns), (0, 2 * S));
    world.schedule.notify(1, 4, Some(1), 4 * S);
    world.run(5 * S);
    assert_eq!(world.queries, 3, "this serial it has");
}

#[test]
fn time_that_is_over_leaves_zones_unfinished() {
    let mut world = World::new(settings(), 1, 1_000, Manner::default());
    world.run(S + 100 * MS);
    world.schedule.stop(world.now_ns);
    let counters = &world.schedule.counters;
    assert!(counters.done() > 50 && counters.failed() == 0);
    assert_eq!(counters.done() + world.schedule.left(), 1_000);
}

fn manners() -> impl Strategy<Value = Manner> {
    let some = |range: std::ops::Range<usize>| option::weighted(0.3, range);
    let every = || option::weighted(0.3, 2..9_u32);
    (
        (1..50 * MS, 1..5_usize, any::<bool>(), any::<bool>()),
        (some(1..20), some(1..40), some(1..40), some(1..12)),
        (every(), every(), every(), every(), every(), 0..4_usize),
    )
        .prop_map(
            |((delay_ns, messages_each, interleaves, resets), (close_after, cut_after, stall_after, limit), rest)| {
                let (silent, wrong, poison, empty, endless, refuses) = rest;
                Manner {
                    delay_ns,
                    messages_each,
                    interleaves,
                    close_after,
                    cut_after,
                    resets,
                    stall_after,
                    limit,
                    silent,
                    wrong,
                    poison,
                    empty,
                    endless,
                    refuses,
                    is_dead: false,
                    has_no_udp: false,
                }
            },
        )
}

proptest! {
    #![proptest_config(inputs(1_000))]

    #[test]
    fn every_zone_ends_once_whatever_the_primary_does(
        manner in manners(),
        policy in prop_oneof![Just(Policy::One), Just(Policy::Reused), Just(Policy::Pipelined)],
        soa in prop_oneof![Just(SoaFirst::None), Just(SoaFirst::Same), Just(SoaFirst::Udp)],
        (window, connections, secondaries, zones) in (1..40_u32, 1..4_u32, 1..4_u32, 1..60_u32),
        times in 0..3_u16,
        rate in option::weighted(0.2, 10.0..1_000.0),
    ) {
        let retry = Retry { times, after_ns: S };
        let time_ns_max = 30 * S;
        let settings = Settings { policy, soa, window, connections, retry, rate, time_ns_max, ..settings() };
        let mut world = World::new(settings, secondaries, zones, manner);
        world.run(i64::MAX - 1);
        assert_all_ended(&mut world, secondaries, zones);
        // A connection either brings something or uses something up.
        let attempts_max = u64::from(secondaries) * u64::from(zones) * (u64::from(times) + 1);
        let slots_max = u64::from(secondaries * connections) * (u64::from(times) + 1);
        prop_assert!(world.connections as u64 <= 2 * attempts_max + slots_max + 8, "{} connections", world.connections);
    }
}
