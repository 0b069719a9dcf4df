//! `load`: queries against a server, and what becomes of them.
//!
//! What decides is in cores that know neither sockets nor clocks: [`arrivals`] says which queries fall due and when,
//! [`send_schedule`] what a thread does next, [`in_flight`] which queries are outstanding and what a message means,
//! [`client_queries`] which message ids may be used, [`lateness`] what of a latency may be our own, [`interval_stats`]
//! counts and times, and [`ramp`] searches for the highest rate that holds. A [`worker`] thread drives them over a
//! [`transport`], [`udp`] or [`tcp`]. A [`team`] is all threads; [`collect`] puts together what they counted,
//! [`record`] writes files, and [`report`] prints events and text.
//!
//! [`run`](mod@run) decides which periods there are. [`segment`] says how generators on several machines share one
//! schedule, and [`led`] how they agree on its periods. [`play`] sends captured queries instead of prepared ones; both
//! are a [`source`]. A query goes from arrivals over a transport to the table of queries in flight as an
//! [`arrivals::Due`].

mod answer;
mod arguments;
mod arrivals;
mod classes;
mod client_queries;
mod client_totals;
mod collect;
mod counts;
mod in_flight;
mod interval_stats;
mod lateness;
mod led;
mod notes;
pub mod play;
mod priority;
mod queries;
mod ramp;
mod record;
mod report;
mod run;
mod segment;
mod send_schedule;
mod source;
mod summary;
mod tcp;
mod team;
mod transport;
mod udp;
mod worker;

use std::{
    io,
    net::{IpAddr, SocketAddr},
};

pub use self::{arguments::Arguments, run::run};
use crate::{
    base::failure::{Advice, Failure},
    net::prefix::Prefix,
};

/// The load could not be put on the server, by a fault that is not the server's.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("cannot make sockets to {0}: {1}")]
    Open(SocketAddr, io::Error),
    #[error("cannot send to {0}: {1}")]
    Send(SocketAddr, io::Error),
    #[error("cannot receive from {0}: {1}")]
    Receive(SocketAddr, io::Error),
    #[error("cannot wait for answers: {0}")]
    Wait(io::Error),
    #[error("this host does not have {address}, from which a client of --clients-from {prefix} sends")]
    NotLocal { address: IpAddr, prefix: Prefix },
    #[error(transparent)]
    Stream(#[from] Failure),
    #[error("{0}")]
    Arguments(String),
    #[error("a thread ended early")]
    Thread,
}

impl Advice for LoadError {
    fn hint(&self) -> String {
        match self {
            LoadError::Open(server, _) => format!(
                "see `ip route get {}`, and `ulimit -n` if there are many clients; run this on a host that has a route there",
                server.ip()
            ),
            LoadError::Send(..) | LoadError::Receive(..) | LoadError::Wait(_) => {
                "check the link of this host (ip link, ip route)".into()
            }
            LoadError::NotLocal { prefix, .. } => format!(
                "run, as root on the host that replays: `ip route add local {prefix} dev lo`. The server must have a route there"
            ),
            LoadError::Stream(error) => error.hint.clone(),
            LoadError::Arguments(_) => "see the `--help` of this command".into(),
            LoadError::Thread => "this is a bug in dnsrig: please report it".into(),
        }
    }

    fn exit_code(&self) -> u8 {
        match self {
            LoadError::Arguments(_) => 2,
            LoadError::Stream(error) => error.exit_code,
            _ => 1,
        }
    }
}
