//! The file of `--expect`: what is expected of the answer for each name and type.
//!
//! A line is a name, a type, and one of these: an rcode, for an answer with this rcode, whatever it contains; `NODATA`,
//! for NOERROR without a record of the type; or the data of one record as a zone file has it. The records of the type
//! are then those of all such lines. A name in data is absolute, with a final dot or without; only with a dot, or in
//! quotes, is data that reads like an rcode not one. Empty lines and lines that begin with # or ; are ignored.
//!
//! Lines are read one by one, and those about queries that are not asked are forgotten. So the memory does not depend
//! on the length of the file: 20 bytes for each different query, which is 336 MB for the highest number of queries, and
//! the records of the last query, which show a record that is listed twice in its RRset. Lines of an RRset that are
//! apart in the file are not compared.

use std::{
    cmp::Ordering,
    collections::HashSet,
    fs::File,
    io::{BufRead, BufReader},
    ops::Range,
    path::Path,
};

use dnsrig_core::failure::Failure;
use dnsrig_dns::{
    query::{TAIL_BYTES, question},
    rdata,
};
use domain::{
    base::{Name, Rtype, iana::Class, rdata::ComposeRecordData},
    zonefile::inplace::{Entry, Zonefile},
};

use super::judge::{Expected, Rrset};
use crate::{
    dataset::text_file::{LineError, Lines},
    load::{
        answer::rcode_number,
        queries::{Queries, text},
    },
};

/// The number of bytes of the pieces in which the file is read.
const READ_BYTES: usize = 1 << 20;

/// Stands for NOERROR without a record of the type.
const NODATA: &str = "NODATA";

/// What to do if a line cannot be read.
const FORMAT_HINT: &str = "--expect takes a line with a name, a type, and an rcode, NODATA or the data of one record, such \
                           as `www.example A 192.0.2.1`; several lines make an RRset";

/// Reads what the file at `path` expects of the answers to `queries`.
pub fn read(path: &Path, queries: &Queries) -> Result<Box<[Expected]>, Failure> {
    let file = File::open(path).map_err(|error| {
        Failure::bad_input(format!("cannot read {}: {error}", path.display()), "give --expect a readable file")
    })?;
    parse(BufReader::with_capacity(READ_BYTES, file), path, queries)
}

/// Reads what lines expect of the answers to `queries`, by the index of the different queries. Errors name `path`.
pub fn parse(input: impl BufRead, path: &Path, queries: &Queries) -> Result<Box<[Expected]>, Failure> {
    let mut reading = Reading::new(queries);
    let mut lines = Lines::new(input);
    let wrong = |line, reason| Failure::bad_input(format!("{}, line {line}: {reason}", path.display()), FORMAT_HINT);
    loop {
        match lines.next_line() {
            Ok(Some((number, line))) => reading.line(line).map_err(|reason| wrong(number, reason))?,
            Ok(None) => break,
            Err(LineError::Line { line, reason }) => return Err(wrong(line, reason)),
            Err(LineError::Read(error)) => {
                let sentence = format!("cannot read {}: {error}", path.display());
                return Err(Failure::bad_input(sentence, "give --expect a readable file"));
            }
        }
    }
    reading.finish().ok_or_else(|| {
        Failure::bad_input(
            format!("no line of {} matches a query", path.display()),
            "write the names and types of the queries; `--dry-run` prints how many queries have a line",
        )
    })
}

/// A file that is being read.
struct Reading<'q> {
    queries: &'q Queries,
    /// The different queries, in the order of their questions.
    order: Vec<u32>,
    /// By the index of the query. Of equal questions the first in the order has what was read.
    expected: Box<[Expected]>,
    question: Vec<u8>,
    data: Vec<u8>,
    /// The records of the lines so far that are about one query, as long as no line about another query comes.
    records: (u32, HashSet<Vec<u8>>),
}

impl<'q> Reading<'q> {
    fn new(queries: &'q Queries) -> Self {
        let (count, _) = queries.distinct();
        let mut order: Vec<u32> = (0..count as u32).collect();
        let asked = |index: &u32| question(queries.different(*index as usize));
        order.sort_unstable_by(|one, other| compare(asked(one), asked(other)));
        let expected = vec![Expected::Unlisted; count].into();
        Reading { queries, order, expected, question: Vec::new(), data: Vec::new(), records: Default::default() }
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        let (name, rest) = text::split_word(line.as_bytes());
        let (rtype, rest) = text::split_word(rest);
        let rest = std::str::from_utf8(rest).expect("text that was split at spaces");
        if rest.is_empty() {
            return Err(format!("`{}` has no expected answer after the type", text::show(line.as_bytes())));
        }
        let rtype = text::parse_type(rtype)?;
        self.question.clear();
        text::push_name(&mut self.question, name).map_err(|reason| format!("`{}`: {reason}", text::show(name)))?;
        self.question.extend([rtype.to_int(), Class::IN.to_int()].map(u16::to_be_bytes).as_flattened());
        let found = self.places();
        let line = if rest == NODATA && rtype != Rtype::ANY {
            Expected::NoData
        } else if let Some(rcode) = rcode_number(rest) {
            Expected::Rcode(rcode)
        } else if rtype == Rtype::ANY {
            return Err("only an rcode can be expected for type ANY: a server chooses which records it sends".into());
        } else {
            // Data is read in any case: a file is right or wrong whatever the queries are.
            let mut rrset = Rrset::default();
            read_data(rtype, rest, &mut self.data)?;
            rrset.add(&self.data);
            Expected::Records(rrset)
        };
        let Some(first) = self.order.get(found.start).filter(|_| !found.is_empty()) else { return Ok(()) };
        if matches!(line, Expected::Records(_)) && !is_new(&mut self.records, *first, &self.data) {
            return Err("an earlier line has the same record: write each record once".into());
        }
        let expected = &mut self.expected[*first as usize];
        *expected = match (*expected, line) {
            (Expected::Unlisted, line) => line,
            (Expected::Records(rrset), Expected::Records(_)) => {
                let mut rrset = rrset;
                rrset.add(&self.data);
                Expected::Records(rrset)
            }
            (before, line) if before == line => line,
            _ => return Err("another line for this name and type contradicts it".into()),
        };
        Ok(())
    }

    /// The places in the order of the queries that ask the question.
    fn places(&self) -> Range<usize> {
        let asked = |index: &u32| question(self.queries.different(*index as usize));
        let start = self.order.partition_point(|index| compare(asked(index), &self.question).is_lt());
        let equal = self.order[start..].partition_point(|index| compare(asked(index), &self.question).is_eq());
        start..start + equal
    }

    /// What is expected of each query. `None` if nothing is expected of any.
    fn finish(mut self) -> Option<Box<[Expected]>> {
        let asked = |index: u32| question(self.queries.different(index as usize));
        for pair in 1..self.order.len() {
            let (before, index) = (self.order[pair - 1], self.order[pair]);
            if compare(asked(before), asked(index)).is_eq() {
                self.expected[index as usize] = self.expected[before as usize];
            }
        }
        self.expected.iter().any(|one| *one != Expected::Unlisted).then_some(self.expected)
    }
}

/// Adds the record of a line about a query. False if a line before it has the same record.
fn is_new((query, records): &mut (u32, HashSet<Vec<u8>>), of: u32, data: &[u8]) -> bool {
    if *query != of {
        records.clear();
        *query = of;
    }
    records.insert(data.to_vec())
}

/// An order of questions in which the case of letters in names does not matter.
fn compare(one: &[u8], other: &[u8]) -> Ordering {
    let split = |question: &[u8]| question.len().saturating_sub(TAIL_BYTES);
    let ((name, tail), (other_name, other_tail)) = (one.split_at(split(one)), other.split_at(split(other)));
    let [name, other_name] = [name, other_name].map(|name| name.iter().map(u8::to_ascii_lowercase));
    name.cmp(other_name).then_with(|| tail.cmp(other_tail))
}

/// Reads the data of a record as a zone file has it, in canonical form, into `data`.
fn read_data(rtype: Rtype, text: &str, data: &mut Vec<u8>) -> Result<(), String> {
    check_text(text)?;
    // The parser panics at a text in quotes that nothing follows.
    let mut file = Zonefile::from(format!(". 0 IN {rtype} {text}\n").as_bytes());
    file.set_origin(Name::root());
    let wrong = |reason: &dyn std::fmt::Display| format!("`{text}` is not valid data for type {rtype}: {reason}");
    let Some(Entry::Record(record)) = file.next_entry().map_err(|error| wrong(&error))? else {
        return Err(wrong(&"it is no record"));
    };
    if record.rtype() != rtype || file.next_entry().map_err(|error| wrong(&error))?.is_some() {
        return Err(wrong(&"it is more than one record"));
    }
    let mut composed = Vec::new();
    record.data().compose_rdata(&mut composed).expect("a vector takes any data");
    data.clear();
    rdata::canonical_into(rtype, &composed, data).map_err(|_| wrong(&"a name in it is too long"))
}

/// Refuses what a line with one record does not need, and where the parser panics: parentheses, and texts in quotes
/// without a space beside them.
fn check_text(text: &str) -> Result<(), String> {
    let (mut is_quoted, mut is_escaped, mut before) = (false, false, b' ');
    for byte in text.bytes() {
        let is_quote = byte == b'"' && !is_escaped;
        let is_beside_text = !is_quoted && (before == b'"' || is_quote);
        // alpn="h2" has a quote behind an equals sign (RFC 9460 §2.1).
        let is_value = is_quote && before == b'=';
        if is_beside_text && !is_value && ![before, byte].iter().any(u8::is_ascii_whitespace) {
            return Err(format!("`{text}` needs a space beside each text in quotes"));
        }
        if matches!(byte, b'(' | b')') && !is_quoted && !is_escaped {
            return Err(format!("`{text}` has parentheses: write the data of one record without them"));
        }
        if byte == b';' && !is_quoted && !is_escaped {
            break;
        }
        is_quoted ^= is_quote;
        is_escaped = byte == b'\\' && !is_escaped;
        // A quote that is escaped is a character like any other.
        before = if byte == b'"' && !is_quote { b'x' } else { byte };
    }
    Ok(())
}
