//! The receiving side of NOTIFY (RFC 1996): UDP and TCP on one port of all addresses of this host.
//!
//! What a message says is decided in [`read`] and [`answer`], without a socket. A signature (TSIG) on a NOTIFY is not
//! checked, and answers have none: a NOTIFY is no more than a hint, and from the primary's address alone it is taken.

use std::{
    collections::HashMap,
    io::{self, ErrorKind, IoSliceMut, Read, Write},
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket},
    os::fd::AsRawFd,
};

use domain::base::{Rtype, iana::Class};
use nix::sys::{
    epoll::EpollFlags,
    socket::{ControlMessage, ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, sendmsg, setsockopt, sockopt},
};
use slotmap::{DefaultKey, Key as _, KeyData, SlotMap};

use crate::{
    dns::{
        header::{AA, Header, NOTIFY, OPCODE, QR},
        query::Question,
        record::{Section, Walk},
        soa::Soa,
        zones::Zones,
    },
    net::{
        connection::limits::{Connections, Limits},
        framing::{self, Frames},
        poller::Poller,
    },
};

/// A NOTIFY is a header, a name and an SOA at most; a signature may follow.
const MESSAGE_BYTES_MAX: usize = 4_096;

/// So many datagrams in a row are taken.
const DATAGRAMS_MAX: usize = 1_024;

/// TCP connections that bring NOTIFY, at a time; further ones are refused.
const STREAMS_MAX: u32 = 1_024;

/// A connection is closed if no NOTIFY came on it for this time: a primary with another NOTIFY opens another connection
/// (RFC 7766 §6.2.3).
const IDLE_NS: i64 = 30_000_000_000;

/// They are looked through for that this often.
const SWEEP_INTERVAL_NS: i64 = 1_000_000_000;

/// The response code NOTAUTH (RFC 2136 §2.2).
const NOTAUTH: u8 = 9;

/// What a NOTIFY is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notify {
    /// The zone in wire format, lower case.
    pub zone: Vec<u8>,
    /// The serial that it hints at.
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

/// What is to be acted on: the secondary that is notified, the zone, and its serial if that was said.
type Notified = (u32, u32, Option<u32>);

/// Who is told, and of what.
struct Register {
    primary: IpAddr,
    /// Addresses of secondaries; empty: there is one, which has any.
    secondaries: HashMap<IpAddr, u32>,
    zones: HashMap<Box<[u8]>, u32>,
}

impl Register {
    /// What a message from `peer` to `local` means: the answer, and what is to be acted on.
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
struct Stream {
    socket: TcpStream,
    frames: Frames,
    /// When it was accepted, or the last NOTIFY of the primary was complete. Other bytes are no reason to keep it.
    active_ns: i64,
}

/// The sockets of the receiving side.
pub struct Listeners {
    register: Register,
    udp: UdpSocket,
    tcp: TcpListener,
    streams: SlotMap<DefaultKey, Stream>,
    limits: Limits,
    /// What became of connections.
    pub connections: Connections,
    sweep_due_ns: i64,
    /// None is accepted until the next sweep.
    is_paused: bool,
}

/// Numbers of descriptors from here on are those of the NOTIFY side; below are slots.
pub const NOTIFY_NUMBERS: u64 = 1 << 32;

/// The descriptors' numbers.
const UDP: u64 = NOTIFY_NUMBERS;
const TCP: u64 = NOTIFY_NUMBERS + 1;

impl Listeners {
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
        // A primary tells all its secondaries of all its zones at once.
        let _ = setsockopt(&udp, sockopt::RcvBuf, &(4 << 20));
        let tcp = TcpListener::bind((any, port))?;
        udp.set_nonblocking(true)?;
        tcp.set_nonblocking(true)?;
        poller.add(&udp, EpollFlags::EPOLLIN, UDP)?;
        poller.add(&tcp, EpollFlags::EPOLLIN, TCP)?;
        // Where two have one address, the first is told: it comes last here.
        let secondaries =
            sources.iter().enumerate().rev().filter_map(|(number, source)| Some(((*source)?, number as u32)));
        let register = Register {
            primary: primary.to_canonical(),
            secondaries: secondaries.collect(),
            zones: (0..zones.count()).map(|zone| (zones.wire(zone).into(), zone)).collect(),
        };
        Ok(Listeners {
            register,
            udp,
            tcp,
            streams: SlotMap::new(),
            limits: Limits::new(STREAMS_MAX, IDLE_NS),
            connections: Connections::default(),
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
        let before = self.streams.len();
        self.streams.retain(|_, stream| now_ns - stream.active_ns < self.limits.idle_ns);
        let closed = before - self.streams.len();
        self.limits.release(closed);
        self.connections.idle += closed as u64;
        if std::mem::take(&mut self.is_paused) { poller.change(&self.tcp, EpollFlags::EPOLLIN, TCP) } else { Ok(()) }
    }

    fn receive(&mut self, each: &mut impl FnMut(u32, u32, Option<u32>)) {
        let mut space = [0; MESSAGE_BYTES_MAX];
        let mut control = nix::cmsg_space!(libc::in_pktinfo, libc::in6_pktinfo);
        for _ in 0..DATAGRAMS_MAX {
            let mut vectors = [IoSliceMut::new(&mut space)];
            let flags = MsgFlags::MSG_DONTWAIT;
            let Ok(message) = recvmsg::<SockaddrStorage>(self.udp.as_raw_fd(), &mut vectors, Some(&mut control), flags)
            else {
                return;
            };
            let (bytes, peer) = (message.bytes, message.address);
            let local = message.cmsgs().ok().and_then(|mut messages| messages.find_map(|one| local_address(&one)));
            let (Some(local), Some(peer)) = (local, peer) else { continue };
            let Some(address) = ip_of(&peer) else { continue };
            if let Some((reply, what)) = self.register.judge(&space[..bytes], address, local) {
                reply_from(&self.udp, &reply, &peer, local);
                if let Some((secondary, zone, serial)) = what {
                    each(secondary, zone, serial);
                }
            }
        }
    }

    fn accept(&mut self, now_ns: i64, poller: &Poller) -> io::Result<()> {
        let Listeners { streams, limits, connections, tcp, .. } = self;
        let goes_on = limits.accept(tcp, connections, |socket| {
            let key = streams.insert(Stream { socket, frames: Frames::default(), active_ns: now_ns });
            poller.add(&streams[key].socket, EpollFlags::EPOLLIN, NOTIFY_NUMBERS + 2 + key.data().as_ffi())
        })?;
        if !goes_on {
            poller.change(&self.tcp, EpollFlags::empty(), TCP)?;
            self.is_paused = true;
        }
        Ok(())
    }

    fn read(&mut self, key: DefaultKey, now_ns: i64, each: &mut impl FnMut(u32, u32, Option<u32>)) {
        let Some(stream) = self.streams.get_mut(key) else { return };
        let mut space = [0; MESSAGE_BYTES_MAX];
        let is_over = match stream.socket.read(&mut space) {
            Ok(0) => true,
            Ok(count) => take(&self.register, stream, &space[..count], now_ns, each).is_err(),
            Err(error) => error.kind() != ErrorKind::WouldBlock,
        };
        if is_over {
            self.streams.remove(key);
            self.limits.release(1);
        }
    }
}

/// Takes in bytes of a connection, and answers the messages in it.
fn take(
    register: &Register,
    stream: &mut Stream,
    bytes: &[u8],
    now_ns: i64,
    each: &mut impl FnMut(u32, u32, Option<u32>),
) -> io::Result<()> {
    let (peer, local) = (stream.socket.peer_addr()?.ip(), stream.socket.local_addr()?.ip());
    let mut replies = Vec::new();
    let Stream { frames, active_ns, .. } = stream;
    frames.feed(bytes, |message| {
        if let Some((reply, what)) = register.judge(message, peer, local) {
            framing::append(&mut replies, &reply);
            *active_ns = now_ns;
            if let Some((secondary, zone, serial)) = what {
                each(secondary, zone, serial);
            }
        }
    });
    // Some bytes always have room; a peer that takes none is of no use.
    stream.socket.write_all(&replies)
}

/// To which address of ours a datagram was sent.
fn local_address(message: &ControlMessageOwned) -> Option<IpAddr> {
    match message {
        ControlMessageOwned::Ipv4PacketInfo(info) => {
            Some(Ipv4Addr::from_bits(u32::from_be(info.ipi_addr.s_addr)).into())
        }
        ControlMessageOwned::Ipv6PacketInfo(info) => Some(Ipv6Addr::from(info.ipi6_addr.s6_addr).into()),
        _ => None,
    }
}

/// Replies from the address that was written to. What is lost is asked for again by the primary (RFC 1996 §3.6).
fn reply_from(socket: &UdpSocket, reply: &[u8], peer: &SockaddrStorage, local: IpAddr) {
    let vectors = [io::IoSlice::new(reply)];
    let fd = socket.as_raw_fd();
    let _ = match local {
        IpAddr::V4(local) => {
            let address = libc::in_addr { s_addr: local.to_bits().to_be() };
            let info =
                libc::in_pktinfo { ipi_ifindex: 0, ipi_spec_dst: address, ipi_addr: libc::in_addr { s_addr: 0 } };
            sendmsg(fd, &vectors, &[ControlMessage::Ipv4PacketInfo(&info)], MsgFlags::MSG_DONTWAIT, Some(peer))
        }
        IpAddr::V6(local) => {
            let info = libc::in6_pktinfo { ipi6_addr: libc::in6_addr { s6_addr: local.octets() }, ipi6_ifindex: 0 };
            sendmsg(fd, &vectors, &[ControlMessage::Ipv6PacketInfo(&info)], MsgFlags::MSG_DONTWAIT, Some(peer))
        }
    };
}

fn ip_of(address: &SockaddrStorage) -> Option<IpAddr> {
    let v4 = address.as_sockaddr_in().map(|address| SocketAddr::from(std::net::SocketAddrV4::from(*address)).ip());
    v4.or_else(|| address.as_sockaddr_in6().map(|address| address.ip().into()))
}

#[cfg(test)]
#[path = "notify_tests.rs"]
mod tests;
