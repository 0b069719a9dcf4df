//! What answers are expected (`--expect`), and how a wrong one differs from that.
//!
//! A wrong answer is no answer to what was asked, however fast it comes: it is counted by its kind, beside the answers
//! and not among them, and its query is recorded at the limit, as if nothing had come.
//!
//! What a [`mod@file`] expects is found before the first query is sent, for each of the different queries. To [judge]
//! an answer takes a look into that table, and no memory but a buffer that is used again.

pub mod file;
pub mod judge;

use std::{ffi::OsString, path::PathBuf};

use dnsrig_core::failure::Failure;

use self::judge::Expectation;
use super::queries::Queries;

/// The word that stands for a file.
const NOERROR_NONEMPTY: &str = "noerror-nonempty";

/// The argument of `--expect`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Each answer is NOERROR and has a record in its answer section.
    NoerrorNonempty,
    File(PathBuf),
}

impl From<OsString> for Expect {
    fn from(text: OsString) -> Self {
        if text == NOERROR_NONEMPTY { Expect::NoerrorNonempty } else { Expect::File(text.into()) }
    }
}

impl Expect {
    /// Finds out what is expected of the answers to `queries`.
    pub fn read(&self, queries: &Queries) -> Result<Expectation, Failure> {
        match self {
            Expect::NoerrorNonempty => Ok(Expectation::NoerrorNonempty),
            Expect::File(path) => file::read(path, queries).map(Expectation::Listed),
        }
    }
}

#[cfg(test)]
#[path = "expect_tests.rs"]
mod tests;
