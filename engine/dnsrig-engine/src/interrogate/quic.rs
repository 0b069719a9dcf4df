//! One transfer over QUIC (XoQ, RFC 9250), on a connection of its own.

use std::{io, net::UdpSocket, time::Duration};

use dnsrig_core::{clock, target, units::nanoseconds};
use dnsrig_dns::{framing::PREFIX_BYTES, query::Ask};
use dnsrig_net::{
    connection,
    quic::{
        Flow,
        client::{Client, Config},
        event::Event,
    },
};

use super::{
    connection::CloseReason,
    exchange::Exchange,
    limits::{CONNECT_MAX, LARGE_BYTES_MAX, QUIET_MAX},
    server::{Server, Talk},
    transfer::ZoneName,
};

/// The longest datagram that is taken in: what fits a packet of Ethernet.
const DATAGRAM_BYTES_MAX: usize = 1_500;

/// A connection, and what is asked on it.
struct Conversation {
    socket: UdpSocket,
    client: Client,
    talk: Talk,
    is_established: bool,
}

impl Server {
    /// Transfers a zone over QUIC. An error means that no connection came about.
    pub fn ask_over_quic(&self, zone: &ZoneName, ask: Ask) -> Result<Exchange, CloseReason> {
        let socket = UdpSocket::bind((target::unspecified(self.xot), 0))?;
        socket.connect(self.xot)?;
        let now_ns = clock::monotonic_ns();
        let config = Config::new(self.xot.ip(), self.quic.again(), Flow::default());
        let config = config.map_err(|failure| CloseReason::Tls(failure.to_string()))?;
        let client = Client::new(self.xot, None, 1, 1, now_ns);
        let talk = Talk::new(self.signer.clone());
        let mut conversation = Conversation { socket, client, talk, is_established: false };
        let query = conversation.talk.draft(zone, ask);
        let begun = conversation.client.begin(0, 0, &config, now_ns);
        begun.map_err(|error| CloseReason::Network(error.to_string()))?;
        conversation.client.send(0, &query[PREFIX_BYTES..], now_ns);
        conversation.listen()?;
        Ok(conversation.talk.exchange)
    }
}

impl Conversation {
    /// Goes on until the transfer has ended, or there is no hope of it.
    fn listen(&mut self) -> Result<(), CloseReason> {
        let mut end_ns = clock::monotonic_ns() + nanoseconds(CONNECT_MAX);
        let mut datagram = [0; DATAGRAM_BYTES_MAX];
        loop {
            let was_established = self.is_established;
            self.flush()?;
            let now_ns = clock::monotonic_ns();
            let due_ns = self.client.due_ns().unwrap_or(i64::MAX).min(end_ns);
            self.socket.set_read_timeout(Some(Duration::from_nanos((due_ns - now_ns).max(1_000_000) as u64)))?;
            match self.socket.recv(&mut datagram) {
                Ok(length) => drop(self.client.receive(&datagram[..length], clock::monotonic_ns())),
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
                Err(error) => return self.end(error.into()),
            }
            let now_ns = clock::monotonic_ns();
            while self.client.on_time(now_ns).is_some() {}
            if let Some(reason) = self.take() {
                return self.end(reason);
            }
            if self.is_established && !was_established {
                end_ns = now_ns + nanoseconds(QUIET_MAX);
            }
            if self.talk.exchange.open() == 0 {
                return Ok(());
            }
            if self.talk.exchange.bytes() > LARGE_BYTES_MAX {
                return self.end(CloseReason::Enough);
            }
            if now_ns >= end_ns {
                return self.end(CloseReason::TimedOut);
            }
        }
    }

    fn flush(&mut self) -> Result<(), CloseReason> {
        let mut result = Ok(());
        let Conversation { socket, client, .. } = self;
        client.transmit(0, clock::monotonic_ns(), |datagram| {
            if let Err(error) = socket.send(datagram) {
                result = Err(error);
            }
        });
        result.map_err(CloseReason::from)
    }

    /// Takes in what happened. Returns why nothing more comes, if that is so.
    fn take(&mut self) -> Option<CloseReason> {
        let mut reason = None;
        let Conversation { client, talk, is_established, .. } = self;
        client.poll(0, |event| match event {
            Event::Established(_) => *is_established = true,
            Event::Answer(_, message) => talk.take(message),
            Event::Partial(_) | Event::WrongId => {}
            Event::StreamLost(_, lost) | Event::StreamOver(_, lost) | Event::Lost(lost) => {
                reason.get_or_insert(close_reason(lost));
            }
            Event::UsedUp => {}
        });
        reason.filter(|_| talk.exchange.open() > 0)
    }

    /// Ends the conversation: with an error if there was no connection.
    fn end(&mut self, reason: CloseReason) -> Result<(), CloseReason> {
        if !self.is_established {
            return Err(reason);
        }
        self.talk.note(Err(reason));
        Ok(())
    }
}

fn close_reason(reason: connection::CloseReason) -> CloseReason {
    match reason {
        connection::CloseReason::Closed => CloseReason::Closed,
        connection::CloseReason::Reset => CloseReason::Reset,
        connection::CloseReason::Refused => CloseReason::Refused,
        connection::CloseReason::Tls(fault) => CloseReason::Tls(fault.word().to_owned()),
        connection::CloseReason::Http(_) => CloseReason::Closed,
    }
}
