//! Link layers, IP, UDP and fragments: what they find, and that no bytes hurt them.

use proptest::prelude::*;

use super::{
    fragments::{Counts, Fragments},
    ip::{self, Packet},
    link::Link,
    tunnel, udp,
};
use crate::{base::testing::inputs, net::ipv6::Fragment};

const LINKS: [u16; 14] = [0, 108, 1, 9, 50, 12, 14, 101, 228, 229, 104, 113, 239, 276];

/// The beginning of an IP packet of a protocol, up to its source.
fn ip_of(protocol: u8) -> Vec<u8> {
    vec![0x45, 0, 0, 200, 0, 0, 0, 0, 64, protocol, 0, 0]
}

fn piece(offset: usize, payload: &[u8], more_follow: bool) -> Packet<'_> {
    let fragment = Some(Fragment { id: 1, offset, more_follow });
    let (source, destination) = (1.into(), 2.into());
    Packet { source, destination, protocol: ip::UDP, payload, is_whole: true, fragment }
}

#[test]
fn fragments_come_in_any_order() {
    let mut fragments = Fragments::default();
    assert_eq!(fragments.add(5, &piece(8, b"89abcdef", true)), None);
    assert_eq!(fragments.add(6, &piece(8, b"89abcdef", true)), None);
    assert_eq!(fragments.add(7, &piece(16, b"end", false)), None);
    let whole = fragments.add(8, &piece(0, b"01234567", true)).unwrap();
    assert_eq!((whole.time_ns, whole.payload.as_slice()), (5, b"0123456789abcdefend".as_slice()));
    assert_eq!(fragments.finish(), Counts { read: 4, used: 3, repeated: 1, ..Counts::default() });
}

#[test]
fn what_overlaps_or_is_missing_is_counted() {
    let mut fragments = Fragments::default();
    assert_eq!(fragments.add(0, &piece(0, &[1; 16], true)), None);
    assert_eq!(fragments.add(0, &piece(8, &[2; 16], false)), None);
    assert_eq!(fragments.add(61_000_000_000, &piece(0, &[1; 16], true)), None);
    assert_eq!(fragments.add(61_000_000_000, &piece(65_528, &[1; 16], true)), None);
    assert_eq!(fragments.add(61_000_000_000, &piece(8, &[1; 9], true)), None);
    let expected = Counts { read: 5, overlapping: 2, incomplete: 1, malformed: 2, ..Counts::default() };
    assert_eq!(fragments.finish(), expected);
}

#[test]
fn waiting_fragments_are_bounded() {
    let mut fragments = Fragments::default();
    for id in 0..20_000 {
        let fragment = Some(Fragment { id, offset: 0, more_follow: true });
        fragments.add(0, &Packet { fragment, ..piece(0, &[0; 4096], true) });
    }
    let counts = fragments.finish();
    assert_eq!((counts.incomplete, counts.is_balanced()), (20_000, true));
}

#[test]
fn padding_and_cut_payloads_are_told_apart() {
    let datagram = [0, 53, 0, 54, 0, 10, 0, 0, 1, 2, 0, 0];
    let found = udp::parse(&datagram, true).unwrap();
    assert_eq!((found.source_port, found.destination_port, found.payload), (53, 54, &[1, 2][..]));
    assert!(found.is_whole);
    assert_eq!(udp::parse(&datagram[..9], true), None);
    assert!(!udp::parse(&datagram[..9], false).unwrap().is_whole);
}

proptest! {
    #![proptest_config(inputs(20_000))]

    #[test]
    fn no_packet_hurts(
        link in 0usize..LINKS.len(),
        start in prop::sample::select(vec![
            vec![], vec![0x45, 0, 0, 40], vec![0x60, 0, 0, 0, 0, 40, 44], vec![0, 0, 0, 2, 0x60, 0, 0, 0, 0, 9, 0],
            vec![0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x81, 0, 0, 0, 0x08, 0], vec![0; 4],
            [ip_of(4), vec![0; 8], ip_of(41)].concat(),
            [ip_of(47), vec![0; 8], vec![0, 0, 0x65, 0x58]].concat(),
            [ip_of(47), vec![0; 8], vec![0x10, 0, 0x88, 0xbe]].concat(),
            [ip_of(47), vec![0; 8], vec![0x10, 0, 0x22, 0xeb]].concat(),
            [ip_of(17), vec![0; 8], vec![0, 9, 0x12, 0xb5, 0, 180, 0, 0, 8]].concat(),
            [ip_of(17), vec![0; 8], vec![0, 9, 0x17, 0xc1, 0, 180, 0, 0, 1, 0, 0x65, 0x58]].concat(),
        ]),
        rest in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let bytes = [start, rest].concat();
        let mut fragments = Fragments::default();
        let link = Link::of(LINKS[link]).unwrap();
        link.ethertype(&bytes);
        let mut packet = link.ip(&bytes).and_then(ip::parse);
        for _ in 0..tunnel::DEPTH_MAX {
            let inner = packet.and_then(|packet| tunnel::inner(&packet, &[53]));
            prop_assert!(inner.is_none_or(|inner| inner.len() < packet.unwrap().payload.len() + 1));
            packet = inner.and_then(ip::parse).or(packet);
        }
        if let Some(packet) = packet {
            udp::parse(packet.payload, packet.is_whole);
            fragments.add(0, &packet);
        }
        prop_assert!(fragments.finish().is_balanced());
    }
}

proptest! {
    #![proptest_config(inputs(2_000))]

    /// Any fragments of few datagrams: the counts add up, and what comes out is no longer than what went in.
    #[test]
    fn any_fragments_add_up(
        pieces in prop::collection::vec((0u32..3, 0usize..6, 0usize..4, any::<bool>(), 0u8..2), 0..60),
    ) {
        let mut fragments = Fragments::default();
        let mut given = 0;
        for (id, offset, length, more_follow, fill) in pieces {
            let payload = vec![fill; length * 8];
            given += payload.len();
            let fragment = Some(Fragment { id, offset: offset * 8, more_follow });
            if let Some(whole) = fragments.add(0, &Packet { fragment, ..piece(0, &payload, true) }) {
                prop_assert!(whole.payload.len() <= given);
            }
        }
        prop_assert!(fragments.finish().is_balanced());
    }
}
