//! `replay`: traffic as clients send it, from captures.
//!
//! [`capture`] reads files of captures, [`packet`] finds in their packets what hosts sent, [`prepare`] decides what is
//! a query to the server, sorts, numbers the clients and writes a [stream](crate::query_stream), [`describe`] says
//! what one holds, and [`compare`] how one that was replayed arrived. Streams are sent by `load`, which has what
//! sending takes.

pub mod capture;
pub mod compare;
pub mod describe;
pub mod message;
pub mod packet;
pub mod prepare;

use crate::base::failure::Failure;

/// Arguments that do not go together.
fn bad_arguments(sentence: impl Into<String>) -> Failure {
    Failure::bad_input(sentence, "see the `--help` of this step, such as `dnsrig replay prepare --help`")
}
