//! Which queries are outstanding, and what each message that comes back means. No clock, no socket.
//!
//! Each client (a source address and port, or a connection) has message ids of its own, handed out in turn, and a table
//! of its queries by id. An id keeps its meaning until the table has gone round once, so late answers and duplicates
//! differ from messages that nobody asked for. Ids of queries that are outstanding are left out, and
//! so are those that [rest](id_rest): the answer to their query may still come.

use std::{collections::VecDeque, iter};

use super::{
    answer::{self, Verdict},
    arrivals::Due,
    client_totals::End,
    id_rest::{IdRest, rest_ns_min},
    interval_stats::{Ended, IntervalStats},
    lateness::{Lateness, Mark},
    rows::{Place, Rows},
    source::Source,
};
use crate::{dns::tsig::sign::Signer, net::connection::CloseReason};

/// A client's table has at most so many places: an id has 16 bits (RFC 1035 §4.1.1).
pub const TABLE_MAX: usize = 1 << 16;

/// The largest distance between the sequence numbers of a client's oldest outstanding query and its next one: a query
/// keeps the low 24 bits of its number.
const NUMBERS_OPEN_MAX: u64 = 1 << 24;

/// The table of a connection that one of many clients uses for a while.
const CONNECTION_TABLE: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Unused,
    Outstanding,
    Answered,
    TimedOut,
    Lost,
}

#[derive(Clone, Copy)]
struct Query {
    due_ns: i64,
    sent_ns: i64,
    mark: Mark,
    /// Whose it is, where counts and times go.
    owner: u32,
    /// Position in the order of queries.
    place: u32,
    row: Place,
    /// The low 16 bits of its sequence number, which are the message id, and the 8 bits above them.
    id: u16,
    round: u8,
    state: State,
}

impl Query {
    fn has_number(&self, number: u64) -> bool {
        self.id == number as u16 && self.round == (number >> 16) as u8
    }
}

const UNUSED: Query = Query {
    due_ns: 0,
    sent_ns: 0,
    mark: Mark::UNSENT,
    owner: 0,
    place: 0,
    row: Place::NONE,
    id: 0,
    round: 0,
    state: State::Unused,
};

/// A datagram takes the kernel less than this to send, with the way through both hosts' stacks on a virtual link. If it
/// took longer, the thread was held up in the middle of sending, and no one knows before which datagram.
const SENDING_NS: i64 = 20_000;

/// When queries were sent: the system call's beginning and end.
#[derive(Clone, Copy, Debug)]
pub struct Sending {
    pub began_ns: i64,
    pub ended_ns: i64,
}

impl Sending {
    /// How much later than at the beginning `count` queries may have left; 0 if it took no longer than usual.
    fn held_ns(self, count: usize) -> i64 {
        let took_ns = self.ended_ns - self.began_ns;
        if took_ns > SENDING_NS * count as i64 { took_ns } else { 0 }
    }
}

/// Queries of one client. Sequence numbers count from 0; the id is their low 16 bits. Some are left out.
struct Client {
    table: Box<[Query]>,
    rest: IdRest,
    /// All before it have ended.
    oldest: u64,
    /// The next to be sent; from here on `drafts` are written but not sent.
    next: u64,
    drafts: u64,
    outstanding: u32,
}

impl Client {
    fn query(&mut self, number: u64) -> &mut Query {
        let place = number as usize & (self.table.len() - 1);
        &mut self.table[place]
    }

    fn pass_ended(&mut self) {
        while self.oldest < self.next && !self.is_outstanding(self.oldest) {
            self.oldest += 1;
        }
    }

    fn is_outstanding(&mut self, number: u64) -> bool {
        let query = self.query(number);
        query.state == State::Outstanding && query.has_number(number)
    }

    /// The sequence number of the next draft; None if there is no place for it or no id. Drafts have consecutive
    /// numbers: if the next number is in use, a draft has to wait until the drafts before it are sent.
    fn free_number(&mut self) -> Option<u64> {
        let first = self.next + self.drafts;
        let used = self.outstanding as usize + self.drafts as usize;
        if used >= self.table.len() || used + self.rest.count() >= TABLE_MAX {
            return None;
        }
        if self.drafts > 0 {
            return self.is_free(first).then_some(first);
        }
        self.next = (first..first + TABLE_MAX as u64).find(|number| self.is_free(*number))?;
        Some(self.next)
    }

    fn is_free(&mut self, number: u64) -> bool {
        self.query(number).state != State::Outstanding
            && !self.rest.contains(number as u16)
            && number - self.oldest < NUMBERS_OPEN_MAX
    }
}

/// All queries of one thread.
pub struct InFlight {
    /// What is asked.
    pub source: Source,
    signer: Option<Signer>,
    signed_at_s: u64,
    timeout_ns: i64,
    clients: Vec<Client>,
    outstanding: usize,
    lateness: Lateness,
    /// Of the first so many clients, queries with truncated answers are asked again.
    asking_again: usize,
    /// Those that are to be.
    truncated: VecDeque<Query>,
    /// The one of them that is being sent.
    again: Option<Query>,
    /// The number of the query that found neither a place nor an id, if the last one did not, and of the last that was
    /// counted for it.
    refused: Option<u64>,
    waited: Option<u64>,
    /// When queries ended, for a closed loop.
    ended_ns: Option<Vec<i64>>,
    /// Where counts and times go.
    pub interval_stats: IntervalStats,
    /// Where each query goes, if that is wanted.
    pub rows: Option<Rows>,
}

/// How an [`InFlight`] is made.
pub struct Settings {
    pub source: Source,
    pub signer: Option<Signer>,
    /// A query is given up after so long.
    pub timeout_ns: i64,
    pub clients: usize,
    /// So many further clients, each with a small table: connections, on which few queries are outstanding at a time.
    pub connections: usize,
    /// Of so many owners each has one path to the server's queues. 0: their queries take any.
    pub flows: usize,
    /// Whether queries with truncated answers are asked again, on one of the `connections` (RFC 7766 §5).
    pub asks_again: bool,
    /// Places in the table of each client: a power of two, at most [`TABLE_MAX`].
    pub table: usize,
}

impl InFlight {
    /// Without a query outstanding.
    pub fn new(settings: Settings, interval_stats: IntervalStats) -> Self {
        let Settings { source, signer, timeout_ns, clients, connections, flows, asks_again, table } = settings;
        assert!(table.is_power_of_two() && table <= TABLE_MAX && clients > 0);
        let client = |places| Client {
            table: vec![UNUSED; places].into_boxed_slice(),
            rest: IdRest::default(),
            oldest: 0,
            next: 0,
            drafts: 0,
            outstanding: 0,
        };
        let places = iter::repeat_n(table, clients).chain(iter::repeat_n(CONNECTION_TABLE, connections));
        InFlight {
            source,
            signer,
            signed_at_s: 0,
            timeout_ns,
            clients: places.map(client).collect(),
            outstanding: 0,
            lateness: Lateness::new(flows),
            asking_again: if asks_again { clients } else { 0 },
            truncated: VecDeque::new(),
            again: None,
            refused: None,
            waited: None,
            ended_ns: None,
            interval_stats,
            rows: None,
        }
    }

    /// The longest message that [`InFlight::draft`] writes.
    pub fn bytes_max(&self) -> usize {
        self.source.bytes_max() + self.signer.as_ref().map_or(0, Signer::bytes)
    }

    /// The time that signatures bear, in seconds since 1970; needed with a signer only.
    pub fn set_wall_time(&mut self, now_s: u64) {
        self.signed_at_s = now_s;
    }

    /// How many queries wait for an answer.
    pub fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// How many of one client's queries wait for an answer.
    pub fn outstanding_of(&self, client: usize) -> usize {
        self.clients[client].outstanding as usize
    }

    /// Writes the query that is due, as one of `client`, into `space`, and returns its length.
    ///
    /// None if the client's table is full, or no id is free. Follow with [`InFlight::sent`] before anything else is
    /// done with the client.
    pub fn draft(&mut self, client: usize, due: Due, space: &mut [u8]) -> Option<usize> {
        let Some(number) = self.clients[client].free_number() else {
            self.refused = (self.clients[client].drafts == 0).then_some(due.number);
            return None;
        };
        self.refused = None;
        let Client { table, drafts, .. } = &mut self.clients[client];
        let (id, round) = (number as u16, (number >> 16) as u8);
        let query = self.source.message(due.query).expect("a query that is not sent yet is kept");
        space[..query.len()].copy_from_slice(query);
        space[..2].copy_from_slice(&id.to_be_bytes());
        let place = number as usize & (table.len() - 1);
        let owner = due.client.unwrap_or(client as u32);
        table[place] = match (self.again, &mut self.rows) {
            (Some(again), _) => Query { id, round, ..again },
            (None, rows) => {
                let row = rows.as_mut().map_or(Place::NONE, |rows| rows.draft(due, Some(client), &self.source));
                Query { due_ns: due.at_ns, sent_ns: due.at_ns, owner, place: due.query, row, id, round, ..UNUSED }
            }
        };
        *drafts += 1;
        Some(match &mut self.signer {
            Some(signer) => signer.sign(space, query.len(), self.signed_at_s),
            None => query.len(),
        })
    }

    /// The first `count` drafts of `client`, `bytes` in all, were sent; the others were not, and are forgotten.
    pub fn sent(&mut self, client: usize, count: usize, bytes: usize, sending: Sending) {
        if self.again.take().is_some() {
            return self.sent_again(client, count, bytes);
        }
        let client = &mut self.clients[client];
        let (sent_ns, held_ns) = (sending.began_ns, sending.held_ns(count));
        if let Some(rows) = &mut self.rows {
            if (count as u64) < client.drafts {
                rows.forget(client.query(client.next + count as u64).row);
            }
            (client.next..client.next + count as u64).for_each(|at| rows.sent(client.query(at).row, sent_ns));
        }
        if self.outstanding == 0 {
            self.lateness.nothing_outstanding();
        }
        for at in client.next..client.next + count as u64 {
            let query = client.query(at);
            (query.sent_ns, query.state) = (sent_ns, State::Outstanding);
            query.mark = self.lateness.sent(query.owner as usize, sent_ns - query.due_ns, held_ns);
            let due_ns = query.due_ns;
            self.interval_stats.sent(due_ns, sent_ns, if at == client.next { bytes } else { 0 });
        }
        client.next += count as u64;
        client.drafts = 0;
        client.outstanding += count as u32;
        self.outstanding += count;
    }

    /// The next query that is to be asked again, which is drafted and sent before anything else is; end it with
    /// [`InFlight::asked_again`].
    pub fn ask_again(&mut self) -> Option<Due> {
        let query = *self.truncated.front()?;
        self.again = Some(query);
        Some(Due { at_ns: query.due_ns, client: Some(query.owner), query: query.place, number: 0 })
    }

    /// It was sent, or could not be: then the others go first.
    pub fn asked_again(&mut self, sent: bool) {
        self.again = None;
        if !sent && !self.truncated.is_empty() {
            self.truncated.rotate_left(1);
        }
    }

    /// How many are to be asked again.
    pub fn to_ask_again(&self) -> usize {
        self.truncated.len()
    }

    /// A query was sent again: it is as old as it was, and counted already.
    fn sent_again(&mut self, client: usize, count: usize, bytes: usize) {
        let client = &mut self.clients[client];
        if count > 0
            && let Some(first) = self.truncated.pop_front()
        {
            client.query(client.next).state = State::Outstanding;
            client.next += 1;
            client.outstanding += 1;
            self.interval_stats.at(first.due_ns).counts.bytes_sent += bytes as u64;
        }
        client.drafts = 0;
    }

    /// Takes in a message that `client` received: `length` bytes long, of which at least the question is in `bytes`.
    ///
    /// True if it ended a query.
    pub fn answer(&mut self, client: usize, bytes: &[u8], length: usize, received_ns: i64) -> bool {
        let Some(id) = bytes.first_chunk().map(|id| u16::from_be_bytes(*id)) else {
            self.unmatched(received_ns).malformed += 1;
            return false;
        };
        let asks_again = client < self.asking_again;
        let client = &mut self.clients[client];
        let query = *client.query(u64::from(id));
        if query.id != id || query.state == State::Unused {
            let rests = client.rest.contains(id);
            let unmatched = self.unmatched(received_ns);
            *(if rests { &mut unmatched.late } else { &mut unmatched.unexpected }) += 1;
            return false;
        }
        let verdict = match self.source.message(query.place) {
            Some(message) => answer::check(bytes, length, message),
            // It has ended long ago: its id alone tells whose answer this is.
            None => Verdict::Answer { rcode: 0, truncated: false, authenticated: false },
        };
        if matches!(verdict, Verdict::Answer { .. } | Verdict::Incomplete) {
            self.interval_stats.heard(received_ns);
        }
        match (verdict, query.state) {
            (Verdict::Malformed, _) => self.unmatched(received_ns).malformed += 1,
            (Verdict::Mismatched, _) => self.unmatched(received_ns).mismatched += 1,
            (Verdict::Incomplete, _) => self.unmatched(received_ns).incomplete += 1,
            (_, State::Answered) => self.unmatched(received_ns).duplicates += 1,
            (Verdict::Answer { rcode, truncated, authenticated }, State::Outstanding)
                if received_ns < query.sent_ns + self.timeout_ns =>
            {
                client.query(u64::from(id)).state = State::Answered;
                client.outstanding -= 1;
                client.pass_ended();
                let is_unsure = client.rest.is_unsure(id);
                let counts = &mut self.interval_stats.at(query.due_ns).counts;
                counts.bytes_received += length as u64;
                counts.wrong_matches_max += u64::from(is_unsure);
                if truncated && asks_again && self.source.asks_again(query.place) {
                    self.interval_stats.truncated(query.owner as usize, query.due_ns);
                    self.truncated.push_back(Query { state: State::Unused, ..query });
                    return true;
                }
                self.end(query, received_ns, End::Answered { rcode, truncated, authenticated });
                return true;
            }
            _ => self.unmatched(received_ns).late += 1,
        }
        false
    }

    /// Gives up what was sent a timeout ago or earlier; returns how many that are.
    pub fn expire(&mut self, now_ns: i64) -> usize {
        let (before, rest_ns_min) = (self.outstanding, rest_ns_min(self.timeout_ns));
        for number in 0..self.clients.len() {
            self.clients[number].rest.end(now_ns, rest_ns_min);
            if self.clients[number].outstanding == 0 {
                continue;
            }
            while let Some(query) = self.oldest_outstanding(number) {
                if query.sent_ns + self.timeout_ns > now_ns {
                    break;
                }
                let client = &mut self.clients[number];
                client.query(client.oldest).state = State::TimedOut;
                client.rest.begin(query.id, query.sent_ns);
                client.outstanding -= 1;
                self.end(query, query.sent_ns + self.timeout_ns, End::Timeout);
            }
        }
        for query in std::mem::take(&mut self.truncated) {
            if query.sent_ns + self.timeout_ns <= now_ns {
                self.end(query, query.sent_ns + self.timeout_ns, End::Timeout);
            } else {
                self.truncated.push_back(query);
            }
        }
        before - self.outstanding
    }

    /// Ends all queries of `client`, whose connection is gone. They count as unanswered, recorded at the limit.
    pub fn lose(&mut self, client: usize, loss: CloseReason) {
        while let Some(query) = self.oldest_outstanding(client) {
            let lost = &mut self.clients[client];
            lost.query(lost.oldest).state = State::Lost;
            lost.outstanding -= 1;
            self.end(query, query.sent_ns + self.timeout_ns, End::Lost(loss));
        }
    }

    /// Calls `each` with the time at which a query ended, for all since the last call, if this is a closed loop.
    pub fn take_ended(&mut self, mut each: impl FnMut(i64)) {
        if let Some(ended_ns) = &mut self.ended_ns {
            ended_ns.drain(..).for_each(&mut each);
        }
    }

    /// Begins to measure another period, with no query outstanding.
    pub fn restart(&mut self, start_ns: i64, end_ns: i64, closed_loop: bool) {
        debug_assert_eq!(self.outstanding, 0);
        (self.refused, self.waited) = (None, None);
        self.ended_ns = closed_loop.then(Vec::new);
        self.lateness.restart();
        self.interval_stats.restart(start_ns, end_ns);
    }

    /// A query that is due could not be sent: counts it once if it has to wait for a place or an id.
    pub fn waits(&mut self, due: Due) {
        if self.refused == Some(due.number) && self.waited != self.refused {
            self.waited = self.refused;
            self.interval_stats.at(due.at_ns).counts.waited_for_id += 1;
        }
    }

    /// A query that was due is never sent.
    pub fn give_up(&mut self, due: Due) {
        if let Some(rows) = &mut self.rows {
            rows.unsent(due, &self.source);
        }
        self.interval_stats.given_up(due.at_ns);
        self.source.ended(due.query);
    }

    /// A query that was due never left, because its client's connection took no more: the client waits in vain.
    pub fn time_out(&mut self, due: Due) {
        let Due { at_ns, client, query, .. } = due;
        let ended_ns = at_ns + self.timeout_ns;
        if let Some(rows) = &mut self.rows {
            let row = rows.draft(due, None, &self.source);
            rows.sent(row, at_ns);
            rows.end(row, ended_ns, End::Timeout);
        }
        self.interval_stats.sent(at_ns, at_ns, 0);
        self.source.ended(query);
        let ended = Ended { due_ns: at_ns, sent_ns: at_ns, ended_ns, lower_ns: self.timeout_ns, end: End::Timeout };
        self.interval_stats.end(client.unwrap_or(0) as usize, ended);
    }

    fn end(&mut self, query: Query, ended_ns: i64, end: End) {
        self.outstanding -= 1;
        self.source.ended(query.place);
        let Query { due_ns, sent_ns, mark, .. } = query;
        let client = query.owner as usize;
        let lower_ns = match end {
            End::Answered { .. } => self.lateness.answered(client, mark, sent_ns - due_ns, ended_ns - sent_ns),
            End::Timeout | End::Lost(_) => self.lateness.unanswered(mark, self.timeout_ns),
        };
        self.interval_stats.end(client, Ended { due_ns, sent_ns, ended_ns, lower_ns, end });
        if let Some(rows) = &mut self.rows {
            rows.end(query.row, ended_ns, end);
        }
        if let Some(times) = &mut self.ended_ns {
            times.push(ended_ns);
        }
    }

    fn oldest_outstanding(&mut self, client: usize) -> Option<Query> {
        let client = &mut self.clients[client];
        client.pass_ended();
        (client.oldest < client.next).then(|| *client.query(client.oldest))
    }

    fn unmatched(&mut self, time_ns: i64) -> &mut super::interval_stats::UnmatchedResponses {
        &mut self.interval_stats.at(time_ns).counts.unmatched
    }
}

/// How many places a client's table needs: twice what may be outstanding, and at least 256, so that ids keep their
/// meaning for a while after their query's end. None if even the largest table does not hold that many.
pub fn table_for(outstanding: f64, clients: usize) -> Option<usize> {
    let each = outstanding / clients as f64;
    (each * 1.25 < TABLE_MAX as f64)
        .then(|| ((each * 2.0) as usize).clamp(256, TABLE_MAX).next_power_of_two().min(TABLE_MAX))
}

#[cfg(test)]
impl InFlight {
    /// Of clients that send these messages from the time 0 on.
    pub fn of(messages: impl IntoIterator<Item = Vec<u8>>, clients: usize, table: usize, timeout_ns: i64) -> Self {
        let source = Source::Prepared(std::sync::Arc::new(super::queries::Queries::from_messages(messages)));
        let (flows, connections, asks_again) = (clients, 0, false);
        let settings =
            Settings { source, signer: None, timeout_ns, clients, connections, flows, asks_again, table };
        let interval_ns = 100_000_000_000;
        InFlight::new(settings, IntervalStats::new(0, interval_ns, interval_ns, clients))
    }
}

#[cfg(test)]
#[path = "in_flight_tests.rs"]
mod tests;
