//! What was asked on one connection, and what came: the material of every judgement. No socket and no clock.

use std::{sync::Arc, time::Duration};

use domain::{
    base::{Message, iana::Rcode, message_builder::PushError},
    rdata::tsig::Time48,
    tsig::Key,
};

use super::{
    line::Loss,
    message::{Ask, Sequence, ZoneName, framed, read_answer, write_query},
    transfer::{End, Transfer},
};

/// A moment: since the exchange began, and as signatures date themselves.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    pub at: Duration,
    pub wall: Time48,
}

/// A message that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub at: Duration,
    /// The transfer it belongs to, by number; None: its id was not asked for, or it could not be read.
    pub transfer: Option<usize>,
    pub octets: usize,
}

/// Queries on one connection and their answers, in the order in which they came.
#[derive(Default)]
pub struct Exchange {
    pub transfers: Vec<Transfer>,
    pub arrivals: Vec<Arrival>,
    /// Why it ended early; None: nothing is missing, or it is not over.
    pub loss: Option<Loss>,
    /// What checks the signatures, by number of the transfer.
    sequences: Vec<Option<Sequence>>,
}

impl Exchange {
    /// Adds a query, and gives it as it is sent, with its length before it. Its id is the number of the transfer.
    pub fn ask(&mut self, zone: &ZoneName, ask: Ask, key: Option<&Arc<Key>>, now: Now) -> Result<Vec<u8>, PushError> {
        // No exchange has more than a few hundred queries.
        let id = self.transfers.len() as u16;
        let (query, sequence) = write_query(id, zone, ask, key, now.wall)?;
        self.transfers.push(Transfer::new(ask, now.at));
        self.sequences.push(sequence);
        Ok(framed(&query))
    }

    /// Takes in a message.
    pub fn take(&mut self, now: Now, octets: &[u8]) {
        let answer = read_answer(octets).ok();
        let number = answer.as_ref().map(|answer| usize::from(answer.id)).filter(|id| *id < self.transfers.len());
        self.arrivals.push(Arrival { at: now.at, transfer: number, octets: octets.len() });
        let (Some(answer), Some(number)) = (answer, number) else { return };
        let transfer = &mut self.transfers[number];
        transfer.take(now.at, octets.len(), &answer);
        // Who refuses a key cannot sign with it (RFC 8945 §5.3.2).
        let is_checked = answer.rcode == Rcode::NOERROR;
        if let Some(reason) = self.sequences[number].as_mut().filter(|_| is_checked).and_then(|sequence| {
            let mut message = Message::from_octets(octets.to_vec()).ok()?;
            match sequence.answer(&mut message, now.wall) {
                Err(_) => Some("its signature is wrong or missing"),
                Ok(()) if matches!(transfer.end, Some(End::Done(_))) && !answer.is_signed => {
                    Some("its last message is not signed")
                }
                Ok(()) => None,
            }
        }) {
            transfer.fail(reason);
        }
    }

    /// How many queries have no complete answer.
    pub fn open(&self) -> usize {
        self.count(Transfer::is_open)
    }

    pub fn done(&self) -> usize {
        self.count(Transfer::is_done)
    }

    /// How many were answered with an error.
    pub fn refused(&self) -> usize {
        self.count(|transfer| transfer.refusal().is_some())
    }

    pub fn octets(&self) -> u64 {
        self.arrivals.iter().map(|arrival| arrival.octets as u64).sum()
    }

    pub fn count(&self, is_counted: impl Fn(&Transfer) -> bool) -> usize {
        self.transfers.iter().filter(|transfer| is_counted(transfer)).count()
    }

    /// How many of the done transfers had a message of another transfer between their first and their last.
    pub fn interleaved(&self) -> usize {
        let of = |number: usize| self.arrivals.iter().map(move |arrival| arrival.transfer == Some(number));
        let has_foreign = |number: usize| {
            let (first, last) = (of(number).position(|own| own), of(number).rposition(|own| own));
            let (Some(first), Some(last)) = (first, last) else { return false };
            of(number).skip(first).take(last - first).any(|own| !own)
        };
        (0..self.transfers.len()).filter(|number| self.transfers[*number].is_done() && has_foreign(*number)).count()
    }

    /// How many of the done transfers ended before one that was asked for earlier.
    pub fn out_of_order(&self) -> usize {
        let last = |number: usize| self.arrivals.iter().rposition(|arrival| arrival.transfer == Some(number));
        let ends: Vec<_> =
            (0..self.transfers.len()).filter(|number| self.transfers[*number].is_done()).filter_map(last).collect();
        (0..ends.len()).filter(|number| ends[..*number].iter().any(|earlier| *earlier > ends[*number])).count()
    }

    /// The errors that were answered with, each once, and how often.
    pub fn refusals(&self) -> Vec<(String, usize)> {
        let mut counts: Vec<(String, usize)> = Vec::new();
        for rcode in self.transfers.iter().filter_map(Transfer::refusal) {
            let word = rcode.to_string();
            match counts.iter_mut().find(|(known, _)| *known == word) {
                Some((_, count)) => *count += 1,
                None => counts.push((word, 1)),
            }
        }
        counts
    }
}

#[cfg(test)]
#[path = "exchange_tests.rs"]
pub mod tests;
