//! `load`: queries against a server, and what becomes of them.
//!
//! Apart from sockets and clocks, all is in cores that know neither: [`arrivals`] says which queries fall due and when,
//! [`send_schedule`] what a thread does next, [`in_flight`] which queries are outstanding and what a message means,
//! [`id_rest`] which message ids may not be used yet, [`lateness`] what of a latency may be our own, [`interval_stats`]
//! counts and times, [`rows`] keeps each query where that is wanted, [`ramp`] searches for the highest rate and
//! [`judge`] says whether one holds. A [`worker`] thread drives them over a [`transport`]; a [`team`] is all threads,
//! [`collect`] puts together what they counted and [`record`] writes files. [`segment`] says how generators on several
//! machines share one schedule, [`led`] what they say to each other, [`start`] when a period begins. [`play`] is the
//! same with the queries of a stream, which [`captured`] holds on their way. What goes from arrivals over a transport
//! to the table of queries in flight is [`arrivals::Due`].

pub mod answer;
pub mod answers;
pub mod arguments;
pub mod arrivals;
pub mod captured;
pub mod classes;
pub mod client_totals;
pub mod closed_loop;
pub mod collect;
pub mod handover;
pub mod human_report;
pub mod id_rest;
pub mod in_flight;
pub mod interval_stats;
pub mod judge;
pub mod lateness;
pub mod led;
pub mod lines;
pub mod notes;
pub mod play;
pub mod priority;
pub mod queries;
pub mod ramp;
pub mod record;
pub mod report;
pub mod rows;
mod run;
mod search;
pub mod segment;
pub mod send_schedule;
pub mod source;
pub mod start;
pub mod stream;
pub mod summary;
pub mod team;
pub mod transport;
pub mod udp;
pub mod unequal_clients;
pub mod waking;
pub mod worker;

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
