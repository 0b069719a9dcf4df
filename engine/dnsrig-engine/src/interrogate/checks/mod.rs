//! What is asked of a server: a file for each check, and the list of them.
//!
//! A check asks ([`Asking`]) and judges; its judgement is a function of what came, without a socket, tested beside it.

mod alpn;
mod axfr;
mod connections_at_once;
mod delayed_ack;
mod early_data;
mod idle_timeout;
mod interleaving;
mod ixfr;
mod keepalive;
mod many_transfers;
mod message_octets;
mod order;
mod pipelining;
mod resumption;
mod small_behind_large;
mod soa;
mod tiny_messages;
mod tls_record;
mod transfers_at_once;
mod tsig;
mod tsig_every;
mod zonemd;

use super::{
    answer::{Answer, Transport},
    asking::Asking,
    exchange::Exchange,
    line::Loss,
};

/// One thing that is asked.
pub struct Check {
    /// What the summary calls it.
    pub name: &'static str,
    /// Over what it is asked.
    pub transports: &'static [Transport],
    pub ask: fn(&Asking, Transport) -> Answer,
}

const TCP: &[Transport] = &[Transport::Tcp];
const TLS: &[Transport] = &[Transport::Xot];
const BOTH: &[Transport] = &[Transport::Tcp, Transport::Xot];

/// All checks, in the order in which they are asked and shown: those that press the server come last.
pub const CHECKS: &[Check] = &[
    axfr::CHECK,
    ixfr::CHECK,
    soa::CHECK,
    many_transfers::CHECK,
    pipelining::CHECK,
    order::CHECK,
    interleaving::CHECK,
    small_behind_large::CHECK,
    message_octets::CHECK,
    tiny_messages::CHECK,
    delayed_ack::CHECK,
    keepalive::CHECK,
    XOT_CHECK,
    alpn::CHECK,
    resumption::CHECK,
    early_data::CHECK,
    tls_record::CHECK,
    tsig::CHECK,
    tsig_every::CHECK,
    zonemd::CHECK,
    idle_timeout::CHECK,
    transfers_at_once::CHECK,
    connections_at_once::CHECK,
];

/// XoT as such is a transfer over it.
const XOT_CHECK: Check = Check { name: XOT, transports: TLS, ask: axfr::over_tls };

/// Whether there is any; without, what is asked over it cannot be told.
pub const XOT: &str = "xot";

/// There is no small zone to ask for.
fn no_small_zone() -> Answer {
    Answer::cannot_tell("none of the zones that were given could be transferred and is small (up to 16 kB)")
}

/// There is no zone that would be in the way of others.
fn no_large_zone() -> Answer {
    Answer::cannot_tell("this takes a small zone and one of at least 128 kB (and at most 8 MB) in several messages")
}

/// The connection did not come about.
fn no_connection(transport: Transport, loss: &Loss) -> Answer {
    Answer::cannot_tell(match transport {
        Transport::Tcp => format!("no connection: {loss}"),
        Transport::Xot => format!("no connection with TLS: {loss}"),
    })
}

/// What happened to the queries, as evidence.
fn with_counts(answer: Answer, exchange: &Exchange) -> Answer {
    let answer = answer
        .with("asked", exchange.transfers.len())
        .with("done", exchange.done())
        .with("refused", exchange.refused())
        .with("unanswered", exchange.open());
    match &exchange.loss {
        Some(loss) => answer.with("ended", loss.to_string()),
        None => answer,
    }
}

/// In milliseconds, with three decimals.
fn milliseconds(duration: std::time::Duration) -> f64 {
    duration.as_micros() as f64 / 1e3
}
