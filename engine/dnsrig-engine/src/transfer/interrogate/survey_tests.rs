use std::{str::FromStr, time::Duration};

use domain::base::Name;

use super::*;
use crate::transfer::interrogate::transfer::{End, Style};

fn known(octets: u64, messages: u32) -> Known {
    let mut transfer = Transfer::new(Ask::Axfr, Duration::ZERO);
    (transfer.octets, transfer.messages, transfer.end) = (octets, messages, Some(End::Done(Style::Whole)));
    Known { name: Name::from_str("z.example").unwrap(), transfer, message_octets: Vec::new() }
}

fn survey(zones: &[(u64, u32)]) -> Survey {
    let zones = zones.iter().map(|(octets, messages)| known(*octets, *messages)).collect();
    Survey { zones, ..Survey::new(Transport::Tcp) }
}

#[test]
fn a_sample_has_the_first_and_the_last() {
    let all: Vec<_> = (0..10_000).collect();
    let some = sample(all.iter().copied());
    assert_eq!((some.len(), some[0], some[ZONES_MAX - 1]), (ZONES_MAX, 0, 9_999));
    assert!(some.windows(2).all(|pair| pair[0] < pair[1]));
    assert_eq!(sample([1, 2, 3].into_iter()), [1, 2, 3]);
    assert_eq!(sample([1].into_iter()), [1]);
    assert!(sample(std::iter::empty::<u8>()).is_empty());
}

#[test]
fn small_and_large_are_far_apart() {
    let found = survey(&[(300, 3), (200, 1), (1 << 20, 50), (250, 1), (200_000, 3)]);
    assert_eq!(found.small().map(|known| known.transfer.octets), Some(200));
    assert_eq!(found.small_zones().count(), 2, "of as few messages as the smallest");
    assert_eq!(found.large().map(|known| known.transfer.octets), Some(1 << 20));
    let alike = survey(&[(20_000, 1), (30_000, 2)]);
    assert!(alike.small().is_none() && alike.large().is_none());
}
