//! The messages of a zone transfer: bytes in and out, no socket, no clock.
//!
//! [`write_query`] makes a query, [`tsig`](crate::dns::tsig) signs it, [`Incoming`] takes in the messages that answer it and says how the
//! transfer ended ([`Outcome`]). What came is given record by record to a [`Sink`]: nothing (`()`), a zone file
//! ([`zonefile`](crate::dns::zonefile)), or the check of a digest ([`zonemd`](crate::dns::zonemd)). Who asks when, on which connection, and how often, is not
//! decided here.

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
pub use super::{
    query::{Ask, write_query},
    record::Record,
};
