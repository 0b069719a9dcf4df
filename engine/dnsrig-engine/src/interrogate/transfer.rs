//! One query and its answer, as far as it came, and when.

use std::time::Duration;

use dnsrig_dns::{
    catalog::Members,
    edns,
    query::Ask,
    record::Record,
    tsig::verify::Verifier,
    xfr::{Answered, Change, Counts, Incoming, Limits, Outcome, Sink, Step},
    zonemd::Digest,
};

use super::limits::DIGEST_BYTES_MAX;

/// A name of a zone in wire format: not compressed, lower case, with the byte of the root.
pub type ZoneName = Vec<u8>;

/// What no transfer takes, because the exchange ends earlier.
pub const NO_LIMITS: Limits = Limits { bytes_max: u64::MAX, records_max: u64::MAX, messages_max: u32::MAX };

/// What is wanted of the records: a digest, the members of a catalog.
struct Wanted {
    digest: Option<Digest>,
    members: Option<Members>,
}

impl Sink for Wanted {
    fn record(&mut self, record: &Record<'_>, change: Change) -> Result<(), Outcome> {
        self.digest.record(record, change)?;
        self.members.record(record, change)
    }

    fn end(&mut self, answered: Answered) -> Result<(), Outcome> {
        self.digest.end(answered)?;
        self.members.end(answered)
    }
}

/// An answer in progress, or ended.
pub struct Transfer {
    /// When the query was written, since the exchange began.
    pub asked_at: Duration,
    pub first_at: Option<Duration>,
    pub last_at: Option<Duration>,
    /// The longest run of messages without a signature.
    pub unsigned_run_max: u32,
    /// How long the server says that it keeps an idle connection.
    pub keepalive: Option<Duration>,
    /// How it ended; None: it did not.
    pub outcome: Option<Outcome>,
    /// What its digest comes to, if that was to be checked.
    pub zonemd: Option<Outcome>,
    zone: ZoneName,
    incoming: Incoming,
    wanted: Wanted,
    unsigned_run: u32,
}

impl Transfer {
    /// A transfer of `zone`; `checks_digest` keeps all its records, to compare them with its ZONEMD record (RFC 8976).
    pub fn new(zone: ZoneName, ask: Ask, verifier: Option<Verifier>, asked_at: Duration, checks_digest: bool) -> Self {
        Transfer {
            asked_at,
            first_at: None,
            last_at: None,
            unsigned_run_max: 0,
            keepalive: None,
            outcome: None,
            zonemd: None,
            zone,
            // Secondaries do so, too. The check of AXFR reports zones with such records.
            incoming: Incoming::new(ask, verifier.map(Box::new)).passing_over_outside(),
            wanted: Wanted { digest: checks_digest.then(|| Digest::new(DIGEST_BYTES_MAX)), members: None },
            unsigned_run: 0,
        }
    }

    /// Has the members of the zone, a catalog, kept in `members`.
    pub fn keep_members(&mut self, members: Members) {
        self.wanted.members = Some(members);
    }

    /// Takes in the next message; `now_s` is wall time in seconds since 1970.
    pub fn take(&mut self, at: Duration, now_s: u64, message: &[u8]) {
        self.first_at.get_or_insert(at);
        self.last_at = Some(at);
        self.keepalive = edns::keepalive(message);
        let signed = self.counts().signed;
        let step = self.incoming.take(message, &self.zone, now_s, &NO_LIMITS, &mut self.wanted);
        self.note_signature(self.counts().signed > signed);
        self.outcome = match step {
            Step::More => None,
            // A zone is served, whatever its digest is.
            Step::Done(outcome @ (Outcome::ZonemdMissing | Outcome::ZonemdWrong)) => {
                self.zonemd = Some(outcome);
                Some(Outcome::Done)
            }
            Step::Done(outcome) => {
                self.zonemd = self.wanted.digest.is_some().then_some(outcome);
                Some(outcome)
            }
        };
    }

    pub fn counts(&self) -> Counts {
        self.incoming.counts()
    }

    pub fn is_open(&self) -> bool {
        self.outcome.is_none()
    }

    pub fn is_done(&self) -> bool {
        self.outcome.is_some_and(Outcome::is_good)
    }

    /// Whether it ended well, and with that kind of answer.
    pub fn is(&self, answered: Answered) -> bool {
        self.is_done() && self.counts().answered == answered
    }

    /// The error that the server answered with.
    pub fn refusal(&self) -> Option<Outcome> {
        self.outcome.filter(|outcome| {
            use Outcome::{Formerr, Notauth, Notimp, OtherRcode, Refused, Servfail, TsigError};
            matches!(outcome, Servfail | Refused | Notauth | Formerr | Notimp | OtherRcode | TsigError)
        })
    }

    /// From the query to the last message.
    pub fn took(&self) -> Option<Duration> {
        Some(self.last_at?.saturating_sub(self.asked_at))
    }

    fn note_signature(&mut self, is_signed: bool) {
        self.unsigned_run = if is_signed { 0 } else { self.unsigned_run + 1 };
        self.unsigned_run_max = self.unsigned_run_max.max(self.unsigned_run);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_run_without_a_signature_counts() {
        let mut transfer = Transfer::new(b"\x01z\0".to_vec(), Ask::Axfr, None, Duration::ZERO, false);
        for is_signed in [true, false, false, true, false, true] {
            transfer.note_signature(is_signed);
        }
        assert_eq!(transfer.unsigned_run_max, 2);
    }
}
