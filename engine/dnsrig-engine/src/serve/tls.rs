//! The server's side of TLS for DNS (RFC 7858): certificate and settings.

use std::{net::IpAddr, path::PathBuf, sync::Arc};

use rcgen::{CertificateParams, DnType, KeyPair, PKCS_ECDSA_P256_SHA256, SanType};
use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{
        CertificateDer, PrivateKeyDer,
        pem::{self, PemObject},
    },
};

use crate::failure::Advice;

/// The protocol's name in the handshake (ALPN), as registered for DNS over TLS.
pub const ALPN: &[u8] = b"dot";

/// The name in a certificate that we make ourselves, besides the address.
const NAME: &str = "echo.dnsrig.test";

/// TLS could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file of certificates or a key cannot be used.
    #[error("cannot read {what} from {path}: {reason}")]
    Pem {
        /// What was looked for in the file.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: pem::Error,
    },
    /// Certificate and key cannot serve together.
    #[error("cannot use the certificate with its key: {0}")]
    Unusable(#[from] rustls::Error),
    /// Our own certificate could not be made.
    #[error("cannot make a certificate: {0}")]
    Make(#[from] rcgen::Error),
}

impl Advice for TlsError {
    fn hint(&self) -> String {
        match self {
            TlsError::Make(_) => "give one with --certificate and --key".into(),
            _ => {
                "give PEM files that belong together, the server's own certificate first, or neither: then one is made"
                    .into()
            }
        }
    }

    fn exit_code(&self) -> u8 {
        2
    }
}

/// The certificate chain and the key, both as DER.
pub type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// Reads a certificate chain and its key from PEM files.
pub fn read_identity(certificate: &PathBuf, key: &PathBuf) -> Result<Identity, TlsError> {
    let failed = |what, path: &PathBuf| {
        let path = path.clone();
        move |reason| TlsError::Pem { what, path, reason }
    };
    let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect);
    let chain = chain
        .and_then(|chain| if chain.is_empty() { Err(pem::Error::NoItemsFound) } else { Ok(chain) })
        .map_err(failed("a certificate", certificate))?;
    let key = PrivateKeyDer::from_pem_file(key).map_err(failed("a key", key))?;
    Ok((chain, key))
}

/// Makes a key (ECDSA P-256) and a certificate for `address` that it signs itself.
pub fn make_identity(address: IpAddr) -> Result<Identity, TlsError> {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let mut parameters = CertificateParams::new(vec![NAME.to_owned()])?;
    parameters.subject_alt_names.push(SanType::IpAddress(address));
    parameters.distinguished_name.push(DnType::CommonName, NAME);
    let certificate = parameters.self_signed(&key)?;
    Ok((vec![certificate.der().clone()], PrivateKeyDer::Pkcs8(key.serialize_der().into())))
}

/// Settings for all connections: TLS 1.3 and 1.2, resumption by tickets, no early data (0-RTT).
///
/// Tickets carry their own state (RFC 5077, RFC 8446 §4.6.1), so a connection may resume on any thread.
pub fn server_config((chain, key): Identity) -> Result<Arc<ServerConfig>, TlsError> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(rustls::DEFAULT_VERSIONS)?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.ticketer = ring::Ticketer::new()?;
    config.max_early_data_size = 0;
    Ok(Arc::new(config))
}
