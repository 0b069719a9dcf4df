//! sock_diag(7) in bytes: the question for the TCP sockets of a network namespace, and the kernel's answer. No I/O.
//!
//! Facts from netlink(7), sock_diag(7), include/uapi/linux/{netlink,sock_diag,inet_diag}.h. Numbers are in the
//! machine's order, but ports and addresses in the network's. A message is `struct nlmsghdr` and, in the answer,
//! `struct inet_diag_msg` with attributes behind it, each aligned to four bytes.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use dnsrig_core::netlink::{self, HEADER_BYTES, NLMSG_DONE, NLMSG_ERROR, array, error, message};
use dnsrig_net::tcp_info::{self, TcpInfo};

/// The length of [`request`]: header and `struct inet_diag_req_v2`.
const REQUEST_BYTES: usize = HEADER_BYTES + 56;

/// The longest name of a congestion control, with its terminating zero (TCP_CA_NAME_MAX).
const CONGESTION_BYTES: usize = 16;

const DIAG_BYTES: usize = 72;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// NLM_F_REQUEST and NLM_F_DUMP: all that there are.
const REQUEST_DUMP: u16 = 0x301;
/// Attributes.
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_CONG: u16 = 4;
const INET_DIAG_SKMEMINFO: u16 = 7;
/// Places in the last of them, an array of numbers of 32 bits (SK_MEMINFO_RCVBUF, SK_MEMINFO_SNDBUF).
const RECEIVE_BUFFER_PLACE: usize = 4;
const SEND_BUFFER_PLACE: usize = 12;

/// An address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// AF_INET.
    V4,
    /// AF_INET6, and IPv4 over such sockets.
    V6,
}

impl Family {
    fn number(self) -> u8 {
        match self {
            Family::V4 => libc::AF_INET as u8,
            Family::V6 => libc::AF_INET6 as u8,
        }
    }
}

/// States of a connection over which data may still go (RFC 9293, section 3.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// Data goes both ways.
    Established = 1,
    /// This side has closed; its data is not acknowledged whole.
    FinWait1 = 4,
    /// This side has closed, the other has not.
    FinWait2 = 5,
    /// The other side has closed, this one has not.
    CloseWait = 8,
    /// Both have, the other first; this side's data is not acknowledged whole.
    LastAck = 9,
    /// Both have, at once; likewise.
    Closing = 11,
}

impl State {
    /// All, in the order of their numbers.
    pub const ALL: [State; 6] =
        [State::Established, State::FinWait1, State::FinWait2, State::CloseWait, State::LastAck, State::Closing];

    /// As RFC 9293 names it, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            State::Established => "established",
            State::FinWait1 => "fin-wait-1",
            State::FinWait2 => "fin-wait-2",
            State::CloseWait => "close-wait",
            State::LastAck => "last-ack",
            State::Closing => "closing",
        }
    }

    fn of(number: u8) -> Option<Self> {
        State::ALL.into_iter().find(|state| *state as u8 == number)
    }
}

/// The name of a congestion control, without an allocation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Congestion([u8; CONGESTION_BYTES]);

impl Congestion {
    /// The name; empty if the kernel said none.
    pub fn name(&self) -> &str {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(self.0.len());
        str::from_utf8(&self.0[..end]).unwrap_or_default()
    }

    fn of(bytes: &[u8]) -> Self {
        let mut name = [0; CONGESTION_BYTES];
        let length = bytes.len().min(CONGESTION_BYTES);
        name[..length].copy_from_slice(&bytes[..length]);
        Congestion(name)
    }
}

/// A socket as the kernel reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Socket {
    /// Its own address; an IPv4 address mapped into IPv6 is shown as IPv4.
    pub local: SocketAddr,
    /// The other side's.
    pub remote: SocketAddr,
    /// The state of the connection.
    pub state: State,
    /// What it sends by.
    pub congestion: Congestion,
    /// Bytes that the application wrote and the other side has not acknowledged.
    pub send_queue_bytes: u32,
    /// Bytes that came and that the application has not read.
    pub receive_queue_bytes: u32,
    /// What its buffer for sending may take now, with what the kernel needs beside the bytes; 0 if it does not say.
    pub send_buffer_bytes: u32,
    /// Likewise for receiving.
    pub receive_buffer_bytes: u32,
    /// TCP_INFO.
    pub info: TcpInfo,
}

impl Socket {
    /// Whether it is worth a row: open, or closing with data left.
    fn is_active(&self) -> bool {
        self.state == State::Established || self.send_queue_bytes > 0 || self.receive_queue_bytes > 0
    }
}

/// The kernel refused, with a number of errno(3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused(pub i32);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the kernel does not list sockets: {}", std::io::Error::from_raw_os_error(self.0))
    }
}

/// The question for all sockets of a family in one of [`State::ALL`]. The answer carries `sequence` again.
pub fn request(family: Family, sequence: u32) -> [u8; REQUEST_BYTES] {
    let mut bytes = [0; REQUEST_BYTES];
    let mut put = |place: usize, part: &[u8]| bytes[place..place + part.len()].copy_from_slice(part);
    put(0, &(REQUEST_BYTES as u32).to_ne_bytes());
    put(4, &SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    put(6, &REQUEST_DUMP.to_ne_bytes());
    put(8, &sequence.to_ne_bytes());
    let extensions =
        [INET_DIAG_INFO, INET_DIAG_CONG, INET_DIAG_SKMEMINFO].iter().fold(0, |all, one| all | 1 << (one - 1));
    put(HEADER_BYTES, &[family.number(), libc::IPPROTO_TCP as u8, extensions, 0]);
    let states = State::ALL.iter().fold(0_u32, |states, state| states | 1 << *state as u8);
    put(HEADER_BYTES + 4, &states.to_ne_bytes());
    bytes
}

/// Reads one datagram of an answer: calls `found` with each socket that is worth a row, and says whether it was the
/// last.
///
/// What does not belong to the question of this `sequence`, or is not understood, is passed over.
pub fn read(datagram: &[u8], sequence: u32, mut found: impl FnMut(Socket)) -> Result<bool, Refused> {
    let mut rest = datagram;
    while let Some((kind, number, payload, behind)) = message(rest) {
        rest = behind;
        if number != sequence {
            continue;
        }
        match kind {
            SOCK_DIAG_BY_FAMILY => {
                if let Some(socket) = socket(payload).filter(Socket::is_active) {
                    found(socket);
                }
            }
            // An end bears the result of the listing: it fails there, after a start without error, where the kernel
            // lacks tcp_diag (netlink_dump_done() of net/netlink/af_netlink.c).
            NLMSG_DONE => return if error(payload) > 0 { Err(Refused(error(payload))) } else { Ok(true) },
            NLMSG_ERROR => return Err(Refused(error(payload))),
            _ => {}
        }
    }
    Ok(false)
}

/// Reads a `struct inet_diag_msg` and its attributes; numbers are their places in it.
fn socket(message: &[u8]) -> Option<Socket> {
    let (head, attributes) = message.split_at_checked(DIAG_BYTES)?;
    let mut socket = Socket {
        local: SocketAddr::new(address(head[0], head, 8)?, u16::from_be_bytes(array(head, 4)?)),
        remote: SocketAddr::new(address(head[0], head, 24)?, u16::from_be_bytes(array(head, 6)?)),
        state: State::of(head[1])?,
        congestion: Congestion::default(),
        send_queue_bytes: u32::from_ne_bytes(array(head, 60)?),
        receive_queue_bytes: u32::from_ne_bytes(array(head, 56)?),
        send_buffer_bytes: 0,
        receive_buffer_bytes: 0,
        info: TcpInfo::default(),
    };
    for (kind, value) in netlink::attributes(attributes) {
        match kind {
            INET_DIAG_INFO => socket.info = tcp_info::parse(value),
            INET_DIAG_CONG => socket.congestion = Congestion::of(value),
            INET_DIAG_SKMEMINFO => {
                let number = |place| array(value, place).map_or(0, u32::from_ne_bytes);
                socket.receive_buffer_bytes = number(RECEIVE_BUFFER_PLACE);
                socket.send_buffer_bytes = number(SEND_BUFFER_PLACE);
            }
            _ => {}
        }
    }
    Some(socket)
}

fn address(family: u8, head: &[u8], place: usize) -> Option<IpAddr> {
    if family == Family::V4.number() {
        return Some(Ipv4Addr::from(array::<4>(head, place)?).into());
    }
    (family == Family::V6.number()).then_some(())?;
    Some(IpAddr::from(Ipv6Addr::from(array::<16>(head, place)?)).to_canonical())
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
