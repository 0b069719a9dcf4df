//! Whether an answer is as expected, and how it differs. No I/O, no clock.

use std::{
    hash::{DefaultHasher, Hasher},
    sync::Arc,
};

use dnsrig_dns::{header::Header, name::ParseError, query::Question, record::Walk};
use domain::base::{Name, Rtype};
use serde::Serialize;

use crate::load::{answer::rcode_name, counts::WrongAnswers, queries::Queries};

/// The number of examples of wrong answers that a thread keeps, and that a summary has.
pub const EXAMPLES_MAX: usize = 10;

/// What is expected of the answers to all queries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expectation {
    NoerrorNonempty,
    /// By the index of the different queries.
    Listed(Box<[Expected]>),
}

impl Expectation {
    /// The number of different queries of which nothing is expected.
    pub fn unlisted(&self) -> usize {
        match self {
            Expectation::NoerrorNonempty => 0,
            Expectation::Listed(expected) => expected.iter().filter(|one| **one == Expected::Unlisted).count(),
        }
    }
}

/// What is expected of the answer to one query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expected {
    #[default]
    Unlisted,
    /// An answer with this rcode, whatever it contains.
    Rcode(u8),
    /// NOERROR, and no record of the type.
    NoData,
    /// NOERROR, and these records of the type.
    Records(Rrset),
}

/// Records of one type, whatever their order, TTL, compression and case of letters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rrset {
    records: u32,
    /// The sum of the hashes of the records' data.
    hashes: u64,
}

impl Rrset {
    /// Adds a record with this data in canonical form (RFC 4034 §6.2).
    pub fn add(&mut self, data: &[u8]) {
        // Fixed keys: the hashes of a file and of answers are compared within one process, and nobody gains by a
        // collision.
        let mut hasher = DefaultHasher::new();
        hasher.write(data);
        self.records += 1;
        self.hashes = self.hashes.wrapping_add(hasher.finish());
    }

    /// The records of a type in the answer section of a message, whoever owns them: behind an alias they are the
    /// target's. `data` is used as a buffer.
    fn read(message: &[u8], rtype: Rtype, data: &mut Vec<u8>) -> Result<Self, ParseError> {
        let header = Header::read(message)?;
        let mut walk = Walk::new(message);
        (0..header.questions).try_for_each(|_| walk.skip_question())?;
        let mut found = Rrset::default();
        for _ in 0..header.answers {
            let record = walk.any_record()?;
            if record.rtype == rtype {
                data.clear();
                record.canonical_data_into(data)?;
                found.add(data);
            }
        }
        Ok(found)
    }
}

/// How an answer is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WrongKind {
    /// Another rcode.
    Rcode,
    /// NOERROR without a record of the type.
    Empty,
    /// Other records of the type, or records where there should be none.
    Rrset,
    /// Marked as truncated, so that its records cannot be compared.
    Truncated,
    /// Records that cannot be read.
    Damaged,
}

impl WrongAnswers {
    /// Counts a wrong answer.
    pub fn count(&mut self, kind: WrongKind) {
        *match kind {
            WrongKind::Rcode => &mut self.rcode,
            WrongKind::Empty => &mut self.empty,
            WrongKind::Rrset => &mut self.rrset,
            WrongKind::Truncated => &mut self.truncated,
            WrongKind::Damaged => &mut self.damaged,
        } += 1;
    }
}

/// An answer that is compared with what was expected.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    pub message: &'a [u8],
    pub rcode: u8,
    pub truncated: bool,
}

/// Whether an answer is as expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    Right,
    Wrong(WrongKind),
    /// Nothing is expected of it.
    Unlisted,
}

/// A wrong answer.
#[derive(Clone, Copy, Debug)]
struct Example {
    /// The position of the query.
    position: u32,
    rcode: u8,
    kind: WrongKind,
}

/// A wrong answer, as it is reported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WrongExample {
    /// Name and type.
    pub query: String,
    pub kind: WrongKind,
    /// The rcode of the answer.
    pub rcode: &'static str,
}

impl Example {
    /// The example with the name and the type of its query.
    fn show(self, queries: &Queries) -> WrongExample {
        let query = match Question::read(queries.message(self.position as usize)) {
            Ok(question) => match Name::from_slice(question.name()) {
                Ok(name) => format!("{} {}", name.fmt_with_dot(), question.rtype),
                Err(_) => question.rtype.to_string(),
            },
            Err(_) => "a query without a question".into(),
        };
        WrongExample { query, kind: self.kind, rcode: rcode_name(self.rcode) }
    }
}

impl WrongExample {
    /// The example in words.
    pub fn text(&self) -> String {
        let WrongExample { query, kind, rcode } = self;
        let what = match kind {
            WrongKind::Rcode => rcode,
            WrongKind::Empty => "no record of the type",
            WrongKind::Rrset => "other records",
            WrongKind::Truncated => "truncated",
            WrongKind::Damaged => "records that cannot be read",
        };
        format!("{query}: {what}")
    }
}

/// Compares the answers of one thread with what is expected.
pub struct Judge {
    expectation: Arc<Expectation>,
    queries: Arc<Queries>,
    /// The data of the record that is being read.
    data: Vec<u8>,
    /// The first wrong answers.
    examples: Vec<Example>,
}

impl Judge {
    pub fn new(expectation: Arc<Expectation>, queries: Arc<Queries>) -> Self {
        // The data of a record, with two names that were compressed.
        let data = Vec::with_capacity(usize::from(u16::MAX) + 512);
        Judge { expectation, queries, data, examples: Vec::with_capacity(EXAMPLES_MAX) }
    }

    /// Compares the answer to the query at this position.
    pub fn judge(&mut self, position: u32, answer: Answer<'_>) -> Judged {
        let judged = match self.wrong(position, answer) {
            None => return Judged::Unlisted,
            Some(None) => return Judged::Right,
            Some(Some(kind)) => kind,
        };
        if self.examples.len() < EXAMPLES_MAX {
            self.examples.push(Example { position, rcode: answer.rcode, kind: judged });
        }
        Judged::Wrong(judged)
    }

    /// How the answer is wrong, if it is; none if nothing is expected of it.
    fn wrong(&mut self, position: u32, answer: Answer<'_>) -> Option<Option<WrongKind>> {
        let expected = match &*self.expectation {
            Expectation::NoerrorNonempty => return Some(answer.without_data()),
            Expectation::Listed(expected) => expected[self.queries.index(position as usize)],
        };
        let rtype = || Question::read(self.queries.message(position as usize)).map(|question| question.rtype);
        let found = |data| rtype().and_then(|rtype| Rrset::read(answer.message, rtype, data));
        let wanted = match expected {
            Expected::Unlisted => return None,
            Expected::Rcode(rcode) => return Some((answer.rcode != rcode).then_some(WrongKind::Rcode)),
            Expected::NoData => Rrset::default(),
            Expected::Records(rrset) => rrset,
        };
        Some(if answer.rcode != 0 {
            Some(WrongKind::Rcode)
        } else if answer.truncated {
            Some(WrongKind::Truncated)
        } else {
            match found(&mut self.data) {
                Err(_) => Some(WrongKind::Damaged),
                Ok(found) if found == wanted => None,
                Ok(Rrset { records: 0, .. }) => Some(WrongKind::Empty),
                Ok(_) => Some(WrongKind::Rrset),
            }
        })
    }

    /// The first wrong answers since the last call.
    pub fn take_examples(&mut self) -> Vec<WrongExample> {
        self.examples.drain(..).map(|example| example.show(&self.queries)).collect()
    }
}

impl Answer<'_> {
    /// How the answer is wrong, if it has to be NOERROR with records.
    fn without_data(self) -> Option<WrongKind> {
        if self.rcode != 0 {
            Some(WrongKind::Rcode)
        } else if self.truncated {
            Some(WrongKind::Truncated)
        } else {
            Header::read(self.message).map_or(true, |header| header.answers == 0).then_some(WrongKind::Empty)
        }
    }
}
