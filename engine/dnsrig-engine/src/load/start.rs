//! When a period begins: soon, or as lines on standard input say.

use std::{
    thread,
    time::{Duration, Instant},
};

use super::{
    arrivals::Period,
    led::{LedError, Line, Start},
    ramp::Try,
    segment::Segment,
    team::{HEAD_START_NS, LOOK_INTERVAL, Team},
};
use crate::base::{
    clock,
    events::{self},
    failure::Failure,
};

/// The first line comes when all generators are ready: within so long.
pub const FIRST_PATIENCE: Duration = Duration::from_secs(600);

/// Every other line comes within a period, its timeout, and so long.
pub const MORE_PATIENCE: Duration = Duration::from_secs(30);

/// What a generator is to do next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Next {
    Start(Start),
    /// The ramp is over.
    End,
    /// Someone asked it to end.
    Stop,
}

/// Sockets are open and queries prepared.
#[derive(serde::Serialize)]
struct Ready {
    segment: Segment,
}

/// Says that a start can come.
pub fn say_ready(segment: Segment) -> Result<(), Failure> {
    events::emit_patiently("ready", clock::monotonic_ns(), &Ready { segment })
}

/// Says which rate is to be tried.
pub fn say_try(wanted: Try) -> Result<(), Failure> {
    events::emit_patiently("try", clock::monotonic_ns(), &wanted)
}

impl Team {
    /// The next line, which is to come `until` then, or it is `late`; none if someone asked us to end.
    pub fn next_line(&mut self, until: Instant, late: impl Fn() -> LedError) -> Result<Option<Line>, Failure> {
        loop {
            let line = self.lines().next(LOOK_INTERVAL);
            // What came before the wish to end is heard; that there is no more may be that wish.
            if let Ok(Some(line)) = line {
                return Ok(Some(Line::parse(&line)?));
            }
            self.look_up()?;
            if self.is_stopping() {
                return Ok(None);
            }
            line?;
            if Instant::now() >= until {
                return Err(late().into());
            }
        }
    }

    /// What is to be done next: at once where nobody leads.
    pub fn next_start(&mut self, patience: Duration) -> Result<Next, Failure> {
        let now_ns = clock::monotonic_ns();
        if !self.is_led() {
            return Ok(Next::Start(Start { start_ns: now_ns + HEAD_START_NS, rate_qps: None }));
        }
        match self.next_line(Instant::now() + patience, || LedError::Silent(patience))? {
            Some(Line::Start(start)) => Ok(Next::Start(start.check(clock::monotonic_ns())?)),
            Some(Line::End) => Ok(Next::End),
            Some(line @ Line::Tried(_)) => Err(LedError::Other { got: line.name(), wanted: "a start" }.into()),
            None => Ok(Next::Stop),
        }
    }

    /// When the one period begins that there is. A wish to end before it has it begin at once, and end.
    pub fn only_start_ns(&mut self) -> Result<i64, Failure> {
        match self.next_start(FIRST_PATIENCE)? {
            Next::Start(Start { rate_qps: Some(_), .. }) => Err(LedError::Rate.into()),
            Next::Start(Start { start_ns, .. }) => Ok(start_ns),
            Next::Stop => Ok(clock::monotonic_ns() + HEAD_START_NS),
            Next::End => Err(LedError::Other { got: Line::End.name(), wanted: "a start" }.into()),
        }
    }

    /// Waits until a period is about to begin; one that is never to begin is moved to now, and will end at once.
    pub fn wait_for(&mut self, period: Period) -> Result<Period, Failure> {
        loop {
            self.look_up()?;
            let now_ns = clock::monotonic_ns();
            let left_ns = period.start_ns - HEAD_START_NS - now_ns;
            if left_ns <= 0 {
                return Ok(period);
            }
            if self.is_stopping() {
                let start_ns = now_ns + HEAD_START_NS;
                return Ok(Period { start_ns, end_ns: start_ns + period.end_ns - period.start_ns, ..period });
            }
            thread::park_timeout(LOOK_INTERVAL.min(Duration::from_nanos(left_ns.unsigned_abs())));
        }
    }
}
