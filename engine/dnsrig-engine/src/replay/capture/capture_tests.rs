//! Readers of captures: what they find, and that no bytes hurt them.

use std::io::Cursor;

use proptest::prelude::*;

use super::{read::read_source, *};
use crate::{base::testing::inputs, replay::error::ReplayError};

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
    let report = read_source(Cursor::new(bytes.to_vec()), "capture".as_ref(), |packet| {
        found.push((packet.time_ns, packet.bytes.to_vec()));
        Ok(())
    })?;
    assert_eq!(report.packets, found.len() as u64);
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
    assert!(matches!(read("/nowhere".as_ref(), |_| Ok(())), Err(ReplayError::Read(..))));
}

#[test]
fn an_impossible_length_ends_the_capture() {
    let mut bytes = pcap(false, 0xa1b2_c3d4, &[(1, 2, b"one"), (3, 4, b"two")]);
    bytes[54] = 0xff;
    let (found, ended) = packets(&bytes).unwrap();
    assert_eq!((found.len(), ended), (1, Some("damaged at byte 43: a packet of more than a megabyte".into())));
}

proptest! {
    #![proptest_config(inputs(5_000))]

    #[test]
    fn no_bytes_hurt(
        start in prop::sample::select(vec![vec![], pcap(true, 0xa1b2_3c4d, &[(1, 2, b"one")]), pcap(false, 0xa1b2_cd34, &[])]),
        rest in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let bytes = [start, rest].concat();
        if let Ok((found, _)) = packets(&bytes) {
            prop_assert!(found.iter().map(|(_, packet)| packet.len()).sum::<usize>() <= bytes.len());
        }
    }
}
