//! Sorting in bounded memory, and a ledger that balances whatever comes.

use std::{io::Cursor, net::Ipv6Addr, path::Path};

use dnsrig_testing::{fuzz::fuzz, inputs};
use proptest::prelude::*;

use super::{
    LeftOut, Selection,
    operations::{Share, Timeline},
    packets::{Packets, Wanted},
    report::{Summary, empty_hint},
    sort::{Entry, MEMORY_BYTES_MIN, Sorted, Sorter},
};
use crate::{
    query_stream::{KNOWN_FLAGS, Transport},
    replay::{
        capture::{
            CaptureReport, Captured, Item,
            capture_tests::{CDNS, LIMITS, dnstap, frame, packet, pcapng, section},
            read_source,
        },
        message::{Kind, kind},
        packet::packet_tests,
    },
};

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

#[test]
fn what_could_not_be_read_is_why_there_is_no_query() {
    let ended = CaptureReport { ended: Some("cut at byte 0".into()), ..CaptureReport::default() };
    let summary = Summary { captures: vec![ended], ..Summary::default() };
    assert!(empty_hint(&summary).contains("ends or is damaged before its first packet"));
    let whole = Summary { captures: vec![CaptureReport::default()], ..Summary::default() };
    assert!(empty_hint(&whole).contains("tcpdump"));
}

/// Captures of each kind, with harm done to them: every packet is accounted for, and every query that is kept comes out
/// once, in the order of times.
#[test]
fn harmed_captures_are_accounted_for() {
    let links = [0_u16, 1, 9, 104, 113, 239, 276, 101];
    let interfaces = links.map(|link| (1, [link.to_le_bytes(), [0; 2], [0; 2], [0; 2]].concat()));
    let place = |packet: &[u8]| {
        let number = u16::from_le_bytes([packet[0], packet[1]]);
        links.iter().position(|link| *link == number).unwrap() as u32
    };
    let query = [0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1];
    let datagram = |flags: u8, ports: [u8; 4]| {
        let mut packet = vec![0x45, 0, 0, 45, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
        if ports[1] == 53 {
            packet[12..20].rotate_left(4);
        }
        packet.extend(ports);
        packet.extend([0, 25, 0, 0]);
        packet.extend(query);
        packet[30] |= flags;
        packet
    };
    let all: Vec<_> = packet_tests::packets().iter().map(|it| packet(place(it), 7, &it[2..])).collect();
    let raw = |units: u64, bytes: &[u8]| packet(7, units, bytes);
    let (asks, answers) = (datagram(0, [9, 9, 0, 53]), datagram(0x82, [0, 53, 9, 9]));
    let tcp = packet_tests::packets().swap_remove(11);
    let exchange =
        [raw(1, &asks), raw(2_000_000, &asks), raw(3_000_000, &answers), raw(3_500_000, &tcp[2..]), raw(0, &asks)];
    let of = |packets: &[(u32, Vec<u8>)]| pcapng(&[&[section()][..], &interfaces, packets].concat());
    let told = [&[0x52, 17][..], &query].concat();
    let mut answered = [&[0x60, 8, 0x72, 17][..], &query].concat();
    answered[6] |= 0x82;
    let both = [frame(5, &told), frame(6, &[&told[..], &answered].concat()), frame(6, &answered), frame(3, &told)];
    let corpus = [
        of(&exchange),
        of(&all),
        of(&[&exchange[..], &all].concat()),
        dnstap(&both),
        dnstap(&both[1..]),
        CDNS.to_vec(),
    ];
    fuzz(1_000, &corpus, |bytes, random| {
        let share = Share { share: if random.chance(80) { 1.0 } else { 0.5 }, seed: 1 };
        let wanted = Wanted { servers: Default::default(), ports: vec![53], share };
        let mut taking = Packets::new(wanted, Sorter::new(Path::new("/nowhere"), 0));
        taking.begin_capture();
        let read = read_source(Cursor::new(bytes.to_vec()), Path::new("capture"), LIMITS, |item| {
            match item {
                Item::Packet(packet) => taking.packet(packet).unwrap(),
                Item::Record(record) => taking.record(&record).unwrap(),
            }
            Ok(())
        });
        let mut found = taking.finish().unwrap();
        assert!(found.ledger.is_balanced(), "{:?}", found.ledger);
        assert!(read.is_err() || found.ledger.packets.read + found.ledger.messages.records == read.unwrap().items);
        let gap_ns = if random.chance(50) { 3_600_000_000_000 } else { 0 };
        let cut_ns = if random.chance(80) { (0, i64::MAX) } else { (1, 2_000_000_000) };
        let mut selection = Selection::new(found.from_answers > 0, Timeline::new(gap_ns, cut_ns));
        let (mut count, mut before_ns) = (0, 0);
        while let Some(entry) = found.sorted.next().unwrap() {
            let Some(entry) = selection.due(entry) else { continue };
            assert!(entry.time_ns >= before_ns && entry.flags & !KNOWN_FLAGS == 0);
            assert_eq!(kind(entry.message), Kind::Query);
            (count, before_ns) = (count + 1, entry.time_ns);
        }
        let LeftOut { outside_cut, after_truncation } = selection.left_out;
        assert_eq!(count + outside_cut + after_truncation, found.ledger.messages.kept);
    });
}
