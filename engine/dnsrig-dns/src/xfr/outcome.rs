//! How a transfer ended.

use std::fmt;

use crate::{name::ParseError, tsig::verify::Refusal};

/// Declares an enum whose values have words, which files and reports contain.
macro_rules! words {
    ($(#[$meta:meta])* enum $name:ident { $($(#[$doc:meta])* $value:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        pub enum $name {
            $($(#[$doc])* $value,)+
        }

        impl $name {
            /// Every value, in the order of declaration: `ALL[value as usize] == value`.
            pub const ALL: [$name; [$($word),+].len()] = [$($name::$value),+];

            /// The word in files and reports.
            pub fn word(self) -> &'static str {
                match self {
                    $($name::$value => $word,)+
                }
            }
        }
    };
}

words! {
    /// How one attempt to transfer a zone ended. Files and reports contain [`Outcome::word`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    enum Outcome {
        /// Complete, and whatever was to be checked is right.
        Done = "done",
        /// An IXFR was answered with the serial it was asked from.
        UpToDate = "up-to-date",
        /// RCODE 2: also what a server says whose limit of transfers is met.
        Servfail = "servfail",
        /// RCODE 5.
        Refused = "refused",
        /// RCODE 9, without an error in a TSIG.
        Notauth = "notauth",
        /// RCODE 1.
        Formerr = "formerr",
        /// RCODE 4.
        Notimp = "notimp",
        /// Any other RCODE.
        OtherRcode = "other-rcode",
        /// The connection was closed before the first message.
        Closed = "closed",
        /// The connection was closed behind the first message.
        Cut = "cut",
        /// The connection was reset.
        Reset = "reset",
        /// There was no connection to ask on.
        NoConnection = "no-connection",
        /// TLS failed: in the handshake, or on a connection that was open.
        TlsFailed = "tls-failed",
        /// We closed the connection, because another transfer on it had no end.
        Abandoned = "abandoned",
        /// Nothing came for too long.
        TimedOut = "timed-out",
        /// Records came, and then nothing for too long.
        Stalled = "stalled",
        /// Messages without a record, or bytes that complete no message, came for too long.
        NoProgress = "no-progress",
        /// Records came, but not the last one in the time that a transfer has.
        TooLong = "too-long",
        /// The first record is no SOA of the zone, or there is no record.
        SoaMissing = "soa-missing",
        /// The SOA at the end is another than the one at the beginning, or the serials of an IXFR make no chain.
        SoaDifferent = "soa-different",
        /// A record whose owner does not lie in the zone.
        OutOfZone = "out-of-zone",
        /// A record of another class than IN.
        WrongClass = "wrong-class",
        /// The server's serial is older than the one asked from, or a change leads to an older one (RFC 1982).
        SerialBackwards = "serial-backwards",
        /// A message that cannot be read: bytes are missing, are too many, or mean nothing.
        BadMessage = "bad-message",
        /// A message that is shorter than a header.
        NoHeader = "no-header",
        /// A message that is no response to a query.
        NotAResponse = "not-a-response",
        /// A response that was cut (TC), which none has to be over TCP (RFC 5936 §2.2).
        TcSet = "tc-set",
        /// Records behind the SOA that ends the answer.
        BehindTheEnd = "behind-the-end",
        /// A compression pointer that does not lead backwards.
        CompressionLoop = "compression-loop",
        /// The question is another than the one asked, or the first message has none.
        WrongQuestion = "wrong-question",
        /// A signature is missing: on the first message, on the last, or on more than 99 in a row (RFC 8945 §5.3.1).
        TsigMissing = "tsig-missing",
        /// A signature does not fit the message, is another key's, or of another time.
        TsigWrong = "tsig-wrong",
        /// The server says in a TSIG that it does not take ours: BADKEY, BADSIG, BADTIME.
        TsigError = "tsig-error",
        /// A limit was reached: bytes, records, messages, or what a digest may take of memory.
        LimitExceeded = "limit-exceeded",
        /// Complete, but not with the number of records that was expected.
        WrongCount = "wrong-count",
        /// Complete, but without a ZONEMD record that can be checked (RFC 8976).
        ZonemdMissing = "zonemd-missing",
        /// Complete, but its ZONEMD record says something else.
        ZonemdWrong = "zonemd-wrong",
        /// What came could not be written to a file.
        NotWritten = "not-written",
    }
}

impl Outcome {
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

impl From<ParseError> for Outcome {
    fn from(error: ParseError) -> Self {
        match error {
            ParseError::Malformed => Outcome::BadMessage,
            ParseError::PointerLoop => Outcome::CompressionLoop,
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
    /// There was no connection.
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

words! {
    /// What kind of answer came.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    enum Answered {
        /// None yet, or none of a known kind.
        #[default]
        None = "none",
        /// One SOA, which was asked for.
        Soa = "soa",
        /// The whole zone, also if changes were asked for.
        Axfr = "axfr",
        /// Changes.
        Ixfr = "ixfr",
        /// One SOA that says that there are no changes.
        UpToDate = "up-to-date",
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_outcome_has_its_own_word() {
        let words: HashSet<_> = Outcome::ALL.iter().map(|outcome| outcome.word()).collect();
        assert_eq!(words.len(), Outcome::ALL.len());
    }
}
