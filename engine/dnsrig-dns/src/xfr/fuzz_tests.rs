//! Transfers of any kind, compared with another library's parser and with a reading of the whole answer at once.

use dnsrig_core::random::Random;
use dnsrig_testing::{fuzz::fuzz, inputs};
use domain::{
    base::{
        Message, MessageBuilder, Name, ParsedRecord, Rtype, Serial, StaticCompressor, ToName, Ttl,
        iana::{Class, Opcode, Rcode},
    },
    rdata::{A, Ns, Soa},
};
use proptest::{collection::vec, prelude::*, sample::Index};

use super::{Answered, Incoming, Limits, Outcome, Step};
use crate::{
    framing::{self, Frames},
    query::{Ask, write_query},
    testing::{Kept, name},
    tsig::{sign::parse_key, verify::Verifier},
    zonemd::Digest,
};

const LIMITS: Limits = Limits { bytes_max: u64::MAX, records_max: u64::MAX, messages_max: u32::MAX };
const ZONE: &str = "zone.example.";
const NOW_S: u64 = 1_700_000_000;

/// A record of an answer: an SOA of the zone with all its data, or another.
type Entry = Option<(u32, Vec<u8>)>;

/// The answer of these messages as another library reads it, if every message is one that may be in it.
fn entries(ask: Ask, messages: &[Vec<u8>]) -> Option<Vec<Entry>> {
    let mut entries = Vec::new();
    for (number, bytes) in messages.iter().enumerate() {
        let message = Message::from_octets(&bytes[..]).ok()?;
        let header = message.header();
        let is_answer = header.qr() && header.opcode() == Opcode::QUERY && !header.tc();
        let questions = message.header_counts().qdcount();
        if !is_answer || header.rcode() != Rcode::NOERROR || questions > 1 || (number == 0 && questions == 0) {
            return None;
        }
        let zone: Name<Vec<u8>> = ZONE.parse().unwrap();
        for question in message.question() {
            let question = question.ok()?;
            let asked = (question.qtype(), question.qclass()) == (ask.qtype(), Class::IN);
            if !asked || question.qname() != &zone {
                return None;
            }
        }
        for record in message.answer().ok()? {
            entries.push(entry(&record.ok()?, &zone)?);
        }
        // The records of all sections are there, and nothing is behind them: a byte less is too few.
        let sections = |bytes: &[u8]| {
            let message = Message::from_octets(bytes).ok()?;
            message.iter().try_for_each(|record| record.map(drop)).ok()
        };
        sections(bytes)?;
        if sections(&bytes[..bytes.len() - 1]).is_some() {
            return None;
        }
    }
    Some(entries)
}

/// `None` for a record that cannot be in the zone; an SOA of another name is such.
fn entry(record: &ParsedRecord<'_, &[u8]>, zone: &Name<Vec<u8>>) -> Option<Entry> {
    if record.class() != Class::IN || !domain::base::name::ToLabelIter::ends_with(&record.owner(), zone) {
        return None;
    }
    if record.rtype() != Rtype::SOA {
        return Some(None);
    }
    let soa = record.to_record::<Soa<_>>().ok()??;
    let soa = soa.data();
    let mut data =
        [soa.mname().to_vec(), soa.rname().to_vec()].map(|name| name.as_slice().to_ascii_lowercase()).concat();
    data.extend(
        [soa.refresh(), soa.retry(), soa.expire(), soa.minimum()].iter().flat_map(|time| time.as_secs().to_be_bytes()),
    );
    (record.owner() == *zone).then_some(Some((soa.serial().into_int(), data)))
}

/// What kind of complete answer it is, seen from its end.
fn kind(ask: Ask, entries: &[Entry]) -> Option<Answered> {
    let first = entries.first()?.as_ref()?;
    let last = entries.last()?.as_ref();
    let soas: Vec<&(u32, Vec<u8>)> = entries.iter().flatten().collect();
    let whole = (entries.len() > 1 && soas.len() == 2 && last == Some(first)).then_some(Answered::Axfr);
    let Ask::Ixfr { serial } = ask else {
        return if ask == Ask::Soa { (soas.len() == 1).then_some(Answered::Soa) } else { whole };
    };
    let is_newer =
        |serial: u32, than: u32| Serial(serial).partial_cmp(&Serial(than)) == Some(std::cmp::Ordering::Greater);
    if first.0 == serial && entries.len() == 1 {
        return Some(Answered::UpToDate);
    }
    if first.0 != serial && !is_newer(first.0, serial) {
        return None;
    }
    if entries.get(1)?.as_ref().is_none_or(|second| second == first) {
        return whole;
    }
    // The first SOA, pairs of SOAs, the last SOA: from what was asked, each newer than the one before, to the newest.
    let (steps, rest) = soas.get(1..soas.len() - 1)?.as_chunks::<2>();
    let chained = rest.is_empty()
        && steps.first()?[0].0 == serial
        && steps.last()?[1] == first
        && steps.iter().all(|[from, to]| is_newer(to.0, from.0) && !is_newer(to.0, first.0))
        && steps.windows(2).all(|pair| pair[0][1].0 == pair[1][0].0);
    (chained && last == Some(first)).then_some(Answered::Ixfr)
}

/// Takes in messages up to the end, or all; how many, and the last step.
fn take(incoming: &mut Incoming, messages: &[Vec<u8>], sink: &mut impl super::Sink) -> (usize, Step) {
    let zone = name(ZONE);
    for (number, message) in messages.iter().enumerate() {
        let step = incoming.take(message, &zone, NOW_S, &LIMITS, sink);
        if step != Step::More {
            return (number + 1, step);
        }
    }
    (messages.len(), Step::More)
}

/// The end is a good one exactly where the answer is complete.
fn check(ask: Ask, messages: &[Vec<u8>]) -> Result<(), TestCaseError> {
    let mut incoming = Incoming::new(ask, None);
    let (taken, step) = take(&mut incoming, messages, &mut ());
    let good = matches!(step, Step::Done(outcome) if outcome.is_good());
    for end in 1..=taken {
        let entries = entries(ask, &messages[..end]);
        let kind = entries.as_ref().and_then(|entries| kind(ask, entries));
        if good && end == taken {
            let counts = incoming.counts();
            prop_assert_eq!(kind, Some(counts.answered), "{:?}", step);
            let closing = usize::from(matches!(counts.answered, Answered::Axfr | Answered::Ixfr));
            prop_assert_eq!(counts.records as usize, entries.unwrap().len() - closing);
            prop_assert_eq!(step == Step::Done(Outcome::UpToDate), counts.answered == Answered::UpToDate);
        } else if step != Step::Done(Outcome::CompressionLoop) {
            // The other library follows pointers into the very name that they end.
            prop_assert_eq!(kind, None, "message {} of {}, {:?}", end, taken, step);
        }
    }
    // With every sink, and with a signature to be checked, it is no panic either.
    _ = take(&mut Incoming::new(ask, None), messages, &mut Kept::default());
    _ = take(&mut Incoming::new(ask, None), messages, &mut Digest::new(4096));
    let signer = parse_key("hmac-sha256:key.example:c2VjcmV0IG9mIGEga2V5IQ==").unwrap();
    let mut query = Vec::new();
    write_query(&mut query, 0, &name(ZONE), ask);
    let verifier = Verifier::sign(&signer, &mut query, 0, NOW_S);
    let (_, step) = take(&mut Incoming::new(ask, Some(Box::new(verifier))), messages, &mut ());
    prop_assert!(!matches!(step, Step::Done(outcome) if outcome.is_good()), "nothing was signed");
    Ok(())
}

fn asks() -> impl Strategy<Value = Ask> {
    prop_oneof![2 => Just(Ask::Axfr), 4 => (0..4_u32).prop_map(|serial| Ask::Ixfr { serial }), 1 => Just(Ask::Soa)]
}

/// A record: the serial of an SOA, or the number of another.
#[derive(Clone, Copy, Debug)]
enum Line {
    Soa(u32),
    Other(u8),
}

/// Records in orders that are right, or nearly.
fn lines() -> impl Strategy<Value = Vec<Line>> {
    let soa = || (0..5_u32).prop_map(Line::Soa);
    let others = || vec((0..12_u8).prop_map(Line::Other), 0..4);
    let whole = (0..5_u32, others())
        .prop_map(|(serial, others)| [vec![Line::Soa(serial)], others, vec![Line::Soa(serial)]].concat());
    let changes = (0..3_u32, vec((others(), others()), 1..3)).prop_map(|(from, steps)| {
        let newest = from + steps.len() as u32;
        let mut lines = vec![Line::Soa(newest)];
        for (serial, (removed, added)) in (from..).zip(steps) {
            lines.extend([vec![Line::Soa(serial)], removed, vec![Line::Soa(serial + 1)], added].concat());
        }
        lines.push(Line::Soa(newest));
        lines
    });
    prop_oneof![
        2 => whole,
        3 => changes,
        1 => vec(prop_oneof![3 => soa(), 1 => (0..12_u8).prop_map(Line::Other)], 1..8),
    ]
}

/// The records in messages, made and compressed by another library; cut behind records whose bit is set.
fn compose(ask: Ask, lines: &[Line], cuts: u32, questions: bool) -> Vec<Vec<u8>> {
    let zone: Name<Vec<u8>> = ZONE.parse().unwrap();
    let host: Name<Vec<u8>> = "ns.hoster.test.".parse().unwrap();
    let ttl = Ttl::from_secs(60);
    let mut messages = Vec::new();
    let mut rest = lines;
    let mut cuts = cuts;
    while !rest.is_empty() {
        let mut end = 1;
        while end < rest.len() && cuts & 1 == 0 {
            cuts >>= 1;
            end += 1;
        }
        cuts >>= 1;
        let mut builder = MessageBuilder::from_target(StaticCompressor::new(Vec::new())).unwrap();
        builder.header_mut().set_qr(true);
        let mut question = builder.question();
        if questions || messages.is_empty() {
            question.push((&zone, ask.qtype(), Class::IN)).unwrap();
        }
        let mut answer = question.answer();
        for line in &rest[..end] {
            match line {
                Line::Soa(serial) => {
                    let soa = Soa::new(host.clone(), zone.clone(), Serial(*serial), ttl, ttl, ttl, ttl);
                    answer.push((&zone, ttl, soa)).unwrap();
                }
                Line::Other(number) => {
                    let owner = ["", "a.", "b.a.", "WWW."][usize::from(number % 4)];
                    let owner: Name<Vec<u8>> = format!("{owner}{ZONE}").parse().unwrap();
                    match number / 4 {
                        0 => answer.push((&owner, ttl, Ns::new(host.clone()))).unwrap(),
                        _ => answer.push((&owner, ttl, A::from_octets(192, 0, 2, *number))).unwrap(),
                    }
                }
            }
        }
        messages.push(answer.finish().into_target());
        rest = &rest[end..];
    }
    messages
}

/// What may happen to messages on their way.
#[derive(Clone, Debug)]
enum Harm {
    Bytes(Index, dnsrig_testing::Harm),
    Lose(Index),
    Repeat(Index),
    Swap(Index, Index),
}

fn harms() -> impl Strategy<Value = Harm> {
    prop_oneof![
        8 => (any::<Index>(), dnsrig_testing::harms()).prop_map(|(message, harm)| Harm::Bytes(message, harm)),
        1 => any::<Index>().prop_map(Harm::Lose),
        1 => any::<Index>().prop_map(Harm::Repeat),
        1 => (any::<Index>(), any::<Index>()).prop_map(|(one, other)| Harm::Swap(one, other)),
    ]
}

fn harm(messages: &mut Vec<Vec<u8>>, harm: &Harm) {
    let count = messages.len();
    if count == 0 {
        return;
    }
    match harm {
        Harm::Lose(message) => _ = messages.remove(message.index(count)),
        Harm::Repeat(message) => messages.push(messages[message.index(count)].clone()),
        Harm::Swap(one, other) => messages.swap(one.index(count), other.index(count)),
        Harm::Bytes(message, harm) => dnsrig_testing::harm(&mut messages[message.index(count)], *harm),
    }
}

/// A response's header and the question, and behind it anything.
fn any_message() -> impl Strategy<Value = Vec<u8>> {
    let header = (0..2_u8, 0..4_u8, 0..3_u8, 0..3_u8).prop_map(|(questions, answers, authorities, additional)| {
        vec![0, 0, 0x80, 0, 0, questions, 0, answers, 0, authorities, 0, additional]
    });
    let piece = prop_oneof![
        Just(name(ZONE)),
        Just(vec![0xc0, 12]),
        Just(vec![0, 6, 0, 1, 0, 0, 0, 9, 0, 22, 0, 0]),
        Just(vec![0, 0, 0, 2]),
        Just(vec![0, 252, 0, 1]),
        Just(vec![0, 1, 0, 1, 0, 0, 0, 9, 0, 4, 192, 0, 2, 1]),
        Just(vec![0; 16]),
        vec(any::<u8>(), 1..4),
    ];
    prop_oneof![
        1 => vec(any::<u8>(), 0..80),
        4 => (header, vec(piece, 0..12)).prop_map(|(header, pieces)| [header, pieces.concat()].concat()),
    ]
}

proptest! {
    #![proptest_config(inputs(1000))]

    #[test]
    fn any_bytes_have_an_end_and_none_that_is_good_by_mistake(ask in asks(), messages in vec(any_message(), 1..4)) {
        check(ask, &messages)?;
    }

    #[test]
    fn a_stream_is_done_exactly_when_it_is_complete(
        ask in asks(), lines in lines(), cuts: u32, questions: bool,
    ) {
        check(ask, &compose(ask, &lines, cuts, questions))?;
    }

    #[test]
    fn a_harmed_stream_is_done_exactly_when_it_is_complete_all_the_same(
        ask in asks(), lines in lines(), cuts: u32, questions: bool, done in vec(harms(), 1..4),
    ) {
        let mut messages = compose(ask, &lines, cuts, questions);
        done.iter().for_each(|one| harm(&mut messages, one));
        check(ask, &messages)?;
    }
}

/// Streams that are right, or nearly, with harm done to their bytes, much faster than properties are.
#[test]
fn harmed_transfers_are_done_exactly_when_they_are_complete() {
    let mut random = Random::new(7, 0);
    let runs: [&[Line]; 6] = [
        &[Line::Soa(3), Line::Other(1), Line::Other(7), Line::Soa(3)],
        &[
            Line::Soa(3),
            Line::Soa(1),
            Line::Other(1),
            Line::Soa(2),
            Line::Soa(2),
            Line::Soa(3),
            Line::Other(5),
            Line::Soa(3),
        ],
        &[Line::Soa(2), Line::Soa(1), Line::Soa(2), Line::Other(9), Line::Soa(2)],
        &[Line::Soa(3)],
        &[Line::Soa(2), Line::Other(2), Line::Other(3), Line::Other(4), Line::Soa(2)],
        &[Line::Soa(1), Line::Soa(2), Line::Other(0)],
    ];
    let asks = [Ask::Axfr, Ask::Ixfr { serial: 1 }, Ask::Ixfr { serial: 3 }, Ask::Soa];
    let streams: Vec<_> = (0..96)
        .map(|number| {
            (asks[number % 4], compose(asks[number % 4], runs[number / 4 % 6], random.bits() as u32, number % 3 > 0))
        })
        .collect();
    // An input is a whole stream, each message behind its length.
    let framed = |messages: &Vec<Vec<u8>>| {
        let mut bytes = Vec::new();
        messages.iter().for_each(|message| _ = framing::append(&mut bytes, message));
        bytes
    };
    let corpus: Vec<_> = streams.iter().map(|(_, messages)| framed(messages)).collect();
    fuzz(2_000, &corpus, |bytes, random| {
        let mut messages = Vec::new();
        Frames::default().feed(bytes, |message| messages.push(message.to_vec()));
        // A random length is often larger than what follows, so no message is complete.
        if messages.is_empty() {
            messages.push(bytes.to_vec());
        }
        if random.chance(20) {
            let (one, other) = (random.below(messages.len() as u64), random.below(messages.len() as u64));
            messages.swap(one as usize, other as usize);
        }
        check(asks[random.below(4) as usize], &messages).unwrap();
    });
}
