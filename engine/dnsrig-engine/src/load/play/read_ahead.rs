//! Reads captured queries for one of the threads that send: its share of the clients, as chunks.

use dnsrig_core::failure::Failure;

use crate::{
    load::{
        classes::Classes,
        segment::Part,
        source::{Chunk, ChunkSender, Way},
    },
    query_stream::{NEW_CONNECTION, RETRANSMISSION, StreamReader, Transport},
};
use std::sync::atomic::{AtomicU64, Ordering};

/// The longest message that a datagram of IPv6 carries without an extension header: 65,535 less the header of UDP.
pub const MESSAGE_BYTES_MAX: usize = 65_527;

/// The queries of a file that are sent, and how.
#[derive(Clone, Debug)]
pub struct Selection {
    /// The clients of this thread.
    pub part: Part,
    /// The factor by which the replay is faster.
    pub speed: f64,
    pub retransmissions: bool,
    /// Which class each client is in.
    pub classes: Classes,
    /// By class: the transport of all queries. `None`: as they were captured.
    pub transports: Vec<Option<Transport>>,
}

/// Queries that are left out on purpose.
#[derive(Debug, Default)]
pub struct Skipped {
    pub retransmissions: AtomicU64,
    /// Longer than a datagram.
    pub too_long: AtomicU64,
}

impl Selection {
    fn is_mine(&self, client: u32) -> bool {
        if !self.part.segment.has_client(client) {
            return false;
        }
        // The numbers of clients that ask much need not be spread evenly, but their products are (Knuth, TAOCP 3, 6.4).
        let spread = u64::from(client).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        spread % self.part.threads as u64 == self.part.thread as u64
    }
}

/// Gives chunks until the file ends, or nobody takes them.
pub fn read_ahead(
    mut stream: StreamReader,
    selection: &Selection,
    skipped: &Skipped,
    sender: &mut ChunkSender,
) -> Result<(), Failure> {
    let mut chunk = Chunk::default();
    let mut numbers = 0..;
    while let Some((record, number)) = stream.next()?.zip(numbers.next()) {
        if !selection.is_mine(record.client) {
            continue;
        }
        if !selection.retransmissions && record.flags & RETRANSMISSION != 0 {
            skipped.retransmissions.fetch_add(1, Ordering::Relaxed);
            continue;
        }
        let wanted = selection.transports[selection.classes.of(record.client)];
        if record.message.len() > MESSAGE_BYTES_MAX {
            skipped.too_long.fetch_add(1, Ordering::Relaxed);
            continue;
        }
        let way = Way {
            transport: wanted.unwrap_or(record.transport),
            // A client that uses UDP only does not use TCP for truncated answers, either.
            asks_again: wanted != Some(Transport::Udp),
            // The file does not show how long connections over another transport last.
            begins_connection: wanted.is_none() && record.flags & NEW_CONNECTION != 0,
        };
        let due_ns = (record.due_ns as f64 / selection.speed) as i64;
        chunk.push((number, due_ns), record.client, way, record.message);
        if !chunk.has_room() {
            let Some(empty) = sender.give(chunk) else { return Ok(()) };
            chunk = empty;
        }
    }
    if !chunk.is_empty() {
        // Whoever takes it may have ended early.
        let _ = sender.give(chunk);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{collections::HashMap, iter, path::Path};

    use dnsrig_testing::inputs;
    use proptest::{collection::vec, prelude::*};

    use super::*;
    use crate::{
        load::{
            arrivals::{Arrivals, Model, Order, Period},
            segment::Segment,
            source::{self, Captured, Source},
        },
        query_stream::{Record, StreamWriter},
    };

    /// What a part takes of the stream: numbers, moments and clients.
    fn taken(path: &Path, part: Part, speed: f64) -> Vec<(u64, i64, u32)> {
        let classes = Classes::by_shares(0, &[], 1);
        let selection = Selection { part, speed, retransmissions: false, classes, transports: vec![None] };
        let (mut sender, receiver) = source::channel();
        read_ahead(StreamReader::open(path).unwrap(), &selection, &Skipped::default(), &mut sender).unwrap();
        drop(sender);
        let mut source = Source::Captured(Captured::new(receiver, MESSAGE_BYTES_MAX));
        let period = Period { model: Model::Captured { qps: 1.0 }, start_ns: 77, end_ns: i64::MAX, seed: 1 };
        let mut arrivals = Arrivals::new(period, part, Order { next: 0, count: 1 });
        let due = iter::from_fn(|| arrivals.take(i64::MAX - 1, &mut source));
        due.map(|due| (due.number, due.at_ns, due.client.unwrap())).collect()
    }

    /// Queries keep their transport, and begin connections where they did, unless the transport is chosen.
    #[test]
    fn each_query_goes_its_way_and_what_is_left_out_is_counted() {
        let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
        let mut stream = StreamWriter::create(&path).unwrap();
        let captured = [
            (Transport::Udp, 0, 12),
            (Transport::Tcp, NEW_CONNECTION, MESSAGE_BYTES_MAX),
            (Transport::Dot, NEW_CONNECTION | RETRANSMISSION, 20),
            (Transport::Tcp, 0, MESSAGE_BYTES_MAX + 1),
        ];
        for (transport, flags, length) in captured {
            stream.push(Record { due_ns: 0, client: 0, transport, flags, message: &vec![0; length] }).unwrap();
        }
        stream.finish(0, None::<[std::net::Ipv6Addr; 0]>).unwrap();
        let (udp, tcp, dot) = (Transport::Udp, Transport::Tcp, Transport::Dot);
        for (wanted, retransmissions, expected, left_out) in [
            (None, true, vec![(0, udp, true, false), (1, tcp, true, true), (2, dot, true, true)], 0),
            (None, false, vec![(0, udp, true, false), (1, tcp, true, true)], 1),
            (Some(udp), false, vec![(0, udp, false, false), (1, udp, false, false)], 1),
            (Some(dot), false, vec![(0, dot, true, false), (1, dot, true, false)], 1),
        ] {
            let part = Part { thread: 0, threads: 1, segment: Segment::default() };
            let (classes, transports) = (Classes::by_shares(0, &[], 1), vec![wanted]);
            let selection = Selection { part, speed: 1.0, retransmissions, classes, transports };
            let (skipped, (mut sender, receiver)) = (Skipped::default(), source::channel());
            read_ahead(StreamReader::open(&path).unwrap(), &selection, &skipped, &mut sender).unwrap();
            drop(sender);
            let mut captured = Captured::new(receiver, MESSAGE_BYTES_MAX);
            let ways = iter::from_fn(|| captured.take(0).map(|taken| (taken.number, captured.way(taken.place))));
            let ways = ways.map(|(number, way)| (number, way.transport, way.asks_again, way.begins_connection));
            assert_eq!(ways.collect::<Vec<_>>(), expected, "{wanted:?}");
            let counts = [&skipped.retransmissions, &skipped.too_long].map(|count| count.load(Ordering::Relaxed));
            assert_eq!(counts, [left_out, 1], "{wanted:?}");
        }
    }

    proptest! {
        #![proptest_config(inputs(20))]

        #[test]
        fn the_parts_of_a_stream_are_together_that_of_one_generator(
            (of, threads) in (1..=5_u32, 1..=3_usize),
            queries in vec((0..1_000_000_i64, 0..30_u32, prop_oneof![4 => Just(0), 1 => Just(RETRANSMISSION)]), 1..300),
            speed in 0.1..10.0_f64,
        ) {
            let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
            let mut stream = StreamWriter::create(&path).unwrap();
            let mut due_ns = 0;
            let mut numbers = HashMap::new();
            for (gap_ns, client, flags) in queries {
                // In a stream each number is a client's that has a query.
                let count = numbers.len() as u32;
                let client = *numbers.entry(client).or_insert(count);
                stream.push(Record { due_ns, client, transport: Transport::Udp, flags, message: &[0; 17] }).unwrap();
                due_ns += gap_ns;
            }
            stream.finish(0, None::<[std::net::Ipv6Addr; 0]>).unwrap();
            let alone = Part { thread: 0, threads: 1, segment: Segment::default() };
            let mut union = Vec::new();
            for segment in (1..=of).map(|number| Segment { number, of }) {
                for thread in 0..threads {
                    let own = taken(&path, Part { thread, threads, segment }, speed);
                    prop_assert!(own.iter().all(|(_, _, client)| client % of == segment.number - 1));
                    union.extend(own);
                }
            }
            union.sort_unstable();
            prop_assert_eq!(union, taken(&path, alone, speed));
        }
    }
}
