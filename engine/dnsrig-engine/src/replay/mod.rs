//! `replay`: traffic as clients send it, from captures.
//!
//! - `replay prepare` is [`prepare`]. It reads captures ([`capture`]), finds in their packets what hosts sent
//!   ([`packet`]), decides which messages are queries to the server ([`message`]), and writes a
//!   [stream](crate::query_stream).
//! - `replay describe` is [`describe`]: what a stream contains.
//! - `replay play` is [`load::play`](crate::load::play): it sends the queries of a stream with the threads, the
//!   transports and the counting of `load`. Nothing of it is in this folder.
//! - `replay compare` is [`compare`]: how a stream that was replayed arrived.

pub mod capture;
pub mod compare;
pub mod describe;
pub mod message;
pub mod packet;
pub mod prepare;

use dnsrig_core::failure::Failure;

/// Arguments that do not go together.
fn bad_arguments(sentence: impl Into<String>) -> Failure {
    Failure::bad_input(sentence, "see the `--help` of this step, such as `dnsrig replay prepare --help`")
}
