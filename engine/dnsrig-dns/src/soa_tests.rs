//! Answers of every kind, and bytes that are no answer.

use std::str::FromStr;

use dnsrig_testing::{fuzz::fuzz, inputs};
use domain::base::{Message, ParsedName, ToName};
use proptest::{collection::vec, prelude::*};

use super::*;
use crate::{
    query::{QUERY_BYTES_MAX, TAIL_BYTES, soa_query},
    testing::{Rr, messages, response},
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
    read_answer(bytes, Name::<Vec<u8>>::from_str("z1.example").unwrap().as_ref(), awaited)
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

/// The answer as another library reads it.
fn read_by_domain(message: &[u8], name: &Name<[u8]>) -> Verdict {
    let Ok(message) = Message::from_octets(message) else { return Verdict::Malformed };
    let header = message.header();
    let Ok(question) = message.sole_question() else { return Verdict::Mismatched };
    let is_asked = question.qtype() == Rtype::SOA && question.qclass() == Class::IN && question.qname().name_eq(name);
    if !header.qr() || !is_asked {
        return Verdict::Mismatched;
    }
    let serial = || -> Result<Option<u32>, domain::base::wire::ParseError> {
        for record in message.answer()?.limit_to_in::<domain::rdata::Soa<ParsedName<_>>>() {
            let record = record?;
            if record.owner().name_eq(name) {
                return Ok(Some(record.data().serial().into_int()));
            }
        }
        Ok(None)
    };
    match header.rcode() {
        Rcode::NOERROR if header.tc() => Verdict::Other,
        Rcode::NOERROR => match serial() {
            Err(_) => Verdict::Malformed,
            Ok(None) => Verdict::Other,
            Ok(Some(_)) if !header.aa() => Verdict::NotAuthoritative,
            Ok(Some(serial)) => Verdict::Seen { serial },
        },
        Rcode::SERVFAIL => Verdict::ServFail,
        Rcode::REFUSED => Verdict::Refused,
        Rcode::NXDOMAIN => Verdict::NxDomain,
        _ => Verdict::Other,
    }
}

/// The other library follows pointers that lead nowhere before, so it takes some messages that are malformed here, and
/// looks at names up to their ends where they are not needed.
#[test]
fn harmed_answers_are_read_as_another_library_reads_them() {
    let mut corpus = vec![answer("z1.example", "z1.example", AUTHORITATIVE, 5)];
    corpus.push(answer("z1.example", "Z1.example", AUTHORITATIVE, 6));
    corpus.extend(messages());
    let zone = Name::<Vec<u8>>::from_str("z1.example").unwrap();
    let mut agreed = 0;
    fuzz(20_000, &corpus, |bytes, _| {
        let is_response = bytes.len() >= 12 && bytes[2] & 0x80 != 0;
        let id = is_response.then(|| (u16::from_be_bytes([bytes[0], bytes[1]]), bytes[3] & 15));
        assert_eq!(response_id(bytes), id);
        let (found, other) = (read(bytes, None), read_by_domain(bytes, zone.as_ref()));
        match (found, other) {
            (one, other) if one == other => agreed += 1,
            (Verdict::Malformed | Verdict::Mismatched, _) | (_, Verdict::Malformed) => (),
            (one, other) => panic!("{one:?}, and {other:?} as the other library reads it"),
        }
        match found {
            Verdict::Seen { serial } => assert_eq!(read(bytes, Some(5)), compare(serial, Some(5))),
            found => assert_eq!(read(bytes, Some(5)), found),
        }
    });
    assert!(agreed > 19_000, "{agreed} of 20,000");
}

fn soa_record_of(data: &[u8]) -> Result<Option<Soa>, ParseError> {
    let message = response(None, &[Rr::new(&[0], Rtype::SOA.to_int(), data)]);
    Soa::read(&Walk::new(&message).any_record().unwrap())
}

fn names(labels: &[Vec<u8>]) -> Vec<u8> {
    let labels = labels.iter().flat_map(|label| [&[label.len() as u8], &label[..]].concat());
    labels.chain([0]).collect()
}

proptest! {
    #![proptest_config(inputs(1000))]

    /// Two SOA records are equal if their data is, but for the case of letters in names.
    #[test]
    fn a_fingerprint_stands_for_all_data(
        host in vec(vec(any::<u8>(), 1..20), 0..5), mailbox in vec(vec(any::<u8>(), 1..20), 0..5),
        numbers in any::<[u8; 20]>(), place: prop::sample::Index, bit in 0..8_u32,
    ) {
        let data = [names(&host), names(&mailbox), numbers.to_vec()].concat();
        let one = soa_record_of(&data).unwrap().unwrap();
        prop_assert_eq!(&one.serial.to_be_bytes()[..], &numbers[..4]);

        let names_bytes = data.len() - 20;
        let mut upper = data.clone();
        upper[..names_bytes].make_ascii_uppercase();
        prop_assert_eq!(soa_record_of(&upper).unwrap().unwrap(), one);

        let mut other = data.clone();
        let place = place.index(data.len());
        other[place] ^= 1 << bit;
        let same = place < names_bytes && other[place].eq_ignore_ascii_case(&data[place]);
        // Another length of a label may leave no SOA at all, or one of other names.
        if let Ok(Some(read)) = soa_record_of(&other) {
            prop_assert_eq!(read == one, same);
        }
    }
}

#[test]
fn labels_are_told_apart_from_each_other() {
    let read = |host: &[&[u8]], mailbox: &[&[u8]]| {
        let names = [host, mailbox].map(|labels| names(&labels.iter().map(|label| label.to_vec()).collect::<Vec<_>>()));
        soa_record_of(&[&names.concat()[..], &[0; 20]].concat()).unwrap().unwrap()
    };
    let several = [
        read(&[b"ab"], &[]),
        read(&[b"a", b"b"], &[]),
        read(&[b"a"], &[b"b"]),
        read(&[], &[b"ab"]),
        read(&[b"\0ab"], &[]),
        read(&[b"ab\0"], &[]),
        read(&[b"abcdefgh"], &[]),
        read(&[b"abcdefgh\0"], &[]),
    ];
    for (place, one) in several.iter().enumerate() {
        assert!(several[..place].iter().all(|other| other != one), "{place}");
    }
}
