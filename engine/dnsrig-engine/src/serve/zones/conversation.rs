//! One connection's queries and answers, in order or interleaved: what waits is bounded. No socket and no clock.

use std::{collections::VecDeque, net::IpAddr};

use dnsrig_dns::writer::MessageWriter;

use super::{
    answer::{Answer, Via, decide},
    counts::Counts,
    primary::{Now, Order, Primary},
    transfer::Progress,
};
use crate::serve::shell::service::Next;

/// With so many answers to give, a connection is not read from. What was read at once is taken in nevertheless: with
/// the shortest queries that is 3,450 more.
const ANSWERS_MAX: usize = 1024;

/// The number of answers for which a connection that waits for queries keeps room.
const ANSWERS_KEPT: usize = 16;

/// The state of a connection above the framing.
#[derive(Debug, Default)]
pub struct Conversation {
    peer: Option<IpAddr>,
    answers: VecDeque<Answer>,
    begun: u32,
    done: u32,
    /// The next message waits for its time.
    pub is_paused: bool,
}

impl Conversation {
    /// One with `peer`, as far as that is known.
    pub fn new(peer: Option<IpAddr>) -> Self {
        Conversation { peer, ..Conversation::default() }
    }

    /// Takes in a message of the peer.
    pub fn take(&mut self, message: &[u8], primary: &Primary, now: Now, counts: &mut Counts) {
        let via = Via::Connection { peer: self.peer, begun: self.begun };
        if let Some(answer) = decide(message, via, primary, now, counts) {
            self.begun += u32::from(answer.is_transfer());
            self.answers.push_back(answer);
        }
    }

    /// Whether queries are to be read: in order only when all are answered, for no answer would leave before.
    pub fn wants_queries(&self, order: Order) -> bool {
        match order {
            Order::InOrder => self.answers.is_empty(),
            Order::Interleaved => self.answers.len() < ANSWERS_MAX,
        }
    }

    /// Writes messages until `until` bytes are written, or nothing is left.
    pub fn fill(
        &mut self,
        primary: &Primary,
        to: &mut MessageWriter<'_>,
        until: usize,
        now_s: u64,
        counts: &mut Counts,
    ) -> Next {
        let (close_after, is_slow) = (primary.faults.close_after(), primary.faults.slow_ns().is_some());
        while let Some(answer) = self.answers.front_mut() {
            if close_after.is_some_and(|count| self.done >= count) {
                return Next::Close;
            }
            if to.at() >= until {
                return Next::More;
            }
            let before = to.at();
            let progress = answer.message(primary, to, now_s);
            counts.messages += u64::from(progress != Progress::Cut);
            counts.bytes += (to.at() - before) as u64;
            match progress {
                Progress::More if primary.cut.order == Order::Interleaved => self.answers.rotate_left(1),
                Progress::More => {}
                Progress::Done => self.finish(counts),
                Progress::Cut => {
                    counts.outcomes.cut += 1;
                    self.answers.pop_front();
                    return Next::Close;
                }
            }
            if is_slow {
                return Next::Later;
            }
        }
        self.answers.shrink_to(ANSWERS_KEPT);
        if close_after.is_some_and(|count| self.done >= count && self.begun > 0) { Next::Close } else { Next::Nothing }
    }

    fn finish(&mut self, counts: &mut Counts) {
        let answer = self.answers.pop_front();
        if let Some(Answer::Transfer(transfer)) = &answer {
            transfer.finish(counts);
        }
        self.done += u32::from(answer.is_some_and(|answer| answer.is_transfer()));
    }

    /// Forgets, and counts, what is never answered, because the connection is gone.
    pub fn abandon(&mut self, counts: &mut Counts) {
        let transfers = self.answers.drain(..).filter(|answer| matches!(answer, Answer::Transfer(_)));
        counts.outcomes.abandoned += transfers.count() as u64;
    }
}

#[cfg(test)]
#[path = "conversation_tests.rs"]
mod tests;
