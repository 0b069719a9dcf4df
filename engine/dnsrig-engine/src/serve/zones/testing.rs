//! A primary and its clients, for tests: queries in, messages out, read by another library.

use dnsrig_dns::{
    framing,
    query::{Ask, write_query},
    writer::MessageWriter,
};
use domain::{
    base::{Message, ParsedName, Record},
    rdata::{AllRecordData, ZoneRecordData},
};

use super::{
    conversation::Conversation,
    counts::Counts,
    faults::{Fault, Faults},
    primary::{Cut, Now, Order, Period, Primary},
    shape::{Shape, tests::shape},
};
use crate::serve::shell::service::Next;

pub const NOW: Now = Now { monotonic_ns: 0, wall_s: 1_700_000_000 };

/// A primary without faults, with messages as large as they can be.
pub fn primary(shape: Shape) -> Primary {
    let cut = Cut { bytes_max: 65_535, records_max: u16::MAX, order: Order::InOrder, signed_every: 1 };
    Primary { shape, cut, faults: Faults::default(), key: None, concurrent: None, period: Period::since(0) }
}

/// A primary with small zones and one fault.
pub fn faulty(fault: Fault) -> Primary {
    Primary { faults: Faults::new(&[fault], 2), ..primary(shape(10, 4)) }
}

/// The name of a zone of [`shape`] in wire format.
pub fn zone(number: u32) -> Vec<u8> {
    [super::names::Label::new(b'z', number).wire(), b"\x07example\0"].concat()
}

pub fn query(id: u16, zone: &[u8], ask: Ask) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_query(&mut bytes, id, zone, ask);
    bytes
}

/// All that a connection sends in answer to `queries`, and whether it is closed then.
pub fn converse<'a>(
    primary: &Primary,
    queries: impl IntoIterator<Item = &'a [u8]>,
    counts: &mut Counts,
) -> (Vec<Vec<u8>>, bool) {
    let mut conversation = Conversation::default();
    queries.into_iter().for_each(|query| conversation.take(query, primary, NOW, counts));
    let mut bytes = Vec::new();
    let mut room = vec![0xee; 200_000];
    loop {
        let mut to = MessageWriter::new(&mut room, 0);
        let filled = conversation.fill(primary, &mut to, 100_000, NOW.wall_s, counts);
        bytes.extend_from_slice(to.written());
        match filled {
            Next::More | Next::Later => {}
            Next::Nothing | Next::Close => {
                conversation.abandon(counts);
                return (split(&bytes), filled == Next::Close);
            }
        }
    }
}

/// The messages that answer one query.
pub fn ask(primary: &Primary, zone: &[u8], ask: Ask) -> Vec<Vec<u8>> {
    converse(primary, [&query(7, zone, ask)[..]], &mut Counts::default()).0
}

fn split(bytes: &[u8]) -> Vec<Vec<u8>> {
    assert_eq!(framing::each_frame(bytes).map(<[u8]>::len).sum::<usize>(), bytes.len());
    framing::each_frame(bytes).map(|frame| frame[framing::PREFIX_BYTES..].to_vec()).collect()
}

/// The answers in messages: owner, type and data as text.
pub fn records(messages: &[Vec<u8>]) -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    for bytes in messages {
        let message = Message::from_octets(&bytes[..]).unwrap();
        assert_eq!(message.header_counts().qdcount(), 1);
        for record in message.answer().unwrap() {
            let record: Record<ParsedName<_>, ZoneRecordData<_, _>> =
                record.unwrap().into_record().unwrap().expect("a record of a zone");
            found.push((record.owner().to_string(), record.rtype().to_string(), record.data().to_string()));
        }
        // To the last byte: what is additional is OPT or TSIG.
        for record in message.additional().unwrap() {
            record.unwrap().into_record::<AllRecordData<_, _>>().unwrap().expect("a record that is known");
        }
    }
    found
}

/// The serial in the data of a SOA as text.
pub fn serial(data: &str) -> u32 {
    data.split(' ').nth(2).unwrap().parse().unwrap()
}
