//! The data of records with the names in it: where they are, and what they look like without compression.

use domain::base::Rtype;

use super::{
    name::{self, ParseError},
    record::Record,
};

/// A part of a record's data, from its beginning; behind the last one is whatever is left.
enum Part {
    /// A fixed number of bytes.
    Bytes(usize),
    /// A byte of length, and the number of bytes that it gives.
    Text,
    Name,
}

/// The parts of the types whose names may be compressed, or are lower case in canonical form, up to the last name.
///
/// These are the types of RFC 1035, RFC 3597 §4 and RFC 4034 §6.2. NSEC is not among them (RFC 6840
/// §5.1), HINFO has no names, and A6 is historic (RFC 6563). Names of all other types are bytes like any others.
fn layout(rtype: Rtype) -> &'static [Part] {
    use Part::{Bytes, Name, Text};
    match rtype.to_int() {
        // NS, MD, MF, CNAME, MB, MG, MR, PTR, NXT, DNAME
        2..=5 | 7..=9 | 12 | 30 | 39 => &[Name],
        // SOA, MINFO, RP
        6 | 14 | 17 => &[Name, Name],
        // MX, AFSDB, RT, KX
        15 | 18 | 21 | 36 => &[Bytes(2), Name],
        // SIG, RRSIG
        24 | 46 => &[Bytes(18), Name],
        // PX
        26 => &[Bytes(2), Name, Name],
        // SRV
        33 => &[Bytes(6), Name],
        // NAPTR
        35 => &[Bytes(4), Text, Text, Text, Name],
        _ => &[],
    }
}

/// What becomes of the case of letters in names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    AsSent,
    Lower,
}

impl Record<'_> {
    /// Appends the data with its names not compressed, in the case of letters they were sent in.
    ///
    /// Data that is not as its type asks for is [`ParseError::Malformed`].
    pub fn data_into(&self, to: &mut Vec<u8>) -> Result<(), ParseError> {
        let (message, at) = self.context();
        expand(self.rtype, message, at, to, Case::AsSent)
    }

    /// Appends the data in canonical form (RFC 4034 §6.2): names not compressed, in lower case.
    pub fn canonical_data_into(&self, to: &mut Vec<u8>) -> Result<(), ParseError> {
        let (message, at) = self.context();
        expand(self.rtype, message, at, to, Case::Lower)
    }
}

/// Appends data that stands alone, its names not compressed, in canonical form (RFC 4034 §6.2).
pub fn canonical_into(rtype: Rtype, data: &[u8], to: &mut Vec<u8>) -> Result<(), ParseError> {
    expand(rtype, data, 0, to, Case::Lower)
}

/// Appends the data that begins at `at` and ends with `message`.
fn expand(rtype: Rtype, message: &[u8], mut at: usize, to: &mut Vec<u8>, case: Case) -> Result<(), ParseError> {
    for part in layout(rtype) {
        let next = match part {
            Part::Bytes(bytes) => at + bytes,
            Part::Text => at + 1 + usize::from(*message.get(at).ok_or(ParseError::Malformed)?),
            Part::Name => {
                let from = to.len();
                let behind = name::expand(message, at, to)?;
                if case == Case::Lower {
                    // Lengths of labels are no letters.
                    to[from..].make_ascii_lowercase();
                }
                at = behind;
                continue;
            }
        };
        to.extend_from_slice(message.get(at..next).ok_or(ParseError::Malformed)?);
        at = next;
    }
    to.extend_from_slice(&message[at..]);
    Ok(())
}

#[cfg(test)]
#[path = "rdata_tests.rs"]
mod tests;
