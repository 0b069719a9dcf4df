//! What a message asks.

use domain::base::{Rtype, iana::Class};

use crate::{
    dns::{
        header::{HEADER_BYTES, Header, OPCODE, QR},
        name,
        query_options::DO,
        record::{Record, Walk},
    },
    world::names::Labels,
};

/// QTYPE and QCLASS.
const TAIL_BYTES: usize = 4;

/// The name of the root.
const ROOT: &[u8] = &[0];

/// A query with one question.
pub struct Query<'m> {
    pub message: &'m [u8],
    /// The question as it came, in the sender's case of letters.
    pub question: &'m [u8],
    pub name: Labels,
    pub rtype: Rtype,
    pub class: Class,
    pub edns: Option<Edns>,
}

/// What its OPT record says (RFC 6891 §6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edns {
    pub udp_payload_bytes: u16,
    pub version: u8,
    pub dnssec_ok: bool,
}

/// Why a message is no query that is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No header, or a response: to be ignored.
    NoQuery,
    /// A query that cannot be read.
    Malformed,
    /// Not of opcode QUERY.
    OtherOperation,
}

impl<'m> Query<'m> {
    /// Reads a message.
    pub fn read(message: &'m [u8]) -> Result<Self, Refusal> {
        match Header::read(message) {
            Ok(header) if header.flags & QR != 0 => Err(Refusal::NoQuery),
            Ok(header) if header.flags & OPCODE != 0 => Err(Refusal::OtherOperation),
            Ok(header) => read_query(message, header).ok_or(Refusal::Malformed),
            Err(_) => Err(Refusal::NoQuery),
        }
    }
}

fn read_query(message: &[u8], header: Header) -> Option<Query<'_>> {
    if header.questions != 1 {
        return None;
    }
    let name = Labels::read(&message[HEADER_BYTES..])?;
    let end = HEADER_BYTES + name.wire().len() + TAIL_BYTES;
    let question = message.get(HEADER_BYTES..end)?;
    let (_, tail) = question.split_last_chunk::<TAIL_BYTES>()?;
    let mut edns = None;
    let mut walk = Walk::from(message, end);
    for number in 0..header.records() {
        let record = walk.any_record().ok()?;
        let (is_root, _) = name::equals(message, record.start(), ROOT).ok()?;
        if record.rtype == Rtype::OPT {
            // One at most, of the root, and in the additional section (RFC 6891 §6.1.1, §6.1.2).
            let is_additional = number >= u32::from(header.answers) + u32::from(header.authority);
            if edns.is_some() || !is_root || !is_additional {
                return None;
            }
            edns = Some(read_edns(&record)?);
        }
    }
    walk.end().ok()?;
    Some(Query {
        message,
        question,
        name,
        rtype: Rtype::from_int(u16::from_be_bytes([tail[0], tail[1]])),
        class: Class::from_int(u16::from_be_bytes([tail[2], tail[3]])),
        edns,
    })
}

/// None: its options are not whole.
fn read_edns(opt: &Record<'_>) -> Option<Edns> {
    let [_, version, flags, _] = opt.ttl_s.to_be_bytes();
    // What another version has there is unknown (RFC 6891 §6.1.3).
    if version == 0 && !are_options(opt.data()) {
        return None;
    }
    Some(Edns { udp_payload_bytes: opt.class.to_int(), version, dnssec_ok: flags & DO != 0 })
}

/// Whether each has its code, its length, and as many bytes (RFC 6891 §6.1.2).
fn are_options(mut data: &[u8]) -> bool {
    while let Some(([_, _, high, low], rest)) = data.split_first_chunk() {
        match rest.get(usize::from(u16::from_be_bytes([*high, *low]))..) {
            Some(behind) => data = behind,
            None => return false,
        }
    }
    data.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dns::testing::name;

    fn query(opt: &[u8]) -> Vec<u8> {
        let header = [0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, u8::from(!opt.is_empty())];
        [&header[..], &name("wWw.Example"), &[0, 1, 0, 1], opt].concat()
    }

    #[test]
    fn question_and_edns_are_read() {
        let message = query(&[0, 0, 41, 4, 208, 0, 0, 0x80, 0, 0, 0]);
        let found = Query::read(&message).unwrap();
        assert_eq!(found.name.wire(), name("www.example"));
        assert_eq!((found.rtype, found.class), (Rtype::A, Class::IN));
        assert_eq!(found.edns, Some(Edns { udp_payload_bytes: 1232, version: 0, dnssec_ok: true }));
        assert_eq!(found.question, &message[12..message.len() - 11]);
        for end in 12..message.len() {
            assert_eq!(Query::read(&message[..end]).err(), Some(Refusal::Malformed), "{end}");
        }
        assert_eq!(Query::read(&message[..11]).err(), Some(Refusal::NoQuery));
    }

    #[test]
    fn edns_is_one_record_of_the_root_with_whole_options() {
        let edns = |opt: &[u8]| Query::read(&query(opt)).map(|query| query.edns.map(|edns| edns.version));
        let opt =
            |version: u8, data: &[u8]| [&[0, 0, 41, 4, 208, 0, version, 0, 0, 0, data.len() as u8], data].concat();
        let cookie = [0, 10, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8];
        assert_eq!(edns(&opt(0, &cookie)), Ok(Some(0)));
        assert_eq!(edns(&opt(0, &[&cookie[..], &[0, 3, 0, 0]].concat())), Ok(Some(0)));
        for length in [1, 3, 4, 11] {
            assert_eq!(edns(&opt(0, &cookie[..length])), Err(Refusal::Malformed), "{length} bytes of options");
            assert_eq!(edns(&opt(1, &cookie[..length])), Ok(Some(1)), "of another version");
        }
        let of_a_name = [&[1, b'a'], &opt(0, &[])[..]].concat();
        assert_eq!(edns(&of_a_name), Err(Refusal::Malformed));
        let mut two = query(&[opt(0, &[]), opt(0, &[])].concat());
        two[11] = 2;
        assert_eq!(Query::read(&two).err(), Some(Refusal::Malformed));
        let mut elsewhere = query(&opt(0, &[]));
        (elsewhere[9], elsewhere[11]) = (1, 0);
        assert_eq!(Query::read(&elsewhere).err(), Some(Refusal::Malformed), "in the authority section");
    }
}
