//! The thread that changes zones, sends NOTIFY (RFC 1996) and receives the answers. Signals begin and end the changes,
//! each of which gets a row.

use std::{
    io,
    net::{SocketAddr, UdpSocket},
    os::fd::{AsFd, BorrowedFd},
    path::PathBuf,
    sync::Arc,
};

use dnsrig_core::{
    clock,
    events::emit,
    failure::{Failure, system_failed},
};
use dnsrig_dns::{
    header::{AA, Header, NOTIFY, OPCODE, QR},
    name::whole,
    writer::MessageWriter,
};
use dnsrig_net::{
    poller::{Poller, Timeout},
    udp_batch::{BATCH_MAX, Receiver, Sender},
};
use domain::base::{Rtype, iana::Class};
use nix::sys::{
    epoll::EpollFlags,
    eventfd::EventFd,
    signal::{SigSet, Signal},
    signalfd::{SfdFlags, SignalFd},
};
use serde::Serialize;

use super::{
    counts::{Counts, Secondaries},
    notify::{Notifier, Notify},
    primary::Primary,
    records::Records,
    shape::Made,
};
use crate::{
    dataset::{
        churn::{self, Row},
        zone_name,
    },
    serve::shell::datagrams,
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
    /// The shortest time between two NOTIFY messages about the catalog.
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
    let mut notify = NotifySender { parts, notifier, receiver, sender };
    loop {
        notify.send_due()?;
        let patience = match notify.notifier.due_ns(&notify.parts.primary.shape, &notify.parts.primary.period) {
            Some(due_ns) => Timeout::Exact(due_ns - clock::monotonic_ns()),
            None => Timeout::Endless,
        };
        let count = poller.wait(patience)?;
        if (0..count).any(|at| poller.event(at).0 == STOP) {
            break;
        }
        notify.parts.changing.handle_signals()?;
        notify.receive_answers()?;
    }
    notify.parts.changing.end()?;
    Ok(notify.counts())
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

    fn receive_answers(&mut self) -> io::Result<()> {
        let NotifySender { parts: Parts { socket, notified, .. }, notifier, receiver, .. } = self;
        loop {
            let count = match receiver.receive(socket.as_fd()) {
                Ok(count) => count,
                Err(error) if datagrams::is_passing(&error) => continue,
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

/// The time from the signal until zones stop changing: longer than a thread waits for a CPU between two statements.
const END_AHEAD_NS: i64 = 10_000_000;

/// At most so many changes have a row: with names of the usual length they are about 500 MB.
const ROWS_MAX: u64 = 10_000_000;

/// The changes of a primary.
pub struct Changing {
    primary: Arc<Primary>,
    signals: Option<SignalFd>,
    delay_ns: i64,
    out: Option<PathBuf>,
    has_ended: bool,
}

#[derive(Serialize)]
struct Begun {
    begin_ns: i64,
    rate_per_s: f64,
}

#[derive(Serialize)]
struct Ended {
    #[serde(flatten)]
    made: Made,
    /// Changes without a row, because there would be too many rows.
    rows_left_out: u64,
}

impl Changing {
    /// The changes of `primary`. With a delay, they begin that long after SIGUSR1 and end with SIGUSR2; without, they
    /// have begun. The file of rows is made at once, so that an error shows before anything is measured.
    ///
    /// Make it before any thread, which then inherits the blocked signals.
    pub fn new(primary: Arc<Primary>, delay_ns: Option<i64>, out: Option<PathBuf>) -> Result<Self, Failure> {
        let signals = delay_ns.map(|_| signals()).transpose();
        let signals = signals.map_err(|error| system_failed("wait for signals", error))?;
        if let Some(path) = &out {
            churn::write_rows(path, std::iter::empty())?;
        }
        Ok(Changing { primary, signals, delay_ns: delay_ns.unwrap_or(0), out, has_ended: false })
    }

    /// Readable when a signal has come.
    pub fn signals(&self) -> Option<BorrowedFd<'_>> {
        self.signals.as_ref().map(AsFd::as_fd)
    }

    /// Begins or ends the changes, as the signals that have come ask for.
    fn handle_signals(&mut self) -> io::Result<()> {
        while let Some(signal) = self.signals.as_ref().map(SignalFd::read_signal).transpose()?.flatten() {
            if signal.ssi_signo == Signal::SIGUSR2 as u32 {
                self.end()?;
            } else {
                self.begin()?;
            }
        }
        Ok(())
    }

    fn begin(&self) -> io::Result<()> {
        let (now_ns, rate_per_s) = (clock::monotonic_ns(), self.primary.shape.changes.per_s);
        let begin_ns = now_ns + self.delay_ns;
        if self.primary.period.begin(begin_ns) {
            emit("changes-begun", now_ns, &Begun { begin_ns, rate_per_s }).map_err(io::Error::other)?;
        }
        Ok(())
    }

    /// Ends the changes, if they have begun, and writes their rows.
    pub fn end(&mut self) -> io::Result<()> {
        let Some(begin_ns) = self.primary.period.begin_ns().filter(|_| !self.has_ended) else { return Ok(()) };
        self.has_ended = true;
        let end_ns = self.primary.period.end(clock::monotonic_ns, END_AHEAD_NS);
        let made = self.primary.shape.made(begin_ns, end_ns);
        if let Some(path) = &self.out {
            churn::write_rows(path, self.rows(made)).map_err(io::Error::other)?;
        }
        let rows_left_out = made.changes.saturating_sub(ROWS_MAX);
        emit("changes-ended", clock::monotonic_ns(), &Ended { made, rows_left_out }).map_err(io::Error::other)
    }

    fn rows(&self, made: Made) -> impl Iterator<Item = Row> {
        let shape = &self.primary.shape;
        let suffix = whole(&shape.suffix).to_string();
        (0..made.changes.min(ROWS_MAX)).map(move |number| {
            let (change, (_, version)) = (shape.change(number), shape.changed_by(number));
            let due_ns = made.begin_ns + shape.change_ns(number).unwrap_or(0);
            Row {
                zone: zone_name(change.zone.into(), &suffix),
                kind: change.kind,
                due_ns,
                sent_ns: due_ns,
                accepted_ns: Some(due_ns),
                rcode: Some(0),
                serial: Some(shape.serial(version)),
            }
        })
    }
}

fn signals() -> nix::Result<SignalFd> {
    let mut set = SigSet::empty();
    set.add(Signal::SIGUSR1);
    set.add(Signal::SIGUSR2);
    set.thread_block()?;
    SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
}
