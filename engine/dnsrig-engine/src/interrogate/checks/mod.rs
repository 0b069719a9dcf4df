//! All checks, in files by what they look at, and the list of them. A check asks a server and judges what came; its
//! judgement is a function without a socket, tested beside it.

mod connections;
mod messages;
mod quic;
mod several_transfers;
mod tls;
mod transfers;
mod tsig;

use super::{
    answer::{Answer, CannotTell, Transport},
    interrogation::Interrogation,
};

/// One thing that is asked of a server.
pub struct Check {
    /// Its name in the summary.
    pub name: &'static str,
    /// The transports over which it is asked.
    pub transports: &'static [Transport],
    pub ask: Ask,
}

type Ask = fn(&Interrogation, Transport) -> Result<Answer, CannotTell>;

const TCP: &[Transport] = &[Transport::Tcp];
const XOT: &[Transport] = &[Transport::Xot];
const XOQ: &[Transport] = &[Transport::Xoq];
const BOTH: &[Transport] = &[Transport::Tcp, Transport::Xot];

/// The check of transfers over TLS as such. Without them, what is asked over TLS has no answer.
pub const XOT_CHECK: &str = "xot";

/// All checks, in the order in which they are asked and shown: those that press the server come last.
pub const CHECKS: &[Check] = &[
    check("axfr", TCP, transfers::axfr),
    check("ixfr", TCP, transfers::ixfr),
    check("soa-over-tcp", TCP, transfers::soa),
    check("many-transfers-on-one-connection", BOTH, several_transfers::many_transfers),
    check("pipelining", BOTH, several_transfers::pipelining),
    check("order", BOTH, several_transfers::order),
    check("interleaving", BOTH, several_transfers::interleaving),
    check("small-behind-large", BOTH, several_transfers::small_behind_large),
    check("message-bytes", TCP, messages::message_bytes),
    check("messages-for-a-tiny-zone", TCP, messages::messages_for_a_tiny_zone),
    check("delayed-ack-pause", TCP, messages::delayed_ack_pause),
    check("keepalive", BOTH, connections::keepalive),
    check(XOT_CHECK, XOT, tls::xot),
    check("alpn-dot-required", XOT, tls::alpn_dot_required),
    check("tls-resumption", XOT, tls::tls_resumption),
    check("tls-early-data", XOT, tls::tls_early_data),
    check("several-queries-in-one-tls-record", XOT, tls::several_queries_in_one_tls_record),
    check("xoq", XOQ, quic::xoq),
    check("tsig", TCP, tsig::tsig),
    check("tsig-every", TCP, tsig::tsig_every),
    check("zonemd", TCP, transfers::zonemd),
    check("idle-timeout", BOTH, connections::idle_timeout),
    check("transfers-at-once-limit", TCP, connections::transfers_at_once),
    check("connections-at-once-limit", TCP, connections::connections_at_once),
];

const fn check(name: &'static str, transports: &'static [Transport], ask: Ask) -> Check {
    Check { name, transports, ask }
}
