//! Where a server listens: each place is claimed once, and then bound by every thread.

use std::{
    io,
    net::{SocketAddr, TcpListener, UdpSocket},
    sync::Arc,
};

use nix::sys::{epoll::EpollFlags, socket::SockType};
use rustls::ServerConfig;

use super::{error::ServeError, sockets};
use crate::net::poller::Poller;

const UDP: &str = "UDP";
const TCP: &str = "TCP";

/// So many ports of the kernel's choice are tried for one that UDP and TCP both can have.
const PORTS_TRIED_MAX: u32 = 16;

/// A socket that accepts connections, with TLS if there are settings for it.
pub type Listener = (TcpListener, Option<Arc<ServerConfig>>);

/// Has `poller` tell of connections that wait at these listeners, by numbers from `first` down.
pub fn listen(listeners: &[Listener], first: u64, poller: &Poller) -> io::Result<()> {
    (0..=first)
        .rev()
        .zip(listeners)
        .try_for_each(|(number, (listener, _))| poller.change(listener, EpollFlags::EPOLLIN, number))
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
    /// Where the kernel chooses the port of UDP and TCP, it looks only for one that is free for UDP; a port that TCP cannot
    /// have is given back, and another one is tried.
    pub fn claim(asked: &Asked) -> Result<Self, ServeError> {
        let mut attempts = if asked.address.port() == 0 { PORTS_TRIED_MAX } else { 1 };
        let (udp, tcp) = loop {
            attempts -= 1;
            let udp = asked.udp.then(|| claim(SockType::Datagram, asked.address, UDP)).transpose()?;
            let address = udp.unwrap_or(asked.address);
            match asked.tcp.then(|| claim(SockType::Stream, address, TCP)).transpose() {
                Err(ServeError::Bind { reason, .. }) if attempts > 0 && reason.kind() == io::ErrorKind::AddrInUse => {}
                tcp => break (udp, tcp?),
            }
        };
        let over_tls = |port| claim(SockType::Stream, SocketAddr::new(asked.address.ip(), port), asked.tls_name);
        Ok(Listeners { udp, tcp, tls: asked.tls.map(over_tls).transpose()?, tls_name: asked.tls_name })
    }

    /// Whether there are connections to come.
    pub fn has_streams(&self) -> bool {
        self.tcp.is_some() || self.tls.is_some()
    }

    /// One more socket for UDP, where it was asked for.
    pub fn datagrams(&self, receive_octets: usize) -> Result<Option<UdpSocket>, ServeError> {
        let bind = |address| sockets::datagrams(address, receive_octets).map_err(|error| failed(address, UDP, error));
        self.udp.map(bind).transpose()
    }

    /// One more socket for TCP, and one for TLS with `config`, as far as they were asked for.
    pub fn listeners(&self, config: Option<&Arc<ServerConfig>>) -> Result<Vec<Listener>, ServeError> {
        let kinds = [(self.tcp, TCP, None), (self.tls, self.tls_name, config)];
        let asked = kinds.into_iter().filter_map(|(address, name, config)| Some((address?, name, config)));
        let bound = asked.map(|(address, name, config)| {
            let listener = sockets::listener(address).map_err(|error| failed(address, name, error))?;
            Ok((listener, config.cloned()))
        });
        bound.collect()
    }
}

fn claim(kind: SockType, address: SocketAddr, transport: &'static str) -> Result<SocketAddr, ServeError> {
    sockets::claim(kind, address).map_err(|error| failed(address, transport, error))
}

fn failed(address: SocketAddr, transport: &'static str, reason: io::Error) -> ServeError {
    ServeError::Bind { address, transport, reason }
}
