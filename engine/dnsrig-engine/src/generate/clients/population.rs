//! When which client asks what: a population, without any I/O.
//!
//! A client's pages and single questions come as Poisson processes. All clients together are one such process, of which
//! each event belongs to a client in proportion to its rate; so memory holds the rates, and the queries that are yet
//! to come of pages that are open.

use std::{cmp::Reverse, collections::BinaryHeap};

use dnsrig_core::{
    draw::{Weighted, exponential, is_share, normal},
    random::Random,
};
use dnsrig_dns::{edns::Edns, query::Options};

use super::{
    arguments::{Arguments, Habits, Messages, Sample, Size},
    question::{Question, Questions},
};
use crate::{
    dataset::name_table::NameTable,
    query_stream::{NEW_CONNECTION, RETRANSMISSION, Record, Transport},
};

const CLASS_IN: [u8; 2] = [0, 1];

/// Streams of random numbers of the same seed.
const PURPOSE_RATES: u64 = 30;
const PURPOSE_VISITS: u64 = 31;
const PURPOSE_TRAITS: u64 = 32;
const PURPOSE_KEPT_CLIENTS: u64 = 33;
const PURPOSE_KEPT_QUERIES: u64 = 34;

/// No client was numbered so.
const UNNUMBERED: u32 = u32::MAX;

/// A query that is to come; those due earlier are first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Pending {
    due_ns: i64,
    /// In the order in which they were made.
    sequence: u64,
    client: u32,
    id: u16,
    is_tcp: bool,
    is_repeat: bool,
    question: Question,
}

/// A population, which gives one query after the other.
pub struct Population<'t> {
    questions: Questions<'t>,
    habits: Habits,
    messages: Messages,
    sample: Sample,
    seed: u64,
    duration_ns: i64,
    /// By their rates.
    clients: Weighted,
    /// The number of each client in the stream: in the order of their first queries.
    numbers: Vec<u32>,
    numbered: u32,
    random: Random,
    visit_ns: f64,
    mean_gap_ns: f64,
    page_probability: f64,
    page_deviation: f64,
    pending: BinaryHeap<Reverse<Pending>>,
    sequence: u64,
    /// When the first query of the stream was due.
    first_ns: Option<i64>,
    message: Vec<u8>,
}

impl<'t> Population<'t> {
    pub fn new(arguments: &Arguments, size: Size, table: &'t NameTable) -> Self {
        let Arguments { seed, names, clients_habits: habits, messages, sample, .. } = arguments;
        let Size { clients, qps, duration_s } = size;
        let mut rates = Random::new(*seed, PURPOSE_RATES);
        let rate = |_| (habits.spread * normal(&mut rates)).exp();
        // Visits are pages and single questions; some questions are asked twice.
        let questions_per_s = qps * (1.0 - habits.repeats);
        let pages_per_question = habits.page_share / habits.page_mean;
        let visits_per_question = pages_per_question + 1.0 - habits.page_share;
        // So long before the begin, pages are opened whose last queries are in the stream.
        let lead_ns = habits.page_gap_ms * 1e6 * f64::from(habits.page_max) + habits.repeat_after_ms * 1e6;
        Population {
            questions: Questions::new(table, names, &messages.types, *seed),
            seed: *seed,
            duration_ns: (duration_s * 1e9) as i64,
            clients: Weighted::new((0..clients).map(rate)),
            numbers: vec![UNNUMBERED; clients as usize],
            numbered: 0,
            random: Random::new(*seed, PURPOSE_VISITS),
            visit_ns: -lead_ns,
            mean_gap_ns: 1e9 / (questions_per_s * visits_per_question),
            page_probability: habits.page_probability(),
            page_deviation: habits.page_deviation(),
            pending: BinaryHeap::new(),
            sequence: 0,
            first_ns: None,
            message: Vec::new(),
            habits: habits.clone(),
            messages: messages.clone(),
            sample: sample.clone(),
        }
    }

    /// The next query, or none behind the last. The message is lent until the next call.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Option<Record<'_>> {
        loop {
            while self.visit_ns < self.duration_ns as f64
                && self.pending.peek().is_none_or(|Reverse(next)| next.due_ns as f64 >= self.visit_ns)
            {
                self.visit();
            }
            let Reverse(query) = self.pending.pop()?;
            if (0..self.duration_ns).contains(&query.due_ns) && self.keeps(&query) {
                return Some(self.record(query));
            }
        }
    }

    /// How many clients have asked so far.
    pub fn clients(&self) -> u32 {
        self.numbered
    }

    /// A client opens a page or asks a single question.
    fn visit(&mut self) {
        let random = &mut self.random;
        let client = self.clients.draw(random) as u32;
        let count = if is_share(random, self.page_probability) {
            let queries = self.habits.page_median * (self.page_deviation * normal(random)).exp();
            (queries.round() as u32).clamp(1, self.habits.page_max)
        } else {
            1
        };
        let mut due_ns = self.visit_ns;
        for _ in 0..count {
            self.ask(client, due_ns as i64);
            due_ns += self.habits.page_gap_ms * 1e6 * exponential(&mut self.random);
        }
        self.visit_ns += self.mean_gap_ns * exponential(&mut self.random);
    }

    /// A question, and perhaps the same again.
    fn ask(&mut self, client: u32, due_ns: i64) {
        let random = &mut self.random;
        let question = self.questions.draw(random);
        let id = random.bits() as u16;
        let is_tcp = is_share(random, self.messages.tcp_share);
        let again = !is_tcp && self.habits.repeats < 1.0 && {
            let share = self.habits.repeats / (1.0 - self.habits.repeats);
            is_share(random, share)
        };
        let mut query = Pending { due_ns, sequence: self.sequence, client, id, is_tcp, is_repeat: false, question };
        self.pending.push(Reverse(query));
        if again {
            query.due_ns += (self.habits.repeat_after_ms * 1e6) as i64;
            (query.sequence, query.is_repeat) = (self.sequence + 1, true);
            self.pending.push(Reverse(query));
        }
        self.sequence += 2;
    }

    /// Whether a query is in the stream. Hashes decide, so that what is kept is the same as without.
    fn keeps(&self, query: &Pending) -> bool {
        let is_in = |purpose, number: u64, share| {
            share >= 1.0 || is_share(&mut Random::new(self.seed ^ number.rotate_left(32), purpose), share)
        };
        is_in(PURPOSE_KEPT_CLIENTS, query.client.into(), self.sample.keep_share)
            && is_in(PURPOSE_KEPT_QUERIES, query.sequence, self.sample.keep_queries)
    }

    fn record(&mut self, query: Pending) -> Record<'_> {
        let first_ns = *self.first_ns.get_or_insert(query.due_ns);
        let number = &mut self.numbers[query.client as usize];
        if *number == UNNUMBERED {
            *number = self.numbered;
            self.numbered += 1;
        }
        let client = *number;
        self.write(&query);
        let transport = if query.is_tcp { Transport::Tcp } else { Transport::Udp };
        let flags = match (query.is_tcp, query.is_repeat) {
            (true, _) => NEW_CONNECTION,
            (_, true) => RETRANSMISSION,
            _ => 0,
        };
        Record { due_ns: query.due_ns - first_ns, client, transport, flags, message: &self.message }
    }

    fn write(&mut self, query: &Pending) {
        // One number decides both EDNS and DO: a client that sets DO has EDNS.
        let traits = Random::new(self.seed ^ u64::from(query.client).rotate_left(32), PURPOSE_TRAITS).bits();
        let share = traits as f64 / 2f64.powi(64);
        let dnssec_ok = share < self.messages.do_share;
        let edns = (share < self.messages.edns_share)
            .then_some(Edns { udp_payload_bytes: self.messages.edns_bytes, dnssec_ok });
        let options = Options { recursion_desired: !self.messages.no_recursion_desired, edns };
        self.message.clear();
        self.message.extend_from_slice(&options.header());
        self.message[..2].copy_from_slice(&query.id.to_be_bytes());
        self.questions.push_name(&mut self.message, query.question.name);
        self.message.extend_from_slice(&query.question.rtype.to_int().to_be_bytes());
        self.message.extend_from_slice(&CLASS_IN);
        self.message.extend_from_slice(&options.opt());
    }
}
