use super::*;
use dnsrig_dns::query::Ask;

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

fn asked(transfers: &mut Transfers, queries: &mut Outstanding<u32>, zone: u32, asked_ns: i64) -> u32 {
    let place = transfers.next_place();
    let id = queries.add(place).unwrap();
    transfers.add(Transfer::new(job(zone), 0, id, false, asked_ns, Incoming::new(Ask::Axfr, None)));
    place
}

/// Ends a transfer; whether one that was asked for earlier is still outstanding.
fn end(transfers: &mut Transfers, queries: &mut Outstanding<u32>, place: u32, now_ns: i64) -> bool {
    let (transfer, is_overtaking) = transfers.remove(place, queries, now_ns);
    queries.end(transfer.id);
    is_overtaking
}

fn zones(transfers: &Transfers, queries: &Outstanding<u32>) -> Vec<u32> {
    queries.iter().map(|(_, place)| transfers.get(place).job.zone).collect()
}

#[test]
fn the_order_of_asking_is_kept_whoever_leaves() {
    let (mut transfers, mut queries) = (Transfers::default(), Outstanding::new(8));
    let places: Vec<_> = (0..4).map(|zone| asked(&mut transfers, &mut queries, zone, 1)).collect();
    assert!(end(&mut transfers, &mut queries, places[1], 5), "zone 0 is still there");
    assert!(!end(&mut transfers, &mut queries, places[0], 6));
    assert!(end(&mut transfers, &mut queries, places[3], 7));
    let last = asked(&mut transfers, &mut queries, 9, 8);
    assert_eq!(zones(&transfers, &queries), [2, 9]);
    assert!(transfers.next_place() < 4, "places are used again");
    assert!(!end(&mut transfers, &mut queries, places[2], 9));
    assert!(!end(&mut transfers, &mut queries, last, 9));
    assert!(queries.is_empty());
}

#[test]
fn who_waits_behind_another_is_not_given_up_while_that_one_goes_on() {
    let (mut transfers, mut queries) = (Transfers::default(), Outstanding::new(8));
    let [large, small] = [0, 1].map(|zone| asked(&mut transfers, &mut queries, zone, 100));
    touch(&mut transfers, large, 900);
    assert_eq!(transfers.expired(&queries, 0, TIME_LIMITS, 1_000), (vec![], 1_400));
    // Its own silence counts for the one that has begun, and then for the one behind it.
    let both = [large, small].map(|place| (place, Cut::TimedOut));
    assert_eq!(transfers.expired(&queries, 0, TIME_LIMITS, 1_400), (both.to_vec(), i64::MAX));
    assert_eq!(
        transfers.expired(&queries, 1_200, TIME_LIMITS, 1_400).0,
        both[1..],
        "a part of a message is a sign of life"
    );
    end(&mut transfers, &mut queries, large, 1_300);
    assert_eq!(transfers.expired(&queries, 0, TIME_LIMITS, 1_400), (vec![], 1_800));
    assert_eq!(transfers.expired(&queries, 0, TIME_LIMITS, 1_800).0, both[1..]);
}

#[test]
fn who_is_passed_over_is_given_up() {
    let (mut transfers, mut queries) = (Transfers::default(), Outstanding::new(8));
    let [forgotten, answered] = [0, 1].map(|zone| asked(&mut transfers, &mut queries, zone, 100));
    touch(&mut transfers, answered, 590);
    assert_eq!(transfers.expired(&queries, 0, TIME_LIMITS, 600), (vec![(forgotten, Cut::TimedOut)], 1_090));
}

#[test]
fn only_records_are_progress() {
    let (mut transfers, mut queries) = (Transfers::default(), Outstanding::new(8));
    let [empty, behind] = [0, 1].map(|zone| asked(&mut transfers, &mut queries, zone, 100));
    touch(&mut transfers, empty, 200);
    for now_ns in (210..700).step_by(10) {
        transfers.get_mut(empty).touch(now_ns, 1);
    }
    // The one behind may come when the first has been given up.
    assert_eq!(transfers.expired(&queries, 0, TIME_LIMITS, 700), (vec![(empty, Cut::NoProgress)], 1_190));
    end(&mut transfers, &mut queries, empty, 700);
    assert_eq!(transfers.expired(&queries, 0, TIME_LIMITS, 1_200).0, [(behind, Cut::TimedOut)]);
}

#[test]
fn parts_of_a_message_are_waited_for_but_not_for_ever() {
    let (mut transfers, mut queries) = (Transfers::default(), Outstanding::new(8));
    let slow = asked(&mut transfers, &mut queries, 0, 100);
    assert_eq!(transfers.expired(&queries, 3_000, TIME_LIMITS, 3_000), (vec![], 3_100));
    assert_eq!(transfers.expired(&queries, 3_099, TIME_LIMITS, 3_100).0, [(slow, Cut::NoProgress)]);
}

#[test]
fn a_transfer_ends_however_many_records_come() {
    let (mut transfers, mut queries) = (Transfers::default(), Outstanding::new(8));
    let endless = asked(&mut transfers, &mut queries, 0, 100);
    for now_ns in (200..=10_200).step_by(100) {
        touch(&mut transfers, endless, now_ns);
    }
    assert_eq!(transfers.expired(&queries, 0, TIME_LIMITS, 10_199), (vec![], 10_200));
    assert_eq!(transfers.expired(&queries, 0, TIME_LIMITS, 10_200).0, [(endless, Cut::TooLong)]);
}
