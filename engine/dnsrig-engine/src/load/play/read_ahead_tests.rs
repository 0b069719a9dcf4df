use std::{collections::HashMap, iter, path::Path};

use proptest::{collection::vec, prelude::*};

use super::*;
use crate::{
    base::testing::inputs,
    load::{
        arrivals::{Arrivals, Model, Order, Period},
        captured::{self, Captured},
        segment::Segment,
        source::Source,
    },
    query_stream::{Record, StreamWriter},
};

/// What a part takes of the stream: numbers, moments and clients.
fn taken(path: &Path, part: Part, speed: f64) -> Vec<(u64, i64, u32)> {
    let classes = Classes::by_shares(0, &[], 1);
    let selection = Selection { part, speed, retransmissions: false, classes, transports: vec![None] };
    let (mut sender, receiver) = captured::channel();
    read_ahead(StreamReader::open(path).unwrap(), &selection, &Skipped::default(), &mut sender).unwrap();
    drop(sender);
    let mut source = Source::Captured(Captured::new(receiver, MESSAGE_BYTES_MAX));
    let period = Period { model: Model::Stream { qps: 1.0 }, start_ns: 77, end_ns: i64::MAX, seed: 1 };
    let mut arrivals = Arrivals::new(period, part, Order { next: 0, count: 1 });
    let due = iter::from_fn(|| arrivals.take(i64::MAX - 1, &mut source));
    due.map(|due| (due.number, due.at_ns, due.client.unwrap())).collect()
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
