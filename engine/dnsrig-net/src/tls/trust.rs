//! How a client checks a server's certificate: not at all, by authorities, or by pins.

use std::{
    path::Path,
    str::FromStr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use dnsrig_core::failure::Failure;
use domain::utils::base64;
use rustls::{
    CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature},
    pki_types::{
        CertificateDer, ServerName, UnixTime,
        pem::{self, PemObject},
    },
    server::ParsedCertificate,
};

use super::Fault;

/// Bytes of a digest by SHA-256.
const DIGEST_BYTES: usize = 32;

/// What to do about certificates of authorities that cannot be used.
const AUTHORITIES_HINT: &str = "give a PEM file with the certificates of authorities";

/// Which servers a client accepts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// Any server: the opportunistic profile of RFC 7858 §4.1. Certificate and signature are not checked, which leaves
    /// the CPU to queries: an instrument measures how fast a server is, and needs no proof of its identity.
    #[default]
    None,
    /// A server with a certificate for the name by one of these authorities (RFC 8310 §8.1, required for XoT by RFC
    /// 9103 §7.5).
    ///
    /// A certificate that a server has signed itself serves as its own authority, unless it is marked as an authority.
    Ca(Vec<CertificateDer<'static>>),
    /// A server with the key of one of these pins, whatever else is in its certificate (RFC 7858 §4.2).
    Pin(Vec<Pin>),
}

/// The SHA-256 digest of a public key (SubjectPublicKeyInfo in DER, RFC 7469 §2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pin(pub [u8; DIGEST_BYTES]);

impl Pin {
    /// The pin of a key.
    pub fn of_key(subject_public_key_info: &[u8]) -> Self {
        let digest = ring::digest::digest(&ring::digest::SHA256, subject_public_key_info);
        Pin(digest.as_ref().try_into().expect("a digest by SHA-256 has 32 bytes"))
    }
}

/// Reads base64.
impl FromStr for Pin {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self, Failure> {
        let digest = base64::decode::<Vec<u8>>(text).ok().and_then(|bytes| bytes.try_into().ok());
        digest.map(Pin).ok_or_else(|| {
            Failure::bad_input(
                format!("{text:?} is not a pin"),
                "give the SHA-256 digest of the server's public key (SubjectPublicKeyInfo, in DER) in base64: 44 \
                 characters, see RFC 7858, Appendix A",
            )
        })
    }
}

/// Reads the certificates of authorities from a PEM file.
pub fn read_authorities(path: &Path) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    read.and_then(|authorities| if authorities.is_empty() { Err(pem::Error::NoItemsFound) } else { Ok(authorities) })
        .map_err(|error| {
            let sentence = format!("cannot read certificates of authorities from {}: {error}", path.display());
            Failure::bad_input(sentence, AUTHORITIES_HINT)
        })
}

/// Reads the name that a certificate is to be for: a domain name, with a dot at its end or without, or an address.
pub fn read_name(text: &str) -> Result<ServerName<'static>, Failure> {
    let name = text.strip_suffix('.').unwrap_or(text);
    ServerName::try_from(name.to_owned()).map_err(|_| {
        let hint = "give the domain name or address that is in the server's certificate";
        Failure::bad_input(format!("{text:?} cannot be the name in a certificate"), hint)
    })
}

/// Returns a verifier that checks a server's certificate by `trust`.
pub(super) fn verifier(trust: Trust, provider: Arc<CryptoProvider>) -> Result<Arc<dyn ServerCertVerifier>, Failure> {
    let nothing = || {
        Failure::bad_input(
            "the server's certificate cannot be checked: there is neither an authority nor a pin",
            "give the certificate of an authority or a pin, or do not verify",
        )
    };
    match trust {
        Trust::None => Ok(Arc::new(Unchecked(provider))),
        Trust::Pin(pins) if pins.is_empty() => Err(nothing()),
        Trust::Pin(pins) => Ok(Arc::new(Pinned { pins, provider })),
        Trust::Ca(authorities) => {
            let built = WebPkiServerVerifier::builder_with_provider(roots(authorities)?, provider).build();
            // It refuses an empty list. It would also refuse wrong lists of revoked certificates, but there are no such
            // lists here.
            Ok(built.map_err(|_| nothing())?)
        }
    }
}

fn roots(authorities: Vec<CertificateDer<'static>>) -> Result<Arc<RootCertStore>, Failure> {
    let mut roots = RootCertStore::empty();
    for authority in authorities {
        roots.add(authority).map_err(|error| {
            let sentence = format!("cannot use a certificate of --ca as an authority: {error}");
            Failure::bad_input(sentence, AUTHORITIES_HINT)
        })?;
    }
    Ok(Arc::new(roots))
}

/// A verifier that accepts every certificate and every signature.
#[derive(Debug)]
struct Unchecked(Arc<CryptoProvider>);

impl ServerCertVerifier for Unchecked {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// A verifier that accepts the keys of some pins, and signatures by these keys. Names, times and authorities do not
/// matter.
#[derive(Debug)]
struct Pinned {
    pins: Vec<Pin>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    /// A key with none of the pins is [`CertificateError::ApplicationVerificationFailure`].
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let key = ParsedCertificate::try_from(end_entity)?.subject_public_key_info();
        if self.pins.contains(&Pin::of_key(&key)) {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(CertificateError::ApplicationVerificationFailure.into())
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Verifies certificates as another verifier does, and counts them: the server shows its certificate in a full
/// handshake only, and the library reports nothing else that distinguishes a full handshake from a resumed one.
#[derive(Debug)]
pub(crate) struct CountingVerifier {
    verifier: Arc<dyn ServerCertVerifier>,
    certificates: AtomicU64,
    /// What was wrong with the last certificate that was not accepted.
    fault: Mutex<Option<Fault>>,
}

impl CountingVerifier {
    /// Verifies by `trust`.
    pub(crate) fn new(trust: Trust, provider: Arc<CryptoProvider>) -> Result<Self, Failure> {
        let (certificates, fault) = (AtomicU64::new(0), Mutex::default());
        Ok(CountingVerifier { verifier: verifier(trust, provider)?, certificates, fault })
    }

    /// The number of certificates that were shown.
    pub(crate) fn certificates(&self) -> u64 {
        self.certificates.load(Ordering::Relaxed)
    }

    /// What was wrong with a certificate since the last call, if one was not accepted.
    pub(crate) fn take_fault(&self) -> Option<Fault> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl ServerCertVerifier for CountingVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.certificates.fetch_add(1, Ordering::Relaxed);
        let verified = self.verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        verified.inspect_err(|error| {
            *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(Fault::from(error));
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verifier.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}
