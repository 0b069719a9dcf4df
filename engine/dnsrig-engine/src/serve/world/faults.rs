//! What a server that has a fault does with a question that it would have answered.

use domain::base::{Rtype, iana::Rcode};

use super::reply::Reply;
use crate::world::{World, Zone, faults::Fault};

/// The strings of a TXT record that makes an answer large: each has its length before it.
const STRING: [u8; 256] = {
    let mut string = [b'x'; 256];
    string[0] = 255;
    string
};

/// The strings of a record: 4 KiB of data.
const STRINGS: usize = 16;

/// The data of that record, but for a last string.
const RECORD_BYTES: usize = STRINGS * STRING.len();

/// What becomes of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Sent,
    /// It waits so long.
    Later(i64),
    /// It is not sent.
    Silent,
}

/// Changes the reply of a zone as its fault has it.
pub fn apply(world: &World, fault: Fault, is_tcp: bool, reply: &mut Reply) -> Outcome {
    match fault {
        Fault::Silent => return Outcome::Silent,
        Fault::Slow if world.is_slow() => return Outcome::Later(i64::from(world.spec.faults.slow_ms) * 1_000_000),
        Fault::Refused => fail(reply, Rcode::REFUSED),
        Fault::Servfail => fail(reply, Rcode::SERVFAIL),
        Fault::Lame => {
            fail(reply, Rcode::NOERROR);
            world.add(Zone::Root, b"", Rtype::NS, &[b"\0"], &mut reply.authority);
        }
        Fault::Truncated => reply.is_truncated = !is_tcp,
        Fault::Oversized if is_tcp => enlarge(world, reply),
        Fault::Oversized => reply.is_truncated = true,
        // It waits for nothing.
        Fault::Slow => {}
        // It is in the zone above.
        Fault::Loop => {}
        // They are in the records.
        Fault::WrongDs | Fault::Expired | Fault::MissingRrsig | Fault::BrokenDenial | Fault::MissingDnskey => {}
    }
    Outcome::Sent
}

/// The reply of a server that has nothing to say; which zone it is about is still counted.
fn fail(reply: &mut Reply, rcode: Rcode) {
    let zone = reply.zone;
    reply.clear();
    (reply.rcode, reply.zone) = (rcode, zone);
}

fn enlarge(world: &World, reply: &mut Reply) {
    let Some(zone) = reply.zone else { return };
    let records = world.spec.faults.oversized_bytes as usize / RECORD_BYTES;
    reply.additional.begin(&[&world.name(zone)], Rtype::TXT, world.spec.ttls.apex_s);
    for number in 0..records {
        // No two records of an RRset are the same (RFC 2181 §5).
        let own = [1, b'a' + number as u8];
        let mut data: [&[u8]; STRINGS + 1] = [&STRING; STRINGS + 1];
        data[STRINGS] = &own;
        reply.additional.push(&data);
    }
}

#[cfg(test)]
mod tests {
    use std::mem;

    use dnsrig_dns::{dnssec::key::Nonces, testing::name};
    use domain::base::{
        Message, Rtype,
        iana::{OptRcode, Rcode},
    };

    use crate::{
        serve::world::{
            core::{State, Turn, Via, answer},
            counts::Counts,
            reply::Reply,
        },
        world::{
            World, Zone,
            faults::{Fault, Faulty},
            names::Labels,
            signing::Signatures,
            testing,
        },
    };

    /// A world in which every zone except the zones of hosters has this fault, and one of these zones.
    fn world(fault: Fault, first_server: f64) -> (World, Zone) {
        world_with(fault, &format!("faults.first_server = {first_server:?}"))
    }

    fn world_with(fault: Fault, more: &str) -> (World, Zone) {
        let text = format!("zones.count = 100\ntlds.count = 11\nfaults.{} = 1.0\n{more}", fault.name());
        let world = testing::world(&text);
        let zone = world.zones().find(|zone| world.faulty(*zone).is_some()).unwrap();
        (world, zone)
    }

    /// What the server with this number answers when it is asked for the zone's address.
    fn ask(world: &World, zone: Zone, server: usize, via: Via, counts: &mut Counts) -> (Turn, Vec<u8>) {
        let header = [9, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        let query = [&header[..], &world.name(zone), &Rtype::A.to_int().to_be_bytes(), &[0, 1]].concat();
        let mut space = vec![0; 65_535];
        let via = Via { destination: Some(testing::addresses(world, zone)[server]), ..via };
        let mut state = State::new(Signatures::new(Nonces::Random, 0));
        mem::swap(&mut state.counts, counts);
        let turn = answer(world, &query, via, &mut state, &mut space);
        mem::swap(&mut state.counts, counts);
        if let Turn::Now(length) = turn {
            space.truncate(length);
        }
        (turn, space)
    }

    const UDP: Via = Via { destination: None, is_tcp: false, has_waited: false };
    const TCP: Via = Via { is_tcp: true, ..UDP };

    fn read(fault: Fault, via: Via) -> Message<Vec<u8>> {
        let (world, zone) = world(fault, 0.0);
        let mut counts = Counts::default();
        let (turn, bytes) = ask(&world, zone, 1, via, &mut counts);
        assert!(matches!(turn, Turn::Now(_)) && (counts.faulty, counts.silent) == (1, 0), "{fault:?} {turn:?}");
        Message::from_octets(bytes).unwrap()
    }

    fn is_good(message: &Message<Vec<u8>>) -> bool {
        message.no_error() && message.header().aa() && !message.header().tc() && message.answer().unwrap().count() > 0
    }

    #[test]
    fn servers_that_do_not_have_the_zone_say_so() {
        for via in [UDP, TCP] {
            let lame = read(Fault::Lame, via);
            assert!(lame.no_error() && !lame.header().aa() && lame.answer().unwrap().count() == 0);
            let record = lame.authority().unwrap().next().unwrap().unwrap();
            assert_eq!((record.owner().to_string(), record.rtype()), (String::new(), Rtype::NS));
            for (fault, rcode) in [(Fault::Refused, Rcode::REFUSED), (Fault::Servfail, Rcode::SERVFAIL)] {
                let failed = read(fault, via);
                assert_eq!((failed.opt_rcode(), failed.header().aa()), (OptRcode::from_rcode(rcode), false));
                assert_eq!(failed.header_counts().ancount() + failed.header_counts().nscount(), 0);
            }
        }
    }

    #[test]
    fn what_is_truncated_comes_over_tcp() {
        for (fault, least, most) in [(Fault::Truncated, 0, 1000), (Fault::Oversized, 30_000, 34_000)] {
            let udp = read(fault, UDP);
            assert!(udp.header().tc() && udp.answer().unwrap().count() == 0, "{fault:?}");
            let tcp = read(fault, TCP);
            assert!(is_good(&tcp) && (least..most).contains(&tcp.as_slice().len()), "{fault:?}");
            assert!(tcp.additional().unwrap().all(|record| record.is_ok()));
        }
    }

    #[test]
    fn the_largest_answer_has_room_in_a_message() {
        let (world, zone) = world_with(Fault::Oversized, "faults.oversized_bytes = 60000");
        let (_, bytes) = ask(&world, zone, 0, TCP, &mut Counts::default());
        assert!(bytes.len() > 56_000 && is_good(&Message::from_octets(bytes).unwrap()));
    }

    #[test]
    fn a_silent_server_answers_nothing_and_a_slow_one_when_it_was_waited_for() {
        for via in [UDP, TCP] {
            let mut counts = Counts::default();
            let (silent, zone) = world(Fault::Silent, 0.0);
            assert_eq!(ask(&silent, zone, 0, via, &mut counts).0, Turn::Never);
            assert_eq!((counts.faulty, counts.silent, counts.answers), (1, 1, 0));
            let (slow, zone) = world(Fault::Slow, 0.0);
            assert_eq!(ask(&slow, zone, 0, via, &mut counts).0, Turn::Later(700_000_000));
            assert_eq!(counts.faulty, 1, "it is counted when it is answered");
            let (_, bytes) = ask(&slow, zone, 0, Via { has_waited: true, ..via }, &mut counts);
            assert!(is_good(&Message::from_octets(bytes).unwrap()) && counts.faulty == 2);
        }
    }

    #[test]
    fn a_server_that_is_slow_by_nothing_is_as_the_others() {
        let (world, zone) = world_with(Fault::Slow, "faults.slow_ms = 0");
        let mut counts = Counts::default();
        let (turn, bytes) = ask(&world, zone, 0, UDP, &mut counts);
        assert!(matches!(turn, Turn::Now(_)) && is_good(&Message::from_octets(bytes).unwrap()));
        assert_eq!((world.is_slow(), counts.faulty), (false, 1));
    }

    #[test]
    fn a_loop_has_no_glue() {
        let (looped, zone) = world(Fault::Loop, 1.0);
        assert_eq!(looped.faulty(zone), Some(Faulty { fault: Fault::Loop, is_of_first: false }));
        let tld = looped.parent(zone).unwrap();
        let mut reply = Reply::default();
        let name = Labels::read(&looped.name(zone)).unwrap();
        crate::serve::world::search::answer_from(&looped, tld, &name, Rtype::A, &mut reply);
        assert_eq!((reply.authority.len(), reply.additional.len()), (1, 0));
        let below = looped.name(zone);
        assert!(reply.authority.iter().next().unwrap().data().all(|server| server.ends_with(&below)));
    }

    #[test]
    fn other_servers_of_the_zone_are_good() {
        for fault in Fault::ALL.into_iter().filter(|fault| fault.is_of_servers()) {
            let (world, zone) = world(fault, 1.0);
            let mut counts = Counts::default();
            let (turn, bytes) = ask(&world, zone, 1, UDP, &mut counts);
            assert!(matches!(turn, Turn::Now(_)) && is_good(&Message::from_octets(bytes).unwrap()), "{fault:?}");
            assert_eq!(counts.faulty, 0);
            ask(&world, zone, 0, UDP, &mut counts);
            assert_eq!(counts.faulty, u64::from(fault != Fault::Slow), "{fault:?}");
        }
    }

    #[test]
    fn what_the_server_answers_for_other_zones_is_good() {
        let (world, zone) = world(Fault::Refused, 0.0);
        let tld = world.parent(zone).unwrap();
        let (turn, bytes) = ask(&world, tld, 0, UDP, &mut Counts::default());
        assert!(matches!(turn, Turn::Now(_)) && Message::from_octets(bytes).unwrap().no_error());
        let nic = world.deepest(&Labels::read(&name("nic.com")).unwrap());
        assert_eq!(world.faulty(world.parent(nic).unwrap()), None);
    }
}
