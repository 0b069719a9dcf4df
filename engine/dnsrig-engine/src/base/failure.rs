//! How a subcommand fails: a sentence, a hint and an exit code.
//!
//! A [`Failure`] is built where something goes wrong. A module has an error type of its own only if a caller matches
//! it; [`Advice`] then turns it into a failure.

use std::error::Error;

/// What `main` prints to standard error before it exits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{sentence}")]
pub struct Failure {
    /// What went wrong, with the name of the file, address or option.
    pub sentence: String,
    /// What to do about it.
    pub hint: String,
    /// The exit code of the process.
    pub exit_code: u8,
}

impl Failure {
    /// A failure while the subcommand ran. The exit code is 1.
    pub fn new(sentence: impl Into<String>, hint: impl Into<String>) -> Self {
        Failure { sentence: sentence.into(), hint: hint.into(), exit_code: 1 }
    }

    /// An argument or an input file that cannot be used. The exit code is 2.
    pub fn bad_input(sentence: impl Into<String>, hint: impl Into<String>) -> Self {
        Failure { exit_code: 2, ..Failure::new(sentence, hint) }
    }
}

/// An error type that callers match, with what a user should do about it.
pub trait Advice: Error {
    /// What the reader should do next, as one sentence.
    fn hint(&self) -> String;

    /// The exit code of the process: 2 for bad input, 1 for everything else.
    fn exit_code(&self) -> u8 {
        1
    }
}

impl<E: Advice> From<E> for Failure {
    fn from(error: E) -> Self {
        Failure { sentence: error.to_string(), hint: error.hint(), exit_code: error.exit_code() }
    }
}
