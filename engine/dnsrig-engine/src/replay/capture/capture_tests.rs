//! Readers of captures: what they find, and that no bytes hurt them.

use std::io::{Cursor, Write};

use dnsrig_core::failure::Failure;
use dnsrig_testing::fuzz::fuzz;

use super::*;
use crate::replay::message::Message;

pub const LIMITS: Limits = Limits { decompressed_bytes_max: 1 << 20 };

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
fn packets(bytes: &[u8]) -> Result<(Vec<Packet>, Option<String>), Failure> {
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
        assert!(packets(bytes).unwrap_err().sentence.contains("is not a capture: "));
    }
    let missing = read("/nowhere".as_ref(), LIMITS, |_| Ok(())).unwrap_err();
    assert!(missing.sentence.starts_with("cannot read /nowhere: "));
}

#[test]
fn an_impossible_length_ends_the_capture() {
    let mut bytes = pcap(false, 0xa1b2_c3d4, &[(1, 2, b"one"), (3, 4, b"two")]);
    bytes[54] = 0xff;
    let (found, ended) = packets(&bytes).unwrap();
    assert_eq!((found.len(), ended), (1, Some("damaged at byte 43: a packet of more than a megabyte".into())));
}

/// Blocks with their lengths at both ends.
pub fn pcapng(blocks: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let block = |(kind, body): &(u32, Vec<u8>)| {
        let length = (12 + body.len() as u32).to_le_bytes();
        [&kind.to_le_bytes()[..], &length, body, &length].concat()
    };
    blocks.iter().flat_map(block).collect()
}

pub fn section() -> (u32, Vec<u8>) {
    (0x0a0d_0d0a, [&0x1a2b_3c4du32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat())
}

/// An interface of Ethernet with options.
pub fn interface(options: &[u8]) -> (u32, Vec<u8>) {
    (1, [&[1, 0, 0, 0, 0, 0, 0, 0], options].concat())
}

pub fn packet(interface: u32, units: u64, bytes: &[u8]) -> (u32, Vec<u8>) {
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
    // An interface without statistics dropped nothing that is known.
    let one_of_two = [&[begin.clone()][..], &two, &[statistics(0, [3, 4])]];
    assert_eq!(dropped(&one_of_two.concat()), Some(7));
    let none = [begin, two[0].clone(), statistics(0, [0, 0]), (5, vec![0; 20])];
    assert_eq!(dropped(&none), Some(0));
}

/// A frame stream with its control frame, and frames behind it.
pub fn dnstap(frames: &[Vec<u8>]) -> Vec<u8> {
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
pub fn frame(kind: u8, rest: &[u8]) -> Vec<u8> {
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

#[test]
fn a_dnstap_message_without_a_type_is_no_answer() {
    let mut roles = Vec::new();
    let kinds = [0, 4, 8, 9, 10, 12, 15, 16];
    let bytes = dnstap(&kinds.map(|kind| frame(kind, &[])));
    read_source(Cursor::new(bytes), "capture".as_ref(), LIMITS, |item| {
        let Item::Record(record) = item else { panic!("a packet") };
        roles.push(record.role);
        Ok(())
    })
    .unwrap();
    let answers = roles.iter().zip(kinds).filter(|(role, _)| **role == Role::UpstreamAnswer).map(|(_, kind)| kind);
    assert_eq!(answers.collect::<Vec<_>>(), [4, 8, 10, 12]);
}

/// A C-DNS file with one query, as CBOR.
pub const CDNS: &[u8] = b"\x83\x65C-DNS\xa2\x00\x01\x03\x81\xa1\x00\xa1\x00\x19\x03\xe8\x9f\
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

/// A C-DNS file with other bytes in the place of some.
fn cdns_with(changes: &[(&[u8], &[u8])]) -> Vec<u8> {
    changes.iter().fold(CDNS.to_vec(), |bytes, (before, after)| {
        let at = bytes.windows(before.len()).position(|found| found == *before).unwrap();
        [&bytes[..at], after, &bytes[at + before.len()..]].concat()
    })
}

/// A query has up to 65,535 bytes: what is longer cannot have been one.
#[test]
fn a_query_of_cdns_is_as_long_as_a_message_can_be() {
    const NAMES: &[u8] = b"\x02\x81\x43\x01a\x00";
    const SIGNATURE: &[u8] = b"\xa4\x02\x00\x04\x05\x06\x18\x90\x08\x00";
    const WITH_OPTIONS: &[u8] = b"\xa5\x02\x00\x04\x05\x06\x18\x90\x08\x00\x0f\x01";
    for (options_bytes, length) in [(0, 30), (1, 31), (65_504, 65_534), (65_505, 65_535), (65_506, 0)] {
        let size = (options_bytes as u16).to_be_bytes();
        let names = [&b"\x02\x82\x43\x01a\x00\x59"[..], &size, &vec![0; options_bytes]].concat();
        let (found, ended) = packets(&cdns_with(&[(NAMES, &names), (SIGNATURE, WITH_OPTIONS)])).unwrap();
        assert_eq!((found.len(), found[0].1.len(), ended), (1, length, None), "{options_bytes}");
    }
}

/// Nothing is made up for a type and class that a file leaves out.
#[test]
fn what_cdns_leaves_out_is_zero() {
    const BOTH: &[u8] = b"\xa2\x00\x01\x01\x01";
    for (left, expected) in [(&b"\xa1\x00\x01"[..], [0, 1, 0, 0]), (b"\xa1\x01\x01", [0, 0, 0, 1]), (b"\xa0", [0; 4])] {
        let (found, _) = packets(&cdns_with(&[(BOTH, left)])).unwrap();
        assert_eq!(found[0].1[15..19], expected, "{left:?}");
    }
}

#[test]
fn a_draft_of_cdns_is_named() {
    // The compactor of dns-stats wrote this before the RFC: version 0.5, and parameters that are no array.
    let draft = b"\x83\x65C-DNS\xbf\x00\x00\x01\x05\x03\xbf\x00\x05\xff\xff\x9f\xff";
    let ended = packets(draft).unwrap().1.unwrap();
    assert_eq!(ended, "damaged at byte 0: C-DNS of another version than in RFC 8618");
}

#[test]
fn what_is_behind_the_end_of_a_cdns_file_is_named() {
    let twice = packets(&[CDNS, CDNS].concat()).unwrap();
    assert_eq!(
        (twice.0.len(), twice.1.unwrap()),
        (1, format!("damaged at byte {}: more behind the end of a C-DNS file", CDNS.len()))
    );
    // The array that is the file, and the one of the blocks, each with its length told or with a break.
    let open = [b"\x9f", &CDNS[1..], b"\xff"].concat();
    assert_eq!(packets(&open).unwrap(), packets(CDNS).unwrap());
    let blocks = CDNS.iter().position(|byte| *byte == 0x9f).unwrap();
    let told = [&CDNS[..blocks], b"\x81", &CDNS[blocks + 1..CDNS.len() - 1]].concat();
    assert_eq!(packets(&told).unwrap(), packets(CDNS).unwrap());
    assert_eq!(packets(&[&told[..], b"\xff"].concat()).unwrap().0.len(), 1);
}

/// What an item has beside its bytes, and these.
type Kept = (String, Vec<u8>);

/// What an item has, its messages and what they belong to included.
fn kept(item: &Item) -> Kept {
    match item {
        Item::Packet(Captured { time_ns, link, bytes }) => (format!("{time_ns} {link}"), bytes.to_vec()),
        Item::Record(Record { role, message, asked }) => {
            let Message { time_ns, source, source_port, destination, destination_port, transport, bytes, .. } = message;
            let who = (role, time_ns, source, source_port, destination, destination_port, transport);
            let asked = asked.map(|asked| (asked.time_ns, asked.bytes.to_vec()));
            (format!("{who:?} {asked:?}"), bytes.to_vec())
        }
    }
}

/// All items, and the report.
fn items(bytes: &[u8]) -> Option<(Vec<Kept>, CaptureReport)> {
    let mut found = Vec::new();
    let read = read_source(Cursor::new(bytes.to_vec()), "capture".as_ref(), LIMITS, |item| {
        found.push(kept(&item));
        Ok(())
    });
    read.ok().map(|report| (found, report))
}

/// Whatever a file has: no more comes out of it than is in it, and what is cut off takes nothing from what is before.
fn harmed_captures_are_read_as_far_as_they_are_whole(corpus: &[Vec<u8>], is_of_packets: bool) {
    fuzz(2_000, corpus, |bytes, random| {
        let Some((whole, report)) = items(bytes) else { return };
        let size = if report.compression.is_none() { bytes.len() as u64 } else { LIMITS.decompressed_bytes_max };
        assert_eq!(report.items, whole.len() as u64);
        assert!(report.items <= report.bytes && report.bytes <= size);
        assert!(!is_of_packets || whole.iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>() <= report.bytes);
        assert!(
            report.ended.is_some() || report.compression.is_some() || report.bytes == size,
            "not all of it was read"
        );
        let cut = random.below(bytes.len() as u64 + 1) as usize;
        let (before, _) = items(&bytes[..cut]).unwrap_or_default();
        assert!(whole.starts_with(&before), "{cut}: {before:?}, {whole:?}");
    });
}

#[test]
fn harmed_files_of_pcap_are_read() {
    let two: [(u32, u32, &[u8]); 2] = [(1, 2, b"one"), (3, 4, &[7; 60])];
    let magics = [0xa1b2_c3d4, 0xa1b2_3c4d, 0xa1b2_cd34];
    let mut corpus: Vec<_> = [true, false].iter().flat_map(|big| magics.map(|magic| pcap(*big, magic, &two))).collect();
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(&corpus[0]).unwrap();
    corpus.push(packer.finish().unwrap());
    harmed_captures_are_read_as_far_as_they_are_whole(&corpus, true);
}

#[test]
fn harmed_files_of_pcapng_are_read() {
    let blocks = [
        &[section(), interface(&[9, 0, 1, 0, 0x8a, 0, 0, 0, 14, 0, 8, 0, 3, 0, 0, 0, 0, 0, 0, 0])][..],
        &[packet(0, 7, b"one"), statistics(0, [3, 4]), (3, vec![3, 0, 0, 0, b'a', b'b', b'c', 0])],
        &[(2, packet(0, 9, b"old").1), interface(&[]), packet(1, 8, &[7; 60]), section(), interface(&[])],
        &[packet(0, 512, b"two"), statistics(0, [0, 500])],
    ];
    let corpus = [pcapng(&blocks.concat()), pcapng(&blocks[..2].concat())];
    harmed_captures_are_read_as_far_as_they_are_whole(&corpus, true);
}

#[test]
fn harmed_files_of_dnstap_are_read() {
    let addresses = [0x22, 4, 192, 0, 2, 1, 0x2a, 4, 192, 0, 2, 2, 0x30, 0xd2, 9, 0x38, 53, 0x4d, 5, 0, 0, 0];
    let (query, answer) = ([0x52, 3, b'a', b'b', b'c'], [0x60, 8, 0x6d, 1, 0, 0, 0, 0x72, 3, b'd', b'e', b'f']);
    let frames = [5, 6, 3, 2, 13].map(|kind| frame(kind, &[&addresses[..], &query, &answer].concat()));
    let corpus = [dnstap(&frames), dnstap(&frames[..1]), dnstap(&[frame(1, &query), vec![0xff; 5], vec![]])];
    harmed_captures_are_read_as_far_as_they_are_whole(&corpus, false);
}

#[test]
fn harmed_files_of_cdns_are_read() {
    harmed_captures_are_read_as_far_as_they_are_whole(&[CDNS.to_vec()], false);
}
