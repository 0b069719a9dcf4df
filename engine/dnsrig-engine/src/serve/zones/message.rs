//! Reads a query as far as a primary needs it (question, serial of an IXFR, OPT, TSIG), and writes an answer into room
//! that is set aside. No I/O, and no allocation.
//!
//! Most queries of a transfer are a header and a question: these take a few comparisons. Nothing is copied.

use domain::base::{
    Rtype,
    iana::{Class, Opcode},
};

use crate::dns::{
    header::{HEADER_BYTES, Header, OPCODE, QR, RD},
    name::{self, Wrong},
    record::{Record, Walk},
};

/// The most records after the question that are looked at. No secondary sends a query with more.
const RECORDS_MAX: u32 = 16;

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
fn query<'a>(message: &'a [u8], header: &Header) -> Result<Query<'a>, Wrong> {
    if header.questions != 1 {
        return Err(Wrong::Form);
    }
    let name_end = name::skip_plain(message, HEADER_BYTES)?;
    let question = message.get(HEADER_BYTES..name_end + 4).ok_or(Wrong::Form)?;
    let word = |at: usize| u16::from_be_bytes([question[at], question[at + 1]]);
    let name = &question[..question.len() - 4];
    let mut query = Query {
        id: header.id,
        opcode: Opcode::from_int((header.flags & OPCODE) >> 3),
        rd: header.flags & RD != 0,
        question,
        name,
        kind: Rtype::from_int(word(name.len())),
        class: Class::from_int(word(name.len() + 2)),
        serial: None,
        has_opt: false,
        tsig: None,
    };
    if header.records() > 0 {
        look_behind(Walk::from(message, name_end + 4), &mut query, header)?;
    }
    Ok(query)
}

/// Looks through the records behind the question.
fn look_behind<'a>(mut walk: Walk<'a>, query: &mut Query<'a>, header: &Header) -> Result<(), Wrong> {
    let additional = header.records() - u32::from(header.additional);
    let authority = u32::from(header.answers)..additional;
    for number in 0..header.records() {
        // RFC 8945 §5.1: a TSIG is the last record, or the message is malformed.
        if number == RECORDS_MAX || query.tsig.is_some() {
            return Err(Wrong::Form);
        }
        let record = walk.any_record()?;
        match record.rtype {
            Rtype::SOA if authority.contains(&number) => query.serial = Some(record.serial()?),
            Rtype::OPT if number >= additional => query.has_opt = true,
            Rtype::TSIG if number >= additional => query.tsig = Some(record),
            _ => {}
        }
    }
    Ok(())
}

/// A place in a buffer, behind what was written.
pub struct MessageWriter<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl<'a> MessageWriter<'a> {
    /// Writes into `bytes` from `at` on.
    pub fn new(bytes: &'a mut [u8], at: usize) -> Self {
        MessageWriter { bytes, at }
    }

    /// Where the next byte goes.
    #[inline]
    pub fn at(&self) -> usize {
        self.at
    }

    /// Takes back all that was written from `at` on.
    #[inline]
    pub fn return_to(&mut self, at: usize) {
        self.at = at;
    }

    /// What was written, the bytes before the first place included.
    pub fn written(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.at]
    }

    /// Writes `bytes`.
    ///
    /// # Panics
    ///
    /// If there is no room: who writes a message sees to it that the largest one fits.
    #[inline]
    pub fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }

    /// Room for a whole block, of which only the first `length` bytes count: quicker than a length that varies.
    ///
    /// # Panics
    ///
    /// Like [`MessageWriter::put`], if there is no room for the whole block.
    #[inline]
    pub fn block<const N: usize>(&mut self, length: usize) -> &mut [u8; N] {
        let block = self.bytes[self.at..].first_chunk_mut().expect("room for the block");
        self.at += length;
        block
    }

    /// Has `append` write behind what was written from `start` on. It gets all the room from there, and the length of
    /// what was written; it gives the new length.
    pub fn extend(&mut self, start: usize, append: impl FnOnce(&mut [u8], usize) -> usize) {
        self.at = start + append(&mut self.bytes[start..], self.at - start);
    }

    /// Writes a number, the most significant byte first.
    #[inline]
    pub fn put_u16(&mut self, number: u16) {
        self.put(&number.to_be_bytes());
    }

    /// Writes a number, the most significant byte first.
    #[inline]
    pub fn put_u32(&mut self, number: u32) {
        self.put(&number.to_be_bytes());
    }

    /// Overwrites two bytes at `at`.
    #[inline]
    pub fn set_u16(&mut self, at: usize, number: u16) {
        self.bytes[at..at + 2].copy_from_slice(&number.to_be_bytes());
    }
}
