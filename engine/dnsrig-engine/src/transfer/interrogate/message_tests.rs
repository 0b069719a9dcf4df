use std::str::FromStr;

use super::*;

fn zone() -> ZoneName {
    Name::from_str("z.example").unwrap()
}

fn query(ask: Ask) -> Vec<u8> {
    write_query(513, &zone(), ask, None, Time48::from_u64(0)).unwrap().0
}

/// z.example as a question for a type, class IN.
fn question(rtype: u8) -> Vec<u8> {
    [b"\x01z\x07example\x00\x00", &[rtype][..], b"\x00\x01"].concat()
}

#[test]
fn queries_are_as_their_rfcs_have_them() {
    let header = |authority: u8, additional: u8| vec![2, 1, 0, 0, 0, 1, 0, 0, 0, authority, 0, additional];
    assert_eq!(query(Ask::Soa), [header(0, 0), question(6)].concat());
    assert_eq!(query(Ask::Axfr), [header(0, 0), question(252)].concat());
    // RFC 1995 §3: the SOA with the client's serial in the authority section.
    let ixfr = query(Ask::Ixfr { serial: 0x0102_0304 });
    assert!(ixfr.starts_with(&[header(1, 0), question(251)].concat()));
    assert!(ixfr.windows(4).any(|octets| octets == [1, 2, 3, 4]));
    // RFC 7828 §3.1: option 11 without a value.
    assert!(query(Ask::SoaWithKeepalive).ends_with(&[0, 4, 0, 11, 0, 0]));
}

#[test]
fn a_query_is_no_answer() {
    assert!(read_answer(&query(Ask::Soa)).is_err());
    assert!(read_answer(&[]).is_err());
}

#[test]
fn a_frame_begins_with_the_length() {
    assert_eq!(framed(b"abc"), b"\x00\x03abc");
}
