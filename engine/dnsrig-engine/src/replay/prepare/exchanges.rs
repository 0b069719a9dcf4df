//! What belongs together of queries and answers, in the order of their times: which queries clients sent again because
//! nothing was answered, and which they asked over TCP because the answer over UDP was truncated.

use std::{
    collections::{HashMap, hash_map::DefaultHasher},
    hash::{Hash, Hasher},
};

use dnsrig_dns::query::question;

use super::sort::{ANSWER, Entry, TRUNCATED};
use crate::query_stream::Transport;

/// A client that sends the same query again within this time, over UDP and from the same port, retransmits it unless it
/// was answered. Stub resolvers wait for up to five seconds. As soon comes a query over TCP after a truncated answer.
const PATIENCE_NS: i64 = 5_000_000_000;

/// No client gives up waiting so soon: the capture has the packet twice.
const AT_ONCE_NS: i64 = 1_000_000;

/// The number of messages of each kind that are remembered, in each of two halves.
const REMEMBERED_MAX: usize = 1 << 19;

/// What a query or an answer is beside those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A query of its own.
    New,
    /// A repetition of a query that has no answer; `at_once` if it came within a millisecond.
    Again {
        at_once: bool,
    },
    /// The query over TCP for a truncated answer: whoever replays the query over UDP asks again by itself.
    AfterTruncation,
    Answer,
}

/// The queries and answers of the last seconds.
#[derive(Default)]
pub struct Exchanges {
    unanswered: Recent,
    truncated: Recent,
}

impl Exchanges {
    /// Takes in a query or an answer; none before it is later.
    pub fn place(&mut self, entry: &Entry) -> Place {
        let (is_udp, is_answer) = (entry.transport == Transport::Udp, entry.flags & ANSWER != 0);
        if is_answer {
            self.unanswered.remove(exchange(entry));
            if entry.flags & TRUNCATED != 0 {
                self.truncated.insert(asked(entry), entry.time_ns);
            }
            return Place::Answer;
        }
        let soon = |before_ns: Option<i64>| {
            before_ns
                .map(|before_ns| entry.time_ns.saturating_sub(before_ns))
                .filter(|since_ns| *since_ns <= PATIENCE_NS)
        };
        if !is_udp {
            let is_retry = entry.transport == Transport::Tcp && soon(self.truncated.remove(asked(entry))).is_some();
            return if is_retry { Place::AfterTruncation } else { Place::New };
        }
        match soon(self.unanswered.insert(exchange(entry), entry.time_ns)) {
            Some(since_ns) => Place::Again { at_once: since_ns < AT_ONCE_NS },
            None => Place::New,
        }
    }
}

/// What a query and its answer have in common, and a query that is sent again: the case of letters is a matter of taste
/// (RFC 4343 §3).
fn exchange(entry: &Entry) -> u64 {
    let id = entry.message.first_chunk::<2>();
    hash((entry.client, entry.port, id, question(entry.message).to_ascii_lowercase()))
}

/// What a query over TCP has in common with the truncated answer before it.
fn asked(entry: &Entry) -> u64 {
    hash((entry.client, question(entry.message).to_ascii_lowercase()))
}

fn hash(what: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

/// Messages of the last seconds, by their hashes, and when each came. Two halves, of which the older one is forgotten
/// when the newer one is full or old.
#[derive(Default)]
struct Recent {
    newer: HashMap<u64, i64>,
    older: HashMap<u64, i64>,
    since_ns: i64,
}

impl Recent {
    /// Remembers a message; when the same came before.
    fn insert(&mut self, hash: u64, time_ns: i64) -> Option<i64> {
        if time_ns.saturating_sub(self.since_ns) > PATIENCE_NS || self.newer.len() >= REMEMBERED_MAX {
            std::mem::swap(&mut self.newer, &mut self.older);
            self.newer.clear();
            self.since_ns = time_ns;
        }
        self.newer.insert(hash, time_ns).or_else(|| self.older.remove(&hash))
    }

    /// Forgets a message; when it came.
    fn remove(&mut self, hash: u64) -> Option<i64> {
        let older = self.older.remove(&hash);
        self.newer.remove(&hash).or(older)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;

    const MS: i64 = 1_000_000;

    /// A message of a client: when, from which port, with which id, over what, and its flags.
    fn entry(time_ns: i64, port: u16, message: &[u8], transport: Transport, flags: u8) -> Entry<'_> {
        Entry { time_ns, client: Ipv6Addr::LOCALHOST, port, copy: 0, transport, flags, message }
    }

    /// A query for the name a, or A.
    fn query(id: u8, letter: u8) -> Vec<u8> {
        vec![0, id, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, letter, 0, 0, 1, 0, 1]
    }

    #[test]
    fn the_times_of_a_capture_may_be_centuries_apart() {
        let (mut exchanges, query) = (Exchanges::default(), query(7, b'a'));
        let mut place = |time_ns| exchanges.place(&entry(time_ns, 4000, &query, Transport::Udp, 0));
        assert_eq!([i64::MIN, 0, i64::MAX].map(&mut place), [Place::New; 3]);
    }

    #[test]
    fn a_query_that_was_answered_is_not_sent_again_but_asked_again() {
        let (mut exchanges, query, other) = (Exchanges::default(), query(7, b'a'), query(8, b'a'));
        let mut place =
            |ms: i64, port, message, flags| exchanges.place(&entry(ms * MS, port, message, Transport::Udp, flags));
        assert_eq!(place(0, 4000, &query, 0), Place::New);
        assert_eq!(place(0, 4000, &query, 0), Place::Again { at_once: true });
        assert_eq!(place(3000, 4000, &query, 0), Place::Again { at_once: false });
        assert_eq!(place(3001, 4001, &query, 0), Place::New, "another port");
        assert_eq!(place(3002, 4000, &other, 0), Place::New, "another id");
        assert_eq!(place(3003, 4000, &query, ANSWER), Place::Answer);
        assert_eq!(place(3500, 4000, &query, 0), Place::New, "it was answered");
        assert_eq!(place(3600, 4000, &query, 0), Place::Again { at_once: false });
        assert_eq!(place(9000, 4000, &query, 0), Place::New, "nobody waits for so long");
    }

    #[test]
    fn a_query_over_tcp_after_a_truncated_answer_is_the_same_query() {
        let (mut exchanges, asked) = (Exchanges::default(), query(7, b'a'));
        let mut place = |ms: i64, port, message: &[u8], transport, flags| {
            exchanges.place(&entry(ms * MS, port, message, transport, flags))
        };
        place(0, 4000, &asked, Transport::Udp, 0);
        place(1, 4000, &asked, Transport::Udp, ANSWER | TRUNCATED);
        // From another port, with another id, and other letters.
        let over_tcp = query(9, b'A');
        assert_eq!(place(2, 5000, &over_tcp, Transport::Tcp, 0), Place::AfterTruncation);
        assert_eq!(place(3, 5001, &over_tcp, Transport::Tcp, 0), Place::New, "once for each truncated answer");
        place(4, 4000, &asked, Transport::Udp, ANSWER | TRUNCATED);
        assert_eq!(place(5, 5002, &query(9, b'b'), Transport::Tcp, 0), Place::New, "another name");
        assert_eq!(place(5100, 5003, &over_tcp, Transport::Tcp, 0), Place::New, "nobody waits for so long");
    }
}
