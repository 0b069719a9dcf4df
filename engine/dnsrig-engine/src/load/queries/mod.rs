//! What `load` asks: queries in wire format, prepared once, so that the hot path copies octets and patches the id.
//!
//! They come from a [`mod@file`] in dnsperf's format, or are [`generated`] from a list of zones. [`arguments`] is what the
//! command line says about them, [`options`] what all of them have in common.

pub mod arguments;
mod dataset;
mod error;
pub mod file;
pub mod generated;
pub mod options;
pub mod popularity;
pub mod text;

use domain::base::iana::Rtype;

pub use self::{arguments::QueryArguments, error::QueryError};
use options::Options;

/// At most so many queries: with names of the usual length, three quarters of a gigabyte.
pub const QUERIES_MAX: usize = 1 << 24;

/// At most so many octets of messages, so that a place among them fits 32 bits.
const OCTETS_MAX: usize = u32::MAX as usize;

/// The header of a message (RFC 1035 §4.1.1).
const HEADER_OCTETS: usize = 12;

/// QTYPE and QCLASS, behind the name of a question.
const TAIL_OCTETS: usize = 4;

/// QCLASS IN.
const CLASS_IN: [u8; 2] = [0, 1];

/// Queries in the order in which they are asked; there is at least one.
#[derive(Debug, PartialEq, Eq)]
pub struct Queries {
    /// All messages, one behind the other, each with id 0.
    messages: Box<[u8]>,
    /// Where each message begins, and where the last one ends.
    offsets: Box<[u32]>,
    /// Which message is asked at each position.
    order: Box<[u32]>,
    octets_max: usize,
}

impl Queries {
    /// The number of positions in the order.
    #[allow(clippy::len_without_is_empty)] // They are never empty.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// The message at a position of the order, which begins anew after the last: the id is 0.
    pub fn message(&self, at: usize) -> &[u8] {
        // A division is the most expensive thing here, and most callers count up to the end only.
        let at = if at < self.order.len() { at } else { at % self.order.len() };
        let index = self.order[at] as usize;
        &self.messages[self.offsets[index] as usize..self.offsets[index + 1] as usize]
    }

    /// The length of the longest message.
    pub fn octets_max(&self) -> usize {
        self.octets_max
    }

    /// How many different messages there are, and their octets together.
    pub fn distinct(&self) -> (usize, usize) {
        (self.offsets.len() - 1, self.messages.len())
    }

    /// The question section of a prepared message: its name, not compressed, type and class; OPT and TSIG lie behind.
    ///
    /// Of octets that are no such message it is what there is of it, or nothing.
    pub fn question_octets(message: &[u8]) -> &[u8] {
        let rest = message.get(HEADER_OCTETS..).unwrap_or_default();
        let mut end = 0;
        while let Some(&length @ 1..) = rest.get(end) {
            end += 1 + usize::from(length);
        }
        &rest[..rest.len().min(end + 1 + TAIL_OCTETS)]
    }
}

#[cfg(test)]
impl Queries {
    /// These messages, in this order.
    pub fn from_messages(messages: impl IntoIterator<Item = Vec<u8>>) -> Self {
        let mut queries = Builder::new(Options { recursion_desired: false, edns: None });
        for message in messages {
            queries.messages.extend_from_slice(&message);
            queries.offsets.push(queries.messages.len() as u32);
            queries.octets_max = queries.octets_max.max(message.len());
        }
        queries.finish_in_order().expect("there is at least one message")
    }
}

/// Queries being prepared.
struct Builder {
    header: [u8; HEADER_OCTETS],
    opt: Vec<u8>,
    messages: Vec<u8>,
    offsets: Vec<u32>,
    octets_max: usize,
}

impl Builder {
    fn new(options: Options) -> Self {
        Builder { header: options.header(), opt: options.opt(), messages: Vec::new(), offsets: vec![0], octets_max: 0 }
    }

    /// Adds the message that asks for `qtype` of the name that `write_name` appends in wire format; gives its index.
    fn push(
        &mut self,
        qtype: Rtype,
        write_name: impl FnOnce(&mut Vec<u8>) -> Result<(), String>,
    ) -> Result<u32, String> {
        let (index, start) = (self.offsets.len() - 1, self.messages.len());
        self.messages.extend_from_slice(&self.header);
        write_name(&mut self.messages)?;
        self.messages.extend_from_slice(&qtype.to_int().to_be_bytes());
        self.messages.extend_from_slice(&CLASS_IN);
        self.messages.extend_from_slice(&self.opt);
        let end = self.messages.len();
        if index == QUERIES_MAX || end > OCTETS_MAX {
            return Err(format!("more than {QUERIES_MAX} queries, or 4 GiB of them, are not prepared"));
        }
        self.offsets.push(end as u32);
        self.octets_max = self.octets_max.max(end - start);
        Ok(index as u32)
    }

    /// The queries in a given order.
    fn finish(self, order: Vec<u32>) -> Queries {
        Queries {
            messages: self.messages.into(),
            offsets: self.offsets.into(),
            order: order.into(),
            octets_max: self.octets_max,
        }
    }

    /// The queries in the order in which they were added; none if there were none.
    fn finish_in_order(self) -> Option<Queries> {
        let count = self.offsets.len() as u32 - 1;
        (count > 0).then(|| self.finish((0..count).collect()))
    }
}

/// What the queries ask, as text, in order.
#[cfg(test)]
fn asked(queries: &Queries) -> Vec<String> {
    let question = |at| {
        let message = domain::base::Message::from_octets(queries.message(at)).unwrap();
        let question = message.sole_question().unwrap();
        assert_eq!(question.qclass(), domain::base::iana::Class::IN);
        // The library writes the root as nothing.
        let name = Some(question.qname().to_string()).filter(|name| !name.is_empty());
        format!("{} {}", name.as_deref().unwrap_or("."), question.qtype())
    };
    (0..queries.len()).map(question).collect()
}
