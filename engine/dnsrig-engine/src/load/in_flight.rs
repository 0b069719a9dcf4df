//! Which queries are outstanding, and what each message that comes back means. No clock, no socket.
//!
//! Everything that is known of a query while it is in flight meets here: [`client_queries`] has its message id,
//! [`source`](super::source) its message, [`lateness`](super::lateness) how late it was sent, [`interval_stats`] the
//! counts and times, and [`record`](super::record) its row.

use std::{collections::VecDeque, iter, mem};

use dnsrig_dns::{edns::CLIENT_COOKIE_BYTES, query::set_client_cookie, tsig::sign::Signer};
use dnsrig_net::connection::CloseReason;

use super::{
    answer::{self, Verdict},
    arrivals::{Arrivals, Due},
    client_queries::{ClientQueries, Query, State, rest_ns_min},
    client_totals::{ClientTotals, End},
    collect::Handover,
    counts::UnmatchedResponses,
    expect::judge::{Answer, Judge, Judged, WrongExample},
    interval_stats::{Ended, IntervalStats},
    lateness::Lateness,
    record::{RowIndex, Rows},
    source::Source,
};
use crate::query_stream::Transport;

/// The number of places in the table of a connection that one of many clients uses for a while.
const CONNECTION_TABLE: usize = 64;

/// The number of clients that are looked at for timeouts in a row: with more clients, those come in turn.
const EXPIRE_MAX: usize = 4_096;

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

/// All queries of one thread.
pub struct InFlight {
    source: Source,
    signer: Option<Signer>,
    /// The cookie of each client; empty if queries have none.
    cookies: Vec<[u8; CLIENT_COOKIE_BYTES]>,
    /// The time that signatures bear, in seconds since 1970.
    signed_at_s: u64,
    timeout_ns: i64,
    clients: Vec<ClientQueries>,
    /// The number of clients up to the last one that ever had a query.
    used: usize,
    outstanding: usize,
    /// The client that is looked at next for timeouts.
    next_expired: usize,
    lateness: Lateness,
    /// Queries of the first clients, up to this number, are asked again if the answer is truncated.
    asking_again: usize,
    /// The queries that are to be asked again.
    truncated: VecDeque<Query>,
    /// The one of them that is being sent.
    again: Option<Query>,
    /// The number of the query that found neither a place nor an id, if the last one did not.
    refused: Option<u64>,
    /// The number of the last query that was counted because it had to wait.
    waited: Option<u64>,
    /// The number of the last query that was counted because it had to wait for a stream.
    waited_for_stream: Option<u64>,
    /// When queries ended, for a closed loop.
    ended_ns: Option<Vec<i64>>,
    interval_stats: IntervalStats,
    rows: Option<Rows>,
    judge: Option<Judge>,
}

/// What an [`InFlight`] is made of.
pub struct Settings {
    pub source: Source,
    pub signer: Option<Signer>,
    /// The time after which a query is given up.
    pub timeout_ns: i64,
    pub clients: usize,
    /// The number of further clients, each with a small table: connections, on which few queries are outstanding at a
    /// time.
    pub connections: usize,
    /// The number of owners of queries, each of which has one path to the server's queues. 0: their queries take any.
    pub flows: usize,
    /// Whether queries with truncated answers are asked again, on one of the `connections` (RFC 7766 §5).
    pub asks_again: bool,
    /// Places in the table of each client: see [`table_for`](super::client_queries::table_for).
    pub table: usize,
    /// Where counts and times go.
    pub interval_stats: IntervalStats,
    /// Where each query goes, if rows are wanted.
    pub rows: Option<Rows>,
}

impl InFlight {
    /// No query is outstanding.
    pub fn new(settings: Settings) -> Self {
        assert!(settings.clients > 0);
        let tables = iter::repeat_n(settings.table, settings.clients);
        let tables = tables.chain(iter::repeat_n(CONNECTION_TABLE, settings.connections));
        InFlight {
            source: settings.source,
            signer: settings.signer,
            cookies: Vec::new(),
            signed_at_s: 0,
            timeout_ns: settings.timeout_ns,
            clients: tables.map(ClientQueries::new).collect(),
            used: 0,
            outstanding: 0,
            next_expired: 0,
            lateness: Lateness::new(settings.flows),
            asking_again: if settings.asks_again { settings.clients } else { 0 },
            truncated: VecDeque::new(),
            again: None,
            refused: None,
            waited: None,
            waited_for_stream: None,
            ended_ns: None,
            interval_stats: settings.interval_stats,
            rows: settings.rows,
            judge: None,
        }
    }

    /// Compares each answer with what is expected of it, if anything is.
    pub fn with_judge(self, judge: Option<Judge>) -> Self {
        InFlight { judge, ..self }
    }

    /// Gives each client its cookie, which its queries then have.
    pub fn with_cookies(self, cookies: Vec<[u8; CLIENT_COOKIE_BYTES]>) -> Self {
        InFlight { cookies, ..self }
    }

    /// Begins to measure another period, with no query outstanding.
    pub fn restart(&mut self, start_ns: i64, end_ns: i64, closed_loop: bool) {
        debug_assert_eq!(self.outstanding, 0);
        (self.refused, self.waited, self.waited_for_stream) = (None, None, None);
        self.ended_ns = closed_loop.then(Vec::new);
        self.lateness.restart();
        self.interval_stats.restart(start_ns, end_ns);
    }

    /// Ends the period earlier.
    pub fn cut(&mut self, end_ns: i64) {
        self.interval_stats.cut(end_ns);
    }

    /// Sets the time that signatures bear, in seconds since 1970.
    pub fn set_wall_time(&mut self, now_s: u64) {
        self.signed_at_s = now_s;
    }

    /// The length of the longest message that [`InFlight::draft`] writes.
    pub fn bytes_max(&self) -> usize {
        self.source.bytes_max() + self.signer.as_ref().map_or(0, Signer::bytes)
    }

    /// The number of queries that wait for an answer.
    #[inline]
    pub fn outstanding(&self) -> usize {
        self.outstanding
    }

    /// The number of one client's queries that wait for an answer.
    #[inline]
    pub fn outstanding_of(&self, client: usize) -> usize {
        self.clients[client].outstanding()
    }

    /// Takes the next query if its time has come.
    #[inline]
    pub fn take_due(&mut self, arrivals: &mut Arrivals, now_ns: i64) -> Option<Due> {
        arrivals.take(now_ns, &mut self.source)
    }

    /// The transport of a query that is due, if its source names one.
    #[inline]
    pub fn transport(&self, due: &Due) -> Option<Transport> {
        self.source.transport(due.query)
    }

    /// Whether a query that is due is the first of a connection of its client.
    pub fn begins_connection(&self, due: &Due) -> bool {
        self.source.begins_connection(due.query)
    }

    /// Writes the query that is due, as one of `client`, into `space`, and returns its length.
    ///
    /// None if the client's table is full, or no id is free. Follow with [`InFlight::sent`] before anything else is
    /// done with the client.
    pub fn draft(&mut self, client: usize, due: Due, space: &mut [u8]) -> Option<usize> {
        self.used = self.used.max(client + 1);
        let queries = &mut self.clients[client];
        let Some(number) = queries.free_number() else {
            self.refused = (queries.drafts() == 0).then_some(due.number);
            return None;
        };
        self.refused = None;
        let message = self.source.message(due.query).expect("a query that is not sent yet is kept");
        space[..message.len()].copy_from_slice(message);
        space[..2].copy_from_slice(&(number as u16).to_be_bytes());
        if let Some(cookie) = self.cookies.get(client) {
            set_client_cookie(&mut space[..message.len()], *cookie);
        }
        let query = self.again.unwrap_or_else(|| {
            let row = self.rows.as_mut().map_or(RowIndex::NONE, |rows| rows.draft(due, Some(client), &self.source));
            let owner = due.client.unwrap_or(client as u32);
            Query { due_ns: due.at_ns, sent_ns: due.at_ns, owner, position: due.query, row, ..Query::UNUSED }
        });
        queries.draft(number, query);
        Some(match &mut self.signer {
            Some(signer) => signer.sign(space, message.len(), self.signed_at_s),
            None => message.len(),
        })
    }

    /// Takes in that the first `count` drafts of `client` were sent, `bytes` in all. The others are forgotten.
    pub fn sent(&mut self, client: usize, count: usize, bytes: usize, sending: Sending) {
        if self.again.take().is_some() {
            return self.sent_again(client, count, bytes);
        }
        let queries = &mut self.clients[client];
        let (sent_ns, held_ns) = (sending.began_ns, sending.held_ns(count));
        if let Some(rows) = &mut self.rows
            && let Some(unsent) = queries.draft_after(count)
        {
            rows.forget(unsent.row);
        }
        if self.outstanding == 0 {
            self.lateness.nothing_outstanding();
        }
        let mut bytes = bytes;
        queries.sent(count, |query| {
            query.sent_ns = sent_ns;
            query.mark = self.lateness.sent(query.owner as usize, sent_ns - query.due_ns, held_ns);
            // All bytes count for the first query.
            self.interval_stats.sent(query.due_ns, sent_ns, mem::take(&mut bytes));
            if let Some(rows) = &mut self.rows {
                rows.sent(query.row, sent_ns);
            }
        });
        self.outstanding += count;
    }

    /// The next query that is to be asked again, which is drafted and sent before anything else is. End it with
    /// [`InFlight::asked_again`].
    pub fn ask_again(&mut self) -> Option<Due> {
        let query = *self.truncated.front()?;
        self.again = Some(query);
        Some(Due { at_ns: query.due_ns, client: Some(query.owner), query: query.position, number: 0 })
    }

    /// Takes in whether the query was sent again. If it could not be sent, the others go first.
    pub fn asked_again(&mut self, sent: bool) {
        self.again = None;
        if !sent && !self.truncated.is_empty() {
            self.truncated.rotate_left(1);
        }
    }

    /// The number of queries that are to be asked again.
    pub fn to_ask_again(&self) -> usize {
        self.truncated.len()
    }

    /// Takes in that a query was sent again: it is as old as it was, and counted already.
    fn sent_again(&mut self, client: usize, count: usize, bytes: usize) {
        let sent = if count > 0 { self.truncated.pop_front() } else { None };
        self.clients[client].sent(usize::from(sent.is_some()), |_| {});
        if let Some(query) = sent {
            self.interval_stats.at(query.due_ns).counts.bytes_sent += bytes as u64;
        }
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
        let queries = &mut self.clients[client];
        let Some(query) = queries.with_id(id) else {
            let rests = queries.rests(id);
            let unmatched = self.unmatched(received_ns);
            *(if rests { &mut unmatched.late } else { &mut unmatched.unexpected }) += 1;
            return false;
        };
        let verdict = match self.source.message(query.position) {
            Some(message) => answer::check(bytes, length, message),
            // The query has ended long ago: its id alone shows whose answer this is.
            None => Verdict::Answer { rcode: 0, truncated: false, authenticated: false },
        };
        if matches!(verdict, Verdict::Answer { .. } | Verdict::Incomplete) {
            self.interval_stats.answer_came(received_ns);
        }
        match (verdict, query.state) {
            (Verdict::Malformed, _) => self.unmatched(received_ns).malformed += 1,
            (Verdict::Mismatched, _) => self.unmatched(received_ns).mismatched += 1,
            (Verdict::Incomplete, _) => self.unmatched(received_ns).incomplete += 1,
            (_, State::Answered) => self.unmatched(received_ns).duplicates += 1,
            (Verdict::Answer { rcode, truncated, authenticated }, State::Outstanding)
                if received_ns < query.sent_ns + self.timeout_ns =>
            {
                let is_unsure = queries.answered(id);
                let counts = &mut self.interval_stats.at(query.due_ns).counts;
                counts.bytes_received += length as u64;
                counts.wrong_matches_max += u64::from(is_unsure);
                if truncated && asks_again && self.source.asks_again(query.position) {
                    self.interval_stats.truncated(query.owner as usize, query.due_ns);
                    self.truncated.push_back(Query { state: State::Unused, ..query });
                    return true;
                }
                let end = match &mut self.judge {
                    None => End::Answered { rcode, truncated, authenticated },
                    Some(judge) => {
                        let judged = judge.judge(query.position, Answer { message: bytes, rcode, truncated });
                        self.interval_stats.at(query.due_ns).counts.unlisted += u64::from(judged == Judged::Unlisted);
                        match judged {
                            Judged::Wrong(kind) => End::Wrong { kind, rcode, truncated, authenticated },
                            Judged::Right | Judged::Unlisted => End::Answered { rcode, truncated, authenticated },
                        }
                    }
                };
                self.end(query, received_ns, end);
                return true;
            }
            _ => self.unmatched(received_ns).late += 1,
        }
        false
    }

    /// Gives up queries that were sent a timeout ago or earlier, of [`EXPIRE_MAX`] clients at a time. Returns their
    /// number.
    pub fn expire(&mut self, now_ns: i64) -> usize {
        let (before, rest_ns_min) = (self.outstanding, rest_ns_min(self.timeout_ns));
        for _ in 0..self.used.min(EXPIRE_MAX) {
            let client = self.next_expired;
            self.next_expired = (client + 1) % self.used;
            self.clients[client].end_rests(now_ns, rest_ns_min);
            while let Some(query) = self.clients[client].time_out(now_ns, self.timeout_ns) {
                self.end(query, query.sent_ns + self.timeout_ns, End::Timeout);
            }
        }
        for query in mem::take(&mut self.truncated) {
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
        while let Some(query) = self.clients[client].lose() {
            self.end(query, query.sent_ns + self.timeout_ns, End::Lost(loss));
        }
    }

    /// Ends the query of `client` with this id, whose connection goes on. It counts as unanswered, recorded at the
    /// limit.
    pub fn lose_one(&mut self, client: usize, id: u16, loss: CloseReason) {
        if let Some(query) = self.clients[client].lose_one(id) {
            self.end(query, query.sent_ns + self.timeout_ns, End::Lost(loss));
        }
    }

    /// Counts a query that is due and could not be sent, once, because the server permits no further stream.
    pub fn waits_for_stream(&mut self, due: &Due) {
        if self.waited_for_stream.replace(due.number) != Some(due.number) {
            self.interval_stats.at(due.at_ns).counts.waited_for_stream += 1;
        }
    }

    /// Counts a query that is due and could not be sent, once, if it has to wait for a place or an id.
    pub fn waits(&mut self, due: Due) {
        if self.refused == Some(due.number) && self.waited != self.refused {
            self.waited = self.refused;
            self.interval_stats.at(due.at_ns).counts.waited_for_id += 1;
        }
    }

    /// Takes in that a query that was due is never sent.
    pub fn give_up(&mut self, due: Due) {
        if let Some(rows) = &mut self.rows {
            rows.unsent(due, &self.source);
        }
        self.interval_stats.given_up(due.at_ns);
        self.source.ended(due.query);
    }

    /// Takes in that a query that was due never left, because its client's connection took no more: the client waits in
    /// vain.
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
        self.source.ended(query.position);
        let Query { due_ns, sent_ns, mark, .. } = query;
        let client = query.owner as usize;
        if let Some(times) = &mut self.ended_ns {
            times.push(ended_ns);
        }
        let (ended_ns, lower_ns) = match end {
            End::Answered { .. } => {
                (ended_ns, self.lateness.answered(client, mark, sent_ns - due_ns, ended_ns - sent_ns))
            }
            // A wrong answer is no better than none.
            End::Wrong { .. } => (sent_ns + self.timeout_ns, self.lateness.unanswered(mark, self.timeout_ns)),
            End::Timeout | End::Lost(_) => (ended_ns, self.lateness.unanswered(mark, self.timeout_ns)),
        };
        self.interval_stats.end(client, Ended { due_ns, sent_ns, ended_ns, lower_ns, end });
        if let Some(rows) = &mut self.rows {
            rows.end(query.row, ended_ns, end);
        }
    }

    /// Calls `each` with the time at which a query ended, for all since the last call, if this is a closed loop.
    pub fn take_ended(&mut self, each: impl FnMut(i64)) {
        if let Some(ended_ns) = &mut self.ended_ns {
            ended_ns.drain(..).for_each(each);
        }
    }

    /// Counts ICMP errors that a socket reported.
    pub fn count_unreachable(&mut self, now_ns: i64, errors: u64) {
        self.interval_stats.at(now_ns).counts.unreachable += errors;
    }

    /// Counts a message that came from another address than the server's.
    pub fn count_unexpected(&mut self, now_ns: i64) {
        self.unmatched(now_ns).unexpected += 1;
    }

    /// Counts a connection that was established, `started_ns` being when connecting began.
    pub fn count_established(&mut self, started_ns: i64, now_ns: i64) {
        self.interval_stats.established(started_ns, now_ns);
    }

    /// Counts time in which the thread had work, up to `now_ns`.
    #[inline]
    pub fn count_busy(&mut self, now_ns: i64, busy_ns: i64) {
        self.interval_stats.at(now_ns).busy_ns += busy_ns;
    }

    /// Hands complete intervals over. `next_due_ns` is when the next query falls due.
    pub fn hand_over(&mut self, handover: &mut Handover, next_due_ns: i64) {
        handover.give(&mut self.interval_stats, next_due_ns);
    }

    /// What is kept of a whole period, at its end: totals of clients, rows, and examples of wrong answers.
    pub fn take_period(&mut self) -> (Option<ClientTotals>, Option<Rows>, Vec<WrongExample>) {
        let wrong = self.judge.as_mut().map(Judge::take_examples).unwrap_or_default();
        (self.interval_stats.totals.take(), self.rows.take(), wrong)
    }

    fn unmatched(&mut self, time_ns: i64) -> &mut UnmatchedResponses {
        &mut self.interval_stats.at(time_ns).counts.unmatched
    }
}

#[cfg(test)]
impl InFlight {
    /// Clients that send these messages from the time 0 on.
    pub fn with_messages(
        messages: impl IntoIterator<Item = Vec<u8>>,
        clients: usize,
        table: usize,
        timeout_ns: i64,
    ) -> Self {
        let queries = super::queries::Queries::from_messages(messages);
        let source = Source::Prepared(std::sync::Arc::new(queries));
        let interval_ns = 100_000_000_000;
        let interval_stats = IntervalStats::new(0, interval_ns, interval_ns, clients);
        let (flows, connections, asks_again) = (clients, 0, false);
        let (signer, rows) = (None, None);
        InFlight::new(Settings {
            source,
            signer,
            timeout_ns,
            clients,
            connections,
            flows,
            asks_again,
            table,
            interval_stats,
            rows,
        })
    }

    /// Takes the queries from another source.
    pub fn with_source(self, source: Source) -> Self {
        InFlight { source, ..self }
    }

    /// The counts of the only interval.
    pub fn counts(&mut self) -> super::counts::Counts {
        self.interval_stats.at(0).counts
    }
}

#[cfg(test)]
#[path = "in_flight_tests.rs"]
mod tests;
