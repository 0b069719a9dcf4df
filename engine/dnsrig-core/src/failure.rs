//! How a subcommand fails: a sentence, a hint and an exit code.
//!
//! A [`Failure`] is built where something goes wrong. A module has an error type of its own only if a caller matches
//! it.

use std::io;

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

/// A system call that should always work failed.
pub fn system_failed(what: &str, error: impl Into<io::Error>) -> Failure {
    let hint = "check memory, and that open files are not at their limit (ulimit -n)";
    Failure::new(format!("cannot {what}: {}", error.into()), hint)
}
