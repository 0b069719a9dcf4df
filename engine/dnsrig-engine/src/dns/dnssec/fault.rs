//! Deliberate damage: what is wrong with a signed zone.

/// One way in which a zone is bogus to whom validates it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The parent's DS record has the digest of another key.
    WrongDs,
    /// Signatures ended before the zone's validity began.
    Expired,
    /// No RRset has a signature.
    MissingSignature,
    /// The key that signs the zone's records is not among its DNSKEY records.
    MissingKey,
    /// NSEC and NSEC3 records, properly signed, match and cover nothing that is asked for.
    BrokenDenial,
}
