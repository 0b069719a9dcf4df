//! One zone's transfer as it arrives.

use super::{Answered, Ask, Cut, Outcome, Sink, tsig};

/// What a transfer may take; beyond it ends as [`Outcome::Endless`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub octets_max: u64,
    pub records_max: u64,
    pub messages_max: u32,
}

/// What came so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages, those that are wrong included.
    pub messages: u32,
    /// Messages with a signature that was found right.
    pub signed: u32,
    /// Octets of messages, without the two of length before each.
    pub octets: u64,
    /// Records of the answer, without the SOA that ends it: for an AXFR the records of the zone.
    pub records: u64,
    /// The serial of the server's newest version.
    pub serial: Option<u32>,
    /// What kind of answer it is.
    pub answered: Answered,
}

/// Whether more is to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Step {
    /// The transfer goes on.
    More,
    /// It ended; what comes with its id from now on belongs to nobody.
    Done(Outcome),
}

/// One zone's transfer as it arrives.
pub struct Incoming {
    ask: Ask,
    counts: Counts,
    verifier: Option<Box<tsig::Verifier>>,
}

impl Incoming {
    /// A transfer that was asked for; `verifier` is there if the query was signed.
    pub fn new(ask: Ask, verifier: Option<Box<tsig::Verifier>>) -> Self {
        Incoming { ask, counts: Counts::default(), verifier }
    }

    /// Takes in one message whose id was already matched.
    ///
    /// `zone` is the name asked for, as in [`super::write_query`]; `now_s` is wall time in seconds since 1970, which
    /// only signatures are compared with.
    pub fn take(
        &mut self,
        _message: &[u8],
        _zone: &[u8],
        _now_s: u64,
        _limits: &Limits,
        _sink: &mut impl Sink,
    ) -> Step {
        let _ = (&self.ask, &self.verifier);
        self.counts.messages += 1;
        Step::Done(Outcome::BadMessage)
    }

    /// What came so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The connection ended, or time was over, before the transfer did.
    pub fn cut(&self, how: Cut) -> Outcome {
        match how {
            Cut::Closed if self.counts.messages > 0 => Outcome::Cut,
            Cut::Closed => Outcome::Closed,
            Cut::Reset => Outcome::Reset,
            Cut::NoConnection => Outcome::NoConnection,
            Cut::TimedOut => Outcome::TimedOut,
        }
    }
}
