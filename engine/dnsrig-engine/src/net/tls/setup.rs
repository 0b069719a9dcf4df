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
    #[error("cannot use a certificate of --ca as an authority: {0}")]
    Authority(rustls::Error),
    /// Neither a domain name nor an address.
    #[error("{0:?} cannot be the name in a certificate")]
    Name(String),
    /// Not 32 bytes in base64.
    #[error("{0:?} is not a pin")]
    Pin(String),
    /// No pin, or no authority, to check by.
    #[error("the server's certificate cannot be checked: there is neither an authority nor a pin")]
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
                "give a PEM file with the certificates of authorities".into()
            }
            SetupError::Name(_) => "give the domain name or address that is in the server's certificate".into(),
            SetupError::Pin(_) => {
                "give the SHA-256 digest of the server's public key (SubjectPublicKeyInfo, in DER) in base64: 44 \
                 characters, see RFC 7858, Appendix A"
                    .into()
            }
            SetupError::Nothing => "give the certificate of an authority or a pin, or do not verify".into(),
            SetupError::Identity(_) => {
                "give PEM files that belong together, with the client's own certificate first".into()
            }
            SetupError::Tls(_) => "check the TLS versions that you asked for".into(),
        }
    }

    fn exit_code(&self) -> u8 {
        2
    }
}
