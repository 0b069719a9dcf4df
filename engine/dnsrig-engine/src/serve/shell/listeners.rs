//! Where a server listens: each place is claimed once, and then bound by every thread.

use std::{
    io,
    net::{SocketAddr, TcpListener, UdpSocket},
    sync::Arc,
};

use nix::sys::socket::SockType;
use rustls::ServerConfig;

use super::{datagrams::Datagrams, options::Options, sockets};
use crate::base::{failure::Failure, open_files};

const UDP: &str = "UDP";
const TCP: &str = "TCP";

/// So many ports of the kernel's choice are tried for one that UDP and TCP both can have.
const PORTS_TRIED_MAX: u32 = 16;

/// A socket that accepts connections, with TLS if there are settings for it.
pub type Listener = (TcpListener, Option<Arc<ServerConfig>>);

/// The sockets of one thread.
#[derive(Default)]
pub struct Sockets {
    pub datagrams: Vec<Datagrams>,
    pub listeners: Vec<Listener>,
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
            let udp = asked.udp.then(|| claim(SockType::Datagram, asked.address, UDP)).transpose()?;
            let address = udp.unwrap_or(asked.address);
            match asked.tcp.then(|| sockets::claim(SockType::Stream, address)).transpose() {
                Err(error) if attempts > 0 && error.kind() == io::ErrorKind::AddrInUse => {}
                tcp => break (udp, tcp.map_err(|error| failed(address, TCP, &error))?),
            }
        };
        let over_tls = |port| claim(SockType::Stream, SocketAddr::new(asked.address.ip(), port), asked.tls_name);
        Ok(Listeners { udp, tcp, tls: asked.tls.map(over_tls).transpose()?, tls_name: asked.tls_name })
    }

    /// Binds the sockets of all threads, for TLS with `config`. Each UDP socket has a receive buffer of so many bytes,
    /// and answers leave it segmented or not.
    pub fn bind(
        &self,
        options: &Options,
        config: Option<&Arc<ServerConfig>>,
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
            Ok(Sockets { datagrams: datagrams.into_iter().collect(), listeners: self.listeners(config)? })
        };
        (0..threads).map(of_thread).collect()
    }

    /// One more socket for UDP, where it was asked for.
    fn datagrams(&self, receive_bytes: usize) -> Result<Option<UdpSocket>, Failure> {
        let bind = |address| sockets::datagrams(address, receive_bytes).map_err(|error| failed(address, UDP, &error));
        self.udp.map(bind).transpose()
    }

    /// One more socket for TCP, and one for TLS with `config`, as far as they were asked for.
    fn listeners(&self, config: Option<&Arc<ServerConfig>>) -> Result<Vec<Listener>, Failure> {
        let kinds = [(self.tcp, TCP, None), (self.tls, self.tls_name, config)];
        let asked = kinds.into_iter().filter_map(|(address, name, config)| Some((address?, name, config)));
        let bound = asked.map(|(address, name, config)| {
            let listener = sockets::listener(address).map_err(|error| failed(address, name, &error))?;
            Ok((listener, config.cloned()))
        });
        bound.collect()
    }
}

fn claim(kind: SockType, address: SocketAddr, transport: &'static str) -> Result<SocketAddr, Failure> {
    sockets::claim(kind, address).map_err(|error| failed(address, transport, &error))
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
