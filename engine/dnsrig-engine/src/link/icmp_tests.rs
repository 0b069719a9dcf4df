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
    fragmentation_needed(packet, 1400, &mut room).map(|length| room[..length].to_vec())
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
    assert_eq!((answer.len(), &answer[28..]), (ANSWER_BYTES_MAX, &packet[..68]));
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
    assert_eq!(changed(&[(0, 0x60)]), None, "IPv6");
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

proptest! {
    #[test]
    fn any_bytes_are_answered_rightly_or_not_at_all(mut bytes in vec(any::<u8>(), 0..100), plain in any::<bool>()) {
        if plain && bytes.len() > 6 {
            (bytes[0], bytes[6]) = (0x45, 0x40);
        }
        if let Some(answer) = answer(&bytes) {
            prop_assert_eq!((checksum(&answer[..20]), checksum(&answer[20..])), (0, 0));
            prop_assert_eq!(&answer[28..], &bytes[..answer.len() - 28]);
        }
    }
}
