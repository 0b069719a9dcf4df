//! The world as a service of the shell: what each of its threads answers.

use std::{
    net::{IpAddr, TcpStream},
    sync::{Arc, mpsc::SyncSender},
};

use dnsrig_core::clock;
use dnsrig_net::udp_batch::Datagram;

use super::{
    core::{self, State, Turn, Via},
    counts::{Counts, Second},
};
use crate::{
    serve::shell::{
        delayed::{BYTES_MAX, Delayed},
        service::{Answers, Destination, Key, Next, Service, ShellCounts},
    },
    world::{World, signing::Signatures},
};

const SECOND_NS: i64 = 1_000_000_000;

/// The most questions to slow servers that wait in a thread. Memory is touched only as far as it is needed.
const WAITING_MAX: usize = 16_384;

/// What one thread has of a world.
pub struct Answerer {
    world: Arc<World>,
    state: State,
    /// Where the counts of each second go; none: nobody wants them.
    seconds: Option<SyncSender<Second>>,
    /// Room for an answer over a stream.
    room: Box<[u8]>,
    /// Questions to slow servers. Each is answered when its time has come.
    waiting: Delayed<Destination>,
    now_ns: i64,
}

/// A connection.
pub struct Conversation {
    destination: Option<IpAddr>,
    answers: Answers,
    /// How many questions wait.
    waiting: u32,
}

impl Answerer {
    pub fn new(world: Arc<World>, signatures: Signatures, seconds: Option<SyncSender<Second>>) -> Self {
        let room = vec![0; usize::from(u16::MAX)].into();
        let waiting = Delayed::new(if world.is_slow() { WAITING_MAX } else { 0 });
        Answerer { world, state: State::new(signatures), seconds, room, waiting, now_ns: 0 }
    }

    /// Keeps a question for a time; false if it is dropped, for want of room.
    fn keep(&mut self, question: &[u8], delay_ns: i64, to: Destination) -> bool {
        let is_kept = question.len() <= BYTES_MAX && self.waiting.push(self.now_ns + delay_ns, to, question);
        self.state.counts.unsent += u64::from(!is_kept);
        is_kept
    }

    fn put(&mut self, conversation: &mut Conversation, length: usize) {
        self.state.counts.unsent += u64::from(conversation.answers.put(&self.room[..length]).is_none());
    }

    fn turn(&mut self, second: i64) {
        if let (Some(done), Some(seconds)) = (self.state.counts.turn(second), &self.seconds) {
            self.state.counts.seconds_dropped += u64::from(seconds.try_send(done).is_err());
        }
    }
}

impl Service for Answerer {
    type Conversation = Conversation;
    type Counts = Counts;

    fn tick(&mut self) {
        self.now_ns = clock::monotonic_ns();
        self.turn(self.now_ns / SECOND_NS);
    }

    fn datagram(&mut self, datagram: Datagram<'_>, space: &mut [u8]) -> Option<usize> {
        let (source, peer) = (datagram.destination, datagram.peer);
        let via = Via { destination: source, is_tcp: false, has_waited: false };
        match core::answer(&self.world, datagram.bytes, via, &mut self.state, space) {
            Turn::Now(length) => Some(length),
            Turn::Later(delay_ns) => {
                self.keep(datagram.bytes, delay_ns, Destination::Datagram { peer, source });
                None
            }
            Turn::Never => None,
        }
    }

    fn datagrams_sent(&mut self, _sent: u64, unsent: u64) {
        self.state.counts.unsent += unsent;
    }

    fn open(&mut self, socket: &TcpStream) -> Conversation {
        let destination = socket.local_addr().ok().map(|address| address.ip());
        Conversation { destination, answers: Answers::default(), waiting: 0 }
    }

    fn message(&mut self, conversation: &mut Conversation, message: &[u8], key: Key) {
        let via = Via { destination: conversation.destination, is_tcp: true, has_waited: false };
        match core::answer(&self.world, message, via, &mut self.state, &mut self.room) {
            Turn::Now(length) => self.put(conversation, length),
            Turn::Later(delay_ns) => {
                conversation.waiting += u32::from(self.keep(message, delay_ns, Destination::Connection(key)));
            }
            Turn::Never => {}
        }
    }

    fn write(&mut self, conversation: &mut Conversation, space: &mut [u8], _key: Key) -> (usize, Next) {
        conversation.answers.take(space, conversation.waiting)
    }

    fn wants_messages(&self, _conversation: &Conversation, is_flushed: bool) -> bool {
        is_flushed
    }

    fn due_ns(&self) -> Option<i64> {
        self.waiting.due_ns()
    }

    /// An answer for the sender of a datagram; for a connection the question, which [`Service::resume`] answers.
    fn take_due(&mut self, space: &mut [u8]) -> Option<(Destination, usize)> {
        while let Some((to, question)) = self.waiting.pop(self.now_ns) {
            let Destination::Datagram { source, .. } = to else {
                space[..question.len()].copy_from_slice(question);
                return Some((to, question.len()));
            };
            let via = Via { destination: source, is_tcp: false, has_waited: true };
            let turn = core::answer(&self.world, question, via, &mut self.state, space);
            if let Turn::Now(length) = turn {
                return Some((to, length));
            }
        }
        None
    }

    fn resume(&mut self, conversation: Option<&mut Conversation>, message: &[u8]) {
        // Its peer may be gone.
        let Some(conversation) = conversation else { return };
        conversation.waiting -= 1;
        let via = Via { destination: conversation.destination, is_tcp: true, has_waited: true };
        let turn = core::answer(&self.world, message, via, &mut self.state, &mut self.room);
        if let Turn::Now(length) = turn {
            self.put(conversation, length);
        }
    }

    fn finish(mut self, shell: ShellCounts) -> Counts {
        self.turn(i64::MAX);
        let State { mut counts, signatures, .. } = self.state;
        counts.signatures = signatures.counts();
        ShellCounts {
            connections: counts.connections,
            receive_buffer_drops: counts.receive_buffer_drops,
            cpu_ns: counts.cpu_ns,
        } = shell;
        counts
    }
}
