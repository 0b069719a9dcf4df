//! To which server the queries of a stream were sent: as told, or the busiest.

use std::{
    collections::{BTreeSet, HashMap},
    net::Ipv6Addr,
};

use serde::Serialize;

use super::sort::ANSWER;
use crate::replay::message::Message;

/// The busiest server is chosen from this number of queries, the first ones.
const QUERIES: usize = 100_000;

/// Or from this number of bytes.
const BYTES: usize = 16 << 20;

/// A server that queries were sent to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Seen {
    pub address: String,
    /// Among the first ones.
    pub queries: u64,
}

/// The servers whose queries are kept.
pub enum Servers {
    /// Servers with these addresses.
    Known(BTreeSet<Ipv6Addr>),
    /// Not decided yet: queries wait.
    Choosing(Waiting),
}

/// The queries that have come so far, and answers, each with the flags of its entry.
#[derive(Default)]
pub struct Waiting {
    messages: Vec<(Message<'static>, usize, u8)>,
    bytes: Vec<u8>,
    queries: usize,
}

impl Waiting {
    /// Keeps a query or an answer. Whether there are enough queries to choose.
    pub fn push(&mut self, message: Message, flags: u8) -> bool {
        self.bytes.extend_from_slice(message.bytes);
        self.messages.push((Message { bytes: &[], ..message }, message.bytes.len(), flags));
        self.queries += usize::from(flags & ANSWER == 0);
        self.queries >= QUERIES || self.bytes.len() >= BYTES
    }

    /// The servers, the busiest first.
    pub fn servers(&self) -> Vec<(Ipv6Addr, u64)> {
        let mut counts = HashMap::new();
        for (query, ..) in self.messages.iter().filter(|(_, _, flags)| flags & ANSWER == 0) {
            *counts.entry(query.destination).or_insert(0) += 1;
        }
        let mut found: Vec<_> = counts.into_iter().collect();
        found.sort_by_key(|&(address, queries)| (std::cmp::Reverse(queries), address));
        found
    }

    /// The queries and answers, in the order in which they came.
    pub fn messages(&self) -> impl Iterator<Item = (Message<'_>, u8)> {
        self.messages.iter().scan(0, |at, (message, length, flags)| {
            let bytes = &self.bytes[*at..*at + length];
            *at += length;
            Some((Message { bytes, ..*message }, *flags))
        })
    }
}

/// Writes an address for people: as IPv4 if it is mapped.
pub fn written(address: Ipv6Addr) -> String {
    address.to_canonical().to_string()
}
