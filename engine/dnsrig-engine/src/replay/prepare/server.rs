//! To which server the queries of a stream were sent: as told, or the busiest.

use std::{
    collections::{BTreeSet, HashMap},
    net::Ipv6Addr,
};

use serde::Serialize;

use crate::replay::message::Message;

/// The busiest server is chosen from so many queries, the first ones.
const QUERIES: usize = 100_000;

/// Or from so many bytes of them.
const BYTES: usize = 16 << 20;

/// A server that queries were sent to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Seen {
    pub address: String,
    /// Among the first ones.
    pub queries: u64,
}

/// Whose queries are kept.
pub enum Servers {
    /// These addresses'.
    Known(BTreeSet<Ipv6Addr>),
    /// Not decided yet: queries wait.
    Choosing(Waiting),
}

/// The queries that have come so far.
#[derive(Default)]
pub struct Waiting {
    queries: Vec<(Message<'static>, usize)>,
    bytes: Vec<u8>,
}

impl Waiting {
    /// Keeps a query. Whether there are enough to choose.
    pub fn push(&mut self, query: Message) -> bool {
        self.bytes.extend_from_slice(query.bytes);
        self.queries.push((Message { bytes: &[], ..query }, query.bytes.len()));
        self.queries.len() >= QUERIES || self.bytes.len() >= BYTES
    }

    /// The servers, the busiest first.
    pub fn servers(&self) -> Vec<(Ipv6Addr, u64)> {
        let mut counts = HashMap::new();
        for (query, _) in &self.queries {
            *counts.entry(query.destination).or_insert(0) += 1;
        }
        let mut found: Vec<_> = counts.into_iter().collect();
        found.sort_by_key(|&(address, queries)| (std::cmp::Reverse(queries), address));
        found
    }

    /// The queries, in the order in which they came.
    pub fn queries(&self) -> impl Iterator<Item = Message<'_>> {
        self.queries.iter().scan(0, |at, (query, length)| {
            let bytes = &self.bytes[*at..*at + length];
            *at += length;
            Some(Message { bytes, ..*query })
        })
    }
}

/// As people write it: IPv4 where it is mapped.
pub fn written(address: Ipv6Addr) -> String {
    address.to_canonical().to_string()
}
