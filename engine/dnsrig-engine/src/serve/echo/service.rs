//! The echo as a service: its answers to datagrams and on connections, at once or when they are due.

use std::net::{IpAddr, TcpStream};

use dnsrig_net::{
    quic::server::{Reply, StreamKey},
    udp_batch::Datagram,
};

use super::answerer::{self, Answerer, Counts, Turn};
use crate::serve::shell::{
    service::{Answers, Destination, Key, Next, Service, ShellCounts},
    worker::SPIN_NS,
};

/// What is to be written to a connection.
#[derive(Default)]
pub struct Conversation {
    answers: Answers,
    /// How many answers wait for their delay.
    delayed: u32,
}

impl Answerer {
    /// Gives an answer to a connection, unless its peer does not read.
    fn put<'c>(&mut self, conversation: &'c mut Conversation, message: &[u8]) -> Option<&'c mut [u8]> {
        let put = conversation.answers.put(message);
        *if put.is_some() { &mut self.counts.answers } else { &mut self.counts.dropped.unsent } += 1;
        put
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

    fn datagram(&mut self, datagram: Datagram<'_>, space: &mut [u8]) -> Option<usize> {
        if self.take(datagram.bytes, datagram.length, Destination::Datagram { peer: datagram.peer, source: None })
            != Turn::Now
        {
            return None;
        }
        let answer = &mut space[..datagram.bytes.len()];
        answer.copy_from_slice(datagram.bytes);
        answerer::answer(answer);
        Some(answer.len())
    }

    fn stream_query(&mut self, message: &mut Vec<u8>, _peer: IpAddr, key: StreamKey) -> Reply {
        if self.take(message, message.len(), Destination::Stream(key)) != Turn::Now {
            return Reply::Later;
        }
        answerer::answer(message);
        self.counts.answers += 1;
        Reply::Now
    }

    fn datagrams_sent(&mut self, sent: u64, unsent: u64) {
        self.counts.answers += sent;
        self.counts.dropped.unsent += unsent;
    }

    fn open(&mut self, _socket: &TcpStream) -> Conversation {
        Conversation::default()
    }

    fn message(&mut self, conversation: &mut Conversation, message: &[u8], key: Key) {
        match self.take(message, message.len(), Destination::Connection(key)) {
            Turn::Now => {
                if let Some(answer) = self.put(conversation, message) {
                    answerer::answer(answer);
                }
            }
            Turn::Later => conversation.delayed += 1,
            Turn::Never => {}
        }
    }

    fn write(&mut self, conversation: &mut Conversation, space: &mut [u8], _key: Key) -> (usize, Next) {
        conversation.answers.take(space, conversation.delayed)
    }

    /// If a peer does not read its answers, its queries are not read either: this bounds what waits.
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
        answerer::answer(answer);
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
    use std::{io::Write, net::TcpListener};

    use dnsrig_dns::framing;
    use dnsrig_net::{
        connection::limits::Limits,
        poller::{Poller, Timeout, sleep_until_readable},
    };
    use slotmap::KeyData;

    use super::*;
    use crate::serve::{
        echo::faults::Settings,
        shell::{
            connections::{Context, OpenConnections},
            service::WAITING_BYTES_MAX,
        },
    };

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

    /// How many connections are closed at `now_ns`, which were idle for 100 ns: of one, on which something happened
    /// at 50, and which waits for an answer or not.
    fn closed_at(now_ns: i64, waits: bool) -> u64 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let settings = Settings { delay_ns: 1_000_000_000_000, ..Settings::default() };
        let (mut echo, mut poller) = (Answerer::new(settings, 0, 0, 10), Poller::new().unwrap());
        let mut connections = OpenConnections::new(Limits::new(10, 100));
        let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        sleep_until_readable(&listener, 10_000_000_000).unwrap();
        let mut context = Context { service: &mut echo, poller: &poller, now_ns: 50 };
        assert!(connections.accept(&listener, None, &mut context).unwrap());
        if waits {
            peer.write_all(&[&[0, QUERY.len() as u8][..], &QUERY].concat()).unwrap();
            assert_eq!(poller.wait(Timeout::Endless).unwrap(), 1);
            let (key, happened) = poller.event(0);
            let mut context = Context { service: &mut echo, poller: &poller, now_ns: 50 };
            connections.on_event(KeyData::from_ffi(key).into(), happened, &mut context).unwrap();
        }
        connections.sweep(now_ns, &mut echo);
        connections.finish(&mut echo).idle
    }

    #[test]
    fn a_connection_is_idle_unless_an_answer_waits() {
        assert_eq!([149, 150, 10_000].map(|now_ns| closed_at(now_ns, false)), [0, 1, 1]);
        assert_eq!([149, 150, 10_000].map(|now_ns| closed_at(now_ns, true)), [0; 3]);
    }
}
