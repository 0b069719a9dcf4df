//! What goes over the wire: a question and an answer, each of a fixed length, numbers in network byte order.

use dnsrig_core::clock::{self, Anchor};

/// What both begin with: whose they are, and of which version.
const MAGIC: [u8; 8] = *b"dnsrigC1";

/// Magic, number, t1.
pub const QUESTION_BYTES: usize = 24;

/// Magic, number, t1, t2, t3, anchor, error of the anchor.
pub const ANSWER_BYTES: usize = 56;

/// A question: `sent_ns` is t1 of RFC 5905 §8, by the clock of `clock compare`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    pub number: u64,
    pub sent_ns: i64,
}

/// An answer, by the clock of `clock serve`: `received_ns` is t2 and `answered_ns` t3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    pub question: Question,
    pub received_ns: i64,
    pub answered_ns: i64,
    pub wall: Wall,
}

/// How far CLOCK_REALTIME is ahead of CLOCK_MONOTONIC on a machine, and the error of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wall {
    pub ahead_ns: i64,
    pub error_ns: i64,
}

impl Wall {
    /// Reads both clocks of this machine now.
    pub fn now() -> Self {
        let Anchor { monotonic_ns, realtime_ns, anchor_error_ns } = clock::anchor();
        Wall { ahead_ns: realtime_ns - monotonic_ns, error_ns: anchor_error_ns }
    }
}

impl Question {
    pub fn encode(self) -> [u8; QUESTION_BYTES] {
        numbers([self.number, self.sent_ns.cast_unsigned()])
    }

    /// None where the bytes are no question of this version.
    pub fn decode(bytes: &[u8; QUESTION_BYTES]) -> Option<Self> {
        let [number, sent_ns] = read(bytes)?;
        Some(Question { number, sent_ns: sent_ns.cast_signed() })
    }
}

impl Answer {
    pub fn encode(self) -> [u8; ANSWER_BYTES] {
        let Answer { question, received_ns, answered_ns, wall } = self;
        let times = [question.sent_ns, received_ns, answered_ns, wall.ahead_ns, wall.error_ns];
        let [t1, t2, t3, ahead, error] = times.map(i64::cast_unsigned);
        numbers([question.number, t1, t2, t3, ahead, error])
    }

    /// None where the bytes are no answer of this version.
    pub fn decode(bytes: &[u8; ANSWER_BYTES]) -> Option<Self> {
        let [number, times @ ..]: [u64; 6] = read(bytes)?;
        let [sent_ns, received_ns, answered_ns, ahead_ns, error_ns] = times.map(u64::cast_signed);
        let wall = Wall { ahead_ns, error_ns };
        Some(Answer { question: Question { number, sent_ns }, received_ns, answered_ns, wall })
    }
}

fn numbers<const BYTES: usize, const N: usize>(numbers: [u64; N]) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    for (place, number) in bytes[8..].chunks_exact_mut(8).zip(numbers) {
        place.copy_from_slice(&number.to_be_bytes());
    }
    bytes
}

fn read<const N: usize>(bytes: &[u8]) -> Option<[u64; N]> {
    let bytes = bytes.strip_prefix(&MAGIC)?;
    Some(std::array::from_fn(|at| u64::from_be_bytes(std::array::from_fn(|byte| bytes[at * 8 + byte]))))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn messages_come_back_as_they_were(number: u64, times: [i64; 5]) {
            let [sent_ns, received_ns, answered_ns, ahead_ns, error_ns] = times;
            let question = Question { number, sent_ns };
            let wall = Wall { ahead_ns, error_ns };
            let answer = Answer { question, received_ns, answered_ns, wall };
            prop_assert_eq!(Question::decode(&question.encode()), Some(question));
            prop_assert_eq!(Answer::decode(&answer.encode()), Some(answer));
        }

        #[test]
        fn what_begins_otherwise_is_neither(at in 0..8_usize, bit in 0..8_u8) {
            let question = Question { number: 1, sent_ns: 2 };
            let mut bytes = question.encode();
            bytes[at] ^= 1 << bit;
            prop_assert_eq!(Question::decode(&bytes), None);
        }
    }
}
