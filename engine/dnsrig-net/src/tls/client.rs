//! How the client's side of TLS is set up, and the sessions that a server lets it resume (RFC 8446 §2.2, RFC 5077).

use std::{
    collections::VecDeque,
    fmt,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
};

use dnsrig_core::failure::Failure;
use rustls::{
    ClientConfig, NamedGroup,
    client::{ClientSessionStore, Resumption, Tls12ClientSessionValue, Tls13ClientSessionValue},
    crypto::ring,
    pki_types::ServerName,
};

use super::{Protocol, Trust, identity::Identity, trust::verifier};

/// How a client sets up TLS: its protocol, the certificates that it trusts, its own certificate, and its requirements.
#[derive(Debug, Default)]
pub struct Settings {
    pub protocol: Protocol,
    pub trust: Trust,
    /// The server's name: it is sent (SNI), and a certificate must be for it if an authority vouches. None: its
    /// address.
    pub name: Option<ServerName<'static>>,
    /// The client's own certificate and key, for servers that ask (mutual TLS, RFC 9103 §9.3.2).
    pub identity: Option<Identity>,
    /// The server must agree on the protocol by its name, as in RFC 9103 §7.1. Otherwise a server that agrees on
    /// nothing is accepted as well.
    pub alpn_required: bool,
    /// The number of sessions that are kept to be resumed. With 0, no session is resumed.
    pub sessions_max: usize,
    /// Queries may go with the first flight of a resumed session (RFC 8446 §2.3), if its ticket permits it. A copy of
    /// that flight asks them again (RFC 8446 §8).
    pub early_data: bool,
}

impl Settings {
    /// A copy.
    pub fn again(&self) -> Self {
        let identity = self.identity.as_ref().map(|(chain, key)| (chain.clone(), key.clone_key()));
        Settings { identity, name: self.name.clone(), trust: self.trust.clone(), ..*self }
    }
}

/// A client of one server: its connections share the sessions that the server lets them resume.
#[derive(Clone, Debug)]
pub struct Client {
    pub(super) config: Arc<ClientConfig>,
    pub(super) name: ServerName<'static>,
    /// The protocol that the server must agree on; None: any.
    pub(super) alpn_required: Option<&'static [u8]>,
    /// The sessions to resume; None if no session is kept.
    sessions: Option<Arc<Sessions>>,
}

impl Client {
    /// A client of the server at this address.
    pub fn new(server: IpAddr, settings: Settings) -> Result<Self, Failure> {
        let Settings { protocol, trust, name, identity, alpn_required, sessions_max, early_data } = settings;
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(protocol.versions)
            .map_err(|error| {
                Failure::bad_input(format!("cannot set up TLS: {error}"), "check the TLS versions that you asked for")
            })?
            .dangerous()
            .with_custom_certificate_verifier(verifier(trust, provider)?);
        let mut config = match identity {
            Some((chain, key)) => builder.with_client_auth_cert(chain, key).map_err(|error| {
                Failure::bad_input(
                    format!("cannot use the client's certificate with its key: {error}"),
                    "give PEM files that belong together, with the client's own certificate first",
                )
            })?,
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = vec![protocol.alpn.to_vec()];
        config.enable_early_data = early_data;
        let sessions = (sessions_max > 0).then(|| Arc::new(Sessions::new(sessions_max)));
        config.resumption = resumption(sessions.as_ref());
        let alpn_required = alpn_required.then_some(protocol.alpn);
        let name = name.unwrap_or(ServerName::from(server));
        Ok(Client { config: Arc::new(config), name, alpn_required, sessions })
    }

    /// Another client of the same server, with as much room for sessions of its own.
    pub fn another(&self) -> Self {
        let mut config = ClientConfig::clone(&self.config);
        let sessions = self.sessions.as_ref().map(|sessions| Arc::new(Sessions::new(sessions.tickets_max)));
        config.resumption = resumption(sessions.as_ref());
        Client { config: Arc::new(config), sessions, ..self.clone() }
    }

    /// A client of the same server that offers other protocols (ALPN). With `sessions`, it resumes these, and may send
    /// early data.
    pub fn offering(&self, alpn: &[&str], sessions: Option<&Arc<Sessions>>) -> Self {
        let mut config = ClientConfig::clone(&self.config);
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        let mut client = Client { alpn_required: None, ..self.clone() };
        if let Some(sessions) = sessions {
            config.resumption = resumption(Some(sessions));
            config.enable_early_data = true;
            client.sessions = Some(sessions.clone());
        }
        client.config = Arc::new(config);
        client
    }

    /// Its settings in the library, which tests compare.
    pub fn config(&self) -> &Arc<ClientConfig> {
        &self.config
    }

    /// The server's name, or its address.
    pub(crate) fn name(&self) -> String {
        self.name.to_str().into_owned()
    }

    /// How many bytes of early data the session permits that was taken last to be resumed; 0 if none is to be sent.
    pub(super) fn early_bytes_max(&self) -> usize {
        let sessions = self.sessions.as_ref().filter(|_| self.config.enable_early_data);
        sessions.map_or(0, |sessions| sessions.with(|kept| kept.early_bytes_max as usize))
    }
}

fn resumption(sessions: Option<&Arc<Sessions>>) -> Resumption {
    sessions.map_or_else(Resumption::disabled, |sessions| Resumption::store(sessions.clone()))
}

/// The sessions of one server. The store that rustls has keeps eight tickets a server, which many connections at a time
/// use up.
pub struct Sessions {
    tickets_max: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// The group in which the server exchanges keys, so that the first attempt fits.
    group: Option<NamedGroup>,
    session: Option<Tls12ClientSessionValue>,
    /// A ticket serves once (RFC 8446 §C.4). At the limit the oldest one is dropped.
    tickets: VecDeque<Tls13ClientSessionValue>,
    /// How many bytes of early data the ticket permits that was taken last.
    early_bytes_max: u32,
    received: u32,
    permitted_early_bytes: u32,
}

impl Sessions {
    /// A store with room for this number of tickets.
    pub fn new(tickets_max: usize) -> Self {
        Sessions { tickets_max, kept: Mutex::default() }
    }

    /// How many sessions or tickets came.
    pub fn received(&self) -> u32 {
        self.with(|kept| kept.received)
    }

    /// The most early data that a ticket permitted, in bytes; 0: none.
    pub fn permitted_early_bytes(&self) -> u32 {
        self.with(|kept| kept.permitted_early_bytes)
    }

    fn with<T>(&self, act: impl FnOnce(&mut Kept) -> T) -> T {
        act(&mut self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Sessions are secret, so only how many there are is shown.
impl fmt::Debug for Sessions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tickets = self.with(|kept| kept.tickets.len());
        formatter.debug_struct("Sessions").field("tickets", &tickets).finish_non_exhaustive()
    }
}

impl ClientSessionStore for Sessions {
    fn set_kx_hint(&self, _server: ServerName<'static>, group: NamedGroup) {
        self.with(|kept| kept.group = Some(group));
    }

    fn kx_hint(&self, _server: &ServerName<'_>) -> Option<NamedGroup> {
        self.with(|kept| kept.group)
    }

    fn set_tls12_session(&self, _server: ServerName<'static>, session: Tls12ClientSessionValue) {
        self.with(|kept| {
            kept.received += 1;
            kept.session = Some(session);
        });
    }

    fn tls12_session(&self, _server: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.with(|kept| kept.session.clone())
    }

    fn remove_tls12_session(&self, _server: &ServerName<'static>) {
        self.with(|kept| kept.session = None);
    }

    fn insert_tls13_ticket(&self, _server: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        self.with(|kept| {
            kept.received += 1;
            kept.permitted_early_bytes = kept.permitted_early_bytes.max(ticket.max_early_data_size());
            if kept.tickets.len() >= self.tickets_max {
                kept.tickets.pop_front();
            }
            kept.tickets.push_back(ticket);
        });
    }

    fn take_tls13_ticket(&self, _server: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.with(|kept| {
            let ticket = kept.tickets.pop_back();
            kept.early_bytes_max = ticket.as_ref().map_or(0, Tls13ClientSessionValue::max_early_data_size);
            ticket
        })
    }
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
