//! A primary in virtual time, with manners good and bad, and a schedule that asks it: for tests.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap, HashSet, VecDeque},
    sync::Arc,
};

use dnsrig_dns::xfr::Limits;

use super::*;
use crate::{
    dataset::zone_list,
    transfer::{
        row_buffer::{Batch, ConnectionRow, TransferRow},
        schedule::slots::{Ended, Handshake},
    },
};

pub const MS: i64 = 1_000_000;
pub const S: i64 = 1_000 * MS;

/// More than this happens only if something goes on for ever.
const EVENTS_MAX: usize = 300_000;

/// Messages that have no end are at least so far apart, so that there are few of them.
const ENDLESS_PAUSE_NS: i64 = 100 * MS;

/// How a primary behaves. An option that is None never applies.
#[derive(Clone, Debug)]
pub struct Manner {
    pub delay_ns: i64,
    pub messages_each: usize,
    /// The newest query is answered first, and messages of all transfers take turns.
    pub interleaves: bool,
    /// It closes a connection after this number of transfers …
    pub close_after: Option<usize>,
    /// … or of messages, …
    pub cut_after: Option<usize>,
    /// … with a reset.
    pub resets: bool,
    /// After this number of messages nothing more comes on a connection.
    pub stall_after: Option<usize>,
    /// More transfers at a time are answered with SERVFAIL.
    pub limit: Option<usize>,
    /// Zones whose number is a multiple are never answered, …
    pub silent: Option<u32>,
    /// … end with another SOA, …
    pub wrong: Option<u32>,
    /// … have messages without a record behind their first, for ever, …
    pub empty: Option<u32>,
    /// … have records for ever, …
    pub endless: Option<u32>,
    /// … or end their connection when it is their turn.
    pub poison: Option<u32>,
    /// The number of connections that are refused before the first is accepted.
    pub refuses: usize,
    /// Connections that nobody answers.
    pub is_dead: bool,
    /// Nothing listens for queries over UDP.
    pub has_no_udp: bool,
}

impl Default for Manner {
    fn default() -> Self {
        Manner {
            delay_ns: MS,
            messages_each: 1,
            interleaves: false,
            close_after: None,
            cut_after: None,
            resets: false,
            stall_after: None,
            limit: None,
            silent: None,
            wrong: None,
            empty: None,
            endless: None,
            poison: None,
            refuses: 0,
            is_dead: false,
            has_no_udp: false,
        }
    }
}

enum Event {
    Opened,
    Message(Vec<u8>),
    Over(Ended),
}

/// One connection, on the primary's side.
#[derive(Default)]
struct Side {
    generation: u64,
    /// Ids that wait for an answer, or for ever.
    outstanding: HashSet<u16>,
    zones: HashSet<u32>,
    /// Messages of transfers that wait for their turn.
    waiting: Vec<Waiting>,
    messages: usize,
    ended: usize,
    is_busy: bool,
    is_over: bool,
}

/// Messages of one transfer, the last of which may come again and again.
struct Waiting {
    messages: VecDeque<Vec<u8>>,
    is_endless: bool,
}

/// A schedule and its primary.
pub struct World {
    pub schedule: Schedule,
    pub now_ns: i64,
    manner: Manner,
    window: usize,
    is_one: bool,
    connections_max: usize,
    sides: HashMap<u32, Side>,
    events: BinaryHeap<Reverse<(i64, u64)>>,
    what: HashMap<u64, (u32, u64, Event)>,
    number: u64,
    pub queries: usize,
    pub connections: usize,
    pub cancelled: Vec<(u32, u16)>,
}

/// What has become of it all.
pub struct Story {
    pub transfers: Vec<TransferRow>,
    pub connections: Vec<ConnectionRow>,
}

pub fn settings() -> Settings {
    Settings {
        policy: Policy::Pipelined,
        streams: false,
        window: 10,
        connections: 1,
        soa: SoaFirst::None,
        serial: None,
        serial_before: None,
        retry: Retry { times: 3, after_ns: S },
        timeout_ns: 10 * S,
        time_ns_max: 3_600 * S,
        limits: Limits { bytes_max: 1 << 30, records_max: 1 << 20, messages_max: 1 << 20 },
        records_expected: None,
        rate: None,
        repeat: false,
        on_notify: false,
    }
}

pub fn zones(count: u32) -> Arc<Zones> {
    Arc::new(zone_list::numbered(count, "example").unwrap())
}

impl World {
    pub fn new(settings: Settings, secondaries: u32, count: u32, manner: Manner) -> Self {
        let share = Share { secondaries, first: 0, thread: 0, threads: 1 };
        let (window, is_one) = (settings.window() as usize, settings.policy == Policy::One);
        let connections_max = (settings.connections * secondaries) as usize;
        let schedule = Schedule::new(settings, share, zones(count), None, SinkFactory::default(), RowBuffer::new(true));
        World {
            schedule,
            now_ns: S,
            manner,
            window,
            is_one,
            connections_max,
            sides: HashMap::new(),
            events: BinaryHeap::new(),
            what: HashMap::new(),
            number: 0,
            queries: 0,
            connections: 0,
            cancelled: Vec::new(),
        }
    }

    /// Lets time pass until all is over, or nothing more will happen before `end_ns`.
    pub fn run(&mut self, end_ns: i64) -> &mut Self {
        for _ in 0..EVENTS_MAX {
            self.carry_out_orders();
            let next_ns = self.events.peek().map_or(i64::MAX, |Reverse((at_ns, _))| *at_ns);
            let next_ns = next_ns.min(self.schedule.due_ns());
            if self.schedule.is_over() || next_ns > end_ns {
                return self;
            }
            self.now_ns = self.now_ns.max(next_ns);
            self.schedule.tick(self.now_ns);
            if let Some(Reverse((at_ns, number))) = self.events.peek().copied()
                && at_ns <= self.now_ns
            {
                self.events.pop();
                self.happen(number);
            }
        }
        panic!("it goes on for ever");
    }

    pub fn story(&mut self) -> Story {
        let mut story = Story { transfers: Vec::new(), connections: Vec::new() };
        for batch in std::mem::take(&mut self.schedule.row_buffer).finish() {
            match batch {
                Batch::Transfers(rows) => story.transfers.extend(rows),
                Batch::Connections(rows) => story.connections.extend(rows),
                Batch::Info(_) => {}
            }
        }
        story
    }

    fn carry_out_orders(&mut self) {
        while let Some(order) = self.schedule.order(self.now_ns) {
            match order {
                Order::Open(slot) => self.open(slot),
                Order::Close(slot) => {
                    self.sides.remove(&slot);
                }
                Order::Cancel(slot, id) => self.cancelled.push((slot, id)),
                Order::Fill(slot) => {
                    let mut queries = Vec::new();
                    self.schedule.fill(slot, self.now_ns, &mut queries);
                    self.take_queries(slot, &queries);
                }
            }
        }
    }

    fn open(&mut self, slot: u32) {
        self.connections += 1;
        if self.connections <= self.manner.refuses {
            self.schedule.lost(slot, Ended::Refused, self.now_ns);
            return;
        }
        let generation = self.number;
        let side = Side { generation, ..Side::default() };
        assert!(self.sides.insert(slot, side).is_none_or(|side| side.is_over), "it was closed before");
        let is_open = |(slot, side): &(&u32, &Side)| !side.is_over && !self.schedule.is_udp(**slot);
        assert!(self.sides.iter().filter(is_open).count() <= self.connections_max, "more connections than allowed");
        if self.schedule.is_udp(slot) {
            self.schedule.opened(slot, Handshake::None, self.now_ns);
            if self.manner.has_no_udp {
                self.sides.insert(slot, Side { generation, is_over: true, ..Side::default() });
                self.schedule.lost(slot, Ended::Refused, self.now_ns);
            }
        } else if !self.manner.is_dead {
            self.later(slot, self.manner.delay_ns, Event::Opened);
        }
    }

    fn later(&mut self, slot: u32, after_ns: i64, event: Event) {
        let generation = self.sides[&slot].generation;
        self.number += 1;
        self.events.push(Reverse((self.now_ns + after_ns, self.number)));
        self.what.insert(self.number, (slot, generation, event));
    }

    fn happen(&mut self, number: u64) {
        let (slot, generation, event) = self.what.remove(&number).unwrap();
        let Some(side) = self.sides.get_mut(&slot).filter(|side| side.generation == generation) else { return };
        match event {
            Event::Opened => self.schedule.opened(slot, Handshake::None, self.now_ns),
            Event::Over(ended) => {
                self.sides.remove(&slot);
                self.schedule.lost(slot, ended, self.now_ns);
            }
            Event::Message(message) => {
                side.is_busy = false;
                self.schedule.message(slot, &message, self.now_ns);
                self.serve(slot);
            }
        }
    }

    fn take_queries(&mut self, slot: u32, mut queries: &[u8]) {
        let is_udp = self.schedule.is_udp(slot);
        while queries.len() > PREFIX_BYTES {
            let length = if is_udp { queries.len() } else { usize::from(u16::from_be_bytes([queries[0], queries[1]])) };
            let start = if is_udp { 0 } else { PREFIX_BYTES };
            let query = queries[start..start + length].to_vec();
            queries = &queries[start + length..];
            self.take_query(slot, &query, is_udp);
        }
        self.serve(slot);
    }

    fn take_query(&mut self, slot: u32, query: &[u8], is_udp: bool) {
        self.queries += 1;
        let id = u16::from_be_bytes([query[0], query[1]]);
        let zone: u32 = std::str::from_utf8(&query[14..20]).unwrap().parse().unwrap();
        let side = self.sides.get_mut(&slot).expect("queries are sent on open connections");
        assert!(side.outstanding.insert(id), "id {id} is in use");
        side.zones.insert(zone);
        // The client gives up queries that are never answered, that others overtake before a stall, or whose answers
        // have no end while others go on. The primary does not notice.
        let Manner { silent, stall_after, endless, interleaves, .. } = self.manner;
        let is_known = !is_udp && silent.is_none() && !(interleaves && (stall_after.is_some() || endless.is_some()));
        assert!(!is_known || side.outstanding.len() <= self.window, "more than the window allows");
        assert!(!self.is_one || is_udp || side.zones.len() == 1, "one zone a connection");
        let hits = |every: Option<u32>| every.is_some_and(|every| zone.is_multiple_of(every));
        if hits(self.manner.silent) {
            return;
        }
        let is_over_limit = self.manner.limit.is_some_and(|limit| side.waiting.len() >= limit);
        let is_soa = query[query.len() - 4..][..2] == [0, 6];
        let messages = if hits(self.manner.poison) && !is_udp {
            vec![]
        } else if is_over_limit {
            vec![servfail(query)]
        } else if is_soa {
            vec![message(query, &[1])]
        } else {
            transfer(query, self.manner.messages_each, hits(self.manner.wrong))
        };
        let (is_empty, is_endless) = (hits(self.manner.empty) && !is_soa, hits(self.manner.endless) && !is_soa);
        let messages = match is_empty || is_endless {
            true => vec![message(query, &[1]), if is_empty { message(query, &[]) } else { address(query) }],
            false => messages,
        };
        side.waiting.push(Waiting { messages: messages.into(), is_endless: is_empty || is_endless });
    }

    /// The next message of a connection goes out.
    fn serve(&mut self, slot: u32) {
        let Manner { interleaves, close_after, cut_after, stall_after, resets, delay_ns, .. } = self.manner;
        let Some(side) = self.sides.get_mut(&slot) else { return };
        if side.is_busy || side.is_over || side.waiting.is_empty() {
            return;
        }
        let reached = |limit: Option<usize>, count: usize| limit.is_some_and(|limit| count >= limit);
        let at = if interleaves { side.messages % side.waiting.len() } else { 0 };
        let is_poison = side.waiting[at].messages.is_empty();
        if is_poison || reached(close_after, side.ended) || reached(cut_after, side.messages) {
            side.is_over = true;
            return self.later(slot, delay_ns, Event::Over(if resets { Ended::Reset } else { Ended::Closed }));
        }
        if reached(stall_after, side.messages) {
            return;
        }
        let waiting = &mut side.waiting[at];
        let next = waiting.messages.pop_front().expect("there is another message");
        let mut pause_ns = delay_ns;
        if waiting.messages.is_empty() && waiting.is_endless {
            waiting.messages.push_back(next.clone());
            pause_ns = pause_ns.max(ENDLESS_PAUSE_NS);
        }
        if waiting.messages.is_empty() {
            side.waiting.remove(at);
            side.ended += 1;
            side.outstanding.remove(&u16::from_be_bytes([next[0], next[1]]));
        }
        side.messages += 1;
        side.is_busy = true;
        self.later(slot, pause_ns, Event::Message(next));
    }
}

/// A response with SOA records of these serials.
fn message(query: &[u8], serials: &[u32]) -> Vec<u8> {
    // An IXFR query has an authority section behind the question: names here are of one length.
    let question = &query[12..12 + "\u{7}z000000\u{7}example\0".len() + 4];
    let mut message = [&query[..2], &[0x84, 0, 0, 1, 0, serials.len() as u8, 0, 0, 0, 0], question].concat();
    for serial in serials {
        message.extend_from_slice(&[0xc0, 12, 0, 6, 0, 1, 0, 0, 0, 0, 0, 22, 0, 0]);
        message.extend_from_slice(&serial.to_be_bytes());
        message.extend_from_slice(&[0; 16]);
    }
    message
}

/// A response with an address.
fn address(query: &[u8]) -> Vec<u8> {
    let mut message = message(query, &[]);
    message[7] = 1;
    message.extend_from_slice(&[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 192, 0, 2, 1]);
    message
}

fn servfail(query: &[u8]) -> Vec<u8> {
    let mut message = message(query, &[]);
    message[3] = 2;
    message
}

/// The messages of a zone that has but its SOA and, where there are several, addresses between.
pub fn transfer(query: &[u8], count: usize, is_wrong: bool) -> Vec<Vec<u8>> {
    let last = if is_wrong { 2 } else { 1 };
    if count < 2 {
        return vec![message(query, &[1, last])];
    }
    let mut messages = vec![message(query, &[1])];
    messages.resize(count - 1, address(query));
    messages.push(message(query, &[last]));
    messages
}
