//! An idle connection, watched while other things are asked.

use std::time::{Duration, Instant};

use dnsrig_core::{failure::Failure, threads::Thread};
use dnsrig_dns::query::Ask;

use super::{answer::Transport, connection::CloseReason, limits::IDLE_MAX, server::Server, transfer::ZoneName};

/// What became of an idle connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Idleness {
    /// The server ended it after so long without a query.
    Ended(Duration),
    /// It stayed for as long as it was watched.
    Stayed(Duration),
    /// There was no connection.
    Lost(CloseReason),
}

/// A connection on which one query was answered, and nothing happens since.
pub struct Idle(std::cell::RefCell<State>);

enum State {
    Watched(Result<Thread<Idleness>, Failure>),
    Over(Idleness),
}

impl Idle {
    /// Opens it and begins to watch it.
    pub fn watch(server: &Server, transport: Transport, zone: &ZoneName) -> Self {
        let (server, zone) = (server.clone(), zone.clone());
        let observe = move || observe(&server, transport, &zone).unwrap_or_else(Idleness::Lost);
        let watched = Thread::start("idle", observe);
        Idle(std::cell::RefCell::new(State::Watched(watched)))
    }

    /// Waits for its end.
    pub fn outcome(&self) -> Idleness {
        let lost = || State::Over(Idleness::Lost(CloseReason::TimedOut));
        let outcome = match self.0.replace(lost()) {
            State::Watched(thread) => thread.and_then(Thread::join).unwrap_or_else(|error| panic!("{error}")),
            State::Over(outcome) => outcome,
        };
        self.0.replace(State::Over(outcome.clone()));
        outcome
    }
}

fn observe(server: &Server, transport: Transport, zone: &ZoneName) -> Result<Idleness, CloseReason> {
    let mut connection = server.open(transport)?;
    if let Some(close_reason) = server.ask_in_turn(&mut connection, &[(zone, Ask::Soa)]).close_reason {
        return Err(close_reason);
    }
    let start = Instant::now();
    let end = loop {
        // A message that nobody asked for ends nothing.
        match connection.receive(start + IDLE_MAX) {
            Ok(_) => {}
            Err(close_reason) => break close_reason,
        }
    };
    Ok(match end {
        CloseReason::TimedOut => Idleness::Stayed(IDLE_MAX),
        CloseReason::Closed | CloseReason::Reset => Idleness::Ended(start.elapsed()),
        other => Idleness::Lost(other),
    })
}
