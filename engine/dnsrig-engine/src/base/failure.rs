//! How a subcommand fails: one sentence, one hint, one exit code.

use std::error::Error;

/// A typed error of a module that can say what to do next.
pub trait Advice: Error {
    /// What the reader should do next, as one sentence.
    fn hint(&self) -> String;

    /// The exit code of the process: 2 for bad input, 1 for everything else.
    fn exit_code(&self) -> u8 {
        1
    }
}

/// What `main` prints to standard error before it exits.
#[derive(Debug)]
pub struct Failure {
    /// What went wrong, naming the thing it went wrong with.
    pub sentence: String,
    /// What to do about it.
    pub hint: String,
    /// The exit code of the process.
    pub exit_code: u8,
}

impl<E: Advice> From<E> for Failure {
    fn from(error: E) -> Self {
        Failure { sentence: error.to_string(), hint: error.hint(), exit_code: error.exit_code() }
    }
}
