//! Signatures, made and checked by another library.

use std::sync::Arc;

use dnsrig_dns::{query::Ask, tsig::sign::Signer};
use domain::{
    base::{Message, MessageBuilder, Name, Rtype},
    rdata::tsig::Time48,
    tsig::{ClientSequence, KeyName},
    utils::base64,
};
use proptest::prelude::*;

use super::*;
use crate::serve::zones::{
    faults::Faults,
    shape::tests::shape,
    testing::{NOW, converse, primary, query, records, zone},
};

const SECRET: &str = "c2VjcmV0IG9mIGEga2V5IQ==";

fn theirs(algorithm: &str, name: &str, secret: &str) -> Arc<domain::tsig::Key> {
    let secret: Vec<u8> = base64::decode(secret).unwrap();
    let name = name.parse::<KeyName>().unwrap();
    Arc::new(domain::tsig::Key::new(algorithm.parse().unwrap(), &secret, name, None, None).unwrap())
}

fn signing(algorithm: &str, signed_every: u32, fault: Option<Fault>) -> Primary {
    let mut primary = primary(shape(4, 50));
    primary.key = Some(Signer::parse(&format!("{algorithm}:Key.example:{SECRET}")).unwrap());
    primary.cut.signed_every = signed_every;
    primary.cut.records_max = 5;
    primary.faults = Faults::new(fault.as_slice(), 1);
    primary
}

/// A query for zone 1, signed with `key` at `time_s`, and what checks its answers.
fn signed(key: Arc<domain::tsig::Key>, time_s: u64) -> (Vec<u8>, ClientSequence<Arc<domain::tsig::Key>>) {
    let mut question = MessageBuilder::new_vec().question();
    question.push((Name::<Vec<u8>>::from_octets(zone(1)).unwrap(), Rtype::AXFR)).unwrap();
    let mut additional = question.additional();
    let sequence = ClientSequence::request(key, &mut additional, Time48::from_u64(time_s)).unwrap();
    (additional.finish(), sequence)
}

fn answers(primary: &Primary, query: &[u8]) -> Vec<Vec<u8>> {
    converse(primary, [query], &mut Counts::default()).0
}

/// How many messages are right before the first that is not, or before the end.
fn right(messages: &[Vec<u8>], mut sequence: ClientSequence<Arc<domain::tsig::Key>>) -> (usize, bool) {
    for (number, bytes) in messages.iter().enumerate() {
        let mut message = Message::from_octets(bytes.clone()).unwrap();
        if sequence.answer(&mut message, Time48::from_u64(NOW.wall_s)).is_err() {
            return (number, false);
        }
    }
    (messages.len(), sequence.done().is_ok())
}

#[test]
fn every_message_is_verified_by_another_library_however_few_are_signed() {
    for algorithm in ["hmac-sha1", "hmac-sha256", "hmac-sha384", "hmac-sha512"] {
        for signed_every in [1, 2, 3, 100] {
            let (query, sequence) = signed(theirs(algorithm, "key.example", SECRET), NOW.wall_s);
            let messages = answers(&signing(algorithm, signed_every, None), &query);
            assert_eq!(right(&messages, sequence), (11, true), "{algorithm} {signed_every}");
            assert_eq!(records(&messages).len(), 51);
            let is_signed = |message: &Vec<u8>| message[11] == 1;
            let expected = (0..11).filter(|number| number % signed_every == 0 || *number == 10).count();
            assert_eq!(messages.iter().filter(|message| is_signed(message)).count(), expected);
        }
    }
}

#[test]
fn the_last_message_can_be_wrong_or_unsigned() {
    let sha256 = || signed(theirs("hmac-sha256", "key.example", SECRET), NOW.wall_s);
    let (query, sequence) = sha256();
    let messages = answers(&signing("hmac-sha256", 1, Some(Fault::TsigWrong)), &query);
    assert_eq!(right(&messages, sequence), (10, false));
    let (query, sequence) = sha256();
    let messages = answers(&signing("hmac-sha256", 1, Some(Fault::TsigMissing)), &query);
    assert_eq!(right(&messages, sequence), (11, false), "it is the end that is not signed");
}

/// Response code and TSIG error of the only answer.
fn refusal(primary: &Primary, query: &[u8]) -> (u8, Option<u16>) {
    let messages = answers(primary, query);
    assert_eq!(messages.len(), 1);
    let message = Message::from_octets(&messages[0][..]).unwrap();
    let tsig = message.additional().unwrap().limit_to::<domain::rdata::Tsig<_, _>>().next();
    (message.header().rcode().to_int(), tsig.map(|tsig| tsig.unwrap().data().error().to_int()))
}

#[test]
fn a_signature_that_is_not_accepted_is_told_why() {
    let primary = signing("hmac-sha256", 1, None);
    let from = |algorithm, name, secret, time_s| signed(theirs(algorithm, name, secret), time_s).0;
    let now_s = NOW.wall_s;
    for (query, expected) in [
        (query(1, &zone(1), Ask::Axfr), (5, None)),
        (from("hmac-sha256", "other.example", SECRET, now_s), (9, Some(17))),
        (from("hmac-sha512", "key.example", SECRET, now_s), (9, Some(17))),
        (from("hmac-sha256", "key.example", "b3RoZXIgc2VjcmV0IGtleQ==", now_s), (9, Some(16))),
        (from("hmac-sha256", "key.example", SECRET, now_s - 301), (9, Some(18))),
        (from("hmac-sha256", "key.example", SECRET, now_s + 301), (9, Some(18))),
    ] {
        assert_eq!(refusal(&primary, &query), expected);
    }
    let without_key = super::super::testing::primary(shape(4, 50));
    let query = from("hmac-sha256", "key.example", SECRET, now_s);
    assert_eq!(refusal(&without_key, &query), (9, Some(17)));
}

#[test]
fn a_refusal_of_what_was_asked_is_signed() {
    let mut primary = signing("hmac-sha256", 1, None);
    primary.shape.count = 1;
    let (query, sequence) = signed(theirs("hmac-sha256", "key.example", SECRET), NOW.wall_s);
    let messages = answers(&primary, &query);
    assert_eq!((messages[0][3] & 0x0f, right(&messages, sequence)), (9, (1, true)));
}

proptest! {
    #[test]
    fn a_damaged_signature_is_never_accepted(at in 2_usize..200, byte: u8, cut in 0_usize..300) {
        let primary = signing("hmac-sha256", 1, None);
        let (query, _) = signed(theirs("hmac-sha256", "key.example", SECRET), NOW.wall_s);
        let mut damaged = query.clone();
        if let Some(place) = damaged.get_mut(at) {
            *place = byte;
        }
        damaged.truncate(cut);
        // Letters of names are digested in lower case, so some changes have no effect.
        if !damaged.eq_ignore_ascii_case(&query) {
            prop_assert!(answers(&primary, &damaged).len() <= 1);
        }
    }
}
