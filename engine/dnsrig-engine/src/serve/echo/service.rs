//! The echo as a service: its answers to datagrams and on connections, at once or when they are due.

use std::net::TcpStream;

use super::{
    answerer::{Answerer, Turn},
    counts::Counts,
    message,
};
use crate::{
    net::{framing, udp_batch::Peer},
    serve::shell::{
        service::{Destination, Key, Next, Service, ShellCounts},
        worker::SPIN_NS,
    },
};

/// So many bytes of answers may wait until the peer reads. As nothing is read from a peer while anything waits for it,
/// only delayed answers come near.
const WAITING_BYTES_MAX: usize = 256 * 1024;

/// A connection keeps room for so many bytes of answers.
const KEPT_BYTES_MAX: usize = 4096;

/// What is to be written to a connection.
#[derive(Default)]
pub struct Conversation {
    /// Answers, each with its length before it.
    answers: Vec<u8>,
    /// How many answers wait for their delay.
    delayed: u32,
}

impl Answerer {
    /// Gives an answer to a connection, unless its peer does not read.
    fn put(&mut self, conversation: &mut Conversation, message: &[u8]) -> Option<usize> {
        if conversation.answers.len() + framing::PREFIX_BYTES + message.len() > WAITING_BYTES_MAX {
            self.counts.dropped.unsent += 1;
            return None;
        }
        self.counts.answers += 1;
        Some(framing::append(&mut conversation.answers, message))
    }
}

impl Service for Answerer {
    type Conversation = Conversation;
    type Counts = Counts;

    fn tick(&mut self) {
        Answerer::tick(self);
    }

    fn blocked_until_ns(&self) -> Option<i64> {
        self.stalled_until_ns()
    }

    fn datagram(&mut self, message: &[u8], length: usize, peer: Peer, space: &mut [u8]) -> Option<usize> {
        if self.take(message, length, Destination::Datagram(peer)) != Turn::Now {
            return None;
        }
        let answer = &mut space[..message.len()];
        answer.copy_from_slice(message);
        message::answer(answer);
        Some(answer.len())
    }

    fn datagrams_sent(&mut self, sent: u64, unsent: u64) {
        self.counts.answers += sent;
        self.counts.dropped.unsent += unsent;
    }

    fn open(&mut self, _socket: &TcpStream) -> Conversation {
        Conversation::default()
    }

    fn message(&mut self, conversation: &mut Conversation, message: &[u8], key: Key) {
        match self.take(message, message.len(), Destination::Stream(key)) {
            Turn::Now => {
                if let Some(start) = self.put(conversation, message) {
                    message::answer(&mut conversation.answers[start..]);
                }
            }
            Turn::Later => conversation.delayed += 1,
            Turn::Never => {}
        }
    }

    fn write(&mut self, conversation: &mut Conversation, space: &mut [u8], _key: Key) -> (usize, Next) {
        let Conversation { answers, delayed } = conversation;
        let length = answers.len().min(space.len());
        space[..length].copy_from_slice(&answers[..length]);
        answers.drain(..length);
        answers.shrink_to(KEPT_BYTES_MAX);
        let next = match (answers.is_empty(), *delayed) {
            (false, _) => Next::More,
            (true, 0) => Next::Nothing,
            (true, _) => Next::Later,
        };
        (length, next)
    }

    /// Who does not read is not read from: this bounds what waits.
    fn wants_messages(&self, _conversation: &Conversation, is_flushed: bool) -> bool {
        is_flushed
    }

    fn due_ns(&self) -> Option<i64> {
        Answerer::due_ns(self).map(|due_ns| due_ns - SPIN_NS)
    }

    fn take_due(&mut self, space: &mut [u8]) -> Option<(Destination, usize)> {
        let (to, query) = self.pop_due()?;
        let answer = &mut space[..query.len()];
        answer.copy_from_slice(query);
        message::answer(answer);
        Some((to, answer.len()))
    }

    fn resume(&mut self, conversation: Option<&mut Conversation>, message: &[u8]) {
        match conversation {
            Some(conversation) => {
                conversation.delayed -= 1;
                self.put(conversation, message);
            }
            None => self.counts.dropped.unsent += 1,
        }
    }

    fn finish(self, shell: ShellCounts) -> Counts {
        let ShellCounts { connections, receive_buffer_drops, cpu_ns } = shell;
        Counts { connections, receive_buffer_drops, cpu_ns, ..Answerer::finish(self) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::echo::faults::Settings;

    const QUERY: [u8; 12] = [0; 12];

    #[test]
    fn delayed_answers_to_a_peer_that_never_reads_cost_bounded_room() {
        let settings = Settings { delay_ns: 1, ..Settings::default() };
        let mut echo = Answerer::new(settings, 0, 0, 100_000);
        let mut conversation = Conversation::default();
        let mut space = [0; 20];
        for _ in 0..100_000 {
            echo.message(&mut conversation, &QUERY, Key::default());
        }
        assert_eq!(echo.write(&mut conversation, &mut space, Key::default()), (0, Next::Later));
        while let Some((_, length)) = echo.take_due(&mut space) {
            echo.resume(Some(&mut conversation), &space[..length]);
        }
        let answers = (WAITING_BYTES_MAX / (framing::PREFIX_BYTES + QUERY.len())) as u64;
        assert_eq!((echo.counts.answers, echo.counts.dropped.unsent), (answers, 100_000 - answers));
        // Once it reads, all that waits leaves.
        let mut bytes = 0;
        loop {
            let (length, next) = echo.write(&mut conversation, &mut space, Key::default());
            bytes += length;
            if next == Next::Nothing {
                break;
            }
        }
        assert_eq!(bytes, WAITING_BYTES_MAX / 14 * 14);
    }
}
