//! The options of the command line for a client with TLS: which certificates it trusts, and its own certificate.

use std::{net::IpAddr, path::PathBuf};

use dnsrig_core::failure::Failure;

use super::{Client, Pin, Protocol, Settings, Trust, identity::read_identity, read_authorities, read_name};

/// Which certificates of a server are accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Verify {
    /// Any: opportunistic TLS
    #[default]
    None,
    /// Certificates that an authority of --ca signed
    Ca,
    /// Certificates with the key of --pin
    Pin,
}

/// Which certificates a client trusts, and its own certificate.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct TlsArguments {
    /// Which certificates are accepted
    #[arg(long, value_enum, default_value = "none", help_heading = "TLS")]
    pub verify: Verify,
    /// With --verify ca: file with the trusted authorities (PEM)
    #[arg(long, value_name = "PEM", required_if_eq("verify", "ca"), help_heading = "TLS")]
    pub ca: Option<PathBuf>,
    /// Name in the server's certificate, if it is not the address
    #[arg(long, value_name = "NAME", help_heading = "TLS")]
    pub server_name: Option<String>,
    /// With --verify pin: SHA-256 of the public key in the certificate (SubjectPublicKeyInfo), in base64
    #[arg(long = "pin", value_name = "BASE64", required_if_eq("verify", "pin"), help_heading = "TLS")]
    pub pins: Vec<String>,
    /// File with the certificate that is shown to the server (PEM). Needs --key
    #[arg(long, value_name = "PEM", requires = "key", help_heading = "TLS")]
    pub certificate: Option<PathBuf>,
    /// File with the private key of --certificate (PEM)
    #[arg(long, value_name = "PEM", requires = "certificate", help_heading = "TLS")]
    pub key: Option<PathBuf>,
}

impl TlsArguments {
    /// Returns a function that makes clients of the server at this address. Files are read once.
    pub fn clients(
        &self,
        server: IpAddr,
        protocol: Protocol,
        alpn_required: bool,
        sessions_max: usize,
    ) -> Result<impl Fn() -> Result<Client, Failure>, Failure> {
        let settings = Settings { alpn_required, sessions_max, ..self.settings(protocol)? };
        Ok(move || Client::new(server, settings.again()))
    }

    /// The settings of a client that speaks this protocol inside TLS. Files are read.
    pub fn settings(&self, protocol: Protocol) -> Result<Settings, Failure> {
        let identity = match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => Some(read_identity(certificate, key)?),
            _ => None,
        };
        let name = self.server_name.as_deref().map(read_name).transpose()?;
        let trust = match (self.verify, &self.ca) {
            (Verify::Ca, Some(path)) => Trust::Ca(read_authorities(path)?),
            (Verify::Pin, _) => Trust::Pin(self.pins()?),
            _ => Trust::None,
        };
        Ok(Settings { protocol, trust, name, identity, ..Settings::default() })
    }

    fn pins(&self) -> Result<Vec<Pin>, Failure> {
        self.pins.iter().map(|pin| pin.parse()).collect()
    }
}
