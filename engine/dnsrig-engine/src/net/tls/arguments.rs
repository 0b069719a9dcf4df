//! Whom a client with TLS trusts, and who it is, by the command line.

use std::{net::IpAddr, path::PathBuf};

use super::{
    Client, Pin, Protocol, Settings, SetupError, Trust,
    identity::{Identity, read_identity},
    read_authorities, read_name,
};
use crate::base::failure::Failure;

/// Whose certificate is accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Verify {
    /// Anyone's: opportunistic TLS
    #[default]
    None,
    /// One that an authority of --ca signed
    Ca,
    /// One with the key of --pin
    Pin,
}

/// Whom a client trusts, and who it is.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct TlsArguments {
    /// Whose certificate is accepted
    #[arg(long, value_enum, default_value = "none", help_heading = "TLS")]
    pub verify: Verify,
    /// With --verify ca: authorities that are trusted (PEM)
    #[arg(long, value_name = "PEM", required_if_eq("verify", "ca"), help_heading = "TLS")]
    pub ca: Option<PathBuf>,
    /// The name in the primary's certificate, if it is not its address
    #[arg(long, value_name = "NAME", help_heading = "TLS")]
    pub server_name: Option<String>,
    /// With --verify pin: SHA-256 of the key that the certificate has (SubjectPublicKeyInfo), in base64
    #[arg(long = "pin", value_name = "BASE64", required_if_eq("verify", "pin"), help_heading = "TLS")]
    pub pins: Vec<String>,
    /// A certificate to show to the primary (PEM), with --key
    #[arg(long, value_name = "PEM", requires = "key", help_heading = "TLS")]
    pub certificate: Option<PathBuf>,
    /// Its private key (PEM)
    #[arg(long, value_name = "PEM", requires = "certificate", help_heading = "TLS")]
    pub key: Option<PathBuf>,
}

impl TlsArguments {
    /// What makes clients of the server at this address; files are read once.
    pub fn clients(
        &self,
        server: IpAddr,
        protocol: Protocol,
        alpn_required: bool,
        sessions_max: usize,
    ) -> Result<impl Fn() -> Result<Client, Failure>, Failure> {
        let identity = match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => Some(read_identity(certificate, key)?),
            _ => None,
        };
        let name = self.server_name.as_deref().map(read_name).transpose()?;
        let authorities =
            if let (Verify::Ca, Some(path)) = (self.verify, &self.ca) { read_authorities(path)? } else { vec![] };
        Ok(move || {
            let trust = match self.verify {
                Verify::None => Trust::None,
                Verify::Ca => Trust::Ca(authorities.clone()),
                Verify::Pin => Trust::Pin(self.pins()?),
            };
            let settings = Settings {
                protocol,
                trust,
                name: name.clone(),
                identity: identity.as_ref().map(again),
                alpn_required,
                sessions_max,
                early_data: false,
            };
            Ok(Client::new(server, settings)?)
        })
    }

    fn pins(&self) -> Result<Vec<Pin>, SetupError> {
        self.pins.iter().map(|pin| pin.parse()).collect()
    }
}

fn again((chain, key): &Identity) -> Identity {
    (chain.clone(), key.clone_key())
}
