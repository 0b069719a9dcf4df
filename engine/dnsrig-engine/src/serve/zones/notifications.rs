//! The thread that changes zones, sends NOTIFY (RFC 1996) and takes the answers.

use std::{
    io,
    net::{SocketAddr, UdpSocket},
    os::fd::AsFd,
    sync::Arc,
};

use domain::base::{Rtype, iana::Class};
use nix::sys::{epoll::EpollFlags, eventfd::EventFd};

use super::{
    changing::Changing,
    counts::Counts,
    notify::{Notifier, Notify},
    primary::Primary,
    records::Records,
    secondaries::Secondaries,
};
use crate::{
    base::clock,
    dns::{
        header::{AA, Header, NOTIFY, OPCODE, QR},
        writer::MessageWriter,
    },
    net::{
        poller::{Poller, Timeout},
        udp_batch::{BATCH_MAX, Receiver, Sender},
    },
    serve::shell::sockets,
};

/// No NOTIFY is longer, nor as much of an answer as is looked at.
const BYTES_MAX: usize = 1232;

/// The poller's numbers.
const STOP: u64 = 0;
const SOCKET: u64 = 1;
const SIGNALS: u64 = 2;

/// What the thread is made of.
pub struct Parts {
    /// Readable when the thread is to end.
    pub stop: Arc<EventFd>,
    pub primary: Arc<Primary>,
    /// Bound to the server's address, as that is how secondaries know their primary.
    pub socket: UdpSocket,
    pub notified: Vec<SocketAddr>,
    /// The catalog is told of at most once in so long.
    pub catalog_interval_ns: i64,
    pub changing: Changing,
}

/// Has zones change and tells of it until told to end, and returns what was counted.
pub fn run(parts: Parts) -> io::Result<Counts> {
    clock::wait_exactly()?;
    let mut poller = Poller::new()?;
    poller.add(parts.stop.as_fd(), EpollFlags::EPOLLIN, STOP)?;
    poller.add(&parts.socket, EpollFlags::EPOLLIN, SOCKET)?;
    if let Some(signals) = parts.changing.signals() {
        poller.add(signals, EpollFlags::EPOLLIN, SIGNALS)?;
    }
    let notifier = Notifier::new(parts.notified.len(), parts.catalog_interval_ns);
    let (receiver, sender) = (Receiver::new(BYTES_MAX), Sender::new(BYTES_MAX, false));
    let mut notify_sender = NotifySender { parts, notifier, receiver, sender };
    loop {
        notify_sender.send_due()?;
        let patience = match notify_sender
            .notifier
            .due_ns(&notify_sender.parts.primary.shape, &notify_sender.parts.primary.period)
        {
            Some(due_ns) => Timeout::Exact(due_ns - clock::monotonic_ns()),
            None => Timeout::Endless,
        };
        let count = poller.wait(patience)?;
        if (0..count).any(|at| poller.event(at).0 == STOP) {
            break;
        }
        notify_sender.parts.changing.obey()?;
        notify_sender.take_answers()?;
    }
    notify_sender.parts.changing.end()?;
    Ok(notify_sender.counts())
}

struct NotifySender {
    parts: Parts,
    notifier: Notifier,
    receiver: Receiver,
    sender: Sender,
}

impl NotifySender {
    /// Sends a batch of what is due.
    fn send_due(&mut self) -> io::Result<()> {
        let NotifySender { parts: Parts { primary, socket, notified, .. }, notifier, sender, .. } = self;
        let now_ns = clock::monotonic_ns();
        while sender.has_room() {
            let Some(notify) = notifier.next(&primary.shape, &primary.period, now_ns) else { break };
            let length = write(primary, notify, now_ns, sender.space());
            sender.push(length, Some(notified[notify.to as usize]));
        }
        if !sender.is_empty() {
            // What the kernel does not take comes again with the next retry.
            let _ = sender.flush(socket.as_fd());
        }
        Ok(())
    }

    fn counts(&self) -> Counts {
        let mut secondaries = Secondaries::default();
        for (address, counts) in self.parts.notified.iter().zip(&self.notifier.each) {
            if let Some(secondary) = secondaries.of(address.ip()) {
                secondary.notifies += u64::from(counts.sent);
                secondary.notifies_answered += u64::from(counts.answered);
            }
        }
        Counts { notify: self.notifier.counts, secondaries, cpu_ns: clock::thread_cpu_ns(), ..Counts::default() }
    }

    fn take_answers(&mut self) -> io::Result<()> {
        let NotifySender { parts: Parts { socket, notified, .. }, notifier, receiver, .. } = self;
        loop {
            let count = match receiver.receive(socket.as_fd()) {
                Ok(count) => count,
                Err(error) if sockets::is_passing(&error) => continue,
                Err(error) => return Err(error),
            };
            for datagram in receiver.datagrams() {
                let Ok(Header { id, flags, .. }) = Header::read(datagram.bytes) else { continue };
                let is_answer = flags & (QR | OPCODE) == QR | NOTIFY;
                let asked = notifier.asked(id).map(|to| notified[to as usize]);
                if is_answer && asked.is_some() && asked == datagram.peer {
                    notifier.answer(id);
                }
            }
            if count < BATCH_MAX {
                return Ok(());
            }
        }
    }
}

/// Writes a NOTIFY with the newest SOA (RFC 1996 §3.7); how long it is.
fn write(primary: &Primary, Notify { id, zone, .. }: Notify, now_ns: i64, space: &mut [u8]) -> usize {
    let version = primary.version(zone, now_ns);
    let records = Records::new(&primary.shape, zone);
    let mut to = MessageWriter::new(space, 0);
    to.put(&Header { id, flags: NOTIFY | AA, questions: 1, answers: 1, ..Header::default() }.to_bytes());
    records.name(&mut to);
    to.put_u16(Rtype::SOA.to_int());
    to.put_u16(Class::IN.to_int());
    records.soa(&mut to, primary.shape.serial(version));
    if let Some(key) = &primary.key {
        to.extend(0, |buffer, length| key.sign(buffer, length, clock::wall_time_s()));
    }
    to.at()
}
