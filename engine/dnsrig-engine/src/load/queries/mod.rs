//! The queries of `load`, in wire format, prepared once, so that the hot path copies bytes and patches the id.
//!
//! They come from a [`mod@file`] in one of several [`format`](mod@format)s, or are [`generated`] from a list of zones,
//! as the [`arguments`] say. Those that are made have the flags and the [EDNS](client_edns) that the arguments name.

pub mod arguments;
mod client_edns;
mod described;
pub mod file;
pub mod format;
mod generated;
pub mod text;

use std::{io, path::Path};

use dnsrig_core::{failure::Failure, random::Random};
use dnsrig_dns::{
    edns,
    header::{HEADER_BYTES, Header, RD},
};
use domain::base::iana::{Class, Rtype};

pub use self::{arguments::QueryArguments, described::Described};
use self::{
    client_edns::{Choice, ClientEdns},
    format::Format,
};

/// Makes the random numbers of EDNS differ from others with the same seed.
const PURPOSE_EDNS: u64 = 21;

/// The highest number of queries: with names of the usual length, three quarters of a gigabyte.
pub const QUERIES_MAX: usize = 1 << 24;

/// The highest number of bytes of messages, so that a position among them fits 32 bits.
const BYTES_MAX: usize = u32::MAX as usize;

/// Why a query was not added.
#[derive(Debug, thiserror::Error)]
enum NotAdded {
    /// There is no room for it, nor for any other.
    #[error("too many queries: more than {QUERIES_MAX}, or 4 GiB of them")]
    TooMany,
    #[error("{0}")]
    Bad(String),
}

impl From<String> for NotAdded {
    fn from(reason: String) -> Self {
        NotAdded::Bad(reason)
    }
}

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
    /// What they were read as, if they come from a file.
    format: Option<Format>,
    skipped: Skipped,
}

/// The lines of a file that were no queries, and were left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    pub count: u64,
    /// The first of them, each with its place and the reason.
    pub first: Vec<String>,
}

/// The number of skipped lines that are reported one by one.
const SKIPPED_SHOWN_MAX: usize = 10;

impl Skipped {
    fn add(&mut self, place: impl FnOnce() -> String) {
        self.count += 1;
        if self.first.len() < SKIPPED_SHOWN_MAX {
            self.first.push(place());
        }
    }
}

impl Queries {
    /// The number of positions in the order.
    #[allow(clippy::len_without_is_empty)] // They are never empty.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// The message at a position of the order, which begins anew after the last: the id is 0.
    pub fn message(&self, at: usize) -> &[u8] {
        self.different(self.index(at))
    }

    /// The index of the message at a position of the order: which of the different ones it is.
    #[inline]
    pub fn index(&self, at: usize) -> usize {
        // A division is the most expensive thing here, and most callers count up to the end only.
        let at = if at < self.order.len() { at } else { at % self.order.len() };
        self.order[at] as usize
    }

    /// One of the different messages.
    #[inline]
    pub fn different(&self, index: usize) -> &[u8] {
        &self.messages[self.offsets[index] as usize..self.offsets[index + 1] as usize]
    }

    /// The length of the longest message.
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// The lines that were left out.
    pub fn skipped(&self) -> &Skipped {
        &self.skipped
    }

    /// Whether the messages come complete from a file, each with flags and EDNS of its own.
    pub fn are_complete(&self) -> bool {
        self.format.is_some_and(|format| format != Format::Text)
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
        let mut queries = Builder::new(Made::default());
        for message in messages {
            queries.push_message(&message).unwrap();
        }
        queries.finish_in_order().expect("there is at least one message")
    }
}

/// What all made queries have in common, beside their questions.
#[derive(Clone, Debug)]
pub struct Made {
    /// Ask for recursion: RD.
    pub recursion_desired: bool,
    pub edns: ClientEdns,
    /// Another seed gives other draws for EDNS.
    pub seed: u64,
}

impl Default for Made {
    /// Neither RD nor EDNS.
    fn default() -> Self {
        Made { recursion_desired: false, edns: ClientEdns::where_lines_say(edns::UDP_PAYLOAD_BYTES), seed: 1 }
    }
}

/// What a line demands of the EDNS of its query (the flags of kxdpgun).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineFlag {
    /// As all others have it.
    Absent,
    /// An OPT record without DO.
    Edns,
    /// An OPT record with DO.
    DnssecOk,
}

/// Queries being prepared.
struct Builder {
    header: [u8; HEADER_BYTES],
    header_with_opt: [u8; HEADER_BYTES],
    edns: ClientEdns,
    random: Random,
    messages: Vec<u8>,
    offsets: Vec<u32>,
    bytes_max: usize,
}

impl Builder {
    fn new(made: Made) -> Self {
        let flags = if made.recursion_desired { RD } else { 0 };
        let header = Header { flags, questions: 1, ..Header::default() };
        Builder {
            header: header.to_bytes(),
            header_with_opt: Header { additional: 1, ..header }.to_bytes(),
            edns: made.edns,
            random: Random::new(made.seed, PURPOSE_EDNS),
            messages: Vec::new(),
            offsets: vec![0],
            bytes_max: 0,
        }
    }

    /// Draws the EDNS of the next query; `None` if it has none.
    fn choose(&mut self, flag: LineFlag) -> Option<Choice> {
        if flag == LineFlag::Absent && !self.edns.everywhere {
            return None;
        }
        let drawn = self.edns.draw(&mut self.random);
        Some(match flag {
            LineFlag::Absent => drawn,
            LineFlag::Edns => Choice { dnssec_ok: false, ..drawn },
            LineFlag::DnssecOk => Choice { dnssec_ok: true, ..drawn },
        })
    }

    /// Adds the message that asks for `qtype` of the name that `write_name` appends in wire format; gives its index.
    /// After an error nothing was added.
    fn push(
        &mut self,
        qtype: Rtype,
        edns: Option<Choice>,
        write_name: impl FnOnce(&mut Vec<u8>) -> Result<(), String>,
    ) -> Result<u32, NotAdded> {
        let start = self.messages.len();
        self.messages.extend_from_slice(if edns.is_some() { &self.header_with_opt } else { &self.header });
        if let Err(reason) = write_name(&mut self.messages) {
            self.messages.truncate(start);
            return Err(reason.into());
        }
        self.messages.extend_from_slice(&qtype.to_int().to_be_bytes());
        self.messages.extend_from_slice(&Class::IN.to_int().to_be_bytes());
        if let Some(choice) = edns {
            self.edns.append(choice, start, &mut self.messages);
        }
        self.end_message(start)
    }

    /// Adds a complete message, with an id of 0.
    fn push_message(&mut self, message: &[u8]) -> Result<u32, NotAdded> {
        let start = self.messages.len();
        self.messages.extend_from_slice(message);
        self.messages[start..].iter_mut().take(2).for_each(|byte| *byte = 0);
        self.end_message(start)
    }

    fn end_message(&mut self, start: usize) -> Result<u32, NotAdded> {
        let (index, end) = (self.offsets.len() - 1, self.messages.len());
        if index == QUERIES_MAX || end > BYTES_MAX {
            self.messages.truncate(start);
            return Err(NotAdded::TooMany);
        }
        self.offsets.push(end as u32);
        self.bytes_max = self.bytes_max.max(end - start);
        Ok(index as u32)
    }

    /// The number of messages.
    fn count(&self) -> u32 {
        self.offsets.len() as u32 - 1
    }

    /// The queries in a given order.
    fn finish(self, order: Vec<u32>) -> Queries {
        Queries {
            messages: self.messages.into(),
            offsets: self.offsets.into(),
            order: order.into(),
            bytes_max: self.bytes_max,
            format: None,
            skipped: Skipped::default(),
        }
    }

    /// The queries in the order in which they were added. `None` if there are no queries.
    fn finish_in_order(self) -> Option<Queries> {
        let count = self.count();
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
