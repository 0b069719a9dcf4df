//! Reads a query, as far as a primary looks: question, the serial of an IXFR, OPT, where a TSIG begins. No I/O.
//!
//! Most queries of a transfer are a header and a question; that way is a few compares. Nothing is copied.

/// A DNS message begins with so many octets (RFC 1035 §4.1.1).
pub const HEADER_OCTETS: usize = 12;

/// A name has at most so many octets (RFC 1035 §2.3.4).
const NAME_OCTETS_MAX: usize = 255;

/// So many records behind the question are looked at; a query with more is none that a secondary sends.
const RECORDS_MAX: u32 = 16;

/// The third octet: a response; the fourth: none of it is asked of a primary.
const QR: u8 = 0x80;

/// Kinds of record (RFC 1035 §3.2.2, RFC 6891, RFC 8945, RFC 1995, RFC 5936).
pub mod kind {
    pub const SOA: u16 = 6;
    pub const OPT: u16 = 41;
    pub const TSIG: u16 = 250;
    pub const IXFR: u16 = 251;
    pub const AXFR: u16 = 252;
}

/// CLASS IN.
pub const CLASS_IN: u16 = 1;

/// What a primary wants to know of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Query<'a> {
    pub id: u16,
    /// 0: a query, 4: NOTIFY.
    pub opcode: u8,
    /// Whether recursion is desired, which answers repeat.
    pub rd: bool,
    /// Name, type and class as they came.
    pub question: &'a [u8],
    /// The name alone, in wire format, the root's octet included.
    pub name: &'a [u8],
    pub kind: u16,
    pub class: u16,
    /// The serial in the authority section (RFC 1995 §3).
    pub serial: Option<u32>,
    /// Whether there is an OPT record (RFC 6891).
    pub has_opt: bool,
    /// Where the TSIG record begins; the message ends with it.
    pub tsig_at: Option<usize>,
}

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
pub fn read(octets: &[u8]) -> Message<'_> {
    if octets.len() < HEADER_OCTETS || octets[2] & QR != 0 {
        return Message::Ignored;
    }
    query(octets).map_or(Message::Malformed, Message::Query)
}

#[inline]
fn query(octets: &[u8]) -> Option<Query<'_>> {
    let count = |at: usize| u32::from(u16::from_be_bytes([octets[at], octets[at + 1]]));
    if count(4) != 1 {
        return None;
    }
    let name_end = plain_name_end(octets, HEADER_OCTETS)?;
    let question = octets.get(HEADER_OCTETS..name_end + 4)?;
    let word = |at: usize| u16::from_be_bytes([question[at], question[at + 1]]);
    let name = &question[..question.len() - 4];
    let mut query = Query {
        id: u16::from_be_bytes([octets[0], octets[1]]),
        opcode: octets[2] >> 3 & 0x0f,
        rd: octets[2] & 1 != 0,
        question,
        name,
        kind: word(name.len()),
        class: word(name.len() + 2),
        serial: None,
        has_opt: false,
        tsig_at: None,
    };
    let [answers, authority, additional] = [count(6), count(8), count(10)];
    if answers + authority + additional > 0 {
        let records = answers..answers + authority;
        look_behind(octets, name_end + 4, &mut query, records, answers + authority + additional)?;
    }
    Some(query)
}

/// Where a name ends that is not compressed, such as that of the question: there is none before it.
#[inline]
pub fn plain_name_end(octets: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    loop {
        match *octets.get(at)? {
            0 => break,
            length @ 1..64 => at += usize::from(length) + 1,
            _ => return None,
        }
    }
    (at + 1 - start <= NAME_OCTETS_MAX).then_some(at + 1)
}

/// A record behind the question.
struct Record<'a> {
    kind: u16,
    data: &'a [u8],
    end: usize,
}

/// Looks through the records behind the question; `authority` are the numbers of those that may hold a serial.
fn look_behind(
    octets: &[u8],
    mut at: usize,
    query: &mut Query<'_>,
    authority: std::ops::Range<u32>,
    count: u32,
) -> Option<()> {
    if count > RECORDS_MAX {
        return None;
    }
    for number in 0..count {
        // RFC 8945 §5.1: a TSIG is the last record, or the message is malformed.
        if query.tsig_at.is_some() {
            return None;
        }
        let record = record(octets, at)?;
        match record.kind {
            kind::SOA if authority.contains(&number) => query.serial = Some(serial(record.data)?),
            kind::OPT if number >= authority.end => query.has_opt = true,
            kind::TSIG if number >= authority.end => query.tsig_at = Some(at),
            _ => {}
        }
        at = record.end;
    }
    Some(())
}

fn record(octets: &[u8], at: usize) -> Option<Record<'_>> {
    let fixed_at = name_end(octets, at)?;
    let fixed = octets.get(fixed_at..fixed_at + 10)?;
    let end = fixed_at + 10 + usize::from(u16::from_be_bytes([fixed[8], fixed[9]]));
    let data = octets.get(fixed_at + 10..end)?;
    Some(Record { kind: u16::from_be_bytes([fixed[0], fixed[1]]), data, end })
}

/// Where a name ends that may be compressed; where its pointers lead is not looked at.
pub fn name_end(octets: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match *octets.get(at)? {
            0 => return Some(at + 1),
            length @ 1..64 => at += usize::from(length) + 1,
            0xc0.. => return (at + 2 <= octets.len()).then_some(at + 2),
            _ => return None,
        }
    }
}

/// The serial in the data of a SOA: behind two names.
fn serial(data: &[u8]) -> Option<u32> {
    let at = name_end(data, name_end(data, 0)?)?;
    data.get(at..at + 20)?.first_chunk().map(|serial| u32::from_be_bytes(*serial))
}
