//! Queries: their questions, and the messages that ask for a zone, for its changes, or for its serial.

use domain::base::{Rtype, iana::Class};

use super::{
    edns::{CLIENT_COOKIE_BYTES, COOKIE, Edns, OPT_BYTES, OPTION_HEAD_BYTES, Opt},
    header::{HEADER_BYTES, Header, RD},
    name::{self, NAME_BYTES_MAX, ParseError},
    record::Walk,
    writer::{append_question, append_record},
};

/// QTYPE and QCLASS, behind the name of a question.
pub const TAIL_BYTES: usize = 4;

/// The longest query without further records.
pub const QUERY_BYTES_MAX: usize = HEADER_BYTES + NAME_BYTES_MAX + TAIL_BYTES;

/// A question whose name is not compressed (RFC 1035 §4.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question<'m> {
    /// Name, type and class as they came.
    pub wire: &'m [u8],
    pub rtype: Rtype,
    pub class: Class,
}

impl<'m> Question<'m> {
    /// Reads the question that follows the header of `message`. The caller has seen from the header that there is one.
    #[inline]
    pub fn read(message: &'m [u8]) -> Result<Self, ParseError> {
        let tail = name::skip_plain(message, HEADER_BYTES)?;
        let wire = message.get(HEADER_BYTES..tail + TAIL_BYTES).ok_or(ParseError::Malformed)?;
        let word = |at: usize| u16::from_be_bytes([message[at], message[at + 1]]);
        Ok(Question { wire, rtype: Rtype::from_int(word(tail)), class: Class::from_int(word(tail + 2)) })
    }

    /// The name in wire format, in the case of letters it was sent in.
    #[inline]
    pub fn name(&self) -> &'m [u8] {
        &self.wire[..self.wire.len() - TAIL_BYTES]
    }

    /// The place of what follows the question in its message.
    #[inline]
    pub fn end(&self) -> usize {
        HEADER_BYTES + self.wire.len()
    }
}

/// The question of a query and its EDNS, as a cache and counters see them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// In wire format and lower case.
    pub name: Vec<u8>,
    pub rtype: u16,
    pub edns: Option<Edns>,
}

impl Asked {
    /// Reads a query; None if it has no question that can be read.
    pub fn read(message: &[u8]) -> Option<Self> {
        let header = Header::read(message).ok().filter(|header| header.questions > 0)?;
        let question = Question::read(message).ok()?;
        // EDNS is the only record of a query, nearly always. Its owner is the root.
        let is_opt = || header.records() == 1 && message.get(question.end()) == Some(&0);
        let opt = is_opt().then(|| Walk::from(message, question.end()).any_record().ok()).flatten();
        Some(Asked {
            // Lengths of labels are no letters.
            name: question.name().to_ascii_lowercase(),
            rtype: question.rtype.to_int(),
            edns: opt.and_then(|record| Opt::read(&record)).map(|opt| opt.edns),
        })
    }
}

/// Flags and EDNS: what many queries have in common beside their questions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Ask for recursion: RD.
    pub recursion_desired: bool,
    /// Add an OPT record.
    pub edns: Option<Edns>,
}

impl Options {
    /// The header of a query with one question: id 0, opcode QUERY.
    pub fn header(self) -> [u8; HEADER_BYTES] {
        let flags = if self.recursion_desired { RD } else { 0 };
        Header { flags, questions: 1, additional: self.edns.is_some().into(), ..Header::default() }.to_bytes()
    }

    /// The additional section: an OPT record of 11 bytes, or nothing.
    pub fn opt(self) -> Vec<u8> {
        self.edns.map(|edns| Opt::new(edns).head().to_vec()).unwrap_or_default()
    }
}

/// What a secondary asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// The SOA record alone, as a secondary does before it decides.
    Soa,
    /// The whole zone (RFC 5936).
    Axfr,
    /// What changed since `serial` (RFC 1995); a server may answer with the whole zone.
    Ixfr { serial: u32 },
}

impl Ask {
    /// The QTYPE.
    pub fn qtype(self) -> Rtype {
        match self {
            Ask::Soa => Rtype::SOA,
            Ask::Axfr => Rtype::AXFR,
            Ask::Ixfr { .. } => Rtype::IXFR,
        }
    }
}

/// The bytes of the question of a query, whose name is not compressed: name, type and class. Of bytes that are no such
/// query, what there is of it, or nothing.
#[inline]
pub fn question(message: &[u8]) -> &[u8] {
    let end = name::skip_plain(message, HEADER_BYTES).map_or(message.len(), |end| message.len().min(end + TAIL_BYTES));
    message.get(HEADER_BYTES..end).unwrap_or_default()
}

/// The beginning of a cookie of a client that has no server's part yet (RFC 7873 §4).
const COOKIE_HEAD: [u8; OPTION_HEAD_BYTES] = [0, COOKIE as u8, 0, CLIENT_COOKIE_BYTES as u8];

/// Sets the client's part of the cookie in a query whose first option is a cookie. Other messages stay as they are.
#[inline]
pub fn set_client_cookie(query: &mut [u8], cookie: [u8; CLIENT_COOKIE_BYTES]) {
    let Ok(tail) = name::skip_plain(query, HEADER_BYTES) else { return };
    let option = tail + TAIL_BYTES + OPT_BYTES;
    let data = option + OPTION_HEAD_BYTES;
    if query.get(option..data) == Some(&COOKIE_HEAD)
        && let Some(place) = query.get_mut(data..data + CLIENT_COOKIE_BYTES)
    {
        place.copy_from_slice(&cookie);
    }
}

/// The query for the SOA of a zone.
pub fn soa_query(id: u16, zone: &[u8]) -> Vec<u8> {
    let mut query = Vec::with_capacity(QUERY_BYTES_MAX);
    write_query(&mut query, id, zone, Ask::Soa);
    query
}

/// Appends a query (no length before it) to `to`.
///
/// `zone` is the name in wire format: not compressed, lower case, with the byte of the root. No flag is set. An IXFR
/// query has an SOA in its authority section, of which a server reads the serial only (RFC 1995 §3).
pub fn write_query(to: &mut Vec<u8>, id: u16, zone: &[u8], ask: Ask) {
    let authority = matches!(ask, Ask::Ixfr { .. }).into();
    to.extend_from_slice(&Header { id, questions: 1, authority, ..Header::default() }.to_bytes());
    append_question(to, zone, ask.qtype());
    if let Ask::Ixfr { serial } = ask {
        // The owner is a pointer to the question; the data is two roots, the serial, and four timers.
        let data = [&[0; 2][..], &serial.to_be_bytes(), &[0; 16]].concat();
        append_record(to, &[0xc0, HEADER_BYTES as u8], Rtype::SOA, Class::IN, 0, &data);
    }
}

#[cfg(test)]
mod tests {
    use domain::{
        base::{Message, iana::Opcode},
        rdata::Soa,
    };

    use super::*;
    use crate::testing::name;

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

    #[test]
    fn a_query_is_read_with_its_edns() {
        for edns in [None, Some(Edns { udp_payload_bytes: 4096, dnssec_ok: true })] {
            let options = Options { recursion_desired: true, edns };
            let message = [&options.header()[..], &name("A.Example"), &[0, 28, 0, 1], &options.opt()].concat();
            assert_eq!(Asked::read(&message), Some(Asked { name: name("a.example"), rtype: 28, edns }));
            assert_eq!(Asked::read(&message[..20]), None);
            let without_question = [&message[..5], &[0], &message[6..]].concat();
            assert_eq!(Asked::read(&without_question), None);
        }
    }

    #[test]
    fn another_library_reads_the_query() {
        let zone = name("zone.example");
        for (ask, qtype, serial) in [
            (Ask::Soa, Rtype::SOA, None),
            (Ask::Axfr, Rtype::AXFR, None),
            (Ask::Ixfr { serial: 0xfedc_ba98 }, Rtype::IXFR, Some(0xfedc_ba98)),
        ] {
            let mut buffer = vec![1, 2];
            write_query(&mut buffer, 0x1234, &zone, ask);
            let query = Message::from_octets(&buffer[2..]).unwrap();
            let header = query.header();
            assert_eq!((header.id(), header.qr(), header.rd()), (0x1234, false, false));
            let question = query.sole_question().unwrap();
            assert_eq!((question.qtype(), question.qclass()), (qtype, Class::IN));
            assert_eq!(question.qname().to_string(), "zone.example");
            assert_eq!(query.answer().unwrap().count(), 0);
            let soas = query.authority().unwrap().limit_to_in::<Soa<_>>().map(|soa| {
                let soa = soa.unwrap();
                assert_eq!(soa.owner(), question.qname());
                soa.data().serial().into_int()
            });
            assert_eq!(soas.collect::<Vec<_>>(), Vec::from_iter(serial));
            assert_eq!(query.additional().unwrap().count(), 0);
        }
    }
}
