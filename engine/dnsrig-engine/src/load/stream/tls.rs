//! TLS of a connection (RFC 7858, RFC 8446): octets in, octets out, no socket.
//!
//! The server's certificate is not checked, and neither is its signature of the handshake: this is the opportunistic
//! profile of RFC 7858 §4.1. An instrument asks how fast a server is, not who it is, and spends its CPU on queries.

use std::sync::Arc;

use rustls::{
    ClientConfig, DigitallySignedStruct, Error, HandshakeKind, SignatureScheme,
    client::{
        ClientConnectionData, Resumption, UnbufferedClientConnection,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, ServerName, UnixTime},
    unbuffered::{ConnectionState, EncodeError, EncryptError, UnbufferedStatus, WriteTraffic},
};

use super::sessions::Sessions;
use crate::serve::tls::ALPN;

/// Longer than all that TLS adds to a record: 22 octets in TLS 1.3 (RFC 8446 §5.2), 29 in TLS 1.2 with AES-GCM.
const RECORD_OCTETS_MAX: usize = 64;

/// Room for a message of the handshake; where it needs more, it says so.
const HANDSHAKE_OCTETS: usize = 1_024;

/// A configuration for connections to one server, which share the sessions that it lets them resume.
///
/// At most `sessions_max` of them are kept; with 0, none is resumed.
pub fn config(sessions_max: usize) -> Result<Arc<ClientConfig>, Error> {
    let provider = Arc::new(ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Unchecked(provider)))
        .with_no_client_auth();
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.resumption = if sessions_max > 0 {
        Resumption::store(Arc::new(Sessions::new(sessions_max)))
    } else {
        Resumption::disabled()
    };
    Ok(Arc::new(config))
}

/// What [`Session::drive`] came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// So many octets of the incoming ones are done with; the others belong to a record that is not complete.
    pub used: usize,
    /// The handshake is done: queries can be sent.
    pub open: bool,
    /// The server has said that it sends no more (close_notify).
    pub closed: bool,
}

/// The client's side of one connection.
pub struct Session(UnbufferedClientConnection);

impl Session {
    /// Of a connection on which nothing was sent yet; [`Session::drive`] it without octets to begin the handshake.
    pub fn new(config: &Arc<ClientConfig>, server: ServerName<'static>) -> Result<Self, Error> {
        UnbufferedClientConnection::new(config.clone(), server).map(Session)
    }

    /// Whether the handshake resumed a session.
    pub fn is_resumed(&self) -> bool {
        self.0.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// Takes in octets from the server. `each` gets what they decrypt to; what TLS itself has to say goes to `reply`.
    pub fn drive(
        &mut self,
        incoming: &mut [u8],
        reply: &mut Vec<u8>,
        mut each: impl FnMut(&[u8]),
    ) -> Result<Progress, Error> {
        let mut progress = Progress::default();
        loop {
            let UnbufferedStatus { mut discard, state } = self.0.process_tls_records(&mut incoming[progress.used..]);
            let is_over = match state? {
                ConnectionState::ReadTraffic(mut traffic) => {
                    while let Some(record) = traffic.next_record() {
                        let record = record?;
                        discard += record.discard;
                        each(record.payload);
                    }
                    false
                }
                ConnectionState::EncodeTlsData(mut data) => {
                    append(reply, HANDSHAKE_OCTETS, |space| data.encode(space).map_err(needed_by_handshake))?;
                    false
                }
                ConnectionState::TransmitTlsData(data) => {
                    data.done();
                    false
                }
                ConnectionState::WriteTraffic(_) => {
                    progress.open = true;
                    true
                }
                ConnectionState::BlockedHandshake => true,
                ConnectionState::PeerClosed | ConnectionState::Closed => {
                    progress.closed = true;
                    true
                }
                _ => return Err(Error::General("a state that a client of this kind never has".into())),
            };
            progress.used += discard;
            if is_over {
                return Ok(progress);
            }
        }
    }

    /// Encrypts `frames` into `wire`, each in a record of its own: with several in one, some servers wait for the socket
    /// while the second query lies in their TLS library. `unread` is what [`Session::drive`] has not used yet.
    pub fn seal<'a>(
        &mut self,
        unread: &mut [u8],
        frames: impl Iterator<Item = &'a [u8]>,
        wire: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let mut traffic = self.writer(unread)?;
        for frame in frames {
            append(wire, frame.len() + RECORD_OCTETS_MAX, |space| traffic.encrypt(frame, space).map_err(needed))?;
        }
        Ok(())
    }

    /// Says in `wire` that nothing more will be sent (close_notify).
    pub fn close(&mut self, unread: &mut [u8], wire: &mut Vec<u8>) -> Result<(), Error> {
        let mut traffic = self.writer(unread)?;
        append(wire, RECORD_OCTETS_MAX, |space| traffic.queue_close_notify(space).map_err(needed))
    }

    fn writer(&mut self, unread: &mut [u8]) -> Result<WriteTraffic<'_, ClientConnectionData>, Error> {
        match self.0.process_tls_records(unread) {
            UnbufferedStatus { state: Ok(ConnectionState::WriteTraffic(traffic)), discard: 0, .. } => Ok(traffic),
            UnbufferedStatus { state: Err(error), .. } => Err(error),
            _ => Err(Error::HandshakeNotComplete),
        }
    }
}

/// Has `write` write behind `wire`: into so many octets, or into as many as it says that it needs.
fn append(
    wire: &mut Vec<u8>,
    octets: usize,
    mut write: impl FnMut(&mut [u8]) -> Result<usize, Option<usize>>,
) -> Result<(), Error> {
    let start = wire.len();
    wire.resize(start + octets, 0);
    let mut written = write(&mut wire[start..]);
    if let Err(Some(needed)) = written {
        wire.resize(start + needed, 0);
        written = write(&mut wire[start..]);
    }
    wire.truncate(start + written.unwrap_or(0));
    written.map(|_| ()).map_err(|_| Error::EncryptError)
}

/// How many octets are needed, if it was room that lacked.
fn needed(error: EncryptError) -> Option<usize> {
    match error {
        EncryptError::InsufficientSize(size) => Some(size.required_size),
        EncryptError::EncryptExhausted => None,
    }
}

/// Likewise, for what the handshake sends.
fn needed_by_handshake(error: EncodeError) -> Option<usize> {
    match error {
        EncodeError::InsufficientSize(size) => Some(size.required_size),
        EncodeError::AlreadyEncoded => None,
    }
}

/// Takes every certificate and every signature for good.
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

#[cfg(test)]
#[path = "tls_tests.rs"]
mod tests;
