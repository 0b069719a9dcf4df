//! A peer whose clock is compared with ours, and the connection to it.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use dnsrig_core::clock;

use super::{
    exchange::Exchange,
    message::{ANSWER_BYTES, Answer, Question},
};

/// A peer, connected or not.
pub struct Peer {
    address: SocketAddr,
    connection: Option<TcpStream>,
    /// Questions asked.
    asked: u64,
}

impl Peer {
    /// Not connected yet.
    pub fn new(address: SocketAddr) -> Self {
        Peer { address, connection: None, asked: 0 }
    }

    /// Makes `count` exchanges, fewer if they take longer than `limit`. An answer that takes longer than that is an
    /// error; after any error the next burst has a new connection, as an answer may still be under way on this one.
    pub fn burst(&mut self, count: usize, limit: Duration) -> io::Result<Vec<Exchange>> {
        let start = Instant::now();
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => connect(self.address, limit)?,
        };
        let mut burst = Vec::with_capacity(count);
        while burst.len() < count && (burst.is_empty() || start.elapsed() < limit) {
            self.asked += 1;
            burst.push(exchange(&mut connection, self.asked)?);
        }
        self.connection = Some(connection);
        Ok(burst)
    }
}

fn connect(address: SocketAddr, limit: Duration) -> io::Result<TcpStream> {
    let connection = TcpStream::connect_timeout(&address, limit)?;
    connection.set_nodelay(true)?;
    connection.set_read_timeout(Some(limit))?;
    connection.set_write_timeout(Some(limit))?;
    Ok(connection)
}

fn exchange(connection: &mut TcpStream, number: u64) -> io::Result<Exchange> {
    let question = Question { number, sent_ns: clock::monotonic_ns() };
    connection.write_all(&question.encode())?;
    let mut bytes = [0; ANSWER_BYTES];
    connection.read_exact(&mut bytes)?;
    let now_ns = clock::monotonic_ns();
    let answer = Answer::decode(&bytes).filter(|answer| answer.question == question);
    let exchange = answer.and_then(|answer| Exchange::of(answer, now_ns));
    exchange.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "it answered something else than `clock serve`"))
}
