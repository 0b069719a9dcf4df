//! How the client's side of TLS is set up.

use std::{net::IpAddr, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore,
    client::{Resumption, WebPkiServerVerifier, danger::ServerCertVerifier},
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, ServerName},
};

use super::{
    Protocol, SetupError, Trust,
    identity::Identity,
    sessions::Sessions,
    verify::{Pinned, Unchecked},
};

/// What a client speaks, whom it trusts, who it is, and what it insists on.
#[derive(Debug, Default)]
pub struct Settings {
    pub protocol: Protocol,
    pub trust: Trust,
    /// The server's name: it is sent (SNI), and a certificate must be for it if an authority vouches. None: its
    /// address.
    pub name: Option<ServerName<'static>>,
    /// The client's own certificate and key, for servers that ask (mutual TLS, RFC 9103 §9.3.2).
    pub identity: Option<Identity>,
    /// The server must agree on the protocol by its name, as RFC 9103 §7.1 has it; without, one that agrees on nothing
    /// is taken as well.
    pub alpn_required: bool,
    /// So many sessions are kept to be resumed; with 0, none is.
    pub sessions_max: usize,
    /// Queries may go with the first flight of a resumed session (RFC 8446 §2.3), if its ticket permits it. Whoever
    /// copies that flight can have them asked again (RFC 8446 §8).
    pub early_data: bool,
}

/// A client of one server: its connections share the sessions that the server lets them resume.
#[derive(Clone, Debug)]
pub struct Client {
    pub config: Arc<ClientConfig>,
    pub name: ServerName<'static>,
    /// What the server must agree on, if on anything.
    pub alpn_required: Option<&'static [u8]>,
    /// Those to resume; none if none is kept.
    sessions: Option<Arc<Sessions>>,
}

impl Client {
    /// A client of the server at this address.
    pub fn new(server: IpAddr, settings: Settings) -> Result<Self, SetupError> {
        let Settings { protocol, trust, name, identity, alpn_required, sessions_max, early_data } = settings;
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(protocol.versions)?
            .dangerous()
            .with_custom_certificate_verifier(verifier(trust, provider)?);
        let mut config = match identity {
            Some((chain, key)) => builder.with_client_auth_cert(chain, key).map_err(SetupError::Identity)?,
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
}

impl Client {
    /// Another client of the same server, with as much room for sessions of its own.
    pub fn another(&self) -> Self {
        let mut config = ClientConfig::clone(&self.config);
        let sessions = self.sessions.as_ref().map(|sessions| Arc::new(Sessions::new(sessions.tickets_max())));
        config.resumption = resumption(sessions.as_ref());
        Client { config: Arc::new(config), sessions, ..self.clone() }
    }

    /// How many bytes of early data the session permits that was taken last to be resumed.
    pub fn early_bytes_max(&self) -> usize {
        self.sessions.as_ref().map_or(0, |sessions| sessions.early_bytes_max() as usize)
    }

    /// How its connections are set up, for one who drives them otherwise than by a [`super::Session`].
    pub fn config(&self) -> &Arc<ClientConfig> {
        &self.config
    }

    /// The server's name.
    pub fn name(&self) -> &ServerName<'static> {
        &self.name
    }
}

fn resumption(sessions: Option<&Arc<Sessions>>) -> Resumption {
    sessions.map_or_else(Resumption::disabled, |sessions| Resumption::store(sessions.clone()))
}

fn verifier(trust: Trust, provider: Arc<CryptoProvider>) -> Result<Arc<dyn ServerCertVerifier>, SetupError> {
    match trust {
        Trust::None => Ok(Arc::new(Unchecked(provider))),
        Trust::Pin(pins) if pins.is_empty() => Err(SetupError::Nothing),
        Trust::Pin(pins) => Ok(Arc::new(Pinned { pins, provider })),
        Trust::Ca(authorities) => {
            let built = WebPkiServerVerifier::builder_with_provider(roots(authorities)?, provider).build();
            // It refuses an empty list, and wrong lists of revoked certificates, of which there are none.
            Ok(built.map_err(|_| SetupError::Nothing)?)
        }
    }
}

fn roots(authorities: Vec<CertificateDer<'static>>) -> Result<Arc<RootCertStore>, SetupError> {
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots.add(authority).map_err(SetupError::Authority)?;
    }
    Ok(Arc::new(roots))
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
