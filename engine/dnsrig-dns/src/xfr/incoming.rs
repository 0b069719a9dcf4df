//! One zone's transfer as it arrives: the order of records that RFC 5936 §2.2 and RFC 1995 §4 ask for.

use domain::base::iana::Class;

use super::{Answered, Change, Cut, Outcome, Sink};
use crate::{
    header::Header,
    name::{Owners, Place},
    query::Ask,
    record::{Record, Walk},
    serial::is_newer,
    soa::Soa,
    tsig::verify::{Refusal, Verifier},
};

/// What a transfer may take; beyond it ends as [`Outcome::LimitExceeded`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub bytes_max: u64,
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
    /// Bytes of messages, without the two of length before each.
    pub bytes: u64,
    /// Records of the answer, without the SOA that ends it: for an AXFR the records of the zone.
    pub records: u64,
    /// Records outside of the zone that were passed over.
    pub outside: u64,
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

/// Where in an answer the next record stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The first record: the newest SOA.
    Start,
    /// An SOA was asked for and is there.
    Soa,
    /// The second record of what may be an IXFR: it shows what the answer is.
    Second,
    /// A record of the whole zone, or the SOA that ends it.
    Whole,
    /// A record that goes with the step from this serial, or the SOA of the version that the step leads to.
    Removing { from: u32 },
    /// A record that comes with the step to this serial, or the SOA that begins the next step or ends the answer.
    Adding { to: u32 },
    /// Behind the end.
    Ended,
}

/// One zone's transfer as it arrives. Small, and without a signature on no heap.
pub struct Incoming {
    ask: Ask,
    state: State,
    /// The first SOA, once there is one.
    newest: Soa,
    counts: Counts,
    verifier: Option<Box<Verifier>>,
    passes_over_outside: bool,
}

impl Incoming {
    /// A transfer that was asked for; `verifier` is there if the query was signed.
    pub fn new(ask: Ask, verifier: Option<Box<Verifier>>) -> Self {
        let newest = Soa { serial: 0, fingerprint: 0 };
        Incoming { ask, state: State::Start, newest, counts: Counts::default(), verifier, passes_over_outside: false }
    }

    /// Passes over records outside of the zone, as secondaries do, where they would end a transfer otherwise.
    pub fn passing_over_outside(self) -> Self {
        Incoming { passes_over_outside: true, ..self }
    }

    /// Takes in one message whose id was already matched.
    ///
    /// `zone` is the name asked for, as in [`write_query`](crate::query::write_query); `now_s` is wall time in
    /// seconds since 1970, which only signatures are compared with. The sink gets every record of the answer before it
    /// is known whether the message's end is right; it gets none of a message whose signature is wrong.
    ///
    /// Limits of bytes and messages hold before a message is looked at, the limit of records before its records are.
    pub fn take(&mut self, message: &[u8], zone: &[u8], now_s: u64, limits: &Limits, sink: &mut impl Sink) -> Step {
        match self.take_message(message, zone, now_s, limits, sink) {
            Ok(()) if self.state != State::Ended => Step::More,
            ended => {
                self.state = State::Ended;
                Step::Done(match ended {
                    Err(outcome) => outcome,
                    Ok(()) if self.counts.answered == Answered::UpToDate => Outcome::UpToDate,
                    Ok(()) => Outcome::Done,
                })
            }
        }
    }

    fn take_message(
        &mut self,
        message: &[u8],
        zone: &[u8],
        now_s: u64,
        limits: &Limits,
        sink: &mut impl Sink,
    ) -> Result<(), Outcome> {
        let first = self.counts.messages == 0;
        self.counts.messages = self.counts.messages.saturating_add(1);
        self.counts.bytes += message.len() as u64;
        if self.counts.messages > limits.messages_max || self.counts.bytes > limits.bytes_max {
            return Err(Outcome::LimitExceeded);
        }
        if self.state == State::Ended {
            return Err(Outcome::BehindTheEnd);
        }
        let header = Header::read(message).map_err(|_| Outcome::NoHeader)?;
        if !header.is_answer() {
            return Err(if header.is_response() { Outcome::TcSet } else { Outcome::NotAResponse });
        }
        self.verify(message, &header, now_s)?;

        let mut owners = Owners::new(zone);
        let mut walk = Walk::new(message);
        match header.questions {
            1 if walk.question(&mut owners, self.ask.qtype())? => (),
            // An error may be said without repeating the question; so may everything behind the first message.
            0 if !first || header.rcode != 0 => (),
            _ => return Err(Outcome::WrongQuestion),
        }
        if header.rcode != 0 {
            return Err(Outcome::of_rcode(header.rcode));
        }
        // The SOA at the end is not counted.
        if self.counts.records + u64::from(header.answers) > limits.records_max.saturating_add(1) {
            return Err(Outcome::LimitExceeded);
        }
        self.take_answers(&mut walk, &mut owners, header.answers, sink)?;
        for _ in u32::from(header.answers)..header.records() {
            walk.any_record()?;
        }
        walk.end()?;
        self.end_message(sink)
    }

    /// Checks the signature, if there is to be one. An error may be said without: it ends the transfer anyhow.
    #[inline]
    fn verify(&mut self, message: &[u8], header: &Header, now_s: u64) -> Result<(), Outcome> {
        let Some(verifier) = &mut self.verifier else { return Ok(()) };
        match verifier.check(message, header, now_s) {
            Ok(signed) => {
                self.counts.signed += u32::from(signed);
                Ok(())
            }
            Err(Refusal::Missing) if header.rcode != 0 => Ok(()),
            Err(refusal) => Err(refusal.into()),
        }
    }

    #[inline]
    fn take_answers(
        &mut self,
        walk: &mut Walk<'_>,
        owners: &mut Owners<'_>,
        answers: u16,
        sink: &mut impl Sink,
    ) -> Result<(), Outcome> {
        for _ in 0..answers {
            let (record, place) = walk.record(owners)?;
            if record.class != Class::IN {
                return Err(Outcome::WrongClass);
            }
            if place == Place::Outside {
                if self.passes_over_outside && self.state != State::Ended {
                    self.counts.outside += 1;
                    continue;
                }
                return Err(Outcome::OutOfZone);
            }
            let soa = Soa::read(&record)?;
            match (self.state, soa) {
                // Nearly every record of a zone.
                (State::Whole | State::Adding { .. }, None) => self.give(&record, Change::Add, sink)?,
                (State::Removing { .. }, None) => self.give(&record, Change::Remove, sink)?,
                // What is not asked for, such as signatures; but there is one SOA.
                (State::Soa, None) => self.counts.records += 1,
                (State::Second, None) => {
                    self.begin_whole();
                    self.give(&record, Change::Add, sink)?;
                }
                (_, Some(soa)) if place == Place::Apex => self.take_soa(&record, soa, sink)?,
                (State::Start, _) => return Err(Outcome::SoaMissing),
                (State::Ended, _) => return Err(Outcome::BehindTheEnd),
                (_, Some(_)) => return Err(Outcome::SoaDifferent),
            }
        }
        Ok(())
    }

    /// Takes an SOA of the zone, which is what tells the parts of an answer.
    fn take_soa(&mut self, record: &Record<'_>, soa: Soa, sink: &mut impl Sink) -> Result<(), Outcome> {
        match self.state {
            State::Start => self.take_first(record, soa, sink),
            State::Second if soa != self.newest => {
                self.counts.answered = Answered::Ixfr;
                let asked = Ask::Ixfr { serial: soa.serial };
                if self.ask != asked || soa.serial == self.newest.serial {
                    return Err(Outcome::SoaDifferent);
                }
                self.begin_step(record, soa, sink)
            }
            State::Second => {
                self.begin_whole();
                self.state = State::Ended;
                Ok(())
            }
            State::Whole => self.take_last(soa),
            State::Removing { from } if !is_newer(soa.serial, from) => Err(Outcome::SerialBackwards),
            // No step leads beyond the newest version, which bounds their number, and the last leads to it exactly.
            State::Removing { .. } if is_newer(soa.serial, self.newest.serial) => Err(Outcome::SoaDifferent),
            State::Removing { .. } if soa.serial == self.newest.serial && soa != self.newest => {
                Err(Outcome::SoaDifferent)
            }
            State::Removing { .. } => {
                self.state = State::Adding { to: soa.serial };
                self.give(record, Change::Add, sink)
            }
            State::Adding { to } if to == self.newest.serial => self.take_last(soa),
            State::Adding { to } if to == soa.serial => self.begin_step(record, soa, sink),
            State::Adding { .. } => Err(Outcome::SoaDifferent),
            State::Soa | State::Ended => Err(Outcome::BehindTheEnd),
        }
    }

    fn take_first(&mut self, record: &Record<'_>, soa: Soa, sink: &mut impl Sink) -> Result<(), Outcome> {
        self.newest = soa;
        self.counts.serial = Some(soa.serial);
        match self.ask {
            Ask::Soa => {
                self.state = State::Soa;
                self.counts.answered = Answered::Soa;
            }
            Ask::Axfr => self.begin_whole(),
            Ask::Ixfr { serial } if soa.serial != serial && !is_newer(soa.serial, serial) => {
                return Err(Outcome::SerialBackwards);
            }
            Ask::Ixfr { .. } => self.state = State::Second,
        }
        self.give(record, Change::Add, sink)
    }

    fn begin_whole(&mut self) {
        self.state = State::Whole;
        self.counts.answered = Answered::Axfr;
    }

    /// Begins the step from the version of `soa`.
    fn begin_step(&mut self, record: &Record<'_>, soa: Soa, sink: &mut impl Sink) -> Result<(), Outcome> {
        self.state = State::Removing { from: soa.serial };
        self.give(record, Change::Remove, sink)
    }

    /// The SOA that ends the answer repeats the first.
    fn take_last(&mut self, soa: Soa) -> Result<(), Outcome> {
        if soa != self.newest {
            return Err(Outcome::SoaDifferent);
        }
        self.state = State::Ended;
        Ok(())
    }

    #[inline]
    fn give(&mut self, record: &Record<'_>, change: Change, sink: &mut impl Sink) -> Result<(), Outcome> {
        self.counts.records += 1;
        sink.record(record, change)
    }

    /// The message was right; whether the answer ends with it.
    #[inline]
    fn end_message(&mut self, sink: &mut impl Sink) -> Result<(), Outcome> {
        match self.state {
            State::Start => return Err(Outcome::SoaMissing),
            State::Soa => self.state = State::Ended,
            State::Second if self.ask == (Ask::Ixfr { serial: self.newest.serial }) => {
                self.counts.answered = Answered::UpToDate;
                self.state = State::Ended;
            }
            _ => (),
        }
        if self.state != State::Ended {
            return Ok(());
        }
        self.verifier.as_ref().map_or(Ok(()), |verifier| verifier.end())?;
        sink.end(self.counts.answered)
    }

    /// What came so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The connection ended, or time was over, before the transfer did.
    pub fn cut(&self, how: Cut) -> Outcome {
        match how {
            Cut::Closed if self.counts.messages > 0 => Outcome::Cut,
            Cut::TimedOut if self.counts.messages > 0 => Outcome::Stalled,
            _ => how.outcome(),
        }
    }
}

#[cfg(test)]
#[path = "incoming_tests.rs"]
mod tests;
