//! The engine of dnsrig: everything on the hot path.
//!
//! One module for each subcommand ([`generate`], [`watch`], [`probe`], [`change`], [`load`], [`transfer`], [`serve`], [`link`], [`enter`]) and
//! a few that they share. The engine knows nothing of experiments, of servers' configuration or of charts: it takes
//! arguments, prints JSON lines ([`events`]) and writes files of rows ([`rows`]). What decides (pacing, parsing,
//! accounting) is kept apart from what touches sockets, files and processes, and is tested in virtual time.

pub mod change;
pub mod churn;
pub mod clock;
pub mod datagrams;
pub mod enter;
pub mod events;
pub mod failure;
pub mod files;
pub mod generate;
pub mod key;
pub mod link;
pub mod load;
pub mod namespace;
pub mod poller;
pub mod probe;
pub mod rows;
pub mod serve;
pub mod stop;
pub mod stream;
pub mod target;
pub mod threads;
pub mod transfer;
pub mod tsig;
pub mod units;
pub mod watch;
pub mod writer;
