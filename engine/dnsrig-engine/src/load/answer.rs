//! Whether a message is the answer to a query: bytes in, verdict out, nothing is allocated.
//!
//! Only header and question are read, and whether the message has room for the records that its header counts. The
//! records themselves are not: their bytes do not show whose answer it is, and a load generator that parses them has
//! less time left for asking. An answer whose records are damaged, but long enough, therefore counts by its header.

use crate::dns::{
    header::{AD, HEADER_BYTES, OPCODE, QR, RCODE, TC},
    query::{TAIL_BYTES, question},
};

/// The shortest record: the root as its owner, type, class, TTL, and the length of no data (RFC 1035 §3.2.1).
const RECORD_BYTES_MIN: usize = 11;

/// What a message is, seen from the query whose id it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Its answer. `rcode` is the one in the header, 0 to 15, without the upper bits in OPT (RFC 6891 §6.1.3).
    ///
    /// `authenticated` is AD: the server vouches for the data (RFC 6840 §5.8).
    Answer { rcode: u8, truncated: bool, authenticated: bool },
    /// No response to any query of this kind: too short for a header, QR not set, or another opcode.
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
/// [`QUERY_BYTES_MAX`](crate::dns::query::QUERY_BYTES_MAX).
///
/// The question must be the query's own; the case of letters does not matter (RFC 4343 §3). Some servers leave it out
/// of an answer that reports an error, FORMERR or REFUSED mostly, which is taken as it is meant. NOERROR and NXDOMAIN
/// say something about a name, so there it must stand.
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

/// How many records a header counts, in all sections but the question.
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
#[path = "answer_tests.rs"]
mod tests;
