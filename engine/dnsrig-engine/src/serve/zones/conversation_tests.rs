use domain::base::Rtype;
use proptest::{collection::vec, prelude::*};

use dnsrig_dns::{header::HEADER_BYTES, query::Ask};

use super::*;
use crate::serve::zones::{
    faults::Fault,
    primary::Concurrent,
    shape::{Shape, tests::shape},
    testing::{NOW, converse, faulty, primary, query, records, zone},
};

/// Zone 0 has many records, all others few.
fn one_large() -> Shape {
    Shape { large: 1, large_records: 10_000, ..shape(100, 4) }
}

fn id(message: &[u8]) -> u16 {
    u16::from_be_bytes([message[0], message[1]])
}

fn rcode(message: &[u8]) -> u8 {
    message[3] & 0x0f
}

fn transfers(count: u16) -> Vec<Vec<u8>> {
    (0..count).map(|number| query(number, &zone(number.into()), Ask::Axfr)).collect()
}

fn answers(primary: &Primary, queries: &[Vec<u8>]) -> (Vec<Vec<u8>>, bool, Counts) {
    let mut counts = Counts::default();
    let (messages, closed) = converse(primary, queries.iter().map(|query| &query[..]), &mut counts);
    assert_eq!(counts.messages, messages.iter().filter(|message| !message.is_empty()).count() as u64);
    (messages, closed, counts)
}

#[test]
fn in_order_a_small_zone_waits_and_interleaved_it_does_not() {
    let mut primary = primary(one_large());
    primary.cut.bytes_max = 4096;
    let queries = transfers(3);
    let (in_order, ..) = answers(&primary, &queries);
    assert!(in_order.is_sorted_by_key(|message| id(message)));
    primary.cut.order = Order::Interleaved;
    let (interleaved, ..) = answers(&primary, &queries);
    assert_eq!(interleaved.iter().take(4).map(|message| id(message)).collect::<Vec<_>>(), [0, 1, 2, 0]);
    // The messages are equal except for their order.
    let sorted = |mut messages: Vec<Vec<u8>>| {
        messages.sort_by_key(|message| id(message));
        messages
    };
    assert_eq!(sorted(interleaved), in_order);
}

#[test]
fn a_connection_that_has_much_to_answer_is_not_read_from() {
    let mut conversation = Conversation::default();
    let primary = primary(shape(100, 4));
    let mut counts = Counts::default();
    assert!(conversation.wants_queries(Order::InOrder));
    for number in 0..ANSWERS_MAX as u16 {
        assert!(conversation.wants_queries(Order::Interleaved));
        conversation.take(&query(number, &zone(1), Ask::Axfr), &primary, NOW, &mut counts);
        assert!(!conversation.wants_queries(Order::InOrder));
    }
    assert!(!conversation.wants_queries(Order::Interleaved));
    conversation.abandon(&mut counts);
    assert_eq!((counts.outcomes.abandoned, counts.queries), (ANSWERS_MAX as u64, ANSWERS_MAX as u64));
    let next = conversation.fill(&primary, &mut MessageWriter::new(&mut [], 0), 1, NOW.wall_s, &mut counts);
    assert!(next == Next::Nothing && conversation.answers.capacity() <= ANSWERS_KEPT);
}

#[test]
fn the_state_of_an_answer_is_small() {
    assert!(size_of::<Answer>() <= 128, "{}", size_of::<Answer>());
}

#[test]
fn more_transfers_than_may_be_at_a_time_are_servfail() {
    let mut primary = primary(shape(100, 4));
    primary.concurrent = Some(Concurrent::new(2));
    for order in [Order::InOrder, Order::Interleaved] {
        primary.cut.order = order;
        let (messages, closed, counts) = answers(&primary, &transfers(5));
        assert_eq!(messages.iter().map(|message| rcode(message)).collect::<Vec<_>>(), [0, 0, 2, 2, 2]);
        assert_eq!((counts.outcomes.done, counts.outcomes.servfail, closed), (2, 3, false));
    }
}

#[test]
fn a_connections_faults_come_after_so_many_transfers() {
    for (fault, rcodes) in [(Fault::ServfailAfter(2), [0, 0, 2, 2]), (Fault::RefusedAfter(2), [0, 0, 5, 5])] {
        let soa = query(9, &zone(1), Ask::Soa);
        let queries = [vec![soa.clone(), soa], transfers(4)].concat();
        let (messages, ..) = answers(&faulty(fault), &queries);
        assert_eq!(messages[2..].iter().map(|message| rcode(message)).collect::<Vec<_>>(), rcodes);
    }
    let (messages, closed, counts) = answers(&faulty(Fault::CloseAfter(3)), &transfers(5));
    assert_eq!((messages.len(), closed, counts.outcomes.abandoned), (3, true, 2));
    let (messages, closed, _) = answers(&faulty(Fault::CloseAfter(3)), &transfers(3));
    assert_eq!((messages.len(), closed), (3, true), "with nothing more to answer too");
}

#[test]
fn a_transfer_is_cut_after_so_many_messages() {
    let mut primary = faulty(Fault::CutAfter(2));
    primary.cut.records_max = 1;
    let odd_first = [1, 2, 3].map(|number| query(number, &zone(number.into()), Ask::Axfr));
    let (messages, closed, counts) = answers(&primary, &odd_first);
    assert_eq!(messages.iter().map(|message| id(message)).collect::<Vec<_>>(), [1, 1, 1, 1, 1, 2, 2]);
    assert!(closed);
    assert_eq!((counts.outcomes.done, counts.outcomes.cut, counts.outcomes.abandoned), (1, 1, 1));
    assert_eq!(answers(&faulty(Fault::CutAfter(0)), &transfers(1)).0.len(), 0);
}

#[test]
fn slow_messages_leave_one_at_a_time() {
    let mut primary = faulty(Fault::Slow(7));
    primary.cut.records_max = 4;
    let mut conversation = Conversation::default();
    let mut counts = Counts::default();
    conversation.take(&query(1, &zone(0), Ask::Axfr), &primary, NOW, &mut counts);
    let mut room = vec![0; 70_000];
    let mut fill = || conversation.fill(&primary, &mut MessageWriter::new(&mut room, 0), 60_000, 0, &mut counts);
    assert_eq!([fill(), fill(), fill()], [Next::Later, Next::Later, Next::Nothing]);
}

#[test]
fn an_endless_zone_does_not_end() {
    let primary = faulty(Fault::Endless);
    let mut conversation = Conversation::default();
    let mut counts = Counts::default();
    conversation.take(&query(1, &zone(0), Ask::Axfr), &primary, NOW, &mut counts);
    let mut room = vec![0; 200_000];
    for _ in 0..100 {
        let filled = conversation.fill(&primary, &mut MessageWriter::new(&mut room, 0), 100_000, 0, &mut counts);
        assert_eq!(filled, Next::More);
    }
    assert_eq!((counts.outcomes.done, counts.messages), (0, 200));
}

#[test]
fn what_is_not_served_is_refused_by_its_proper_name() {
    let primary = primary(shape(2, 4));
    let with_kind = |name: &[u8], kind: Rtype| {
        let mut bytes = query(1, name, Ask::Axfr);
        let at = bytes.len() - 4;
        bytes[at..at + 2].copy_from_slice(&kind.to_int().to_be_bytes());
        bytes
    };
    let with_class = |class: u8| [&query(1, &zone(0), Ask::Axfr)[..HEADER_BYTES + 17 + 3], &[class]].concat();
    let with_opcode = |opcode: u8| {
        let mut bytes = query(1, &zone(0), Ask::Soa);
        bytes[2] |= opcode << 3;
        bytes
    };
    for (query, rcode_of_it) in [
        (with_kind(&zone(0), Rtype::AXFR), 0),
        (with_kind(&zone(2), Rtype::AXFR), 9),
        (with_kind(&zone(2), Rtype::SOA), 5),
        (with_kind(&zone(0), Rtype::A), 5),
        (with_kind(&zone(0), Rtype::IXFR), 1),
        (with_class(3), 5),
        (with_class(1), 0),
        (with_opcode(4), 0),
        (with_opcode(5), 4),
        (query(1, &zone(0), Ask::Soa)[..HEADER_BYTES + 3].to_vec(), 1),
    ] {
        let (messages, ..) = answers(&primary, std::slice::from_ref(&query));
        assert_eq!(rcode(&messages[0]), rcode_of_it, "{query:?}");
        assert_eq!(id(&messages[0]), 1);
    }
}

#[test]
fn names_are_found_in_any_case_and_options_are_answered() {
    let primary = primary(shape(2, 4));
    let mut bytes = query(1, &zone(1), Ask::Axfr);
    bytes[HEADER_BYTES..HEADER_BYTES + 17].make_ascii_uppercase();
    bytes[11] = 1;
    bytes.extend_from_slice(&[0, 0, 41, 4, 0xd0, 0, 0, 0, 0, 0, 0]);
    let (messages, ..) = answers(&primary, &[bytes]);
    assert_eq!(records(&messages).len(), 5);
    assert_eq!(messages[0][10..12], [0, 1], "one OPT record");
}

proptest! {
    #[test]
    fn any_bytes_are_taken_in_and_what_is_a_query_is_answered(
        prefix in vec(any::<u8>(), 0..6),
        bytes in vec(prop_oneof![5 => 0..4_u8, 1 => any::<u8>()], 0..80),
    ) {
        let message = [prefix, bytes].concat();
        let (messages, _, counts) = answers(&primary(shape(2, 4)), std::slice::from_ref(&message));
        let is_query = message.len() >= HEADER_BYTES && message[2] & 0x80 == 0;
        prop_assert_eq!((counts.queries, counts.ignored), (is_query.into(), (!is_query).into()));
        prop_assert_eq!(!messages.is_empty(), is_query);
        prop_assert!(messages.iter().all(|message| message[2] & 0x80 != 0));
    }

    #[test]
    fn a_query_that_is_damaged_harms_nobody(
        at in 0_usize..60, byte: u8, cut in 0_usize..70, ixfr: bool, order: bool,
    ) {
        let mut primary = primary(shape(2, 4));
        primary.cut.order = if order { Order::InOrder } else { Order::Interleaved };
        let ask = if ixfr { Ask::Ixfr { serial: 0 } } else { Ask::Axfr };
        let mut damaged = query(1, &zone(0), ask);
        if let Some(place) = damaged.get_mut(at) {
            *place = byte;
        }
        damaged.truncate(cut);
        let whole = query(2, &zone(1), Ask::Axfr);
        let (messages, ..) = answers(&primary, &[damaged, whole]);
        prop_assert!(messages.iter().any(|message| id(message) == 2 && rcode(message) == 0));
    }
}
