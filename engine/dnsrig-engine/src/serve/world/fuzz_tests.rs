//! Queries as they are sent, harmed ones and any bytes: each is read as another library reads it, and answered within
//! its room.

use std::{net::IpAddr, sync::LazyLock};

use dnsrig_dns::{dnssec::key::Nonces, testing::name};
use dnsrig_testing::{any_bytes, harm, harms, inputs};
use domain::{
    base::{
        Message as Parsed, MessageBuilder, Name, ParsedName, Rtype as Type, StaticCompressor, ToName, Ttl,
        opt::{Opt, UnknownOptData},
    },
    rdata::{A, AllRecordData},
};
use proptest::{
    collection::vec,
    option,
    prelude::*,
    sample::{Index, select},
};

use super::*;
use crate::world::testing::world;

/// With everything that an answer may have; but no P-256, whose signatures are never the same.
const SPEC: &str = "
    zones.count = 150
    zones.wildcard = 0.3
    zones.empty_non_terminal = 0.3
    tlds.count = 12
    signing.keys = 1
    signing.share = 0.6
    signing.tlds.p256 = 0.0
    signing.tlds.ed25519 = 0.8
    signing.zones.p256 = 0.0
    signing.zones.ed25519 = 0.8
    faults.lame = 0.05
    faults.refused = 0.05
    faults.silent = 0.05
    faults.slow = 0.05
    faults.truncated = 0.05
    faults.oversized = 0.05
    faults.expired = 0.05
    faults.broken-denial = 0.05
";

static WORLD: LazyLock<World> = LazyLock::new(|| world(SPEC));

/// The names of its zones, each with the addresses of its first server.
static ZONES: LazyLock<Vec<(Vec<u8>, [IpAddr; 2])>> = LazyLock::new(|| {
    let first = |zone| {
        let mut first = None;
        WORLD.name_servers(zone, &mut |_, server| _ = first.get_or_insert(server));
        let place = WORLD.places.of(first.expect("it has servers"));
        [WORLD.prefixes.ipv4(place), WORLD.prefixes.ipv6(place)]
    };
    WORLD.zones().map(|zone| (WORLD.name(zone).to_vec(), first(zone))).collect()
});

/// What a message asks.
#[derive(Debug, PartialEq)]
struct Asked {
    name: Vec<u8>,
    rtype: u16,
    class: u16,
    /// The size of payloads, the version, DO.
    edns: Option<(u16, u8, bool)>,
}

/// The query as another library reads it; None unless it is a whole message with one question and at most one OPT
/// record.
fn read(bytes: &[u8]) -> Option<Asked> {
    let message = Parsed::from_octets(bytes).ok()?;
    let question = message.sole_question().ok()?;
    let name = question.qname().to_vec().as_slice().to_ascii_lowercase();
    // A question has nothing before it that a pointer could lead to: that library follows one into the header.
    if !bytes[12..].get(..name.len())?.eq_ignore_ascii_case(&name) {
        return None;
    }
    let (_, answer, authority, additional) = message.sections().ok()?;
    for record in answer.chain(authority) {
        if record.ok()?.rtype() == Type::OPT {
            return None;
        }
    }
    let mut edns = None;
    for record in additional {
        let record = record.ok()?;
        if record.rtype() != Type::OPT {
            continue;
        }
        let ttl = record.ttl().as_secs();
        let version = (ttl >> 16) as u8;
        let is_whole = version != 0 || matches!(record.to_record::<Opt<_>>(), Ok(Some(_)));
        if edns.is_some() || !record.owner().is_root() || !is_whole {
            return None;
        }
        edns = Some((record.class().to_int(), version, ttl & 0x8000 != 0));
    }
    // Nothing is behind the records: a byte less is too few.
    let shorter = Parsed::from_octets(&bytes[..bytes.len() - 1]).ok();
    if shorter.is_some_and(|message| has_all_records(&message)) {
        return None;
    }
    Some(Asked { name, rtype: question.qtype().to_int(), class: question.qclass().to_int(), edns })
}

fn has_all_records(message: &Parsed<&[u8]>) -> bool {
    message.sections().is_ok_and(|(_, _, _, mut additional)| additional.all(|record| record.is_ok()))
}

/// Whether bytes behind a question could be a pointer into the very name that it ends: the other library follows it,
/// as long as that is no loop.
fn may_point_into_itself(bytes: &[u8]) -> bool {
    let first = 12 + bytes[12..].iter().position(|byte| *byte == 0).unwrap_or(0);
    let target = |pair: &[u8]| usize::from(pair[0] & 0x3f) << 8 | usize::from(pair[1]);
    bytes[first..].windows(2).any(|pair| pair[0] >= 0xc0 && target(pair) > first)
}

fn asked(query: &Query<'_>) -> Asked {
    let edns = query.edns.map(|edns| (edns.udp_payload_bytes, edns.version, edns.dnssec_ok));
    let (rtype, class) = (query.rtype.to_int(), query.class.to_int());
    Asked { name: query.name.wire().to_vec(), rtype, class, edns }
}

/// A message is read as the other library reads it. What it asks.
fn check_reading(bytes: &[u8]) -> Result<Result<Asked, Refusal>, TestCaseError> {
    let found = Query::read(bytes).map(|query| asked(&query));
    let expected = match bytes {
        _ if bytes.len() < 12 || bytes[2] & 0x80 != 0 => Err(Refusal::NoQuery),
        _ if bytes[2] & 0x78 != 0 => Err(Refusal::OtherOperation),
        _ => read(bytes).ok_or(Refusal::Malformed),
    };
    let is_stricter = found == Err(Refusal::Malformed) && expected.is_ok() && may_point_into_itself(bytes);
    prop_assert!(found == expected || is_stricter, "{found:02x?} instead of {expected:02x?}");
    Ok(found)
}

/// A message, and how it comes.
#[derive(Clone, Debug)]
struct Sent {
    bytes: Vec<u8>,
    to: IpAddr,
    is_tcp: bool,
}

/// The room for its answer (RFC 6891 §6.2.5, RFC 9715): there is not a byte more.
fn room(asked: &Result<Asked, Refusal>, is_tcp: bool) -> usize {
    let udp = asked.as_ref().ok().and_then(|asked| asked.edns).map_or(512, |(size, ..)| usize::from(size));
    if is_tcp { 65_535 } else { udp.clamp(512, 1232) }
}

/// Has it answered, at once or later; none: there is no answer.
fn send(sent: &Sent, asked: &Result<Asked, Refusal>, state: &mut State) -> Option<Vec<u8>> {
    let mut space = vec![0; room(asked, sent.is_tcp)];
    let mut via = Via { destination: Some(sent.to), is_tcp: sent.is_tcp, has_waited: false };
    let mut turn = answer(&WORLD, &sent.bytes, via, state, &mut space);
    if let Turn::Later(_) = turn {
        via.has_waited = true;
        turn = answer(&WORLD, &sent.bytes, via, state, &mut space);
    }
    match turn {
        Turn::Now(length) => {
            space.truncate(length);
            Some(space)
        }
        Turn::Later(_) => panic!("it has waited"),
        Turn::Never => None,
    }
}

/// The answer belongs to its query, and is whole.
fn check_answer(sent: &Sent, asked: &Result<Asked, Refusal>, found: &[u8]) -> Result<(), TestCaseError> {
    let query = &sent.bytes;
    prop_assert_eq!((&found[..2], found[2] & 0xf8), (&query[..2], query[2] & 0x78 | 0x80), "id, QR, opcode");
    let asked = match asked {
        Ok(asked) => asked,
        Err(refusal) => {
            let rcode = if *refusal == Refusal::Malformed { Rcode::FORMERR } else { Rcode::NOTIMP };
            prop_assert_eq!((found[3], &found[4..]), (rcode.to_int(), &[0; 8][..]));
            return Ok(());
        }
    };
    let question = 12..12 + asked.name.len() + 4;
    prop_assert_eq!(&found[question.clone()], &query[question.clone()]);
    prop_assert_eq!((found[2] & 1, found[3] & 0xf0), (query[2] & 1, 0), "RD is copied; not RA, Z, AD, CD");
    let message = Parsed::from_octets(found).unwrap();
    let (questions, answer, authority, additional) = message.sections().unwrap();
    prop_assert_eq!(questions.count(), 1);
    let mut edns = None;
    for record in answer.chain(authority).chain(additional) {
        let record = record.unwrap();
        if record.rtype() == Type::OPT {
            prop_assert_eq!((edns, record.owner().is_root()), (None, true));
            edns = Some((record.ttl().as_secs() & 0x00ff_ffff == 0x8000, (record.ttl().as_secs() >> 24) as u8));
        } else {
            record.into_any_record::<AllRecordData<_, ParsedName<_>>>().unwrap();
        }
    }
    let is_bad_version = asked.edns.is_some_and(|(_, version, _)| version != 0);
    let expected = asked.edns.map(|(.., dnssec_ok)| (dnssec_ok, u8::from(is_bad_version)));
    prop_assert_eq!(edns, expected, "DO is copied (RFC 3225 §3), and the higher bits of BADVERS");
    if message.header().tc() {
        prop_assert!(!sent.is_tcp);
        prop_assert_eq!(found.len(), question.end + if edns.is_some() { 11 } else { 0 });
    }
    prop_assert!(!has_all_records(&Parsed::from_octets(&found[..found.len() - 1]).unwrap()), "bytes behind it");
    Ok(())
}

/// Messages are read as the other library reads them, and each gets the answer that it has by itself, or none.
fn check(all: &[Sent]) -> Result<(), TestCaseError> {
    let mut state = State::new(Signatures::new(Nonces::Random, 1 << 20));
    let mut answers = Vec::new();
    // All of them twice: what is left of one is no part of another's answer.
    for (number, sent) in all.iter().chain(all).enumerate() {
        let asked = check_reading(&sent.bytes)?;
        let found = send(sent, &asked, &mut state);
        if let Some(found) = &found {
            check_answer(sent, &asked, found)?;
        }
        if number >= all.len() {
            prop_assert_eq!(&found, &answers[number - all.len()]);
        }
        answers.push(found);
    }
    let Counts { answers: given, silent, ignored, malformed, elsewhere, .. } = state.counts;
    prop_assert_eq!((given + silent + ignored + malformed + elsewhere) as usize, 2 * all.len());
    prop_assert_eq!((given + malformed) as usize, answers.iter().flatten().count());
    Ok(())
}

/// Before the name of a zone.
const LABELS: &[&[u8]] = &[b"", b"\x03www", b"\x03WWW", b"\x01*", b"\x05nx-no", b"\x04_tcp", b"\x01a\x01b"];

fn names() -> impl Strategy<Value = (Vec<u8>, [IpAddr; 2])> {
    let label = prop_oneof![
        4 => select(LABELS).prop_map(<[u8]>::to_vec),
        1 => vec(any::<u8>(), 1..64).prop_map(|label| [&[label.len() as u8][..], &label].concat()),
        1 => (1..128_usize).prop_map(|labels| b"\x01x".repeat(labels)),
    ];
    (any::<Index>(), label).prop_map(|(zone, label)| {
        let (zone, addresses) = zone.get(&ZONES[..]);
        let whole = [&label, &zone[..]].concat();
        (if whole.len() > 255 { zone.clone() } else { whole }, *addresses)
    })
}

/// Types that have a meaning here, and any others.
fn types() -> impl Strategy<Value = u16> {
    prop_oneof![4 => select(&[1_u16, 2, 5, 6, 12, 15, 16, 28, 33, 43, 48, 65][..]), 2 => 0..264_u16, 1 => any::<u16>()]
}

#[derive(Clone, Debug)]
struct Edns {
    size: u16,
    version: u8,
    dnssec_ok: bool,
    /// With their codes.
    options: Vec<(u16, Vec<u8>)>,
}

fn edns() -> impl Strategy<Value = Edns> {
    let size = prop_oneof![select(&[0_u16, 512, 1232, 4096, 65_535][..]), any::<u16>()];
    let options = prop_oneof![
        // NSID, a client subnet, an expiry, cookies of a client and of both, keepalive, padding, tags of keys.
        3 => select(&[(3_u16, 0_usize), (8, 7), (9, 0), (10, 8), (10, 24), (11, 0), (12, 31), (14, 4)][..])
            .prop_flat_map(|(code, bytes)| (Just(code), vec(any::<u8>(), bytes))),
        1 => (any::<u16>(), vec(any::<u8>(), 0..40)),
    ];
    let version = prop_oneof![8 => Just(0), 1 => any::<u8>()];
    (size, version, any::<bool>(), vec(options, 0..4)).prop_map(|(size, version, dnssec_ok, options)| Edns {
        size,
        version,
        dnssec_ok,
        options,
    })
}

/// Queries as they are sent, by another library.
fn queries() -> impl Strategy<Value = Sent> {
    let class = prop_oneof![9 => Just(1), 1 => any::<u16>()];
    let flags = (any::<u16>(), any::<[bool; 3]>(), any::<bool>(), any::<bool>());
    (flags, names(), types(), class, option::weighted(0.8, edns()), any::<bool>(), option::weighted(0.2, 0..700_u32))
        .prop_map(|((id, [rd, ad, cd], is_tcp, is_ipv6), (name, to), rtype, class, edns, record, place)| {
            let name = Name::from_octets(name).unwrap();
            let mut builder = MessageBuilder::from_target(StaticCompressor::new(Vec::new())).unwrap();
            let header = builder.header_mut();
            header.set_id(id);
            header.set_rd(rd);
            header.set_ad(ad);
            header.set_cd(cd);
            let mut question = builder.question();
            question.push((&name, Type::from_int(rtype), Class::from_int(class))).unwrap();
            let mut additional = question.additional();
            if record {
                // Its owner is a pointer to the question's name.
                additional.push((&name, Ttl::from_secs(0), A::from_octets(192, 0, 2, 1))).unwrap();
            }
            if let Some(edns) = edns {
                let push = |opt: &mut domain::base::message_builder::OptBuilder<'_, _>| {
                    opt.set_udp_payload_size(edns.size);
                    opt.set_version(edns.version);
                    opt.set_dnssec_ok(edns.dnssec_ok);
                    edns.options.iter().try_for_each(|(code, data)| {
                        opt.push(&UnknownOptData::new((*code).into(), &data[..]).expect("it is short"))
                    })
                };
                additional.opt(push).unwrap();
            }
            let to = place.map_or(to[usize::from(is_ipv6)], |place| WORLD.prefixes.ipv4(place));
            Sent { bytes: additional.finish().into_target(), to, is_tcp }
        })
}

/// Pieces of queries in any order, or any bytes.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let header = (0..3_u8, 0..3_u8, 0..3_u8, 0..4_u8).prop_map(|(questions, answers, authority, additional)| {
        vec![9, 7, 1, 0, 0, questions, 0, answers, 0, authority, 0, additional]
    });
    let piece = prop_oneof![
        Just(name("www.nic.com")),
        Just(vec![0]),
        Just(vec![0xc0, 12]),
        (any::<u8>()).prop_map(|at| vec![0xc0, at]),
        Just(vec![0, 1, 0, 1]),
        Just(vec![0, 0, 41, 16, 0, 0, 0, 0x80, 0, 0, 0]),
        Just(vec![0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 12, 0, 10, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8]),
        Just(vec![0, 1, 0, 1, 0, 0, 0, 9, 0, 4, 192, 0, 2, 1]),
        vec(any::<u8>(), 1..4),
    ];
    prop_oneof![
        1 => any_bytes(600),
        4 => (header, vec(piece, 0..12)).prop_map(|(header, pieces)| [header, pieces.concat()].concat()),
    ]
}

proptest! {
    #![proptest_config(inputs(2_000))]

    /// 2,000 times up to three queries of all types, with EDNS and its options.
    #[test]
    fn queries_are_read_and_answered(all in vec(queries(), 1..4)) {
        for sent in &all {
            prop_assert!(read(&sent.bytes).is_some());
        }
        check(&all)?;
    }

    /// 2,000 times up to three queries of which some bytes are others, more, or missing.
    #[test]
    fn harmed_queries_are_read_or_refused(all in vec((queries(), vec(harms(), 0..4)), 1..4)) {
        let mut all = all;
        for (sent, done) in &mut all {
            done.iter().for_each(|one| harm(&mut sent.bytes, *one));
        }
        check(&all.into_iter().map(|(sent, _)| sent).collect::<Vec<_>>())?;
    }

    /// 2,000 messages that resemble a query, or not at all.
    #[test]
    fn any_bytes_are_read_or_refused(bytes in pieces(), zone: Index, is_tcp: bool) {
        let (_, [to, _]) = zone.get(&ZONES[..]);
        check(&[Sent { bytes, to: *to, is_tcp }])?;
    }
}

#[test]
fn a_query_with_as_many_records_as_fit_is_read_to_its_end() {
    let question = [&[9, 7, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0], &[0, 0, 1, 0, 1][..]].concat();
    let records = (65_535 - question.len()) / 12;
    for (is_chain, is_whole) in [(false, true), (true, false)] {
        let mut bytes = question.clone();
        for number in 0..records {
            // Each owner leads to the question's, or to the one before, as far as a pointer can.
            let before = bytes.len() - 12;
            let target = if is_chain && number > 0 && before <= 0x3fff { before } else { 12 };
            bytes.extend((0xc000 | target as u16).to_be_bytes());
            bytes.extend([0, 1, 0, 1, 0, 0, 0, 0, 0, 0]);
        }
        bytes[10..12].copy_from_slice(&(records as u16).to_be_bytes());
        assert_eq!(check_reading(&bytes).unwrap().is_ok(), is_whole);
        bytes.pop();
        assert_eq!(check_reading(&bytes).unwrap(), Err(Refusal::Malformed));
    }
}
