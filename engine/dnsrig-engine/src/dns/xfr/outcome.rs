//! How a transfer ended.

use std::fmt;

use crate::dns::{name::Wrong, tsig::verify::Refusal};

/// How one attempt to transfer a zone ended. [`Outcome::word`] is what files and reports say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outcome {
    /// Complete, and whatever was to be checked is right.
    Done,
    /// An IXFR was answered with the serial it was asked from.
    UpToDate,
    /// RCODE 2: also what a server says whose limit of transfers is met.
    Servfail,
    /// RCODE 5.
    Refused,
    /// RCODE 9, without an error in a TSIG.
    Notauth,
    /// RCODE 1.
    Formerr,
    /// RCODE 4.
    Notimp,
    /// Any other RCODE.
    OtherRcode,
    /// The connection was closed before the first message.
    Closed,
    /// The connection was closed behind the first message.
    Cut,
    /// The connection was reset.
    Reset,
    /// There was no connection to ask on.
    NoConnection,
    /// TLS failed: in the handshake, or on a connection that was open.
    TlsFailed,
    /// We closed the connection, because another transfer on it had no end.
    Abandoned,
    /// Nothing came for too long.
    TimedOut,
    /// Records came, and then nothing for too long.
    Stalled,
    /// Messages without a record, or bytes that complete no message, came for too long.
    NoProgress,
    /// Records came, but not the last one in the time that a transfer has.
    TooLong,
    /// The first record is no SOA of the zone, or there is no record.
    SoaMissing,
    /// The SOA at the end is another than the one at the beginning, or the serials of an IXFR make no chain.
    SoaDifferent,
    /// A record whose owner does not lie in the zone.
    OutOfZone,
    /// A record of another class than IN.
    WrongClass,
    /// The server's serial is older than the one asked from, or a change leads to an older one (RFC 1982).
    SerialBackwards,
    /// A message that cannot be read: bytes are missing, are too many, or mean nothing.
    BadMessage,
    /// A message that is shorter than a header.
    NoHeader,
    /// A message that is no response to a query.
    NotAResponse,
    /// A response that was cut (TC), which none has to be over TCP (RFC 5936 §2.2).
    TcSet,
    /// Records behind the SOA that ends the answer.
    BehindTheEnd,
    /// A compression pointer that does not lead backwards.
    CompressionLoop,
    /// The question is another than the one asked, or the first message has none.
    WrongQuestion,
    /// A signature is missing: on the first message, on the last, or on more than 99 in a row (RFC 8945 §5.3.1).
    TsigMissing,
    /// A signature does not fit the message, is another key's, or of another time.
    TsigWrong,
    /// The server says in a TSIG that it does not take ours: BADKEY, BADSIG, BADTIME.
    TsigError,
    /// A limit was reached: bytes, records, messages, or what a digest may take of memory.
    LimitExceeded,
    /// Complete, but not with the number of records that was expected.
    WrongCount,
    /// Complete, but without a ZONEMD record that can be checked (RFC 8976).
    ZonemdMissing,
    /// Complete, but its ZONEMD record says something else.
    ZonemdWrong,
    /// What came could not be written to a file.
    NotWritten,
}

impl Outcome {
    /// Every outcome, in the order of declaration: `ALL[outcome as usize] == outcome`.
    pub const ALL: [Outcome; 38] = [
        Outcome::Done,
        Outcome::UpToDate,
        Outcome::Servfail,
        Outcome::Refused,
        Outcome::Notauth,
        Outcome::Formerr,
        Outcome::Notimp,
        Outcome::OtherRcode,
        Outcome::Closed,
        Outcome::Cut,
        Outcome::Reset,
        Outcome::NoConnection,
        Outcome::TlsFailed,
        Outcome::Abandoned,
        Outcome::TimedOut,
        Outcome::Stalled,
        Outcome::NoProgress,
        Outcome::TooLong,
        Outcome::SoaMissing,
        Outcome::SoaDifferent,
        Outcome::OutOfZone,
        Outcome::WrongClass,
        Outcome::SerialBackwards,
        Outcome::BadMessage,
        Outcome::NoHeader,
        Outcome::NotAResponse,
        Outcome::TcSet,
        Outcome::BehindTheEnd,
        Outcome::CompressionLoop,
        Outcome::WrongQuestion,
        Outcome::TsigMissing,
        Outcome::TsigWrong,
        Outcome::TsigError,
        Outcome::LimitExceeded,
        Outcome::WrongCount,
        Outcome::ZonemdMissing,
        Outcome::ZonemdWrong,
        Outcome::NotWritten,
    ];

    /// The outcome as files and reports say it.
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Done => "done",
            Outcome::UpToDate => "up-to-date",
            Outcome::Servfail => "servfail",
            Outcome::Refused => "refused",
            Outcome::Notauth => "notauth",
            Outcome::Formerr => "formerr",
            Outcome::Notimp => "notimp",
            Outcome::OtherRcode => "other-rcode",
            Outcome::Closed => "closed",
            Outcome::Cut => "cut",
            Outcome::Reset => "reset",
            Outcome::NoConnection => "no-connection",
            Outcome::TlsFailed => "tls-failed",
            Outcome::Abandoned => "abandoned",
            Outcome::TimedOut => "timed-out",
            Outcome::Stalled => "stalled",
            Outcome::NoProgress => "no-progress",
            Outcome::TooLong => "too-long",
            Outcome::SoaMissing => "soa-missing",
            Outcome::SoaDifferent => "soa-different",
            Outcome::OutOfZone => "out-of-zone",
            Outcome::WrongClass => "wrong-class",
            Outcome::SerialBackwards => "serial-backwards",
            Outcome::BadMessage => "bad-message",
            Outcome::NoHeader => "no-header",
            Outcome::NotAResponse => "not-a-response",
            Outcome::TcSet => "tc-set",
            Outcome::BehindTheEnd => "behind-the-end",
            Outcome::CompressionLoop => "compression-loop",
            Outcome::WrongQuestion => "wrong-question",
            Outcome::TsigMissing => "tsig-missing",
            Outcome::TsigWrong => "tsig-wrong",
            Outcome::TsigError => "tsig-error",
            Outcome::LimitExceeded => "limit-exceeded",
            Outcome::WrongCount => "wrong-count",
            Outcome::ZonemdMissing => "zonemd-missing",
            Outcome::ZonemdWrong => "zonemd-wrong",
            Outcome::NotWritten => "not-written",
        }
    }

    /// Whether the zone is now as the server has it.
    pub fn is_good(self) -> bool {
        matches!(self, Outcome::Done | Outcome::UpToDate)
    }

    /// What an RCODE other than NOERROR means.
    pub fn of_rcode(rcode: u8) -> Self {
        match rcode {
            1 => Outcome::Formerr,
            2 => Outcome::Servfail,
            4 => Outcome::Notimp,
            5 => Outcome::Refused,
            9 => Outcome::Notauth,
            _ => Outcome::OtherRcode,
        }
    }
}

impl From<Wrong> for Outcome {
    fn from(wrong: Wrong) -> Self {
        match wrong {
            Wrong::Form => Outcome::BadMessage,
            Wrong::Loop => Outcome::CompressionLoop,
        }
    }
}

impl From<Refusal> for Outcome {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Malformed(wrong) => wrong.into(),
            Refusal::Missing => Outcome::TsigMissing,
            Refusal::Wrong => Outcome::TsigWrong,
            Refusal::Error => Outcome::TsigError,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.word())
    }
}

/// What ended a transfer from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The server closed the connection.
    Closed,
    /// The server reset it.
    Reset,
    /// There was none.
    NoConnection,
    /// TLS failed on it, or before it was open.
    Tls,
    /// We closed it.
    Ours,
    /// Nothing came for too long.
    TimedOut,
    /// What came for too long was no record.
    NoProgress,
    /// The time that a transfer has is over.
    TooLong,
}

impl Cut {
    /// The outcome of a transfer that nothing had come of.
    pub fn outcome(self) -> Outcome {
        match self {
            Cut::Closed => Outcome::Closed,
            Cut::Reset => Outcome::Reset,
            Cut::NoConnection => Outcome::NoConnection,
            Cut::Tls => Outcome::TlsFailed,
            Cut::Ours => Outcome::Abandoned,
            Cut::TimedOut => Outcome::TimedOut,
            Cut::NoProgress => Outcome::NoProgress,
            Cut::TooLong => Outcome::TooLong,
        }
    }
}

/// What kind of answer came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Answered {
    /// None yet, or none of a known kind.
    #[default]
    None,
    /// One SOA, which was asked for.
    Soa,
    /// The whole zone, also if changes were asked for.
    Axfr,
    /// Changes.
    Ixfr,
    /// One SOA that says that there are no changes.
    UpToDate,
}

impl Answered {
    /// Every kind, in the order of declaration.
    pub const ALL: [Answered; 5] = [Answered::None, Answered::Soa, Answered::Axfr, Answered::Ixfr, Answered::UpToDate];

    /// The kind as files and reports say it.
    pub fn word(self) -> &'static str {
        match self {
            Answered::None => "none",
            Answered::Soa => "soa",
            Answered::Axfr => "axfr",
            Answered::Ixfr => "ixfr",
            Answered::UpToDate => "up-to-date",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_outcome_has_its_own_word_and_its_place() {
        let words: HashSet<_> = Outcome::ALL.iter().map(|outcome| outcome.word()).collect();
        assert_eq!(words.len(), Outcome::ALL.len());
        for (place, outcome) in Outcome::ALL.into_iter().enumerate() {
            assert_eq!(outcome as usize, place);
        }
        for (place, answered) in Answered::ALL.into_iter().enumerate() {
            assert_eq!(answered as usize, place);
        }
    }
}
