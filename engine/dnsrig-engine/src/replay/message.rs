//! Which messages are queries.

use std::net::Ipv6Addr;

use dnsrig_dns::{
    edns::{self, COOKIE, Edns, Opt, UDP_PAYLOAD_BYTES},
    header::{CD, Header, OPCODE, QR, RD},
    query::{Options, Question},
    record::Walk,
};

use crate::query_stream::Transport;

/// A DNS message with its source and its destination; the bytes are borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'m> {
    /// Since 1970.
    pub time_ns: i64,
    pub source: Ipv6Addr,
    pub source_port: u16,
    pub destination: Ipv6Addr,
    pub destination_port: u16,
    pub transport: Transport,
    /// Whether it is the first of its connection.
    pub is_first: bool,
    pub bytes: &'m [u8],
}

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Query,
    Answer,
    OtherOperation,
    Malformed,
}

/// Looks at the header and the question. What follows is left as the client sent it, however odd: the server has to
/// cope with it as well.
#[inline]
pub fn kind(message: &[u8]) -> Kind {
    let Ok(header) = Header::read(message) else { return Kind::Malformed };
    if header.flags & QR != 0 {
        return Kind::Answer;
    }
    if header.flags & OPCODE != 0 {
        return Kind::OtherOperation;
    }
    let is_query = match header.questions {
        1 => Question::read(message).is_ok(),
        0 => asks_for_cookie(message, &header),
        _ => false,
    };
    if is_query { Kind::Query } else { Kind::Malformed }
}

/// Whether a message without a question asks for a server's cookie (RFC 7873 §5.4): EDNS is its first record, with that
/// option.
fn asks_for_cookie(message: &[u8], header: &Header) -> bool {
    let is_alone = header.additional > 0 && header.records() == u32::from(header.additional);
    let opt = Walk::new(message).any_record().ok().filter(|_| is_alone).and_then(|record| Opt::read(&record));
    opt.is_some_and(|opt| edns::options(opt.options).map_while(Result::ok).any(|(code, _)| code == COOKIE))
}

/// The query that an answer was given to, as far as the answer tells: its id, its question, RD, CD, and of EDNS that it
/// was there, and DO. None if the answer has not exactly one question.
pub fn query_of(answer: &[u8], into: &mut Vec<u8>) -> Option<()> {
    let header = Header::read(answer).ok().filter(|header| header.flags & QR != 0 && header.questions == 1)?;
    let question = Question::read(answer).ok()?;
    // A record that makes no sense ends the search: no answer has EDNS before other sections.
    let mut walk = Walk::from(answer, question.end());
    let mut records = walk.records(&header).map_while(Result::ok);
    let opt = records.find_map(|(_, record)| Opt::read(&record));
    let edns = opt.map(|opt| Edns { udp_payload_bytes: UDP_PAYLOAD_BYTES, dnssec_ok: opt.edns.dnssec_ok });
    let options = Options { recursion_desired: header.flags & RD != 0, edns };
    into.clear();
    into.extend_from_slice(&options.header());
    into[..2].copy_from_slice(&answer[..2]);
    into[2] |= header.flags & OPCODE;
    into[3] |= answer[3] & CD;
    into.extend_from_slice(question.wire);
    into.extend_from_slice(&options.opt());
    Some(())
}

#[cfg(test)]
mod tests {
    use dnsrig_dns::{header::HEADER_BYTES, query::Asked};
    use dnsrig_testing::fuzz::fuzz;
    use domain::base::{Rtype, ToName};

    use super::*;

    const QUESTION: [u8; 7] = [1, b'a', 0, 0, 28, 0, 1];

    #[test]
    fn a_query_for_a_cookie_needs_no_question() {
        let message = |questions: u8, option: u8| {
            let opt = [0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 16, 0, 3, 0, 0, 0, option, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8];
            [&[0, 7, 0, 0, 0, questions, 0, 0, 0, 0, 0, 1][..], &opt].concat()
        };
        assert_eq!(kind(&message(0, 10)), Kind::Query);
        assert_eq!(kind(&message(0, 12)), Kind::Malformed, "another option");
        assert_eq!(kind(&message(2, 10)), Kind::Malformed);
        assert_eq!(kind(&message(0, 10)[..20]), Kind::Malformed, "a record that is cut");
        assert_eq!(kind(&[0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), Kind::Malformed, "nothing is asked for");
    }

    #[test]
    fn an_answer_tells_of_its_query() {
        let mut query = Vec::new();
        let record = [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1];
        let opt = [0, 0, 41, 16, 0, 0, 0, 0x80, 0, 0, 0];
        let answer = [&[0, 7, 0x85, 0x90, 0, 1, 0, 1, 0, 0, 0, 1][..], &QUESTION, &record, &opt].concat();
        query_of(&answer, &mut query).unwrap();
        let expected =
            [&[0, 7, 1, 0x10, 0, 1, 0, 0, 0, 0, 0, 1][..], &QUESTION, &[0, 0, 41, 4, 208, 0, 0, 0x80, 0, 0, 0]];
        assert_eq!((query.clone(), kind(&query)), (expected.concat(), Kind::Query));
        let bare = [&[0, 7, 0x80, 3, 0, 1, 0, 0, 0, 0, 0, 0][..], &QUESTION].concat();
        query_of(&bare, &mut query).unwrap();
        assert_eq!(query, [&[0, 7, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0][..], &QUESTION].concat());
        for other in [&bare[..18], &query, &[0, 7, 0x80, 1, 0, 0, 0, 0, 0, 0, 0, 0]] {
            assert_eq!(query_of(other, &mut Vec::new()), None);
        }
    }

    /// Reads it with another library: the name and the type of its one question, and, if its records are whole,
    /// whether it has EDNS, and DO.
    fn read(bytes: &[u8]) -> Option<(Vec<u8>, u16, Option<Option<bool>>)> {
        let message = domain::base::Message::from_octets(bytes).ok()?;
        let question = message.sole_question().ok()?;
        let name = question.qname().to_vec().as_slice().to_vec();
        // A question has nothing before it that a pointer could lead to: that library follows one into the header.
        let is_plain = bytes[HEADER_BYTES..].starts_with(&name);
        let records: Vec<_> = message.iter().collect();
        // The library also follows pointers into the very name that they end.
        let mut walk = Walk::new(bytes);
        let is_walked = walk.skip_question().is_ok() && records.iter().all(|_| walk.any_record().is_ok());
        let opts: Vec<_> = records.iter().flatten().filter(|(record, _)| record.rtype() == Rtype::OPT).collect();
        let edns = match opts[..] {
            _ if !is_walked || records.iter().any(Result::is_err) => None,
            [] => Some(None),
            [(opt, _)] => Some(Some(opt.ttl().as_secs() & 0x8000 != 0)),
            _ => None,
        };
        is_plain.then_some((name, question.qtype().to_int(), edns))
    }

    #[test]
    fn harmed_messages_are_read_as_another_library_reads_them() {
        let mut query = Vec::new();
        fuzz(5_000, &dnsrig_dns::testing::messages(), |bytes, _| {
            let (kind, other) = (kind(bytes), read(bytes));
            let is_query = bytes.len() >= HEADER_BYTES && bytes[2] & (QR | OPCODE) == 0;
            let questions = bytes.get(4..6).map_or(0, |it| u16::from_be_bytes([it[0], it[1]]));
            if is_query && questions == 1 {
                assert_eq!(kind == Kind::Query, other.is_some());
            }
            let asked = Asked::read(bytes);
            if let (Some((name, rtype, edns)), Some(asked)) = (&other, &asked) {
                assert_eq!((name.to_ascii_lowercase(), *rtype), (asked.name.clone(), asked.rtype));
                let dnssec_ok = asked.edns.map(|edns| edns.dnssec_ok);
                assert!(dnssec_ok.is_none() || edns.is_none() || *edns == Some(dnssec_ok));
            }
            assert!(asked.is_some() || other.is_none());
            let found = query_of(bytes, &mut query);
            assert_eq!(found.is_some(), bytes.len() > 3 && bytes[2] & QR != 0 && other.is_some());
            if let (Some((name, rtype, edns)), Some(())) = (other, found) {
                let of_query = read(&query).unwrap();
                assert_eq!((&of_query.0, of_query.1), (&name, rtype));
                assert!(edns.is_none() || of_query.2 == edns, "{edns:?} in the answer, {:?} in the query", of_query.2);
                assert_eq!((&query[..2], query[2], query[3]), (&bytes[..2], bytes[2] & (OPCODE | RD), bytes[3] & CD));
                assert!(matches!(super::kind(&query), Kind::Query | Kind::OtherOperation));
            }
        });
    }
}
