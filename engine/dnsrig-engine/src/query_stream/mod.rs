//! The stream file: queries with their due times and clients, for a replay. docs/reference/stream.md describes it.
//!
//! [`StreamWriter`] makes one, which appears whole or not at all; [`StreamReader`] reads one from front to back in
//! bounded memory, whatever its size, and believes nothing of what it reads.

pub mod cache;
mod error;
mod layout;
mod reader;
mod writer;

pub use self::layout::MAGIC;
pub use self::{
    error::StreamError,
    layout::{Header, KNOWN_FLAGS, NEW_CONNECTION, RETRANSMISSION, Record, Transport},
    reader::StreamReader,
    writer::StreamWriter,
};

#[cfg(test)]
mod stream_tests;
