//! A client and a server for tests.

use std::{io::Read, sync::Arc};

use rustls::{Error, ServerConfig, ServerConnection};

use super::{Client, Progress, Session};

/// A client and a server without a network between them.
pub struct Pair {
    pub session: Session,
    pub server: ServerConnection,
    pub unread: Vec<u8>,
    pub received: Vec<u8>,
    pub last: Progress,
}

impl Pair {
    pub fn new(client: &Client, server: &Arc<ServerConfig>) -> Self {
        Pair {
            session: Session::new(client).unwrap(),
            server: ServerConnection::new(server.clone()).unwrap(),
            unread: Vec::new(),
            received: Vec::new(),
            last: Progress::default(),
        }
    }

    /// Carries bytes until neither side has more, or the client fails; the server's come to the client in pieces.
    pub fn settle(&mut self, piece: usize) -> Result<(), Error> {
        let mut incoming = Vec::new();
        loop {
            let mut reply = Vec::new();
            let first = incoming.drain(..incoming.len().min(piece)).collect::<Vec<u8>>();
            self.unread.extend(first);
            let received = &mut self.received;
            self.last = self.session.drive(&mut self.unread, &mut reply, |bytes| received.extend(bytes))?;
            self.unread.drain(..self.last.used);
            // The client hears of it by an alert.
            let _ = self.give(&reply);
            while self.server.wants_write() {
                self.server.write_tls(&mut incoming).unwrap();
            }
            if incoming.is_empty() && reply.is_empty() {
                return Ok(());
            }
        }
    }

    pub fn give(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        while !bytes.is_empty() {
            self.server.read_tls(&mut bytes).unwrap();
            self.server.process_new_packets()?;
        }
        Ok(())
    }

    pub fn plain_at_server(&mut self) -> Vec<u8> {
        let mut bytes = vec![0; 1 << 16];
        let length = self.server.reader().read(&mut bytes).unwrap();
        bytes[..length].to_vec()
    }
}
