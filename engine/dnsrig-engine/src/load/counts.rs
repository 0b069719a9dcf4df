//! Counters of queries, messages and connections, which threads, intervals and generators add up.

use dnsrig_net::{connection::CloseReason, quic, tls::Fault};
use serde::{Deserialize, Serialize};

use super::{
    answer::RCODES,
    counter::{Counter, counters},
    http_faults::HttpFaults,
};

counters! {
    /// Queries that ended without an answer because their connection ended, by the reason.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Losses {
        pub closed: u64,
        pub reset: u64,
        pub refused: u64,
        pub tls: u64,
        #[serde(default)]
        pub http: u64,
    }
}

impl Losses {
    /// Counts one.
    pub fn count(&mut self, reason: CloseReason) {
        *match reason {
            CloseReason::Closed => &mut self.closed,
            CloseReason::Reset => &mut self.reset,
            CloseReason::Refused => &mut self.refused,
            CloseReason::Tls(_) => &mut self.tls,
            CloseReason::Http(_) => &mut self.http,
        } += 1;
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        [self.closed, self.reset, self.refused, self.tls, self.http].into_iter().fold(0, u64::saturating_add)
    }
}

counters! {
    /// Messages received that ended no query.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
    pub struct UnmatchedResponses {
        /// Answers to queries that had timed out before.
        pub late: u64,
        /// Further answers to a query that was answered.
        pub duplicates: u64,
        /// Messages with an id that no query of that client has.
        pub unexpected: u64,
        /// Messages with the id of a query and another question.
        pub mismatched: u64,
        /// Messages that are not DNS responses.
        pub malformed: u64,
        /// Answers that are too short for the records that their header counts.
        pub incomplete: u64,
    }
}

counters! {
    /// Answers that differ from what was expected, by how they differ.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
    pub struct WrongAnswers {
        pub rcode: u64,
        /// NOERROR without a record of the type.
        pub empty: u64,
        /// Other records of the type.
        pub rrset: u64,
        /// Marked as truncated, so that records could not be compared.
        pub truncated: u64,
        /// Records that cannot be read.
        pub damaged: u64,
    }
}

impl WrongAnswers {
    /// All of them.
    pub fn total(&self) -> u64 {
        [self.rcode, self.empty, self.rrset, self.truncated, self.damaged].into_iter().fold(0, u64::saturating_add)
    }
}

counters! {
    /// The counts of an interval, or of all intervals.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Counts {
        pub due: u64,
        pub sent: u64,
        /// Queries with an answer that is not wrong.
        pub answered: u64,
        pub wrong: WrongAnswers,
        /// Answers of which nothing was expected, though something was expected of others.
        pub unlisted: u64,
        pub timeouts: u64,
        pub lost: Losses,
        pub unmatched: UnmatchedResponses,
        pub truncated: u64,
        /// Answers with AD set.
        pub authenticated: u64,
        pub rcodes: [u64; RCODES],
        pub bytes_sent: u64,
        pub bytes_received: u64,
        /// Why TLS failed on one of the connections, if it did.
        pub tls_fault: Option<Fault>,
        /// The queries that HTTP left without an answer, by kind.
        pub http: HttpFaults,
        /// ICMP errors that the socket reported.
        pub unreachable: u64,
        /// Queries that had to wait until their client had an id or a place for them, or were never sent.
        pub waited_for_id: u64,
        /// Queries that had to wait until the server permitted another stream of HTTP/2, or were never sent.
        pub waited_for_stream: u64,
        /// The largest possible number of answers that belong to an earlier query with the same id: see
        /// [`client_queries`](super::client_queries).
        pub wrong_matches_max: u64,
    }
}

impl Counts {
    /// Counts a query whose connection ended.
    pub fn lose(&mut self, loss: CloseReason) {
        match loss {
            CloseReason::Tls(fault) => self.tls_fault = Some(fault),
            CloseReason::Http(fault) => self.http.count(fault),
            CloseReason::Closed | CloseReason::Reset | CloseReason::Refused => {}
        }
        self.lost.count(loss);
    }

    /// The number of queries that ended without an answer.
    pub fn unanswered(&self) -> u64 {
        self.timeouts + self.lost.total()
    }
}

counters! {
    /// Connections since the start; zero over UDP.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
    pub struct Connections {
        /// Connections that were begun.
        pub attempted: u64,
        /// Connections whose handshakes were done.
        pub established: u64,
        /// Established connections with TLS.
        pub handshakes: u64,
        /// Handshakes that resumed a session.
        pub resumed: u64,
        /// Handshakes of clients that had made one before; known of the many clients of a replay.
        pub returning: u64,
        /// Queries that the server took with the first flight of a resumed session (RFC 8446 §2.3).
        pub early_accepted: u64,
        /// Queries that it did not take so: they were sent again after the handshake.
        pub early_rejected: u64,
        /// Connections that were not established, or that the other side ended with queries outstanding.
        pub failed: u64,
        /// Connections that the server asked to leave (GOAWAY of HTTP/2).
        pub went_away: u64,
        /// Connections that were not begun, because this host had no port left for them: the queries went later, or on
        /// another connection.
        pub no_port: u64,
        /// Connections that are open now.
        pub open: u64,
        /// Connections that the other side ended, or did not accept, by how it did.
        pub ended: Losses,
        /// What QUIC counts besides.
        #[serde(skip_serializing_if = "quic::counts::Counts::is_none")]
        pub quic: quic::counts::Counts,
    }
}
