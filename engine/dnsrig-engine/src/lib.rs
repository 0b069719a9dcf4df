//! The engine of dnsrig: everything on the hot path.
//!
//! One module for each subcommand: [`generate`], [`watch`], [`probe`], [`propagation`], [`change`], [`load`],
//! [`merge`], [`replay`], [`transfer`], [`interrogate`], [`serve`], [`link`], [`clock`], [`enter`]. They stand beside
//! each other: none uses another. What they share lies below them: in [`world`], [`query_stream`] and [`dataset`], and
//! in the crates [`dnsrig_net`], [`dnsrig_dns`] and [`dnsrig_core`], each of which uses only those after it. The engine
//! knows nothing of experiments, of servers' configuration or of charts: it takes arguments, prints JSON lines
//! ([`dnsrig_core::events`]) and writes files of rows ([`dnsrig_core::rows`]). What decides (pacing, parsing,
//! accounting) is kept apart from what touches sockets, files and processes, and is tested in virtual time.

pub mod change;
pub mod clock;
pub mod dataset;
pub mod enter;
pub mod generate;
pub mod interrogate;
pub mod link;
pub mod load;
pub mod merge;
pub mod probe;
pub mod propagation;
pub mod query_stream;
pub mod replay;
pub mod serve;
#[cfg(test)]
mod testing;
pub mod transfer;
pub mod watch;
pub mod world;
