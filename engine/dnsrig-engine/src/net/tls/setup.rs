//! What can be wrong with the settings of TLS, before any server is asked.

use std::path::PathBuf;

use rustls::pki_types::pem;

use crate::base::failure::Advice;

/// TLS could not be set up as asked for.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// A file of certificates cannot be read, or has none in it.
    #[error("cannot read certificates of authorities from {path}: {reason}")]
    Pem { path: PathBuf, reason: pem::Error },
    /// Nothing can be trusted by it.
    #[error("cannot trust a certificate that was given as an authority's: {0}")]
    Authority(rustls::Error),
    /// Neither a domain name nor an address.
    #[error("{0:?} is no name that a certificate can have")]
    Name(String),
    /// Not 32 bytes in base64.
    #[error("{0:?} is no pin")]
    Pin(String),
    /// No pin, or no authority, to check by.
    #[error("there is nothing to check the server's certificate by")]
    Nothing,
    /// The client's certificate and key do not go together.
    #[error("cannot use the client's certificate with its key: {0}")]
    Identity(rustls::Error),
    /// The library refuses.
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
}

impl Advice for SetupError {
    fn hint(&self) -> String {
        match self {
            SetupError::Pem { .. } | SetupError::Authority(_) => {
                "give a PEM file of certificates, each an authority's own".into()
            }
            SetupError::Name(_) => "give the server's domain name or address, as its certificate has it".into(),
            SetupError::Pin(_) => {
                "give the SHA-256 digest of the server's public key (SubjectPublicKeyInfo, in DER) in base64: 44 \
                 characters, see RFC 7858, Appendix A"
                    .into()
            }
            SetupError::Nothing => "name an authority's certificate or a pin, or check nothing".into(),
            SetupError::Identity(_) => {
                "give PEM files that belong together, the client's own certificate before those above it".into()
            }
            SetupError::Tls(_) => "see which TLS versions were asked for".into(),
        }
    }

    fn exit_code(&self) -> u8 {
        2
    }
}
