//! The failures that all servers have.

use std::io;

use dnsrig_core::failure::{Failure, system_failed};

/// Arguments that do not go together.
pub fn bad_arguments(sentence: &str) -> Failure {
    Failure::bad_input(sentence, "see the `--help` of this server, such as `dnsrig serve zones --help`")
}

/// A thread cannot answer any longer.
pub fn answering_failed(error: io::Error) -> Failure {
    system_failed("go on answering", error)
}
