use super::*;
use crate::dns::query::Ask;

const TIME_LIMITS: TimeLimits = TimeLimits { timeout_ns: 500, time_ns_max: 10_000 };

/// A message came that brought a record.
fn touch(transfers: &mut Transfers, place: u32, now_ns: i64) {
    let transfer = transfers.get_mut(place);
    transfer.touch(now_ns, 1);
    transfer.record_ns = now_ns;
}

fn job(zone: u32) -> Job {
    Job { secondary: 0, zone, attempt: 1, failures: 0 }
}

fn asked(transfers: &mut Transfers, line: &mut InFlightList, zone: u32, asked_ns: i64) -> u32 {
    let place = transfers.next_place();
    let incoming = Incoming::new(Ask::Axfr, None);
    transfers.join(Transfer::new(job(zone), 0, zone as u16, false, asked_ns, incoming), line);
    place
}

fn zones(transfers: &Transfers, line: InFlightList) -> Vec<u32> {
    transfers.in_line(line).map(|(_, transfer)| transfer.job.zone).collect()
}

#[test]
fn the_order_of_asking_is_kept_whoever_leaves() {
    let (mut transfers, mut line) = (Transfers::default(), InFlightList::default());
    let places: Vec<_> = (0..4).map(|zone| asked(&mut transfers, &mut line, zone, 1)).collect();
    assert!(transfers.leave(places[1], &mut line, 5).1, "zone 0 is still there");
    assert!(!transfers.leave(places[0], &mut line, 6).1);
    assert!(transfers.leave(places[3], &mut line, 7).1);
    asked(&mut transfers, &mut line, 9, 8);
    assert_eq!(zones(&transfers, line), [2, 9]);
    assert!(transfers.next_place() < 4, "places are used again");
    assert!(!transfers.leave(places[2], &mut line, 9).1);
    let last = line.head;
    transfers.leave(last, &mut line, 9);
    assert_eq!(line, InFlightList::default());
}

#[test]
fn who_waits_behind_another_is_not_given_up_while_that_one_goes_on() {
    let (mut transfers, mut line) = (Transfers::default(), InFlightList::default());
    let [large, small] = [0, 1].map(|zone| asked(&mut transfers, &mut line, zone, 100));
    touch(&mut transfers, large, 900);
    assert_eq!(transfers.expired(line, 0, TIME_LIMITS, 1_000), (vec![], 1_400));
    // Its own silence counts for the one that has begun, and then for the one behind it.
    let both = [large, small].map(|place| (place, Cut::TimedOut));
    assert_eq!(transfers.expired(line, 0, TIME_LIMITS, 1_400), (both.to_vec(), i64::MAX));
    assert_eq!(
        transfers.expired(line, 1_200, TIME_LIMITS, 1_400).0,
        both[1..],
        "a part of a message is a sign of life"
    );
    transfers.leave(large, &mut line, 1_300);
    assert_eq!(transfers.expired(line, 0, TIME_LIMITS, 1_400), (vec![], 1_800));
    assert_eq!(transfers.expired(line, 0, TIME_LIMITS, 1_800).0, both[1..]);
}

#[test]
fn who_is_passed_over_is_given_up() {
    let (mut transfers, mut line) = (Transfers::default(), InFlightList::default());
    let [forgotten, answered] = [0, 1].map(|zone| asked(&mut transfers, &mut line, zone, 100));
    touch(&mut transfers, answered, 590);
    assert_eq!(transfers.expired(line, 0, TIME_LIMITS, 600), (vec![(forgotten, Cut::TimedOut)], 1_090));
}

#[test]
fn only_records_are_progress() {
    let (mut transfers, mut line) = (Transfers::default(), InFlightList::default());
    let [empty, behind] = [0, 1].map(|zone| asked(&mut transfers, &mut line, zone, 100));
    touch(&mut transfers, empty, 200);
    for now_ns in (210..700).step_by(10) {
        transfers.get_mut(empty).touch(now_ns, 1);
    }
    // The one behind may come when the first has been given up.
    assert_eq!(transfers.expired(line, 0, TIME_LIMITS, 700), (vec![(empty, Cut::NoProgress)], 1_190));
    transfers.leave(empty, &mut line, 700);
    assert_eq!(transfers.expired(line, 0, TIME_LIMITS, 1_200).0, [(behind, Cut::TimedOut)]);
}

#[test]
fn parts_of_a_message_are_waited_for_but_not_for_ever() {
    let (mut transfers, mut line) = (Transfers::default(), InFlightList::default());
    let slow = asked(&mut transfers, &mut line, 0, 100);
    assert_eq!(transfers.expired(line, 3_000, TIME_LIMITS, 3_000), (vec![], 3_100));
    assert_eq!(transfers.expired(line, 3_099, TIME_LIMITS, 3_100).0, [(slow, Cut::NoProgress)]);
}

#[test]
fn a_transfer_ends_however_many_records_come() {
    let (mut transfers, mut line) = (Transfers::default(), InFlightList::default());
    let endless = asked(&mut transfers, &mut line, 0, 100);
    for now_ns in (200..=10_200).step_by(100) {
        touch(&mut transfers, endless, now_ns);
    }
    assert_eq!(transfers.expired(line, 0, TIME_LIMITS, 10_199), (vec![], 10_200));
    assert_eq!(transfers.expired(line, 0, TIME_LIMITS, 10_200).0, [(endless, Cut::TooLong)]);
}
