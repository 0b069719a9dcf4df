//! What all queries have in common beside their questions: the header's flags, and EDNS.

use crate::dns::header::{HEADER_BYTES, RD};

/// DO, the first of the flags in the TTL of OPT (RFC 3225 §3, RFC 6891 §6.1.4).
pub const DO: u8 = 0x80;

/// The least payload size that means anything: lower values count as 512 (RFC 6891 §6.2.3).
pub const UDP_PAYLOAD_BYTES_MIN: u16 = 512;

/// Flags and EDNS of a query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Ask for recursion: RD.
    pub recursion_desired: bool,
    /// Add an OPT record.
    pub edns: Option<Edns>,
}

/// What the OPT record says, of EDNS version 0 and without options (RFC 6891 §6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edns {
    /// The largest UDP payload that the client can take, in bytes.
    pub udp_payload_bytes: u16,
    /// Ask for DNSSEC records: DO.
    pub dnssec_ok: bool,
}

impl Options {
    /// The header of a query with one question: id 0, opcode QUERY.
    pub fn header(self) -> [u8; HEADER_BYTES] {
        let flags = if self.recursion_desired { RD } else { 0 };
        let additional = u8::from(self.edns.is_some());
        [0, 0, flags, 0, 0, 1, 0, 0, 0, 0, 0, additional]
    }

    /// The additional section: an OPT record of 11 bytes, or nothing.
    pub fn opt(self) -> Vec<u8> {
        let Some(Edns { udp_payload_bytes, dnssec_ok }) = self.edns else { return Vec::new() };
        let [size_high, size_low] = udp_payload_bytes.to_be_bytes();
        let flags = if dnssec_ok { DO } else { 0 };
        // Root, type 41, the size as class, then as TTL: upper bits of the RCODE, version, flags; no data.
        vec![0, 0, 41, size_high, size_low, 0, 0, flags, 0, 0, 0]
    }
}

#[cfg(test)]
mod tests {
    use domain::base::{Message, iana::Opcode};

    use super::*;

    fn message(options: Options) -> Message<Vec<u8>> {
        let mut bytes = options.header().to_vec();
        bytes.extend([0, 0, 2, 0, 1]);
        bytes.extend(options.opt());
        Message::from_octets(bytes).unwrap()
    }

    #[test]
    fn a_plain_query_has_no_flag_and_no_opt() {
        let message = message(Options::default());
        let header = message.header();
        assert_eq!((header.id(), header.qr(), header.rd(), header.opcode()), (0, false, false, Opcode::QUERY));
        assert!(message.opt().is_none());
        assert_eq!(message.header_counts().arcount(), 0);
    }

    #[test]
    fn recursion_size_and_dnssec_are_asked_for_apart() {
        for (recursion_desired, udp_payload_bytes, dnssec_ok) in [(true, 1232, false), (false, 65_535, true)] {
            let edns = Some(Edns { udp_payload_bytes, dnssec_ok });
            let message = message(Options { recursion_desired, edns });
            let opt = message.opt().unwrap();
            assert_eq!(message.header().rd(), recursion_desired);
            assert_eq!((opt.udp_payload_size(), opt.dnssec_ok(), opt.version()), (udp_payload_bytes, dnssec_ok, 0));
            assert_eq!(opt.opt().iter::<domain::base::opt::UnknownOptData<_>>().count(), 0);
        }
    }
}
