//! All checks: a file for each, and the list of them.

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
mod message_bytes;
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

use super::check::{Check, TLS, XOT};

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
    message_bytes::CHECK,
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
