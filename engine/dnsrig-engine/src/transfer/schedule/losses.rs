//! What follows if something does not come: connections that end, silence, failures, and the ends of zones.

use dnsrig_dns::{
    serial::is_newer,
    xfr::{Cut, Outcome},
};

use super::{
    Schedule,
    secondaries::{Job, Standing},
    slots::{Ended, Handshake, State},
    timers::Timer,
    transfers::TimeLimits,
};
use crate::transfer::row_buffer::ConnectionRow;

/// The pause after which this host tries again if it had no port left.
const NO_PORT_PAUSE_NS: i64 = 20_000_000;

/// A connection that was accepted and brought nothing may be the fault of a zone, so there are a few more of them.
const OPEN_FRUITLESS_MAX: u16 = 3;

/// The time without a free port after which no port is expected: longer than a port is kept in TIME_WAIT (60 s).
const NO_PORT_NS_MAX: i64 = 150_000_000_000;

/// A UDP query or its answer may be lost, so it is asked again sooner than a connection is given up.
const UDP_TIMEOUT_NS_MAX: i64 = 2_000_000_000;

/// How often in a timeout the transfers of a connection are checked at most, as there may be many.
const CHECKS_A_TIMEOUT: i64 = 16;

/// The pause after which the next round begins if all zones failed.
const ROUND_PAUSE_NS: i64 = 1_000_000_000;

impl Schedule {
    /// A connection is open.
    pub fn opened(&mut self, slot: u32, handshake: Handshake, now_ns: i64) {
        let place = &mut self.slots[slot as usize];
        if place.state != State::Opening {
            // It was given up meanwhile, and is to be closed.
            return;
        }
        (place.state, place.no_port_ns) = (State::Open, 0);
        let connection = &mut place.connection;
        (connection.established_ns, connection.alive_ns, connection.handshake) = (now_ns, now_ns, handshake);
        if !place.is_udp {
            let secondary = &mut self.secondaries[place.secondary as usize];
            secondary.opening = secondary.opening.saturating_sub(1);
            self.counters.established(handshake);
        }
        self.wake(slot);
    }

    /// The shell knows that a connection is over, or that none could be begun; it has closed it.
    pub fn lost(&mut self, slot: u32, ended: Ended, now_ns: i64) {
        let place = &mut self.slots[slot as usize];
        if place.state == State::Idle {
            return;
        }
        if ended == Ended::NoPort {
            let since_ns = if place.no_port_ns == 0 { now_ns } else { place.no_port_ns };
            place.no_port_ns = since_ns;
            if now_ns - since_ns < NO_PORT_NS_MAX {
                return self.wait_for_port(slot, now_ns);
            }
        }
        let was_open = place.state == State::Open;
        // A primary that permits no stream at all is as fruitless as a primary that closes every connection.
        let is_ours = ended == Ended::Ours || (ended == Ended::UsedUp && place.connection.ended > 0);
        let has_failed = !was_open || (!place.connection.has_brought && !is_ours);
        let cut = match ended {
            Ended::Tls => Cut::Tls,
            // Over UDP a port that is closed shows only once it was asked.
            _ if !was_open || ended == Ended::Refused => Cut::NoConnection,
            Ended::Ours => Cut::Ours,
            Ended::Closed | Ended::UsedUp => Cut::Closed,
            Ended::Reset | Ended::Refused | Ended::NoPort => Cut::Reset,
            Ended::TimedOut => Cut::TimedOut,
        };
        self.release(slot, cut, ended, now_ns);
        self.vacate(slot, ended, now_ns);
        if has_failed {
            let times = self.settings.retry.times;
            let times_max = if was_open { times.max(OPEN_FRUITLESS_MAX) } else { times };
            self.count_fruitless(slot, times_max, cut.outcome(), now_ns);
        }
        let secondary = self.slots[slot as usize].secondary;
        self.settle_given_up(secondary, now_ns);
        self.wake_secondary(secondary);
    }

    /// Ends a connection on which nothing more is expected.
    pub(super) fn abandon(&mut self, slot: u32, ended: Ended, now_ns: i64) {
        if self.slots[slot as usize].state != State::Idle {
            self.closing.push_back(slot);
            self.lost(slot, ended, now_ns);
        }
    }

    /// Closes a connection on which nothing is outstanding.
    pub(super) fn close(&mut self, slot: u32, now_ns: i64) {
        self.closing.push_back(slot);
        self.vacate(slot, Ended::Ours, now_ns);
        self.wake(slot);
    }

    /// Does what is due by now.
    pub fn tick(&mut self, now_ns: i64) {
        if !self.paced.is_empty() && self.pacer.ready_ns() <= now_ns {
            std::mem::take(&mut self.paced).into_iter().for_each(|slot| self.wake(slot));
        }
        while let Some(timer) = self.timers.take(now_ns) {
            match timer {
                Timer::Open(slot) => self.wake(slot),
                Timer::Check(slot) => self.check(slot, now_ns),
                Timer::Retry(job) => self.ask_again(job, now_ns),
                Timer::Round => self.begin_round(),
            }
        }
    }

    /// A NOTIFY for a zone came to a secondary of this schedule, both by number. The serial in it is a hint (RFC
    /// 1996 §3.7): if it is not newer than the serial of the secondary, nothing is asked for.
    pub fn notify(&mut self, secondary: u32, zone: u32, serial: Option<u32>, now_ns: i64) {
        self.counters.totals.notifies += 1;
        let at = self.place_of(secondary, zone);
        let mine = self.serials.get(at);
        if let (Some(serial), Some(mine)) = (serial, mine)
            && !is_newer(serial, *mine)
        {
            return;
        }
        self.ask_for_notified(secondary, zone, now_ns);
    }

    fn ask_for_notified(&mut self, secondary: u32, zone: u32, now_ns: i64) {
        let at = self.place_of(secondary, zone);
        let Some(standing) = self.states.get_mut(at).filter(|_| !self.is_stopped) else { return };
        if *standing != Standing::Rest {
            *standing = Standing::AskedAgain;
            return;
        }
        *standing = Standing::Asked;
        let notified = &mut self.secondaries[secondary as usize];
        if notified.notify_ns == 0 {
            notified.notify_ns = now_ns;
        }
        // The server is there after all.
        notified.given_up = None;
        notified.add(Job { secondary, zone, attempt: 0, failures: 0 });
        self.left += 1;
        for slot in secondary * self.slots_each..(secondary + 1) * self.slots_each {
            let place = &mut self.slots[slot as usize];
            if place.given_up {
                (place.given_up, place.fruitless, place.open_after_ns) = (false, 0, 0);
            }
        }
        self.wake_secondary(secondary);
    }

    /// Time is over: what is under way is left as it is, and all connections are closed.
    pub fn stop(&mut self, now_ns: i64) {
        self.is_stopped = true;
        for slot in 0..self.slots.len() as u32 {
            if self.slots[slot as usize].state != State::Idle {
                self.closing.push_back(slot);
                self.vacate(slot, Ended::Ours, now_ns);
            }
        }
    }

    /// An attempt has failed: the zone is asked for again after `wait_ns`, by the policy if that is None, or has ended.
    pub(super) fn failed(&mut self, mut job: Job, outcome: Outcome, wait_ns: Option<i64>, now_ns: i64) {
        job.failures = job.failures.saturating_add(1);
        match self.settings.retry.wait_ns(outcome, job.failures) {
            Some(by_policy_ns) => self.timers.add(now_ns + wait_ns.unwrap_or(by_policy_ns), Timer::Retry(job)),
            None => self.end(job, outcome, now_ns),
        }
    }

    /// A zone has ended.
    pub(super) fn end(&mut self, job: Job, outcome: Outcome, now_ns: i64) {
        self.counters.outcomes[outcome as usize] += 1;
        let secondary = &mut self.secondaries[job.secondary as usize];
        if outcome.is_good() {
            secondary.done += 1;
            secondary.last_ns = now_ns;
            self.good += 1;
        } else {
            secondary.failed += 1;
        }
        self.left -= 1;
        let at = self.place_of(job.secondary, job.zone);
        if let Some(standing) = self.states.get_mut(at) {
            let again = *standing == Standing::AskedAgain;
            *standing = Standing::Rest;
            if again {
                self.ask_for_notified(job.secondary, job.zone, now_ns);
            }
        } else if self.left == 0 && self.settings.repeat && !self.is_stopped {
            let pause_ns = if self.good == 0 { ROUND_PAUSE_NS } else { 0 };
            self.timers.add(now_ns + pause_ns, Timer::Round);
        }
    }

    fn begin_round(&mut self) {
        self.good = 0;
        self.left = self.secondaries.len() as u64 * u64::from(self.zones.count());
        self.secondaries.iter_mut().for_each(super::Secondary::restart);
        for slot in 0..self.slots.len() as u32 {
            let place = &mut self.slots[slot as usize];
            (place.given_up, place.fruitless) = (false, 0);
            self.wake(slot);
        }
    }

    fn ask_again(&mut self, job: Job, now_ns: i64) {
        let secondary = &mut self.secondaries[job.secondary as usize];
        match secondary.given_up {
            Some(outcome) => {
                self.row_without_connection(job, outcome, now_ns);
                self.end(job, outcome, now_ns);
            }
            None => {
                secondary.add(job);
                self.wake_secondary(job.secondary);
            }
        }
    }

    /// Takes the outstanding transfers from a connection that is over, and asks for them again by the policy.
    fn release(&mut self, slot: u32, cut: Cut, ended: Ended, now_ns: i64) {
        let timeout_ns = self.settings.timeout_ns;
        let any_begun = self.slots[slot as usize].queries.iter().any(|(_, at)| self.transfers.get(at).first_ns > 0);
        let has_ended_some = self.slots[slot as usize].connection.ended > 0;
        let mut innocent = Vec::new();
        let mut is_first = true;
        while let Some((id, at)) = self.slots[slot as usize].queries.oldest() {
            let queries = &mut self.slots[slot as usize].queries;
            let (mut transfer, _) = self.transfers.remove(at, queries, now_ns);
            queries.end(id);
            if ended == Ended::UsedUp {
                self.take_back(slot, &mut transfer.job);
                innocent.push(transfer.job);
                continue;
            }
            let outcome = transfer.incoming.cut(cut);
            self.row(&transfer, slot, outcome);
            let is_guilty = match ended {
                Ended::Ours => false,
                Ended::TimedOut => is_first || transfer.asked_ns + timeout_ns <= now_ns,
                _ => transfer.first_ns > 0 || (is_first && !any_begun && !has_ended_some),
            };
            if is_guilty {
                // The first transfer of a connection that stalls waits, so that the others come before it.
                let wait_ns = (ended == Ended::TimedOut && !is_first).then_some(0);
                self.failed(transfer.job, outcome, wait_ns, now_ns);
            } else {
                innocent.push(transfer.job);
            }
            is_first = false;
        }
        let mut follow = std::mem::take(&mut self.slots[slot as usize].follow);
        if is_first && !has_ended_some && !matches!(ended, Ended::Ours | Ended::UsedUp) {
            // Their SOAs came, and then nothing.
            follow.pop_front().into_iter().for_each(|job| self.failed(job, cut.outcome(), None, now_ns));
        }
        let secondary = &mut self.secondaries[self.slots[slot as usize].secondary as usize];
        innocent.into_iter().chain(follow).rev().for_each(|job| secondary.put_back(job));
    }

    /// A query got no stream, so it was never sent: it is no attempt.
    fn take_back(&mut self, slot: u32, job: &mut Job) {
        self.slots[slot as usize].connection.asked -= 1;
        let totals = &mut self.counters.totals;
        totals.attempts -= 1;
        totals.retries -= u64::from(job.attempt > 1);
        job.attempt -= 1;
    }

    /// Notes that a connection is over.
    fn vacate(&mut self, slot: u32, ended: Ended, now_ns: i64) {
        let place = &mut self.slots[slot as usize];
        if !place.is_udp {
            if place.state == State::Opening {
                let secondary = &mut self.secondaries[place.secondary as usize];
                secondary.opening = secondary.opening.saturating_sub(1);
            }
            self.counters.ended(ended);
            let secondary = self.share.first + place.secondary;
            let connection = &place.connection;
            self.row_buffer.connection(ConnectionRow {
                connection: connection.number,
                secondary,
                port: connection.port,
                begun_ns: connection.begun_ns,
                established_ns: connection.established_ns,
                closed_ns: now_ns,
                handshake: connection.handshake,
                ended,
                asked: connection.asked,
                done: connection.done,
                bytes: connection.bytes,
                messages: connection.messages,
            });
        } else if ended == Ended::Refused {
            self.counters.ended(ended);
        }
        place.state = State::Idle;
        place.queries.clear();
    }

    /// Waits for a port; only the first of a series has a row.
    fn wait_for_port(&mut self, slot: u32, now_ns: i64) {
        let place = &mut self.slots[slot as usize];
        let is_first = place.no_port_ns == now_ns;
        place.open_after_ns = now_ns + NO_PORT_PAUSE_NS;
        self.timers.add(place.open_after_ns, Timer::Open(slot));
        if is_first {
            self.vacate(slot, Ended::NoPort, now_ns);
        } else {
            let secondary = &mut self.secondaries[place.secondary as usize];
            secondary.opening = secondary.opening.saturating_sub(1);
            place.state = State::Idle;
            self.counters.connections.no_port += 1;
        }
    }

    /// A connection brought nothing: the next follows later, or never.
    fn count_fruitless(&mut self, slot: u32, times_max: u16, outcome: Outcome, now_ns: i64) {
        let place = &mut self.slots[slot as usize];
        place.fruitless = place.fruitless.saturating_add(1);
        if place.fruitless <= times_max {
            place.open_after_ns = now_ns + self.settings.retry.pause_ns(place.fruitless);
            self.timers.add(place.open_after_ns, Timer::Open(slot));
            return;
        }
        place.given_up = true;
        let secondary = place.secondary;
        let first = (secondary * self.slots_each) as usize;
        let mut slots = self.slots[first..first + self.slots_each as usize].iter();
        let (mut lacks_connections, mut lacks_udp) = (true, false);
        slots.all(|slot| {
            lacks_connections &= slot.is_udp || slot.given_up;
            lacks_udp |= slot.is_udp && slot.given_up;
            true
        });
        if lacks_connections || lacks_udp {
            self.secondaries[secondary as usize].given_up = Some(outcome);
        }
    }

    /// Ends all zones that wait if their secondary can get no connection.
    pub(super) fn settle_given_up(&mut self, number: u32, now_ns: i64) {
        let Some(outcome) = self.secondaries[number as usize].given_up else { return };
        while let Some(job) = self.secondaries[number as usize].drain(number) {
            self.row_without_connection(job, outcome, now_ns);
            self.end(job, outcome, now_ns);
        }
    }

    /// Checks whether a slot's connection or transfers have been silent for too long.
    fn check(&mut self, slot: u32, now_ns: i64) {
        let timeout_ns = self.settings.timeout_ns;
        let place = &mut self.slots[slot as usize];
        place.is_checked = false;
        let due_ns = match place.state {
            State::Idle => return,
            State::Opening => place.connection.begun_ns + timeout_ns,
            State::Open if place.queries.is_empty() => return,
            State::Open if place.is_udp => i64::MAX,
            State::Open => place.connection.alive_ns + timeout_ns,
        };
        if due_ns <= now_ns {
            self.abandon(slot, Ended::TimedOut, now_ns);
            return;
        }
        let due_ns = due_ns.min(self.expire(slot, now_ns)).max(now_ns + timeout_ns / CHECKS_A_TIMEOUT);
        let place = &mut self.slots[slot as usize];
        // What is asked for next sets the timer anew.
        if place.state == State::Opening || !place.queries.is_empty() {
            place.is_checked = true;
            self.timers.add(due_ns, Timer::Check(slot));
        }
    }

    /// The time after which an answer is no longer expected.
    pub(super) fn timeout_of(&self, slot: u32) -> i64 {
        let timeout_ns = self.settings.timeout_ns;
        if self.slots[slot as usize].is_udp { timeout_ns.min(UDP_TIMEOUT_NS_MAX) } else { timeout_ns }
    }

    /// Gives up the transfers of a slot that have had enough time; returns when the next may be.
    fn expire(&mut self, slot: u32, now_ns: i64) -> i64 {
        let time_limits = TimeLimits { timeout_ns: self.timeout_of(slot), time_ns_max: self.settings.time_ns_max };
        let place = &self.slots[slot as usize];
        let (expired, due_ns) =
            self.transfers.expired(&place.queries, place.connection.partial_ns, time_limits, now_ns);
        let mut is_busy = false;
        for (at, cut) in expired {
            let queries = &self.slots[slot as usize].queries;
            let (transfer, _) = self.transfers.remove(at, queries, now_ns);
            self.break_off(slot, transfer.id);
            let outcome = transfer.incoming.cut(cut);
            self.row(&transfer, slot, outcome);
            self.failed(transfer.job, outcome, None, now_ns);
            self.wake(slot);
            is_busy |= cut != Cut::TimedOut && !self.settings.streams;
        }
        if is_busy {
            // A transfer without an end keeps everything else from coming on this connection.
            let has_brought = self.slots[slot as usize].connection.has_brought;
            self.abandon(slot, if has_brought { Ended::Ours } else { Ended::TimedOut }, now_ns);
        }
        due_ns
    }
}
