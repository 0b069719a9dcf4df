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

/// So many ports of the kernel's choice are tried for one that UDP and TCP both can have.
const PORTS_TRIED_MAX: u32 = 16;

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

/// What could not be claimed: for UDP or TCP, which address, and why.
pub type Unclaimed = (SockType, SocketAddr, io::Error);

/// Claims one address for UDP and for TCP, whichever of them are wanted.
///
/// Where the kernel chooses the port, it looks only for one that is free for UDP; a port that TCP cannot have is given
/// back, and another one is tried.
pub fn claim_for_both(
    address: SocketAddr,
    udp: bool,
    tcp: bool,
) -> Result<(Option<SocketAddr>, Option<SocketAddr>), Unclaimed> {
    let claim = |wanted: bool, kind, address| {
        wanted.then(|| claim(kind, address)).transpose().map_err(|error| (kind, address, error))
    };
    let mut attempts = if address.port() == 0 { PORTS_TRIED_MAX } else { 1 };
    loop {
        attempts -= 1;
        let for_udp = claim(udp, SockType::Datagram, address)?;
        match claim(tcp, SockType::Stream, for_udp.unwrap_or(address)) {
            Err((_, _, error)) if attempts > 0 && error.kind() == io::ErrorKind::AddrInUse => {}
            for_tcp => return Ok((for_udp, for_tcp?)),
        }
    }
}

/// A UDP socket that does not block, with a receive buffer of `receive_octets` where the system lets us.
pub fn datagrams(address: SocketAddr, receive_octets: usize) -> io::Result<UdpSocket> {
    let socket = unbound(SockType::Datagram, address)?;
    setsockopt(&socket, sockopt::ReusePort, &true)?;
    // Forced needs CAP_NET_ADMIN; otherwise the kernel lowers it to net.core.rmem_max.
    setsockopt(&socket, sockopt::RcvBufForce, &receive_octets)
        .or_else(|_| setsockopt(&socket, sockopt::RcvBuf, &receive_octets))?;
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
    let mut octets = size_of_val(&values) as libc::socklen_t;
    let fd = socket.as_fd().as_raw_fd();
    let result = unsafe {
        libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_MEMINFO, values.as_mut_ptr().cast(), &raw mut octets)
    };
    (result == 0 && octets as usize == size_of_val(&values)).then(|| values[DROPS].into())
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
    Ok(socket(family, kind, SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC, None)?)
}

fn bind_to(socket: &OwnedFd, address: SocketAddr) -> io::Result<()> {
    let fd = socket.as_raw_fd();
    Ok(match address {
        SocketAddr::V4(address) => bind(fd, &SockaddrIn::from(address)),
        SocketAddr::V6(address) => bind(fd, &SockaddrIn6::from(address)),
    }?)
}
