//! To whom `transfer` speaks: JSON lines to programs, text to people.

use std::{
    io::{self, IsTerminal},
    net::SocketAddr,
};

use serde::Serialize;

use super::{human_report, summary::Summary, worker::Progress};
use crate::{
    base::{
        clock,
        events::{self},
        failure::Failure,
    },
    stats::grouped,
};

/// Each second's event.
#[derive(Serialize)]
struct ProgressEvent {
    done: u64,
    failed: u64,
    outstanding: u64,
    zones: u64,
    records: u64,
    bytes: u64,
    connections_open: u64,
}

#[derive(Serialize)]
struct Ready {
    port: u16,
}

/// Who reads what we say.
#[derive(Clone, Copy, Debug)]
pub struct Reporter {
    /// JSON lines on standard output.
    pub program: bool,
    /// Text on standard error.
    pub person: bool,
    /// A line that is written over and over, on a terminal.
    pub rewrites: bool,
}

impl Reporter {
    /// A program reads a pipe; a person a terminal.
    pub fn find(json: bool) -> Self {
        let terminal = io::stdout().is_terminal();
        let rewrites = io::stderr().is_terminal();
        Reporter { program: events::are_wanted(json), person: rewrites || terminal, rewrites }
    }

    /// NOTIFY is waited for.
    pub fn ready(self, port: u16) -> Result<(), Failure> {
        if self.person {
            events::say(format!("waiting for NOTIFY on port {port}; Ctrl-C ends it\n"));
        }
        if self.program { events::emit("ready", clock::monotonic_ns(), &Ready { port }) } else { Ok(()) }
    }

    /// How far all threads are together, of `zones` in all (0: nobody knows).
    pub fn progress(self, progress: &Progress, zones: u64) -> Result<(), Failure> {
        let Progress { done, failed, outstanding, records, bytes, connections_open, .. } = *progress;
        if self.person {
            let of = if zones > 0 { format!(" of {}", grouped(zones)) } else { String::new() };
            let line = format!(
                "{}{of} zones done, {} failed, {} under way on {} connections; {} records, {} MB",
                grouped(done),
                grouped(failed),
                grouped(outstanding),
                grouped(connections_open),
                grouped(records),
                grouped(bytes / 1_000_000),
            );
            // Back to the beginning of the line, and what was there is erased (ECMA-48 EL).
            let (begin, end) = if self.rewrites { ("\r", "\x1b[K") } else { ("", "\n") };
            events::say(format!("{begin}{line}{end}"));
        }
        let event = ProgressEvent { done, failed, outstanding, zones, records, bytes, connections_open };
        if self.program { events::emit("progress", clock::monotonic_ns(), &event) } else { Ok(()) }
    }

    /// Says how it all went.
    pub fn summary(self, summary: &Summary, server: SocketAddr) -> Result<(), Failure> {
        if self.person {
            let begin = if self.rewrites { "\r\x1b[K" } else { "" };
            events::say(format!("{begin}{}", human_report::text(summary, server)));
        }
        if self.program { events::summary(summary.end_ns, summary) } else { Ok(()) }
    }
}
