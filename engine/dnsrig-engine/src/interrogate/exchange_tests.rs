use super::*;
use dnsrig_dns::{
    testing::messages,
    tsig::sign::parse_key,
    xfr::{Incoming, Step},
};
use dnsrig_testing::fuzz::fuzz;

use crate::interrogate::{
    answer::Transport,
    survey::{Known, Survey},
    transfer::NO_LIMITS,
};
use domain::{
    base::{
        MessageBuilder, Name, Serial, Ttl,
        iana::{Class, Rcode},
        opt::TcpKeepalive,
    },
    rdata::{Ns, Soa},
};

/// The serial of every zone in a script.
const SERIAL: u32 = 7;

/// z.example
const ZONE: &[u8] = b"\x01z\x07example\0";

/// An exchange as a server would have it, message by message: what judgements are tested with.
pub struct Script {
    exchange: Exchange,
    asks: Vec<Ask>,
    at: Duration,
    /// To be asked when the one before has its answer.
    later: usize,
}

impl Script {
    pub fn asking(asks: &[Ask]) -> Self {
        let mut script = Script { exchange: Exchange::default(), asks: Vec::new(), at: Duration::ZERO, later: 0 };
        asks.iter().for_each(|ask| script.ask(*ask));
        script
    }

    /// A number of transfers in one write.
    pub fn asked(count: usize) -> Self {
        Self::asking(&vec![Ask::Axfr; count])
    }

    /// A number of transfers, each when the one before has its answer.
    pub fn in_turn(count: usize) -> Self {
        Script { later: count - 1, ..Self::asked(1) }
    }

    fn ask(&mut self, ask: Ask) {
        self.asks.push(ask);
        self.exchange.ask(&ZONE.to_vec(), ask, None, now(self.at));
    }

    /// Nothing comes for so long; each message takes a millisecond more.
    pub fn after(mut self, wait: Duration) -> Self {
        self.at += wait;
        self
    }

    fn message(mut self, bytes: &[u8]) -> Self {
        self.at += Duration::from_millis(1);
        self.exchange.take(now(self.at), bytes);
        if self.later > 0 && self.exchange.open() == 0 {
            self.later -= 1;
            self.ask(Ask::Axfr);
        }
        self
    }

    fn records(self, number: usize, serials: &[Option<u32>]) -> Self {
        let message = answer(number, self.asks[number], serials, None);
        self.message(&message)
    }

    /// A whole zone in one message.
    pub fn whole(self, number: usize) -> Self {
        self.records(number, &[Some(SERIAL), None, Some(SERIAL)])
    }

    /// The first message of a zone.
    pub fn first(self, number: usize) -> Self {
        self.records(number, &[Some(SERIAL), None])
    }

    /// A whole zone with a record of another zone in it.
    pub fn with_record_outside(self, number: usize) -> Self {
        let mut message = answer(number, self.asks[number], &[Some(SERIAL), None, Some(SERIAL)], None);
        // The NS record's owner, behind the SOA: z.example, compressed or not, becomes y.example.
        let ns = message.windows(4).position(|bytes| bytes == [0, 2, 0, 1]).unwrap();
        let owner = ns - ZONE.len();
        assert_eq!(&message[owner..ns], ZONE, "names are not compressed");
        message[owner + 1] = b'y';
        self.message(&message)
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
        let message = answer(number, self.asks[number], &[Some(SERIAL)], Some(timeout));
        self.message(&message)
    }

    pub fn lost(mut self, close_reason: CloseReason) -> Self {
        self.exchange.close_reason = Some(close_reason);
        self
    }

    pub fn exchange(self) -> Exchange {
        self.exchange
    }

    /// The survey that the exchange would be.
    pub fn survey(self) -> Survey {
        let close_reason = self.exchange.close_reason;
        let known = |transfer: Transfer| Known {
            name: ZONE.to_vec(),
            message_bytes: vec![100; transfer.counts().messages as usize],
            close_reason: close_reason.clone().filter(|_| transfer.is_open()),
            transfer,
        };
        let zones: Vec<_> = self.exchange.transfers.into_iter().map(known).collect();
        let given = zones.len();
        Survey { zones, ..Survey::new(Transport::Tcp, given) }
    }
}

fn now(at: Duration) -> Now {
    Now { at, wall_s: 1_700_000_000 }
}

/// An answer with a SOA for each serial, and NS records between.
fn answer(number: usize, ask: Ask, serials: &[Option<u32>], keepalive: Option<Duration>) -> Vec<u8> {
    let zone = || Name::from_octets(ZONE.to_vec()).unwrap();
    let mut builder = MessageBuilder::new_vec();
    builder.header_mut().set_id(number as u16);
    builder.header_mut().set_qr(true);
    let mut question = builder.question();
    question.push((zone(), ask.qtype(), Class::IN)).unwrap();
    let mut answer = question.answer();
    for serial in serials {
        match serial {
            Some(serial) => {
                let soa = Soa::new(zone(), zone(), Serial(*serial), Ttl::ZERO, Ttl::ZERO, Ttl::ZERO, Ttl::ZERO);
                answer.push((zone(), Class::IN, Ttl::ZERO, soa)).unwrap();
            }
            None => answer.push((zone(), Class::IN, Ttl::ZERO, Ns::new(zone()))).unwrap(),
        }
    }
    let mut additional = answer.additional();
    if let Some(timeout) = keepalive {
        let timeout = TcpKeepalive::new(Some(timeout.try_into().unwrap()));
        additional.opt(|options| options.push(&timeout)).unwrap();
    }
    additional.finish()
}

#[test]
fn messages_find_their_transfers_by_id() {
    let exchange = Script::asked(3).first(0).whole(2).last(0).refused(1).exchange();
    assert_eq!((exchange.open(), exchange.done(), exchange.refused()), (0, 2, 1));
    assert_eq!((exchange.interleaved(), exchange.out_of_order()), (1, 1));
    assert_eq!(exchange.complaint(), "REFUSED 1");
    let transfer = &exchange.transfers[0];
    assert_eq!((transfer.counts().messages, transfer.counts().serial), (2, Some(SERIAL)));
    assert_eq!(transfer.took(), Some(Duration::from_millis(3)));
}

#[test]
fn an_id_that_nobody_waits_for_ends_nothing() {
    let exchange = Script::asked(1).records(0, &[Some(SERIAL)]).exchange();
    assert_eq!(exchange.open(), 1);
    let mut exchange = Script::asked(1).whole(0).exchange();
    for number in [0, 5] {
        exchange.take(now(Duration::ZERO), &answer(number, Ask::Axfr, &[Some(SERIAL)], None));
        assert_eq!((exchange.done(), exchange.arrivals.pop().unwrap().transfer), (1, None));
    }
}

#[test]
fn only_records_and_ends_are_progress() {
    let after = |script: Script| {
        let exchange = script.exchange();
        (exchange.progress_at.as_millis(), exchange.fruitless)
    };
    assert_eq!(after(Script::asked(2).first(0)), (1, 0));
    // Without a record, and for an id that nobody has.
    let empty = || Script::asked(2).first(0).records(0, &[]).records(0, &[]);
    assert_eq!(after(empty()), (1, 2));
    assert_eq!(after(empty().message(&[9; 12])), (1, 3));
    assert_eq!(after(empty().last(0)), (4, 0));
    assert_eq!(after(empty().refused(1)), (4, 0));
}

#[test]
fn order_is_that_of_the_ends() {
    assert_eq!(Script::asked(3).whole(0).whole(1).whole(2).exchange().out_of_order(), 0);
    assert_eq!(Script::asked(3).whole(2).whole(0).whole(1).exchange().out_of_order(), 1);
    // Interleaved, but the first asked for is the first to end.
    let exchange = Script::asked(2).first(1).first(0).last(0).last(1).exchange();
    assert_eq!((exchange.out_of_order(), exchange.interleaved()), (0, 1));
}

#[test]
fn only_transfers_are_signed_and_then_their_answers_must_be() {
    let signer = parse_key("hmac-sha256:k:c2VjcmV0IG9mIHNvbWUgb2N0ZXRz").unwrap();
    let mut exchange = Exchange::default();
    let lengths =
        [Ask::Soa, Ask::Axfr].map(|ask| exchange.ask(&ZONE.to_vec(), ask, Some(&signer), now(Duration::ZERO)).len());
    assert!(lengths[0] < lengths[1]);
    exchange.take(now(Duration::ZERO), &answer(0, Ask::Soa, &[Some(SERIAL)], None));
    exchange.take(now(Duration::ZERO), &answer(1, Ask::Axfr, &[Some(SERIAL), None, Some(SERIAL)], None));
    assert_eq!(exchange.transfers[1].outcome, Some(Outcome::TsigMissing));
    assert_eq!(exchange.complaint(), "tsig-missing");
}

#[test]
fn a_zone_without_a_digest_is_done_all_the_same() {
    let mut exchange = Exchange { checks_digests: true, ..Exchange::default() };
    exchange.ask(&ZONE.to_vec(), Ask::Axfr, None, now(Duration::ZERO));
    exchange.take(now(Duration::ZERO), &answer(0, Ask::Axfr, &[Some(SERIAL), None, Some(SERIAL)], None));
    assert_eq!((exchange.done(), exchange.transfers[0].zonemd), (1, Some(Outcome::ZonemdMissing)));
}

/// Whatever comes: what is counted adds up, and a transfer ends as it would by itself.
#[test]
fn harmed_messages_end_a_transfer_as_they_would_alone() {
    let serials: [&[Option<u32>]; 4] =
        [&[Some(SERIAL), None, Some(SERIAL)], &[Some(SERIAL), None], &[None, Some(SERIAL)], &[]];
    let of = |serials: &[Option<u32>]| answer(0, Ask::Axfr, serials, Some(Duration::from_secs(1)));
    let mut corpus: Vec<_> = serials.map(of).into();
    corpus.extend(messages());
    fuzz(2_000, &corpus, |bytes, random| {
        let mut exchange = Script::asked(2).exchange();
        let mut alone = [(); 2].map(|()| Incoming::new(Ask::Axfr, None).passing_over_outside());
        let mut ended = [None; 2];
        let parts = if random.chance(50) { vec![of(serials[1]), bytes.to_vec()] } else { vec![bytes.to_vec()] };
        let parts = [&parts[..], &[of(serials[2])]].concat();
        for (number, part) in parts.iter().enumerate() {
            exchange.take(now(Duration::from_millis(number as u64)), part);
            let id = part.first_chunk().map_or(9, |id| usize::from(u16::from_be_bytes(*id)));
            if id < 2
                && part.len() >= 12
                && ended[id].is_none()
                && let Step::Done(outcome) = alone[id].take(part, ZONE, 0, &NO_LIMITS, &mut ())
            {
                ended[id] = Some(outcome);
            }
        }
        assert_eq!(
            (exchange.arrivals.len(), exchange.bytes()),
            (parts.len(), parts.iter().map(|it| it.len() as u64).sum())
        );
        for (transfer, ended) in exchange.transfers.iter().zip(ended) {
            assert_eq!(transfer.outcome, ended);
        }
        assert!(exchange.open() + exchange.done() + exchange.refused() <= 2 && exchange.fruitless <= parts.len());
        assert_eq!(exchange.complaint().is_empty(), ended.iter().flatten().all(|outcome| outcome.is_good()));
    });
}
