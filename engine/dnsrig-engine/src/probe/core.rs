//! Which zone to poll when: the probe without its socket and its clock.
//!
//! Only zones not yet seen are polled, in turn. Polls are paced by a token bucket, and **a poll that finds its zone
//! gives its token back**: every zone does so once, so the load on the server stays below
//! `zones + rate × time + burst` polls, and yet a run of zones that are ready is seen as fast as the server answers
//! (with at most `window` polls outstanding). With the tokens alone, 100,000 zones that became ready at once would
//! take 50 s to see at 2,000 polls a second, and the figure would be the probe's own.
//!
//! A server that answers nothing (not started yet, or hung) is *silent*. Then polls are sent at most once a
//! millisecond, and are given up after two: neither the window nor the timeout may hold them back, or the first answer
//! would be found with the resolution of the timeout, not of a millisecond. (Their answers still count when they come.)
//! The longer the silence, the rarer the polls: a server that is bound but busy keeps them in its socket's buffer and
//! answers all of them at once, so more of them would show nothing new and be dropped there. A refusal (ICMP) ends a
//! silence.
//!
//! Bounds: [`Core`] needs 28 bytes a zone, and every operation takes constant (for the ring: amortised constant) time.

use std::collections::VecDeque;

use dnsrig_core::pacer::Pacer;
use dnsrig_net::outstanding::{OUTSTANDING_MAX, Outstanding};

/// While the server is silent, and after an error of the socket, polls are at least this far apart.
const SILENT_SPACING_NS: i64 = 1_000_000;

/// While the server is silent, a poll is given up after this time, so that its zone can be polled again.
const SILENT_TIMEOUT_NS: i64 = 2 * SILENT_SPACING_NS;

/// While the server is silent, polls are apart by the silence so far divided by this: the moment at which it ends is
/// known to 1.6 %, and the first two seconds take no more polls than a socket's receive buffer holds.
const SILENT_SPACING_DIVISOR: i64 = 64;

/// However long the silence, polls are no further apart than this.
const SILENT_SPACING_MAX_NS: i64 = 100_000_000;

/// While the server is silent, at most this many polls are outstanding. A socket's receive buffer of the default size
/// (net.core.rmem_default) holds a quarter of a thousand small datagrams, so more would only be dropped there.
const SILENT_WINDOW_MAX: usize = 256;

/// A burst is at least this many polls, and at most ten milliseconds' worth of the rate.
const BURST_MIN: u32 = 16;

/// Marks a time that does not exist: the monotonic clock is positive.
const NEVER: i64 = i64::MIN;

/// How to poll.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Polls a second, apart from those that find their zone; at least 1.
    pub rate: u32,
    /// At most this many polls wait for an answer; 1 to 4096.
    pub window: u32,
    /// Time after which a poll without an answer is given up, in nanoseconds.
    pub timeout_ns: i64,
    /// Whether a poll that finds its zone gives its token back.
    pub refund: bool,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send this query; call [`Core::on_not_sent`] if that fails.
    Send { id: u16, zone: u32 },
    /// Nothing, until this time or until an answer comes.
    Wait { until_ns: i64 },
    /// All zones are seen.
    Done,
}

/// What an answer to a poll shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The server has the zone, with this serial, which is the awaited one or a newer one.
    Ready { serial: u32 },
    /// The server does not have the zone, or not yet.
    NotReady,
}

/// What is known of one zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneState {
    /// When the last poll was sent that was answered otherwise, or refused. The server's state is looked at after that
    /// moment, so the zone was not ready then. A poll without an answer proves nothing.
    pub last_unseen_ns: Option<i64>,
    /// When the answer came that showed the zone, and the serial in it. It was ready before that moment.
    pub seen: Option<(i64, u32)>,
    /// How many queries were sent for it.
    pub polls: u32,
}

/// How the polls ended. `polls` is the sum of `answered`, `timeouts`, `unreachable` and the polls still outstanding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Queries sent.
    pub polls: u64,
    /// Answered in time.
    pub answered: u64,
    /// Given up because no answer came in time.
    pub timeouts: u64,
    /// Given up after an ICMP error: nothing listens.
    pub unreachable: u64,
    /// Answers that came after their poll was given up.
    pub late: u64,
    /// Zones seen.
    pub seen: u64,
}

/// A query.
#[derive(Clone, Copy)]
struct Poll {
    zone: u32,
    sent_ns: i64,
    /// The zone's `last_unseen_ns` before this poll was given up, to go back to if its answer comes after all.
    unseen_before_ns: i64,
}

/// The state of a probe.
pub struct Core {
    settings: Settings,
    last_unseen_ns: Vec<i64>,
    seen_ns: Vec<i64>,
    serials: Vec<u32>,
    polls: Vec<u32>,
    outstanding: Outstanding<Poll>,
    /// Zones to poll, in turn. A zone seen by a late answer leaves it when its turn comes.
    ring: VecDeque<u32>,
    pacer: Pacer,
    /// No poll before this time.
    not_before_ns: i64,
    last_sent_ns: i64,
    last_answer_ns: i64,
    /// When an answer of the server, or a refusal of its host, last came; at first, when the first poll was sent.
    sign_of_life_ns: i64,
    counts: Counts,
}

impl Core {
    /// A probe of zones 0 to `zones` - 1, none of them seen.
    pub fn new(zones: u32, settings: Settings) -> Self {
        let count = zones as usize;
        let rate = f64::from(settings.rate.max(1));
        Core {
            settings,
            last_unseen_ns: vec![NEVER; count],
            seen_ns: vec![NEVER; count],
            serials: vec![0; count],
            polls: vec![0; count],
            outstanding: Outstanding::new(OUTSTANDING_MAX),
            ring: (0..zones).collect(),
            pacer: Pacer::new(rate, f64::from(burst(settings.rate) - 1) * 1e9 / rate),
            not_before_ns: NEVER,
            last_sent_ns: NEVER,
            last_answer_ns: NEVER,
            sign_of_life_ns: NEVER,
            counts: Counts::default(),
        }
    }

    /// What to do now. Sending counts as done.
    pub fn next(&mut self, now_ns: i64) -> Action {
        self.give_up_overdue(now_ns);
        if self.counts.seen == self.seen_ns.len() as u64 {
            return Action::Done;
        }
        while self.ring.front().is_some_and(|zone| self.is_seen(*zone)) {
            self.ring.pop_front();
        }
        let ready_ns = self.may_send_at(now_ns);
        match self.ring.front() {
            Some(zone) if ready_ns <= now_ns => {
                let zone = *zone;
                self.ring.pop_front();
                Action::Send { id: self.send(zone, now_ns), zone }
            }
            _ => Action::Wait { until_ns: self.wake_at(ready_ns, self.timeout_ns(now_ns)) },
        }
    }

    /// The zone that was asked for under this id, if the id means anything: the answer must be for that zone.
    pub fn zone_of(&self, id: u16) -> Option<u32> {
        self.outstanding.last_with(id).map(|poll| poll.zone)
    }

    /// Takes in an answer, whose question was checked against [`Core::zone_of`]. True if the zone is new.
    pub fn on_answer(&mut self, now_ns: i64, id: u16, found: Found) -> bool {
        let Some(poll) = self.outstanding.last_with(id) else { return false };
        self.last_answer_ns = now_ns;
        self.sign_of_life_ns = now_ns;
        let in_time = self.outstanding.get(id).is_some();
        if in_time {
            self.counts.answered += 1;
            self.outstanding.end(id);
        } else {
            self.counts.late += 1;
        }
        match found {
            Found::Ready { serial } => self.mark_seen(now_ns, &poll, in_time, serial),
            Found::NotReady if in_time => {
                self.mark_unseen(poll.zone, poll.sent_ns);
                false
            }
            Found::NotReady => false,
        }
    }

    /// Takes in an ICMP error: nothing listens there. It does not say which poll it is for, so all are given up; should
    /// one of them be answered all the same, that answer counts as a late one.
    pub fn on_unreachable(&mut self, now_ns: i64) {
        // It is for the oldest of them or for a later one: the port was closed after the oldest was sent.
        let closed_ns = self.outstanding.oldest().map_or(NEVER, |(_, poll)| poll.sent_ns);
        while let Some((id, _)) = self.outstanding.oldest() {
            self.counts.unreachable += 1;
            self.give_up(id, closed_ns);
        }
        self.last_answer_ns = NEVER;
        self.sign_of_life_ns = now_ns;
        self.hold(now_ns);
    }

    /// Takes back the [`Action::Send`] of this id: the query was not sent.
    pub fn on_not_sent(&mut self, now_ns: i64, id: u16) {
        let Some(poll) = self.outstanding.get(id) else { return };
        self.outstanding.take_back(id);
        self.ring.push_front(poll.zone);
        self.polls[poll.zone as usize] -= 1;
        self.counts.polls -= 1;
        self.pacer.give_back();
        self.hold(now_ns);
    }

    /// What is known of a zone.
    pub fn zone(&self, zone: u32) -> ZoneState {
        let zone = zone as usize;
        let time = |time_ns: i64| (time_ns != NEVER).then_some(time_ns);
        ZoneState {
            last_unseen_ns: time(self.last_unseen_ns[zone]),
            seen: time(self.seen_ns[zone]).map(|seen_ns| (seen_ns, self.serials[zone])),
            polls: self.polls[zone],
        }
    }

    /// What is known of every zone, in the order of their numbers.
    pub fn zones(&self) -> impl ExactSizeIterator<Item = ZoneState> {
        (0..self.seen_ns.len() as u32).map(|zone| self.zone(zone))
    }

    /// How the polls ended, so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    fn is_seen(&self, zone: u32) -> bool {
        self.seen_ns[zone as usize] != NEVER
    }

    /// Whether no poll of the last timeout was answered.
    fn is_silent(&self, now_ns: i64) -> bool {
        self.last_answer_ns == NEVER || now_ns - self.last_answer_ns > self.settings.timeout_ns
    }

    /// How far apart polls are while the server is silent.
    fn silent_spacing_ns(&self, now_ns: i64) -> i64 {
        let silence_ns = now_ns - self.sign_of_life_ns;
        (silence_ns / SILENT_SPACING_DIVISOR).clamp(SILENT_SPACING_NS, SILENT_SPACING_MAX_NS)
    }

    /// How long a poll may wait for its answer.
    fn timeout_ns(&self, now_ns: i64) -> i64 {
        if self.is_silent(now_ns) { SILENT_TIMEOUT_NS.min(self.settings.timeout_ns) } else { self.settings.timeout_ns }
    }

    /// When the next poll may be sent: now or earlier, at a known time, or (`i64::MAX`) only after another ends.
    fn may_send_at(&self, now_ns: i64) -> i64 {
        let window = self.settings.window as usize;
        let silent = self.is_silent(now_ns);
        let window = if silent { window.max(SILENT_WINDOW_MAX) } else { window };
        if self.outstanding.len() >= window {
            return i64::MAX;
        }
        let paced_ns = self.pacer.ready_ns().max(self.not_before_ns);
        if silent && self.last_sent_ns != NEVER {
            return paced_ns.max(self.last_sent_ns + self.silent_spacing_ns(self.last_sent_ns));
        }
        paced_ns
    }

    /// When to look again: when a poll may be sent or the oldest outstanding one is overdue.
    fn wake_at(&self, ready_ns: i64, timeout_ns: i64) -> i64 {
        let overdue_ns = self.outstanding.oldest().map_or(i64::MAX, |(_, poll)| poll.sent_ns + timeout_ns);
        let ready_ns = if self.ring.is_empty() { i64::MAX } else { ready_ns };
        ready_ns.min(overdue_ns)
    }

    fn send(&mut self, zone: u32, now_ns: i64) -> u16 {
        if self.sign_of_life_ns == NEVER {
            self.sign_of_life_ns = now_ns;
        }
        self.last_sent_ns = now_ns;
        self.pacer.take(now_ns);
        self.polls[zone as usize] += 1;
        self.counts.polls += 1;
        let poll = Poll { zone, sent_ns: now_ns, unseen_before_ns: NEVER };
        self.outstanding.add(poll).expect("the window is smaller than the number of ids")
    }

    fn give_up_overdue(&mut self, now_ns: i64) {
        let timeout_ns = self.timeout_ns(now_ns);
        while let Some((id, _)) = self.outstanding.oldest().filter(|(_, poll)| poll.sent_ns + timeout_ns <= now_ns) {
            self.counts.timeouts += 1;
            self.give_up(id, NEVER);
        }
    }

    /// Ends a poll without an answer; its zone is known not to have been ready at `unready_ns`, or [`NEVER`].
    fn give_up(&mut self, id: u16, unready_ns: i64) {
        let Some(poll) = self.outstanding.get_mut(id) else { return };
        let zone = poll.zone;
        poll.unseen_before_ns = self.last_unseen_ns[zone as usize];
        self.outstanding.end(id);
        self.mark_unseen(zone, unready_ns);
    }

    fn mark_unseen(&mut self, zone: u32, unready_ns: i64) {
        if !self.is_seen(zone) {
            let last_unseen_ns = &mut self.last_unseen_ns[zone as usize];
            *last_unseen_ns = unready_ns.max(*last_unseen_ns);
            self.ring.push_back(zone);
        }
    }

    fn mark_seen(&mut self, now_ns: i64, poll: &Poll, in_time: bool, serial: u32) -> bool {
        if self.is_seen(poll.zone) {
            return false;
        }
        let zone = poll.zone as usize;
        self.seen_ns[zone] = now_ns;
        self.serials[zone] = serial;
        self.counts.seen += 1;
        if !in_time {
            // The poll was answered after all, so neither it nor any later one shows that the zone was not ready.
            self.last_unseen_ns[zone] = self.last_unseen_ns[zone].min(poll.unseen_before_ns);
        }
        if self.settings.refund {
            self.pacer.give_back();
        }
        true
    }

    fn hold(&mut self, now_ns: i64) {
        self.not_before_ns = now_ns + SILENT_SPACING_NS;
    }
}

/// The largest burst at `rate`, in polls.
pub fn burst(rate: u32) -> u32 {
    (rate / 100).max(BURST_MIN)
}

#[cfg(test)]
#[path = "core_tests.rs"]
mod tests;
