//! Answers of every kind, and bytes that are none.

use std::str::FromStr;

use domain::base::Name;

use super::*;
use crate::{
    base::fuzz::fuzz,
    dns::{
        header::Header,
        query::{QUERY_BYTES_MAX, TAIL_BYTES, soa_query},
        record::{Record, Walk},
        testing::messages,
    },
};

/// Flags of an authoritative response: QR and AA.
const AUTHORITATIVE: [u8; 2] = [0x84, 0];

/// A name of the test, in wire format.
fn wire(name: &str) -> Vec<u8> {
    Name::<Vec<u8>>::from_str(name).unwrap().into_octets()
}

/// An answer: id 7, the question for `name`, and one SOA of `owner` with `serial`.
fn answer(name: &str, owner: &str, flags: [u8; 2], serial: u32) -> Vec<u8> {
    let mut bytes = vec![0, 7, flags[0], flags[1], 0, 1, 0, 1, 0, 0, 0, 0];
    bytes.extend(wire(name));
    bytes.extend([0, 6, 0, 1]);
    bytes.extend(wire(owner));
    // Type SOA, class IN, TTL 0, 22 bytes of data: two root names, serial, four timers.
    bytes.extend([0, 6, 0, 1, 0, 0, 0, 0, 0, 22, 0, 0]);
    bytes.extend(serial.to_be_bytes());
    bytes.extend([0; 16]);
    bytes
}

fn read(bytes: &[u8], awaited: Option<u32>) -> Verdict {
    read_answer(bytes, Name::<Vec<u8>>::from_str("z1.example").unwrap(), awaited)
}

fn soa(flags: [u8; 2], serial: u32, awaited: Option<u32>) -> Verdict {
    read(&answer("z1.example", "z1.example", flags, serial), awaited)
}

#[test]
fn a_query_asks_for_the_soa_without_recursion() {
    let query = soa_query(0x1234, &wire("z1.example"));
    let message = Message::from_octets(&query[..]).unwrap();
    assert_eq!((message.header().id(), message.header().qr(), message.header().rd()), (0x1234, false, false));
    let question = message.sole_question().unwrap();
    assert_eq!((question.qname().to_string().as_str(), question.qtype()), ("z1.example", Rtype::SOA));
    assert_eq!(soa_query(0, &[0; 255]).len(), QUERY_BYTES_MAX);
}

#[test]
fn the_serial_decides() {
    assert_eq!(soa(AUTHORITATIVE, 5, Some(5)), Verdict::Seen { serial: 5 });
    assert_eq!(soa(AUTHORITATIVE, 5, None), Verdict::Seen { serial: 5 });
    assert_eq!(soa(AUTHORITATIVE, 6, Some(5)), Verdict::Newer { serial: 6 });
    assert_eq!(soa(AUTHORITATIVE, 4, Some(5)), Verdict::Older);
    // Serials wrap (RFC 1982): 2 comes after 2^32 - 1; at a distance of 2^31 nothing is known.
    assert_eq!(soa(AUTHORITATIVE, 2, Some(u32::MAX)), Verdict::Newer { serial: 2 });
    assert_eq!(soa(AUTHORITATIVE, u32::MAX, Some(2)), Verdict::Older);
    assert_eq!(soa(AUTHORITATIVE, 1 << 31, Some(0)), Verdict::Older);
}

#[test]
fn only_an_authoritative_whole_answer_counts() {
    assert_eq!(soa([0x80, 0], 5, Some(5)), Verdict::NotAuthoritative);
    assert_eq!(soa([0x86, 0], 5, Some(5)), Verdict::Other, "truncated");
    assert_eq!(soa([0x84, 2], 5, Some(5)), Verdict::ServFail);
    assert_eq!(soa([0x84, 3], 5, Some(5)), Verdict::NxDomain);
    assert_eq!(soa([0x84, 5], 5, Some(5)), Verdict::Refused);
    assert_eq!(soa([0x84, 1], 5, Some(5)), Verdict::Other);
    assert_eq!(soa([0x04, 0], 5, Some(5)), Verdict::Mismatched, "a query, not a response");
}

#[test]
fn the_soa_must_be_of_that_zone() {
    assert_eq!(read(&answer("z1.example", "example", AUTHORITATIVE, 5), None), Verdict::Other);
    assert_eq!(read(&answer("z2.example", "z2.example", AUTHORITATIVE, 5), None), Verdict::Mismatched);
    assert_eq!(read(&answer("Z1.eXample", "z1.EXAMPLE", AUTHORITATIVE, 5), None), Verdict::Seen { serial: 5 });
    let mut in_authority = answer("z1.example", "z1.example", AUTHORITATIVE, 5);
    (in_authority[7], in_authority[9]) = (0, 1);
    assert_eq!(read(&in_authority, None), Verdict::Other);
}

#[test]
fn a_message_cut_short_is_malformed() {
    let whole = answer("z1.example", "z1.example", AUTHORITATIVE, 5);
    let question_end = 12 + wire("z1.example").len() + TAIL_BYTES;
    for length in question_end..whole.len() {
        assert_eq!(read(&whole[..length], None), Verdict::Malformed, "{length} bytes");
    }
    assert_eq!(response_id(&whole[..11]), None);
    assert_eq!(response_id(&whole), Some((7, 0)));
}

#[test]
fn verdicts_are_counted_apart() {
    let mut verdicts = Verdicts::default();
    for flags in [AUTHORITATIVE, AUTHORITATIVE, [0x84, 2]] {
        verdicts.count(soa(flags, 5, None));
    }
    assert_eq!(verdicts, Verdicts { seen: 2, servfail: 1, ..Verdicts::default() });
}

/// The serial of the first SOA record of the zone among the answers, as another walk finds it.
fn serial(bytes: &[u8]) -> Option<u32> {
    let mut walk = Walk::new(bytes);
    walk.skip_question().ok()?;
    let answers = Header::read(bytes).ok()?.answers;
    let of_zone = |record: &Record| {
        let mut owner = Vec::new();
        let is_soa = record.owner_into(&mut owner).is_ok() && record.rtype == Rtype::SOA && record.class.to_int() == 1;
        is_soa && owner.eq_ignore_ascii_case(&wire("z1.example"))
    };
    let mut records = (0..answers).map_while(|_| walk.any_record().ok());
    records.find(of_zone)?.serial().ok()
}

/// A serial is only read from a message that says so, and its id is the one in its first two bytes.
#[test]
fn harmed_answers_have_the_serial_that_is_in_them() {
    let mut corpus = vec![answer("z1.example", "z1.example", AUTHORITATIVE, 5)];
    corpus.push(answer("z1.example", "Z1.example", AUTHORITATIVE, 6));
    corpus.extend(messages());
    fuzz(10_000, &corpus, |bytes, _| {
        let is_response = bytes.len() >= 12 && bytes[2] & 0x80 != 0;
        let id = is_response.then(|| (u16::from_be_bytes([bytes[0], bytes[1]]), bytes[3] & 15));
        assert_eq!(response_id(bytes), id);
        let found = [read(bytes, None), read(bytes, Some(5))];
        match found {
            [Verdict::Seen { serial }, expected] => {
                let has_aa = is_response && bytes[2] & 0x06 == 0x04 && bytes[3] & 15 == 0;
                assert!(has_aa && self::serial(bytes) == Some(serial), "{serial}");
                assert_eq!(expected, compare(serial, Some(5)));
            }
            [one, other] => assert_eq!(one, other),
        }
    });
}
