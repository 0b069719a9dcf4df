//! A check: what is asked of a server, and what its answers have in common.
//!
//! A check asks ([`Asking`]) and judges; its judgement is a function of what came, without a socket, tested beside it.

use super::{
    answer::{Answer, Transport},
    asking::Asking,
    connection::CloseReason,
    exchange::Exchange,
};

/// One thing that is asked.
pub struct Check {
    /// What the summary calls it.
    pub name: &'static str,
    /// Over what it is asked.
    pub transports: &'static [Transport],
    pub ask: fn(&Asking, Transport) -> Answer,
}

pub const TCP: &[Transport] = &[Transport::Tcp];
pub const TLS: &[Transport] = &[Transport::Xot];
pub const BOTH: &[Transport] = &[Transport::Tcp, Transport::Xot];

/// Whether there is any; without, what is asked over it cannot be told.
pub const XOT: &str = "xot";

/// There is no small zone to ask for.
pub fn no_small_zone() -> Answer {
    Answer::cannot_tell("none of the zones that were given could be transferred and is small (up to 16 kB)")
}

/// There is no zone that would be in the way of others.
pub fn no_large_zone() -> Answer {
    Answer::cannot_tell("this takes a small zone and one of at least 128 kB (and at most 8 MB) in several messages")
}

/// The connection did not come about.
pub fn no_connection(transport: Transport, close_reason: &CloseReason) -> Answer {
    Answer::cannot_tell(match transport {
        Transport::Tcp => format!("no connection: {close_reason}"),
        Transport::Xot => format!("no connection with TLS: {close_reason}"),
    })
}

/// What happened to the queries, as evidence.
pub fn with_counts(answer: Answer, exchange: &Exchange) -> Answer {
    let answer = answer
        .with("asked", exchange.transfers.len())
        .with("done", exchange.done())
        .with("refused", exchange.refused())
        .with("unanswered", exchange.open());
    match &exchange.close_reason {
        Some(close_reason) => answer.with("ended", close_reason.to_string()),
        None => answer,
    }
}

/// In milliseconds, with three decimals.
pub fn milliseconds(duration: std::time::Duration) -> f64 {
    duration.as_micros() as f64 / 1e3
}
