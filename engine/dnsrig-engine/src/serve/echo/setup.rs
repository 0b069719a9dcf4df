//! What is bound before any thread runs: sockets, TLS, the limit on open files.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use nix::sys::socket::SockType;
use rustls::ServerConfig;
use serde::Serialize;

use crate::{
    failure::Failure,
    serve::{
        error::ServeError,
        limits::{Limits, allow_files},
        sockets, tls,
    },
};

use super::{
    datagrams::Datagrams,
    options::{Arguments, Transport},
    worker::Sockets,
};

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

/// Binds the sockets of all threads.
pub fn bind(arguments: &Arguments) -> Result<(Bound, Vec<Sockets>), Failure> {
    let threads = arguments.threads();
    let asked = |transport| arguments.transport.contains(&transport);
    let both = sockets::claim_for_both(arguments.address, asked(Transport::Udp), asked(Transport::Tcp));
    let (udp, tcp) = both.map_err(|(kind, address, error)| {
        failed(if kind == SockType::Datagram { Transport::Udp } else { Transport::Tcp }, address, error)
    })?;
    let over_tls = SocketAddr::new(arguments.address.ip(), arguments.dot_port);
    let dot = asked(Transport::Dot).then(|| sockets::claim(SockType::Stream, over_tls)).transpose();
    let dot = dot.map_err(|error| failed(Transport::Dot, over_tls, error))?;
    let config = dot.map(|address| server_config(arguments, address.ip())).transpose()?;
    let limits = Limits::new(arguments.connections_max, arguments.idle_timeout);
    if tcp.is_some() || dot.is_some() {
        allow_files(arguments.connections_max, threads)?;
    }
    let bound = Bound { udp, tcp, dot, limits };
    let sockets = (0..threads).map(|_| bound.sockets(arguments, config.as_ref())).collect::<Result<_, _>>()?;
    Ok((bound, sockets))
}

impl Bound {
    fn sockets(&self, arguments: &Arguments, config: Option<&Arc<ServerConfig>>) -> Result<Sockets, ServeError> {
        let datagrams = self.udp.map(|address| {
            let socket = sockets::datagrams(address, arguments.receive_buffer_octets as usize);
            let socket = socket.map_err(|error| failed(Transport::Udp, address, error))?;
            Ok::<_, ServeError>(Datagrams::new(socket, arguments.segmentation))
        });
        let listener = |transport, address: Option<SocketAddr>| {
            address.map(|address| sockets::listener(address).map_err(|error| failed(transport, address, error)))
        };
        let tcp = listener(Transport::Tcp, self.tcp).transpose()?.map(|listener| (listener, None));
        let dot = listener(Transport::Dot, self.dot).transpose()?.map(|listener| (listener, config.cloned()));
        Ok(Sockets { datagrams: datagrams.transpose()?, listeners: tcp.into_iter().chain(dot).collect() })
    }
}

fn failed(transport: Transport, address: SocketAddr, reason: io::Error) -> ServeError {
    ServeError::Bind { address, transport: transport.name(), reason }
}

fn server_config(arguments: &Arguments, address: IpAddr) -> Result<Arc<ServerConfig>, tls::TlsError> {
    tls::server_config(match (&arguments.certificate, &arguments.key) {
        (Some(certificate), Some(key)) => tls::read_identity(certificate, key)?,
        _ => tls::make_identity(address)?,
    })
}
