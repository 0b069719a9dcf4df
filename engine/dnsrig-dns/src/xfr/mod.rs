//! The messages of a zone transfer: bytes in and out, no socket, no clock.
//!
//! [`query`](crate::query) makes a query, [`tsig`](crate::tsig) signs it, [`Incoming`] takes in the messages
//! that answer it and says how the transfer ended ([`Outcome`]). What came is given record by record to a [`Sink`]:
//! nothing (`()`), the check of a digest ([`zonemd`](crate::zonemd)), or what a subcommand makes of it. When a
//! zone is asked for, on which connection, and how often, is not decided here.

#[cfg(test)]
mod fuzz_tests;
mod incoming;
mod outcome;

pub use self::{
    incoming::{Counts, Incoming, Limits, Step},
    outcome::{Answered, Cut, Outcome},
};
use super::record::Record;

/// What a record does to the zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It belongs to the zone.
    Add,
    /// It belongs to it no longer (in an IXFR).
    Remove,
}

/// Takes the records of one attempt to transfer one zone.
///
/// The first record is always the newest SOA, added. The SOA that ends a transfer repeats it and is not given. In an
/// IXFR every step begins with the old SOA, removed, then what else is removed, the new SOA, added, and what else is
/// added: the newest SOA is added twice, which does nothing to a set of records.
///
/// An error ends the transfer with the outcome it names.
pub trait Sink {
    /// Takes one record. The names in it may be compressed: see [`Record`].
    fn record(&mut self, record: &Record<'_>, change: Change) -> Result<(), Outcome>;

    /// The transfer was complete; `answered` says what came. Not called after an error or a cut.
    fn end(&mut self, _answered: Answered) -> Result<(), Outcome> {
        Ok(())
    }
}

/// Nothing is kept: what is counted is in [`Counts`].
impl Sink for () {
    #[inline(always)]
    fn record(&mut self, _record: &Record<'_>, _change: Change) -> Result<(), Outcome> {
        Ok(())
    }
}

/// A sink that may be there.
impl<S: Sink> Sink for Option<S> {
    fn record(&mut self, record: &Record<'_>, change: Change) -> Result<(), Outcome> {
        self.as_mut().map_or(Ok(()), |sink| sink.record(record, change))
    }

    fn end(&mut self, answered: Answered) -> Result<(), Outcome> {
        self.as_mut().map_or(Ok(()), |sink| sink.end(answered))
    }
}
