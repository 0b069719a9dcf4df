use proptest::{collection::vec, prelude::*};

use super::*;

/// TCP from 198.18.0.1 to 198.18.0.2 with DF, 1,500 bytes; of the segment only the ports and the sequence matter.
fn packet() -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0x05, 0xdc, 0x12, 0x34, 0x40, 0, 64, 6, 0, 0, 198, 18, 0, 1, 198, 18, 0, 2];
    let sum = checksum(&packet);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend([0x00, 0x35, 0xc0, 0x01, 0xde, 0xad, 0xbe, 0xef]);
    packet.resize(1500, 0xaa);
    packet
}

fn answer(packet: &[u8]) -> Option<Vec<u8>> {
    let mut room = [0xff; ANSWER_BYTES_MAX];
    too_big(packet, 1400, &mut room).map(|length| room[..length].to_vec())
}

/// A UDP packet from 2001:2::1 to 2001:2::2 of this length.
fn packet_of_ipv6(bytes: u16) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, 0, 17, 64];
    packet[4..6].copy_from_slice(&(bytes - 40).to_be_bytes());
    for last in [1, 2] {
        packet.extend([0x20, 0x01, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
    }
    packet.extend([0xc0, 0x01, 0x00, 0x35, 0x05, 0xb4, 0xde, 0xad]);
    packet.resize(bytes.into(), 0xaa);
    packet
}

#[test]
fn the_checksum_is_that_of_rfc_1071() {
    // The example of RFC 1071 §3: the sum of these bytes is ddf2.
    assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
    assert_eq!(checksum(&[0x01]), !0x0100, "an odd byte is the first of a pair");
}

#[test]
fn the_sender_is_told_the_mtu_and_of_which_packet() {
    let packet = packet();
    let answer = answer(&packet).unwrap();
    // Version and length of the header, internetwork control, 56 bytes in all, no id, DF, TTL 64, ICMP.
    assert_eq!(answer[..10], [0x45, 0xc0, 0, 56, 0, 0, 0x40, 0, 64, 1]);
    assert_eq!(answer[12..20], [198, 18, 0, 2, 198, 18, 0, 1], "from the packet's destination to its source");
    assert_eq!(checksum(&answer[..20]), 0);
    assert_eq!(checksum(&answer[20..]), 0);
    // Type 3, code 4, the checksum, two bytes unused, the MTU of the next hop (RFC 1191 §4).
    assert_eq!((answer[20], answer[21], &answer[24..28]), (3, 4, &[0, 0, 0x05, 0x78][..]));
    assert_eq!(answer[28..], packet[..28]);
}

#[test]
fn the_quotation_has_the_whole_header() {
    let mut packet = packet();
    // 40 bytes of options.
    packet[0] = 0x4f;
    let answer = answer(&packet).unwrap();
    assert_eq!((answer.len(), &answer[28..]), (28 + 68, &packet[..68]));
    assert_eq!(checksum(&answer[20..]), 0);
}

#[test]
fn some_are_not_told() {
    let changed = |changes: &[(usize, u8)]| {
        let mut packet = packet();
        changes.iter().for_each(|(at, byte)| packet[*at] = *byte);
        answer(&packet)
    };
    assert_eq!(changed(&[(6, 0)]), None, "it may be fragmented");
    assert_eq!(changed(&[(7, 1)]), None, "a fragment but the first");
    assert_eq!(changed(&[(0, 0x50)]), None, "neither IPv4 nor IPv6");
    assert_eq!(changed(&[(0, 0x44)]), None, "a header that is too short");
    for (at, first) in [(12, 0), (12, 127), (12, 224), (12, 255), (16, 224), (16, 255)] {
        assert_eq!(changed(&[(at, first)]), None, "{first} is no single host's");
    }
    for kind in ERROR_TYPES {
        assert_eq!(changed(&[(9, PROTOCOL_ICMP), (20, kind)]), None, "an error about an error");
    }
    assert!(changed(&[(9, PROTOCOL_ICMP), (20, 8)]).is_some(), "an echo request");
    assert_eq!(answer(&packet()[..27]), None);
    assert_eq!(answer(&[]), None);
}

/// The message that scapy 2.8 makes for this packet:
/// `IPv6(src="2001:2::2", dst="2001:2::1", hlim=64)/ICMPv6PacketTooBig(mtu=1400)/raw(packet)[:1232]`.
#[test]
fn the_sender_is_told_over_ipv6_with_as_much_of_the_packet_as_fits() {
    let packet = packet_of_ipv6(1500);
    let answer = answer(&packet).unwrap();
    assert_eq!(answer.len(), 1280);
    assert_eq!(answer[..8], [0x60, 0, 0, 0, 0x04, 0xd8, 58, 64], "1,240 bytes of ICMPv6, hop limit 64");
    assert_eq!((&answer[8..24], &answer[24..40]), (&packet[24..40], &packet[8..24]));
    assert_eq!(answer[40..48], [2, 0, 0xad, 0x2b, 0, 0, 0x05, 0x78]);
    assert_eq!(answer[48..], packet[..1232]);
    assert_eq!(checksum_of_ipv6(&answer[..40], &answer[40..]), 0);
}

#[test]
fn some_are_not_told_over_ipv6() {
    let changed = |changes: &[(usize, u8)]| {
        let mut packet = packet_of_ipv6(1500);
        changes.iter().for_each(|(at, byte)| packet[*at] = *byte);
        answer(&packet)
    };
    assert_eq!(changed(&[(8, 0xff)]), None, "from a group");
    assert_eq!(changed(&[(24, 0xff)]), None, "to a group");
    let loopback: Vec<_> = (8..23).map(|at| (at, 0)).collect();
    assert_eq!(changed(&[loopback, vec![(23, 1)]].concat()), None, "from loopback");
    for (kind, told) in [(1, false), (2, false), (127, false), (128, true), (129, true), (137, false)] {
        assert_eq!(changed(&[(6, 58), (40, kind)]).is_some(), told, "ICMPv6 of type {kind}");
        let behind_options = [(6, 60), (40, 58), (41, 1), (56, kind)];
        assert_eq!(changed(&behind_options).is_some(), told, "and behind an extension header of 16 bytes");
    }
    // A fragment header says where in the datagram this part is, and whether more follow.
    assert!(changed(&[(6, 44), (40, 17), (42, 0), (43, 1)]).is_some(), "the first fragment");
    assert_eq!(changed(&[(6, 44), (40, 17), (42, 5), (43, 0xa9)]), None, "a later one");
    assert_eq!(answer(&packet_of_ipv6(1500)[..39]), None);
    let mut room = [0; ANSWER_BYTES_MAX];
    assert_eq!(too_big(&packet_of_ipv6(1500), 1279, &mut room), None, "no MTU of IPv6");
}

proptest! {
    #[test]
    fn any_bytes_are_answered_rightly_or_not_at_all(
        mut bytes in vec(any::<u8>(), 0..100),
        plain in any::<bool>(),
        more in 0..1500_usize,
        next in proptest::sample::select(vec![0_u8, 6, 17, 43, 44, 51, 58, 60]),
        of_ipv6 in any::<bool>(),
    ) {
        if plain && bytes.len() > 6 {
            (bytes[0], bytes[6]) = if of_ipv6 { (0x60, next) } else { (0x45, 0x40) };
        }
        bytes.resize(bytes.len() + more, next);
        match answer(&bytes) {
            Some(answer) if answer[0] == 0x45 => {
                prop_assert_eq!((checksum(&answer[..20]), checksum(&answer[20..])), (0, 0));
                prop_assert_eq!(&answer[28..], &bytes[..answer.len() - 28]);
            }
            Some(answer) => {
                prop_assert_eq!(answer.len(), 1280.min(48 + bytes.len()));
                prop_assert_eq!(checksum_of_ipv6(&answer[..40], &answer[40..]), 0);
                prop_assert_eq!(&answer[48..], &bytes[..answer.len() - 48]);
            }
            None => {}
        }
    }
}
