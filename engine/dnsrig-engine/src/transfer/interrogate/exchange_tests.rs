use std::str::FromStr;

use domain::{
    base::{MessageBuilder, Name, Serial, Ttl, iana::Class, opt::TcpKeepalive},
    rdata::{Ns, Soa},
    tsig::ServerSequence,
};
use proptest::prelude::*;

use super::*;
use crate::transfer::interrogate::{
    answer::Transport,
    survey::{Known, Survey},
    transfer::Style,
};

/// The serial of every zone in a script.
const SERIAL: u32 = 7;

/// An exchange as a server would have it, message by message: what judgements are tested with.
pub struct Script {
    exchange: Exchange,
    at: Duration,
    /// To be asked when the one before has its answer.
    later: usize,
}

impl Script {
    pub fn asking(asks: &[Ask]) -> Self {
        let mut script = Script { exchange: Exchange::default(), at: Duration::ZERO, later: 0 };
        asks.iter().for_each(|ask| script.ask(*ask));
        script
    }

    /// So many transfers in one write.
    pub fn asked(count: usize) -> Self {
        Self::asking(&vec![Ask::Axfr; count])
    }

    /// So many transfers, each when the one before has its answer.
    pub fn in_turn(count: usize) -> Self {
        Script { later: count - 1, ..Self::asked(1) }
    }

    fn ask(&mut self, ask: Ask) {
        self.exchange.ask(&zone(), ask, None, now(self.at)).unwrap();
    }

    /// Nothing comes for so long; each message takes a millisecond more.
    pub fn after(mut self, wait: Duration) -> Self {
        self.at += wait;
        self
    }

    fn message(mut self, octets: &[u8]) -> Self {
        self.at += Duration::from_millis(1);
        self.exchange.take(now(self.at), octets);
        if self.later > 0 && self.exchange.open() == 0 {
            self.later -= 1;
            self.ask(Ask::Axfr);
        }
        self
    }

    fn records(self, number: usize, serials: &[Option<u32>]) -> Self {
        self.message(&answer(number, serials))
    }

    /// A whole zone in one message.
    pub fn whole(self, number: usize) -> Self {
        self.records(number, &[Some(SERIAL), None, Some(SERIAL)])
    }

    /// The first message of a zone.
    pub fn first(self, number: usize) -> Self {
        self.records(number, &[Some(SERIAL), None])
    }

    /// And its last.
    pub fn last(self, number: usize) -> Self {
        self.records(number, &[None, Some(SERIAL)])
    }

    pub fn soa(self, number: usize) -> Self {
        self.records(number, &[Some(SERIAL)])
    }

    pub fn differences(self, number: usize) -> Self {
        self.records(number, &[Some(SERIAL), Some(SERIAL - 1), None, Some(SERIAL), None, Some(SERIAL)])
    }

    pub fn refused(self, number: usize) -> Self {
        let mut builder = MessageBuilder::new_vec();
        builder.header_mut().set_id(number as u16);
        builder.header_mut().set_qr(true);
        builder.header_mut().set_rcode(Rcode::REFUSED);
        self.message(&builder.finish())
    }

    /// A SOA with the option of RFC 7828.
    pub fn keepalive(self, number: usize, timeout: Duration) -> Self {
        let Ok(message) = Message::from_octets(answer(number, &[Some(SERIAL)])) else { unreachable!() };
        let mut builder = MessageBuilder::new_vec().start_answer(&message, Rcode::NOERROR).unwrap();
        builder.header_mut().set_id(number as u16);
        builder.push((zone(), Class::IN, Ttl::ZERO, soa(SERIAL))).unwrap();
        let mut additional = builder.additional();
        let timeout = TcpKeepalive::new(Some(timeout.try_into().unwrap()));
        additional.opt(|options| options.push(&timeout)).unwrap();
        self.message(&additional.finish())
    }

    pub fn lost(mut self, loss: Loss) -> Self {
        self.exchange.loss = Some(loss);
        self
    }

    pub fn exchange(self) -> Exchange {
        self.exchange
    }

    /// As if zones had been looked at that way.
    pub fn survey(self) -> Survey {
        let known = |transfer| Known { name: zone(), transfer, message_octets: Vec::new() };
        let zones = self.exchange.transfers.into_iter().map(known).collect();
        Survey { zones, ..Survey::new(Transport::Tcp) }
    }
}

fn zone() -> ZoneName {
    Name::from_str("z.example").unwrap()
}

fn now(at: Duration) -> Now {
    Now { at, wall: Time48::from_u64(1_700_000_000) }
}

fn soa(serial: u32) -> Soa<ZoneName> {
    Soa::new(zone(), zone(), Serial(serial), Ttl::ZERO, Ttl::ZERO, Ttl::ZERO, Ttl::ZERO)
}

/// An answer with a SOA for each serial, and NS records between.
fn answer(number: usize, serials: &[Option<u32>]) -> Vec<u8> {
    let mut builder = MessageBuilder::new_vec();
    builder.header_mut().set_id(number as u16);
    builder.header_mut().set_qr(true);
    let mut answer = builder.answer();
    for serial in serials {
        match serial {
            Some(serial) => answer.push((zone(), Class::IN, Ttl::ZERO, soa(*serial))).unwrap(),
            None => answer.push((zone(), Class::IN, Ttl::ZERO, Ns::new(zone()))).unwrap(),
        }
    }
    answer.finish()
}

#[test]
fn messages_find_their_transfers_by_id() {
    let exchange = Script::asked(3).first(0).whole(2).last(0).refused(1).exchange();
    assert_eq!((exchange.open(), exchange.done(), exchange.refused()), (0, 2, 1));
    assert_eq!((exchange.interleaved(), exchange.out_of_order()), (1, 1));
    assert_eq!(exchange.refusals(), [("REFUSED".to_owned(), 1)]);
    let transfer = &exchange.transfers[0];
    assert_eq!((transfer.messages, transfer.records, transfer.serial), (2, 4, Some(SERIAL)));
    assert_eq!(transfer.took(), Some(Duration::from_millis(3)));
}

#[test]
fn an_id_that_was_not_asked_for_ends_nothing() {
    let exchange = Script::asked(1).whole(5).exchange();
    assert_eq!((exchange.open(), exchange.arrivals[0].transfer), (1, None));
}

#[test]
fn order_is_that_of_the_ends() {
    assert_eq!(Script::asked(3).whole(0).whole(1).whole(2).exchange().out_of_order(), 0);
    assert_eq!(Script::asked(3).whole(2).whole(0).whole(1).exchange().out_of_order(), 1);
    // Interleaved, but the first asked for is the first to end.
    let exchange = Script::asked(2).first(1).first(0).last(0).last(1).exchange();
    assert_eq!((exchange.out_of_order(), exchange.interleaved()), (0, 1));
}

fn key() -> Arc<Key> {
    let name = domain::tsig::KeyName::from_str("k").unwrap();
    Arc::new(Key::new(domain::tsig::Algorithm::Sha256, b"a secret of some length", name, None, None).unwrap())
}

/// A signed query and its answer in two messages, which are changed before they arrive.
fn signed(change: impl Fn(usize, Vec<u8>) -> Vec<u8>) -> Option<End> {
    let (wall, mut exchange) = (now(Duration::ZERO).wall, Exchange::default());
    let query = exchange.ask(&zone(), Ask::Axfr, Some(&key()), now(Duration::ZERO)).unwrap();
    let mut request = Message::from_octets(query[2..].to_vec()).unwrap();
    let mut sequence = ServerSequence::request(&key(), &mut request, wall).unwrap().unwrap();
    for (number, serials) in [[Some(SERIAL), None], [None, Some(SERIAL)]].into_iter().enumerate() {
        let message = Message::from_octets(answer(0, &serials)).unwrap();
        let mut builder = MessageBuilder::new_vec();
        *builder.header_mut() = message.header();
        let mut section = builder.answer();
        for record in message.answer().unwrap() {
            section
                .push(record.unwrap().into_record::<domain::rdata::AllRecordData<_, _>>().unwrap().unwrap())
                .unwrap();
        }
        let mut additional = section.additional();
        sequence.answer(&mut additional, wall).unwrap();
        exchange.take(now(Duration::ZERO), &change(number, additional.finish()));
    }
    exchange.transfers.pop().unwrap().end
}

#[test]
fn signatures_are_checked() {
    assert_eq!(signed(|_, message| message), Some(End::Done(Style::Whole)));
    let broken = |change: fn(usize, Vec<u8>) -> Vec<u8>| matches!(signed(change), Some(End::Broken(_)));
    assert!(broken(|number, mut message| {
        message[20] ^= u8::from(number == 0);
        message
    }));
    assert!(broken(|number, message| if number == 0 { answer(0, &[Some(SERIAL), None]) } else { message }));
    assert!(broken(|number, message| if number == 1 { answer(0, &[None, Some(SERIAL)]) } else { message }));
}

proptest! {
    #[test]
    fn whatever_comes_does_no_harm(octets in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut exchange = Exchange::default();
        exchange.ask(&zone(), Ask::Axfr, None, now(Duration::ZERO)).unwrap();
        exchange.take(now(Duration::ZERO), &octets);
        prop_assert_eq!(exchange.arrivals.len(), 1);
    }

    #[test]
    fn a_damaged_message_does_no_harm(place in 0_usize..90, value: u8) {
        let mut octets = answer(0, &[Some(SERIAL), None, Some(SERIAL)]);
        let place = place % octets.len();
        octets[place] = value;
        let mut exchange = Exchange::default();
        exchange.ask(&zone(), Ask::Axfr, None, now(Duration::ZERO)).unwrap();
        exchange.take(now(Duration::ZERO), &octets);
        prop_assert!(exchange.transfers[0].records <= 3);
    }
}
