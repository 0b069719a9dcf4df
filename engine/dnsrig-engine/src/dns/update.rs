//! The dynamic update (RFC 2136) and its answer: bytes in and out, no socket.

use std::sync::Arc;

use domain::base::{
    Message, MessageBuilder, Name, Record, Rtype, Ttl,
    iana::{Class, Opcode},
    message_builder::PushError,
    rdata::UnknownRecordData,
};

use super::{
    header::{Header, UDP_BYTES_MAX},
    tsig::{sign::Signer, verify::Verifier},
};
use crate::base::failure::Advice;

/// The label, below the apex of an ordinary zone, whose TXT record is changed.
const CHANGED_LABEL: &[u8] = b"\x06dnsrig";

/// The TTL of records that are added, in seconds; nobody asks for them. A catalog's are 0 (RFC 9432 §4.1).
const TTL_S: u32 = 60;

/// A change within a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Add a record (RFC 2136 §2.5.1).
    Add { owner: Name<Vec<u8>>, rtype: Rtype, ttl_s: u32, data: Vec<u8> },
    /// Delete an RRset (RFC 2136 §2.5.2).
    DeleteSet { owner: Name<Vec<u8>>, rtype: Rtype },
}

/// An update that does not fit into a datagram.
#[derive(Debug, thiserror::Error)]
#[error("an update of {0} takes more than {UDP_BYTES_MAX} bytes")]
pub struct TooLong(pub String);

impl Advice for TooLong {
    fn hint(&self) -> String {
        "leave out zones with names of this length".into()
    }

    fn exit_code(&self) -> u8 {
        2
    }
}

/// The update of `zone` by `edits`, signed if there is a key, and what checks its answer then; `now_s` is wall time.
pub fn write_update(
    id: u16,
    zone: &Name<[u8]>,
    edits: &[Edit],
    key: Option<&Arc<Signer>>,
    now_s: u64,
) -> Result<(Vec<u8>, Option<Verifier>), TooLong> {
    let too_long = |_: PushError| TooLong(zone.to_string());
    let mut builder = MessageBuilder::new_vec();
    builder.set_push_limit(UDP_BYTES_MAX - key.map_or(0, |key| key.bytes()));
    let header = builder.header_mut();
    header.set_id(id);
    header.set_opcode(Opcode::UPDATE);
    let mut zones = builder.question();
    zones.push((zone, Rtype::SOA, Class::IN)).map_err(too_long)?;
    // The sections of an update have other names but the same places: zone, prerequisites, updates, additional.
    let mut updates = zones.authority();
    edits.iter().try_for_each(|edit| updates.push(record(edit))).map_err(too_long)?;
    let mut update = updates.finish();
    let verifier = key.map(|key| Verifier::sign(key, &mut update, 0, now_s));
    Ok((update, verifier))
}

fn record(edit: &Edit) -> Record<&Name<Vec<u8>>, UnknownRecordData<&[u8]>> {
    let (owner, class, ttl_s, rtype, data) = match edit {
        Edit::Add { owner, rtype, ttl_s, data } => (owner, Class::IN, *ttl_s, *rtype, &data[..]),
        Edit::DeleteSet { owner, rtype } => (owner, Class::ANY, 0, *rtype, &[][..]),
    };
    let data = UnknownRecordData::from_octets(rtype, data).expect("the data of a change is a few bytes");
    Record::new(owner, class, Ttl::from_secs(ttl_s), data)
}

/// The id of an answer to an update, and its RCODE as the number in the header.
pub fn read_answer(bytes: &[u8]) -> Option<(u16, u8)> {
    let header = Message::from_octets(bytes).ok()?.header();
    (header.qr() && header.opcode() == Opcode::UPDATE).then(|| (header.id(), header.rcode().to_int()))
}

/// Whether the answer is signed as it must be. A server that refuses a key says so unsigned.
pub fn is_signed(answer: &[u8], verifier: &Verifier, now_s: u64) -> bool {
    Header::read(answer).is_ok_and(|header| verifier.clone().check(answer, &header, now_s) == Ok(true))
}

/// The data of a TXT record of one short string (RFC 1035 §3.3.14).
pub fn txt(text: &str) -> Vec<u8> {
    let text = &text.as_bytes()[..text.len().min(255)];
    [&[text.len() as u8], text].concat()
}

/// The TXT record of `zone` gets another text.
pub fn touch(zone: &Name<[u8]>, number: u64) -> Result<Vec<Edit>, TooLong> {
    let owner = below(CHANGED_LABEL, zone)?;
    let data = txt(&format!("change {number}"));
    let add = Edit::Add { owner: owner.clone(), rtype: Rtype::TXT, ttl_s: TTL_S, data };
    Ok(vec![Edit::DeleteSet { owner, rtype: Rtype::TXT }, add])
}

/// `labels`, in wire format, in front of a name.
pub fn below(labels: &[u8], name: &Name<[u8]>) -> Result<Name<Vec<u8>>, TooLong> {
    Name::from_octets([labels, name.as_slice()].concat()).map_err(|_| TooLong(name.to_string()))
}

#[cfg(test)]
#[path = "update_tests.rs"]
mod tests;
