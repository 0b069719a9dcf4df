//! What a thread of the primary counts, and the sums of several.

use std::ops::AddAssign;

use serde::Serialize;

use super::{
    notify::NotifyCounts,
    secondaries::{Secondaries, Transfers},
};
use crate::net::connection::limits::Connections;

/// What was asked and what became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Messages that are queries, NOTIFY among them.
    pub queries: u64,
    /// Messages that are none: too short, or responses.
    pub ignored: u64,
    /// Queries for a SOA.
    pub soa: u64,
    /// Transfers begun, by what they bring.
    pub transfers: Transfers,
    /// How answers ended.
    pub outcomes: Outcomes,
    /// Messages written, of whatever kind.
    pub messages: u64,
    /// Bytes of them, with their lengths before them on a stream.
    pub bytes: u64,
    /// Connections of TCP and XoT.
    pub connections: Connections,
    /// NOTIFYs of ours.
    pub notify: NotifyCounts,
    /// Of all this, what concerns zones that change since they do, by secondary.
    #[serde(skip)]
    pub secondaries: Secondaries,
    /// CPU time of the thread, user and system.
    pub cpu_ns: i64,
}

/// How answers ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Outcomes {
    /// The last message was handed to the connection or the kernel.
    pub done: u64,
    /// A fault cut a transfer.
    pub cut: u64,
    /// The connection was gone before the transfer was.
    pub abandoned: u64,
    pub servfail: u64,
    pub refused: u64,
    /// The zone is not ours, or a signature is not accepted.
    pub notauth: u64,
    pub formerr: u64,
    pub notimp: u64,
}

impl AddAssign<&Counts> for Counts {
    fn add_assign(&mut self, other: &Counts) {
        self.queries += other.queries;
        self.ignored += other.ignored;
        self.soa += other.soa;
        self.transfers += other.transfers;
        self.outcomes += other.outcomes;
        self.messages += other.messages;
        self.bytes += other.bytes;
        self.connections += other.connections;
        self.notify += other.notify;
        self.secondaries.add(&other.secondaries);
        self.cpu_ns += other.cpu_ns;
    }
}

impl AddAssign for Outcomes {
    fn add_assign(&mut self, other: Outcomes) {
        self.done += other.done;
        self.cut += other.cut;
        self.abandoned += other.abandoned;
        self.servfail += other.servfail;
        self.refused += other.refused;
        self.notauth += other.notauth;
        self.formerr += other.formerr;
        self.notimp += other.notimp;
    }
}

impl AddAssign for NotifyCounts {
    fn add_assign(&mut self, other: NotifyCounts) {
        self.sent += other.sent;
        self.retries += other.retries;
        self.answered += other.answered;
        self.unanswered += other.unanswered;
        self.changes_skipped += other.changes_skipped;
    }
}
