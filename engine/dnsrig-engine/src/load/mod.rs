//! `load`: queries against a server, and what becomes of them.
//!
//! What decides is in cores that know neither sockets nor clocks: [`arrivals`] says which queries fall due and when,
//! [`send_schedule`] what a thread does next, [`in_flight`] which queries are outstanding and what a message means,
//! [`client_queries`] which message ids may be used, [`lateness`] what of a latency may be our own, [`expect`] which
//! answers are wrong, [`interval_stats`] counts and times, and [`ramp`] searches for the highest rate that holds. A
//! [`worker`] thread drives them over a [`transport`], [`udp`] or [`tcp`]. A [`team`] is all threads; [`collect`] puts
//! together what they counted, [`record`] writes files, and [`report`] prints events and text.
//!
//! [`run`](mod@run) decides which periods there are; [`hold`] describes the two in which connections are held.
//! [`segment`] says how generators on several machines share one schedule, and [`led`] how they agree on its periods.
//! [`compare`] asks two servers the same queries. [`play`] sends captured queries instead of prepared ones; both are a
//! [`source`]. [`announced`] has the clients that the PROXY protocol announces, and [`proxy`] its header. A query goes
//! from arrivals over a transport to the table of queries in flight as an [`arrivals::Due`].

mod announced;
mod answer;
mod arguments;
mod arrivals;
mod classes;
mod client_queries;
mod client_totals;
mod collect;
pub mod compare;
mod counter;
mod counts;
mod doq;
mod expect;
mod hold;
mod http_faults;
mod in_flight;
mod interval_stats;
mod lateness;
mod led;
mod notes;
pub mod play;
mod priority;
mod proxy;
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

use dnsrig_core::failure::Failure;

pub use self::{arguments::Arguments, run::run};

/// The failure that arguments do not fit together.
fn refused(sentence: String) -> Failure {
    Failure::bad_input(sentence, "see the `--help` of this command")
}
