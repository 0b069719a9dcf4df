//! Messages out of TCP: in any pieces and order, with holes, without a begin, with junk.

use std::net::Ipv6Addr;

use dnsrig_testing::{fuzz::fuzz, inputs};
use proptest::prelude::*;

use super::tcp::{Counts, Segment, Streams};

/// A query for the root, numbered.
fn query(number: u8) -> Vec<u8> {
    let message = [0, number, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1];
    [&[0, message.len() as u8], &message[..]].concat()
}

fn segment(sequence: u32, payload: &[u8]) -> Segment<'_> {
    Segment { source_port: 4000, destination_port: 53, sequence, is_syn: false, is_end: false, payload }
}

fn syn(sequence: u32) -> Segment<'static> {
    Segment { is_syn: true, ..segment(sequence, &[]) }
}

/// The numbers of the queries that are found, whether each is the first of its connection, and the counts. The segments
/// come a millisecond apart.
fn found(segments: &[Segment]) -> (Vec<(u8, bool)>, Counts) {
    let (mut streams, mut numbers) = (Streams::default(), Vec::new());
    let mut each = |number: u8, is_first: bool| numbers.push((number, is_first));
    for (at, segment) in segments.iter().enumerate() {
        let (client, server) = (Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED);
        streams.add(at as i64 * 1_000_000, client, server, segment, |m| each(m.bytes[1], m.is_first));
    }
    let counts = streams.finish(|m| each(m.bytes[1], m.is_first));
    assert!(counts.is_balanced(), "{counts:?}");
    assert_eq!(counts.read, segments.len() as u64);
    (numbers, counts)
}

fn three() -> Vec<u8> {
    [query(1), query(2), query(3)].concat()
}

const ALL: [(u8, bool); 3] = [(1, true), (2, false), (3, false)];

#[test]
fn messages_come_in_one_segment_or_byte_by_byte() {
    let bytes = three();
    assert_eq!(found(&[syn(9), segment(9, &bytes)]).0, ALL);
    let pieces: Vec<_> = bytes.chunks(1).enumerate().map(|(at, piece)| segment(9 + at as u32, piece)).collect();
    let (numbers, counts) = found(&[&[syn(9)], &pieces[..]].concat());
    assert_eq!((numbers.as_slice(), counts.used), (&ALL[..], bytes.len() as u64));
}

#[test]
fn sequence_numbers_pass_zero() {
    let bytes = three();
    let start = u32::MAX - 20;
    let [a, b] = [segment(start, &bytes[..30]), segment(start.wrapping_add(30), &bytes[30..])];
    assert_eq!(found(&[syn(start), b, a]).0, ALL);
}

#[test]
fn what_is_sent_again_or_overlaps_counts_once() {
    let bytes = three();
    let [a, b, c] = [segment(9, &bytes[..30]), segment(19, &bytes[10..50]), segment(39, &bytes[30..])];
    let (numbers, counts) = found(&[syn(9), a, a, b, c, c, b, a]);
    assert_eq!((numbers.as_slice(), counts.used, counts.repeated), (&ALL[..], 3, 4));
}

#[test]
fn data_may_come_with_the_syn() {
    let bytes = three();
    let fast_open = Segment { is_syn: true, ..segment(9, &bytes[..19]) };
    // The server did not take the data of the SYN, so the client sends all of it again.
    assert_eq!(found(&[fast_open, segment(9, &bytes)]).0, ALL);
}

#[test]
fn behind_a_hole_messages_are_found_again() {
    let bytes = three();
    let (numbers, counts) =
        found(&[syn(9), segment(9, &bytes[..25]), segment(40, &bytes[31..38]), segment(47, &query(3))]);
    assert_eq!(numbers, [(1, true), (3, false)]);
    // How long the second one is was captured, so the third one is not searched for.
    assert_eq!((counts.used, counts.behind_hole, counts.messages_cut), (3, 0, 1));
    assert_eq!((counts.holes, counts.missing_bytes), (1, 6));
}

/// A length and a message each in a segment of its own, as clients send them that write twice.
fn in_two_segments(numbers: std::ops::RangeInclusive<u8>) -> Vec<(u32, Vec<u8>)> {
    let mut at = 9;
    let pieces = numbers.flat_map(|number| {
        let query = query(number);
        [query[..2].to_vec(), query[2..].to_vec()]
    });
    pieces
        .map(|piece| {
            at += piece.len() as u32;
            (at - piece.len() as u32, piece)
        })
        .collect()
}

#[test]
fn a_missing_segment_costs_the_message_that_it_is_part_of() {
    let pieces = in_two_segments(1..=5);
    for missing in 0..pieces.len() {
        let there =
            pieces.iter().enumerate().filter(|(at, _)| *at != missing).map(|(_, (at, piece))| segment(*at, piece));
        let (numbers, counts) = found(&[syn(9)].into_iter().chain(there).collect::<Vec<_>>());
        let lost = missing as u8 / 2 + 1;
        let expected: Vec<_> = (1..=5).filter(|number| *number != lost).collect();
        assert_eq!(numbers.iter().map(|(number, _)| *number).collect::<Vec<_>>(), expected, "{missing}");
        // What is missing at the end is no hole: nothing came behind it.
        let length = pieces[missing].1.len() as u64;
        let hole = if missing == pieces.len() - 1 { (0, 0) } else { (1, length) };
        assert_eq!((counts.holes, counts.missing_bytes), hole, "{missing}");
    }
}

#[test]
fn queries_are_found_wherever_a_capture_begins_in_a_connection() {
    let bytes: Vec<u8> = (1..=5).flat_map(query).collect();
    for begin in 1..bytes.len() {
        for length in [1, 2, 7, 19, 30, 95] {
            let pieces = bytes[begin..].chunks(length).enumerate();
            let pieces: Vec<_> = pieces.map(|(at, piece)| segment((at * length) as u32, piece)).collect();
            let whole: Vec<_> = (1..=5).filter(|number| usize::from(*number - 1) * 19 >= begin).collect();
            let numbers: Vec<_> = found(&pieces).0.into_iter().map(|(number, _)| number).collect();
            assert_eq!(numbers, whole, "from byte {begin} on, in pieces of {length}");
        }
    }
}

#[test]
fn what_is_no_query_is_not_taken_for_one() {
    // A length that fits, and then: an answer, an update, too many records, bytes behind the records.
    let changes: [(usize, u8); 4] = [(2, 0x80), (2, 0x28), (9, 1), (1, 0)];
    for (at, value) in changes {
        let mut other = query(7);
        other[2 + at] = value;
        if at == 1 {
            other[1] += 1;
            other.push(0);
        }
        let bytes = [&other[..], &query(8)].concat();
        assert_eq!(found(&[segment(9, &bytes)]).0, [(8, true)], "{at}");
    }
}

#[test]
fn without_a_begin_the_next_query_is_found() {
    let bytes = three();
    let (numbers, counts) = found(&[segment(9, &bytes[5..19]), segment(23, &bytes[19..])]);
    assert_eq!(numbers, [(2, true), (3, false)]);
    assert_eq!((counts.without_begin, counts.used), (1, 1));
}

#[test]
fn nothing_comes_behind_the_end_or_behind_junk() {
    let bytes = three();
    let fin = Segment { is_end: true, ..segment(28, &[]) };
    let (numbers, counts) =
        found(&[syn(9), fin, segment(9, &bytes[..19]), segment(28, &query(9)), segment(9, &bytes[..19])]);
    assert_eq!((numbers, counts.unusable, counts.repeated), (vec![(1, true)], 1, 1));
    let (numbers, counts) = found(&[syn(9), segment(9, b"\0\x03GET"), segment(14, &query(1))]);
    assert_eq!((numbers.len(), counts.unusable), (0, 2));
}

#[test]
fn a_port_is_used_again() {
    let fin = Segment { is_end: true, ..segment(28, &[]) };
    let (one, two) = (query(1), query(2));
    let (numbers, counts) = found(&[syn(9), segment(9, &one), fin, syn(5000), segment(5000, &two)]);
    assert_eq!((numbers, counts.connections), (vec![(1, true), (2, true)], 2));
}

#[test]
fn a_port_is_used_again_and_the_begin_was_not_captured() {
    let fin = Segment { is_end: true, ..segment(28, &[]) };
    let (one, two) = (query(1), query(2));
    // Behind the end, far ahead with or without an end, and before the first byte.
    for (start, ends) in [(5000, true), (1 << 30, true), (1 << 30, false), (3 << 30, false), (u32::MAX - 5000, true)] {
        let before = if ends { vec![syn(9), segment(9, &one), fin] } else { vec![syn(9), segment(9, &one)] };
        let (numbers, counts) = found(&[&before[..], &[segment(start, &two)]].concat());
        assert_eq!((numbers, counts.connections), (vec![(1, true), (2, true)], 2), "{start}, {ends}");
    }
    // A byte that keeps the connection alive begins no other one.
    let (numbers, counts) = found(&[syn(9), segment(8, &[0]), segment(9, &one)]);
    assert_eq!((numbers, counts.connections, counts.repeated), (vec![(1, true)], 1, 1));
}

/// Connections are followed beside each other, however their segments mix.
#[test]
fn connections_do_not_disturb_each_other() {
    let bytes = three();
    let of = |port, segment| Segment { source_port: port, ..segment };
    let ports = [4000, 4001, 4002];
    let mut segments = ports.map(|port| of(port, syn(9))).to_vec();
    for (at, piece) in bytes.chunks(10).enumerate() {
        segments.extend(ports.map(|port| of(port, segment(9 + 10 * at as u32, piece))));
    }
    let (mut numbers, counts) = found(&segments);
    numbers.sort_unstable();
    assert_eq!(numbers, ALL.map(|query| [query; 3]).concat());
    assert_eq!((counts.connections, counts.used, counts.messages_cut), (3, 18, 0));
}

/// A message came when its first byte did.
#[test]
fn a_message_has_the_time_and_the_ports_of_its_first_byte() {
    let bytes = three();
    // In pieces of this many bytes, from the begin on or not; the last ones begin with a query.
    for (begin, length, expected) in
        [(0, 10, vec![(1, 0), (2, 1), (3, 3)]), (5, 10, vec![(2, 1), (3, 3)]), (5, 14, vec![(2, 1), (3, 2)])]
    {
        let (mut streams, mut times) = (Streams::default(), Vec::new());
        let pieces =
            bytes[begin..].chunks(length).enumerate().map(|(at, piece)| segment(9 + (length * at) as u32, piece));
        let segments: Vec<_> =
            (begin == 0).then(|| syn(9)).into_iter().map(|syn| (0, syn)).chain((0..).zip(pieces)).collect();
        for (time_ns, segment) in &segments {
            streams.add(*time_ns, Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED, segment, |message| {
                assert_eq!((message.source_port, message.destination_port), (4000, 53));
                assert_eq!((message.source, message.destination), (Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED));
                times.push((message.bytes[1], message.time_ns));
            });
        }
        assert_eq!(times, expected, "from byte {begin} on, in pieces of {length}");
    }
}

/// Up to 64 segments wait behind a hole. With one more it is skipped, and what fills it then is too late.
#[test]
fn a_hole_is_waited_for_by_so_many_segments() {
    for (waiting, holes) in [(63, 0), (64, 0), (65, 1)] {
        let queries: Vec<_> = (1..=waiting + 1).map(query).collect();
        let place = |number: usize| 9 + 19 * number as u32;
        let behind = (1..queries.len()).map(|number| segment(place(number), &queries[number]));
        let segments: Vec<_> = [syn(9)].into_iter().chain(behind).chain([segment(9, &queries[0])]).collect();
        let (numbers, counts) = found(&segments);
        assert_eq!((counts.holes, counts.repeated, counts.missing_bytes), (holes, holes, 19 * holes), "{waiting}");
        assert_eq!(numbers.len() as u64, u64::from(waiting) + 1 - holes, "{waiting}");
    }
}

/// A hole is waited for during two seconds.
#[test]
fn a_hole_is_waited_for_so_long() {
    for (time_ns, expected) in [(2_000_000_000, vec![1, 2]), (2_000_000_001, vec![2])] {
        let (mut streams, mut numbers) = (Streams::default(), Vec::new());
        let (one, two) = (query(1), query(2));
        let segments = [(0, syn(9)), (0, segment(28, &two)), (time_ns, segment(9, &[])), (time_ns, segment(9, &one))];
        for (time_ns, segment) in &segments {
            let (client, server) = (Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED);
            streams.add(*time_ns, client, server, segment, |message| numbers.push(message.bytes[1]));
        }
        assert_eq!(numbers, expected, "{time_ns}");
        assert_eq!(streams.finish(|_| ()).holes, 2 - expected.len() as u64);
    }
}

/// A message of a header alone is one; with a byte less it is not.
#[test]
fn a_message_has_a_header_at_least() {
    let header = [0, 12, 0, 5, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let (numbers, counts) = found(&[syn(9), segment(9, &[&header[..], &query(2)].concat())]);
    assert_eq!((numbers, counts.used), (vec![(5, true), (2, false)], 1));
    let shorter = [&[0, 11], &header[2..13]].concat();
    let (numbers, counts) = found(&[syn(9), segment(9, &[&shorter[..], &query(2)].concat())]);
    assert_eq!((numbers, counts.unusable), (vec![], 1));
    // What was read before it stays.
    let (numbers, counts) = found(&[syn(9), segment(9, &[&query(1)[..], &shorter].concat())]);
    assert_eq!((numbers, counts.used), (vec![(1, true)], 1));
}

/// A segment that begins more than 16 MiB ahead is of another connection.
#[test]
fn a_segment_far_ahead_begins_a_connection() {
    for (ahead, connections) in [(1 << 24, 1), ((1 << 24) + 1, 2)] {
        let two = query(2);
        let (numbers, counts) = found(&[syn(9), segment(9 + ahead, &two)]);
        assert_eq!((numbers, counts.connections), (vec![(2, true)], connections), "{ahead}");
        assert_eq!(counts.missing_bytes, if connections == 1 { u64::from(ahead) } else { 0 });
    }
}

/// If two segments lie at one place behind a hole, the longer one is kept.
#[test]
fn what_waits_twice_is_read_once() {
    let bytes = three();
    let (short, long, first) = (segment(28, &bytes[19..30]), segment(28, &bytes[19..]), segment(9, &bytes[..19]));
    for segments in [[short, long, first], [long, short, first], [long, long, first]] {
        let (numbers, counts) = found(&[&[syn(9)][..], &segments].concat());
        assert_eq!((numbers.as_slice(), counts.used, counts.repeated, counts.holes), (&ALL[..], 2, 1, 0));
    }
}

/// Holes that are never filled, in more connections than there is room for.
#[test]
fn memory_is_bounded() {
    let mut streams = Streams::default();
    let payload = vec![0; 1400];
    for number in 0..200_000u32 {
        let segment = Segment { source_port: number as u16, ..segment(2000 * (1 + number % 7), &payload) };
        streams.add(0, Ipv6Addr::from_bits(u128::from(number / 7)), Ipv6Addr::LOCALHOST, &segment, |_| ());
        assert!(streams.bytes_held() <= 64 << 20);
    }
    assert!(streams.finish(|_| ()).is_balanced());
}

proptest! {
    #![proptest_config(inputs(3_000))]

    /// However the bytes are cut, repeated and shuffled within a window: all messages, once, in order.
    #[test]
    fn any_pieces_give_all_messages(
        cuts in prop::collection::vec(1usize..30, 1..20), seed in any::<u64>(), start in any::<u32>(),
    ) {
        let bytes: Vec<u8> = (0..6).flat_map(query).collect();
        let (mut pieces, mut at) = (Vec::new(), 0);
        for cut in cuts.iter().cycle() {
            let end = bytes.len().min(at + cut);
            pieces.push(segment(start.wrapping_add(at as u32), &bytes[at..end]));
            // Sent again together with what comes next.
            pieces.push(segment(start.wrapping_add(at as u32), &bytes[at..bytes.len().min(end + cut / 2)]));
            at = end;
            if at == bytes.len() {
                break;
            }
        }
        let mut random = dnsrig_core::random::Random::new(seed, 0);
        for at in (1..pieces.len()).rev() {
            pieces.swap(at, at - random.below(at.min(6) as u64 + 1) as usize);
        }
        pieces.truncate(60);
        let missing = pieces.len() == 60;
        let (numbers, counts) = found(&[&[syn(start)], &pieces[..]].concat());
        if !missing {
            prop_assert_eq!(numbers.iter().map(|(number, _)| *number).collect::<Vec<_>>(), (0..6).collect::<Vec<_>>());
            prop_assert_eq!(counts.behind_hole, 0);
        }
    }

    /// Whichever segments are missing: exactly the messages are found of which every byte is there.
    #[test]
    fn missing_segments_cost_their_messages_alone(
        cuts in prop::collection::vec(1usize..30, 1..20),
        dropped in prop::collection::vec(prop::bool::weighted(0.2), 1..40),
        start in any::<u32>(),
    ) {
        let bytes: Vec<u8> = (0..9).flat_map(query).collect();
        let (mut pieces, mut there, mut at) = (vec![syn(start)], vec![true; bytes.len()], 0);
        for (cut, is_dropped) in cuts.iter().cycle().zip(dropped.iter().cycle()) {
            let end = bytes.len().min(at + cut);
            if *is_dropped {
                there[at..end].fill(false);
            } else {
                pieces.push(segment(start.wrapping_add(at as u32), &bytes[at..end]));
            }
            at = end;
            if at == bytes.len() {
                break;
            }
        }
        let is_whole = |number: &u8| there[usize::from(*number) * 19..][..19].iter().all(|is_there| *is_there);
        let whole: Vec<u8> = (0..9).filter(is_whole).collect();
        prop_assert_eq!(found(&pieces).0.into_iter().map(|(number, _)| number).collect::<Vec<_>>(), whole);
    }
}

/// The messages of a whole stream, up to what is no message.
fn messages(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk() {
        let Some((message, rest)) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length))) else { break };
        if message.len() < 12 {
            break;
        }
        found.push(message.to_vec());
        bytes = rest;
    }
    found
}

/// Whatever clients sent, in segments of any lengths, of which some come twice, or late, or not at all.
#[test]
fn harmed_streams_give_the_messages_that_are_there() {
    let long = [&[1, 44], &[7; 300][..]].concat();
    let corpus = [three(), [query(1), long, query(2)].concat(), (0..9).flat_map(query).collect()];
    fuzz(3_000, &corpus, |bytes, random| {
        let (start, lost) = (random.bits() as u32, random.chance(50));
        let longest = 1 + random.below((bytes.len() as u64).max(30) / 2);
        let (mut pieces, mut at, mut first_lost) = (Vec::new(), 0, bytes.len());
        while at < bytes.len() {
            let end = bytes.len().min(at + bytes.len() / 24 + 1 + random.below(longest) as usize);
            let times = if lost && random.chance(10) { 0 } else { 1 + u64::from(random.chance(20)) };
            first_lost = if times == 0 { first_lost.min(at) } else { first_lost };
            (0..times).for_each(|_| pieces.push(segment(start.wrapping_add(at as u32), &bytes[at..end])));
            at = end;
        }
        for at in (1..pieces.len()).rev() {
            pieces.swap(at, at - random.below(at.min(6) as u64 + 1) as usize);
        }
        let all: Vec<_> = [syn(start)].into_iter().chain(pieces).collect();
        let (mut streams, mut found) = (Streams::default(), Vec::new());
        for (at, segment) in all.iter().enumerate() {
            let (client, server) = (Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED);
            streams.add(at as i64 * 1_000_000, client, server, segment, |m| found.push(m.bytes.to_vec()));
        }
        let counts = streams.finish(|m| found.push(m.bytes.to_vec()));
        assert!(counts.is_balanced() && counts.read == all.len() as u64, "{counts:?}");
        assert!(found.iter().map(|message| message.len() + 2).sum::<usize>() <= bytes.len());
        let before = messages(&bytes[..first_lost]);
        assert!(found.starts_with(&before), "{found:02x?} and {before:02x?}");
        assert!(first_lost < bytes.len() || found == before, "{found:02x?} and {before:02x?}");
    });
}

/// Segments with any numbers and flags, of few connections: the counts add up, memory is bounded, and no more messages
/// come out than have room in them.
#[test]
fn any_segments_are_survived() {
    fuzz(3_000, &[three()], |bytes, random| {
        let (mut streams, mut given, mut taken, mut time_ns) = (Streams::default(), 0, 0, 0_i64);
        let count = random.below(40);
        for _ in 0..count {
            let [from, to] = [(); 2].map(|()| random.below(bytes.len() as u64 + 1) as usize);
            let payload = &bytes[from.min(to)..from.max(to)];
            // Most are near the byte that they are a copy of, a few anywhere.
            let sequence = if random.chance(95) { from.min(to) as u64 + random.below(2) } else { random.bits() };
            let segment = Segment {
                source_port: random.below(2) as u16,
                is_syn: random.chance(5),
                is_end: random.chance(5),
                ..segment(sequence as u32, payload)
            };
            given += payload.len();
            time_ns = time_ns.wrapping_add(if random.chance(95) { 1_000_000 } else { random.bits() as i64 });
            streams.add(time_ns, Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST, &segment, |m| taken += m.bytes.len() + 2);
            // For each stream: what was given, and at most a message around a hole.
            assert!(streams.bytes_held() <= 4 * given + 2 * (2 * 65_537 + 4096), "{}", streams.bytes_held());
        }
        let counts = streams.finish(|m| taken += m.bytes.len() + 2);
        assert!(counts.is_balanced() && counts.read == count && taken <= given, "{counts:?}, {taken} of {given}");
    });
}
