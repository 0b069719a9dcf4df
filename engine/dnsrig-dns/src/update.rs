//! The dynamic update (RFC 2136) and its answer: bytes in and out, no socket.

use std::sync::Arc;

use dnsrig_core::failure::Failure;
use domain::base::{Name, Rtype, iana::Class};

use super::{
    header::{Header, OPCODE, QR, UDP_BYTES_MAX, UPDATE},
    tsig::{sign::Signer, verify::Verifier},
    writer::{append_question, append_record},
};

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

/// The failure that an update of `zone` does not fit into a datagram.
fn too_long(zone: &Name<[u8]>) -> Failure {
    Failure::bad_input(
        format!("an update of {zone} takes more than {UDP_BYTES_MAX} bytes"),
        "leave out zones with names of this length",
    )
}

/// The update of `zone` by `edits`, signed if there is a key, and what checks its answer then; `now_s` is wall time.
pub fn write_update(
    id: u16,
    zone: &Name<[u8]>,
    edits: &[Edit],
    key: Option<&Arc<Signer>>,
    now_s: u64,
) -> Result<(Vec<u8>, Option<Verifier>), Failure> {
    // The sections of an update have other names but the same places: zone, prerequisites, updates, additional.
    let authority = edits.len().try_into().map_err(|_| too_long(zone))?;
    let header = Header { id, flags: UPDATE, questions: 1, authority, ..Header::default() };
    let mut update = header.to_bytes().to_vec();
    append_question(&mut update, zone.as_slice(), Rtype::SOA);
    for edit in edits {
        let (owner, class, ttl_s, rtype, data) = match edit {
            Edit::Add { owner, rtype, ttl_s, data } => (owner, Class::IN, *ttl_s, *rtype, &data[..]),
            Edit::DeleteSet { owner, rtype } => (owner, Class::ANY, 0, *rtype, &[][..]),
        };
        append_record(&mut update, owner.as_slice(), rtype, class, ttl_s, data);
    }
    if update.len() + key.map_or(0, |key| key.bytes()) > UDP_BYTES_MAX {
        return Err(too_long(zone));
    }
    let verifier = key.map(|key| Verifier::sign(key, &mut update, 0, now_s));
    Ok((update, verifier))
}

/// The id of an answer to an update, and its RCODE as the number in the header.
pub fn read_answer(bytes: &[u8]) -> Option<(u16, u8)> {
    let header = Header::read(bytes).ok()?;
    (header.flags & (QR | OPCODE) == QR | UPDATE).then_some((header.id, header.rcode))
}

/// Whether the answer is signed as it must be. A server that refuses a key reports that without a signature.
pub fn is_signed(answer: &[u8], verifier: &Verifier, now_s: u64) -> bool {
    Header::read(answer).is_ok_and(|header| verifier.clone().check(answer, &header, now_s) == Ok(true))
}

/// The data of a TXT record of one short string (RFC 1035 §3.3.14).
pub fn txt(text: &str) -> Vec<u8> {
    let text = &text.as_bytes()[..text.len().min(255)];
    [&[text.len() as u8], text].concat()
}

/// The edits that give the TXT record of `zone` another text.
pub fn touch(zone: &Name<[u8]>, number: u64) -> Result<Vec<Edit>, Failure> {
    let owner = below(CHANGED_LABEL, zone)?;
    let data = txt(&format!("change {number}"));
    let add = Edit::Add { owner: owner.clone(), rtype: Rtype::TXT, ttl_s: TTL_S, data };
    Ok(vec![Edit::DeleteSet { owner, rtype: Rtype::TXT }, add])
}

/// `labels`, in wire format, in front of a name.
pub fn below(labels: &[u8], name: &Name<[u8]>) -> Result<Name<Vec<u8>>, Failure> {
    Name::from_octets([labels, name.as_slice()].concat()).map_err(|_| too_long(name))
}

#[cfg(test)]
#[path = "update_tests.rs"]
mod tests;
