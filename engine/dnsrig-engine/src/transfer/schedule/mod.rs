//! Which zone is asked for when, on which connection, and what follows if it does not come. No clock, no socket.
//!
//! A [`Schedule`] plays some secondaries. It gives orders ([`Schedule::order`]): open a connection, send queries on one
//! ([`Schedule::fill`] writes them), close one. It takes in what happens: a connection is open ([`Schedule::opened`])
//! or over ([`Schedule::lost`]), a message came ([`Schedule::message`]), time passed ([`Schedule::tick`]). Its rules
//! are described at [`Retry`] and [`Transfers::expired`](transfers::Transfers::expired).

mod answers;
mod losses;
pub mod policy;
pub mod secondaries;
pub mod slots;
mod timers;
mod transfers;

use std::{collections::VecDeque, sync::Arc};

use dnsrig_core::pacer::Pacer;
use dnsrig_dns::{
    framing::PREFIX_BYTES,
    query::{Ask, write_query},
    tsig::{sign::Signer, verify::Verifier},
    xfr::Incoming,
    zones::Zones,
};

pub use self::policy::{Policy, Retry, Settings, SoaFirst};
use super::{
    counters::Counters,
    row_buffer::RowBuffer,
    schedule::{
        secondaries::{Job, Secondary, Standing},
        slots::{Slot, State},
        timers::{Timer, Timers},
        transfers::{Transfer, Transfers},
    },
    sinks::SinkFactory,
};

/// The time that is made up for after a pause, at most.
const BEHIND_NS_MAX: f64 = 1e7;

/// Queries are written in pieces of about this size, so that the queries of one connection do not keep the others
/// waiting.
const FILL_BYTES_MAX: usize = 128 << 10;

/// The number of SOAs that one secondary asks for over UDP at a time.
const UDP_WINDOW: u32 = 64;

/// What the shell is to do next. The number is a slot's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Begin a connection.
    Open(u32),
    /// Send what [`Schedule::fill`] writes.
    Fill(u32),
    /// Close the connection; the slot counts as closed already.
    Close(u32),
    /// Cancel the stream of the query with this id; the query counts as ended already.
    Cancel(u32, u16),
}

/// Which of all secondaries this schedule plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// How many.
    pub secondaries: u32,
    /// The number of the first.
    pub first: u32,
    /// Numbers of connections are `thread`, `thread + threads` and so on.
    pub thread: u32,
    pub threads: u32,
}

/// The schedule of one thread.
pub struct Schedule {
    settings: Settings,
    share: Share,
    zones: Arc<Zones>,
    signer: Option<Arc<Signer>>,
    sink_factory: SinkFactory,
    secondaries: Vec<Secondary>,
    slots: Vec<Slot>,
    slots_each: u32,
    transfers: Transfers,
    timers: Timers,
    pacer: Pacer,
    /// Slots that wait for it.
    paced: Vec<u32>,
    /// Slots that may have something to do.
    woken: VecDeque<u32>,
    /// Connections that are to be closed.
    closing: VecDeque<u32>,
    /// Streams that are to be cancelled, with their slots.
    cancelling: VecDeque<(u32, u16)>,
    connections: u32,
    /// With NOTIFY: the state of each zone of each secondary, and its serial.
    states: Vec<Standing>,
    serials: Vec<u32>,
    /// Zones of all secondaries that are not ended in this round.
    left: u64,
    /// Zones that were good in this round.
    good: u64,
    wall_s: u64,
    is_stopped: bool,
    pub counters: Counters,
    pub row_buffer: RowBuffer,
}

impl Schedule {
    /// A schedule at `now_ns`, before its first order.
    pub fn new(
        settings: Settings,
        share: Share,
        zones: Arc<Zones>,
        signer: Option<Arc<Signer>>,
        sink_factory: SinkFactory,
        row_buffer: RowBuffer,
    ) -> Self {
        // No more are under way than there are zones, and tables of ids are as large as the window.
        let settings = Settings { window: settings.window.min(zones.count().max(1)), ..settings };
        let asks_udp = settings.soa == SoaFirst::Udp;
        let slots_each = settings.connections + u32::from(asks_udp);
        let listed = if settings.on_notify { 0 } else { zones.count() };
        let slot = |number: u32| {
            let is_udp = number % slots_each == settings.connections;
            Slot::new(number / slots_each, is_udp, if is_udp { UDP_WINDOW } else { settings.window() })
        };
        let places = if settings.on_notify { zones.count() as usize * share.secondaries as usize } else { 0 };
        let serials = settings.serial.or(settings.serial_before).filter(|_| settings.on_notify);
        let mut schedule = Schedule {
            pacer: settings.rate.map_or(Pacer::UNLIMITED, |rate| Pacer::new(rate, BEHIND_NS_MAX)),
            secondaries: (0..share.secondaries).map(|_| Secondary::new(listed)).collect(),
            slots: (0..share.secondaries * slots_each).map(slot).collect(),
            states: vec![Standing::default(); places],
            serials: serials.map_or(Vec::new(), |serial| vec![serial; places]),
            left: u64::from(listed) * u64::from(share.secondaries),
            settings,
            share,
            zones,
            signer,
            sink_factory,
            slots_each,
            transfers: Transfers::default(),
            timers: Timers::default(),
            paced: Vec::new(),
            woken: VecDeque::new(),
            closing: VecDeque::new(),
            cancelling: VecDeque::new(),
            connections: 0,
            good: 0,
            wall_s: 0,
            is_stopped: false,
            counters: Counters::default(),
            row_buffer,
        };
        (0..schedule.slots.len() as u32).for_each(|slot| schedule.wake(slot));
        schedule
    }

    /// How many slots there are; the shell has a place for each.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// The number of the secondary that a slot belongs to, in this schedule.
    pub fn secondary_of(&self, slot: u32) -> u32 {
        self.slots[slot as usize].secondary
    }

    /// Whether a slot asks over UDP.
    pub fn is_udp(&self, slot: u32) -> bool {
        self.slots[slot as usize].is_udp
    }

    /// The number of the connection in a slot, unique in all threads.
    pub fn connection_of(&self, slot: u32) -> u32 {
        self.slots[slot as usize].connection.number
    }

    /// The port of the connection in a slot, on this side.
    pub fn set_port(&mut self, slot: u32, port: u16) {
        self.slots[slot as usize].connection.port = port;
    }

    /// The secondaries of this schedule, and the number of the first among all.
    pub fn secondaries(&self) -> (&[Secondary], u32) {
        (&self.secondaries, self.share.first)
    }

    /// How many queries are outstanding, and how many connections open.
    pub fn under_way(&self) -> (u64, u64) {
        let open = |slot: &&Slot| !slot.is_udp && slot.state == State::Open;
        let outstanding = self.slots.iter().map(|slot| slot.queries.len() as u64).sum();
        (outstanding, self.slots.iter().filter(open).count() as u64)
    }

    /// Zones that have not ended.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Sets the time in signatures, in seconds since 1970.
    pub fn set_wall_time(&mut self, wall_s: u64) {
        self.wall_s = wall_s;
    }

    /// Whether every zone has ended, and no NOTIFY is waited for.
    pub fn is_over(&self) -> bool {
        self.is_stopped || (self.left == 0 && !self.settings.on_notify && !self.settings.repeat)
    }

    /// The next order now; None: nothing is to be done before [`Schedule::due_ns`] or until something happens.
    pub fn order(&mut self, now_ns: i64) -> Option<Order> {
        if let Some(slot) = self.closing.pop_front() {
            return Some(Order::Close(slot));
        }
        if let Some((slot, id)) = self.cancelling.pop_front() {
            return Some(Order::Cancel(slot, id));
        }
        while let Some(slot) = self.woken.pop_front() {
            self.slots[slot as usize].is_woken = false;
            if let Some(order) = self.consider(slot, now_ns) {
                return Some(order);
            }
        }
        None
    }

    /// The time before which nothing is due, unless something happens.
    pub fn due_ns(&self) -> i64 {
        let paced_ns = if self.paced.is_empty() { i64::MAX } else { self.pacer.ready_ns() };
        self.timers.due_ns().min(paced_ns)
    }

    /// A connection has room again that had none: its queries can be written.
    pub fn wake(&mut self, slot: u32) {
        let place = &mut self.slots[slot as usize];
        if !place.is_woken {
            place.is_woken = true;
            self.woken.push_back(slot);
        }
    }

    /// Writes queries for an open connection behind `to`, each with its length before it, or for a UDP slot one
    /// without; returns how many.
    pub fn fill(&mut self, slot: u32, now_ns: i64, to: &mut Vec<u8>) -> usize {
        let end = to.len() + FILL_BYTES_MAX;
        let mut count = 0;
        while to.len() < end {
            let Some(job) = self.next_job(slot, now_ns) else { break };
            self.ask(slot, job, now_ns, to);
            count += 1;
            if self.slots[slot as usize].is_udp {
                break;
            }
        }
        if count > 0 {
            // There may be room for more: over UDP one at a time is written, otherwise a piece.
            self.wake(slot);
            self.expect_answers(slot, now_ns);
        }
        count
    }

    fn consider(&mut self, slot: u32, now_ns: i64) -> Option<Order> {
        let place = &self.slots[slot as usize];
        match place.state {
            State::Idle => self.begin(slot, now_ns),
            State::Opening => None,
            State::Open if self.is_used_up(place) => {
                self.close(slot, now_ns);
                self.closing.pop_front().map(Order::Close)
            }
            State::Open => self.has_next(slot).then_some(Order::Fill(slot)),
        }
    }

    /// Begins a connection if there is something to ask for on it that no other connection that is opening will take.
    fn begin(&mut self, slot: u32, now_ns: i64) -> Option<Order> {
        let place = &mut self.slots[slot as usize];
        let secondary = &mut self.secondaries[place.secondary as usize];
        let waiting = match (place.is_udp, self.settings.soa) {
            (false, SoaFirst::Udp) => secondary.cleared(),
            _ => secondary.waiting(),
        };
        let opening = if place.is_udp { 0 } else { secondary.opening as usize };
        if self.is_stopped || place.given_up || now_ns < place.open_after_ns || waiting <= opening {
            return None;
        }
        let mut number = slots::NO_CONNECTION;
        if !place.is_udp {
            number = self.share.thread.wrapping_add(self.connections.wrapping_mul(self.share.threads));
            self.connections = self.connections.wrapping_add(1);
            self.counters.connections.attempted += 1;
            secondary.opening += 1;
        }
        place.begin(number, now_ns);
        self.expect_answers(slot, now_ns);
        Some(Order::Open(slot))
    }

    /// How many zones a connection may carry.
    fn zones_max(&self) -> u32 {
        if self.settings.policy == Policy::One { 1 } else { u32::MAX }
    }

    fn is_used_up(&self, place: &Slot) -> bool {
        let idle = place.queries.is_empty() && place.follow.is_empty();
        idle && !place.is_udp && (place.connection.zones >= self.zones_max() || place.queries.ids_left() == 0)
    }

    /// The room of a slot, as [`Slot::room`] has it.
    fn room(&self, slot: u32) -> (u32, u32) {
        let place = &self.slots[slot as usize];
        let (window, zones_max) =
            if place.is_udp { (UDP_WINDOW, u32::MAX) } else { (self.settings.window(), self.zones_max()) };
        place.room(window, zones_max)
    }

    fn has_next(&self, slot: u32) -> bool {
        let place = &self.slots[slot as usize];
        let secondary = &self.secondaries[place.secondary as usize];
        let (follow, room) = self.room(slot);
        let waits = match (place.is_udp, self.settings.soa) {
            (true, _) => secondary.takes_soa(),
            (false, SoaFirst::Udp) => secondary.cleared() > 0,
            (false, _) => secondary.waiting() > 0,
        };
        follow > 0 || (room > 0 && waits)
    }

    /// Takes the next zone for a slot with room; None if no zone waits, or it is not due yet at this pace.
    fn next_job(&mut self, slot: u32, now_ns: i64) -> Option<(Job, bool)> {
        if !self.has_next(slot) {
            return None;
        }
        let place = &mut self.slots[slot as usize];
        let number = place.secondary;
        let secondary = &mut self.secondaries[number as usize];
        if let Some(job) = place.follow.pop_front() {
            return Some((job, false));
        }
        if self.settings.soa == SoaFirst::Udp && !place.is_udp {
            place.connection.zones += 1;
            return secondary.take_cleared().map(|job| (job, false));
        }
        if self.pacer.ready_ns() > now_ns {
            self.paced.push(slot);
            return None;
        }
        self.pacer.take(now_ns);
        place.connection.zones += 1;
        secondary.take(number).map(|job| (job, self.settings.soa != SoaFirst::None))
    }

    /// Asks for one zone, or for its SOA.
    fn ask(&mut self, slot: u32, (mut job, is_soa): (Job, bool), now_ns: i64, to: &mut Vec<u8>) {
        let begins = is_soa || self.settings.soa == SoaFirst::None;
        if begins {
            job.attempt = job.attempt.saturating_add(1);
            self.counters.totals.attempts += 1;
            self.counters.totals.retries += u64::from(job.attempt > 1);
        }
        let ask = self.question(job, is_soa);
        let place = &mut self.slots[slot as usize];
        let transfer = self.transfers.next_place();
        let id = place.queries.add(transfer).expect("a slot with room has an id left");
        let zone = self.zones.wire(job.zone);
        let start = to.len();
        let message = if place.is_udp { start } else { start + PREFIX_BYTES };
        to.resize(message, 0);
        let over_stream = self.settings.streams && !place.is_udp;
        // A stream shows which query it is for, so the id on the wire, which is signed, is 0 (RFC 9250 §4.2.1).
        write_query(to, if over_stream { 0 } else { id }, zone, ask);
        let verifier = self.signer.as_ref().map(|signer| Box::new(Verifier::sign(signer, to, message, self.wall_s)));
        to[message..][..2].copy_from_slice(&id.to_be_bytes());
        if !place.is_udp {
            let length = (to.len() - message) as u16;
            to[start..message].copy_from_slice(&length.to_be_bytes());
        }
        self.counters.totals.bytes_sent += (to.len() - message) as u64;
        if place.queries.len() == 1 {
            place.connection.alive_ns = now_ns;
        }
        place.connection.asked = place.connection.asked.wrapping_add(1);
        let mut transfer = Transfer::new(job, slot, id, is_soa, now_ns, Incoming::new(ask, verifier));
        transfer.sinks = if is_soa { None } else { self.sink_factory.sinks(zone) };
        self.transfers.add(transfer);
    }

    fn question(&self, job: Job, is_soa: bool) -> Ask {
        match self.serial_of(job.secondary, job.zone) {
            _ if is_soa => Ask::Soa,
            Some(serial) if self.settings.serial.is_some() => Ask::Ixfr { serial },
            _ => Ask::Axfr,
        }
    }

    /// The serial that a secondary has of a zone, as far as it has one.
    fn serial_of(&self, secondary: u32, zone: u32) -> Option<u32> {
        self.serials.get(self.place_of(secondary, zone)).copied().or(self.settings.serial)
    }

    fn place_of(&self, secondary: u32, zone: u32) -> usize {
        secondary as usize * self.zones.count() as usize + zone as usize
    }

    /// Sets a timer at which a slot is checked for a missing answer or connection.
    fn expect_answers(&mut self, slot: u32, now_ns: i64) {
        let due_ns = now_ns + self.timeout_of(slot);
        let place = &mut self.slots[slot as usize];
        if !place.is_checked {
            place.is_checked = true;
            self.timers.add(due_ns, Timer::Check(slot));
        }
    }

    fn wake_secondary(&mut self, secondary: u32) {
        (secondary * self.slots_each..(secondary + 1) * self.slots_each).for_each(|slot| self.wake(slot));
    }
}

#[cfg(test)]
#[path = "schedule_tests.rs"]
mod tests;
#[cfg(test)]
pub mod virtual_primary;
