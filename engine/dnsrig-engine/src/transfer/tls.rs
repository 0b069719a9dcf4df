//! TLS by the command line.

use super::arguments::{Arguments, TlsArguments, TransportKind, Verify};
use crate::{
    base::failure::Failure,
    net::tls::{
        Client, Pin, Settings, SetupError, Trust, Versions,
        identity::{Identity, read_identity},
        read_authorities, read_name,
    },
};

/// A secondary keeps so many sessions for each of its connections, as a primary may give out several for each.
const SESSIONS_A_CONNECTION: usize = 4;

/// So many sessions of a secondary are kept at most, a kilobyte or two each.
const SESSIONS_MAX: usize = 1_024;

/// A client for each secondary, with sessions of its own; none without TLS.
pub fn clients(arguments: &Arguments) -> Result<Vec<Client>, Failure> {
    if arguments.connections.transport == TransportKind::Tcp {
        return Ok(Vec::new());
    }
    let make = maker(arguments, Versions::Xot)?;
    (0..arguments.connections.secondaries).map(|_| make()).collect()
}

/// One client that offers these versions, whatever the transport.
pub fn client(arguments: &Arguments, versions: Versions) -> Result<Client, Failure> {
    maker(arguments, versions)?()
}

/// What makes clients; files are read once.
fn maker(arguments: &Arguments, versions: Versions) -> Result<impl Fn() -> Result<Client, Failure>, Failure> {
    let tls = &arguments.tls;
    let identity = match (&tls.certificate, &tls.key) {
        (Some(certificate), Some(key)) => Some(read_identity(certificate, key)?),
        _ => None,
    };
    let name = tls.server_name.as_deref().map(read_name).transpose()?;
    let authorities =
        if let (Verify::Ca, Some(path)) = (tls.verify, &tls.ca) { read_authorities(path)? } else { vec![] };
    let kept = (arguments.connections.count as usize * SESSIONS_A_CONNECTION).min(SESSIONS_MAX);
    Ok(move || {
        let trust = match tls.verify {
            Verify::None => Trust::None,
            Verify::Ca => Trust::Ca(authorities.clone()),
            Verify::Pin => Trust::Pin(pins(tls)?),
        };
        let settings = Settings {
            trust,
            name: name.clone(),
            identity: identity.as_ref().map(again),
            versions,
            alpn_required: tls.require_alpn,
            sessions_max: if tls.no_resumption { 0 } else { kept },
        };
        Ok(Client::new(arguments.primary.address, settings)?)
    })
}

fn pins(tls: &TlsArguments) -> Result<Vec<Pin>, SetupError> {
    tls.pins.iter().map(|pin| pin.parse()).collect()
}

fn again((chain, key): &Identity) -> Identity {
    (chain.clone(), key.clone_key())
}
