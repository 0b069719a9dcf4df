//! The stream file: queries with their due times and clients, for a replay. docs/reference/stream.md describes it.
//!
//! [`StreamWriter`] makes one, which appears whole or not at all; [`StreamReader`] reads one from front to back in
//! bounded memory, whatever its size, and believes nothing of what it reads.

pub mod cache;
mod layout;
mod reader;
mod writer;

pub use self::layout::MAGIC;
pub use self::{
    layout::{Header, KNOWN_FLAGS, NEW_CONNECTION, RETRANSMISSION, Record, Transport},
    reader::StreamReader,
    writer::StreamWriter,
};

use std::{fmt::Display, io, path::Path};

use dnsrig_core::failure::Failure;

/// The hint if a file is damaged, or is no stream.
const MAKE_AGAIN: &str = "make it again with `dnsrig replay prepare`";

/// A failure to read the stream at `path`.
fn unreadable(path: &Path, error: io::Error) -> Failure {
    let hint = "give the path of a stream that you may read. It must be a file, not a pipe";
    Failure::bad_input(format!("cannot read {}: {error}", path.display()), hint)
}

/// A failure to write the stream at `path`.
fn unwritable(path: &Path, error: io::Error) -> Failure {
    let hint = "give a path in an existing folder that you may write to, with free space (df)";
    Failure::new(format!("cannot write {}: {error}", path.display()), hint)
}

/// A failure because the file at `path` is something else.
fn not_a_stream(path: &Path, reason: &str) -> Failure {
    let hint = "make a stream from a capture with `dnsrig replay prepare`";
    Failure::bad_input(format!("{} is not a stream: {reason}", path.display()), hint)
}

/// A failure because of what is at byte `offset` of the file.
fn damaged(path: &Path, offset: u64, reason: impl Display) -> Failure {
    let sentence = format!("{}, byte {offset}: {reason}", path.display());
    Failure::bad_input(sentence, format!("copy it again, or {MAKE_AGAIN}"))
}

#[cfg(test)]
mod stream_tests;
