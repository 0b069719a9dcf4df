//! Batches of datagrams, each sent or received with one system call: sendmmsg(2), recvmmsg(2).
//!
//! Both sides are allocated once. With segmentation, neighbouring datagrams of one size to one peer leave as one large
//! buffer that the kernel cuts up (`UDP_SEGMENT`, udp(7)): the stack is walked once for all of them.

use std::{
    io, mem,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6},
    os::fd::{AsFd, AsRawFd, BorrowedFd},
    ptr,
};

use libc::{c_void, cmsghdr, iovec, mmsghdr, msghdr, sockaddr_storage, socklen_t, timespec};

/// A batch is at most this many datagrams, which is also the most segments of one buffer (`UDP_MAX_SEGMENTS`).
pub const BATCH_MAX: usize = 64;

/// A segmented buffer is at most so large: an IP packet's 65,535 bytes less all headers.
const SEGMENTED_BYTES_MAX: usize = 65_000;

/// Room for control messages: one timestamp or destination, or one source address and one segment size, each with its
/// header.
const CONTROL_BYTES: usize = 64;

/// Room for the control messages of an error: the error, whose sender has an address of IPv6, and a timestamp.
const ERROR_BYTES: usize = 256;

/// The peer of a datagram, or none on a connected socket.
pub type Peer = Option<SocketAddr>;

#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Control([u8; CONTROL_BYTES]);

/// One datagram of a received batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Its bytes, or as many as there was room for.
    pub bytes: &'a [u8],
    /// How many it had on the wire.
    pub length: usize,
    /// Who sent it, where the receiver keeps peers.
    pub peer: Peer,
    /// The address of this host that it was sent to, where the socket has `IP_PKTINFO` or `IPV6_RECVPKTINFO` on.
    pub destination: Option<IpAddr>,
    /// When the kernel took it from the device, CLOCK_REALTIME, where the socket has `SO_TIMESTAMPNS` on.
    pub received_realtime_ns: Option<i64>,
}

/// Receives up to [`BATCH_MAX`] datagrams at once.
pub struct Receiver {
    bytes_each: usize,
    buffers: Box<[u8]>,
    names: Box<[sockaddr_storage]>,
    controls: Box<[Control]>,
    // Held for the pointers in `headers`.
    _vectors: Box<[iovec]>,
    headers: Box<[mmsghdr]>,
    count: usize,
}

// SAFETY: the raw pointers in `headers` and `_vectors` keep it from being Send by itself. They lead into the boxes of
// this very struct, which are neither replaced nor resized while it lives; moving the struct moves no box's contents.
// The kernel follows them only within `receive`, which has the struct to itself (&mut).
unsafe impl Send for Receiver {}

impl Receiver {
    /// Room for `bytes_each` bytes of each datagram; what is longer is cut, its [`Datagram::length`] says so.
    pub fn new(bytes_each: usize) -> Self {
        let mut buffers = vec![0_u8; bytes_each * BATCH_MAX].into_boxed_slice();
        let mut names: Box<[sockaddr_storage]> = (0..BATCH_MAX).map(|_| empty_name()).collect();
        let mut controls = vec![Control([0; CONTROL_BYTES]); BATCH_MAX].into_boxed_slice();
        let mut vectors: Box<[iovec]> = buffers
            .chunks_mut(bytes_each)
            .map(|buffer| iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() })
            .collect();
        let headers = (0..BATCH_MAX)
            .map(|at| mmsghdr { msg_hdr: header(&mut vectors[at], &mut names[at], &mut controls[at]), msg_len: 0 })
            .collect();
        Receiver { bytes_each, buffers, names, controls, _vectors: vectors, headers, count: 0 }
    }

    /// Takes what the socket has, without waiting, and returns how many datagrams that is.
    ///
    /// An error that a peer's ICMP message left on the socket (ECONNREFUSED …) comes as `Err`; receive again after it.
    pub fn receive(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        self.count = 0;
        for header in &mut self.headers {
            header.msg_hdr.msg_namelen = size_of::<sockaddr_storage>() as socklen_t;
            header.msg_hdr.msg_controllen = CONTROL_BYTES;
        }
        // MSG_TRUNC: msg_len is the datagram's length, also where the buffer is shorter.
        let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
        // SAFETY: there are BATCH_MAX headers. Each leads to a buffer, a name and a control of its own in boxes of
        // `self`, with the lengths that these have: the name's and the control's were just set again, as the kernel
        // lowers them. No timeout is given (null), and no pointer is kept.
        let count = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                self.headers.as_mut_ptr(),
                BATCH_MAX as _,
                flags as _,
                ptr::null_mut::<timespec>(),
            )
        };
        if count < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::WouldBlock { Ok(0) } else { Err(error) };
        }
        self.count = count as usize;
        Ok(self.count)
    }

    /// What the last [`Receiver::receive`] took.
    pub fn datagrams(&self) -> impl Iterator<Item = Datagram<'_>> {
        (0..self.count).map(|at| {
            let length = self.headers[at].msg_len as usize;
            let start = at * self.bytes_each;
            Datagram {
                bytes: &self.buffers[start..start + length.min(self.bytes_each)],
                length,
                peer: peer_of(&self.names[at], self.headers[at].msg_hdr.msg_namelen),
                destination: destination_of(&self.headers[at].msg_hdr, &self.controls[at]),
                received_realtime_ns: timestamp_of(&self.headers[at].msg_hdr, &self.controls[at]),
            }
        })
    }
}

/// A datagram that waits to be sent.
#[derive(Clone, Copy)]
struct Waiting {
    start: usize,
    length: usize,
    peer: Peer,
    source: Option<IpAddr>,
}

/// Sends up to [`BATCH_MAX`] datagrams at once.
pub struct Sender {
    segmentation: bool,
    bytes_max: usize,
    buffer: Box<[u8]>,
    waiting: Vec<Waiting>,
    used: usize,
    names: Box<[sockaddr_storage]>,
    vectors: Box<[iovec]>,
    controls: Box<[Control]>,
    headers: Box<[mmsghdr]>,
    /// How many datagrams each header carries.
    carried: Vec<usize>,
}

// SAFETY: as with the receiver: what `headers` and `vectors` lead to are boxes of this struct, and the kernel follows
// them only within `flush`, which has the struct to itself.
unsafe impl Send for Sender {}

impl Sender {
    /// Datagrams of at most `bytes_max` bytes; `segmentation` lets the kernel cut large buffers up.
    pub fn new(bytes_max: usize, segmentation: bool) -> Self {
        Sender {
            segmentation,
            bytes_max,
            buffer: vec![0; bytes_max * BATCH_MAX].into_boxed_slice(),
            waiting: Vec::with_capacity(BATCH_MAX),
            used: 0,
            names: (0..BATCH_MAX).map(|_| empty_name()).collect(),
            vectors: (0..BATCH_MAX).map(|_| iovec { iov_base: ptr::null_mut(), iov_len: 0 }).collect(),
            controls: vec![Control([0; CONTROL_BYTES]); BATCH_MAX].into_boxed_slice(),
            headers: (0..BATCH_MAX).map(|_| mmsghdr { msg_hdr: empty_header(), msg_len: 0 }).collect(),
            carried: Vec::with_capacity(BATCH_MAX),
        }
    }

    /// Whether the kernel cuts large buffers up. It does not where a device has refused it.
    pub fn has_segmentation(&self) -> bool {
        self.segmentation
    }

    /// Whether another datagram finds room.
    pub fn has_room(&self) -> bool {
        self.waiting.len() < BATCH_MAX
    }

    /// How many datagrams wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Where the next datagram is to be written, before [`Sender::push`]; only while there is room.
    pub fn space(&mut self) -> &mut [u8] {
        &mut self.buffer[self.used..self.used + self.bytes_max]
    }

    /// Queues the datagram of `length` bytes that was written to [`Sender::space`].
    pub fn push(&mut self, length: usize, peer: Peer) {
        self.push_from(length, peer, None);
    }

    /// Adds a datagram that is sent from this address of the host, or from the socket's address without one.
    pub fn push_from(&mut self, length: usize, peer: Peer, source: Option<IpAddr>) {
        assert!(self.has_room() && length <= self.bytes_max);
        self.waiting.push(Waiting { start: self.used, length, peer, source });
        self.used += length;
    }

    /// Adds a datagram for the peer of a connected socket. If there is no room for it, what waits is sent before, and
    /// an error of that is returned.
    pub fn add(&mut self, socket: BorrowedFd<'_>, datagram: &[u8]) -> io::Result<()> {
        let sent = if self.has_room() { Ok(0) } else { self.flush(socket) };
        self.space()[..datagram.len()].copy_from_slice(datagram);
        self.push(datagram.len(), None);
        sent.map(drop)
    }

    /// Sends all that waits, without blocking, and returns how many datagrams went out: the first so many.
    ///
    /// The rest is forgotten. An error comes as `Err` only if not one went out.
    pub fn flush(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        let mut sent = self.send(socket);
        if self.segmentation && sent.as_ref().is_err_and(refuses_segmentation) {
            self.segmentation = false;
            sent = self.send(socket);
        }
        self.waiting.clear();
        self.used = 0;
        sent
    }

    fn send(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        let headers = self.prepare();
        if headers == 0 {
            return Ok(0);
        }
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        // SAFETY: `prepare` has written so many headers just now, each with pointers into boxes of `self` and the
        // lengths of what was put there. The kernel reads them and writes `msg_len` only; it keeps no pointer.
        let sent = unsafe { libc::sendmmsg(socket.as_raw_fd(), self.headers.as_mut_ptr(), headers as _, flags as _) };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(self.carried[..sent as usize].iter().sum())
    }

    /// Writes the headers for what waits and returns how many there are.
    fn prepare(&mut self) -> usize {
        self.carried.clear();
        let mut first = 0;
        while first < self.waiting.len() {
            let count = self.run(first);
            self.write_header(first, count);
            self.carried.push(count);
            first += count;
        }
        self.carried.len()
    }

    /// How many datagrams from `first` on may share a buffer: same peer, source and size, but for a shorter last one.
    fn run(&self, first: usize) -> usize {
        if !self.segmentation {
            return 1;
        }
        let Waiting { length, peer, source, .. } = self.waiting[first];
        let most = (SEGMENTED_BYTES_MAX / length.max(1)).clamp(1, BATCH_MAX);
        let mut count = 1;
        for next in self.waiting[first + 1..].iter().take(most - 1) {
            if next.peer != peer || next.source != source || next.length > length {
                break;
            }
            count += 1;
            if next.length < length {
                break;
            }
        }
        count
    }

    fn write_header(&mut self, first: usize, count: usize) {
        let at = self.carried.len();
        let (one, last) = (self.waiting[first], self.waiting[first + count - 1]);
        let bytes = &mut self.buffer[one.start..last.start + last.length];
        self.vectors[at] = iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        let header = &mut self.headers[at].msg_hdr;
        header.msg_iov = &raw mut self.vectors[at];
        header.msg_iovlen = 1;
        header.msg_name = ptr::null_mut();
        header.msg_namelen = 0;
        header.msg_control = ptr::null_mut();
        header.msg_controllen = 0;
        if let Some(peer) = one.peer {
            header.msg_namelen = write_name(&mut self.names[at], peer);
            header.msg_name = (&raw mut self.names[at]).cast();
        }
        match one.source {
            Some(IpAddr::V4(source)) => add_control(header, &mut self.controls[at], packet_info_v4(source)),
            Some(IpAddr::V6(source)) => add_control(header, &mut self.controls[at], packet_info_v6(source)),
            None => {}
        }
        if count > 1 {
            add_control(header, &mut self.controls[at], (libc::SOL_UDP, libc::UDP_SEGMENT, one.length as u16));
        }
    }
}

/// Whether an error may mean that the device cannot compute checksums, which segmentation needs (udp(7)).
fn refuses_segmentation(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EIO | libc::EINVAL))
}

fn header(vector: &mut iovec, name: &mut sockaddr_storage, control: &mut Control) -> msghdr {
    let mut header = empty_header();
    header.msg_iov = vector;
    header.msg_iovlen = 1;
    header.msg_name = ptr::from_mut(name).cast();
    header.msg_control = control.0.as_mut_ptr().cast();
    header
}

/// Whether an ICMP error came back: port, host or network unreachable (ip(7), icmp(7)).
pub fn is_unreachable(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, HostUnreachable, NetworkUnreachable};
    matches!(error.kind(), ConnectionRefused | HostUnreachable | NetworkUnreachable)
}

/// Takes the next error from the queue of a socket that asked for errors. True: an ICMP message said that a destination
/// is unreachable (RFC 792; RFC 4443 §3.1). `Err`: none waits.
#[cold]
pub fn icmp_error(socket: BorrowedFd) -> nix::Result<bool> {
    use nix::sys::socket::{ControlMessageOwned as Control, MsgFlags, recvmsg};
    let mut control = nix::cmsg_space!([u8; ERROR_BYTES]);
    let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
    let message = recvmsg::<()>(socket.as_raw_fd(), &mut [], Some(&mut control), flags)?;
    Ok(message.cmsgs()?.any(|control| match control {
        Control::Ipv4RecvErr(error, _) | Control::Ipv6RecvErr(error, _) => {
            matches!((error.ee_origin, error.ee_type), (libc::SO_EE_ORIGIN_ICMP, 3) | (libc::SO_EE_ORIGIN_ICMP6, 1))
        }
        _ => false,
    }))
}

/// How many datagrams the kernel dropped because the receive buffer was full, since the socket was made.
///
/// From `SO_MEMINFO` (Linux 4.12), which costs nothing while datagrams flow; none where the kernel does not know it.
pub fn dropped(socket: impl AsFd) -> Option<u64> {
    /// `SK_MEMINFO_DROPS` and the number of values, after include/uapi/linux/sock_diag.h.
    const DROPS: usize = 8;
    const VALUES: usize = 9;
    let mut values = [0_u32; VALUES];
    let mut bytes = size_of_val(&values) as libc::socklen_t;
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the kernel writes at most `bytes` bytes to `values`, which is so long, and any bits are a u32.
    let result =
        unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_MEMINFO, values.as_mut_ptr().cast(), &raw mut bytes) };
    (result == 0 && bytes as usize == size_of_val(&values)).then(|| values[DROPS].into())
}

fn empty_header() -> msghdr {
    // SAFETY: integers, for which zero is a value, and raw pointers, for which null is.
    unsafe { mem::zeroed() }
}

fn empty_name() -> sockaddr_storage {
    // SAFETY: integers only, for which zero is a value.
    unsafe { mem::zeroed() }
}

/// A control message that has a datagram leave from `source` (ip(7)).
fn packet_info_v4(source: Ipv4Addr) -> (i32, i32, libc::in_pktinfo) {
    let source = libc::in_addr { s_addr: u32::from_ne_bytes(source.octets()) };
    let none = libc::in_addr { s_addr: 0 };
    (libc::IPPROTO_IP, libc::IP_PKTINFO, libc::in_pktinfo { ipi_ifindex: 0, ipi_spec_dst: source, ipi_addr: none })
}

/// The control message with the source address for IPv6 (ipv6(7)).
fn packet_info_v6(source: Ipv6Addr) -> (i32, i32, libc::in6_pktinfo) {
    let source = libc::in6_addr { s6_addr: source.octets() };
    (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, libc::in6_pktinfo { ipi6_addr: source, ipi6_ifindex: 0 })
}

/// Adds a control message, its level, type and data, behind those that `control` has by `header`.
fn add_control<T: Copy>(header: &mut msghdr, control: &mut Control, (level, kind, data): (i32, i32, T)) {
    let used = header.msg_controllen;
    // SAFETY: it computes a length from a length, and follows no pointer.
    let space = unsafe { libc::CMSG_SPACE(size_of::<T>() as _) } as usize;
    header.msg_controllen = used + space;
    header.msg_control = control.0.as_mut_ptr().cast();
    let room = &mut control.0[used..used + space];
    // SAFETY: `room` has the CMSG_SPACE of the data, so a header and the data behind it fit. `Control` is aligned as a
    // cmsghdr is, and lengths of messages before keep that (CMSG_SPACE). The data may not be aligned.
    unsafe {
        let message: *mut cmsghdr = room.as_mut_ptr().cast();
        (*message).cmsg_level = level;
        (*message).cmsg_type = kind;
        (*message).cmsg_len = libc::CMSG_LEN(size_of::<T>() as _) as _;
        ptr::write_unaligned(libc::CMSG_DATA(message).cast(), data);
    }
}

/// The time in a `SCM_TIMESTAMPNS` control message (socket(7)).
fn timestamp_of(header: &msghdr, control: &Control) -> Option<i64> {
    if header.msg_controllen < size_of::<cmsghdr>() + size_of::<timespec>() {
        return None;
    }
    let start: *const c_void = control.0.as_ptr().cast();
    // SAFETY: `Control` is aligned as a cmsghdr is, and the kernel has written one and a timespec behind it: so much
    // the check above and the message's type say. The timespec may not be aligned.
    let time = unsafe {
        let message = start.cast::<cmsghdr>();
        if ((*message).cmsg_level, (*message).cmsg_type) != (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) {
            return None;
        }
        ptr::read_unaligned(libc::CMSG_DATA(message).cast::<timespec>())
    };
    Some(time.tv_sec * 1_000_000_000 + time.tv_nsec)
}

/// The address in an `IP_PKTINFO` or `IPV6_PKTINFO` control message (ip(7), ipv6(7)), if that is the first one.
fn destination_of(header: &msghdr, control: &Control) -> Option<IpAddr> {
    if header.msg_controllen < size_of::<cmsghdr>() + size_of::<libc::in_pktinfo>() {
        return None;
    }
    let start: *const c_void = control.0.as_ptr().cast();
    // SAFETY: `Control` is aligned as a cmsghdr is, and has room for one and for either structure behind it. The kernel
    // has written what the level and the type say, any bits are a value of either, and neither need be aligned.
    unsafe {
        let message = start.cast::<cmsghdr>();
        let data = libc::CMSG_DATA(message);
        match ((*message).cmsg_level, (*message).cmsg_type) {
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                let found = ptr::read_unaligned(data.cast::<libc::in_pktinfo>());
                Some(IpAddr::from(found.ipi_addr.s_addr.to_ne_bytes()))
            }
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                Some(ptr::read_unaligned(data.cast::<libc::in6_pktinfo>()).ipi6_addr.s6_addr.into())
            }
            _ => None,
        }
    }
}

fn peer_of(name: &sockaddr_storage, length: socklen_t) -> Peer {
    if length == 0 {
        return None;
    }
    let start = ptr::from_ref(name);
    match i32::from(name.ss_family) {
        libc::AF_INET => {
            // SAFETY: a sockaddr_storage is as large and as aligned as any address; the family says which one it holds.
            let name = unsafe { &*start.cast::<libc::sockaddr_in>() };
            let address = IpAddr::from(name.sin_addr.s_addr.to_ne_bytes());
            Some(SocketAddr::new(address, u16::from_be(name.sin_port)))
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let name = unsafe { &*start.cast::<libc::sockaddr_in6>() };
            let port = u16::from_be(name.sin6_port);
            let flow = name.sin6_flowinfo;
            Some(SocketAddrV6::new(name.sin6_addr.s6_addr.into(), port, flow, name.sin6_scope_id).into())
        }
        _ => None,
    }
}

fn write_name(name: &mut sockaddr_storage, peer: SocketAddr) -> socklen_t {
    let start = ptr::from_mut(name);
    match peer {
        // SAFETY: a sockaddr_storage is as large and as aligned as any address, and what it held needs no drop.
        SocketAddr::V4(peer) => unsafe { write_name_v4(start.cast(), peer) },
        // SAFETY: as above.
        SocketAddr::V6(peer) => unsafe { write_name_v6(start.cast(), peer) },
    }
}

/// # Safety
///
/// `name` can be written to.
unsafe fn write_name_v4(name: *mut libc::sockaddr_in, peer: SocketAddrV4) -> socklen_t {
    // SAFETY: integers only, for which zero is a value.
    let mut written: libc::sockaddr_in = unsafe { mem::zeroed() };
    written.sin_family = libc::AF_INET as _;
    written.sin_port = peer.port().to_be();
    written.sin_addr.s_addr = u32::from_ne_bytes(peer.ip().octets());
    // SAFETY: the caller says so.
    unsafe { name.write(written) };
    size_of::<libc::sockaddr_in>() as _
}

/// # Safety
///
/// `name` can be written to.
unsafe fn write_name_v6(name: *mut libc::sockaddr_in6, peer: SocketAddrV6) -> socklen_t {
    // SAFETY: integers only, for which zero is a value.
    let mut written: libc::sockaddr_in6 = unsafe { mem::zeroed() };
    written.sin6_family = libc::AF_INET6 as _;
    written.sin6_port = peer.port().to_be();
    written.sin6_addr.s6_addr = peer.ip().octets();
    written.sin6_flowinfo = peer.flowinfo();
    written.sin6_scope_id = peer.scope_id();
    // SAFETY: the caller says so.
    unsafe { name.write(written) };
    size_of::<libc::sockaddr_in6>() as _
}

#[cfg(test)]
mod tests {
    use std::{net::UdpSocket, time::Duration};

    use super::*;

    fn pair(address: &str) -> (UdpSocket, UdpSocket) {
        let [one, other] = [0, 1].map(|_| UdpSocket::bind((address, 0)).unwrap());
        one.connect(other.local_addr().unwrap()).unwrap();
        other.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        (one, other)
    }

    /// Receives `count` datagrams, whose lengths and first bytes it returns.
    fn received(socket: &UdpSocket, count: usize) -> Vec<(usize, u8, Peer)> {
        let mut receiver = Receiver::new(16);
        let mut found = Vec::new();
        while found.len() < count {
            socket.peek_from(&mut [0; 1]).expect("datagrams that were sent over loopback arrive");
            receiver.receive(socket.as_fd()).unwrap();
            found.extend(receiver.datagrams().map(|one| (one.length, one.bytes[0], one.peer)));
        }
        found
    }

    #[test]
    fn datagrams_without_room_are_counted_to_the_datagram() {
        const SENT: u64 = 2_000;
        let (one, other) = pair("127.0.0.1");
        nix::sys::socket::setsockopt(&other, nix::sys::socket::sockopt::RcvBuf, &(64 << 10)).unwrap();
        assert_eq!(dropped(&other), Some(0));
        for _ in 0..SENT {
            one.send(&[0; 500]).unwrap();
        }
        other.set_nonblocking(true).unwrap();
        let received = (0..).take_while(|_| other.recv(&mut [0; 512]).is_ok()).count() as u64;
        assert!(received > 0 && received < SENT);
        assert_eq!(dropped(&other), Some(SENT - received));
    }

    #[test]
    fn what_is_sent_arrives_whole_with_and_without_segmentation() {
        for address in ["127.0.0.1", "::1"] {
            for segmentation in [false, true] {
                let (one, other) = pair(address);
                let mut sender = Sender::new(512, segmentation);
                let lengths = [40, 40, 40, 39, 40, 40, 17, 100, 100, 100];
                for (number, length) in lengths.into_iter().enumerate() {
                    sender.space()[0] = number as u8;
                    sender.push(length, None);
                }
                assert_eq!(sender.flush(one.as_fd()).unwrap(), lengths.len());
                assert!(sender.is_empty());
                let peer = one.local_addr().ok();
                let expected: Vec<_> =
                    lengths.into_iter().enumerate().map(|(number, length)| (length, number as u8, peer)).collect();
                assert_eq!(received(&other, lengths.len()), expected, "{address} {segmentation}");
            }
        }
    }

    #[test]
    fn a_device_that_refuses_segmentation_costs_no_datagram() {
        let (one, other) = pair("127.0.0.1");
        // Without checksums the kernel refuses to segment: EINVAL, as for a device that cannot compute them.
        let on = 1_i32;
        let (length, fd) = (size_of_val(&on) as libc::socklen_t, one.as_raw_fd());
        // SAFETY: the kernel reads `length` bytes, the size of `on`.
        let set = unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_NO_CHECK, (&raw const on).cast(), length) };
        assert_eq!(set, 0);
        let mut sender = Sender::new(64, true);
        for number in 0..2 * BATCH_MAX {
            sender.add(one.as_fd(), &[number as u8; 20]).unwrap();
        }
        assert!(!sender.has_segmentation());
        assert_eq!(sender.flush(one.as_fd()).unwrap(), BATCH_MAX);
        let found = received(&other, 2 * BATCH_MAX);
        assert!(found.iter().enumerate().all(|(number, (length, first, _))| (*length, *first) == (20, number as u8)));
    }

    #[test]
    fn replies_go_to_the_peer_named() {
        for address in ["127.0.0.1", "::1"] {
            let (one, other) = pair(address);
            let mut sender = Sender::new(64, true);
            for number in 0..3 {
                sender.space()[0] = number;
                sender.push(20, one.local_addr().ok());
            }
            assert_eq!(sender.flush(other.as_fd()).unwrap(), 3);
            let peer = other.local_addr().ok();
            assert_eq!(received(&one, 3), [(20, 0, peer), (20, 1, peer), (20, 2, peer)]);
        }
    }

    #[test]
    fn each_datagram_leaves_from_the_address_that_it_names() {
        let sender_socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        let port = sender_socket.local_addr().unwrap().port();
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        server.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let mut sender = Sender::new(64, true);
        let sources = ["127.1.2.3", "127.1.2.3", "127.255.0.1"];
        for (number, source) in sources.into_iter().enumerate() {
            sender.space()[0] = number as u8;
            sender.push_from(20, server.local_addr().ok(), source.parse().ok());
        }
        assert_eq!(sender.flush(sender_socket.as_fd()).unwrap(), 3);
        let expected = (0..3).map(|number| (20, number as u8, format!("{}:{port}", sources[number]).parse().ok()));
        assert_eq!(received(&server, 3), expected.collect::<Vec<_>>());
        assert_eq!(sender.carried, [2, 1]);
        // The rest of the address range of IPv6 needs a route; this one each host has.
        let (one, other) = (UdpSocket::bind("[::]:0").unwrap(), UdpSocket::bind("[::1]:0").unwrap());
        sender.push_from(20, other.local_addr().ok(), "::1".parse().ok());
        assert_eq!(sender.flush(one.as_fd()).unwrap(), 1);
        sender.push_from(20, other.local_addr().ok(), "2001:2::1".parse().ok());
        assert!(sender.flush(one.as_fd()).is_err(), "an address that this host does not have");
    }

    #[test]
    fn a_run_ends_at_another_size_or_peer() {
        let peers: [Peer; 2] = ["127.0.0.1:1".parse().ok(), "127.0.0.1:2".parse().ok()];
        let mut sender = Sender::new(64, true);
        for (length, peer) in [(20, 0), (20, 0), (10, 0), (20, 0), (20, 1), (30, 1)] {
            sender.push(length, peers[peer]);
        }
        sender.prepare();
        assert_eq!(sender.carried, [3, 1, 1, 1]);
    }

    #[test]
    fn the_kernels_timestamp_lies_between_sending_and_now() {
        let (one, other) = pair("127.0.0.1");
        nix::sys::socket::setsockopt(&other, nix::sys::socket::sockopt::ReceiveTimestampns, &true).unwrap();
        let before_ns = dnsrig_core::clock::anchor().realtime_ns;
        one.send(&[7; 12]).unwrap();
        other.peek_from(&mut [0; 1]).unwrap();
        let mut receiver = Receiver::new(16);
        assert_eq!(receiver.receive(other.as_fd()).unwrap(), 1);
        let stamp_ns = receiver.datagrams().next().unwrap().received_realtime_ns.unwrap();
        assert!((before_ns..=dnsrig_core::clock::anchor().realtime_ns).contains(&stamp_ns));
        assert_eq!(receiver.receive(other.as_fd()).unwrap(), 0, "and then there is nothing more");
    }
}
