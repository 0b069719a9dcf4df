//! The receiving side of NOTIFY (RFC 1996): UDP and TCP on one port of all addresses of this host.
//!
//! [`read`] and [`answer`] decide what a message means, without a socket. A signature (TSIG) on a NOTIFY is not
//! checked, and answers are not signed: a NOTIFY is only a hint, and is accepted only from the primary's address.

use std::{
    collections::HashMap,
    io::{self, ErrorKind, Read, Write},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener, TcpStream, UdpSocket},
    os::fd::AsFd,
};

use dnsrig_dns::{
    framing::{self, Frames},
    header::{AA, Header, NOTIFY, OPCODE, QR},
    query::Question,
    record::{Section, Walk},
    soa::Soa,
    zones::Zones,
};
use dnsrig_net::{
    connection::limits::{Connections, Limits},
    poller::Poller,
    udp_batch::{BATCH_MAX, Receiver, Sender},
};
use domain::base::{Rtype, iana::Class};
use nix::sys::{
    epoll::EpollFlags,
    socket::{setsockopt, sockopt},
};
use slotmap::{DefaultKey, Key as _, KeyData, SlotMap};

/// A NOTIFY is a header, a name and an SOA at most; a signature may follow.
const MESSAGE_BYTES_MAX: usize = 4_096;

/// The number of batches of datagrams that are read in a row.
const BATCHES_MAX: usize = 16;

/// The highest number of open TCP connections for NOTIFY; further ones are refused.
const CONNECTIONS_MAX: u32 = 1_024;

/// A connection is closed if no NOTIFY came on it for this time: a primary with another NOTIFY opens another connection
/// (RFC 7766 §6.2.3).
const IDLE_NS: i64 = 30_000_000_000;

/// How often connections are checked for that.
const SWEEP_INTERVAL_NS: i64 = 1_000_000_000;

/// The response code NOTAUTH (RFC 2136 §2.2).
const NOTAUTH: u8 = 9;

/// The content of a NOTIFY.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notify {
    /// The zone in wire format, lower case.
    pub zone: Vec<u8>,
    /// The serial in it, a hint.
    pub serial: Option<u32>,
}

/// Reads a NOTIFY for an SOA; None if the message is something else.
pub fn read(message: &[u8]) -> Option<Notify> {
    let (header, question) = header_and_question(message)?;
    let is_notify = header.flags & (QR | OPCODE) == NOTIFY;
    if !is_notify || (question.rtype, question.class) != (Rtype::SOA, Class::IN) {
        return None;
    }
    let mut walk = Walk::from(message, question.end());
    let mut answers =
        walk.records(&header).map_while(Result::ok).take_while(|(section, _)| *section == Section::Answer);
    let hint = answers.find(|(_, record)| (record.rtype, record.class) == (Rtype::SOA, Class::IN));
    let soa = hint.and_then(|(_, record)| Soa::read(&record).ok().flatten());
    Some(Notify { zone: question.name().to_ascii_lowercase(), serial: soa.map(|soa| soa.serial) })
}

/// The answer to a NOTIFY: NOTAUTH if no such zone is transferred.
pub fn answer(message: &[u8], is_known: bool) -> Option<Vec<u8>> {
    let (Header { id, .. }, question) = header_and_question(message)?;
    let rcode = if is_known { 0 } else { NOTAUTH };
    let header = Header { id, flags: QR | NOTIFY | AA, rcode, questions: 1, ..Header::default() };
    Some([&header.to_bytes(), question.wire].concat())
}

fn header_and_question(message: &[u8]) -> Option<(Header, Question<'_>)> {
    let header = Header::read(message).ok().filter(|header| header.questions == 1)?;
    Some((header, Question::read(message).ok()?))
}

/// What a NOTIFY leads to: the number of the secondary, the zone, and its serial if the message has one.
type Notified = (u32, u32, Option<u32>);

/// The secondaries that are notified, and their zones.
struct Recipients {
    primary: IpAddr,
    /// Addresses of secondaries; empty: there is one secondary, with any address.
    secondaries: HashMap<IpAddr, u32>,
    zones: HashMap<Box<[u8]>, u32>,
}

impl Recipients {
    /// What a message from `peer` to `local` means: the answer, and what it leads to.
    fn judge(&self, message: &[u8], peer: IpAddr, local: IpAddr) -> Option<(Vec<u8>, Option<Notified>)> {
        if peer.to_canonical() != self.primary {
            return None;
        }
        let notify = read(message)?;
        let secondary =
            if self.secondaries.is_empty() { Some(0) } else { self.secondaries.get(&local.to_canonical()).copied() }?;
        let zone = self.zones.get(notify.zone.as_slice()).copied();
        let what = zone.map(|zone| (secondary, zone, notify.serial));
        Some((answer(message, zone.is_some())?, what))
    }
}

/// A TCP connection that brings NOTIFY.
struct OpenConnection {
    socket: TcpStream,
    frames: Frames,
    /// When it was accepted, or the last NOTIFY of the primary was complete. Other bytes do not keep it open.
    active_ns: i64,
}

/// The sockets of the receiving side.
pub struct NotifyReceiver {
    recipients: Recipients,
    udp: UdpSocket,
    receiver: Receiver,
    sender: Sender,
    tcp: TcpListener,
    open: SlotMap<DefaultKey, OpenConnection>,
    limits: Limits,
    /// The counts of connections.
    pub connection_counts: Connections,
    sweep_due_ns: i64,
    /// No connection is accepted until the next sweep.
    is_paused: bool,
}

/// Numbers of descriptors from here on belong to the receiver of NOTIFY; numbers below are slots.
pub const NOTIFY_NUMBERS: u64 = 1 << 32;

/// The descriptors' numbers.
const UDP: u64 = NOTIFY_NUMBERS;
const TCP: u64 = NOTIFY_NUMBERS + 1;

impl NotifyReceiver {
    /// Binds UDP and TCP on `port` of all addresses. NOTIFY is taken from `primary` alone, for `zones`; `sources` are
    /// the addresses of the secondaries.
    pub fn open(
        primary: IpAddr,
        sources: &[Option<IpAddr>],
        zones: &Zones,
        port: u16,
        poller: &Poller,
    ) -> io::Result<Self> {
        let any: IpAddr = if primary.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let udp = UdpSocket::bind((any, port))?;
        if primary.is_ipv4() {
            setsockopt(&udp, sockopt::Ipv4PacketInfo, &true)?;
        } else {
            setsockopt(&udp, sockopt::Ipv6RecvPacketInfo, &true)?;
        }
        // A primary may notify all its secondaries of all its zones at once.
        let _ = setsockopt(&udp, sockopt::RcvBuf, &(4 << 20));
        let tcp = TcpListener::bind((any, port))?;
        udp.set_nonblocking(true)?;
        tcp.set_nonblocking(true)?;
        poller.add(&udp, EpollFlags::EPOLLIN, UDP)?;
        poller.add(&tcp, EpollFlags::EPOLLIN, TCP)?;
        // If two secondaries have one address, the first is notified: it comes last here.
        let secondaries =
            sources.iter().enumerate().rev().filter_map(|(number, source)| Some(((*source)?, number as u32)));
        let recipients = Recipients {
            primary: primary.to_canonical(),
            secondaries: secondaries.collect(),
            zones: (0..zones.count()).map(|zone| (zones.wire(zone).into(), zone)).collect(),
        };
        Ok(NotifyReceiver {
            recipients,
            udp,
            receiver: Receiver::new(MESSAGE_BYTES_MAX),
            sender: Sender::new(MESSAGE_BYTES_MAX, false),
            tcp,
            open: SlotMap::new(),
            limits: Limits::new(CONNECTIONS_MAX, IDLE_NS),
            connection_counts: Connections::default(),
            sweep_due_ns: 0,
            is_paused: false,
        })
    }

    /// Takes in what came on the descriptor `number`; `each` gets secondary, zone and serial of every NOTIFY.
    pub fn event(
        &mut self,
        number: u64,
        now_ns: i64,
        poller: &Poller,
        mut each: impl FnMut(u32, u32, Option<u32>),
    ) -> io::Result<()> {
        match number {
            UDP => self.receive(&mut each),
            TCP => self.accept(now_ns, poller)?,
            _ => self.read(KeyData::from_ffi(number - NOTIFY_NUMBERS - 2).into(), now_ns, &mut each),
        }
        Ok(())
    }

    /// Closes connections on which nothing comes, if it is time to.
    pub fn sweep(&mut self, now_ns: i64, poller: &Poller) -> io::Result<()> {
        if now_ns < self.sweep_due_ns {
            return Ok(());
        }
        self.sweep_due_ns = now_ns + SWEEP_INTERVAL_NS;
        let before = self.open.len();
        self.open.retain(|_, connection| now_ns - connection.active_ns < self.limits.idle_ns);
        let closed = before - self.open.len();
        self.limits.release(closed);
        self.connection_counts.idle += closed as u64;
        if std::mem::take(&mut self.is_paused) { poller.change(&self.tcp, EpollFlags::EPOLLIN, TCP) } else { Ok(()) }
    }

    fn receive(&mut self, each: &mut impl FnMut(u32, u32, Option<u32>)) {
        let NotifyReceiver { recipients, udp, receiver, sender, .. } = self;
        for _ in 0..BATCHES_MAX {
            let Ok(count) = receiver.receive(udp.as_fd()) else { return };
            for datagram in receiver.datagrams() {
                let Some((peer, local)) = datagram.peer.zip(datagram.destination) else { continue };
                let Some((reply, what)) = recipients.judge(datagram.bytes, peer.ip(), local) else { continue };
                sender.space()[..reply.len()].copy_from_slice(&reply);
                // The reply comes from the address to which the NOTIFY was sent.
                sender.push_from(reply.len(), Some(peer), Some(local));
                // One by one, so that a reply that cannot be sent takes no other with it. If a reply is lost, the
                // primary sends again (RFC 1996 §3.6).
                let _ = sender.flush(udp.as_fd());
                if let Some((secondary, zone, serial)) = what {
                    each(secondary, zone, serial);
                }
            }
            if count < BATCH_MAX {
                return;
            }
        }
    }

    fn accept(&mut self, now_ns: i64, poller: &Poller) -> io::Result<()> {
        let NotifyReceiver { open, limits, connection_counts, tcp, .. } = self;
        let goes_on = limits.accept(tcp, connection_counts, |socket| {
            let key = open.insert(OpenConnection { socket, frames: Frames::default(), active_ns: now_ns });
            poller.add(&open[key].socket, EpollFlags::EPOLLIN, NOTIFY_NUMBERS + 2 + key.data().as_ffi())
        })?;
        if !goes_on {
            poller.change(&self.tcp, EpollFlags::empty(), TCP)?;
            self.is_paused = true;
        }
        Ok(())
    }

    fn read(&mut self, key: DefaultKey, now_ns: i64, each: &mut impl FnMut(u32, u32, Option<u32>)) {
        let Some(connection) = self.open.get_mut(key) else { return };
        let mut space = [0; MESSAGE_BYTES_MAX];
        let is_over = match connection.socket.read(&mut space) {
            Ok(0) => true,
            Ok(count) => take(&self.recipients, connection, &space[..count], now_ns, each).is_err(),
            Err(error) => error.kind() != ErrorKind::WouldBlock,
        };
        if is_over {
            self.open.remove(key);
            self.limits.release(1);
        }
    }
}

/// Takes in bytes of a connection, and answers the messages in it.
fn take(
    recipients: &Recipients,
    connection: &mut OpenConnection,
    bytes: &[u8],
    now_ns: i64,
    each: &mut impl FnMut(u32, u32, Option<u32>),
) -> io::Result<()> {
    let (peer, local) = (connection.socket.peer_addr()?.ip(), connection.socket.local_addr()?.ip());
    let mut replies = Vec::new();
    let OpenConnection { frames, active_ns, .. } = connection;
    frames.feed(bytes, |message| {
        if let Some((reply, what)) = recipients.judge(message, peer, local) {
            framing::append(&mut replies, &reply);
            *active_ns = now_ns;
            if let Some((secondary, zone, serial)) = what {
                each(secondary, zone, serial);
            }
        }
    });
    // A few bytes always have room, unless the peer reads nothing: then it is not worth waiting for.
    connection.socket.write_all(&replies)
}

#[cfg(test)]
#[path = "notify_tests.rs"]
mod tests;
