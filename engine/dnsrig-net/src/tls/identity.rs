//! The server's side of TLS for DNS (RFC 7858): certificate and settings.

use std::{
    net::IpAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use dnsrig_core::failure::Failure;
use rcgen::{CertificateParams, DnType, KeyPair, PKCS_ECDSA_P256_SHA256, SanType};
use rustls::{
    RootCertStore, ServerConfig,
    crypto::ring,
    pki_types::{
        CertificateDer, PrivateKeyDer,
        pem::{self, PemObject},
    },
    server::{
        ProducesTickets, ServerSessionMemoryCache, StoresServerSessions, WebPkiClientVerifier,
        danger::ClientCertVerifier,
    },
};

use super::Protocol;

/// The name in a certificate that is made here, besides the address.
const NAME: &str = "echo.dnsrig.test";

/// The number of tickets that a server with early data remembers, some hundred bytes each; one more replaces the
/// oldest.
const TICKETS_MAX: usize = 65_536;

/// What to do about files that cannot be used.
const FILES_HINT: &str = "give PEM files that belong together, with the server's own certificate first";

/// The certificate chain and the key, both as DER.
pub type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// The identity in these files, of a certificate and of its key; without them, one that is made for `address`.
pub fn identity(files: Option<(&PathBuf, &PathBuf)>, address: IpAddr) -> Result<Identity, Failure> {
    match files {
        Some((certificate, key)) => read_identity(certificate, key),
        None => make_identity(address),
    }
}

/// Reads a certificate chain and its key from PEM files.
pub fn read_identity(certificate: &PathBuf, key: &PathBuf) -> Result<Identity, Failure> {
    let chain = read_chain(certificate)?;
    Ok((chain, PrivateKeyDer::from_pem_file(key).map_err(failed("a key", key))?))
}

fn read_chain(path: &PathBuf) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    chain
        .and_then(|chain| if chain.is_empty() { Err(pem::Error::NoItemsFound) } else { Ok(chain) })
        .map_err(failed("a certificate", path))
}

fn failed(what: &str, path: &Path) -> impl FnOnce(pem::Error) -> Failure {
    let begun = format!("cannot read {what} from {}", path.display());
    move |error| Failure::bad_input(format!("{begun}: {error}"), FILES_HINT)
}

/// Makes a key (ECDSA P-256) and a certificate for `address` that it signs itself.
pub fn make_identity(address: IpAddr) -> Result<Identity, Failure> {
    let failed = |error| {
        let hint = "give a certificate with --certificate and --key";
        Failure::bad_input(format!("cannot make a certificate: {error}"), hint)
    };
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(failed)?;
    let mut parameters = CertificateParams::new(vec![NAME.to_owned()]).map_err(failed)?;
    parameters.subject_alt_names.push(SanType::IpAddress(address));
    parameters.distinguished_name.push(DnType::CommonName, NAME);
    let certificate = parameters.self_signed(&key).map_err(failed)?;
    Ok((vec![certificate.der().clone()], PrivateKeyDer::Pkcs8(key.serialize_der().into())))
}

/// Settings for all connections: resumption by tickets, no early data (0-RTT).
///
/// Tickets carry their own state (RFC 5077, RFC 8446 §4.6.1), so a connection may resume on any thread. With
/// `client_ca`, certificates in PEM, a client has to have one that these signed (RFC 9103 §9.3.3).
pub fn server_config(
    (chain, key): Identity,
    protocol: Protocol,
    client_ca: Option<&PathBuf>,
) -> Result<Arc<ServerConfig>, Failure> {
    let verifier = match client_ca {
        Some(path) => client_verifier(path)?,
        None => WebPkiClientVerifier::no_client_auth(),
    };
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(protocol.versions)
        .map_err(unusable)?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)
        .map_err(unusable)?;
    config.alpn_protocols = vec![protocol.alpn.to_vec()];
    config.ticketer = ring::Ticketer::new().map_err(unusable)?;
    config.max_early_data_size = 0;
    Ok(Arc::new(config))
}

/// Returns the settings without session tickets: over TLS 1.3 no session can be resumed (RFC 8446 §4.6.1).
pub fn without_tickets(config: &ServerConfig) -> Arc<ServerConfig> {
    let mut config = config.clone();
    config.send_tls13_tickets = 0;
    Arc::new(config)
}

/// Returns the settings with early data: queries may come with the first flight of a resumed session (0-RTT, RFC 8446
/// §2.3), and are answered before the handshake is done.
///
/// Each ticket serves once, so that nobody can have the queries of a copied flight asked again (RFC 8446 §8.1). The
/// server remembers them for that, the newest [`TICKETS_MAX`].
pub fn with_early_data(config: &ServerConfig, bytes_max: u32) -> Arc<ServerConfig> {
    let mut config = config.clone();
    config.ticketer = Arc::new(NoTicketer);
    config.session_storage = ServerSessionMemoryCache::new(TICKETS_MAX);
    config.max_early_data_size = bytes_max;
    config.send_half_rtt_data = true;
    Arc::new(config)
}

/// Returns the settings with tickets that permit early data, all of which is refused: to this server, every ticket
/// looks too old for it (RFC 8446 §8.3). Sessions are resumed all the same.
pub fn refusing_early_data(config: &ServerConfig, bytes_max: u32) -> Arc<ServerConfig> {
    let mut config = ServerConfig::clone(&with_early_data(config, bytes_max));
    config.session_storage = Arc::new(AgedSessions(config.session_storage));
    Arc::new(config)
}

/// Makes the tickets of sessions look older than they are.
#[derive(Debug)]
struct AgedSessions(Arc<dyn StoresServerSessions>);

impl StoresServerSessions for AgedSessions {
    fn put(&self, key: Vec<u8>, mut value: Vec<u8>) -> bool {
        // The last four bytes are what the client adds to the age of its ticket, in milliseconds: this makes 25 days.
        if let Some(offset) = value.last_chunk_mut::<4>() {
            offset[0] ^= 0x80;
        }
        self.0.put(key, value)
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.0.get(key)
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.0.take(key)
    }

    fn can_cache(&self) -> bool {
        self.0.can_cache()
    }
}

/// Has a server keep the state of sessions itself.
#[derive(Debug)]
struct NoTicketer;

impl ProducesTickets for NoTicketer {
    fn enabled(&self) -> bool {
        false
    }

    fn lifetime(&self) -> u32 {
        0
    }

    fn encrypt(&self, _plain: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn decrypt(&self, _cipher: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

fn client_verifier(path: &PathBuf) -> Result<Arc<dyn ClientCertVerifier>, Failure> {
    let mut roots = RootCertStore::empty();
    for certificate in read_chain(path)? {
        roots.add(certificate).map_err(unusable)?;
    }
    let provider = Arc::new(ring::default_provider());
    let built = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
    built.map_err(|error| Failure::bad_input(format!("cannot check clients' certificates: {error}"), FILES_HINT))
}

fn unusable(error: rustls::Error) -> Failure {
    Failure::bad_input(format!("cannot use the certificate with its key: {error}"), FILES_HINT)
}
