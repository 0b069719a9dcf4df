//! What the checks share: the server, what is known of its zones, and exchanges that several of them judge by.

use std::cell::OnceCell;

use dnsrig_dns::query::Ask;

use super::{
    answer::{CannotTell, Transport},
    connection::{CloseReason, Connection, Records},
    exchange::Exchange,
    idle::Idle,
    limits::PIPELINED,
    server::Server,
    survey::{Known, Survey},
    transfer::ZoneName,
};

/// The number of transfers of a large zone that are the first in [`Interrogation::mixed`].
pub const LARGE_FIRST: usize = 2;

/// An interrogation in progress.
pub struct Interrogation {
    pub server: Server,
    pub survey: Survey,
    pub idle: [Idle; 2],
    mixed: [OnceCell<Result<Exchange, CloseReason>>; 2],
    pipelined: [OnceCell<Result<Exchange, CloseReason>>; 2],
}

impl Interrogation {
    pub fn new(server: Server, survey: Survey, idle: [Idle; 2]) -> Self {
        Interrogation { server, survey, idle, mixed: Default::default(), pipelined: Default::default() }
    }

    /// Opens a new connection.
    pub fn open(&self, transport: Transport) -> Result<Connection, CannotTell> {
        self.server.open(transport).map_err(|close_reason| no_connection(transport, &close_reason))
    }

    /// A small zone that can be transferred.
    pub fn small_zone(&self) -> Result<&Known, CannotTell> {
        self.survey.small().ok_or_else(no_small_zone)
    }

    /// Any zone: best one that can be transferred, and a small one.
    pub fn any_zone(&self) -> Result<&Known, CannotTell> {
        self.survey.any().ok_or_else(no_small_zone)
    }

    /// `count` queries for small zones, each zone in its turn.
    pub fn small_zones(&self, count: usize) -> Result<Vec<(&ZoneName, Ask)>, CannotTell> {
        self.small_zone()?;
        Ok(self.survey.small_zones().map(|known| (&known.name, Ask::Axfr)).cycle().take(count).collect())
    }

    /// Fifty small zones asked for in one write, before any answer. They are asked for once.
    pub fn pipelined(&self, transport: Transport) -> Result<&Exchange, CannotTell> {
        let small = self.small_zones(PIPELINED)?;
        let ask = || {
            let mut connection = self.server.open(transport)?;
            Ok(self.server.ask_at_once(&mut connection, &small, Records::OneEach))
        };
        let exchange = self.pipelined[transport as usize].get_or_init(ask).as_ref();
        exchange.map_err(|close_reason| no_connection(transport, close_reason))
    }

    /// One large zone twice and small ones behind it, in one write. They are asked for once.
    ///
    /// None without a large zone.
    pub fn mixed(&self, transport: Transport) -> Result<Option<&Exchange>, CannotTell> {
        let Some(large) = self.survey.large() else { return Ok(None) };
        let small = self.small_zones(LARGE_FIRST * 10).unwrap_or_default();
        let ask = || {
            let mut connection = self.server.open(transport)?;
            let zones = [vec![(&large.name, Ask::Axfr); LARGE_FIRST], small].concat();
            Ok(self.server.ask_at_once(&mut connection, &zones, Records::OneEach))
        };
        let exchange = self.mixed[transport as usize].get_or_init(ask).as_ref();
        exchange.map(Some).map_err(|close_reason| no_connection(transport, close_reason))
    }
}

/// There is no small zone to ask for.
pub fn no_small_zone() -> CannotTell {
    CannotTell("none of the zones that were given could be transferred and is small (up to 16 kB)".into())
}

/// There is no zone that would be in the way of others.
pub fn no_large_zone() -> CannotTell {
    CannotTell("this takes a small zone and one of at least 128 kB (and at most 8 MB) in several messages".into())
}

/// There is no key.
pub fn no_key() -> CannotTell {
    CannotTell("no key was given (--tsig)".into())
}

/// No zone came in the survey.
pub fn no_zone() -> CannotTell {
    CannotTell("no zone could be transferred".into())
}

/// No connection could be opened.
pub fn no_connection(transport: Transport, close_reason: &CloseReason) -> CannotTell {
    CannotTell(match transport {
        Transport::Tcp => format!("no connection: {close_reason}"),
        Transport::Xot => format!("no connection with TLS: {close_reason}"),
        Transport::Xoq => format!("no connection over QUIC: {close_reason}"),
    })
}
