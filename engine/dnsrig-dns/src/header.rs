//! The header of a message (RFC 1035 §4.1.1).

use std::collections::BTreeMap;

use domain::base::iana::Rcode;

use super::name::ParseError;

/// The length of a header; the question follows it.
pub const HEADER_BYTES: usize = 12;

/// The longest message over UDP without EDNS (RFC 1035 §4.2.1).
pub const UDP_BYTES_MAX: usize = 512;

/// Bits of the third byte: response, operation, authoritative, truncated, recursion desired.
pub const QR: u8 = 0x80;
pub const OPCODE: u8 = 0x78;
pub const AA: u8 = 0x04;
pub const TC: u8 = 0x02;
pub const RD: u8 = 0x01;

/// The operations NOTIFY (RFC 1996 §3.3) and UPDATE (RFC 2136 §2.2), where the third byte has them.
pub const NOTIFY: u8 = 4 << 3;
pub const UPDATE: u8 = 5 << 3;

/// Bits of the fourth byte: authentic data and checking disabled (RFC 4035 §3.2), response code.
pub const AD: u8 = 0x20;
pub const CD: u8 = 0x10;
pub const RCODE: u8 = 0x0f;

/// The place of the number of additional records.
pub const ARCOUNT: usize = 10;

/// A header, but for the bits of the fourth byte beside the response code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    pub id: u16,
    /// The third byte.
    pub flags: u8,
    pub rcode: u8,
    pub questions: u16,
    pub answers: u16,
    pub authority: u16,
    pub additional: u16,
}

impl Header {
    /// Reads the header that `message` begins with.
    #[inline]
    pub fn read(message: &[u8]) -> Result<Self, ParseError> {
        let header: &[u8; HEADER_BYTES] = message.first_chunk().ok_or(ParseError::Malformed)?;
        let number = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        Ok(Header {
            id: number(0),
            flags: header[2],
            rcode: header[3] & RCODE,
            questions: number(4),
            answers: number(6),
            authority: number(8),
            additional: number(ARCOUNT),
        })
    }

    /// The header as it is written.
    #[inline]
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..2].copy_from_slice(&self.id.to_be_bytes());
        (bytes[2], bytes[3]) = (self.flags, self.rcode);
        let counts = [self.questions, self.answers, self.authority, self.additional];
        bytes[4..].as_chunks_mut().0.iter_mut().zip(counts).for_each(|(place, count)| *place = count.to_be_bytes());
        bytes
    }

    /// Whether the message is a response to a query, and was not truncated.
    #[inline]
    pub fn is_answer(&self) -> bool {
        self.flags & (QR | OPCODE | TC) == QR
    }

    /// Whether the message is a response to a query.
    #[inline]
    pub fn is_response(&self) -> bool {
        self.flags & (QR | OPCODE) == QR
    }

    /// The number of records behind the questions.
    #[inline]
    pub fn records(&self) -> u32 {
        u32::from(self.answers) + u32::from(self.authority) + u32::from(self.additional)
    }
}

/// The number of answers for each RCODE, by its mnemonic.
pub type Rcodes = BTreeMap<String, u64>;

/// Counts an answer.
pub fn count_rcode(rcodes: &mut Rcodes, rcode: u8) {
    *rcodes.entry(Rcode::masked_from_int(rcode).to_string()).or_default() += 1;
}

/// Counts one additional record more in the header of `message`.
#[inline]
pub fn count_additional(message: &mut [u8]) {
    let records = u16::from_be_bytes([message[ARCOUNT], message[ARCOUNT + 1]]).wrapping_add(1);
    message[ARCOUNT..HEADER_BYTES].copy_from_slice(&records.to_be_bytes());
}
