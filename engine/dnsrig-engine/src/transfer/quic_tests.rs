//! A schedule, its QUIC connections and a primary, with a link between them, in virtual time.

use std::{
    collections::{HashMap, VecDeque},
    net::{IpAddr, SocketAddr},
};

use dnsrig_core::random::Random;
use dnsrig_dns::{framing, xfr::Outcome};
use dnsrig_net::{
    quic::{
        Congestion, Flow, client,
        server::{self, Answers, Config, More, Reply, Server, StreamKey},
    },
    tls::{self, DOQ, identity},
};

use super::*;
use crate::transfer::{
    row_buffer::RowBuffer,
    schedule::{
        Order, Settings as ScheduleSettings, Share,
        virtual_primary::{self, MS, S},
    },
    sinks::SinkFactory,
};

const EXCESSIVE_LOAD: u32 = 4;
const DELAY_NS: i64 = 10 * MS;

/// A test ends after this number of steps, whatever happens.
const STEPS_MAX: usize = 200_000;

/// How a primary behaves. Numbers are of messages.
#[derive(Default)]
struct Manner {
    messages_each: usize,
    /// Every n-th query gets no answer, …
    silent_every: Option<usize>,
    /// … or a stream that is reset in the middle, …
    reset_every: Option<usize>,
    /// … or one that ends in the middle.
    short_every: Option<usize>,
    /// The first connection is closed after this number of messages.
    close_after: Option<usize>,
    /// The first connection permits no streams beyond those that were permitted when its first query came.
    permits_no_more: bool,
    streams_max: u32,
    loss_percent: u64,
    flow: Flow,
}

#[derive(Default)]
struct Primary {
    manner: Manner,
    queries: usize,
    messages: usize,
    answers: HashMap<StreamKey, (usize, VecDeque<Vec<u8>>)>,
    /// The stream whose connection is to be closed.
    closing: Option<StreamKey>,
    last: Option<StreamKey>,
    abandoned: usize,
}

impl Answers for Primary {
    fn query(&mut self, key: StreamKey, _peer: IpAddr, message: &mut Vec<u8>) -> Reply {
        assert_eq!(message[..2], [0, 0], "the id on the wire is 0");
        self.queries += 1;
        self.last = Some(key);
        if is_multiple(self.queries, self.manner.silent_every) {
            return Reply::Later;
        }
        let messages = virtual_primary::transfer(message, self.manner.messages_each, false);
        self.answers.insert(key, (self.queries, messages.into()));
        Reply::Many
    }

    fn more(&mut self, key: StreamKey, to: &mut Vec<u8>) -> More {
        self.messages += 1;
        if self.manner.close_after.is_some_and(|count| self.messages > count) {
            self.manner.close_after = None;
            self.closing = Some(key);
        }
        let manner = &self.manner;
        let (number, left) = self.answers.get_mut(&key).unwrap();
        let in_the_middle = left.len() * 2 <= manner.messages_each;
        if in_the_middle && is_multiple(*number, manner.reset_every) {
            return More::Reset(EXCESSIVE_LOAD);
        }
        let ends = in_the_middle && is_multiple(*number, manner.short_every);
        framing::append(to, &left.pop_front().unwrap());
        if ends || left.is_empty() { More::End } else { More::More }
    }

    fn abandon(&mut self, key: StreamKey) {
        self.answers.remove(&key);
        self.abandoned += 1;
    }
}

fn is_multiple(number: usize, of: Option<usize>) -> bool {
    of.is_some_and(|of| number.is_multiple_of(of))
}

struct World {
    schedule: Schedule,
    client: Client,
    connecting: client::Config,
    server: Server,
    primary: Primary,
    link: VecDeque<(i64, bool, Vec<u8>)>,
    random: Random,
    now_ns: i64,
}

impl World {
    fn new(settings: ScheduleSettings, zones: u32, manner: Manner) -> Self {
        let (server, peer) = (address("192.0.2.1:853"), address("192.0.2.1:853").ip());
        let tls = identity::server_config(identity::make_identity(peer).unwrap(), DOQ, None).unwrap();
        let config = Config::new(&server::Settings {
            tls,
            flow: manner.flow,
            streams_max: manner.streams_max,
            idle_ns: 30 * S,
            connections_max: 10,
            retry: false,
        });
        let tls = tls::Settings { sessions_max: 4, ..tls::Settings::default() };
        let connecting = client::Config::new(peer, tls, manner.flow).unwrap();
        let share = Share { secondaries: 1, first: 0, thread: 0, threads: 1 };
        let settings = ScheduleSettings { streams: true, ..settings };
        let (rows, zones) = (RowBuffer::new(true), virtual_primary::zones(zones));
        let schedule = Schedule::new(settings, share, zones, None, SinkFactory::default(), rows);
        World {
            client: Client::new(server, None, schedule.slots(), 1, S),
            connecting,
            schedule,
            server: Server::new(&config, S),
            primary: Primary { manner, ..Primary::default() },
            link: VecDeque::new(),
            random: Random::new(1, 2),
            now_ns: S,
        }
    }

    /// Lets time pass until all zones have ended, and checks that this is before `end_ns`.
    fn run(&mut self, end_ns: i64) {
        for _ in 0..STEPS_MAX {
            self.carry_out_orders();
            if self.schedule.is_over() {
                return;
            }
            let arrives_ns = self.link.iter().map(|(at_ns, ..)| *at_ns).min();
            let due = [arrives_ns, self.client.due_ns(), self.server.due_ns(), Some(self.schedule.due_ns())];
            self.now_ns = self.now_ns.max(due.into_iter().flatten().min().unwrap());
            assert!(self.now_ns < end_ns, "{} zones are left", self.schedule.left());
            self.step();
        }
        panic!("it goes on for ever");
    }

    fn step(&mut self) {
        let now_ns = self.now_ns;
        while let Some(at) = self.link.iter().position(|(at_ns, ..)| *at_ns <= now_ns) {
            let (_, to_server, datagram) = self.link.remove(at).unwrap();
            if to_server {
                self.server.receive((address("192.0.2.2:40000"), None), &datagram, now_ns, |_, _| {});
                self.serve();
            } else if let Some(slot) = self.client.receive(&datagram, now_ns) {
                self.attend(slot);
            }
        }
        while let Some(slot) = self.client.on_time(now_ns) {
            self.attend(slot);
        }
        self.server.on_time(now_ns);
        self.serve();
        self.schedule.tick(now_ns);
    }

    fn serve(&mut self) {
        let World { server, primary, link, random, now_ns, .. } = self;
        let loss_percent = primary.manner.loss_percent;
        server.work(*now_ns, primary, |datagram, _| put(link, random, loss_percent, *now_ns, false, datagram));
        if let Some(key) = self.primary.last.filter(|_| self.primary.manner.permits_no_more) {
            self.primary.manner.permits_no_more = false;
            self.server.permit_no_more_streams(key);
        }
        if let Some(key) = self.primary.closing.take() {
            self.server.close(key, EXCESSIVE_LOAD, self.now_ns);
            self.serve();
        }
    }

    fn attend(&mut self, slot: usize) {
        let (_, lost) = pass_on(&mut self.client, slot as u32, &mut self.schedule, self.now_ns, &mut None);
        match lost {
            Some(ended) => {
                self.close(slot);
                self.schedule.lost(slot as u32, ended, self.now_ns);
            }
            None => self.transmit(slot),
        }
    }

    fn transmit(&mut self, slot: usize) {
        let World { client, primary, link, random, now_ns, .. } = self;
        let loss_percent = primary.manner.loss_percent;
        client.transmit(slot, *now_ns, |datagram| put(link, random, loss_percent, *now_ns, true, datagram));
    }

    fn close(&mut self, slot: usize) {
        let World { client, link, random, now_ns, .. } = self;
        client.close(slot, *now_ns, |datagram| put(link, random, 0, *now_ns, true, datagram));
    }

    fn carry_out_orders(&mut self) {
        while let Some(order) = self.schedule.order(self.now_ns) {
            match order {
                Order::Open(slot) => {
                    self.client.begin(slot as usize, 0, &self.connecting, self.now_ns).unwrap();
                    self.transmit(slot as usize);
                }
                Order::Fill(slot) => {
                    let mut queries = Vec::new();
                    self.schedule.fill(slot, self.now_ns, &mut queries);
                    ask(&mut self.client, slot, &queries, self.now_ns);
                    self.transmit(slot as usize);
                }
                Order::Close(slot) => self.close(slot as usize),
                Order::Cancel(slot, id) => {
                    self.client.cancel(slot as usize, id);
                    self.transmit(slot as usize);
                }
            }
        }
    }

    fn outcome(&self, outcome: Outcome) -> u64 {
        self.schedule.counters.outcomes[outcome as usize]
    }

    fn attempts(&self, outcome: Outcome) -> u64 {
        self.schedule.counters.attempt_outcomes[outcome as usize]
    }

    fn connections(&self) -> u64 {
        self.schedule.counters.connections.established
    }

    fn words(&self) -> String {
        self.client.counts(0).words().join("; ")
    }
}

fn put(
    link: &mut VecDeque<(i64, bool, Vec<u8>)>,
    random: &mut Random,
    loss_percent: u64,
    now_ns: i64,
    to_server: bool,
    datagram: &[u8],
) {
    if random.below(100) >= loss_percent {
        link.push_back((now_ns + DELAY_NS, to_server, datagram.to_vec()));
    }
}

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn manner() -> Manner {
    Manner { messages_each: 20, streams_max: 100, ..Manner::default() }
}

#[test]
fn every_zone_comes_over_a_path_that_loses_packets() {
    for congestion in [Congestion::Cubic, Congestion::Newreno, Congestion::Bbr] {
        let flow = Flow { congestion, window_bytes: Some(4_096) };
        let mut world = World::new(virtual_primary::settings(), 50, Manner { loss_percent: 10, flow, ..manner() });
        world.run(120 * S);
        assert_eq!((world.outcome(Outcome::Done), world.connections()), (50, 1), "{congestion:?}: {}", world.words());
        assert!(world.client.counts(0).packets_lost > 0, "{}", world.words());
    }
}

#[test]
fn zones_wait_for_streams_that_the_primary_permits() {
    let mut world = World::new(virtual_primary::settings(), 20, Manner { streams_max: 1, ..manner() });
    world.run(20 * S);
    assert_eq!((world.outcome(Outcome::Done), world.connections()), (20, 1));
    assert!(world.client.counts(0).waited_for_stream > 0);
    assert_eq!(world.schedule.counters.totals.retries, 0);
}

#[test]
fn zones_that_got_no_stream_come_on_the_next_connection() {
    let manner = Manner { streams_max: 4, permits_no_more: true, ..manner() };
    let mut world = World::new(virtual_primary::settings(), 30, manner);
    world.run(60 * S);
    assert_eq!((world.outcome(Outcome::Done), world.connections()), (30, 2), "{}", world.words());
    let totals = &world.schedule.counters.totals;
    assert_eq!((totals.attempts, totals.retries), (30, 0), "a query that never left is no attempt");
    assert!(world.words().contains("connections without further streams: 1"), "{}", world.words());
}

#[test]
fn a_primary_that_permits_no_stream_at_all_is_given_up() {
    let mut world = World::new(virtual_primary::settings(), 3, Manner { streams_max: 0, ..manner() });
    world.run(120 * S);
    assert_eq!((world.outcome(Outcome::Closed), world.primary.queries), (3, 0));
    assert!((2..=5).contains(&world.connections()), "a few attempts: {}", world.words());
}

#[test]
fn a_stream_that_is_reset_fails_its_zone_alone() {
    let mut world = World::new(virtual_primary::settings(), 30, Manner { reset_every: Some(3), ..manner() });
    world.run(100 * S);
    assert_eq!(world.outcome(Outcome::Done) + world.outcome(Outcome::Reset), 30);
    assert_eq!(world.attempts(Outcome::Reset) as usize, world.primary.queries / 3, "each reset is an attempt");
    assert!(world.schedule.counters.totals.retries >= 10, "a reset is tried again");
    assert_eq!(world.connections(), 1);
    let resets = format!("streams reset by the server: DOQ_EXCESSIVE_LOAD {}", world.primary.queries / 3);
    assert!(world.words().contains(&resets), "{}", world.words());
}

#[test]
fn a_stream_that_ends_early_cuts_its_zone() {
    let mut world = World::new(virtual_primary::settings(), 30, Manner { short_every: Some(3), ..manner() });
    world.run(100 * S);
    assert_eq!(world.outcome(Outcome::Done) + world.outcome(Outcome::Cut), 30);
    assert_eq!(world.attempts(Outcome::Cut) as usize, world.primary.queries / 3);
    assert_eq!(world.connections(), 1);
}

#[test]
fn zones_of_a_connection_that_is_closed_come_on_the_next() {
    // The window is smaller than the congestion window, behind which the library would hold back the end.
    let flow = Flow { window_bytes: Some(4_096), ..Flow::default() };
    let manner = Manner { messages_each: 200, close_after: Some(1_000), flow, ..manner() };
    let mut world = World::new(virtual_primary::settings(), 30, manner);
    world.run(60 * S);
    assert_eq!((world.outcome(Outcome::Done), world.connections()), (30, 2));
    assert!(world.attempts(Outcome::Cut) + world.attempts(Outcome::Closed) > 0);
    assert!(world.words().contains("connections ended: DOQ_EXCESSIVE_LOAD 1"), "{}", world.words());
    assert_eq!(world.schedule.counters.connections.closed_by_primary, 1);
}

#[test]
fn a_zone_that_is_not_answered_times_out_alone() {
    let settings =
        ScheduleSettings { retry: virtual_primary::settings().retry, timeout_ns: 2 * S, ..virtual_primary::settings() };
    let mut world = World::new(settings, 30, Manner { silent_every: Some(5), ..manner() });
    world.run(100 * S);
    assert_eq!(world.outcome(Outcome::Done) + world.outcome(Outcome::TimedOut), 30);
    let silent = world.primary.queries as u64 / 5;
    assert_eq!(world.attempts(Outcome::TimedOut), silent);
    assert!(silent > 3 && world.words().contains("streams cancelled by this side"), "{}", world.words());
}

#[test]
fn a_zone_without_an_end_is_cancelled_and_the_others_go_on() {
    let limits = dnsrig_dns::xfr::Limits { messages_max: 10, ..virtual_primary::settings().limits };
    let settings = ScheduleSettings { limits, ..virtual_primary::settings() };
    let flow = Flow { window_bytes: Some(4_096), ..Flow::default() };
    let mut world = World::new(settings, 5, Manner { messages_each: 2_000, flow, ..manner() });
    world.run(100 * S);
    assert_eq!((world.outcome(Outcome::LimitExceeded), world.connections()), (5, 1));
    assert_eq!(world.client.counts(0).streams_cancelled, 5);
    assert_eq!(world.schedule.counters.totals.retries, 0);
}
