//! The messages of an interrogation: queries in, what matters of answers out; no socket.

use std::{sync::Arc, time::Duration};

use domain::{
    base::{
        Message, MessageBuilder, Name, Rtype, Serial, Ttl,
        iana::{Class, Rcode},
        message_builder::PushError,
        opt::TcpKeepalive,
        wire::ParseError,
    },
    rdata::{Soa, tsig::Time48},
    tsig::{ClientSequence, Key},
};

/// What checks the signatures of the answers to one signed query.
pub type Sequence = ClientSequence<Arc<Key>>;

/// A name of a zone, in wire format.
pub type ZoneName = Name<Vec<u8>>;

/// What is asked about a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    Soa,
    /// SOA, with the option that asks how long an idle connection stays (RFC 7828 §3.2.1).
    SoaWithKeepalive,
    Axfr,
    /// What changed since this serial (RFC 1995).
    Ixfr {
        serial: u32,
    },
}

/// Writes a query, signed if there is a key, and gives what checks the answers then. Only transfers are signed.
pub fn write_query(
    id: u16,
    zone: &ZoneName,
    ask: Ask,
    key: Option<&Arc<Key>>,
    now: Time48,
) -> Result<(Vec<u8>, Option<Sequence>), PushError> {
    let mut builder = MessageBuilder::new_vec();
    builder.header_mut().set_id(id);
    let mut question = builder.question();
    let (rtype, is_transfer) = match ask {
        Ask::Soa | Ask::SoaWithKeepalive => (Rtype::SOA, false),
        Ask::Axfr => (Rtype::AXFR, true),
        Ask::Ixfr { .. } => (Rtype::IXFR, true),
    };
    question.push((zone, rtype, Class::IN))?;
    let mut authority = question.authority();
    if let Ask::Ixfr { serial } = ask {
        let root = Name::<Vec<u8>>::root_vec();
        let soa = Soa::new(&root, &root, Serial(serial), Ttl::ZERO, Ttl::ZERO, Ttl::ZERO, Ttl::ZERO);
        authority.push((zone, Class::IN, Ttl::ZERO, soa))?;
    }
    let mut additional = authority.additional();
    if ask == Ask::SoaWithKeepalive {
        additional.opt(|options| options.push(&TcpKeepalive::new(None)))?;
    }
    let key = key.filter(|_| is_transfer).cloned();
    let sequence = key.map(|key| ClientSequence::request(key, &mut additional, now)).transpose()?;
    Ok((additional.finish(), sequence))
}

/// What matters of one message of an answer.
#[derive(Debug)]
pub struct Answer {
    pub id: u16,
    pub rcode: Rcode,
    /// The records of its answer section, in their order.
    pub records: Vec<Brief>,
    /// Whether a TSIG record stands in it.
    pub is_signed: bool,
    /// How long the server keeps an idle connection, if it says so (RFC 7828 §3.3.2).
    pub keepalive: Option<Duration>,
}

/// A record, as far as transfers are judged by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Brief {
    /// A SOA with this serial.
    Soa(u32),
    /// A digest of the zone (RFC 8976).
    Zonemd,
    Other,
}

/// Reads an answer; an error if it is malformed, or no answer.
pub fn read_answer(octets: &[u8]) -> Result<Answer, ParseError> {
    let message = Message::from_octets(octets).map_err(|_| ParseError::ShortInput)?;
    let header = message.header();
    if !header.qr() {
        return Err(ParseError::form_error("this is a query"));
    }
    let mut records = Vec::with_capacity(usize::from(message.header_counts().ancount()));
    for record in message.answer()? {
        let record = record?;
        records.push(match record.rtype() {
            Rtype::SOA => match record.to_record::<Soa<_>>()? {
                Some(soa) => Brief::Soa(soa.data().serial().into_int()),
                None => Brief::Other,
            },
            Rtype::ZONEMD => Brief::Zonemd,
            _ => Brief::Other,
        });
    }
    let mut is_signed = false;
    for record in message.additional()? {
        is_signed |= record?.rtype() == Rtype::TSIG;
    }
    let keepalive = message.opt().and_then(|opt| opt.opt().first::<TcpKeepalive>()?.timeout()).map(Duration::from);
    Ok(Answer { id: header.id(), rcode: header.rcode(), records, is_signed, keepalive })
}

/// Puts the length before a message, as on a stream (RFC 1035 §4.2.2).
pub fn framed(message: &[u8]) -> Vec<u8> {
    // A query is a few hundred octets.
    let length = message.len() as u16;
    [&length.to_be_bytes(), message].concat()
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
