//! The messages of a zone transfer: octets in and out, no socket, no clock.
//!
//! [`write_query`] makes a query, [`tsig`] signs it, [`Incoming`] takes in the messages that answer it and says how the
//! transfer ended ([`Outcome`]). What came is given record by record to a [`Sink`]: nothing (`()`), a zone file
//! ([`master`]), or the check of a digest ([`zonemd`]). Who asks when, on which connection, and how often, is not
//! decided here.

pub mod master;
pub mod tsig;
pub mod zonemd;

mod data;
mod incoming;
mod names;
mod outcome;
mod query;
mod records;
mod sink;
#[cfg(test)]
mod testing;

pub use self::{
    incoming::{Counts, Incoming, Limits, Step},
    outcome::{Answered, Cut, Outcome},
    query::{Ask, write_query},
    records::Record,
    sink::{Change, Sink},
};

#[cfg(test)]
mod fuzz_tests;
