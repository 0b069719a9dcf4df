//! What a query asks for, as a cache and those who count see it.

use super::{
    header::{HEADER_BYTES, Header},
    name,
    query::TAIL_BYTES,
    query_options::{DO, Edns},
};

/// The type of the record of EDNS (RFC 6891 §6.1.1).
const OPT: u16 = 41;

/// A question, and EDNS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// In wire format and lower case.
    pub name: Vec<u8>,
    pub rtype: u16,
    pub edns: Option<Edns>,
}

impl Asked {
    /// None where there is no question that can be read.
    pub fn read(message: &[u8]) -> Option<Self> {
        Header::read(message).ok().filter(|header| header.questions > 0)?;
        let behind = name::skip_plain(message, HEADER_BYTES).ok()?;
        let &[high, low, _, _] = message.get(behind..)?.first_chunk()?;
        // Lengths of labels are no letters.
        let name = message[HEADER_BYTES..behind].to_ascii_lowercase();
        Some(Asked { name, rtype: u16::from_be_bytes([high, low]), edns: edns(message, behind + TAIL_BYTES) })
    }
}

/// A query has EDNS as the only record behind its question, nearly always.
fn edns(message: &[u8], at: usize) -> Option<Edns> {
    let &[0, high, low, size_high, size_low, _, _, flags] = message.get(at..)?.first_chunk()? else { return None };
    let is_opt = u16::from_be_bytes([high, low]) == OPT && Header::read(message).is_ok_and(|it| it.records() == 1);
    let udp_payload_bytes = u16::from_be_bytes([size_high, size_low]);
    is_opt.then_some(Edns { udp_payload_bytes, dnssec_ok: flags & DO != 0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dns::{query_options::Options, testing::name};

    #[test]
    fn a_query_is_read_with_its_edns() {
        for edns in [None, Some(Edns { udp_payload_bytes: 4096, dnssec_ok: true })] {
            let options = Options { recursion_desired: true, edns };
            let message = [&options.header()[..], &name("A.Example"), &[0, 28, 0, 1], &options.opt()].concat();
            assert_eq!(Asked::read(&message), Some(Asked { name: name("a.example"), rtype: 28, edns }));
            assert_eq!(Asked::read(&message[..20]), None);
            let without_question = [&message[..5], &[0], &message[6..]].concat();
            assert_eq!(Asked::read(&without_question), None);
        }
    }
}
