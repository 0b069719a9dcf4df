//! The messages of a zone transfer: bytes in and out, no socket, no clock.
//!
//! [`query`](crate::dns::query) makes a query, [`tsig`](crate::dns::tsig) signs it, [`Incoming`] takes in the messages
//! that answer it and says how the transfer ended ([`Outcome`]). What came is given record by record to a [`Sink`]:
//! nothing (`()`), the check of a digest ([`zonemd`](crate::dns::zonemd)), or what a subcommand makes of it. Who asks
//! when, on which connection, and how often, is not decided here.

#[cfg(test)]
mod fuzz_tests;
mod incoming;
mod outcome;
mod sink;
mod soa;

pub use self::{
    incoming::{Counts, Incoming, Limits, Step},
    outcome::{Answered, Cut, Outcome},
    sink::{Change, Sink},
};
