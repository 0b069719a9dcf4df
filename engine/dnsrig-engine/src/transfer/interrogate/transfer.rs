//! One zone's answer as its messages arrive: where it ends, and whether it is what a transfer looks like.
//!
//! An AXFR begins and ends with the same SOA (RFC 5936 §2.2). An IXFR begins with the new SOA; if the second record is
//! an older SOA, differences follow, each of two runs that begin with a SOA; if it is anything else, the whole zone
//! follows; a new SOA alone that is not newer than what was asked says that nothing changed (RFC 1995 §4).

use std::time::Duration;

use domain::base::{Serial, iana::Rcode};

use super::message::{Answer, Ask, Brief};

/// How a transfer was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// The answer to a query for SOA.
    Soa,
    /// The whole zone.
    Whole,
    /// Differences.
    Differences,
    /// Nothing changed since the serial that was asked for.
    UpToDate,
}

/// How the answer to one query ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    Done(Style),
    /// The server answered with an error.
    Refused(Rcode),
    /// It is no transfer, by this reason.
    Broken(&'static str),
}

#[derive(Clone, Copy, Debug)]
enum State {
    Beginning,
    /// The first SOA came, but not what tells an AXFR from an IXFR.
    AfterFirstSoa,
    Whole,
    /// Removed records, behind an old SOA.
    Removing,
    /// Added records, behind the SOA with this serial.
    Adding(u32),
}

/// An answer in progress, or ended.
#[derive(Clone, Debug)]
pub struct Transfer {
    pub ask: Ask,
    /// When the query was handed to the connection, since the exchange began.
    pub asked_at: Duration,
    pub first_at: Option<Duration>,
    pub last_at: Option<Duration>,
    pub messages: u32,
    pub signed_messages: u32,
    /// The longest run of messages without a signature.
    pub unsigned_run_max: u32,
    pub octets: u64,
    pub records: u64,
    pub serial: Option<u32>,
    pub has_zonemd: bool,
    pub keepalive: Option<Duration>,
    pub end: Option<End>,
    state: State,
    unsigned_run: u32,
}

impl Transfer {
    pub fn new(ask: Ask, asked_at: Duration) -> Self {
        Transfer {
            ask,
            asked_at,
            first_at: None,
            last_at: None,
            messages: 0,
            signed_messages: 0,
            unsigned_run_max: 0,
            octets: 0,
            records: 0,
            serial: None,
            has_zonemd: false,
            keepalive: None,
            end: None,
            state: State::Beginning,
            unsigned_run: 0,
        }
    }

    /// Takes in the next message, of so many octets.
    pub fn take(&mut self, at: Duration, octets: usize, answer: &Answer) {
        self.first_at.get_or_insert(at);
        self.last_at = Some(at);
        self.messages += 1;
        self.octets += octets as u64;
        self.keepalive = answer.keepalive;
        self.count_signature(answer.is_signed);
        if self.end.is_some() {
            self.end = Some(End::Broken("messages came behind its end"));
            return;
        }
        if answer.rcode != Rcode::NOERROR {
            self.end = Some(End::Refused(answer.rcode));
            return;
        }
        if answer.records.is_empty() {
            self.end = Some(End::Broken("a message without records"));
        }
        for record in &answer.records {
            if self.end.is_some() {
                self.end = Some(End::Broken("records stand behind its end"));
                break;
            }
            self.records += 1;
            self.end = self.step(*record);
        }
        self.end_if_up_to_date();
    }

    /// Ends it as broken, whatever it was.
    pub fn fail(&mut self, reason: &'static str) {
        self.end = Some(End::Broken(reason));
    }

    pub fn is_open(&self) -> bool {
        self.end.is_none()
    }

    pub fn is_done(&self) -> bool {
        matches!(self.end, Some(End::Done(_)))
    }

    /// The error that the server answered with.
    pub fn refusal(&self) -> Option<Rcode> {
        match self.end {
            Some(End::Refused(rcode)) => Some(rcode),
            _ => None,
        }
    }

    /// From the query to the last message.
    pub fn took(&self) -> Option<Duration> {
        Some(self.last_at?.saturating_sub(self.asked_at))
    }

    fn count_signature(&mut self, is_signed: bool) {
        if is_signed {
            self.signed_messages += 1;
            self.unsigned_run = 0;
        } else {
            self.unsigned_run += 1;
            self.unsigned_run_max = self.unsigned_run_max.max(self.unsigned_run);
        }
    }

    fn step(&mut self, record: Brief) -> Option<End> {
        self.has_zonemd |= record == Brief::Zonemd;
        let soa = if let Brief::Soa(serial) = record { Some(serial) } else { None };
        let newest = self.serial;
        self.state = match (self.state, soa) {
            (State::Beginning, None) => return Some(End::Broken("its first record is no SOA")),
            (State::Beginning, Some(serial)) => {
                self.serial = Some(serial);
                match self.ask {
                    Ask::Soa | Ask::SoaWithKeepalive => return Some(End::Done(Style::Soa)),
                    Ask::Axfr => State::Whole,
                    Ask::Ixfr { .. } => State::AfterFirstSoa,
                }
            }
            (State::AfterFirstSoa | State::Whole, Some(_)) if soa == newest => return Some(End::Done(Style::Whole)),
            (State::Whole, Some(_)) => return Some(End::Broken("its last SOA is not its first")),
            (State::AfterFirstSoa, Some(_)) => State::Removing,
            (State::AfterFirstSoa | State::Whole, None) => State::Whole,
            (State::Removing, Some(serial)) => State::Adding(serial),
            (State::Adding(serial), Some(_)) if Some(serial) == newest => {
                let is_whole = soa == newest;
                let broken = End::Broken("differences go on behind the newest");
                return Some(if is_whole { End::Done(Style::Differences) } else { broken });
            }
            (State::Adding(_), Some(_)) => State::Removing,
            (state @ (State::Removing | State::Adding(_)), None) => state,
        };
        None
    }

    /// A SOA alone ends an IXFR only if it is not newer; otherwise some servers send the rest in the next message.
    fn end_if_up_to_date(&mut self) {
        let (Ask::Ixfr { serial: asked }, State::AfterFirstSoa, None) = (self.ask, self.state, &self.end) else {
            return;
        };
        // Not comparable counts as not newer (RFC 1982 §3.2): there is nothing to wait for.
        if self.serial.is_some_and(|serial| !(Serial(serial) > Serial(asked))) {
            self.end = Some(End::Done(Style::UpToDate));
        }
    }
}

#[cfg(test)]
#[path = "transfer_tests.rs"]
mod tests;
