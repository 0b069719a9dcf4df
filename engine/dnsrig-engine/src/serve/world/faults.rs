//! What a server that has a fault does with a question that it would have answered.

use domain::base::{Rtype, iana::Rcode};

use super::reply::Reply;
use crate::world::{World, Zone, fault::Fault};

/// The strings of a TXT record that makes an answer large: each has its length before it.
const STRING: [u8; 256] = {
    let mut string = [b'x'; 256];
    string[0] = 255;
    string
};

/// So many strings a record: 4 KiB of data.
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
pub fn apply(world: &World, fault: Fault, is_stream: bool, reply: &mut Reply) -> Outcome {
    match fault {
        Fault::Silent => return Outcome::Silent,
        Fault::Slow if world.is_slow() => return Outcome::Later(i64::from(world.spec.faults.slow_ms) * 1_000_000),
        Fault::Refused => fail(reply, Rcode::REFUSED),
        Fault::Servfail => fail(reply, Rcode::SERVFAIL),
        Fault::Lame => {
            fail(reply, Rcode::NOERROR);
            world.add(Zone::Root, b"", Rtype::NS, &[b"\0"], &mut reply.authority);
        }
        Fault::Truncated => reply.is_truncated = !is_stream,
        Fault::Oversized if is_stream => enlarge(world, reply),
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
#[path = "faults_tests.rs"]
mod tests;
