//! What a message asks.

use dnsrig_dns::{
    edns::{self, Opt},
    header::{Header, OPCODE, QR},
    query::Question,
    record::{Section, Walk},
};
use domain::base::{Rtype, iana::Class};

use crate::world::names::Labels;

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
    let question = Question::read(message).ok()?;
    let name = Labels::read(question.name())?;
    let mut edns = None;
    let mut walk = Walk::from(message, question.end());
    for record in walk.records(&header) {
        let (section, record) = record.ok()?;
        let is_root = record.is_at_root().ok()?;
        if let Some(opt) = Opt::read(&record) {
            // One at most, of the root, and in the additional section (RFC 6891 §6.1.1, §6.1.2).
            if edns.is_some() || !is_root || section != Section::Additional {
                return None;
            }
            edns = Some(read_edns(&opt)?);
        }
    }
    walk.end().ok()?;
    Some(Query { message, question: question.wire, name, rtype: question.rtype, class: question.class, edns })
}

/// None: its options are not whole.
fn read_edns(opt: &Opt<'_>) -> Option<Edns> {
    // What another version has there is unknown (RFC 6891 §6.1.3).
    if opt.version == 0 && edns::options(opt.options).any(|option| option.is_err()) {
        return None;
    }
    let edns::Edns { udp_payload_bytes, dnssec_ok } = opt.edns;
    Some(Edns { udp_payload_bytes, version: opt.version, dnssec_ok })
}

#[cfg(test)]
mod tests {
    use dnsrig_dns::testing::name;

    use super::*;

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
