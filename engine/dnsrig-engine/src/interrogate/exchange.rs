//! What was asked on one connection, and what came: the material of every judgement. No socket and no clock.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use dnsrig_dns::{
    edns, framing,
    header::Header,
    query::{Ask, write_query},
    tsig::{sign::Signer, verify::Verifier},
    xfr::Outcome,
};

use super::{
    connection::CloseReason,
    transfer::{Transfer, ZoneName},
};

/// A moment: since the exchange began, and wall time in seconds since 1970, by which signatures date themselves.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    pub at: Duration,
    pub wall_s: u64,
}

/// A message that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    pub at: Duration,
    /// The number of its transfer; None if no transfer waits for its id.
    pub transfer: Option<usize>,
    pub bytes: usize,
}

/// Queries on one connection and their answers, in the order in which they came.
#[derive(Default)]
pub struct Exchange {
    pub transfers: Vec<Transfer>,
    pub arrivals: Vec<Arrival>,
    /// Why it ended early; None: nothing is missing, or it is not over.
    pub close_reason: Option<CloseReason>,
    /// Whether zones are compared with their ZONEMD records.
    pub checks_digests: bool,
    /// When the last query was written, a record came for one, or one ended.
    pub progress_at: Duration,
    /// How many messages came since, none of which brought anything.
    pub fruitless: usize,
    bytes: u64,
}

impl Exchange {
    /// Adds a query, signed if it is for a transfer and there is a key. Returns it as it is sent, after its length.
    ///
    /// Its id is the number of the transfer.
    pub fn ask(&mut self, zone: &ZoneName, ask: Ask, signer: Option<&Arc<Signer>>, now: Now) -> Vec<u8> {
        let mut query = self.draft(zone, ask);
        let signer = signer.filter(|_| ask != Ask::Soa);
        let verifier = signer.map(|signer| Verifier::sign(signer, &mut query, 0, now.wall_s));
        let transfer = Transfer::new(zone.clone(), ask, verifier, now.at, self.checks_digests);
        self.add(transfer, now);
        framed(&query)
    }

    /// Adds a query for SOA that asks how long an idle connection stays, and returns it as it is sent.
    pub fn ask_keepalive(&mut self, zone: &ZoneName, now: Now) -> Vec<u8> {
        let mut query = self.draft(zone, Ask::Soa);
        edns::add_keepalive(&mut query);
        self.add(Transfer::new(zone.clone(), Ask::Soa, None, now.at, false), now);
        framed(&query)
    }

    fn add(&mut self, transfer: Transfer, now: Now) {
        self.transfers.push(transfer);
        self.note_progress(now);
    }

    fn note_progress(&mut self, now: Now) {
        (self.progress_at, self.fruitless) = (now.at, 0);
    }

    fn draft(&self, zone: &ZoneName, ask: Ask) -> Vec<u8> {
        let mut query = Vec::new();
        // No exchange has more than a few hundred queries.
        write_query(&mut query, self.transfers.len() as u16, zone, ask);
        query
    }

    /// Takes in a message.
    pub fn take(&mut self, now: Now, message: &[u8]) {
        let open = |number: &usize| self.transfers.get(*number).is_some_and(Transfer::is_open);
        let number = Header::read(message).ok().map(|header| usize::from(header.id)).filter(open);
        self.arrivals.push(Arrival { at: now.at, transfer: number, bytes: message.len() });
        self.bytes += message.len() as u64;
        self.fruitless += 1;
        if let Some(transfer) = number.map(|number| &mut self.transfers[number]) {
            let records = transfer.counts().records;
            transfer.take(now.at, now.wall_s, message);
            if !transfer.is_open() || transfer.counts().records > records {
                self.note_progress(now);
            }
        }
    }

    /// Whether a transfer has begun and not ended.
    pub fn goes_on(&self) -> bool {
        self.transfers.iter().any(|transfer| transfer.is_open() && transfer.counts().records > 0)
    }

    /// Whether a transfer came, or as much of one as is taken in.
    pub fn is_served(&self) -> bool {
        let is_cut = matches!(self.close_reason, Some(CloseReason::Enough | CloseReason::Unfinished));
        self.done() > 0 || (is_cut && self.goes_on())
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

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn count(&self, is_counted: impl Fn(&Transfer) -> bool) -> usize {
        self.transfers.iter().filter(|transfer| is_counted(transfer)).count()
    }

    /// How many of the done transfers had a message of another transfer between their first and their last.
    pub fn interleaved(&self) -> usize {
        self.spans()
            .filter(|(number, first, last)| self.arrivals[*first..*last].iter().any(|it| it.transfer != Some(*number)))
            .count()
    }

    /// How many of the done transfers ended before one that was asked for earlier.
    pub fn out_of_order(&self) -> usize {
        let ends: Vec<_> = self.spans().map(|(_, _, last)| last).collect();
        (0..ends.len()).filter(|number| ends[..*number].iter().any(|earlier| *earlier > ends[*number])).count()
    }

    /// For each done transfer, its number, and the places of its first and its last message among the arrivals.
    fn spans(&self) -> impl Iterator<Item = (usize, usize, usize)> {
        let done = (0..self.transfers.len()).filter(|number| self.transfers[*number].is_done());
        done.filter_map(|number| {
            let is_own = |arrival: &Arrival| arrival.transfer == Some(number);
            Some((number, self.arrivals.iter().position(is_own)?, self.arrivals.iter().rposition(is_own)?))
        })
    }

    /// How often each error was answered.
    pub fn refusals(&self) -> BTreeMap<Outcome, usize> {
        let mut counts = BTreeMap::new();
        self.transfers
            .iter()
            .filter_map(Transfer::refusal)
            .for_each(|refusal| *counts.entry(refusal).or_default() += 1);
        counts
    }

    /// What came in the place of answers, for a sentence: `SERVFAIL 3, the server closed the connection`.
    pub fn complaint(&self) -> String {
        let refusals = self.refusals().into_iter().map(|(refusal, count)| format!("{} {count}", upper(refusal)));
        let broken = self.transfers.iter().filter(|it| !it.is_open() && !it.is_done() && it.refusal().is_none());
        let broken = broken.filter_map(|transfer| transfer.outcome).take(1).map(|outcome| outcome.word().to_owned());
        let close_reason = self.close_reason.iter().map(|close_reason| match close_reason {
            CloseReason::TimedOut if !self.arrivals.is_empty() => "nothing more came in time".to_owned(),
            other => other.to_string(),
        });
        refusals.chain(broken).chain(close_reason).collect::<Vec<_>>().join(", ")
    }
}

/// Puts the length before a query, as on a stream (RFC 1035 §4.2.2).
fn framed(query: &[u8]) -> Vec<u8> {
    let mut framed = Vec::new();
    framing::append(&mut framed, query);
    framed
}

/// An error as people write it: `SERVFAIL`.
pub fn upper(refusal: Outcome) -> String {
    refusal.word().to_ascii_uppercase()
}

#[cfg(test)]
#[path = "exchange_tests.rs"]
pub mod tests;
