//! The failures that all servers have.

use std::io;

use crate::base::failure::Failure;

/// Arguments that do not go together.
pub fn bad_arguments(sentence: &str) -> Failure {
    Failure::bad_input(sentence, "see the `--help` of this server, such as `dnsrig serve zones --help`")
}

/// A system call that should always work failed.
pub fn system_failed(what: &str, error: impl Into<io::Error>) -> Failure {
    let hint = "check memory, and that open files are not at their limit (ulimit -n)";
    Failure::new(format!("cannot {what}: {}", error.into()), hint)
}

/// A thread cannot answer any longer.
pub fn answering_failed(error: io::Error) -> Failure {
    system_failed("go on answering", error)
}
