//! What a message means for the schedule.

use dnsrig_dns::{
    serial::is_newer,
    xfr::{Cut, Outcome, Step},
};

use super::{
    Schedule,
    secondaries::Job,
    slots::{Ended, NO_CONNECTION, State},
    transfers::Transfer,
};
use crate::transfer::row_buffer::{Asked, TransferRow};

impl Schedule {
    /// A message came on the connection in `slot`.
    pub fn message(&mut self, slot: u32, message: &[u8], now_ns: i64) {
        let place = &mut self.slots[slot as usize];
        place.connection.messages = place.connection.messages.wrapping_add(1);
        place.connection.bytes += message.len() as u64;
        let found = match message {
            [high, low, ..] => place.queries.get(u16::from_be_bytes([*high, *low])),
            // Without an id it can only be for the oldest query.
            _ => place.queries.oldest().map(|(_, at)| at).filter(|_| !place.is_udp),
        };
        let Some(at) = found else {
            self.counters.totals.unmatched += 1;
            return;
        };
        (place.connection.alive_ns, place.fruitless, place.connection.has_brought) = (now_ns, 0, true);
        let transfer = self.transfers.get_mut(at);
        transfer.touch(now_ns, place.connection.messages);
        if self.counters.totals.first_message_ns == 0 {
            self.counters.totals.first_message_ns = now_ns;
        }
        let (zone, limits) = (self.zones.wire(transfer.job.zone), &self.settings.limits);
        let records = transfer.incoming.counts().records;
        let step = match &mut transfer.sinks {
            None => transfer.incoming.take(message, zone, self.wall_s, limits, &mut ()),
            Some(sinks) => transfer.incoming.take(message, zone, self.wall_s, limits, &mut **sinks),
        };
        if transfer.incoming.counts().records > records {
            transfer.record_ns = now_ns;
        }
        if let Step::Done(outcome) = step {
            let counted = transfer.incoming.counts();
            let is_short = |expected: u64| outcome == Outcome::Done && !transfer.is_soa && counted.records != expected;
            let is_wrong = self.settings.records_expected.is_some_and(is_short);
            self.finish(at, if is_wrong { Outcome::WrongCount } else { outcome }, now_ns);
        }
    }

    /// Bytes came that complete no message.
    pub fn partial(&mut self, slot: u32, now_ns: i64) {
        let place = &mut self.slots[slot as usize];
        (place.connection.alive_ns, place.connection.partial_ns) = (now_ns, now_ns);
    }

    /// Bytes came on the stream of a query that complete no message.
    pub fn partial_on_stream(&mut self, slot: u32, id: u16, now_ns: i64) {
        let place = &mut self.slots[slot as usize];
        if let Some(at) = place.queries.get(id) {
            place.connection.alive_ns = now_ns;
            self.transfers.get_mut(at).partial_ns = now_ns;
        }
    }

    /// The stream of a query is over. If the transfer has not ended by itself, it has failed.
    pub fn stream_ended(&mut self, slot: u32, id: u16, cut: Cut, now_ns: i64) {
        let place = &mut self.slots[slot as usize];
        let Some(at) = place.queries.get(id) else { return };
        place.connection.alive_ns = now_ns;
        place.connection.ended = place.connection.ended.saturating_add(1);
        let (transfer, _) = self.transfers.remove(at, &place.queries, now_ns);
        place.queries.end(id);
        let outcome = transfer.incoming.cut(cut);
        self.row(&transfer, slot, outcome);
        self.failed(transfer.job, outcome, None, now_ns);
        self.wake(slot);
    }

    /// Ends a query whose answers may go on.
    pub(super) fn break_off(&mut self, slot: u32, id: u16) {
        let place = &mut self.slots[slot as usize];
        if self.settings.streams && !place.is_udp {
            place.queries.end(id);
            self.cancelling.push_back((slot, id));
        } else {
            place.queries.retire(id);
        }
    }

    /// A transfer has ended with a message.
    fn finish(&mut self, at: u32, outcome: Outcome, now_ns: i64) {
        let slot = self.transfers.get(at).slot;
        let place = &mut self.slots[slot as usize];
        let (transfer, is_overtaking) = self.transfers.remove(at, &place.queries, now_ns);
        if may_go_on(outcome) {
            self.break_off(slot, transfer.id);
        } else {
            place.queries.end(transfer.id);
        }
        // An SOA is half of the way at most.
        let is_half = transfer.is_soa && outcome == Outcome::Done;
        let place = &mut self.slots[slot as usize];
        place.connection.ended = place.connection.ended.saturating_add(u32::from(!is_half));
        self.counters.totals.out_of_order += u64::from(is_overtaking);
        self.row(&transfer, slot, outcome);
        self.wake(slot);
        let Transfer { job, is_soa, .. } = transfer;
        if !outcome.is_good() {
            self.failed(job, outcome, None, now_ns);
        } else if is_soa {
            self.judge(slot, &transfer, now_ns);
        } else {
            self.came(slot, &transfer, outcome, now_ns);
        }
        if outcome == Outcome::LimitExceeded && !self.settings.streams {
            // It has no end, so nothing else will come on this connection.
            self.abandon(slot, Ended::Ours, now_ns);
        }
    }

    /// Decides by its SOA whether a zone is to be transferred.
    fn judge(&mut self, slot: u32, transfer: &Transfer, now_ns: i64) {
        let job = transfer.job;
        let newest = transfer.incoming.counts().serial;
        let is_newer = match (self.serial_of(job.secondary, job.zone), newest) {
            (Some(mine), Some(newest)) => is_newer(newest, mine),
            _ => true,
        };
        let place = &mut self.slots[slot as usize];
        let secondary = &mut self.secondaries[job.secondary as usize];
        if !is_newer {
            place.connection.done = place.connection.done.wrapping_add(1);
            place.connection.ended = place.connection.ended.saturating_add(1);
            self.counters.last_done_ns = now_ns;
            self.end(job, Outcome::UpToDate, now_ns);
        } else if place.is_udp {
            secondary.clear(job);
            self.settle_given_up(job.secondary, now_ns);
            self.wake_secondary(job.secondary);
        } else if place.state == State::Open {
            place.follow.push_back(job);
        }
    }

    /// A zone came.
    fn came(&mut self, slot: u32, transfer: &Transfer, outcome: Outcome, now_ns: i64) {
        let place = &mut self.slots[slot as usize];
        let (job, counts) = (transfer.job, transfer.incoming.counts());
        place.connection.done = place.connection.done.wrapping_add(1);
        self.counters.totals.interleaved += u64::from(foreign(transfer) > 0);
        let (waited_ns, took_ns) = (transfer.first_ns - transfer.asked_ns, now_ns - transfer.asked_ns);
        self.counters.came(counts.answered, waited_ns, took_ns, now_ns);
        let at = self.place_of(job.secondary, job.zone);
        if let (Some(mine), Some(newest)) = (self.serials.get_mut(at), counts.serial) {
            *mine = newest;
        }
        self.end(job, outcome, now_ns);
    }

    /// Counts an attempt that has ended, and keeps its row.
    pub(super) fn row(&mut self, transfer: &Transfer, slot: u32, outcome: Outcome) {
        let place = &self.slots[slot as usize];
        let counts = transfer.incoming.counts();
        // An SOA is not an attempt's outcome unless the attempt ends with it.
        if !(transfer.is_soa && outcome == Outcome::Done) {
            self.counters.attempt_outcomes[outcome as usize] += 1;
        }
        self.counters.answered(&counts);
        let asked = match self.settings.serial {
            _ if transfer.is_soa => Asked::Soa,
            Some(_) => Asked::Ixfr,
            None => Asked::Axfr,
        };
        self.row_buffer.transfer(TransferRow {
            zone: transfer.job.zone,
            secondary: self.share.first + transfer.job.secondary,
            connection: place.connection.number,
            attempt: transfer.job.attempt,
            asked,
            answered: counts.answered,
            outcome,
            asked_ns: transfer.asked_ns,
            first_ns: transfer.first_ns,
            last_ns: transfer.last_ns,
            pause_max_ns: transfer.pause_max_ns,
            bytes: counts.bytes,
            messages: counts.messages,
            records: counts.records.min(u32::MAX.into()) as u32,
            serial: counts.serial.unwrap_or(0),
            foreign_messages: foreign(transfer),
        });
    }

    /// The row of a zone that there was no connection to ask for on.
    pub(super) fn row_without_connection(&mut self, job: Job, outcome: Outcome, now_ns: i64) {
        self.counters.attempt_outcomes[outcome as usize] += 1;
        self.counters.totals.attempts += 1;
        self.row_buffer.transfer(TransferRow {
            zone: job.zone,
            secondary: self.share.first + job.secondary,
            connection: NO_CONNECTION,
            attempt: job.attempt.saturating_add(1),
            asked: if self.settings.serial.is_some() { Asked::Ixfr } else { Asked::Axfr },
            answered: Default::default(),
            outcome,
            asked_ns: now_ns,
            first_ns: 0,
            last_ns: now_ns,
            pause_max_ns: 0,
            bytes: 0,
            messages: 0,
            records: 0,
            serial: 0,
            foreign_messages: 0,
        });
    }
}

/// Whether messages may still come with the id of a transfer that ended like this.
fn may_go_on(outcome: Outcome) -> bool {
    use Outcome::{Done, Formerr, Notauth, Notimp, OtherRcode, Refused, Servfail, UpToDate, WrongCount};
    !matches!(outcome, Done | UpToDate | WrongCount | Servfail | Refused | Notauth | Formerr | Notimp | OtherRcode)
}

/// Messages of others between the first and the last of a transfer.
fn foreign(transfer: &Transfer) -> u32 {
    let all = transfer.messages_last.wrapping_sub(transfer.messages_before);
    all.saturating_sub(transfer.incoming.counts().messages)
}
