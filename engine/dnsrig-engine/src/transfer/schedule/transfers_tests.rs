use super::*;
use crate::dns::query::Ask;

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
    transfers.get_mut(large).touch(900, 1);
    assert_eq!(transfers.expired(line, 0, 500, 1_000), (vec![], 1_400));
    // Its own silence counts for the one that has begun, and then for the one behind it.
    assert_eq!(transfers.expired(line, 0, 500, 1_400), (vec![large, small], i64::MAX));
    assert_eq!(transfers.expired(line, 1_200, 500, 1_400).0, [small], "a part of a message is a sign of life");
    transfers.leave(large, &mut line, 1_300);
    assert_eq!(transfers.expired(line, 0, 500, 1_400), (vec![], 1_800));
    assert_eq!(transfers.expired(line, 0, 500, 1_800).0, [small]);
}

#[test]
fn who_is_passed_over_is_given_up() {
    let (mut transfers, mut line) = (Transfers::default(), InFlightList::default());
    let [forgotten, answered] = [0, 1].map(|zone| asked(&mut transfers, &mut line, zone, 100));
    transfers.get_mut(answered).touch(590, 1);
    assert_eq!(transfers.expired(line, 0, 500, 600), (vec![forgotten], 1_090));
}
