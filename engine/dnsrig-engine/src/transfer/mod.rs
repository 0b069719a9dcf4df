//! `transfer`: the transfer side of one or many secondaries, which keep nothing of what comes.
//!
//! What decides knows neither sockets nor clocks: [`xfr`](crate::dns::xfr) reads messages, [`schedule`] says which zone
//! is asked for when and on which connection. A [`worker`] thread carries that out with [`connections`]; with [`notify`] it
//! waits to be told. [`row_buffer`] and [`counters`] keep what is known in the end, [`batches`], [`rows`], [`summary`]
//! and [`report`] tell it.

pub mod arguments;
pub mod batches;
pub mod connections;
pub mod counters;
pub mod human_report;
mod lingering_close;
pub mod notify;
pub mod report;
pub mod row_buffer;
pub mod rows;
mod run;
pub mod schedule;
pub mod sinks;
pub mod soa;
pub mod summary;
pub mod worker;
pub mod zonefile;

use std::{io, net::SocketAddr};

pub use self::{arguments::Arguments, run::run};
use crate::base::{failure::Advice, stop::INTERRUPTED};

/// Zones could not be transferred, by a fault that is not the primary's.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    #[error("{0}")]
    Arguments(String),
    #[error("cannot make sockets to {0}: {1}")]
    Sockets(SocketAddr, io::Error),
    #[error("cannot wait for NOTIFY on port {0}: {1}")]
    Notify(u16, io::Error),
    #[error("interrupted during the transfer of the catalog: no zone was asked for")]
    Interrupted,
}

impl Advice for TransferError {
    fn hint(&self) -> String {
        match self {
            TransferError::Arguments(_) => "see `dnsrig transfer --help`".into(),
            TransferError::Sockets(server, _) => format!("see `ip route get {}`, and `ulimit -n`", server.ip()),
            TransferError::Notify(..) => {
                "run this as root on a host where no DNS server listens (ss -lpn), or choose another --notify-port"
                    .into()
            }
            TransferError::Interrupted => "start it again, or give the zones with --zone-list".into(),
        }
    }

    fn exit_code(&self) -> u8 {
        match self {
            TransferError::Arguments(_) => 2,
            TransferError::Interrupted => INTERRUPTED,
            TransferError::Sockets(..) | TransferError::Notify(..) => 1,
        }
    }
}
