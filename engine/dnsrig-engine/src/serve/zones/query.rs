//! Reads a query as far as a primary needs it (question, serial of an IXFR, OPT, TSIG), and writes an answer into room
//! that is set aside. No I/O, and no allocation.
//!
//! Most queries of a transfer are a header and a question: these take a few comparisons. Nothing is copied.

use dnsrig_dns::{
    header::{Header, OPCODE, QR, RD},
    name::ParseError,
    query::Question,
    record::{Record, Section, Walk},
};
use domain::base::{
    Rtype,
    iana::{Class, Opcode},
};

/// The most records after the question that are looked at. No secondary sends a query with more.
const RECORDS_MAX: usize = 16;

/// What a primary wants to know of a query.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    pub id: u16,
    pub opcode: Opcode,
    /// Whether recursion is desired, which answers repeat.
    pub rd: bool,
    /// Name, type and class as they came.
    pub question: &'a [u8],
    /// The name alone, in wire format, the root's byte included.
    pub name: &'a [u8],
    pub kind: Rtype,
    pub class: Class,
    /// The serial in the authority section (RFC 1995 §3).
    pub serial: Option<u32>,
    /// Whether there is an OPT record (RFC 6891).
    pub has_opt: bool,
    /// The TSIG record; the message ends with it.
    pub tsig: Option<Record<'a>>,
}

/// What a message is.
#[derive(Clone, Copy, Debug)]
pub enum Message<'a> {
    /// One that can be answered by what it asks.
    Query(Query<'a>),
    /// A query by its header, but no more: to be answered with FORMERR.
    Malformed,
    /// A response, or less than a header: never answered, lest two servers answer each other for ever.
    Ignored,
}

/// Reads a message.
#[inline]
pub fn read(message: &[u8]) -> Message<'_> {
    match Header::read(message) {
        Ok(header) if header.flags & QR == 0 => query(message, &header).map_or(Message::Malformed, Message::Query),
        _ => Message::Ignored,
    }
}

#[inline]
fn query<'a>(message: &'a [u8], header: &Header) -> Result<Query<'a>, ParseError> {
    if header.questions != 1 {
        return Err(ParseError::Malformed);
    }
    let question = Question::read(message)?;
    let mut query = Query {
        id: header.id,
        opcode: Opcode::from_int((header.flags & OPCODE) >> 3),
        rd: header.flags & RD != 0,
        question: question.wire,
        name: question.name(),
        kind: question.rtype,
        class: question.class,
        serial: None,
        has_opt: false,
        tsig: None,
    };
    if header.records() > 0 {
        look_behind(Walk::from(message, question.end()), &mut query, header)?;
    }
    Ok(query)
}

/// Looks through the records behind the question.
fn look_behind<'a>(mut walk: Walk<'a>, query: &mut Query<'a>, header: &Header) -> Result<(), ParseError> {
    for (number, record) in walk.records(header).enumerate() {
        // RFC 8945 §5.1: a TSIG is the last record, or the message is malformed.
        if number == RECORDS_MAX || query.tsig.is_some() {
            return Err(ParseError::Malformed);
        }
        let (section, record) = record?;
        match (record.rtype, section) {
            (Rtype::SOA, Section::Authority) => query.serial = Some(record.serial()?),
            (Rtype::OPT, Section::Additional) => query.has_opt = true,
            (Rtype::TSIG, Section::Additional) => query.tsig = Some(record),
            _ => {}
        }
    }
    Ok(())
}
