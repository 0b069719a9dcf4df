//! What is bound before any thread runs: sockets, TLS, the limit on open files.

use std::net::SocketAddr;

use serde::Serialize;

use super::{
    datagrams::Datagrams,
    options::{Arguments, Transport},
    worker::Sockets,
};
use crate::{
    base::{failure::Failure, open_files},
    net::{
        connection::limits::Limits,
        tls::{DOT, identity},
    },
    serve::{
        error::ServeError,
        listeners::{Asked, Listeners},
    },
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
    let listeners = Listeners::claim(&Asked {
        address: arguments.address,
        udp: asked(Transport::Udp),
        tcp: asked(Transport::Tcp),
        tls: asked(Transport::Dot).then_some(arguments.dot_port),
        tls_name: "DNS over TLS",
    })?;
    let identity = |address: SocketAddr| {
        identity::identity(arguments.certificate.as_ref().zip(arguments.key.as_ref()), address.ip())
    };
    let config = listeners.tls.map(|address| identity::server_config(identity(address)?, DOT, None)).transpose()?;
    if listeners.has_streams() {
        open_files::allow(open_files::of_threads(threads) + u64::from(arguments.connections_max), "--connections-max")?;
    }
    let of_thread = |_| {
        let datagrams = listeners.datagrams(arguments.receive_buffer_octets as usize)?;
        let datagrams = datagrams.map(|socket| Datagrams::new(socket, arguments.segmentation));
        Ok::<_, ServeError>(Sockets { datagrams, listeners: listeners.listeners(config.as_ref())? })
    };
    let sockets = (0..threads).map(of_thread).collect::<Result<_, _>>()?;
    let limits = Limits::new(arguments.connections_max, arguments.idle_timeout);
    Ok((Bound { udp: listeners.udp, tcp: listeners.tcp, dot: listeners.tls, limits }, sockets))
}
