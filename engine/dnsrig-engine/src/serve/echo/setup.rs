//! What is bound before any thread runs: sockets, TLS, the limit on open files.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use nix::sys::{
    resource::{Resource, getrlimit, setrlimit},
    socket::SockType,
};
use rustls::ServerConfig;
use serde::Serialize;

use crate::{
    failure::Failure,
    serve::{sockets, tls},
};

use super::{
    datagrams::Datagrams,
    error::EchoError,
    options::{Arguments, Transport},
    streams::Limits,
    worker::Listener,
};

/// Open files besides connections: standard ones, events, and per thread a poller and three sockets.
const FILES_SPARE: u64 = 64;
const FILES_PER_THREAD: u64 = 4;

/// So many ports of the kernel's choice are tried for one that UDP and TCP both can have.
const PORTS_TRIED_MAX: u32 = 16;

/// Where the echo listens, for the `ready` event.
#[derive(Serialize)]
pub struct Bound {
    udp: Option<SocketAddr>,
    tcp: Option<SocketAddr>,
    dot: Option<SocketAddr>,
    /// For the connections of all threads.
    #[serde(skip)]
    pub limits: Limits,
}

/// The sockets of one thread.
pub struct Sockets {
    /// For UDP.
    pub datagrams: Option<Datagrams>,
    /// For TCP and DNS over TLS.
    pub listeners: Vec<Listener>,
}

/// Binds the sockets of all threads.
pub fn bind(arguments: &Arguments) -> Result<(Bound, Vec<Sockets>), Failure> {
    let threads = arguments.threads();
    let (udp, tcp) = claim_plain(arguments)?;
    let dot = claim(arguments, Transport::Dot, SocketAddr::new(arguments.address.ip(), arguments.dot_port))?;
    let config = dot.map(|address| server_config(arguments, address.ip())).transpose()?;
    let limits = Limits::new(arguments.connections_max, arguments.idle_timeout);
    if tcp.is_some() || dot.is_some() {
        allow_files(arguments.connections_max as u64 + threads as u64 * FILES_PER_THREAD + FILES_SPARE)?;
    }
    let bound = Bound { udp, tcp, dot, limits };
    let sockets = (0..threads).map(|_| bound.sockets(arguments, config.as_ref())).collect::<Result<_, _>>()?;
    Ok((bound, sockets))
}

impl Bound {
    fn sockets(&self, arguments: &Arguments, config: Option<&Arc<ServerConfig>>) -> Result<Sockets, EchoError> {
        let datagrams = self.udp.map(|address| {
            let socket = sockets::datagrams(address, arguments.receive_buffer_octets as usize);
            let socket = socket.map_err(|error| failed(Transport::Udp, address, error))?;
            Ok::<_, EchoError>(Datagrams::new(socket, arguments.segmentation))
        });
        let listener = |transport, address: Option<SocketAddr>| {
            address.map(|address| sockets::listener(address).map_err(|error| failed(transport, address, error)))
        };
        let tcp = listener(Transport::Tcp, self.tcp).transpose()?.map(|listener| (listener, None));
        let dot = listener(Transport::Dot, self.dot).transpose()?.map(|listener| (listener, config.cloned()));
        Ok(Sockets { datagrams: datagrams.transpose()?, listeners: tcp.into_iter().chain(dot).collect() })
    }
}

/// Where UDP and TCP listen: on one port, also where the kernel chooses it. It looks only for one that is free for UDP,
/// so a port that TCP cannot have is given back, and another one is tried.
fn claim_plain(arguments: &Arguments) -> Result<(Option<SocketAddr>, Option<SocketAddr>), EchoError> {
    let mut attempts = if arguments.address.port() == 0 { PORTS_TRIED_MAX } else { 1 };
    loop {
        attempts -= 1;
        let udp = claim(arguments, Transport::Udp, arguments.address)?;
        match claim(arguments, Transport::Tcp, udp.unwrap_or(arguments.address)) {
            Err(EchoError::Bind { reason, .. }) if attempts > 0 && reason.kind() == io::ErrorKind::AddrInUse => {}
            tcp => return Ok((udp, tcp?)),
        }
    }
}

/// Where `transport` is to listen, if it is asked for.
fn claim(arguments: &Arguments, transport: Transport, address: SocketAddr) -> Result<Option<SocketAddr>, EchoError> {
    if !arguments.transport.contains(&transport) {
        return Ok(None);
    }
    let kind = if transport == Transport::Udp { SockType::Datagram } else { SockType::Stream };
    sockets::claim(kind, address).map(Some).map_err(|error| failed(transport, address, error))
}

fn failed(transport: Transport, address: SocketAddr, reason: io::Error) -> EchoError {
    EchoError::Bind { address, transport: transport.name(), reason }
}

fn server_config(arguments: &Arguments, address: IpAddr) -> Result<Arc<ServerConfig>, tls::TlsError> {
    tls::server_config(match (&arguments.certificate, &arguments.key) {
        (Some(certificate), Some(key)) => tls::read_identity(certificate, key)?,
        _ => tls::make_identity(address)?,
    })
}

/// Raises the limit on open files to `asked`, if it is lower.
fn allow_files(asked: u64) -> Result<(), EchoError> {
    let system = |error: nix::Error| EchoError::System("raise the limit on open files", error.into());
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(system)?;
    if asked > hard {
        return Err(EchoError::Files { asked, limit: hard });
    }
    if asked > soft { setrlimit(Resource::RLIMIT_NOFILE, asked, hard).map_err(system) } else { Ok(()) }
}
