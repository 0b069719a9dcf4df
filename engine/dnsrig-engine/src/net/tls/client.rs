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
}

/// A client of one server: its connections share the sessions that the server lets them resume.
#[derive(Clone, Debug)]
pub struct Client {
    pub config: Arc<ClientConfig>,
    pub name: ServerName<'static>,
    /// What the server must agree on, if on anything.
    pub alpn_required: Option<&'static [u8]>,
}

impl Client {
    /// A client of the server at this address.
    pub fn new(server: IpAddr, settings: Settings) -> Result<Self, SetupError> {
        let Settings { protocol, trust, name, identity, alpn_required, sessions_max } = settings;
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
        config.resumption = if sessions_max > 0 {
            Resumption::store(Arc::new(Sessions::new(sessions_max)))
        } else {
            Resumption::disabled()
        };
        let alpn_required = alpn_required.then_some(protocol.alpn);
        Ok(Client { config: Arc::new(config), name: name.unwrap_or(ServerName::from(server)), alpn_required })
    }
}

impl Client {
    /// How its connections are set up, for one who drives them otherwise than by a [`super::Session`].
    pub fn config(&self) -> &Arc<ClientConfig> {
        &self.config
    }

    /// The server's name.
    pub fn name(&self) -> &ServerName<'static> {
        &self.name
    }
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
