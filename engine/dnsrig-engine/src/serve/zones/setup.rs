//! What is bound before any thread runs: sockets, TLS, the limit on open files.

use std::{net::SocketAddr, sync::Arc};

use rustls::ServerConfig;
use serde::Serialize;

use super::{
    datagrams::{Datagrams, RECEIVE_BUFFER_OCTETS},
    faults::Fault,
    options::{Arguments, Transport},
};
use crate::{
    base::{failure::Failure, open_files},
    net::tls::{XOT, identity},
    serve::{
        error::ServeError,
        listeners::{Asked, Listener, Listeners},
    },
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
    let listeners = Listeners::claim(&Asked {
        address: arguments.address,
        udp: asked(Transport::Udp),
        tcp: asked(Transport::Tcp),
        tls: asked(Transport::Xot).then_some(arguments.xot_port),
        tls_name: "zone transfer over TLS",
    })?;
    let config = listeners.tls.map(|address| server_config(arguments, address)).transpose()?;
    if listeners.has_streams() {
        open_files::allow(open_files::of_threads(threads) + u64::from(arguments.connections_max), "--connections-max")?;
    }
    let of_thread = |_| {
        let datagrams = listeners.datagrams(RECEIVE_BUFFER_OCTETS)?.map(Datagrams::new);
        Ok::<_, ServeError>((datagrams, listeners.listeners(config.as_ref())?))
    };
    let sockets = (0..threads).map(of_thread).collect::<Result<_, _>>()?;
    Ok((Bound { udp: listeners.udp, tcp: listeners.tcp, xot: listeners.tls }, sockets))
}

fn server_config(arguments: &Arguments, address: SocketAddr) -> Result<Arc<ServerConfig>, identity::TlsError> {
    let identity = identity::identity(arguments.certificate.as_ref().zip(arguments.key.as_ref()), address.ip())?;
    let config = identity::server_config(identity, XOT, arguments.client_ca.as_ref())?;
    Ok(if arguments.fault.contains(&Fault::NoTickets) { identity::without_tickets(&config) } else { config })
}
