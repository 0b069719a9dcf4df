//! `transfer`: the transfer side of one or many secondaries, which keep nothing of what comes.
//!
//! The [`schedule`] decides which zone is asked for when and on which connection, without a socket or a clock, and
//! [`xfr`](dnsrig_dns::xfr) reads the messages. A [`worker`] thread does what the schedule orders, with
//! [`connections`], over QUIC with [`quic`], and, for `--on-notify`, with a receiver of [`notify`]. Results go to
//! [`counters`] and the [`row_buffer`], and from there to [`rows`], the [`summary`] and the [`report`].

mod arguments;
mod connections;
mod counters;
mod notify;
mod quic;
mod report;
mod row_buffer;
mod rows;
mod run;
mod schedule;
mod sinks;
mod soa;
mod summary;
mod worker;
pub mod zonefile;

pub use self::{arguments::Arguments, run::run};
