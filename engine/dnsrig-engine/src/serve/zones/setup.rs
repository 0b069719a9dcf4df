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
    serve::{error::ServeError, limits::allow_files, sockets, tls},
};

use super::{
    datagrams::{Datagrams, RECEIVE_BUFFER_OCTETS},
    faults::Fault,
    options::{Arguments, Transport},
    worker::Listener,
};

/// Where the primary listens, for the `ready` event.
#[derive(Serialize)]
pub struct Bound {
    udp: Option<SocketAddr>,
    tcp: Option<SocketAddr>,
    xot: Option<SocketAddr>,
}

/// The sockets of one thread.
pub type Sockets = (Option<Datagrams>, Vec<Listener>);

/// Binds the sockets of all threads.
pub fn bind(arguments: &Arguments) -> Result<(Bound, Vec<Sockets>), Failure> {
    let threads = arguments.threads();
    let asked = |transport| arguments.transport.contains(&transport);
    let both = sockets::claim_for_both(arguments.address, asked(Transport::Udp), asked(Transport::Tcp));
    let (udp, tcp) = both.map_err(|(kind, address, error)| {
        failed(if kind == SockType::Datagram { Transport::Udp } else { Transport::Tcp }, address, error)
    })?;
    let over_tls = SocketAddr::new(arguments.address.ip(), arguments.xot_port);
    let xot = asked(Transport::Xot).then(|| sockets::claim(SockType::Stream, over_tls)).transpose();
    let xot = xot.map_err(|error| failed(Transport::Xot, over_tls, error))?;
    let config = xot.map(|address| server_config(arguments, address.ip())).transpose()?;
    if tcp.is_some() || xot.is_some() {
        allow_files(arguments.connections_max, threads)?;
    }
    let bound = Bound { udp, tcp, xot };
    let sockets = (0..threads).map(|_| bound.sockets(config.as_ref())).collect::<Result<_, _>>()?;
    Ok((bound, sockets))
}

impl Bound {
    fn sockets(&self, config: Option<&Arc<ServerConfig>>) -> Result<Sockets, ServeError> {
        let datagrams = self.udp.map(|address| {
            let socket = sockets::datagrams(address, RECEIVE_BUFFER_OCTETS);
            socket.map(Datagrams::new).map_err(|error| failed(Transport::Udp, address, error))
        });
        let listener = |transport, address: Option<SocketAddr>| {
            address.map(|address| sockets::listener(address).map_err(|error| failed(transport, address, error)))
        };
        let tcp = listener(Transport::Tcp, self.tcp).transpose()?.map(|listener| (listener, None));
        let xot = listener(Transport::Xot, self.xot).transpose()?.map(|listener| (listener, config.cloned()));
        Ok((datagrams.transpose()?, tcp.into_iter().chain(xot).collect()))
    }
}

fn failed(transport: Transport, address: SocketAddr, reason: io::Error) -> ServeError {
    let transport = match transport {
        Transport::Udp => "UDP",
        Transport::Tcp => "TCP",
        Transport::Xot => "zone transfer over TLS",
    };
    ServeError::Bind { address, transport, reason }
}

fn server_config(arguments: &Arguments, address: IpAddr) -> Result<Arc<ServerConfig>, tls::TlsError> {
    let identity = match (&arguments.certificate, &arguments.key) {
        (Some(certificate), Some(key)) => tls::read_identity(certificate, key)?,
        _ => tls::make_identity(address)?,
    };
    let config = tls::xot_config(identity, arguments.client_ca.as_ref())?;
    Ok(if arguments.fault.contains(&Fault::NoTickets) { tls::without_tickets(&config) } else { config })
}
