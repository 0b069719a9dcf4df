//! A primary as a test writes it: what it sends is up to the test, right or wrong.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::Arc,
    thread,
};

/// A connection of the primary, and the first query that came on it, without its length.
pub struct Conversation {
    pub stream: TcpStream,
    pub query: Vec<u8>,
}

/// Listens on a port of the kernel's choice and calls `serve` for each connection. It ends with the test process.
pub fn start(serve: impl Fn(Conversation) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serve = Arc::new(serve);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let serve = serve.clone();
            thread::spawn(move || {
                let mut conversation = Conversation { stream: stream.unwrap(), query: Vec::new() };
                if conversation.next_query() {
                    serve(conversation);
                }
            });
        }
    });
    address
}

impl Conversation {
    /// Waits for the next query; false: the other side has ended.
    pub fn next_query(&mut self) -> bool {
        let mut length = [0; 2];
        if self.stream.read_exact(&mut length).is_err() {
            return false;
        }
        self.query.resize(usize::from(u16::from_be_bytes(length)), 0);
        self.stream.read_exact(&mut self.query).is_ok()
    }

    /// Sends bytes as they are; false: the other side has closed.
    pub fn send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }

    /// An answer with its length before it: the question, and `records`, of which there are so many.
    pub fn answer(&self, count: u8, records: &[u8]) -> Vec<u8> {
        let name = 12 + self.query[12..].iter().position(|byte| *byte == 0).unwrap() + 1;
        let head = [&self.query[..2], &[0x84, 0, 0, 1, 0, count, 0, 0, 0, 0], &self.query[12..name + 4]].concat();
        framed(&[&head, records].concat())
    }

    /// An answer that is a header and nothing else.
    pub fn header_only(&self) -> Vec<u8> {
        framed(&[&self.query[..2], &[0x84, 0, 0, 0, 0, 0, 0, 0, 0, 0]].concat())
    }
}

/// A message with its length before it.
pub fn framed(message: &[u8]) -> Vec<u8> {
    [&(message.len() as u16).to_be_bytes()[..], message].concat()
}

/// A record of the zone that is asked for, by a pointer to the question.
pub fn record(rtype: u8, class: u8, data: &[u8]) -> Vec<u8> {
    [&[0xc0, 12, 0, rtype, 0, class, 0, 0, 0, 0, 0, data.len() as u8], data].concat()
}

/// An SOA of the zone that is asked for.
pub fn soa(serial: u32) -> Vec<u8> {
    record(6, 1, &[&[0, 0], &serial.to_be_bytes()[..], &[0; 16]].concat())
}
