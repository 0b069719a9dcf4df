//! Signatures, with another library on the other side.

use std::sync::Arc;

use dnsrig_testing::inputs;
use domain::{
    base::{Message, MessageBuilder, message_builder::AdditionalBuilder},
    rdata::{AllRecordData, tsig::Time48},
    tsig::{ClientSequence, Key, ServerSequence},
};
use proptest::prelude::*;

use super::*;
use crate::{
    query::{Ask, write_query},
    testing::{name, *},
    tsig::sign::parse_key,
    xfr::{Incoming, Limits, Outcome, Step},
};

const NOW_S: u64 = 1_700_000_000;
const ALGORITHMS: [&str; 4] = ["hmac-sha1", "hmac-sha256", "hmac-sha384", "hmac-sha512"];
const NO_LIMITS: Limits = Limits { bytes_max: u64::MAX, records_max: u64::MAX, messages_max: u32::MAX };

fn text(algorithm: &str) -> String {
    format!("{algorithm}:Key.Example:c2VjcmV0IG9mIGEga2V5IQ==")
}

fn signer(algorithm: &str) -> Arc<Signer> {
    parse_key(&text(algorithm)).unwrap()
}

fn other_library(algorithm: &str) -> Arc<Key> {
    key_of_domain(&text(algorithm))
}

fn zone() -> Vec<u8> {
    name("zone.example")
}

/// A signed query for the zone, behind something else in the buffer, and what checks its answers.
fn asked(signer: &Arc<Signer>) -> (Vec<u8>, Verifier) {
    let mut buffer = vec![0xee; 7];
    write_query(&mut buffer, ID, &zone(), Ask::Axfr);
    let verifier = Verifier::sign(signer, &mut buffer, 7, NOW_S);
    (buffer.split_off(7), verifier)
}

/// What a server does that signs each message, as the other library plays it.
struct Server(ServerSequence<Arc<Key>>);

impl Server {
    fn new(key: &Arc<Key>, query: &[u8]) -> Self {
        let mut query = Message::from_octets(query.to_vec()).unwrap();
        let sequence = ServerSequence::request(key, &mut query, Time48::from_u64(NOW_S));
        Server(sequence.expect("the query's signature is right").expect("there is one"))
    }

    fn sign(&mut self, message: &[u8]) -> Vec<u8> {
        let mut additional = copied(message);
        self.0.answer(&mut additional, Time48::from_u64(NOW_S)).unwrap();
        additional.finish()
    }
}

/// The message in the hands of the other library, records as they are.
fn copied(message: &[u8]) -> AdditionalBuilder<Vec<u8>> {
    let source = Message::from_octets(message).unwrap();
    let mut builder = MessageBuilder::new_vec();
    *builder.header_mut() = source.header();
    let mut questions = builder.question();
    source.question().for_each(|question| questions.push(question.unwrap()).unwrap());
    let mut answers = questions.answer();
    for record in source.answer().unwrap() {
        answers.push(record.unwrap().to_any_record::<AllRecordData<_, _>>().unwrap()).unwrap();
    }
    answers.additional()
}

/// Messages of an answer that holds the zone's SOA, `middle` messages of one address, and the SOA.
fn answer(middle: usize) -> Vec<Vec<u8>> {
    let question = zone();
    let first = response(Some((&question, Ask::Axfr)), &[soa(QUESTION, 7)]);
    let last = response(None, &[soa(&question, 7)]);
    let middle = (0..middle).map(|number| response(None, &[a(&question, number as u8)]));
    [first].into_iter().chain(middle).chain([last]).collect()
}

/// Takes in the messages; the last step, how many there were, and how many were signed.
fn take(verifier: Verifier, messages: &[Vec<u8>], now_s: u64) -> (Step, u32, u32) {
    let mut incoming = Incoming::new(Ask::Axfr, Some(Box::new(verifier)));
    let mut step = Step::More;
    for message in messages {
        step = incoming.take(message, &zone(), now_s, &NO_LIMITS, &mut ());
        if step != Step::More {
            break;
        }
    }
    (step, incoming.counts().messages, incoming.counts().signed)
}

fn outcome(verifier: Verifier, messages: &[Vec<u8>], now_s: u64) -> Outcome {
    match take(verifier, messages, now_s) {
        (Step::Done(outcome), ..) => outcome,
        (Step::More, ..) => panic!("not at its end"),
    }
}

/// A server that signs only some messages: those whose number, from 0, is in `signed`.
fn sign_some(signer: &Signer, query: &[u8], messages: &[Vec<u8>], signed: impl Fn(usize) -> bool) -> Vec<Vec<u8>> {
    let mut chain = Chain::after(signer, signer.mac(query));
    let mut sent = Vec::new();
    for (number, message) in messages.iter().enumerate() {
        if signed(number) {
            let mac = chain.next(signer, &[message], &Variables::at(NOW_S));
            sent.push(with_tsig(signer, message, mac.as_ref(), NOW_S, 0));
        } else {
            chain.pass(message);
            sent.push(message.clone());
        }
    }
    sent
}

/// The message with a TSIG record of this signature.
fn with_tsig(signer: &Signer, message: &[u8], mac: &[u8], time_s: u64, error: u16) -> Vec<u8> {
    let time = &time_s.to_be_bytes()[2..];
    let bytes = (mac.len() as u16).to_be_bytes();
    let fudge = 300_u16.to_be_bytes();
    let data = [signer.algorithm(), time, &fudge, &bytes, mac, &message[..2], &error.to_be_bytes(), &[0, 0]].concat();
    let record = [signer.name(), &[0, 250, 0, 255, 0, 0, 0, 0], &(data.len() as u16).to_be_bytes(), &data].concat();
    let mut message = [message, &record].concat();
    message[11] += 1;
    message
}

#[test]
fn every_algorithm_agrees_with_another_library() {
    for algorithm in ALGORITHMS {
        let (query, verifier) = asked(&signer(algorithm));
        let mut server = Server::new(&other_library(algorithm), &query);
        let messages: Vec<_> = answer(5).iter().map(|message| server.sign(message)).collect();
        assert_eq!(take(verifier, &messages, NOW_S), (Step::Done(Outcome::Done), 7, 7), "{algorithm}");
    }
}

/// Checks the answers as another library does; whether it took all of them, and the end.
fn checked_by_another_library(algorithm: &str, messages: &[Vec<u8>]) -> bool {
    let mut query = Vec::new();
    write_query(&mut query, ID, &zone(), Ask::Axfr);
    let mut additional = copied(&query);
    let now = Time48::from_u64(NOW_S);
    let mut sequence = ClientSequence::request(other_library(algorithm), &mut additional, now).unwrap();
    messages.iter().all(|message| sequence.answer(&mut Message::from_octets(message.clone()).unwrap(), now).is_ok())
        && sequence.done().is_ok()
}

#[test]
fn as_many_messages_may_be_unsigned_as_another_library_allows() {
    let signer = signer("hmac-sha256");
    // The number of unsigned messages in a row, and whether the last is signed.
    for (unsigned, last, expected) in [
        (0, true, Outcome::Done),
        (1, true, Outcome::Done),
        (99, true, Outcome::Done),
        (100, true, Outcome::TsigMissing),
        (3, false, Outcome::TsigMissing),
    ] {
        let (query, verifier) = asked(&signer);
        let messages = answer(2 * unsigned + 1);
        let end = messages.len() - 1;
        // Signed, unsigned ones, signed, unsigned ones, the last.
        let signed = |number: usize| number.is_multiple_of(unsigned + 1) && (last || number != end);
        let sent = sign_some(&signer, &query, &messages, signed);
        assert_eq!(outcome(verifier, &sent, NOW_S), expected, "{unsigned} unsigned");
        assert_eq!(checked_by_another_library("hmac-sha256", &sent), expected == Outcome::Done, "{unsigned} unsigned");
    }
    // The first has to be signed.
    let (query, verifier) = asked(&signer);
    let sent = sign_some(&signer, &query, &answer(1), |number| number > 0);
    assert_eq!(outcome(verifier, &sent, NOW_S), Outcome::TsigMissing);
    assert!(!checked_by_another_library("hmac-sha256", &sent));
}

#[test]
fn what_is_wrong_in_the_middle_is_found_there() {
    let signer = signer("hmac-sha256");
    let messages = answer(3);
    let sent = |signed: fn(usize) -> bool| {
        let (query, verifier) = asked(&signer);
        (sign_some(&signer, &query, &messages, signed), verifier)
    };
    // A changed byte, an address: found in the message itself, or by the next signature.
    for (signed, found) in
        [((|_| true) as fn(usize) -> bool, 3), (|number| number % 2 == 0, 3), (|number| number % 4 == 0, 5)]
    {
        let (mut sent, verifier) = sent(signed);
        let address = messages[2].len() - 1;
        sent[2][address] ^= 1;
        let (step, taken, _) = take(verifier, &sent, NOW_S);
        assert_eq!((step, taken), (Step::Done(Outcome::TsigWrong), found));
    }
    // A message lost, twice, or in another order.
    let orders: [&[usize]; 3] = [&[0, 2, 3, 4], &[0, 1, 1, 2, 3, 4], &[0, 2, 1, 3, 4]];
    for order in orders {
        let (sent, verifier) = sent(|_| true);
        let sent: Vec<_> = order.iter().map(|number| sent[*number].clone()).collect();
        assert_eq!(outcome(verifier, &sent, NOW_S), Outcome::TsigWrong, "{order:?}");
    }
}

#[test]
fn another_key_time_place_or_length_is_wrong() {
    let ours = signer("hmac-sha256");
    let (query, verifier) = asked(&ours);
    let messages = answer(0);
    let right = sign_some(&ours, &query, &messages, |_| true);
    let of = |sent: &[Vec<u8>], now_s| outcome(verifier.clone(), sent, now_s);
    assert_eq!(of(&right, NOW_S), Outcome::Done);
    assert_eq!(of(&right, NOW_S + 300), Outcome::Done);
    assert_eq!(of(&right, NOW_S - 300), Outcome::Done);
    assert_eq!(of(&right, NOW_S + 301), Outcome::TsigWrong);
    assert_eq!(of(&right, NOW_S - 301), Outcome::TsigWrong);
    assert_eq!(of(&sign_some(&signer("hmac-sha512"), &query, &messages, |_| true), NOW_S), Outcome::TsigWrong);
    let other_key = parse_key("hmac-sha256:other:c2VjcmV0IG9mIGEga2V5IQ==").unwrap();
    assert_eq!(of(&sign_some(&other_key, &query, &messages, |_| true), NOW_S), Outcome::TsigWrong);
    // From another query.
    let other_query = [&query[..query.len() - 1], &[1]].concat();
    let other = [&other_query[..], &[0; 6]].concat();
    assert_eq!(of(&sign_some(&ours, &other, &messages, |_| true), NOW_S), Outcome::TsigWrong);
    // A record behind it, and one more of it.
    let mut behind = right.clone();
    behind[0].extend_from_slice(&[0, 0, 41, 4, 0, 0, 0, 0, 0, 0, 0]);
    behind[0][11] += 1;
    assert_eq!(of(&behind, NOW_S), Outcome::TsigWrong);
    let twice = [sign_some(&ours, &query, &right, |_| true).remove(0)];
    assert_eq!(of(&twice, NOW_S), Outcome::TsigWrong);
    // Shortened.
    let short = with_tsig(&ours, &messages[0], &[7; 16], NOW_S, 0);
    assert_eq!(of(&[short], NOW_S), Outcome::TsigWrong);
    // Its own length is wrong.
    for (back, byte) in [(1, 1), (6 + 32 + 1, 0xff)] {
        let mut wrong = right.clone();
        let at = wrong[0].len() - back;
        wrong[0][at] = byte;
        assert_eq!(of(&wrong, NOW_S), Outcome::BadMessage);
    }
}

#[test]
fn an_error_is_told_as_what_it_is() {
    let signer = signer("hmac-sha256");
    let (query, verifier) = asked(&signer);
    let question = zone();
    let refused = |rcode| response_with(Some((&question, Ask::Axfr)), &[], &[], rcode);
    let of = |message: Vec<u8>| outcome(verifier.clone(), &[message], NOW_S);
    // BADSIG, BADKEY, BADTIME, BADTRUNC (RFC 8945 §3), with an empty signature.
    for error in [16, 17, 18, 22] {
        assert_eq!(of(with_tsig(&signer, &refused(9), &[], NOW_S, error)), Outcome::TsigError);
    }
    assert_eq!(of(refused(9)), Outcome::Notauth);
    assert_eq!(of(refused(2)), Outcome::Servfail, "unsigned");
    let signed = sign_some(&signer, &query, &[refused(5)], |_| true).remove(0);
    assert_eq!(of(signed.clone()), Outcome::Refused);
    let mut wrong = signed;
    wrong[3] ^= 1;
    assert_eq!(of(wrong), Outcome::TsigWrong);
}

#[test]
fn the_other_library_says_what_it_does_not_take() {
    let (query, verifier) = asked(&signer("hmac-sha256"));
    let mut query = Message::from_octets(query).unwrap();
    let late = Time48::from_u64(NOW_S + 1000);
    let Err(error) = ServerSequence::request(&other_library("hmac-sha256"), &mut query, late) else {
        panic!("the query is of another time")
    };
    let refusal = error.build_message(&query, MessageBuilder::new_vec()).unwrap().finish();
    assert_eq!(outcome(verifier, &[refusal], NOW_S), Outcome::TsigError);
}

#[test]
fn the_id_may_be_changed_on_the_way() {
    // A forwarder does this (RFC 8945 §4.2, original id).
    let signer = signer("hmac-sha256");
    let (query, verifier) = asked(&signer);
    let mut sent = sign_some(&signer, &query, &answer(0), |_| true);
    sent.iter_mut().for_each(|message| message[0] ^= 0x55);
    assert_eq!(outcome(verifier, &sent, NOW_S), Outcome::Done);
}

proptest! {
    #![proptest_config(inputs(300))]

    /// Whatever happens to a stream on its way, both libraries see it or both do not, and `done` is only what was sent.
    #[test]
    fn both_libraries_agree_about_any_stream(
        signed in proptest::collection::vec(any::<bool>(), 4..8),
        changed in proptest::option::of((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..8_u32)),
        order in proptest::option::of((any::<prop::sample::Index>(), any::<prop::sample::Index>())),
        algorithm in 0..ALGORITHMS.len(),
    ) {
        let algorithm = ALGORITHMS[algorithm];
        let signer = signer(algorithm);
        let (query, verifier) = asked(&signer);
        let messages = answer(signed.len() - 2);
        let mut sent = sign_some(&signer, &query, &messages, |number| signed[number]);
        let whole = sent.clone();
        if let Some((message, byte, bit)) = changed {
            let message = message.index(sent.len());
            let bytes = sent[message].len();
            sent[message][byte.index(bytes)] ^= 1 << bit;
        }
        if let Some((one, other)) = order {
            let (one, other) = (one.index(sent.len()), other.index(sent.len()));
            sent.swap(one, other);
        }
        let (step, ..) = take(verifier, &sent, NOW_S);
        let others = checked_by_another_library(algorithm, &sent);
        if step == Step::Done(Outcome::Done) {
            prop_assert!(others, "taken by us only");
            // Only the id of a message without TSIG is nobody's: it was matched before. The case of a name in a TSIG,
            // and the id that is replaced by the original one, are not covered.
            let same = sent.iter().zip(&whole).all(|(sent, whole)| sent[2..].eq_ignore_ascii_case(&whole[2..]));
            prop_assert!(same);
        } else if others {
            // The other library reads no transfer: it takes what is no complete one, and a TSIG of any class and TTL.
            prop_assert!(sent != whole);
        }
        if sent == whole && signed[0] && *signed.last().unwrap() {
            prop_assert_eq!(step, Step::Done(Outcome::Done));
            prop_assert!(others);
        }
    }
}
