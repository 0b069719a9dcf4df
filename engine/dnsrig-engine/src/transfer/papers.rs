//! What is done with the records of a transfer, if anything: a zone file, a digest, the members of a catalog.

use super::wire::{Answered, Change, Outcome, Record, Sink};

/// The sinks of one transfer. Without any there is no paper at all, and records are only counted.
#[derive(Default)]
pub struct Paper {}

impl Sink for Paper {
    fn record(&mut self, _record: &Record<'_>, _change: Change) -> Result<(), Outcome> {
        Ok(())
    }

    fn end(&mut self, _answered: Answered) -> Result<(), Outcome> {
        Ok(())
    }
}

/// Gives each transfer its paper.
#[derive(Clone, Default)]
pub struct Stationery {}

impl Stationery {
    /// The paper for a zone's transfer, if records are to be more than counted.
    pub fn paper(&self, _zone: &[u8]) -> Option<Box<Paper>> {
        None
    }
}
