//! Asks two servers the same queries, some at a time.

use std::{
    collections::VecDeque,
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream, UdpSocket},
    time::{Duration, Instant},
};

use dnsrig_core::{clock, failure::Failure, stop::Stop, units::nanoseconds};
use dnsrig_dns::header::{Header, TC};
use dnsrig_net::{poller::Poller, udp_batch::is_unreachable, udp_client};
use nix::sys::epoll::EpollFlags;

use crate::load::{
    answer::{self, Verdict},
    queries::Queries,
    transport::{cannot_receive, cannot_send},
};

/// The highest number of queries that are outstanding at a time.
pub const OUTSTANDING_MAX: i64 = 1_000;

/// The time for which the loop sleeps at most if no answer comes.
const LOOK_NS: i64 = 1_000_000;

/// The longest message.
const MESSAGE_BYTES_MAX: usize = u16::MAX as usize;

/// Messages with another id that are passed over on a connection before the right one comes.
const OTHERS_MAX: usize = 16;

/// A query that both servers are being asked.
#[derive(Default)]
struct Slot {
    /// Which of the different queries; `None`: the slot is free.
    query: Option<u32>,
    is_again: bool,
    id: u16,
    sent_ns: i64,
    came: [bool; 2],
    answers: [Vec<u8>; 2],
}

/// The queries, and how far they are.
pub struct Asking<'q> {
    servers: [SocketAddr; 2],
    sockets: [UdpSocket; 2],
    connections: [Option<TcpStream>; 2],
    poller: Poller,
    queries: &'q Queries,
    next: u32,
    again: VecDeque<u32>,
    slots: Vec<Slot>,
    timeout: Duration,
    /// Between two queries.
    pause_ns: i64,
    last_sent_ns: i64,
    buffer: Vec<u8>,
}

impl<'q> Asking<'q> {
    pub fn new(
        servers: [SocketAddr; 2],
        queries: &'q Queries,
        outstanding: u16,
        timeout: Duration,
        pause_ns: i64,
    ) -> Result<Self, Failure> {
        let socket = |server| udp_client::connect(server, Some(u32::from(outstanding) * 4));
        let sockets = [socket(servers[0])?, socket(servers[1])?];
        let poller = Poller::new().map_err(|error| cannot_receive(servers[0], error))?;
        for (number, socket) in sockets.iter().enumerate() {
            let added = poller.add(socket, EpollFlags::EPOLLIN, number as u64);
            added.map_err(|error| cannot_receive(servers[number], error))?;
        }
        let slots = (0..outstanding).map(|id| Slot { id, ..Slot::default() }).collect();
        let (connections, again, buffer) = ([None, None], VecDeque::new(), vec![0; MESSAGE_BYTES_MAX]);
        let (next, last_sent_ns) = (0, i64::MIN);
        Ok(Asking {
            servers,
            sockets,
            connections,
            poller,
            queries,
            next,
            again,
            slots,
            timeout,
            pause_ns,
            last_sent_ns,
            buffer,
        })
    }

    /// Asks all queries. `each` gets the index of a query, whether it was asked again, and both answers, and returns
    /// whether it is to be asked again. True if someone ended it.
    pub fn run(
        &mut self,
        stop: &Stop,
        mut each: impl FnMut(usize, bool, [Option<&[u8]>; 2]) -> bool,
    ) -> Result<bool, Failure> {
        let mut turns = 0_u32;
        loop {
            let now_ns = clock::monotonic_ns();
            self.send(now_ns)?;
            let received = self.receive(0)? + self.receive(1)?;
            self.end_slots(clock::monotonic_ns(), &mut each);
            let is_done = self.next as usize == self.queries.distinct().0 && self.again.is_empty();
            if is_done && self.slots.iter().all(|slot| slot.query.is_none()) {
                return Ok(false);
            }
            turns = turns.wrapping_add(1);
            if received == 0 || turns.is_multiple_of(64) {
                if stop.asked()? {
                    return Ok(true);
                }
                let wait_ns = if received == 0 { LOOK_NS } else { 0 };
                self.poller.sleep(wait_ns).map_err(|error| cannot_receive(self.servers[0], error))?;
            }
        }
    }

    /// Sends as many queries as there are free slots.
    fn send(&mut self, now_ns: i64) -> Result<(), Failure> {
        for at in 0..self.slots.len() {
            if self.slots[at].query.is_some() {
                continue;
            }
            if now_ns.saturating_sub(self.last_sent_ns) < self.pause_ns {
                return Ok(());
            }
            let (query, is_again) = match self.again.pop_front() {
                Some(query) => (query, true),
                None if (self.next as usize) < self.queries.distinct().0 => {
                    self.next += 1;
                    (self.next - 1, false)
                }
                None => return Ok(()),
            };
            let count = self.slots.len() as u16;
            let slot = &mut self.slots[at];
            // A late answer to the query before has another id.
            slot.id = slot.id.checked_add(count).unwrap_or(at as u16);
            (slot.query, slot.is_again, slot.sent_ns, slot.came) = (Some(query), is_again, now_ns, [false; 2]);
            self.last_sent_ns = now_ns;
            let mut message = self.queries.different(query as usize).to_vec();
            message[..2].copy_from_slice(&slot.id.to_be_bytes());
            for (socket, server) in self.sockets.iter().zip(self.servers) {
                match socket.send(&message) {
                    Ok(_) => {}
                    // What is not sent has no answer, and is asked again.
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock || is_unreachable(&error) => {}
                    Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {}
                    Err(error) => return Err(cannot_send(server, error)),
                }
            }
        }
        Ok(())
    }

    /// Takes in what one server sent. Returns the number of messages.
    fn receive(&mut self, server: usize) -> Result<usize, Failure> {
        let mut count = 0;
        while count < self.slots.len() {
            let length = match self.sockets[server].recv(&mut self.buffer) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted || is_unreachable(&error) => continue,
                Err(error) => return Err(cannot_receive(self.servers[server], error)),
            };
            count += 1;
            let message = &self.buffer[..length];
            let Some(id) = message.first_chunk().map(|id| u16::from_be_bytes(*id)) else { continue };
            let slots = self.slots.len();
            let slot = &mut self.slots[usize::from(id) % slots];
            let Some(query) = slot.query.filter(|_| slot.id == id && !slot.came[server]) else { continue };
            let verdict = answer::check(message, length, self.queries.different(query as usize));
            if matches!(verdict, Verdict::Answer { .. } | Verdict::Incomplete) {
                slot.came[server] = true;
                slot.answers[server].clear();
                slot.answers[server].extend_from_slice(message);
            }
        }
        Ok(count)
    }

    /// Ends the queries with both answers, and those whose time is over.
    fn end_slots(&mut self, now_ns: i64, each: &mut impl FnMut(usize, bool, [Option<&[u8]>; 2]) -> bool) {
        for at in 0..self.slots.len() {
            let Some(query) = self.slots[at].query else { continue };
            if self.slots[at].came != [true; 2] && now_ns - self.slots[at].sent_ns < nanoseconds(self.timeout) {
                continue;
            }
            if self.slots[at].is_again {
                self.ask_over_tcp(at, query);
            }
            let slot = &mut self.slots[at];
            slot.query = None;
            let [one, other] = &slot.answers;
            let answers = [slot.came[0].then_some(&one[..]), slot.came[1].then_some(&other[..])];
            if each(query as usize, slot.is_again, answers) {
                self.again.push_back(query);
            }
        }
    }

    /// Asks both servers over TCP if an answer is truncated. If that fails, a truncated answer counts as none.
    fn ask_over_tcp(&mut self, at: usize, query: u32) {
        let slot = &self.slots[at];
        if !(0..2).any(|server| slot.came[server] && is_truncated(&slot.answers[server])) {
            return;
        }
        let message = self.queries.different(query as usize);
        for server in 0..2 {
            // A connection that the server has closed meanwhile is made anew.
            let answered = (0..2).find_map(|_| self.over_tcp(server, message).ok());
            let slot = &mut self.slots[at];
            match answered {
                Some(answer) => (slot.answers[server], slot.came[server]) = (answer, true),
                None => slot.came[server] &= !is_truncated(&slot.answers[server]),
            }
        }
    }

    fn over_tcp(&mut self, server: usize, message: &[u8]) -> io::Result<Vec<u8>> {
        let deadline = Instant::now() + self.timeout;
        let mut connection = match self.connections[server].take() {
            Some(connection) => connection,
            None => TcpStream::connect_timeout(&self.servers[server], self.timeout)?,
        };
        connection.set_write_timeout(Some(self.timeout))?;
        connection.write_all(&[&(message.len() as u16).to_be_bytes(), message].concat())?;
        for _ in 0..OTHERS_MAX {
            let mut length = [0; 2];
            read_exact(&mut connection, &mut length, deadline)?;
            let mut answer = vec![0; usize::from(u16::from_be_bytes(length))];
            read_exact(&mut connection, &mut answer, deadline)?;
            if matches!(answer::check(&answer, answer.len(), message), Verdict::Answer { .. } | Verdict::Incomplete) {
                self.connections[server] = Some(connection);
                return Ok(answer);
            }
        }
        Err(io::ErrorKind::InvalidData.into())
    }
}

/// Whether an answer is marked as truncated.
pub fn is_truncated(answer: &[u8]) -> bool {
    Header::read(answer).is_ok_and(|header| header.flags & TC != 0)
}

/// Reads until `to` is full, or the time is over.
fn read_exact(connection: &mut TcpStream, to: &mut [u8], deadline: Instant) -> io::Result<()> {
    let mut filled = 0;
    while filled < to.len() {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        // A timeout of none would be a wait without end.
        connection.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        match connection.read(&mut to[filled..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, path::Path, sync::atomic::AtomicBool, sync::atomic::Ordering, thread};

    use super::*;
    use crate::load::queries::{self, Made, file::Plan};

    /// Answers over UDP, and refuses TCP, until `is_over`.
    fn answer_udp(socket: &UdpSocket, flags: u8, is_over: &AtomicBool) {
        socket.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
        let mut message = [0; 512];
        while !is_over.load(Ordering::Relaxed) {
            if let Ok((length, peer)) = socket.recv_from(&mut message) {
                message[2] |= 0x80 | flags;
                socket.send_to(&message[..length], peer).unwrap();
            }
        }
    }

    /// Sockets of UDP and TCP with the same port.
    fn on_both() -> (UdpSocket, TcpListener) {
        loop {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            if let Ok(socket) = UdpSocket::bind(listener.local_addr().unwrap()) {
                return (socket, listener);
            }
        }
    }

    /// The next message of a connection; none at its end.
    fn next(stream: &mut TcpStream) -> Option<Vec<u8>> {
        let mut length = [0; 2];
        stream.read_exact(&mut length).ok()?;
        let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
        stream.read_exact(&mut message).ok().map(|()| message)
    }

    /// Answers over TCP, byte by byte, each time behind an answer to another question, until `is_over`. If it `closes`,
    /// a connection has one answer. Returns the number of connections.
    fn answer_tcp(listener: &TcpListener, closes: bool, is_over: &AtomicBool) -> usize {
        let mut connections = 0;
        loop {
            let (mut stream, _) = listener.accept().unwrap();
            if is_over.load(Ordering::Relaxed) {
                return connections;
            }
            connections += 1;
            stream.set_nodelay(true).unwrap();
            while let Some(mut answer) = next(&mut stream) {
                answer[2] |= 0x80;
                let mut other = answer.clone();
                other[13] ^= 1;
                for message in [other, answer] {
                    let framed = [&[0, message.len() as u8][..], &message].concat();
                    framed.iter().for_each(|byte| stream.write_all(&[*byte]).unwrap());
                }
                if closes {
                    break;
                }
            }
        }
    }

    /// If one of two answers is truncated, both servers are asked over TCP, on connections that stay unless the server
    /// closes them.
    #[test]
    fn a_truncated_answer_is_asked_for_over_tcp() {
        let text = &b"a.example A\nb.example A\n"[..];
        let queries = queries::file::parse(text, Path::new("file"), &Plan::default(), Made::default()).unwrap();
        for (closes, made) in [(false, 1), (true, 2)] {
            let both = [on_both(), on_both()];
            let servers = both.each_ref().map(|(socket, _)| socket.local_addr().unwrap());
            let is_over = AtomicBool::new(false);
            thread::scope(|scope| {
                let is_over = &is_over;
                for ((socket, _), flags) in both.iter().zip([TC, 0]) {
                    scope.spawn(move || answer_udp(socket, flags, is_over));
                }
                let over_tcp =
                    both.each_ref().map(|(_, listener)| scope.spawn(move || answer_tcp(listener, closes, is_over)));
                let mut asking = Asking::new(servers, &queries, 1, Duration::from_secs(20), 0).unwrap();
                let mut asked = Vec::new();
                let each = |query, is_again: bool, answers: [Option<&[u8]>; 2]| {
                    asked.push((query, is_again, answers.map(|answer| answer.map(is_truncated))));
                    !is_again
                };
                let is_interrupted = asking.run(&Stop::new(false).unwrap(), each).unwrap();
                // The servers end before anything is compared, so that none is waited for in vain.
                is_over.store(true, Ordering::Relaxed);
                drop(asking);
                servers.iter().for_each(|server| drop(TcpStream::connect(server).unwrap()));
                let connections = over_tcp.map(|server| server.join().unwrap());
                let (first, second) = ([Some(true), Some(false)], [Some(false); 2]);
                asked.sort_unstable();
                let expected = [(0, false, first), (0, true, second), (1, false, first), (1, true, second)];
                assert_eq!(asked, expected);
                assert_eq!((connections, is_interrupted), ([made; 2], false));
            });
        }
    }

    #[test]
    fn a_truncated_answer_without_tcp_is_none() {
        let queries =
            queries::file::parse(&b"a.example A\n"[..], Path::new("file"), &Plan::default(), Made::default()).unwrap();
        for (flags, expected) in [([TC, TC], [false, false]), ([TC, 0], [false, true])] {
            let sockets = [(), ()].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
            let servers = sockets.each_ref().map(|socket| socket.local_addr().unwrap());
            let is_over = AtomicBool::new(false);
            thread::scope(|scope| {
                for (socket, flags) in sockets.iter().zip(flags) {
                    let is_over = &is_over;
                    scope.spawn(move || answer_udp(socket, flags, is_over));
                }
                let mut asking = Asking::new(servers, &queries, 1, Duration::from_secs(1), 0).unwrap();
                let mut last = [true; 2];
                let each = |_, is_again: bool, answers: [Option<&[u8]>; 2]| {
                    last = answers.map(|answer| answer.is_some());
                    !is_again
                };
                asking.run(&Stop::new(false).unwrap(), each).unwrap();
                is_over.store(true, Ordering::Relaxed);
                assert_eq!(last, expected);
            });
        }
    }
}
