//! Readers of captures: what they find, and that no bytes hurt them.

use std::io::{Cursor, Write};

use proptest::prelude::*;

use super::{read::read_source, *};
use crate::{base::testing::inputs, replay::error::ReplayError};

const LIMITS: Limits = Limits { decompressed_bytes_max: 1 << 20 };

fn pcap(big: bool, magic: u32, packets: &[(u32, u32, &[u8])]) -> Vec<u8> {
    let four = |number: u32| if big { number.to_be_bytes() } else { number.to_le_bytes() };
    let mut bytes = [four(magic), [0; 4], [0; 4], [0; 4], four(65_535), four(1)].concat();
    for (seconds, part, packet) in packets {
        let length = four(packet.len() as u32);
        bytes.extend([four(*seconds), four(*part), length, length].concat());
        bytes.extend(*packet);
    }
    bytes
}

/// Its time and its bytes.
type Packet = (i64, Vec<u8>);

/// All packets, and how the capture ended.
fn packets(bytes: &[u8]) -> Result<(Vec<Packet>, Option<String>), ReplayError> {
    let mut found = Vec::new();
    let report = read_source(Cursor::new(bytes.to_vec()), "capture".as_ref(), LIMITS, |item| {
        found.push(match item {
            Item::Packet(packet) => (packet.time_ns, packet.bytes.to_vec()),
            Item::Record(record) => (record.message.time_ns, record.message.bytes.to_vec()),
        });
        Ok(())
    })?;
    assert_eq!(report.items, found.len() as u64);
    Ok((found, report.ended))
}

#[test]
fn both_byte_orders_and_units_of_time_are_read() {
    let two: [(u32, u32, &[u8]); 2] = [(1, 2, b"one"), (3, 4, b"")];
    for (magic, unit) in [(0xa1b2_c3d4, 1000), (0xa1b2_3c4d, 1)] {
        for big in [false, true] {
            let expected = vec![(1_000_000_000 + 2 * unit, b"one".to_vec()), (3_000_000_000 + 4 * unit, vec![])];
            assert_eq!(packets(&pcap(big, magic, &two)).unwrap(), (expected, None));
        }
    }
}

#[test]
fn a_cut_capture_gives_what_is_whole() {
    let bytes = pcap(false, 0xa1b2_c3d4, &[(1, 2, b"one"), (3, 4, b"two")]);
    for cut in 44..bytes.len() {
        let (found, ended) = packets(&bytes[..cut]).unwrap();
        let cut_at = if cut == 43 { None } else { Some("cut at byte 43".to_owned()) };
        assert_eq!((found.len(), ended), (1, cut_at));
    }
    assert_eq!(packets(&bytes[..43]).unwrap().1, None);
    assert_eq!(packets(&bytes[..23]).unwrap(), (vec![], Some("cut at byte 0".into())));
}

#[test]
fn what_is_no_capture_is_refused() {
    for bytes in [&b""[..], b"DNS", b"DNSRSTRM", b"<html></html>"] {
        assert!(matches!(packets(bytes), Err(ReplayError::Format { .. })));
    }
    assert!(matches!(read("/nowhere".as_ref(), LIMITS, |_| Ok(())), Err(ReplayError::Read(..))));
}

#[test]
fn an_impossible_length_ends_the_capture() {
    let mut bytes = pcap(false, 0xa1b2_c3d4, &[(1, 2, b"one"), (3, 4, b"two")]);
    bytes[54] = 0xff;
    let (found, ended) = packets(&bytes).unwrap();
    assert_eq!((found.len(), ended), (1, Some("damaged at byte 43: a packet of more than a megabyte".into())));
}

/// Blocks with their lengths at both ends.
fn pcapng(blocks: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let block = |(kind, body): &(u32, Vec<u8>)| {
        let length = (12 + body.len() as u32).to_le_bytes();
        [&kind.to_le_bytes()[..], &length, body, &length].concat()
    };
    blocks.iter().flat_map(block).collect()
}

fn section() -> (u32, Vec<u8>) {
    (0x0a0d_0d0a, [&0x1a2b_3c4du32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat())
}

/// An interface of Ethernet with options.
fn interface(options: &[u8]) -> (u32, Vec<u8>) {
    (1, [&[1, 0, 0, 0, 0, 0, 0, 0], options].concat())
}

fn packet(interface: u32, units: u64, bytes: &[u8]) -> (u32, Vec<u8>) {
    let length = bytes.len() as u32;
    let mut body: Vec<u8> =
        [interface, (units >> 32) as u32, units as u32, length, length].map(u32::to_le_bytes).concat();
    body.extend(bytes);
    body.resize(body.len().next_multiple_of(4), 0);
    (6, body)
}

#[test]
fn interfaces_have_their_own_units_of_time() {
    let bytes = pcapng(&[
        section(),
        interface(&[]),
        interface(&[9, 0, 1, 0, 9, 0, 0, 0]),
        interface(&[9, 0, 1, 0, 0x8a, 0, 0, 0, 14, 0, 8, 0, 3, 0, 0, 0, 0, 0, 0, 0]),
        (5, vec![0; 20]),
        packet(0, 7, b"micro"),
        packet(1, 7, b"nano"),
        packet(2, 512, b"binary, behind 3 s"),
        (3, vec![3, 0, 0, 0, b'a', b'b', b'c', 0]),
        packet(0, u64::MAX, b""),
    ]);
    let times: Vec<_> = packets(&bytes).unwrap().0.into_iter().map(|(time_ns, bytes)| (time_ns, bytes.len())).collect();
    assert_eq!(times, [(7000, 5), (7, 4), (3_500_000_000, 18), (3_500_000_000, 3), (i64::MAX, 0)]);
}

#[test]
fn a_pcapng_that_is_cut_or_damaged_gives_what_is_whole() {
    let bytes = pcapng(&[section(), interface(&[]), packet(0, 7, b"one"), packet(0, 8, b"two"), packet(9, 8, b"")]);
    let (found, ended) = packets(&bytes).unwrap();
    assert_eq!((found.len(), ended), (2, Some("damaged at byte 120: a block that makes no sense".into())));
    let (found, ended) = packets(&bytes[..119]).unwrap();
    assert_eq!((found.len(), ended), (1, Some("cut at byte 84".into())));
}

#[test]
fn decompression_has_a_limit() {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packer.write_all(&pcap(false, 0xa1b2_c3d4, &vec![(1, 2, &[0; 1000][..]); 2000])).unwrap();
    let packed = packer.finish().unwrap();
    assert!(packed.len() < 20_000);
    let (found, ended) = packets(&packed).unwrap();
    assert!(found.len() > 700 && found.len() < 1100);
    assert!(ended.unwrap().contains("--decompressed-max"));
}

/// Statistics of an interface: packets that the interface and the system dropped.
fn statistics(interface: u32, dropped: [u64; 2]) -> (u32, Vec<u8>) {
    let [by_interface, by_system] = dropped.map(u64::to_le_bytes);
    (5, [&interface.to_le_bytes()[..], &[0; 8], &[5, 0, 8, 0], &by_interface, &[7, 0, 8, 0], &by_system].concat())
}

fn dropped(blocks: &[(u32, Vec<u8>)]) -> Option<u64> {
    let report = read_source(Cursor::new(pcapng(blocks)), "capture".as_ref(), LIMITS, |_| Ok(())).unwrap();
    assert_eq!(report.ended, None);
    report.dropped
}

#[test]
fn the_last_statistics_of_each_interface_count() {
    let (begin, two) = (section(), [interface(&[]), interface(&[])]);
    assert_eq!(dropped(&[begin.clone(), two[0].clone(), packet(0, 7, b"one")]), None);
    let blocks = [
        &[begin.clone()][..],
        &two,
        &[statistics(0, [1, 2]), statistics(1, [0, 40]), statistics(0, [3, 4]), statistics(9, [7, 7])],
        &[begin.clone(), two[0].clone(), statistics(0, [0, 500]), (5, vec![0; 8])],
    ];
    assert_eq!(dropped(&blocks.concat()), Some(547));
    let none = [begin, two[0].clone(), statistics(0, [0, 0]), (5, vec![0; 20])];
    assert_eq!(dropped(&none), Some(0));
}

proptest! {
    #![proptest_config(inputs(5_000))]

    #[test]
    fn no_bytes_hurt(
        start in prop::sample::select(vec![vec![], pcap(true, 0xa1b2_3c4d, &[(1, 2, b"one")]), pcap(false, 0xa1b2_cd34, &[]),
            pcapng(&[section(), interface(&[]), packet(0, 7, b"one")]), pcapng(&[section()]),
            vec![0x1f, 0x8b, 8, 0], vec![0xfd, b'7', b'z', b'X', b'Z', 0], vec![0x28, 0xb5, 0x2f, 0xfd],
            vec![4, 0x22, 0x4d, 0x18]]),
        rest in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let bytes = [start, rest].concat();
        if let Ok((found, _)) = packets(&bytes) {
            prop_assert!(found.iter().map(|(_, packet)| packet.len()).sum::<usize>() <= bytes.len());
        }
    }
}

proptest! {
    #![proptest_config(inputs(5_000))]

    /// Blocks of every kind with any bodies, one of them perhaps changed.
    #[test]
    fn no_blocks_hurt(
        blocks in prop::collection::vec((0u32..8, prop::collection::vec(any::<u8>(), 0..60)), 0..8),
        change in any::<(u16, u8)>(),
    ) {
        let padded = |(kind, mut body): (u32, Vec<u8>)| {
            body.resize(body.len().next_multiple_of(4), 0);
            (kind, body)
        };
        let all: Vec<_> = [section(), interface(&[])].into_iter().chain(blocks.into_iter().map(padded)).collect();
        let mut bytes = pcapng(&all);
        let at = usize::from(change.0) % bytes.len();
        bytes[at] ^= change.1;
        if let Ok((found, _)) = packets(&bytes) {
            prop_assert!(found.iter().map(|(_, packet)| packet.len()).sum::<usize>() <= bytes.len());
        }
    }
}

/// A frame stream with its control frame, and frames behind it.
fn dnstap(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = [0u32, 34, 2, 1, 22].map(u32::to_be_bytes).concat();
    bytes.extend(b"protobuf:dnstap.Dnstap");
    for frame in frames {
        bytes.extend((frame.len() as u32).to_be_bytes());
        bytes.extend(frame);
    }
    bytes.extend([0u32, 4, 3].map(u32::to_be_bytes).concat());
    bytes
}

/// A frame with a message of a kind.
fn frame(kind: u8, rest: &[u8]) -> Vec<u8> {
    let message = [&[8, kind, 0x18, 1, 0x40, 7][..], rest].concat();
    [&[0x78, 1, 0x72, message.len() as u8], &message[..]].concat()
}

#[test]
fn dnstap_tells_who_asked_whom() {
    let query = [0x22, 4, 192, 0, 2, 1, 0x30, 0xd2, 9, 0x4d, 5, 0, 0, 0, 0x52, 3, b'a', b'b', b'c'];
    let bytes = dnstap(&[frame(5, &query), frame(6, &[]), frame(3, &query), vec![0xff; 5], vec![]]);
    let mut found = Vec::new();
    let report = read_source(Cursor::new(bytes), "capture".as_ref(), LIMITS, |item| {
        let Item::Record(Record { role, message, .. }) = item else { panic!("a packet") };
        found.push((
            role,
            message.time_ns,
            message.source.to_canonical().to_string(),
            message.source_port,
            message.bytes.len(),
        ));
        Ok(())
    });
    assert_eq!((report.as_ref().unwrap().format, &report.as_ref().unwrap().ended), ("dnstap", &None));
    let of_query = |role| (role, 7_000_000_005, "192.0.2.1".to_owned(), 1234, 3);
    assert_eq!(found[0], of_query(Role::ToServer));
    assert_eq!((found[1].0, &found[2]), (Role::Answer, &of_query(Role::Upstream)));
    assert_eq!((found[3].0, found[4].0, found.len()), (Role::Unreadable, Role::Unreadable, 5));
}

/// A C-DNS file with one query, as CBOR.
const CDNS: &[u8] = b"\x83\x65C-DNS\xa2\x00\x01\x03\x81\xa1\x00\xa1\x00\x19\x03\xe8\x9f\
    \xa3\x00\xa1\x00\x82\x07\x05\
    \x02\xa4\x00\x81\x44\xc0\x00\x02\x01\x01\x81\xa2\x00\x01\x01\x01\x02\x81\x43\x01a\x00\
    \x03\x81\xa4\x02\x00\x04\x05\x06\x18\x90\x08\x00\
    \x03\x81\xa6\x00\x0a\x01\x00\x02\x19\x04\xd2\x03\x07\x04\x00\x07\x00\
    \xff";

#[test]
fn cdns_is_put_together_again() {
    let query = b"\0\x07\x01\0\0\x01\0\0\0\0\0\x01\x01a\0\0\x01\0\x01\0\0\x29\0\0\0\0\x80\0\0\0";
    assert_eq!(packets(CDNS).unwrap(), (vec![(7_015_000_000, query.to_vec())], None));
    for cut in 24..CDNS.len() {
        let (found, ended) = packets(&CDNS[..cut]).unwrap();
        assert_eq!(found.len(), usize::from(cut == CDNS.len() - 1));
        assert!(ended.unwrap().contains("cut at byte"));
    }
}

proptest! {
    #![proptest_config(inputs(5_000))]

    #[test]
    fn no_records_hurt(
        changes in prop::collection::vec(any::<(u16, u8)>(), 0..5),
        is_cdns in any::<bool>(),
        rest in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let mut bytes = if is_cdns {
            CDNS.to_vec()
        } else {
            let answer = [0x62, 3, b'a', b'b', b'c'];
            dnstap(&[frame(5, &[0x52, 3, b'a', b'b', b'c']), frame(6, &answer), frame(2, &rest), frame(1, &rest), rest])
        };
        let length = bytes.len();
        changes.iter().for_each(|(at, change)| bytes[usize::from(*at) % length] ^= change);
        if let Ok((found, _)) = packets(&bytes) {
            prop_assert!(found.len() <= bytes.len());
        }
    }
}
