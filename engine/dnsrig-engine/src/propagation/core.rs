//! Which change and which poll is sent when, and what answers mean: propagation without its socket and its clock.
//!
//! A change raises the serial of a zone on the primary to one that is known when it is sent. From then on every
//! secondary is polled for it, at most `poll_rate_per_s` times a second, and only while a change is missing there. For
//! each change and secondary two times bracket the moment of arrival: the latest poll *sent* that was still answered
//! with an older serial, and the answer *received* with the new one or a later one (RFC 1982: serials only grow, so a
//! later serial shows all earlier changes of its zone).
//!
//! At most one change of a zone waits for the primary's answer at a time, so that serials reach it in order; a change
//! that is due meanwhile is sent late, and its lateness is kept.

use std::collections::VecDeque;

use dnsrig_core::pacer::Pacer;
use dnsrig_dns::serial::is_newer;
use dnsrig_net::outstanding::{OUTSTANDING_MAX, Outstanding};

/// The highest number of secondaries: they are the bits of a word.
pub const SECONDARIES_MAX: usize = 64;

/// The highest number of polls of one secondary that wait for an answer, so that a slow one is not flooded.
const POLLS_OPEN_MAX: u32 = 256;

/// When changes are due.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// One at a time: the next one follows after a pause when every secondary has the one before, or it was given up.
    /// Up to `spread_ns` are added to the pause, each time another part of it, so that changes do not fall in step with
    /// a server's timer.
    Single { pause_ns: i64, spread_ns: i64 },
    /// At a constant rate, whatever the servers do.
    Stream { rate_per_s: f64 },
    /// At a constant rate by the primary itself: each is made when it is due, and nothing is sent.
    Own { rate_per_s: f64 },
}

/// How to measure.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub zones: u32,
    /// 1 to [`SECONDARIES_MAX`].
    pub secondaries: usize,
    pub changes: u32,
    pub pace: Pace,
    /// Polls of one secondary.
    pub poll_rate_per_s: u32,
    /// Time after which a poll counts as unanswered.
    pub poll_timeout_ns: i64,
    /// Time after which a change without an answer of the primary no longer holds up the next one of its zone.
    pub accept_timeout_ns: i64,
    /// From this time on no change is sent.
    pub end_ns: i64,
    /// Time from sending a change after which it is given up if it is not on all secondaries.
    pub limit_ns: i64,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send the update that raises the zone's serial to this one; the change's number in 16 bits is the id.
    Change { number: u32, zone: u32, serial: u32 },
    /// Ask a secondary for the SOA of a zone.
    Poll { id: u16, secondary: usize, zone: u32 },
    /// Nothing, until this time or until an answer comes.
    Wait { until_ns: i64 },
    /// Every change was sent, and seen everywhere or given up.
    Done,
}

/// What is known of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    pub zone: u32,
    pub serial: u32,
    pub due_ns: i64,
    pub sent_ns: i64,
    /// When the primary answered, and its RCODE.
    pub answered: Option<(i64, u8)>,
    /// The secondaries that it is missing on, as bits; empty as well when it was refused or given up.
    missing: u64,
}

impl Change {
    /// When the primary answered that it made the change.
    pub fn accepted_ns(&self) -> Option<i64> {
        self.answered.filter(|(_, rcode)| *rcode == 0).map(|(when_ns, _)| when_ns)
    }

    /// Whether the primary answered that it did not make the change.
    pub fn is_refused(&self) -> bool {
        self.answered.is_some_and(|(_, rcode)| rcode != 0)
    }
}

/// A change as one secondary showed it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sighting {
    /// When the latest poll was sent that was answered with an older serial.
    pub last_unseen_ns: Option<i64>,
    /// When the first answer came with the new serial or a later one.
    pub seen_ns: Option<i64>,
}

/// The polls of one secondary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Polls {
    pub sent: u64,
    pub answered: u64,
    pub timeouts: u64,
}

/// A poll. A late answer to it counts like any other.
#[derive(Clone, Copy)]
struct Poll {
    secondary: u8,
    zone: u32,
    sent_ns: i64,
}

struct Zone {
    /// On the primary, at first.
    first_serial: u32,
    /// The latest serial given to a change, or seen anywhere.
    serial: u32,
    /// Changes that are missing somewhere, oldest first.
    changes: VecDeque<u32>,
    /// The change that waits for the primary's answer.
    unanswered: Option<u32>,
}

struct Secondary {
    pacer: Pacer,
    /// The zone after the one that was polled last.
    turn: usize,
    open: u32,
    polls: Polls,
}

/// The state of a measurement.
pub struct Core {
    settings: Settings,
    start_ns: i64,
    /// When the next change of [`Pace::Single`] is due.
    single_due_ns: i64,
    zones: Vec<Zone>,
    /// Zones with a change that is missing somewhere.
    active: Vec<u32>,
    secondaries: Vec<Secondary>,
    changes: Vec<Change>,
    /// By change, then by secondary.
    sightings: Vec<Sighting>,
    polls: Outstanding<Poll>,
}

impl Core {
    /// A measurement whose first change is due at `start_ns`; `serials` are the zones' serials on the primary.
    pub fn new(settings: Settings, serials: &[u32], start_ns: i64) -> Self {
        assert!(serials.len() == settings.zones as usize && (1..=SECONDARIES_MAX).contains(&settings.secondaries));
        let zone =
            |serial: &u32| Zone { first_serial: *serial, serial: *serial, changes: VecDeque::new(), unanswered: None };
        let pacer = Pacer::new(f64::from(settings.poll_rate_per_s), 0.0).starting(start_ns);
        let secondary = |_| Secondary { pacer, turn: 0, open: 0, polls: Polls::default() };
        Core {
            settings,
            start_ns,
            single_due_ns: start_ns,
            zones: serials.iter().map(zone).collect(),
            active: Vec::new(),
            secondaries: (0..settings.secondaries).map(secondary).collect(),
            changes: Vec::with_capacity(settings.changes as usize),
            sightings: Vec::with_capacity(settings.changes as usize * settings.secondaries),
            polls: Outstanding::new(OUTSTANDING_MAX),
        }
    }

    /// What to do now. Sending counts as done.
    pub fn next(&mut self, now_ns: i64) -> Action {
        self.give_up_overdue(now_ns);
        let (mut change_at_ns, mut zone) = self.next_change();
        while change_at_ns <= now_ns && now_ns < self.settings.end_ns {
            let change = self.send_change(zone, now_ns);
            if !matches!(self.settings.pace, Pace::Own { .. }) {
                return change;
            }
            (change_at_ns, zone) = self.next_change();
        }
        if self.active.is_empty() && (change_at_ns == i64::MAX || now_ns >= self.settings.end_ns) {
            return Action::Done;
        }
        let end_ns = if self.active.is_empty() { self.settings.end_ns } else { i64::MAX };
        let mut wake_ns = change_at_ns.min(end_ns).min(self.next_limit_ns()).min(self.next_timeout_ns());
        for secondary in 0..self.secondaries.len() {
            let Some(zone) = self.wanted_zone(secondary) else { continue };
            let poll_at_ns = self.secondaries[secondary].pacer.ready_ns();
            if poll_at_ns <= now_ns {
                return self.send_poll(secondary, zone, now_ns);
            }
            wake_ns = wake_ns.min(poll_at_ns);
        }
        Action::Wait { until_ns: wake_ns }
    }

    /// Takes in the primary's answer to the change with this number.
    pub fn on_accepted(&mut self, now_ns: i64, number: u32, rcode: u8) {
        let Some(change) = self.changes.get_mut(number as usize).filter(|change| change.answered.is_none()) else {
            return;
        };
        change.answered = Some((now_ns, rcode));
        let zone = change.zone;
        if rcode != 0 {
            change.missing = 0;
            self.forget(zone, now_ns);
        }
        if self.zones[zone as usize].unanswered == Some(number) {
            self.zones[zone as usize].unanswered = None;
        }
    }

    /// The change that was sent under this id last.
    pub fn change_of(&self, id: u16) -> Option<u32> {
        let last = (self.changes.len() as u32).checked_sub(1)?;
        last.checked_sub(u32::from((last as u16).wrapping_sub(id)))
    }

    /// The secondary and the zone that were polled under this id last: an answer must be theirs.
    pub fn poll_of(&self, id: u16) -> Option<(usize, u32)> {
        self.polls.last_with(id).map(|poll| (usize::from(poll.secondary), poll.zone))
    }

    /// Takes in an answer that was checked against [`Core::poll_of`]; `serial` is what it shows, if it shows any.
    pub fn on_polled(&mut self, now_ns: i64, id: u16, serial: Option<u32>) {
        let Some(poll) = self.polls.last_with(id) else { return };
        if self.end_poll(id) {
            self.secondaries[usize::from(poll.secondary)].polls.answered += 1;
        }
        let Some(serial) = serial else { return };
        let zone = &mut self.zones[poll.zone as usize];
        if is_newer(serial, zone.serial) {
            zone.serial = serial;
        }
        let bit = 1 << poll.secondary;
        for number in &zone.changes {
            let change = &mut self.changes[*number as usize];
            if change.missing & bit == 0 {
                continue;
            }
            let place = *number as usize * self.settings.secondaries + usize::from(poll.secondary);
            let sighting = &mut self.sightings[place];
            if serial == change.serial || is_newer(serial, change.serial) {
                change.missing &= !bit;
                sighting.seen_ns = Some(now_ns);
            } else if poll.sent_ns >= change.sent_ns {
                sighting.last_unseen_ns = sighting.last_unseen_ns.max(Some(poll.sent_ns));
            }
        }
        self.forget(poll.zone, now_ns);
    }

    /// All changes that were sent, in order of their numbers.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// How every secondary showed a change; a change with this `number` must have been sent.
    pub fn sightings(&self, number: usize) -> &[Sighting] {
        &self.sightings[number * self.settings.secondaries..][..self.settings.secondaries]
    }

    /// The polls of a secondary, so far.
    pub fn polls(&self, secondary: usize) -> Polls {
        self.secondaries[secondary].polls
    }

    /// When the next change may be sent, and of which zone.
    fn next_change(&self) -> (i64, u32) {
        let number = self.changes.len() as u32;
        let zone = number % self.settings.zones;
        if number >= self.settings.changes {
            return (i64::MAX, zone);
        }
        let held_until_ns = self.zones[zone as usize]
            .unanswered
            .map_or(i64::MIN, |before| self.changes[before as usize].sent_ns + self.settings.accept_timeout_ns);
        let at_ns = self.due_ns(number).max(held_until_ns);
        (if at_ns < self.settings.end_ns { at_ns } else { i64::MAX }, zone)
    }

    fn due_ns(&self, number: u32) -> i64 {
        match self.settings.pace {
            Pace::Stream { rate_per_s } | Pace::Own { rate_per_s } => {
                self.start_ns + (f64::from(number) * 1e9 / rate_per_s) as i64
            }
            Pace::Single { .. } if self.active.is_empty() => self.single_due_ns,
            Pace::Single { .. } => i64::MAX,
        }
    }

    fn send_change(&mut self, zone: u32, now_ns: i64) -> Action {
        let number = self.changes.len() as u32;
        let due_ns = self.due_ns(number);
        let is_own = matches!(self.settings.pace, Pace::Own { .. });
        let state = &mut self.zones[zone as usize];
        // The serial that the primary gives to this change does not depend on what a secondary shows of a later one.
        let own_serial = state.first_serial.wrapping_add(1 + number / self.settings.zones);
        let serial = if is_own { own_serial } else { after(state.serial) };
        state.serial = serial;
        state.unanswered = (!is_own).then_some(number);
        state.changes.push_back(number);
        if state.changes.len() == 1 {
            self.active.push(zone);
        }
        let missing = u64::MAX >> (SECONDARIES_MAX - self.settings.secondaries);
        let (sent_ns, answered) = if is_own { (due_ns, Some((due_ns, 0))) } else { (now_ns, None) };
        self.changes.push(Change { zone, serial, due_ns, sent_ns, answered, missing });
        self.sightings.extend((0..self.settings.secondaries).map(|_| Sighting::default()));
        Action::Change { number, zone, serial }
    }

    /// The zone to poll on a secondary: the next one in turn with a change that is missing there.
    fn wanted_zone(&self, secondary: usize) -> Option<u32> {
        let state = &self.secondaries[secondary];
        if state.open >= POLLS_OPEN_MAX {
            return None;
        }
        let is_missing = |zone: &u32| {
            self.zones[*zone as usize].changes.iter().any(|c| self.changes[*c as usize].missing >> secondary & 1 == 1)
        };
        let turn = state.turn % self.active.len().max(1);
        self.active[turn..].iter().chain(&self.active[..turn]).copied().find(is_missing)
    }

    fn send_poll(&mut self, secondary: usize, zone: u32, now_ns: i64) -> Action {
        let poll = Poll { secondary: secondary as u8, zone, sent_ns: now_ns };
        let id = self.polls.add(poll).expect("fewer polls may be open than there are ids");
        let state = &mut self.secondaries[secondary];
        state.pacer.take(now_ns);
        state.turn = self.active.iter().position(|active| *active == zone).map_or(0, |place| place + 1);
        state.open += 1;
        state.polls.sent += 1;
        Action::Poll { id, secondary, zone }
    }

    /// Ends a poll, and returns whether it was open.
    fn end_poll(&mut self, id: u16) -> bool {
        let Some(poll) = self.polls.get(id) else { return false };
        self.polls.end(id);
        self.secondaries[usize::from(poll.secondary)].open -= 1;
        true
    }

    /// Removes the changes of a zone that are missing nowhere any more.
    fn forget(&mut self, zone: u32, now_ns: i64) {
        let changes = &self.changes;
        let state = &mut self.zones[zone as usize];
        let before = state.changes.len();
        state.changes.retain(|number| changes[*number as usize].missing != 0);
        if before > 0 && state.changes.is_empty() {
            self.active.retain(|active| *active != zone);
            if let Pace::Single { pause_ns, spread_ns } = self.settings.pace {
                self.single_due_ns = now_ns + pause_ns + (spread_ns as f64 * part(self.changes.len())) as i64;
            }
        }
    }

    fn give_up_overdue(&mut self, now_ns: i64) {
        let timeout_ns = self.settings.poll_timeout_ns;
        while let Some((id, poll)) = self.polls.oldest().filter(|(_, poll)| poll.sent_ns + timeout_ns <= now_ns) {
            self.secondaries[usize::from(poll.secondary)].polls.timeouts += 1;
            self.end_poll(id);
        }
        while let Some((zone, oldest)) = self.oldest_change().filter(|(_, c)| self.limit_of(*c) <= now_ns) {
            self.changes[oldest as usize].missing = 0;
            self.forget(zone, now_ns);
        }
    }

    fn oldest_change(&self) -> Option<(u32, u32)> {
        let fronts = self.active.iter().filter_map(|zone| Some((*zone, *self.zones[*zone as usize].changes.front()?)));
        fronts.min_by_key(|(_, number)| *number)
    }

    fn limit_of(&self, number: u32) -> i64 {
        self.changes[number as usize].sent_ns + self.settings.limit_ns
    }

    fn next_limit_ns(&self) -> i64 {
        self.oldest_change().map_or(i64::MAX, |(_, number)| self.limit_of(number))
    }

    fn next_timeout_ns(&self) -> i64 {
        self.polls.oldest().map_or(i64::MAX, |(_, poll)| poll.sent_ns + self.settings.poll_timeout_ns)
    }
}

/// Numbers from 0 to 1, spread evenly however many are taken: multiples of the golden ratio, without their whole part
/// (Weyl's sequence; Knuth, The Art of Computer Programming, volume 3, section 6.4).
fn part(number: usize) -> f64 {
    (number as f64 * 0.618_033_988_749_895).fract()
}

/// The serial after this one (RFC 1982 §3.1). Some servers read 0 as no serial, so it is left out.
fn after(serial: u32) -> u32 {
    serial.wrapping_add(1).max(1)
}

#[cfg(test)]
#[path = "core_tests.rs"]
mod tests;
