//! The primary as a service: what each of its threads answers, and when.

use std::{
    collections::{HashMap, VecDeque},
    net::{IpAddr, TcpStream},
    sync::Arc,
};

use dnsrig_core::clock;
use dnsrig_dns::{framing::PREFIX_BYTES, writer::MessageWriter};
use dnsrig_net::{
    quic::{
        counts::INTERNAL_ERROR,
        server::{More, Reply, StreamKey},
    },
    udp_batch::Datagram,
};

use super::{
    answer::{Via, decide},
    conversation::Conversation,
    counts::Counts,
    primary::{Now, Primary},
};
use crate::serve::shell::{
    connections::{OVERHANG_BYTES, WRITE_BYTES},
    service::{DATAGRAM_BYTES_MAX, Destination, Key, Next, Service, ShellCounts},
};

/// What one thread has of a primary.
pub struct Answerer {
    primary: Arc<Primary>,
    counts: Counts,
    now: Now,
    /// Connections whose next message has its time, in its order: they all wait equally long.
    paused: VecDeque<(i64, Key)>,
    /// Answers over QUIC, each on a stream of its own.
    streams: HashMap<StreamKey, Conversation>,
    space: Box<[u8]>,
}

impl Answerer {
    pub fn new(primary: Arc<Primary>) -> Self {
        let now = Now { monotonic_ns: 0, wall_s: 0 };
        let (counts, paused, streams) = (Counts::default(), VecDeque::new(), HashMap::new());
        let space = vec![0; WRITE_BYTES + OVERHANG_BYTES].into_boxed_slice();
        Answerer { primary, counts, now, paused, streams, space }
    }
}

impl Service for Answerer {
    type Conversation = Conversation;
    type Counts = Counts;

    /// A secondary that another thread has notified of a change must see it when it asks then.
    fn tick(&mut self) {
        let wall_s = if self.primary.key.is_some() { clock::wall_time_s() } else { 0 };
        self.now = Now { monotonic_ns: clock::monotonic_ns(), wall_s };
    }

    fn datagram(&mut self, datagram: Datagram<'_>, space: &mut [u8]) -> Option<usize> {
        let via = Via::Datagram { peer: datagram.peer.map(|peer| peer.ip()) };
        let mut answer = decide(datagram.bytes, via, &self.primary, self.now, &mut self.counts)?;
        // The length that a stream has before each message is written first and then left out.
        let mut bytes = [0; DATAGRAM_BYTES_MAX + PREFIX_BYTES];
        let mut to = MessageWriter::new(&mut bytes, 0);
        answer.message(&self.primary, &mut to, self.now.wall_s);
        let message = &to.written()[PREFIX_BYTES..];
        space[..message.len()].copy_from_slice(message);
        self.counts.messages += 1;
        self.counts.bytes += message.len() as u64;
        Some(message.len())
    }

    fn stream_query(&mut self, message: &mut Vec<u8>, peer: IpAddr, key: StreamKey) -> Reply {
        let mut conversation = Conversation::new(Some(peer));
        conversation.take(message, &self.primary, self.now, &mut self.counts);
        self.streams.insert(key, conversation);
        Reply::Many
    }

    fn stream_more(&mut self, key: StreamKey, to: &mut Vec<u8>) -> More {
        let Some(conversation) = self.streams.get_mut(&key) else { return More::Reset(INTERNAL_ERROR) };
        let mut writer = MessageWriter::new(&mut self.space, 0);
        let next = conversation.fill(&self.primary, &mut writer, WRITE_BYTES, self.now.wall_s, &mut self.counts);
        to.extend_from_slice(writer.written());
        if matches!(next, Next::More | Next::Later) {
            return More::More;
        }
        self.streams.remove(&key);
        if next == Next::Close { More::Reset(INTERNAL_ERROR) } else { More::End }
    }

    fn stream_abandon(&mut self, key: StreamKey) {
        if let Some(mut conversation) = self.streams.remove(&key) {
            conversation.abandon(&mut self.counts);
        }
    }

    fn datagrams_sent(&mut self, sent: u64, unsent: u64) {
        self.counts.outcomes.done += sent;
        self.counts.outcomes.abandoned += unsent;
    }

    fn open(&mut self, socket: &TcpStream) -> Conversation {
        Conversation::new(socket.peer_addr().ok().map(|peer| peer.ip()))
    }

    fn message(&mut self, conversation: &mut Conversation, message: &[u8], _key: Key) {
        conversation.take(message, &self.primary, self.now, &mut self.counts);
    }

    fn write(&mut self, conversation: &mut Conversation, space: &mut [u8], key: Key) -> (usize, Next) {
        if conversation.is_paused {
            return (0, Next::Later);
        }
        let mut to = MessageWriter::new(space, 0);
        let next = conversation.fill(&self.primary, &mut to, WRITE_BYTES, self.now.wall_s, &mut self.counts);
        if let (Next::Later, Some(slow_ns)) = (next, self.primary.faults.slow_ns()) {
            conversation.is_paused = true;
            self.paused.push_back((self.now.monotonic_ns + slow_ns, key));
        }
        (to.at(), next)
    }

    fn wants_messages(&self, conversation: &Conversation, _is_flushed: bool) -> bool {
        conversation.wants_queries(self.primary.cut.order)
    }

    fn abandon(&mut self, conversation: &mut Conversation) {
        conversation.abandon(&mut self.counts);
    }

    fn due_ns(&self) -> Option<i64> {
        self.paused.front().map(|(due_ns, _)| *due_ns)
    }

    fn take_due(&mut self, _space: &mut [u8]) -> Option<(Destination, usize)> {
        let (_, key) = *self.paused.front().filter(|(due_ns, _)| *due_ns <= self.now.monotonic_ns)?;
        self.paused.pop_front();
        Some((Destination::Connection(key), 0))
    }

    fn resume(&mut self, conversation: Option<&mut Conversation>, _message: &[u8]) {
        if let Some(conversation) = conversation {
            conversation.is_paused = false;
        }
    }

    fn finish(mut self, shell: ShellCounts) -> Counts {
        self.streams.values_mut().for_each(|conversation| conversation.abandon(&mut self.counts));
        Counts { connections: shell.connections, cpu_ns: shell.cpu_ns, ..self.counts }
    }
}
