//! By what a server's certificate is judged.

use std::{path::Path, str::FromStr};

use domain::utils::base64;
use rustls::pki_types::{
    CertificateDer, ServerName,
    pem::{self, PemObject},
};

use super::SetupError;

/// Bytes of a digest by SHA-256.
const DIGEST_BYTES: usize = 32;

/// Whom a client takes for the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// Anyone: the opportunistic profile of RFC 7858 §4.1. Certificate and signature are not looked at, which leaves
    /// the CPU to queries: an instrument asks how fast a server is, not who it is.
    #[default]
    None,
    /// Who has a certificate for the name, by one of these authorities (RFC 8310 §8.1, as RFC 9103 §7.5 asks of XoT).
    ///
    /// A certificate that a server has signed itself serves as its own authority, unless it says that it is one.
    Ca(Vec<CertificateDer<'static>>),
    /// Who has the key of one of these pins, whatever else the certificate says (RFC 7858 §4.2).
    Pin(Vec<Pin>),
}

/// The SHA-256 digest of a public key (SubjectPublicKeyInfo in DER, RFC 7469 §2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pin(pub [u8; DIGEST_BYTES]);

impl Pin {
    /// Of a key.
    pub fn of_key(subject_public_key_info: &[u8]) -> Self {
        let digest = ring::digest::digest(&ring::digest::SHA256, subject_public_key_info);
        Pin(digest.as_ref().try_into().expect("a digest by SHA-256 has 32 bytes"))
    }
}

/// Reads base64.
impl FromStr for Pin {
    type Err = SetupError;

    fn from_str(text: &str) -> Result<Self, SetupError> {
        let digest = base64::decode::<Vec<u8>>(text).ok().and_then(|bytes| bytes.try_into().ok());
        digest.map(Pin).ok_or_else(|| SetupError::Pin(text.to_owned()))
    }
}

/// Reads the certificates of authorities from a PEM file.
pub fn read_authorities(path: &Path) -> Result<Vec<CertificateDer<'static>>, SetupError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    read.and_then(|authorities| if authorities.is_empty() { Err(pem::Error::NoItemsFound) } else { Ok(authorities) })
        .map_err(|reason| SetupError::Pem { path: path.to_owned(), reason })
}

/// Reads the name that a certificate is to be for: a domain name, with a dot at its end or without, or an address.
pub fn read_name(text: &str) -> Result<ServerName<'static>, SetupError> {
    let name = text.strip_suffix('.').unwrap_or(text);
    ServerName::try_from(name.to_owned()).map_err(|_| SetupError::Name(text.to_owned()))
}
