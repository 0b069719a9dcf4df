//! Where a server listens: each place is claimed once, and then bound by every thread.

use std::{
    io,
    net::{SocketAddr, TcpListener, UdpSocket},
    os::fd::{AsRawFd, OwnedFd},
};

use dnsrig_core::{failure::Failure, open_files};
use dnsrig_net::quic::server::Config;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrIn, SockaddrIn6, bind, listen, setsockopt, socket, sockopt,
};

use super::{connection::Tls, datagrams::Datagrams, options::Options, quic::Quic};

const UDP: &str = "UDP";
const TCP: &str = "TCP";
const QUIC: &str = "DNS over QUIC";

/// The number of ports that are tried to find one that is free for UDP and TCP, if the kernel chooses the port.
const PORTS_TRIED_MAX: u32 = 16;

/// A socket that accepts connections, with TLS if there are settings for it.
pub type Listener = (TcpListener, Option<Tls>);

/// The sockets of one thread.
#[derive(Default)]
pub struct Sockets {
    pub datagrams: Vec<Datagrams>,
    pub listeners: Vec<Listener>,
    pub quic: Vec<Quic>,
}

/// What to listen for.
pub struct Asked {
    /// Where UDP and TCP are; TLS has the same address and a port of its own.
    pub address: SocketAddr,
    pub udp: bool,
    pub tcp: bool,
    /// The port of TLS, if it is wanted.
    pub tls: Option<u16>,
    /// What TLS is for, for people.
    pub tls_name: &'static str,
}

/// Addresses that are free, with their ports.
pub struct Listeners {
    pub udp: Option<SocketAddr>,
    pub tcp: Option<SocketAddr>,
    pub tls: Option<SocketAddr>,
    tls_name: &'static str,
}

impl Listeners {
    /// Claims what is asked for.
    ///
    /// Where the kernel chooses the port of UDP and TCP, it looks only for one that is free for UDP; a port that TCP
    /// cannot have is given back, and another one is tried.
    pub fn claim(asked: &Asked) -> Result<Self, Failure> {
        let mut attempts = if asked.address.port() == 0 { PORTS_TRIED_MAX } else { 1 };
        let (udp, tcp) = loop {
            attempts -= 1;
            let udp = asked.udp.then(|| claim_for(UDP, SockType::Datagram, asked.address)).transpose()?;
            let address = udp.unwrap_or(asked.address);
            match asked.tcp.then(|| claim(SockType::Stream, address)).transpose() {
                Err(error) if attempts > 0 && error.kind() == io::ErrorKind::AddrInUse => {}
                tcp => break (udp, tcp.map_err(|error| failed(address, TCP, &error))?),
            }
        };
        let over_tls = |port| claim_for(asked.tls_name, SockType::Stream, SocketAddr::new(asked.address.ip(), port));
        Ok(Listeners { udp, tcp, tls: asked.tls.map(over_tls).transpose()?, tls_name: asked.tls_name })
    }

    /// Binds the sockets of all threads, for TLS with the settings `tls`. Each UDP socket has a receive buffer of
    /// `receive_bytes`, and answers leave it segmented or not.
    pub fn bind(
        &self,
        options: &Options,
        tls: Option<&Tls>,
        receive_bytes: usize,
        segmentation: bool,
    ) -> Result<Vec<Sockets>, Failure> {
        let threads = options.threads();
        if self.tcp.is_some() || self.tls.is_some() {
            let files = open_files::of_threads(threads) + u64::from(options.connections_max);
            open_files::allow(files, "--connections-max")?;
        }
        let of_thread = |_| {
            let datagrams = self.datagrams(receive_bytes)?.map(|socket| Datagrams::new(socket, segmentation));
            let (datagrams, listeners) = (datagrams.into_iter().collect(), self.listeners(tls)?);
            Ok(Sockets { datagrams, listeners, quic: Vec::new() })
        };
        (0..threads).map(of_thread).collect()
    }

    /// One more socket for UDP, where it was asked for.
    fn datagrams(&self, receive_bytes: usize) -> Result<Option<UdpSocket>, Failure> {
        let bind = |address| datagrams(address, receive_bytes).map_err(|error| failed(address, UDP, &error));
        self.udp.map(bind).transpose()
    }

    /// One more socket for TCP, and one for TLS with the settings `tls`, as far as they were asked for.
    fn listeners(&self, tls: Option<&Tls>) -> Result<Vec<Listener>, Failure> {
        let kinds = [(self.tcp, TCP, None), (self.tls, self.tls_name, tls)];
        let asked = kinds.into_iter().filter_map(|(address, name, tls)| Some((address?, name, tls)));
        let bound = asked.map(|(address, name, tls)| {
            let listener = listener(address).map_err(|error| failed(address, name, &error))?;
            Ok((listener, tls.cloned()))
        });
        bound.collect()
    }
}

/// Claims an address for DNS over QUIC.
pub fn claim_quic(address: SocketAddr) -> Result<SocketAddr, Failure> {
    claim_for(QUIC, SockType::Datagram, address)
}

/// Adds a socket for DNS over QUIC to the sockets of each thread.
pub fn bind_quic(
    sockets: &mut [Sockets],
    address: SocketAddr,
    config: &Config,
    receive_bytes: usize,
) -> Result<(), Failure> {
    for thread in sockets {
        let socket = datagrams(address, receive_bytes).map_err(|error| failed(address, QUIC, &error))?;
        thread.quic.push(Quic::new(socket, config, true));
    }
    Ok(())
}

fn claim_for(transport: &str, kind: SockType, address: SocketAddr) -> Result<SocketAddr, Failure> {
    claim(kind, address).map_err(|error| failed(address, transport, &error))
}

/// A socket could not be bound.
fn failed(address: SocketAddr, transport: &str, error: &io::Error) -> Failure {
    let hint = match error.kind() {
        io::ErrorKind::AddrInUse => "another server uses this address: stop it, or give another port".into(),
        io::ErrorKind::PermissionDenied => {
            "only root may use ports below 1024: give other ports (ADDRESS:PORT, and a port for TLS)".into()
        }
        _ => format!("see `ip address`: run this on a host that has {}", address.ip()),
    };
    Failure::new(format!("cannot listen on {address} ({transport}): {error}"), hint)
}

/// The most connections that wait to be accepted; the kernel lowers it to net.core.somaxconn.
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

#[cfg(test)]
mod tests {
    use nix::sys::socket::getsockopt;

    use super::*;

    #[test]
    fn any_address_of_ipv6_leaves_ipv4_alone() {
        for kind in [SockType::Datagram, SockType::Stream] {
            let socket = unbound(kind, "[::]:0".parse().unwrap()).unwrap();
            assert!(getsockopt(&socket, sockopt::Ipv6V6Only).unwrap(), "{kind:?}");
        }
    }

    #[test]
    fn a_port_that_is_taken_is_not_claimed() {
        for kind in [SockType::Datagram, SockType::Stream] {
            let free = claim(kind, "127.0.0.1:0".parse().unwrap()).unwrap();
            assert_ne!(free.port(), 0);
        }
        let (udp, tcp) = (UdpSocket::bind("127.0.0.1:0").unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
        let taken = [(SockType::Datagram, udp.local_addr()), (SockType::Stream, tcp.local_addr())];
        for (kind, address) in taken {
            assert_eq!(claim(kind, address.unwrap()).unwrap_err().kind(), io::ErrorKind::AddrInUse, "{kind:?}");
        }
    }
}
