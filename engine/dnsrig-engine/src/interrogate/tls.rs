//! TLS as the checks want it: with ALPN or without, and with sight of the tickets that a server gives.
//!
//! The server's identity is checked only if the caller wants it: the question is what the server does.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rustls::{
    ClientConfig, NamedGroup,
    client::{ClientSessionStore, Resumption, Tls12ClientSessionValue, Tls13ClientSessionValue},
    pki_types::ServerName,
};

use crate::net::tls::Client;

/// Tickets that are kept, at most: the newest.
const TICKETS_MAX: usize = 8;

/// How connections with TLS are set up.
#[derive(Clone)]
pub struct Tls(Client);

impl Tls {
    /// TLS as `client` has it.
    pub fn new(client: Client) -> Self {
        Tls(client)
    }

    /// The server's name.
    pub fn name(&self) -> ServerName<'static> {
        self.0.name().clone()
    }

    /// A configuration that offers these protocols (ALPN), and keeps sessions in `sessions`, if given, which all
    /// configurations may resume.
    pub fn config(&self, alpn: &[&str], sessions: Option<&Arc<Sessions>>) -> Arc<ClientConfig> {
        let mut config = ClientConfig::clone(self.0.config());
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        if let Some(sessions) = sessions {
            config.resumption = Resumption::store(sessions.clone());
            config.enable_early_data = true;
        }
        Arc::new(config)
    }
}

/// The sessions that a server gives for later connections.
#[derive(Default)]
pub struct Sessions(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    group: Option<NamedGroup>,
    session: Option<Tls12ClientSessionValue>,
    tickets: Vec<Tls13ClientSessionValue>,
    received: u32,
    early_data_bytes: u32,
}

impl Sessions {
    /// How many sessions or tickets came.
    pub fn received(&self) -> u32 {
        self.kept().received
    }

    /// How much early data the server said to take, at most; 0: none.
    pub fn early_data_bytes(&self) -> u32 {
        self.kept().early_data_bytes
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Leaves out the sessions, which are secret.
impl fmt::Debug for Sessions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Sessions").field("received", &self.received()).finish_non_exhaustive()
    }
}

impl ClientSessionStore for Sessions {
    fn set_kx_hint(&self, _server: ServerName<'static>, group: NamedGroup) {
        self.kept().group = Some(group);
    }

    fn kx_hint(&self, _server: &ServerName<'_>) -> Option<NamedGroup> {
        self.kept().group
    }

    fn set_tls12_session(&self, _server: ServerName<'static>, session: Tls12ClientSessionValue) {
        let mut kept = self.kept();
        kept.received += 1;
        kept.session = Some(session);
    }

    fn tls12_session(&self, _server: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.kept().session.clone()
    }

    fn remove_tls12_session(&self, _server: &ServerName<'static>) {
        self.kept().session = None;
    }

    fn insert_tls13_ticket(&self, _server: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        let mut kept = self.kept();
        kept.received += 1;
        kept.early_data_bytes = kept.early_data_bytes.max(ticket.max_early_data_size());
        if kept.tickets.len() == TICKETS_MAX {
            kept.tickets.remove(0);
        }
        kept.tickets.push(ticket);
    }

    fn take_tls13_ticket(&self, _server: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.kept().tickets.pop()
    }
}
