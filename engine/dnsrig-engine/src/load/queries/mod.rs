//! The queries of `load`, in wire format, prepared once, so that the hot path copies bytes and patches the id.
//!
//! They come from a [`mod@file`] in dnsperf's format, or are [`generated`] from a list of zones, as the [`arguments`]
//! say.

pub mod arguments;
pub mod file;
pub mod generated;
pub mod text;

use std::{io, path::Path};

use dnsrig_core::failure::Failure;
use dnsrig_dns::{header::HEADER_BYTES, query::Options};
use domain::base::iana::{Class, Rtype};

pub use self::arguments::QueryArguments;

/// The highest number of queries: with names of the usual length, three quarters of a gigabyte.
pub const QUERIES_MAX: usize = 1 << 24;

/// The highest number of bytes of messages, so that a position among them fits 32 bits.
const BYTES_MAX: usize = u32::MAX as usize;

/// The failure to read a file that queries are made of.
fn cannot_read(path: &Path, error: &io::Error) -> Failure {
    Failure::bad_input(
        format!("cannot read {}: {error}", path.display()),
        "give --queries a readable file, or - for standard input",
    )
}

/// Queries in the order in which they are asked; there is at least one.
#[derive(Debug, PartialEq, Eq)]
pub struct Queries {
    /// All messages, one behind the other, each with id 0.
    messages: Box<[u8]>,
    /// Where each message begins, and where the last one ends.
    offsets: Box<[u32]>,
    /// Which message is asked at each position.
    order: Box<[u32]>,
    bytes_max: usize,
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
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// How many different messages there are, and their bytes together.
    pub fn distinct(&self) -> (usize, usize) {
        (self.offsets.len() - 1, self.messages.len())
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
            queries.bytes_max = queries.bytes_max.max(message.len());
        }
        queries.finish_in_order().expect("there is at least one message")
    }
}

/// Queries being prepared.
struct Builder {
    header: [u8; HEADER_BYTES],
    opt: Vec<u8>,
    messages: Vec<u8>,
    offsets: Vec<u32>,
    bytes_max: usize,
}

impl Builder {
    fn new(options: Options) -> Self {
        Builder { header: options.header(), opt: options.opt(), messages: Vec::new(), offsets: vec![0], bytes_max: 0 }
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
        self.messages.extend_from_slice(&Class::IN.to_int().to_be_bytes());
        self.messages.extend_from_slice(&self.opt);
        let end = self.messages.len();
        if index == QUERIES_MAX || end > BYTES_MAX {
            return Err(format!("more than {QUERIES_MAX} queries, or 4 GiB of them, are not prepared"));
        }
        self.offsets.push(end as u32);
        self.bytes_max = self.bytes_max.max(end - start);
        Ok(index as u32)
    }

    /// The queries in a given order.
    fn finish(self, order: Vec<u32>) -> Queries {
        Queries {
            messages: self.messages.into(),
            offsets: self.offsets.into(),
            order: order.into(),
            bytes_max: self.bytes_max,
        }
    }

    /// The queries in the order in which they were added. `None` if there are no queries.
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
