//! SOA records and what stands for them.

use proptest::{collection::vec, prelude::*};

use super::*;
use crate::{
    base::testing::inputs,
    dns::{
        record::Walk,
        testing::{Rr, response},
    },
};

fn soa(data: &[u8]) -> Result<Option<Soa>, Wrong> {
    let message = response(None, &[Rr::new(&[0], Rtype::SOA.to_int(), data)]);
    Soa::read(&Walk::new(&message).any_record().unwrap())
}

fn names(labels: &[Vec<u8>]) -> Vec<u8> {
    let labels = labels.iter().flat_map(|label| [&[label.len() as u8], &label[..]].concat());
    labels.chain([0]).collect()
}

proptest! {
    #![proptest_config(inputs(1000))]

    /// Two SOA records are equal if their data is, but for the case of letters in names.
    #[test]
    fn a_fingerprint_stands_for_all_data(
        host in vec(vec(any::<u8>(), 1..20), 0..5), mailbox in vec(vec(any::<u8>(), 1..20), 0..5),
        numbers in any::<[u8; 20]>(), place: prop::sample::Index, bit in 0..8_u32,
    ) {
        let data = [names(&host), names(&mailbox), numbers.to_vec()].concat();
        let one = soa(&data).unwrap().unwrap();
        prop_assert_eq!(&one.serial.to_be_bytes()[..], &numbers[..4]);

        let names_bytes = data.len() - 20;
        let mut upper = data.clone();
        upper[..names_bytes].make_ascii_uppercase();
        prop_assert_eq!(soa(&upper).unwrap().unwrap(), one);

        let mut other = data.clone();
        let place = place.index(data.len());
        other[place] ^= 1 << bit;
        let same = place < names_bytes && other[place].eq_ignore_ascii_case(&data[place]);
        // Another length of a label may leave no SOA at all, or one of other names.
        if let Ok(Some(read)) = soa(&other) {
            prop_assert_eq!(read == one, same);
        }
    }
}

#[test]
fn labels_are_told_apart_from_each_other() {
    let read = |host: &[&[u8]], mailbox: &[&[u8]]| {
        let names = [host, mailbox].map(|labels| names(&labels.iter().map(|label| label.to_vec()).collect::<Vec<_>>()));
        soa(&[&names.concat()[..], &[0; 20]].concat()).unwrap().unwrap()
    };
    let several = [
        read(&[b"ab"], &[]),
        read(&[b"a", b"b"], &[]),
        read(&[b"a"], &[b"b"]),
        read(&[], &[b"ab"]),
        read(&[b"\0ab"], &[]),
        read(&[b"ab\0"], &[]),
        read(&[b"abcdefgh"], &[]),
        read(&[b"abcdefgh\0"], &[]),
    ];
    for (place, one) in several.iter().enumerate() {
        assert!(several[..place].iter().all(|other| other != one), "{place}");
    }
}
