//! Sorting in bounded memory, and a ledger that balances whatever comes.

use std::{io::Cursor, net::Ipv6Addr, path::Path};

use dnsrig_testing::{fuzz::fuzz, inputs};
use proptest::prelude::*;

use super::{
    LeftOut, Selection,
    accounting::{self, Datagrams, Messages},
    operations::{Share, Timeline},
    packets::{Packets, Wanted},
    report::{Summary, empty_hint},
    sort::{Entry, MEMORY_BYTES_MIN, Sorted, Sorter},
};
use crate::{
    query_stream::{KNOWN_FLAGS, Transport},
    replay::{
        capture::{
            CaptureReport, Captured, Item, Record, Role,
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

/// Takes in packets of all servers, from a share of the clients.
fn packets_of(share: f64) -> Packets {
    let wanted = Wanted { servers: Default::default(), ports: vec![53], share: Share { share, seed: 1 } };
    Packets::new(wanted, Sorter::new(Path::new("/nowhere"), 0))
}

/// An IPv4 packet of a protocol, of which the capture lacks the last bytes.
fn ipv4(protocol: u8, payload: &[u8], missing: usize) -> Vec<u8> {
    let total = (20 + payload.len()) as u8;
    let head = [0x45, 0, 0, total, 0, 0, 0, 0, 64, protocol, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
    let whole = [&head[..], payload].concat();
    whole[..whole.len() - missing].to_vec()
}

fn udp(ports: [u8; 4], length: u8, payload: &[u8]) -> Vec<u8> {
    [&ports[..], &[0, length, 0, 0], payload].concat()
}

fn tcp(ports: [u8; 4], payload: &[u8]) -> Vec<u8> {
    [&ports[..], &[0; 8], &[0x50, 0x18, 0, 9, 0, 0, 0, 0], payload].concat()
}

const TO_SERVER: [u8; 4] = [9, 9, 0, 53];
const FROM_SERVER: [u8; 4] = [0, 53, 9, 9];
const ELSEWHERE: [u8; 4] = [9, 9, 9, 9];

#[test]
fn each_packet_is_counted_by_what_it_is() {
    let one = accounting::Packets { read: 1, ..accounting::Packets::default() };
    let mut fragment = ipv4(17, &udp(TO_SERVER, 12, &[1; 4]), 0);
    fragment[6] = 0x20;
    for (link, bytes, expected) in [
        (101, ipv4(1, &[], 0), accounting::Packets { datagrams: 1, ..one }),
        (101, fragment, accounting::Packets { fragments: 1, ..one }),
        (7, vec![0; 40], accounting::Packets { unknown_link: 1, ..one }),
        (1, [&[2; 12][..], &[8, 6], &[0; 28]].concat(), accounting::Packets { not_ip: 1, ..one }),
        (101, vec![0x45; 19], accounting::Packets { malformed: 1, ..one }),
        (101, vec![0x35; 40], accounting::Packets { malformed: 1, ..one }),
    ] {
        assert_eq!(ledger_of(&[(link, bytes.clone())]).packets, expected, "{link}: {bytes:02x?}");
    }
}

#[test]
fn each_datagram_is_counted_by_what_it_is() {
    let one = Datagrams { whole: 1, ..Datagrams::default() };
    for (bytes, expected) in [
        (ipv4(17, &udp(TO_SERVER, 12, &[1; 4]), 0), Datagrams { udp: 1, ..one }),
        (ipv4(17, &udp(FROM_SERVER, 11, &[1; 4]), 0), Datagrams { udp: 1, ..one }),
        (ipv4(17, &udp(TO_SERVER, 12, &[1; 4]), 1), Datagrams { cut: 1, ..one }),
        (ipv4(17, &udp(TO_SERVER, 13, &[1; 4]), 0), Datagrams { malformed: 1, ..one }),
        (ipv4(17, &udp(TO_SERVER, 7, &[1; 4]), 0), Datagrams { malformed: 1, ..one }),
        (ipv4(17, &[0, 53, 9], 0), Datagrams { malformed: 1, ..one }),
        (ipv4(17, &udp(ELSEWHERE, 12, &[1; 4]), 0), Datagrams { other_port: 1, ..one }),
        (ipv4(6, &tcp(TO_SERVER, &[]), 0), Datagrams { tcp_segments: 1, ..one }),
        (ipv4(6, &tcp(TO_SERVER, &[1]), 1), Datagrams { cut: 1, ..one }),
        (ipv4(6, &tcp(FROM_SERVER, &[]), 0), Datagrams { tcp_answers: 1, ..one }),
        (ipv4(6, &tcp(TO_SERVER, &[])[..19], 0), Datagrams { malformed: 1, ..one }),
        (ipv4(6, &tcp(ELSEWHERE, &[]), 0), Datagrams { other_port: 1, ..one }),
        (ipv4(1, &[0; 8], 0), Datagrams { other_protocol: 1, ..one }),
    ] {
        let ledger = ledger_of(&[(101, bytes.clone())]);
        assert_eq!(ledger.datagrams, expected, "{bytes:02x?}");
        assert!(ledger.is_balanced(), "{ledger:?}");
    }
}

#[test]
fn each_record_is_counted_by_its_role() {
    let one = Messages { records: 1, ..Messages::default() };
    for (role, expected) in [
        (Role::ToServer, Messages { malformed: 1, ..one }),
        (Role::Upstream, Messages { upstream: 1, ..one }),
        (Role::Answer, Messages { answers: 1, ..one }),
        (Role::UpstreamAnswer, Messages { answers: 1, ..one }),
        (Role::Other, Messages { other_record: 1, ..one }),
        (Role::Unreadable, Messages { malformed: 1, ..one }),
    ] {
        let mut taking = packets_of(1.0);
        taking.record(&Record { role, ..Record::UNREADABLE }).unwrap();
        assert_eq!(taking.finish().unwrap().ledger.messages, expected, "{role:?}");
    }
}

/// Times that run backwards are counted in each capture for itself.
#[test]
fn times_that_run_backwards_are_counted() {
    let mut taking = packets_of(1.0);
    for capture in [&[5, 7, 7, 4, 6, 5][..], &[1, 2, 1]] {
        taking.begin_capture();
        for time_ns in capture {
            taking.packet(Captured { time_ns: *time_ns, link: 7, bytes: &[] }).unwrap();
        }
    }
    let found = taking.finish().unwrap();
    assert_eq!((found.times_backwards, found.back_max_ns), (3, 3));
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
