use std::time::Duration;

use super::*;
use crate::dns::xfr::Outcome;

/// A zone of so many messages of so many octets.
fn known(octets: usize, messages: usize) -> Known {
    let name = b"\x01z\0".to_vec();
    let mut transfer = Transfer::new(name.clone(), Ask::Axfr, None, Duration::ZERO, false);
    transfer.outcome = Some(Outcome::Done);
    Known { name, transfer, message_octets: vec![octets; messages] }
}

fn survey(zones: &[(usize, usize)]) -> Survey {
    let zones = zones.iter().map(|(octets, messages)| known(*octets, *messages)).collect();
    Survey { zones, ..Survey::new(Transport::Tcp) }
}

#[test]
fn a_sample_has_the_first_and_the_last() {
    let some = sample(0..10_000);
    assert_eq!((some.len(), some[0], some[ZONES_MAX - 1]), (ZONES_MAX, 0, 9_999));
    assert!(some.windows(2).all(|pair| pair[0] < pair[1]));
    assert_eq!(sample([1, 2, 3].into_iter()), [1, 2, 3]);
    assert_eq!(sample([1].into_iter()), [1]);
    assert!(sample(std::iter::empty::<u8>()).is_empty());
}

#[test]
fn small_and_large_are_far_apart() {
    let found = survey(&[(100, 3), (200, 1), (20_000, 50), (250, 1), (60_000, 3)]);
    assert_eq!(found.small().map(Known::octets), Some(200));
    assert_eq!(found.small_zones().count(), 2, "of as few messages as the smallest");
    assert_eq!(found.large().map(Known::octets), Some(1_000_000));
    let alike = survey(&[(20_000, 1), (15_000, 2)]);
    assert!(alike.small().is_none() && alike.large().is_none());
}
