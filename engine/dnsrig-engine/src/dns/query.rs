//! The query that asks for a zone, for its changes, or for its serial.

use domain::base::{Rtype, iana::Class};

use super::{
    header::HEADER_BYTES,
    name::{self, NAME_BYTES_MAX},
};

/// QTYPE and QCLASS, behind the name of a question.
pub const TAIL_BYTES: usize = 4;

/// The longest query without further records.
pub const QUERY_BYTES_MAX: usize = HEADER_BYTES + NAME_BYTES_MAX + TAIL_BYTES;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// The SOA record alone, as a secondary does before it decides.
    Soa,
    /// The whole zone (RFC 5936).
    Axfr,
    /// What changed since `serial` (RFC 1995); a server may answer with the whole zone.
    Ixfr { serial: u32 },
}

impl Ask {
    /// The QTYPE.
    pub fn qtype(self) -> Rtype {
        match self {
            Ask::Soa => Rtype::SOA,
            Ask::Axfr => Rtype::AXFR,
            Ask::Ixfr { .. } => Rtype::IXFR,
        }
    }
}

/// The question of a query, whose name is not compressed: name, type and class.
///
/// Of bytes that are no such message it is what there is of it, or nothing.
#[inline]
pub fn question(message: &[u8]) -> &[u8] {
    let end = name::skip_plain(message, HEADER_BYTES).map_or(message.len(), |end| message.len().min(end + TAIL_BYTES));
    message.get(HEADER_BYTES..end).unwrap_or_default()
}

/// The query for the SOA of a zone.
pub fn soa_query(id: u16, zone: &[u8]) -> Vec<u8> {
    let mut query = Vec::with_capacity(QUERY_BYTES_MAX);
    write_query(&mut query, id, zone, Ask::Soa);
    query
}

/// Appends a query (no length before it) to `to`.
///
/// `zone` is the name in wire format: not compressed, lower case, with the byte of the root. No flag is set. An IXFR
/// query has an SOA in its authority section, of which a server reads the serial only (RFC 1995 §3).
pub fn write_query(to: &mut Vec<u8>, id: u16, zone: &[u8], ask: Ask) {
    let authority = u8::from(matches!(ask, Ask::Ixfr { .. }));
    to.extend_from_slice(&id.to_be_bytes());
    to.extend_from_slice(&[0, 0, 0, 1, 0, 0, 0, authority, 0, 0]);
    to.extend_from_slice(zone);
    to.extend_from_slice(&ask.qtype().to_int().to_be_bytes());
    to.extend_from_slice(&Class::IN.to_int().to_be_bytes());
    if let Ask::Ixfr { serial } = ask {
        // Owner (a pointer to the question), TYPE SOA, CLASS IN, TTL 0, 22 bytes: two roots, serial, four timers.
        to.extend_from_slice(&[0xc0, 12, 0, 6, 0, 1, 0, 0, 0, 0, 0, 22, 0, 0]);
        to.extend_from_slice(&serial.to_be_bytes());
        to.extend_from_slice(&[0; 16]);
    }
}

#[cfg(test)]
mod tests {
    use domain::{base::Message, rdata::Soa};

    use super::*;
    use crate::dns::testing::name;

    #[test]
    fn another_library_reads_the_query() {
        let zone = name("zone.example");
        for (ask, qtype, serial) in [
            (Ask::Soa, Rtype::SOA, None),
            (Ask::Axfr, Rtype::AXFR, None),
            (Ask::Ixfr { serial: 0xfedc_ba98 }, Rtype::IXFR, Some(0xfedc_ba98)),
        ] {
            let mut buffer = vec![1, 2];
            write_query(&mut buffer, 0x1234, &zone, ask);
            let query = Message::from_octets(&buffer[2..]).unwrap();
            let header = query.header();
            assert_eq!((header.id(), header.qr(), header.rd()), (0x1234, false, false));
            let question = query.sole_question().unwrap();
            assert_eq!((question.qtype(), question.qclass()), (qtype, Class::IN));
            assert_eq!(question.qname().to_string(), "zone.example");
            assert_eq!(query.answer().unwrap().count(), 0);
            let soas = query.authority().unwrap().limit_to_in::<Soa<_>>().map(|soa| {
                let soa = soa.unwrap();
                assert_eq!(soa.owner(), question.qname());
                soa.data().serial().into_int()
            });
            assert_eq!(soas.collect::<Vec<_>>(), Vec::from_iter(serial));
            assert_eq!(query.additional().unwrap().count(), 0);
        }
    }
}
