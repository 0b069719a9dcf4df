//! Sorting in bounded memory, and a ledger that balances whatever comes.

use std::net::Ipv6Addr;

use proptest::prelude::*;

use super::{
    operations::Share,
    packets::{Packets, Wanted},
    sort::{Entry, MEMORY_BYTES_MIN, Sorted, Sorter},
};
use crate::{base::testing::inputs, dns::stream::Transport, replay::capture::Captured};

fn entry(time_ns: i64, port: u16, message: &[u8]) -> Entry<'_> {
    let client = Ipv6Addr::LOCALHOST;
    Entry { time_ns, client, port, copy: 0, transport: Transport::Tcp, flags: 2, message }
}

/// Times and ports, in order.
fn sorted(mut found: Sorted) -> Vec<(i64, u16)> {
    let mut all = Vec::new();
    while let Some(entry) = found.next().unwrap() {
        assert_eq!((entry.client, entry.flags), (Ipv6Addr::LOCALHOST, 2));
        all.push((entry.time_ns, entry.port));
    }
    all
}

#[test]
fn what_has_no_room_is_sorted_in_files() {
    let directory = tempfile::tempdir().unwrap();
    let mut sorter = Sorter::new(directory.path(), 0);
    let message = vec![7; 20_000];
    let count = 4 * MEMORY_BYTES_MIN / 20_000;
    let time = |number: usize| (number * 7919 % 101) as i64;
    for number in 0..count {
        sorter.push(&entry(time(number), number as u16, &message)).unwrap();
    }
    let mut expected: Vec<_> = (0..count).map(|number| (time(number), number as u16)).collect();
    expected.sort();
    let found = sorter.finish().unwrap();
    assert!(matches!(found, Sorted::Files(_)));
    assert_eq!(sorted(found), expected);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

fn ledger_of(packets: &[(u16, Vec<u8>)]) -> super::accounting::Accounting {
    let directory = tempfile::tempdir().unwrap();
    let wanted = Wanted { servers: Default::default(), ports: vec![53], share: Share { share: 0.5, seed: 1 } };
    let mut taking = Packets::new(wanted, Sorter::new(directory.path(), 0));
    for (link, bytes) in packets {
        taking.packet(Captured { time_ns: 0, link: *link, bytes }).unwrap();
    }
    taking.finish().unwrap().ledger
}

/// A datagram from port 53 or to it, over IPv4, with fields of any value behind.
fn datagram() -> impl Strategy<Value = Vec<u8>> {
    let ports = prop::sample::select(vec![[0, 53, 9, 9], [9, 9, 0, 53], [0, 53, 0, 53], [9, 9, 9, 9]]);
    let fields = (ports, any::<bool>(), 0u8..4, 0u8..64, prop::collection::vec(any::<u8>(), 0..64));
    fields.prop_map(|(ports, is_tcp, place, odd, payload)| {
        let total = 28 + payload.len() as u8;
        let mut bytes =
            vec![0x45, 0, 0, total, 0, 1, (place & 1) << 5, place >> 1, 64, if is_tcp { 6 } else { 17 }, 0, 0];
        bytes.extend([192, 0, 2, odd & 1, 192, 0, 2, odd >> 1 & 1]);
        bytes.extend(ports);
        bytes.extend([0, if odd & 4 == 0 { total - 20 } else { odd }, 0, 0]);
        bytes.extend(payload);
        bytes
    })
}

proptest! {
    #![proptest_config(inputs(1_000))]

    #[test]
    fn the_ledger_balances(
        packets in prop::collection::vec(
            (prop::sample::select(vec![1u16, 101, 101, 101, 239, 7]), prop_oneof![
                datagram(), prop::collection::vec(any::<u8>(), 0..80),
            ]),
            0..30,
        ),
    ) {
        let ledger = ledger_of(&packets);
        prop_assert_eq!(ledger.packets.read, packets.len() as u64);
        prop_assert!(ledger.is_balanced(), "{:?}", ledger);
    }
}
