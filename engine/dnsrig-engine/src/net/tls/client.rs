//! How the client's side of TLS is set up.

use std::{net::IpAddr, sync::Arc};

use rustls::{
    ClientConfig, RootCertStore, SupportedProtocolVersion,
    client::{Resumption, WebPkiServerVerifier, danger::ServerCertVerifier},
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, ServerName},
    version::TLS13,
};

use super::{
    SetupError, Trust,
    identity::{ALPN, Identity},
    sessions::Sessions,
    verify::{Pinned, Unchecked},
};

/// What RFC 9103 §7.2 allows.
static XOT: &[&SupportedProtocolVersion] = &[&TLS13];

/// Which versions of TLS a client offers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Versions {
    /// TLS 1.3 and 1.2, as for DNS over TLS (RFC 7858).
    #[default]
    Dot,
    /// TLS 1.3 alone, as for zone transfers over TLS (RFC 9103 §7.2).
    Xot,
}

/// Whom a client trusts, who it is, and what it insists on.
#[derive(Debug, Default)]
pub struct Settings {
    pub trust: Trust,
    /// The server's name: it is sent (SNI), and a certificate must be for it if an authority vouches. None: its address.
    pub name: Option<ServerName<'static>>,
    /// The client's own certificate and key, for servers that ask (mutual TLS, RFC 9103 §9.3.2).
    pub identity: Option<Identity>,
    pub versions: Versions,
    /// The server must agree on `dot`, as RFC 9103 §7.1 has it; without, one that agrees on nothing is taken as well.
    pub alpn_required: bool,
    /// So many sessions are kept to be resumed; with 0, none is.
    pub sessions_max: usize,
}

/// A client of one server: its connections share the sessions that the server lets them resume.
#[derive(Clone, Debug)]
pub struct Client {
    pub config: Arc<ClientConfig>,
    pub name: ServerName<'static>,
    pub alpn_required: bool,
}

impl Client {
    /// A client of the server at this address.
    pub fn new(server: IpAddr, settings: Settings) -> Result<Self, SetupError> {
        let Settings { trust, name, identity, versions, alpn_required, sessions_max } = settings;
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(versions.offered())?
            .dangerous()
            .with_custom_certificate_verifier(verifier(trust, provider)?);
        let mut config = match identity {
            Some((chain, key)) => builder.with_client_auth_cert(chain, key).map_err(SetupError::Identity)?,
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = vec![ALPN.to_vec()];
        config.resumption = if sessions_max > 0 {
            Resumption::store(Arc::new(Sessions::new(sessions_max)))
        } else {
            Resumption::disabled()
        };
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

impl Versions {
    fn offered(self) -> &'static [&'static SupportedProtocolVersion] {
        match self {
            Versions::Dot => rustls::DEFAULT_VERSIONS,
            Versions::Xot => XOT,
        }
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
