//! Whether a message is the answer to a query: bytes in, verdict out, nothing is allocated.
//!
//! Only header and question are read, and whether the message has room for the records that its header counts. The
//! records themselves are not: their bytes do not show whose answer it is, and a load generator that parses them has
//! less time left for asking. An answer whose records are damaged, but long enough, therefore counts by its header.

use dnsrig_dns::{
    header::{AD, HEADER_BYTES, OPCODE, QR, RCODE, TC},
    query::{TAIL_BYTES, question},
};

/// The shortest record: the root as its owner, type, class, TTL, and the length of no data (RFC 1035 §3.2.1).
const RECORD_BYTES_MIN: usize = 11;

/// The number of response codes that the header can hold (RFC 1035 §4.1.1).
pub const RCODES: usize = 16;

/// Mnemonics of the response codes in a header (RFC 6895 §2.3).
pub const RCODE_NAMES: [&str; RCODES] = [
    "NOERROR",
    "FORMERR",
    "SERVFAIL",
    "NXDOMAIN",
    "NOTIMP",
    "REFUSED",
    "YXDOMAIN",
    "YXRRSET",
    "NXRRSET",
    "NOTAUTH",
    "NOTZONE",
    "DSOTYPENI",
    "RCODE12",
    "RCODE13",
    "RCODE14",
    "RCODE15",
];

/// The mnemonic of a response code.
pub fn rcode_name(rcode: u8) -> &'static str {
    RCODE_NAMES[usize::from(rcode) % RCODES]
}

/// The response code with a mnemonic.
pub fn rcode_number(name: &str) -> Option<u8> {
    RCODE_NAMES.iter().position(|known| *known == name).map(|number| number as u8)
}

/// What a message is for the query whose id it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The answer. `rcode` is the one in the header, 0 to 15, without the upper bits in OPT (RFC 6891 §6.1.3).
    ///
    /// `authenticated` is AD: the server vouches for the data (RFC 6840 §5.8).
    Answer { rcode: u8, truncated: bool, authenticated: bool },
    /// Not a response to any query of this kind: too short for a header, QR not set, or another opcode.
    Malformed,
    /// A response, but to another question.
    Mismatched,
    /// A response to the question that is too short for the records that its header counts.
    Incomplete,
}

/// What `answer` is to `query`, a prepared message whose id was compared already.
///
/// `length` is the length of the answer on the wire, of which `answer` may hold only the beginning: a question that
/// does not fit the buffer is compared as far as it is there, see
/// [`QUERY_BYTES_MAX`](dnsrig_dns::query::QUERY_BYTES_MAX).
///
/// The question must be the query's own; the case of letters does not matter (RFC 4343 §3). Some servers leave it out
/// of an answer that reports an error, FORMERR or REFUSED mostly, which is accepted. NOERROR and NXDOMAIN say something
/// about a name, so these answers must contain it.
///
/// A truncated answer may count records that it left out (RFC 2181 §9): its records are not used, so they are not
/// compared with its length.
pub fn check(answer: &[u8], length: usize, query: &[u8]) -> Verdict {
    let (Some((header, rest)), Some((query_header, _))) =
        (answer.split_first_chunk::<HEADER_BYTES>(), query.split_first_chunk::<HEADER_BYTES>())
    else {
        return Verdict::Malformed;
    };
    if header[2] & QR == 0 || (header[2] ^ query_header[2]) & OPCODE != 0 {
        return Verdict::Malformed;
    }
    let (rcode, truncated) = (header[3] & RCODE, header[2] & TC != 0);
    let body_bytes = length.saturating_sub(HEADER_BYTES);
    let asked = question(query);
    let (answered, question_bytes) = match u16::from_be_bytes([header[4], header[5]]) {
        // A query for a cookie alone has no question, and neither has its answer (RFC 7873 §5.4).
        0 => (!matches!(rcode, 0 | 3) || query_header[4..6] == [0; 2], 0),
        1 => (begins_with(rest, body_bytes, asked), asked.len()),
        _ => (false, 0),
    };
    if !answered {
        return Verdict::Mismatched;
    }
    if !truncated && question_bytes + RECORD_BYTES_MIN * records(header) > body_bytes {
        return Verdict::Incomplete;
    }
    Verdict::Answer { rcode, truncated, authenticated: header[3] & AD != 0 }
}

/// The number of records that a header counts, in all sections but the question.
fn records(header: &[u8; HEADER_BYTES]) -> usize {
    header[6..].as_chunks::<2>().0.iter().map(|count| usize::from(u16::from_be_bytes(*count))).sum()
}

/// Whether a message body of `length` bytes, of which `body` is the beginning, begins with `question`.
fn begins_with(body: &[u8], length: usize, question: &[u8]) -> bool {
    if length < question.len() {
        return false;
    }
    let there = body.len().min(question.len());
    let name_bytes = question.len().saturating_sub(TAIL_BYTES).min(there);
    let (body, question) = (&body[..there], &question[..there]);
    body == question || same_but_case(body, question, name_bytes)
}

/// Whether two questions, or equally long beginnings of them, differ in the case of letters in the name at most.
///
/// Lengths of labels are below 64 and so no letters (RFC 1035 §2.3.4), but bytes of type and class may be: HTTPS is 65.
#[cold]
fn same_but_case(body: &[u8], question: &[u8], name_bytes: usize) -> bool {
    let ((name, tail), (asked_name, asked_tail)) = (body.split_at(name_bytes), question.split_at(name_bytes));
    tail == asked_tail && name.eq_ignore_ascii_case(asked_name)
}

#[cfg(test)]
mod tests {
    //! Answers to a query, to another one, and to none.

    use dnsrig_dns::{query::QUERY_BYTES_MAX, testing::messages};
    use dnsrig_testing::{any_bytes, fuzz::fuzz, inputs};
    use domain::base::{MessageBuilder, Name, iana::Rtype};
    use proptest::prelude::*;

    use super::*;

    /// Flags of a response that is authoritative: QR and AA; without an error.
    const AUTHORITATIVE: [u8; 2] = [0x84, 0];

    /// A prepared query: id 0, one question, RD not set, no EDNS.
    fn query(name: &str, qtype: Rtype) -> Vec<u8> {
        let mut question = MessageBuilder::new_vec().question();
        question.push((name.parse::<Name<Vec<u8>>>().unwrap(), qtype)).unwrap();
        question.finish()
    }

    /// The answer to a query: one record of four bytes, whose owner is a pointer to the question.
    fn answer(query: &[u8], flags: [u8; 2]) -> Vec<u8> {
        let mut bytes = query.to_vec();
        bytes[2..4].copy_from_slice(&flags);
        bytes[7] = 1;
        bytes.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 192, 0, 2, 1]);
        bytes
    }

    fn a_query() -> Vec<u8> {
        query("www.z1.example", Rtype::A)
    }

    fn verdict(answer: &[u8], query: &[u8]) -> Verdict {
        check(answer, answer.len(), query)
    }

    fn answered(rcode: u8) -> Verdict {
        Verdict::Answer { rcode, truncated: false, authenticated: false }
    }

    #[test]
    fn an_answer_has_its_rcode_and_may_be_truncated() {
        let query = a_query();
        assert_eq!(verdict(&answer(&query, AUTHORITATIVE), &query), answered(0));
        assert_eq!(verdict(&answer(&query, [0x84, 3]), &query), answered(3));
        assert_eq!(verdict(&answer(&query, [0x80, 0xdf]), &query), answered(15), "RA, Z and CD do not matter");
        let authenticated = Verdict::Answer { rcode: 0, truncated: false, authenticated: true };
        assert_eq!(verdict(&answer(&query, [0x80, 0x20]), &query), authenticated);
        let truncated = Verdict::Answer { rcode: 0, truncated: true, authenticated: false };
        assert_eq!(verdict(&answer(&query, [0x86, 0]), &query), truncated);
    }

    #[test]
    fn the_case_of_the_name_does_not_matter_and_all_else_does() {
        let query = query("z1.example", Rtype::HTTPS);
        let whole = answer(&query, AUTHORITATIVE);
        let name_end = query.len() - TAIL_BYTES;
        let mut shouted = whole.clone();
        shouted[HEADER_BYTES..name_end].make_ascii_uppercase();
        assert_ne!(shouted, whole);
        assert_eq!(verdict(&shouted, &query), answered(0));
        // HTTPS is 65, an A in ASCII; 97, an a, is another type.
        let mut other_type = shouted;
        assert_eq!(other_type[name_end + 1], b'A');
        other_type[name_end + 1] = b'a';
        assert_eq!(verdict(&other_type, &query), Verdict::Mismatched);
        for index in HEADER_BYTES..query.len() {
            let mut other = whole.clone();
            other[index] ^= 1;
            assert_eq!(verdict(&other, &query), Verdict::Mismatched, "byte {index}");
        }
    }

    #[test]
    fn what_is_no_response_to_a_query_is_malformed() {
        let query = a_query();
        let whole = answer(&query, AUTHORITATIVE);
        for length in 0..HEADER_BYTES {
            assert_eq!(verdict(&whole[..length], &query), Verdict::Malformed, "{length} bytes");
        }
        assert_eq!(verdict(&query, &query), Verdict::Malformed, "our own query, come back");
        assert_eq!(verdict(&answer(&query, [0xac, 0]), &query), Verdict::Malformed, "opcode UPDATE");
        let mut update = query.clone();
        update[2] |= 0x28;
        assert_eq!(verdict(&answer(&update, [0xa8, 0]), &update), answered(0), "an update has its own opcode");
    }

    #[test]
    fn a_question_that_is_cut_short_is_not_ours() {
        let query = a_query();
        let whole = answer(&query, AUTHORITATIVE);
        for length in HEADER_BYTES..query.len() {
            assert_eq!(verdict(&whole[..length], &query), Verdict::Mismatched, "{length} bytes");
        }
        assert_eq!(verdict(&whole[..query.len()], &query), Verdict::Incomplete, "its record is missing");
    }

    #[test]
    fn a_small_buffer_is_compared_as_far_as_it_goes() {
        let query = a_query();
        let mut whole = answer(&query, AUTHORITATIVE);
        whole[HEADER_BYTES..query.len() - TAIL_BYTES].make_ascii_uppercase();
        for size in HEADER_BYTES..query.len() {
            assert_eq!(check(&whole[..size], whole.len(), &query), answered(0), "{size} bytes");
            if size > HEADER_BYTES {
                let mut other = whole[..size].to_vec();
                other[size - 1] ^= 1;
                assert_eq!(check(&other, whole.len(), &query), Verdict::Mismatched, "{size} bytes");
            }
        }
        let longest = query_of_longest_name();
        assert!(longest.len() <= QUERY_BYTES_MAX && longest.len() > QUERY_BYTES_MAX - 4);
    }

    fn query_of_longest_name() -> Vec<u8> {
        let label = "a".repeat(62);
        query(&format!("{label}.{label}.{label}.{label}"), Rtype::A)
    }

    #[test]
    fn only_an_error_may_stand_without_its_question() {
        let query = a_query();
        let bare = |rcode: u8| [0, 0, 0x80, rcode, 0, 0, 0, 0, 0, 0, 0, 0];
        for rcode in 0..16 {
            let expected = if rcode == 0 || rcode == 3 { Verdict::Mismatched } else { answered(rcode) };
            assert_eq!(verdict(&bare(rcode), &query), expected, "RCODE {rcode}");
        }
        let mut cookie = query.clone();
        cookie[5] = 0;
        assert_eq!(verdict(&bare(0), &cookie), answered(0), "a query without a question");
        let mut two = answer(&query, AUTHORITATIVE);
        two[5] = 2;
        assert_eq!(verdict(&two, &query), Verdict::Mismatched);
        two[4..6].copy_from_slice(&[1, 0]);
        assert_eq!(verdict(&two, &query), Verdict::Mismatched, "256 questions");
    }

    /// Whether a parser finds as many records as the header of `answer` counts.
    fn has_its_records(answer: &[u8]) -> bool {
        domain::base::Message::from_octets(answer).is_ok_and(|message| message.iter().all(|record| record.is_ok()))
    }

    #[test]
    fn an_answer_has_room_for_its_records() {
        let query = a_query();
        let whole = answer(&query, AUTHORITATIVE);
        let counting = |counts: [u8; 6], bytes: usize| {
            let mut answer = whole[..bytes].to_vec();
            answer[6..12].copy_from_slice(&counts);
            answer
        };
        // The record has 16 bytes, and room for one of the shortest, which have 11.
        for fitting in [[0; 6], [0, 1, 0, 0, 0, 0], [0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 0, 1]] {
            assert_eq!(verdict(&counting(fitting, whole.len()), &query), answered(0), "{fitting:?}");
        }
        for many in [[0, 1, 0, 0, 0, 1], [0, 2, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0], [0xff; 6]] {
            assert_eq!(verdict(&counting(many, whole.len()), &query), Verdict::Incomplete, "{many:?}");
        }
        let shortest = query.len() + RECORD_BYTES_MIN;
        assert_eq!(verdict(&counting([0, 1, 0, 0, 0, 0], shortest), &query), answered(0));
        assert_eq!(verdict(&counting([0, 1, 0, 0, 0, 0], shortest - 1), &query), Verdict::Incomplete);
        // An error without its question, and an answer that says it is truncated.
        assert_eq!(verdict(&[0, 0, 0x80, 5, 0, 0, 0, 1, 0, 0, 0, 0], &query), Verdict::Incomplete);
        let mut truncated = counting([0, 9, 0, 0, 0, 0], query.len());
        truncated[2] |= TC;
        let expected = Verdict::Answer { rcode: 0, truncated: true, authenticated: false };
        assert_eq!(verdict(&truncated, &query), expected);
    }

    #[test]
    fn a_long_answer_is_judged_by_its_length_on_the_wire() {
        let query = a_query();
        let mut beginning = answer(&query, AUTHORITATIVE);
        beginning[6..8].copy_from_slice(&[0, 100]);
        assert_eq!(check(&beginning, query.len() + 1_100, &query), answered(0));
        assert_eq!(check(&beginning, query.len() + 1_099, &query), Verdict::Incomplete);
    }

    /// The verdict of a parser of whole messages.
    fn check_by_parser(answer: &[u8], query: &[u8]) -> Option<Verdict> {
        use domain::base::{Message, iana::Rcode};
        let Ok(message) = Message::from_octets(answer) else { return Some(Verdict::Malformed) };
        let header = message.header();
        let asked = Message::from_octets(query).unwrap();
        if !header.qr() || header.opcode() != asked.header().opcode() {
            return Some(Verdict::Malformed);
        }
        let (rcode, truncated, authenticated) = (header.rcode().to_int(), header.tc(), header.ad());
        let verdict = Verdict::Answer { rcode, truncated, authenticated };
        let bare = message.header_counts().qdcount() == 0;
        if bare {
            let says_something = matches!(header.rcode(), Rcode::NOERROR | Rcode::NXDOMAIN);
            return Some(if says_something { Verdict::Mismatched } else { verdict });
        }
        let Ok(question) = message.sole_question() else { return Some(Verdict::Mismatched) };
        if question.qname().is_compressed() {
            // A question has nothing before it to point to: that is ours to refuse, the parser may take it.
            return None;
        }
        Some(if question == asked.sole_question().unwrap() { verdict } else { Verdict::Mismatched })
    }

    proptest! {
        #![proptest_config(inputs(20_000))]

        /// 20,000 inputs of any bytes, of which the buffer may hold only a part, against any prepared query.
        #[test]
        fn any_bytes_are_checked_without_panic(
            bytes in any_bytes(300),
            query in any_bytes(300),
            beyond in 0_usize..70_000,
        ) {
            check(&bytes, bytes.len() + beyond, &a_query());
            check(&bytes, bytes.len() + beyond, &query);
            check(&bytes, 0, &query);
        }

        /// 20,000 answers with a few bytes changed and perhaps cut are judged as a parser of messages judges them.
        #[test]
        fn damaged_answers_are_judged_as_a_parser_does(
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            flags: [bool; 5], length in any::<prop::sample::Index>(), cut: bool,
        ) {
            let query = a_query();
            let [bare, refused, truncated, other_case, with_record] = flags;
            let mut bytes = answer(&query, [if truncated { 0x86 } else { 0x84 }, if refused { 5 } else { 0 }]);
            if other_case {
                bytes[HEADER_BYTES..query.len() - TAIL_BYTES].make_ascii_uppercase();
            }
            if !with_record {
                bytes.truncate(query.len());
            }
            if bare {
                bytes.truncate(HEADER_BYTES);
                bytes[5] = 0;
            }
            for (index, byte) in changes {
                let index = index.index(bytes.len());
                bytes[index] = byte;
            }
            if cut {
                bytes.truncate(length.index(bytes.len()));
            }
            let found = verdict(&bytes, &query);
            if found == Verdict::Incomplete {
                prop_assert!(!has_its_records(&bytes));
            } else if let Some(expected) = check_by_parser(&bytes, &query) {
                prop_assert_eq!(found, expected);
            }
        }
    }

    /// Answers, queries and others are judged as a parser judges them. The verdict on a part of an answer never
    /// contradicts the verdict on all of it.
    #[test]
    fn harmed_messages_are_judged_as_a_parser_does() {
        let query = query("www.Zone.example", Rtype::SOA);
        let mut corpus = messages();
        corpus.extend([answer(&query, AUTHORITATIVE), answer(&a_query(), AUTHORITATIVE), answer(&query, [0x86, 5])]);
        fuzz(10_000, &corpus, |bytes, random| {
            let found = verdict(bytes, &query);
            if found == Verdict::Incomplete {
                assert!(!has_its_records(bytes));
            } else if let Some(expected) = check_by_parser(bytes, &query) {
                assert_eq!(found, expected);
            }
            let part = &bytes[..random.below(bytes.len() as u64 + 1) as usize];
            let of_part = check(part, bytes.len(), &query);
            assert!(
                of_part == found || of_part == Verdict::Malformed || found == Verdict::Mismatched,
                "{of_part:?} of {found:?}"
            );
            check(bytes, bytes.len(), part);
        });
    }
}
