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
    limits::{CONNECT_MAX, EXCHANGE_MAX, LARGE_BYTES_MAX, QUIET_MAX},
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
    begun_ns: i64,
    established_ns: Option<i64>,
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
        let talk = Talk::new(self.signer.clone()).at_most(LARGE_BYTES_MAX);
        let mut conversation = Conversation { socket, client, talk, begun_ns: now_ns, established_ns: None };
        let query = conversation.talk.draft(zone, ask);
        let begun = conversation.client.begin(0, 0, &config, now_ns);
        begun.map_err(|error| CloseReason::Network(error.to_string()))?;
        conversation.client.send(0, &query[PREFIX_BYTES..], now_ns);
        let result = conversation.listen();
        conversation.close();
        result?;
        Ok(conversation.talk.exchange)
    }
}

impl Conversation {
    /// Goes on until the transfer has ended, or there is no hope of it.
    fn listen(&mut self) -> Result<(), CloseReason> {
        let mut datagram = [0; DATAGRAM_BYTES_MAX];
        while self.talk.exchange.open() > 0 && self.talk.exchange.close_reason.is_none() {
            if let Err(reason) = self.flush() {
                return self.end(reason);
            }
            let (end_ns, now_ns) = (self.end_ns(), clock::monotonic_ns());
            let due_ns = self.client.due_ns().unwrap_or(i64::MAX).min(end_ns);
            self.socket.set_read_timeout(Some(Duration::from_nanos((due_ns - now_ns).max(1_000_000) as u64)))?;
            match self.socket.recv(&mut datagram) {
                Ok(length) => drop(self.client.receive(&datagram[..length], clock::monotonic_ns())),
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
                Err(error) => return self.end(error.into()),
            }
            let now_ns = clock::monotonic_ns();
            while self.client.on_time(now_ns).is_some() {}
            if let Some(reason) = self.take(now_ns) {
                return self.end(reason);
            }
            if now_ns >= self.end_ns() {
                let Some(established_ns) = self.established_ns else { return Err(CloseReason::TimedOut) };
                self.talk.note_silence(now_ns >= established_ns + nanoseconds(EXCHANGE_MAX));
            }
        }
        Ok(())
    }

    fn end_ns(&self) -> i64 {
        let progress_ns = self.begun_ns + nanoseconds(self.talk.exchange.progress_at);
        end_ns(self.begun_ns, self.established_ns, progress_ns)
    }

    /// Ends the connection, so that the server need not wait for more. A server that is gone does not need it.
    fn close(&mut self) {
        let Conversation { socket, client, .. } = self;
        client.close(0, clock::monotonic_ns(), |datagram| drop(socket.send(datagram)));
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
    fn take(&mut self, now_ns: i64) -> Option<CloseReason> {
        let mut reason = None;
        let Conversation { client, talk, established_ns, .. } = self;
        client.poll(0, |event| match event {
            Event::Established(_) => *established_ns = Some(now_ns),
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
        if self.established_ns.is_none() {
            return Err(reason);
        }
        self.talk.note(Err(reason));
        Ok(())
    }
}

/// The time at which the conversation ends, unless a record comes, which gives it [`QUIET_MAX`] more, as over TCP.
fn end_ns(begun_ns: i64, established_ns: Option<i64>, progress_ns: i64) -> i64 {
    match established_ns {
        None => begun_ns + nanoseconds(CONNECT_MAX),
        Some(at_ns) => (at_ns.max(progress_ns) + nanoseconds(QUIET_MAX)).min(at_ns + nanoseconds(EXCHANGE_MAX)),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_that_goes_on_is_waited_for() {
        let (quiet_ns, begun_ns, established_ns) = (nanoseconds(QUIET_MAX), 5, 7);
        assert_eq!(end_ns(begun_ns, None, 0), begun_ns + nanoseconds(CONNECT_MAX));
        assert_eq!(end_ns(begun_ns, Some(established_ns), begun_ns), established_ns + quiet_ns);
        let progress_ns = established_ns + quiet_ns - 1;
        assert_eq!(end_ns(begun_ns, Some(established_ns), progress_ns), progress_ns + quiet_ns);
        let late_ns = established_ns + nanoseconds(EXCHANGE_MAX);
        assert_eq!(end_ns(begun_ns, Some(established_ns), late_ns), late_ns, "but not for ever");
    }
}
