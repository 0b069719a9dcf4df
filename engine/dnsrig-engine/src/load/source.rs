//! What is asked: queries prepared before, or those of a stream as they are read.

use std::sync::Arc;

use super::{captured::Captured, queries::Queries};
use crate::query_stream::Transport;

/// Where the queries of a thread come from.
pub enum Source {
    /// The same for all threads, again and again.
    Prepared(Arc<Queries>),
    /// Each once.
    Captured(Captured),
}

impl Source {
    /// The message of the query at this position; none if it has ended and is forgotten.
    #[inline]
    pub fn message(&self, place: u32) -> Option<&[u8]> {
        match self {
            Source::Prepared(queries) => Some(queries.message(place as usize)),
            Source::Captured(captured) => captured.message(place),
        }
    }

    /// How the query at this position travels, if it says so; it has not ended.
    #[inline]
    pub fn transport(&self, place: u32) -> Option<Transport> {
        match self {
            Source::Prepared(_) => None,
            Source::Captured(captured) => Some(captured.way(place).transport),
        }
    }

    /// Whether the query at this position is asked again over TCP if its answer is truncated; it has not ended.
    pub fn asks_again(&self, place: u32) -> bool {
        match self {
            Source::Prepared(_) => true,
            Source::Captured(captured) => captured.way(place).asks_again,
        }
    }

    /// Whether the query at this position is the first of a connection of its client; it has not ended.
    pub fn begins_connection(&self, place: u32) -> bool {
        match self {
            Source::Prepared(_) => false,
            Source::Captured(captured) => captured.way(place).begins_connection,
        }
    }

    /// The length of the longest message.
    pub fn bytes_max(&self) -> usize {
        match self {
            Source::Prepared(queries) => queries.bytes_max(),
            Source::Captured(captured) => captured.bytes_max(),
        }
    }

    /// A query that was due was answered, given up or never sent.
    #[inline]
    pub fn ended(&mut self, place: u32) {
        if let Source::Captured(captured) = self {
            captured.ended(place);
        }
    }
}

#[cfg(test)]
impl Source {
    /// For arrivals that do not look at it.
    pub fn none() -> Self {
        Source::Prepared(Arc::new(Queries::from_messages([vec![0; 12]])))
    }
}
