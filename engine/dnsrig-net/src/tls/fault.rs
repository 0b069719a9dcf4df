//! Kinds of failures of TLS, for reports.

use rustls::{AlertDescription, CertificateError, Error, PeerIncompatible};

/// Why a TLS handshake or session failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// No trusted authority has signed the certificate.
    Issuer,
    /// The certificate is for another name.
    Name,
    /// The certificate is not valid yet, or not any more.
    Time,
    /// The key of the certificate has none of the pins.
    Pin,
    /// The certificate, or the signature with its key, is wrong in another way.
    Certificate,
    /// The protocol was not agreed on (ALPN): `dot`, `h2` for DNS over HTTPS, or `doq`.
    Alpn,
    /// The server has none of the versions that are allowed here.
    Version,
    /// The server does not take the client's certificate, or wants one.
    Identity,
    /// The server gave up for another reason (an alert).
    Alert,
    /// The bytes that came are not TLS, or not in order.
    Protocol,
}

impl Fault {
    /// One word for files and reports.
    pub fn word(self) -> &'static str {
        match self {
            Fault::Issuer => "tls-issuer",
            Fault::Name => "tls-name",
            Fault::Time => "tls-time",
            Fault::Pin => "tls-pin",
            Fault::Certificate => "tls-certificate",
            Fault::Alpn => "tls-alpn",
            Fault::Version => "tls-version",
            Fault::Identity => "tls-identity",
            Fault::Alert => "tls-alert",
            Fault::Protocol => "tls-protocol",
        }
    }

    /// A sentence for people.
    pub fn sentence(self) -> &'static str {
        match self {
            Fault::Issuer => "the server's certificate leads to none of the authorities of --ca",
            Fault::Name => "the server's certificate is for another name",
            Fault::Time => "the server's certificate is not valid at this time",
            Fault::Pin => "the server's certificate does not match the pin",
            Fault::Certificate => "the server's certificate or its signature is wrong",
            Fault::Alpn => "the server did not agree on the protocol inside TLS (ALPN)",
            Fault::Version => "the server has no TLS version that is allowed here",
            Fault::Identity => "the server refused the client's certificate, or wants one",
            Fault::Alert => "the server ended the TLS session with an alert",
            Fault::Protocol => "what the server sent is no TLS, or not in order",
        }
    }
}

impl Fault {
    /// The fault that an alert with this number means (RFC 8446 §6).
    pub fn of_alert(number: u8) -> Self {
        of_alert(AlertDescription::from(number))
    }

    /// The fault that this side found when it sends an alert with this number.
    pub fn of_own_alert(number: u8) -> Self {
        match Fault::of_alert(number) {
            Fault::Identity => Fault::Certificate,
            Fault::Alert => Fault::Protocol,
            found => found,
        }
    }
}

impl From<&Error> for Fault {
    fn from(error: &Error) -> Self {
        match error {
            Error::InvalidCertificate(error) => of_certificate(error),
            Error::NoCertificatesPresented => Fault::Certificate,
            Error::NoApplicationProtocol => Fault::Alpn,
            Error::AlertReceived(alert) => of_alert(*alert),
            Error::PeerIncompatible(
                PeerIncompatible::ServerDoesNotSupportTls12Or13
                | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig,
            ) => Fault::Version,
            _ => Fault::Protocol,
        }
    }
}

fn of_certificate(error: &CertificateError) -> Fault {
    match error {
        CertificateError::UnknownIssuer => Fault::Issuer,
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => Fault::Name,
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => Fault::Time,
        // Only the verifier of pins returns this.
        CertificateError::ApplicationVerificationFailure => Fault::Pin,
        _ => Fault::Certificate,
    }
}

/// The fault that an alert means (RFC 8446 §6.2).
fn of_alert(alert: AlertDescription) -> Fault {
    match alert {
        AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateRevoked
        | AlertDescription::CertificateExpired
        | AlertDescription::CertificateUnknown
        | AlertDescription::UnknownCA
        | AlertDescription::AccessDenied
        | AlertDescription::CertificateRequired => Fault::Identity,
        AlertDescription::NoApplicationProtocol => Fault::Alpn,
        AlertDescription::ProtocolVersion => Fault::Version,
        _ => Fault::Alert,
    }
}
