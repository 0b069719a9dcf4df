//! Link layers, IP, UDP and fragments: what they find, and that no bytes hurt them.

use dnsrig_net::ipv6::Fragment;
use dnsrig_testing::{fuzz::fuzz, inputs};
use proptest::prelude::*;

use super::{
    fragments::{Counts, Fragments},
    ip::{self, Packet},
    link::Link,
    tcp,
};

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
    let found = ip::parse_udp(&datagram, true).unwrap();
    assert_eq!((found.source_port, found.destination_port, found.payload), (53, 54, &[1, 2][..]));
    assert!(found.is_whole);
    assert_eq!(ip::parse_udp(&datagram[..9], true), None);
    assert!(!ip::parse_udp(&datagram[..9], false).unwrap().is_whole);
}

/// A query in an IPv4 datagram, and in an IPv6 one behind an extension header.
fn datagrams() -> [Vec<u8>; 2] {
    let udp = [&[9, 9, 0, 53, 0, 25, 0, 0][..], &[0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1]].concat();
    let v4 = [&[0x45, 0, 0, 45, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2][..], &udp].concat();
    let v6 = [&[0x60, 0, 0, 0, 0, 33, 60, 64][..], &[1; 16], &[2; 16], &[17, 0, 1, 4, 0, 0, 0, 0], &udp].concat();
    [v4, v6]
}

/// An IPv4 packet of a protocol with what it carries.
fn carrying(protocol: u8, payload: &[&[u8]]) -> Vec<u8> {
    let payload = payload.concat();
    let mut packet = [ip_of(protocol), vec![198, 51, 100, 1, 198, 51, 100, 2], payload].concat();
    packet[3] = packet.len() as u8;
    packet
}

fn ethernet(ethertype: &[u8], rest: &[u8]) -> Vec<u8> {
    [&[2; 12][..], ethertype, rest].concat()
}

/// Packets of all link layers and tunnels, each behind the number of its link layer.
pub fn packets() -> Vec<Vec<u8>> {
    let [v4, v6] = datagrams();
    let inner = ethernet(&[8, 0], &v4);
    let udp = |port: u16, header: &[u8]| {
        let length = (8 + header.len() + inner.len()) as u16;
        carrying(17, &[&[0, 9], &port.to_be_bytes(), &length.to_be_bytes(), &[0, 0], header, &inner])
    };
    let fragment = [&[0x45, 0, 0, 36, 0, 1, 0x20, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2][..], &[7; 16]].concat();
    let tcp = carrying(6, &[&[9, 9, 0, 53, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x18, 0, 9, 0, 0, 0, 0], &[0, 17], &v4[28..]]);
    let attribute = (4 + v4.len() as u16).to_le_bytes();
    let of_links = [
        (0, [&[2, 0, 0, 0][..], &v4].concat()),
        (1, ethernet(&[8, 0], &[&v4[..], &[0; 6]].concat())),
        (1, ethernet(&[0x81, 0, 0, 7, 0x86, 0xdd], &v6)),
        (1, ethernet(&[0x88, 0x47, 0, 0, 0, 64, 0, 0, 1, 64], &v4)),
        (1, ethernet(&[0x88, 0x64, 0x11, 0, 0, 1, 0, 9, 0, 0x21], &v4)),
        (9, [&[0xff, 3, 0, 0x57][..], &v6].concat()),
        (104, [&[15, 0, 8, 0][..], &v4].concat()),
        (113, [&[0; 14][..], &[8, 0], &v4].concat()),
        (239, [&[2, 0, 0, 0, 8, 0, 1, 0, 9, 9, 9, 9, attribute[0], attribute[1], 9, 0][..], &v4].concat()),
        (276, [&[0x86, 0xdd][..], &[0; 18], &v6].concat()),
        (101, v4.clone()),
        (101, tcp),
        (101, fragment),
        (101, carrying(4, &[&v4])),
        (101, carrying(41, &[&v6])),
        (101, carrying(47, &[&[0xb0, 0, 0x65, 0x58, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2], &inner])),
        (101, carrying(47, &[&[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1], &[0; 8], &inner])),
        (101, carrying(47, &[&[0x10, 0, 0x22, 0xeb, 0, 0, 0, 1], &[0; 12], &inner])),
        (101, udp(4789, &[8, 0, 0, 0, 0, 0, 1, 0])),
        (101, udp(6081, &[1, 0, 0x65, 0x58, 0, 0, 1, 0, 1, 2, 3, 4])),
    ];
    of_links.into_iter().map(|(link, packet)| [vec![link as u8, (link >> 8) as u8], packet].concat()).collect()
}

/// The IP packet that is in a captured one, out of all others that carry it.
fn innermost(link: Link, bytes: &[u8]) -> Option<Packet<'_>> {
    let mut packet = link.ip(bytes).and_then(ip::parse)?;
    for _ in 0..ip::DEPTH_MAX {
        let inner = ip::inner(&packet, &[53]);
        assert!(inner.is_none_or(|inner| packet.payload.as_ptr_range().contains(&inner.as_ptr()) || inner.is_empty()));
        packet = inner.and_then(ip::parse).unwrap_or(packet);
    }
    Some(packet)
}

#[test]
fn a_query_is_found_in_packets_of_each_kind() {
    let query = &datagrams()[0][20..];
    let found = |packet: &Vec<u8>| {
        let link = Link::of(u16::from_le_bytes([packet[0], packet[1]])).unwrap();
        innermost(link, &packet[2..]).is_some_and(|packet| packet.payload == query && packet.is_whole)
    };
    let missing: Vec<_> = packets().iter().enumerate().filter(|(_, packet)| !found(packet)).map(|it| it.0).collect();
    assert_eq!(missing, [11, 12], "all but the segment and the fragment");
}

/// Whatever a packet has: what is cut off makes a payload shorter and changes nothing else, and bytes behind a whole
/// packet change nothing.
#[test]
fn harmed_packets_are_read_as_far_as_they_are_there() {
    let packets = packets();
    let mut fragments = Fragments::default();
    let mut read = 0;
    fuzz(20_000, &packets, |bytes, random| {
        let Some((&[low, high], bytes)) = bytes.split_first_chunk() else { return };
        let number = u16::from_le_bytes([low, high]);
        let link = Link::of(number).or_else(|| Link::of(LINKS[usize::from(low) % LINKS.len()])).unwrap();
        link.ethertype(bytes);
        let longer = [bytes, &[7; 20]].concat();
        let cut = &bytes[..random.below(bytes.len() as u64 + 1) as usize];
        let Some(packet) = innermost(link, bytes) else { return };
        // A packet that carries another one, which is there or not, is another packet.
        let at = |packet: &Packet, of: &[u8]| packet.payload.as_ptr().addr() - of.as_ptr().addr();
        if let Some(cut) = innermost(link, cut).filter(|cut| at(cut, bytes) == at(&packet, bytes)) {
            assert!(packet.payload.starts_with(cut.payload) && packet.fragment == cut.fragment, "{packet:?}, {cut:?}");
        }
        let padded = innermost(link, &longer).filter(|padded| at(padded, &longer) == at(&packet, bytes));
        if let Some(padded) = padded.filter(|_| packet.is_whole) {
            assert!(padded.payload.starts_with(packet.payload), "{packet:?} and {padded:?}");
        }
        if let Some(datagram) = ip::parse_udp(packet.payload, packet.is_whole) {
            assert!(datagram.is_whole || !packet.is_whole);
            assert!(datagram.payload.len() + 8 <= packet.payload.len());
        }
        if let Some(segment) = tcp::parse(packet.payload) {
            assert!(segment.payload.len() + 20 <= packet.payload.len());
        }
        read += u64::from(packet.fragment.is_some());
        let time_ns = (random.bits() >> 20) as i64;
        if let Some(whole) = fragments.add(time_ns, &packet) {
            assert!(whole.payload.len() <= 0xffff);
        }
    });
    let counts = fragments.finish();
    assert!(counts.read == read && counts.is_balanced(), "{counts:?}");
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
