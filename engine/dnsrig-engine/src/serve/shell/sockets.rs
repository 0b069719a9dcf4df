//! Sockets that several threads share one address with: SO_REUSEPORT (socket(7)).

use std::{
    io,
    net::{SocketAddr, TcpListener, UdpSocket},
    os::fd::{AsFd, AsRawFd, OwnedFd},
};

use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrIn, SockaddrIn6, bind, listen, setsockopt, socket, sockopt,
};

/// So many connections may wait to be accepted; the kernel lowers it to net.core.somaxconn.
const BACKLOG: i32 = 4096;

/// Finds out whether `address` is free, and which port the kernel chooses where it has none.
///
/// With SO_REUSEPORT alone a second server would silently take a share of the first one's queries.
pub fn claim(kind: SockType, address: SocketAddr) -> io::Result<SocketAddr> {
    let probe = unbound(kind, address)?;
    if kind == SockType::Stream {
        setsockopt(&probe, sockopt::ReuseAddr, &true)?;
    }
    bind_to(&probe, address)?;
    if kind == SockType::Stream { TcpListener::from(probe).local_addr() } else { UdpSocket::from(probe).local_addr() }
}

/// A UDP socket that does not block, with a receive buffer of `receive_bytes` where the system lets us.
pub fn datagrams(address: SocketAddr, receive_bytes: usize) -> io::Result<UdpSocket> {
    let socket = unbound(SockType::Datagram, address)?;
    setsockopt(&socket, sockopt::ReusePort, &true)?;
    // Forced needs CAP_NET_ADMIN; otherwise the kernel lowers it to net.core.rmem_max.
    setsockopt(&socket, sockopt::RcvBufForce, &receive_bytes)
        .or_else(|_| setsockopt(&socket, sockopt::RcvBuf, &receive_bytes))?;
    if address.ip().is_unspecified() {
        tell_destinations(&socket, address)?;
    }
    bind_to(&socket, address)?;
    Ok(socket.into())
}

/// A TCP socket that listens and does not block. Its connections send at once what is written (TCP_NODELAY).
pub fn listener(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = unbound(SockType::Stream, address)?;
    setsockopt(&socket, sockopt::ReuseAddr, &true)?;
    setsockopt(&socket, sockopt::ReusePort, &true)?;
    // Accepted sockets inherit it: one system call less a connection.
    setsockopt(&socket, sockopt::TcpNoDelay, &true)?;
    bind_to(&socket, address)?;
    listen(&socket, Backlog::new(BACKLOG)?)?;
    Ok(socket.into())
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

/// Whether a datagram socket's error is a signal, or an ICMP error that belongs to an earlier answer (ip(7), icmp(7)).
pub fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, HostUnreachable, Interrupted, NetworkUnreachable};
    matches!(error.kind(), Interrupted | ConnectionRefused | HostUnreachable | NetworkUnreachable)
}

fn unbound(kind: SockType, address: SocketAddr) -> io::Result<OwnedFd> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::Inet,
        SocketAddr::V6(_) => AddressFamily::Inet6,
    };
    let socket = socket(family, kind, SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC, None)?;
    if address.is_ipv6() && address.ip().is_unspecified() {
        // Otherwise it would take the place of the one for IPv4, too.
        setsockopt(&socket, sockopt::Ipv6V6Only, &true)?;
    }
    Ok(socket)
}

/// Has datagrams come with the address that they were sent to, so that the answer can leave from there.
fn tell_destinations(socket: &OwnedFd, address: SocketAddr) -> io::Result<()> {
    if address.is_ipv4() {
        return Ok(setsockopt(socket, sockopt::Ipv4PacketInfo, &true)?);
    }
    setsockopt(socket, sockopt::Ipv6RecvPacketInfo, &true)?;
    // Addresses that are this host's by a route alone may be sent from, too (include/uapi/linux/in6.h).
    let (on, bytes) = (1_i32, size_of::<i32>() as libc::socklen_t);
    // SAFETY: the kernel reads `bytes` bytes of `on`, which is so long.
    let result = unsafe {
        libc::setsockopt(socket.as_raw_fd(), libc::IPPROTO_IPV6, libc::IPV6_FREEBIND, (&raw const on).cast(), bytes)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn bind_to(socket: &OwnedFd, address: SocketAddr) -> io::Result<()> {
    let fd = socket.as_raw_fd();
    Ok(match address {
        SocketAddr::V4(address) => bind(fd, &SockaddrIn::from(address)),
        SocketAddr::V6(address) => bind(fd, &SockaddrIn6::from(address)),
    }?)
}
