//! The formats of query files, and how they are told apart by their first bytes.

use dnsrig_dns::{
    header::{Header, OPCODE, QR},
    name::ParseError,
    query::Question,
    record::Walk,
};
use domain::base::Rtype;
use serde::Serialize;

use crate::query_stream::MAGIC;

/// The number of bytes by which a format is recognised.
pub const BEGINNING_BYTES: usize = 1 << 16;

/// How queries are written in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// A name and a type on each line (dnsperf, kxdpgun), or a name
    Text,
    /// Complete queries, each after its length in two bytes (the option -B of dnsperf and of kxdpgun)
    Binary,
    /// The queries of a capture, as `dnsrig replay prepare` writes them
    Stream,
}

/// What a file is that is none of the formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// It is a capture, or compressed as captures often are.
    Capture(&'static str),
    /// It is neither text nor a sequence of queries.
    Unknown,
}

/// The first bytes of captures and of compressed files, with their names.
const CAPTURES: [(&[u8], &str); 13] = [
    (&[0xa1, 0xb2, 0xc3, 0xd4], "pcap"),
    (&[0xd4, 0xc3, 0xb2, 0xa1], "pcap"),
    (&[0xa1, 0xb2, 0x3c, 0x4d], "pcap"),
    (&[0x4d, 0x3c, 0xb2, 0xa1], "pcap"),
    (&[0xa1, 0xb2, 0xcd, 0x34], "pcap"),
    (&[0x34, 0xcd, 0xb2, 0xa1], "pcap"),
    (&[0x0a, 0x0d, 0x0d, 0x0a], "pcapng"),
    (b"\x83\x65C-DNS", "C-DNS"),
    (b"\x9f\x65C-DNS", "C-DNS"),
    (&[0x1f, 0x8b], "gzip"),
    (&[0xfd, b'7', b'z', b'X', b'Z', 0], "xz"),
    (&[0x28, 0xb5, 0x2f, 0xfd], "zstd"),
    (&[0x04, 0x22, 0x4d, 0x18], "lz4"),
];

/// The first bytes of a file of Frame Streams, in which dnstap is: a control frame.
const FRAME_STREAMS: [u8; 4] = [0; 4];

/// Recognises the format of a file by `beginning`, its first [`BEGINNING_BYTES`], or all of a shorter file.
pub fn detect(beginning: &[u8]) -> Result<Format, Unreadable> {
    if beginning.starts_with(MAGIC) {
        return Ok(Format::Stream);
    }
    if let Some((_, name)) = CAPTURES.iter().find(|(magic, _)| beginning.starts_with(magic)) {
        return Err(Unreadable::Capture(name));
    }
    if beginning.starts_with(&FRAME_STREAMS) {
        return Err(Unreadable::Capture("dnstap"));
    }
    // UTF-16 has zeros as well; the reader of text knows what to do about it.
    let is_utf16 = matches!(beginning, [0xff, 0xfe, ..] | [0xfe, 0xff, ..]);
    if is_utf16 || !beginning.contains(&0) {
        return Ok(Format::Text);
    }
    if begins_with_queries(beginning) { Ok(Format::Binary) } else { Err(Unreadable::Unknown) }
}

/// Whether `beginning` has a query after its length at its beginning, and as many more as there is room for.
fn begins_with_queries(beginning: &[u8]) -> bool {
    let mut rest = beginning;
    let mut found = 0;
    while let Some((&[high, low], behind)) = rest.split_first_chunk() {
        let Some((message, behind)) = behind.split_at_checked(u16::from_be_bytes([high, low]).into()) else { break };
        if Header::read(message).is_err() {
            return false;
        }
        // One wrong query does not make the file another one, but the first must be right.
        if found == 0 && check(message).is_err() {
            return false;
        }
        (rest, found) = (behind, found + 1);
    }
    found > 0
}

/// Checks that a complete message is a query that can be sent again and again: one question, and records to its end.
pub fn check(message: &[u8]) -> Result<(), String> {
    let damaged = |_: ParseError| "it is no complete DNS message".to_owned();
    let header = Header::read(message).map_err(damaged)?;
    if header.flags & QR != 0 {
        return Err("it is a response".into());
    }
    if header.flags & OPCODE != 0 {
        return Err(format!("its opcode is {}, and only queries (0) are sent", (header.flags & OPCODE) >> 3));
    }
    if header.questions != 1 {
        return Err(format!("it has {} questions, and not one", header.questions));
    }
    let question = Question::read(message).map_err(damaged)?;
    if matches!(question.rtype, Rtype::AXFR | Rtype::IXFR) {
        return Err(format!("{} is a transfer, which has no single answer: use `dnsrig transfer`", question.rtype));
    }
    let mut walk = Walk::from(message, question.end());
    for record in walk.records(&header) {
        record.map_err(damaged)?;
    }
    walk.end().map_err(|_| "there are bytes behind its last record".to_owned())
}

#[cfg(test)]
mod tests {
    use dnsrig_dns::{edns, query::soa_query};

    use super::*;

    fn framed(messages: &[&[u8]]) -> Vec<u8> {
        messages.iter().flat_map(|message| [&(message.len() as u16).to_be_bytes(), *message].concat()).collect()
    }

    #[test]
    fn formats_are_recognised_by_their_first_bytes() {
        let query = soa_query(1, b"\x01a\0");
        for (beginning, format) in [
            (&b"a A\n"[..], Ok(Format::Text)),
            (b"", Ok(Format::Text)),
            (b"\xff\xfea\0 \0", Ok(Format::Text)),
            (&framed(&[&query, &query])[..], Ok(Format::Binary)),
            (&framed(&[&query, &query])[..40], Ok(Format::Binary)),
            (b"DNSRSTRM\x01\0\0\0", Ok(Format::Stream)),
            (b"\xd4\xc3\xb2\xa1\x02\0\x04\0", Err(Unreadable::Capture("pcap"))),
            (b"\0\0\0\0\0\0\0\x22\0\0\0\x02", Err(Unreadable::Capture("dnstap"))),
            (b"\x1f\x8b\x08\0", Err(Unreadable::Capture("gzip"))),
            (b"\x7fELF\x02\x01\x01\0", Err(Unreadable::Unknown)),
            (b"a A\n\0", Err(Unreadable::Unknown)),
            (&framed(&[&query])[..10], Err(Unreadable::Unknown)),
        ] {
            assert_eq!(detect(beginning), format, "{beginning:?}");
        }
    }

    #[test]
    fn only_queries_that_can_be_repeated_are_taken() {
        let query = soa_query(1, b"\x01a\0");
        assert_eq!(check(&query), Ok(()));
        let mut keepalive = query.clone();
        edns::add_keepalive(&mut keepalive);
        assert_eq!(check(&keepalive), Ok(()));
        let changed = |at: usize, byte: u8| {
            let mut message = query.clone();
            message[at] = byte;
            check(&message).unwrap_err()
        };
        assert_eq!(changed(2, 0x80), "it is a response");
        assert!(changed(2, 0x28).contains("its opcode is 5"));
        assert!(changed(5, 2).contains("2 questions"));
        assert!(changed(16, 252).contains("dnsrig transfer"));
        assert!(changed(11, 1).contains("no complete"));
        assert!(changed(12, 0xc0).contains("no complete"), "a pointer");
        assert!(check(&[&query[..], &[0]].concat()).unwrap_err().contains("behind its last record"));
        assert!(check(&query[..query.len() - 1]).unwrap_err().contains("no complete"));
    }
}
