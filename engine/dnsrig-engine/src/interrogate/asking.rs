//! Asking: what the checks share, which is the server, what is known of its zones, and what several of them judge by.

use std::cell::OnceCell;

use super::{
    answer::Transport,
    caps::PIPELINED,
    connection::{CloseReason, Records},
    exchange::Exchange,
    idle::Idle,
    message::ZoneName,
    server::Server,
    survey::{Known, Survey},
};
use crate::dns::query::Ask;

/// An interrogation in progress. What several checks judge by is asked for once.
pub struct Asking {
    pub server: Server,
    pub survey: Survey,
    pub idle: [Idle; 2],
    mixed: [OnceCell<Result<Exchange, CloseReason>>; 2],
    pipelined: [OnceCell<Result<Exchange, CloseReason>>; 2],
}

impl Asking {
    pub fn new(server: Server, survey: Survey, idle: [Idle; 2]) -> Self {
        Asking { server, survey, idle, mixed: Default::default(), pipelined: Default::default() }
    }

    /// A small zone that can be transferred.
    pub fn small(&self) -> Option<&Known> {
        self.survey.small()
    }

    /// Any zone: best one that can be transferred, and a small one.
    pub fn any(&self) -> Option<&Known> {
        self.survey.any()
    }

    /// So many queries for small zones, round and round.
    pub fn small_zones(&self, count: usize) -> Vec<(&ZoneName, Ask)> {
        self.survey.small_zones().map(|known| (&known.name, Ask::Axfr)).cycle().take(count).collect()
    }

    /// Fifty small zones asked for in one write, before any answer.
    pub fn pipelined(&self, transport: Transport) -> Result<&Exchange, &CloseReason> {
        self.pipelined[transport as usize]
            .get_or_init(|| {
                let mut connection = self.server.open(transport)?;
                Ok(self.server.ask_at_once(&mut connection, &self.small_zones(PIPELINED), Records::OneEach))
            })
            .as_ref()
    }

    /// The same large zone twice and small ones behind it, in one write. None without a large zone and a small one.
    pub fn mixed(&self, transport: Transport) -> Option<Result<&Exchange, &CloseReason>> {
        let large = (&self.survey.large()?.name, Ask::Axfr);
        let small = self.small_zones(LARGE_FIRST * 10);
        let exchange = self.mixed[transport as usize].get_or_init(|| {
            let mut connection = self.server.open(transport)?;
            Ok(self.server.ask_at_once(&mut connection, &[vec![large; LARGE_FIRST], small].concat(), Records::OneEach))
        });
        Some(exchange.as_ref())
    }
}

/// How many transfers of a large zone are the first in [`Asking::mixed`].
pub const LARGE_FIRST: usize = 2;
