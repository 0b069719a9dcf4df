//! One connection as a state machine: bytes in, messages out, and back. No socket and no clock.
//!
//! TLS is a layer below the framing: with it, bytes pass through a session of rustls, which has no I/O either. Inside
//! TLS, HTTP/2 may take the place of the framing.

use std::{
    io::{self, Read, Write},
    sync::Arc,
};

use dnsrig_dns::framing::Frames;
use dnsrig_net::http2::{Server, ServerFault};
use rustls::{HandshakeKind, ServerConfig, ServerConnection};

/// How connections of a socket use TLS.
#[derive(Clone)]
pub struct Tls {
    pub config: Arc<ServerConfig>,
    pub http: Option<Http>,
}

/// Messages are requests of HTTP/2.
#[derive(Clone, Copy, Debug, Default)]
pub struct Http {
    /// What goes wrong on purpose.
    pub fault: Option<ServerFault>,
}

impl From<Arc<ServerConfig>> for Tls {
    fn from(config: Arc<ServerConfig>) -> Self {
        Tls { config, http: None }
    }
}

/// A connection's state.
pub struct Connection {
    messages: Messages,
    layer: Layer,
}

/// Finds messages in bytes.
enum Messages {
    /// Each has its length before it.
    Framed(Frames),
    /// Each is a request. The answers are framed until the last moment.
    Http { server: Box<Server>, answers: Frames },
}

impl Messages {
    /// Calls `each` with every message that is complete. False: no further message comes.
    fn feed(&mut self, bytes: &[u8], each: impl FnMut(&[u8])) -> bool {
        match self {
            Messages::Framed(frames) => {
                frames.feed(bytes, each);
                true
            }
            Messages::Http { server, .. } => server.receive(bytes, each).is_ok(),
        }
    }
}

enum Layer {
    Plain(Output),
    Tls(Box<Session>),
}

/// Bytes that the socket did not take yet.
#[derive(Default)]
struct Output {
    bytes: Vec<u8>,
    sent: usize,
}

struct Session {
    tls: ServerConnection,
    handshake_told: bool,
}

/// How a TLS session began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handshake {
    /// With certificates.
    Full,
    /// With a ticket from an earlier one.
    Resumed,
}

impl Connection {
    /// A connection without TLS.
    pub fn plain() -> Self {
        Connection { messages: Messages::Framed(Frames::default()), layer: Layer::Plain(Output::default()) }
    }

    /// A connection that starts with a TLS handshake.
    pub fn tls(Tls { config, http }: Tls) -> Result<Self, rustls::Error> {
        let mut tls = ServerConnection::new(config)?;
        // A limit inside would cut answers in the middle. Nothing is sent before all that was sent has left.
        tls.set_buffer_limit(None);
        let session = Session { tls, handshake_told: false };
        let messages = match http {
            None => Messages::Framed(Frames::default()),
            Some(Http { fault }) => Messages::Http { server: Box::new(Server::new(fault)), answers: Frames::default() },
        };
        Ok(Connection { messages, layer: Layer::Tls(Box::new(session)) })
    }

    /// Takes in what came and calls `each` with every message that is now complete; true if the peer has said goodbye.
    ///
    /// After an error of TLS, [`Connection::flush`] sends the alert to the peer. `scratch` is room for
    /// what was decrypted, of any size but none.
    pub fn receive(
        &mut self,
        bytes: &[u8],
        scratch: &mut [u8],
        mut each: impl FnMut(&[u8]),
    ) -> Result<bool, rustls::Error> {
        let Layer::Tls(session) = &mut self.layer else {
            return Ok(!self.messages.feed(bytes, each));
        };
        let mut rest = bytes;
        let mut goodbye = false;
        while !rest.is_empty() && !goodbye {
            let taken = session.tls.read_tls(&mut rest);
            goodbye = session.tls.process_new_packets()?.peer_has_closed();
            // It came before all else.
            while let Some(Ok(count @ 1..)) = session.tls.early_data().map(|mut early| early.read(scratch)) {
                goodbye |= !self.messages.feed(&scratch[..count], &mut each);
            }
            while let Ok(count @ 1..) = session.tls.reader().read(scratch) {
                goodbye |= !self.messages.feed(&scratch[..count], &mut each);
            }
            if taken.is_err() {
                return Err(rustls::Error::General("more bytes than a record may have".into()));
            }
        }
        if let Messages::Http { server, .. } = &mut self.messages {
            pass(server, session);
        }
        Ok(goodbye)
    }

    /// Whether it is to be closed, whatever else the service has to write.
    pub fn is_over(&self) -> bool {
        matches!(&self.messages, Messages::Http { server, .. } if server.is_over())
    }

    /// How the TLS session began: once, as soon as it has.
    pub fn handshake(&mut self) -> Option<Handshake> {
        let Layer::Tls(session) = &mut self.layer else { return None };
        if session.handshake_told || session.tls.is_handshaking() {
            return None;
        }
        session.handshake_told = true;
        match session.tls.handshake_kind()? {
            HandshakeKind::Resumed => Some(Handshake::Resumed),
            _ => Some(Handshake::Full),
        }
    }

    /// Whether queries came with the first flight of the handshake and were taken (0-RTT).
    pub fn took_early_data(&mut self) -> bool {
        let Layer::Tls(session) = &mut self.layer else { return false };
        session.tls.early_data().is_some()
    }

    /// Sends framed messages as far as `to` takes them and keeps the rest. How much waits is for the caller to bound.
    pub fn send(&mut self, framed: &[u8], to: &mut impl Write) -> io::Result<()> {
        match &mut self.layer {
            Layer::Plain(output) if output.bytes.is_empty() => {
                let sent = write_some(to, framed)?;
                output.bytes.extend_from_slice(&framed[sent..]);
                return Ok(());
            }
            Layer::Plain(output) => output.bytes.extend_from_slice(framed),
            Layer::Tls(session) => match &mut self.messages {
                Messages::Framed(_) => session.tls.writer().write_all(framed)?,
                Messages::Http { server, answers } => {
                    answers.feed(framed, |answer| server.respond(answer));
                    pass(server, session);
                }
            },
        }
        self.flush(to)
    }

    /// Sends what waits, as far as `to` takes it without blocking.
    pub fn flush(&mut self, to: &mut impl Write) -> io::Result<()> {
        match &mut self.layer {
            Layer::Plain(output) => output.flush(to),
            Layer::Tls(session) => session.flush(to),
        }
    }

    /// Says goodbye, where the protocol has a word for it (RFC 8446 §6.1).
    pub fn close(&mut self, to: &mut impl Write) -> io::Result<()> {
        if let Layer::Tls(session) = &mut self.layer {
            session.tls.send_close_notify();
        }
        self.flush(to)
    }

    /// Whether nothing waits until the peer reads.
    pub fn is_flushed(&self) -> bool {
        match &self.layer {
            Layer::Plain(output) => output.bytes.is_empty(),
            Layer::Tls(session) => !session.tls.wants_write(),
        }
    }
}

/// Passes what HTTP/2 has to send on to TLS.
fn pass(server: &mut Server, session: &mut Session) {
    // There is no limit inside, so that it takes everything.
    let _ = session.tls.writer().write_all(server.output());
    server.output().clear();
}

impl Output {
    fn flush(&mut self, to: &mut impl Write) -> io::Result<()> {
        while self.sent < self.bytes.len() {
            match write_some(to, &self.bytes[self.sent..])? {
                0 => return Ok(()),
                count => self.sent += count,
            }
        }
        *self = Output::default();
        Ok(())
    }
}

impl Session {
    /// All records that are ready leave with one system call, as far as the socket takes them.
    fn flush(&mut self, to: &mut impl Write) -> io::Result<()> {
        while self.tls.wants_write() {
            match self.tls.write_tls(to) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Writes as much as `to` takes at once; nothing if it would block.
fn write_some(to: &mut impl Write, bytes: &[u8]) -> io::Result<usize> {
    loop {
        match to.write(bytes) {
            Ok(0) if !bytes.is_empty() => return Err(io::ErrorKind::WriteZero.into()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Read, Write};

    use dnsrig_dns::framing;
    use dnsrig_net::tls::{DOT, identity};
    use proptest::{collection::vec, prelude::*};
    use rustls::{ClientConfig, ClientConnection, RootCertStore, pki_types::ServerName};

    use super::*;

    /// A socket that takes `room` bytes and then would block.
    struct Narrow {
        room: usize,
        taken: Vec<u8>,
    }

    impl Narrow {
        fn new(room: usize) -> Self {
            Narrow { room, taken: Vec::new() }
        }
    }

    impl Write for Narrow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = bytes.len().min(self.room);
            if count == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            self.room -= count;
            self.taken.extend_from_slice(&bytes[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn framed(messages: &[&[u8]]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for message in messages {
            framing::append(&mut bytes, message);
        }
        bytes
    }

    /// Client and server settings that trust each other.
    fn configs() -> (Arc<ClientConfig>, Arc<ServerConfig>) {
        let identity = identity::make_identity("127.0.0.1".parse().unwrap()).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(identity.0[0].clone()).unwrap();
        let mut client = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        client.alpn_protocols = vec![DOT.alpn.to_vec()];
        (Arc::new(client), identity::server_config(identity, DOT, None).unwrap())
    }

    fn client(config: &Arc<ClientConfig>) -> ClientConnection {
        ClientConnection::new(Arc::clone(config), ServerName::try_from("127.0.0.1").unwrap()).unwrap()
    }

    /// Carries all bytes both ways, at most `step` at a time, and returns the messages that the server got.
    fn carry(client: &mut ClientConnection, server: &mut Connection, step: usize) -> Vec<Vec<u8>> {
        let mut messages = Vec::new();
        let mut scratch = vec![0; 100];
        loop {
            let (mut up, mut down) = (Vec::new(), Narrow::new(usize::MAX));
            while client.wants_write() {
                client.write_tls(&mut up).unwrap();
            }
            for bytes in up.chunks(step) {
                server.receive(bytes, &mut scratch, |message| messages.push(message.to_vec())).unwrap();
            }
            server.flush(&mut down).unwrap();
            for bytes in down.taken.chunks(step) {
                client.read_tls(&mut &bytes[..]).unwrap();
                client.process_new_packets().unwrap();
            }
            if up.is_empty() && down.taken.is_empty() {
                return messages;
            }
        }
    }

    #[test]
    fn what_the_socket_does_not_take_waits_in_order() {
        let mut connection = Connection::plain();
        let bytes = framed(&[b"one", b"two", b"three"]);
        let mut socket = Narrow::new(4);
        connection.send(&bytes, &mut socket).unwrap();
        assert!(!connection.is_flushed());
        connection.send(b"more", &mut socket).unwrap();
        for _ in 0..3 {
            socket.room = 5;
            connection.flush(&mut socket).unwrap();
        }
        assert!(!connection.is_flushed());
        socket.room = 100;
        connection.flush(&mut socket).unwrap();
        assert!(connection.is_flushed());
        assert_eq!(socket.taken, [&bytes[..], b"more"].concat());
    }

    #[test]
    fn tls_carries_messages_however_its_bytes_arrive() {
        let (client_config, server_config) = configs();
        for (number, step) in [1, 7, 100_000].into_iter().enumerate() {
            let mut client = client(&client_config);
            let mut server = Connection::tls(Arc::clone(&server_config).into()).unwrap();
            assert_eq!(server.handshake(), None);
            assert!(carry(&mut client, &mut server, step).is_empty());
            let expected = if number == 0 { Handshake::Full } else { Handshake::Resumed };
            assert_eq!((server.handshake(), server.handshake()), (Some(expected), None));

            let large = [9; 40_000];
            client.writer().write_all(&framed(&[b"one", &large, b"two"])).unwrap();
            assert_eq!(carry(&mut client, &mut server, step), [&b"one"[..], &large, b"two"]);

            let answers = framed(&[b"answer", b"another"]);
            server.send(&answers, &mut Narrow::new(0)).unwrap();
            carry(&mut client, &mut server, step);
            let mut found = vec![0; answers.len()];
            client.reader().read_exact(&mut found).unwrap();
            assert_eq!(found, answers);
        }
    }

    #[test]
    fn a_goodbye_is_told_and_answered() {
        let (client_config, server_config) = configs();
        let mut client = client(&client_config);
        let mut server = Connection::tls(server_config.into()).unwrap();
        carry(&mut client, &mut server, 1000);
        client.send_close_notify();
        let mut bytes = Vec::new();
        client.write_tls(&mut bytes).unwrap();
        assert!(server.receive(&bytes, &mut [0; 10], |_| panic!("no message")).unwrap());
        let mut socket = Narrow::new(usize::MAX);
        server.close(&mut socket).unwrap();
        client.read_tls(&mut &socket.taken[..]).unwrap();
        assert!(client.process_new_packets().unwrap().peer_has_closed());
    }

    #[test]
    fn what_is_no_tls_gets_an_alert() {
        let (_, server_config) = configs();
        let mut server = Connection::tls(server_config.into()).unwrap();
        assert!(server.receive(b"\0\x0cplain old DNS", &mut [0; 10], |_| panic!("no message")).is_err());
        let mut socket = Narrow::new(usize::MAX);
        server.flush(&mut socket).unwrap();
        assert_eq!(socket.taken.first(), Some(&21), "the record type of alerts (RFC 8446 §5.1)");
    }

    proptest! {
        #[test]
        fn bytes_of_any_kind_instead_of_a_handshake_do_no_harm(bytes in vec(any::<u8>(), 0..300), hello in any::<bool>()) {
            let (client_config, server_config) = configs();
            let mut server = Connection::tls(server_config.into()).unwrap();
            let mut start = Vec::new();
            if hello {
                client(&client_config).write_tls(&mut start).unwrap();
                let cut = bytes.len().min(start.len());
                start.truncate(start.len() - cut);
            }
            start.extend_from_slice(&bytes);
            let _ = server.receive(&start, &mut [0; 64], |_| panic!("no message without a handshake"));
            prop_assert_eq!(server.handshake(), None);
            server.flush(&mut Narrow::new(usize::MAX)).unwrap();
        }
    }
}
