//! EDNS (RFC 6891): the OPT record of a message and its options.

use std::{net::IpAddr, str::FromStr};

use domain::base::Rtype;

use super::{
    header::{Header, count_additional},
    name::ParseError,
    record::{Record, Walk},
};

/// DO, the first of the flags in the TTL of OPT (RFC 3225 §3, RFC 6891 §6.1.4).
const DO: u8 = 0x80;

/// The place of the first byte of the flags in an OPT record.
const FLAGS_AT: usize = 7;

/// The length of an OPT record without options.
pub const OPT_BYTES: usize = 11;

/// The least payload size that means anything: lower values count as 512 (RFC 6891 §6.2.3).
pub const UDP_PAYLOAD_BYTES_MIN: u16 = 512;

/// The payload size that programs use since the DNS Flag Day 2020.
pub const UDP_PAYLOAD_BYTES: u16 = 1232;

/// The place of the length of the options in an OPT record.
const LENGTH_AT: usize = 9;

/// Codes of options: the name of a server (NSID, RFC 5001 §2.3), the subnet of a client (RFC 7871 §6), a cookie (RFC
/// 7873 §4), edns-tcp-keepalive (RFC 7828 §3.1), padding (RFC 7830 §3).
pub const NSID: u16 = 3;
pub const CLIENT_SUBNET: u16 = 8;
pub const COOKIE: u16 = 10;
const TCP_KEEPALIVE: u16 = 11;
pub const PADDING: u16 = 12;

/// The length of a client's part of a cookie (RFC 7873 §4).
pub const CLIENT_COOKIE_BYTES: usize = 8;

/// The length of an option before its data: code and length.
pub const OPTION_HEAD_BYTES: usize = 4;

/// Queries are padded to a multiple of this length (RFC 8467 §4.1).
const QUERY_BLOCK_BYTES: usize = 128;

/// What programs set in an OPT record of version 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edns {
    /// The largest UDP payload that the sender can take, in bytes.
    pub udp_payload_bytes: u16,
    /// Ask for DNSSEC records: DO.
    pub dnssec_ok: bool,
}

/// An OPT record (RFC 6891 §6.1.2). The flags beside DO are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opt<'m> {
    pub edns: Edns,
    /// The upper eight bits of the RCODE.
    pub extended_rcode: u8,
    pub version: u8,
    /// The options in wire format, see [`options`].
    pub options: &'m [u8],
}

impl<'m> Opt<'m> {
    /// An OPT record of version 0, without options.
    pub const fn new(edns: Edns) -> Self {
        Opt { edns, extended_rcode: 0, version: 0, options: &[] }
    }

    /// Reads an OPT record; None if the record has another type.
    pub fn read(record: &Record<'m>) -> Option<Self> {
        let [extended_rcode, version, flags, _] = record.ttl_s.to_be_bytes();
        let edns = Edns { udp_payload_bytes: record.class.to_int(), dnssec_ok: flags & DO != 0 };
        (record.rtype == Rtype::OPT).then(|| Opt { edns, extended_rcode, version, options: record.data() })
    }

    /// The record up to its options: the root, type, payload size, upper bits of the RCODE, version, flags, length.
    pub const fn head(&self) -> [u8; OPT_BYTES] {
        let [type_high, type_low] = Rtype::OPT.to_int().to_be_bytes();
        let [size_high, size_low] = self.edns.udp_payload_bytes.to_be_bytes();
        let [length_high, length_low] = (self.options.len() as u16).to_be_bytes();
        let flags = if self.edns.dnssec_ok { DO } else { 0 };
        let (rcode, version) = (self.extended_rcode, self.version);
        [0, type_high, type_low, size_high, size_low, rcode, version, flags, 0, length_high, length_low]
    }

    /// Appends the record.
    pub fn append_to(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.head());
        to.extend_from_slice(self.options);
    }
}

/// Sets or clears DO in an OPT record in wire format. All else stays as it is.
pub fn set_dnssec_ok(opt: &mut [u8], dnssec_ok: bool) {
    if dnssec_ok { opt[FLAGS_AT] |= DO } else { opt[FLAGS_AT] &= !DO }
}

/// The options of an OPT record, each with its code (RFC 6891 §6.1.2); an error ends them if one is cut short.
pub fn options(mut bytes: &[u8]) -> impl Iterator<Item = Result<(u16, &[u8]), ParseError>> {
    std::iter::from_fn(move || {
        let rest = std::mem::take(&mut bytes);
        if rest.is_empty() {
            return None;
        }
        let Some((&[code_high, code_low, high, low], rest)) = rest.split_first_chunk() else {
            return Some(Err(ParseError::Malformed));
        };
        let Some((data, behind)) = rest.split_at_checked(u16::from_be_bytes([high, low]).into()) else {
            return Some(Err(ParseError::Malformed));
        };
        bytes = behind;
        Some(Ok((u16::from_be_bytes([code_high, code_low]), data)))
    })
}

/// Appends an option: its code, the length of its data, its data (RFC 6891 §6.1.2).
pub fn push_option(to: &mut Vec<u8>, code: u16, data: &[u8]) {
    to.extend_from_slice(&code.to_be_bytes());
    to.extend_from_slice(&(data.len() as u16).to_be_bytes());
    to.extend_from_slice(data);
}

/// Appends an OPT record with these options to the message that begins at `start` of `to`. With `padded`, an option
/// makes the message as long as a multiple of 128 bytes.
pub fn append_padded(to: &mut Vec<u8>, start: usize, edns: Edns, options: [&[u8]; 2], padded: bool) {
    let opt = to.len();
    to.extend_from_slice(&Opt::new(edns).head());
    options.iter().for_each(|option| to.extend_from_slice(option));
    if padded {
        let length = to.len() - start + OPTION_HEAD_BYTES;
        push_option(to, PADDING, &[0; QUERY_BLOCK_BYTES][..length.next_multiple_of(QUERY_BLOCK_BYTES) - length]);
    }
    let length = (to.len() - opt - OPT_BYTES) as u16;
    to[opt + LENGTH_AT..opt + OPT_BYTES].copy_from_slice(&length.to_be_bytes());
}

/// A subnet of clients, as a resolver passes it on to authorities (RFC 7871 §6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subnet {
    address: IpAddr,
    bits: u8,
}

impl Subnet {
    /// The data of the option: family, length of the prefix, a scope of 0, and the bytes of the address in the prefix.
    pub fn data(self) -> Vec<u8> {
        let (family, address) = match self.address {
            IpAddr::V4(address) => (1, address.octets().to_vec()),
            IpAddr::V6(address) => (2, address.octets().to_vec()),
        };
        let bytes = usize::from(self.bits).div_ceil(8);
        [&[0, family, self.bits, 0], &address[..bytes]].concat()
    }
}

impl FromStr for Subnet {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || format!("`{text}` is no prefix, such as 192.0.2.0/24 or 2001:db8::/56");
        let (address, bits) = text.split_once('/').ok_or_else(expected)?;
        let address: IpAddr = address.parse().map_err(|_| expected())?;
        let bits: u8 = bits.parse().map_err(|_| expected())?;
        let (width, number) = match address {
            IpAddr::V4(address) => (32, u128::from(u32::from(address)) << 96),
            IpAddr::V6(address) => (128, u128::from(address)),
        };
        if bits > width {
            return Err(expected());
        }
        if number.checked_shl(bits.into()).unwrap_or(0) != 0 {
            return Err(format!("`{text}`: bits of the address behind the prefix are set (RFC 7871, section 6)"));
        }
        Ok(Subnet { address, bits })
    }
}

/// Adds an OPT record to a query without one. Its option asks how long an idle connection stays (RFC 7828 §3.2.1).
pub fn add_keepalive(query: &mut Vec<u8>) {
    let [high, low] = TCP_KEEPALIVE.to_be_bytes();
    let edns = Edns { udp_payload_bytes: UDP_PAYLOAD_BYTES, dnssec_ok: false };
    Opt { options: &[high, low, 0, 0], ..Opt::new(edns) }.append_to(query);
    count_additional(query);
}

/// How long the server keeps an idle connection, if its answer reports it (RFC 7828 §3.3.2).
pub fn keepalive(answer: &[u8]) -> Option<std::time::Duration> {
    let header = Header::read(answer).ok()?;
    let mut walk = Walk::new(answer);
    (0..header.questions).try_for_each(|_| walk.skip_question()).ok()?;
    let opt = walk.records(&header).map_while(Result::ok).find_map(|(_, record)| Opt::read(&record))?;
    let timeout = options(opt.options).map_while(Result::ok).find(|(code, _)| *code == TCP_KEEPALIVE);
    // In units of 100 ms (RFC 7828 §3.1).
    let &[high, low] = timeout?.1 else { return None };
    Some(std::time::Duration::from_millis(100 * u64::from(u16::from_be_bytes([high, low]))))
}

#[cfg(test)]
mod tests {
    use dnsrig_testing::fuzz::fuzz;
    use domain::base::{
        Message, MessageBuilder,
        opt::{TcpKeepalive, UnknownOptData},
    };

    use super::*;
    use crate::{
        query::{set_client_cookie, soa_query},
        testing::messages,
    };

    #[test]
    fn another_library_reads_the_record() {
        for (udp_payload_bytes, dnssec_ok, extended_rcode, options) in
            [(1232, false, 0, &[][..]), (65_535, true, 1, &[0, 10, 0, 1, 7, 0, 12, 0, 0])]
        {
            let opt = Opt { extended_rcode, options, ..Opt::new(Edns { udp_payload_bytes, dnssec_ok }) };
            let mut message = soa_query(1, b"\x01z\0");
            opt.append_to(&mut message);
            count_additional(&mut message);
            let read = Message::from_octets(&message[..]).unwrap();
            let found = read.opt().unwrap();
            assert_eq!(
                (found.udp_payload_size(), found.dnssec_ok(), found.version()),
                (udp_payload_bytes, dnssec_ok, 0)
            );
            assert_eq!(found.rcode(read.header()).to_int(), u16::from(extended_rcode) << 4);
            let found: Vec<_> = found.opt().iter::<UnknownOptData<_>>().map(|it| it.unwrap().code().to_int()).collect();
            let ours: Vec<_> = super::options(options).map(|option| option.unwrap().0).collect();
            assert_eq!(found, ours);
        }
    }

    #[test]
    fn a_subnet_is_written_as_the_rfc_says() {
        for (text, data) in [
            ("192.0.2.0/24", &[0, 1, 24, 0, 192, 0, 2][..]),
            ("0.0.0.0/0", &[0, 1, 0, 0]),
            ("192.0.2.128/25", &[0, 1, 25, 0, 192, 0, 2, 128]),
            ("2001:db8::/33", &[0, 2, 33, 0, 0x20, 1, 0x0d, 0xb8, 0]),
            ("::1/128", &[0, 2, 128, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
        ] {
            assert_eq!(text.parse::<Subnet>().unwrap().data(), data, "{text}");
        }
        for (text, reason) in [
            ("192.0.2.0", "no prefix"),
            ("192.0.2.0/33", "no prefix"),
            ("192.0.2.1/24", "behind the prefix"),
            ("a/8", "no prefix"),
            ("::1/64", "behind the prefix"),
            ("1.0.0.0/0", "behind the prefix"),
        ] {
            assert!(text.parse::<Subnet>().unwrap_err().contains(reason), "{text}");
        }
    }

    #[test]
    fn a_padded_query_has_a_multiple_of_128_bytes_and_its_client_sets_the_cookie() {
        let mut cookie = Vec::new();
        push_option(&mut cookie, COOKIE, &[0; CLIENT_COOKIE_BYTES]);
        let edns = Edns { udp_payload_bytes: 1232, dnssec_ok: true };
        for length in 1..64 {
            let zone = [&[length as u8], &vec![b'a'; length][..], b"\0"].concat();
            let mut message = soa_query(1, &zone);
            append_padded(&mut message, 0, edns, [&cookie, &[0, 3, 0, 0]], true);
            count_additional(&mut message);
            assert!(message.len().is_multiple_of(128), "{}", message.len());
            set_client_cookie(&mut message, *b"A client");
            let read = Message::from_octets(&message[..]).unwrap();
            let opt = read.opt().unwrap();
            let found: Vec<_> = opt.opt().iter::<UnknownOptData<_>>().map(Result::unwrap).collect();
            let codes: Vec<_> = found.iter().map(|option| option.code().to_int()).collect();
            assert_eq!(codes, [COOKIE, NSID, PADDING]);
            assert_eq!(found[0].data(), b"A client");
        }
        let mut without = soa_query(1, b"\x01z\0");
        append_padded(&mut without, 0, edns, [&[], &[]], false);
        let before = without.clone();
        set_client_cookie(&mut without, *b"A client");
        assert_eq!(without, before);
    }

    #[test]
    fn the_keepalive_is_asked_for_without_a_value_and_read_from_an_answer() {
        let mut query = soa_query(1, b"\x01z\0");
        add_keepalive(&mut query);
        let message = Message::from_slice(&query).unwrap();
        let option = message.opt().unwrap().opt().first::<TcpKeepalive>().unwrap();
        assert_eq!((message.header_counts().arcount(), option.timeout()), (1, None));
        assert_eq!(keepalive(&query), None);
        let mut additional = MessageBuilder::new_vec().additional();
        let timeout = std::time::Duration::from_millis(30_200);
        let option = TcpKeepalive::new(Some(timeout.try_into().unwrap()));
        additional.opt(|options| options.push(&option)).unwrap();
        assert_eq!(keepalive(&additional.finish()), Some(timeout));
    }

    /// The other library also follows pointers into the very name that they end: nothing is found after such a name.
    #[test]
    fn harmed_messages_have_the_options_that_another_library_reads() {
        fuzz(5_000, &messages(), |bytes, _| {
            let mut walk = Walk::new(bytes);
            let Ok(header) = Header::read(bytes) else { return };
            let Ok(()) = (0..header.questions).try_for_each(|_| walk.skip_question()) else { return };
            let records: Result<Vec<_>, _> = walk.records(&header).collect();
            let (Ok(records), Ok(other)) = (records, Message::from_slice(bytes)) else { return };
            let ours: Vec<_> = records.iter().filter_map(|(_, record)| Opt::read(record)).collect();
            if let ([opt], Some(found)) = (&ours[..], other.opt()) {
                let edns = Edns { udp_payload_bytes: found.udp_payload_size(), dnssec_ok: found.dnssec_ok() };
                assert_eq!((opt.edns, opt.version), (edns, found.version()));
                let theirs = found.opt().iter::<UnknownOptData<_>>().map(|it| it.map(|it| it.code().to_int()));
                let theirs = theirs.collect::<Result<Vec<_>, _>>().ok();
                let ours = options(opt.options).map(|it| it.map(|(code, _)| code)).collect::<Result<Vec<_>, _>>().ok();
                assert_eq!(ours, theirs);
            }
        });
    }
}
